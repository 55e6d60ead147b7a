/*
 * How compactions have moved what is in a log, so that who follows it knows its place again where lines are alike:
 * /.ag2/undo/STREAM/moved, written in the commit of each compaction and each undo. Its first line counts them, the others are
 * the last MOVES of them, `UPTO LEN SEGMENT` each, the newest last.
 */
#ifndef AG2_MOVED_H
#define AG2_MOVED_H

#include "store/store.h"

#define MOVES 64

/* The first `upto` bytes of the log became `len` others, and `segment` bytes came to the segments before it (below 0: went from them). */
struct move {
	uint64_t upto, len;
	int64_t segment;
};

struct moved {
	uint64_t count;		/* since the stream began */
	uint64_t version;	/* of the file; 0: nothing was ever moved */
	struct move last[MOVES];
	size_t n;
};

/* What is no such file's content counts as nothing moved. */
int moved_read(struct store *s, const char *stream, struct moved *m, struct err *e);
int moved_version(struct store *s, const char *stream, uint64_t *version, struct err *e);	/* of the file alone */

/*
 * Two operations for the commit that moves so, which fails where another was made since m was read. path and data are what
 * they borrow.
 */
#define MOVED_OPS 2
void moved_ops(struct moved *m, const char *stream, const struct move *move, struct buf *path, struct buf *data, struct store_op *ops);

/*
 * *place was an offset in the log when `count` moves were made: after all of m it is this one; below 0, so far before the log in
 * the full history. What is at most *near bytes before it was so before, too. False when more moves were made than are known.
 */
bool moved_place(const struct moved *m, uint64_t count, int64_t *place, int64_t *near);

#endif

/*
 * How far an aggregation has come in a stream. There is one cursor for each stream and strategy, a small text file under
 * /.ag2/aggregate/, written in the same commit as what the aggregation made.
 *
 * It counts the conversational lines of the full history (segments, then the log). A CompactionSummary counts only as the
 * first of them: behind others it stands for lines that are there themselves. Compaction moves lines that wait for the
 * results of their calls behind what it drops; so the line that the cursor holds on to (the anchor) is the last covered
 * one that cannot be moved, and those that can are listed one by one.
 */
#ifndef AG2_CURSOR_H
#define AG2_CURSOR_H

#include "store/store.h"

#include <stdbool.h>

#define CURSOR_OPEN_MAX 1000		/* movable lines that are listed, the newest */

struct line_sum {
	unsigned char sha1[20];
};

struct cursor {
	uint64_t covered;		/* lines that were given to the strategy; 0: none, then nothing else is set */
	uint64_t anchor;		/* the number of the anchor from 1; 0: there is none, every covered line can be moved */
	struct line_sum sum;		/* of the anchor */
	uint64_t offset, len;		/* where the anchor is in the current log, in bytes; len 0: not known */
	uint64_t segment, segment_version;	/* the last segment then, 0: none: behind another one the log is another one, too */
	uint64_t seen;			/* the log's version when everything in it was covered; 0: not known */
	struct line_sum *open;		/* covered lines that compaction may move */
	size_t open_n;
	uint64_t version;		/* of the cursor's file; 0 when it is not there */
};

/* "/.ag2/aggregate/KEY/STREAM"; out is reset. */
void cursor_path(struct buf *out, const char *key, const char *stream);
#define CURSOR_DIR "/.ag2/aggregate"

/* One that is not there is all 0. ERR_DATA when the file is no cursor. c need not be initialised. */
int cursor_read(struct store *s, const char *path, struct cursor *c, struct err *e);
void cursor_format(struct buf *out, const struct cursor *c);
void cursor_add_open(struct cursor *c, const struct line_sum *sum);
void cursor_copy(struct cursor *to, const struct cursor *from);
void cursor_release(struct cursor *c);

struct line_sum line_sum(const char *line, size_t len);
char *digest_name(const void *data, size_t len);	/* the beginning of a SHA-1, in hex, for names */
bool line_sum_is(const struct line_sum *a, const struct line_sum *b);

#endif

/*
 * What takes back the last run: /.ag2/aggregate-undo/KEY/STREAM, written in the run's commit. It holds what was there before, the cursor
 * among it, and the SHA-1 of what the run wrote, so that nothing is taken back that was changed since.
 */
#ifndef AG2_UNDO_H
#define AG2_UNDO_H

#include "event/build.h"
#include "store/store.h"

#define UNDO_DIR "/.ag2/aggregate-undo"

struct undo {
	char *earlier;			/* the file that was replaced; NULL: none */
	struct buf content;		/* ... and what was in it */
	bool has_cursor;
	struct buf cursor;
};
#define UNDO_INIT { .content = BUF_INIT, .cursor = BUF_INIT }

/* The file: path and output are what the run wrote; path NULL: nothing. */
void undo_format(struct buf *out, const struct undo *u, const char *path, struct text output);
void undo_release(struct undo *u);

/* The cursor put back, seen.h's file goes. ERR_ABSENT: there is nothing to take back. ERR_DATA: the output is not what the run wrote. ERR_CONFLICT: try again. */
int undo_run(struct store *s, const char *undo_path, const char *cursor_path, const char *seen_path, struct err *e);

#endif

/*
 * Old versions of what is replaced: /.ag2/history/PATH/NUMBER.TIME, the newest HISTORY_KEPT of them. The episodes of one
 * stream, /memory/conversations/TIME_STREAM.md, share the history of /memory/conversations/STREAM.md.
 */
#ifndef AG2_HISTORY_H
#define AG2_HISTORY_H

#include "store/store.h"

#define HISTORY_KEPT 10
#define HISTORY_OPS (HISTORY_KEPT + 1)

struct history_entry {
	uint64_t number;	/* rises */
	double time;		/* when it was replaced, seconds since the epoch */
	uint64_t size;
	char *path;
};
struct history {
	struct history_entry *entries;	/* newest first */
	size_t n, cap;
};
int history_read(struct store *s, const char *path, struct history *h, struct err *e);
void history_release(struct history *h);

/*
 * The operations that keep data as the newest old version of path and drop those beyond the last ten: at most HISTORY_OPS,
 * appended to ops. They belong into a commit that expects the version of path that was read. h is what was read before; it
 * owns the paths of the operations.
 */
size_t history_ops(struct history *h, const char *path, const void *data, size_t len, struct store_op *ops);

/* An episode's stream id: NULL when path is no episode. It is the part of path behind the time, up to ".md". */
const char *episode_stream(const char *path, size_t *len);
#define EPISODES_DIR "/memory/conversations"

#endif

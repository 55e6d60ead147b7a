/*
 * The one place for the replay rules: which events can stand without those that a cut removed. Source: AG2's prune, span
 * and snap, as ag2's manual ag2-events describes them; linear in the number of events.
 *
 * They work on an array of events in stream order. Compaction and the windows of assembly use the same functions.
 */
#ifndef AG2_REPLAY_H
#define AG2_REPLAY_H

#include "event/event.h"

/*
 * What remains of events[cut..n) when what the cut orphaned is taken out: keep[i] is set for i in [cut, n) and cleared
 * below cut. Returns how many are kept, -1 when an event's content is broken.
 *
 * An anchor (reasoning item) and a turn item count for what follows them; a request clears both, a response clears the
 * anchor and consumes the turn item. From the cut on: a response with tool calls whose turn item lies before the cut
 * goes; a builtin call whose anchor lies before the cut goes. Of what is left, a results container goes unless all its
 * ids are answered by calls of the responses or builtin calls left, a result unless its id is; a calls container goes
 * unless all its ids are among those, a standalone call unless its id is.
 */
int64_t replay_prune(struct event *const *events, size_t n, size_t cut, bool *keep, struct err *e);

/* prune; while nothing is left and the cut is not 0, one lower and again. *cut is where it ended. */
int64_t replay_span(struct event *const *events, size_t n, size_t *cut, bool *keep, struct err *e);

/* 0 stays 0; else raises the cut until prune takes nothing out, possibly to n. */
int replay_snap(struct event *const *events, size_t n, size_t *cut, struct err *e);

#endif

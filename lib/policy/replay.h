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

/* event_ids, without parsing lines that need not be: one whose grammar is broken may go by. What it parses it forgets. */
int replay_ids(struct event *ev, event_id_fn *fn, void *arg, struct err *e);

/* prune; while nothing is left and the cut is not 0, one lower and again. *cut is where it ended. */
int64_t replay_span(struct event *const *events, size_t n, size_t *cut, bool *keep, struct err *e);

/* 0 stays 0; else raises the cut until prune takes nothing out, possibly to n. */
int replay_snap(struct event *const *events, size_t n, size_t *cut, struct err *e);

/*
 * The same for who holds only the end of a history, and for whom the walk was done as the events went by. `need` is the
 * number (index in the history) of the anchor or turn item without which the event cannot be replayed, -1 when there is
 * none; a response needs its turn item only when it has tool calls.
 */
struct replay_walk {
	int64_t anchor, item;
};
#define REPLAY_WALK_INIT { -1, -1 }
int64_t replay_step(struct replay_walk *w, const struct event *ev, int64_t number);

struct replay_event {
	struct event *event;
	int64_t number, need;
};
int64_t replay_prune_held(const struct replay_event *events, size_t n, size_t cut, bool *keep, struct err *e);
/* Snap for who holds the events from the cut on, numbered without gaps: *cut is an index in them, where to begin and where it ended. */
int replay_snap_held(const struct replay_event *events, size_t n, size_t *cut, struct err *e);

/*
 * Whether what an event is makes it survive every cut up to itself, whatever else goes: 1 it does, 0 not (it needs calls,
 * an anchor or a turn item), -1 broken. span widens to the nearest such event.
 */
int replay_stands_alone(const struct replay_event *r, struct err *e);

#endif

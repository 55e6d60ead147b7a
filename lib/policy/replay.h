/*
 * The one place for the replay rules: which events can stand without those that a cut removed. Source: AG2's prune, span
 * and snap, as ag2's manual ag2-events describes them.
 *
 * Linear in the number of events. Compaction and the windows of assembly use them on the end of a history that they
 * hold, whose events they have walked as these went by.
 */
#ifndef AG2_REPLAY_H
#define AG2_REPLAY_H

#include "event/event.h"

/*
 * The walk. An anchor (reasoning item) and a turn item count for what follows them; a request clears both, a response
 * clears the anchor and consumes the turn item. replay_step takes in the next event, by its number in the history, and
 * returns the number of the anchor or turn item without which it cannot be replayed, -1 when there is none; a response
 * needs its turn item only when it has tool calls.
 */
struct replay_walk {
	int64_t anchor, item;
};
#define REPLAY_WALK_INIT { -1, -1 }
int64_t replay_step(struct replay_walk *w, const struct event *ev, int64_t number);

struct replay_event {
	struct event *event;
	int64_t number, need;	/* what replay_step was given, and returned */
};

/*
 * What remains of events[cut..n) when what the cut orphaned is taken out: keep[i] is set for i in [cut, n) and cleared
 * below cut. Returns how many are kept, -1 when an event's content is broken.
 *
 * A response with tool calls whose turn item lies before the cut goes; a builtin call whose anchor lies before the cut
 * goes. Of what is left, a results container goes unless all its ids are answered by calls of the responses or builtin
 * calls left, a result unless its id is; a calls container goes unless all its ids are among those, a standalone call
 * unless its id is.
 */
int64_t replay_prune(const struct replay_event *events, size_t n, size_t cut, bool *keep, struct err *e);

/*
 * prune; while nothing that counts is left and the cut is not 0, one lower and again. counts NULL: everything does. *cut
 * is where it ended: where it began when no event would ever be left.
 */
typedef bool replay_counts_fn(void *arg, struct event *ev);
int64_t replay_span(const struct replay_event *events, size_t n, size_t *cut, bool *keep, replay_counts_fn *counts, void *arg,
    struct err *e);

/*
 * Raises the cut until prune takes nothing out, possibly to n. The events are numbered without gaps, and those before
 * the first have been cut off: a cut at the beginning of a history needs no snap.
 */
int replay_snap(const struct replay_event *events, size_t n, size_t *cut, struct err *e);

/* event_ids, without parsing lines that need not be: one whose grammar is broken may go by. What it parses it forgets. */
int replay_ids(struct event *ev, event_id_fn *fn, void *arg, struct err *e);

#endif

#include "policy/replay.h"

#include "base/alloc.h"
#include "event/quick.h"
#include "policy/idset.h"

#include <stdlib.h>

#define ANSWERS (EV_RESULTS | EV_RESULT | EV_CALLS | EV_CALL)	/* families that need calls to be there */

static bool
provides(const struct event *ev)
{
	return (ev->type->flags & (EV_RESPONSE | EV_BUILTIN_CALL)) != 0;
}

int
replay_ids(struct event *ev, event_id_fn *fn, void *arg, struct err *e)
{
	struct pieces ids = { 0 };
	bool was_parsed = ev->parsed != NULL;
	size_t i;
	int rc = 0;

	if (!was_parsed && quick_ids(ev, &ids)) {
		for (i = 0; i < ids.n; i++)
			fn(arg, ids.items[i].p, ids.items[i].len);
	} else {
		rc = event_ids(ev, fn, arg, e);
		if (!was_parsed)
			event_forget(ev);
	}
	pieces_release(&ids);
	return rc;
}

static bool
needs_calls(const struct event *ev)
{
	return !provides(ev) && (ev->type->flags & ANSWERS) != 0;
}

static bool
is_container(const struct event *ev)
{
	return (ev->type->flags & (EV_RESULTS | EV_CALLS)) != 0;
}

int64_t
replay_step(struct replay_walk *w, const struct event *ev, int64_t number)
{
	unsigned flags = ev->type->flags;
	int64_t need = -1;

	if (flags & EV_ANCHOR)
		w->anchor = number;
	if (flags & EV_TURN_ITEM)
		w->item = number;
	if (flags & EV_BUILTIN_CALL)
		need = w->anchor;
	if (flags & EV_RESPONSE)
		need = w->item;
	if (flags & (EV_REQUEST | EV_RESPONSE))
		*w = (struct replay_walk)REPLAY_WALK_INIT;
	return need;
}

static void
count_id(void *arg, const char *id, size_t len)
{
	++*(size_t *)arg;
}

static void
add_id(void *arg, const char *id, size_t len)
{
	idset_add(arg, id, len, NULL);
}

struct lookup {
	const struct idset *set;
	size_t n, found;
};

static void
look_up(void *arg, const char *id, size_t len)
{
	struct lookup *l = arg;

	l->n++;
	l->found += idset_find(l->set, id, len) != SIZE_MAX;
}

/* Whether a response or builtin call survives a cut at event number `first`. 1, 0 or -1. */
static int
provider_survives(const struct replay_event *r, int64_t first, struct err *e)
{
	size_t calls = 0;

	if (r->need < 0 || r->need >= first)
		return 1;
	if (r->event->type->flags & EV_BUILTIN_CALL)
		return 0;
	if (replay_ids(r->event, count_id, &calls, e) < 0)
		return -1;
	return calls == 0;
}

/* Whether all that an event of the needy families refers to is in set. A container without ids refers to nothing. */
static int
is_answerable(struct event *ev, const struct idset *set, struct err *e)
{
	struct lookup l = { .set = set };

	if (replay_ids(ev, look_up, &l, e) < 0)
		return -1;
	return l.found == l.n && (l.n > 0 || is_container(ev));
}

/*
 * Whether what an event is makes it survive every cut up to itself, whatever else goes: 1 it does, 0 not (it needs calls,
 * an anchor or a turn item), -1 broken.
 */
static int
stands_alone(const struct replay_event *r, struct err *e)
{
	size_t ids = 0;

	if (provides(r->event))
		return provider_survives(r, r->number, e);
	if (!needs_calls(r->event))
		return 1;
	if (!is_container(r->event))
		return 0;
	if (replay_ids(r->event, count_id, &ids, e) < 0)
		return -1;
	return ids == 0;
}

int64_t
replay_prune(const struct replay_event *events, size_t n, size_t cut, bool *keep, struct err *e)
{
	struct idset set = IDSET_INIT;
	int64_t kept = 0, rc = -1;
	int64_t first = cut < n ? events[cut].number : 0;
	size_t i;
	int yes;

	memset(keep, 0, n * sizeof(keep[0]));
	for (i = cut; i < n; i++) {
		if (!provides(events[i].event))
			continue;
		yes = provider_survives(&events[i], first, e);
		if (yes < 0 || (yes && replay_ids(events[i].event, add_id, &set, e) < 0))
			goto out;
		keep[i] = yes;
	}
	for (i = cut; i < n; i++) {
		if (provides(events[i].event))
			yes = keep[i];
		else
			yes = needs_calls(events[i].event) ? is_answerable(events[i].event, &set, e) : 1;
		if (yes < 0)
			goto out;
		keep[i] = yes;
		kept += yes;
	}
	rc = kept;
out:
	idset_release(&set);
	return rc;
}

/* Whether anything that counts is kept of events[cut..n). */
static bool
any_left(const struct replay_event *events, size_t n, size_t cut, const bool *keep, replay_counts_fn *counts, void *arg)
{
	size_t i;

	for (i = cut; i < n; i++)
		if (keep[i] && (counts == NULL || counts(arg, events[i].event)))
			return true;
	return false;
}

/*
 * Where nothing is left of events[cut..), no calls are left for an earlier event to refer to: lowering the cut changes
 * nothing until it passes an event that stands alone. So there are two prunes, not one for each step.
 */
int64_t
replay_span(const struct replay_event *events, size_t n, size_t *cut, bool *keep, replay_counts_fn *counts, void *arg, struct err *e)
{
	int64_t kept = replay_prune(events, n, *cut, keep, e);
	size_t i;
	int alone = 0;

	if (kept < 0 || any_left(events, n, *cut, keep, counts, arg))
		return kept;
	for (i = *cut < n ? *cut : n; i > 0 && alone == 0; i--)
		if (counts == NULL || counts(arg, events[i - 1].event))
			alone = stands_alone(&events[i - 1], e);
	if (alone <= 0)
		return alone < 0 ? -1 : kept;
	*cut = i;
	return replay_prune(events, n, *cut, keep, e);
}

/* The last event that provides each id, by the id's number. */
struct providers {
	struct idset ids;
	int64_t *last;
	size_t cap;
	int64_t at;		/* the event whose ids are being looked at */
	int64_t lowest;		/* the first of the providers of its ids, -1 when one has none */
	size_t n;
};

static void
note_provider(void *arg, const char *id, size_t len)
{
	struct providers *p = arg;
	size_t i = idset_add(&p->ids, id, len, NULL);

	p->last = xgrow(p->last, i, &p->cap, sizeof(p->last[0]));
	p->last[i] = p->at;
}

static void
find_provider(void *arg, const char *id, size_t len)
{
	struct providers *p = arg;
	size_t i = idset_find(&p->ids, id, len);
	int64_t at = i == SIZE_MAX ? -1 : p->last[i];

	p->n++;
	if (at < p->lowest)
		p->lowest = at;
}

/* The last cut at which the event stays (never before: cuts behind it up to itself take it out). */
static int
last_good_cut(struct providers *p, const struct replay_event *r, int64_t *good, struct err *e)
{
	*good = r->number;
	if (provides(r->event)) {
		int alone = provider_survives(r, r->number, e);

		if (alone == 0)
			*good = r->need;
		return alone < 0 ? -1 : 0;
	}
	if (!needs_calls(r->event))
		return 0;
	p->lowest = r->number;
	p->n = 0;
	if (replay_ids(r->event, find_provider, p, e) < 0)
		return -1;
	*good = p->n == 0 && !is_container(r->event) ? -1 : p->lowest;
	return 0;
}

/*
 * An event that needs something at number g or before makes every cut in (g, itself] lossy. bad[] counts how many such
 * ranges begin and end at each cut; the first cut that none covers is the answer.
 */
int
replay_snap(const struct replay_event *events, size_t n, size_t *cut, struct err *e)
{
	struct providers p = { .ids = IDSET_INIT };
	int64_t *bad = xcalloc(n + 2, sizeof(bad[0])), base = n > 0 ? events[0].number : 0, good, open = 0;
	size_t i;
	int rc = -1;

	for (i = 0; i < n; i++) {
		p.at = events[i].number;
		if (provides(events[i].event) && replay_ids(events[i].event, note_provider, &p, e) < 0)
			goto out;
	}
	for (i = *cut; i < n; i++) {
		if (last_good_cut(&p, &events[i], &good, e) < 0)
			goto out;
		bad[good < base ? 0 : good - base + 1]++;
		bad[i + 1]--;
	}
	for (i = 0; i < n; i++) {
		open += bad[i];
		if (i >= *cut && open == 0)
			break;
	}
	*cut = i;
	rc = 0;
out:
	idset_release(&p.ids);
	free(p.last);
	free(bad);
	return rc;
}

/* Where a history is cut, in one reading that holds no events but the last ones, and which calls before the cut wait. */
#include "compact/job.h"

#include "base/alloc.h"
#include "base/log.h"
#include "policy/replay.h"

#include <stdlib.h>

#define OPEN_MAX 4096		/* calls that wait at the same time, beyond the target; the oldest are dead and go */

/* ---- calls that wait ---- */

/* Calls that were made together, and all lines that belong to them. */
struct group {
	struct group *older, *newer;
	uint64_t offset;		/* of its first announcement */
	uint64_t *ids;			/* hashes of the calls without a result */
	size_t nids;
	uint64_t *all;			/* of all its calls */
	size_t nall, all_cap;
	struct kept *lines;
	size_t nlines, lines_cap;
};

struct waiting {
	struct group *newest, *oldest;
	size_t n, max;
};

/* FNV-1a: nothing is lost by a collision but that a dead call stays or an answered one waits. */
static uint64_t
hash_of(const char *id, size_t len)
{
	uint64_t h = 0xcbf29ce484222325u;
	size_t i;

	for (i = 0; i < len; i++)
		h = (h ^ (unsigned char)id[i]) * 0x100000001b3u;
	return h;
}

static void
group_remove(struct waiting *w, struct group *g)
{
	*(g->newer ? &g->newer->older : &w->newest) = g->older;
	*(g->older ? &g->older->newer : &w->oldest) = g->newer;
	w->n--;
	free(g->ids);
	free(g->all);
	free(g->lines);
	free(g);
}

static struct group *
group_new(struct waiting *w, uint64_t offset)
{
	struct group *g = xcalloc(1, sizeof(*g));

	g->offset = offset;
	g->older = w->newest;
	*(w->newest ? &w->newest->newer : &w->oldest) = g;
	w->newest = g;
	if (++w->n > w->max)
		group_remove(w, w->oldest);
	return g;
}

static bool
has_id(const struct group *g, uint64_t id)
{
	size_t i;

	for (i = 0; i < g->nall; i++)
		if (g->all[i] == id)
			return true;
	return false;
}

/* An id that is used again belongs to the last call with it. */
static struct group *
group_of(const struct waiting *w, uint64_t id)
{
	struct group *g;

	for (g = w->newest; g != NULL && !has_id(g, id); g = g->older)
		;
	return g;
}

static void
group_line(struct group *g, const struct kept *line)
{
	if (g->nlines > 0 && g->lines[g->nlines - 1].offset == line->offset)
		return;
	g->lines = xgrow(g->lines, g->nlines, &g->lines_cap, sizeof(*g->lines));
	g->lines[g->nlines++] = *line;
}

static void
group_answer(struct group *g, uint64_t id)
{
	size_t i;

	for (i = 0; i < g->nids; i++)
		if (g->ids[i] == id)
			g->ids[i--] = g->ids[--g->nids];
}

/* ---- the reading ---- */

/* Where a conversational event begins, and what must be known to judge a cut there. */
struct place {
	uint64_t offset, lines, events;	/* that come before it */
	struct replay_walk walk;
};

struct scan {
	struct cut *out;
	struct waiting waiting;
	struct replay_walk walk;
	const struct trigger *trigger;
	struct place *ring;		/* the last `target` conversational events */
	size_t target, ring_cap;
	struct kept item;		/* the last provider item that stands for a response */
};

struct ids {
	uint64_t *items;
	size_t n, cap;
};

static void
add_id(void *arg, const char *id, size_t len)
{
	struct ids *l = arg;

	l->items = xgrow(l->items, l->n, &l->cap, sizeof(*l->items));
	l->items[l->n++] = hash_of(id, len);
}

static void
note_announcement(struct scan *s, const struct event *ev, const struct ids *ids, const struct kept *line, int64_t need)
{
	struct group *g = NULL;
	size_t i;

	if (ev->type->flags & EV_RESPONSE) {
		if (ids->n == 0)
			return;
		g = group_new(&s->waiting, line->offset);
		if (need >= 0)
			group_line(g, &s->item);
		for (i = 0; i < ids->n; i++) {
			g->all = xgrow(g->all, g->nall, &g->all_cap, sizeof(*g->all));
			g->all[g->nall++] = ids->items[i];
		}
		g->nids = ids->n;
		g->ids = xcalloc(ids->n, sizeof(*g->ids));
		memcpy(g->ids, ids->items, ids->n * sizeof(*g->ids));
		group_line(g, line);
		return;
	}
	for (i = 0; i < ids->n; i++)
		if ((g = group_of(&s->waiting, ids->items[i])) != NULL)
			group_line(g, line);
}

static void
note_results(struct scan *s, const struct ids *ids, const struct kept *line)
{
	struct group *g;
	size_t i;

	for (i = 0; i < ids->n; i++) {
		g = group_of(&s->waiting, ids->items[i]);
		if (g == NULL)
			continue;
		group_line(g, line);
		group_answer(g, ids->items[i]);
		if (g->nids == 0)
			group_remove(&s->waiting, g);
	}
}

static int
note_calls(struct scan *s, struct event *ev, const struct kept *line, int64_t need, struct err *e)
{
	unsigned flags = ev->type->flags;
	struct ids ids = { .items = NULL };
	int rc;

	if (!(flags & (EV_RESPONSE | EV_CALLS | EV_CALL | EV_RESULTS | EV_RESULT)) || (flags & EV_BUILTIN_CALL))
		return 0;
	if (s->waiting.n == 0 && !(flags & EV_RESPONSE))	/* nothing waits that it could belong to */
		return 0;
	rc = replay_ids(ev, add_id, &ids, e);
	if (rc == 0 && (flags & (EV_RESULTS | EV_RESULT)))
		note_results(s, &ids, line);
	else if (rc == 0)
		note_announcement(s, ev, &ids, line, need);
	free(ids.items);
	return rc;
}

static int
scan_event(struct scan *s, struct event *ev, bool prompts_stay, struct err *e)
{
	struct kept line = { .offset = ev->offset, .len = ev->len + 1, .conversational = ev->type->flags & EV_CONVERSATIONAL };
	struct place here = { ev->offset, s->out->lines, s->out->events, s->walk };
	struct replay_walk walk = s->walk;
	int64_t need = replay_step(&walk, ev, (int64_t)s->out->lines);

	if (note_calls(s, ev, &line, need, e) < 0 || trigger_add(s->trigger, &s->out->count, ev, e) < 0)
		return -1;
	s->walk = walk;
	if (ev->type->flags & EV_TURN_ITEM)
		s->item = line;
	if (prompts_stay && (ev->type->flags & EV_PROMPT)) {
		line.prompt = true;
		cut_keep(s->out, &line);
	}
	if (line.conversational && s->out->events < s->target)
		s->ring = xgrow(s->ring, (size_t)s->out->events, &s->ring_cap, sizeof(*s->ring));
	if (line.conversational && s->target > 0)
		s->ring[s->out->events % s->target] = here;
	s->out->events += line.conversational;
	s->out->lines++;
	if (ev->type->flags & EV_SUMMARY)
		s->out->summaries_before++;
	return 0;
}

static int
scan_all(struct source *in, struct scan *s, bool prompts_stay, struct err *e)
{
	struct err why;
	struct event ev;
	int rc = source_begin(in, 0, in->size, 1, e);

	if (rc < 0)
		return -1;
	while ((rc = source_next(in, &ev, e)) > 0) {
		why = (struct err)ERR_INIT;
		rc = scan_event(s, &ev, prompts_stay, &why);
		if (rc < 0)
			rc = source_bad(in, &ev, &why, e);
		event_release(&ev);
		if (rc < 0)
			break;
	}
	source_end(in);
	return rc;
}

/* ---- the tail ---- */

struct tail {
	struct event_list events;
	struct replay_event *held;
	size_t cap;
};

static void
no_id(void *arg, const char *id, size_t len)
{
}

/* What the scan passed over as bad is passed over here too. */
static int
load_tail(struct source *in, const struct place *from, struct tail *t, struct err *e)
{
	struct replay_walk walk = from->walk;
	struct event ev;
	int64_t number;
	int rc = source_begin(in, from->offset, in->size, 0, e);

	if (rc < 0)
		return -1;
	while ((rc = source_next(in, &ev, e)) > 0) {
		if (event_ids(&ev, no_id, NULL, NULL) < 0) {
			event_release(&ev);
			continue;
		}
		number = (int64_t)(from->lines + t->events.n);
		event_list_add(&t->events, event_dup(&ev));
		event_release(&ev);
		t->held = xgrow(t->held, t->events.n - 1, &t->cap, sizeof(*t->held));
		t->held[t->events.n - 1].event = t->events.items[t->events.n - 1];
		t->held[t->events.n - 1].number = number;
		t->held[t->events.n - 1].need = replay_step(&walk, t->events.items[t->events.n - 1], number);
	}
	source_end(in);
	return rc;
}

/* Sets the cut's place, and what lies before it. */
static void
place_cut(struct cut *out, const struct place *from, const struct tail *t, size_t first)
{
	size_t i;

	out->at = t->events.items[first]->offset;
	out->lines_before = from->lines + first;
	out->events_before = from->events;
	for (i = 0; i < first; i++)
		out->events_before += (t->events.items[i]->type->flags & EV_CONVERSATIONAL) != 0;
	for (i = first; i < t->events.n; i++)
		out->summaries_before -= (t->events.items[i]->type->flags & EV_SUMMARY) != 0;
}

static int
snap(struct source *in, struct scan *s, struct err *e)
{
	const struct place *from = &s->ring[s->out->events % s->target];
	struct tail t = { .held = NULL };
	size_t first = 0;
	int rc = load_tail(in, from, &t, e);

	if (rc == 0)
		rc = replay_snap(t.held, t.events.n, &first, e);
	if (rc == 0 && first < t.events.n)
		place_cut(s->out, from, &t, first);
	event_list_release(&t.events);
	free(t.held);
	return rc;
}

/* ---- what stays in front ---- */

void
cut_keep(struct cut *cut, const struct kept *k)
{
	cut->kept = xgrow(cut->kept, cut->nkept, &cut->kept_cap, sizeof(*cut->kept));
	cut->kept[cut->nkept++] = *k;
}

static int
by_place(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	if (x->prompt != y->prompt)
		return x->prompt ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void
keep_waiting(struct scan *s)
{
	struct cut *out = s->out;
	struct group *g;
	size_t i, groups = 0, n;

	for (g = s->waiting.newest; g != NULL && groups < s->target; g = g->older) {
		if (g->offset >= out->at)
			continue;
		groups++;
		for (i = 0; i < g->nlines; i++)
			if (g->lines[i].offset < out->at)
				cut_keep(out, &g->lines[i]);
	}
	if (out->nkept > 1)
		qsort(out->kept, out->nkept, sizeof(*out->kept), by_place);
	for (i = n = 0; i < out->nkept; i++)
		if (n == 0 || out->kept[i].offset != out->kept[n - 1].offset)
			out->kept[n++] = out->kept[i];
	out->nkept = n;
	for (i = 0; i < n; i++)
		out->kept_events += out->kept[i].conversational;
}

int
cut_find(struct source *in, long target, const struct trigger *trigger, bool prompts_stay, struct cut *out, struct err *e)
{
	struct scan s = { .out = out, .trigger = trigger, .target = (size_t)target, .walk = REPLAY_WALK_INIT,
		.waiting = { .max = OPEN_MAX + (size_t)target } };
	int rc;

	*out = (struct cut){ .kept = NULL };
	rc = scan_all(in, &s, prompts_stay, e);
	out->due = !trigger_is_set(trigger) || trigger_exceeded(trigger, &out->count);
	if (rc == 0 && out->due && s.target > 0 && out->events > s.target)
		rc = snap(in, &s, e);
	if (rc == 0 && out->at > 0)
		keep_waiting(&s);
	while (s.waiting.oldest != NULL)
		group_remove(&s.waiting, s.waiting.oldest);
	free(s.ring);
	return rc;
}

void
cut_release(struct cut *cut)
{
	free(cut->kept);
	*cut = (struct cut){ .kept = NULL };
}

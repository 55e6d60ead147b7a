/*
 * The two windows: the last N events, and the newest events that fit into N tokens. Both keep the longest end of the
 * history whose weight is within the limit (an event weighs 1, or its tokens), widen it when pruning leaves nothing of
 * it, and hold no more than that: the window, and what lies between it and the nearest event before it that would
 * survive any cut.
 *
 * With a step the weight that is cut off is a multiple of it, counted from the beginning of the stream: the cut stays
 * where it is while the stream grows by a step, and so does the beginning of what is sent.
 *
 * Beyond AG2 a budget counts what is sent: the error results and placeholders that the last stage adds weigh with the
 * events that need them. And the task stays: the last request before the window, when the window has none, and a summary at the head of
 * the stream; HaltEvents weigh nothing, and one before the window is passed on while no response has followed it.
 */
#include "policy/stage.h"

#include "base/alloc.h"
#include "event/render.h"
#include "policy/mend.h"
#include "policy/replay.h"
#include "policy/reserve.h"
#include "policy/tail.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct held {
	struct replay_event r;		/* owned */
	int64_t weight;
};

struct large {			/* the largest of what has to be sent, for the message when it does not fit */
	int64_t tokens;
	char what[128];
};

struct window {
	struct stage stage;
	const struct policy *policy;
	bool budget, transparent, as_ag2;
	int64_t limit, step;		/* step 0: the cut moves with every event */
	int chars;
	/* What is held: items[head..head+tail) lies before the window, items[head+tail..head+n) is the window. */
	struct held *items;
	size_t head, tail, n, cap;
	int64_t weight;			/* of the window */
	int64_t gone;			/* of what fell out of it */
	int64_t seen;			/* events so far */
	int64_t total;			/* ... that count */
	bool cut;			/* something fell out of the window */
	struct replay_walk walk;
	int64_t last_response;		/* numbers; -1: none yet */
	/* What fell out of the tail and still stays; owned, event NULL when there is none. */
	struct held summary, request;
	struct held *halts;
	size_t halts_n, halts_cap;
	/*
	 * A budget has to read each event for its size. Where nothing but the end can matter, events wait unread until it is
	 * clear that most of them lie before the window: only the first is taken, and what is left of them at the end. In a
	 * turn that is longer than the window that never is: then they are taken as they come, and only the window is held.
	 */
	bool waits;
	struct buf lines;
	struct waiting {
		struct event ev;		/* but for its line, which is in lines */
		size_t at;
	} *waiting;
	size_t waiting_n, waiting_cap, patience;	/* patience: bytes of lines before they are looked at */
	/* What must be sent (a budget beyond AG2): the prompts, the last request, and everything from must on. */
	int64_t prompt_tokens, last_request, last_request_weight, must;
	struct reserve reserve;		/* for what is sent beside the events */
	struct large largest_prompt, largest_summary, largest_request, largest_turn;
};

static struct window *
window_of(struct stage *s)
{
	return (struct window *)s;
}

bool
window_counts(const struct event *ev, bool as_ag2)
{
	if (as_ag2)
		return true;
	return (ev->type->flags & EV_CONVERSATIONAL) != 0 && (ev->type->flags & (EV_TRANSIENT | EV_HALT)) == 0;
}

static bool
counts(const struct window *w, const struct event *ev)
{
	return window_counts(ev, w->as_ag2);
}

static struct held *
at(const struct window *w, size_t i)
{
	return &w->items[w->head + i];
}

static void
push(struct window *w, struct held h)
{
	if (w->head > 64 && w->head > w->n) {
		memmove(w->items, w->items + w->head, w->n * sizeof(w->items[0]));
		w->head = 0;
	}
	w->items = xgrow(w->items, w->head + w->n, &w->cap, sizeof(w->items[0]));
	w->items[w->head + w->n++] = h;
}

static bool
is_head_summary(const struct window *w, const struct held *h)
{
	return !w->as_ag2 && h->r.number == 0 && (h->r.event->type->flags & EV_SUMMARY) != 0;
}

/* A HaltEvent is obeyed until a response follows it; then it is spent. */
static bool
is_unspent_halt(const struct window *w, const struct held *h)
{
	return !w->as_ag2 && (h->r.event->type->flags & EV_HALT) != 0 && h->r.number > w->last_response;
}

/* Beyond AG2 a response without text, calls and files is not sent: nothing can rest on it. */
static bool
says_nothing(struct window *w, struct event *ev)
{
	bool was_parsed = ev->parsed != NULL, blank;

	if (w->as_ag2 || (ev->type->flags & EV_RESPONSE) == 0)
		return false;
	blank = mend_says_nothing(ev);
	if (!was_parsed)
		event_forget(ev);
	return blank;
}

static const char older[] = "older than what fits", unpaired[] = "what it belongs to was cut off";

static void
let_go(struct window *w, struct held *h, const char *why)
{
	if (h->r.event != NULL)
		chain_why(w->stage.chain, h->r.event, why);
	event_free(h->r.event);
	h->r.event = NULL;
}

/* Lets go of the first item for good, but for what stays of it. */
static void
drop_first(struct window *w)
{
	struct held h = *at(w, 0);

	w->head++;
	w->n--;
	w->tail--;
	if (is_head_summary(w, &h)) {
		w->summary = h;
	} else if (is_unspent_halt(w, &h)) {
		w->halts = xgrow(w->halts, w->halts_n, &w->halts_cap, sizeof(w->halts[0]));
		w->halts[w->halts_n++] = h;
	} else if (!w->as_ag2 && (h.r.event->type->flags & EV_REQUEST) != 0) {
		let_go(w, &w->request, older);
		w->request = h;
	} else {
		chain_why(w->stage.chain, h.r.event, older);
		event_free(h.r.event);
	}
}

/*
 * Whether it is certain, without reading it, that an event survives every cut up to itself. Not certain are what needs
 * calls, and what needs something before it.
 */
static bool
surely_stands_alone(const struct window *w, const struct held *h)
{
	unsigned flags = h->r.event->type->flags;

	if (!counts(w, h->r.event))
		return false;
	if (flags & (EV_RESPONSE | EV_BUILTIN_CALL))
		return h->r.need < 0;
	return (flags & (EV_CALLS | EV_CALL | EV_RESULTS | EV_RESULT)) == 0;
}

/* The first event of the window falls out of it, to the end of the tail; nothing before the tail's first is needed. */
static void
shrink(struct window *w)
{
	struct held *h = at(w, w->tail);

	w->cut = true;
	w->weight -= h->weight;
	w->gone += h->weight;
	w->tail++;
	if (surely_stands_alone(w, h))
		while (w->tail > 1)
			drop_first(w);
}

static void
forget_spent_halts(struct window *w)
{
	size_t i;

	for (i = 0; i < w->halts_n; i++)
		let_go(w, &w->halts[i], "a response has followed it");
	w->halts_n = 0;
}

/* How much has to go where `excess` is too much. */
static int64_t
round_up(const struct window *w, int64_t excess)
{
	return w->step > 0 && excess > 0 ? (excess + w->step - 1) / w->step * w->step : excess;
}

/* A step does not reach into the last request or response and what follows it, a limit does. */
static bool
has_to_go(const struct window *w, int64_t excess)
{
	if (w->n == w->tail || (w->budget && w->n - w->tail <= 1))	/* a budget always keeps the newest */
		return false;
	return w->gone < (at(w, w->tail)->r.number < w->must ? round_up(w, excess) : excess);
}

static void
shrink_to_limit(struct window *w)
{
	int64_t excess = w->gone + w->weight - w->limit;

	while (has_to_go(w, excess))
		shrink(w);
	/* What does not count rides along inside the window, not before it. */
	while (w->cut && !w->as_ag2 && w->n > w->tail && !counts(w, at(w, w->tail)->r.event))
		shrink(w);
}

static void
note_large(struct large *l, int64_t tokens, const struct event *ev)
{
	if (l->what[0] != '\0' && l->tokens >= tokens)
		return;
	l->tokens = tokens;
	if (ev->number > 0)
		snprintf(l->what, sizeof(l->what), "the %s in line %" PRIu64, ev->type->last, ev->number);
	else
		snprintf(l->what, sizeof(l->what), "the %s at byte %" PRIu64, ev->type->last, ev->offset);
}

/* Keeps track of what must be sent as events come: a request or response begins it anew. */
static void
note_must(struct window *w, const struct held *h)
{
	unsigned flags = h->r.event->type->flags;

	if (is_head_summary(w, h))
		note_large(&w->largest_summary, h->weight, h->r.event);
	if (flags & EV_REQUEST) {
		w->last_request = h->r.number;
		w->last_request_weight = h->weight;
		w->largest_request = (struct large){ 0 };
		note_large(&w->largest_request, h->weight, h->r.event);
	}
	if ((flags & (EV_REQUEST | EV_RESPONSE)) && !says_nothing(w, h->r.event)) {
		w->must = h->r.need >= 0 ? h->r.need : h->r.number;
		w->largest_turn = (struct large){ 0 };
	}
	note_large(&w->largest_turn, h->weight, h->r.event);
}

static int
weigh(struct window *w, struct event *ev, int64_t *weight, struct err *e)
{
	*weight = counts(w, ev);
	if (!w->budget || *weight == 0)
		return 0;
	*weight = event_tokens(ev, w->chars, e);
	return *weight < 0 ? -1 : 0;
}

/* A response's calls were not answered: what is sent for them weighs with it, wherever it is by now. */
static void
add_reserved(struct window *w, struct reserved r)
{
	size_t i;

	if (r.number < 0 || r.tokens == 0)
		return;
	i = w->n > 0 && r.number >= at(w, 0)->r.number ? (size_t)(r.number - at(w, 0)->r.number) : SIZE_MAX;
	if (i < w->n) {
		at(w, i)->weight += r.tokens;
		note_large(&w->largest_turn, at(w, i)->weight, at(w, i)->r.event);
	}
	if (i < w->n && i >= w->tail)
		w->weight += r.tokens;
	else
		w->gone += r.tokens;
}

static void
reserve(struct window *w, struct held *h)
{
	struct reserved closed;

	if (!w->budget || w->as_ag2 || !counts(w, h->r.event))
		return;
	h->weight += reserve_step(&w->reserve, h->r.event, h->r.number, &closed);
	add_reserved(w, closed);
}

static int
take_event(struct stage *s, struct event *ev, struct err *e)
{
	struct window *w = window_of(s);
	struct err why = ERR_INIT;
	struct held h = { .weight = 0 };

	if (weigh(w, ev, &h.weight, &why) < 0)
		return chain_bad(s->chain, ev, &why, e);
	h.r.number = w->seen++;
	h.r.need = replay_step(&w->walk, ev, h.r.number);
	h.r.event = ev;
	reserve(w, &h);
	h.r.event = event_dup(ev);
	event_forget(h.r.event);	/* a window holds lines, not values */
	if (ev->type->flags & EV_RESPONSE) {
		w->last_response = h.r.number;
		forget_spent_halts(w);
	}
	w->total += counts(w, ev);
	w->weight += h.weight;
	push(w, h);
	note_must(w, &h);
	shrink_to_limit(w);
	return 0;
}

/* ---- waiting ---- */

#define PATIENCE (1u << 20)

static struct event
waiting_event(const struct window *w, size_t i)
{
	struct event ev = w->waiting[i].ev;

	ev.line = w->lines.data + w->waiting[i].at;
	return ev;
}

static void
hold_back(struct window *w, const struct event *ev)
{
	struct waiting *one;

	w->waiting = xgrow(w->waiting, w->waiting_n, &w->waiting_cap, sizeof(w->waiting[0]));
	one = &w->waiting[w->waiting_n++];
	*one = (struct waiting){ *ev, w->lines.len };
	one->ev.owned = NULL;
	one->ev.parsed = NULL;
	buf_add(&w->lines, ev->line, ev->len);
}

/* Forgets those that lie before the window for certain. False when they would fill it, and none can be forgotten. */
static bool
forget_old(struct window *w)
{
	struct window_need need = window_needs(&w->stage);
	struct tail_count count = { .need = &need, .at_least = true };
	size_t i = w->waiting_n, j, gone;
	bool enough = false;
	struct event ev;

	while (i > 0 && !enough) {
		ev = waiting_event(w, --i);
		enough = tail_enough(&count, &ev);
		event_release(&ev);
	}
	if (i > 0) {
		gone = w->waiting[i].at;
		buf_drop(&w->lines, gone);
		w->waiting_n -= i;
		memmove(w->waiting, w->waiting + i, w->waiting_n * sizeof(w->waiting[0]));
		for (j = 0; j < w->waiting_n; j++)
			w->waiting[j].at -= gone;
	}
	w->patience = w->lines.len < PATIENCE / 2 ? PATIENCE : 2 * w->lines.len;
	return enough || count.weight <= need.max;
}

static int
take_waiting(struct window *w, struct err *e)
{
	struct event ev;
	size_t i;
	int rc = 0;

	w->waits = false;
	for (i = 0; i < w->waiting_n && rc == 0; i++) {
		ev = waiting_event(w, i);
		rc = take_event(&w->stage, &ev, e);
		event_release(&ev);
	}
	w->waiting_n = 0;
	buf_release(&w->lines);
	return rc;
}

static int
window_event(struct stage *s, struct event *ev, struct err *e)
{
	struct window *w = window_of(s);

	if (!w->waits || w->seen == 0)
		return take_event(s, ev, e);
	hold_back(w, ev);
	return w->lines.len < w->patience || forget_old(w) ? 0 : take_waiting(w, e);
}

static void
note_prompt(struct window *w, const struct prompt *p)
{
	int64_t tokens = text_tokens(p->content.data, p->content.len, w->chars);
	struct large *l = &w->largest_prompt;

	w->prompt_tokens += tokens;
	if (l->what[0] != '\0' && tokens <= l->tokens)
		return;
	l->tokens = tokens;
	if (p->source != NULL)
		snprintf(l->what, sizeof(l->what), "the prompt of %.60s", p->source);
	else
		snprintf(l->what, sizeof(l->what), "the system prompt");
}

static int
window_prompt(struct stage *s, const struct prompt *p, struct err *e)
{
	struct window *w = window_of(s);

	if (w->budget && !w->as_ag2)
		note_prompt(w, p);
	return stage_prompt(s->next, p, e);
}

/* A note is known at the end only; and when a budget cannot hold what must be sent, nothing is to come out. */
static bool
ends_prompts_late(const struct window *w)
{
	return w->transparent || (w->budget && !w->as_ag2);
}

static int
window_prompts_done(struct stage *s, struct err *e)
{
	return ends_prompts_late(window_of(s)) ? 0 : stage_prompts_done(s->next, e);
}

/* ---- the end ---- */

static void
no_id(void *arg, const char *id, size_t len)
{
}

/* Takes out what cannot be read, so that the rest can be pruned. */
static int
drop_broken(struct window *w, struct err *e)
{
	size_t i, kept = 0, tail = w->tail;
	struct err why;

	for (i = 0; i < w->n; i++) {
		why = (struct err)ERR_INIT;
		if (replay_ids(at(w, i)->r.event, no_id, NULL, &why) < 0) {
			if (chain_bad(w->stage.chain, at(w, i)->r.event, &why, e) < 0)
				return -1;
			event_free(at(w, i)->r.event);
			at(w, i)->r.event = NULL;
			w->weight -= i >= tail ? at(w, i)->weight : 0;
			w->tail -= i < tail;
			continue;
		}
		*at(w, kept++) = *at(w, i);
	}
	w->n = kept;
	return 0;
}

/* What lies before item i and stays: the summary at the head, and the last request when items[i..) has none. */
static int64_t
weight_before(const struct window *w, size_t i)
{
	int64_t weight = w->summary.weight;

	if (i > 0 && is_head_summary(w, at(w, 0)))
		weight += at(w, 0)->weight;
	if (w->last_request >= 0 && (i >= w->n || w->last_request < at(w, i)->r.number))
		weight += w->last_request_weight;
	return weight;
}

static int
does_not_fit(const struct window *w, struct err *e)
{
	const struct large *l = &w->largest_turn;
	char unit[32] = "auto";

	if (w->largest_request.tokens > l->tokens)
		l = &w->largest_request;
	if (w->largest_summary.tokens > l->tokens)
		l = &w->largest_summary;
	if (w->largest_prompt.tokens > l->tokens)
		l = &w->largest_prompt;
	if (w->chars > 0)
		snprintf(unit, sizeof(unit), "%d", w->chars);
	return err_set(e, ERR_DATA, "%s: the prompts, the last request and its open tool turn do not fit into max_tokens=%"
	    PRId64 "; the largest is %s, %" PRId64 " tokens (chars_per_token=%s)", w->policy->name, w->limit, l->what, l->tokens, unit);
}

/*
 * A budget beyond AG2: the prompts and what stays before the window weigh too. Raises the cut until all fits, but never
 * beyond what must be sent: where a step would, it is cut as near as that allows.
 */
static int
fit(struct window *w, size_t *cut, struct err *e)
{
	size_t last = w->n > 0 ? w->n - 1 : 0, i;
	int64_t gone = w->gone, excess;
	bool fits = false;

	if (w->must >= 0)
		for (last = 0; last < w->n && at(w, last)->r.number < w->must; last++)
			;
	for (i = w->tail; i < w->n && i <= last; i++) {
		excess = w->gone + w->weight + w->prompt_tokens + weight_before(w, i) - w->limit;
		fits = (i == 0 || counts(w, at(w, i)->r.event)) && gone >= excess;
		if (fits && gone >= round_up(w, excess))
			break;
		gone += at(w, i)->weight;
	}
	if (i > last && w->must >= 0 && !fits)
		return does_not_fit(w, e);
	*cut = i > last ? last : i;
	return 0;
}

/* Whether it counts, and is sent without anything else. */
static bool
is_something(void *arg, struct event *ev)
{
	struct window *w = arg;

	return counts(w, ev) && (w->as_ag2 || (ev->type->flags & (EV_ANCHOR | EV_TURN_ITEM)) == 0) && !says_nothing(w, ev);
}

static int
prune(struct window *w, size_t *cut, bool *keep, struct err *e)
{
	struct replay_event *all = xcalloc(w->n + 1, sizeof(all[0]));
	size_t i;
	int64_t kept;

	for (i = 0; i < w->n; i++)
		all[i] = at(w, i)->r;
	kept = replay_span(all, w->n, cut, keep, is_something, w, e);
	free(all);
	return kept < 0 ? -1 : 0;
}

/* Sets keep[i] for what stays of items[0..cut); the rest of what stays has left the tail. */
static void
keep_before(struct window *w, size_t cut, bool *keep)
{
	bool has_request = false;
	size_t i;

	if (w->as_ag2)
		return;
	for (i = cut; i < w->n; i++)
		has_request |= keep[i] && (at(w, i)->r.event->type->flags & EV_REQUEST) != 0;
	for (i = 0; i < cut; i++)
		keep[i] = is_head_summary(w, at(w, i)) || is_unspent_halt(w, at(w, i)) ||
		    (!has_request && at(w, i)->r.number == w->last_request);
	if (has_request || w->request.r.number != w->last_request)
		let_go(w, &w->request, older);
}

static int
give(struct window *w, struct held *h, struct err *e)
{
	int rc = h->r.event != NULL ? stage_event(w->stage.next, h->r.event, e) : 0;

	event_free(h->r.event);
	h->r.event = NULL;
	return rc;
}

/* What has left the tail, in its order: the summary was first. */
static int
give_before(struct window *w, struct err *e)
{
	size_t i;

	if (w->summary.r.event != NULL)
		chain_why(w->stage.chain, w->summary.r.event, "a summary at the head stays");
	if (w->request.r.event != NULL)
		chain_why(w->stage.chain, w->request.r.event, "the last request stays");
	if (give(w, &w->summary, e) < 0)
		return -1;
	for (i = 0; i < w->halts_n; i++) {
		if (w->request.r.event != NULL && w->request.r.number < w->halts[i].r.number && give(w, &w->request, e) < 0)
			return -1;
		if (give(w, &w->halts[i], e) < 0)
			return -1;
	}
	return give(w, &w->request, e);
}

static int64_t
count_kept(const struct window *w, const bool *keep)
{
	int64_t kept = 0;
	size_t i;

	for (i = 0; i < w->n; i++)
		kept += keep[i] && counts(w, at(w, i)->r.event);
	if (w->as_ag2)
		return kept;
	return kept + (w->summary.r.event != NULL) + (w->request.r.event != NULL);
}

static int
give_note(struct window *w, int64_t kept, struct err *e)
{
	char note[160];

	if (w->budget)
		snprintf(note, sizeof(note), "[token_budget] Showing %" PRId64 " of %" PRId64 " events (token budget).", kept, w->total);
	else
		snprintf(note, sizeof(note), "[sliding_window] Showing last %" PRId64 " of %" PRId64 " events.", kept, w->total);
	return stage_inject(w->stage.next, (struct text){ note, strlen(note) }, w->policy->id, e);
}

static int
end_prompts(struct window *w, int64_t kept, struct err *e)
{
	if (w->transparent && w->cut && give_note(w, kept, e) < 0)
		return -1;
	return ends_prompts_late(w) ? stage_prompts_done(w->stage.next, e) : 0;
}

/* Decides what stays: keep[i] for each item held. *cut is where the window begins. */
static int
decide(struct window *w, size_t *cut, bool *keep, struct err *e)
{
	size_t i;

	*cut = w->tail;
	if (w->budget && !w->as_ag2 && fit(w, cut, e) < 0)
		return -1;
	w->cut |= *cut > 0 || w->weight > w->limit;
	if (w->cut) {
		if (prune(w, cut, keep, e) < 0)
			return -1;
		keep_before(w, *cut, keep);
		return 0;
	}
	for (i = 0; i < w->n; i++)
		keep[i] = true;
	return 0;
}

static int
window_end(struct stage *s, struct err *e)
{
	struct window *w = window_of(s);
	bool *keep;
	size_t cut = 0, i;
	int rc = -1;

	if (w->waiting_n > 0)
		forget_old(w);
	if (take_waiting(w, e) < 0)
		return -1;
	keep = xcalloc(w->n + 1, sizeof(keep[0]));
	if (w->budget && !w->as_ag2)
		add_reserved(w, reserve_end(&w->reserve, chain_opts(s->chain)->answer_open));
	if (drop_broken(w, e) < 0 || decide(w, &cut, keep, e) < 0 || end_prompts(w, count_kept(w, keep), e) < 0 || give_before(w, e) < 0)
		goto out;
	for (i = 0; i < w->n; i++) {
		if (!keep[i])
			chain_why(s->chain, at(w, i)->r.event, i < cut ? older : unpaired);
		else if (give(w, at(w, i), e) < 0)
			goto out;
	}
	rc = stage_end(s->next, e);
out:
	free(keep);
	return rc;
}

static void
window_free(struct stage *s)
{
	struct window *w = window_of(s);
	size_t i;

	for (i = 0; i < w->n; i++)
		event_free(at(w, i)->r.event);
	forget_spent_halts(w);
	event_free(w->summary.r.event);
	event_free(w->request.r.event);
	reserve_release(&w->reserve);
	free(w->items);
	free(w->halts);
	free(w->waiting);
	buf_release(&w->lines);
	free(w);
}

static const struct stage_ops window_ops = {
	.prompt = window_prompt,
	.prompts_done = window_prompts_done,
	.event = window_event,
	.end = window_end,
	.free = window_free,
};

int
window_check(const struct policy_spec *spec, struct err *e)
{
	const char *key = spec->policy->keys[0].name;
	int64_t limit = policy_int(spec, key), step = policy_int(spec, "step");

	if (step < 0 || (step > limit && limit >= 0))
		return err_set(e, ERR_USAGE, "%s: step is from 0 to %s, not %" PRId64, spec->policy->name, key, step);
	return 0;
}

struct stage *
window_new(struct chain *c, const struct policy_spec *spec, bool budget, struct err *e)
{
	const char *key = budget ? "max_tokens" : "max_events";
	bool as_ag2 = chain_opts(c)->as_ag2;
	int64_t limit = policy_int(spec, key), step = policy_int(spec, "step");
	struct window *w;

	if (limit < 0 && !as_ag2) {
		err_set(e, ERR_USAGE, "%s: %s must not be negative", spec->policy->name, key);
		return NULL;
	}
	w = xcalloc(1, sizeof(*w));
	w->stage.ops = &window_ops;
	w->policy = spec->policy;
	w->budget = budget;
	w->as_ag2 = as_ag2;
	w->transparent = policy_bool(spec, "transparent");
	w->limit = limit;
	w->step = step;
	w->lines = (struct buf)BUF_INIT;
	w->patience = PATIENCE;
	w->waits = budget && !w->transparent && step == 0 && chain_opts(c)->explain == NULL && chain_opts(c)->on_bad != JSONL_BAD_STOP;
	w->chars = budget ? (int)policy_int(spec, "chars_per_token") : 0;
	w->walk = (struct replay_walk)REPLAY_WALK_INIT;
	if (budget)
		reserve_init(&w->reserve, w->chars);
	w->last_response = w->last_request = w->must = -1;
	return &w->stage;
}

bool
window_begun(const struct stage *s)
{
	return ((const struct window *)s)->seen > 0 || ((const struct window *)s)->waiting_n > 0;
}

struct window_need
window_needs(const struct stage *s)
{
	const struct window *w = (const struct window *)s;

	return (struct window_need){ .budget = w->budget, .as_ag2 = w->as_ag2, .max = w->limit, .chars_per_token = w->chars };
}

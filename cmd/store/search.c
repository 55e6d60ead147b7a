#include "search.h"
#include "../screen.h"

#include "base/alloc.h"
#include "event/said.h"
#include "match.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define CHUNK (512 * 1024)
#define KEEP (4 * CHUNK)	/* a larger buffer is given back */
#define THREADS_MAX 8
#define SLOTS (THREADS_MAX + 3)	/* those that are looked at, one that waits, one that is filled, the next */
#define SEEN_MAX 4096

/* Whole lines of one input, in a slot's data. */
struct piece {
	char *label;
	size_t at, len;
	uint64_t offset;	/* in the input */
	bool first, events;
};

struct hit {
	enum { HIT_LINE, HIT_LAST, HIT_WARNING } kind;	/* HIT_LAST: nothing more of this input is wanted */
	size_t piece, end;	/* its text in out ends here */
	uint64_t event;		/* where the event is */
	bool container;		/* it repeats results */
	char *id;		/* of the call whose result it is */
};

/* A part of the input, and what was found in it. */
struct slot {
	struct buf data, out;
	struct piece *pieces;
	struct hit *hits;
	size_t pieces_n, pieces_cap, hits_n, hits_cap;
	bool done;
};

struct search {
	const struct search_options *o;
	struct match match;
	bool colour;
	/* what is printed */
	bool found;
	uint64_t inputs, printing;	/* how many came, and which is printed */
	bool over;		/* with the one that is printed */
	bool in_container;	/* the hit printed last was of one */
	uint64_t container;
	char **seen;		/* results that matched: a container repeats them */
	size_t seen_n, seen_cap;
	/* who looks */
	pthread_t threads[THREADS_MAX];
	int threads_n;
	pthread_mutex_t lock;
	pthread_cond_t wanted, done;
	bool stop;
	struct slot slots[SLOTS];
	uint64_t filled, taken, printed;	/* of the slots, counted on and on */
};

/* What one thread looks with, and where it is. */
struct look {
	const struct search_options *o;
	bool colour;
	struct match match;
	struct sieve plain, said;	/* for bytes as they are, and for JSON */
	struct slot *slot;
	const struct piece *piece;
	bool over;			/* nothing more of this input is wanted */
	uint64_t event;
	bool container;
	double time;
	struct buf when;	/* the time as it is printed, once it was */
};

/* ---- what is found, as it is printed ---- */

static void
add_coloured(const struct look *k, const char *colour, const char *text)
{
	struct buf *out = &k->slot->out;

	buf_adds(out, k->colour ? colour : "");
	cli_add(out, text, strlen(text), false);
	buf_adds(out, k->colour ? "\033[0m" : "");
}

/* `{"path":"…"`, or stream. */
static void
begin_json(const struct look *k, struct buf *json)
{
	const char *label = k->piece->label;

	buf_adds(json, label[0] == '/' ? "{\"path\":" : "{\"stream\":");
	json_write_string(json, label, strlen(label), JSON_COMPACT);
}

static void
end_json(const struct look *k, struct buf *json)
{
	buf_adds(json, "}\n");
	cli_add(&k->slot->out, json->data, json->len, true);
	buf_release(json);
}

static void
add_name_only(const struct look *k)
{
	struct buf json = BUF_INIT;

	if (k->o->json) {
		begin_json(k, &json);
		end_json(k, &json);
	} else if (k->o->nul) {
		cli_add(&k->slot->out, k->piece->label, strlen(k->piece->label), false);
		buf_addch(&k->slot->out, '\0');
	} else {
		add_coloured(k, "\033[35m", k->piece->label);
		buf_addch(&k->slot->out, '\n');
	}
}

/* The line, what matched in it standing out on a terminal. */
static void
add_marked(struct look *k, const char *line, size_t len, size_t start, size_t end)
{
	struct buf *out = &k->slot->out;
	size_t at = 0;
	int marks;

	for (marks = 0; k->colour && marks < 1000 && end > start; marks++) {
		cli_add(out, line + at, start - at, true);
		buf_adds(out, "\033[1;31m");
		cli_add(out, line + start, end - start, true);
		buf_adds(out, "\033[0m");
		at = end;
		if (at >= len || !match_line(&k->match, line, len, at, &start, &end))
			break;
	}
	cli_add(out, line + at, len - at, true);
	buf_addch(out, '\n');
}

static void
add_said_json(const struct look *k, const char *who, const char *line, size_t len)
{
	struct buf json = BUF_INIT;

	begin_json(k, &json);
	buf_adds(&json, ",\"time\":");
	if (k->time < 0)
		buf_adds(&json, "null");
	else
		json_write_double(&json, k->time);
	buf_adds(&json, ",\"role\":");
	json_write_string(&json, who, strlen(who), JSON_COMPACT);
	buf_adds(&json, ",\"text\":");
	json_write_string(&json, line, len, JSON_COMPACT);
	end_json(k, &json);
}

static void
add_said(struct look *k, const char *who, const char *line, size_t len, size_t start, size_t end)
{
	if (k->o->json) {
		add_said_json(k, who, line, len);
		return;
	}
	if (k->when.len == 0)
		add_time(&k->when, k->time, true);
	add_coloured(k, "\033[35m", k->piece->label);
	buf_add(&k->slot->out, k->o->nul ? "" : "  ", k->o->nul ? 1 : 2);
	add_coloured(k, "\033[2m", k->when.data);
	buf_adds(&k->slot->out, "  ");
	add_coloured(k, "\033[32m", who);
	buf_adds(&k->slot->out, "  ");
	add_marked(k, line, len, start, end);
}

/* A line of a file; on is how far it is behind the file's beginning. */
static void
add_file_line(struct look *k, const char *line, size_t len, uint64_t on, size_t start, size_t end)
{
	struct buf json = BUF_INIT;

	if (k->o->json) {
		begin_json(k, &json);
		buf_addf(&json, ",\"offset\":%llu,\"text\":", (unsigned long long)on);
		json_write_string(&json, line, len, JSON_COMPACT);
		end_json(k, &json);
		return;
	}
	if (!k->o->single) {
		add_coloured(k, "\033[35m", k->piece->label);
		if (k->o->nul)
			buf_addch(&k->slot->out, '\0');
		else
			add_coloured(k, "\033[36m", ":");
	}
	add_marked(k, line, len, start, end);
}

/* ---- looking ---- */

/* What was put to out since the hit before is this one's text. */
static void
add_hit(struct look *k, int kind, const char *id)
{
	struct slot *s = k->slot;

	s->hits = xgrow(s->hits, s->hits_n, &s->hits_cap, sizeof(*s->hits));
	s->hits[s->hits_n++] = (struct hit){ .kind = kind, .piece = (size_t)(k->piece - s->pieces), .end = s->out.len,
		.event = k->event, .container = k->container, .id = id != NULL ? xstrdup(id) : NULL };
	k->over = kind == HIT_LAST;
}

static void
look_at_said(void *arg, const char *who, const char *id, const char *text, size_t len)
{
	struct look *k = arg;
	const char *end = text + len, *newline;
	size_t start, stop;

	for (; text <= end && !k->over; text = newline + 1) {
		newline = memchr(text, '\n', (size_t)(end - text));
		newline = newline ? newline : end;
		if (!match_line(&k->match, text, (size_t)(newline - text), 0, &start, &stop))
			continue;
		if (k->o->names_only)
			add_name_only(k);
		else
			add_said(k, who, text, (size_t)(newline - text), start, stop);
		add_hit(k, k->o->names_only ? HIT_LAST : HIT_LINE, id);
	}
}

static int
look_at_event(struct look *k, const char *line, size_t len, struct err *why)
{
	struct event ev;
	struct json_object *data;
	int rc = 0;

	if (event_view(&ev, line, len, why) < 0)
		return -1;
	if (ev.type->flags & (EV_CALLS | EV_USAGE))
		return 0;	/* says nothing that is not said elsewhere */
	data = event_data(&ev, why);
	if (data == NULL) {
		event_release(&ev);
		return -1;
	}
	k->time = event_time(data);
	buf_reset(&k->when);
	k->container = ev.type->flags & EV_RESULTS;
	if ((k->o->since == -INFINITY && k->o->until == INFINITY) || (k->time >= 0 && k->time >= k->o->since && k->time < k->o->until))
		rc = event_said(&ev, look_at_said, k, why);
	event_release(&ev);
	return rc;
}

static void
event_line(struct look *k, const char *line, size_t len, uint64_t offset)
{
	struct err why = ERR_INIT;

	if (len > 0 && line[len - 1] == '\r')
		len--;
	if (strspn(line, " \t\r") >= len)
		return;
	if (offset == 0 && len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
		line += 3;
		len -= 3;
	}
	k->event = offset;
	k->container = false;
	if (look_at_event(k, line, len, &why) == 0)
		return;
	buf_addf(&k->slot->out, "%s: line at offset %llu: %s", k->piece->label, (unsigned long long)offset, why.msg);
	add_hit(k, HIT_WARNING, NULL);
}

static void
file_line(struct look *k, const char *line, size_t len, uint64_t offset)
{
	size_t start, end;
	bool binary = memchr(line, '\0', len) != NULL && !k->o->json;

	if (!match_line(&k->match, line, len, 0, &start, &end))
		return;
	if (k->o->names_only) {
		add_name_only(k);
	} else if (binary) {
		cli_add(&k->slot->out, k->piece->label, strlen(k->piece->label), false);
		buf_adds(&k->slot->out, ": binary file matches\n");
	} else {
		add_file_line(k, line, len, offset, start, end);
	}
	add_hit(k, k->o->names_only || binary ? HIT_LAST : HIT_LINE, NULL);
}

static void
look_at_piece(struct look *k)
{
	const struct piece *p = k->piece;
	struct sieve *sieve = p->events ? &k->said : &k->plain;
	const char *data = k->slot->data.data + p->at, *start, *end;
	size_t at = 0, from;
	uint64_t offset;

	if (p->first)
		k->over = false;
	sieve_restart(sieve);
	while (!k->over && at < p->len && (from = sieve_next(sieve, data, p->len, at)) < p->len) {
		start = memrchr(data + at, '\n', from - at);
		start = start ? start + 1 : data + at;
		end = memchr(data + from, '\n', p->len - from);
		end = end ? end : data + p->len;
		offset = p->offset + (uint64_t)(start - data);
		if (p->events)
			event_line(k, start, (size_t)(end - start), offset);
		else
			file_line(k, start, (size_t)(end - start), offset);
		at = (size_t)(end - data) + 1;
	}
}

static void
look_at_slot(struct look *k, struct slot *s)
{
	size_t i;

	k->slot = s;
	k->over = false;
	k->event = 0;
	k->container = false;
	for (i = 0; i < s->pieces_n; i++) {
		k->piece = &s->pieces[i];
		look_at_piece(k);
	}
}

/* The pattern is known to be one; what it is compiled to is not shared, since it is locked while it is used. */
static void
look_init(struct look *k, const struct search *g)
{
	*k = (struct look){ .o = g->o, .colour = g->colour, .when = BUF_INIT };
	match_init(&k->match, g->o->pattern, g->o->flags, NULL);
	sieve_init(&k->plain, &k->match, false);
	sieve_init(&k->said, &k->match, true);
}

static void
look_release(struct look *k)
{
	match_release(&k->match);
	buf_release(&k->when);
}

/* ---- printing ---- */

static void
forget_seen(struct search *g)
{
	while (g->seen_n > 0)
		free(g->seen[--g->seen_n]);
	g->in_container = false;
}

static bool
is_seen(const struct search *g, const char *id)
{
	size_t i;

	for (i = 0; i < g->seen_n; i++)
		if (strcmp(g->seen[i], id) == 0)
			return true;
	return false;
}

/* Results stand in the log one by one, and then again in their container, which ends their round: ids may come again in the next. */
static bool
is_repeated(struct search *g, const struct hit *h)
{
	if (g->in_container && h->event != g->container)
		forget_seen(g);
	if (h->id == NULL)
		return false;
	if (h->container) {
		g->in_container = true;
		g->container = h->event;
		return is_seen(g, h->id);
	}
	if (g->seen_n < SEEN_MAX && !is_seen(g, h->id)) {
		g->seen = xgrow(g->seen, g->seen_n, &g->seen_cap, sizeof(*g->seen));
		g->seen[g->seen_n++] = xstrdup(h->id);
	}
	return false;
}

static void
print_hit(struct search *g, const struct hit *h, const char *text, size_t len)
{
	if (g->over)
		return;
	if (h->kind == HIT_WARNING) {
		out_flush();
		log_warn("%.*s", (int)len, text);
		return;
	}
	g->found = true;
	g->over = h->kind == HIT_LAST;
	if (!is_repeated(g, h))
		out_write(text, len);
}

static void
slot_reset(struct slot *s)
{
	size_t i;

	for (i = 0; i < s->pieces_n; i++)
		free(s->pieces[i].label);
	for (i = 0; i < s->hits_n; i++)
		free(s->hits[i].id);
	s->pieces_n = s->hits_n = 0;
	s->done = false;
	buf_reset(&s->data);
	buf_reset(&s->out);
	if (s->data.cap > KEEP)
		buf_release(&s->data);
	if (s->out.cap > KEEP)
		buf_release(&s->out);
}

static void
slot_release(struct slot *s)
{
	slot_reset(s);
	buf_release(&s->data);
	buf_release(&s->out);
	free(s->pieces);
	free(s->hits);
}

static void
print_slot(struct search *g, struct slot *s)
{
	size_t i, h = 0, at = 0;

	for (i = 0; i < s->pieces_n; i++) {
		if (s->pieces[i].first) {
			g->printing++;
			g->over = false;
			forget_seen(g);
		}
		for (; h < s->hits_n && s->hits[h].piece == i; at = s->hits[h++].end)
			print_hit(g, &s->hits[h], s->out.data + at, s->hits[h].end - at);
	}
	slot_reset(s);
}

/* ---- who looks ---- */

static void *
look_on(void *arg)
{
	struct search *g = arg;
	struct look k;
	struct slot *s;

	look_init(&k, g);
	pthread_mutex_lock(&g->lock);
	for (;;) {
		while (g->taken == g->filled && !g->stop)
			pthread_cond_wait(&g->wanted, &g->lock);
		if (g->taken == g->filled)
			break;
		s = &g->slots[g->taken++ % SLOTS];
		pthread_mutex_unlock(&g->lock);
		look_at_slot(&k, s);
		pthread_mutex_lock(&g->lock);
		s->done = true;
		pthread_cond_signal(&g->done);
	}
	pthread_mutex_unlock(&g->lock);
	look_release(&k);
	return NULL;
}

static int
processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* None where there is one processor, or no thread to be had: then we look ourselves. */
static void
start_threads(struct search *g)
{
	int n = processors();

	n = n < 2 ? 0 : n < THREADS_MAX ? n : THREADS_MAX;
	while (g->threads_n < n && pthread_create(&g->threads[g->threads_n], NULL, look_on, g) == 0)
		g->threads_n++;
}

static void
look_here(struct search *g, struct slot *s)
{
	struct look k;

	look_init(&k, g);
	look_at_slot(&k, s);
	look_release(&k);
	s->done = true;
	g->taken++;
}

/* Prints what is done, in order, and waits for it until at most so many slots are in use. */
static void
print_done(struct search *g, uint64_t most)
{
	struct slot *s;
	bool done;

	while (g->printed < g->filled) {
		s = &g->slots[g->printed % SLOTS];
		pthread_mutex_lock(&g->lock);
		while (!s->done && g->filled - g->printed > most)
			pthread_cond_wait(&g->done, &g->lock);
		done = s->done;
		pthread_mutex_unlock(&g->lock);
		if (!done)
			return;
		print_slot(g, s);
		g->printed++;
	}
}

/* The slot that is being filled is full, or the last. */
static void
hand_over(struct search *g, bool last)
{
	if (g->threads_n == 0 && g->filled == 0 && !last)
		start_threads(g);
	pthread_mutex_lock(&g->lock);
	g->filled++;
	pthread_cond_signal(&g->wanted);
	pthread_mutex_unlock(&g->lock);
	if (g->threads_n == 0)
		look_here(g, &g->slots[(g->filled - 1) % SLOTS]);
	print_done(g, last ? 0 : (uint64_t)g->threads_n + 1);
}

/* ---- the input ---- */

struct input {
	const char *label;
	bool events, first;
	uint64_t offset;
};

static void
add_piece(struct search *g, struct input *in, size_t at, size_t len)
{
	struct slot *s = &g->slots[g->filled % SLOTS];

	s->pieces = xgrow(s->pieces, s->pieces_n, &s->pieces_cap, sizeof(*s->pieces));
	s->pieces[s->pieces_n++] = (struct piece){ xstrdup(in->label), at, len, in->offset, in->first, in->events };
	in->offset += len;
	in->first = false;
}

/* [at, whole) are whole lines, what is behind them goes to the next slot. */
static void
next_slot(struct search *g, struct input *in, size_t at, size_t whole)
{
	struct slot *s = &g->slots[g->filled % SLOTS], *next = &g->slots[(g->filled + 1) % SLOTS];

	add_piece(g, in, at, whole - at);
	buf_add(&next->data, s->data.data + whole, s->data.len - whole);
	s->data.len = whole;
	hand_over(g, false);
}

noreturn void
search_fail(struct search *g, const struct err *e)
{
	hand_over(g, true);
	fail(e);
}

void
search_input(struct search *g, const char *label, bool events, jsonl_read_fn *read, void *arg)
{
	struct input in = { .label = label, .events = events, .first = true };
	struct slot *s = &g->slots[g->filled % SLOTS];
	size_t at = s->data.len, whole = at;
	struct err e = ERR_INIT;
	const char *newline;
	ssize_t n;

	g->inputs++;
	while (!g->over || g->printing < g->inputs) {
		s = &g->slots[g->filled % SLOTS];
		buf_reserve(&s->data, CHUNK);
		n = read(arg, s->data.data + s->data.len, CHUNK, &e);
		if (n < 0)
			search_fail(g, &e);
		if (n == 0)
			break;
		newline = memrchr(s->data.data + s->data.len, '\n', (size_t)n);
		s->data.len += (size_t)n;
		if (newline != NULL)
			whole = (size_t)(newline - s->data.data) + 1;
		else if (s->data.len - whole > EVENT_LINE_MAX)
			whole = s->data.len;	/* too long for a line: it is cut here */
		if (s->data.len >= CHUNK && whole > at) {
			next_slot(g, &in, at, whole);
			at = whole = 0;
		}
	}
	s = &g->slots[g->filled % SLOTS];
	add_piece(g, &in, at, s->data.len - at);
	if (s->data.len >= CHUNK)
		hand_over(g, false);
}

struct search *
search_new(const struct search_options *o, struct err *e)
{
	struct search *g = xcalloc(1, sizeof(*g));

	if (match_init(&g->match, o->pattern, o->flags, e) < 0) {
		match_release(&g->match);
		free(g);
		return NULL;
	}
	g->o = o;
	g->colour = cli_colour(1);
	cli_terminal();		/* is remembered before there are threads */
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->wanted, NULL);
	pthread_cond_init(&g->done, NULL);
	return g;
}

bool
search_end(struct search *g)
{
	bool found;
	int i;

	hand_over(g, true);
	pthread_mutex_lock(&g->lock);
	g->stop = true;
	pthread_cond_broadcast(&g->wanted);
	pthread_mutex_unlock(&g->lock);
	for (i = 0; i < g->threads_n; i++)
		pthread_join(g->threads[i], NULL);
	for (i = 0; i < SLOTS; i++)
		slot_release(&g->slots[i]);
	pthread_mutex_destroy(&g->lock);
	pthread_cond_destroy(&g->wanted);
	pthread_cond_destroy(&g->done);
	match_release(&g->match);
	forget_seen(g);
	free(g->seen);
	found = g->found;
	free(g);
	return found;
}

#include "llm/origin.h"

#include "base/alloc.h"
#include "llm/outline.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
origin_mark_all(struct origins *o, const size_t *events, size_t n)
{
	size_t i;

	if (o == NULL)
		return;
	o->all = o->n;
	o->all_n = n;
	for (i = 0; i < n; i++) {
		o->marks = xgrow(o->marks, o->n, &o->cap, sizeof(o->marks[0]));
		o->marks[o->n++] = (struct origin){ o->body->len, events[i], i > 0 };
	}
}

void
origin_mark(struct origins *o, size_t event)
{
	origin_mark_all(o, &event, 1);
}

void
origin_mark_one(struct origins *o, size_t i)
{
	if (o == NULL || i >= o->all_n)
		return;
	o->marks = xgrow(o->marks, o->n, &o->cap, sizeof(o->marks[0]));
	o->marks[o->n++] = (struct origin){ o->body->len, o->marks[o->all + i].event, false };
}

void
origin_end(struct origins *o, const size_t *events, size_t n, bool response)
{
	size_t i;

	if (o == NULL || o->sent == NULL || o->body->len == o->marks[o->all].at)
		return;
	for (i = 0; i < n; i++)
		o->sent[events[i]] = true;
	while (response && o->waiting_n > 0)
		o->sent[o->waiting[--o->waiting_n]] = true;
}

void
origin_wait(struct origins *o, size_t event)
{
	if (o == NULL)
		return;
	o->waiting = xgrow(o->waiting, o->waiting_n, &o->waiting_cap, sizeof(o->waiting[0]));
	o->waiting[o->waiting_n++] = event;
}

struct search {
	const struct origins *marks;
	size_t next;		/* of the marks: the first that can have written something of the message */
	struct llm_origins *found;
};

/* Behind the marks of one writing. */
static size_t
end_of_marks(const struct origins *o, size_t i)
{
	for (i++; i < o->n && o->marks[i].more; i++)
		continue;
	return i;
}

static void
add_origin(struct llm_origins *l, size_t event)
{
	l->events = xgrow(l->events, l->events_n, &l->events_cap, sizeof(l->events[0]));
	l->events[l->events_n++] = event;
}

/* Messages come in order. What a mark has written ends where the next begins; the last of a message may go on in the next. */
static int
find_events(void *arg, const struct outline_part *p)
{
	struct search *s = arg;
	const struct origins *o = s->marks;
	struct llm_origins *l = s->found;
	size_t i, end, begin = l->events_n;

	if (!outline_is_message(p))
		return 0;
	for (i = s->next; i < o->n && o->marks[i].at < p->end; i = end) {
		end = end_of_marks(o, i);
		if (end < o->n && o->marks[end].at <= p->start)
			continue;
		s->next = i;
		if (end < o->n && o->marks[end].at == o->marks[i].at)
			continue;
		for (; i < end; i++)
			if (l->events_n == begin || l->events[l->events_n - 1] != o->marks[i].event)
				add_origin(l, o->marks[i].event);
	}
	l->ends = xgrow(l->ends, l->n, &l->ends_cap, sizeof(l->ends[0]));
	l->ends[l->n++] = l->events_n;
	return 0;
}

static int
marked_body(const struct provider *p, const struct llm_request *r, struct buf *body, struct origins *marks, struct err *e)
{
	struct llm_config config = *r->config;
	struct llm_request marked = *r;

	config.cache = false;		/* its marks go into a body that is made already, and move what follows */
	marked.config = &config;
	marked.origins = marks;
	marks->body = body;
	return p->body(&marked, body, e);
}

static void
origins_release(struct origins *o)
{
	free(o->marks);
	free(o->waiting);
}

int
origin_all(const struct provider *p, const struct llm_request *r, struct llm_origins *o, struct err *e)
{
	struct buf body = BUF_INIT;
	struct origins marks = { .marks = NULL };
	struct search s = { .marks = &marks, .found = o };
	int rc = p->lines ? 0 : marked_body(p, r, &body, &marks, e);

	*o = (struct llm_origins){ .n = 0 };
	if (rc == 0)
		outline(body.data, body.len, find_events, &s);
	origins_release(&marks);
	buf_release(&body);
	return rc;
}

void
llm_origins_release(struct llm_origins *o)
{
	free(o->events);
	free(o->ends);
}

int
origin_sent(const struct provider *p, const struct llm_request *r, bool *sent, struct err *e)
{
	struct buf body = BUF_INIT;
	struct origins marks = { .sent = sent };
	int rc = 0;

	memset(sent, p->lines, r->events_n * sizeof(sent[0]));
	if (!p->lines)
		rc = marked_body(p, r, &body, &marks, e);
	origins_release(&marks);
	buf_release(&body);
	return rc;
}

/* ---- in words ---- */

#define TOLD_MAX 8	/* of the events of one message, those in a row counted as one */

static const struct event *
event_at(const struct llm_request *r, size_t i)
{
	return i < r->events_n ? r->events[i] : NULL;
}

/* Whether b is a line of the same kind directly behind a. */
static bool
in_a_row(const struct event *a, const struct event *b)
{
	return a != NULL && b != NULL && a->type == b->type && a->number > 0 && b->number == a->number + 1;
}

static void
add_place(struct buf *out, const struct event *first, const struct event *last)
{
	if (first == NULL)
		buf_adds(out, "the context");
	else if (first != last)
		buf_addf(out, "lines %" PRIu64 "-%" PRIu64 ", %s", first->number, last->number, first->type->last);
	else if (first->number > 0)
		buf_addf(out, "line %" PRIu64 ", %s", first->number, first->type->last);
	else if (first->offset > 0)
		buf_addf(out, "byte %" PRIu64 ", %s", first->offset, first->type->last);
	else
		buf_addf(out, "new, %s", first->type->last);
}

void
llm_origin_text(struct buf *out, const struct llm_request *r, const struct llm_origins *o, size_t message)
{
	size_t i = message > 0 ? o->ends[message - 1] : 0, end = o->ends[message], last, told = 0;

	if (i == end)
		buf_adds(out, "the prompts");
	for (; i < end && told < TOLD_MAX; i = last + 1, told++) {
		for (last = i; last + 1 < end && in_a_row(event_at(r, o->events[last]), event_at(r, o->events[last + 1])); last++)
			continue;
		buf_adds(out, told > 0 ? "; " : "");
		add_place(out, event_at(r, o->events[i]), event_at(r, o->events[last]));
	}
	if (i < end)
		buf_addf(out, "; and %zu more", end - i);
}

/* The number behind one of the names of the array: messages.3, messages[3], messages.[3]. -1: none. */
static long
named_message(const char *text)
{
	static const char *const names[] = { "messages", "input", "contents" };
	const char *at;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (at = strstr(text, names[i]); at != NULL; at = strstr(at, names[i])) {
			at += strlen(names[i]);
			if (*at != '.' && *at != '[')
				continue;
			at += strspn(at, ".[");
			if (isdigit((unsigned char)*at))
				return strtol(at, NULL, 10);
		}
	}
	return -1;
}

void
origin_name(const struct provider *p, const struct llm_request *r, struct err *e)
{
	long m = e != NULL ? named_message(e->msg) : -1;
	struct llm_origins o;
	struct buf text = BUF_INIT;
	struct err why = ERR_INIT;
	size_t len;

	if (m < 0)
		return;
	if (origin_all(p, r, &o, &why) == 0 && (size_t)m < o.n) {
		llm_origin_text(&text, r, &o, (size_t)m);
		len = strlen(e->msg);
		snprintf(e->msg + len, sizeof(e->msg) - len, " (message %ld: %s)", m, text.data);
	}
	buf_release(&text);
	llm_origins_release(&o);
}

#include "llm/origin.h"

#include "base/alloc.h"
#include "llm/outline.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
origin_mark(struct origins *o, size_t event)
{
	if (o == NULL)
		return;
	o->marks = xgrow(o->marks, o->n, &o->cap, sizeof(o->marks[0]));
	o->marks[o->n++] = (struct origin){ o->body->len, event };
}

void
origin_end(struct origins *o, bool response)
{
	if (o == NULL || o->sent == NULL || o->body->len == o->marks[o->n - 1].at)
		return;
	o->sent[o->marks[o->n - 1].event] = true;
	while (response && o->waiting_n > 0)
		o->sent[o->waiting[--o->waiting_n]] = true;
}

void
origin_wait(struct origins *o)
{
	if (o == NULL)
		return;
	o->waiting = xgrow(o->waiting, o->waiting_n, &o->waiting_cap, sizeof(o->waiting[0]));
	o->waiting[o->waiting_n++] = o->marks[o->n - 1].event;
}

struct search {
	const struct origins *marks;
	size_t next;		/* of the marks: behind the last that lies before the message */
	size_t *events, n, cap;
};

/* Messages come in order. Of marks at the same byte the last has written it. */
static int
find_event(void *arg, const struct outline_part *p)
{
	struct search *s = arg;

	if (!outline_is_message(p))
		return 0;
	while (s->next < s->marks->n && s->marks->marks[s->next].at <= p->start)
		s->next++;
	s->events = xgrow(s->events, s->n, &s->cap, sizeof(s->events[0]));
	s->events[s->n++] = s->next > 0 ? s->marks->marks[s->next - 1].event : SIZE_MAX;
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
origin_all(const struct provider *p, const struct llm_request *r, size_t **origin, size_t *n, struct err *e)
{
	struct buf body = BUF_INIT;
	struct origins marks = { .marks = NULL };
	struct search s = { .marks = &marks };
	int rc = p->lines ? 0 : marked_body(p, r, &body, &marks, e);

	if (rc == 0)
		outline(body.data, body.len, find_event, &s);
	*origin = s.events;
	*n = s.n;
	origins_release(&marks);
	buf_release(&body);
	return rc;
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
	size_t *origin = NULL, n = 0;
	const struct event *ev;
	struct err why = ERR_INIT;
	size_t len;

	if (m < 0 || origin_all(p, r, &origin, &n, &why) < 0)
		return;
	len = strlen(e->msg);
	if ((size_t)m < n && origin[m] == SIZE_MAX) {
		snprintf(e->msg + len, sizeof(e->msg) - len, " (message %ld is the prompts)", m);
	} else if ((size_t)m < n) {
		ev = r->events[origin[m]];
		if (ev->number > 0)
			snprintf(e->msg + len, sizeof(e->msg) - len, " (message %ld is the %s in line %" PRIu64 ")", m, ev->type->last, ev->number);
		else
			snprintf(e->msg + len, sizeof(e->msg) - len, " (message %ld is the %s at byte %" PRIu64 ")", m, ev->type->last, ev->offset);
	}
	free(origin);
}

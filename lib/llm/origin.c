#include "llm/origin.h"

#include "base/alloc.h"
#include "llm/outline.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
count_message(void *arg, const struct outline_part *p)
{
	*(size_t *)arg += outline_is_message(p);
	return 0;
}

/* Messages of the body with the first `events` events. */
static int
count_messages(const struct provider *p, const struct llm_request *r, size_t events, size_t *n, struct err *e)
{
	struct llm_request some = *r;
	struct buf body = BUF_INIT;
	int rc;

	*n = 0;
	some.events_n = events;
	if (some.stable_n > events)
		some.stable_n = events;
	rc = p->body(&some, &body, e);
	if (rc == 0)
		outline(body.data, body.len, count_message, n);
	buf_release(&body);
	return rc;
}

/*
 * Some providers are not sent a call before its result is there: the first of several messages that come with results is
 * then of the response before them, unless that has one already (last is where the message before came from).
 */
static size_t
caller_of(const struct llm_request *r, size_t event, size_t last)
{
	size_t i = event;

	if ((r->events[event]->type->flags & (EV_RESULTS | EV_RESULT)) == 0)
		return event;
	while (i > 0 && (r->events[i]->type->flags & (EV_RESPONSE | EV_REQUEST)) == 0)
		i--;
	return (r->events[i]->type->flags & EV_RESPONSE) && (last == SIZE_MAX || last < i) ? i : event;
}

int
origin_all(const struct provider *p, const struct llm_request *r, size_t **origin, size_t *n, struct err *e)
{
	size_t k, m, count, cap = 0;

	*origin = NULL;
	*n = 0;
	if (p->lines || r->events_n > ORIGIN_EVENTS_MAX)
		return 0;
	for (k = 0; k <= r->events_n; k++) {
		if (count_messages(p, r, k, &count, e) < 0) {
			free(*origin);
			*origin = NULL;
			*n = 0;
			return -1;
		}
		for (m = *n; m < count; m++) {
			*origin = xgrow(*origin, m, &cap, sizeof(**origin));
			(*origin)[m] = k == 0 ? SIZE_MAX : m == *n && count > *n + 1 ? caller_of(r, k - 1, m > 0 ? (*origin)[m - 1] : SIZE_MAX) : k - 1;
		}
		*n = count > *n ? count : *n;
	}
	return 0;
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

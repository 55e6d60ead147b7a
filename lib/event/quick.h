/*
 * What most lines say of themselves, read off their text without building values from it: several times as fast, and
 * without the memory, for lines that pass unchanged. Whoever is not sure says so, and the line is parsed; an answer is
 * the one that parsing gives, but a line whose grammar is broken (event_check) may have one as well.
 */
#ifndef AG2_EVENT_QUICK_H
#define AG2_EVENT_QUICK_H

#include "event/event.h"

struct piece {			/* a part of a line */
	const char *p;
	size_t len;
};
struct pieces {
	struct piece *items;
	size_t n, cap;
};
void pieces_release(struct pieces *pieces);

/* All of these replace what was in the pieces; ids and names are without their quotes, and have no escapes. */

/* What event_ids gives, in its order. */
bool quick_ids(const struct event *ev, struct pieces *ids);
/* A request with text or anything else that can be sent. */
bool quick_request(const struct event *ev);
/* A response with text, or with calls: their ids and names, both NULL when nobody asks. Whether ids differ is not looked at. */
bool quick_response(const struct event *ev, struct pieces *ids, struct pieces *names);
/* A result of which something can be sent. */
bool quick_result(const struct event *ev);
/* A results container of which no result is empty: the parent ids. */
bool quick_results(const struct event *ev, struct pieces *ids);
/* The elements of a list in the event's data, as they are written. */
bool quick_list(const struct event *ev, const char *key, struct pieces *elements);
/* What event_tokens gives. */
bool quick_tokens(const struct event *ev, int chars_per_token, int64_t *tokens);

#endif

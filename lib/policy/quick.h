/*
 * What the repair has to know of most lines, read off their text without building values from it: several times as fast,
 * for lines that pass unchanged. Private to lib/policy. Whoever is not sure says so, and the line is parsed; a line for
 * which these give an answer has that answer when it is parsed.
 */
#ifndef AG2_QUICK_H
#define AG2_QUICK_H

#include "event/event.h"

struct piece {			/* a part of a line */
	const char *p;
	size_t len;
};
struct pieces {			/* ids: between their quotes, without escapes */
	struct piece *items;
	size_t n, cap;
};

/* A request with text or anything else that can be sent. */
bool quick_request(const struct event *ev);
/* A response with text, or with calls: their ids and names (which replace what was in them). Whether ids differ is not looked at. */
bool quick_response(const struct event *ev, struct pieces *ids, struct pieces *names);
/* A results container of which no result is empty: the parent ids, which replace what was in ids. */
bool quick_results(const struct event *ev, struct pieces *ids);
/* A result, or an announcement of one call or several (which of them: flags): the ids it refers to. */
bool quick_ids(const struct event *ev, unsigned flags, struct pieces *ids);

/*
 * No more than event_tokens of a request, response or results container gives, mostly nearly as much; 0 for others and for
 * what is unusual. Never for deciding what fits: for knowing that something does not.
 */
int64_t quick_tokens_at_least(const struct event *ev, int chars_per_token);

void pieces_release(struct pieces *ids);

#endif

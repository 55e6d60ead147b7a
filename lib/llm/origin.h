/* Which event a message of a request body came from; private to lib/llm. */
#ifndef AG2_ORIGIN_H
#define AG2_ORIGIN_H

#include "llm/provider.h"

/* While a body is made: where in it each event begins, and which are in it at all. */
struct origins {
	const struct buf *body;
	struct origin {
		size_t at, event;	/* a byte of the body, a place in r->events */
	} *marks;
	size_t n, cap;
	bool *sent;			/* by the place of an event; NULL: nobody asks */
	size_t *waiting;		/* events that come with the next response which is written */
	size_t waiting_n, waiting_cap;
};
/* What is written from here on is made of this event. NULL, here and below: nobody asks. */
void origin_mark(struct origins *o, size_t event);
/* All of it is written, or nothing; a response brings those that wait for it. */
void origin_end(struct origins *o, bool response);
/* It comes with the next response. */
void origin_wait(struct origins *o);

/*
 * For each message of the body of r (in which the context is placed already) the place in r->events that it begins with;
 * *n messages, free *origin. SIZE_MAX: none, it is made of prompts. 0 messages for a provider of lines.
 */
int origin_all(const struct provider *p, const struct llm_request *r, size_t **origin, size_t *n, struct err *e);

/* Sets sent[i] where anything of r->events[i] is in the body. */
int origin_sent(const struct provider *p, const struct llm_request *r, bool *sent, struct err *e);

/*
 * A provider's refusal that names a message by its number in the array, as in `messages[3]` or `input.3`: puts the event's
 * line behind the message of e.
 */
void origin_name(const struct provider *p, const struct llm_request *r, struct err *e);

#endif

/* Which event a message of a request body came from; private to lib/llm. */
#ifndef AG2_ORIGIN_H
#define AG2_ORIGIN_H

#include "llm/provider.h"

/* While a body is made: where in it each event begins, and which are in it at all. */
struct origins {
	const struct buf *body;
	struct origin {
		size_t at, event;	/* a byte of the body, a place in r->events */
		bool more;		/* one more event that what is written there is made of */
	} *marks;
	size_t n, cap, all, all_n;	/* all: where the marks of the last origin_mark_all begin */
	bool *sent;			/* by the place of an event; NULL: nobody asks */
	size_t *waiting;		/* events that come with the next response which is written */
	size_t waiting_n, waiting_cap;
};
/* What is written from here on is made of this event. NULL, here and below: nobody asks. */
void origin_mark(struct origins *o, size_t event);
/* The same of several events at once; and from here on of the i-th of them alone, where each is a message. */
void origin_mark_all(struct origins *o, const size_t *events, size_t n);
void origin_mark_one(struct origins *o, size_t i);
/* All that there is of these is written since the mark, or nothing; a response brings those that wait for it. */
void origin_end(struct origins *o, const size_t *events, size_t n, bool response);
/* This one comes with the next response. */
void origin_wait(struct origins *o, size_t event);

/* llm_origins() for a request in which the context is placed already. */
int origin_all(const struct provider *p, const struct llm_request *r, struct llm_origins *o, struct err *e);

/* Sets sent[i] where anything of r->events[i] is in the body. */
int origin_sent(const struct provider *p, const struct llm_request *r, bool *sent, struct err *e);

/*
 * A provider's refusal that names a message by its number in the array, as in `messages[3]` or `input.3`: puts the event's
 * line behind the message of e.
 */
void origin_name(const struct provider *p, const struct llm_request *r, struct err *e);

#endif

/* A request with its context among the events, for all providers alike; private to lib/llm. */
#ifndef AG2_CONTEXT_H
#define AG2_CONTEXT_H

#include "llm/llm.h"

struct placed {
	struct llm_request request;	/* as r, but without context, and with stable_n set; valid as long as r */
	struct event **events, *made;	/* private */
};
/* ERR_DATA when the event it goes into is broken. */
int context_place(struct placed *p, const struct llm_request *r, struct err *e);
void context_release(struct placed *p);

#endif

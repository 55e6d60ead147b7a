/* Which event a message of a request body came from; private to lib/llm. */
#ifndef AG2_ORIGIN_H
#define AG2_ORIGIN_H

#include "llm/provider.h"

#define ORIGIN_EVENTS_MAX 5000	/* a body is made for each: with more there is no answer */

/*
 * For each message of the body of r (in which the context is placed already) the place in r->events that it begins with;
 * *n messages, free *origin. SIZE_MAX: none, it is made of prompts. Found by making the bodies of the history's
 * beginnings, so that a provider need not know of it.
 */
int origin_all(const struct provider *p, const struct llm_request *r, size_t **origin, size_t *n, struct err *e);

/*
 * A provider's refusal that names a message by its number in the array, as in `messages[3]` or `input.3`: puts the event's
 * line behind the message of e.
 */
void origin_name(const struct provider *p, const struct llm_request *r, struct err *e);

#endif

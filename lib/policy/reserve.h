/*
 * What the last stage will add to what a token budget lets through, known as the events go by: error results and results
 * that came alone for calls without a container, and placeholders for empty texts. Private to lib/policy.
 *
 * It may be more than what is added in the end (a late result moves to its call instead), never less.
 */
#ifndef AG2_RESERVE_H
#define AG2_RESERVE_H

#include "event/event.h"
#include "policy/idset.h"

struct reserve {
	int chars;		/* per token */
	int64_t error;		/* tokens of an error result */
	int64_t response;	/* number of the response whose calls may still be answered; -1: none */
	struct idset ids;	/* of its calls */
	struct reserve_call *calls;
	struct idset builtin;	/* ids of the builtin calls since the last request: their results are sent as they are */
	size_t cap;
	bool foreign;		/* a result of the container at hand is of no call of it */
};

struct reserved {		/* what the response with this number needs beside its own tokens; number -1: nothing */
	int64_t number, tokens;
};

void reserve_init(struct reserve *r, int chars_per_token);
void reserve_release(struct reserve *r);

/*
 * Takes in the next event, whose data is not broken, and returns what it needs itself. *closed is what the response needs
 * whose calls nothing can answer any more.
 */
int64_t reserve_step(struct reserve *r, struct event *ev, int64_t number, struct reserved *closed);
/* The end of the events. answer_open: calls that are still open get error results. */
struct reserved reserve_end(struct reserve *r, bool answer_open);

#endif

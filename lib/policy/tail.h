/*
 * Where reading a log may begin so that a window sees all that can matter to it: private to lib/policy.
 */
#ifndef AG2_TAIL_H
#define AG2_TAIL_H

#include "policy/stage.h"

/*
 * Reads lines backwards until a request that lies before the window, with a response behind it: the request clears what
 * providers replay, survives every cut and is the one that a window without a request keeps, and the response makes
 * every HaltEvent before it spent. *offset is that request's line; 0 when there is none. With kept_only the window is
 * given only what the conversation policy keeps.
 */
int tail_find(struct store_file *f, uint64_t size, const struct window_need *need, bool kept_only, uint64_t *offset,
    struct err *e);

/* The same question for events that come one by one, the newest first: zeroed but for need to begin with. */
struct tail_count {
	const struct window_need *need;
	bool kept_only;
	bool at_least;		/* sizes need not be exact: fewer tokens are counted than there are */
	int64_t weight;		/* of what was seen so far, events or tokens */
	uint64_t events;
	bool response;
};
/* Takes in one more event towards the beginning; true when the window's input may begin with it. */
bool tail_enough(struct tail_count *c, struct event *ev);

#endif

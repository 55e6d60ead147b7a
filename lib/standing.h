/* Where a history stands: what has come since its last response, itself included. */
#ifndef AG2_STANDING_H
#define AG2_STANDING_H

#include "event/event.h"
#include "store/store.h"

#include <stdbool.h>

struct standing {		/* begins as zeros */
	bool request, response, open_calls;
	struct event *halt;	/* the last HaltEvent behind the last response; owned (event_free) */
};

void standing_add(struct standing *s, struct event *ev);
/* Whole lines. Bad ones are passed over: who reads the history for the model reports them. */
void standing_add_lines(struct standing *s, const char *text, size_t len);

/* That of the current log, found from its end; a log that is not there adds nothing. */
int standing_of_stream(struct standing *s, struct store *store, const char *stream, struct err *e);

/* Something is to be asked. A response that called tools is no answer: the turn ended before the next one. */
bool standing_unanswered(const struct standing *s);

#endif

/*
 * When compaction is due (source: AG2's CompactTrigger): conversational events, or their cost, exceed a limit. One
 * estimator serves trigger, cut and report: event_tokens, code points // chars_per_token.
 */
#ifndef AG2_TRIGGER_H
#define AG2_TRIGGER_H

#include "event/event.h"

struct trigger {
	long max_events;	/* 0 or below: no limit */
	long max_tokens;	/* 0 or below: no limit */
	int chars_per_token;	/* 1 or more, or CHARS_AUTO */
};

struct trigger_count {
	uint64_t events;	/* conversational ones */
	int64_t tokens;		/* what they cost; only counted until a limit is exceeded */
};

bool trigger_is_set(const struct trigger *t);
/* Counts an event. -1 when its content is broken: it then counts as an event that costs nothing. */
int trigger_add(const struct trigger *t, struct trigger_count *c, struct event *ev, struct err *e);
bool trigger_exceeded(const struct trigger *t, const struct trigger_count *c);

#endif

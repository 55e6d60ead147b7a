/*
 * The one table of event types: what each is to windows, logs, policies and replay (source: AG2's classes).
 */
#ifndef AG2_EVENT_TYPE_H
#define AG2_EVENT_TYPE_H

#include <stddef.h>

enum {
	EV_TRANSIENT = 1 << 0,		/* never written to a log */
	EV_CONVERSATIONAL = 1 << 1,	/* drives windows and triggers */
	EV_KEPT = 1 << 2,		/* kept by the conversation policy */
	/* families, see lib/policy/replay.h */
	EV_REQUEST = 1 << 3,
	EV_RESPONSE = 1 << 4,		/* its tool_calls.calls announce calls */
	EV_CALLS = 1 << 5,		/* a container that announces calls */
	EV_CALL = 1 << 6,		/* a standalone announcement */
	EV_BUILTIN_CALL = 1 << 7,	/* made and answered on the provider's side; also EV_CALL */
	EV_RESULTS = 1 << 8,		/* a container */
	EV_RESULT = 1 << 9,		/* one result, errors included */
	EV_ERROR_RESULT = 1 << 10,	/* also EV_RESULT */
	EV_ANCHOR = 1 << 11,		/* reasoning item that builtin calls of the same response need */
	EV_TURN_ITEM = 1 << 12,		/* provider state that stands for the response right after it */
	EV_SUMMARY = 1 << 13,
	EV_INPUT_PART = 1 << 14,
	/* single classes that programs ask for */
	EV_ALERT = 1 << 15,
	EV_HALT = 1 << 16,
	EV_USAGE = 1 << 17,
	EV_PROMPT = 1 << 18,		/* the system prompt on its way through a pipe; not an AG2 class */
	EV_UNKNOWN = 1 << 19,		/* a class that is not listed: conversational, of no family */
};

struct event_type {
	const char *name;		/* as written: "ag2.events.input_events.ModelRequest"; "Prompt" */
	const char *last;		/* its last dotted component */
	unsigned flags;
};

/* By the last dotted component of a name of len bytes. Never NULL: an unlisted name gives the entry with EV_UNKNOWN. */
const struct event_type *event_type_find(const char *name, size_t len);

/* The whole table, for tests. */
extern const struct event_type event_types[];
extern const size_t event_types_n;

#endif

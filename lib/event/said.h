/* What an event says, piece for piece, as people would search for it: decoded, without its JSON. */
#ifndef AG2_SAID_H
#define AG2_SAID_H

#include "event/event.h"

/*
 * Calls fn for each piece; who is "user", "assistant", "call" (a tool's name and its arguments, their escapes decoded), "result", "alert",
 * "halt", "summary" or, for other events, the last part of their type. Text in several parts is one piece, a blank between
 * two where neither has one. id is that of the call a result belongs to, else NULL: containers repeat results. -1 with ERR_DATA when the
 * content is broken.
 */
typedef void said_fn(void *arg, const char *who, const char *id, const char *text, size_t len);
int event_said(struct event *ev, said_fn *fn, void *arg, struct err *e);

/* The event's created_at, below 0 when it has none; its data must have been read. */
double event_time(struct json_object *data);

#endif

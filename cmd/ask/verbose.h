/* -v: what happens between the request and the answer. */
#ifndef AG2_ASK_VERBOSE_H
#define AG2_ASK_VERBOSE_H

#include "event/event.h"

/* Of a new event. */
void say_event(const struct event *ev, struct json_object *data);

#endif

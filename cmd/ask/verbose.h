/* -v: what happens between the request and the answer. */
#ifndef AG2_ASK_VERBOSE_H
#define AG2_ASK_VERBOSE_H

#include <stddef.h>

/* Of a new event. */
void say_event(const char *line, size_t len);

#endif

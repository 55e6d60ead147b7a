/*
 * What an event costs and how it reads (source: AG2's estimate and its rendering for a summariser).
 */
#ifndef AG2_RENDER_H
#define AG2_RENDER_H

#include "event/event.h"

#define CHARS_PER_TOKEN 4
#define CHARS_MAX 1000000
#define CHARS_AUTO 0	/* as chars_per_token: 4 ASCII characters, or one that is not ASCII, are a token */

/*
 * Estimated tokens: code points // chars_per_token for each text piece, fixed costs for media. chars_per_token >= 1,
 * or CHARS_AUTO. -1 when broken.
 */
int64_t event_tokens(struct event *ev, int chars_per_token, struct err *e);
/* The same for plain text such as a prompt. */
int64_t text_tokens(const char *text, size_t len, int chars_per_token);

/* Of it, what the files of a response cost, 0 for any other event: they came with the answer, and no request has a place for them. */
int64_t files_tokens(struct event *ev);

/* One result of a container. */
int64_t result_tokens(struct json_object *result, int chars_per_token);

/* Appends the event as a model reads it in a summariser's prompt ("User: ..."); nothing for telemetry. */
int event_render(struct buf *out, struct event *ev, struct err *e);

/* Appends Python's str() of the whole event, the last resort of both. */
int event_repr(struct buf *out, struct event *ev, struct err *e);

#endif

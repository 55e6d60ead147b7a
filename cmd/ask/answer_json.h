/* The one object of ag2-ask --json, made of the turn's events as they happen. */
#ifndef AG2_ASK_ANSWER_JSON_H
#define AG2_ASK_ANSWER_JSON_H

#include "event/event.h"

void json_note(const struct event *ev, struct json_object *data);
/* {"text", "stop", "usage", "calls", "files", "model", "provider", "stream"}, and a newline; stream NULL: none. */
void json_tell(struct buf *out, const struct buf *answer, const char *stream);

#endif

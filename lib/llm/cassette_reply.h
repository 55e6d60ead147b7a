/* A reply as it stands in a cassette: see cassette.h for its members. */
#ifndef AG2_CASSETTE_REPLY_H
#define AG2_CASSETTE_REPLY_H

#include "llm/provider.h"

/* pieces: its text as it came, an array of strings. The value is the caller's. */
struct json_object *cassette_record_reply(struct json_object *pieces, const struct llm_reply *reply);

/* Gives the text to the sink and fills the reply, as a provider's call does; or fails as the recorded call did. */
int cassette_play_reply(struct json_object *v, const struct llm_request *r, const struct llm_sink *sink, struct llm_reply *reply, struct err *e);

#endif

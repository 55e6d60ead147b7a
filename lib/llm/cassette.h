/*
 * Cassettes: model calls and their answers in a file, JSON lines, made by recording or by hand. Blank lines and lines that
 * begin with # are skipped. An entry is
 *
 *	{"provider": "openai", "model": "gpt-5", "request": {"messages": [...], "tools": [...]}, "reply": {"text": "Read Calvino."}}
 *
 * It answers a request that has its provider and model, has an equal value for each member of its `request`, whose last
 * user request's text is its `ask`, and contains the text of its `contains`. What an entry leaves out fits anything, so by hand
 * this is enough:
 *
 *	{"ask": "What should I read next?", "reply": {"text": "Read Calvino."}}
 *
 * `request` is the body that the provider would be sent (of exec: {"lines": [...]}, the stream) without what differs from run
 * to run: model, stream, stream_options and, of lines, created_at are left out, the ids of calls are call-1, call-2 ... as
 * they appear, and `tools` is [] where there are none.
 *
 * `reply`: `text`, a string or the array of pieces in which it came; `calls`, an array of {"name", "arguments", "id"}
 * (arguments as JSON text or as the object itself; an id is made up where there is none), and "vendor_metadata" and
 * "thought_signature" where the provider gave them; `replay`, the provider's own events that come before the response; `usage` {"prompt_tokens",
 * "completion_tokens", "total_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "thinking_tokens"}; `model`,
 * `provider`, `finish_reason` ("stop" or "tool_calls" by default); or `events`, what an exec: model wrote, as strings (exact
 * lines) or objects; or `error`, a message, and `status` 69 (default), 75 or 77: such a call fails after its text.
 *
 * Of the entries that fit a request the first is taken that was not used by this process yet, else the last. So equal
 * requests are answered in recorded order with the last repeating, and processes that replay one file at once do
 * not disturb each other. Failed calls are not recorded.
 */
#ifndef AG2_CASSETTE_H
#define AG2_CASSETTE_H

#include "llm/provider.h"

struct cassette;

/* Reads a whole cassette. ERR_NOINPUT when it is not there, ERR_DATA names a bad line. The path is borrowed. */
struct cassette *cassette_load(const char *path, struct err *e);
/* Opens one to append to, made 0600 when it is not there. */
struct cassette *cassette_record_to(const char *path, struct err *e);
void cassette_free(struct cassette *c);

/* Plays an answer. ERR_UNAVAIL when there is none: with the first difference to the entry that comes nearest. */
int cassette_answer(struct cassette *c, const struct llm_request *r, bool lines, const struct buf *body, const struct llm_sink *sink,
    struct llm_reply *reply, struct err *e);

/* Appends an entry in one write under a lock. The key, if it is in there, is not. */
int cassette_add(struct cassette *c, const struct llm_request *r, bool lines, const struct buf *body, struct json_object *pieces,
    const struct llm_reply *reply, struct err *e);

#endif

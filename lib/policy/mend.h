/*
 * Looking into single events for what no provider accepts, and making the event that is sent instead. Private to
 * lib/policy. A new event is the caller's; what is not changed in it keeps its spelling.
 */
#ifndef AG2_MEND_H
#define AG2_MEND_H

#include "event/build.h"

/* Whether data of a request, a response (no text, calls or files), a result has nothing to send: blanks are nothing. */
bool mend_blank_request(struct json_object *data);
bool mend_blank_response(struct json_object *data);
bool mend_blank_result(struct json_object *result);	/* the data of a result, or one inside a container */

/* The request with a placeholder for its text. NULL when the line is broken. */
struct event *mend_request(const struct event *ev);
/* The response with those of its calls only that have an id, and one that no call before it has. */
struct event *mend_response(const struct event *ev);
/* The container with only those results for which pick is set, placeholders for empty ones. pick has n entries. */
struct event *mend_results(const struct event *ev, const bool *pick, size_t n);
/* A request that says which call the result is late for, and holds the result's parts. */
struct event *mend_note(struct json_object *late);
/* The record of the error result for a call that was not answered in time; json_object_put it. */
struct json_object *mend_error(const char *id, size_t id_len, const char *name, size_t name_len);
/* What a result costs as it is sent: with its placeholder if it is empty. And the placeholder of a request. */
int64_t mend_result_tokens(struct json_object *result, int chars_per_token);
int64_t mend_request_tokens(int chars_per_token);
/* A record (type and data) of a result event with a placeholder if it is empty; json_object_put it. NULL when broken. */
struct json_object *mend_result_record(const struct event *ev);

#endif

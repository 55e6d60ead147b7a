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
/* A record (type and data) of a result event with a placeholder if it is empty; json_object_put it. NULL when broken. */
struct json_object *mend_result_record(const struct event *ev);

#endif

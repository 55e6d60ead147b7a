/*
 * Looking into single events for what no provider accepts, and making the event that is sent instead. Private to
 * lib/policy. A new event is the caller's; what is not changed in it keeps its spelling.
 */
#ifndef AG2_MEND_H
#define AG2_MEND_H

#include "event/build.h"
#include "event/quick.h"

/* Whether a request or a response (no text, calls or files) has nothing to send: blanks are nothing. Reads no more of it than it needs. */
bool mend_says_nothing(struct event *ev);
/* The same of its data, and of a result's. */
bool mend_blank_request(struct json_object *data);
bool mend_blank_response(struct json_object *data);
bool mend_blank_result(struct json_object *result);	/* the data of a result, or one inside a container */

/* The request with a placeholder for its text. NULL when the line is broken. */
struct event *mend_request(const struct event *ev);
/* The response with those of its calls only that have an id, and one that no call before it has. */
struct event *mend_response(const struct event *ev);

/* The results of a container, to take it apart. What is written keeps its bytes, but for placeholders in blank results. */
struct mend_result {
	struct piece text;	/* of the line */
	size_t place;		/* the caller's: where it goes */
	bool blank;
};
struct mend_list {
	struct event *ev;	/* the container: owned when it had to be spelled anew, so that its results can be told apart */
	bool owned;
	struct mend_result *items;	/* zeroed but for text */
	size_t n;
};
/* False when it has no list of results. */
bool mend_list_open(struct mend_list *l, struct event *ev);
void mend_list_release(struct mend_list *l);
/* The container with only those of its results from..to-1 that go to this place. */
struct event *mend_results(const struct mend_list *l, size_t from, size_t to, size_t place);

/* A request that says which call the result is late for, and holds the result's parts. */
struct event *mend_note(struct json_object *late);
/* The record of the error result for a call that was not answered in time; json_object_put it. */
struct json_object *mend_error(const char *id, size_t id_len, const char *name, size_t name_len);
/* What a result costs as it is sent: with its placeholder if it is empty. And the placeholder of a request. */
int64_t mend_result_tokens(struct json_object *result, int chars_per_token);
int64_t mend_request_tokens(int chars_per_token);
/* Adds a result that came alone to the list of a container (see build_listed), with a placeholder if it is empty. False when it is broken. */
bool mend_listed(struct buf *list, const struct event *result);

#endif

/* Going through a history on behalf of a provider. */
#include "llm/provider.h"

#include "base/alloc.h"
#include "base/run.h"
#include "event/quick.h"
#include "llm/origin.h"

#include <stdlib.h>

#define SUMMARY_HEADING "[Summary of earlier conversation]\n"

/* ---- reading responses and results ---- */

bool
is_blank(const char *text, size_t len)
{
	return strspn(text, " \t\r\n") >= len;
}

const char *
response_text(struct json_object *data, bool as_ag2, size_t *len)
{
	const char *text;

	*len = 0;
	text = json_get_text(json_get(data, "message"), "content", len);
	if (text == NULL || (!as_ag2 && is_blank(text, *len)))
		*len = 0;
	return *len == 0 && !as_ag2 ? NULL : text;
}

struct json_object *
response_calls(struct json_object *data, size_t *n)
{
	struct json_object *calls = json_get(json_get(data, "tool_calls"), "calls");

	*n = json_count(calls);
	return calls;
}

struct json_object *
result_parts(struct json_object *result)
{
	return json_get(json_get(json_get(result, "result"), "data"), "parts");
}

bool
result_failed(struct json_object *result)
{
	size_t len = 0;
	const char *type = json_get_text(result, "__event__", &len);

	return json_get(result, "error") != NULL || (type != NULL && (event_type_find(type, len)->flags & EV_ERROR_RESULT));
}

bool
says_nothing(struct json_object *parts)
{
	size_t i, len;
	const char *text;

	for (i = 0; i < json_count(parts); i++) {
		text = json_get_text(json_object_array_get_idx(parts, i), "content", &len);
		if (text == NULL || !is_blank(text, len))
			return false;
	}
	return true;
}

/* ---- the walk ---- */

struct walker {
	const struct llm_request *r;
	const struct walk *w;
	void *b;
	struct json_object *covered;	/* the ids that results containers answer */
	/* the ids of the last response's calls, until a request (as_ag2: of all there were); those taken alone are out of it */
	struct json_object *open;
	struct json_object **loose;	/* results that are in none and stand next to each other */
	size_t *loose_event;		/* ... and where they stand */
	size_t loose_n, loose_cap, loose_event_cap;
	size_t event;			/* the one at hand */
	struct json_object *alone;	/* where the results of this round stand that came alone, by their ids; NULL: nobody asks */
};

/* Whether it is made of a result that came alone: it then has its place, or none where it is made of several. */
static bool
made_of(const struct event *container, const struct event *result)
{
	return (container->number == 0 && container->offset == 0) ||
	    (container->number == result->number && container->offset == result->offset);
}

/* Where the results in the container at hand came from: from there, or each alone. Freed by the caller. */
static size_t *
came_from(const struct walker *wk, struct json_object *const *results, size_t n)
{
	struct json_object *place;
	const char *id;
	size_t *from = xcalloc(n + 1, sizeof(from[0])), i, at;

	for (i = 0; i < n; i++) {
		id = json_get_text(results[i], "parent_id", NULL);
		place = id != NULL ? json_get(wk->alone, id) : NULL;
		at = place != NULL ? (size_t)json_object_get_int64(place) : wk->event;
		from[i] = made_of(wk->r->events[wk->event], wk->r->events[at]) ? at : wk->event;
	}
	return from;
}

/* Of the container at hand. */
static int
give_contained(struct walker *wk, struct json_object *const *results, size_t n, struct err *e)
{
	size_t *from = wk->alone != NULL ? came_from(wk, results, n) : NULL, i, together = wk->w->results != NULL ? n : 1;
	int rc = 0;

	for (i = 0; rc == 0 && i < n; i += together) {
		origin_mark_all(wk->r->origins, from != NULL ? from + i : &wk->event, from != NULL ? together : 1);
		rc = wk->w->results != NULL ? wk->w->results(wk->b, results, n, e) : wk->w->result(wk->b, results[i], e);
		origin_end(wk->r->origins, &wk->event, 1, false);
	}
	free(from);
	return rc;
}

static int
flush_loose(struct walker *wk, struct err *e)
{
	size_t i, together = wk->w->results != NULL ? wk->loose_n : 1;
	int rc = 0;

	for (i = 0; rc == 0 && i < wk->loose_n; i += together) {
		origin_mark_all(wk->r->origins, wk->loose_event + i, together);
		rc = wk->w->results != NULL ? wk->w->results(wk->b, wk->loose, wk->loose_n, e) : wk->w->result(wk->b, wk->loose[i], e);
		origin_end(wk->r->origins, wk->loose_event + i, together, false);
	}
	for (i = 0; i < wk->loose_n; i++)
		json_object_put(wk->loose[i]);
	wk->loose_n = 0;
	return rc;
}

static void
note_id(void *arg, const char *id, size_t len)
{
	char *key = xmemdup0(id, len);

	json_object_object_add(arg, key, json_object_new_boolean(1));
	free(key);
}

static void
note_alone(struct walker *wk, struct json_object *result)
{
	const char *id = json_get_text(result, "parent_id", NULL);

	if (wk->alone != NULL && id != NULL)
		json_object_object_add(wk->alone, id, json_object_new_int64((int64_t)wk->event));
}

static void
forget_alone(struct walker *wk)
{
	json_object_put(wk->alone);
	wk->alone = wk->r->origins != NULL ? json_object_new_object() : NULL;
}

/* Requests and responses end what can be answered. */
static int
note_open(struct walker *wk, struct event *ev, struct err *e)
{
	if ((ev->type->flags & (EV_REQUEST | EV_SUMMARY | EV_RESPONSE)) == 0)
		return 0;
	if (!wk->r->as_ag2) {
		json_object_put(wk->open);
		wk->open = json_object_new_object();
	}
	forget_alone(wk);
	return ev->type->flags & EV_RESPONSE ? event_ids(ev, note_id, wk->open, e) : 0;
}

/*
 * A result is logged by itself and again in the container of its round: sent is the container's, else its own (AG2: never,
 * or whatever it answers). One for a call that was made on the provider's side answers nothing that is sent.
 */
static void
loose_result(struct walker *wk, const struct event *ev, struct json_object *data)
{
	const char *id = json_get_text(data, "parent_id", NULL);
	bool as_ag2 = wk->r->as_ag2;

	if ((as_ag2 && (!wk->w->ag2_takes_loose || strncmp(ev->type->last, "Tool", 4) != 0)) || id == NULL ||
	    json_object_object_get_ex(wk->covered, id, NULL) || !json_object_object_get_ex(wk->open, id, NULL))
		return;
	json_object_object_del(wk->open, id);
	wk->loose = xgrow(wk->loose, wk->loose_n, &wk->loose_cap, sizeof(struct json_object *));
	wk->loose_event = xgrow(wk->loose_event, wk->loose_n, &wk->loose_event_cap, sizeof(wk->loose_event[0]));
	wk->loose_event[wk->loose_n] = wk->event;
	wk->loose[wk->loose_n++] = json_object_get(data);
}

/* Where they are sent one by one, they are parsed one by one. 1 when that is not possible. */
static int
results_one_by_one(struct walker *wk, const struct event *ev, struct err *e)
{
	struct pieces texts = { 0 };
	struct json_object *one = NULL;
	int rc = ev->parsed == NULL && wk->w->results == NULL && quick_list(ev, "results", &texts) ? event_check(ev, e) : 1;
	size_t i;

	for (i = 0; rc == 0 && i < texts.n; i++) {
		rc = json_parse(&one, texts.items[i].p, texts.items[i].len, e);
		if (wk->r->as_ag2)
			json_forget_spelling(one);
		if (rc == 0)
			rc = give_contained(wk, &one, 1, e);
		json_object_put(one);
	}
	pieces_release(&texts);
	return rc;
}

static int
results_container(struct walker *wk, struct event *ev, struct err *e)
{
	struct json_object *data, *results, **items;
	size_t i, n;
	int rc = results_one_by_one(wk, ev, e);

	if (rc <= 0)
		return rc;
	data = event_data(ev, e);
	if (data == NULL)
		return -1;
	if (wk->r->as_ag2)
		json_forget_spelling(data);
	results = json_get(data, "results");
	n = json_count(results);
	items = xcalloc(n + 1, sizeof(*items));
	for (i = 0; i < n; i++)
		items[i] = json_object_array_get_idx(results, i);
	rc = give_contained(wk, items, n, e);
	free(items);
	return rc;
}

static int
summary(struct walker *wk, struct json_object *data, struct err *e)
{
	struct buf text = BUF_INIT;
	size_t len = 0;
	const char *words = json_get_text(data, "summary", &len);
	int rc;

	buf_adds(&text, SUMMARY_HEADING);
	buf_add(&text, words, len);
	rc = wk->w->summary(wk->b, text.data, text.len, e);
	buf_release(&text);
	return rc;
}

static bool
providers_own(const struct event_type *type)
{
	return (type->flags & (EV_ANCHOR | EV_BUILTIN_CALL)) != 0 || ((type->flags & EV_RESULT) && strncmp(type->last, "Tool", 4) != 0);
}

static int
give_own(struct walker *wk, const struct event *ev, struct json_object *data, struct err *e)
{
	int rc = wk->w->replay(wk->b, ev->type, data, e);

	if (rc > 0)
		origin_wait(wk->r->origins, wk->event);
	return rc < 0 ? -1 : 0;
}

static int
give_message(struct walker *wk, const struct event *ev, struct json_object *data, struct err *e)
{
	if (ev->type->flags & EV_REQUEST)
		return wk->w->request(wk->b, json_get(data, "parts"), e);
	return ev->type->flags & EV_SUMMARY ? summary(wk, data, e) : wk->w->response(wk->b, data, e);
}

static int
one_event(struct walker *wk, struct event *ev, struct err *e)
{
	unsigned flags = ev->type->flags;
	bool own = wk->w->replay != NULL && providers_own(ev->type);
	struct json_object *data;
	int rc;

	if (!own && !(flags & (EV_REQUEST | EV_RESPONSE | EV_RESULTS | EV_RESULT | EV_SUMMARY)))
		return 0;
	if (!own && (flags & EV_RESULTS))
		return flush_loose(wk, e) < 0 ? -1 : results_container(wk, ev, e);
	data = event_data(ev, e);
	if (data == NULL)
		return -1;
	if (wk->r->as_ag2)
		json_forget_spelling(data);	/* of a DataInput; AG2 sends what it has read */
	if (!own && (flags & EV_RESULT)) {
		note_alone(wk, data);
		loose_result(wk, ev, data);
		return 0;
	}
	if (flush_loose(wk, e) < 0 || note_open(wk, ev, e) < 0)
		return -1;
	origin_mark(wk->r->origins, wk->event);
	rc = own ? give_own(wk, ev, data, e) : give_message(wk, ev, data, e);
	origin_end(wk->r->origins, &wk->event, 1, (flags & EV_RESPONSE) != 0);
	return rc;
}

static int
walk(struct walker *wk, struct err *e)
{
	const struct llm_request *r = wk->r;
	size_t i;

	for (i = 0; i < r->events_n; i++) {
		if (run_check(e) < 0)
			return -1;
		if ((r->events[i]->type->flags & EV_RESULTS) && event_ids(r->events[i], note_id, wk->covered, e) < 0)
			return event_wrap(r->events[i], e);
		event_forget(r->events[i]);
	}
	for (i = 0; i < r->events_n; i++) {
		if (run_check(e) < 0)
			return -1;
		if (i == r->stable_n && flush_loose(wk, e) < 0)
			return -1;
		if (i == r->stable_n && wk->w->stable_end != NULL)
			wk->w->stable_end(wk->b);
		wk->event = i;
		if (one_event(wk, r->events[i], e) < 0)
			return event_wrap(r->events[i], e);
		event_forget(r->events[i]);
	}
	return flush_loose(wk, e);
}

int
walk_history(const struct llm_request *r, const struct walk *w, void *b, struct err *e)
{
	struct walker wk = { .r = r, .w = w, .b = b, .covered = json_object_new_object(), .open = json_object_new_object() };
	int rc = walk(&wk, e);

	while (wk.loose_n > 0)
		json_object_put(wk.loose[--wk.loose_n]);
	free(wk.loose);
	free(wk.loose_event);
	json_object_put(wk.covered);
	json_object_put(wk.open);
	json_object_put(wk.alone);
	return rc;
}

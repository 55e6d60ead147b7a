/*
 * Where prompts that change often stand (layout: cache). Whatever lies before the first byte that changed since the last
 * call is read from the provider's cache, so they come as late as they can: in the last user turn, which is new anyway.
 */
#include "llm/context.h"

#include "base/alloc.h"

#include <stdlib.h>

/* `<context>`, the prompts with a blank line between two, `</context>`. */
static struct json_object *
context_text(const struct llm_request *r)
{
	struct buf text = BUF_INIT;
	struct json_object *value;
	size_t i;

	buf_adds(&text, "<context>\n");
	for (i = 0; i < r->context_n; i++) {
		if (i > 0)
			buf_adds(&text, "\n\n");
		buf_add(&text, r->context[i].data, r->context[i].len);
	}
	buf_adds(&text, "\n</context>");
	value = json_object_new_string_len(text.data, (int)text.len);
	buf_release(&text);
	return value;
}

/* The part gets the time of the event it stands by, so that the same request has the same bytes. */
static struct json_object *
context_part(const struct llm_request *r, struct json_object *created_at)
{
	struct json_object *part = json_object_new_object();

	json_object_object_add(part, "__event__", json_object_new_string(event_type_find("TextInput", 9)->name));
	json_object_object_add(part, "created_at", json_object_get(created_at));
	json_object_object_add(part, "metadata", json_object_new_object());
	json_object_object_add(part, "content", context_text(r));
	return part;
}

static struct event *
event_of(struct json_object *record)
{
	struct buf line = BUF_INIT;
	char *text;
	size_t len;

	json_write(&line, record, JSON_PYTHON);
	text = buf_detach(&line, &len);
	return event_own(text, len);
}

/* The request with the context before its parts. */
static struct event *
with_context(const struct llm_request *r, const struct event *ev, struct err *e)
{
	struct json_object *record = NULL, *data, *old, *parts;
	struct event *made;
	size_t i;

	if (json_parse(&record, ev->line, ev->len, e) < 0) {
		err_wrap(e, "line %llu", (unsigned long long)ev->number);
		return NULL;
	}
	data = json_get(record, "data");
	old = json_get(data, "parts");
	parts = json_object_new_array();
	json_object_array_add(parts, context_part(r, json_get(data, "created_at")));
	for (i = 0; json_object_is_type(old, json_type_array) && i < json_object_array_length(old); i++)
		json_object_array_add(parts, json_object_get(json_object_array_get_idx(old, i)));
	if (json_object_is_type(data, json_type_object))
		json_object_object_add(data, "parts", parts);
	else
		json_object_put(parts);
	made = event_of(record);
	made->number = ev->number;
	made->offset = ev->offset;
	json_object_put(record);
	return made;
}

/* A request that is nothing but the context. */
static struct event *
context_alone(const struct llm_request *r, struct event *before, struct err *e)
{
	struct json_object *data_before = before != NULL ? event_data(before, e) : NULL, *record, *data, *parts, *created_at;
	struct event *made;

	if (before != NULL && data_before == NULL)
		return NULL;
	created_at = json_get(data_before, "created_at");
	parts = json_object_new_array();
	json_object_array_add(parts, context_part(r, created_at));
	data = json_object_new_object();
	json_object_object_add(data, "created_at", json_object_get(created_at));
	json_object_object_add(data, "parts", parts);
	record = json_object_new_object();
	json_object_object_add(record, "type", json_object_new_string(event_type_find("ModelRequest", 12)->name));
	json_object_object_add(record, "data", data);
	made = event_of(record);
	json_object_put(record);
	return made;
}

/* Behind the last event that is of the user's side. */
static size_t
end_of_user(const struct llm_request *r)
{
	size_t i = r->events_n;

	while (i > 0 && (r->events[i - 1]->type->flags & (EV_REQUEST | EV_RESULTS | EV_RESULT | EV_SUMMARY)) == 0)
		i--;
	return i > 0 ? i : r->events_n;
}

int
context_place(struct placed *p, const struct llm_request *r, struct err *e)
{
	size_t end = end_of_user(r), extra;
	struct event *last = end > 0 ? r->events[end - 1] : NULL;
	bool in_request = last != NULL && (last->type->flags & EV_REQUEST) != 0;

	*p = (struct placed){ .request = *r };
	p->request.stable_n = r->events_n;
	if (r->context_n == 0)
		return 0;
	p->made = in_request ? with_context(r, last, e) : context_alone(r, last, e);
	if (p->made == NULL)
		return -1;
	extra = in_request ? 0 : 1;
	p->events = xcalloc(r->events_n + 1, sizeof(p->events[0]));
	memcpy(p->events, r->events, end * sizeof(p->events[0]));
	memcpy(p->events + end + extra, r->events + end, (r->events_n - end) * sizeof(p->events[0]));
	p->events[end + extra - 1] = p->made;
	p->request.events = p->events;
	p->request.events_n = r->events_n + extra;
	p->request.stable_n = end + extra - 1;
	p->request.context = NULL;
	p->request.context_n = 0;
	return 0;
}

void
context_release(struct placed *p)
{
	event_free(p->made);
	free(p->events);
	*p = (struct placed){ .made = NULL };
}

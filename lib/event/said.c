#include "event/said.h"

#include <string.h>

struct said {
	said_fn *fn;
	void *arg;
};

static size_t
length(struct json_object *array)
{
	return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* A phrase may go on from one part to the next. */
static void
join(struct buf *out, const char *text, size_t len)
{
	if (out->len > 0 && len > 0 && !is_blank(out->data[out->len - 1]) && !is_blank(text[0]))
		buf_addch(out, ' ');
	buf_add(out, text, len);
}

static void
join_parts(struct buf *out, struct json_object *parts)
{
	struct json_object *part, *value;
	struct buf json = BUF_INIT;
	const char *text;
	size_t i, len;

	for (i = 0; i < length(parts); i++) {
		part = json_object_array_get_idx(parts, i);
		text = json_get_text(part, "content", &len);
		value = json_get(part, "data");
		if (text == NULL && value != NULL && json_get(part, "media_type") == NULL) {
			buf_reset(&json);
			json_write(&json, value, JSON_COMPACT);
			text = json.data;
			len = json.len;
		}
		if (text != NULL)
			join(out, text, len);
	}
	buf_release(&json);
}

/* Arguments are JSON in a string: a model may have escaped what it wrote there, too. */
static void
say_call(const struct said *s, struct json_object *call)
{
	const char *name = json_get_text(call, "name", NULL), *arguments;
	struct json_object *parsed = NULL;
	struct buf text = BUF_INIT;
	size_t len = 0;

	arguments = json_get_text(call, "arguments", &len);
	buf_addf(&text, "%s(", name ? name : "");
	if (arguments != NULL && memchr(arguments, '\\', len) != NULL && json_parse(&parsed, arguments, len, NULL) == 0 && parsed != NULL)
		json_write(&text, parsed, JSON_COMPACT);
	else if (arguments != NULL)
		buf_add(&text, arguments, len);
	buf_addch(&text, ')');
	s->fn(s->arg, "call", NULL, text.data, text.len);
	json_object_put(parsed);
	buf_release(&text);
}

static void
say_result(const struct said *s, struct json_object *result)
{
	struct buf text = BUF_INIT;
	const char *message;
	size_t len;

	join_parts(&text, json_get(json_get(json_get(result, "result"), "data"), "parts"));
	message = json_get_text(json_get(result, "error"), "message", &len);
	if (message != NULL && text.len == 0)
		buf_add(&text, message, len);
	s->fn(s->arg, "result", json_get_text(result, "parent_id", NULL), text.data, text.len);
	buf_release(&text);
}

static void
say_text(const struct said *s, const char *who, struct json_object *data, const char *key)
{
	size_t len;
	const char *text = json_get_text(data, key, &len);

	if (text != NULL)
		s->fn(s->arg, who, NULL, text, len);
}

static void
say_request(const struct said *s, struct json_object *data)
{
	struct buf text = BUF_INIT;

	join_parts(&text, json_get(data, "parts"));
	s->fn(s->arg, "user", NULL, text.data, text.len);
	buf_release(&text);
}

static void
say_response(const struct said *s, struct json_object *data)
{
	struct json_object *calls = json_get(json_get(data, "tool_calls"), "calls");
	size_t i;

	say_text(s, "assistant", json_get(data, "message"), "content");
	for (i = 0; i < length(calls); i++)
		say_call(s, json_object_array_get_idx(calls, i));
}

/* The first of its texts that has something to say. */
static void
say_other(const struct said *s, struct event *ev, struct json_object *data)
{
	static const char *const keys[] = { "content", "summary", "objective", "message", "reason", "text" };
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (json_get_text(data, keys[i], NULL) != NULL) {
			say_text(s, ev->type->flags & EV_UNKNOWN ? "event" : ev->type->last, data, keys[i]);
			return;
		}
}

int
event_said(struct event *ev, said_fn *fn, void *arg, struct err *e)
{
	const struct said s = { fn, arg };
	unsigned flags = ev->type->flags;
	struct json_object *data = event_data(ev, e), *results;
	size_t i;

	if (data == NULL)
		return -1;
	if (flags & EV_REQUEST) {
		say_request(&s, data);
	} else if (flags & EV_RESPONSE) {
		say_response(&s, data);
	} else if (flags & EV_BUILTIN_CALL) {
		say_call(&s, data);
	} else if (flags & (EV_CALLS | EV_CALL | EV_USAGE)) {
		return 0;	/* the response has said it, or there is nothing said */
	} else if (flags & EV_RESULTS) {
		results = json_get(data, "results");
		for (i = 0; i < length(results); i++)
			say_result(&s, json_object_array_get_idx(results, i));
	} else if (flags & EV_RESULT) {
		say_result(&s, data);
	} else if (flags & EV_ALERT) {
		say_text(&s, "alert", data, "message");
	} else if (flags & EV_HALT) {
		say_text(&s, "halt", data, "reason");
	} else if (flags & EV_SUMMARY) {
		say_text(&s, "summary", data, "summary");
	} else {
		say_other(&s, ev, data);
	}
	return 0;
}

double
event_time(struct json_object *data)
{
	struct json_object *created = json_get(data, "created_at");
	double at = json_object_is_type(created, json_type_double) || json_object_is_type(created, json_type_int) ?
	    json_object_get_double(created) : -1;

	return at >= 0 && at < 1e11 ? at : -1;
}

/*
 * Python's text of a whole event, as AG2's classes define it: the class with its fields in the order of the record, the
 * time left out, long strings of an event cut short.
 */
#include "event/render.h"
#include "event/repr.h"

#include "base/base64.h"
#include "base/utf8.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#define FIELD_MAX 80	/* code points of a string's or bytes' repr that are shown of an event's field */

struct text_view {
	const char *data;
	size_t len;
};

/* A string member; its data is NULL when there is none. */
static struct text_view
member(struct json_object *obj, const char *key)
{
	struct text_view t = { NULL, 0 };

	t.data = json_get_text(obj, key, &t.len);
	return t;
}

static const char *
last_component(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot != NULL ? dot + 1 : name;
}

const struct event_type *
nested_type(struct json_object *value)
{
	struct text_view name = member(value, "__event__");
	const struct event_type *type = name.data != NULL ? event_type_find(name.data, name.len) : NULL;

	return type == NULL || type->flags & (EV_UNKNOWN | EV_PROMPT) ? NULL : type;
}

/* text (a repr) with its end cut off when it is long; count is the length of what it shows. */
static void
add_cut(struct buf *out, const struct buf *text, size_t count)
{
	size_t i = 0, points = 0;

	while (i < text->len && points < FIELD_MAX) {
		i += utf8_decode(text->data + i, text->len - i, NULL);
		points++;
	}
	buf_add(out, text->data, i);
	if (i < text->len)
		buf_addf(out, "...%c (len=%zu)", text->data[text->len - 1], count);
}

/* The value of an event's field. */
static void
add_field_value(struct buf *out, struct json_object *value)
{
	struct buf text = BUF_INIT, bytes = BUF_INIT;
	struct text_view base64 = member(value, "__bytes__");

	if (json_object_is_type(value, json_type_string)) {
		size_t len = (size_t)json_object_get_string_len(value);

		repr_text(&text, json_object_get_string(value), len);
		add_cut(out, &text, utf8_count(json_object_get_string(value), len));
	} else if (base64.data != NULL) {
		base64_decode(&bytes, base64.data, base64.len);
		repr_bytes(&text, bytes.data, bytes.len);
		add_cut(out, &text, bytes.len);
	} else {
		repr_value(out, value);
	}
	buf_release(&bytes);
	buf_release(&text);
}

static void
add_enum(struct buf *out, const char *class, struct json_object *value, bool whole)
{
	const char *name = json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";

	buf_addf(out, whole ? "<%s." : "%s.", class);
	for (; *name != '\0'; name++)
		buf_addch(out, isalnum((unsigned char)*name) ? (char)toupper((unsigned char)*name) : '_');
	if (!whole)
		return;
	buf_adds(out, ": ");
	repr_value(out, value);
	buf_addch(out, '>');
}

/* A part's kind; logs of older versions have its bare name. */
static bool
is_kind(const char *key, struct json_object *value)
{
	static const char *const kinds[] = { "binary", "image", "audio", "document", "video" };
	size_t i;

	if (strcmp(key, "kind") != 0 || !json_object_is_type(value, json_type_string))
		return false;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(json_object_get_string(value), kinds[i]) == 0)
			return true;
	return false;
}

/* Fields that AG2's classes keep out of their repr. */
static bool
is_hidden(const struct event_type *type, const char *key)
{
	if (strcmp(key, "created_at") == 0 || key[0] == '_')
		return true;
	if (strcmp(key, "metadata") == 0)
		return (type->flags & EV_INPUT_PART) != 0;
	if (strcmp(key, "item") == 0)
		return (type->flags & EV_ANCHOR) != 0;
	return strcmp(key, "proto_bytes") == 0 && (type->flags & EV_TURN_ITEM) != 0;
}

static void
add_fields(struct buf *out, const struct event_type *type, struct json_object *data)
{
	bool first = true;

	json_object_object_foreach(data, key, value) {
		if (is_hidden(type, key))
			continue;
		buf_addf(out, "%s%s=", first ? "" : ", ", key);
		if (type->flags & EV_INPUT_PART && is_kind(key, value))
			add_enum(out, "BinaryType", value, true);
		else
			add_field_value(out, value);
		first = false;
	}
}

/* Calls and results show ids and names as they are. */
static void
add_call(struct buf *out, struct json_object *data)
{
	struct json_object *arguments = json_get(data, "arguments");

	buf_adds(out, "id=");
	str_value(out, json_get(data, "id"));
	buf_adds(out, ", name='");
	str_value(out, json_get(data, "name"));
	buf_adds(out, "'");
	if (arguments == NULL || (json_object_is_type(arguments, json_type_string) && json_object_get_string_len(arguments) == 0))
		return;
	buf_adds(out, ", arguments=");
	add_field_value(out, arguments);
}

static void
add_result(struct buf *out, struct json_object *data)
{
	buf_adds(out, "parent_id=");
	str_value(out, json_get(data, "parent_id"));
	buf_adds(out, ", name='");
	str_value(out, json_get(data, "name"));
	buf_adds(out, "', result=");
	str_value(out, json_get(data, "result"));
}

static size_t
length_of(struct json_object *value)
{
	if (json_object_is_type(value, json_type_array))
		return json_object_array_length(value);
	return json_object_is_type(value, json_type_object) ? (size_t)json_object_object_length(value) : 0;
}

/* Whether any count of a usage is neither missing nor 0. */
static bool
has_usage(struct json_object *usage)
{
	struct json_object *data = json_get(usage, "data");
	bool any = false;

	if (!json_object_is_type(data, json_type_object))
		return false;
	json_object_object_foreach(data, key, value) {
		(void)key;
		any |= value != NULL && json_object_get_double(value) != 0;
	}
	return any;
}

static void
add_response(struct buf *out, struct json_object *data)
{
	struct json_object *message = json_get(data, "message"), *calls = json_get(data, "tool_calls");

	buf_adds(out, "content=");
	str_value(out, json_get(message, "content"));
	if (length_of(json_get(message, "metadata")) > 0) {
		buf_adds(out, ", metadata=");
		repr_value(out, json_get(message, "metadata"));
	}
	if (length_of(json_get(calls, "calls")) > 0) {
		buf_adds(out, ", tool_calls=");
		repr_value(out, calls);
	}
	if (has_usage(json_get(data, "usage"))) {
		buf_adds(out, ", usage=");
		repr_value(out, json_get(data, "usage"));
	}
	if (length_of(json_get(data, "files")) > 0)
		buf_addf(out, ", files=%zu", length_of(json_get(data, "files")));
}

static void
add_event(struct buf *out, const struct event_type *type, struct json_object *data)
{
	buf_addf(out, "%s(", type->last);
	if (type->flags & EV_RESPONSE)
		add_response(out, data);
	else if (type->flags & EV_CALL)
		add_call(out, data);
	else if (type->flags & EV_RESULT)
		add_result(out, data);
	else
		add_fields(out, type, data);
	buf_addch(out, ')');
}

/* A dataclass or a pydantic model: all fields, nothing cut. */
static void
add_class(struct buf *out, const char *name, struct json_object *data)
{
	bool first = true;

	buf_addf(out, "%s(", last_component(name));
	if (json_object_is_type(data, json_type_object)) {
		json_object_object_foreach(data, key, value) {
			buf_addf(out, "%s%s=", first ? "" : ", ", key);
			repr_value(out, value);
			first = false;
		}
	}
	buf_addch(out, ')');
}

/* What a marked object stands for; false when it is a plain dict. whole: its repr, else its str. */
static bool
add_marked(struct buf *out, struct json_object *value, bool whole)
{
	const struct event_type *type = nested_type(value);
	struct text_view t;
	struct buf bytes = BUF_INIT;

	if (type != NULL) {
		add_event(out, type, value);
	} else if ((t = member(value, "__dataclass__")).data != NULL || (t = member(value, "__pydantic__")).data != NULL) {
		add_class(out, t.data, json_get(value, "data"));
	} else if ((t = member(value, "__enum__")).data != NULL) {
		add_enum(out, last_component(t.data), json_get(value, "value"), whole);
	} else if ((t = member(value, "__bytes__")).data != NULL) {
		base64_decode(&bytes, t.data, t.len);
		repr_bytes(out, bytes.data, bytes.len);
		buf_release(&bytes);
	} else if ((t = member(value, "__uuid__")).data != NULL) {
		buf_addf(out, whole ? "UUID('%s')" : "%s", t.data);
	} else if ((t = member(value, "__exception__")).data != NULL) {
		struct text_view message = member(value, "message");

		if (!whole) {
			buf_add(out, message.data, message.len);
		} else {
			buf_addf(out, "%s(", last_component(t.data));
			repr_text(out, message.data, message.len);
			buf_addch(out, ')');
		}
	} else {
		return false;
	}
	return true;
}

static void
add_list(struct buf *out, struct json_object *list)
{
	size_t i, n = json_object_array_length(list);

	buf_addch(out, '[');
	for (i = 0; i < n; i++) {
		if (i > 0)
			buf_adds(out, ", ");
		repr_value(out, json_object_array_get_idx(list, i));
	}
	buf_addch(out, ']');
}

static void
add_dict(struct buf *out, struct json_object *dict)
{
	bool first = true;

	buf_addch(out, '{');
	json_object_object_foreach(dict, key, value) {
		if (!first)
			buf_adds(out, ", ");
		repr_text(out, key, strlen(key));
		buf_adds(out, ": ");
		repr_value(out, value);
		first = false;
	}
	buf_addch(out, '}');
}

void
repr_value(struct buf *out, struct json_object *value)
{
	if (json_object_is_type(value, json_type_array)) {
		add_list(out, value);
	} else if (json_object_is_type(value, json_type_object)) {
		if (!add_marked(out, value, true))
			add_dict(out, value);
	} else {
		json_write_repr(out, value);
	}
}

void
str_value(struct buf *out, struct json_object *value)
{
	if (json_object_is_type(value, json_type_string))
		buf_add(out, json_object_get_string(value), (size_t)json_object_get_string_len(value));
	else if (!json_object_is_type(value, json_type_object) || !add_marked(out, value, false))
		repr_value(out, value);
}

int
event_repr(struct buf *out, struct event *ev, struct err *e)
{
	struct json_object *data = event_data(ev, e), *raw;

	if (data == NULL)
		return -1;
	raw = json_get(ev->parsed, "data");
	if ((ev->type->flags & EV_UNKNOWN) == 0 && (raw == NULL || raw == data)) {
		add_event(out, ev->type, data);
		return 0;
	}
	/* AG2 keeps such a record as it is, markers included */
	buf_adds(out, "UnknownEvent(type_name=");
	add_field_value(out, json_get(ev->parsed, "type"));
	buf_adds(out, ", data=");
	json_write_repr(out, raw != NULL ? raw : data);
	buf_addch(out, ')');
	return 0;
}

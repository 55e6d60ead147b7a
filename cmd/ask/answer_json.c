#include "answer_json.h"

static struct json_object *calls, *usage, *last;	/* last: the data of the last response */

static struct json_object *
member(struct json_object *obj, const char *key)
{
	return json_object_get(json_get(obj, key));
}

/* What every model call used, added up; a count that none of them told is left out. */
static void
note_usage(struct json_object *data)
{
	struct json_object *counts = json_get(json_get(data, "usage"), "data"), *sum;

	if (!json_object_is_type(counts, json_type_object))
		return;
	if (usage == NULL)
		usage = json_object_new_object();
	json_object_object_foreach(counts, key, value) {
		if (value == NULL)
			continue;
		sum = json_get(usage, key);
		json_object_object_add(usage, key, json_object_new_int64((sum != NULL ? json_object_get_int64(sum) : 0) + json_object_get_int64(value)));
	}
}

static void
note_call(struct json_object *data)
{
	struct json_object *call = json_object_new_object(), *arguments = NULL;
	size_t len = 0;
	const char *text = json_get_text(data, "arguments", &len);

	if (calls == NULL)
		calls = json_object_new_array();
	if (text == NULL || json_parse(&arguments, text, len, NULL) < 0)
		arguments = member(data, "arguments");
	json_object_object_add(call, "id", member(data, "id"));
	json_object_object_add(call, "name", member(data, "name"));
	json_object_object_add(call, "arguments", arguments);
	json_object_array_add(calls, call);
}

static void
note_result(struct json_object *data, bool failed)
{
	struct json_object *parts = json_get(json_get(json_get(data, "result"), "data"), "parts"), *call;
	const char *id = json_get_text(data, "parent_id", NULL), *its;
	size_t i = calls != NULL ? json_object_array_length(calls) : 0;

	while (id != NULL && i-- > 0) {
		call = json_object_array_get_idx(calls, i);
		its = json_get_text(call, "id", NULL);
		if (its == NULL || strcmp(its, id) != 0)
			continue;
		if (json_object_is_type(parts, json_type_array) && json_object_array_length(parts) > 0)
			json_object_object_add(call, failed ? "error" : "result", member(json_object_array_get_idx(parts, 0), "content"));
		return;
	}
}

void
json_note(const struct event *ev, struct json_object *data)
{
	unsigned flags = ev->type->flags;

	if (flags & EV_USAGE) {
		note_usage(data);
	} else if (flags & EV_RESPONSE) {
		json_object_put(last);
		last = json_object_get(data);
	} else if ((flags & EV_CALL) && !(flags & EV_BUILTIN_CALL)) {
		note_call(data);
	} else if (flags & EV_RESULT) {
		note_result(data, (flags & EV_ERROR_RESULT) != 0);
	}
}

/* What the last response holds beside text: the bytes in base64. */
static struct json_object *
files(void)
{
	struct json_object *list = json_object_new_array(), *all = json_get(last, "files"), *data, *file;
	size_t i;

	for (i = 0; i < json_count(all); i++) {
		data = json_get(json_object_array_get_idx(all, i), "data");
		file = json_object_new_object();
		json_object_object_add(file, "media_type", member(json_get(data, "metadata"), "media_type"));
		json_object_object_add(file, "data", member(json_get(data, "data"), "__bytes__"));
		json_object_array_add(list, file);
	}
	return list;
}

void
json_tell(struct buf *out, const struct buf *answer, const char *stream)
{
	struct json_object *all = json_object_new_object();

	json_object_object_add(all, "text", json_object_new_string_len(answer->data, (int)answer->len));
	json_object_object_add(all, "stop", member(last, "finish_reason"));
	json_object_object_add(all, "usage", usage);
	json_object_object_add(all, "calls", calls != NULL ? calls : json_object_new_array());
	json_object_object_add(all, "files", files());
	json_object_object_add(all, "model", member(last, "model"));
	json_object_object_add(all, "provider", member(last, "provider"));
	json_object_object_add(all, "stream", stream != NULL ? json_object_new_string(stream) : NULL);
	json_write(out, all, JSON_COMPACT);
	buf_addch(out, '\n');
	json_object_put(all);
	json_object_put(last);
	calls = usage = last = NULL;
}

#include "llm/cassette_reply.h"

#include "base/alloc.h"

/* ---- playing ---- */

static int
play_text(struct answer *a, struct json_object *text, const struct llm_sink *sink, struct err *e)
{
	size_t i, n;
	struct json_object *piece;

	if (json_object_is_type(text, json_type_string))
		return answer_text(a, sink, json_object_get_string(text), (size_t)json_object_get_string_len(text), e);
	n = json_object_is_type(text, json_type_array) ? json_object_array_length(text) : 0;
	for (i = 0; i < n; i++) {
		piece = json_object_array_get_idx(text, i);
		if (!json_object_is_type(piece, json_type_string))
			return err_set(e, ERR_DATA, "the reply's text is neither a string nor an array of strings");
		if (play_text(a, piece, sink, e) < 0)
			return -1;
	}
	return 0;
}

static void
play_extras(struct answer_call *c, struct json_object *v)
{
	struct json_object *vendor = json_get(v, "vendor_metadata");
	const char *signature = json_get_text(v, "thought_signature", NULL);
	struct buf text = BUF_INIT;

	if (json_object_is_type(vendor, json_type_object) && c->vendor_metadata == NULL) {
		json_write(&text, vendor, JSON_PYTHON);
		c->vendor_metadata = buf_detach(&text, NULL);
	}
	if (signature != NULL && c->signature == NULL)
		c->signature = xstrdup(signature);
}

static int
play_calls(struct answer *a, struct json_object *calls, struct err *e)
{
	size_t i, n = json_object_is_type(calls, json_type_array) ? json_object_array_length(calls) : 0;
	struct json_object *v, *arguments;
	struct answer_call *c;

	for (i = 0; i < n; i++) {
		v = json_object_array_get_idx(calls, i);
		c = answer_call(a, (long)i, json_get_text(v, "id", NULL), json_get_text(v, "name", NULL), e);
		if (c == NULL)
			return -1;
		arguments = json_get(v, "arguments");
		if (json_object_is_type(arguments, json_type_string))
			buf_add(&c->arguments, json_object_get_string(arguments), (size_t)json_object_get_string_len(arguments));
		else if (arguments != NULL)
			json_write(&c->arguments, arguments, JSON_COMPACT);
		play_extras(c, v);
	}
	return 0;
}

static void
play_usage(struct answer *a, struct json_object *u)
{
	if (!json_object_is_type(u, json_type_object))
		return;
	a->has_usage = true;
	a->usage = usage_of(u);
}

static int
play_events(struct llm_reply *reply, struct json_object *events, const char *model, struct err *e)
{
	struct event ev;
	struct json_object *v;
	struct buf line = BUF_INIT;
	size_t i;
	int rc = 0;

	for (i = 0; rc == 0 && i < json_object_array_length(events); i++) {
		v = json_object_array_get_idx(events, i);
		buf_reset(&line);
		if (json_object_is_type(v, json_type_string))
			buf_add(&line, json_object_get_string(v), (size_t)json_object_get_string_len(v));
		else
			json_write(&line, v, JSON_PYTHON);
		rc = event_view(&ev, line.data, line.len, e);
		if (rc == 0)
			event_list_add(&reply->events, event_dup(&ev));
	}
	buf_release(&line);
	return rc == 0 ? reply_from_events(reply, model, e) : -1;
}

/* The provider's own events, lines or objects. */
static int
play_replay(struct answer *a, struct json_object *lines, struct err *e)
{
	size_t i, n = json_object_is_type(lines, json_type_array) ? json_object_array_length(lines) : 0;
	struct json_object *v;
	struct buf line = BUF_INIT;
	struct event ev;

	for (i = 0; i < n; i++) {
		v = json_object_array_get_idx(lines, i);
		if (json_object_is_type(v, json_type_string))
			buf_add(&line, json_object_get_string(v), (size_t)json_object_get_string_len(v));
		else
			json_write(&line, v, JSON_PYTHON);
		if (event_view(&ev, line.data, line.len, e) < 0) {
			buf_release(&line);
			return -1;
		}
		answer_replay(a, &line);
	}
	return 0;
}

static int
play_files(struct answer *a, struct json_object *files, struct err *e)
{
	struct json_object *file, *metadata;
	const char *bytes;
	size_t i, len;
	int rc = 0;

	for (i = 0; rc == 0 && i < json_count(files); i++) {
		file = json_object_array_get_idx(files, i);
		metadata = json_get(file, "metadata");
		bytes = json_get_text(file, "data", &len);
		rc = answer_file(a, bytes != NULL ? bytes : "", bytes != NULL ? len : 0, json_object_is_type(metadata, json_type_object) ?
		    json_object_get(metadata) : json_object_new_object(), e);
	}
	return rc;
}

static int
play_error(struct json_object *reply, struct err *e)
{
	int status = json_object_get_int(json_get(reply, "status"));
	const char *message = json_get_text(reply, "error", NULL);

	return err_set(e, status == 75 ? ERR_BUSY : status == 77 ? ERR_PERM : ERR_UNAVAIL, "%s", message != NULL ? message : "an error");
}

static char *
name_or(struct json_object *obj, const char *key, const char *otherwise)
{
	const char *text = json_get_text(obj, key, NULL);

	return xstrdup(text != NULL ? text : otherwise);
}

static int
play(struct answer *a, struct json_object *v, const struct llm_request *r, const struct llm_sink *sink,
    struct llm_reply *reply, struct err *e)
{
	static const struct llm_sink nowhere;
	struct json_object *events = json_get(v, "events");
	const char *provider;
	bool given;

	if (play_text(a, json_get(v, "text"), r->stream ? sink : &nowhere, e) < 0)
		return -1;
	if (json_get(v, "error") != NULL)
		return play_error(v, e);
	given = r->stream && a->text.len > 0;
	if (json_object_is_type(events, json_type_array)) {
		if (play_events(reply, events, r->config->model, e) < 0)
			return -1;
	} else {
		if (play_calls(a, json_get(v, "calls"), e) < 0)
			return -1;
		play_usage(a, json_get(v, "usage"));
		if (play_replay(a, json_get(v, "replay"), e) < 0 || play_files(a, json_get(v, "files"), e) < 0)
			return -1;
		a->model = name_or(v, "model", r->config->model);
		a->finish_reason = name_or(v, "finish_reason", a->calls_n > 0 ? "tool_calls" : "stop");
		provider = json_get_text(v, "provider", NULL);
		if (answer_finish(a, provider != NULL ? provider : r->config->provider, NULL, reply, e) < 0)
			return -1;
	}
	return given ? 0 : sink_text(sink, reply->message, reply->message_len, e);
}

int
cassette_play_reply(struct json_object *v, const struct llm_request *r, const struct llm_sink *sink, struct llm_reply *reply, struct err *e)
{
	struct answer a = ANSWER_INIT;
	int rc = play(&a, v, r, sink, reply, e);

	answer_release(&a);
	return rc;
}

/* ---- recording ---- */

static void
record_text(struct json_object *v, const char *key, const char *text)
{
	if (text != NULL)
		json_object_object_add(v, key, json_object_new_string(text));
}

static struct json_object *
record_calls(const struct llm_reply *reply)
{
	struct json_object *calls = json_object_new_array(), *c, *vendor;
	size_t i;

	for (i = 0; i < reply->calls_n; i++) {
		c = json_object_new_object();
		record_text(c, "id", reply->calls[i].id);
		record_text(c, "name", reply->calls[i].name);
		record_text(c, "arguments", reply->calls[i].arguments);
		if (reply->calls[i].vendor_metadata != NULL && json_parse(&vendor, reply->calls[i].vendor_metadata,
		    strlen(reply->calls[i].vendor_metadata), NULL) == 0)
			json_object_object_add(c, "vendor_metadata", vendor);
		record_text(c, "thought_signature", reply->calls[i].signature);
		json_object_array_add(calls, c);
	}
	return calls;
}

static void
record_count(struct json_object *v, const char *key, double n)
{
	if (n >= 0)
		json_object_object_add(v, key, (double)(int64_t)n == n ? json_object_new_int64((int64_t)n) : json_object_new_double(n));
}

static struct json_object *
record_usage(const struct usage *u)
{
	struct json_object *v = json_object_new_object();

	record_count(v, "prompt_tokens", u->prompt);
	record_count(v, "completion_tokens", u->completion);
	record_count(v, "total_tokens", u->total);
	record_count(v, "cache_read_input_tokens", u->cache_read);
	record_count(v, "cache_creation_input_tokens", u->cache_creation);
	record_count(v, "thinking_tokens", u->thinking);
	return v;
}

static struct json_object *
record_events(const struct event_list *l)
{
	struct json_object *events = json_object_new_array();
	size_t i;

	for (i = 0; i < l->n; i++)
		json_object_array_add(events, json_object_new_string_len(l->items[i]->line, (int)l->items[i]->len));
	return events;
}

static struct json_object *
record_files(struct json_object *files)
{
	struct json_object *list = json_object_new_array(), *data, *v;
	size_t i;

	for (i = 0; i < json_count(files); i++) {
		data = json_get(json_object_array_get_idx(files, i), "data");
		v = json_object_new_object();
		record_text(v, "data", json_get_text(json_get(data, "data"), "__bytes__", NULL));
		json_object_object_add(v, "metadata", json_object_get(json_get(data, "metadata")));
		json_object_array_add(list, v);
	}
	return list;
}

struct json_object *
cassette_record_reply(struct json_object *pieces, const struct llm_reply *reply)
{
	struct json_object *v = json_object_new_object();

	json_object_object_add(v, "text", json_object_get(pieces));
	if (reply->events.n > 0) {
		json_object_object_add(v, "events", record_events(&reply->events));
		return v;
	}
	if (reply->calls_n > 0)
		json_object_object_add(v, "calls", record_calls(reply));
	if (reply->has_usage)
		json_object_object_add(v, "usage", record_usage(&reply->usage));
	if (reply->files != NULL)
		json_object_object_add(v, "files", record_files(reply->files));
	if (reply->replay.n > 0)
		json_object_object_add(v, "replay", record_events(&reply->replay));
	record_text(v, "model", reply->model);
	record_text(v, "provider", reply->provider);
	record_text(v, "finish_reason", reply->finish_reason);
	return v;
}

/*
 * OpenAI Chat Completions, and the servers that speak it. Source: OpenAI's API reference (chat/create, chat/streaming); what
 * servers of that kind send beside it is noted where it is handled.
 */
#include "base/alloc.h"
#include "llm/reading.h"

#include <stdlib.h>

#define NAME "openai"

/* ---- the request ---- */

struct body {
	const struct llm_request *r;
	struct buf *out;
	bool first;		/* no message yet */
};

static void
open_message(struct body *b, const char *role)
{
	buf_addf(b->out, "%s{\"role\":\"%s\"", b->first ? "" : ",", role);
	b->first = false;
}

static void
text_message(struct body *b, const char *role, const char *text, size_t len)
{
	open_message(b, role);
	buf_adds(b->out, ",");
	put_member(b->out, "content", text, len);
	buf_adds(b->out, "}");
}

static void
system_message(struct body *b)
{
	const struct llm_request *r = b->r;
	struct buf text = BUF_INIT;

	put_prompts(&text, r);
	if (r->prompts_n > 0 && (text.len > 0 || r->as_ag2))
		text_message(b, "system", text.data, text.len);
	buf_release(&text);
}

/* What a text part looks like in an array of parts. */
static void
text_item(struct buf *out, const struct part *p)
{
	buf_adds(out, "{\"type\":\"text\",");
	put_member(out, "text", p->text.data, p->text.len);
	buf_adds(out, "}");
}

static void
image_item(struct buf *out, const struct part *p)
{
	const char *url = part_member(p, "url"), *detail = json_get_text(json_get(p->value, "vendor_metadata"), "detail", NULL);

	buf_adds(out, "{\"type\":\"image_url\",\"image_url\":{\"url\":");
	if (p->form == PART_URL)
		put_string(out, url, strlen(url));
	else
		put_data_url(out, p);
	if (detail != NULL) {
		buf_adds(out, ",");
		put_member(out, "detail", detail, strlen(detail));
	}
	buf_adds(out, "}}");
}

/* The API's audio formats have their own names: mpeg is mp3. */
static struct text
audio_format(const struct part *p)
{
	struct text format = part_suffix(p);

	return format.len == 4 && memcmp(format.data, "mpeg", 4) == 0 ? (struct text){ "mp3", 3 } : format;
}

static void
audio_item(struct buf *out, const struct part *p)
{
	struct text format = audio_format(p);
	const char *data = part_base64(p);

	buf_adds(out, "{\"type\":\"input_audio\",\"input_audio\":{");
	put_member(out, "data", data, strlen(data));
	buf_adds(out, ",");
	put_member(out, "format", format.data, format.len);
	buf_adds(out, "}}");
}

static void
file_item(struct buf *out, const struct part *p)
{
	const char *name = json_get_text(json_get(p->value, "vendor_metadata"), "filename", NULL), *id = part_member(p, "file_id");
	struct text suffix;
	struct buf made = BUF_INIT;

	buf_adds(out, "{\"type\":\"file\",\"file\":{");
	if (p->form == PART_FILE) {
		put_member(out, "file_id", id, strlen(id));
	} else {
		suffix = part_suffix(p);
		buf_addf(&made, "file.%.*s", (int)suffix.len, suffix.data);
		buf_adds(out, "\"file_data\":");
		put_data_url(out, p);
		buf_adds(out, ",");
		put_member(out, "filename", name != NULL ? name : made.data, strlen(name != NULL ? name : made.data));
	}
	buf_adds(out, "}}");
	buf_release(&made);
}

static int
user_item(struct buf *out, const struct part *p, struct err *e)
{
	bool binary = p->form == PART_BINARY;

	if (p->form == PART_TEXT)
		text_item(out, p);
	else if (p->form == PART_FILE || (binary && strcmp(p->kind, "document") == 0))
		file_item(out, p);
	else if (strcmp(p->kind, "image") == 0)
		image_item(out, p);
	else if (binary && strcmp(p->kind, "audio") == 0)
		audio_item(out, p);
	else
		return part_refuse(p, NAME, e);
	return 0;
}

static int
tool_item(struct buf *out, const struct part *p, struct err *e)
{
	if (p->form != PART_TEXT)
		return part_refuse(p, NAME " as the result of a tool", e);
	text_item(out, p);
	return 0;
}

static int
content_item(const struct body *b, struct json_object *value, bool alone, int (*item)(struct buf *, const struct part *, struct err *), struct err *e)
{
	struct buf *out = b->out;
	struct part p;
	int rc = part_read(&p, value, e);

	if (rc == 0 && !b->r->as_ag2)
		part_as_text(&p);	/* its documents are PDF only */
	if (rc == 0 && alone && p.form == PART_TEXT) {
		put_string(out, p.text.data, p.text.len);
	} else if (rc == 0) {
		buf_adds(out, alone ? "[" : "");
		rc = item(out, &p, e);
		buf_adds(out, alone ? "]" : "");
	}
	part_release(&p);
	return rc;
}

/* One text part is a string, anything else an array. */
static int
content(const struct body *b, struct json_object *parts, int (*item)(struct buf *, const struct part *, struct err *), struct err *e)
{
	struct buf *out = b->out;
	size_t i, n = json_object_is_type(parts, json_type_array) ? json_object_array_length(parts) : 0;

	buf_adds(out, "\"content\":");
	if (n == 1)
		return content_item(b, json_object_array_get_idx(parts, 0), true, item, e);
	buf_adds(out, "[");
	for (i = 0; i < n; i++) {
		buf_adds(out, i > 0 ? "," : "");
		if (content_item(b, json_object_array_get_idx(parts, i), false, item, e) < 0)
			return -1;
	}
	buf_adds(out, "]");
	return 0;
}

static int
request(void *arg, struct json_object *parts, struct err *e)
{
	struct body *b = arg;
	int rc;

	open_message(b, "user");
	buf_adds(b->out, ",");
	rc = content(b, parts, user_item, e);
	buf_adds(b->out, "}");
	return rc;
}

static int
summary(void *arg, const char *text, size_t len, struct err *e)
{
	text_message(arg, "user", text, len);
	return 0;
}

static void
tool_call(struct body *b, struct json_object *call)
{
	size_t id_len = 0, name_len = 0, len = 0;
	const char *id = json_get_text(call, "id", &id_len), *name = json_get_text(call, "name", &name_len);
	const char *text = json_get_text(call, "arguments", &len);
	struct buf arguments = BUF_INIT;

	arguments_add(&arguments, text != NULL ? text : "", len, b->r->as_ag2);
	buf_adds(b->out, "{");
	put_member(b->out, "id", id, id_len);
	buf_adds(b->out, ",\"type\":\"function\",\"function\":{");
	put_member(b->out, "name", name, name_len);
	buf_adds(b->out, ",");
	put_member(b->out, "arguments", arguments.data, arguments.len);
	buf_adds(b->out, "}}");
	buf_release(&arguments);
}

static int
response(void *arg, struct json_object *data, struct err *e)
{
	struct body *b = arg;
	size_t len, i, n;
	struct json_object *calls = response_calls(data, &n);
	const char *text = response_text(data, b->r->as_ag2, &len);

	if (text == NULL && n == 0)
		return 0;
	open_message(b, "assistant");
	buf_adds(b->out, ",");
	if (text != NULL)
		put_member(b->out, "content", text, len);
	else
		buf_adds(b->out, "\"content\":null");
	for (i = 0; i < n; i++) {
		buf_adds(b->out, i == 0 ? ",\"tool_calls\":[" : ",");
		tool_call(b, json_object_array_get_idx(calls, i));
	}
	buf_adds(b->out, n > 0 ? "]}" : "}");
	return 0;
}

static int
result_message(struct body *b, struct json_object *result, struct err *e)
{
	size_t len = 0, n;
	struct json_object *parts = result_parts(result, &n);
	const char *id = json_get_text(result, "parent_id", &len);
	int rc = 0;

	open_message(b, "tool");
	buf_adds(b->out, ",");
	put_member(b->out, "tool_call_id", id, len);
	buf_adds(b->out, ",");
	if (says_nothing(parts) && !b->r->as_ag2)
		put_member_str(b->out, "content", NO_OUTPUT);
	else
		rc = content(b, parts, tool_item, e);
	buf_adds(b->out, "}");
	return rc;
}

static int
results(void *arg, struct json_object *const *items, size_t n, struct err *e)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (result_message(arg, items[i], e) < 0)
			return -1;
	return 0;
}

static const struct walk walk = { .request = request, .response = response, .results = results, .summary = summary };

static void
tools(struct buf *out, const struct llm_request *r)
{
	size_t i;

	if (r->tools_n == 0 && json_get(r->config->options, "tools") == NULL)
		return;
	buf_adds(out, ",\"tools\":[");
	for (i = 0; i < r->tools_n; i++) {
		buf_adds(out, i > 0 ? "," : "");
		buf_adds(out, "{\"type\":\"function\",\"function\":{");
		put_declaration(out, &r->tools[i], "parameters");
		put_no_more_arguments(out, r->tools[i].parameters);	/* as AG2 */
		buf_adds(out, "}}");
	}
	put_option_tools(out, r, r->tools_n);
	buf_adds(out, "]");
}

/* max_tokens is deprecated and refused by newer models: max_completion_tokens is its name now. */
static int
settings(struct buf *out, const struct llm_request *r, struct err *e)
{
	static const char *const mine[] = { "model", "messages", "stream", NULL };
	struct json_object *s = json_object_new_object();

	if (r->stream) {
		setting_add(s, "stream", json_object_new_boolean(1));
		setting_add(s, "stream_options.include_usage", json_object_new_boolean(1));
	}
	settings_usual(s, r, "temperature", "max_completion_tokens");
	if (r->schema != NULL) {
		setting_add(s, "response_format.type", json_object_new_string("json_schema"));
		setting_add(s, "response_format.json_schema.name", json_object_new_string(SCHEMA_NAME));
		setting_add(s, "response_format.json_schema.schema", json_object_get(r->schema));
		setting_add(s, "response_format.json_schema.strict", json_object_new_boolean(1));
	}
	return put_settings(out, s, r, mine, e);
}

static int
openai_body(const struct llm_request *r, struct buf *out, struct err *e)
{
	struct body b = { .r = r, .out = out, .first = true };
	int rc;

	buf_adds(out, "{");
	put_member(out, "model", r->config->model, strlen(r->config->model));
	/* The messages last: what stands before them is the same in every call, so that caches of the bytes' beginning hit. */
	rc = settings(out, r, e);
	tools(out, r);
	buf_adds(out, ",\"messages\":[");
	system_message(&b);
	if (rc == 0)
		rc = walk_history(r, &walk, &b, e);
	buf_adds(out, "]}");
	return rc;
}

/* ---- the answer ---- */

static void
take_usage(struct answer *a, struct json_object *usage)
{
	if (!json_object_is_type(usage, json_type_object))
		return;
	a->has_usage = true;
	a->usage.prompt = take_count(usage, "prompt_tokens");
	a->usage.completion = take_count(usage, "completion_tokens");
	a->usage.total = take_count(usage, "total_tokens");
	a->usage.cache_read = take_count(json_get(usage, "prompt_tokens_details"), "cached_tokens");
	a->usage.thinking = take_count(json_get(usage, "completion_tokens_details"), "reasoning_tokens");
}

/* Arguments come as text; some servers give the object itself. */
static void
take_arguments(struct answer_call *c, struct json_object *function)
{
	size_t len;
	const char *text = json_get_text(function, "arguments", &len);
	struct json_object *value = json_get(function, "arguments");

	if (text != NULL)
		buf_add(&c->arguments, text, len);
	else if (json_object_is_type(value, json_type_object))
		json_write(&c->arguments, value, JSON_COMPACT);
}

static int
take_calls(struct answer *a, struct json_object *calls, struct err *e)
{
	size_t i, n = json_object_is_type(calls, json_type_array) ? json_object_array_length(calls) : 0;
	struct json_object *piece, *index, *function;
	struct answer_call *c;

	for (i = 0; i < n; i++) {
		piece = json_object_array_get_idx(calls, i);
		index = json_get(piece, "index");
		function = json_get(piece, "function");
		c = answer_call(a, json_object_is_type(index, json_type_int) ? (long)json_object_get_int64(index) : -1,
		    json_get_text(piece, "id", NULL), json_get_text(function, "name", NULL), e);
		if (c == NULL)
			return -1;
		take_arguments(c, function);
	}
	return 0;
}

/* Text, or an array of typed parts as some servers have it, of which those of type text are meant. */
static int
take_content(struct reading *rd, struct json_object *message, struct err *e)
{
	struct json_object *value = json_get(message, "content"), *item;
	size_t len, i, n = json_object_is_type(value, json_type_array) ? json_object_array_length(value) : 0;
	const char *text = json_get_text(message, "content", &len);

	if (text != NULL)
		return reading_text(rd, text, len, e);
	for (i = 0; i < n; i++) {
		item = json_object_array_get_idx(value, i);
		text = json_get_text(item, "text", &len);
		if (text != NULL && reading_text(rd, text, len, e) < 0)
			return -1;
	}
	return 0;
}

/* A message, or the piece of one. */
static int
take_message(struct reading *rd, struct json_object *message, struct err *e)
{
	size_t len;
	const char *refusal = json_get_text(message, "refusal", &len);

	if (refusal != NULL)
		buf_add(&rd->answer.refusal, refusal, len);
	if (take_calls(&rd->answer, json_get(message, "tool_calls"), e) < 0)
		return -1;
	return take_content(rd, message, e);
}

/* An object of either form: choices with `message` or `delta`; the usage may come with none, choices may be null. */
static int
frame(struct reading *rd, const char *event, struct json_object *body, bool whole, struct err *e)
{
	struct json_object *choices = json_get(body, "choices"), *choice, *index;
	size_t i, n = json_object_is_type(choices, json_type_array) ? json_object_array_length(choices) : 0;

	if (strcmp(event, "error") == 0 || json_get(body, "error") != NULL)
		return reading_error(rd, body, e);
	take_name(&rd->answer.model, body, "model");
	take_usage(&rd->answer, json_get(body, "usage"));
	for (i = 0; i < n; i++) {
		choice = json_object_array_get_idx(choices, i);
		index = json_get(choice, "index");
		if (index != NULL && json_object_get_int64(index) != 0)
			continue;
		if (json_get(choice, "error") != NULL)
			return reading_error(rd, choice, e);
		if (take_message(rd, json_get(choice, whole ? "message" : "delta"), e) < 0)
			return -1;
		take_name(&rd->answer.finish_reason, choice, "finish_reason");
	}
	rd->complete = rd->answer.finish_reason != NULL;	/* the usage may still come */
	return 0;
}

static void
address(const struct llm_request *r, struct address *a)
{
	buf_adds(&a->path, "/chat/completions");
}

static const struct api api = {
	.name = NAME,
	.base_url = "https://api.openai.com/v1",
	.address = address,
	.frame = frame,
};

static int
openai_call(const struct llm_request *r, const struct buf *body, const struct llm_sink *sink, struct llm_reply *reply, struct err *e)
{
	return api_call(&api, r, body, sink, reply, e);
}

const struct provider provider_openai = {
	.api = &api,
	.body = openai_body,
	.call = openai_call,
};

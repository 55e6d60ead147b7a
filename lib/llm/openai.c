/*
 * OpenAI Chat Completions, and the servers that speak it. Source: OpenAI's API reference (chat/create, chat/streaming); what
 * servers of that kind send beside it is noted where it is handled.
 */
#include "llm/reading.h"

#define NAME "openai"

/* ---- the request ---- */

struct body {
	const struct llm_request *r;
	struct buf *out;
};

static void
system_message(struct body *b)
{
	const struct llm_request *r = b->r;
	struct buf text = BUF_INIT;

	put_prompts(&text, r);
	if (r->prompts_n > 0 && (text.len > 0 || r->as_ag2))
		put_text_message(b->out, "system", text.data, text.len);
	buf_release(&text);
}

/* What a text part looks like in an array of parts. */
static void
text_item(struct buf *out, const struct part *p)
{
	buf_adds(out, "{\"type\":\"text\"");
	put_member(out, "text", p->text.data, p->text.len);
	buf_adds(out, "}");
}

static void
image_item(struct buf *out, const struct part *p)
{
	const char *detail = json_get_text(json_get(p->value, "vendor_metadata"), "detail", NULL);

	buf_adds(out, "{\"type\":\"image_url\",\"image_url\":{");
	put_part_url(out, "url", p);
	if (detail != NULL)
		put_member_str(out, "detail", detail);
	buf_adds(out, "}}");
}

/* The API's audio formats have their own names: mpeg is mp3. */
static void
audio_item(struct buf *out, const struct part *p)
{
	static const char *const names[][2] = { { "mpeg", "mp3" }, { "x-wav", "wav" }, { "wave", "wav" }, { "vnd.wave", "wav" } };
	const char *slash = strchr(part_member(p, "media_type"), '/');
	struct text format = part_suffix(p);
	size_t i, n = p->as_ag2 ? 1 : sizeof(names) / sizeof(names[0]);

	if (p->as_ag2 && slash != NULL)
		format = (struct text){ slash + 1, strlen(slash + 1) };
	for (i = 0; i < n; i++)
		if (format.len == strlen(names[i][0]) && memcmp(format.data, names[i][0], format.len) == 0)
			format = (struct text){ names[i][1], 3 };
	buf_adds(out, "{\"type\":\"input_audio\",\"input_audio\":{");
	put_member_str(out, "data", part_base64(p));
	put_member(out, "format", format.data, format.len);
	buf_adds(out, "}}");
}

static void
file_item(struct buf *out, const struct part *p)
{
	buf_adds(out, "{\"type\":\"file\",\"file\":{");
	if (p->form == PART_FILE) {
		put_member_str(out, "file_id", part_member(p, "file_id"));
	} else {
		put_part_url(out, "file_data", p);
		put_filename(out, p);
	}
	buf_adds(out, "}}");
}

static int
user_item(const void *b, struct buf *out, const struct part *p, struct err *e)
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
tool_item(const void *b, struct buf *out, const struct part *p, struct err *e)
{
	if (p->form != PART_TEXT)
		return part_refuse(p, NAME " as the result of a tool", e);
	text_item(out, p);
	return 0;
}

/* Its documents are PDF only. */
static int
content(struct body *b, struct json_object *parts, put_part *item, struct err *e)
{
	put_name(b->out, "content");
	return put_content(b->out, b->r, parts, b->r->as_ag2 ? CONTENT_PLAIN : CONTENT_OF_TEXT, item, b, e);
}

static int
request(void *arg, struct json_object *parts, struct err *e)
{
	struct body *b = arg;
	int rc;

	put_message(b->out, "user");
	rc = content(b, parts, user_item, e);
	buf_adds(b->out, "}");
	return rc;
}

static int
summary(void *arg, const char *text, size_t len, struct err *e)
{
	put_text_message(((struct body *)arg)->out, "user", text, len);
	return 0;
}

static void
tool_call(struct buf *out, struct json_object *call, bool as_ag2)
{
	buf_adds(out, "{");
	put_member_of(out, "id", call, "id");
	put_member_str(out, "type", "function");
	put_name(out, "function");
	buf_adds(out, "{");
	put_member_of(out, "name", call, "name");
	put_arguments_text(out, "arguments", call, as_ag2);
	buf_adds(out, "}}");
}

static int
response(void *arg, struct json_object *data, struct err *e)
{
	struct body *b = arg;
	size_t len, n;
	struct json_object *calls = response_calls(data, &n);
	const char *text = response_text(data, b->r->as_ag2, &len);

	if (text == NULL && n == 0)
		return 0;
	put_message(b->out, "assistant");
	if (text != NULL)
		put_member(b->out, "content", text, len);
	else
		buf_adds(b->out, ",\"content\":null");
	put_tool_calls(b->out, calls, tool_call, b->r->as_ag2);
	buf_adds(b->out, "}");
	return 0;
}

static int
result(void *arg, struct json_object *result, struct err *e)
{
	struct body *b = arg;
	struct json_object *parts = result_parts(result);
	int rc = 0;

	put_message(b->out, "tool");
	put_member_of(b->out, "tool_call_id", result, "parent_id");
	if (says_nothing(parts) && !b->r->as_ag2)
		put_member_str(b->out, "content", NO_OUTPUT);
	else
		rc = content(b, parts, tool_item, e);
	buf_adds(b->out, "}");
	return rc;
}

static const struct walk walk = { .request = request, .response = response, .result = result, .summary = summary };

static void
declare(struct buf *out, const struct llm_request *r, const struct llm_tool *t)
{
	buf_adds(out, "{\"type\":\"function\",\"function\":{");
	put_declaration(out, t, "parameters");
	put_no_more_arguments(out, t->parameters);	/* as AG2 */
	buf_adds(out, "}}");
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
	if (r->schema != NULL)
		shape_openai(s, r, "response_format.type", "response_format.json_schema");
	return put_settings(out, s, r, mine, e);
}

static int
openai_body(const struct llm_request *r, struct buf *out, struct err *e)
{
	struct body b = { r, out };
	int rc;

	buf_adds(out, "{");
	put_member_str(out, "model", r->config->model);
	/* The messages last: what stands before them is the same in every call, so that caches of the bytes' beginning hit. */
	rc = settings(out, r, e);
	put_tools(out, r, declare);
	put_name(out, "messages");
	buf_adds(out, "[");
	system_message(&b);
	if (rc == 0)
		rc = walk_history(r, &walk, &b, e);
	buf_adds(out, "]}");
	return rc;
}

/* ---- the answer ---- */

static const struct usage_names counts = {
	.prompt = "prompt_tokens",
	.completion = "completion_tokens",
	.total = "total_tokens",
	.cache_read = "prompt_tokens_details.cached_tokens",
	.thinking = "completion_tokens_details.reasoning_tokens",
};

/* Arguments come as text, in pieces; some servers give the object itself. */
static int
take_call(struct reading *rd, struct json_object *piece, struct err *e)
{
	struct json_object *index = json_get(piece, "index"), *function = json_get(piece, "function");
	struct answer_call *c = answer_call(&rd->answer, json_object_is_type(index, json_type_int) ? (long)json_object_get_int64(index) : -1,
	    json_get_text(piece, "id", NULL), json_get_text(function, "name", NULL), e);

	if (c == NULL)
		return -1;
	reading_arguments(rd, c, json_get(function, "arguments"));
	return 0;
}

/* The one call of a server that does not know of several. */
static int
take_old_call(struct answer *a, struct json_object *function, struct err *e)
{
	struct answer_call *c = answer_call(a, 0, NULL, json_get_text(function, "name", NULL), e);

	if (c == NULL)
		return -1;
	call_add_arguments(c, json_get(function, "arguments"));
	return 0;
}

/* Text, or an array of typed parts as some servers have it, of which those of type text are meant. */
static int
take_content(struct reading *rd, struct json_object *message, struct err *e)
{
	struct json_object *parts = json_get(message, "content");
	size_t len, i;
	const char *text = json_get_text(message, "content", &len);

	if (text != NULL)
		return reading_text(rd, text, len, e);
	for (i = 0; i < json_count(parts); i++) {
		text = json_get_text(json_object_array_get_idx(parts, i), "text", &len);
		if (text != NULL && reading_text(rd, text, len, e) < 0)
			return -1;
	}
	return 0;
}

/* A message, or the piece of one. */
static int
take_message(struct reading *rd, struct json_object *message, struct err *e)
{
	struct json_object *calls = json_get(message, "tool_calls");
	size_t len, i;
	const char *refusal = json_get_text(message, "refusal", &len), *thought;

	if (refusal != NULL)
		buf_add(&rd->answer.refusal, refusal, len);
	thought = json_get_text(message, "reasoning_content", &len);
	if (thought != NULL && len > 0)
		reading_piece(rd, NULL, thought, len);
	for (i = 0; i < json_count(calls); i++)
		if (take_call(rd, json_object_array_get_idx(calls, i), e) < 0)
			return -1;
	if (json_get(message, "function_call") != NULL && take_old_call(&rd->answer, json_get(message, "function_call"), e) < 0)
		return -1;
	return take_content(rd, message, e);
}

/* An object of either form: choices with `message` or `delta`; the usage may come with none, choices may be null. */
static int
frame(struct reading *rd, const char *event, struct json_object *body, bool whole, struct err *e)
{
	/* Of servers that end like this what they could not answer. */
	static const char *const failures[] = { "error", "abort", "network_error", "insufficient_system_resource", NULL };
	struct json_object *choices = json_get(body, "choices"), *choice;
	const char *reason;
	size_t i;

	take_name(&rd->answer.model, body, "model");
	take_usage(&rd->answer, json_get(body, "usage"), &counts);
	for (i = 0; i < json_count(choices); i++) {
		choice = json_object_array_get_idx(choices, i);
		if (take_count(choice, "index") > 0)
			continue;
		if (json_get(choice, "error") != NULL)
			return reading_error(rd, choice, e);
		if (take_message(rd, json_get(choice, whole ? "message" : "delta"), e) < 0)
			return -1;
		reason = json_get_text(choice, "finish_reason", NULL);
		if (reason != NULL && is_one_of(reason, failures))
			return err_set(e, ERR_UNAVAIL, "the model failed to answer (finish_reason %.60s)", reason);
		take_name(&rd->answer.finish_reason, choice, "finish_reason");
		rd->complete = rd->complete || (reason != NULL && *reason != '\0');	/* the usage may still come */
	}
	return 0;
}

#define PIECE(path) { .text = "choices.0.delta." path, .unread = { "obfuscation", "id", "created" }, \
	.counts = { "usage.prompt_tokens", "usage.completion_tokens", "usage.total_tokens" } }

static const struct api api = {
	.name = NAME,
	.base_url = "https://api.openai.com/v1",
	.path = "/chat/completions",
	.plain = { PIECE("content"), PIECE("tool_calls.0.function.arguments"), PIECE("reasoning_content") },
	.frame = frame,
};

const struct provider provider_openai = { .body = openai_body, .api = &api };

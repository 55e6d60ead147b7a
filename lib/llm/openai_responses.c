/*
 * OpenAI's Responses API. Source: its API reference (responses/create, responses/streaming) and its guides to reasoning and function
 * calling. Where it, the official clients and AG2 differ:
 *
 * - What is asked is never stored there (store: false), for the stream is here; reasoning then comes encrypted and goes back so. Models
 *   that do not reason refuse to be asked for it (gpt-4 and before), though a recorded request does.
 * - Functions are strict unless told not to be; ours are not (strict: false), for a strict schema has no optional arguments.
 * - Parts of one request are one message here, and one each in AG2.
 * - An image that is kept there is sent as an image where its name says that it is one; AG2 sends all that is kept there as files.
 * - Items of ours have no id and status: both mean something only for items that are stored.
 */
#include "llm/reading.h"

#include "base/alloc.h"

#include <stdio.h>

#define NAME "openai-responses"
#define SAID_BY "openai"	/* as AG2 logs it */

/* ---- the request ---- */

struct body {
	const struct llm_request *r;
	struct buf *out;
	struct json_object *reasoned;	/* ids of the reasoning items that are in already: AG2 logs one once for each summary */
};

static void
open_item(struct body *b, const char *start)
{
	put_comma(b->out);
	buf_addf(b->out, "{%s", start);
}

static void
text_item(struct buf *out, const char *text, size_t len)
{
	buf_adds(out, "{\"type\":\"input_text\"");
	put_member(out, "text", text, len);
	buf_adds(out, "}");
}

static void
image_item(struct buf *out, const struct part *p)
{
	const char *detail = json_get_text(json_get(p->value, "vendor_metadata"), "detail", NULL);

	buf_adds(out, "{\"type\":\"input_image\"");
	if (p->form == PART_FILE)
		put_member_str(out, "file_id", part_member(p, "file_id"));
	else
		put_part_url(out, "image_url", p);
	if (detail != NULL)
		put_member_str(out, "detail", detail);
	buf_adds(out, "}");
}

static void
file_item(struct buf *out, const struct part *p)
{
	buf_adds(out, "{\"type\":\"input_file\"");
	if (p->form == PART_FILE)
		put_member_str(out, "file_id", part_member(p, "file_id"));
	else
		put_part_url(out, p->form == PART_URL ? "file_url" : "file_data", p);
	if (p->form == PART_BINARY)
		put_filename(out, p);
	buf_adds(out, "}");
}

/* It reads many kinds of files, but must be told which: of bytes that may be anything it says that it does not. */
static bool
is_file(const struct part *p)
{
	if (p->form == PART_FILE || strcmp(p->kind, "document") == 0)
		return true;
	return strcmp(p->kind, "binary") == 0 &&
	    (p->as_ag2 || p->form == PART_URL || strcmp(part_member(p, "media_type"), "application/octet-stream") != 0);
}

static int
item(const void *b, struct buf *out, const struct part *p, struct err *e)
{
	if (p->form == PART_TEXT)
		text_item(out, p->text.data, p->text.len);
	else if (part_is_image(p) && (p->form != PART_FILE || !p->as_ag2))
		image_item(out, p);
	else if (is_file(p))
		file_item(out, p);
	else
		return part_refuse(p, NAME, e);
	return 0;
}

static int
part_as_ag2(void *arg, struct part *p, struct err *e)
{
	struct body *b = arg;
	int rc;

	open_item(b, "\"role\":\"user\",\"content\":[");
	rc = item(b, b->out, p, e);
	buf_adds(b->out, "]}");
	return rc;
}

static int
request(void *arg, struct json_object *parts, struct err *e)
{
	struct body *b = arg;
	int rc;

	if (b->r->as_ag2)
		return each_part(b->r, parts, part_as_ag2, b, e);
	open_item(b, "\"role\":\"user\",\"content\":");
	rc = put_content(b->out, b->r, parts, CONTENT_PLAIN, item, b, e);
	buf_adds(b->out, "}");
	return rc;
}

static int
summary(void *arg, const char *text, size_t len, struct err *e)
{
	struct body *b = arg;

	open_item(b, "\"role\":\"user\",\"content\":[");
	text_item(b->out, text, len);
	buf_adds(b->out, "]}");
	return 0;
}

static int
response(void *arg, struct json_object *data, struct err *e)
{
	struct body *b = arg;
	size_t len, i, n;
	struct json_object *calls = response_calls(data, &n), *call;
	const char *text = response_text(data, b->r->as_ag2, &len);

	if (text != NULL) {
		open_item(b, "\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\"");
		put_member(b->out, "text", text, len);
		buf_adds(b->out, "}]}");
	}
	for (i = 0; i < n; i++) {
		call = json_object_array_get_idx(calls, i);
		open_item(b, "\"type\":\"function_call\"");
		put_member_of(b->out, "call_id", call, "id");
		put_member_of(b->out, "name", call, "name");
		if (b->r->as_ag2)	/* untouched */
			put_member_of(b->out, "arguments", call, "arguments");
		else
			put_arguments_text(b->out, "arguments", call, false);
		buf_adds(b->out, "}");
	}
	return 0;
}

static int
result(void *arg, struct json_object *result, struct err *e)
{
	struct body *b = arg;
	struct json_object *parts = result_parts(result);
	int rc = 0;

	open_item(b, "\"type\":\"function_call_output\"");
	put_member_of(b->out, "call_id", result, "parent_id");
	put_name(b->out, "output");
	if (says_nothing(parts) && !b->r->as_ag2)
		put_string(b->out, NO_OUTPUT, strlen(NO_OUTPUT));
	else
		rc = put_content(b->out, b->r, parts, CONTENT_PLAIN, item, b, e);
	buf_adds(b->out, "}");
	return rc;
}

/* Reasoning, and what tools on OpenAI's side did: items that go back as they came. */
static int
replay(void *arg, const struct event_type *type, struct json_object *data, struct err *e)
{
	struct body *b = arg;
	struct json_object *item = json_get(json_get(data, "item"), "data");
	const char *id = json_get_text(item, "id", NULL);

	if (strncmp(type->last, "OpenAI", 6) != 0 || item == NULL)
		return 0;
	if (type->flags & EV_ANCHOR) {
		if (id != NULL && json_object_object_get_ex(b->reasoned, id, NULL))
			return 0;
		if (id != NULL)
			json_object_object_add(b->reasoned, id, NULL);
	}
	put_comma(b->out);
	put_sparse(b->out, item);
	return 0;
}

static const struct walk walk = { .request = request, .response = response, .result = result, .summary = summary, .replay = replay };

static void
instructions(struct buf *out, const struct llm_request *r)
{
	struct buf text = BUF_INIT;

	put_prompts(&text, r);
	if (text.len > 0)
		put_member(out, "instructions", text.data, text.len);
	buf_release(&text);
}

static void
declare(struct buf *out, const struct llm_request *r, const struct llm_tool *t)
{
	buf_adds(out, "{\"type\":\"function\"");
	put_declaration(out, t, "parameters");
	put_no_more_arguments(out, t->parameters);
	buf_adds(out, r->as_ag2 ? "}" : ",\"strict\":false}");
}

static bool
may_reason(const char *model)
{
	static const char *const plain[] = { "gpt-4", "gpt-3", "chatgpt-", "ft:gpt-4", "ft:gpt-3" };
	size_t i;

	for (i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (strncmp(model, plain[i], strlen(plain[i])) == 0)
			return false;
	return true;
}

static int
settings(struct buf *out, const struct llm_request *r, struct err *e)
{
	static const char *const mine[] = { "model", "input", "instructions", "stream", NULL };
	struct json_object *s = json_object_new_object(), *include;

	if (r->stream)
		setting_add(s, "stream", json_object_new_boolean(1));
	setting_add(s, "store", json_object_new_boolean(0));
	if (may_reason(r->config->model)) {
		include = json_object_new_array();
		json_object_array_add(include, json_object_new_string("reasoning.encrypted_content"));
		setting_add(s, "include", include);
	}
	settings_usual(s, r, "temperature", "max_output_tokens");
	if (r->schema != NULL)
		shape_openai(s, r, "text.format.type", "text.format");
	return put_settings(out, s, r, mine, e);
}

static int
responses_body(const struct llm_request *r, struct buf *out, struct err *e)
{
	struct body b = { r, out, json_object_new_object() };
	int rc;

	buf_adds(out, "{");
	put_member_str(out, "model", r->config->model);
	rc = settings(out, r, e);
	put_tools(out, r, declare);
	instructions(out, r);
	put_name(out, "input");
	buf_adds(out, "[");
	if (rc == 0)
		rc = walk_history(r, &walk, &b, e);
	buf_adds(out, "]}");
	json_object_put(b.reasoned);
	return rc;
}

/* ---- the answer ---- */

struct state {
	struct json_object *items;	/* that are done, in their order */
	size_t begun;			/* items that were said to come */
	struct buf text, refusal;	/* what the items say; text that came in pieces is in the answer */
};

static const struct state initial = { .text = BUF_INIT_MAX(ANSWER_MAX), .refusal = BUF_INIT_MAX(ANSWER_MAX) };

static void
release(void *arg)
{
	struct state *s = arg;

	json_object_put(s->items);
	buf_release(&s->text);
	buf_release(&s->refusal);
}

static const struct usage_names counts = {
	.prompt = "input_tokens",
	.completion = "output_tokens",
	.total = "total_tokens",
	.cache_read = "input_tokens_details.cached_tokens",
	.thinking = "output_tokens_details.reasoning_tokens",
};

static void
take_message(struct state *s, struct json_object *item)
{
	struct json_object *content = json_get(item, "content"), *piece;
	size_t i, len;
	const char *text;

	for (i = 0; i < json_count(content); i++) {
		piece = json_object_array_get_idx(content, i);
		if ((text = json_get_text(piece, "text", &len)) != NULL)
			buf_add(&s->text, text, len);
		else if ((text = json_get_text(piece, "refusal", &len)) != NULL)
			buf_add(&s->refusal, text, len);
	}
}

/* AG2 loads an item as an object of the client, whose members are all there. */
static void
take_reasoning(struct answer *a, struct json_object *item)
{
	static const char *const members[] = { "content", "encrypted_content", "status" };
	struct provider_item kept = { "item", "openai.types.responses.response_reasoning_item.ResponseReasoningItem", item };
	struct json_object *summaries = json_get(item, "summary");
	struct buf text = BUF_INIT, line = BUF_INIT;
	size_t i, len;
	const char *words;

	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (!json_object_object_get_ex(item, members[i], NULL))
			json_object_object_add(item, members[i], NULL);
	for (i = 0; i < json_count(summaries); i++) {
		words = json_get_text(json_object_array_get_idx(summaries, i), "text", &len);
		if (words == NULL)
			continue;
		buf_adds(&text, text.len > 0 ? "\n" : "");
		buf_add(&text, words, len);
	}
	build_reasoning(&line, &kept, (struct text){ text.data, text.len });
	answer_replay(a, &line);
	buf_release(&text);
}

/* Items of tools on OpenAI's side: their type, what the tool is called in AG2, the member that tells what it was to do, the class. */
static const struct server_item {
	const char *type, *name, *arguments, *class;
} server_items[] = {
	{ "web_search_call", "web_search", "action", "response_function_web_search.ResponseFunctionWebSearch" },
	{ "code_interpreter_call", "code_execution", "code", "response_code_interpreter_tool_call.ResponseCodeInterpreterToolCall" },
	{ "file_search_call", "file_search", "queries", "response_file_search_tool_call.ResponseFileSearchToolCall" },
	{ "image_generation_call", "image_generation", NULL, "response_output_item.ImageGenerationCall" },
	{ "mcp_call", "mcp_server", "arguments", "response_output_item.McpCall" },
	{ "mcp_list_tools", "mcp_server", "server_label", "response_output_item.McpListTools" },
	{ "shell_call", "shell", "action", "response_function_shell_tool_call.ResponseFunctionShellToolCall" },
};

static void
server_arguments(struct buf *out, struct json_object *item, const struct server_item *kind)
{
	struct json_object *value = kind->arguments != NULL ? json_get(item, kind->arguments) : NULL;

	if (json_object_is_type(value, json_type_object)) {
		json_write(out, value, JSON_PYTHON);
	} else if (value != NULL && strcmp(kind->arguments, "arguments") == 0) {
		buf_adds(out, json_object_get_string(value));
	} else if (value != NULL) {
		buf_addf(out, "{\"%s\": ", kind->arguments);
		json_write(out, value, JSON_PYTHON);
		buf_adds(out, "}");
	} else {
		buf_adds(out, "{}");
	}
}

/* What is known of an image beside its bytes goes with it. */
static int
take_image(struct answer *a, struct json_object *item, struct err *e)
{
	struct json_object *metadata;
	const char *format = json_get_text(item, "output_format", NULL);
	size_t len;
	const char *bytes = json_get_text(item, "result", &len);
	char media[40];

	if (bytes == NULL)
		return 0;
	snprintf(media, sizeof(media), "image/%.20s", format != NULL ? format : "png");
	metadata = json_object_new_object();
	json_object_object_add(metadata, "media_type", json_object_new_string(media));
	json_object_object_foreach(item, key, value)
		if (strcmp(key, "result") != 0 && strcmp(key, "status") != 0 && strcmp(key, "type") != 0)
			json_object_object_add(metadata, key, json_object_get(value));
	return answer_file(a, bytes, len, metadata, e);
}

/* The item itself tells the outcome, too, so the result has nothing but its status. */
static int
take_server_item(struct answer *a, struct json_object *item, const char *type, struct err *e)
{
	struct provider_item kept = { .field = "item", .value = item };
	struct buf arguments = BUF_INIT, class = BUF_INIT, line = BUF_INIT;
	struct text status;
	struct call call = { .id = (char *)json_get_text(item, "id", NULL) };
	size_t i;

	for (i = 0; i < sizeof(server_items) / sizeof(server_items[0]); i++) {
		if (strcmp(type, server_items[i].type) != 0)
			continue;
		buf_addf(&class, "openai.types.responses.%s", server_items[i].class);
		kept.class = class.data;
		server_arguments(&arguments, item, &server_items[i]);
		call.name = (char *)server_items[i].name;
		call.arguments = arguments.data;
		build_server_call(&line, "OpenAIServerToolCallEvent", &call, &kept);
		answer_replay(a, &line);
		status.data = json_get_text(item, "status", &status.len);
		build_server_result(&line, "OpenAIServerToolResultEvent", &call, status.data != NULL ? &status : NULL, NULL);
		answer_replay(a, &line);
	}
	buf_release(&arguments);
	buf_release(&class);
	return strcmp(type, "image_generation_call") == 0 ? take_image(a, item, e) : 0;
}

static int
take_item(struct reading *rd, struct json_object *item, struct err *e)
{
	const char *type = json_get_text(item, "type", NULL);

	if (type == NULL)
		return reading_nonsense(rd, "an item has no type", e);
	if (strcmp(type, "message") == 0)
		take_message(rd->state, item);
	else if (strcmp(type, "function_call") == 0)
		return answer_whole_call(&rd->answer, item, "call_id", "arguments", e) != NULL ? 0 : -1;
	else if (strcmp(type, "reasoning") == 0)
		take_reasoning(&rd->answer, item);
	else
		return take_server_item(&rd->answer, item, type, e);
	return 0;
}

/* What came in pieces is what is told again at the end, or a piece was lost, doubled or out of place. */
static int
settle_text(struct reading *rd, struct err *e)
{
	struct state *s = rd->state;
	struct answer *a = &rd->answer;

	if (answer_end_text(a, rd->sink, e) < 0)
		return -1;
	join_halves(&s->text);
	if (a->text.len == 0 && s->text.len > 0)
		return reading_text(rd, s->text.data, s->text.len, e);
	if (a->text.len != s->text.len || memcmp(a->text.data, s->text.data, s->text.len) != 0)
		return reading_nonsense(rd, "its pieces are not the whole that it tells at its end", e);
	if (s->refusal.len > 0) {
		buf_reset(&a->refusal);
		buf_add(&a->refusal, s->refusal.data, s->refusal.len);
	}
	return 0;
}

/* Some servers leave the output out at the end: then the items count that were done. */
static int
take_items(struct reading *rd, struct json_object *response, struct err *e)
{
	struct state *s = rd->state;
	struct json_object *output = json_get(response, "output");
	size_t i;

	if (json_count(output) == 0 && s->begun > json_count(s->items))
		return reading_nonsense(rd, "an item of it has not ended", e);
	if (json_count(output) == 0)
		output = s->items;
	else if (s->items != NULL && json_count(s->items) != json_count(output))
		return reading_nonsense(rd, "its items are not those that it tells at its end", e);
	for (i = 0; i < json_count(output); i++)
		if (take_item(rd, json_object_array_get_idx(output, i), e) < 0)
			return -1;
	return settle_text(rd, e);
}

/* completed or incomplete: the reason why it is not complete is its reason to finish. */
static int
take_response(struct reading *rd, struct json_object *response, struct err *e)
{
	const char *status = json_get_text(response, "status", NULL);

	if (json_get(response, "error") != NULL || (status != NULL && strcmp(status, "failed") == 0))
		return reading_error(rd, response, e);
	if (status == NULL || (strcmp(status, "completed") != 0 && strcmp(status, "incomplete") != 0))
		return reading_nonsense(rd, "a response that has not ended", e);
	take_name(&rd->answer.model, response, "model");
	take_usage(&rd->answer, json_get(response, "usage"), &counts);
	if (take_items(rd, response, e) < 0)
		return -1;
	take_name(&rd->answer.finish_reason, response, "status");
	take_name(&rd->answer.finish_reason, json_get(response, "incomplete_details"), "reason");
	rd->complete = true;
	return 1;
}

static int
item_done(struct reading *rd, struct json_object *frame, struct err *e)
{
	struct state *s = rd->state;

	if (s->items == NULL)
		s->items = json_object_new_array();
	if (json_count(s->items) > 1000)
		return reading_nonsense(rd, "it has more than 1000 items", e);
	json_object_array_add(s->items, json_object_get(json_get(frame, "item")));
	return 0;
}

static int
frame(struct reading *rd, const char *event, struct json_object *frame, bool whole, struct err *e)
{
	const char *type = json_get_text(frame, "type", NULL), *delta;
	size_t len;

	if (whole)
		return take_response(rd, frame, e);
	if (type == NULL)
		type = event;
	delta = json_get_text(frame, "delta", &len);
	if (strcmp(type, "response.output_text.delta") == 0 && delta != NULL)
		return reading_text(rd, delta, len, e);
	if (delta != NULL && (strcmp(type, "response.function_call_arguments.delta") == 0 || strncmp(type, "response.reasoning", 18) == 0))
		reading_piece(rd, NULL, delta, len);	/* it comes whole behind its pieces */
	if (strcmp(type, "response.output_item.added") == 0)
		((struct state *)rd->state)->begun++;
	if (strcmp(type, "response.output_item.done") == 0)
		return item_done(rd, frame, e);
	if (strcmp(type, "response.completed") == 0 || strcmp(type, "response.incomplete") == 0)
		return take_response(rd, json_get(frame, "response"), e);
	if (strcmp(type, "response.failed") == 0)
		return reading_error(rd, json_get(frame, "response"), e);
	return 0;	/* the rest tells about what is told again */
}

static const struct api api = {
	.name = SAID_BY,
	.base_url = "https://api.openai.com/v1",
	.path = "/responses",
	.number = "sequence_number",
	.plain = { { .text = "delta", .unread = { "obfuscation" } } },
	.state = sizeof(struct state),
	.initial = &initial,
	.frame = frame,
	.release = release,
};

const struct provider provider_openai_responses = { .body = responses_body, .api = &api };

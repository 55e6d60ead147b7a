/*
 * Anthropic's Messages API, versions 2023-06-01 and 2026-10-21. Source: Anthropic's API reference (messages, streaming, errors,
 * versioning) and its guide for moving to 2026-10-21. Where it and the official clients differ:
 *
 * - The newer clients send the key as `Authorization: Bearer`, the guide's own request x-api-key; the authentication page has
 *   keys as bearer tokens. As the clients: x-api-key with 2023-06-01, a bearer token with 2026-10-21.
 * - A recorded request of version 2026-10-21 carries `temperature`; that version refuses it, so it is an error here.
 * - AG2 sends every document as base64; the reference has that for PDF only, and `text` sources for plain text.
 * - AG2 has blocks of tools that ran there in the message before the answer, here they are in the answer's.
 * - The API refuses texts of nothing but blanks: they are left out, and stand as "(no output)" where there must be one. AG2 sends them.
 */
#include "llm/reading.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>

#define NAME "anthropic"
#define VERSION_OLD "2023-06-01"
#define VERSION_NEW "2026-10-21"
#define MAX_TOKENS 8192		/* the API must be told a limit */
#define CACHE_MARK "\"cache_control\":{\"type\":\"ephemeral\"}"

static const char *
version(const struct llm_config *c)
{
	return c->api_version != NULL ? c->api_version : VERSION_NEW;
}

/* ---- the request ---- */

struct body {
	const struct llm_request *r;
	struct buf *out;
	size_t user_from, user_to;	/* the content of the last user message that comes again in the next call; equal: none */
	bool unstable;			/* what follows does not */
	bool in_result;			/* of a tool */
	struct buf own;			/* blocks of the provider's tools, for the response that comes behind them */
	size_t answer_end;		/* where the last assistant's message ends */
	size_t results_from, results_end;	/* the content of the last message of results, and where that message ends */
	struct json_object *called;	/* id: its toolset_name, or null */
	struct json_object *resolved;	/* ids that have a result */
};

static void
open_message(struct body *b, const char *role)
{
	put_comma(b->out);
	buf_addf(b->out, "{\"role\":\"%s\",\"content\":", role);
}

static void
text_block(struct buf *out, const char *text, size_t len)
{
	buf_adds(out, "{\"type\":\"text\"");
	put_member(out, "text", text, len);
	buf_adds(out, "}");
}

static void
text_source(struct buf *out, const struct part *p)
{
	struct buf bytes = BUF_INIT, text = BUF_INIT;

	part_decode(p, &bytes);
	utf8_add_valid(&text, bytes.data, bytes.len);
	put_member_str(out, "media_type", "text/plain");
	put_member(out, "data", text.data, text.len);
	buf_release(&bytes);
	buf_release(&text);
}

/* Where an image or a document is. */
static void
put_source(struct buf *out, const struct part *p, bool as_text)
{
	const char *form = p->form == PART_FILE ? "file" : p->form == PART_URL ? "url" : as_text ? "text" : "base64";

	put_name(out, "source");
	buf_addf(out, "{\"type\":\"%s\"", form);
	if (p->form == PART_FILE) {
		put_member_str(out, "file_id", part_member(p, "file_id"));
	} else if (p->form == PART_URL) {
		put_member_str(out, "url", part_member(p, "url"));
	} else if (as_text) {
		text_source(out, p);
	} else {
		put_member_str(out, "media_type", part_member(p, "media_type"));
		put_member_str(out, "data", part_base64(p));
	}
	buf_adds(out, "}");
}

/* What a user asks for with a file: that it be cached up to there, and cited. AG2 takes them from bytes in requests only. */
static void
put_wishes(struct buf *out, const struct part *p)
{
	static const char *const wishes[] = { "cache_control", "citations" };
	struct json_object *vendor = json_get(p->value, "vendor_metadata"), *wish;
	size_t i;

	for (i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
		wish = json_get(vendor, wishes[i]);
		if (wish == NULL)
			continue;
		put_name(out, wishes[i]);
		json_write(out, wish, JSON_COMPACT);
	}
}

static int
block(const void *arg, struct buf *out, const struct part *p, struct err *e)
{
	bool as_ag2 = ((const struct body *)arg)->r->as_ag2, image;
	const char *title = json_get_text(json_get(p->value, "vendor_metadata"), "filename", NULL);

	if (p->form == PART_TEXT) {
		text_block(out, p->text.data, p->text.len);
		return 0;
	}
	image = part_is_image(p);
	if (p->form != PART_FILE && !image && strcmp(p->kind, "document") != 0 && (p->form != PART_URL || strcmp(p->kind, "binary") != 0))
		return part_refuse(p, NAME, e);
	buf_addf(out, "{\"type\":\"%s\"", image ? "image" : "document");
	put_source(out, p, !image && !as_ag2 && strncmp(part_member(p, "media_type"), "text/", 5) == 0);
	if (!image && title != NULL && !as_ag2)
		put_member_str(out, "title", title);
	if (p->form == PART_BINARY && !((const struct body *)arg)->in_result)
		put_wishes(out, p);
	buf_adds(out, "}");
	return 0;
}

/* The message ends, whose content began at `from`. */
static void
close_user(struct body *b, size_t from)
{
	if (!b->unstable) {
		b->user_from = from;
		b->user_to = b->out->len;
	}
	buf_adds(b->out, "}");
}

static void
stable_end(void *arg)
{
	((struct body *)arg)->unstable = true;
}

static int
request(void *arg, struct json_object *parts, struct err *e)
{
	struct body *b = arg;
	size_t from;
	int rc;

	buf_reset(&b->own);
	open_message(b, "user");
	from = b->out->len;
	rc = put_content(b->out, b->r, parts, CONTENT_PLAIN, block, b, e);
	close_user(b, from);
	return rc;
}

static int
summary(void *arg, const char *text, size_t len, struct err *e)
{
	struct body *b = arg;
	size_t from;

	open_message(b, "user");
	from = b->out->len;
	put_string(b->out, text, len);
	close_user(b, from);
	return 0;
}

/* What a call carries beside what every call has: of the program or toolset that made it. */
static const char *const call_extras[] = { "caller", "toolset_name" };
#define EXTRAS (sizeof(call_extras) / sizeof(call_extras[0]))

static void
tool_use(struct body *b, struct buf *blocks, struct json_object *call)
{
	struct json_object *extra;
	size_t i;

	put_comma(blocks);
	buf_adds(blocks, "{\"type\":\"tool_use\"");
	put_member_of(blocks, "id", call, "id");
	put_member_of(blocks, "name", call, "name");
	put_name(blocks, "input");
	put_arguments(blocks, call, b->r->as_ag2);
	for (i = 0; i < EXTRAS; i++) {
		extra = json_get(json_get(call, "vendor_metadata"), call_extras[i]);
		if (extra == NULL)
			continue;
		put_name(blocks, call_extras[i]);
		json_write(blocks, extra, JSON_COMPACT);
	}
	buf_adds(blocks, "}");
}

/* What the model thought before its calls, which it wants to have back as long as it works on them. */
static void
thinking_blocks(struct buf *blocks, struct json_object *calls, size_t n)
{
	struct json_object *thinking = n > 0 ?
	    json_get(json_get(json_object_array_get_idx(calls, 0), "vendor_metadata"), "thinking") : NULL;
	size_t i;

	for (i = 0; i < json_count(thinking); i++) {
		put_comma(blocks);
		json_write(blocks, json_object_array_get_idx(thinking, i), JSON_COMPACT);
	}
}

static void
put_answer(struct body *b, const struct buf *blocks)
{
	if (blocks->len == 0)
		return;
	open_message(b, "assistant");
	buf_addf(b->out, "[%s]}", blocks->data);
	b->answer_end = b->out->len;
}

static int
response(void *arg, struct json_object *data, struct err *e)
{
	struct body *b = arg;
	struct buf blocks = BUF_INIT;
	size_t len, i, n;
	struct json_object *calls = response_calls(data, &n);
	const char *text = response_text(data, b->r->as_ag2, &len), *id;

	if (!b->r->as_ag2)
		thinking_blocks(&blocks, calls, n);
	if (b->own.len > 0) {
		put_comma(&blocks);
		buf_add(&blocks, b->own.data, b->own.len);
		buf_reset(&b->own);
	}
	if (text != NULL) {
		put_comma(&blocks);
		text_block(&blocks, text, len);
	}
	for (i = 0; i < n; i++) {
		id = json_get_text(json_object_array_get_idx(calls, i), "id", NULL);
		if (id != NULL && json_object_object_get_ex(b->resolved, id, NULL))
			tool_use(b, &blocks, json_object_array_get_idx(calls, i));
	}
	put_answer(b, &blocks);
	buf_release(&blocks);
	return 0;
}

static int
tool_result(struct body *b, struct buf *blocks, struct json_object *result, const char *toolset, struct err *e)
{
	struct json_object *parts = result_parts(result);
	int rc = 0;

	put_comma(blocks);
	buf_adds(blocks, "{\"type\":\"tool_result\"");
	put_member_of(blocks, "tool_use_id", result, "parent_id");
	put_name(blocks, "content");
	b->in_result = true;
	if (says_nothing(parts) && !b->r->as_ag2)
		put_string(blocks, NO_OUTPUT, strlen(NO_OUTPUT));
	else
		rc = put_content(blocks, b->r, parts, CONTENT_PLAIN, block, b, e);
	b->in_result = false;
	if (result_failed(result))
		buf_adds(blocks, ",\"is_error\":true");
	if (toolset != NULL)
		put_member_str(blocks, "toolset_name", toolset);
	buf_adds(blocks, "}");
	return rc;
}

/* The message of results that goes on, also where they are logged in several containers; AG2 has one for each. */
static void
put_results(struct body *b, const struct buf *blocks)
{
	if (b->results_end == b->out->len && !b->unstable && !b->r->as_ag2) {
		b->out->len -= 2;	/* ]} */
		buf_addf(b->out, ",%s]", blocks->data);
	} else {
		open_message(b, "user");
		b->results_from = b->out->len;
		buf_addf(b->out, "[%s]", blocks->data);
	}
	close_user(b, b->results_from);
	b->results_end = b->out->len;
}

/*
 * All results of a round in one message; one without its call is refused by the API and left out, though AG2 keeps them where
 * there is no call at all.
 */
static int
results(void *arg, struct json_object *const *items, size_t n, struct err *e)
{
	struct body *b = arg;
	bool all = b->r->as_ag2 && json_object_object_length(b->called) == 0;
	struct buf blocks = BUF_INIT;
	struct json_object *toolset;
	const char *id;
	size_t i;
	int rc = 0;

	buf_reset(&b->own);
	for (i = 0; rc == 0 && i < n; i++) {
		id = json_get_text(items[i], "parent_id", NULL);
		toolset = NULL;
		if (id != NULL && (json_object_object_get_ex(b->called, id, &toolset) || all))
			rc = tool_result(b, &blocks, items[i], json_object_get_string(toolset), e);
	}
	if (rc == 0 && blocks.len > 0)
		put_results(b, &blocks);
	buf_release(&blocks);
	return rc;
}

/* Calls and results of tools that ran on Anthropic's side are part of the assistant's message; AG2 has them in the one before it. */
static int
replay(void *arg, const struct event_type *type, struct json_object *data, struct err *e)
{
	struct body *b = arg;
	struct json_object *block_data = json_get(json_get(data, "block"), "data");

	if (strncmp(type->last, "Anthropic", 9) != 0 || block_data == NULL)
		return 0;
	put_comma(&b->own);
	put_sparse(&b->own, block_data);
	if (!b->r->as_ag2)
		return 1;
	if (b->answer_end == b->out->len) {
		b->out->len -= 2;	/* ]} */
		buf_addf(b->out, ",%s]}", b->own.data);
		b->answer_end = b->out->len;
	} else {
		put_answer(b, &b->own);
	}
	buf_reset(&b->own);
	return 0;
}

static const struct walk walk = { .request = request, .response = response, .results = results, .summary = summary,
	.replay = replay, .stable_end = stable_end, .ag2_takes_loose = true };

/* Which calls and results there are: the API refuses one without the other. */
static void
note_id(void *arg, const char *id, size_t len)
{
	char *key = xmemdup0(id, len);

	json_object_object_add(arg, key, NULL);
	free(key);
}

static int
note_pairs(struct body *b, struct event *ev, struct err *e)
{
	struct json_object *calls, *call, *vendor;
	const char *id, *toolset;
	size_t i, n;

	if (ev->type->flags & (EV_RESULTS | EV_RESULT))
		return event_ids(ev, note_id, b->resolved, e);
	if (!(ev->type->flags & EV_RESPONSE))
		return 0;
	if (event_data(ev, e) == NULL)
		return -1;
	calls = response_calls(event_data(ev, e), &n);
	for (i = 0; i < n; i++) {
		call = json_object_array_get_idx(calls, i);
		vendor = json_get(call, "vendor_metadata");
		id = json_get_text(call, "id", NULL);
		toolset = json_get_text(vendor, "toolset_name", NULL);
		if (id != NULL)
			json_object_object_add(b->called, id, toolset != NULL ? json_object_new_string(toolset) : NULL);
	}
	return 0;
}

static int
messages(struct body *b, struct err *e)
{
	const struct llm_request *r = b->r;
	size_t i;
	int rc;

	for (i = 0; i < r->events_n; i++) {
		if (note_pairs(b, r->events[i], e) < 0)
			return event_wrap(r->events[i], e);
		event_forget(r->events[i]);
	}
	put_name(b->out, "messages");
	buf_adds(b->out, "[");
	rc = walk_history(r, &walk, b, e);
	buf_adds(b->out, "]");
	return rc;
}

/* One that has a mark of its own keeps that: how long it is kept was wished. */
static bool
is_marked(struct buf *content)
{
	struct json_object *blocks = NULL;
	bool marked = json_parse(&blocks, content->data, content->len, NULL) == 0 && json_count(blocks) > 0 &&
	    json_get(json_object_array_get_idx(blocks, json_count(blocks) - 1), "cache_control") != NULL;

	json_object_put(blocks);
	return marked;
}

/* Marks the last block of the last user message that comes again: all up to there is the same in the next request. Empty text takes no mark. */
static void
mark_user(struct body *b)
{
	struct buf tail = BUF_INIT, inner = BUF_INIT;
	size_t from = b->user_from, to = b->user_to;
	bool text = to > from && b->out->data[from] == '"';

	if (to - from < 3 && !(text && b->r->as_ag2))
		return;
	buf_add(&tail, b->out->data + to, b->out->len - to);
	buf_add(&inner, b->out->data + from, to - from);
	if (text || !is_marked(&inner)) {
		b->out->len = from;
		if (text)
			buf_addf(b->out, "[{\"type\":\"text\",\"text\":%s", inner.data);
		else
			buf_add(b->out, inner.data, inner.len - 2);	/* without }] */
		buf_adds(b->out, "," CACHE_MARK "}]");
		buf_add(b->out, tail.data, tail.len);
	}
	buf_release(&tail);
	buf_release(&inner);
}

/* Tools stand before it in what is cached, so its mark covers them, too. */
static void
system_prompt(struct body *b)
{
	struct buf text = BUF_INIT;

	put_prompts(&text, b->r);
	if (b->r->prompts_n > 0 && (text.len > 0 || b->r->as_ag2)) {
		put_name(b->out, "system");
		if (b->r->config->cache) {
			buf_adds(b->out, "[{\"type\":\"text\"");
			put_member(b->out, "text", text.data, text.len);
			buf_adds(b->out, "," CACHE_MARK "}]");
		} else {
			put_string(b->out, text.data, text.len);
		}
	}
	buf_release(&text);
}

static void
declare(struct buf *out, const struct llm_request *r, const struct llm_tool *t)
{
	buf_adds(out, "{");
	put_declaration(out, t, "input_schema");
	buf_adds(out, "}");
}

static int
check_version(const struct llm_config *c, struct err *e)
{
	static const char *const removed[] = { "temperature", "top_p", "top_k" };
	const char *v = version(c);
	size_t i;

	if (strcmp(v, VERSION_OLD) == 0)
		return 0;
	if (strcmp(v, VERSION_NEW) != 0)
		return err_set(e, ERR_CONFIG, "the API version '%.40s' of %s is not known: there are " VERSION_OLD " and " VERSION_NEW, v, NAME);
	for (i = 0; i < sizeof(removed) / sizeof(removed[0]); i++)
		if (json_object_object_get_ex(c->options, removed[i], NULL) || (i == 0 && c->temperature >= 0))
			return err_set(e, ERR_CONFIG, "%s is refused by version " VERSION_NEW " of the API of %s: leave it out, or set api_version: "
			    VERSION_OLD, removed[i], NAME);
	return 0;
}

/* Limits of numbers, texts and lists are refused, and every object must be closed. */
static struct json_object *
shape(const struct llm_request *r)
{
	static const char *const refused[] = { "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
		"minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", NULL };
	struct json_object *schema = shape_copy(r);

	shape_drop(schema, refused);
	shape_close(schema);
	return schema;
}

static int
settings(struct buf *out, const struct llm_request *r, struct err *e)
{
	static const char *const mine[] = { "model", "messages", "system", "stream", NULL };
	struct json_object *s = json_object_new_object();

	settings_usual(s, r, "temperature", "max_tokens");
	if (r->config->max_tokens <= 0 && json_get(r->config->options, "max_tokens") == NULL)
		setting_add(s, "max_tokens", json_object_new_int64(MAX_TOKENS));
	if (r->stream)
		setting_add(s, "stream", json_object_new_boolean(1));
	if (r->schema != NULL) {
		setting_add(s, "output_config.format.type", json_object_new_string("json_schema"));
		setting_add(s, "output_config.format.schema", shape(r));
	}
	return put_settings(out, s, r, mine, e);
}

static int
anthropic_body(const struct llm_request *r, struct buf *out, struct err *e)
{
	struct body b = { .r = r, .out = out, .own = BUF_INIT, .called = json_object_new_object(),
		.resolved = json_object_new_object() };
	int rc = check_version(r->config, e);

	buf_adds(out, "{");
	put_member_str(out, "model", r->config->model);
	if (rc == 0)
		rc = settings(out, r, e);
	put_tools(out, r, declare);
	system_prompt(&b);
	if (rc == 0)
		rc = messages(&b, e);
	if (rc == 0 && r->config->cache)
		mark_user(&b);
	buf_adds(out, "}");
	buf_release(&b.own);
	json_object_put(b.called);
	json_object_put(b.resolved);
	return rc;
}

/* ---- the answer ---- */

struct state {
	struct json_object *open;	/* the block that is being sent */
	struct buf input, thought, signature;	/* what came of it in pieces */
	long blocks;			/* those before it */
	struct json_object *thinking;	/* blocks to be given back with the results of the calls */
	char *stop_reason;
	struct json_object *citations;	/* of the block that is being sent */
	size_t text_from;		/* where its text begins in the answer's */
	struct buf whole;		/* all blocks, to be given back when the turn goes on */
	size_t asked;			/* bytes of the request before they are put into it; 0: they never were */
	char *container;		/* where the provider's tools ran, for the same */
	struct usage used;		/* by the parts of the turn before this one */
};

static const struct state initial = { .input = BUF_INIT_MAX(ANSWER_MAX), .thought = BUF_INIT_MAX(ANSWER_MAX),
	.signature = BUF_INIT_MAX(ANSWER_MAX), .whole = BUF_INIT_MAX(ANSWER_MAX), .used = USAGE_NONE };

static void
release(void *arg)
{
	struct state *s = arg;

	json_object_put(s->open);
	json_object_put(s->thinking);
	json_object_put(s->citations);
	buf_release(&s->whole);
	free(s->container);
	buf_release(&s->input);
	buf_release(&s->thought);
	buf_release(&s->signature);
	free(s->stop_reason);
}

/* Those of a stream are cumulative: what a later frame tells replaces what an earlier one did. */
static const struct usage_names counts = {
	.prompt = "input_tokens",
	.completion = "output_tokens",
	.cache_read = "cache_read_input_tokens",
	.cache_creation = "cache_creation_input_tokens",
	.thinking = "output_tokens_details.thinking_tokens",
};

static char *
vendor_metadata(struct json_object *use)
{
	struct json_object *vendor = json_object_new_object();
	struct buf text = BUF_INIT;
	size_t i;

	for (i = 0; i < EXTRAS; i++)
		if (json_get(use, call_extras[i]) != NULL)
			json_object_object_add(vendor, call_extras[i], json_object_get(json_get(use, call_extras[i])));
	if (json_object_object_length(vendor) > 0)
		json_write(&text, vendor, JSON_PYTHON);
	json_object_put(vendor);
	return text.len > 0 ? buf_detach(&text, NULL) : NULL;
}

static int
take_tool_use(struct reading *rd, struct json_object *use, struct err *e)
{
	struct answer_call *c = answer_whole_call(&rd->answer, use, "id", "input", e);

	if (c == NULL)
		return -1;
	c->vendor_metadata = vendor_metadata(use);
	return 0;
}

static int
take_server_call(struct reading *rd, struct json_object *use, struct err *e)
{
	struct provider_item item = { "block", "anthropic.types.server_tool_use_block.ServerToolUseBlock", use };
	struct buf arguments = BUF_INIT, line = BUF_INIT;
	struct json_object *input = json_get(use, "input"), *value;
	struct call call;

	if (json_object_is_type(input, json_type_string)) {
		if (json_parse(&value, json_object_get_string(input), (size_t)json_object_get_string_len(input), NULL) < 0)
			return reading_nonsense(rd, "the input of a tool of the provider is not JSON", e);
		json_object_object_add(use, "input", value);
	}
	json_write(&arguments, json_get(use, "input"), JSON_PYTHON);
	call = (struct call){ .id = (char *)json_get_text(use, "id", NULL), .name = (char *)json_get_text(use, "name", NULL),
		.arguments = arguments.data };
	build_server_call(&line, "AnthropicServerToolCallEvent", &call, &item);
	answer_replay(&rd->answer, &line);
	buf_release(&arguments);
	return 0;
}

/* The results of Anthropic's tools: how their blocks are called here, in AG2, and the class in its client. */
static const struct result_kind {
	const char *type, *name, *class;
} result_kinds[] = {
	{ "web_search_tool_result", "web_search", "web_search_tool_result_block.WebSearchToolResultBlock" },
	{ "web_fetch_tool_result", "web_fetch", "web_fetch_tool_result_block.WebFetchToolResultBlock" },
	{ "code_execution_tool_result", "code_execution", "code_execution_tool_result_block.CodeExecutionToolResultBlock" },
	{ "bash_code_execution_tool_result", "code_execution", "bash_code_execution_tool_result_block.BashCodeExecutionToolResultBlock" },
	{ "text_editor_code_execution_tool_result", "code_execution",
		"text_editor_code_execution_tool_result_block.TextEditorCodeExecutionToolResultBlock" },
	{ "tool_search_tool_result", "tool_search", "tool_search_tool_result_block.ToolSearchToolResultBlock" },
};

static void
take_server_result(struct reading *rd, struct json_object *result, const char *type)
{
	struct provider_item item = { .field = "block", .value = result };
	struct buf line = BUF_INIT;
	struct call call = { .id = (char *)json_get_text(result, "tool_use_id", NULL) };
	char class[200];
	size_t i;

	for (i = 0; i < sizeof(result_kinds) / sizeof(result_kinds[0]); i++) {
		if (strcmp(type, result_kinds[i].type) != 0)
			continue;
		snprintf(class, sizeof(class), "anthropic.types.%s", result_kinds[i].class);
		item.class = class;
		call.name = (char *)result_kinds[i].name;
		build_server_result(&line, "AnthropicServerToolResultEvent", &call, NULL, &item);
		answer_replay(&rd->answer, &line);
	}
}

static void
keep_in(struct json_object **list, struct json_object *value)
{
	if (*list == NULL)
		*list = json_object_new_array();
	json_object_array_add(*list, json_object_get(value));
}

/* What came in pieces is part of the block, as it would be of one that came whole. */
static void
settle(struct json_object *b, const char *member, struct buf *text)
{
	join_halves(text);
	if (text->len > 0)
		json_object_object_add(b, member, json_object_new_string_len(text->data, (int)text->len));
	buf_reset(text);
}

static void
settle_text(struct reading *rd)
{
	struct state *s = rd->state;
	const char *type = json_get_text(s->open, "type", NULL);
	struct buf text = BUF_INIT;

	if (type != NULL && strcmp(type, "text") == 0) {
		buf_add(&text, rd->answer.text.data + s->text_from, rd->answer.text.len - s->text_from);
		settle(s->open, "text", &text);
	}
	if (s->citations != NULL)
		json_object_object_add(s->open, "citations", s->citations);
	s->citations = NULL;
	buf_release(&text);
}

/* As it came; but the API takes no text that says nothing. */
static void
keep_block(struct state *s, struct json_object *b, const char *type)
{
	size_t len;
	const char *text = json_get_text(b, "text", &len);

	if (strcmp(type, "text") == 0 && (text == NULL || is_blank(text, len)))
		return;
	put_comma(&s->whole);
	json_write(&s->whole, b, JSON_COMPACT);
}

/* A block that is whole. Its text was given out as it came. */
static int
take_block(struct reading *rd, struct json_object *b, struct err *e)
{
	struct state *s = rd->state;
	const char *type = json_get_text(b, "type", NULL);
	int rc = 0;

	if (type == NULL)
		return reading_nonsense(rd, "a block has no type", e);
	if (strcmp(type, "tool_use") == 0)
		rc = take_tool_use(rd, b, e);
	else if (strcmp(type, "server_tool_use") == 0)
		rc = take_server_call(rd, b, e);
	else if (strcmp(type, "thinking") == 0 || strcmp(type, "redacted_thinking") == 0)
		keep_in(&s->thinking, b);
	else
		take_server_result(rd, b, type);
	if (rc == 0)
		keep_block(s, b, type);
	return s->whole.over ? reading_nonsense(rd, "its blocks are too large", e) : rc;
}

static int
give_block_text(struct reading *rd, struct json_object *b, struct err *e)
{
	size_t len;
	const char *type = json_get_text(b, "type", NULL), *text = json_get_text(b, "text", &len);

	return type != NULL && strcmp(type, "text") == 0 && text != NULL ? reading_text(rd, text, len, e) : 0;
}

/* Blocks come one after the other; anything else is a stream that was mixed up. */
static int
at_open_block(struct reading *rd, struct json_object *frame, struct err *e)
{
	struct state *s = rd->state;

	if (s->open == NULL || (long)take_count(frame, "index") != s->blocks)
		return reading_nonsense(rd, "a piece belongs to no block that is open", e);
	return 0;
}

static int
block_start(struct reading *rd, struct json_object *frame, struct err *e)
{
	struct state *s = rd->state;
	struct json_object *b = json_get(frame, "content_block");

	if (s->open != NULL || (long)take_count(frame, "index") != s->blocks || !json_object_is_type(b, json_type_object))
		return reading_nonsense(rd, "a block begins out of turn", e);
	s->open = json_object_get(b);
	s->text_from = rd->answer.text.len;
	return give_block_text(rd, b, e);
}

static int
block_delta(struct reading *rd, struct json_object *frame, struct err *e)
{
	struct state *s = rd->state;
	const struct {
		const char *type, *member;
		struct buf *to;		/* NULL: text, which is given out */
	} deltas[] = {
		{ "text_delta", "text", NULL },
		{ "input_json_delta", "partial_json", &s->input },
		{ "thinking_delta", "thinking", &s->thought },
		{ "signature_delta", "signature", &s->signature },
	};
	struct json_object *delta = json_get(frame, "delta");
	const char *type = json_get_text(delta, "type", NULL), *text;
	size_t len, i;

	if (at_open_block(rd, frame, e) < 0)
		return -1;
	if (type == NULL)
		return reading_nonsense(rd, "a piece has no type", e);
	if (strcmp(type, "citations_delta") == 0)
		keep_in(&s->citations, json_get(delta, "citation"));
	for (i = 0; i < sizeof(deltas) / sizeof(deltas[0]); i++) {
		text = strcmp(type, deltas[i].type) == 0 ? json_get_text(delta, deltas[i].member, &len) : NULL;
		if (text != NULL && deltas[i].to == NULL)
			return reading_text(rd, text, len, e);
		if (text != NULL)
			reading_piece(rd, deltas[i].to, text, len);
	}
	return s->input.over || s->thought.over || s->signature.over ? reading_nonsense(rd, "a block is too large", e) : 0;
}

static int
block_stop(struct reading *rd, struct json_object *frame, struct err *e)
{
	struct state *s = rd->state;
	int rc;

	if (at_open_block(rd, frame, e) < 0)
		return -1;
	settle(s->open, "input", &s->input);
	settle(s->open, "thinking", &s->thought);
	settle(s->open, "signature", &s->signature);
	settle_text(rd);
	rc = take_block(rd, s->open, e);
	json_object_put(s->open);
	s->open = NULL;
	s->blocks++;
	return rc;
}

static int
message_start(struct reading *rd, struct json_object *message, struct err *e)
{
	struct state *s = rd->state;

	if (rd->answer.model != NULL)
		return reading_nonsense(rd, "a second message begins", e);
	take_name(&rd->answer.model, message, "model");
	if (rd->answer.model == NULL)
		rd->answer.model = xstrdup(rd->r->config->model);
	take_usage(&rd->answer, json_get(message, "usage"), &counts);
	take_name(&s->container, json_get(message, "container"), "id");
	return 0;
}

static int
message_stop(struct reading *rd, struct err *e)
{
	struct state *s = rd->state;

	if (s->open != NULL || s->stop_reason == NULL)
		return reading_nonsense(rd, "the message stops before its end", e);
	rd->complete = true;
	return 1;
}

static int
whole_message(struct reading *rd, struct json_object *message, struct err *e)
{
	struct state *s = rd->state;
	struct json_object *blocks = json_get(message, "content"), *b;
	size_t i;

	take_name(&s->container, json_get(message, "container"), "id");
	take_name(&rd->answer.model, message, "model");
	take_usage(&rd->answer, json_get(message, "usage"), &counts);
	for (i = 0; i < json_count(blocks); i++) {
		b = json_object_array_get_idx(blocks, i);
		if (give_block_text(rd, b, e) < 0 || take_block(rd, b, e) < 0)
			return -1;
	}
	take_name(&s->stop_reason, message, "stop_reason");
	rd->complete = s->stop_reason != NULL;
	return 0;
}

static int
frame(struct reading *rd, const char *event, struct json_object *frame, bool whole, struct err *e)
{
	struct state *s = rd->state;
	const char *type = json_get_text(frame, "type", NULL);

	if (whole)
		return whole_message(rd, frame, e);
	if (type == NULL)
		type = event;
	if (strcmp(type, "message_start") == 0)
		return message_start(rd, json_get(frame, "message"), e);
	if (strcmp(type, "content_block_start") == 0)
		return block_start(rd, frame, e);
	if (strcmp(type, "content_block_delta") == 0)
		return block_delta(rd, frame, e);
	if (strcmp(type, "content_block_stop") == 0)
		return block_stop(rd, frame, e);
	if (strcmp(type, "message_stop") == 0)
		return message_stop(rd, e);
	if (strcmp(type, "message_delta") == 0) {
		take_usage(&rd->answer, json_get(frame, "usage"), &counts);
		take_name(&s->stop_reason, json_get(frame, "delta"), "stop_reason");
		take_name(&s->container, json_get(json_get(frame, "delta"), "container"), "id");
	}
	return 0;	/* ping, and what is new */
}

/* The thoughts go with the first call, for they are sent back only with the results of calls. */
static void
attach_thinking(struct answer *a, struct json_object *thinking)
{
	struct answer_call *c = &a->calls[0];
	struct json_object *vendor = NULL;
	struct buf text = BUF_INIT;

	if (c->vendor_metadata == NULL || json_parse(&vendor, c->vendor_metadata, strlen(c->vendor_metadata), NULL) < 0)
		vendor = json_object_new_object();
	json_object_object_add(vendor, "thinking", json_object_get(thinking));
	json_write(&text, vendor, JSON_PYTHON);
	free(c->vendor_metadata);
	c->vendor_metadata = buf_detach(&text, NULL);
	json_object_put(vendor);
}

static bool
is_paused(const struct state *s)
{
	return strcmp(s->stop_reason, "pause_turn") == 0;
}

/*
 * A long turn of the provider's own tools is paused. It goes on when the same is asked with all that came of it as the
 * assistant's last message, in the same container.
 */
static int
resume(struct reading *rd, struct buf *body, struct err *e)
{
	struct state *s = rd->state;

	if (!is_paused(s) || s->whole.len == 0 || rd->answer.calls_n > 0)
		return 0;
	body->len = s->asked > 0 ? s->asked : body->len - 2;		/* ]} */
	s->asked = body->len;
	put_comma(body);
	buf_addf(body, "{\"role\":\"assistant\",\"content\":[%s]}]", s->whole.data);
	if (s->container != NULL && json_get(rd->r->config->options, "container") == NULL)
		put_member_str(body, "container", s->container);
	buf_adds(body, "}");
	usage_add(&s->used, &rd->answer.usage);
	rd->answer.usage = (struct usage)USAGE_NONE;
	free(rd->answer.model);
	free(s->stop_reason);
	rd->answer.model = s->stop_reason = NULL;
	s->blocks = 0;
	return 1;
}

static int
end(struct reading *rd, struct err *e)
{
	struct state *s = rd->state;

	if (is_paused(s))
		return err_set(e, ERR_UNAVAIL, "the answer is incomplete: the model paused its turn");
	if (s->thinking != NULL && rd->answer.calls_n > 0)
		attach_thinking(&rd->answer, s->thinking);
	usage_add(&rd->answer.usage, &s->used);
	rd->answer.finish_reason = xstrdup(s->stop_reason);
	return 0;
}

static bool
sends_files(const struct llm_request *r)
{
	size_t i;

	for (i = 0; i < r->events_n; i++)
		if (memmem(r->events[i]->line, r->events[i]->len, "FileIdInput", 11) != NULL)
			return true;
	return false;
}

static void
address(const struct llm_request *r, struct address *a)
{
	bool old = strcmp(version(r->config), VERSION_OLD) == 0;

	buf_adds(&a->path, "/v1/messages");
	a->headers[0] = old ? "anthropic-version: " VERSION_OLD : "anthropic-version: " VERSION_NEW;
	if (sends_files(r))
		a->headers[1] = "anthropic-beta: files-api-2025-04-14";
	a->key_header = old ? "x-api-key: " : "Authorization: Bearer ";
}

static const struct api api = {
	.name = NAME,
	.base_url = "https://api.anthropic.com",
	.state = sizeof(struct state),
	.plain = { { .text = "delta.text" }, { .text = "delta.partial_json" }, { .text = "delta.thinking" } },
	.initial = &initial,
	.address = address,
	.frame = frame,
	.end = end,
	.resume = resume,
	.release = release,
};

const struct provider provider_anthropic = { .body = anthropic_body, .api = &api };

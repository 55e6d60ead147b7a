/*
 * Ollama's own chat API. Source: docs/api.md of Ollama (chat, tools, structured outputs, errors). Where it and the official client
 * differ: nothing that is sent. Its calls have no ids; results are told apart by their order and tool_name. It sees only num_ctx
 * tokens of what it is sent and drops the beginning silently: options: {options: {num_ctx: N}} sets it.
 */
#include "llm/reading.h"

#include "base/alloc.h"

#include <stdlib.h>

#define NAME "ollama"

/* ---- the request ---- */

struct body {
	const struct llm_request *r;
	struct buf *out;
	bool first;		/* no message yet */
};

static void
open_message(struct body *b, const char *role)
{
	buf_addf(b->out, "%s{\"role\":\"%s\",", b->first ? "" : ",", role);
	b->first = false;
}

static int
text_message(void *arg, const char *text, size_t len, struct err *e)
{
	struct body *b = arg;

	open_message(b, "user");
	put_member(b->out, "content", text, len);
	buf_adds(b->out, "}");
	return 0;
}

/* All text joined by newlines, text documents included, all images in a list. */
static int
split(const struct body *b, struct json_object *parts, struct buf *text, struct buf *images, struct err *e)
{
	size_t i, n = json_object_is_type(parts, json_type_array) ? json_object_array_length(parts) : 0;
	struct part p;
	bool any = false;
	int rc = 0;

	for (i = 0; rc == 0 && i < n; i++) {
		rc = part_read(&p, json_object_array_get_idx(parts, i), e);
		if (rc == 0 && !b->r->as_ag2)
			part_as_text(&p);
		if (rc == 0 && p.form == PART_TEXT) {
			buf_adds(text, any ? "\n" : "");
			buf_add(text, p.text.data, p.text.len);
			any = true;
		} else if (rc == 0 && p.form == PART_BINARY && images != NULL && strcmp(p.kind, "image") == 0) {
			buf_adds(images, images->len > 0 ? "," : "");
			put_string(images, part_base64(&p), strlen(part_base64(&p)));
		} else if (rc == 0) {
			rc = part_refuse(&p, images != NULL ? NAME : NAME " as the result of a tool", e);
		}
		part_release(&p);
	}
	return rc;
}

static int
request(void *arg, struct json_object *parts, struct err *e)
{
	struct body *b = arg;
	struct buf text = BUF_INIT, images = BUF_INIT;
	int rc = split(b, parts, &text, &images, e);

	open_message(b, "user");
	put_member(b->out, "content", text.data, text.len);
	if (images.len > 0) {
		buf_adds(b->out, ",\"images\":[");
		buf_add(b->out, images.data, images.len);
		buf_adds(b->out, "]");
	}
	buf_adds(b->out, "}");
	buf_release(&text);
	buf_release(&images);
	return rc;
}

static void
tool_call(struct body *b, struct json_object *call)
{
	size_t len = 0;
	const char *name = json_get_text(call, "name", &len);

	buf_adds(b->out, "{\"function\":{");
	put_member(b->out, "name", name, len);
	buf_adds(b->out, ",\"arguments\":");
	put_arguments(b->out, call, b->r->as_ag2);
	buf_adds(b->out, "}}");
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
	put_member(b->out, "content", text, len);
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
	struct buf text = BUF_INIT;
	const char *name = json_get_text(result, "name", NULL);
	size_t n;
	int rc = split(b, result_parts(result, &n), &text, NULL, e);

	if (text.len == 0 && !b->r->as_ag2)
		buf_adds(&text, NO_OUTPUT);
	open_message(b, "tool");
	if (name != NULL && !b->r->as_ag2) {
		put_member_str(b->out, "tool_name", name);
		buf_adds(b->out, ",");
	}
	put_member(b->out, "content", text.data, text.len);
	buf_adds(b->out, "}");
	buf_release(&text);
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

static const struct walk walk = { .request = request, .response = response, .results = results, .summary = text_message };

static void
system_messages(struct body *b)
{
	size_t i;

	for (i = 0; i < b->r->prompts_n; i++) {
		if (b->r->prompts[i].len == 0 && !b->r->as_ag2)
			continue;
		open_message(b, "system");
		put_member(b->out, "content", b->r->prompts[i].data, b->r->prompts[i].len);
		buf_adds(b->out, "}");
	}
}

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
		buf_adds(out, "}}");
	}
	put_option_tools(out, r, r->tools_n);
	buf_adds(out, "]");
}

static int
settings(struct buf *out, const struct llm_request *r, struct err *e)
{
	static const char *const mine[] = { "model", "messages", "stream", NULL };
	struct json_object *s = json_object_new_object();

	setting_add(s, "stream", json_object_new_boolean(r->stream));	/* it streams unless told not to */
	settings_usual(s, r, "options.temperature", "options.num_predict");
	if (r->schema != NULL)
		setting_add(s, "format", json_object_get(r->schema));
	return put_settings(out, s, r, mine, e);
}

static int
ollama_body(const struct llm_request *r, struct buf *out, struct err *e)
{
	struct body b = { .r = r, .out = out, .first = true };
	int rc;

	buf_adds(out, "{");
	put_member_str(out, "model", r->config->model);
	rc = settings(out, r, e);
	tools(out, r);
	buf_adds(out, ",\"messages\":[");
	system_messages(&b);
	if (rc == 0)
		rc = walk_history(r, &walk, &b, e);
	buf_adds(out, "]}");
	return rc;
}

/* ---- the answer ---- */

static int
take_calls(struct answer *a, struct json_object *calls, struct err *e)
{
	size_t i, n = json_object_is_type(calls, json_type_array) ? json_object_array_length(calls) : 0;
	struct json_object *function, *arguments;
	struct answer_call *c;

	for (i = 0; i < n; i++) {
		function = json_get(json_object_array_get_idx(calls, i), "function");
		c = answer_call(a, (long)a->calls_n, NULL, json_get_text(function, "name", NULL), e);
		if (c == NULL)
			return -1;
		arguments = json_get(function, "arguments");
		if (arguments != NULL)
			json_write(&c->arguments, arguments, JSON_COMPACT);
	}
	return 0;
}

static void
take_usage(struct answer *a, struct json_object *frame)
{
	a->usage.prompt = take_count(frame, "prompt_eval_count");
	a->usage.completion = take_count(frame, "eval_count");
	a->has_usage = a->usage.prompt >= 0 || a->usage.completion >= 0;
	if (a->usage.prompt >= 0 && a->usage.completion >= 0)
		a->usage.total = a->usage.prompt + a->usage.completion;
}

/* A piece, or all of it: they look the same. The last one is `done`, and has the counts. */
static int
frame(struct reading *rd, const char *event, struct json_object *frame, bool whole, struct err *e)
{
	struct json_object *message = json_get(frame, "message");
	size_t len;
	const char *text = json_get_text(message, "content", &len);

	if (json_get(frame, "error") != NULL)
		return reading_error(rd, frame, e);
	take_name(&rd->answer.model, frame, "model");
	if (take_calls(&rd->answer, json_get(message, "tool_calls"), e) < 0)
		return -1;
	if (text != NULL && reading_text(rd, text, len, e) < 0)
		return -1;
	if (!json_object_is_type(json_get(frame, "done"), json_type_boolean) || !json_object_get_boolean(json_get(frame, "done")))
		return 0;
	take_usage(&rd->answer, frame);
	take_name(&rd->answer.finish_reason, frame, "done_reason");
	if (rd->answer.finish_reason == NULL)	/* older servers do not say */
		rd->answer.finish_reason = xstrdup("stop");
	rd->complete = true;
	return 1;
}

static void
address(const struct llm_request *r, struct address *a)
{
	buf_adds(&a->path, "/api/chat");
}

static const struct api api = {
	.name = NAME,
	.base_url = "http://localhost:11434",
	.keyless = true,
	.lines = true,
	.address = address,
	.frame = frame,
};

static int
ollama_call(const struct llm_request *r, const struct buf *body, const struct llm_sink *sink, struct llm_reply *reply, struct err *e)
{
	return api_call(&api, r, body, sink, reply, e);
}

const struct provider provider_ollama = {
	.api = &api,
	.body = ollama_body,
	.call = ollama_call,
};

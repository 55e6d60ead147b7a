/*
 * Ollama's own chat API. Source: docs/api.md of Ollama (chat, tools, structured outputs, errors). Where it and the official client
 * differ: nothing that is sent. Its calls have no ids; results are told apart by their order, which is that of the calls, and tool_name. It sees only num_ctx
 * tokens of what it is sent and drops the beginning silently: options: {options: {num_ctx: N}} sets it.
 */
#include "llm/reading.h"

#include "base/alloc.h"
#include "llm/origin.h"

#include <stdlib.h>

#define NAME "ollama"

/* ---- the request ---- */

struct body {
	const struct llm_request *r;
	struct buf *out;
	struct json_object *called;	/* by the ids of the last response's calls: their places */
};

static int
summary(void *arg, const char *text, size_t len, struct err *e)
{
	put_text_message(((struct body *)arg)->out, "user", text, len);
	return 0;
}

/* Parts taken apart: all text joined by newlines, text documents included; all images in a list. */
struct parts {
	const struct body *b;
	struct buf text, images;
	size_t texts;
	bool of_tool;
};

static int
take_part(void *arg, struct part *p, struct err *e)
{
	struct parts *to = arg;

	if (!to->b->r->as_ag2)
		part_as_text(p);
	if (p->form == PART_TEXT) {
		buf_adds(&to->text, to->texts++ > 0 ? "\n" : "");
		buf_add(&to->text, p->text.data, p->text.len);
	} else if (p->form == PART_BINARY && !to->of_tool && strcmp(p->kind, "image") == 0) {
		put_comma(&to->images);
		put_string(&to->images, part_base64(p), strlen(part_base64(p)));
	} else {
		return part_refuse(p, to->of_tool ? NAME " as the result of a tool" : NAME, e);
	}
	return 0;
}

static int
request(void *arg, struct json_object *parts, struct err *e)
{
	struct body *b = arg;
	struct parts to = { b, BUF_INIT, BUF_INIT, 0, false };
	int rc = each_part(b->r, parts, take_part, &to, e);

	put_message(b->out, "user");
	put_member(b->out, "content", to.text.data, to.text.len);
	if (to.images.len > 0) {
		put_name(b->out, "images");
		buf_addf(b->out, "[%s]", to.images.data);
	}
	buf_adds(b->out, "}");
	buf_release(&to.text);
	buf_release(&to.images);
	return rc;
}

static void
tool_call(struct buf *out, struct json_object *call, bool as_ag2)
{
	buf_adds(out, "{\"function\":{");
	put_member_of(out, "name", call, "name");
	put_name(out, "arguments");
	put_arguments(out, call, as_ag2);
	buf_adds(out, "}}");
}

static void
note_called(struct body *b, struct json_object *calls, size_t n)
{
	const char *id;
	size_t i;

	json_object_put(b->called);
	b->called = json_object_new_object();
	for (i = 0; i < n; i++) {
		id = json_get_text(json_object_array_get_idx(calls, i), "id", NULL);
		if (id != NULL && json_get(b->called, id) == NULL)
			json_object_object_add(b->called, id, json_object_new_int64((int64_t)i));
	}
}

static int
response(void *arg, struct json_object *data, struct err *e)
{
	struct body *b = arg;
	size_t len, n;
	struct json_object *calls = response_calls(data, &n);
	const char *text = response_text(data, b->r->as_ag2, &len);

	note_called(b, calls, n);
	if (text == NULL && n == 0)
		return 0;
	put_message(b->out, "assistant");
	put_member(b->out, "content", text, len);
	put_tool_calls(b->out, calls, tool_call, b->r->as_ag2);
	buf_adds(b->out, "}");
	return 0;
}

static int
result(struct body *b, struct json_object *result, struct err *e)
{
	struct parts to = { b, BUF_INIT, BUF_INIT, 0, true };
	const char *name = json_get_text(result, "name", NULL);
	int rc = each_part(b->r, result_parts(result), take_part, &to, e);

	if (says_nothing(result_parts(result)) && !b->r->as_ag2) {
		buf_reset(&to.text);
		buf_adds(&to.text, NO_OUTPUT);
	}
	put_message(b->out, "tool");
	if (name != NULL && !b->r->as_ag2)
		put_member_str(b->out, "tool_name", name);
	put_member(b->out, "content", to.text.data, to.text.len);
	buf_adds(b->out, "}");
	buf_release(&to.text);
	return rc;
}

struct placed {
	int64_t place;		/* where the call is that it answers; behind all of them when it is none of these */
	size_t i;
};

static int64_t
place_of(const struct body *b, struct json_object *result)
{
	const char *id = json_get_text(result, "parent_id", NULL);
	struct json_object *place = id != NULL ? json_get(b->called, id) : NULL;

	return place != NULL ? json_object_get_int64(place) : INT64_MAX;
}

static int
by_place(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	return x->place != y->place ? (x->place > y->place) - (x->place < y->place) : (x->i > y->i) - (x->i < y->i);
}

/* Tools that ran side by side end in any order. */
static int
results(void *arg, struct json_object *const *items, size_t n, struct err *e)
{
	struct body *b = arg;
	struct placed *order = xcalloc(n + 1, sizeof(order[0]));
	size_t i;
	int rc = 0;

	for (i = 0; i < n; i++)
		order[i] = (struct placed){ b->r->as_ag2 ? 0 : place_of(b, items[i]), i };
	qsort(order, n, sizeof(order[0]), by_place);
	for (i = 0; rc == 0 && i < n; i++) {
		origin_mark_one(b->r->origins, order[i].i);
		rc = result(b, items[order[i].i], e);
	}
	free(order);
	return rc;
}

static const struct walk walk = { .request = request, .response = response, .results = results, .summary = summary };

static void
system_messages(struct body *b)
{
	const struct llm_request *r = b->r;
	size_t i;

	for (i = 0; i < r->prompts_n; i++)
		if (r->prompts[i].len > 0 || r->as_ag2)
			put_text_message(b->out, "system", r->prompts[i].data, r->prompts[i].len);
}

static void
declare(struct buf *out, const struct llm_request *r, const struct llm_tool *t)
{
	buf_adds(out, "{\"type\":\"function\",\"function\":{");
	put_declaration(out, t, "parameters");
	buf_adds(out, "}}");
}

static int
settings(struct buf *out, const struct llm_request *r, struct err *e)
{
	static const char *const mine[] = { "model", "messages", "stream", NULL };
	struct json_object *s = json_object_new_object();

	setting_add(s, "stream", json_object_new_boolean(r->stream));	/* it streams unless told not to */
	settings_usual(s, r, "options.temperature", "options.num_predict");
	if (r->schema != NULL)
		setting_add(s, "format", shape_copy(r));
	return put_settings(out, s, r, mine, e);
}

static int
ollama_body(const struct llm_request *r, struct buf *out, struct err *e)
{
	struct body b = { r, out, NULL };
	int rc;

	buf_adds(out, "{");
	put_member_str(out, "model", r->config->model);
	rc = settings(out, r, e);
	put_tools(out, r, declare);
	put_name(out, "messages");
	buf_adds(out, "[");
	system_messages(&b);
	if (rc == 0)
		rc = walk_history(r, &walk, &b, e);
	buf_adds(out, "]}");
	json_object_put(b.called);
	return rc;
}

/* ---- the answer ---- */

/* Of those of the prompt, newer servers tell how many were in their cache. */
static const struct usage_names counts = { .prompt = "prompt_eval_count", .completion = "eval_count", .cache_read = "prompt_eval_cached_count" };

/* A piece, or all of it: they look the same. The last one is `done`, and has the counts. */
static int
frame(struct reading *rd, const char *event, struct json_object *frame, bool whole, struct err *e)
{
	struct json_object *message = json_get(frame, "message"), *calls = json_get(message, "tool_calls"), *done = json_get(frame, "done");
	static const char *const loads[] = { "load", "unload", NULL };	/* of a request that says nothing */
	size_t len, i;
	const char *text = json_get_text(message, "content", &len), *reason = json_get_text(frame, "done_reason", NULL);

	take_name(&rd->answer.model, frame, "model");
	for (i = 0; i < json_count(calls); i++)
		if (answer_whole_call(&rd->answer, json_get(json_object_array_get_idx(calls, i), "function"), "id", "arguments", e) == NULL)
			return -1;
	if (text != NULL && reading_text(rd, text, len, e) < 0)
		return -1;
	text = json_get_text(message, "thinking", &len);
	if (text != NULL && len > 0)
		reading_piece(rd, NULL, text, len);
	if (!json_object_is_type(done, json_type_boolean) || !json_object_get_boolean(done))
		return 0;
	take_usage(&rd->answer, frame, &counts);
	if (reason != NULL && is_one_of(reason, loads))
		return err_set(e, ERR_UNAVAIL, "the model's server only loaded the model (done_reason %s)", reason);
	take_name(&rd->answer.finish_reason, frame, "done_reason");
	if (rd->answer.finish_reason == NULL)	/* older servers do not say */
		rd->answer.finish_reason = xstrdup("stop");
	rd->complete = true;
	return 1;
}

static const struct api api = {
	.name = NAME,
	.base_url = "http://localhost:11434",
	.path = "/api/chat",
	.keyless = true,
	.lines = true,
	.plain = { { .text = "message.content", .unread = { "created_at" } }, { .text = "message.thinking", .unread = { "created_at" } } },
	.frame = frame,
};

const struct provider provider_ollama = { .body = ollama_body, .api = &api };

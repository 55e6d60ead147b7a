/*
 * Google's Gemini API, generateContent. Source: its API reference (models.generateContent, streaming), and its pages on function
 * calling, thought signatures and file input. Where it, the official client and AG2 differ:
 *
 * - Bytes are base64 in the reference, URL-safe base64 in the client; the first, the second as AG2.
 * - The reference has a result under `output` or any object, and failures under `error`; AG2 has all under `result`. Sent is the object
 *   that a tool printed, else {"result": text}, and {"error": text} of a tool that failed. AG2 leaves ids out; they are sent.
 * - The client sends an empty generationConfig with tools; it is left out.
 * - The reference wants as many results in a content as there were calls: those of a round are one content, AG2 has one for each container.
 * - AG2 has code that ran there in the content before the answer, here it is in the answer's. It sends the name of a file (displayName),
 *   which the reference has for Google's cloud only.
 */
#include "llm/reading.h"
#include "media.h"

#include "base/alloc.h"

#include <ctype.h>
#include <stdlib.h>

#define NAME "gemini"
#define HOST "https://generativelanguage.googleapis.com"
#define VERSION "v1beta"

/* ---- the request ---- */

struct body {
	const struct llm_request *r;
	struct buf *out;
	struct buf own;		/* parts of the provider's tools, for the response that comes behind them */
	size_t answer_end;	/* where the last content of the model ends */
	size_t results_end;	/* and the last of results */
};

static void
open_content(struct body *b)
{
	put_comma(b->out);
	buf_adds(b->out, "{\"parts\":[");
}

static void
close_content(struct body *b, const char *role)
{
	buf_addf(b->out, "],\"role\":\"%s\"}", role);
}

static void
text_part(struct buf *out, const char *text, size_t len)
{
	buf_adds(out, "{");
	put_member(out, "text", text, len);
	buf_adds(out, "}");
}

/* Base64 of one alphabet in the other. */
static void
put_base64(struct buf *out, const char *name, const char *text, bool url_safe)
{
	struct buf copy = BUF_INIT;
	char *c;

	buf_adds(&copy, text);
	for (c = copy.data; copy.len > 0 && *c != '\0'; c++) {
		if (url_safe)
			*c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
		else
			*c = *c == '-' ? '+' : *c == '_' ? '/' : *c;
	}
	put_member(out, name, copy.data, copy.len);
	buf_release(&copy);
}

/* The client's names have underscores, the API's do not: code_execution_result is codeExecutionResult. */
static struct json_object *
renamed(struct json_object *value, bool to_api)
{
	struct json_object *copy;
	struct buf name = BUF_INIT;
	const char *c;
	size_t i;

	if (json_object_is_type(value, json_type_array)) {
		copy = json_object_new_array();
		for (i = 0; i < json_object_array_length(value); i++)
			json_object_array_add(copy, renamed(json_object_array_get_idx(value, i), to_api));
		return copy;
	}
	if (!json_object_is_type(value, json_type_object))
		return json_object_get(value);
	copy = json_object_new_object();
	json_object_object_foreach(value, key, member) {
		buf_reset(&name);
		for (c = key; *c != '\0'; c++) {
			if (to_api && *c == '_' && c[1] != '\0')
				buf_addch(&name, (char)toupper((unsigned char)*++c));
			else if (!to_api && isupper((unsigned char)*c))
				buf_addf(&name, "_%c", tolower((unsigned char)*c));
			else
				buf_addch(&name, *c);
		}
		if (member != NULL)
			json_object_object_add(copy, name.data, renamed(member, to_api));
	}
	buf_release(&name);
	return copy;
}

static void
file_data(struct buf *out, const char *base, const char *uri, const char *media)
{
	struct buf whole = BUF_INIT;

	buf_addf(&whole, "%s%s", base, uri);
	buf_adds(out, "{\"fileData\":{");
	put_member(out, "fileUri", whole.data, whole.len);
	if (media != NULL)
		put_member_str(out, "mimeType", media);
	buf_adds(out, "}}");
	buf_release(&whole);
}

static void
inline_data(struct buf *out, const struct part *p, bool as_ag2)
{
	const char *name = json_get_text(json_get(p->value, "vendor_metadata"), "display_name", NULL);

	buf_adds(out, "{\"inlineData\":{");
	put_member_str(out, "mimeType", part_member(p, "media_type"));
	put_base64(out, "data", part_base64(p), as_ag2);
	if (as_ag2 && name != NULL)	/* the API knows names in Google's cloud only */
		put_member_str(out, "displayName", name);
	buf_adds(out, "}}");
}

/* What a user asks for with a file: how finely it is looked at, and which part of a video. */
static void
put_wishes(struct buf *out, const struct part *p)
{
	struct json_object *vendor = json_get(p->value, "vendor_metadata"), *video = renamed(json_get(vendor, "video_metadata"), true),
	    *fine = json_get(vendor, "media_resolution");

	if (json_object_is_type(fine, json_type_string)) {
		put_name(out, "mediaResolution");
		buf_adds(out, "{");
		put_member_of(out, "level", vendor, "media_resolution");
		buf_adds(out, "}");
	} else if (fine != NULL) {
		put_name(out, "mediaResolution");
		json_write(out, fine, JSON_COMPACT);
	}
	if (video != NULL) {
		put_name(out, "videoMetadata");
		json_write(out, video, JSON_COMPACT);
	}
	json_object_put(video);
}

static void
media_part(const struct body *b, struct buf *out, const struct part *p)
{
	const char *url = part_member(p, "url"), *id = part_member(p, "file_id");

	if (p->form == PART_URL)
		file_data(out, "", url, media_by_name(url));
	else if (p->form == PART_FILE)
		file_data(out, strncmp(id, "https://", 8) == 0 ? "" : HOST "/" VERSION "/", id, b->r->as_ag2 ? NULL : media_by_name(part_member(p, "filename")));
	else
		inline_data(out, p, b->r->as_ag2);
}

static int
request_part(void *arg, struct part *p, struct err *e)
{
	struct body *b = arg;

	if (p->form == PART_BINARY && !b->r->as_ag2 && media_is_office(part_member(p, "media_type")))
		return part_refuse(p, NAME, e);
	put_comma(b->out);
	if (p->form == PART_TEXT) {
		text_part(b->out, p->text.data, p->text.len);
		return 0;
	}
	media_part(b, b->out, p);
	if (p->form == PART_BINARY) {
		b->out->len--;		/* the closing brace */
		put_wishes(b->out, p);
		buf_adds(b->out, "}");
	}
	return 0;
}

static int
request(void *arg, struct json_object *parts, struct err *e)
{
	struct body *b = arg;
	int rc;

	buf_reset(&b->own);
	if (json_count(parts) == 0)
		return 0;
	open_content(b);
	rc = each_part(b->r, parts, request_part, b, e);
	close_content(b, "user");
	return rc;
}

static int
summary(void *arg, const char *text, size_t len, struct err *e)
{
	struct body *b = arg;

	open_content(b);
	text_part(b->out, text, len);
	close_content(b, "user");
	return 0;
}

/* Models from Gemini 3 on refuse a call without the signature they gave it; a call of another model has this one instead. */
#define NO_SIGNATURE "skip_thought_signature_validator"

static bool
wants_signatures(const char *model)
{
	return strncmp(model, "gemini-", 7) == 0 && isdigit((unsigned char)model[7]) && strtol(model + 7, NULL, 10) >= 3;
}

static void
put_signature(const struct body *b, struct buf *out, struct json_object *call, bool first)
{
	const char *signature = json_get_text(json_get(call, "thought_signature"), "__bytes__", NULL);

	if (signature != NULL)
		put_base64(out, "thoughtSignature", signature, b->r->as_ag2);
	else if (first && !b->r->as_ag2 && wants_signatures(b->r->config->model))
		put_member_str(out, "thoughtSignature", NO_SIGNATURE);
}

static int
function_call(const struct body *b, struct buf *out, struct json_object *call, bool first, struct err *e)
{
	struct json_object *args = call_arguments(call);
	bool object = json_object_is_type(args, json_type_object);
	const char *name = json_get_text(call, "name", NULL);

	json_object_put(args);
	if (b->r->as_ag2 && !object)
		return err_set(e, ERR_DATA, "the arguments of a call of '%.100s' are no object: they cannot be sent to %s", name ? name : "", NAME);
	put_comma(out);
	buf_adds(out, "{\"functionCall\":{\"args\":");
	put_arguments(out, call, b->r->as_ag2);
	if (json_get(call, "id") != NULL && !b->r->as_ag2)
		put_member_of(out, "id", call, "id");
	put_member_of(out, "name", call, "name");
	buf_adds(out, "}");
	put_signature(b, out, call, first);
	buf_adds(out, "}");
	return 0;
}

static void
put_answer(struct body *b, const struct buf *parts)
{
	if (parts->len == 0)
		return;
	open_content(b);
	buf_add(b->out, parts->data, parts->len);
	close_content(b, "model");
	b->answer_end = b->out->len;
}

static int
response(void *arg, struct json_object *data, struct err *e)
{
	struct body *b = arg;
	struct buf parts = BUF_INIT;
	size_t len, i, n;
	struct json_object *calls = response_calls(data, &n);
	const char *text = response_text(data, b->r->as_ag2, &len);
	int rc = 0;

	buf_add(&parts, b->own.data, b->own.len);
	buf_reset(&b->own);
	if (text != NULL) {
		put_comma(&parts);
		text_part(&parts, text, len);
	}
	for (i = 0; rc == 0 && i < n; i++)
		rc = function_call(b, &parts, json_object_array_get_idx(calls, i), i == 0, e);
	if (rc == 0)
		put_answer(b, &parts);
	buf_release(&parts);
	return rc;
}

/* What a tool gave, taken apart: the texts as JSON strings, the media as parts. */
struct output {
	const struct body *b;
	struct buf texts, media, alone;
	size_t n;
};

static int
output_part(void *arg, struct part *p, struct err *e)
{
	struct output *o = arg;

	if (p->form == PART_TEXT) {
		put_comma(&o->texts);
		put_string(&o->texts, p->text.data, p->text.len);
		buf_reset(&o->alone);
		buf_add(&o->alone, p->text.data, p->text.len);
		o->n++;
		return 0;
	}
	if (p->form == PART_FILE || (strcmp(p->kind, "image") != 0 && strcmp(p->kind, "document") != 0))
		return part_refuse(p, NAME " as the result of a tool", e);
	put_comma(&o->media);
	media_part(o->b, &o->media, p);
	return 0;
}

static void
put_response(const struct body *b, struct buf *out, const struct output *o, bool nothing, bool failed)
{
	struct json_object *value = NULL;
	const char *name = failed && !b->r->as_ag2 ? "error" : "result";

	if (nothing && !b->r->as_ag2) {
		buf_addf(out, "{\"%s\":\"" NO_OUTPUT "\"}", name);
	} else if (o->n == 1 && !failed && !b->r->as_ag2 && json_parse(&value, o->alone.data, o->alone.len, NULL) == 0 &&
	    json_object_is_type(value, json_type_object)) {
		json_write(out, value, JSON_COMPACT);
	} else if (o->n == 0) {
		buf_adds(out, "{}");
	} else {
		buf_addf(out, o->n > 1 ? "{\"%s\":[%s]}" : "{\"%s\":%s}", name, o->texts.data);
	}
	json_object_put(value);
}

static int
function_response(struct body *b, struct json_object *result, struct err *e)
{
	struct output o = { b, BUF_INIT, BUF_INIT, BUF_INIT, 0 };
	int rc = each_part(b->r, result_parts(result), output_part, &o, e);

	put_comma(b->out);
	buf_adds(b->out, "{\"functionResponse\":{");
	if (json_get(result, "parent_id") != NULL && !b->r->as_ag2)
		put_member_of(b->out, "id", result, "parent_id");
	put_member_of(b->out, "name", result, "name");
	put_name(b->out, "response");
	put_response(b, b->out, &o, says_nothing(result_parts(result)), result_failed(result));
	if (o.media.len > 0)
		buf_addf(b->out, ",\"parts\":[%s]", o.media.data);
	buf_adds(b->out, "}}");
	buf_release(&o.texts);
	buf_release(&o.media);
	buf_release(&o.alone);
	return rc;
}

/* Goes on with a content that was closed. */
static void
reopen_content(struct body *b, const char *role)
{
	b->out->len -= strlen("],\"role\":\"\"}") + strlen(role);
	b->out->data[b->out->len] = '\0';
}

/* As many results in one content as the one before it has calls: also where they are logged in several containers. */
static int
results(void *arg, struct json_object *const *items, size_t n, struct err *e)
{
	struct body *b = arg;
	size_t i;
	int rc = 0;

	buf_reset(&b->own);
	if (b->results_end == b->out->len && !b->r->as_ag2)
		reopen_content(b, "user");
	else
		open_content(b);
	for (i = 0; rc == 0 && i < n; i++)
		rc = function_response(b, items[i], e);
	close_content(b, "user");
	b->results_end = b->out->len;
	return rc;
}

/* Code that ran on Google's side, and what it printed, are part of the model's content; AG2 has them in the one before it. */
static int
replay(void *arg, const struct event_type *type, struct json_object *data, struct err *e)
{
	struct body *b = arg;
	struct json_object *part = json_get(json_get(data, "part"), "data");

	if (strncmp(type->last, "Gemini", 6) != 0 || part == NULL)
		return 0;
	part = renamed(part, true);
	put_comma(&b->own);
	put_sparse(&b->own, part);
	json_object_put(part);
	if (!b->r->as_ag2)
		return 1;
	if (b->answer_end == b->out->len) {
		reopen_content(b, "model");
		buf_addf(b->out, ",%s", b->own.data);
		close_content(b, "model");
		b->answer_end = b->out->len;
	} else {
		put_answer(b, &b->own);
	}
	buf_reset(&b->own);
	return 0;
}

static const struct walk walk = { .request = request, .response = response, .results = results, .summary = summary, .replay = replay };

static void
system_instruction(struct buf *out, const struct llm_request *r)
{
	struct buf text = BUF_INIT;

	put_prompts(&text, r);
	if (text.len > 0) {
		put_name(out, "systemInstruction");
		buf_adds(out, "{\"parts\":[");
		text_part(out, text.data, text.len);
		buf_adds(out, "],\"role\":\"user\"}");
	}
	buf_release(&text);
}

/* Ours are one tool, with all declarations. */
static void
tools(struct buf *out, const struct llm_request *r)
{
	size_t i;

	if (r->tools_n == 0 && json_get(r->config->options, "tools") == NULL)
		return;
	put_name(out, "tools");
	buf_adds(out, "[");
	for (i = 0; i < r->tools_n; i++) {
		buf_adds(out, i == 0 ? "{\"functionDeclarations\":[{" : ",{");
		put_declaration(out, &r->tools[i], "parametersJsonSchema");
		buf_adds(out, "}");
	}
	buf_adds(out, r->tools_n > 0 ? "]}" : "");
	put_option_tools(out, r);
	buf_adds(out, "]");
}

static int
settings(struct buf *out, const struct llm_request *r, struct err *e)
{
	static const char *const mine[] = { "contents", "systemInstruction", NULL };
	struct json_object *s = json_object_new_object();

	settings_usual(s, r, "generationConfig.temperature", "generationConfig.maxOutputTokens");
	if (r->schema != NULL) {
		setting_add(s, "generationConfig.responseMimeType", json_object_new_string("application/json"));
		setting_add(s, "generationConfig.responseJsonSchema", shape_copy(r));
	}
	return put_settings(out, s, r, mine, e);
}

static int
gemini_body(const struct llm_request *r, struct buf *out, struct err *e)
{
	struct body b = { r, out, BUF_INIT, 0, 0 };
	int rc;

	buf_adds(out, "{");
	rc = settings(out, r, e);
	tools(out, r);
	system_instruction(out, r);
	put_name(out, "contents");
	buf_adds(out, "[");
	if (rc == 0)
		rc = walk_history(r, &walk, &b, e);
	buf_adds(out, "]}");
	buf_release(&b.own);
	return rc;
}

/* ---- the answer ---- */

struct state {
	char *code_id;		/* of the code whose outcome comes next */
};

static const struct state initial;

static void
release(void *arg)
{
	free(((struct state *)arg)->code_id);
}

static const struct usage_names counts = {
	.prompt = "promptTokenCount",
	.completion = "candidatesTokenCount",
	.total = "totalTokenCount",
	.cache_read = "cachedContentTokenCount",
	.thinking = "thoughtsTokenCount",
};

/* Base64 in the alphabet in which AG2 keeps bytes. */
static char *
as_kept(const char *text)
{
	char *copy = xstrdup(text), *p;

	for (p = copy; *p != '\0'; p++)
		*p = *p == '-' ? '+' : *p == '_' ? '/' : *p;
	return copy;
}

static int
take_call(struct reading *rd, struct json_object *part, struct err *e)
{
	const char *signature = json_get_text(part, "thoughtSignature", NULL);
	struct answer_call *c = answer_whole_call(&rd->answer, json_get(part, "functionCall"), "id", "args", e);

	if (c == NULL)
		return -1;
	c->signature = signature != NULL ? as_kept(signature) : NULL;
	return 0;
}

/* Code that ran on the provider's side, and what came of it: both go back as they were. */
static int
take_code(struct reading *rd, struct json_object *part, struct err *e)
{
	struct state *s = rd->state;
	struct json_object *code = json_get(part, "executableCode"), *outcome = json_get(part, "codeExecutionResult"), *copy = renamed(part, false);
	struct provider_item item = { "part", "google.genai.types.Part", copy };
	struct buf line = BUF_INIT, arguments = BUF_INIT;
	struct text text;
	int rc = 0;

	json_object_object_del(copy, "thought_signature");
	if (code != NULL && (rc = answer_make_id(&s->code_id, e)) == 0) {
		json_write(&arguments, code, JSON_PYTHON);
		build_server_call(&line, "GeminiServerToolCallEvent",
		    &(struct call){ s->code_id, (char *)"code_execution", arguments.data }, &item);
	} else if (outcome != NULL && s->code_id != NULL) {
		text.data = json_get_text(outcome, "output", &text.len);
		build_server_result(&line, "GeminiServerToolResultEvent", &(struct call){ s->code_id, (char *)"code_execution" },
		    text.data != NULL ? &text : NULL, &item);
	}
	if (line.len > 0)
		answer_replay(&rd->answer, &line);
	buf_release(&arguments);
	json_object_put(copy);
	return rc;
}

/* An image or sound that the model made. */
static int
take_file(struct reading *rd, struct json_object *blob, struct err *e)
{
	struct json_object *metadata = json_object_new_object(), *media = json_get(blob, "mimeType");
	const char *text = json_get_text(blob, "data", NULL);
	char *bytes = as_kept(text != NULL ? text : "");
	int rc;

	if (json_object_is_type(media, json_type_string))
		json_object_object_add(metadata, "media_type", json_object_get(media));
	rc = answer_file(&rd->answer, bytes, strlen(bytes), metadata, e);
	free(bytes);
	return rc;
}

static int
take_part(struct reading *rd, struct json_object *part, struct err *e)
{
	struct json_object *thought = json_get(part, "thought");
	size_t len;
	const char *text = json_get_text(part, "text", &len);

	if (thought != NULL && json_object_get_boolean(thought))
		return 0;
	if (text != NULL)
		return reading_text(rd, text, len, e);
	if (json_get(part, "functionCall") != NULL)
		return take_call(rd, part, e);
	if (json_get(part, "executableCode") != NULL || json_get(part, "codeExecutionResult") != NULL)
		return take_code(rd, part, e);
	return json_get(part, "inlineData") != NULL ? take_file(rd, json_get(part, "inlineData"), e) : 0;
}

static int
take_candidate(struct reading *rd, struct json_object *candidate, struct err *e)
{
	static const char *const failures[] = { "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS",
		"MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE", "NO_IMAGE", "IMAGE_OTHER", "OTHER", NULL };	/* ends that are none */
	struct json_object *parts = json_get(json_get(candidate, "content"), "parts");
	size_t i;
	const char *reason = json_get_text(candidate, "finishReason", NULL);

	for (i = 0; i < json_count(parts); i++)
		if (take_part(rd, json_object_array_get_idx(parts, i), e) < 0)
			return -1;
	if (reason == NULL || strcmp(reason, "FINISH_REASON_UNSPECIFIED") == 0)
		return 0;
	if (is_one_of(reason, failures))
		return err_set(e, ERR_UNAVAIL, "the model failed to answer (finishReason %.60s)", reason);
	take_name(&rd->answer.finish_reason, candidate, "finishReason");
	rd->complete = true;
	return 0;
}

static int
frame(struct reading *rd, const char *event, struct json_object *frame, bool whole, struct err *e)
{
	struct json_object *candidates = json_get(frame, "candidates"), *candidate;
	size_t i;
	const char *blocked = json_get_text(json_get(frame, "promptFeedback"), "blockReason", NULL);

	if (blocked != NULL)
		return err_set(e, ERR_UNAVAIL, "the model's server blocked the prompt (%.60s)", blocked);
	take_name(&rd->answer.model, frame, "modelVersion");
	take_usage(&rd->answer, json_get(frame, "usageMetadata"), &counts);
	for (i = 0; i < json_count(candidates); i++) {
		candidate = json_object_array_get_idx(candidates, i);
		if (take_count(candidate, "index") <= 0 && take_candidate(rd, candidate, e) < 0)
			return -1;
	}
	return 0;
}

static void
put_path(struct buf *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (isalnum((unsigned char)*text) || strchr("-._~/@", *text) != NULL)
			buf_addch(out, *text);
		else
			buf_addf(out, "%%%02X", (unsigned char)*text);
	}
}

static void
address(const struct llm_request *r, struct address *a)
{
	const struct llm_config *c = r->config;

	buf_adds(&a->path, "/");
	put_path(&a->path, c->api_version != NULL ? c->api_version : VERSION);
	buf_adds(&a->path, strchr(c->model, '/') != NULL ? "/" : "/models/");
	put_path(&a->path, c->model);
	buf_adds(&a->path, r->stream ? ":streamGenerateContent" : ":generateContent");
	a->query = r->stream ? "alt=sse" : NULL;
	a->key_header = "x-goog-api-key: ";
}

static const struct api api = {
	.name = NAME,
	.early_ends = true,	/* of relays that translate from another API */
	.base_url = HOST,
	.state = sizeof(struct state),
	.plain = { { .text = "candidates.0.content.parts.0.text", .unread = { "responseId" },
		.counts = { "usageMetadata.promptTokenCount", "usageMetadata.candidatesTokenCount", "usageMetadata.totalTokenCount",
			"usageMetadata.thoughtsTokenCount" } } },
	.initial = &initial,
	.address = address,
	.frame = frame,
	.release = release,
};

const struct provider provider_gemini = { .body = gemini_body, .api = &api };

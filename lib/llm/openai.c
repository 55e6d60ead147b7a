/*
 * OpenAI Chat Completions, and the servers that speak it. Source: OpenAI's API reference (chat/create, chat/streaming); what
 * servers of that kind send beside it is noted where it is handled.
 */
#include "base/alloc.h"
#include "base/log.h"
#include "base/utf8.h"
#include "llm/http.h"
#include "llm/provider.h"
#include "llm/quote.h"
#include "llm/sse.h"

#include <stdlib.h>

#define NAME "openai"
#define BASE_URL "https://api.openai.com/v1"

/* ---- the request ---- */

struct body {
	const struct llm_request *r;
	struct buf *out;
	bool first;		/* no message yet */
	struct json_object *covered;	/* the ids that results containers answer */
};

static void
string(struct buf *out, const char *text, size_t len)
{
	json_write_string(out, text != NULL ? text : "", len, JSON_COMPACT);
}

static void
member(struct buf *out, const char *name, const char *text, size_t len)
{
	buf_addf(out, "\"%s\":", name);
	string(out, text, len);
}

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
	member(b->out, "content", text, len);
	buf_adds(b->out, "}");
}

static void
system_message(struct body *b)
{
	const struct llm_request *r = b->r;
	struct buf text = BUF_INIT;
	size_t i;

	for (i = 0; i < r->prompts_n; i++) {
		if (i > 0)
			buf_addch(&text, '\n');
		buf_add(&text, r->prompts[i].data, r->prompts[i].len);
	}
	if (r->prompts_n > 0 && (text.len > 0 || r->as_ag2))
		text_message(b, "system", text.data, text.len);
	buf_release(&text);
}

/* What a text part looks like in an array of parts. */
static void
text_item(struct buf *out, const struct part *p)
{
	buf_adds(out, "{\"type\":\"text\",");
	member(out, "text", p->text.data, p->text.len);
	buf_adds(out, "}");
}

static const char *
value_text(const struct part *p, const char *key)
{
	const char *text = json_get_text(p->value, key, NULL);

	return text != NULL ? text : "";
}

static const char *
base64_of(const struct part *p)
{
	const char *text = json_get_text(json_get(p->value, "data"), "__bytes__", NULL);

	return text != NULL ? text : "";
}

static void
data_url(struct buf *out, const struct part *p)
{
	struct buf url = BUF_INIT;

	buf_addf(&url, "data:%s;base64,%s", value_text(p, "media_type"), base64_of(p));
	string(out, url.data, url.len);
	buf_release(&url);
}

static void
image_item(struct buf *out, const struct part *p)
{
	const char *url = value_text(p, "url"), *detail = json_get_text(json_get(p->value, "vendor_metadata"), "detail", NULL);

	buf_adds(out, "{\"type\":\"image_url\",\"image_url\":{\"url\":");
	if (p->form == PART_URL)
		string(out, url, strlen(url));
	else
		data_url(out, p);
	if (detail != NULL) {
		buf_adds(out, ",");
		member(out, "detail", detail, strlen(detail));
	}
	buf_adds(out, "}}");
}

/* The second half of a media type as the end of a file name, or of the API's audio formats: svg+xml is svg, mpeg mp3. */
static struct text
media_suffix(const struct part *p)
{
	const char *media = value_text(p, "media_type"), *slash = strchr(media, '/'), *sub = slash != NULL ? slash + 1 : media;

	if (strcmp(p->kind, "audio") == 0 && strcmp(sub, "mpeg") == 0)
		sub = "mp3";
	return (struct text){ sub, strcspn(sub, "+;") };
}

static void
audio_item(struct buf *out, const struct part *p)
{
	struct text format = media_suffix(p);
	const char *data = base64_of(p);

	buf_adds(out, "{\"type\":\"input_audio\",\"input_audio\":{");
	member(out, "data", data, strlen(data));
	buf_adds(out, ",");
	member(out, "format", format.data, format.len);
	buf_adds(out, "}}");
}

static void
file_item(struct buf *out, const struct part *p)
{
	const char *name = json_get_text(json_get(p->value, "vendor_metadata"), "filename", NULL), *id = value_text(p, "file_id");
	struct text suffix;
	struct buf made = BUF_INIT;

	buf_adds(out, "{\"type\":\"file\",\"file\":{");
	if (p->form == PART_FILE) {
		member(out, "file_id", id, strlen(id));
	} else {
		suffix = media_suffix(p);
		buf_addf(&made, "file.%.*s", (int)suffix.len, suffix.data);
		buf_adds(out, "\"file_data\":");
		data_url(out, p);
		buf_adds(out, ",");
		member(out, "filename", name != NULL ? name : made.data, strlen(name != NULL ? name : made.data));
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
content_item(struct buf *out, struct json_object *value, bool alone, int (*item)(struct buf *, const struct part *, struct err *), struct err *e)
{
	struct part p;
	int rc = part_read(&p, value, e);

	if (rc == 0 && alone && p.form == PART_TEXT) {
		string(out, p.text.data, p.text.len);
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
content(struct buf *out, struct json_object *parts, int (*item)(struct buf *, const struct part *, struct err *), struct err *e)
{
	size_t i, n = json_object_is_type(parts, json_type_array) ? json_object_array_length(parts) : 0;

	buf_adds(out, "\"content\":");
	if (n == 1)
		return content_item(out, json_object_array_get_idx(parts, 0), true, item, e);
	buf_adds(out, "[");
	for (i = 0; i < n; i++) {
		buf_adds(out, i > 0 ? "," : "");
		if (content_item(out, json_object_array_get_idx(parts, i), false, item, e) < 0)
			return -1;
	}
	buf_adds(out, "]");
	return 0;
}

static int
request_message(struct body *b, struct json_object *data, struct err *e)
{
	int rc;

	open_message(b, "user");
	buf_adds(b->out, ",");
	rc = content(b->out, json_get(data, "parts"), user_item, e);
	buf_adds(b->out, "}");
	return rc;
}

static void
summary_message(struct body *b, struct json_object *data)
{
	struct buf text = BUF_INIT;
	size_t len = 0;
	const char *summary = json_get_text(data, "summary", &len);

	buf_adds(&text, "[Summary of earlier conversation]\n");
	buf_add(&text, summary, len);
	text_message(b, "user", text.data, text.len);
	buf_release(&text);
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
	member(b->out, "id", id, id_len);
	buf_adds(b->out, ",\"type\":\"function\",\"function\":{");
	member(b->out, "name", name, name_len);
	buf_adds(b->out, ",");
	member(b->out, "arguments", arguments.data, arguments.len);
	buf_adds(b->out, "}}");
	buf_release(&arguments);
}

static void
response_message(struct body *b, struct json_object *data)
{
	struct json_object *calls = json_get(json_get(data, "tool_calls"), "calls");
	size_t len = 0, i, n = json_object_is_type(calls, json_type_array) ? json_object_array_length(calls) : 0;
	const char *text = json_get_text(json_get(data, "message"), "content", &len);

	if (len == 0 && !b->r->as_ag2)
		text = NULL;
	if (text == NULL && n == 0)
		return;
	open_message(b, "assistant");
	buf_adds(b->out, ",");
	if (text != NULL)
		member(b->out, "content", text, len);
	else
		buf_adds(b->out, "\"content\":null");
	for (i = 0; i < n; i++) {
		buf_adds(b->out, i == 0 ? ",\"tool_calls\":[" : ",");
		tool_call(b, json_object_array_get_idx(calls, i));
	}
	buf_adds(b->out, n > 0 ? "]}" : "}");
}

/* A model that sees nothing as a result takes it for a failure or calls again; some servers refuse it. */
static bool
says_nothing(struct json_object *parts)
{
	size_t i, n = json_object_is_type(parts, json_type_array) ? json_object_array_length(parts) : 0, len;
	const char *text;

	for (i = 0; i < n; i++) {
		text = json_get_text(json_object_array_get_idx(parts, i), "content", &len);
		if (text == NULL || len > 0)
			return false;
	}
	return true;
}

static int
result_message(struct body *b, struct json_object *result, struct err *e)
{
	struct json_object *parts = json_get(json_get(json_get(result, "result"), "data"), "parts");
	size_t len = 0;
	const char *id = json_get_text(result, "parent_id", &len);
	int rc = 0;

	open_message(b, "tool");
	buf_adds(b->out, ",");
	member(b->out, "tool_call_id", id, len);
	buf_adds(b->out, ",");
	if (says_nothing(parts) && !b->r->as_ag2)
		buf_adds(b->out, "\"content\":\"(no output)\"");
	else
		rc = content(b->out, parts, tool_item, e);
	buf_adds(b->out, "}");
	return rc;
}

static int
results_messages(struct body *b, struct json_object *data, struct err *e)
{
	struct json_object *results = json_get(data, "results");
	size_t i, n = json_object_is_type(results, json_type_array) ? json_object_array_length(results) : 0;

	for (i = 0; i < n; i++)
		if (result_message(b, json_object_array_get_idx(results, i), e) < 0)
			return -1;
	return 0;
}

/* A result is logged by itself and again in the container of its round: sent is the container's, else its own (AG2: never). */
static bool
only_loose(const struct body *b, struct json_object *data)
{
	const char *id = json_get_text(data, "parent_id", NULL);

	return !b->r->as_ag2 && id != NULL && !json_object_object_get_ex(b->covered, id, NULL);
}

static void
note_covered(void *arg, const char *id, size_t len)
{
	char *key = xmemdup0(id, len);

	json_object_object_add(arg, key, json_object_new_boolean(1));
	free(key);
}

static int
event_messages(struct body *b, struct event *ev, struct err *e)
{
	unsigned flags = ev->type->flags;
	struct json_object *data;

	if (!(flags & (EV_REQUEST | EV_RESPONSE | EV_RESULTS | EV_RESULT | EV_SUMMARY)))
		return 0;
	data = event_data(ev, e);
	if (data == NULL)
		return -1;
	if (flags & EV_REQUEST)
		return request_message(b, data, e);
	if (flags & EV_RESULTS)
		return results_messages(b, data, e);
	if (flags & EV_RESULT)
		return only_loose(b, data) && strncmp(ev->type->last, "Tool", 4) == 0 ? result_message(b, data, e) : 0;
	if (flags & EV_SUMMARY)
		summary_message(b, data);
	else
		response_message(b, data);
	return 0;
}

static int
messages(struct body *b, struct err *e)
{
	const struct llm_request *r = b->r;
	size_t i;

	buf_adds(b->out, "\"messages\":[");
	system_message(b);
	for (i = 0; i < r->events_n; i++) {
		if ((r->events[i]->type->flags & EV_RESULTS) && event_ids(r->events[i], note_covered, b->covered, e) < 0)
			return event_wrap(r->events[i], e);
		event_forget(r->events[i]);
	}
	for (i = 0; i < r->events_n; i++) {
		if (event_messages(b, r->events[i], e) < 0)
			return event_wrap(r->events[i], e);
		event_forget(r->events[i]);
	}
	buf_adds(b->out, "]");
	return 0;
}

/* As AG2 declares functions here: arguments beyond the declared ones are excluded unless the schema speaks of them. */
static void
parameters(struct buf *out, struct json_object *schema)
{
	size_t at;

	if (schema == NULL) {
		buf_adds(out, "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}");
		return;
	}
	json_write(out, schema, JSON_COMPACT);
	if (json_get(schema, "properties") == NULL || json_object_object_get_ex(schema, "additionalProperties", NULL))
		return;
	at = out->len - 1;	/* the closing brace */
	out->len = at;
	buf_adds(out, ",\"additionalProperties\":false}");
}

static void
tools(struct buf *out, const struct llm_request *r)
{
	size_t i;

	for (i = 0; i < r->tools_n; i++) {
		buf_adds(out, i == 0 ? ",\"tools\":[" : ",");
		buf_adds(out, "{\"type\":\"function\",\"function\":{");
		member(out, "name", r->tools[i].name, strlen(r->tools[i].name));
		if (r->tools[i].description != NULL) {
			buf_adds(out, ",");
			member(out, "description", r->tools[i].description, strlen(r->tools[i].description));
		}
		buf_adds(out, ",\"parameters\":");
		parameters(out, r->tools[i].parameters);
		buf_adds(out, "}}");
	}
	if (r->tools_n > 0)
		buf_adds(out, "]");
}

/* max_tokens is deprecated and refused by newer models: max_completion_tokens is its name now. */
static void
settings(struct buf *out, const struct llm_request *r)
{
	if (r->stream)
		buf_adds(out, ",\"stream\":true,\"stream_options\":{\"include_usage\":true}");
	if (r->config->temperature >= 0) {
		buf_adds(out, ",\"temperature\":");
		json_write_double(out, r->config->temperature);
	}
	if (r->config->max_tokens > 0)
		buf_addf(out, ",\"max_completion_tokens\":%ld", r->config->max_tokens);
}

static int
openai_body(const struct llm_request *r, struct buf *out, struct err *e)
{
	struct body b = { .r = r, .out = out, .first = true, .covered = json_object_new_object() };
	int rc;

	buf_adds(out, "{");
	member(out, "model", r->config->model, strlen(r->config->model));
	buf_adds(out, ",");
	rc = messages(&b, e);
	tools(out, r);
	settings(out, r);
	buf_adds(out, "}");
	json_object_put(b.covered);
	return rc;
}

/* ---- the answer ---- */

static const struct llm_sink nowhere;

struct reading {
	const struct llm_request *r;
	const struct llm_sink *sink;
	struct answer answer;
	struct sse sse;
	enum { FORM_UNKNOWN, FORM_STREAM, FORM_JSON } form;
	struct buf whole;	/* a body that is one JSON value; of a stream its first bytes, to quote */
	bool done;		/* [DONE] */
	bool ending;		/* no more bytes come */
	bool warned;
};

/* An error in the body of an answer that began well. */
static int
reported(const struct reading *rd, struct json_object *body, struct err *e)
{
	const char *message = error_message(body), *code = error_code(body);
	struct buf words = BUF_INIT;
	bool busy = code != NULL && (strstr(code, "rate_limit") != NULL || strstr(code, "overloaded") != NULL ||
	    strcmp(code, "429") == 0 || strcmp(code, "503") == 0);

	quote_text(&words, message ? message : "no reason given", strlen(message ? message : "no reason given"), rd->r->config->api_key);
	err_set(e, busy ? ERR_BUSY : ERR_UNAVAIL, "the model's server reports an error: %s", words.data);
	buf_release(&words);
	return -1;
}

static int
malformed(const struct reading *rd, const char *data, size_t len, const char *why, struct err *e)
{
	struct buf words = BUF_INIT;

	quote_body(&words, data, len, rd->r->config->api_key);
	err_set(e, ERR_UNAVAIL, "the answer is malformed (%s): %s", why, words.data);
	buf_release(&words);
	return -1;
}

static double
count(struct json_object *usage, const char *key)
{
	struct json_object *v = json_get(usage, key);

	return json_object_is_type(v, json_type_int) || json_object_is_type(v, json_type_double) ? json_object_get_double(v) : -1;
}

static void
take_usage(struct answer *a, struct json_object *usage)
{
	if (!json_object_is_type(usage, json_type_object))
		return;
	a->has_usage = true;
	a->usage.prompt = count(usage, "prompt_tokens");
	a->usage.completion = count(usage, "completion_tokens");
	a->usage.total = count(usage, "total_tokens");
	a->usage.cache_read = count(json_get(usage, "prompt_tokens_details"), "cached_tokens");
	a->usage.thinking = count(json_get(usage, "completion_tokens_details"), "reasoning_tokens");
}

static void
take_name(char **at, struct json_object *obj, const char *key)
{
	const char *text = json_get_text(obj, key, NULL);

	if (text == NULL || *text == '\0')
		return;
	free(*at);
	*at = xstrdup(text);
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
		return answer_text(&rd->answer, rd->sink, text, len, e);
	for (i = 0; i < n; i++) {
		item = json_object_array_get_idx(value, i);
		text = json_get_text(item, "text", &len);
		if (text != NULL && answer_text(&rd->answer, rd->sink, text, len, e) < 0)
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
take_object(struct reading *rd, struct json_object *body, const char *key, struct err *e)
{
	struct json_object *choices = json_get(body, "choices"), *choice, *index;
	size_t i, n = json_object_is_type(choices, json_type_array) ? json_object_array_length(choices) : 0;

	if (json_get(body, "error") != NULL)
		return reported(rd, body, e);
	take_name(&rd->answer.model, body, "model");
	take_usage(&rd->answer, json_get(body, "usage"));
	for (i = 0; i < n; i++) {
		choice = json_object_array_get_idx(choices, i);
		index = json_get(choice, "index");
		if (index != NULL && json_object_get_int64(index) != 0)
			continue;
		if (json_get(choice, "error") != NULL)
			return reported(rd, choice, e);
		if (take_message(rd, json_get(choice, key), e) < 0)
			return -1;
		take_name(&rd->answer.finish_reason, choice, "finish_reason");
	}
	return 0;
}

static void
warn_once(struct reading *rd, const char *what)
{
	if (!rd->warned)
		log_warn("the model's server sent %s", what);
	rd->warned = true;
}

/* Bytes that are no UTF-8 spoil one character, not the answer. */
static int
parse(struct reading *rd, struct json_object **out, const char *data, size_t len, struct err *e)
{
	struct buf valid = BUF_INIT;
	int rc;

	if (utf8_valid(data, len) == len)
		return json_parse(out, data, len, e);
	if (!rd->ending)
		warn_once(rd, "text that is not UTF-8; it is shown as U+FFFD");
	utf8_add_valid(&valid, data, len);
	rc = json_parse(out, valid.data, valid.len, e);
	buf_release(&valid);
	return rc;
}

static int
incomplete(const struct reading *rd, struct err *e)
{
	if (rd->answer.text.len == 0 && rd->answer.calls_n == 0 && rd->answer.model == NULL)
		return malformed(rd, rd->whole.data, rd->whole.len, rd->whole.len == 0 ? "it is empty" : "it is no stream of events", e);
	return err_set(e, ERR_UNAVAIL, "the answer is incomplete: it ended without a reason to finish");
}

static int
on_event(void *arg, const char *event, const char *data, size_t len, struct err *e)
{
	struct reading *rd = arg;
	struct json_object *body = NULL;
	struct err why = ERR_INIT;
	int rc;

	if (rd->done || len == 0)
		return 0;
	if (strcmp(data, "[DONE]") == 0) {
		rd->done = true;
		return 1;
	}
	if (data[0] == ':') {	/* a relay that took a comment for data */
		warn_once(rd, "a comment as data; it is skipped");
		return 0;
	}
	if (parse(rd, &body, data, len, &why) < 0)
		return rd->ending ? incomplete(rd, e) : malformed(rd, data, len, why.msg, e);
	if (!json_object_is_type(body, json_type_object))
		rc = malformed(rd, data, len, "no object", e);
	else
		rc = strcmp(event, "error") == 0 ? reported(rd, body, e) : take_object(rd, body, "delta", e);
	json_object_put(body);
	return rc;
}

/* By how it begins, whatever it is called; by its type when that is not to be seen. */
static void
find_form(struct reading *rd, const char *type)
{
	static const char *const fields[] = { "data:", "event:", "id:", "retry:", ":" };
	const char *p = rd->whole.data + strspn(rd->whole.data, "\xef\xbb\xbf \t\r\n");
	size_t i;

	if (*p == '{')
		rd->form = FORM_JSON;
	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (strncmp(p, fields[i], strlen(fields[i])) == 0)
			rd->form = FORM_STREAM;
	if (rd->form == FORM_UNKNOWN && strlen(p) > 5)
		rd->form = strncasecmp(type, "text/event-stream", 17) == 0 ? FORM_STREAM : FORM_JSON;
}

static int
on_body(void *arg, const struct http_answer *a, const char *data, size_t len, struct err *e)
{
	struct reading *rd = arg;
	size_t before = rd->whole.len;

	if (rd->form != FORM_STREAM || before < 512)
		buf_add(&rd->whole, data, len);
	if (rd->whole.over)
		return err_set(e, ERR_UNAVAIL, "the answer is larger than %u bytes", 2 * ANSWER_MAX);
	if (rd->form == FORM_UNKNOWN) {
		find_form(rd, a->type);
		if (rd->form == FORM_STREAM)	/* with what came before its form was known */
			return sse_feed(&rd->sse, rd->whole.data, rd->whole.len, on_event, rd, e);
	} else if (rd->form == FORM_STREAM) {
		return sse_feed(&rd->sse, data, len, on_event, rd, e);
	}
	return 0;
}

/* A stream is complete when it gave a reason to finish and then [DONE] or an orderly end. */
static int
end_stream(struct reading *rd, struct err *e)
{
	rd->ending = true;
	if (!rd->done && sse_end(&rd->sse, on_event, rd, e) < 0)
		return -1;
	return rd->answer.finish_reason != NULL ? 0 : incomplete(rd, e);
}

static int
end_json(struct reading *rd, struct err *e)
{
	struct json_object *body = NULL;
	struct err why = ERR_INIT;
	struct buf words = BUF_INIT;
	int rc = -1;

	if (rd->whole.len == 0)
		return err_set(e, ERR_UNAVAIL, "the model's server gave an empty answer");
	rd->sink = &nowhere;
	if (parse(rd, &body, rd->whole.data, rd->whole.len, &why) < 0) {
		quote_body(&words, rd->whole.data, rd->whole.len, rd->r->config->api_key);
		err_set(e, ERR_UNAVAIL, "the answer is neither JSON nor a stream of events: %s", words.data);
	} else {
		rc = take_object(rd, body, "message", e);
		if (rc == 0 && rd->answer.finish_reason == NULL)
			rc = malformed(rd, rd->whole.data, rd->whole.len, "no choice with a finish_reason", e);
	}
	buf_release(&words);
	json_object_put(body);
	return rc;
}

static int
check_config(const struct llm_config *c, struct err *e)
{
	if (c->api_key == NULL && c->base_url == NULL)
		return err_set(e, ERR_PERM, "no key for %s: set %s", NAME, llm_key_env(c));
	return 0;
}

static int
post(struct reading *rd, const struct buf *bytes, struct err *e)
{
	const struct llm_config *c = rd->r->config;
	struct http_post p = {
		.base_url = c->base_url != NULL ? c->base_url : BASE_URL,
		.path = "/chat/completions",
		.key_header = "Authorization: Bearer ",
		.key = c->api_key,
		.body = bytes->data,
		.len = bytes->len,
		.timeout = llm_timeout(c),
		.stream = rd->r->stream,
		.on_body = on_body,
		.arg = rd,
	};

	return http_post(&p, e);
}

/* What did not come in pieces, or was not wanted so, is given to the sink when it is known to be good. */
static int
finish(struct reading *rd, const struct llm_sink *sink, struct llm_reply *reply, struct err *e)
{
	bool given;

	if ((rd->form == FORM_STREAM ? end_stream(rd, e) : end_json(rd, e)) < 0)
		return -1;
	given = rd->sink != &nowhere && rd->answer.text.len > 0;
	if (answer_finish(&rd->answer, NAME, rd->r->config->model, reply, e) < 0)
		return -1;
	return given ? 0 : sink_text(sink, reply->message, reply->message_len, e);
}

static int
openai_call(const struct llm_request *r, const struct buf *bytes, const struct llm_sink *sink, struct llm_reply *reply, struct err *e)
{
	struct reading rd = { .r = r, .sink = r->stream ? sink : &nowhere, .answer = ANSWER_INIT, .whole = BUF_INIT_MAX(2 * ANSWER_MAX) };
	int rc = -1;

	if (check_config(r->config, e) < 0)
		return -1;
	sse_init(&rd.sse);
	if (post(&rd, bytes, e) == 0) {
		rc = finish(&rd, sink, reply, e);
	} else if (e != NULL && e->code == ERR_DATA) {
		e->code = ERR_UNAVAIL;	/* too large: the server's fault */
	}
	sse_release(&rd.sse);
	buf_release(&rd.whole);
	answer_release(&rd.answer);
	return rc;
}

const struct provider provider_openai = {
	.body = openai_body,
	.call = openai_call,
};

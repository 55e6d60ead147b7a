#include "event/render.h"
#include "event/quick.h"
#include "event/repr.h"

#include "base/utf8.h"

#include <string.h>

/* What an event is made of for its cost and its rendering: texts, and media by their modality ("image"). */
typedef void piece_fn(void *arg, const char *text, size_t len, bool media);

struct giving {
	piece_fn *fn;
	void *arg;
	struct buf scratch;
};

static void
give_text(struct giving *p, struct json_object *value)
{
	if (json_object_is_type(value, json_type_string)) {
		p->fn(p->arg, json_object_get_string(value), (size_t)json_object_get_string_len(value), false);
		return;
	}
	buf_reset(&p->scratch);
	str_value(&p->scratch, value);
	p->fn(p->arg, p->scratch.data, p->scratch.len, false);
}

/* The kind decides, unless it is plain binary with a media type, whose first half decides. */
static void
give_media(struct giving *p, struct json_object *part)
{
	struct json_object *kind = json_get(part, "kind");
	const char *text = json_get_text(kind, "value", NULL), *slash;
	size_t len;

	if (text == NULL && json_object_is_type(kind, json_type_string))
		text = json_object_get_string(kind);
	if (text == NULL || strcmp(text, "binary") == 0) {
		text = json_get_text(part, "media_type", &len);
		if (text != NULL && len > 0) {
			slash = memchr(text, '/', len);
			p->fn(p->arg, text, slash != NULL ? (size_t)(slash - text) : len, true);
			return;
		}
		text = "binary";
	}
	p->fn(p->arg, text, strlen(text), true);
}

static bool
is_class(const struct event_type *type, const char *last)
{
	return type != NULL && strcmp(type->last, last) == 0;
}

static void
give_parts(struct giving *p, struct json_object *parts)
{
	size_t i, n = json_object_is_type(parts, json_type_array) ? json_object_array_length(parts) : 0;

	for (i = 0; i < n; i++) {
		struct json_object *part = json_object_array_get_idx(parts, i);
		const struct event_type *type = nested_type(part);

		if (is_class(type, "TextInput"))
			give_text(p, json_get(part, "content"));
		else if (is_class(type, "DataInput"))
			give_text(p, json_get(part, "data"));
		else if (is_class(type, "BinaryInput") || is_class(type, "UrlInput"))
			give_media(p, part);
		else if (is_class(type, "FileIdInput"))
			p->fn(p->arg, "binary", 6, true);
		else
			give_text(p, part);
	}
}

static void
give_result(struct giving *p, struct json_object *result)
{
	give_parts(p, json_get(json_get(json_get(result, "result"), "data"), "parts"));
}

static void
give_results(struct giving *p, struct json_object *results)
{
	size_t i, n = json_object_is_type(results, json_type_array) ? json_object_array_length(results) : 0;

	for (i = 0; i < n; i++)
		give_result(p, json_object_array_get_idx(results, i));
}

static void
give_files(struct giving *p, struct json_object *files)
{
	size_t i, n = json_object_is_type(files, json_type_array) ? json_object_array_length(files) : 0;

	for (i = 0; i < n; i++)
		p->fn(p->arg, "binary", 6, true);
}

static void
give_response(struct giving *p, struct json_object *data)
{
	struct json_object *content = json_get(json_get(data, "message"), "content");
	struct json_object *calls = json_get(json_get(data, "tool_calls"), "calls"), *files = json_get(data, "files");
	size_t i, n;

	if (content != NULL && !(json_object_is_type(content, json_type_string) && json_object_get_string_len(content) == 0))
		give_text(p, content);
	n = json_object_is_type(calls, json_type_array) ? json_object_array_length(calls) : 0;
	for (i = 0; i < n; i++) {
		struct json_object *call = json_object_array_get_idx(calls, i);

		buf_reset(&p->scratch);
		str_value(&p->scratch, json_get(call, "name"));
		buf_addch(&p->scratch, '(');
		str_value(&p->scratch, json_get(call, "arguments"));
		buf_addch(&p->scratch, ')');
		p->fn(p->arg, p->scratch.data, p->scratch.len, false);
	}
	give_files(p, files);
}

/* Its content, else its summary, else all of it. */
static int
give_other(struct giving *p, struct event *ev, struct json_object *data, struct err *e)
{
	const char *text = NULL;
	size_t len = 0;

	if ((ev->type->flags & EV_UNKNOWN) == 0) {
		text = json_get_text(data, "content", &len);
		if (text == NULL)
			text = json_get_text(data, "summary", &len);
	}
	if (text == NULL) {
		buf_reset(&p->scratch);
		if (event_repr(&p->scratch, ev, e) < 0)
			return -1;
		text = p->scratch.data;
		len = p->scratch.len;
	}
	p->fn(p->arg, text, len, false);
	return 0;
}

static int
give_pieces(struct event *ev, piece_fn *fn, void *arg, struct err *e)
{
	struct json_object *data = event_data(ev, e);
	struct giving p = { .fn = fn, .arg = arg, .scratch = BUF_INIT };
	int ret = 0;

	if (data == NULL)
		return -1;
	if (ev->type->flags & EV_REQUEST)
		give_parts(&p, json_get(data, "parts"));
	else if (ev->type->flags & EV_RESULTS)
		give_results(&p, json_get(data, "results"));
	else if (ev->type->flags & EV_RESPONSE)
		give_response(&p, data);
	else
		ret = give_other(&p, ev, data, e);
	buf_release(&p.scratch);
	return ret;
}

/* Telemetry and what is transient never reach a model. */
static bool
is_silent(const struct event *ev)
{
	return (ev->type->flags & (EV_CONVERSATIONAL | EV_PROMPT)) == 0;
}

int64_t
text_tokens(const char *text, size_t len, int chars_per_token)
{
	int64_t points = (int64_t)utf8_count(text, len), ascii = 0;
	size_t i;

	if (chars_per_token > 0)
		return points / chars_per_token;
	for (i = 0; i < len; i++)
		ascii += (unsigned char)text[i] < 0x80;
	return ascii / CHARS_PER_TOKEN + (points - ascii);
}

struct cost {
	int64_t tokens;
	int chars_per_token;
};

static void
count_piece(void *arg, const char *text, size_t len, bool media)
{
	struct cost *c = arg;

	if (!media)
		c->tokens += text_tokens(text, len, c->chars_per_token);
	else if ((len == 5 && memcmp(text, "video", 5) == 0) || (len == 8 && memcmp(text, "document", 8) == 0))
		c->tokens += 2000;
	else
		c->tokens += 1000;
}

int64_t
event_tokens(struct event *ev, int chars_per_token, struct err *e)
{
	struct cost c = { .chars_per_token = chars_per_token };

	if (is_silent(ev))
		return 0;
	if (ev->parsed == NULL && quick_tokens(ev, chars_per_token, &c.tokens) && event_check(ev, NULL) == 0)
		return c.tokens;
	c.tokens = 0;
	return give_pieces(ev, count_piece, &c, e) < 0 ? -1 : c.tokens;
}

int64_t
result_tokens(struct json_object *result, int chars_per_token)
{
	struct cost c = { .chars_per_token = chars_per_token };
	struct giving p = { .fn = count_piece, .arg = &c, .scratch = BUF_INIT };

	give_result(&p, result);
	buf_release(&p.scratch);
	return c.tokens;
}

int64_t
files_tokens(struct event *ev)
{
	struct cost c = { .chars_per_token = CHARS_PER_TOKEN };
	struct giving p = { .fn = count_piece, .arg = &c, .scratch = BUF_INIT };

	if (ev->type->flags & EV_RESPONSE)
		give_files(&p, json_get(event_data(ev, NULL), "files"));
	return c.tokens;
}

struct rendering {
	struct buf *out;
	size_t start;
	const char *label;
};

static void
render_piece(void *arg, const char *text, size_t len, bool media)
{
	struct rendering *r = arg;

	if (len == 0 && !media)
		return;
	buf_adds(r->out, r->out->len == r->start ? r->label : " ");
	if (media)
		buf_addch(r->out, '[');
	buf_add(r->out, text, len);
	if (media)
		buf_addch(r->out, ']');
}

int
event_render(struct buf *out, struct event *ev, struct err *e)
{
	unsigned flags = ev->type->flags;
	struct rendering r = { .out = out, .start = out->len,
		.label = flags & EV_REQUEST ? "User: " : flags & EV_RESPONSE ? "Assistant: " : flags & EV_RESULTS ? "Tool: " : "" };

	if (is_silent(ev))
		return 0;
	if (give_pieces(ev, render_piece, &r, e) < 0)
		return -1;
	return out->len > r.start ? 0 : event_repr(out, ev, e);
}

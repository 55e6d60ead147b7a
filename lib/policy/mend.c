#include "policy/mend.h"

#include "base/alloc.h"
#include "event/render.h"
#include "policy/idset.h"

#include <stdlib.h>

#define NO_TEXT "(no text)"
#define NO_OUTPUT "(no output)"

static bool
is_blank(const char *text, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (text[i] != ' ' && (text[i] < '\t' || text[i] > '\r'))
			return false;
	return true;
}

static size_t
array_length(struct json_object *array)
{
	return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

/* Parts are texts, which have a content, and everything else. */
static bool
blank_parts(struct json_object *parts)
{
	size_t i, len, n = array_length(parts);
	const char *text;

	for (i = 0; i < n; i++) {
		text = json_get_text(json_object_array_get_idx(parts, i), "content", &len);
		if (text == NULL || !is_blank(text, len))
			return false;
	}
	return true;
}

bool
mend_blank_request(struct json_object *data)
{
	return blank_parts(json_get(data, "parts"));
}

bool
mend_blank_response(struct json_object *data)
{
	size_t len;
	const char *text = json_get_text(json_get(data, "message"), "content", &len);

	return (text == NULL || is_blank(text, len)) && array_length(json_get(data, "files")) == 0 &&
	    array_length(json_get(json_get(data, "tool_calls"), "calls")) == 0;
}

bool
mend_says_nothing(struct event *ev)
{
	bool request = (ev->type->flags & EV_REQUEST) != 0;

	if (ev->parsed == NULL && (request ? quick_request(ev) : quick_response(ev, NULL, NULL)))
		return false;
	return request ? mend_blank_request(event_data(ev, NULL)) : mend_blank_response(event_data(ev, NULL));
}

bool
mend_blank_result(struct json_object *result)
{
	return blank_parts(json_get(json_get(json_get(result, "result"), "data"), "parts"));
}

/* The record of a line, our own to change. */
static struct json_object *
read_again(const struct event *ev, struct json_object **data)
{
	struct json_object *record = NULL;

	if (json_parse(&record, ev->line, ev->len, NULL) < 0)
		return NULL;
	*data = json_get(record, "data");
	if (json_object_is_type(*data, json_type_object))
		return record;
	json_object_put(record);
	return NULL;
}

/* The event of a line that was made of another, which may be NULL. */
static struct event *
made_of(const struct event *from, struct buf *line)
{
	size_t len;
	char *text = buf_detach(line, &len);
	struct event *ev = event_own(text, len);

	if (from != NULL) {
		ev->number = from->number;
		ev->mark = from->mark;
		ev->offset = from->offset;
	}
	return ev;
}

static struct event *
write_event(const struct event *from, struct json_object *record)
{
	struct buf line = BUF_INIT;

	json_write(&line, record, JSON_PYTHON);
	json_object_put(record);
	return made_of(from, &line);
}

/* The parts of a new request with this text. */
static struct json_object *
text_parts(const char *text)
{
	struct text part = { text, strlen(text) };
	struct buf line = BUF_INIT;
	struct json_object *record = NULL, *parts;

	build_request(&line, &part, 1);
	json_parse(&record, line.data, line.len, NULL);
	buf_release(&line);
	parts = json_object_get(json_get(json_get(record, "data"), "parts"));
	json_object_put(record);
	return parts;
}

struct event *
mend_request(const struct event *ev)
{
	struct json_object *data, *record = read_again(ev, &data);

	if (record == NULL)
		return NULL;
	json_object_object_add(data, "parts", text_parts(NO_TEXT));
	return write_event(ev, record);
}

struct event *
mend_response(const struct event *ev)
{
	struct json_object *data, *record = read_again(ev, &data), *container, *calls, *good, *one;
	struct idset ids = IDSET_INIT;
	size_t i, n, len;
	const char *id;
	bool fresh;

	if (record == NULL)
		return NULL;
	container = json_get(data, "tool_calls");
	calls = json_get(container, "calls");
	n = array_length(calls);
	good = json_object_new_array();
	for (i = 0; i < n; i++) {
		one = json_object_array_get_idx(calls, i);
		id = json_get_text(one, "id", &len);
		if (id == NULL || len == 0)
			continue;
		idset_add(&ids, id, len, &fresh);
		if (fresh)
			json_object_array_add(good, json_object_get(one));
	}
	idset_release(&ids);
	json_object_object_add(container, "calls", good);
	return write_event(ev, record);
}

/* What a result that has nothing to send says instead: the error's message, or a placeholder. */
static struct text
filling(struct json_object *result)
{
	struct text text;

	text.data = json_get_text(json_get(result, "error"), "message", &text.len);
	return text.data == NULL || is_blank(text.data, text.len) ? (struct text){ NO_OUTPUT, strlen(NO_OUTPUT) } : text;
}

static void
fill_result(struct json_object *result)
{
	struct json_object *inner, *record;
	struct call none = { 0 };

	if (!mend_blank_result(result))
		return;
	record = build_result(&none, filling(result));
	inner = json_get(json_get(result, "result"), "data");
	if (json_object_is_type(inner, json_type_object))
		json_object_object_add(inner, "parts",
		    json_object_get(json_get(json_get(json_get(json_get(record, "data"), "result"), "data"), "parts")));
	else
		json_object_object_add(result, "result", json_object_get(json_get(json_get(record, "data"), "result")));
	json_object_put(record);
}

bool
mend_list_open(struct mend_list *l, struct event *ev)
{
	struct json_object *data, *record;
	struct pieces texts = { 0 };
	size_t i;

	*l = (struct mend_list){ .ev = ev };
	if (!quick_list(ev, "results", &texts)) {
		record = read_again(ev, &data);
		if (record == NULL)
			return false;
		l->ev = write_event(ev, record);
		l->owned = true;
		if (!quick_list(l->ev, "results", &texts))
			texts.n = 0;
	}
	l->n = texts.n;
	l->items = xcalloc(l->n + 1, sizeof(l->items[0]));
	for (i = 0; i < l->n; i++)
		l->items[i].text = texts.items[i];
	pieces_release(&texts);
	return l->n > 0;
}

void
mend_list_release(struct mend_list *l)
{
	if (l->owned)
		event_free(l->ev);
	free(l->items);
	*l = (struct mend_list){ .ev = NULL };
}

static void
add_filled(struct buf *out, const struct piece *text)
{
	struct json_object *result = NULL;

	json_parse(&result, text->p, text->len, NULL);
	fill_result(result);
	json_write(out, result, JSON_PYTHON);
	json_object_put(result);
}

struct event *
mend_results(const struct mend_list *l, size_t from, size_t to, size_t place)
{
	const char *first = l->items[0].text.p, *end = l->ev->line + l->ev->len;
	const struct piece *last = &l->items[l->n - 1].text, *text;
	struct buf line = BUF_INIT;
	bool any = false;
	size_t i;

	buf_add(&line, l->ev->line, (size_t)(first - l->ev->line));
	for (i = from; i < to; i++) {
		if (l->items[i].place != place)
			continue;
		text = &l->items[i].text;
		buf_adds(&line, any ? ", " : "");
		if (l->items[i].blank)
			add_filled(&line, text);
		else
			buf_add(&line, text->p, text->len);
		any = true;
	}
	buf_add(&line, last->p + last->len, (size_t)(end - (last->p + last->len)));
	return made_of(l->ev, &line);
}

/* {"__event__": TYPE, then the members of its data. */
static bool
listed_as_written(struct buf *list, const struct event *result)
{
	const char *data = result->line + result->data_at + 1, *end = result->line + result->data_at + result->data_len, *why;
	struct json_peek peek;
	size_t at;

	if (!quick_result(result) || event_check(result, NULL) < 0 || json_scan(result->line, result->len, &peek, &at, &why) < 0 ||
	    peek.type == NULL)
		return false;
	data += strspn(data, " \t\r");
	buf_adds(list, "{\"__event__\": ");
	buf_add(list, peek.type - 1, peek.type_len + 2);
	buf_adds(list, ", ");
	buf_add(list, data, (size_t)(end - data));
	return true;
}

bool
mend_listed(struct buf *list, const struct event *result)
{
	struct json_object *data, *record;

	if (listed_as_written(list, result))
		return true;
	record = read_again(result, &data);
	if (record == NULL)
		return false;
	fill_result(data);
	build_listed(list, record);
	json_object_put(record);
	return true;
}

/* A copy that can be changed. */
static struct json_object *
copy_of(struct json_object *value)
{
	struct json_object *copy = NULL;
	struct buf text = BUF_INIT;

	json_write(&text, value, JSON_COMPACT);
	json_parse(&copy, text.data, text.len, NULL);
	buf_release(&text);
	return copy;
}

struct event *
mend_note(struct json_object *late)
{
	struct json_object *record = NULL, *parts, *more, *result = copy_of(late);
	const char *name = json_get_text(result, "name", NULL), *id = json_get_text(result, "parent_id", NULL);
	struct buf label = BUF_INIT, line = BUF_INIT;
	struct text text;
	size_t i;

	fill_result(result);
	buf_addf(&label, "[late result of %s, call %s]", name != NULL ? name : "a tool", id != NULL ? id : "");
	text = (struct text){ label.data, label.len };
	build_request(&line, &text, 1);
	json_parse(&record, line.data, line.len, NULL);
	parts = json_get(json_get(record, "data"), "parts");
	more = json_get(json_get(json_get(result, "result"), "data"), "parts");
	for (i = 0; i < array_length(more); i++)
		json_object_array_add(parts, json_object_get(json_object_array_get_idx(more, i)));
	buf_release(&label);
	buf_release(&line);
	json_object_put(result);
	return write_event(NULL, record);
}

int64_t
mend_result_tokens(struct json_object *result, int chars_per_token)
{
	struct text text;

	if (!mend_blank_result(result))
		return result_tokens(result, chars_per_token);
	text = filling(result);
	return text_tokens(text.data, text.len, chars_per_token);
}

int64_t
mend_request_tokens(int chars_per_token)
{
	return text_tokens(NO_TEXT, strlen(NO_TEXT), chars_per_token);
}

struct json_object *
mend_error(const char *id, size_t id_len, const char *name, size_t name_len)
{
	static const char message[] = "the call was not answered before the conversation went on";
	struct call call = { .id = xmemdup0(id, id_len), .name = xmemdup0(name, name_len) };
	struct json_object *record = build_error_result(&call, "RuntimeError", (struct text){ message, sizeof(message) - 1 });

	free(call.id);
	free(call.name);
	return record;
}

#include "event/quick.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "event/render.h"

#include <stdlib.h>
#include <string.h>

/*
 * The lines have passed json_scan: strings are closed and brackets balanced. Everything else is looked at here, in one
 * pass from left to right, and anything unusual (an escape in a key, a key that comes twice, a value of another kind)
 * ends in not being sure.
 *
 * A reader takes the value at p and returns what is behind it, NULL when it is not sure.
 */
typedef const char *reader(void *arg, const char *p, const char *end);

static const char *
skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
		p++;
	return p;
}

static const char *
skip_value(void *arg, const char *p, const char *end)
{
	return json_skip(p, end, NULL);
}

/* A string without escapes, which is short: a key, a name, an id. NULL for anything else. */
static const char *
skip_plain(const char *p, const char *end)
{
	if (p == end || *p != '"')
		return NULL;
	for (p++; p < end && *p != '"'; p++)
		if (*p == '\\')
			return NULL;
	return p < end ? p + 1 : NULL;
}

static bool
is_null(const char *p, const char *end)
{
	return end - p >= 4 && memcmp(p, "null", 4) == 0;
}

struct member {
	const char *key;
	size_t len;
	reader *read;
	void *arg;
	bool seen;
};
#define MEMBER(key, read, arg) { key, sizeof(key) - 1, read, arg, false }

static struct member *
find_member(struct member *members, size_t n, const char *key, size_t len)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (members[i].len == len && memcmp(members[i].key, key, len) == 0)
			return &members[i];
	return NULL;
}

static const char *
read_member(struct member *members, size_t n, const char *p, const char *end)
{
	const char *key = p + 1, *behind = skip_plain(p, end);
	struct member *m;

	if (behind == NULL)
		return NULL;
	p = skip_blanks(behind, end);
	if (p == end || *p != ':')
		return NULL;
	p = skip_blanks(p + 1, end);
	m = find_member(members, n, key, (size_t)(behind - 1 - key));
	if (m == NULL)
		return skip_value(NULL, p, end);
	if (m->seen)
		return NULL;
	m->seen = true;
	return p < end ? m->read(m->arg, p, end) : NULL;
}

static const char *
read_object(struct member *members, size_t n, const char *p, const char *end)
{
	if (p == end || *p != '{')
		return NULL;
	p = skip_blanks(p + 1, end);
	while (p < end && *p == '"') {
		p = read_member(members, n, p, end);
		if (p == NULL)
			return NULL;
		p = skip_blanks(p, end);
		if (p < end && *p == ',')
			p = skip_blanks(p + 1, end);
		else
			break;
	}
	return p < end && *p == '}' ? p + 1 : NULL;
}

static const char *
read_array(reader *one, void *arg, const char *p, const char *end)
{
	if (p == end || *p != '[')
		return NULL;
	p = skip_blanks(p + 1, end);
	while (p < end && *p != ']') {
		p = one(arg, p, end);
		if (p == NULL)
			return NULL;
		p = skip_blanks(p, end);
		if (p < end && *p == ',')
			p = skip_blanks(p + 1, end);
		else
			break;
	}
	return p < end && *p == ']' ? p + 1 : NULL;
}

/* All of an event's data. */
static bool
read_data(const struct event *ev, struct member *members, size_t n)
{
	const char *data = ev->line + ev->data_at, *end = data + ev->data_len;

	return ev->data_len > 0 && read_object(members, n, data, end) == end;
}

#define COUNT(members) (sizeof(members) / sizeof((members)[0]))

/* ---- texts ---- */

/* A string that surely holds more than blanks. Escapes may stand for some: those that do are passed over. */
static bool
has_text(const char *p, const char *end)
{
	for (p++; p + 1 < end; p++) {
		if (*p != '\\' && *p != ' ' && *p != '\t')
			return true;
		if (*p != '\\')
			continue;
		p++;
		if (*p == '"' || *p == '\\' || *p == '/' || (*p == 'u' && p[1] >= '4' && p[1] <= '9'))
			return true;
		p += *p == 'u' ? 4 : 0;
	}
	return false;
}

/* A string with text; what is none is not sure. */
static const char *
read_text(void *arg, const char *p, const char *end)
{
	const char *behind = *p == '"' ? skip_value(NULL, p, end) : NULL;

	return behind != NULL && has_text(p, behind) ? behind : NULL;
}

/* The first of the parts has to be text, others need no look then. */
static const char *
read_part(void *arg, const char *p, const char *end)
{
	struct member m[] = { MEMBER("content", read_text, NULL) };
	bool *first = arg;

	if (!*first)
		return skip_value(NULL, p, end);
	*first = false;
	p = read_object(m, COUNT(m), p, end);
	return m[0].seen ? p : NULL;
}

static const char *
read_parts(void *arg, const char *p, const char *end)
{
	bool first = true;

	p = read_array(read_part, &first, p, end);
	return first ? NULL : p;
}

bool
quick_request(const struct event *ev)
{
	struct member m[] = { MEMBER("parts", read_parts, NULL) };

	return read_data(ev, m, COUNT(m)) && m[0].seen;
}

/* ---- ids ---- */

static void
add_piece(struct pieces *pieces, const char *p, size_t len)
{
	pieces->items = xgrow(pieces->items, pieces->n, &pieces->cap, sizeof(pieces->items[0]));
	pieces->items[pieces->n++] = (struct piece){ p, len };
}

static const char nested[] = "[]";	/* in a path: each element of an array */

struct path {
	const char *const *keys;	/* ends with NULL: there is an id */
	struct pieces *ids;
};

/* What lies elsewhere than the path says, and an id that is empty or no string, is none. */
static const char *
follow(void *arg, const char *p, const char *end)
{
	const struct path *path = arg;
	struct path rest = { path->keys + 1, path->ids };
	struct member m = { .read = follow, .arg = &rest };
	const char *behind;

	if (path->keys[0] == nested)
		return *p == '[' ? read_array(follow, &rest, p, end) : skip_value(NULL, p, end);
	if (path->keys[0] != NULL) {
		m.key = path->keys[0];
		m.len = strlen(m.key);
		return *p == '{' ? read_object(&m, 1, p, end) : skip_value(NULL, p, end);
	}
	if (*p != '"')
		return skip_value(NULL, p, end);
	behind = skip_plain(p, end);
	if (behind != NULL && behind - p > 2)
		add_piece(path->ids, p + 1, (size_t)(behind - p) - 2);
	return behind;
}

bool
quick_ids(const struct event *ev, struct pieces *ids)
{
	static const char *const of_response[] = { "tool_calls", "calls", nested, "id", NULL }, *const of_calls[] = { "calls", nested, "id", NULL },
	    *const of_call[] = { "id", NULL }, *const of_results[] = { "results", nested, "parent_id", NULL }, *const of_result[] = { "parent_id", NULL };
	const char *data = ev->line + ev->data_at, *end = data + ev->data_len;
	unsigned flags = ev->type->flags;
	struct path path = { .ids = ids };

	ids->n = 0;
	if ((flags & (EV_RESPONSE | EV_CALLS | EV_CALL | EV_RESULTS | EV_RESULT)) == 0)
		return true;
	path.keys = flags & EV_RESPONSE ? of_response : flags & EV_CALLS ? of_calls : flags & EV_RESULTS ? of_results :
	    flags & EV_RESULT ? of_result : of_call;
	return ev->data_len > 0 && follow(&path, data, end) == end;
}

/* A string that is not empty and has no escapes goes to the pieces, where there are some. */
static const char *
read_id(void *arg, const char *p, const char *end)
{
	const char *behind = skip_plain(p, end);

	if (behind == NULL || behind - p < 3)
		return NULL;
	if (arg != NULL)
		add_piece(arg, p + 1, (size_t)(behind - p) - 2);
	return behind;
}

struct calls {
	struct pieces *ids, *names;
	size_t n;
};

static const char *
read_call(void *arg, const char *p, const char *end)
{
	struct calls *c = arg;
	struct member m[] = { MEMBER("id", read_id, c->ids), MEMBER("name", read_id, c->names) };

	c->n++;
	p = read_object(m, COUNT(m), p, end);
	return m[0].seen && m[1].seen ? p : NULL;
}

static const char *
read_calls(void *arg, const char *p, const char *end)
{
	return is_null(p, end) ? p + 4 : read_array(read_call, arg, p, end);
}

static const char *
read_tool_calls(void *arg, const char *p, const char *end)
{
	struct member m[] = { MEMBER("calls", read_calls, arg) };

	if (is_null(p, end))
		return p + 4;
	p = read_object(m, COUNT(m), p, end);
	return m[0].seen ? p : NULL;
}

struct message {
	bool has_text;
};

static const char *
read_content(void *arg, const char *p, const char *end)
{
	struct message *message = arg;
	const char *behind = skip_value(NULL, p, end);

	message->has_text = behind != NULL && *p == '"' && has_text(p, behind);
	return behind;
}

static const char *
read_message(void *arg, const char *p, const char *end)
{
	struct member m[] = { MEMBER("content", read_content, arg) };

	return is_null(p, end) ? p + 4 : read_object(m, COUNT(m), p, end);
}

bool
quick_response(const struct event *ev, struct pieces *ids, struct pieces *names)
{
	struct message message = { false };
	struct calls calls = { ids, names, 0 };
	struct member m[] = { MEMBER("message", read_message, &message), MEMBER("tool_calls", read_tool_calls, &calls) };

	if (ids != NULL)
		ids->n = names->n = 0;
	return read_data(ev, m, COUNT(m)) && (calls.n > 0 || message.has_text);
}

static const char *
read_result_data(void *arg, const char *p, const char *end)
{
	struct member m[] = { MEMBER("parts", read_parts, NULL) };

	p = read_object(m, COUNT(m), p, end);
	return m[0].seen ? p : NULL;
}

static const char *
read_result(void *arg, const char *p, const char *end)
{
	struct member m[] = { MEMBER("data", read_result_data, NULL) };

	p = read_object(m, COUNT(m), p, end);
	return m[0].seen ? p : NULL;
}

bool
quick_result(const struct event *ev)
{
	struct member m[] = { MEMBER("result", read_result, NULL) };

	return read_data(ev, m, COUNT(m)) && m[0].seen;
}

static const char *
read_one_result(void *arg, const char *p, const char *end)
{
	struct member m[] = { MEMBER("parent_id", read_id, arg), MEMBER("result", read_result, NULL) };

	p = read_object(m, COUNT(m), p, end);
	return m[0].seen && m[1].seen ? p : NULL;
}

static const char *
read_results(void *arg, const char *p, const char *end)
{
	return read_array(read_one_result, arg, p, end);
}

bool
quick_results(const struct event *ev, struct pieces *ids)
{
	struct member m[] = { MEMBER("results", read_results, ids) };

	ids->n = 0;
	return read_data(ev, m, COUNT(m)) && ids->n > 0;
}

static const char *
take_element(void *arg, const char *p, const char *end)
{
	const char *behind = skip_value(NULL, p, end);

	if (behind != NULL)
		add_piece(arg, p, (size_t)(behind - p));
	return behind;
}

static const char *
read_list(void *arg, const char *p, const char *end)
{
	return read_array(take_element, arg, p, end);
}

bool
quick_list(const struct event *ev, const char *key, struct pieces *elements)
{
	struct member m[] = { { key, strlen(key), read_list, elements, false } };

	elements->n = 0;
	return read_data(ev, m, COUNT(m)) && m[0].seen;
}

/* ---- sizes ---- */

struct size {
	int chars;
	int64_t tokens;
	int64_t points, ascii;	/* of the text at hand: code points, and how many of them are ASCII */
};

static void
count_plain(struct size *size, const char *p, size_t len)
{
	size_t i;

	size->points += (int64_t)utf8_count(p, len);
	for (i = 0; size->chars == CHARS_AUTO && i < len; i++)
		size->ascii += (unsigned char)p[i] < 0x80;
}

/* Whether an escape at p is \uDX.., X between the two. */
static bool
is_half(const char *p, const char *end, char from, char to)
{
	return end - p >= 6 && p[0] == '\\' && p[1] == 'u' && (p[2] | 0x20) == 'd' && (p[3] | 0x20) >= from && (p[3] | 0x20) <= to;
}

/* One code point, a pair of surrogates too. Returns what is behind it, NULL when it is none. */
static const char *
count_escape(struct size *size, const char *p, const char *end)
{
	size->points++;
	if (end - p < (p[1] == 'u' ? 6 : 2))
		return NULL;
	if (p[1] != 'u') {
		size->ascii++;
		return p + 2;
	}
	if ((is_half(p, end, '8', '9') || is_half(p, end, 'a', 'b')) && is_half(p + 6, end, 'c', 'f'))
		return p + 12;
	size->ascii += p[2] == '0' && p[3] == '0' && p[4] < '8';
	return p + 6;
}

/* Adds a string to the text at hand. */
static const char *
count_string(void *arg, const char *p, const char *end)
{
	const char *behind = *p == '"' ? skip_value(NULL, p, end) : NULL, *escape;

	if (behind == NULL)
		return NULL;
	end = behind - 1;
	p++;
	while (p != NULL && (escape = memchr(p, '\\', (size_t)(end - p))) != NULL) {
		count_plain(arg, p, (size_t)(escape - p));
		p = count_escape(arg, escape, end);
	}
	if (p == NULL)
		return NULL;
	count_plain(arg, p, (size_t)(end - p));
	return behind;
}

/* The text at hand is whole. */
static void
weigh(struct size *size)
{
	size->tokens += size->chars == CHARS_AUTO ? size->ascii / CHARS_PER_TOKEN + size->points - size->ascii : size->points / size->chars;
	size->points = size->ascii = 0;
}

static const char *
weigh_string(void *arg, const char *p, const char *end)
{
	p = count_string(arg, p, end);
	weigh(arg);
	return p;
}

static const char *
read_class(void *arg, const char *p, const char *end)
{
	const char *behind = skip_plain(p, end);

	if (behind != NULL)
		*(const struct event_type **)arg = event_type_find(p + 1, (size_t)(behind - p) - 2);
	return behind;
}

/* Only texts; the cost of others is not in their length. */
static const char *
weigh_part(void *arg, const char *p, const char *end)
{
	const struct event_type *class = NULL;
	struct member m[] = { MEMBER("__event__", read_class, &class), MEMBER("content", weigh_string, arg) };

	p = read_object(m, COUNT(m), p, end);
	return class != NULL && strcmp(class->last, "TextInput") == 0 && m[1].seen ? p : NULL;
}

static const char *
weigh_parts(void *arg, const char *p, const char *end)
{
	return read_array(weigh_part, arg, p, end);
}

static const char *
weigh_result_data(void *arg, const char *p, const char *end)
{
	struct member m[] = { MEMBER("parts", weigh_parts, arg) };

	return read_object(m, COUNT(m), p, end);
}

static const char *
weigh_result(void *arg, const char *p, const char *end)
{
	struct member m[] = { MEMBER("data", weigh_result_data, arg) };

	return read_object(m, COUNT(m), p, end);
}

static const char *
weigh_one_result(void *arg, const char *p, const char *end)
{
	struct member m[] = { MEMBER("result", weigh_result, arg) };

	return read_object(m, COUNT(m), p, end);
}

static const char *
weigh_results(void *arg, const char *p, const char *end)
{
	return read_array(weigh_one_result, arg, p, end);
}

static const char *
weigh_message(void *arg, const char *p, const char *end)
{
	struct member m[] = { MEMBER("content", weigh_string, arg) };

	return is_null(p, end) ? p + 4 : read_object(m, COUNT(m), p, end);
}

/* NAME(ARGUMENTS) */
static const char *
weigh_call(void *arg, const char *p, const char *end)
{
	struct member m[] = { MEMBER("name", count_string, arg), MEMBER("arguments", count_string, arg) };

	p = read_object(m, COUNT(m), p, end);
	count_plain(arg, "()", 2);
	weigh(arg);
	return m[0].seen && m[1].seen ? p : NULL;
}

static const char *
weigh_calls(void *arg, const char *p, const char *end)
{
	return is_null(p, end) ? p + 4 : read_array(weigh_call, arg, p, end);
}

static const char *
weigh_tool_calls(void *arg, const char *p, const char *end)
{
	struct member m[] = { MEMBER("calls", weigh_calls, arg) };

	return is_null(p, end) ? p + 4 : read_object(m, COUNT(m), p, end);
}

/* Who has files is for who parses. */
static const char *
read_no_files(void *arg, const char *p, const char *end)
{
	struct pieces none = { 0 };

	p = is_null(p, end) ? p + 4 : read_array(take_element, &none, p, end);
	if (none.n > 0)
		p = NULL;
	pieces_release(&none);
	return p;
}

bool
quick_tokens(const struct event *ev, int chars_per_token, int64_t *tokens)
{
	struct size size = { .chars = chars_per_token };
	struct member request[] = { MEMBER("parts", weigh_parts, &size) }, results[] = { MEMBER("results", weigh_results, &size) },
	    response[] = { MEMBER("message", weigh_message, &size), MEMBER("tool_calls", weigh_tool_calls, &size), MEMBER("files", read_no_files, NULL) },
	    other[] = { MEMBER("content", weigh_string, &size) };
	unsigned flags = ev->type->flags;
	bool sure;

	if (flags & EV_REQUEST)
		sure = read_data(ev, request, COUNT(request));
	else if (flags & EV_RESULTS)
		sure = read_data(ev, results, COUNT(results));
	else if (flags & EV_RESPONSE)
		sure = read_data(ev, response, COUNT(response));
	else
		sure = (flags & EV_UNKNOWN) == 0 && read_data(ev, other, COUNT(other)) && other[0].seen;
	*tokens = size.tokens;
	return sure;
}

void
pieces_release(struct pieces *pieces)
{
	free(pieces->items);
	*pieces = (struct pieces){ 0 };
}

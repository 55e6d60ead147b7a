#include "policy/quick.h"

#include "base/alloc.h"

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

/* p is at an opening quote; behind the closing one, NULL when there is none. */
static const char *
skip_string(const char *p, const char *end)
{
	const char *start = ++p, *quote, *back;

	while ((quote = memchr(p, '"', (size_t)(end - p))) != NULL) {
		for (back = quote; back > start && back[-1] == '\\'; back--)
			;
		p = quote + 1;
		if ((quote - back) % 2 == 0)
			return p;
	}
	return NULL;
}

static const char *
skip_nested(const char *p, const char *end)
{
	size_t depth = 0;

	while (p < end) {
		switch (*p) {
		case '"':
			p = skip_string(p, end);
			if (p == NULL)
				return NULL;
			continue;
		case '{':
		case '[':
			depth++;
			break;
		case '}':
		case ']':
			if (--depth == 0)
				return p + 1;
			break;
		}
		p++;
	}
	return NULL;
}

static bool
ends_word(char c)
{
	return c == ',' || c == ']' || c == '}' || c == ' ' || c == '\t' || c == '\r';
}

static const char *
skip_value(void *arg, const char *p, const char *end)
{
	const char *start = p;

	if (p == end)
		return NULL;
	if (*p == '"')
		return skip_string(p, end);
	if (*p == '{' || *p == '[')
		return skip_nested(p, end);
	while (p < end && !ends_word(*p))
		p++;
	return p > start ? p : NULL;
}

static bool
is_null(const char *p, const char *end)
{
	return end - p >= 4 && memcmp(p, "null", 4) == 0;
}

struct member {
	const char *key;
	reader *read;
	void *arg;
	bool seen;
};

static struct member *
find_member(struct member *members, size_t n, const char *key, size_t len)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strlen(members[i].key) == len && memcmp(members[i].key, key, len) == 0)
			return &members[i];
	return NULL;
}

static const char *
read_member(struct member *members, size_t n, const char *p, const char *end)
{
	const char *key = p + 1, *behind = skip_string(p, end);
	struct member *m;

	if (behind == NULL || memchr(key, '\\', (size_t)(behind - 1 - key)) != NULL)
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
	const char *behind = *p == '"' ? skip_string(p, end) : NULL;

	return behind != NULL && has_text(p, behind) ? behind : NULL;
}

/* The first of the parts has to be text, others need no look then. */
static const char *
read_part(void *arg, const char *p, const char *end)
{
	struct member m[] = { { "content", read_text, NULL, false } };
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
	struct member m[] = { { "parts", read_parts, NULL, false } };

	return read_data(ev, m, COUNT(m)) && m[0].seen;
}

/* ---- ids ---- */

/* A string that is not empty and has no escapes goes to the pieces. */
static const char *
read_id(void *arg, const char *p, const char *end)
{
	struct pieces *ids = arg;
	const char *behind = *p == '"' ? skip_string(p, end) : NULL;

	if (behind == NULL || behind - p < 3 || memchr(p, '\\', (size_t)(behind - p)) != NULL)
		return NULL;
	ids->items = xgrow(ids->items, ids->n, &ids->cap, sizeof(ids->items[0]));
	ids->items[ids->n++] = (struct piece){ p + 1, (size_t)(behind - p) - 2 };
	return behind;
}

struct calls {
	struct pieces *ids, *names;	/* names may be NULL */
};

static const char *
read_call(void *arg, const char *p, const char *end)
{
	struct calls *c = arg;
	struct member m[] = { { "id", read_id, c->ids, false }, { "name", read_id, c->names, false } };

	p = read_object(m, c->names != NULL ? 2 : 1, p, end);
	return m[0].seen && (c->names == NULL || m[1].seen) ? p : NULL;
}

static const char *
read_calls(void *arg, const char *p, const char *end)
{
	return is_null(p, end) ? p + 4 : read_array(read_call, arg, p, end);
}

static const char *
read_tool_calls(void *arg, const char *p, const char *end)
{
	struct member m[] = { { "calls", read_calls, arg, false } };

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
	struct member m[] = { { "content", read_content, arg, false } };

	return is_null(p, end) ? p + 4 : read_object(m, COUNT(m), p, end);
}

bool
quick_response(const struct event *ev, struct pieces *ids, struct pieces *names)
{
	struct message message = { false };
	struct calls calls = { ids, names };
	struct member m[] = { { "message", read_message, &message, false }, { "tool_calls", read_tool_calls, &calls, false } };

	ids->n = names->n = 0;
	return read_data(ev, m, COUNT(m)) && (ids->n > 0 || message.has_text);
}

static const char *
read_result_data(void *arg, const char *p, const char *end)
{
	struct member m[] = { { "parts", read_parts, NULL, false } };

	p = read_object(m, COUNT(m), p, end);
	return m[0].seen ? p : NULL;
}

static const char *
read_result(void *arg, const char *p, const char *end)
{
	struct member m[] = { { "data", read_result_data, NULL, false } };

	p = read_object(m, COUNT(m), p, end);
	return m[0].seen ? p : NULL;
}

static const char *
read_one_result(void *arg, const char *p, const char *end)
{
	struct member m[] = { { "parent_id", read_id, arg, false }, { "result", read_result, NULL, false } };

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
	struct member m[] = { { "results", read_results, ids, false } };

	ids->n = 0;
	return read_data(ev, m, COUNT(m)) && ids->n > 0;
}

bool
quick_ids(const struct event *ev, unsigned flags, struct pieces *ids)
{
	struct calls calls = { ids, NULL };
	struct member container[] = { { "calls", read_calls, &calls, false } };
	struct member one[] = { { flags & EV_RESULT ? "parent_id" : "id", read_id, ids, false } };

	ids->n = 0;
	if (flags & EV_CALLS)
		return read_data(ev, container, COUNT(container)) && container[0].seen;
	return read_data(ev, one, COUNT(one)) && one[0].seen;
}

/* ---- sizes ---- */

struct size {
	int chars;
	int64_t tokens;
};

/* The second half of an escaped pair of surrogates, with its u at p. */
static bool
is_second_half(const char *p, const char *end)
{
	return end - p > 5 && (p[1] == 'd' || p[1] == 'D') && strchr("cdefCDEF", p[2]) != NULL;
}

/* Code points of a string: an escape is one, a pair of surrogates too. */
static const char *
weigh_string(void *arg, const char *p, const char *end)
{
	struct size *size = arg;
	const char *behind = skip_value(NULL, p, end);
	int64_t points = 0;

	if (behind == NULL || *p != '"')
		return behind;
	for (p++; p < behind - 1; p++) {
		if (*p != '\\') {
			points += ((unsigned char)*p & 0xc0) != 0x80;
		} else if (p[1] == 'u') {
			points += !is_second_half(p + 1, behind);
			p += 5;
		} else {
			points++;
			p++;
		}
	}
	size->tokens += points / size->chars;
	return behind;
}

static const char *
weigh_part(void *arg, const char *p, const char *end)
{
	struct member m[] = { { "content", weigh_string, arg, false } };

	return read_object(m, COUNT(m), p, end);
}

static const char *
weigh_parts(void *arg, const char *p, const char *end)
{
	return read_array(weigh_part, arg, p, end);
}

static const char *
weigh_result_data(void *arg, const char *p, const char *end)
{
	struct member m[] = { { "parts", weigh_parts, arg, false } };

	return read_object(m, COUNT(m), p, end);
}

static const char *
weigh_result(void *arg, const char *p, const char *end)
{
	struct member m[] = { { "data", weigh_result_data, arg, false } };

	return read_object(m, COUNT(m), p, end);
}

static const char *
weigh_one_result(void *arg, const char *p, const char *end)
{
	struct member m[] = { { "result", weigh_result, arg, false } };

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
	return is_null(p, end) ? p + 4 : weigh_part(arg, p, end);
}

int64_t
quick_tokens_at_least(const struct event *ev, int chars_per_token)
{
	struct size size = { chars_per_token > 0 ? chars_per_token : 4, 0 };
	unsigned flags = ev->type->flags;
	struct member m[] = { { "parts", weigh_parts, &size, false } };

	if (flags & EV_RESULTS)
		m[0] = (struct member){ "results", weigh_results, &size, false };
	else if (flags & EV_RESPONSE)
		m[0] = (struct member){ "message", weigh_message, &size, false };
	else if ((flags & EV_REQUEST) == 0)
		return 0;
	return read_data(ev, m, COUNT(m)) ? size.tokens : 0;
}

void
pieces_release(struct pieces *ids)
{
	free(ids->items);
	*ids = (struct pieces){ 0 };
}

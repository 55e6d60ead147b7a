#include "policy/quick.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

/*
 * The lines have passed json_scan: strings are closed and brackets balanced. Everything else is looked at here, and
 * anything unusual (an escape in a key, a value of another kind) ends in not being sure.
 */

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
		if (*p == '"') {
			p = skip_string(p, end);
			if (p == NULL)
				return NULL;
			continue;
		}
		depth += *p == '{' || *p == '[';
		depth -= *p == '}' || *p == ']';
		p++;
		if (depth == 0)
			return p;
	}
	return NULL;
}

static const char *
skip_value(const char *p, const char *end)
{
	if (p == end)
		return NULL;
	if (*p == '"')
		return skip_string(p, end);
	if (*p == '{' || *p == '[')
		return skip_nested(p, end);
	while (p < end && strchr(",]} \t\r", *p) == NULL)
		p++;
	return p;
}

struct member {
	const char *key;
	struct piece value;	/* p NULL: it is not there */
};

static void
note_member(struct member *members, size_t n, const char *key, size_t len, struct piece value)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strlen(members[i].key) == len && memcmp(members[i].key, key, len) == 0)
			members[i].value = value;	/* the last wins */
}

/* Finds members of an object. False when it is none, or not as simple as they mostly are. */
static bool
find_members(struct piece object, struct member *members, size_t n)
{
	const char *p = object.p, *end = p + object.len, *key, *value;
	size_t len;

	if (object.len == 0 || *p != '{')
		return false;
	p = skip_blanks(p + 1, end);
	while (p < end && *p == '"') {
		key = p + 1;
		p = skip_string(p, end);
		if (p == NULL)
			return false;
		len = (size_t)(p - 1 - key);
		if (memchr(key, '\\', len) != NULL)
			return false;
		p = skip_blanks(p, end);
		if (p == end || *p != ':')
			return false;
		value = skip_blanks(p + 1, end);
		p = skip_value(value, end);
		if (p == NULL)
			return false;
		note_member(members, n, key, len, (struct piece){ value, (size_t)(p - value) });
		p = skip_blanks(p, end);
		if (p < end && *p == ',')
			p = skip_blanks(p + 1, end);
	}
	return p + 1 == end && *p == '}';
}

static bool
member(struct piece object, const char *key, struct piece *value)
{
	struct member m = { .key = key };

	if (!find_members(object, &m, 1))
		return false;
	*value = m.value;
	return true;
}

/* Steps through an array: 1 with the next element, 0 at its end, -1 when it is none. *p is NULL to begin with. */
static int
next_element(struct piece array, const char **p, struct piece *element)
{
	const char *end = array.p + array.len, *at = *p;

	if (at == NULL) {
		if (array.len == 0 || array.p[0] != '[')
			return -1;
		at = array.p + 1;
	}
	at = skip_blanks(at, end);
	if (at < end && *at == ']')
		return at + 1 == end ? 0 : -1;
	element->p = at;
	at = skip_value(at, end);
	if (at == NULL || at == element->p)
		return -1;
	element->len = (size_t)(at - element->p);
	at = skip_blanks(at, end);
	if (at < end && *at == ',')
		at++;
	*p = at;
	return 1;
}

static bool
is_kind(struct piece value, char first)
{
	return value.p != NULL && value.len > 0 && value.p[0] == first;
}

/* A string that surely holds more than blanks: escapes may stand for some. */
static bool
has_text(struct piece value)
{
	size_t i;

	if (!is_kind(value, '"'))
		return false;
	for (i = 1; i + 1 < value.len; i++) {
		if (value.p[i] == '\\')
			return false;
		if (value.p[i] != ' ' && value.p[i] != '\t')
			return true;
	}
	return false;
}

/* Whether the first part holds text; others need no look then. */
static bool
parts_have_text(struct piece parts)
{
	struct piece part, content;
	const char *p = NULL;

	return is_kind(parts, '[') && next_element(parts, &p, &part) > 0 && member(part, "content", &content) && has_text(content);
}

static bool
data_of(const struct event *ev, struct piece *data)
{
	struct json_peek peek;
	const char *why;
	size_t at;

	if (json_scan(ev->line, ev->len, &peek, &at, &why) < 0 || peek.data == NULL)
		return false;
	*data = (struct piece){ peek.data, peek.data_len };
	return true;
}

bool
quick_request(const struct event *ev)
{
	struct piece data, parts;

	return data_of(ev, &data) && member(data, "parts", &parts) && parts_have_text(parts);
}

static bool
is_null(struct piece value)
{
	return value.p == NULL || (value.len == 4 && memcmp(value.p, "null", 4) == 0);
}

/* No calls: none at all, or an empty list of them. */
static bool
has_no_calls(struct piece tool_calls)
{
	struct piece calls, one;
	const char *p = NULL;

	if (is_null(tool_calls))
		return true;
	if (!member(tool_calls, "calls", &calls))
		return false;
	return is_null(calls) || next_element(calls, &p, &one) == 0;
}

bool
quick_answer(const struct event *ev)
{
	struct member m[] = { { .key = "message" }, { .key = "tool_calls" } };
	struct piece data, content;

	if (!data_of(ev, &data) || !find_members(data, m, 2) || !has_no_calls(m[1].value))
		return false;
	return is_kind(m[0].value, '{') && member(m[0].value, "content", &content) && has_text(content);
}

static bool
add_id(struct pieces *ids, struct piece value)
{
	if (!is_kind(value, '"') || value.len < 3 || memchr(value.p, '\\', value.len) != NULL)
		return false;
	ids->items = xgrow(ids->items, ids->n, &ids->cap, sizeof(ids->items[0]));
	ids->items[ids->n++] = (struct piece){ value.p + 1, value.len - 2 };
	return true;
}

static bool
add_result(struct pieces *ids, struct piece one)
{
	struct member m[] = { { .key = "parent_id" }, { .key = "result" } };
	struct piece data, parts;

	if (!find_members(one, m, 2) || !add_id(ids, m[0].value))
		return false;
	return is_kind(m[1].value, '{') && member(m[1].value, "data", &data) && is_kind(data, '{') &&
	    member(data, "parts", &parts) && parts_have_text(parts);
}

bool
quick_results(const struct event *ev, struct pieces *ids)
{
	struct piece data, results, one;
	const char *p = NULL;
	int rc;

	ids->n = 0;
	if (!data_of(ev, &data) || !member(data, "results", &results) || results.p == NULL)
		return false;
	while ((rc = next_element(results, &p, &one)) > 0)
		if (!add_result(ids, one))
			return false;
	return rc == 0 && ids->n > 0;
}

bool
quick_ids(const struct event *ev, unsigned flags, struct pieces *ids)
{
	bool container = (flags & EV_CALLS) != 0;
	const char *key = container ? "calls" : flags & EV_RESULT ? "parent_id" : "id", *p = NULL;
	struct piece data, value, one, id;
	int rc;

	ids->n = 0;
	if (!data_of(ev, &data) || !member(data, key, &value) || value.p == NULL)
		return false;
	if (!container)
		return add_id(ids, value);
	while ((rc = next_element(value, &p, &one)) > 0)
		if (!is_kind(one, '{') || !member(one, "id", &id) || !add_id(ids, id))
			return false;
	return rc == 0;
}

void
pieces_release(struct pieces *ids)
{
	free(ids->items);
	*ids = (struct pieces){ 0 };
}

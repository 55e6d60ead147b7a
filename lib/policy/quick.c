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

/* A string that is not empty and has no escapes goes to the pieces. */
static const char *
read_id(void *arg, const char *p, const char *end)
{
	struct pieces *ids = arg;
	const char *behind = skip_plain(p, end);

	if (behind == NULL || behind - p < 3)
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
	struct member m[] = { MEMBER("id", read_id, c->ids), MEMBER("name", read_id, c->names) };

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
	struct calls calls = { ids, names };
	struct member m[] = { MEMBER("message", read_message, &message), MEMBER("tool_calls", read_tool_calls, &calls) };

	ids->n = names->n = 0;
	return read_data(ev, m, COUNT(m)) && (ids->n > 0 || message.has_text);
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

bool
quick_ids(const struct event *ev, unsigned flags, struct pieces *ids)
{
	struct calls calls = { ids, NULL };
	struct member container[] = { MEMBER("calls", read_calls, &calls) };
	struct member one[] = { flags & EV_RESULT ? (struct member)MEMBER("parent_id", read_id, ids) : (struct member)MEMBER("id", read_id, ids) };

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
	struct member m[] = { MEMBER("content", weigh_string, arg) };

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
	return is_null(p, end) ? p + 4 : weigh_part(arg, p, end);
}

int64_t
quick_tokens_at_least(const struct event *ev, int chars_per_token)
{
	struct size size = { chars_per_token > 0 ? chars_per_token : 4, 0 };
	unsigned flags = ev->type->flags;
	struct member m[] = { MEMBER("parts", weigh_parts, &size) };

	if (flags & EV_RESULTS)
		m[0] = (struct member)MEMBER("results", weigh_results, &size);
	else if (flags & EV_RESPONSE)
		m[0] = (struct member)MEMBER("message", weigh_message, &size);
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

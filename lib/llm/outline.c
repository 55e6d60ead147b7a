#include "llm/outline.h"

#include <string.h>

struct scan {
	const char *body;
	size_t len, at;
};

static void
skip_blanks(struct scan *s)
{
	while (s->at < s->len && strchr(" \t\r\n", s->body[s->at]) != NULL && s->body[s->at] != '\0')
		s->at++;
}

static bool
is(const struct scan *s, char c)
{
	return s->at < s->len && s->body[s->at] == c;
}

static void
skip_string(struct scan *s)
{
	for (s->at++; s->at < s->len && s->body[s->at] != '"'; s->at++)
		s->at += s->body[s->at] == '\\';
	s->at += s->at < s->len;
}

/* Over any value, to what follows it. */
static void
skip_value(struct scan *s)
{
	size_t depth = 0;

	while (s->at < s->len) {
		char c = s->body[s->at];

		if (c == '"') {
			skip_string(s);
		} else if (depth == 0 && (c == ',' || c == '}' || c == ']')) {
			break;
		} else {
			depth += c == '{' || c == '[';
			depth -= c == '}' || c == ']';
			s->at++;
		}
		if (depth == 0 && (c == '"' || c == '}' || c == ']'))
			break;
	}
	if (s->at > s->len)
		s->at = s->len;
}

static int
elements(struct scan *s, struct outline_part p, int (*fn)(void *arg, const struct outline_part *p), void *arg)
{
	int rc;

	s->at++;
	for (p.index = 0;; p.index++) {
		skip_blanks(s);
		if (s->at >= s->len || is(s, ']'))
			break;
		p.start = s->at;
		skip_value(s);
		p.end = s->at;
		if (p.end == p.start)
			return 0;
		rc = fn(arg, &p);
		if (rc != 0)
			return rc;
		skip_blanks(s);
		s->at += is(s, ',');
	}
	s->at += is(s, ']');
	return 0;
}

static int
member(struct scan *s, int (*fn)(void *arg, const struct outline_part *p), void *arg)
{
	struct outline_part p = { .index = -1, .start = s->at };

	skip_string(s);
	p.name = s->body + p.start + 1;
	p.name_len = s->at > p.start + 2 ? s->at - p.start - 2 : 0;
	skip_blanks(s);
	s->at += is(s, ':');
	skip_blanks(s);
	if (is(s, '['))
		return elements(s, p, fn, arg);
	skip_value(s);
	p.end = s->at;
	return fn(arg, &p);
}

static int
lines(const char *body, size_t len, int (*fn)(void *arg, const struct outline_part *p), void *arg)
{
	struct outline_part p = { .name = "line", .name_len = 4, .index = 0 };
	const char *newline;
	int rc;

	for (; p.start < len; p.start = p.end, p.index++) {
		newline = memchr(body + p.start, '\n', len - p.start);
		p.end = newline != NULL ? (size_t)(newline + 1 - body) : len;
		rc = fn(arg, &p);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* One object, and nothing behind it. */
static bool
is_one_object(const char *body, size_t len)
{
	struct scan s = { body, len, 0 };

	skip_blanks(&s);
	if (!is(&s, '{'))
		return false;
	skip_value(&s);
	skip_blanks(&s);
	return s.at == s.len && !(len >= 10 && memcmp(body, "{\"type\": \"", 10) == 0);	/* a single event is a line */
}

int
outline(const char *body, size_t len, int (*fn)(void *arg, const struct outline_part *p), void *arg)
{
	struct scan s = { body, len, 0 };
	int rc;

	if (!is_one_object(body, len))
		return lines(body, len, fn, arg);
	skip_blanks(&s);
	s.at++;
	for (;;) {
		skip_blanks(&s);
		if (!is(&s, '"'))
			return 0;
		rc = member(&s, fn, arg);
		if (rc != 0)
			return rc;
		skip_blanks(&s);
		s.at += is(&s, ',');
	}
}

bool
outline_is_message(const struct outline_part *p)
{
	static const char *const names[] = { "messages", "input", "contents" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]) && p->index >= 0; i++)
		if (p->name_len == strlen(names[i]) && memcmp(p->name, names[i], p->name_len) == 0)
			return true;
	return false;
}

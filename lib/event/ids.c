/*
 * The call ids of an event without parsing it: a walk along the one path where they stand, past everything else string by
 * string. A line of 16 KB costs some microseconds instead of some hundred.
 */
#include "event/event.h"

#include <string.h>

#define IDS_MAX 64

static const char nested[] = "[]";	/* in a path: each element of an array */

struct id {
	const char *text;
	size_t len;
};

struct walk {
	const char *p, *end;
	struct id ids[IDS_MAX];
	size_t n;
};

static char
here(struct walk *w)
{
	while (w->p < w->end && (*w->p == ' ' || *w->p == '\t' || *w->p == '\r' || *w->p == '\n'))
		w->p++;
	return w->p < w->end ? *w->p : '\0';
}

static bool
take(struct walk *w, char c)
{
	if (here(w) != c)
		return false;
	w->p++;
	return true;
}

/* A string as it is written, between its quotes; false where it is none. */
static bool
string(struct walk *w, const char **text, size_t *len)
{
	const char *quote, *back;

	if (!take(w, '"'))
		return false;
	*text = quote = w->p;
	while ((quote = memchr(quote, '"', (size_t)(w->end - quote))) != NULL) {
		for (back = quote; back > *text && back[-1] == '\\'; back--)
			;
		if ((quote - back) % 2 == 0)
			break;
		quote++;
	}
	if (quote == NULL)
		return false;
	*len = (size_t)(quote - *text);
	w->p = quote + 1;
	return true;
}

static bool
skip(struct walk *w)
{
	const char *text;
	size_t len, depth = 0;

	for (;;) {
		switch (here(w)) {
		case '\0':
			return false;
		case '"':
			if (!string(w, &text, &len))
				return false;
			break;
		case '{':
		case '[':
			depth++;
			w->p++;
			break;
		case '}':
		case ']':
			if (depth == 0)
				return true;
			depth--;
			w->p++;
			break;
		case ',':
			if (depth == 0)
				return true;
			w->p++;
			continue;
		default:
			w->p++;
			continue;
		}
		if (depth == 0)
			return true;
	}
}

static bool walk(struct walk *w, const char *const *path);

static bool
elements(struct walk *w, const char *const *path)
{
	w->p++;
	if (take(w, ']'))
		return true;
	do
		if (!walk(w, path))
			return false;
	while (take(w, ','));
	return take(w, ']');
}

/* A key that is escaped or comes twice is for who parses. */
static bool
members(struct walk *w, const char *const *path)
{
	const char *key;
	bool seen = false;
	size_t len;

	w->p++;
	if (take(w, '}'))
		return true;
	do {
		if (!string(w, &key, &len) || memchr(key, '\\', len) != NULL || !take(w, ':'))
			return false;
		if (len != strlen(path[0]) || memcmp(key, path[0], len) != 0) {
			if (!skip(w))
				return false;
			continue;
		}
		if (seen || !walk(w, path + 1))
			return false;
		seen = true;
	} while (take(w, ','));
	return take(w, '}');
}

static bool
walk(struct walk *w, const char *const *path)
{
	struct id id;

	if (path[0] == nested)
		return here(w) == '[' ? elements(w, path + 1) : skip(w);
	if (path[0] != NULL)
		return here(w) == '{' ? members(w, path) : skip(w);
	if (here(w) != '"')
		return skip(w);
	if (!string(w, &id.text, &id.len) || memchr(id.text, '\\', id.len) != NULL)
		return false;
	if (id.len > 0) {
		if (w->n == IDS_MAX)
			return false;
		w->ids[w->n++] = id;
	}
	return true;
}

bool
event_ids_quick(const struct event *ev, event_id_fn *fn, void *arg)
{
	static const char *const of_response[] = { "data", "tool_calls", "calls", nested, "id", NULL },
	    *const of_calls[] = { "data", "calls", nested, "id", NULL }, *const of_call[] = { "data", "id", NULL },
	    *const of_results[] = { "data", "results", nested, "parent_id", NULL }, *const of_result[] = { "data", "parent_id", NULL };
	struct walk w = { .p = ev->line, .end = ev->line + ev->len };
	unsigned flags = ev->type->flags;
	const char *const *path;
	size_t i;

	if ((flags & (EV_RESPONSE | EV_CALLS | EV_CALL | EV_RESULTS | EV_RESULT)) == 0)
		return true;
	path = flags & EV_RESPONSE ? of_response : flags & EV_CALLS ? of_calls : flags & EV_RESULTS ? of_results :
	    flags & EV_RESULT ? of_result : of_call;
	if (!walk(&w, path))
		return false;
	for (i = 0; i < w.n; i++)
		fn(arg, w.ids[i].text, w.ids[i].len);
	return true;
}

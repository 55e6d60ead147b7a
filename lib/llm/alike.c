#include "llm/alike.h"

#include "base/utf8.h"
#include "event/json.h"

#include <stdlib.h>

#define FRAME_MAX 8192		/* bytes of a frame that is learned */

void
alike_release(struct alike *a)
{
	buf_release(&a->frame);
	buf_release(&a->event);
	buf_release(&a->said);
	buf_release(&a->last);
	buf_release(&a->scratch);
	buf_release(&a->ignored);
}

void
alike_forget(struct alike *a)
{
	a->gaps_n = 0;
	a->proven = false;
}

/* ---- where the gaps are, in JSON that was parsed ---- */

static const char *
behind_blanks(const char *p, const char *end)
{
	while (p < end && strchr(" \t\r\n", *p) != NULL)
		p++;
	return p;
}

/* NULL where it is not there, stands twice, or may be hidden behind an escape. */
static const char *
member_at(const char *p, const char *end, const char *name, size_t n)
{
	const char *key, *value, *found = NULL;
	bool escaped;

	for (p = behind_blanks(p + 1, end); *p != '}'; p = behind_blanks(p + (*p == ','), end)) {
		key = p + 1;
		p = json_skip(p, end, &escaped);
		if (p == NULL || escaped)
			return NULL;
		value = behind_blanks(behind_blanks(p, end) + 1, end);
		if ((size_t)(p - 1 - key) == n && memcmp(key, name, n) == 0) {
			if (found != NULL)
				return NULL;
			found = value;
		}
		p = json_skip(value, end, NULL);
		if (p == NULL)
			return NULL;
		p = behind_blanks(p, end);
	}
	return found;
}

static const char *
item_at(const char *p, const char *end, unsigned long place)
{
	for (p = behind_blanks(p + 1, end); *p != ']'; p = behind_blanks(p + (*p == ','), end)) {
		if (place-- == 0)
			return p;
		p = json_skip(p, end, NULL);
		if (p == NULL)
			return NULL;
		p = behind_blanks(p, end);
	}
	return NULL;
}

static const char *
value_at(const char *p, const char *end, const char *path)
{
	size_t n;

	for (p = behind_blanks(p, end); p != NULL && *path != '\0'; path += n + (path[n] == '.')) {
		n = strcspn(path, ".");
		p = *p == '{' ? member_at(p, end, path, n) : *p == '[' ? item_at(p, end, strtoul(path, NULL, 10)) : NULL;
	}
	return p;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* In the order of their places. Other values than strings and numbers must come again as they are. */
static void
add_gap(struct alike *a, int what, const char *path)
{
	const char *data = a->frame.data, *end = data + a->frame.len, *p = path != NULL ? value_at(data, end, path) : NULL, *to;
	struct alike_gap gap = { .what = what };
	size_t i;

	if (p == NULL || (*p != '"' && !is_digit(*p)) || (what != GAP_UNREAD && (*p == '"') != (what == GAP_TEXT)))
		return;
	to = json_skip(p, end, NULL);
	if (to == NULL)
		return;
	gap.string = *p == '"';
	gap.from = (size_t)(p - data);
	gap.to = (size_t)(to - data);
	for (i = a->gaps_n++; i > 0 && a->gaps[i - 1].from > gap.from; i--)
		a->gaps[i] = a->gaps[i - 1];
	a->gaps[i] = gap;
}

/* ---- one frame beside the other ---- */

static bool
take_number(struct alike *a, const struct alike_gap *gap, const char **p, const char *end)
{
	const char *from = *p;
	size_t n;

	if (from == end || !is_digit(*from) || !json_take_number(p, end))
		return false;
	n = (size_t)(*p - from);
	if (gap->what != GAP_NUMBER)
		return true;
	if (n > 18)
		return false;
	for (a->number = 0; from < *p && is_digit(*from); from++)
		a->number = a->number * 10 + (*from - '0');
	return from == *p;
}

/* What stands there as it stood is as good as it was. */
static bool
take_again(const struct alike *a, const struct alike_gap *gap, const char **p, const char *end)
{
	size_t n = gap->to - gap->from;

	if (gap->what != GAP_UNREAD || (size_t)(end - *p) < n || memcmp(*p, a->frame.data + gap->from, n) != 0)
		return false;
	*p += n;
	return true;
}

static bool
take_gap(struct alike *a, const struct alike_gap *gap, const char **p, const char *end)
{
	struct text ignored;

	if (take_again(a, gap, p, end))
		return true;
	if (!gap->string)
		return take_number(a, gap, p, end);
	if (*p == end || **p != '"')
		return false;
	if (gap->what == GAP_TEXT)
		return json_take_string(p, end, &a->scratch, &a->text.data, &a->text.len);
	return json_take_string(p, end, &a->ignored, &ignored.data, &ignored.len);
}

/* The frame without its text, of which all else is known: what its numbers do is done later, by the last of them. */
static void
keep_last(struct alike *a, const char *data, size_t len, size_t from, size_t to)
{
	buf_reset(&a->last);
	buf_add(&a->last, data, from);
	buf_adds(&a->last, "\"\"");
	buf_add(&a->last, data + to, len - to);
}

static bool
fits(struct alike *a, const char *event, const char *data, size_t len, int64_t below, bool keep)
{
	const char *p = data, *end = data + len, *start, *known = a->frame.data;
	size_t i, n, at = 0, from = 0, to = 0;
	bool counts = false;

	if (a->gaps_n == 0)
		return false;
	for (i = 0; i < a->gaps_n; at = a->gaps[i++].to) {
		n = a->gaps[i].from - at;
		if ((size_t)(end - p) < n || memcmp(p, known + at, n) != 0)
			return false;
		start = p += n;
		if (!take_gap(a, &a->gaps[i], &p, end) || (a->gaps[i].what == GAP_NUMBER && a->number <= below))
			return false;
		counts = counts || a->gaps[i].what == GAP_COUNT;
		if (a->gaps[i].what == GAP_TEXT) {
			from = (size_t)(start - data);
			to = (size_t)(p - data);
		}
	}
	if ((size_t)(end - p) != a->frame.len - at || memcmp(p, known + at, a->frame.len - at) != 0 || strcmp(event, a->event.data) != 0)
		return false;
	if (keep && counts)
		keep_last(a, data, len, from, to);
	return true;
}

bool
alike_fits(struct alike *a, const char *event, const char *data, size_t len, int64_t below)
{
	return a->proven && fits(a, event, data, len, below, true);
}

/* ---- learning ---- */

static bool
same(const char *b, size_t b_len, const char *data, size_t len)
{
	return b_len == len && (len == 0 || memcmp(b, data, len) == 0);
}

static bool
has_text(const struct alike *a)
{
	size_t i;

	for (i = 0; i < a->gaps_n; i++)
		if (a->gaps[i].what == GAP_TEXT)
			return true;
	return false;
}

static void
begin(struct alike *a, const struct alike_members *m, const char *number, const char *event, const char *data, size_t len)
{
	size_t i;

	alike_forget(a);
	if (m->text == NULL || len > FRAME_MAX || utf8_valid(data, len) < len)
		return;
	buf_reset(&a->frame);
	buf_add(&a->frame, data, len);
	buf_reset(&a->event);
	buf_adds(&a->event, event);
	add_gap(a, GAP_TEXT, m->text);
	add_gap(a, GAP_NUMBER, number);
	for (i = 0; i < ALIKE_MEMBERS; i++) {
		add_gap(a, GAP_UNREAD, m->unread[i]);
		add_gap(a, GAP_COUNT, m->counts[i]);
	}
	if (!has_text(a))
		alike_forget(a);
}

/*
 * Where two frames that differ in their gaps alone gave different texts, and each the one that stands in its gap, the text is
 * taken from there: anything else in them is either the same or not looked at.
 */
bool
alike_learn(struct alike *a, const struct alike_members *m, const char *number, const char *event, const char *data, size_t len,
    const char *text, size_t text_len)
{
	bool known = fits(a, event, data, len, INT64_MIN, false) && same(a->text.data, a->text.len, text, text_len);

	if (known) {
		a->proven = a->proven || !same(a->said.data, a->said.len, text, text_len);
		return true;
	}
	begin(a, m, number, event, data, len);
	buf_reset(&a->said);
	buf_add(&a->said, text, text_len);
	if (!fits(a, event, data, len, INT64_MIN, false) || !same(a->text.data, a->text.len, text, text_len)) {
		alike_forget(a);
		return false;
	}
	return true;
}

#include "llm/secret.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

#define HIDDEN "[key]"
#define PART 8		/* bytes of a secret in a row that give it away to a reader */

/* ---- the forms a secret may have ---- */

#define FORMS_MAX 12

struct forms {
	struct buf items[FORMS_MAX];
	size_t n;
};

static const char hex_lower[] = "0123456789abcdef", hex_upper[] = "0123456789ABCDEF";

static struct buf *
new_form(struct forms *f)
{
	f->items[f->n] = (struct buf)BUF_INIT;
	return &f->items[f->n++];
}

/* What base64 makes of the secret where `before` other bytes stand before it, without the characters that others share. */
static void
add_base64(struct forms *f, const char *secret, size_t before, const char *last_two)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	struct buf *out = new_form(f);
	size_t bits = strlen(secret) * 8, at = before == 0 ? 0 : 6 - before * 8 % 6, i;
	unsigned six;

	for (; at + 6 <= bits; at += 6) {
		for (six = 0, i = at; i < at + 6; i++)
			six = six << 1 | ((unsigned char)secret[i / 8] >> (7 - i % 8) & 1u);
		buf_addch(out, six < 62 ? alphabet[six] : last_two[six - 62]);
	}
}

static void
add_hex(struct forms *f, const char *secret, const char *digits)
{
	struct buf *out = new_form(f);

	for (; *secret != '\0'; secret++) {
		buf_addch(out, digits[(unsigned char)*secret >> 4]);
		buf_addch(out, digits[(unsigned char)*secret & 15]);
	}
}

static bool
unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~", c) != NULL;
}

static void
add_percent(struct forms *f, const char *secret, const char *digits)
{
	struct buf *out = new_form(f);

	for (; *secret != '\0'; secret++) {
		if (!unreserved(*secret)) {
			buf_addch(out, '%');
			buf_addch(out, digits[(unsigned char)*secret >> 4]);
			buf_addch(out, digits[(unsigned char)*secret & 15]);
		} else {
			buf_addch(out, *secret);
		}
	}
}

static void
add_json(struct forms *f, const char *secret, const char *escaped)
{
	struct buf *out = new_form(f);

	for (; *secret != '\0'; secret++) {
		if (strchr(escaped, *secret) != NULL)
			buf_addch(out, '\\');
		buf_addch(out, *secret);
	}
}

/* A key of letters and digits looks the same in some of them. */
static void
drop_if_known(struct forms *f)
{
	const struct buf *new = &f->items[f->n - 1];
	size_t i;

	for (i = 0; i + 1 < f->n; i++) {
		if (f->items[i].len == new->len && memcmp(f->items[i].data, new->data, new->len) == 0) {
			buf_release(&f->items[--f->n]);
			return;
		}
	}
}

static void
make_forms(struct forms *f, const char *secret)
{
	size_t before;

	f->n = 0;
	buf_adds(new_form(f), secret);
	for (before = 0; before < 3; before++) {
		add_base64(f, secret, before, "+/");
		add_base64(f, secret, before, "-_");
		drop_if_known(f);
	}
	add_hex(f, secret, hex_lower);
	add_hex(f, secret, hex_upper);
	drop_if_known(f);
	add_percent(f, secret, hex_upper);
	drop_if_known(f);
	add_percent(f, secret, hex_lower);
	drop_if_known(f);
	add_json(f, secret, "\"\\/");
	drop_if_known(f);
}

static void
release_forms(struct forms *f)
{
	while (f->n > 0) {
		f->n--;
		explicit_bzero(f->items[f->n].data, f->items[f->n].len);
		buf_release(&f->items[f->n]);
	}
}

/* ---- whole ---- */

static void
replace_all(struct buf *text, const struct buf *form)
{
	struct buf clean = BUF_INIT;
	const char *p = text->data, *end = p + text->len, *at;

	if (form->len < SECRET_PART || memmem(p, text->len, form->data, form->len) == NULL)
		return;
	while ((at = memmem(p, (size_t)(end - p), form->data, form->len)) != NULL) {
		buf_add(&clean, p, (size_t)(at - p));
		buf_adds(&clean, HIDDEN);
		p = at + form->len;
	}
	buf_add(&clean, p, (size_t)(end - p));
	buf_release(text);
	*text = clean;
}

static void
hide_whole(struct buf *out, const char *bytes, size_t len, const char *secret, size_t least)
{
	struct buf text = BUF_INIT;
	struct forms f;
	size_t i;

	if (secret == NULL || strlen(secret) < least) {
		buf_add(out, bytes, len);
		return;
	}
	buf_add(&text, bytes, len);
	make_forms(&f, secret);
	for (i = 0; i < f.n; i++)
		replace_all(&text, &f.items[i]);
	release_forms(&f);
	buf_add(out, text.data, text.len);
	buf_release(&text);
}

void
secret_hide(struct buf *out, const char *bytes, size_t len, const char *secret)
{
	hide_whole(out, bytes, len, secret, SECRET_MIN);
}

/* ---- in parts ---- */

static int
digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* `n` digits at p as a character; -1 when they are none, or not of ASCII. */
static int
digits_at(const char *p, size_t left, size_t n)
{
	int value = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		if (i >= left || digit(p[i]) < 0)
			return -1;
		value = value * 16 + digit(p[i]);
	}
	return value < 0x80 ? value : -1;
}

/* The character at p, escaped or not, and how many bytes it takes. */
static char
character(const char *p, size_t left, size_t *taken)
{
	int c = -1;

	*taken = 1;
	if (p[0] == '%')
		*taken = (c = digits_at(p + 1, left - 1, 2)) >= 0 ? 3 : 1;
	else if (p[0] == '\\' && left > 1 && p[1] == 'u')
		*taken = (c = digits_at(p + 2, left - 2, 4)) >= 0 ? 6 : 1;
	else if (p[0] == '\\' && left > 1 && p[1] == 'x')
		*taken = (c = digits_at(p + 2, left - 2, 2)) >= 0 ? 4 : 1;
	else if (p[0] == '\\' && left > 1 && strchr("\"\\/", p[1]) != NULL)
		*taken = (c = p[1]) != '\0' ? 2 : 1;
	return *taken > 1 ? (char)c : p[0];
}

/* How many characters from `at` on stand somewhere in the secret in the same order. */
static size_t
run_at(const char *text, size_t len, const char *secret, size_t n)
{
	size_t best = 0, from, i;

	for (from = 0; from < n; from++) {
		for (i = 0; i < len && from + i < n && text[i] == secret[from + i]; i++)
			;
		if (i > best)
			best = i;
	}
	return best;
}

static void
hide_runs(struct buf *out, const char *bytes, size_t len, const char *secret)
{
	char *plain = xcalloc(len + 1, 1);
	size_t *place = xcalloc(len + 1, sizeof(*place));	/* where in bytes each character begins */
	size_t n = 0, i = 0, taken, run, want = strlen(secret) < PART ? strlen(secret) : PART;

	for (; i < len; i += taken) {
		place[n] = i;
		plain[n++] = character(bytes + i, len - i, &taken);
	}
	place[n] = len;
	for (i = 0; i < n; i += run) {
		run = run_at(plain + i, n - i, secret, strlen(secret));
		if (run >= want) {
			buf_adds(out, HIDDEN);
		} else {
			run = 1;
			buf_add(out, bytes + place[i], place[i + 1] - place[i]);
		}
	}
	free(plain);
	free(place);
}

void
secret_hide_parts(struct buf *out, const char *bytes, size_t len, const char *secret)
{
	struct buf whole = BUF_INIT;

	hide_whole(&whole, bytes, len, secret, SECRET_PART);
	if (secret == NULL || strlen(secret) < SECRET_PART)
		buf_add(out, whole.data, whole.len);
	else
		hide_runs(out, whole.data, whole.len, secret);
	buf_release(&whole);
}

/* ---- as it comes ---- */

/* The form that stands first in the text, of several at one place the longest; NULL: none. */
static const struct buf *
first_form(const struct forms *f, const char *text, size_t len, size_t *at)
{
	const struct buf *first = NULL;
	const char *p;
	size_t i;

	for (i = 0; i < f->n; i++) {
		p = f->items[i].len >= SECRET_PART ? memmem(text, len, f->items[i].data, f->items[i].len) : NULL;
		if (p == NULL || (first != NULL && (size_t)(p - text) > *at) ||
		    (first != NULL && (size_t)(p - text) == *at && f->items[i].len < first->len))
			continue;
		first = &f->items[i];
		*at = (size_t)(p - text);
	}
	return first;
}

/* How many bytes at the end of the text may be the beginning of a form, and of which; 0 for fewer than SECRET_PART. */
static size_t
may_begin(const struct forms *f, const char *text, size_t len, size_t *whole)
{
	size_t i, n, most = 0;

	for (i = 0; i < f->n; i++) {
		n = f->items[i].len == 0 ? 0 : len < f->items[i].len ? len : f->items[i].len - 1;
		while (n > most && n >= SECRET_PART && memcmp(text + len - n, f->items[i].data, n) != 0)
			n--;
		if (n > most && n >= SECRET_PART) {
			most = n;
			*whole = f->items[i].len;
		}
	}
	return most;
}

/* What was given last stays in `text`, for a secret may have begun there. */
static void
keep_tail(struct screen *s, size_t from, size_t end)
{
	struct buf left = BUF_INIT;
	size_t tail = end - from < SECRET_PART - 1 ? end - from : SECRET_PART - 1;

	buf_add(&left, s->text.data + end - tail, s->text.len - end + tail);
	buf_release(&s->text);
	s->text = left;
	s->given = tail;
}

/* What is free of the secret, from what was given on; how many bytes at the end are held back. */
static size_t
pass(struct screen *s, struct buf *out, bool last, size_t *from)
{
	const struct buf *form;
	size_t at, held, whole = 0;

	if (s->forms == NULL) {
		s->forms = xcalloc(1, sizeof(*s->forms));
		make_forms(s->forms, s->secret);
	}
	while ((form = first_form(s->forms, s->text.data + *from, s->text.len - *from, &at)) != NULL) {
		at += *from;
		if (at > s->given)
			buf_add(out, s->text.data + s->given, at - s->given);
		buf_adds(out, HIDDEN);
		s->given = *from = at + form->len;
	}
	held = may_begin(s->forms, s->text.data + *from, s->text.len - *from, &whole);
	if (held > s->text.len - s->given)
		held = s->text.len - s->given;
	if (last && held < whole / 2)	/* a word that begins so */
		held = 0;
	if (last && held > 0) {		/* a secret that was cut off */
		buf_add(out, s->text.data + s->given, s->text.len - s->given - held);
		buf_adds(out, HIDDEN);
		s->given = s->text.len;
		held = 0;
	}
	return held;
}

int
screen_flush(struct screen *s, bool last, struct err *e)
{
	struct buf out = BUF_INIT;
	size_t from = 0, held = 0;
	int rc;

	if (s->text.len == s->given)
		return 0;
	if (s->secret != NULL && strlen(s->secret) >= SECRET_MIN)
		held = pass(s, &out, last, &from);
	buf_add(&out, s->text.data + s->given, s->text.len - s->given - held);
	keep_tail(s, from, s->text.len - held);
	rc = sink_text(s->to, out.data, out.len, e);
	buf_release(&out);
	return rc;
}

void
screen_release(struct screen *s)
{
	if (s->forms != NULL)
		release_forms(s->forms);
	free(s->forms);
	buf_release(&s->text);
	s->forms = NULL;
}

int
screen_text(void *arg, const char *text, size_t len, struct err *e)
{
	struct screen *s = arg;

	buf_add(&s->text, text, len);
	return 0;
}

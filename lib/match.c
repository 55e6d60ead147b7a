#include "match.h"

#include "base/fold.h"
#include "base/utf8.h"

#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define PATTERN_MAX (64 * 1024)

/* ---- matching ---- */

/* What follows a backslash is an operator, of which case tells two apart. */
static void
fold_expression(struct buf *out, const char *pattern, size_t len)
{
	size_t i = 0, n;

	while (i < len) {
		if (pattern[i] == '\\' && i + 1 < len) {
			buf_add(out, pattern + i, 2);
			i += 2;
			continue;
		}
		n = utf8_decode(pattern + i, len - i, NULL);
		n = n > 0 ? n : 1;
		fold_add(out, pattern + i, n);
		i += n;
	}
}

/* Characters are UTF-8, wherever we are: also when it is used. */
static int
compile(struct match *m, struct err *e)
{
	locale_t before;
	char why[200];
	int rc;

	m->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	before = m->locale != (locale_t)0 ? uselocale(m->locale) : (locale_t)0;
	rc = regcomp(&m->re, m->pattern.data, m->flags & MATCH_EXTENDED ? REG_EXTENDED : 0);
	if (rc != 0)
		regerror(rc, &m->re, why, sizeof(why));
	if (before != (locale_t)0)
		uselocale(before);
	if (rc != 0)
		return err_set(e, ERR_USAGE, "'%.100s' is no regular expression: %s", m->pattern.data, why);
	m->compiled = true;
	return 0;
}

static bool
execute(struct match *m, const char *line, size_t len, regmatch_t *at, int flags)
{
	locale_t before = m->locale != (locale_t)0 ? uselocale(m->locale) : (locale_t)0;
	int rc = len > INT32_MAX ? REG_NOMATCH : regexec(&m->re, line, 1, at, flags);

	if (before != (locale_t)0)
		uselocale(before);
	return rc == 0;
}

int
match_init(struct match *m, const char *pattern, unsigned flags, struct err *e)
{
	size_t len = strlen(pattern);

	*m = (struct match){ .flags = flags, .pattern = BUF_INIT, .folded = BUF_INIT };
	if (len > PATTERN_MAX)
		return err_set(e, ERR_USAGE, "the pattern is longer than %d bytes", PATTERN_MAX);
	if (strchr(pattern, '\n') != NULL)
		return err_set(e, ERR_USAGE, "the pattern has a newline, which no line has");
	if (flags & MATCH_FOLD && flags & MATCH_FIXED)
		fold_add(&m->pattern, pattern, len);
	else if (flags & MATCH_FOLD)
		fold_expression(&m->pattern, pattern, len);
	else
		buf_add(&m->pattern, pattern, len);
	return flags & MATCH_FIXED ? 0 : compile(m, e);
}

void
match_release(struct match *m)
{
	if (m->compiled)
		regfree(&m->re);
	if (m->locale != (locale_t)0)
		freelocale(m->locale);
	m->compiled = false;
	m->locale = (locale_t)0;
	buf_release(&m->pattern);
	buf_release(&m->folded);
}

bool
match_line(struct match *m, const char *line, size_t len, size_t from, size_t *start, size_t *end)
{
	bool known = true;
	const char *hit;
	regmatch_t at;

	if (m->flags & MATCH_FOLD) {
		buf_reset(&m->folded);
		fold_add(&m->folded, line, len);
		known = m->folded.len == len;
		line = m->folded.data;
		len = m->folded.len;
	}
	if (m->compiled) {
		at = (regmatch_t){ .rm_so = (regoff_t)from, .rm_eo = (regoff_t)len };
		if (!execute(m, line, len, &at, REG_STARTEND | (from > 0 ? REG_NOTBOL : 0)))
			return false;
		*start = (size_t)at.rm_so;
		*end = (size_t)at.rm_eo;
	} else {
		hit = memmem(line + from, len - from, m->pattern.data, m->pattern.len);
		if (hit == NULL)
			return false;
		*start = (size_t)(hit - line);
		*end = *start + m->pattern.len;
	}
	if (!known)
		*start = *end = 0;
	return true;
}

/* ---- the sieve ---- */

/* Behind a bracket expression; p is at its '['. */
static const char *
behind_bracket(const char *p, const char *end)
{
	char kind;

	p++;
	if (p < end && *p == '^')
		p++;
	if (p < end && *p == ']')
		p++;
	while (p < end && *p != ']') {
		kind = *p == '[' && p + 1 < end ? p[1] : '\0';
		if (kind != ':' && kind != '.' && kind != '=') {
			p++;
			continue;
		}
		for (p += 2; p + 1 < end && !(p[0] == kind && p[1] == ']'); p++)
			continue;
		p += 2;
	}
	return p < end ? p + 1 : end;
}

static const char *
behind_brace(const char *p, const char *end)
{
	p += strcspn(p, "}");
	return p < end ? p + 1 : end;
}

/* Behind the atom or operator at p; *literal tells that it is one character that stands for itself, once. */
static const char *
behind_atom(const char *p, const char *end, bool *literal)
{
	size_t n;

	*literal = false;
	if (*p == '[')
		return behind_bracket(p, end);
	if (*p == '{' || (*p == '\\' && p[1] == '{'))
		return behind_brace(p, end);
	if (*p == '\\')
		return p + 1 < end ? p + 2 : end;
	if (strchr(".*^$+?}", *p) != NULL)
		return p + 1;
	n = utf8_decode(p, (size_t)(end - p), NULL);
	p += n > 0 ? n : 1;
	*literal = p == end || (strchr("*?+{", *p) == NULL && (*p != '\\' || p[1] == '\0' || strchr("?+{", p[1]) == NULL));
	return p;
}

/* The longest stretch of an expression that every match has in it as it stands; none where there are alternatives or groups. */
static void
literal_of(const struct match *m, struct buf *best)
{
	const char *p = m->pattern.data, *end = p + m->pattern.len, *behind;
	struct buf run = BUF_INIT;
	bool literal;

	if (m->flags & MATCH_FIXED) {
		buf_add(best, p, m->pattern.len);
		return;
	}
	if (strstr(p, "\\|") != NULL || strstr(p, "\\(") != NULL || (m->flags & MATCH_EXTENDED && strpbrk(p, "|(") != NULL))
		return;
	for (; p < end; p = behind) {
		behind = behind_atom(p, end, &literal);
		if (literal)
			buf_add(&run, p, (size_t)(behind - p));
		else
			buf_reset(&run);
		if (run.len > best->len) {
			buf_reset(best);
			buf_add(best, run.data, run.len);
		}
	}
	buf_release(&run);
}

/* Letters of either case where `cases` is set: what is searched for has them low then. */
static void
add_needle(struct sieve *s, const char *bytes, size_t len, bool cases)
{
	struct needle *n = &s->needles[s->n];
	size_t i;

	if (s->n == sizeof(s->needles) / sizeof(*s->needles))
		return;
	*n = (struct needle){ .len = len < sizeof(n->bytes) ? len : sizeof(n->bytes) };
	for (i = 0; i < n->len; i++) {
		n->mask[i] = cases && bytes[i] >= 'a' && bytes[i] <= 'z' ? 0xdf : 0xff;
		n->bytes[i] = (unsigned char)bytes[i] & n->mask[i];
	}
	n->first = cases && bytes[0] == '\\' ? n->len - 2 : 0;	/* of an escape in hexadecimal digits the rarer end */
	n->second = n->len - 1;
	s->n++;
}

/* A character of a word that JSON spells with an escape: \u0020 to \u007f. */
static void
add_escape(struct sieve *s)
{
	struct needle *n = &s->needles[s->n];

	add_needle(s, "\\u00?", 5, false);
	n->mask[4] = n->bytes[4] = 0;
	n->second = 3;
	n->escape = true;
}

/* One character as it is, and as JSON may escape it. */
static void
add_character(struct sieve *s, uint32_t c, bool json)
{
	struct buf text = BUF_INIT;
	char hex[32];

	utf8_add(&text, c);
	add_needle(s, text.data, text.len, false);
	if (c >= 0x10000)
		snprintf(hex, sizeof(hex), "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + ((c - 0x10000) & 0x3ff));
	else
		snprintf(hex, sizeof(hex), "\\u%04x", c);
	if (json)
		add_needle(s, hex, strlen(hex), true);
	buf_release(&text);
}

static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The longest run of what nobody spells otherwise than with an escape. */
static size_t
longest_word(const char *text, size_t len, size_t *at)
{
	size_t i, n, best = 0;

	for (i = 0; i < len; i += n > 0 ? n : 1) {
		for (n = 0; i + n < len && is_letter(text[i + n]); n++)
			continue;
		if (n > best) {
			best = n;
			*at = i;
		}
	}
	return best;
}

static void
add_word(struct sieve *s, const char *word, size_t len, bool folded, bool json)
{
	add_needle(s, word, len, folded);
	if (json)
		add_escape(s);
	if (folded && memchr(word, 'k', len) != NULL)
		add_character(s, 0x212a, json);		/* the two characters beyond ASCII that fold into it */
	if (folded && memchr(word, 's', len) != NULL)
		add_character(s, 0x17f, json);
}

void
sieve_init(struct sieve *s, const struct match *m, bool json)
{
	bool folded = m->flags & MATCH_FOLD;
	struct buf text = BUF_INIT;
	uint32_t variants[FOLD_MAX], c;
	size_t at = 0, n, i;

	*s = (struct sieve){ .n = 0 };
	literal_of(m, &text);
	n = longest_word(text.data, text.len, &at);
	if (n > 0) {
		add_word(s, text.data + at, n, folded, json);
	} else {
		while (at < text.len && (unsigned char)text.data[at] < 0x80)
			at++;
		if (utf8_decode(text.data + at, text.len - at, &c) > 0) {
			variants[0] = c;
			n = folded ? fold_variants(c, variants) : 1;
			for (i = 0; i < n; i++)
				add_character(s, variants[i], json);
		} else if (!json && !folded && text.len > 0) {
			add_needle(s, text.data, text.len, false);
		}
	}
	buf_release(&text);
	sieve_restart(s);
}

void
sieve_restart(struct sieve *s)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		s->needles[i].next = 0;
}

static bool
is_at(const struct needle *n, const char *at)
{
	size_t i;

	for (i = 0; i < n->len; i++)
		if (((unsigned char)at[i] & n->mask[i]) != n->bytes[i])
			return false;
	return !n->escape || (at[4] >= '2' && at[4] <= '7');
}

typedef unsigned char block __attribute__((vector_size(16)));

static inline block
load(const char *at)
{
	block b;

	memcpy(&b, at, sizeof(b));
	return b;
}

static inline block
splat(unsigned char c)
{
	block b;

	memset(&b, c, sizeof(b));
	return b;
}

static inline bool
is_any(block b)
{
	uint64_t halves[2];

	memcpy(halves, &b, sizeof(b));
	return (halves[0] | halves[1]) != 0;
}

/* Sixteen places at a time: two bytes of the needle are there, and the rest is compared. The C library's memmem takes five times as long. */
static size_t
find_needle(const struct needle *n, const char *data, size_t len, size_t from)
{
	const size_t a = n->first, b = n->second;
	const block mask_a = splat(n->mask[a]), mask_b = splat(n->mask[b]), byte_a = splat(n->bytes[a]), byte_b = splat(n->bytes[b]);
	size_t i;

	for (; from + n->len + sizeof(block) <= len; from += sizeof(block)) {
		if (!is_any((block)(((load(data + from + a) & mask_a) == byte_a) & ((load(data + from + b) & mask_b) == byte_b))))
			continue;
		for (i = 0; i < sizeof(block); i++)
			if (is_at(n, data + from + i))
				return from + i;
	}
	for (; from + n->len <= len; from++)
		if (is_at(n, data + from))
			return from;
	return len;
}

size_t
sieve_next(struct sieve *s, const char *data, size_t len, size_t from)
{
	size_t i, best = s->n == 0 ? from : len;
	struct needle *n;

	for (i = 0; i < s->n; i++) {
		n = &s->needles[i];
		if (n->next < from || (from == 0 && n->next == 0))
			n->next = find_needle(n, data, len, from);
		if (n->next < best)
			best = n->next;
	}
	return best;
}

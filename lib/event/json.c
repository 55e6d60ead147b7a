#include "event/json.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/*
 * Our own reader: json-c's accepts comments, single quotes and raw control characters, rounds large integers without a
 * word, cuts keys at a NUL, and reads numbers by the locale. Without `build` it only checks.
 */
struct reader {
	const char *text, *p, *end;
	unsigned depth;
	bool build, halves;
	bool to_build;		/* refuses what cannot be built */
	bool nul;		/* an escape was one since the last key began */
	const char *why;
	struct buf scratch;	/* the string being read */
};

static int read_value(struct reader *r, struct json_object **out);

static int
fail(struct reader *r, const char *why)
{
	r->why = why;
	return -1;
}

static void
skip_blanks(struct reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\r' || *r->p == '\n'))
		r->p++;
}

static bool
digit(const struct reader *r)
{
	return r->p < r->end && *r->p >= '0' && *r->p <= '9';
}

static int
skip_digits(struct reader *r)
{
	if (!digit(r))
		return fail(r, "a digit must stand here");
	while (digit(r))
		r->p++;
	return 0;
}

static locale_t c_locale;

static void
make_locale(void)
{
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

double
json_number(const char *text)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_locale);
	return strtod_l(text, NULL, c_locale);
}

/* Integers that fit are integers; every other number is a double that remembers its spelling. */
static struct json_object *
number_object(const char *text, size_t len, bool integer)
{
	char *copy = xmemdup0(text, len), *end;
	struct json_object *v;
	long long n;

	errno = 0;
	n = integer ? strtoll(copy, &end, 10) : 0;
	if (integer && errno == 0 && !(n == 0 && copy[0] == '-'))
		v = json_object_new_int64(n);
	else
		v = json_object_new_double_s(json_number(copy), copy);
	free(copy);
	return v;
}

static void
forget_number(struct json_object *v)
{
	const char *spelling = json_object_get_userdata(v);

	if (spelling == NULL)
		return;
	if (strspn(spelling, "-0123456789") < strlen(spelling))
		json_object_set_userdata(v, NULL, NULL);
	else if (strcmp(spelling, "-0") == 0)
		json_object_set_userdata(v, xstrdup("0"), json_object_free_userdata);
}

void
json_forget_spelling(struct json_object *value)
{
	size_t i;

	if (json_object_is_type(value, json_type_double))
		forget_number(value);
	for (i = 0; json_object_is_type(value, json_type_array) && i < json_object_array_length(value); i++)
		json_forget_spelling(json_object_array_get_idx(value, i));
	if (!json_object_is_type(value, json_type_object))
		return;
	json_object_object_foreach(value, key, member) {
		(void)key;
		json_forget_spelling(member);
	}
}

static int
read_number(struct reader *r, struct json_object **out)
{
	const char *start = r->p;
	bool integer = true;

	if (*r->p == '-')
		r->p++;
	if (r->p < r->end && *r->p == '0') {
		r->p++;
		if (digit(r))
			return fail(r, "a number must not begin with 0");
	} else if (skip_digits(r) < 0) {
		return -1;
	}
	if (r->p < r->end && *r->p == '.') {
		integer = false;
		r->p++;
		if (skip_digits(r) < 0)
			return -1;
	}
	if (r->p < r->end && (*r->p == 'e' || *r->p == 'E')) {
		integer = false;
		r->p++;
		if (r->p < r->end && (*r->p == '+' || *r->p == '-'))
			r->p++;
		if (skip_digits(r) < 0)
			return -1;
	}
	if (r->build)
		*out = number_object(start, (size_t)(r->p - start), integer);
	return 0;
}

static bool
take_word(struct reader *r, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
		return false;
	r->p += n;
	return true;
}

/* true, false, null, and Python's three numbers that are none. */
static int
read_word(struct reader *r, struct json_object **out)
{
	struct json_object *v = NULL;

	if (take_word(r, "null"))
		return 0;
	if (take_word(r, "true"))
		v = r->build ? json_object_new_boolean(1) : NULL;
	else if (take_word(r, "false"))
		v = r->build ? json_object_new_boolean(0) : NULL;
	else if (take_word(r, "NaN"))
		v = r->build ? json_object_new_double_s(NAN, "NaN") : NULL;
	else if (take_word(r, "Infinity"))
		v = r->build ? json_object_new_double_s(INFINITY, "Infinity") : NULL;
	else if (take_word(r, "-Infinity"))
		v = r->build ? json_object_new_double_s(-INFINITY, "-Infinity") : NULL;
	else
		return fail(r, r->p == r->end ? "it ends before a value" : "a value must stand here");
	*out = v;
	return 0;
}

/* The four digits of a \u escape at p. -1 when they are not there. */
static int32_t
hex4(const char *p, const char *end)
{
	int32_t v = 0;
	int i;

	if (end - p < 4)
		return -1;
	for (i = 0; i < 4; i++) {
		char c = p[i];
		int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;

		if (d < 0)
			return -1;
		v = v * 16 + d;
	}
	return v;
}

/* r->p is behind `\u`. A high surrogate takes the low one that follows; alone either is U+FFFD. */
static int
read_unicode_escape(struct reader *r)
{
	int32_t c = hex4(r->p, r->end), low;

	if (c < 0)
		return fail(r, "\\u without four hexadecimal digits");
	r->p += 4;
	r->nul = r->nul || c == 0;
	if (c >= 0xd800 && c <= 0xdbff && r->end - r->p >= 6 && r->p[0] == '\\' && r->p[1] == 'u') {
		low = hex4(r->p + 2, r->end);
		if (low >= 0xdc00 && low <= 0xdfff) {
			r->p += 6;
			c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
		}
	}
	if (r->halves && c >= 0xd800 && c <= 0xdfff) {
		buf_addch(&r->scratch, (char)0xed);
		buf_addch(&r->scratch, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_addch(&r->scratch, (char)(0x80 | (c & 0x3f)));
	} else if (r->build) {
		utf8_add(&r->scratch, (uint32_t)c);
	}
	return 0;
}

static int
read_escape(struct reader *r)
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	const char *which;

	r->p++;
	if (r->p == r->end)
		return fail(r, "it ends inside a string");
	if (*r->p == 'u') {
		r->p++;
		return read_unicode_escape(r);
	}
	which = *r->p != '\0' ? strchr(names, *r->p) : NULL;
	if (which == NULL)
		return fail(r, "no such escape");
	if (r->build)
		buf_addch(&r->scratch, values[which - names]);
	r->p++;
	return 0;
}

/* What needs no look in a string, sixteen bytes at a time as far as that goes. */
static void
skip_plain(struct reader *r)
{
#ifdef __SSE2__
	for (; r->end - r->p >= 16; r->p += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)r->p);
		__m128i control = _mm_cmpeq_epi8(_mm_max_epu8(v, _mm_set1_epi8(0x1f)), _mm_set1_epi8(0x1f));
		unsigned m = (unsigned)_mm_movemask_epi8(_mm_or_si128(control, _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')),
		    _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')))));

		if (m != 0) {
			r->p += __builtin_ctz(m);
			return;
		}
	}
#endif
	while (r->p < r->end && *r->p != '"' && *r->p != '\\' && (unsigned char)*r->p >= 0x20)
		r->p++;
}

/* The bytes up to the next quote, backslash or fault. */
static int
read_plain(struct reader *r)
{
	const char *start = r->p;
	size_t n;

	skip_plain(r);
	n = utf8_valid(start, (size_t)(r->p - start));
	if (start + n < r->p) {
		r->p = start + n;
		return fail(r, "not valid UTF-8");
	}
	if (r->build)
		buf_add(&r->scratch, start, n);
	if (r->p == r->end)
		return fail(r, "it ends inside a string");
	if ((unsigned char)*r->p < 0x20)
		return fail(r, *r->p == '\0' ? "a NUL byte" : "a control character in a string");
	return 0;
}

/* r->p is at the opening quote; the string is left in scratch. */
static int
read_string(struct reader *r)
{
	buf_reset(&r->scratch);
	r->p++;
	for (;;) {
		if (read_plain(r) < 0)
			return -1;
		if (*r->p == '"') {
			r->p++;
			return 0;
		}
		if (read_escape(r) < 0)
			return -1;
	}
}

static int
read_array(struct reader *r, struct json_object **out)
{
	struct json_object *item;

	r->p++;
	if (r->build)
		*out = json_object_new_array();
	skip_blanks(r);
	if (r->p < r->end && *r->p == ']') {
		r->p++;
		return 0;
	}
	for (;;) {
		if (read_value(r, &item) < 0)
			return -1;
		if (r->build)
			json_object_array_add(*out, item);
		skip_blanks(r);
		if (r->p == r->end)
			return fail(r, "it ends inside an array");
		if (*r->p != ',' && *r->p != ']')
			return fail(r, "a ',' or ']' must stand here");
		if (*r->p++ == ']')
			return 0;
	}
}

static int
read_member(struct reader *r, struct json_object *obj)
{
	struct json_object *value;
	const char *start;
	char *key = NULL;
	int ret = -1;

	skip_blanks(r);
	if (r->p == r->end)
		return fail(r, "it ends inside an object");
	if (*r->p != '"')
		return fail(r, "a key must stand here");
	start = r->p;
	r->nul = false;
	if (read_string(r) < 0)
		return -1;
	if (r->nul && r->to_build) {
		r->p = start;
		return fail(r, "a NUL inside a key");
	}
	if (r->build)
		key = xmemdup0(r->scratch.data, r->scratch.len);
	skip_blanks(r);
	if (r->p == r->end || *r->p != ':') {
		fail(r, r->p == r->end ? "it ends inside an object" : "a ':' must stand here");
		goto out;
	}
	r->p++;
	if (read_value(r, &value) < 0)
		goto out;
	if (r->build)
		json_object_object_add(obj, key, value);
	ret = 0;
out:
	free(key);
	return ret;
}

static int
read_object(struct reader *r, struct json_object **out)
{
	r->p++;
	if (r->build)
		*out = json_object_new_object();
	skip_blanks(r);
	if (r->p < r->end && *r->p == '}') {
		r->p++;
		return 0;
	}
	for (;;) {
		if (read_member(r, *out) < 0)
			return -1;
		skip_blanks(r);
		if (r->p == r->end)
			return fail(r, "it ends inside an object");
		if (*r->p != ',' && *r->p != '}')
			return fail(r, "a ',' or '}' must stand here");
		if (*r->p++ == '}')
			return 0;
	}
}

static int
read_container(struct reader *r, struct json_object **out)
{
	int ret;

	if (r->depth == JSON_DEPTH)
		return fail(r, "nested too deeply");
	r->depth++;
	ret = *r->p == '{' ? read_object(r, out) : read_array(r, out);
	r->depth--;
	return ret;
}

/* On failure *out holds nothing. */
static int
read_value(struct reader *r, struct json_object **out)
{
	char c;
	int ret;

	*out = NULL;
	skip_blanks(r);
	c = r->p < r->end ? *r->p : '\0';
	if (c == '{' || c == '[') {
		ret = read_container(r, out);
	} else if (c == '"') {
		ret = read_string(r);
		if (ret == 0 && r->build)
			*out = json_object_new_string_len(r->scratch.data, (int)r->scratch.len);
	} else if ((c >= '0' && c <= '9') || (c == '-' && r->end - r->p > 1 && r->p[1] != 'I')) {
		ret = read_number(r, out);
	} else {
		ret = read_word(r, out);
	}
	if (ret < 0) {
		json_object_put(*out);
		*out = NULL;
	}
	return ret;
}

static int
read_text(struct reader *r, struct json_object **out, const char *text, size_t len)
{
	int ret;

	r->text = r->p = text;
	r->end = text + len;
	r->scratch = (struct buf)BUF_INIT;
	if (len > INT_MAX) {		/* json-c counts in int */
		*out = NULL;
		return fail(r, "too long");
	}
	ret = read_value(r, out);
	buf_release(&r->scratch);
	if (ret < 0)
		return -1;
	skip_blanks(r);
	if (r->p == r->end)
		return 0;
	json_object_put(*out);
	*out = NULL;
	return fail(r, "something stands behind the value");
}

int
json_check(const char *text, size_t len, size_t *at, const char **why)
{
	struct reader r = { .build = false };
	struct json_object *none;

	if (read_text(&r, &none, text, len) == 0)
		return 0;
	*at = (size_t)(r.p - text);
	*why = r.why;
	return -1;
}

static int
parse(struct reader *r, struct json_object **out, const char *text, size_t len, struct err *e)
{
	r->to_build = true;
	if (read_text(r, out, text, len) == 0)
		return 0;
	return err_set(e, ERR_DATA, "byte %zu: %s", (size_t)(r->p - text) + 1, r->why);
}

int
json_parses(const char *text, size_t len, struct err *e)
{
	struct reader r = { .build = false };
	struct json_object *none;

	return parse(&r, &none, text, len, e);
}

int
json_parse(struct json_object **out, const char *text, size_t len, struct err *e)
{
	struct reader r = { .build = true };

	return parse(&r, out, text, len, e);
}

int
json_parse_piece(struct json_object **out, const char *text, size_t len, struct err *e)
{
	struct reader r = { .build = true, .halves = true };

	return parse(&r, out, text, len, e);
}

bool
json_take_string(const char **p, const char *end, struct buf *scratch, const char **text, size_t *len)
{
	struct reader r = { .p = *p + 1, .end = end, .build = true, .halves = true };
	size_t n;
	int rc;

	skip_plain(&r);
	n = (size_t)(r.p - *p) - 1;
	if (r.p < end && *r.p == '"' && utf8_valid(*p + 1, n) == n) {
		*text = *p + 1;
		*len = n;
		*p = r.p + 1;
		return true;
	}
	r.p = *p;
	r.scratch = *scratch;
	rc = read_string(&r);
	*scratch = r.scratch;
	*text = scratch->data;
	*len = scratch->len;
	*p = r.p;
	return rc == 0;
}

bool
json_take_number(const char **p, const char *end)
{
	struct reader r = { .p = *p, .end = end };
	int rc = read_number(&r, NULL);

	*p = r.p;
	return rc == 0;
}

void
json_fix_surrogate_escapes(struct buf *out, const char *text, size_t len)
{
	const char *p = text, *end = text + len, *from = text;
	int32_t c, low;

	while ((p = memchr(p, '\\', (size_t)(end - p))) != NULL && end - p >= 2) {
		c = p[1] == 'u' ? hex4(p + 2, end) : -1;
		if (c < 0xd800 || c > 0xdfff) {
			p += 2;
			continue;
		}
		low = c <= 0xdbff && end - p >= 12 && p[6] == '\\' && p[7] == 'u' ? hex4(p + 8, end) : -1;
		if (low >= 0xdc00 && low <= 0xdfff) {
			p += 12;
			continue;
		}
		buf_add(out, from, (size_t)(p - from));
		buf_adds(out, "\\ufffd");
		from = p += 6;
	}
	buf_add(out, from, (size_t)(end - from));
}

struct json_object *
json_get(struct json_object *obj, const char *key)
{
	struct json_object *v;

	if (!json_object_is_type(obj, json_type_object) || !json_object_object_get_ex(obj, key, &v))
		return NULL;
	return v;
}

size_t
json_count(struct json_object *list)
{
	return json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
}

const char *
json_get_text(struct json_object *obj, const char *key, size_t *len)
{
	struct json_object *v = json_get(obj, key);

	if (!json_object_is_type(v, json_type_string))
		return NULL;
	if (len != NULL)
		*len = (size_t)json_object_get_string_len(v);
	return json_object_get_string(v);
}

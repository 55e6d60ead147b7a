/*
 * The structural scan. At the top level it walks key by key; a value that is an object or an array is skipped 64 bytes
 * at a time: bit masks of the quotes, backslashes and brackets in a block, then the brackets outside strings one by one.
 */
#include "base/utf8.h"
#include "event/json.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define BLOCK 64

struct scan {
	const char *p, *end;
	const char *why;
#ifdef __SSE2__
	__m128i high, low;	/* of all bytes skipped: OR, and unsigned minimum */
#endif
	bool odd;		/* bytes were seen that are not ASCII, or are NUL */
};

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int
fail(struct scan *s, const char *why)
{
	s->why = why;
	return -1;
}

static void
skip_blanks(struct scan *s)
{
	while (s->p < s->end && is_blank(*s->p))
		s->p++;
}

struct masks {
	uint64_t quote, backslash, bracket;	/* bit i for byte i; bracket has false positives that are not brackets */
};

#ifdef __SSE2__
static inline void
block_masks(struct scan *s, const char *p, struct masks *m)
{
	const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
	const __m128i relevant = _mm_set1_epi8((char)0xd9), shared = _mm_set1_epi8(0x59);
	__m128i v;
	int i;

	m->quote = m->backslash = m->bracket = 0;
#pragma GCC unroll 4
	for (i = 0; i < 4; i++) {
		v = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
		s->high = _mm_or_si128(s->high, v);
		s->low = _mm_min_epu8(s->low, v);
		m->quote |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, quote)) << (16 * i);
		m->backslash |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, backslash)) << (16 * i);
		/* [ ] { } have these bits in common, and only Y _ y DEL have them too */
		m->bracket |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_and_si128(v, relevant), shared)) << (16 * i);
	}
}

static void
scan_begin(struct scan *s)
{
	s->high = _mm_setzero_si128();
	s->low = _mm_set1_epi8((char)0xff);
}

static bool
scan_odd(const struct scan *s)
{
	return s->odd || _mm_movemask_epi8(s->high) != 0 || _mm_movemask_epi8(_mm_cmpeq_epi8(s->low, _mm_setzero_si128())) != 0;
}
#else
static inline void
block_masks(struct scan *s, const char *p, struct masks *m)
{
	int i;
	unsigned char c;

	m->quote = m->backslash = m->bracket = 0;
	for (i = 0; i < BLOCK; i++) {
		c = (unsigned char)p[i];
		if (c == 0 || c >= 0x80)
			s->odd = true;
		m->quote |= (uint64_t)(c == '"') << i;
		m->backslash |= (uint64_t)(c == '\\') << i;
		m->bracket |= (uint64_t)((c & 0xd9) == 0x59) << i;
	}
}

static void
scan_begin(struct scan *s)
{
	(void)s;
}

static bool
scan_odd(const struct scan *s)
{
	return s->odd;
}
#endif

/*
 * The bytes that a backslash before them takes the meaning from. *carry: the first byte of the block is one of them;
 * on return the same for the next block. Almost every block has none or only short runs, so runs are walked.
 */
static uint64_t
escaped_bytes(uint64_t backslash, bool *carry)
{
	uint64_t escaped = 0;
	int i;

	if (*carry) {
		escaped = 1;
		backslash &= ~UINT64_C(1);
		*carry = false;
	}
	while (backslash != 0) {
		i = __builtin_ctzll(backslash);
		if (i == BLOCK - 1) {
			*carry = true;
			break;
		}
		escaped |= UINT64_C(2) << i;
		backslash &= ~(UINT64_C(3) << i);
	}
	return escaped;
}

/* Bit i: the number of set bits at or below i is odd. */
static inline uint64_t
prefix_xor(uint64_t x)
{
	x ^= x << 1;
	x ^= x << 2;
	x ^= x << 4;
	x ^= x << 8;
	x ^= x << 16;
	x ^= x << 32;
	return x;
}

struct nest {
	unsigned depth;
	uint64_t kinds[JSON_DEPTH / 64];	/* bit d: the bracket at depth d is a brace */
};

/* Takes one bracket. 1 when it closed the first one, 0 to go on, -1 when it does not fit. */
static inline int
take_bracket(struct scan *s, struct nest *n, char c)
{
	unsigned d;

	if (c == '{' || c == '[') {
		if (n->depth + 1 >= JSON_DEPTH)		/* the line's own object is one level */
			return fail(s, "nested too deeply");
		d = n->depth++;
		if (c == '{')
			n->kinds[d / 64] |= UINT64_C(1) << d % 64;
		else
			n->kinds[d / 64] &= ~(UINT64_C(1) << d % 64);
	} else if (c == '}' || c == ']') {
		d = --n->depth;
		if ((n->kinds[d / 64] >> d % 64 & 1) != (c == '}'))
			return fail(s, c == '}' ? "a '}' where a ']' must be" : "a ']' where a '}' must be");
		if (d == 0)
			return 1;
	}
	return 0;
}

/* s->p is at an opening bracket; on success behind the one that closes it. */
static int
skip_nested(struct scan *s)
{
	char tail[BLOCK];
	struct nest n = { .depth = 0 };
	struct masks m;
	uint64_t in_string = 0, strings, brackets;
	bool carry = false;
	size_t left;
	const char *p;
	int i, r;

	for (p = s->p; p < s->end; p += BLOCK) {
		const char *block = p;

		left = (size_t)(s->end - p);
		if (left < BLOCK) {
			memset(tail, ' ', BLOCK);
			memcpy(tail, p, left);
			block = tail;
		}
		block_masks(s, block, &m);
		if (m.backslash != 0 || carry)
			m.quote &= ~escaped_bytes(m.backslash, &carry);
		strings = prefix_xor(m.quote) ^ in_string;
		in_string = 0 - (strings >> 63);
		for (brackets = m.bracket & ~strings; brackets != 0; brackets &= brackets - 1) {
			i = __builtin_ctzll(brackets);
			r = take_bracket(s, &n, block[i]);
			if (r != 0) {
				s->p = p + i + (r > 0);
				return r > 0 ? 0 : -1;
			}
		}
	}
	s->p = s->end;
	return fail(s, in_string ? "it ends inside a string" : "it ends inside an object or array");
}

/* s->p is at an opening quote; on success behind the closing one. *escaped: there was a backslash. */
static int
skip_string(struct scan *s, bool *escaped)
{
	const char *p = s->p + 1;
	bool skip;

	*escaped = false;
#ifdef __SSE2__
	while (s->end - p >= 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
		unsigned m = (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')),
		    _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'))));
		int i = m != 0 ? __builtin_ctz(m) : 16;

		s->high = _mm_or_si128(s->high, v);
		s->low = _mm_min_epu8(s->low, v);
		p += i;
		if (i == 16)
			continue;
		if (*p == '"') {
			s->p = p + 1;
			return 0;
		}
		*escaped = true;
		p += 2;
	}
#endif
	for (skip = false; p < s->end; p++) {
		if ((unsigned char)*p >= 0x80 || *p == '\0')
			s->odd = true;
		if (skip) {
			skip = false;
		} else if (*p == '\\') {
			*escaped = skip = true;
		} else if (*p == '"') {
			s->p = p + 1;
			return 0;
		}
	}
	s->p = s->end;
	return fail(s, "it ends inside a string");
}

/* A number or a name, or what stands in its place: values are not judged here. */
static int
skip_scalar(struct scan *s)
{
	const char *start = s->p;

	for (; s->p < s->end; s->p++) {
		if (is_blank(*s->p) || strchr(",:\"{}[]", *s->p) != NULL)
			break;
		if ((unsigned char)*s->p >= 0x80)
			s->odd = true;
	}
	return s->p > start ? 0 : fail(s, "a value is missing");
}

/* Which of the two keys this is, raw between its quotes: 't', 'd', or 0. */
static char
which_key(const char *key, size_t len, bool escaped)
{
	struct json_object *v = NULL;
	char which = 0;

	if (escaped) {
		if (len < 4 * 6 + 1 && json_parse(&v, key - 1, len + 2, NULL) == 0) {
			const char *plain = json_object_get_string(v);

			which = strcmp(plain, "type") == 0 ? 't' : strcmp(plain, "data") == 0 ? 'd' : 0;
			if (strlen(plain) != (size_t)json_object_get_string_len(v))
				which = 0;
		}
		json_object_put(v);
		return which;
	}
	if (len != 4)
		return 0;
	return memcmp(key, "type", 4) == 0 ? 't' : memcmp(key, "data", 4) == 0 ? 'd' : 0;
}

static int
scan_value(struct scan *s, char key, struct json_peek *peek)
{
	const char *start = s->p;
	bool escaped = false;
	int r;

	if (s->p == s->end)
		return fail(s, "it ends before a value");
	if (*start == '"')
		r = skip_string(s, &escaped);
	else if (*start == '{' || *start == '[')
		r = skip_nested(s);
	else
		r = skip_scalar(s);
	if (r < 0)
		return -1;
	if (key == 't') {
		peek->type = *start == '"' ? start + 1 : NULL;
		peek->type_len = peek->type != NULL ? (size_t)(s->p - start) - 2 : 0;
		peek->type_escaped = escaped;
	} else if (key == 'd') {
		peek->data = *start == '{' ? start : NULL;
		peek->data_len = peek->data != NULL ? (size_t)(s->p - start) : 0;
	}
	return 0;
}

/* One `"key": value`. */
static int
scan_member(struct scan *s, struct json_peek *peek)
{
	const char *key = s->p + 1;
	bool escaped;
	char which;

	if (s->p == s->end)
		return fail(s, "it ends inside an object or array");
	if (*s->p != '"')
		return fail(s, "a key must stand here");
	if (skip_string(s, &escaped) < 0)
		return -1;
	which = which_key(key, (size_t)(s->p - key) - 1, escaped);
	skip_blanks(s);
	if (s->p == s->end)
		return fail(s, "it ends before a value");
	if (*s->p != ':')
		return fail(s, "a ':' must stand here");
	s->p++;
	skip_blanks(s);
	return scan_value(s, which, peek);
}

static int
scan_object(struct scan *s, struct json_peek *peek)
{
	skip_blanks(s);
	if (s->p == s->end || *s->p != '{')
		return fail(s, "not an object");
	s->p++;
	skip_blanks(s);
	if (s->p < s->end && *s->p == '}') {
		s->p++;
	} else {
		for (;;) {
			if (scan_member(s, peek) < 0)
				return -1;
			skip_blanks(s);
			if (s->p == s->end)
				return fail(s, "it ends inside an object or array");
			if (*s->p != ',' && *s->p != '}')
				return fail(s, "a ',' or '}' must stand here");
			if (*s->p++ == '}')
				break;
			skip_blanks(s);
		}
	}
	skip_blanks(s);
	return s->p == s->end ? 0 : fail(s, "something stands behind the object");
}

/* NULs and broken UTF-8 come first when they do. */
static void
find_odd(struct scan *s, const char *line)
{
	size_t len = (size_t)(s->end - line), valid = utf8_valid(line, len);
	const char *nul = memchr(line, '\0', len);

	if (valid < len && line + valid <= s->p) {
		s->p = line + valid;
		s->why = "not valid UTF-8";
	}
	if (nul != NULL && nul <= s->p) {
		s->p = nul;
		s->why = "a NUL byte";
	}
}

int
json_scan(const char *line, size_t len, struct json_peek *peek, size_t *at, const char **why)
{
	struct scan s = { .p = line, .end = line + len };

	memset(peek, 0, sizeof(*peek));
	scan_begin(&s);
	if (scan_object(&s, peek) < 0 || scan_odd(&s))
		find_odd(&s, line);
	if (s.why == NULL)
		return 0;
	*at = (size_t)(s.p - line);
	*why = s.why;
	return -1;
}

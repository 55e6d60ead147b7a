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
 * on return the same for the next block. Of a run of backslashes every second byte is one, and the byte behind it when the
 * run is odd: adding the odd starts to the backslashes carries through each such run and marks its end.
 */
static inline uint64_t
escaped_bytes(uint64_t backslash, bool *carry)
{
	const uint64_t even = UINT64_C(0x5555555555555555);
	uint64_t follows, odd_starts, ends;

	backslash &= ~(uint64_t)*carry;
	follows = backslash << 1 | (uint64_t)*carry;
	odd_starts = backslash & ~even & ~follows;
	*carry = __builtin_add_overflow(odd_starts, backslash, &ends);
	return (even ^ ends << 1) & follows;
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
	char closes[JSON_DEPTH];	/* the bracket that closes each open one */
};

/* Takes one byte that may be a bracket. 1 when it closed the first one, 0 to go on, -1 when it does not fit. */
static inline int
take_bracket(struct scan *s, struct nest *n, char c)
{
	if (c == '{' || c == '[') {
		if (n->depth + 1 >= JSON_DEPTH)		/* the line's own object is one level */
			return fail(s, "nested too deeply");
		n->closes[n->depth++] = (char)(c + 2);
	} else if (c == '}' || c == ']') {
		if (n->closes[--n->depth] != c)
			return fail(s, c == '}' ? "a '}' where a ']' must be" : "a ']' where a '}' must be");
		return n->depth == 0;
	}
	return 0;
}

/* s->p is at an opening bracket; on success behind the one that closes it. */
static int
skip_nested(struct scan *s)
{
	char tail[BLOCK];
	struct nest n;
	struct masks m;
	uint64_t in_string = 0, strings, brackets;
	bool carry = false;
	size_t left;
	const char *p;
	int i, r;

	n.depth = 0;
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
		strings = in_string;
		if (m.quote != 0) {
			strings ^= prefix_xor(m.quote);
			in_string = 0 - (strings >> 63);
		} else if (in_string != 0) {
			continue;
		}
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

/* From p on, which is in a string and behind no backslash, to behind its end. */
static int
skip_rest(struct scan *s, const char *p)
{
	bool skip = false;
	struct masks m;

	for (; s->end - p >= BLOCK; p += BLOCK) {
		block_masks(s, p, &m);
		if (m.backslash != 0 || skip)
			m.quote &= ~escaped_bytes(m.backslash, &skip);
		if (m.quote != 0) {
			s->p = p + __builtin_ctzll(m.quote) + 1;
			return 0;
		}
	}
	for (; p < s->end; p++) {
		if ((unsigned char)*p >= 0x80 || *p == '\0')
			s->odd = true;
		if (!skip && *p == '"') {
			s->p = p + 1;
			return 0;
		}
		skip = !skip && *p == '\\';
	}
	s->p = s->end;
	return fail(s, "it ends inside a string");
}

/* s->p is at an opening quote; on success behind the closing one. *escaped: there was a backslash. Most are short and have none. */
static int
skip_string(struct scan *s, bool *escaped)
{
	const char *p = s->p + 1;

	*escaped = false;
#ifdef __SSE2__
	for (; s->end - p >= 16; p += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
		unsigned m = (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')),
		    _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'))));

		s->high = _mm_or_si128(s->high, v);
		s->low = _mm_min_epu8(s->low, v);
		if (m != 0) {
			p += __builtin_ctz(m);
			break;
		}
	}
#endif
	for (; p < s->end && *p != '"' && *p != '\\'; p++)
		if ((unsigned char)*p >= 0x80 || *p == '\0')
			s->odd = true;
	*escaped = p < s->end && *p == '\\';
	if (*escaped)
		return skip_rest(s, p);
	s->p = p;
	if (p == s->end)
		return fail(s, "it ends inside a string");
	s->p++;
	return 0;
}

static const bool ends_scalar[256] = {
	[' '] = true, ['\t'] = true, ['\r'] = true, ['\n'] = true, ['\0'] = true, [','] = true, [':'] = true, ['"'] = true,
	['{'] = true, ['}'] = true, ['['] = true, [']'] = true,
};

/* A number or a name, or what stands in its place: values are not judged here. */
static int
skip_scalar(struct scan *s)
{
	const char *start = s->p;

	for (; s->p < s->end; s->p++) {
		if (ends_scalar[(unsigned char)*s->p])
			break;
		if ((unsigned char)*s->p >= 0x80)
			s->odd = true;
	}
	return s->p > start ? 0 : fail(s, "a value is missing");
}

/* Any value; *escaped is about a string. */
static inline int
skip_value(struct scan *s, bool *escaped)
{
	*escaped = false;
	if (*s->p == '"')
		return skip_string(s, escaped);
	return *s->p == '{' || *s->p == '[' ? skip_nested(s) : skip_scalar(s);
}

const char *
json_skip(const char *p, const char *end, bool *escaped)
{
	struct scan s = { .p = p, .end = end };
	bool ignored;

	scan_begin(&s);
	return p < end && skip_value(&s, escaped != NULL ? escaped : &ignored) == 0 ? s.p : NULL;
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
	bool escaped;

	if (s->p == s->end)
		return fail(s, "it ends before a value");
	if (skip_value(s, &escaped) < 0)
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

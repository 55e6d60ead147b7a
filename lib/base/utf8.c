#include "base/utf8.h"

#include <string.h>

size_t
utf8_decode(const char *text, size_t len, uint32_t *c)
{
	const unsigned char *p = (const unsigned char *)text;
	uint32_t v, low;
	size_t n, i;

	if (len == 0)
		return 0;
	if (p[0] < 0x80) {
		if (c != NULL)
			*c = p[0];
		return 1;
	}
	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		n = 2, v = p[0] & 0x1fu, low = 0x80;
	} else if ((p[0] & 0xf0) == 0xe0) {
		n = 3, v = p[0] & 0x0fu, low = 0x800;
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		n = 4, v = p[0] & 0x07u, low = 0x10000;
	} else {
		return 0;
	}
	if (n > len)
		return 0;
	for (i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		v = v << 6 | (p[i] & 0x3fu);
	}
	if (v < low || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
		return 0;
	if (c != NULL)
		*c = v;
	return n;
}

/* Two or three bytes that need no further look: those of almost all text that is not ASCII. 0 when it is not so. */
static inline size_t
common_length(const unsigned char *p, size_t len)
{
	if (len >= 3 && p[0] > 0xe0 && p[0] < 0xf0 && p[0] != 0xed && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80)
		return 3;
	if (len >= 2 && p[0] >= 0xc2 && p[0] <= 0xdf && (p[1] & 0xc0) == 0x80)
		return 2;
	return 0;
}

size_t
utf8_valid(const char *text, size_t len)
{
	const uint64_t high = UINT64_C(0x8080808080808080);
	size_t i = 0, n;
	uint64_t word;

	while (i < len) {
		if (len - i >= 8) {
			memcpy(&word, text + i, 8);
			if ((word & high) == 0) {
				i += 8;
				continue;
			}
		}
		while (i < len && (unsigned char)text[i] < 0x80)
			i++;
		while ((n = common_length((const unsigned char *)text + i, len - i)) > 0)
			i += n;
		if (i == len || (unsigned char)text[i] < 0x80)
			continue;
		n = utf8_decode(text + i, len - i, NULL);
		if (n == 0)
			break;
		i += n;
	}
	return i;
}

size_t
utf8_count(const char *text, size_t len)
{
	size_t i = 0, end, count = 0;

	while (i < len) {
		end = i + utf8_valid(text + i, len - i);
		for (; i < end; i++)
			count += (text[i] & 0xc0) != 0x80;
		if (i < len) {		/* a byte that is not valid */
			count++;
			i++;
		}
	}
	return count;
}

void
utf8_add(struct buf *b, uint32_t c)
{
	if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		c = 0xfffd;
	if (c < 0x80) {
		buf_addch(b, (char)c);
	} else if (c < 0x800) {
		buf_addch(b, (char)(0xc0 | c >> 6));
		buf_addch(b, (char)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		buf_addch(b, (char)(0xe0 | c >> 12));
		buf_addch(b, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_addch(b, (char)(0x80 | (c & 0x3f)));
	} else {
		buf_addch(b, (char)(0xf0 | c >> 18));
		buf_addch(b, (char)(0x80 | (c >> 12 & 0x3f)));
		buf_addch(b, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_addch(b, (char)(0x80 | (c & 0x3f)));
	}
}

void
utf8_add_valid(struct buf *b, const char *text, size_t len)
{
	size_t i = 0, n;

	while (i < len) {
		n = utf8_valid(text + i, len - i);
		buf_add(b, text + i, n);
		i += n;
		if (i < len) {
			utf8_add(b, 0xfffd);
			i++;
		}
	}
}

/* The surrogate at text[0..3), 0 when there is none. */
static uint32_t
surrogate_at(const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;

	if (len < 3 || s[0] != 0xed || s[1] < 0xa0 || s[1] > 0xbf || s[2] < 0x80 || s[2] > 0xbf)
		return 0;
	return 0xd000u | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
}

size_t
utf8_decode_half(const char *text, size_t len, uint32_t *c)
{
	uint32_t half = surrogate_at(text, len), low = half != 0 ? surrogate_at(text + 3, len - 3) : 0;

	if (half == 0)
		return 0;
	*c = 0xfffd;
	if (half > 0xdbff || low < 0xdc00)
		return 3;
	*c = 0x10000 + ((half - 0xd800) << 10) + (low - 0xdc00);
	return 6;
}

bool
utf8_ends_in_half(const char *text, size_t len)
{
	uint32_t half = len >= 3 ? surrogate_at(text + len - 3, 3) : 0;

	return half != 0 && half <= 0xdbff;
}

void
utf8_add_joined(struct buf *b, const char *text, size_t len)
{
	size_t i = 0, n;
	uint32_t c;

	while (i < len) {
		n = utf8_valid(text + i, len - i);
		buf_add(b, text + i, n);
		i += n;
		if (i == len)
			break;
		n = utf8_decode_half(text + i, len - i, &c);
		utf8_add(b, n > 0 ? c : 0xfffd);
		i += n > 0 ? n : 1;
	}
}

#include "base/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void
base64_encode(struct buf *out, const void *data, size_t len)
{
	const unsigned char *p = data;
	char four[4];
	unsigned bits;
	size_t n;

	buf_reserve(out, (len + 2) / 3 * 4);
	for (; len > 0; p += n, len -= n) {
		n = len < 3 ? len : 3;
		bits = (unsigned)p[0] << 16 | (n > 1 ? (unsigned)p[1] << 8 : 0) | (n > 2 ? p[2] : 0);
		four[0] = alphabet[bits >> 18];
		four[1] = alphabet[bits >> 12 & 63];
		four[2] = n > 1 ? alphabet[bits >> 6 & 63] : '=';
		four[3] = n > 2 ? alphabet[bits & 63] : '=';
		buf_add(out, four, 4);
	}
}

void
base64_decode(struct buf *out, const char *text, size_t len)
{
	const char *which;
	unsigned bits = 0;
	int have = 0;
	size_t i;

	for (i = 0; i < len && text[i] != '='; i++) {
		which = memchr(alphabet, text[i], 64);
		if (which == NULL)
			continue;
		bits = (bits << 6 | (unsigned)(which - alphabet)) & 0xffffff;
		have += 6;
		if (have >= 8) {
			have -= 8;
			buf_addch(out, (char)(bits >> have & 0xff));
		}
	}
}

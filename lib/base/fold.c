#include "base/fold.h"

#include "base/utf8.h"

static const struct range {
	uint32_t first, last, step;
	int32_t delta;
} ranges[] = {
#include "base/fold_table.h"
};
#define RANGES (sizeof(ranges) / sizeof(*ranges))

uint32_t
fold(uint32_t c)
{
	size_t low = 0, high = RANGES, mid;

	if (c < 0x80)
		return c >= 'A' && c <= 'Z' ? c + 32 : c;
	while (low < high) {
		mid = (low + high) / 2;
		if (c < ranges[mid].first)
			high = mid;
		else if (c > ranges[mid].last)
			low = mid + 1;
		else
			return (c - ranges[mid].first) % ranges[mid].step == 0 ? (uint32_t)((int32_t)c + ranges[mid].delta) : c;
	}
	return c;
}

size_t
fold_variants(uint32_t c, uint32_t out[FOLD_MAX])
{
	uint32_t folded = fold(c), other;
	size_t n = 0, i;

	out[n++] = folded;
	if (folded >= 'a' && folded <= 'z')
		out[n++] = folded - 32;
	for (i = 0; i < RANGES && n < FOLD_MAX; i++) {
		other = (uint32_t)((int32_t)folded - ranges[i].delta);
		if (other >= ranges[i].first && other <= ranges[i].last && (other - ranges[i].first) % ranges[i].step == 0)
			out[n++] = other;
	}
	return n;
}

void
fold_add(struct buf *out, const char *text, size_t len)
{
	size_t i = 0, n;
	uint32_t c, f;

	buf_reserve(out, len);
	while (i < len) {
		n = utf8_decode(text + i, len - i, &c);
		if (n <= 1) {
			buf_addch(out, n == 1 ? (char)fold(c) : text[i]);
			i++;
			continue;
		}
		f = fold(c);
		if (f == c)
			buf_add(out, text + i, n);
		else
			utf8_add(out, f);
		i += n;
	}
}

#include "base/buf.h"

#include "base/alloc.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

char buf_empty[1];

void
buf_release(struct buf *b)
{
	if (b->data != buf_empty)
		free(b->data);
	b->data = buf_empty;
	b->len = b->cap = 0;
	b->over = false;
}

void
buf_reset(struct buf *b)
{
	b->len = 0;
	b->over = false;
	if (b->cap > 0)
		b->data[0] = '\0';
}

char *
buf_detach(struct buf *b, size_t *len)
{
	char *data = b->data == buf_empty ? xmemdup0("", 0) : b->data;

	if (len != NULL)
		*len = b->len;
	b->data = buf_empty;
	b->len = b->cap = 0;
	b->over = false;
	return data;
}

void
buf_reserve(struct buf *b, size_t extra)
{
	size_t need, cap;

	if (extra > SIZE_MAX / 2 - b->len || (b->max != 0 && b->len + extra > b->max)) {
		b->over = true;
		return;
	}
	need = b->len + extra + 1;
	if (need <= b->cap)
		return;
	cap = b->cap < 64 ? 64 : b->cap + b->cap / 2;
	if (b->max != 0 && cap > b->max + 1)
		cap = b->max + 1;
	if (cap < need)
		cap = need;
	b->data = xrealloc(b->data == buf_empty ? NULL : b->data, cap, 1);
	b->cap = cap;
	b->data[b->len] = '\0';
}

void
buf_add(struct buf *b, const void *p, size_t len)
{
	if (len == 0 || b->over)
		return;
	if (b->cap - b->len <= len)
		buf_reserve(b, len);
	if (b->over)
		return;
	memcpy(b->data + b->len, p, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void
buf_addch(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void
buf_vaddf(struct buf *b, const char *fmt, va_list ap)
{
	char small[256], *text;
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	if (n >= 0 && (size_t)n < sizeof(small)) {
		buf_add(b, small, (size_t)n);
	} else if (n >= 0) {
		text = xmalloc((size_t)n + 1);
		vsnprintf(text, (size_t)n + 1, fmt, again);
		buf_add(b, text, (size_t)n);
		free(text);
	}
	va_end(again);
}

void
buf_addhex(struct buf *b, const void *p, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *bytes = p;
	size_t i;

	for (i = 0; i < len; i++) {
		buf_addch(b, digits[bytes[i] >> 4]);
		buf_addch(b, digits[bytes[i] & 15]);
	}
}

void
buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_vaddf(b, fmt, ap);
	va_end(ap);
}

void
buf_drop(struct buf *b, size_t n)
{
	if (n == 0)
		return;
	memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
	b->data[b->len] = '\0';
}

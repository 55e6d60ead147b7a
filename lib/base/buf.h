/*
 * A growing byte buffer. data is always NUL-terminated behind len bytes (which may contain NULs themselves).
 *
 * A buffer that takes foreign input is given a maximum: an addition that would exceed it adds nothing and sets `over`,
 * which stays set until buf_reset, so that a series of additions needs one check at its end.
 */
#ifndef AG2_BUF_H
#define AG2_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct buf {
	char *data;
	size_t len;
	size_t cap;
	size_t max;		/* bytes; 0 means no limit */
	bool over;
};

extern char buf_empty[1];
#define BUF_INIT { .data = buf_empty }
#define BUF_INIT_MAX(n) { .data = buf_empty, .max = (n) }

void buf_release(struct buf *b);		/* frees; the buffer is empty and usable again */
void buf_reset(struct buf *b);			/* empty, keeps the memory */
char *buf_detach(struct buf *b, size_t *len);	/* hands over the bytes (free them); len may be NULL */
void buf_reserve(struct buf *b, size_t extra);	/* room for extra more bytes behind len, or `over` */
void buf_add(struct buf *b, const void *p, size_t len);
void buf_addch(struct buf *b, char c);
void buf_addhex(struct buf *b, const void *p, size_t len);	/* two digits for each byte */
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vaddf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
void buf_drop(struct buf *b, size_t n);		/* takes n bytes off the front */

static inline void
buf_adds(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

#endif

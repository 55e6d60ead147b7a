/*
 * Memory. Running out of it ends the process with status 70 and one line: there is nothing useful to do then, and every
 * buffer that holds foreign input is bounded (see buf.h), so that it does not happen on bad input.
 */
#ifndef AG2_ALLOC_H
#define AG2_ALLOC_H

#include <stddef.h>

void *xmalloc(size_t size);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n, size_t size);
char *xstrdup(const char *s);
char *xmemdup0(const void *p, size_t len);	/* a copy with a NUL behind it */
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Makes room for one more element in an array of n elements with *cap places. */
void *xgrow(void *p, size_t n, size_t *cap, size_t size);

#endif

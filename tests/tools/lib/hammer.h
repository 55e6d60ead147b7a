/* What the tools have in common that work on a store hard: storehammer, storesteps, storesoak and powercut. */
#ifndef AG2_HAMMER_H
#define AG2_HAMMER_H

#include "store/store.h"

#include <stdnoreturn.h>

/* Says on standard error which tool it is and why, calls on_failure unless that is NULL, and ends the process with 1. */
noreturn void give_up(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
extern void (*on_failure)(void);

void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));	/* unbuffered, to standard output */
long number(const char *text);			/* decimal, not negative, or it gives up */

/* A number below `below` (more than 0); *x, which is never 0, is what the next one follows from. */
uint64_t draw(uint64_t *x, uint64_t below);
uint64_t seed_now(void);

struct store *opened(const char *url, enum store_mode mode);	/* or it gives up */
struct store *opened_if_there(const char *url);			/* for reading; NULL when there is no store */

void snapshot(struct store *s, const char *path, struct buf *out);	/* all below path as text */
bool same(const struct buf *a, const struct buf *b);

/* Records: a line of about `size` bytes, whose middle follows from its beginning, so that a torn or mixed one shows. */
#define TAG_MAX 32
void record(struct buf *b, const char *tag, long i, size_t size);
size_t record_at(const char *p, size_t len, char tag[TAG_MAX], long *i);	/* the length of the whole record at p, or 0 */

#endif

/*
 * Patterns as grep has them, over UTF-8 whatever the locale, and a sieve that finds in a lot of raw bytes the places that are worth
 * a closer look.
 */
#ifndef AG2_MATCH_H
#define AG2_MATCH_H

#include "base/buf.h"
#include "base/err.h"

#include <locale.h>
#include <regex.h>
#include <stdbool.h>

enum {
	MATCH_FIXED = 1,	/* the pattern is text, no expression */
	MATCH_EXTENDED = 2,	/* an extended regular expression, else a basic one */
	MATCH_FOLD = 4,		/* without regard to case: Unicode's simple folding of both */
};

struct match {
	unsigned flags;
	struct buf pattern;	/* folded with MATCH_FOLD */
	struct buf folded;	/* the text at hand */
	regex_t re;
	locale_t locale;
	bool compiled;
};

/* ERR_USAGE when the expression is none, is longer than 64 KiB, or has a newline. Release it in both cases. */
int match_init(struct match *m, const char *pattern, unsigned flags, struct err *e);
void match_release(struct match *m);

/*
 * Whether the line (without its newline) matches; [*start, *end) is where, the first time from `from` on. Where folding changes the
 * line's length, the places are not known: *end is then 0.
 */
bool match_line(struct match *m, const char *line, size_t len, size_t from, size_t *start, size_t *end);

/*
 * What bytes must have in them for the pattern to match: a word of it, in every spelling. In JSON (json) letters can be spelled
 * with escapes.
 */
struct needle {
	unsigned char bytes[64], mask[64];	/* a byte b is the i-th when (b & mask[i]) == bytes[i] */
	size_t len, first, second;	/* the two that are looked for */
	bool escape;		/* its last byte is a digit of 2 to 7 */
	size_t next;		/* where it was found last */
};

struct sieve {
	struct needle needles[24];
	size_t n;		/* 0: everything is worth a look */
};
void sieve_init(struct sieve *s, const struct match *m, bool json);
void sieve_restart(struct sieve *s);	/* before other data */

/* The next place at or behind `from` (which never goes back in the same data) worth a look; len when there is none. */
size_t sieve_next(struct sieve *s, const char *data, size_t len, size_t from);

#endif

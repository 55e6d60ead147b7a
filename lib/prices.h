/*
 * What models cost, from a YAML file of the user's (ag2-store(1), `log usage`):
 *
 *	currency: USD
 *	per: 1000000			# tokens that a price is for: 1, 1000 or 1000000 (default)
 *	models:
 *	  gpt-5: {input: 1.25, cached: 0.125, output: 10}
 *	  claude-*: {input: 3, cached: 0.3, cache_write: 3.75, output: 15}
 *
 * Money is counted in whole parts of 10^-MONEY_DIGITS, so that sums are exact.
 */
#ifndef AG2_PRICES_H
#define AG2_PRICES_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

#define PRICE_DIGITS 9			/* decimals that a price may have */
#define MONEY_DIGITS (PRICE_DIGITS + 6)	/* ... and that an amount can have: a price is for 10^6 tokens at most */

__extension__ typedef __int128 money;

struct price {			/* of one token */
	money input, cached, cache_write, output;
};

struct prices;
/* ERR_CONFIG "FILE:LINE: what" for what is wrong with it, else as io_read_file. prices_free frees; NULL is allowed. */
int prices_read(struct prices **out, const char *file, struct err *e);
void prices_free(struct prices *p);

const char *prices_currency(const struct prices *p);	/* "" when the file names none */
/* That of the model's name, else of the longest that ends in * and fits; NULL when there is none. Borrowed. */
const struct price *prices_find(const struct prices *p, const char *model);

/* A decimal number; `digits` decimals, rounded half up, or below 0: as many as it takes. */
void money_add(struct buf *out, money amount, int digits);

#endif

/* Letters without their case, whatever the locale: Unicode's simple folding, one code point for one. */
#ifndef AG2_FOLD_H
#define AG2_FOLD_H

#include "base/buf.h"

#include <stdint.h>

uint32_t fold(uint32_t c);

/* The code points that fold to what c folds to, that one included; their number (at most FOLD_MAX). */
#define FOLD_MAX 4
size_t fold_variants(uint32_t c, uint32_t out[FOLD_MAX]);

/* Appends text folded; bytes that are no UTF-8 stay. */
void fold_add(struct buf *out, const char *text, size_t len);

#endif

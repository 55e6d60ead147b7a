/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef AG2_UTF8_H
#define AG2_UTF8_H

#include "base/buf.h"

#include <stdint.h>

/* The length of the first character of text, which goes to *c (may be NULL); 0 when it is not valid or len is 0. */
size_t utf8_decode(const char *text, size_t len, uint32_t *c);

/* How many leading bytes are valid UTF-8; equal to len when all are. Fast over ASCII. */
size_t utf8_valid(const char *text, size_t len);

/* Code points in text; each byte that is not valid UTF-8 counts as one. */
size_t utf8_count(const char *text, size_t len);

/* Appends the encoding of c. A surrogate or a value above U+10FFFF is appended as U+FFFD. */
void utf8_add(struct buf *b, uint32_t c);

/* Appends text with every invalid byte replaced by U+FFFD. */
void utf8_add_valid(struct buf *b, const char *text, size_t len);

/*
 * A half of a surrogate pair that was encoded like a character, which UTF-8 has not: 3 bytes, or 6 for two halves that
 * make a pair. *c is the pair's character, U+FFFD for a half alone. 0: it is neither.
 */
size_t utf8_decode_half(const char *text, size_t len, uint32_t *c);
/* Whether text ends in the first half of a pair. */
bool utf8_ends_in_half(const char *text, size_t len);
/* utf8_add_valid, but for halves: those that are a pair are its character, each other one is one U+FFFD. */
void utf8_add_joined(struct buf *b, const char *text, size_t len);

#endif

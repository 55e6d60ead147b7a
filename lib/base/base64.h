/* Base64 as RFC 4648 has it, section 4: with padding, without line ends. */
#ifndef AG2_BASE64_H
#define AG2_BASE64_H

#include "base/buf.h"

void base64_encode(struct buf *out, const void *data, size_t len);

/* Appends the bytes up to the padding. What is not of the alphabet is passed over, as Python does. */
void base64_decode(struct buf *out, const char *text, size_t len);

#endif

/*
 * SHA-1 (FIPS 180-4), to tell whether bytes are still those that were read: Redis scripts can compute it too. It guards
 * against change, not against an adversary.
 */
#ifndef AG2_SHA1_H
#define AG2_SHA1_H

#include <stddef.h>
#include <stdint.h>

struct sha1 {
	uint32_t state[5];
	uint64_t bytes;
	unsigned char block[64];
};

void sha1_init(struct sha1 *h);
void sha1_add(struct sha1 *h, const void *data, size_t len);
void sha1_end(struct sha1 *h, unsigned char out[20]);
void sha1_of(const void *data, size_t len, unsigned char out[20]);	/* of one piece */

#endif

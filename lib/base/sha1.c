#include "base/sha1.h"

#include <string.h>

static uint32_t
rol(uint32_t x, int n)
{
	return x << n | x >> (32 - n);
}

static void
sha1_block(struct sha1 *h, const unsigned char *p)
{
	uint32_t w[80], a = h->state[0], b = h->state[1], c = h->state[2], d = h->state[3], e = h->state[4], f, k, t;
	int i;

	for (i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (; i < 80; i++)
		w[i] = rol(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (i = 0; i < 80; i++) {
		if (i < 20)
			f = (b & c) | (~b & d), k = 0x5a827999;
		else if (i < 40)
			f = b ^ c ^ d, k = 0x6ed9eba1;
		else if (i < 60)
			f = (b & c) | (b & d) | (c & d), k = 0x8f1bbcdc;
		else
			f = b ^ c ^ d, k = 0xca62c1d6;
		t = rol(a, 5) + f + e + k + w[i];
		e = d, d = c, c = rol(b, 30), b = a, a = t;
	}
	h->state[0] += a, h->state[1] += b, h->state[2] += c, h->state[3] += d, h->state[4] += e;
}

void
sha1_init(struct sha1 *h)
{
	*h = (struct sha1){ .state = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 } };
}

void
sha1_add(struct sha1 *h, const void *data, size_t len)
{
	const unsigned char *p = data;
	size_t have = h->bytes % 64, n;

	h->bytes += len;
	if (have > 0) {
		n = len < 64 - have ? len : 64 - have;
		memcpy(h->block + have, p, n);
		p += n, len -= n;
		if (have + n < 64)
			return;
		sha1_block(h, h->block);
	}
	for (; len >= 64; p += 64, len -= 64)
		sha1_block(h, p);
	if (len > 0)
		memcpy(h->block, p, len);
}

void
sha1_end(struct sha1 *h, unsigned char out[20])
{
	uint64_t bits = h->bytes * 8;
	unsigned char tail[8];
	int i;

	sha1_add(h, "\x80", 1);
	while (h->bytes % 64 != 56)
		sha1_add(h, "", 1);
	for (i = 0; i < 8; i++)
		tail[i] = (unsigned char)(bits >> (56 - 8 * i));
	sha1_add(h, tail, 8);
	for (i = 0; i < 20; i++)
		out[i] = (unsigned char)(h->state[i / 4] >> (24 - 8 * (i % 4)));
}

void
sha1_of(const void *data, size_t len, unsigned char out[20])
{
	struct sha1 h;

	sha1_init(&h);
	sha1_add(&h, data, len);
	sha1_end(&h, out);
}

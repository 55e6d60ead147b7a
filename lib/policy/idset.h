/*
 * Call ids as numbers: the first id that is added is 0, the next new one 1, and so on. A hash table over copies of the
 * bytes; adding and finding cost the same whatever its size.
 */
#ifndef AG2_IDSET_H
#define AG2_IDSET_H

#include "base/buf.h"

#include <stdint.h>

struct idset_id {
	uint64_t hash;
	size_t at, len;		/* in bytes */
};
struct idset {
	struct buf bytes;
	struct idset_id *ids;
	size_t n, cap;
	uint32_t *slots;	/* number + 1, 0 is free; size is a power of two, or 0 */
	size_t size;
};
#define IDSET_INIT { .bytes = BUF_INIT }

/* The id's number; *fresh, may be NULL, tells whether it is new. */
size_t idset_add(struct idset *s, const char *id, size_t len, bool *fresh);
/* The id's number, SIZE_MAX when it is not there. */
size_t idset_find(const struct idset *s, const char *id, size_t len);
const char *idset_text(const struct idset *s, size_t i, size_t *len);	/* not NUL-terminated; valid until the next addition */
void idset_reset(struct idset *s);	/* empty, keeps the memory */
void idset_release(struct idset *s);

#endif

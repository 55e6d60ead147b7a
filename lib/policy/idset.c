#include "policy/idset.h"

#include "base/alloc.h"

#include <stdlib.h>

/* FNV-1a with a final mix. Ids chosen to collide make this slow, not wrong. */
static uint64_t
hash_of(const char *id, size_t len)
{
	uint64_t h = 0xcbf29ce484222325;
	size_t i;

	for (i = 0; i < len; i++)
		h = (h ^ (unsigned char)id[i]) * 0x100000001b3;
	h ^= h >> 32;
	return h * 0x9e3779b97f4a7c15;
}

/* The slot that holds the id, or the free one where it belongs. */
static size_t
slot_of(const struct idset *s, uint64_t hash, const char *id, size_t len)
{
	size_t mask = s->size - 1, i = (size_t)(hash >> 20) & mask;
	const struct idset_id *at;

	for (;; i = (i + 1) & mask) {
		if (s->slots[i] == 0)
			return i;
		at = &s->ids[s->slots[i] - 1];
		if (at->hash == hash && at->len == len && memcmp(s->bytes.data + at->at, id, len) == 0)
			return i;
	}
}

static void
grow(struct idset *s)
{
	size_t i, at;

	s->size = s->size == 0 ? 16 : s->size * 2;
	free(s->slots);
	s->slots = xcalloc(s->size, sizeof(s->slots[0]));
	for (i = 0; i < s->n; i++) {
		at = (size_t)(s->ids[i].hash >> 20) & (s->size - 1);
		while (s->slots[at] != 0)
			at = (at + 1) & (s->size - 1);
		s->slots[at] = (uint32_t)i + 1;
	}
}

size_t
idset_add(struct idset *s, const char *id, size_t len, bool *fresh)
{
	uint64_t hash = hash_of(id, len);
	size_t at;

	if (s->size < 2 * (s->n + 1))
		grow(s);
	at = slot_of(s, hash, id, len);
	if (fresh != NULL)
		*fresh = s->slots[at] == 0;
	if (s->slots[at] == 0) {
		s->ids = xgrow(s->ids, s->n, &s->cap, sizeof(s->ids[0]));
		s->ids[s->n] = (struct idset_id){ .hash = hash, .at = s->bytes.len, .len = len };
		buf_add(&s->bytes, id, len);
		s->slots[at] = (uint32_t)++s->n;
	}
	return s->slots[at] - 1;
}

size_t
idset_find(const struct idset *s, const char *id, size_t len)
{
	size_t at;

	if (s->n == 0)
		return SIZE_MAX;
	at = slot_of(s, hash_of(id, len), id, len);
	return s->slots[at] == 0 ? SIZE_MAX : s->slots[at] - 1;
}

const char *
idset_text(const struct idset *s, size_t i, size_t *len)
{
	*len = s->ids[i].len;
	return s->bytes.data + s->ids[i].at;
}

void
idset_reset(struct idset *s)
{
	if (s->n > 0)
		memset(s->slots, 0, s->size * sizeof(s->slots[0]));
	s->n = 0;
	buf_reset(&s->bytes);
}

void
idset_release(struct idset *s)
{
	buf_release(&s->bytes);
	free(s->ids);
	free(s->slots);
	*s = (struct idset)IDSET_INIT;
}

#include "aggregate/seen.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <stdlib.h>

#define FILE_MAX (64u << 20)

void
seen_path(struct buf *out, const char *key)
{
	buf_reset(out);
	buf_addf(out, "/.ag2/seen/%s", key);
}

void
seen_read(struct seen *k, struct store *s, const char *key)
{
	struct buf path = BUF_INIT;
	struct store_stat st;

	seen_path(&path, key);
	*k = (struct seen){ .text = BUF_INIT_MAX(FILE_MAX), .now = BUF_INIT };
	k->path = buf_detach(&path, NULL);
	if (store_read(s, k->path, &k->text, &st, NULL) == 0)
		k->version = st.version;
	else
		buf_reset(&k->text);
}

/* The order of the line at `at` against a stream. */
static int
compare(const struct seen *k, const char *stream, size_t len)
{
	const char *line = k->text.data + k->at;
	size_t own = strcspn(line, " \n");
	int order = memcmp(line, stream, own < len ? own : len);

	return order != 0 ? order : own < len ? -1 : own > len;
}

/* The numbers behind the id of the line at `at`. */
static void
parse(const struct seen *k, size_t len, uint64_t *version, struct news *n)
{
	uint64_t *const numbers[] = { version, &n->total, &n->turns, &n->counted };
	char *p = k->text.data + k->at + len;
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		*numbers[i] = *p == ' ' ? strtoull(p, &p, 10) : 0;
}

bool
seen_has(struct seen *k, const char *stream, uint64_t version, struct news *n)
{
	size_t len = strlen(stream);
	const char *newline;
	uint64_t known;
	int order = 1;

	while (k->at < k->text.len && (order = compare(k, stream, len)) < 0) {
		newline = memchr(k->text.data + k->at, '\n', k->text.len - k->at);
		k->at = newline ? (size_t)(newline - k->text.data) + 1 : k->text.len;
	}
	if (k->at >= k->text.len || order != 0)
		return false;
	parse(k, len, &known, n);
	return known == version;
}

void
seen_note(struct seen *k, const char *stream, uint64_t version, const struct news *n, bool fresh)
{
	buf_addf(&k->now, "%s %" PRIu64, stream, version);
	if (n->total > 0)
		buf_addf(&k->now, " %" PRIu64 " %" PRIu64 " %" PRIu64, n->total, n->turns, n->counted);
	buf_addch(&k->now, '\n');
	k->changed |= fresh;
}

void
seen_write(struct seen *k, struct store *s)
{
	struct store_op ops[2] = { { .kind = STORE_OP_EXPECT, .path = k->path, .version = k->version },
		{ .kind = STORE_OP_WRITE, .path = k->path, .data = k->now.data, .len = k->now.len } };

	if (k->changed && k->now.len < FILE_MAX)
		store_commit(s, ops, 2, NULL);
}

void
seen_release(struct seen *k)
{
	free(k->path);
	buf_release(&k->text);
	buf_release(&k->now);
}

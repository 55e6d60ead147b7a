#include "history.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define DIR "/.ag2/history"

const char *
episode_stream(const char *path, size_t *len)
{
	static const char pattern[] = "00000000T000000_";
	size_t dir = strlen(EPISODES_DIR "/"), i, all = strlen(path);

	if (strncmp(path, EPISODES_DIR "/", dir) != 0 || strchr(path + dir, '/') != NULL)
		return NULL;
	for (i = 0; pattern[i] != '\0'; i++)
		if (pattern[i] == '0' ? path[dir + i] < '0' || path[dir + i] > '9' : path[dir + i] != pattern[i])
			return NULL;
	if (all <= dir + i + 3 || strcmp(path + all - 3, ".md") != 0)
		return NULL;
	*len = all - 3 - dir - i;
	return path + dir + i;
}

static void
history_dir(struct buf *out, const char *path)
{
	size_t len;
	const char *stream = episode_stream(path, &len);

	buf_reset(out);
	if (stream != NULL)
		buf_addf(out, DIR EPISODES_DIR "/%.*s.md", (int)len, stream);
	else
		buf_addf(out, DIR "%s%s", path[0] == '/' ? "" : "/", path);
}

struct listing {
	struct history *h;
	const char *dir;
};

static int
add_entry(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	struct listing *l = arg;
	struct history *h = l->h;
	struct history_entry entry = { .size = st->size };

	if (dir || sscanf(name, "%" SCNu64 ".%lf", &entry.number, &entry.time) != 2)
		return 0;
	entry.path = xasprintf("%s/%s", l->dir, name);
	h->entries = xgrow(h->entries, h->n, &h->cap, sizeof(*h->entries));
	h->entries[h->n++] = entry;
	return 0;
}

static int
newest_first(const void *a, const void *b)
{
	const struct history_entry *x = a, *y = b;

	return x->number == y->number ? 0 : x->number > y->number ? -1 : 1;
}

int
history_read(struct store *s, const char *path, struct history *h, struct err *e)
{
	struct buf dir = BUF_INIT;
	struct listing l = { .h = h };
	int rc;

	*h = (struct history){ NULL };
	history_dir(&dir, path);
	l.dir = dir.data;
	rc = store_list(s, dir.data, STORE_LIST_ALL | STORE_LIST_STAT, add_entry, &l, e);
	if (h->n > 0)
		qsort(h->entries, h->n, sizeof(*h->entries), newest_first);
	buf_release(&dir);
	if (rc < 0)
		history_release(h);
	return rc < 0 ? -1 : 0;
}

size_t
history_ops(struct history *h, const char *path, const void *data, size_t len, struct store_op *ops)
{
	struct buf dir = BUF_INIT;
	struct history_entry entry = { .number = (h->n > 0 ? h->entries[0].number : 0) + 1, .time = clock_now(), .size = len };
	size_t n = 0, i;

	history_dir(&dir, path);
	/* A dot, not a comma, whatever the locale: commands do not set one. */
	entry.path = xasprintf("%s/%08" PRIu64 ".%.0f", dir.data, entry.number, entry.time);
	ops[n++] = (struct store_op){ .kind = STORE_OP_WRITE, .path = entry.path, .data = data, .len = len };
	for (i = HISTORY_KEPT - 1; i < h->n && n < HISTORY_OPS; i++)
		ops[n++] = (struct store_op){ .kind = STORE_OP_DELETE, .path = h->entries[i].path };
	h->entries = xgrow(h->entries, h->n, &h->cap, sizeof(*h->entries));
	memmove(h->entries + 1, h->entries, h->n * sizeof(*h->entries));
	h->entries[0] = entry;
	h->n++;
	buf_release(&dir);
	return n;
}

void
history_release(struct history *h)
{
	size_t i;

	for (i = 0; i < h->n; i++)
		free(h->entries[i].path);
	free(h->entries);
	*h = (struct history){ NULL };
}

/*
 * Looking into a store on a Redis server. A file that is open for reading is one version of it: small ones are fetched when they
 * are opened; of large ones parts are, as long as they were only appended to, and a value that is replaced stays under
 * another name for the time that readers need.
 */
#include "store/redis.h"

#include "base/alloc.h"

#include <stdlib.h>

#define WINDOW		(256 * 1024)	/* fetched at a time of a larger file, at least */
#define PART		(16 << 20)	/* and at most */
#define NAMES_AT_ONCE	20000

struct redis_file {
	struct redis_store *s;
	char *path;
	uint64_t base, size;
	char *data;			/* bytes of it: from `start`, `len` many */
	uint64_t start, len;
};

static double
time_at(const redisReply *r, size_t i)
{
	const char *text = redis_text_at(r, i);
	double t = text != NULL ? strtod(text, NULL) : -1;

	return t >= 0 ? t : -1;
}

/* 1 with the answer in *r when it is there (to be freed), 0, -1. */
static int
look(struct redis_store *s, const char *path, size_t content, redisReply **r, struct err *e)
{
	struct redis_words w = { 0 };
	const char *what;

	redis_adds(&w, s->prefix);
	redis_adds(&w, path);
	redis_adds(&w, s->o.mode == STORE_READ ? "r" : "w");
	redis_addf(&w, "%zu", content);
	if ((*r = redis_ask(s, REDIS_STAT, &w, e)) == NULL)
		return -1;
	if ((what = redis_text_at(*r, 0)) == NULL || (what[0] == 'f' && redis_text_at(*r, 5) == NULL))
		return redis_nonsense(s, *r, e);
	if (what[0] != '\0')
		return 1;
	freeReplyObject(*r);
	return 0;
}

static void
describe(const redisReply *r, struct store_stat *st)
{
	*st = (struct store_stat){ .mtime = -1, .dir = true };
	if (redis_text_at(r, 0)[0] == 'f')
		*st = (struct store_stat){ .size = redis_number_at(r, 1), .version = redis_number_at(r, 2), .mtime = time_at(r, 4) };
}

int
redis_stat(void *self, const char *path, struct store_stat *st, struct err *e)
{
	redisReply *r;
	int rc = look(self, path, 0, &r, e);

	if (rc <= 0)
		return rc;
	describe(r, st);
	freeReplyObject(r);
	return 1;
}

int
redis_file_open(void *self, const char *path, void **file, struct store_stat *st, struct err *e)
{
	struct redis_store *s = self;
	struct redis_file *f;
	redisReply *r;
	int rc = look(s, path, REDIS_SMALL, &r, e);

	if (rc <= 0)
		return rc < 0 ? -1 : err_set(e, ERR_ABSENT, "'%s' is not in the store", path);
	describe(r, st);
	if (st->dir) {
		freeReplyObject(r);
		return err_set(e, ERR_ABSENT, "'%s' is a directory", path);
	}
	if (st->size <= REDIS_SMALL && r->element[5]->len != st->size)
		return redis_nonsense(s, r, e);
	f = xcalloc(1, sizeof(*f));
	f->s = s;
	f->path = xstrdup(path);
	f->base = redis_number_at(r, 3);
	f->size = st->size;
	f->len = r->element[5]->len;
	f->data = xmemdup0(r->element[5]->str, (size_t)f->len);
	freeReplyObject(r);
	*file = f;
	return 0;
}

/* Fetches from offset what is wanted, or a little more. */
static int
fetch(struct redis_file *f, uint64_t offset, size_t len, struct err *e)
{
	struct redis_store *s = f->s;
	struct redis_words w = { 0 };
	uint64_t n = len < WINDOW ? WINDOW : len > PART ? PART : len;
	redisReply *r;

	if (n > f->size - offset)
		n = f->size - offset;
	redis_adds(&w, s->prefix);
	redis_adds(&w, f->path);
	redis_addf(&w, "%llu", (unsigned long long)f->base);
	redis_addf(&w, "%llu", (unsigned long long)f->size);
	redis_addf(&w, "%llu", (unsigned long long)offset);
	redis_addf(&w, "%llu", (unsigned long long)n);
	redis_addf(&w, "%d", REDIS_KEEP_MS);
	if ((r = redis_ask(s, REDIS_RANGE, &w, e)) == NULL)
		return -1;
	if (r->type == REDIS_REPLY_NIL) {
		freeReplyObject(r);
		return err_set(e, ERR_BUSY, "'%s' was changed while it was read", f->path);
	}
	if (r->type != REDIS_REPLY_STRING || r->len != n)
		return redis_nonsense(s, r, e);
	free(f->data);
	f->data = xmemdup0(r->str, r->len);
	f->start = offset;
	f->len = r->len;
	freeReplyObject(r);
	return 0;
}

ssize_t
redis_file_read(void *file, uint64_t offset, void *data, size_t len, struct err *e)
{
	struct redis_file *f = file;
	uint64_t n;

	if (offset >= f->size || len == 0)
		return 0;
	if ((offset < f->start || offset >= f->start + f->len) && fetch(f, offset, len, e) < 0)
		return -1;
	n = f->start + f->len - offset;
	if (n > len)
		n = len;
	memcpy(data, f->data + (offset - f->start), (size_t)n);
	return (ssize_t)n;
}

void
redis_file_close(void *file)
{
	struct redis_file *f = file;

	free(f->path);
	free(f->data);
	free(f);
}

/* ---- Listing ---- */

struct child {
	char *name;
	struct store_stat st;
};

struct children {
	struct child *c;
	size_t n, cap;
};

static int
child_order(const void *a, const void *b)
{
	const struct child *x = a, *y = b;

	return store_name_compare(x->name, x->st.dir, y->name, y->st.dir);
}

/* Names that no call can say (AG2 can make an empty one, and one with a NUL) are left out. */
static int
add_children(struct children *all, const redisReply *r, bool details)
{
	size_t i, step = details ? 4 : 1;

	for (i = 1; i + step <= r->elements; i += step) {
		const char *name = redis_text_at(r, i);
		size_t len;
		struct child c = { .st = { .mtime = -1 } };

		if (name == NULL)
			return -1;
		len = r->element[i]->len;
		if (len == 0 || strlen(name) != len)
			continue;
		c.st.dir = name[len - 1] == '/';
		if (c.st.dir && --len == 0)
			continue;
		if (details && !c.st.dir)
			c.st = (struct store_stat){ .size = redis_number_at(r, i + 1), .version = redis_number_at(r, i + 2), .mtime = time_at(r, i + 3) };
		c.name = xmemdup0(name, len);
		all->c = xgrow(all->c, all->n, &all->cap, sizeof(c));
		all->c[all->n++] = c;
	}
	return 0;
}

static int
fetch_children(struct redis_store *s, const char *path, bool details, struct children *all, struct err *e)
{
	struct redis_words w;
	redisReply *r;
	char *from = xstrdup("");

	do {
		w = (struct redis_words){ 0 };
		redis_adds(&w, s->prefix);
		redis_adds(&w, path);
		redis_adds(&w, from);
		redis_adds(&w, details ? "y" : "n");
		redis_adds(&w, s->o.mode == STORE_READ ? "r" : "w");
		redis_addf(&w, "%d", NAMES_AT_ONCE);
		r = redis_ask(s, REDIS_LIST, &w, e);
		free(from);
		if (r == NULL)
			return -1;
		if (redis_text_at(r, 0) == NULL || add_children(all, r, details) < 0)
			return redis_nonsense(s, r, e);
		from = xmemdup0(r->element[0]->str, r->element[0]->len);
		freeReplyObject(r);
	} while (from[0] != '\0');
	free(from);
	return 0;
}

int
redis_list(void *self, const char *path, unsigned flags, store_list_fn *fn, void *arg, struct err *e)
{
	struct children all = { 0 };
	bool details = (flags & STORE_LIST_STAT) != 0;
	size_t i;
	int rc = fetch_children(self, path, details, &all, e);

	if (rc == 0 && all.n > 1)
		qsort(all.c, all.n, sizeof(*all.c), child_order);
	/* One of which the parts were gathered in different ways can have a child twice. */
	for (i = 0; rc == 0 && i < all.n; i++)
		if (i == 0 || child_order(&all.c[i - 1], &all.c[i]) != 0)
			rc = fn(arg, all.c[i].name, all.c[i].st.dir, details ? &all.c[i].st : NULL);
	for (i = 0; i < all.n; i++)
		free(all.c[i].name);
	free(all.c);
	return rc;
}

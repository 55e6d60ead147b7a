#include "store/handle.h"

#include "base/alloc.h"
#include "path.h"
#include "store/locate.h"

#include <stdlib.h>

#define TIMEOUT_MS 10000

struct store_lock {
	struct store *store;
	void *lock;
	struct store_lock *prev, *next;
};

int
store_open(struct store **out, const char *url, const struct store_options *options, struct err *e)
{
	struct store_options o = *options;
	struct location l;
	struct store *s;
	void *self = NULL;
	int rc = -1;

	if (o.timeout_ms == 0)
		o.timeout_ms = TIMEOUT_MS;
	if (location_init(&l, url, &o, e) < 0)
		goto out;
	if (l.be->open(&self, l.where, l.own.len > 0 ? l.own.data : "", &o, e) < 0)
		goto out;
	s = xcalloc(1, sizeof(*s));
	s->be = l.be;
	s->self = self;
	s->mode = o.mode;
	s->lock = o.lock;
	s->timeout_ms = o.timeout_ms;
	s->url = location_url(&l);
	*out = s;
	rc = 0;
out:
	location_release(&l);
	return rc;
}

void
store_close(struct store *s)
{
	if (s == NULL)
		return;
	while (s->locks != NULL)
		store_unlock(s->locks);
	s->be->close(s->self);
	free(s->url);
	free(s);
}

const char *
store_url(const struct store *s)
{
	return s->url;
}

int
store_may_change(const struct store *s, struct err *e)
{
	if (s->mode == STORE_READ)
		return err_set(e, ERR_PERM, "%s: opened for reading only", s->url);
	return 0;
}

int
store_stat(struct store *s, const char *path, struct store_stat *st, struct err *e)
{
	struct store_stat unused;
	struct buf p = BUF_INIT;
	int rc = path_normalise(&p, path, strlen(path), e);

	if (rc == 0)
		rc = s->be->stat(s->self, p.data, st ? st : &unused, e);
	buf_release(&p);
	return rc;
}

/* ---- Reading ---- */

static int
open_file(struct store *s, const char *path, struct store_file *f, struct store_stat *st, struct err *e)
{
	struct buf p = BUF_INIT;
	int rc = path_normalise(&p, path, strlen(path), e);

	f->be = s->be;
	if (rc == 0)
		rc = s->be->file_open(s->self, p.data, &f->file, st, e);
	buf_release(&p);
	return rc;
}

int
store_file_open(struct store *s, const char *path, struct store_file **out, struct store_stat *st, struct err *e)
{
	struct store_stat unused;
	struct store_file f;

	if (open_file(s, path, &f, st ? st : &unused, e) < 0)
		return -1;
	*out = xmalloc(sizeof(**out));
	**out = f;
	return 0;
}

void
store_file_close(struct store_file *f)
{
	if (f == NULL)
		return;
	f->be->file_close(f->file);
	free(f);
}

ssize_t
store_file_read(struct store_file *f, uint64_t offset, void *data, size_t len, struct err *e)
{
	size_t done = 0;
	ssize_t n = 1;

	while (n > 0 && done < len) {
		n = f->be->file_read(f->file, offset + done, (char *)data + done, len - done, e);
		done += n > 0 ? (size_t)n : 0;
	}
	return n < 0 ? -1 : (ssize_t)done;
}

int
store_file_add(struct store_file *f, uint64_t from, uint64_t to, struct buf *out, struct err *e)
{
	ssize_t n;

	if (to - from > SIZE_MAX / 2 || (out->max != 0 && to - from > out->max - out->len))
		return err_set(e, ERR_DATA, "%llu bytes are more than the %zu that are read at most", (unsigned long long)(to - from), out->max);
	buf_reserve(out, (size_t)(to - from));
	n = store_file_read(f, from, out->data + out->len, (size_t)(to - from), e);
	out->len += n > 0 ? (size_t)n : 0;
	out->data[out->len] = '\0';
	return n < 0 ? -1 : 0;
}

int
store_read(struct store *s, const char *path, struct buf *out, struct store_stat *st, struct err *e)
{
	struct store_stat found;
	struct store_file f;
	size_t before = out->len;
	int rc;

	if (open_file(s, path, &f, &found, e) < 0)
		return -1;
	rc = store_file_add(&f, 0, found.size, out, e);
	f.be->file_close(f.file);
	if (rc < 0) {
		out->len = before;
		if (out->data != NULL)
			out->data[before] = '\0';
		return err_wrap(e, "'%s'", path);
	}
	if (st != NULL) {
		*st = found;
		st->size = out->len - before;
	}
	return 0;
}

/* The byte that a bound of a range stands for in a file of size bytes. */
static uint64_t
clamp(int64_t bound, uint64_t size)
{
	uint64_t back;

	if (bound >= 0)
		return (uint64_t)bound < size ? (uint64_t)bound : size;
	back = -(uint64_t)bound;
	return back < size ? size - back : 0;
}

int
store_read_range(struct store *s, const char *path, int64_t start, int64_t end, struct buf *out, struct err *e)
{
	struct store_stat st;
	struct err why = ERR_INIT;
	struct store_file f;
	uint64_t from, to;
	int rc = 0;

	if (open_file(s, path, &f, &st, &why) < 0)
		return why.code == ERR_ABSENT ? 0 : err_set(e, why.code, "%s", why.msg);
	from = clamp(start, st.size);
	to = end < 0 ? 0 : clamp(end, st.size);
	if (from < to && (rc = store_file_add(&f, from, to, out, e)) < 0)
		err_wrap(e, "'%s'", path);
	f.be->file_close(f.file);
	return rc;
}

int
store_hold(struct store *s, struct err *e)
{
	return s->be->hold != NULL ? s->be->hold(s->self, e) : 0;
}

void
store_release(struct store *s)
{
	if (s->be->release != NULL)
		s->be->release(s->self);
}

struct filter {
	const char *dir;
	bool without_private;
	store_list_fn *fn;
	void *arg;
};

/* What others have made by a path that no command can name is passed over, or it would be in the way of all that goes through a tree. */
static int
to_be_shown(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	const struct filter *f = arg;

	if (!path_can_have(f->dir, name) || (f->without_private && strcmp(name, ".ag2") == 0))
		return 0;
	return f->fn(f->arg, name, dir, st);
}

int
store_name_compare(const char *a, bool a_dir, const char *b, bool b_dir)
{
	size_t n = strlen(a), m = strlen(b), common = n < m ? n : m;
	int c = memcmp(a, b, common);

	if (c != 0 || n == m)
		return c != 0 ? c : (int)a_dir - (int)b_dir;
	if (n < m)
		return a_dir && (unsigned char)b[n] < '/' ? 1 : -1;
	return b_dir && (unsigned char)a[m] < '/' ? -1 : 1;
}

int
store_list(struct store *s, const char *path, unsigned flags, store_list_fn *fn, void *arg, struct err *e)
{
	struct buf p = BUF_INIT;
	int rc = path_normalise(&p, path, strlen(path), e);
	struct filter f = { .dir = p.data, .without_private = (flags & STORE_LIST_ALL) == 0 && strcmp(p.data, "/") == 0, .fn = fn, .arg = arg };

	if (rc == 0)
		rc = s->be->list(s->self, p.data, flags, to_be_shown, &f, e);
	buf_release(&p);
	return rc;
}

int
store_tree_order(const char *a, const char *b)
{
	const unsigned char *x = (const unsigned char *)a, *y = (const unsigned char *)b;

	while (*x == *y && *x != '\0') {
		x++;
		y++;
	}
	return (*x == '/' ? 1 : *x == '\0' ? 0 : *x + 1) - (*y == '/' ? 1 : *y == '\0' ? 0 : *y + 1);
}

/* ---- Locks ---- */

int
store_lock(struct store *s, const char *path, int64_t ttl_ms, int64_t wait_ms, struct store_lock **out, struct err *e)
{
	struct buf p = BUF_INIT;
	struct store_lock *l;
	void *lock = NULL;
	int rc = store_may_change(s, e);

	if (rc == 0)
		rc = path_normalise(&p, path, strlen(path), e);
	if (rc == 0)
		rc = s->be->lock(s->self, p.data, ttl_ms, wait_ms, &lock, e);
	buf_release(&p);
	if (rc < 0)
		return -1;
	l = xcalloc(1, sizeof(*l));
	l->store = s;
	l->lock = lock;
	l->next = s->locks;
	if (l->next != NULL)
		l->next->prev = l;
	s->locks = l;
	*out = l;
	return 0;
}

int
store_lock_held(struct store_lock *l, struct err *e)
{
	return l->store->be->lock_held != NULL ? l->store->be->lock_held(l->lock, e) : 0;
}

char *
store_lock_token(const struct store_lock *l)
{
	return l->store->be->lock_token != NULL ? l->store->be->lock_token(l->lock) : NULL;
}

void
store_unlock(struct store_lock *l)
{
	if (l == NULL)
		return;
	l->store->be->unlock(l->lock);
	if (l->prev != NULL)
		l->prev->next = l->next;
	else
		l->store->locks = l->next;
	if (l->next != NULL)
		l->next->prev = l->prev;
	free(l);
}

/* ---- Checking ---- */

void
store_found(store_finding_fn *fn, void *arg, const char *path, const char *kind, const char *repaired, const char *what, ...)
{
	struct store_finding f = { .path = path, .kind = kind, .repaired = repaired };
	struct buf text = BUF_INIT;
	va_list ap;

	va_start(ap, what);
	buf_vaddf(&text, what, ap);
	va_end(ap);
	f.what = text.data;
	fn(arg, &f);
	buf_release(&text);
}

int
store_check(struct store *s, bool repair, store_finding_fn *fn, void *arg, struct err *e)
{
	if (repair && store_may_change(s, e) < 0)
		return -1;
	return s->be->check(s->self, repair, fn, arg, e);
}

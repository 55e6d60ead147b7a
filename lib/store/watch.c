/*
 * Watching, above the back ends: they say where to look, and here it is found out what changed, from the versions that
 * are known. So what they miss in detail (renamed directories, lost events, half a second) does not matter.
 */
#include "store/handle.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "path.h"

#include <poll.h>
#include <stdlib.h>

#define WAIT_MOST	3600000		/* of one wait of a back end */

struct known {
	char *path;
	uint64_t version;
};

struct files {
	struct known *f;
	size_t n, cap;
};

struct names {
	char **name;
	size_t n, cap;
};

struct store_watch {
	struct store *s;
	void *watch;		/* the back end's; NULL where it has none */
	char *path;
	struct files files;	/* in the order of a tree */
	struct names look;	/* where to look, in any order */
	uint64_t commits;	/* that were made through the store when we last looked */
};

static void
add_name(struct names *n, char *name)
{
	n->name = xgrow(n->name, n->n, &n->cap, sizeof(*n->name));
	n->name[n->n++] = name;
}

static void
names_release(struct names *n)
{
	while (n->n > 0)
		free(n->name[--n->n]);
	free(n->name);
	*n = (struct names){ 0 };
}

static void
add_file(struct files *f, const char *path, uint64_t version)
{
	f->f = xgrow(f->f, f->n, &f->cap, sizeof(*f->f));
	f->f[f->n++] = (struct known){ .path = xstrdup(path), .version = version };
}

static void
files_release(struct files *f)
{
	while (f->n > 0)
		free(f->f[--f->n].path);
	free(f->f);
	*f = (struct files){ 0 };
}

static int
by_path(const void *a, const void *b)
{
	return store_tree_order(((const struct known *)a)->path, ((const struct known *)b)->path);
}

/* ---- What is there ---- */

struct reading {
	struct files *files;
	struct names dirs;
	const char *dir;
};

static int
read_child(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	struct reading *r = arg;
	char *path = xasprintf("%s/%s", strcmp(r->dir, "/") == 0 ? "" : r->dir, name);

	if (dir) {
		add_name(&r->dirs, path);
		return 0;
	}
	add_file(r->files, path, st->version);
	free(path);
	return 0;
}

/* Everything at path and below it, sorted. */
static int
read_all(struct store *s, const char *path, struct files *out, struct err *e)
{
	struct reading r = { .files = out };
	struct store_stat st;
	unsigned flags = STORE_LIST_STAT | (path_private(path) ? STORE_LIST_ALL : 0);
	char *dir;
	int rc = store_stat(s, path, &st, e);

	if (rc > 0 && !st.dir)
		add_file(out, path, st.version);
	if (rc >= 0) {
		add_name(&r.dirs, xstrdup(path));
		rc = 0;
	}
	while (rc == 0 && r.dirs.n > 0) {
		dir = r.dirs.name[--r.dirs.n];
		r.dir = dir;
		rc = store_list(s, dir, flags, read_child, &r, e);
		free(dir);
	}
	names_release(&r.dirs);
	if (out->n > 1)
		qsort(out->f, out->n, sizeof(*out->f), by_path);
	return rc;
}

/* ---- What is known ---- */

/* The first that is not before path. */
static size_t
place_of(const struct files *f, const char *path)
{
	size_t low = 0, high = f->n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (store_tree_order(f->f[middle].path, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct change {
	char *path;
	bool removed;
};

struct changes {
	struct change *c;
	size_t n, cap;
};

static void
add_change(struct changes *c, const char *path, bool removed)
{
	c->c = xgrow(c->c, c->n, &c->cap, sizeof(*c->c));
	c->c[c->n++] = (struct change){ .path = xstrdup(path), .removed = removed };
}

static void
compare(const struct known *old, size_t n, const struct known *new, size_t m, struct changes *out)
{
	size_t i = 0, k = 0;
	int order;

	while (i < n || k < m) {
		order = i == n ? 1 : k == m ? -1 : store_tree_order(old[i].path, new[k].path);
		if (order < 0)
			add_change(out, old[i].path, true);
		else if (order > 0 || old[i].version != new[k].version)
			add_change(out, new[k].path, false);
		i += order <= 0;
		k += order >= 0;
	}
}

/* Puts all of `now` in the place of what was known from `from` to `to`. */
static void
replace(struct files *f, size_t from, size_t to, struct files *now)
{
	size_t i, tail = f->n - to;

	for (i = from; i < to; i++)
		free(f->f[i].path);
	if (from + now->n + tail > f->cap) {
		f->cap = (from + now->n + tail) * 3 / 2 + 8;
		f->f = xrealloc(f->f, f->cap, sizeof(*f->f));
	}
	if (tail > 0)
		memmove(f->f + from + now->n, f->f + to, tail * sizeof(*f->f));
	if (now->n > 0)
		memcpy(f->f + from, now->f, now->n * sizeof(*f->f));
	f->n = from + now->n + tail;
	free(now->f);
	*now = (struct files){ 0 };
}

static int
look_at(struct store_watch *w, const char *path, struct changes *out, struct err *e)
{
	struct files now = { 0 };
	size_t from, to;

	if (read_all(w->s, path, &now, e) < 0) {
		files_release(&now);
		return -1;
	}
	from = to = place_of(&w->files, path);
	while (to < w->files.n && path_within(w->files.f[to].path, path))
		to++;
	compare(w->files.f + from, to - from, now.f, now.n, out);
	replace(&w->files, from, to, &now);
	return 0;
}

/* ---- Waiting ---- */

int
store_watch(struct store *s, const char *path, struct store_watch **out, struct err *e)
{
	struct store_watch *w = xcalloc(1, sizeof(*w));
	struct changes unused = { 0 };
	struct buf p = BUF_INIT;
	int rc = path_normalise(&p, path, strlen(path), e);

	w->s = s;
	w->commits = s->commits;
	w->path = xmemdup0(p.data, p.len);
	buf_release(&p);
	if (rc == 0 && s->be->watch != NULL)
		rc = s->be->watch(s->self, w->path, &w->watch, e);
	if (rc == 0)
		rc = look_at(w, w->path, &unused, e);
	while (unused.n > 0)
		free(unused.c[--unused.n].path);
	free(unused.c);
	if (rc < 0)
		store_watch_close(w);
	else
		*out = w;
	return rc;
}

/* A hint at something above what is watched is one at all of it. */
static void
take_hint(void *arg, const char *path, uint64_t version)
{
	struct store_watch *w = arg;
	size_t at;

	if (!path_is_normal(path))
		return;	/* nobody can ask for it */
	if (path_within(w->path, path))
		path = w->path;
	else if (!path_within(path, w->path) || (path_private(path) && !path_private(w->path)))
		return;
	at = place_of(&w->files, path);
	if (version != 0 && at < w->files.n && strcmp(w->files.f[at].path, path) == 0 && w->files.f[at].version == version)
		return;
	add_name(&w->look, xstrdup(path));
}

static int
by_name(const void *a, const void *b)
{
	return store_tree_order(*(char *const *)a, *(char *const *)b);
}

/* Looks where it was told to, each place once. What it was told is forgotten only when all was looked at. */
static int
look(struct store_watch *w, struct changes *out, struct err *e)
{
	struct names *n = &w->look;
	const char *last = NULL;
	size_t i;
	int rc = 0;

	if (n->n > 1)
		qsort(n->name, n->n, sizeof(*n->name), by_name);
	for (i = 0; rc == 0 && i < n->n; i++) {
		if (last != NULL && path_within(n->name[i], last))
			continue;
		last = n->name[i];
		rc = look_at(w, last, out, e);
	}
	if (rc == 0)
		names_release(n);
	return rc;
}

static int
tell(struct changes *c, store_watch_fn *fn, void *arg)
{
	size_t i;

	for (i = 0; i < c->n; i++) {
		fn(arg, c->c[i].path, c->c[i].removed);
		free(c->c[i].path);
	}
	free(c->c);
	return (int)c->n;
}

static int
wait_for_hints(struct store_watch *w, int64_t wait_ms, struct err *e)
{
	if (w->watch != NULL)
		return w->s->be->watch_wait(w->watch, wait_ms < 0 || wait_ms > WAIT_MOST ? WAIT_MOST : wait_ms, take_hint, w, e);
	if (wait_ms < 0)
		return err_set(e, ERR_USAGE, "%s: no other process can change it, so there is nothing to wait for", store_url(w->s));
	poll(NULL, 0, (int)(wait_ms > WAIT_MOST ? WAIT_MOST : wait_ms));
	return 0;
}

int
store_watch_next(struct store_watch *w, int64_t wait_ms, store_watch_fn *fn, void *arg, struct err *e)
{
	double until = clock_monotonic() + (double)wait_ms / 1e3;
	struct changes found = { 0 };
	int64_t left = wait_ms;
	int rc;

	for (;;) {
		if (w->s->commits != w->commits)
			take_hint(w, w->path, 0);
		w->commits = w->s->commits;
		rc = look(w, &found, e);
		if (found.n > 0)
			return tell(&found, fn, arg);
		if (rc < 0)
			return -1;
		if (wait_ms >= 0 && (left = (int64_t)((until - clock_monotonic()) * 1000) + 1) <= 0)
			left = 0;
		rc = wait_for_hints(w, left, e);
		if (rc < 0)
			return -1;
		if (rc == 0 && wait_ms >= 0 && clock_monotonic() >= until)
			return 0;
	}
}

void
store_watch_close(struct store_watch *w)
{
	if (w == NULL)
		return;
	if (w->watch != NULL)
		w->s->be->watch_close(w->watch);
	files_release(&w->files);
	names_release(&w->look);
	free(w->path);
	free(w);
}

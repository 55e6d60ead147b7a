#include "store/store.h"

#include "base/alloc.h"
#include "base/opts.h"
#include "base/sha1.h"
#include "path.h"
#include "store/backend.h"

#include <stdlib.h>
#include <unistd.h>

#define TIMEOUT_MS 10000

static const struct store_backend *const backends[] = {
	&store_disk,
	&store_sqlite,
	&store_redis,
	&store_redis_unix,
	&store_redis_tls,
	&store_memory,
};
#define BACKENDS (sizeof(backends) / sizeof(backends[0]))

struct store {
	const struct store_backend *be;
	void *self;
	char *url;
	enum store_mode mode;
	struct store_lock *locks;
	uint64_t commits;
	unsigned timeout_ms;
	bool lock;		/* each change under locks of its own */
};

struct store_file {
	const struct store_backend *be;
	void *file;
};

struct store_lock {
	struct store *store;
	void *lock;
	struct store_lock *prev, *next;
};

/* The parts of a URL. scheme is not terminated; options is what follows the last '?', NULL when there is none. */
struct location {
	const struct store_backend *be;
	char *where;
	const char *options;
	struct buf own;		/* the options that are the back end's own */
};

static size_t
scheme_length(const char *url)
{
	size_t n = strspn(url, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");

	return n > 0 && url[n] == ':' ? n : 0;
}

static const struct store_backend *
backend_named(const char *scheme, size_t len)
{
	size_t i;

	for (i = 0; i < BACKENDS; i++)
		if (strlen(backends[i]->scheme) == len && memcmp(backends[i]->scheme, scheme, len) == 0)
			return backends[i];
	return NULL;
}

static bool
ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n > k && strcmp(s + n - k, end) == 0;
}

static int
unknown_scheme(const char *url, size_t len, struct err *e)
{
	struct buf known = BUF_INIT;
	size_t i;

	for (i = 0; i < BACKENDS; i++)
		buf_addf(&known, "%s%s:", i == 0 ? "" : i + 1 < BACKENDS ? ", " : " and ", backends[i]->scheme);
	err_set(e, ERR_USAGE, "'%.100s': no kind of store is called '%.*s'; there are %s (a file with a colon in its name is ./%.100s)",
	    url, (int)(len < 40 ? len : 40), url, known.data, url);
	buf_release(&known);
	return -1;
}

/* "/a/./b" is "/a/b": it is shown to people, and compared by them. */
static void
drop_dots(char *path)
{
	char *dot;

	while ((dot = strstr(path, "/./")) != NULL)
		memmove(dot, dot + 2, strlen(dot + 2) + 1);
}

/* Fills l from url; the location is made absolute here, once, so that a later chdir changes nothing. */
static int
locate(const char *url, struct location *l, struct err *e)
{
	size_t scheme = scheme_length(url), len;
	const char *where = url, *mark = NULL;
	char *cwd;

	if (scheme > 0) {
		if ((l->be = backend_named(url, scheme)) == NULL)
			return unknown_scheme(url, scheme, e);
		where = url + scheme + 1;
		mark = strrchr(where, '?');
	} else {
		const char *kind = ends_with(url, ".db") || ends_with(url, ".sqlite") ? "sqlite" : "disk";

		if (url[0] == '\0')
			return err_set(e, ERR_USAGE, "the store's URL is empty");
		if ((l->be = backend_named(kind, strlen(kind))) == NULL)
			return err_set(e, ERR_USAGE, "'%s': this build has no %s: stores", url, kind);
	}
	l->options = mark ? mark + 1 : NULL;
	len = mark ? (size_t)(mark - where) : strlen(where);
	if (l->be->remote) {
		l->where = xmemdup0(where, len);
		return 0;
	}
	if (len == 0 || where[0] == '/') {
		l->where = xmemdup0(where, len);
		drop_dots(l->where);
		return 0;
	}
	if ((cwd = getcwd(NULL, 0)) == NULL)
		return err_sys(e, "cannot tell the current directory");
	l->where = xasprintf("%s/%.*s", strcmp(cwd, "/") == 0 ? "" : cwd, (int)len, where);
	drop_dots(l->where);
	free(cwd);
	return 0;
}

static int
one_option(const char *text, size_t len, const char *more, struct store_options *o, struct err *e)
{
	static const char *const known[] = { [STORE_SYNC_NORMAL] = "sync=normal", [STORE_SYNC_FULL] = "sync=full" };
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strlen(known[i]) == len && memcmp(known[i], text, len) == 0) {
			o->sync = (enum store_sync)i;
			return 0;
		}
	if (len == strlen("lock=1") && memcmp(text, "lock=", 5) == 0 && (text[5] == '0' || text[5] == '1')) {
		o->lock = text[5] == '1';
		return 0;
	}
	return err_set(e, ERR_USAGE, "'%.*s' is no option of a store; there are sync=normal, sync=full, lock=1, timeout=%s",
	    (int)(len < 100 ? len : 100), text, more);
}

/* "timeout=S": 1 when it is that, 0 when it is another option. */
static int
take_timeout(const char *text, size_t len, struct store_options *o, struct err *e)
{
	const size_t n = strlen("timeout=");
	double seconds = 0;
	char *given;
	int rc;

	if (len < n || memcmp(text, "timeout=", n) != 0)
		return 0;
	given = xmemdup0(text + n, len - n);
	rc = parse_seconds(given, "timeout", &seconds, e);
	if (rc == 0 && (seconds <= 0 || seconds > 86400))
		rc = err_set(e, ERR_USAGE, "a timeout of %s seconds", given);
	free(given);
	o->timeout_ms = (unsigned)(seconds * 1000) + 1;
	return rc < 0 ? -1 : 1;
}

/* Whether it is one of the back end's own. */
static bool
is_own_option(const struct store_backend *be, const char *text, size_t len)
{
	size_t i, n;

	for (i = 0; be->options != NULL && be->options[i] != NULL; i++) {
		n = strlen(be->options[i]);
		if (len >= n && memcmp(text, be->options[i], n) == 0)
			return true;
	}
	return false;
}

/* The back end's own are handed on. */
static int
take_options(struct location *l, struct store_options *o, struct err *e)
{
	const char *text = l->options;
	struct buf more = BUF_INIT;
	size_t len, i;
	int rc = 0;

	for (i = 0; l->be->options != NULL && l->be->options[i] != NULL; i++)
		buf_addf(&more, ", %s", l->be->options[i]);
	for (; rc == 0 && text != NULL && *text != '\0'; text += len + (text[len] == '&')) {
		len = strcspn(text, "&");
		if (len > 0 && is_own_option(l->be, text, len))
			buf_addf(&l->own, "%s%.*s", l->own.len == 0 ? "" : "&", (int)len, text);
		else if (len > 0 && (rc = take_timeout(text, len, o, e)) == 0)
			rc = one_option(text, len, more.data, o, e);
		rc = rc < 0 ? -1 : 0;
	}
	buf_release(&more);
	return rc;
}

/* A '?' in the location itself needs one behind it, or what follows it would be taken for options. */
static char *
absolute_url(const struct location *l)
{
	bool mark = (l->options != NULL && l->options[0] != '\0') || strchr(l->where, '?') != NULL;

	return xasprintf("%s:%s%s%s", l->be->scheme, l->where, mark ? "?" : "", l->options ? l->options : "");
}

int
store_open(struct store **out, const char *url, const struct store_options *options, struct err *e)
{
	struct store_options o = *options;
	struct location l = { .own = BUF_INIT };
	struct store *s;
	void *self = NULL;
	int rc = -1;

	if (o.timeout_ms == 0)
		o.timeout_ms = TIMEOUT_MS;
	if (locate(url, &l, e) < 0)
		return -1;
	if (take_options(&l, &o, e) < 0)
		goto out;
	if (l.be->open(&self, l.where, l.own.len > 0 ? l.own.data : "", &o, e) < 0)
		goto out;
	s = xcalloc(1, sizeof(*s));
	s->be = l.be;
	s->self = self;
	s->mode = o.mode;
	s->lock = o.lock;
	s->timeout_ms = o.timeout_ms;
	s->url = absolute_url(&l);
	*out = s;
	rc = 0;
out:
	free(l.where);
	buf_release(&l.own);
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

const struct store_backend *
store_backend_of(const struct store *s, void **self, uint64_t *commits)
{
	*self = s->self;
	*commits = s->commits;
	return s->be;
}

const char *
store_url(const struct store *s)
{
	return s->url;
}

static int
may_change(const struct store *s, struct err *e)
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

/* Appends [start, end) of an open file to out. */
static int
copy_out(const struct store_backend *be, void *file, uint64_t start, uint64_t end, const char *path, struct buf *out, uint64_t *copied, struct err *e)
{
	uint64_t at = start;
	ssize_t n;

	if (end - start > SIZE_MAX / 2 || (out->max != 0 && end - start > out->max - out->len))
		return err_set(e, ERR_DATA, "'%s': %llu bytes are more than the %zu that are read at most", path,
		    (unsigned long long)(end - start), out->max);
	buf_reserve(out, (size_t)(end - start));
	while (at < end) {
		n = be->file_read(file, at, out->data + out->len, (size_t)(end - at), e);
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		out->len += (size_t)n;
		out->data[out->len] = '\0';
		at += (uint64_t)n;
	}
	*copied = at - start;
	return 0;
}

int
store_read(struct store *s, const char *path, struct buf *out, struct store_stat *st, struct err *e)
{
	struct store_stat found;
	struct buf p = BUF_INIT;
	size_t before = out->len;
	uint64_t copied;
	void *file;
	int rc = path_normalise(&p, path, strlen(path), e);

	if (rc == 0)
		rc = s->be->file_open(s->self, p.data, &file, &found, e);
	if (rc == 0) {
		rc = copy_out(s->be, file, 0, found.size, p.data, out, &copied, e);
		s->be->file_close(file);
	}
	if (rc == 0 && st != NULL) {
		*st = found;
		st->size = copied;
	}
	if (rc < 0 && out->len > before) {
		out->len = before;
		out->data[before] = '\0';
	}
	buf_release(&p);
	return rc;
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
	struct buf p = BUF_INIT;
	struct err why = ERR_INIT;
	uint64_t copied, from, to;
	void *file;
	int rc = path_normalise(&p, path, strlen(path), e);

	if (rc < 0)
		goto out;
	rc = s->be->file_open(s->self, p.data, &file, &st, &why);
	if (rc < 0) {
		rc = why.code == ERR_ABSENT ? 0 : err_set(e, why.code, "%s", why.msg);
		goto out;
	}
	from = clamp(start, st.size);
	to = end < 0 ? 0 : clamp(end, st.size);
	if (from < to)
		rc = copy_out(s->be, file, from, to, p.data, out, &copied, e);
	s->be->file_close(file);
out:
	buf_release(&p);
	return rc;
}

int
store_file_open(struct store *s, const char *path, struct store_file **out, struct store_stat *st, struct err *e)
{
	struct store_stat unused;
	struct buf p = BUF_INIT;
	void *file = NULL;
	int rc = path_normalise(&p, path, strlen(path), e);

	if (rc == 0)
		rc = s->be->file_open(s->self, p.data, &file, st ? st : &unused, e);
	if (rc == 0) {
		*out = xmalloc(sizeof(**out));
		(*out)->be = s->be;
		(*out)->file = file;
	}
	buf_release(&p);
	return rc;
}

ssize_t
store_file_read(struct store_file *f, uint64_t offset, void *data, size_t len, struct err *e)
{
	return f->be->file_read(f->file, offset, data, len, e);
}

void
store_file_close(struct store_file *f)
{
	if (f == NULL)
		return;
	f->be->file_close(f->file);
	free(f);
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
	store_list_fn *fn;
	void *arg;
};

static int
without_private(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	const struct filter *f = arg;

	return strcmp(name, ".ag2") == 0 ? 0 : f->fn(f->arg, name, dir, st);
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
	struct filter f = { .fn = fn, .arg = arg };
	struct buf p = BUF_INIT;
	int rc = path_normalise(&p, path, strlen(path), e);

	if (rc == 0 && (flags & STORE_LIST_ALL) == 0 && strcmp(p.data, "/") == 0)
		rc = s->be->list(s->self, p.data, flags, without_private, &f, e);
	else if (rc == 0)
		rc = s->be->list(s->self, p.data, flags, fn, arg, e);
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

static int
tree_order(const void *a, const void *b)
{
	return store_tree_order(*(const char *const *)a, *(const char *const *)b);
}

static int
check_op(const struct store_op *op, struct err *e)
{
	if (op->kind == STORE_OP_EXPECT || op->kind == STORE_OP_DELETE)
		return 0;
	if (strcmp(op->path, "/") == 0 || strcmp(op->path, "/.ag2") == 0)
		return err_set(e, ERR_CREATE, "'%s' is a directory", op->path);
	return 0;
}

static int
check_ops(const struct store_op *ops, size_t n, struct err *e)
{
	const char **changed = xcalloc(n, sizeof(*changed));
	size_t i, count = 0;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++) {
		rc = check_op(&ops[i], e);
		if (ops[i].kind != STORE_OP_EXPECT)
			changed[count++] = ops[i].path;
	}
	if (count > 1)
		qsort(changed, count, sizeof(*changed), tree_order);
	for (i = 1; i < count && rc == 0; i++)
		if (path_within(changed[i], changed[i - 1]))
			rc = err_set(e, ERR_USAGE, "one commit changes both '%s' and '%s'", changed[i - 1], changed[i]);
	free(changed);
	return rc;
}

static void
free_pieces(struct store_op *op)
{
	size_t i;

	for (i = 0; op->pieces != NULL && i < op->npieces; i++)
		free((char *)(uintptr_t)op->pieces[i].from);
	free((void *)(uintptr_t)op->pieces);
}

/* Pieces with normalised paths in place of the caller's; len becomes the length of them all. */
static int
own_pieces(struct store_op *op, struct err *e)
{
	const struct store_piece *given = op->pieces;
	struct store_piece *own = xcalloc(op->npieces, sizeof(*own));
	struct buf p = BUF_INIT;
	uint64_t total = 0;
	size_t i;
	int rc = 0;

	if (op->kind != STORE_OP_WRITE && op->kind != STORE_OP_REPLACE_PREFIX)
		rc = err_set(e, ERR_USAGE, "'%s': only what is written or replaced has pieces", op->path);
	for (i = 0; i < op->npieces && rc == 0; i++) {
		own[i] = given[i];
		own[i].from = NULL;
		total += given[i].len;
		if (given[i].from == NULL) {
			if (given[i].offset > op->len || given[i].len > op->len - given[i].offset)
				rc = err_set(e, ERR_USAGE, "'%s': a piece beyond the data", op->path);
			continue;
		}
		rc = path_normalise(&p, given[i].from, strlen(given[i].from), e);
		own[i].from = xmemdup0(p.data, p.len);
	}
	buf_release(&p);
	op->pieces = own;
	op->len = (size_t)total;
	return rc;
}

/* What a piece comes from must still be as it was before the commit. */
static int
check_pieces(const struct store_op *ops, size_t at, struct err *e)
{
	size_t i, j;

	for (i = 0; i < ops[at].npieces; i++)
		for (j = 0; ops[at].pieces[i].from != NULL && j <= at; j++)
			if (ops[j].kind != STORE_OP_EXPECT && path_within(ops[at].pieces[i].from, ops[j].path))
				return err_set(e, ERR_USAGE, "one commit changes '%s' and then reads it", ops[j].path);
	return 0;
}

/* Appends what a piece stands for. */
static int
read_piece(struct store *s, const struct store_piece *p, struct buf *out, struct err *e)
{
	struct err why = ERR_INIT;
	struct store_stat st;
	uint64_t copied = 0;
	void *file;
	int rc;

	if (s->be->file_open(s->self, p->from, &file, &st, &why) < 0)
		return err_set(e, why.code == ERR_ABSENT ? ERR_CONFLICT : why.code, "%s", why.msg);
	rc = copy_out(s->be, file, p->offset, p->offset + p->len, p->from, out, &copied, e);
	s->be->file_close(file);
	if (rc == 0 && copied != p->len)
		rc = err_set(e, ERR_CONFLICT, "'%s' is shorter than it was: read it again", p->from);
	return rc;
}

static int
hash_prefix(struct store *s, struct store_op *op, struct err *e)
{
	struct store_piece prefix = { op->path, 0, op->upto };
	struct buf b = BUF_INIT;
	struct sha1 h;
	int rc = read_piece(s, &prefix, &b, e);

	sha1_init(&h);
	sha1_add(&h, b.data, b.len);
	sha1_end(&h, op->sha1);
	buf_release(&b);
	return rc;
}

/* For a back end that knows neither pieces nor unchecked prefixes. The data that is made here goes to *made. */
static int
gather(struct store *s, struct store_op *op, char **made, struct err *e)
{
	struct buf b = BUF_INIT;
	size_t i;
	int rc = op->unchecked ? hash_prefix(s, op, e) : 0;

	if (op->npieces == 0)
		return rc;
	for (i = 0; i < op->npieces && rc == 0; i++) {
		if (op->pieces[i].from != NULL)
			rc = read_piece(s, &op->pieces[i], &b, e);
		else
			buf_add(&b, (const char *)op->data + op->pieces[i].offset, (size_t)op->pieces[i].len);
	}
	free_pieces(op);
	op->npieces = 0;
	op->pieces = NULL;
	op->data = *made = buf_detach(&b, &op->len);
	return rc;
}

#define LOCK_TTL_MS 60000

/* Takes the locks in one order, or two that want the same would wait for each other. */
static int
commit_locked(struct store *s, struct store_op *ops, size_t n, struct err *e)
{
	const char **paths = xcalloc(n, sizeof(*paths));
	void **locks = xcalloc(n, sizeof(*locks));
	size_t i, count = 0, held = 0;
	char *name;
	int rc = 0;

	for (i = 0; i < n; i++)
		if (ops[i].kind != STORE_OP_EXPECT)
			paths[count++] = ops[i].path;
	if (count > 1)
		qsort(paths, count, sizeof(*paths), tree_order);
	while (rc == 0 && held < count) {
		name = xasprintf("store:write:%s", paths[held]);
		rc = s->be->lock(s->self, name, LOCK_TTL_MS, s->timeout_ms, &locks[held], e);
		held += rc == 0;
		free(name);
	}
	if (rc == 0)
		rc = s->be->commit(s->self, ops, n, e);
	while (held > 0)
		s->be->unlock(locks[--held]);
	free(locks);
	free(paths);
	return rc;
}

int
store_commit(struct store *s, struct store_op *ops, size_t n, struct err *e)
{
	struct store_op *own;
	struct buf p = BUF_INIT;
	char **data;
	size_t i, made = 0;
	int rc = may_change(s, e);

	if (rc < 0 || n == 0)
		return rc;
	own = xcalloc(n, sizeof(*own));
	data = xcalloc(n, sizeof(*data));
	for (i = 0; i < n && rc == 0; i++) {
		rc = path_normalise(&p, ops[i].path, strlen(ops[i].path), e);
		own[i] = ops[i];
		own[i].path = xmemdup0(p.data, p.len);
		made++;
		if (own[i].npieces == 0)
			own[i].pieces = NULL;
		else if (rc < 0)
			own[i].npieces = 0;
		else
			rc = own_pieces(&own[i], e);
	}
	if (rc == 0)
		rc = check_ops(own, n, e);
	for (i = 0; i < n && rc == 0; i++)
		rc = check_pieces(own, i, e);
	for (i = 0; i < n && rc == 0 && !s->be->pieces; i++)
		rc = gather(s, &own[i], &data[i], e);
	if (rc == 0 && s->lock)
		rc = commit_locked(s, own, n, e);
	else if (rc == 0)
		rc = s->be->commit(s->self, own, n, e);
	s->commits++;	/* one that failed may have been made all the same */
	for (i = 0; i < made; i++) {
		if (rc == 0) {
			ops[i].version = own[i].version;
			ops[i].offset = own[i].offset;
		}
		free((char *)own[i].path);
		if (own[i].npieces > 0)
			free_pieces(&own[i]);
		free(data[i]);
	}
	free(data);
	free(own);
	buf_release(&p);
	return rc;
}

int
store_write(struct store *s, const char *path, const void *data, size_t len, struct err *e)
{
	struct store_op op = { .kind = STORE_OP_WRITE, .path = path, .data = data, .len = len };

	return store_commit(s, &op, 1, e);
}

int
store_append(struct store *s, const char *path, const void *data, size_t len, uint64_t *offset, struct err *e)
{
	struct store_op op = { .kind = STORE_OP_APPEND, .path = path, .data = data, .len = len };
	int rc = store_commit(s, &op, 1, e);

	if (rc == 0 && offset != NULL)
		*offset = op.offset;
	return rc;
}

int
store_delete(struct store *s, const char *path, struct err *e)
{
	struct store_op op = { .kind = STORE_OP_DELETE, .path = path };

	return store_commit(s, &op, 1, e);
}

int
store_lock(struct store *s, const char *path, int64_t ttl_ms, int64_t wait_ms, struct store_lock **out, struct err *e)
{
	struct buf p = BUF_INIT;
	struct store_lock *l;
	void *lock = NULL;
	int rc = may_change(s, e);

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
	if (repair && may_change(s, e) < 0)
		return -1;
	return s->be->check(s->self, repair, fn, arg, e);
}

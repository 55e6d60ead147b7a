/*
 * The store in an SQLite database, and the one in memory, which is the same on a private database.
 *
 * A file's content is cut into segments of one B-tree, so that appending writes what it appends and the end of a large
 * file is reached without its beginning: `segments.id` is `files.id << 40 | place`, and byte n of a file is at place
 * `files.base + n`. base begins in the middle of the 2^40 places, so that a prefix can be swapped for another of any
 * length without moving what follows. The last `run` bytes are in small segments; an append that makes them
 * RUN bytes joins those into one.
 *
 * AG2 has one table, entries(path, content, version), in its place. In ours that is a view with triggers on which every
 * statement of AG2 works; it joins the segments of a file with group_concat, or, when that does not give the file's size
 * (older versions of SQLite end the result at a NUL), one by one. We ourselves use neither the view nor the triggers, and
 * have both switched off: a database that someone else prepared cannot make us run its SQL. A database that AG2 made is
 * read as it is, and turned into ours by the first change. With ?layout=ag2 it is the other way round.
 */
#include "store/sqlite.h"

#include "base/alloc.h"
#include "lock.h"
#include "store/sqlite_peek.h"

#include <fcntl.h>
#include <stdlib.h>

#define TIMEOUT_MS	10000

int
row_damaged(struct sqlite_store *s, const char *path, struct err *e)
{
	return err_set(e, ERR_DATA, "%s: '%s' is damaged: its segments do not fit its size", db_name(s), path);
}

/* ---- Opening and asking ---- */

static int
open_any(void **self, const char *where, const struct store_options *o, struct err *e)
{
	struct sqlite_store *s = xcalloc(1, sizeof(*s));
	int rc;

	s->o = *o;
	s->wanted = LAYOUT_OURS;
	if (s->o.timeout_ms == 0)
		s->o.timeout_ms = TIMEOUT_MS;
	if (where == NULL) {
		rc = db_connect(s, e);
	} else {
		/* SQLite takes names with a colon and without a slash for something else. */
		s->file = where[0] == '/' ? xstrdup(where) : xasprintf("./%s", where);
		rc = db_look_for(s, e);
	}
	if (rc < 0) {
		free(s->file);
		free(s);
		return -1;
	}
	*self = s;
	return 0;
}

static int
sqlite_open(void **self, const char *where, const char *own, const struct store_options *o, struct err *e)
{
	if (where[0] == '\0')
		return err_set(e, ERR_USAGE, "sqlite: needs the name of a file");
	if (own[0] != '\0' && strcmp(own, "layout=ag2") != 0)
		return err_set(e, ERR_USAGE, "sqlite: there is no '%.100s', only layout=ag2", own);
	if (open_any(self, where, o, e) < 0)
		return -1;
	((struct sqlite_store *)*self)->wanted = own[0] != '\0' ? LAYOUT_AG2 : LAYOUT_OURS;
	return 0;
}

static int
memory_open(void **self, const char *where, const char *own, const struct store_options *o, struct err *e)
{
	if (where[0] != '\0')
		return err_set(e, ERR_USAGE, "memory: takes no name, not '%s'", where);
	return open_any(self, NULL, o, e);
}

static void
sqlite_close(void *self)
{
	struct sqlite_store *s = self;

	if (s == NULL)
		return;
	db_remove_log(s);
	db_disconnect(s);
	free(s->file);
	free(s);
}

static bool
is_sane(const struct row *r)
{
	return r->id >= 1 && r->id <= FILES_MAX && r->base <= PLACES && r->size <= PLACES - r->base && r->run <= r->size;
}

int
row_find(struct sqlite_store *s, const char *path, struct row *r, struct err *e)
{
	sqlite3_stmt *st;
	int rc;

	*r = (struct row){ 0 };
	if (s->layout == LAYOUT_EMPTY)
		return 0;
	st = db_query(s, Q_FIND, e, "t", path);
	rc = db_step(s, st, e);
	if (rc <= 0)
		return rc;
	r->id = sqlite3_column_int64(st, 0);
	r->size = (uint64_t)sqlite3_column_int64(st, 1);
	r->version = (uint64_t)sqlite3_column_int64(st, 2);
	r->mtime = sqlite3_column_double(st, 3);
	r->base = (uint64_t)sqlite3_column_int64(st, 4);
	r->run = (uint64_t)sqlite3_column_int64(st, 5);
	sqlite3_reset(st);
	if ((int64_t)r->version < 1)
		r->version = 1;
	return s->layout == LAYOUT_AG2 || is_sane(r) ? 1 : row_damaged(s, path, e);
}

static void
below(struct below *b, const char *path)
{
	b->len = strlen(path);
	if (b->len > PATH_BYTES_MAX)
		b->len = PATH_BYTES_MAX;
	memcpy(b->from, path, b->len);
	if (b->len == 0 || b->from[b->len - 1] != '/')
		b->from[b->len++] = '/';
	b->from[b->len] = '\0';
	memcpy(b->to, b->from, b->len + 1);
	b->to[b->len - 1] = '/' + 1;
}

int
below_but_private(struct below b[2], const char *path)
{
	static const char from[] = "/.ag2/", behind[] = "/.ag20";

	below(&b[0], path);
	if (strcmp(path, "/") != 0)
		return 1;
	b[1] = b[0];
	memcpy(b[0].to, from, sizeof(from));
	memcpy(b[1].from, behind, sizeof(behind));
	return 2;
}

int
row_below(struct sqlite_store *s, const char *path, struct err *e)
{
	struct below b[2];
	sqlite3_stmt *st;
	int rc = 0, i, parts = below_but_private(b, path);

	for (i = 0; i < parts && rc == 0 && s->layout != LAYOUT_EMPTY; i++) {
		st = db_query(s, Q_NAMES, e, "tt", b[i].from, b[i].to);
		rc = db_step(s, st, e);
		if (rc > 0)
			sqlite3_reset(st);
	}
	return rc;
}

void
row_stat(struct store_stat *st, const struct row *r)
{
	*st = (struct store_stat){ .size = r->size, .version = r->version, .mtime = r->mtime };
}

int
path_stat(struct sqlite_store *s, const char *path, struct store_stat *st, struct err *e)
{
	struct row r;
	int rc = row_find(s, path, &r, e);

	if (rc > 0)
		row_stat(st, &r);
	if (rc != 0)
		return rc;
	*st = (struct store_stat){ .mtime = -1, .dir = true };
	return row_below(s, path, e);
}

/* The first question can be answered without opening the database. -1 when this one cannot. */
static int
peek(struct sqlite_store *s, const char *path, struct store_stat *st)
{
	const char *sql[LAYOUT_OBJECTS];
	struct peek_row found;
	struct row r;
	int rc;

	if (s->o.mode != STORE_READ || s->held_empty || s->db != NULL || db_connections() > 0 || s->peeked || path[1] == '\0')
		return -1;
	s->peeked = true;
	layout_statements(sql);
	rc = sqlite_peek(s->file, sql, LAYOUT_OBJECTS, APPLICATION_ID, LAYOUT_VERSION, path, &found);
	if (rc == 2)
		*st = (struct store_stat){ .mtime = -1, .dir = true };
	if (rc != 1)
		return rc == 2 ? 1 : rc;
	r = (struct row){ .id = found.id, .base = (uint64_t)found.base, .size = (uint64_t)found.size, .run = (uint64_t)found.run,
	    .version = (uint64_t)found.version, .mtime = found.mtime };
	if (!is_sane(&r) || found.version < 1)
		return -1;
	row_stat(st, &r);
	return 1;
}

static int
sqlite_stat(void *self, const char *path, struct store_stat *st, struct err *e)
{
	struct sqlite_store *s = self;
	struct store_stat found;
	int rc;

	rc = peek(s, path, &found);
	if (rc < 0)
		READING(s, rc, e, rc = path_stat(s, path, &found, e));
	if (rc > 0 && st != NULL)
		*st = found;
	return rc;
}

/* ---- Listing ---- */

struct child {
	size_t name;	/* where it begins in names */
	struct store_stat st;
};

struct children {
	struct buf names;
	struct child *all;
	size_t n, cap;
};

static void
add_child(struct children *c, const char *name, size_t len, struct store_stat st)
{
	if (memchr(name, '\0', len) != NULL)
		return;		/* no command can name it */
	c->all = xgrow(c->all, c->n, &c->cap, sizeof(*c->all));
	c->all[c->n++] = (struct child){ .name = c->names.len, .st = st };
	buf_add(&c->names, name, len);
	buf_addch(&c->names, '\0');
}

/* One step per child: behind the first path in a directory the search goes on behind its last. */
static int
gather(struct sqlite_store *s, const char *path, unsigned flags, struct children *c, struct err *e)
{
	struct buf from = BUF_INIT;
	struct below b;
	sqlite3_stmt *st;
	int rc;

	below(&b, path);
	st = db_query(s, flags & STORE_LIST_STAT ? Q_LIST : Q_NAMES, e, "tt", b.from, b.to);
	while ((rc = db_step(s, st, e)) > 0) {
		const char *p = (const char *)sqlite3_column_text(st, 0), *slash;
		size_t len = (size_t)sqlite3_column_bytes(st, 0);

		/* In the order of another encoding or of a damaged index other paths can come. */
		if (p == NULL || len < b.len || memcmp(p, b.from, b.len) != 0) {
			rc = err_set(e, ERR_DATA, "%s: damaged: its paths are not in order", db_name(s));
			break;
		}
		p += b.len;
		len -= b.len;
		slash = memchr(p, '/', len);
		if (slash == NULL) {
			struct store_stat file = { .mtime = -1 };

			if (flags & STORE_LIST_STAT) {
				int64_t v = sqlite3_column_int64(st, 2);

				file.size = (uint64_t)sqlite3_column_int64(st, 1);
				file.version = v < 1 ? 1 : (uint64_t)v;
				file.mtime = sqlite3_column_double(st, 3);
			}
			add_child(c, p, len, file);
			continue;
		}
		add_child(c, p, (size_t)(slash - p), (struct store_stat){ .mtime = -1, .dir = true });
		buf_reset(&from);
		buf_add(&from, b.from, b.len);
		buf_add(&from, p, (size_t)(slash - p));
		buf_addch(&from, '/' + 1);
		sqlite3_reset(st);
		sqlite3_bind_text(st, 1, from.data, (int)from.len, SQLITE_STATIC);
	}
	if (st != NULL)
		sqlite3_reset(st);
	buf_release(&from);
	return rc;
}

static int
sqlite_list(void *self, const char *path, unsigned flags, store_list_fn *fn, void *arg, struct err *e)
{
	struct sqlite_store *s = self;
	struct children c = { .names = BUF_INIT };
	size_t i;
	int rc;

	READING(s, rc, e, c.n = 0; buf_reset(&c.names); rc = gather(s, path, flags, &c, e));
	if (rc < 0)
		goto out;
	for (i = 0; i < c.n && rc == 0; i++)
		rc = fn(arg, c.names.data + c.all[i].name, c.all[i].st.dir, flags & STORE_LIST_STAT ? &c.all[i].st : NULL);
out:
	free(c.all);
	buf_release(&c.names);
	return rc;
}

/* A read transaction around all others. One that is frozen would have to be read again when somebody writes. */
static int
sqlite_hold(void *self, struct err *e)
{
	struct sqlite_store *s = self;
	int rc = db_begin_read(s, e);

	if (rc > 0 && s->frozen) {
		db_end_read(s, 0, NULL);
		db_thaw(s);
		rc = db_begin_read(s, e);
	}
	s->held = rc > 0;
	s->held_empty = rc == 0;
	return rc < 0 ? -1 : 0;
}

static void
sqlite_release(void *self)
{
	struct sqlite_store *s = self;

	if (s->held)
		db_end_read(s, 0, NULL);
	s->held = s->held_empty = false;
}

/* ---- Locks ---- */

struct memory_lock {
	struct memory_lock *next;
	struct sqlite_store *s;
	char *path;
};

static int
sqlite_lock(void *self, const char *path, int64_t ttl_ms, int64_t wait_ms, void **lock, struct err *e)
{
	struct sqlite_store *s = self;
	char *real = realpath(s->file, NULL), *name = xasprintf("%s-lock", real ? real : s->file);
	struct rangelock *l;
	struct stat st;
	int rc = real == NULL ? db_make_parents(s, e) : 0;

	/* Whoever may use the database may lock it. */
	if (rc == 0)
		rc = rangelock_new(&l, AT_FDCWD, name, stat(s->file, &st) == 0 ? &st : NULL, path, wait_ms, e);
	if (rc == 0)
		*lock = l;
	free(real);
	free(name);
	return rc;
}

static void
sqlite_unlock(void *lock)
{
	rangelock_free(lock);
}

/* Nobody but this process could let go of it, and it would wait here: so there is no waiting. */
static int
memory_lock(void *self, const char *path, int64_t ttl_ms, int64_t wait_ms, void **lock, struct err *e)
{
	struct sqlite_store *s = self;
	struct memory_lock *l;

	for (l = s->locks; l != NULL; l = l->next)
		if (strcmp(l->path, path) == 0)
			return err_set(e, ERR_BUSY, "%s: held by this process", path);
	l = xmalloc(sizeof(*l));
	*l = (struct memory_lock){ .next = s->locks, .s = s, .path = xstrdup(path) };
	s->locks = l;
	*lock = l;
	return 0;
}

static void
memory_unlock(void *lock)
{
	struct memory_lock *l = lock, **p;

	if (l == NULL)
		return;
	for (p = &l->s->locks; *p != l; p = &(*p)->next)
		;
	*p = l->next;
	free(l->path);
	free(l);
}

#define COMMON \
	.close = sqlite_close, .stat = sqlite_stat, .list = sqlite_list, .file_open = sqlite_file_open, \
	.file_read = sqlite_file_read, .file_close = sqlite_file_close, .hold = sqlite_hold, .release = sqlite_release, .pieces = true, .commit = sqlite_commit, \
	.check = sqlite_check

static const char *const options[] = { "layout=", NULL };

const struct store_backend store_sqlite = {
	.scheme = "sqlite",
	.summary = "sqlite:FILE, one SQLite database, which AG2 can use at the same time",
	.options = options,
	.open = sqlite_open,
	.lock = sqlite_lock,
	.unlock = sqlite_unlock,
	.watch = sqlite_watch,
	.watch_wait = sqlite_watch_wait,
	.watch_close = sqlite_watch_close,
	COMMON
};

const struct store_backend store_memory = {
	.scheme = "memory",
	.summary = "memory:, gone with the process",
	.open = memory_open,
	.lock = memory_lock,
	.unlock = memory_unlock,
	COMMON
};

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
 * read as it is, and turned into ours by the first change.
 */
#include "store/sqlite_db.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/sha1.h"
#include "lock.h"
#include "path.h"
#include "store/sqlite_peek.h"

#include <fcntl.h>
#include <poll.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#define VALUE_MAX	1000000000ULL	/* SQLite's own limit for one value, which the view has to give */
#define TIMEOUT_MS	10000

static int
damaged(struct sqlite_store *s, const char *path, struct err *e)
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
	if (s->o.timeout_ms == 0)
		s->o.timeout_ms = TIMEOUT_MS;
	if (s->o.timeout_ms > INT_MAX)
		s->o.timeout_ms = INT_MAX;
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
sqlite_open(void **self, const char *where, const struct store_options *o, struct err *e)
{
	if (where[0] == '\0')
		return err_set(e, ERR_USAGE, "sqlite: needs the name of a file");
	return open_any(self, where, o, e);
}

static int
memory_open(void **self, const char *where, const struct store_options *o, struct err *e)
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

/* 1 and the row, 0 when there is no such file, -1. */
static int
find(struct sqlite_store *s, const char *path, struct row *r, struct err *e)
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
	return s->layout == LAYOUT_AG2 || is_sane(r) ? 1 : damaged(s, path, e);
}

/* The paths below a directory: from "dir/" to before "dir0". */
struct below {
	char from[PATH_BYTES_MAX + 2], to[PATH_BYTES_MAX + 2];
	size_t len;	/* of from */
};

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

/* The same in one or two parts, returned: below the root, what ag2 keeps for itself neither counts nor is deleted. */
static int
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

/* 1 when something lies below path. */
static int
is_dir(struct sqlite_store *s, const char *path, struct err *e)
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

static void
fill_stat(struct store_stat *st, const struct row *r)
{
	*st = (struct store_stat){ .size = r->size, .version = r->version, .mtime = r->mtime };
}

static int
stat_path(struct sqlite_store *s, const char *path, struct store_stat *st, struct err *e)
{
	struct row r;
	int rc = find(s, path, &r, e);

	if (rc > 0)
		fill_stat(st, &r);
	if (rc != 0)
		return rc;
	*st = (struct store_stat){ .mtime = -1, .dir = true };
	return is_dir(s, path, e);
}

/* The first question can be answered without opening the database. -1 when this one cannot. */
static int
peek(struct sqlite_store *s, const char *path, struct store_stat *st)
{
	const char *sql[LAYOUT_OBJECTS];
	struct peek_row found;
	struct row r;
	int rc;

	if (s->o.mode != STORE_READ || s->db != NULL || db_connections() > 0 || s->peeked || path[1] == '\0')
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
	fill_stat(st, &r);
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
		READING(s, rc, e, rc = stat_path(s, path, &found, e));
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

/* A name that is empty or has a NUL cannot be one of ours; there is no path by which it could be asked for. */
static void
add_child(struct children *c, const char *name, size_t len, struct store_stat st)
{
	if (len == 0 || memchr(name, '\0', len) != NULL)
		return;
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
	for (i = 0; i < c.n && rc == 0; i++) {
		const char *name = c.names.data + c.all[i].name;

		if (!(flags & STORE_LIST_ALL) && strcmp(path, "/") == 0 && strcmp(name, ".ag2") == 0)
			continue;
		rc = fn(arg, name, c.all[i].st.dir, flags & STORE_LIST_STAT ? &c.all[i].st : NULL);
	}
out:
	free(c.all);
	buf_release(&c.names);
	return rc;
}

/* ---- Reading ---- */

/* A file while it is read: one handle that goes from segment to segment. In AG2's layout there is one, the row itself. */
struct reader {
	struct sqlite_store *s;
	struct row row;
	char *path;
	char *content;		/* all of it, when it is small */
	sqlite3_blob *blob;
	uint64_t start, len;	/* the segment's first place and length */
};

static void
reader_release(struct reader *f)
{
	sqlite3_blob_close(f->blob);
	f->blob = NULL;
	free(f->path);
	free(f->content);
	f->path = f->content = NULL;
}

/* The segment that has the place. It must be one that begins at the end of the present one, or be searched for. */
static int
find_segment(struct reader *f, uint64_t place, int64_t *id, struct err *e)
{

	if (f->s->layout == LAYOUT_AG2) {
		*id = f->row.id;
		return 0;
	}
	if (place == f->row.base || (f->blob != NULL && place == f->start + f->len)) {
		*id = segment_id(&f->row, place);
		return 0;
	}
	return db_number(f->s, db_query(f->s, Q_SEGMENT, e, "ii", segment_id(&f->row, f->row.base), segment_id(&f->row, place)), id, e);
}

static int
seek(struct reader *f, uint64_t place, struct err *e)
{
	bool ag2 = f->s->layout == LAYOUT_AG2;
	int64_t id;
	int rc;

	if (f->blob != NULL && place >= f->start && place - f->start < f->len)
		return 0;
	if (find_segment(f, place, &id, e) < 0)
		return -1;
	if (f->blob != NULL)
		rc = sqlite3_blob_reopen(f->blob, id);
	else
		rc = sqlite3_blob_open(f->s->db, "main", ag2 ? "entries" : "segments", ag2 ? "content" : "data", id, 0, &f->blob);
	if ((rc & 0xff) == SQLITE_ERROR)
		return damaged(f->s, f->path, e);
	if (rc != SQLITE_OK)
		return db_fail(f->s, e);
	f->start = ag2 ? 0 : (uint64_t)id & (PLACES - 1);
	f->len = (uint64_t)sqlite3_blob_bytes(f->blob);
	return place - f->start < f->len ? 0 : damaged(f->s, f->path, e);
}

/* The len bytes from offset, which must be there. */
static int
read_bytes(struct reader *f, uint64_t offset, void *data, size_t len, struct err *e)
{
	uint64_t place = f->row.base + offset, n;
	char *out = data;

	for (; len > 0; place += n, out += n, len -= n) {
		if (seek(f, place, e) < 0)
			return -1;
		n = f->start + f->len - place;
		if (n > len)
			n = len;
		if (n > INT_MAX)
			n = INT_MAX;
		if (sqlite3_blob_read(f->blob, out, (int)n, (int)(place - f->start)) != SQLITE_OK)
			return db_fail(f->s, e);
	}
	return 0;
}

/* Fetches a small file whole, so that nothing has to be kept as it is for the reader. */
static int
fetch(struct reader *f, struct err *e)
{
	f->content = xmalloc(f->row.size + 1);
	if (read_bytes(f, 0, f->content, f->row.size, e) < 0)
		return -1;
	sqlite3_blob_close(f->blob);
	f->blob = NULL;
	return 0;
}

/* The file with its read transaction, or without one when it was fetched. 0 when it is not there. */
static int
open_reader(struct reader *f, struct err *e)
{
	struct sqlite_store *s = f->s;
	int rc = db_begin_read(s, e);

	if (rc <= 0)
		return rc;
	rc = find(s, f->path, &f->row, e);
	if (rc > 0 && f->row.size > SEGMENT && s->depth == 1 && s->frozen) {
		db_end_read(s, 0, NULL);
		if (db_thaw(s))
			return AGAIN;
		rc = db_begin_read(s, e);
	}
	if (rc > 0 && f->row.size <= SEGMENT && fetch(f, e) < 0)
		rc = -1;
	return rc > 0 && f->content == NULL && !db_torn(s) ? 1 : db_end_read(s, rc, e);
}

static int
sqlite_file_open(void *self, const char *path, void **file, struct store_stat *st, struct err *e)
{
	struct reader *f = xcalloc(1, sizeof(*f));
	int rc;

	do {
		reader_release(f);
		*f = (struct reader){ .s = self, .path = xstrdup(path) };
		rc = open_reader(f, e);
	} while (rc == AGAIN);
	if (rc > 0) {
		if (st != NULL)
			fill_stat(st, &f->row);
		*file = f;
		return 0;
	}
	reader_release(f);
	free(f);
	return rc < 0 ? -1 : err_set(e, ERR_ABSENT, "'%s' is not in the store", path);
}

static ssize_t
sqlite_file_read(void *file, uint64_t offset, void *data, size_t len, struct err *e)
{
	struct reader *f = file;

	if (offset >= f->row.size)
		return 0;
	if (len > f->row.size - offset)
		len = f->row.size - offset;
	if (f->content != NULL) {
		memcpy(data, f->content + offset, len);
		return (ssize_t)len;
	}
	if (read_bytes(f, offset, data, len, e) < 0)
		return -1;
	if (db_torn(f->s))
		return err_set(e, ERR_BUSY, "%s: changed while it was read", f->s->file);
	return (ssize_t)len;
}

static void
sqlite_file_close(void *file)
{
	struct reader *f = file;
	bool fetched;

	if (f == NULL)
		return;
	fetched = f->content != NULL;
	reader_release(f);
	if (!fetched)
		db_end_read(f->s, 0, NULL);
	free(f);
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
	return rc < 0 ? -1 : 0;
}

static void
sqlite_release(void *self)
{
	struct sqlite_store *s = self;

	if (s->held)
		db_end_read(s, 0, NULL);
	s->held = false;
}

/* ---- Changing ---- */

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)(t.tv_nsec / 1000) / 1e6;
}

/* Takes the segments that begin at [from, to) away. */
static int
cut(struct sqlite_store *s, const struct row *r, uint64_t from, uint64_t to, struct err *e)
{
	if (from >= to)
		return 0;
	return db_run(s, db_query(s, Q_CUT, e, "ii", segment_id(r, from), segment_id(r, to - 1)), e);
}

static int
check_creatable(struct sqlite_store *s, const char *path, struct err *e)
{
	char *above = xstrdup(path), *slash;
	struct row r;
	int rc = path[1] == '\0' ? 1 : is_dir(s, path, e);

	if (rc > 0)
		rc = err_set(e, ERR_CREATE, "%s: is a directory", path);
	while (rc == 0 && (slash = strrchr(above, '/')) != above && slash != NULL) {
		*slash = '\0';
		rc = find(s, above, &r, e);
		if (rc > 0)
			rc = err_set(e, ERR_CREATE, "%s: %s is a file", path, above);
	}
	free(above);
	return rc;
}

/* The row of path, or one to be saved for a new file. */
static int
place_file(struct sqlite_store *s, const char *path, struct row *r, struct err *e)
{
	int rc = find(s, path, r, e);

	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (check_creatable(s, path, e) < 0)
		return -1;
	r->base = MIDDLE;
	return 0;
}

static int
free_id(struct sqlite_store *s, int64_t *id, struct err *e)
{
	if (db_number(s, db_query(s, Q_FREE, e, ""), id, e) < 0)
		return -1;
	if (*id < 1 || *id > FILES_MAX)
		return err_set(e, ERR_DATA, "%s: full: it can hold %d files", db_name(s), FILES_MAX);
	return 0;
}

/* A new file gets its row first, since content is kept by its id. */
static int
make_file(struct sqlite_store *s, const char *path, struct row *r, struct err *e)
{
	if (r->id != 0)
		return 0;
	if (free_id(s, &r->id, e) < 0)
		return -1;
	return db_run(s, db_query(s, Q_NEW, e, "iiiiidt", r->id, (int64_t)r->base, INT64_C(0), INT64_C(0), INT64_C(1), 0.0, path), e);
}

/* Gives the row its next version and saves it. */
static int
save(struct sqlite_store *s, struct row *r, struct store_op *op, struct err *e)
{
	int64_t version;

	if (db_number(s, db_query(s, Q_VERSION, e, ""), &version, e) < 0)
		return -1;
	op->version = r->version = (uint64_t)version;
	return db_run(s, db_query(s, Q_SAVE, e, "iiiiid", r->id, (int64_t)r->base, (int64_t)r->run, (int64_t)r->size, version, now()), e);
}

static int
check_size(const char *path, uint64_t size, uint64_t more, struct err *e)
{
	if (size <= VALUE_MAX && more <= VALUE_MAX - size)
		return 0;
	return err_set(e, ERR_DATA, "%s: would be larger than 1 GB (%llu bytes), the most that a file in an SQLite store can be",
	    path, VALUE_MAX);
}

/* Moves the file back to the middle of places of its own: once in half a terabyte of what came and went at either end. */
static int
recentre(struct sqlite_store *s, struct row *r, struct err *e)
{
	struct row to = *r;
	int64_t by;

	if (free_id(s, &to.id, e) < 0)
		return -1;
	to.base = MIDDLE;
	by = segment_id(&to, to.base) - segment_id(r, r->base);
	if (db_run(s, db_query(s, Q_MOVE, e, "iii", segment_id(r, 0), segment_id(r, PLACES - 1), by), e) < 0 ||
	    db_run(s, db_query(s, Q_RENUMBER, e, "ii", r->id, to.id), e) < 0)
		return -1;
	*r = to;
	return 0;
}

/* Reads len bytes at offset of the file of a piece. */
static int
read_piece(struct sqlite_store *s, struct reader *f, const struct store_piece *p, uint64_t offset, char *out, uint64_t len,
    struct err *e)
{
	int rc;

	if (f->path == NULL) {
		f->s = s;
		rc = find(s, p->from, &f->row, e);
		if (rc < 0)
			return -1;
		f->path = xstrdup(p->from);
		if (rc == 0 || p->offset > f->row.size || p->len > f->row.size - p->offset)
			return err_set(e, ERR_CONFLICT, "%s: is not there, or not as long as it was", p->from);
	}
	return read_bytes(f, p->offset + offset, out, len, e);
}

/* The content of an operation, to be put from `place` on, in segments as if it were one piece. */
static int
put_content(struct sqlite_store *s, const struct row *r, uint64_t place, const struct store_op *op, struct err *e)
{
	struct reader f = { .s = s };
	const struct store_piece *p;
	char *segment;
	uint64_t done, n, have = 0;
	size_t i;
	int rc = 0;

	if (op->npieces == 0)
		return segment_put(s, r, place, op->data, op->len, e);
	segment = xmalloc(SEGMENT);
	for (i = 0; i < op->npieces && rc == 0; i++) {
		p = &op->pieces[i];
		for (done = 0; done < p->len && rc == 0; done += n) {
			n = p->len - done < SEGMENT - have ? p->len - done : SEGMENT - have;
			if (p->from == NULL)
				memcpy(segment + have, (const char *)op->data + p->offset + done, (size_t)n);
			else
				rc = read_piece(s, &f, p, done, segment + have, n, e);
			have += n;
			if (rc == 0 && have == SEGMENT) {
				rc = segment_put(s, r, place, segment, have, e);
				place += have;
				have = 0;
			}
		}
		reader_release(&f);
		f = (struct reader){ .s = s };
	}
	if (rc == 0 && have > 0)
		rc = segment_put(s, r, place, segment, have, e);
	free(segment);
	return rc;
}

static int
do_write(struct sqlite_store *s, struct store_op *op, struct err *e)
{
	struct row r;

	if (check_size(op->path, 0, op->len, e) < 0 || place_file(s, op->path, &r, e) < 0 || make_file(s, op->path, &r, e) < 0 ||
	    cut(s, &r, 0, PLACES, e) < 0)
		return -1;
	r.base = MIDDLE;
	r.size = op->len;
	r.run = segment_run(op->len);
	if (put_content(s, &r, r.base, op, e) < 0)
		return -1;
	return save(s, &r, op, e);
}

/* Replaces the small segments at the end by one that has op's data too. */
static int
join(struct sqlite_store *s, const struct row *r, const struct store_op *op, struct err *e)
{
	uint64_t end = r->base + r->size, from = end - r->run;
	struct buf all = BUF_INIT_MAX(2 * RUN);
	sqlite3_stmt *st = db_query(s, Q_BYTES, e, "ii", segment_id(r, from), segment_id(r, end - 1));
	int rc;

	while ((rc = db_step(s, st, e)) > 0)
		buf_add(&all, sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0));
	if (rc == 0 && all.len != r->run)
		rc = damaged(s, op->path, e);
	buf_add(&all, op->data, op->len);
	if (rc == 0)
		rc = cut(s, r, from, end, e);
	if (rc == 0)
		rc = segment_put(s, r, from, all.data, all.len, e);
	buf_release(&all);
	return rc;
}

static int
do_append(struct sqlite_store *s, struct store_op *op, struct err *e)
{
	struct row r;
	int rc;

	if (place_file(s, op->path, &r, e) < 0 || check_size(op->path, r.size, op->len, e) < 0 || make_file(s, op->path, &r, e) < 0)
		return -1;
	if (r.size + op->len > PLACES - r.base && recentre(s, &r, e) < 0)
		return -1;
	op->offset = r.size;
	if (op->len < RUN && r.run < RUN && r.run + op->len >= RUN) {
		rc = join(s, &r, op, e);
		r.run = 0;
	} else {
		rc = segment_put(s, &r, r.base + r.size, op->data, op->len, e);
		r.run = op->len < RUN && r.run < RUN ? r.run + op->len : segment_run(op->len);
	}
	r.size += op->len;
	return rc < 0 ? -1 : save(s, &r, op, e);
}

static int
drop(struct sqlite_store *s, int64_t id, struct err *e)
{
	struct row r = { .id = id };

	if (cut(s, &r, 0, PLACES, e) < 0)
		return -1;
	return db_run(s, db_query(s, Q_DROP, e, "i", id), e);
}

static int
do_delete(struct sqlite_store *s, struct store_op *op, struct err *e)
{
	struct below b[2];
	struct row r;
	sqlite3_stmt *st;
	int64_t id;
	int rc = find(s, op->path, &r, e), i, parts = below_but_private(b, op->path);

	if (rc > 0)
		rc = drop(s, r.id, e);
	for (i = 0; i < parts; i++)
		while (rc == 0 && (rc = db_step(s, st = db_query(s, Q_BELOW, e, "tt", b[i].from, b[i].to), e)) > 0) {
			id = sqlite3_column_int64(st, 0);
			sqlite3_reset(st);
			rc = drop(s, id, e);
			if (rc == 0 && sqlite3_changes(s->db) == 0)
				rc = err_set(e, ERR_DATA, "%s: damaged: a file cannot be deleted", db_name(s));
		}
	return rc;
}

/* The segment across which a file is to be cut becomes one that begins there. */
static int
split(struct sqlite_store *s, const char *path, const struct row *r, uint64_t place, struct err *e)
{
	struct reader f = { .s = s, .row = *r, .path = xstrdup(path) };
	char *piece = NULL;
	uint64_t n, end;
	int rc = seek(&f, place, e);

	if (rc < 0 || f.start == place)
		goto out;
	piece = xmalloc(SEGMENT);
	for (end = f.start + f.len; place < end && rc == 0; place += n) {
		n = end - place < SEGMENT ? end - place : SEGMENT;
		if (sqlite3_blob_read(f.blob, piece, (int)n, (int)(place - f.start)) != SQLITE_OK)
			rc = db_fail(s, e);
		else
			rc = segment_put(s, r, place, piece, n, e);
	}
out:
	free(piece);
	reader_release(&f);
	return rc;
}

/* What follows the prefix is not touched: the new one is put before it and the file begins there. */
static int
do_replace(struct sqlite_store *s, struct store_op *op, struct err *e)
{
	uint64_t place, rest;
	struct row r;

	if (find(s, op->path, &r, e) <= 0 || op->upto > r.size)
		return err_set(e, ERR_BUG, "%s: the prefix was not checked", op->path);
	if (check_size(op->path, r.size - op->upto, op->len, e) < 0)
		return -1;
	if (r.base + op->upto < op->len && recentre(s, &r, e) < 0)
		return -1;
	place = r.base + op->upto;
	if (op->upto > 0 && op->upto < r.size && split(s, op->path, &r, place, e) < 0)
		return -1;
	if (cut(s, &r, r.base, place, e) < 0 || put_content(s, &r, place - op->len, op, e) < 0)
		return -1;
	r.size = r.size - op->upto + op->len;
	r.base = place - op->len;
	rest = r.size - op->len;
	if (rest == 0)
		r.run = segment_run(op->len);
	else if (r.run > rest)
		r.run = rest;
	return save(s, &r, op, e);
}

static int
check_prefix(struct sqlite_store *s, const struct store_op *op, struct err *e)
{
	struct reader f = { .s = s };
	unsigned char sum[20];
	struct sha1 h;
	uint64_t done, n;
	char *piece;
	int rc = find(s, op->path, &f.row, e);

	if (rc < 0)
		return -1;
	if (rc == 0 || op->upto > f.row.size)
		return err_set(e, ERR_CONFLICT, "%s: has changed: it is shorter than what was to be replaced", op->path);
	if (op->unchecked)
		return 0;
	f.path = xstrdup(op->path);
	piece = xmalloc(SEGMENT);
	sha1_init(&h);
	for (done = 0, rc = 0; done < op->upto && rc == 0; done += n) {
		n = op->upto - done < SEGMENT ? op->upto - done : SEGMENT;
		rc = read_bytes(&f, done, piece, n, e);
		if (rc == 0)
			sha1_add(&h, piece, n);
	}
	sha1_end(&h, sum);
	if (rc == 0 && memcmp(sum, op->sha1, sizeof(sum)) != 0)
		rc = err_set(e, ERR_CONFLICT, "%s: has changed: its beginning is not what was to be replaced", op->path);
	free(piece);
	reader_release(&f);
	return rc;
}

static int
check_version(struct sqlite_store *s, const struct store_op *op, struct err *e)
{
	struct row r;
	int rc = find(s, op->path, &r, e);

	if (rc < 0)
		return -1;
	if (r.version == op->version)
		return 0;
	if (rc == 0)
		return err_set(e, ERR_CONFLICT, "%s: is not there, version %llu was expected", op->path, (unsigned long long)op->version);
	return err_set(e, ERR_CONFLICT, "%s: has version %llu, %llu was expected", op->path, (unsigned long long)r.version,
	    (unsigned long long)op->version);
}

static int
check_all(struct sqlite_store *s, const struct store_op *ops, size_t n, struct err *e)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++)
		if (ops[i].kind == STORE_OP_EXPECT)
			rc = check_version(s, &ops[i], e);
		else if (ops[i].kind == STORE_OP_REPLACE_PREFIX)
			rc = check_prefix(s, &ops[i], e);
	return rc;
}

/* 1 when the operations would change something: an expectation does not, nor the deletion of what is not there. */
static int
changes_something(struct sqlite_store *s, const struct store_op *ops, size_t n, struct err *e)
{
	struct store_stat st;
	size_t i;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++)
		if (ops[i].kind == STORE_OP_DELETE)
			rc = s->layout == LAYOUT_EMPTY ? 0 : stat_path(s, ops[i].path, &st, e);
		else if (ops[i].kind != STORE_OP_EXPECT)
			rc = 1;
	return rc;
}

static int
apply_all(struct sqlite_store *s, struct store_op *ops, size_t n, struct err *e)
{
	static int (*const apply[])(struct sqlite_store *, struct store_op *, struct err *) = {
		[STORE_OP_WRITE] = do_write,
		[STORE_OP_APPEND] = do_append,
		[STORE_OP_DELETE] = do_delete,
		[STORE_OP_EXPECT] = NULL,
		[STORE_OP_REPLACE_PREFIX] = do_replace,
	};
	size_t i;

	for (i = 0; i < n; i++)
		if (apply[ops[i].kind] != NULL && apply[ops[i].kind](s, &ops[i], e) < 0)
			return -1;
	return 0;
}

/* Looks before there is a database, or before it is ours: 1 when it has to be made so, 0 when nothing changes. */
static int
look_first(struct sqlite_store *s, const struct store_op *ops, size_t n, struct err *e)
{
	int rc = db_connect(s, e), change;

	if (rc < 0)
		return -1;
	if (s->layout == LAYOUT_OURS)
		return 1;
	rc = rc > 0 ? db_begin_read(s, e) : 0;
	if (rc < 0)
		return -1;
	if (rc == 0)
		s->layout = LAYOUT_EMPTY;
	change = s->layout == LAYOUT_OURS ? 1 : check_all(s, ops, n, e);
	if (change == 0)
		change = changes_something(s, ops, n, e);
	if (rc > 0)
		db_end_read(s, 0, NULL);
	return change;
}

static int
begin_change(struct sqlite_store *s, bool *made, struct err *e)
{
	int rc = db_connect(s, e);

	if (rc == 0 && db_create(s, e) == 0)
		rc = db_connect(s, e);
	if (rc <= 0)
		return -1;
	/* The log of a new database is there from its first change on. */
	*made = s->layout != LAYOUT_OURS && !db_is_wal(s);
	if (*made && s->layout == LAYOUT_EMPTY)
		db_use_log(s);
	if (db_tune(s, e) < 0 || db_run(s, db_query(s, Q_CHANGE, e, ""), e) < 0)
		return -1;
	if (s->layout != LAYOUT_OURS && layout_find(s, e) < 0) {
		db_run(s, db_query(s, Q_ROLLBACK, NULL, ""), NULL);
		return -1;
	}
	*made = *made && s->layout != LAYOUT_OURS && !db_is_wal(s);
	return 0;
}

static int
sqlite_commit(void *self, struct store_op *ops, size_t n, struct err *e)
{
	struct sqlite_store *s = self;
	bool made;
	int rc;

	if (s->o.mode == STORE_READ)
		return err_set(e, ERR_PERM, "%s: opened for reading only", db_name(s));
	if (s->depth > 0)
		return err_set(e, ERR_BUG, "%s: cannot be changed while a file of it is open for reading", db_name(s));
	rc = look_first(s, ops, n, e);
	if (rc <= 0)
		return rc;
	if (begin_change(s, &made, e) < 0)
		return -1;
	rc = check_all(s, ops, n, e);
	if (rc == 0)
		rc = layout_make(s, e);
	if (rc == 0)
		rc = apply_all(s, ops, n, e);
	if (rc == 0)
		rc = db_run(s, db_query(s, Q_COMMIT, e, ""), e);
	if (rc < 0) {
		if (!sqlite3_get_autocommit(s->db))
			db_run(s, db_query(s, Q_ROLLBACK, NULL, ""), NULL);
		db_forget(s);
		return -1;
	}
	if (made) {
		db_use_log(s);
		s->tuned = false;
	}
	return 0;
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
	int rc = real == NULL ? db_make_parents(s, e) : 0;

	if (rc == 0)
		rc = rangelock_new(&l, AT_FDCWD, name, path, wait_ms, e);
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

/* ---- Watching ---- */

#define LOOK_MS	40

/* What changes when the database does. */
struct sign {
	int64_t version;	/* of SQLite, for what others commit; 0 where it cannot be asked */
	struct timespec changed[2];
	off_t size[2];
	ino_t ino;
};

struct sqlite_watch {
	struct sqlite_store *s;
	struct sign sign;
	char *log;
	char *path;
};

/* 0 when there is no database. */
static int
look_for_sign(struct sqlite_watch *w, struct sign *sign)
{
	const char *const files[] = { w->s->file, w->log };
	sqlite3_stmt *st;
	struct stat found;
	size_t i;

	memset(sign, 0, sizeof(*sign));
	for (i = 0; i < 2; i++) {
		if (stat(files[i], &found) < 0)
			continue;
		sign->changed[i] = found.st_mtim;
		sign->size[i] = found.st_size;
		if (i == 0)
			sign->ino = found.st_ino;
	}
	if (w->s->db != NULL && !w->s->frozen && sqlite3_prepare_v2(w->s->db, "PRAGMA data_version", -1, &st, NULL) == SQLITE_OK) {
		if (sqlite3_step(st) == SQLITE_ROW)
			sign->version = sqlite3_column_int64(st, 0);
		sqlite3_finalize(st);
	}
	return sign->ino != 0;
}

static void
sqlite_watch_close(void *watch)
{
	struct sqlite_watch *w = watch;

	free(w->log);
	free(w->path);
	free(w);
}

static int
sqlite_watch(void *self, const char *path, void **watch, struct err *e)
{
	struct sqlite_watch *w = xcalloc(1, sizeof(*w));

	w->s = self;
	w->log = xasprintf("%s-wal", w->s->file);
	w->path = xstrdup(path);
	look_for_sign(w, &w->sign);
	*watch = w;
	return 0;
}

static int
sqlite_watch_wait(void *watch, int64_t wait_ms, store_hint_fn *fn, void *arg, struct err *e)
{
	struct sqlite_watch *w = watch;
	double until = clock_monotonic() + (double)wait_ms / 1e3, left;
	struct sign sign;

	for (;;) {
		if (look_for_sign(w, &sign) == 0 && w->sign.ino != 0)
			return err_set(e, ERR_NOINPUT, "%s: the database has gone", db_name(w->s));
		if (memcmp(&sign, &w->sign, sizeof(sign)) != 0) {
			w->sign = sign;
			fn(arg, w->path, 0);
			return 1;
		}
		left = (until - clock_monotonic()) * 1000;
		if (left <= 0)
			return 0;
		poll(NULL, 0, left < LOOK_MS ? (int)left + 1 : LOOK_MS);
	}
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
	.file_read = sqlite_file_read, .file_close = sqlite_file_close, .hold = sqlite_hold, .release = sqlite_release, .pieces = true, .commit = sqlite_commit

const struct store_backend store_sqlite = {
	.scheme = "sqlite",
	.summary = "sqlite:FILE, one SQLite database, which AG2 can use at the same time",
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

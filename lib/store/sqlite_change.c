/*
 * Changes of an SQLite store: each commit is one transaction. What is checked is checked within it; a store that is not there
 * yet, or is AG2's, is looked at first, so that what changes nothing neither makes nor converts a database.
 */
#include "store/sqlite.h"

#include "base/alloc.h"
#include "base/sha1.h"

#include <stdlib.h>
#include <time.h>

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
	int rc = path[1] == '\0' ? 1 : row_below(s, path, e);

	if (rc > 0)
		rc = err_set(e, ERR_CREATE, "%s: is a directory", path);
	while (rc == 0 && (slash = strrchr(above, '/')) != above && slash != NULL) {
		*slash = '\0';
		rc = row_find(s, above, &r, e);
		if (rc > 0)
			rc = err_set(e, ERR_CREATE, "%s: %s is a file", path, above);
	}
	free(above);
	return rc;
}

/* The row of path, or one to be saved for a new file. */
int
sqlite_place_file(struct sqlite_store *s, const char *path, struct row *r, struct err *e)
{
	int rc = row_find(s, path, r, e);

	if (rc > 0 && r->version > VERSION_MAX)
		return db_unversioned(s, path, r->version, e);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (check_creatable(s, path, e) < 0)
		return -1;
	r->base = MIDDLE;
	return 0;
}

int
sqlite_free_id(struct sqlite_store *s, int64_t *id, struct err *e)
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
	if (sqlite_free_id(s, &r->id, e) < 0)
		return -1;
	return db_run(s, db_query(s, Q_NEW, e, "iiiiidt", r->id, (int64_t)r->base, INT64_C(0), INT64_C(0), INT64_C(1), 0.0, path), e);
}

int
sqlite_next_version(struct sqlite_store *s, int64_t *version, struct err *e)
{
	if (db_number(s, db_query(s, Q_VERSION, e, ""), version, e) < 0)
		return -1;
	if (*version >= 1 && *version <= VERSION_MAX)
		return 0;
	return err_set(e, ERR_DATA, "%s: damaged: its counter of versions is at %lld, which no version can be; fsck --repair sets it", db_name(s), (long long)*version);
}

/* Gives the row its next version and saves it. */
static int
save(struct sqlite_store *s, struct row *r, struct store_op *op, struct err *e)
{
	int64_t version;

	if (sqlite_next_version(s, &version, e) < 0)
		return -1;
	op->version = r->version = (uint64_t)version;
	return db_run(s, db_query(s, Q_SAVE, e, "iiiiid", r->id, (int64_t)r->base, (int64_t)r->run, (int64_t)r->size, version, now()), e);
}

int
sqlite_check_size(const char *path, uint64_t size, uint64_t more, struct err *e)
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

	if (sqlite_free_id(s, &to.id, e) < 0)
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
int
sqlite_read_piece(struct sqlite_store *s, struct reader *f, const struct store_piece *p, uint64_t offset, char *out, uint64_t len,
    struct err *e)
{
	int rc;

	if (f->path == NULL) {
		f->s = s;
		rc = row_find(s, p->from, &f->row, e);
		if (rc < 0)
			return -1;
		f->path = xstrdup(p->from);
		if (rc == 0 || p->offset > f->row.size || p->len > f->row.size - p->offset)
			return store_conflict(p->from, e);
	}
	return reader_read(f, p->offset + offset, out, len, e);
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
				rc = sqlite_read_piece(s, &f, p, done, segment + have, n, e);
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

	if (sqlite_check_size(op->path, 0, op->len, e) < 0 || sqlite_place_file(s, op->path, &r, e) < 0 || make_file(s, op->path, &r, e) < 0 ||
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
		rc = row_damaged(s, op->path, e);
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

	if (sqlite_place_file(s, op->path, &r, e) < 0 || sqlite_check_size(op->path, r.size, op->len, e) < 0 || make_file(s, op->path, &r, e) < 0)
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

	if (s->layout == LAYOUT_OURS && cut(s, &r, 0, PLACES, e) < 0)
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
	int rc = row_find(s, op->path, &r, e), i, parts = below_but_private(b, op->path);

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
	int rc = reader_seek(&f, place, e);

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

	if (sqlite_place_file(s, op->path, &r, e) < 0)
		return -1;
	if (r.id == 0 || op->upto > r.size)
		return err_set(e, ERR_BUG, "%s: the prefix was not checked", op->path);
	if (sqlite_check_size(op->path, r.size - op->upto, op->len, e) < 0)
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
	int rc = row_find(s, op->path, &f.row, e);

	if (rc < 0)
		return -1;
	if (rc == 0 || op->upto > f.row.size)
		return store_conflict(op->path, e);
	if (op->unchecked)
		return 0;
	f.path = xstrdup(op->path);
	piece = xmalloc(SEGMENT);
	sha1_init(&h);
	for (done = 0, rc = 0; done < op->upto && rc == 0; done += n) {
		n = op->upto - done < SEGMENT ? op->upto - done : SEGMENT;
		rc = reader_read(&f, done, piece, n, e);
		if (rc == 0)
			sha1_add(&h, piece, n);
	}
	sha1_end(&h, sum);
	if (rc == 0 && memcmp(sum, op->sha1, sizeof(sum)) != 0)
		rc = store_conflict(op->path, e);
	free(piece);
	reader_release(&f);
	return rc;
}

static int
check_version(struct sqlite_store *s, const struct store_op *op, struct err *e)
{
	struct row r;
	int rc = row_find(s, op->path, &r, e);

	if (rc < 0)
		return -1;
	return r.version == op->version ? 0 : store_conflict(op->path, e);
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
			rc = s->layout == LAYOUT_EMPTY ? 0 : path_stat(s, ops[i].path, &st, e);
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
	struct plain p = { .s = s };
	size_t i;
	int rc = 0;

	if (s->layout == LAYOUT_AG2)
		rc = plain_begin(&p, e);
	for (i = 0; i < n && rc == 0; i++)
		if (s->layout == LAYOUT_AG2 && ops[i].kind != STORE_OP_DELETE && ops[i].kind != STORE_OP_EXPECT)
			rc = plain_apply(&p, &ops[i], e);
		else if (apply[ops[i].kind] != NULL)
			rc = apply[ops[i].kind](s, &ops[i], e);
	if (rc == 0 && s->layout == LAYOUT_AG2)
		rc = plain_end(&p, e);
	return rc;
}

/* Looks before there is a database, or before it is ours: 1 when it has to be made so, 0 when nothing changes. */
static int
look_first(struct sqlite_store *s, const struct store_op *ops, size_t n, struct err *e)
{
	int rc = db_connect(s, e), change;

	if (rc < 0)
		return -1;
	if (s->layout == s->wanted)
		return 1;
	rc = rc > 0 ? db_begin_read(s, e) : 0;
	if (rc < 0)
		return -1;
	if (rc == 0)
		s->layout = LAYOUT_EMPTY;
	change = s->layout == s->wanted ? 1 : check_all(s, ops, n, e);
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
	*made = s->wanted == LAYOUT_OURS && s->layout != LAYOUT_OURS && !db_is_wal(s);
	if (*made && s->layout == LAYOUT_EMPTY)
		db_use_log(s);
	if (db_tune(s, e) < 0 || db_run(s, db_query(s, Q_CHANGE, e, ""), e) < 0)
		return -1;
	if (db_know(s, e) < 0) {
		db_run(s, db_query(s, Q_ROLLBACK, NULL, ""), NULL);
		return -1;
	}
	*made = *made && s->layout != LAYOUT_OURS && !db_is_wal(s);
	return 0;
}

int
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

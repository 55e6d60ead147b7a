/*
 * fsck of an SQLite store: SQLite's own check, and whether rows and segments fit each other. It is looked at in one read
 * transaction first; only when there is something to repair it is looked at again in one that writes, which others wait
 * for. What is found is told when the transaction has ended.
 */
#include "store/sqlite.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <stdlib.h>

#define LOST "/.ag2/lost"	/* where content goes that no file has */

struct found {
	char *path, *kind, *what, *repaired;
};

/* A file whose content has to be laid out anew, or (no row) segments without one. */
struct broken {
	int64_t id;
	uint64_t base, size, version, have;
	char *path;
};

struct check {
	struct sqlite_store *s;
	bool repair;		/* in the transaction that writes */
	bool unread;		/* something makes the files unreadable */
	struct found *found;
	size_t n, cap;
	struct broken *broken;
	size_t nbroken, broken_cap;
};

static void
keep(void *arg, const struct store_finding *f)
{
	struct check *c = arg;

	c->found = xgrow(c->found, c->n, &c->cap, sizeof(*c->found));
	c->found[c->n++] = (struct found){ xstrdup(f->path), xstrdup(f->kind), xstrdup(f->what), f->repaired ? xstrdup(f->repaired) : NULL };
}

static void
forget(struct check *c)
{
	struct found *f;

	while (c->n > 0) {
		f = &c->found[--c->n];
		free(f->path);
		free(f->kind);
		free(f->what);
		free(f->repaired);
	}
	while (c->nbroken > 0)
		free(c->broken[--c->nbroken].path);
	c->unread = false;
}

static sqlite3_stmt *
prepare(struct sqlite_store *s, const char *sql, struct err *e)
{
	sqlite3_stmt *st = NULL;

	if (sqlite3_prepare_v2(s->db, sql, -1, &st, NULL) != SQLITE_OK)
		db_fail(s, e);
	return st;
}

/* The bytes of a path as they can be told; NULL is SQL's. */
static const char *
with_nuls(struct buf *out, const char *path, size_t len)
{
	const char *nul;

	buf_reset(out);
	for (; path != NULL && (nul = memchr(path, '\0', len)) != NULL; len -= (size_t)(nul + 1 - path), path = nul + 1) {
		buf_add(out, path, (size_t)(nul - path));
		buf_adds(out, "\\0");
	}
	if (path != NULL)
		buf_add(out, path, len);
	return out->data;
}

/* ---- SQLite's own structures ---- */

/* How many things SQLite finds wrong; the first of them is in first. -1 on error. */
static int
count_damage(struct sqlite_store *s, struct buf *first, struct err *e)
{
	sqlite3_stmt *st = prepare(s, "PRAGMA integrity_check(100)", e);
	const char *line;
	int rc, n = 0;

	buf_reset(first);
	while ((rc = db_step(s, st, e)) > 0) {
		line = (const char *)sqlite3_column_text(st, 0);
		if (line != NULL && strcmp(line, "ok") != 0 && n++ == 0)
			buf_adds(first, line);
	}
	sqlite3_finalize(st);
	return rc < 0 ? -1 : n;
}

/* Indexes can be made anew from their tables; nothing else can. */
static int
check_database(struct check *c, struct err *e)
{
	struct buf first = BUF_INIT, left = BUF_INIT;
	struct err why = ERR_INIT;
	int n = count_damage(c->s, &first, &why), after = 1;

	if (n > 0 && c->repair && db_exec(c->s, "REINDEX", NULL) == 0)
		after = count_damage(c->s, &left, NULL);
	if (n < 0 && why.code == ERR_DATA) {
		buf_adds(&first, why.msg);
		n = 1;
	}
	c->unread = n > 0 && (!c->repair || after != 0);
	if (n > 0)
		store_found(keep, c, "/", "damaged", c->repair && after == 0 ? "the indexes were made anew" : NULL,
		    "SQLite finds the database damaged (%d %s): %s; what can be read of it can be exported", n, n == 1 ? "fault" : "faults", first.data);
	buf_release(&first);
	buf_release(&left);
	return n < 0 ? err_set(e, why.code, "%s", why.msg) : 0;
}

/* ---- Rows and segments ---- */

static void
add_broken(struct check *c, const struct broken *b)
{
	c->broken = xgrow(c->broken, c->nbroken, &c->broken_cap, sizeof(*c->broken));
	c->broken[c->nbroken++] = *b;
}

/* What is known of a file while its segments go by. */
struct going {
	struct broken b;
	uint64_t run;
	uint64_t expect;	/* the place where the next segment has to begin */
	bool fits, run_fits;
};

static void
begin_file(struct going *g, sqlite3_stmt *st)
{
	const char *path = (const char *)sqlite3_column_text(st, 1);

	*g = (struct going){ .b = { .id = sqlite3_column_int64(st, 0), .base = (uint64_t)sqlite3_column_int64(st, 2),
	    .size = (uint64_t)sqlite3_column_int64(st, 3), .version = (uint64_t)sqlite3_column_int64(st, 5),
	    .path = xstrdup(path != NULL ? path : "") }, .run = (uint64_t)sqlite3_column_int64(st, 4) };
	g->expect = g->b.base;
	g->fits = g->b.base <= PLACES && g->b.size <= PLACES - g->b.base && g->run <= g->b.size && g->b.id >= 1 && g->b.id <= FILES_MAX;
	g->run_fits = g->run == 0;
}

static void
take_segment(struct going *g, uint64_t place, uint64_t len, bool blob)
{
	g->fits = g->fits && blob && len > 0 && place == g->expect;
	g->run_fits = g->run_fits || place == g->b.base + g->b.size - g->run;
	g->expect = place + len;
	g->b.have += len;
}

static void
end_file(struct check *c, struct going *g)
{
	if (g->fits && g->run_fits && g->expect == g->b.base + g->b.size)
		free(g->b.path);
	else
		add_broken(c, &g->b);
}

/* Both go by in the order of ids. */
static int
compare(struct check *c, struct err *e)
{
	sqlite3_stmt *files = prepare(c->s, "SELECT id, path, base, size, run, version FROM files ORDER BY id", e);
	sqlite3_stmt *segments = prepare(c->s, "SELECT id, length(data), typeof(data) = 'blob' FROM segments ORDER BY id", e);
	struct broken lost;
	struct going g;
	int f = db_step(c->s, files, e), s = f < 0 ? -1 : db_step(c->s, segments, e);
	int64_t id;

	while (f > 0 && s >= 0) {
		begin_file(&g, files);
		for (; s > 0 && (id = sqlite3_column_int64(segments, 0) >> 40) <= g.b.id; s = db_step(c->s, segments, e)) {
			if (id == g.b.id) {
				take_segment(&g, (uint64_t)sqlite3_column_int64(segments, 0) & (PLACES - 1),
				    (uint64_t)sqlite3_column_int64(segments, 1), sqlite3_column_int(segments, 2));
				continue;
			}
			lost = (struct broken){ .id = id, .have = (uint64_t)sqlite3_column_int64(segments, 1) };
			if (c->nbroken > 0 && c->broken[c->nbroken - 1].path == NULL && c->broken[c->nbroken - 1].id == id)
				c->broken[c->nbroken - 1].have += lost.have;
			else
				add_broken(c, &lost);
		}
		end_file(c, &g);
		f = db_step(c->s, files, e);
	}
	for (; s > 0 && f >= 0; s = db_step(c->s, segments, e)) {
		id = sqlite3_column_int64(segments, 0) >> 40;
		if (c->nbroken == 0 || c->broken[c->nbroken - 1].path != NULL || c->broken[c->nbroken - 1].id != id)
			add_broken(c, &(struct broken){ .id = id });
		c->broken[c->nbroken - 1].have += (uint64_t)sqlite3_column_int64(segments, 1);
	}
	sqlite3_finalize(files);
	sqlite3_finalize(segments);
	return f < 0 || s < 0 ? -1 : 0;
}

/*
 * Moves the content that is there, in its order, to places of its own, without a gap. What a damaged database numbers its
 * segments with is any integer; a row can have a number that no segment could have.
 */
static int
lay_out(struct sqlite_store *s, int64_t from, struct row *to, struct err *e)
{
	sqlite3_stmt *st = prepare(s, "SELECT id, CAST(data AS BLOB) FROM segments WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT 1", e);
	bool any = from >= INT64_MIN / (int64_t)PLACES && from <= INT64_MAX / (int64_t)PLACES;
	int64_t first = any ? from * (int64_t)PLACES : 0, end = first + (int64_t)(PLACES - 1), at = first;
	int rc = st == NULL ? -1 : sqlite_free_id(s, &to->id, e), n;

	to->base = MIDDLE;
	to->size = to->run = 0;
	while (rc == 0 && any) {
		sqlite3_bind_int64(st, 1, at);
		sqlite3_bind_int64(st, 2, end);
		if ((rc = db_step(s, st, e)) <= 0)
			break;
		at = sqlite3_column_int64(st, 0);
		n = sqlite3_column_bytes(st, 1);
		rc = segment_put(s, to, to->base + to->size, sqlite3_column_blob(st, 1), (size_t)n, e);
		to->size += (uint64_t)n;
		sqlite3_reset(st);
		if (at == end)
			break;
		at++;
	}
	sqlite3_finalize(st);
	if (rc == 0 && any)
		rc = db_run(s, db_query(s, Q_CUT, e, "ii", first, end), e);
	return rc;
}

static int
mend_file(struct sqlite_store *s, const struct broken *b, struct err *e)
{
	struct row to = { 0 };
	int64_t version;

	if (lay_out(s, b->id, &to, e) < 0 || sqlite_next_version(s, &version, e) < 0 ||
	    db_run(s, db_query(s, Q_RENUMBER, e, "ii", b->id, to.id), e) < 0)
		return -1;
	return db_run(s, db_query(s, Q_SAVE, e, "iiiiid", to.id, (int64_t)to.base, (int64_t)to.run, (int64_t)to.size, version, -1.0), e);
}

static int
mend_lost(struct sqlite_store *s, const struct broken *b, const char *path, struct err *e)
{
	struct row to = { 0 };
	int64_t version;

	if (lay_out(s, b->id, &to, e) < 0 || sqlite_next_version(s, &version, e) < 0)
		return -1;
	return db_run(s, db_query(s, Q_NEW, e, "iiiiidt", to.id, (int64_t)to.base, (int64_t)to.run, (int64_t)to.size, version, -1.0, path), e);
}

/* A name below LOST that is free. */
static char *
lost_path(struct sqlite_store *s, int64_t id)
{
	struct row r;
	char *path;
	int n;

	for (n = 0;; n++) {
		path = n == 0 ? xasprintf(LOST "/%" PRId64, id) : xasprintf(LOST "/%" PRId64 ".%d", id, n);
		if (n == 1000 || row_find(s, path, &r, NULL) <= 0)
			return path;
		free(path);
	}
}

static int
tell_broken(struct check *c, const struct broken *b, struct err *e)
{
	char *path = NULL, *repaired = NULL;
	int rc = 0;

	if (b->path == NULL) {
		path = lost_path(c->s, b->id);
		if (c->repair && (rc = mend_lost(c->s, b, path, e)) == 0)
			repaired = xasprintf("moved to %s", path);
		store_found(keep, c, "/", "lost", repaired, "%" PRIu64 " bytes of content belong to no file", b->have);
	} else {
		if (c->repair && (rc = mend_file(c->s, b, e)) == 0)
			repaired = xasprintf("it has the %" PRIu64 " bytes that are there", b->have);
		if (b->have == b->size)
			store_found(keep, c, b->path, "damaged", repaired, "its segments do not follow each other as they should");
		else
			store_found(keep, c, b->path, "damaged", repaired, "its segments have %" PRIu64 " bytes, its size is %" PRId64, b->have, (int64_t)b->size);
	}
	free(path);
	free(repaired);
	return rc;
}

/* ---- Versions and names ---- */

/* A counter is put in step with the files; those whose version is none count for nothing, and get another then. */
static int
check_counter(struct check *c, struct err *e)
{
	static const char greatest[] = "SELECT COALESCE(max(version), 0) FROM files WHERE version <= " VERSION_TEXT;
	int64_t rows, counter, top;
	const char *repaired = c->repair ? "set" : NULL;

	if (layout_number(c->s, "SELECT count(*) FROM counter", &rows, e) < 0 || layout_number(c->s, "SELECT COALESCE(max(version), 0) FROM counter", &counter, e) < 0 ||
	    layout_number(c->s, greatest, &top, e) < 0)
		return -1;
	if (rows != 1)
		store_found(keep, c, "/", "version", repaired, "the counter of versions is there %" PRId64 " times: nothing can be written", rows);
	else if (counter > VERSION_MAX)
		store_found(keep, c, "/", "version", repaired, "the counter of versions is at %" PRId64 ", which no version can be: nothing can be written", counter);
	else if (counter < top)
		store_found(keep, c, "/", "version", repaired, "versions would fall: the counter is at %" PRId64 ", a file has %" PRId64, counter, top);
	else
		return 0;
	if (!c->repair)
		return 0;
	if (db_exec(c->s, "DELETE FROM counter; INSERT INTO counter VALUES(0)", e) < 0)
		return -1;
	return db_exec(c->s, "UPDATE counter SET version = (SELECT COALESCE(max(version), 0) FROM files WHERE version <= " VERSION_TEXT ")", e);
}

/* Files with a version that none can be: each gets the next one. */
static int
check_versions(struct check *c, struct err *e)
{
	static const char next_plain[] = "UPDATE entries SET version = 1 + max((SELECT COALESCE(max(version), 0) FROM entries WHERE version <= " VERSION_TEXT "), "
	    "(SELECT user_version FROM pragma_user_version)) WHERE rowid = ?1 RETURNING version";
	struct sqlite_store *s = c->s;
	bool ours = s->layout == LAYOUT_OURS;
	sqlite3_stmt *st = prepare(s, ours ? "SELECT id, path, version FROM files WHERE version > " VERSION_TEXT " ORDER BY path" :
	    "SELECT rowid, path, version FROM entries WHERE version > " VERSION_TEXT " ORDER BY path", e);
	sqlite3_stmt *set = prepare(s, ours ? "UPDATE files SET version = (SELECT version FROM counter) WHERE id = ?1 RETURNING version" : next_plain, e);
	struct buf shown = BUF_INIT;
	int64_t version = 0;
	char *repaired;
	int rc = set == NULL ? -1 : db_step(s, st, e);

	for (; rc > 0; rc = rc < 0 ? -1 : db_step(s, st, e)) {
		repaired = NULL;
		if (c->repair) {
			sqlite3_bind_int64(set, 1, sqlite3_column_int64(st, 0));
			if ((ours && sqlite_next_version(s, &version, e) < 0) || db_number(s, set, &version, e) < 0)
				rc = -1;
			repaired = xasprintf("it has %" PRId64, version);
		}
		store_found(keep, c, with_nuls(&shown, (const char *)sqlite3_column_text(st, 1), (size_t)sqlite3_column_bytes(st, 1)), "version", repaired,
		    "its version is %s, which none can be: it cannot be changed", (const char *)sqlite3_column_text(st, 2));
		free(repaired);
	}
	sqlite3_finalize(st);
	sqlite3_finalize(set);
	buf_release(&shown);
	return rc;
}

/* Paths that no command can say, and files below files: AG2 can make both. */
static int
check_paths(struct check *c, struct err *e)
{
	bool ours = c->s->layout == LAYOUT_OURS;
	sqlite3_stmt *st = prepare(c->s, ours ? "SELECT path, typeof(path) = 'text' FROM files ORDER BY path" :
	    "SELECT path, typeof(path) = 'text' FROM entries ORDER BY path", e);
	struct buf shown = BUF_INIT;
	const char *path;
	size_t len;
	int rc;

	while ((rc = db_step(c->s, st, e)) > 0) {
		path = (const char *)sqlite3_column_text(st, 0);
		len = (size_t)sqlite3_column_bytes(st, 0);
		if (path == NULL || sqlite3_column_int(st, 1) == 0 || !path_can_be(path, len))
			store_found(keep, c, with_nuls(&shown, path, len), "hidden", NULL, "is a path that no command of ours can name");
		else if (row_below(c->s, path, NULL) > 0)
			store_found(keep, c, path, "both", NULL, "is a file and a directory: it is read, but cannot be copied to a disk");
	}
	sqlite3_finalize(st);
	buf_release(&shown);
	return rc;
}

/* ---- All of it ---- */

static int
check_all(struct check *c, struct err *e)
{
	struct err why = ERR_INIT;
	size_t i;
	int rc = check_database(c, &why);

	if (rc == 0 && c->s->layout == LAYOUT_OURS)
		rc = check_counter(c, &why);
	if (rc == 0)
		rc = check_versions(c, &why);
	if (rc == 0 && c->s->layout == LAYOUT_OURS)
		rc = compare(c, &why);
	for (i = 0; i < c->nbroken && rc == 0; i++)
		rc = tell_broken(c, &c->broken[i], &why);
	if (rc == 0)
		rc = check_paths(c, &why);
	/* What cannot be read because of the damage that was told needs no second word. */
	if (rc < 0 && why.code == ERR_DATA && c->unread && !c->repair)
		return 0;
	return rc < 0 ? err_set(e, why.code, "%s", why.msg) : 0;
}

/* What layout_find() refuses. A database that never was a store, or is none at all, is an error. */
static int
unusable(struct check *c, const struct err *why, const char *repaired, struct err *e)
{
	int64_t id = 0;

	if (why->code != ERR_DATA || layout_number(c->s, "PRAGMA application_id", &id, NULL) < 0 || id != APPLICATION_ID)
		return err_set(e, why->code, "%s", why->msg);
	store_found(keep, c, "/", "layout", repaired, "%s", why->msg);
	c->unread = repaired == NULL;
	return 0;
}

static int
look(struct check *c, struct err *e)
{
	struct err why = ERR_INIT;
	int rc;

	do {
		forget(c);
		rc = db_begin_read(c->s, &why);
		if (rc > 0 && c->s->frozen) {
			db_end_read(c->s, 0, NULL);
			db_thaw(c->s);
			rc = db_begin_read(c->s, &why);
		}
		if (rc < 0)
			return unusable(c, &why, NULL, e);
		if (rc > 0)
			rc = db_end_read(c->s, check_all(c, e), e);
	} while (rc == AGAIN);
	return rc;
}

static int
mend(struct check *c, struct err *e)
{
	struct sqlite_store *s = c->s;
	struct err why = ERR_INIT;
	int rc = db_connect(s, e);

	if (rc <= 0 || db_tune(s, e) < 0 || db_run(s, db_query(s, Q_CHANGE, e, ""), e) < 0)
		return -1;
	forget(c);
	c->repair = true;
	rc = layout_find(s, &why);
	if (rc < 0 && (rc = layout_mend(s, e)) >= 0)
		rc = unusable(c, &why, rc > 0 ? "the view and its triggers were made anew" : NULL, e) < 0 ? -1 : rc;
	else if (rc == 0)
		rc = 1;
	if (rc > 0)
		rc = check_all(c, e);
	if (rc == 0)
		rc = db_run(s, db_query(s, Q_COMMIT, e, ""), e);
	if (rc < 0) {
		if (!sqlite3_get_autocommit(s->db))
			db_run(s, db_query(s, Q_ROLLBACK, NULL, ""), NULL);
		db_forget(s);
	}
	return rc;
}

int
sqlite_check(void *self, bool repair, store_finding_fn *fn, void *arg, struct err *e)
{
	struct check c = { .s = self };
	size_t i;
	int rc = look(&c, e);

	if (rc == 0 && repair && c.n > 0 && mend(&c, e) < 0) {
		/* With damage that SQLite cannot get around nothing was repaired. */
		c.repair = false;
		rc = c.unread ? look(&c, e) : -1;
	}
	for (i = 0; i < c.n && rc == 0; i++)
		fn(arg, &(struct store_finding){ c.found[i].path, c.found[i].kind, c.found[i].what, c.found[i].repaired });
	if (rc == 0)
		rc = c.unread ? 0 : 1;
	forget(&c);
	free(c.found);
	free(c.broken);
	return rc;
}

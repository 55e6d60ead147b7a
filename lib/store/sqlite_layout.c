#include "store/sqlite_db.h"

#include "base/alloc.h"
#include "base/sha1.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * An INSERT into the view writes the file whatever its OR clause, as AG2's OR REPLACE does. The triggers assign versions
 * themselves: AG2 goes on counting from what was the greatest when it opened the database. Every opening parses all
 * this, so it is kept short.
 */
#define TABLES 3	/* of these come first */

static const struct {
	const char *name;
	const char *sql;	/* as sqlite_schema keeps it */
} schema[LAYOUT_OBJECTS] = {
	{ "files",
	"CREATE TABLE files(\n"
	"\tid INTEGER PRIMARY KEY CHECK(id < 8388608),\n"
	"\tpath TEXT NOT NULL UNIQUE,\n"
	"\tbase INTEGER NOT NULL DEFAULT 549755813888,\n"
	"\tsize INTEGER NOT NULL,\n"
	"\trun INTEGER NOT NULL DEFAULT 0,\n"
	"\tversion INTEGER NOT NULL,\n"
	"\tmtime REAL\n"
	")" },
	{ "segments", "CREATE TABLE segments(id INTEGER PRIMARY KEY, data BLOB NOT NULL)" },
	{ "counter", "CREATE TABLE counter(version INTEGER NOT NULL)" },
	{ "entries",
	"CREATE VIEW entries(path, content, version) AS\n"
	"SELECT path, COALESCE((\n"
	"\tSELECT CASE length(CAST(group_concat(data, '') AS BLOB)) WHEN size THEN CAST(group_concat(data, '') AS BLOB) END\n"
	"\tFROM (SELECT data FROM segments WHERE id BETWEEN files.id << 40 AND files.id << 40 | 1099511627775 ORDER BY id)\n"
	"), (\n"
	"\tWITH RECURSIVE r(n, c) AS (\n"
	"\t\tSELECT 0, x'' UNION ALL\n"
	"\t\tSELECT n + length(data), CAST(r.c || data AS BLOB) FROM r JOIN segments\n"
	"\t\tON segments.id = (files.id << 40) + base + n WHERE data <> x''\n"
	"\t) SELECT r.c FROM r ORDER BY n DESC LIMIT 1\n"
	")), version FROM files" },
	{ "entries_insert",
	"CREATE TRIGGER entries_insert INSTEAD OF INSERT ON entries BEGIN\n"
	"\tUPDATE counter SET version = version + 1;\n"
	"\tINSERT INTO files(path, size, version, mtime)\n"
	"\tSELECT NEW.path, length(CAST(NEW.content AS BLOB)), version, julianday('now') * 86400 - 210866760000\n"
	"\tFROM counter WHERE 1 ON CONFLICT(path) DO UPDATE\n"
	"\tSET base = excluded.base, size = excluded.size, run = 0, version = excluded.version, mtime = excluded.mtime;\n"
	"\tDELETE FROM segments WHERE id IN (SELECT s.id FROM files f JOIN segments s\n"
	"\tON s.id BETWEEN f.id << 40 AND f.id << 40 | 1099511627775 WHERE path = NEW.path AND NEW.content NOT NULL);\n"
	"\tINSERT INTO segments SELECT id << 40 | base, CAST(NEW.content AS BLOB) FROM files WHERE path = NEW.path AND size;\n"
	"END" },
	{ "entries_update",
	"CREATE TRIGGER entries_update INSTEAD OF UPDATE ON entries BEGIN\n"
	"\tINSERT INTO entries VALUES(NEW.path, NEW.content, 0);\n"
	"\tDELETE FROM entries WHERE path = OLD.path AND path <> NEW.path;\n"
	"END" },
	{ "entries_delete",
	"CREATE TRIGGER entries_delete INSTEAD OF DELETE ON entries BEGIN\n"
	"\tDELETE FROM segments WHERE id IN (SELECT s.id FROM files f JOIN segments s\n"
	"\tON s.id BETWEEN f.id << 40 AND f.id << 40 | 1099511627775 WHERE path = OLD.path);\n"
	"\tDELETE FROM files WHERE path = OLD.path;\n"
	"END" },
};

/*
 * The SHA-1 of each text that one of the view and the triggers had before. Nothing of ours needs them, so such a database is read
 * as it is, and the next change makes them what they are now. The tables never change without LAYOUT_VERSION.
 */
static const unsigned char before[][20] = {
	{ 0xbc, 0xd1, 0x29, 0x78, 0xed, 0x04, 0xeb, 0x1d, 0x36, 0xf2, 0x32, 0xe4, 0xcb, 0x23, 0x27, 0x68, 0x16, 0x07, 0xcd, 0x12 },
};

/* AG2's, compared without regard to white space and case. */
static const char ag2_table[] = "CREATE TABLE entries (path TEXT PRIMARY KEY, content BLOB NOT NULL, version INTEGER NOT NULL DEFAULT 0)";

static const char *const queries[QUERIES] = {
	[Q_BEGIN] = "BEGIN",
	[Q_CHANGE] = "BEGIN IMMEDIATE",
	[Q_COMMIT] = "COMMIT",
	[Q_ROLLBACK] = "ROLLBACK",
	[Q_SCHEMA] = "PRAGMA schema_version",
	[Q_FIND] = "SELECT id, size, version, mtime, base, run FROM files WHERE path = ?1",
	[Q_NAMES] = "SELECT path FROM files WHERE path >= ?1 AND path < ?2 ORDER BY path",
	[Q_LIST] = "SELECT path, size, version, mtime FROM files WHERE path >= ?1 AND path < ?2 ORDER BY path",
	[Q_SEGMENT] = "SELECT id FROM segments WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT 1",
	[Q_BYTES] = "SELECT data FROM segments WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
	[Q_CUT] = "DELETE FROM segments WHERE id BETWEEN ?1 AND ?2",
	[Q_PUT] = "INSERT INTO segments VALUES(?1, ?2)",
	[Q_MOVE] = "UPDATE segments SET id = id + ?3 WHERE id BETWEEN ?1 AND ?2",
	/* The next id, or, when those are used up, the first gap. Segments that belong to no file are not in the way of one. */
	[Q_FREE] = ("SELECT COALESCE(NULLIF(max(0, COALESCE((SELECT max(id) FROM files), 0), COALESCE((SELECT max(id) FROM segments), 0) >> 40) + 1, 8388608), "
	    "(SELECT min(i) + 1 FROM (SELECT 0 AS i UNION ALL SELECT id FROM files UNION ALL SELECT id >> 40 FROM segments) "
	    "WHERE i >= 0 AND NOT EXISTS (SELECT 1 FROM files WHERE id = i + 1) "
	    "AND NOT EXISTS (SELECT 1 FROM segments WHERE id BETWEEN (i + 1) << 40 AND (i + 1) << 40 | 1099511627775)))"),
	[Q_NEW] = "INSERT INTO files(id, base, run, size, version, mtime, path) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
	[Q_SAVE] = "UPDATE files SET base = ?2, run = ?3, size = ?4, version = ?5, mtime = ?6 WHERE id = ?1",
	[Q_RENUMBER] = "UPDATE files SET id = ?2 WHERE id = ?1",
	[Q_DROP] = "DELETE FROM files WHERE id = ?1",
	[Q_BELOW] = "SELECT id FROM files WHERE path >= ?1 AND path < ?2 LIMIT 1",
	[Q_VERSION] = "UPDATE counter SET version = version + 1 RETURNING version",
};

#define AG2_SIZE "CASE typeof(content) WHEN 'blob' THEN length(content) ELSE length(CAST(content AS BLOB)) END"

static const char *const queries_ag2[QUERIES] = {
	[Q_FIND] = "SELECT rowid, " AG2_SIZE ", version, -1, 0, 0 FROM entries WHERE path = ?1",
	[Q_NAMES] = "SELECT path FROM entries WHERE path >= ?1 AND path < ?2 ORDER BY path",
	[Q_LIST] = "SELECT path, " AG2_SIZE ", version, -1 FROM entries WHERE path >= ?1 AND path < ?2 ORDER BY path",
	[Q_DROP] = "DELETE FROM entries WHERE rowid = ?1",
	[Q_BELOW] = "SELECT rowid FROM entries WHERE path >= ?1 AND path < ?2 LIMIT 1",
	/* What no version can be is beyond all, text too. */
	[Q_PLAIN_TOP] = "SELECT COALESCE(max(iif(version > " VERSION_TEXT ", 9223372036854775807, version)), 0) FROM entries",
	[Q_PLAIN_ODD] = "SELECT CAST(path AS TEXT) FROM entries WHERE version > " VERSION_TEXT " LIMIT 1",
	[Q_PLAIN_PUT] = "INSERT INTO entries VALUES(?1, ?2, ?3) ON CONFLICT(path) DO UPDATE SET content = excluded.content, version = excluded.version",
	[Q_PLAIN_ADD] = "UPDATE entries SET content = CAST(content || ?2 AS BLOB), version = ?3 WHERE path = ?1",
};

const char *
layout_query(enum layout layout, enum query q)
{
	return layout == LAYOUT_AG2 && queries_ag2[q] != NULL ? queries_ag2[q] : queries[q];
}

void
layout_statements(const char *sql[LAYOUT_OBJECTS])
{
	size_t i;

	for (i = 0; i < LAYOUT_OBJECTS; i++)
		sql[i] = schema[i].sql;
}

/* ---- What kind of database it is ---- */

static bool
same_sql(const char *a, const char *b)
{
	for (;; a++, b++) {
		a += strspn(a, " \t\r\n");
		b += strspn(b, " \t\r\n");
		if (sqlite3_strnicmp(a, b, 1) != 0)
			return false;
		if (*a == '\0')
			return true;
	}
}

struct objects {
	unsigned all;		/* rows of sqlite_schema */
	unsigned ours;		/* those that are word for word ours, or were before */
	unsigned tables;	/* ... and tables */
	bool old;		/* ... and were before */
	bool made_new;		/* no other than a view or trigger has the name of one of ours */
	bool ag2;		/* AG2's table */
	bool ag2_alone;		/* ... and no trigger on it */
	char odd[128];		/* an object that has to do with our tables and is not ours */
};

static bool
was_ours(const char *sql)
{
	unsigned char sum[20];
	struct sha1 h;
	size_t i;

	sha1_init(&h);
	sha1_add(&h, sql, strlen(sql));
	sha1_end(&h, sum);
	for (i = 0; i < sizeof(before) / sizeof(before[0]); i++)
		if (memcmp(sum, before[i], sizeof(sum)) == 0)
			return true;
	return false;
}

static void
count_object(struct objects *o, const char *type, const char *name, const char *table, const char *sql)
{
	size_t i;

	for (i = 0; i < LAYOUT_OBJECTS; i++) {
		bool same;

		if (strcmp(name, schema[i].name) != 0)
			continue;
		same = strcmp(sql, schema[i].sql) == 0;
		if (!same && (i < TABLES || !was_ours(sql)))
			continue;
		o->old = o->old || !same;
		o->ours++;
		o->tables += i < TABLES;
		return;
	}
	if (strcmp(type, "table") == 0 && same_sql(sql, ag2_table)) {
		o->ag2 = true;
		return;
	}
	if (strcmp(type, "trigger") == 0 && sqlite3_stricmp(table, "entries") == 0)
		o->ag2_alone = false;
	for (i = 0; i < LAYOUT_OBJECTS; i++)
		if (sqlite3_stricmp(table, schema[i].name) == 0 && sql[0] != '\0') {
			o->made_new = o->made_new && i >= TABLES && (strcmp(type, "view") == 0 || strcmp(type, "trigger") == 0);
			snprintf(o->odd, sizeof(o->odd), "%s", name);
		}
}

int
layout_number(struct sqlite_store *s, const char *sql, int64_t *out, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int rc;

	rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL) == SQLITE_OK ? db_number(s, st, out, e) : db_fail(s, e);
	sqlite3_finalize(st);
	return rc;
}

static int
is_known(struct sqlite_store *s, struct err *e)
{
	int64_t version;

	if (layout_number(s, "PRAGMA user_version", &version, e) < 0)
		return -1;
	if (version <= LAYOUT_VERSION)
		return 0;
	return err_set(e, ERR_DATA, "%s: made by a newer ag2 (layout %lld, this one knows %d)", db_name(s), (long long)version,
	    LAYOUT_VERSION);
}

/* Why this is no store. */
static int
refuse(struct sqlite_store *s, const struct objects *o, struct err *e)
{
	int64_t id;

	if (layout_number(s, "PRAGMA application_id", &id, e) < 0 || (id == APPLICATION_ID && is_known(s, e) < 0))
		return -1;
	if (o->odd[0] != '\0' && (id == APPLICATION_ID || o->ag2))
		return err_set(e, ERR_DATA, "%s: its '%s' is not what ag2 made: not used", db_name(s), o->odd);
	if (id == APPLICATION_ID)
		return err_set(e, ERR_DATA, "%s: damaged: its tables are not all there", db_name(s));
	return err_set(e, ERR_DATA, "%s: an SQLite database, but not a store", db_name(s));
}

/* In UTF-16 paths would not be in the order of their bytes. */
static int
is_utf8(struct sqlite_store *s, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int rc = -1;

	if (sqlite3_prepare_v2(s->db, "PRAGMA encoding", -1, &st, NULL) != SQLITE_OK)
		db_fail(s, e);
	else if (db_step(s, st, e) > 0)
		rc = strcmp((const char *)sqlite3_column_text(st, 0), "UTF-8") == 0 ? 0 :
		    err_set(e, ERR_DATA, "%s: its text is UTF-16, which AG2 does not make", db_name(s));
	sqlite3_finalize(st);
	return rc;
}

static int
count_objects(struct sqlite_store *s, struct objects *o, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int rc;

	*o = (struct objects){ .ag2_alone = true, .made_new = true };
	if (sqlite3_prepare_v2(s->db, "SELECT type, name, tbl_name, COALESCE(sql, '') FROM sqlite_master", -1, &st, NULL) != SQLITE_OK)
		return db_fail(s, e);
	while ((rc = db_step(s, st, e)) > 0) {
		o->all++;
		count_object(o, (const char *)sqlite3_column_text(st, 0), (const char *)sqlite3_column_text(st, 1),
		    (const char *)sqlite3_column_text(st, 2), (const char *)sqlite3_column_text(st, 3));
	}
	sqlite3_finalize(st);
	return rc;
}

int
layout_find(struct sqlite_store *s, struct err *e)
{
	struct objects o;
	int rc;

	db_forget(s);
	if (count_objects(s, &o, e) < 0)
		return -1;
	s->old = o.old;
	if (o.ours == LAYOUT_OBJECTS && o.odd[0] == '\0')
		s->layout = LAYOUT_OURS;
	else if (o.ours == 0 && o.ag2 && o.ag2_alone)
		s->layout = LAYOUT_AG2;
	else if (o.all == 0)
		s->layout = LAYOUT_EMPTY;
	else
		return refuse(s, &o, e);
	rc = s->layout == LAYOUT_OURS ? is_known(s, e) : is_utf8(s, e);
	if (rc < 0)
		s->layout = LAYOUT_UNKNOWN;
	return rc;
}

/* ---- Making it ours ---- */

static int
create_objects(struct sqlite_store *s, size_t from, size_t to, struct err *e)
{
	size_t i;

	for (i = from; i < to; i++)
		if (db_exec(s, schema[i].sql, e) < 0)
			return -1;
	return 0;
}

/* One file of AG2's to ours; its content is never held whole. */
static int
migrate_file(struct sqlite_store *s, int64_t id, int64_t rowid, sqlite3_value *path, uint64_t version, struct err *e)
{
	struct row r = { .id = id, .base = MIDDLE, .version = version, .mtime = -1 };
	char *piece = xmalloc(SEGMENT);
	sqlite3_blob *blob = NULL;
	uint64_t done = 0, n;
	int rc = -1;

	if (sqlite3_blob_open(s->db, "main", "entries", "content", rowid, 0, &blob) != SQLITE_OK) {
		db_fail(s, e);
		goto out;
	}
	r.size = (uint64_t)sqlite3_blob_bytes(blob);
	r.run = segment_run(r.size);
	for (; done < r.size; done += n) {
		n = r.size - done < SEGMENT ? r.size - done : SEGMENT;
		if (sqlite3_blob_read(blob, piece, (int)n, (int)done) != SQLITE_OK) {
			db_fail(s, e);
			goto out;
		}
		if (segment_put(s, &r, r.base + done, piece, n, e) < 0)
			goto out;
	}
	rc = db_run(s, db_query(s, Q_NEW, e, "iiiiidv", r.id, (int64_t)r.base, (int64_t)r.run, (int64_t)r.size, (int64_t)r.version,
	    r.mtime, path), e);
out:
	sqlite3_blob_close(blob);
	free(piece);
	return rc;
}

/* A path that no command can name is kept as it is. */
static int
migrate_files(struct sqlite_store *s, int64_t *top, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int64_t id = 0, rowid;
	int rc;

	if (sqlite3_prepare_v2(s->db, "SELECT rowid, path, version FROM entries ORDER BY path", -1, &st, NULL) != SQLITE_OK)
		return db_fail(s, e);
	while ((rc = db_step(s, st, e)) > 0) {
		int64_t version = sqlite3_column_int64(st, 2);

		rowid = sqlite3_column_int64(st, 0);
		if (sqlite3_column_type(st, 1) == SQLITE_NULL) {
			rc = err_set(e, ERR_DATA, "%s: row %lld of the table 'entries' has no path: nothing can be changed until it gets one or is deleted", db_name(s), (long long)rowid);
			break;
		}
		if (version > VERSION_MAX) {
			rc = db_unversioned(s, (const char *)sqlite3_column_text(st, 1), (uint64_t)version, e);
			break;
		}
		if (version < 1)
			version = 1;
		if (version > *top)
			*top = version;
		if (migrate_file(s, ++id, rowid, sqlite3_column_value(st, 1), (uint64_t)version, e) < 0) {
			rc = -1;
			break;
		}
	}
	sqlite3_finalize(st);
	return rc;
}

static int
make_ours(struct sqlite_store *s, struct err *e)
{
	char sql[256];
	int64_t top = 0;

	if (s->layout == LAYOUT_AG2 && layout_number(s, "PRAGMA user_version", &top, e) < 0)
		return -1;
	if (create_objects(s, 0, TABLES, e) < 0)
		return -1;
	if (s->layout == LAYOUT_AG2 && (migrate_files(s, &top, e) < 0 || db_exec(s, "DROP TABLE entries", e) < 0))
		return -1;
	snprintf(sql, sizeof(sql), "INSERT INTO counter VALUES(%lld); PRAGMA application_id = %d; PRAGMA user_version = %d",
	    (long long)top, APPLICATION_ID, LAYOUT_VERSION);
	return create_objects(s, TABLES, LAYOUT_OBJECTS, e) < 0 ? -1 : db_exec(s, sql, e);
}

/* ---- Making it AG2's ---- */

int
layout_set_top(struct sqlite_store *s, int64_t top, struct err *e)
{
	char sql[60];

	snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", top < INT32_MAX ? (int)top : INT32_MAX);
	return db_exec(s, sql, e);
}

/* The segments of the file, one behind the other, into its row: the content is never held whole. */
static int
restore_content(struct sqlite_store *s, const struct row *r, int64_t rowid, sqlite3_stmt *segments, struct err *e)
{
	sqlite3_blob *blob = NULL;
	uint64_t at = 0, n;
	int rc;

	if (sqlite3_blob_open(s->db, "main", "entries", "content", rowid, 1, &blob) != SQLITE_OK)
		return db_fail(s, e);
	sqlite3_bind_int64(segments, 1, segment_id(r, r->base));
	sqlite3_bind_int64(segments, 2, segment_id(r, r->base + r->size) - 1);
	while ((rc = db_step(s, segments, e)) > 0) {
		n = (uint64_t)sqlite3_column_bytes(segments, 0);
		if (n > r->size - at || sqlite3_blob_write(blob, sqlite3_column_blob(segments, 0), (int)n, (int)at) != SQLITE_OK)
			break;
		at += n;
	}
	sqlite3_reset(segments);
	sqlite3_blob_close(blob);
	if (rc < 0)
		return -1;
	return at == r->size ? 0 : err_set(e, ERR_DATA, "%s: damaged: the segments of a file do not fit its size", db_name(s));
}

static int
restore_files(struct sqlite_store *s, struct err *e)
{
	sqlite3_stmt *files = NULL, *segments = NULL, *put = NULL;
	struct row r;
	int rc = -1;

	if (sqlite3_prepare_v2(s->db, "SELECT id, base, size, version, path FROM files ORDER BY path", -1, &files, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(s->db, "SELECT data FROM segments WHERE id BETWEEN ?1 AND ?2 ORDER BY id", -1, &segments, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(s->db, "INSERT INTO entries VALUES(?1, ?2, ?3)", -1, &put, NULL) != SQLITE_OK) {
		db_fail(s, e);
		goto out;
	}
	while ((rc = db_step(s, files, e)) > 0) {
		r = (struct row){ .id = sqlite3_column_int64(files, 0), .base = (uint64_t)sqlite3_column_int64(files, 1), .size = (uint64_t)sqlite3_column_int64(files, 2) };
		sqlite3_bind_value(put, 1, sqlite3_column_value(files, 4));
		sqlite3_bind_zeroblob64(put, 2, r.size);
		sqlite3_bind_int64(put, 3, sqlite3_column_int64(files, 3));
		if (db_run(s, put, e) < 0 || (r.size > 0 && restore_content(s, &r, sqlite3_last_insert_rowid(s->db), segments, e) < 0)) {
			rc = -1;
			break;
		}
	}
out:
	sqlite3_finalize(files);
	sqlite3_finalize(segments);
	sqlite3_finalize(put);
	return rc;
}

static int
make_plain(struct sqlite_store *s, struct err *e)
{
	int64_t top;

	if (s->layout == LAYOUT_EMPTY)
		return db_exec(s, ag2_table, e);
	/* The triggers go with the view. */
	if (layout_number(s, "SELECT version FROM counter", &top, e) < 0 || db_exec(s, "DROP VIEW entries", e) < 0 ||
	    db_exec(s, ag2_table, e) < 0 || restore_files(s, e) < 0)
		return -1;
	if (db_exec(s, "DROP TABLE files; DROP TABLE segments; DROP TABLE counter; PRAGMA application_id = 0", e) < 0)
		return -1;
	return layout_set_top(s, top, e);
}

/* The view and the triggers as they are now. */
static int
make_view(struct sqlite_store *s, struct err *e)
{
	char sql[100];
	size_t i;

	/* With the view go its triggers. */
	for (i = TABLES; i < LAYOUT_OBJECTS; i++) {
		snprintf(sql, sizeof(sql), "DROP %s IF EXISTS %s", i == TABLES ? "VIEW" : "TRIGGER", schema[i].name);
		if (db_exec(s, sql, e) < 0)
			return -1;
	}
	return create_objects(s, TABLES, LAYOUT_OBJECTS, e);
}

int
layout_make(struct sqlite_store *s, struct err *e)
{
	int rc;

	if (s->layout == s->wanted && !s->old)
		return 0;
	if (s->layout == LAYOUT_EMPTY && db_sync_parents(s, e) < 0)
		return -1;
	if (s->layout == s->wanted)
		rc = make_view(s, e);
	else
		rc = s->wanted == LAYOUT_OURS ? make_ours(s, e) : make_plain(s, e);
	if (rc < 0)
		return -1;
	db_forget(s);
	s->layout = s->wanted;
	s->old = false;
	return db_number(s, db_query(s, Q_SCHEMA, e, ""), &s->schema, e);
}

int
layout_mend(struct sqlite_store *s, struct err *e)
{
	struct objects o;
	int64_t id, version;

	db_forget(s);
	if (count_objects(s, &o, e) < 0 || layout_number(s, "PRAGMA application_id", &id, e) < 0 ||
	    layout_number(s, "PRAGMA user_version", &version, e) < 0)
		return -1;
	if (o.tables != TABLES || !o.made_new || o.ag2 || id != APPLICATION_ID || version != LAYOUT_VERSION)
		return 0;
	if (make_view(s, e) < 0 || layout_find(s, e) < 0)
		return -1;
	return 1;
}

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
 * statement of AG2 works; the sum of the segments is compared with the size there, because group_concat stops at a NUL
 * in versions of SQLite before ours (3.40). We ourselves use neither the view nor the triggers, and have both switched
 * off: a database that someone else prepared cannot make us run its SQL. A database that AG2 made is read as it is, and
 * turned into ours by the first change.
 */
#include "store/backend.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/sha1.h"
#include "lock.h"
#include "path.h"
#include "store/sqlite_peek.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define APPLICATION_ID	0x61673273	/* "ag2s" */
#define LAYOUT_VERSION	1
#define VALUE_MAX	1000000000ULL	/* SQLite's own limit for one value, which the view has to give */
#define SEGMENT		(64 * 1024)	/* larger content is cut at this */
#define RUN		(16 * 1024)	/* small segments are joined when together they have as much */
#define PLACES		(UINT64_C(1) << 40)
#define MIDDLE		(UINT64_C(1) << 39)
#define FILES_MAX	8388607		/* what is left of 63 bits */
#define TIMEOUT_MS	10000

enum layout { LAYOUT_UNKNOWN, LAYOUT_EMPTY, LAYOUT_AG2, LAYOUT_OURS };

#define TABLES 3	/* of these come first */

static const struct {
	const char *name;
	const char *sql;	/* as sqlite_schema keeps it */
} schema[] = {
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
	"SELECT path, (\n"
	"\tSELECT CASE length(c) WHEN size THEN c ELSE (\n"
	"\t\tWITH RECURSIVE r(n, c) AS (\n"
	"\t\t\tSELECT 0, x'' UNION ALL\n"
	"\t\t\tSELECT n + length(data), CAST(r.c || data AS BLOB) FROM r JOIN segments\n"
	"\t\t\tON segments.id = (files.id << 40) + base + n WHERE data <> x''\n"
	"\t\t) SELECT r.c FROM r ORDER BY n DESC LIMIT 1\n"
	"\t) END FROM (\n"
	"\t\tSELECT COALESCE(CAST(group_concat(data, '') AS BLOB), x'') AS c FROM (SELECT data FROM segments\n"
	"\t\tWHERE id BETWEEN files.id << 40 AND files.id << 40 | 1099511627775 ORDER BY id)\n"
	"\t)\n"
	"), version FROM files" },
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
#define SCHEMA (sizeof(schema) / sizeof(schema[0]))

/* AG2's, compared without regard to white space and case. */
static const char ag2_table[] = "CREATE TABLE entries (path TEXT PRIMARY KEY, content BLOB NOT NULL, version INTEGER NOT NULL DEFAULT 0)";

enum query {
	Q_BEGIN, Q_CHANGE, Q_COMMIT, Q_ROLLBACK,
	Q_FIND,		/* these three are there in AG2's layout too */
	Q_NAMES,
	Q_LIST,
	Q_SEGMENT, Q_BYTES, Q_CUT, Q_PUT, Q_MOVE,
	Q_FREE, Q_NEW, Q_SAVE, Q_RENUMBER, Q_DROP, Q_BELOW, Q_VERSION,
	QUERIES
};

static const char *const queries[QUERIES] = {
	[Q_BEGIN] = "BEGIN",
	[Q_CHANGE] = "BEGIN IMMEDIATE",
	[Q_COMMIT] = "COMMIT",
	[Q_ROLLBACK] = "ROLLBACK",
	[Q_FIND] = "SELECT id, size, version, mtime, base, run FROM files WHERE path = ?1",
	[Q_NAMES] = "SELECT path FROM files WHERE path >= ?1 AND path < ?2 ORDER BY path",
	[Q_LIST] = "SELECT path, size, version, mtime FROM files WHERE path >= ?1 AND path < ?2 ORDER BY path",
	[Q_SEGMENT] = "SELECT id FROM segments WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT 1",
	[Q_BYTES] = "SELECT data FROM segments WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
	[Q_CUT] = "DELETE FROM segments WHERE id BETWEEN ?1 AND ?2",
	[Q_PUT] = "INSERT INTO segments VALUES(?1, ?2)",
	[Q_MOVE] = "UPDATE segments SET id = id + ?3 WHERE id BETWEEN ?1 AND ?2",
	/* The next id, or, when those are used up, the first gap. */
	[Q_FREE] = ("SELECT COALESCE((SELECT NULLIF(COALESCE(max(id), 0) + 1, 8388608) FROM files), (SELECT min(i) + 1 FROM "
	    "(SELECT 0 AS i UNION ALL SELECT id FROM files) WHERE NOT EXISTS (SELECT 1 FROM files WHERE id = i + 1)))"),
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
};

struct sqlite_store {
	char *file;		/* NULL: in memory */
	struct store_options o;
	sqlite3 *db;		/* NULL while there is no file, or before the first use */
	enum layout layout;
	unsigned depth;		/* read transactions that are open */
	bool frozen;		/* opened as a file that does not change: see freeze() */
	bool live;		/* not to be frozen: what is read must stay as it is for longer */
	bool tuned;		/* durability was set */
	sqlite3_stmt *statements[QUERIES];
	struct memory_lock *locks;
	bool peeked;		/* a question was already asked without opening it */
};

/* A row of files. */
struct row {
	int64_t id;		/* 0: not there yet */
	uint64_t base, size, run, version;
	double mtime;
};

/* ---- SQLite's errors and statements ---- */

static const char *
name_of(const struct sqlite_store *s)
{
	return s->file ? s->file : "memory:";
}

static enum err_code
code_of(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return ERR_BUSY;
	case SQLITE_PERM:
	case SQLITE_AUTH:
	case SQLITE_READONLY:
		return ERR_PERM;
	case SQLITE_FULL:
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
	case SQLITE_PROTOCOL:
	case SQLITE_NOLFS:
	case SQLITE_NOMEM:
		return ERR_IO;
	case SQLITE_MISUSE:
		return ERR_BUG;
	default:
		return ERR_DATA;
	}
}

/* Reports what SQLite said last. */
static int
fail(struct sqlite_store *s, struct err *e)
{
	int rc = sqlite3_extended_errcode(s->db), sys = sqlite3_system_errno(s->db);

	switch (rc & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(e, ERR_BUSY, "%s: held by another process", name_of(s));
	case SQLITE_NOTADB:
		return err_set(e, ERR_DATA, "%s: not an SQLite database", name_of(s));
	case SQLITE_CORRUPT:
		return err_set(e, ERR_DATA, "%s: damaged: %s", name_of(s), sqlite3_errmsg(s->db));
	case SQLITE_FULL:
		return err_set(e, ERR_IO, "%s: no space left on the device", name_of(s));
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
		if (sys != 0) {
			errno = sys;
			err_sys(e, "%s", name_of(s));
			if (e != NULL && e->code == ERR_NOINPUT)
				e->code = ERR_IO;
			return -1;
		}
	}
	return err_set(e, code_of(rc), "%s: %s", name_of(s), sqlite3_errmsg(s->db));
}

static int
damaged(struct sqlite_store *s, const char *path, struct err *e)
{
	return err_set(e, ERR_DATA, "%s: '%s' is damaged: its segments do not fit its size", name_of(s), path);
}

/* Runs one statement that gives nothing. */
static int
exec(struct sqlite_store *s, const char *sql, struct err *e)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(s, e);
}

/*
 * The statement of q in the layout at hand, with its parameters bound as types says: t text (const char *), i int64_t,
 * d double, b bytes (const void *, size_t). All are borrowed until it is reset. NULL on error.
 */
static sqlite3_stmt *
query(struct sqlite_store *s, enum query q, struct err *e, const char *types, ...)
{
	sqlite3_stmt **st = &s->statements[q];
	const char *sql = s->layout == LAYOUT_AG2 && queries_ag2[q] ? queries_ag2[q] : queries[q];
	const void *data;
	int i, rc = SQLITE_OK;
	va_list ap;

	if (*st == NULL)
		rc = sqlite3_prepare_v2(s->db, sql, -1, st, NULL);
	va_start(ap, types);
	for (i = 1; *types != '\0' && rc == SQLITE_OK; i++)
		switch (*types++) {
		case 't':
			rc = sqlite3_bind_text(*st, i, va_arg(ap, const char *), -1, SQLITE_STATIC);
			break;
		case 'i':
			rc = sqlite3_bind_int64(*st, i, va_arg(ap, int64_t));
			break;
		case 'd':
			rc = sqlite3_bind_double(*st, i, va_arg(ap, double));
			break;
		case 'b':
			data = va_arg(ap, const void *);
			rc = sqlite3_bind_blob64(*st, i, data, va_arg(ap, size_t), SQLITE_STATIC);
			break;
		}
	va_end(ap);
	if (rc == SQLITE_OK)
		return *st;
	fail(s, e);
	return NULL;
}

/* 1 when there is a row, 0 at the end, -1 on error. The statement is reset but for a row. */
static int
step(struct sqlite_store *s, sqlite3_stmt *st, struct err *e)
{
	int rc;

	if (st == NULL)
		return -1;
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		return 1;
	rc = rc == SQLITE_DONE ? 0 : fail(s, e);
	sqlite3_reset(st);
	return rc;
}

/* Runs a statement of which no row is wanted; st may be NULL, after a failure of query(). */
static int
run(struct sqlite_store *s, sqlite3_stmt *st, struct err *e)
{
	int rc = step(s, st, e);

	if (rc > 0)
		sqlite3_reset(st);
	return rc < 0 ? -1 : 0;
}

/* The one number that a statement gives. */
static int
number(struct sqlite_store *s, sqlite3_stmt *st, int64_t *out, struct err *e)
{
	int rc = step(s, st, e);

	if (rc == 0)
		return err_set(e, ERR_DATA, "%s: damaged: a row is missing", name_of(s));
	if (rc < 0)
		return -1;
	*out = sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	return 0;
}

static void
forget_layout(struct sqlite_store *s)
{
	int i;

	for (i = Q_FIND; i < QUERIES; i++) {
		sqlite3_finalize(s->statements[i]);
		s->statements[i] = NULL;
	}
	s->layout = LAYOUT_UNKNOWN;
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
	unsigned ours;		/* those that are word for word ours */
	bool ag2;		/* AG2's table */
	bool ag2_alone;		/* ... and no trigger on it */
	char odd[128];		/* an object that has to do with our tables and is not ours */
};

static void
count_object(struct objects *o, const char *type, const char *name, const char *table, const char *sql)
{
	size_t i;

	for (i = 0; i < SCHEMA; i++) {
		if (strcmp(name, schema[i].name) == 0 && strcmp(sql, schema[i].sql) == 0) {
			o->ours++;
			return;
		}
	}
	if (strcmp(type, "table") == 0 && same_sql(sql, ag2_table)) {
		o->ag2 = true;
		return;
	}
	if (strcmp(type, "trigger") == 0 && sqlite3_stricmp(table, "entries") == 0)
		o->ag2_alone = false;
	for (i = 0; i < SCHEMA; i++)
		if (sqlite3_stricmp(table, schema[i].name) == 0 && sql[0] != '\0')
			snprintf(o->odd, sizeof(o->odd), "%s", name);
}

static int
pragma(struct sqlite_store *s, const char *sql, int64_t *out, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int rc;

	rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL) == SQLITE_OK ? number(s, st, out, e) : fail(s, e);
	sqlite3_finalize(st);
	return rc;
}

static int
is_known(struct sqlite_store *s, struct err *e)
{
	int64_t version;

	if (pragma(s, "PRAGMA user_version", &version, e) < 0)
		return -1;
	if (version <= LAYOUT_VERSION)
		return 0;
	return err_set(e, ERR_DATA, "%s: made by a newer ag2 (layout %lld, this one knows %d)", name_of(s), (long long)version,
	    LAYOUT_VERSION);
}

/* Why this is no store. */
static int
refuse(struct sqlite_store *s, const struct objects *o, struct err *e)
{
	int64_t id;

	if (pragma(s, "PRAGMA application_id", &id, e) < 0 || (id == APPLICATION_ID && is_known(s, e) < 0))
		return -1;
	if (o->odd[0] != '\0' && (id == APPLICATION_ID || o->ag2))
		return err_set(e, ERR_DATA, "%s: its '%s' is not what ag2 made: not used", name_of(s), o->odd);
	if (id == APPLICATION_ID)
		return err_set(e, ERR_DATA, "%s: damaged: its tables are not all there", name_of(s));
	return err_set(e, ERR_DATA, "%s: an SQLite database, but not a store", name_of(s));
}

/* In UTF-16 paths would not be in the order of their bytes. */
static int
is_utf8(struct sqlite_store *s, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int rc = -1;

	if (sqlite3_prepare_v2(s->db, "PRAGMA encoding", -1, &st, NULL) != SQLITE_OK)
		fail(s, e);
	else if (step(s, st, e) > 0)
		rc = strcmp((const char *)sqlite3_column_text(st, 0), "UTF-8") == 0 ? 0 :
		    err_set(e, ERR_DATA, "%s: its text is UTF-16, which AG2 does not make", name_of(s));
	sqlite3_finalize(st);
	return rc;
}

/* Finds the layout, within a transaction. */
static int
classify(struct sqlite_store *s, struct err *e)
{
	struct objects o = { .ag2_alone = true };
	sqlite3_stmt *st = NULL;
	int rc;

	forget_layout(s);
	if (sqlite3_prepare_v2(s->db, "SELECT type, name, tbl_name, COALESCE(sql, '') FROM sqlite_master", -1, &st, NULL) != SQLITE_OK)
		return fail(s, e);
	while ((rc = step(s, st, e)) > 0) {
		o.all++;
		count_object(&o, (const char *)sqlite3_column_text(st, 0), (const char *)sqlite3_column_text(st, 1),
		    (const char *)sqlite3_column_text(st, 2), (const char *)sqlite3_column_text(st, 3));
	}
	sqlite3_finalize(st);
	if (rc < 0)
		return -1;
	if (o.ours == SCHEMA && o.odd[0] == '\0')
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

/* ---- Opening ---- */

static unsigned connections;	/* of this process, to whatever file */

static void
disconnect(struct sqlite_store *s)
{
	int i;

	for (i = 0; i < QUERIES; i++) {
		sqlite3_finalize(s->statements[i]);
		s->statements[i] = NULL;
	}
	if (s->db != NULL)
		connections--;
	sqlite3_close(s->db);
	s->db = NULL;
	s->layout = LAYOUT_UNKNOWN;
	s->frozen = s->tuned = false;
}

static sqlite3_file *
file_pointer(struct sqlite_store *s)
{
	sqlite3_file *f = NULL;

	sqlite3_file_control(s->db, "main", SQLITE_FCNTL_FILE_POINTER, &f);
	return f != NULL && f->pMethods != NULL ? f : NULL;
}

/* Whether the header says that there is a write-ahead log. Read through SQLite: closing a descriptor of our own would drop its locks. */
static bool
is_wal(struct sqlite_store *s)
{
	sqlite3_file *f = file_pointer(s);
	unsigned char v[2];

	return f != NULL && f->pMethods->xRead(f, v, sizeof(v), 18) == SQLITE_OK && v[0] == 2 && v[1] == 2;
}

static bool
log_exists(struct sqlite_store *s)
{
	return access(sqlite3_filename_wal(sqlite3_db_filename(s->db, "main")), F_OK) == 0;
}

/* The journal of a change that was not finished, which would have to be undone. */
static bool
journal_exists(struct sqlite_store *s)
{
	return access(sqlite3_filename_journal(sqlite3_db_filename(s->db, "main")), F_OK) == 0;
}

/* The locked-down connection: nothing in the database's schema is run, nothing of it is trusted. */
static int
connect_flags(struct sqlite_store *s, const char *name, int flags, struct err *e)
{
	static bool configured;
	int rc;

	/* No statistics, and few pages to begin with: a command's one question has to be quick. */
	if (!configured) {
		sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
		sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 4);
		configured = true;
	}
	rc = sqlite3_open_v2(name, &s->db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, NULL);

	if (s->db == NULL)
		return err_set(e, ERR_IO, "%s: out of memory", name_of(s));
	connections++;
	if (rc != SQLITE_OK) {
		fail(s, e);
		disconnect(s);
		return -1;
	}
	sqlite3_extended_result_codes(s->db, 1);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_busy_timeout(s->db, (int)s->o.timeout_ms);
	return 0;
}

static bool
can_write_beside(const char *file)
{
	char *dir = xstrdup(file), *slash = strrchr(dir, '/');
	bool can;

	*(slash == dir ? slash + 1 : slash) = '\0';
	can = faccessat(AT_FDCWD, dir, W_OK, AT_EACCESS) == 0;
	free(dir);
	return can;
}

/* The name under which SQLite opens a file that does not change. */
static char *
immutable_uri(const char *file)
{
	struct buf uri = BUF_INIT;

	buf_adds(&uri, "file:");
	for (; *file != '\0'; file++)
		if (strchr("%?#", *file) != NULL)
			buf_addf(&uri, "%%%02x", (unsigned char)*file);
		else
			buf_addch(&uri, *file);
	buf_adds(&uri, "?immutable=1");
	return buf_detach(&uri, NULL);
}

/* A lock as every user of the database holds it, on a connection that by itself takes none. */
static int
lock_shared(struct sqlite_store *s, struct err *e)
{
	sqlite3_file *f = file_pointer(s);
	unsigned waited;
	int rc = f ? SQLITE_BUSY : SQLITE_IOERR;

	for (waited = 0; rc == SQLITE_BUSY; waited++) {
		rc = f->pMethods->xLock(f, SQLITE_LOCK_SHARED);
		if (rc == SQLITE_BUSY && waited >= s->o.timeout_ms)
			return err_set(e, ERR_BUSY, "%s: held by another process", s->file);
		if (rc == SQLITE_BUSY)
			usleep(1000);
	}
	return rc == SQLITE_OK ? 0 : err_set(e, code_of(rc), "%s: cannot be locked for reading", s->file);
}

/*
 * To take part in a write-ahead log, a reader makes files beside the database: that takes most of the time of a short
 * question, is not possible where one may not write, and of a file that one may not write it locks the owner out. While
 * there is no log, the database can be read as a file that does not change. Nobody who uses the log can remove it while
 * we hold our lock: so when there is none after reading either, nothing was written meanwhile (see torn()).
 *
 * 1 when it is so opened, 0 when it cannot be: there is a log, or none is used.
 */
static int
freeze(struct sqlite_store *s, struct err *e)
{
	char *uri = immutable_uri(s->file);
	int rc = connect_flags(s, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, e);

	free(uri);
	if (rc < 0)
		return -1;
	if (is_wal(s) && (rc = lock_shared(s, e)) == 0 && !log_exists(s) && !journal_exists(s)) {
		s->frozen = true;
		return 1;
	}
	disconnect(s);
	return rc;
}

/* 1 when there is a file, 0 when there need not be one yet, -1 on error. */
static int
look_for(struct sqlite_store *s, struct err *e)
{
	struct stat st;

	if (stat(s->file, &st) < 0) {
		if (errno == ENOENT && s->o.mode == STORE_CREATE)
			return 0;
		return err_sys(e, "%s", s->file);
	}
	return S_ISREG(st.st_mode) ? 1 : err_set(e, ERR_DATA, "%s: not a file", s->file);
}

/* 1 when connected, 0 when there is no file, -1 on error. */
static int
connect_file(struct sqlite_store *s, struct err *e)
{
	int rc;

	if (s->db != NULL)
		return 1;
	rc = look_for(s, e);
	if (rc <= 0)
		return rc;
	if (s->o.mode == STORE_READ && !s->live && (rc = freeze(s, e)) != 0)
		return rc;
	return connect_flags(s, s->file, SQLITE_OPEN_READWRITE, e) < 0 ? -1 : 1;
}

/* Whether the database was frozen and need not be; then it has to be opened again. */
static bool
thaw(struct sqlite_store *s)
{
	if (!s->frozen || faccessat(AT_FDCWD, s->file, W_OK, AT_EACCESS) < 0 || !can_write_beside(s->file))
		return false;
	s->live = true;
	disconnect(s);
	return true;
}

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
		rc = connect_flags(s, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, e);
	} else {
		/* SQLite takes names with a colon and without a slash for something else. */
		s->file = where[0] == '/' ? xstrdup(where) : xasprintf("./%s", where);
		rc = look_for(s, e);
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

/* ---- Read transactions ---- */

/* Something was written under a frozen database: what was read may be neither the one nor the other. */
static bool
torn(struct sqlite_store *s)
{
	return s->frozen && log_exists(s);
}

/* 1: end it with end_read(). 0: there is nothing in the store. Within another one it is part of that. */
static int
begin_read(struct sqlite_store *s, struct err *e)
{
	int rc;

	if (s->depth > 0) {
		s->depth++;
		return 1;
	}
	rc = connect_file(s, e);
	if (rc <= 0)
		return rc;
	if (run(s, query(s, Q_BEGIN, e, ""), e) < 0)
		return -1;
	if (s->layout != LAYOUT_OURS && classify(s, e) < 0)
		rc = -1;
	else if (s->layout == LAYOUT_EMPTY)
		rc = 0;
	if (rc > 0)
		s->depth++;
	else
		run(s, query(s, Q_COMMIT, NULL, ""), NULL);
	return rc;
}

enum { AGAIN = 2 };

/* Gives rc back, or AGAIN when all has to be read once more. */
static int
end_read(struct sqlite_store *s, int rc, struct err *e)
{
	s->depth--;
	if (torn(s)) {
		if (s->depth > 0)
			return err_set(e, ERR_BUSY, "%s: changed while it was read", s->file);
		disconnect(s);
		return AGAIN;
	}
	/* It changed nothing: when this fails, there is nothing to be undone. */
	if (s->depth == 0)
		run(s, query(s, Q_COMMIT, NULL, ""), NULL);
	return rc;
}

/* Begins again after what end_read() answers AGAIN to. */
#define READING(s, rc, e, body) \
	do { \
		rc = begin_read(s, e); \
		if (rc > 0) { \
			body; \
			rc = end_read(s, rc, e); \
		} \
	} while (rc == AGAIN)

/* While we held our lock nobody could remove the log; with it in place the file alone is not the whole database. */
static void
remove_log(struct sqlite_store *s)
{
	if (!torn(s) || !thaw(s))
		return;
	if (begin_read(s, NULL) > 0)
		end_read(s, 0, NULL);
}

static void
sqlite_close(void *self)
{
	struct sqlite_store *s = self;

	if (s == NULL)
		return;
	remove_log(s);
	disconnect(s);
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
	st = query(s, Q_FIND, e, "t", path);
	rc = step(s, st, e);
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
		st = query(s, Q_NAMES, e, "tt", b[i].from, b[i].to);
		rc = step(s, st, e);
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
	const char *sql[SCHEMA];
	struct peek_row found;
	struct row r;
	size_t i;
	int rc;

	if (s->o.mode != STORE_READ || s->db != NULL || connections > 0 || s->peeked || path[1] == '\0')
		return -1;
	s->peeked = true;
	for (i = 0; i < SCHEMA; i++)
		sql[i] = schema[i].sql;
	rc = sqlite_peek(s->file, sql, SCHEMA, APPLICATION_ID, LAYOUT_VERSION, path, &found);
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

static int
compare_children(const void *x, const void *y, void *names)
{
	const struct child *a = x, *b = y;
	int c = strcmp((char *)names + a->name, (char *)names + b->name);

	return c ? c : (int)a->st.dir - (int)b->st.dir;
}

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
	st = query(s, flags & STORE_LIST_STAT ? Q_LIST : Q_NAMES, e, "tt", b.from, b.to);
	while ((rc = step(s, st, e)) > 0) {
		const char *p = (const char *)sqlite3_column_text(st, 0), *slash;
		size_t len = (size_t)sqlite3_column_bytes(st, 0);

		/* In the order of another encoding or of a damaged index other paths can come. */
		if (p == NULL || len < b.len || memcmp(p, b.from, b.len) != 0) {
			rc = err_set(e, ERR_DATA, "%s: damaged: its paths are not in order", name_of(s));
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
	if (c.n > 0)
		qsort_r(c.all, c.n, sizeof(*c.all), compare_children, c.names.data);
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

static int64_t
segment_id(const struct row *r, uint64_t place)
{
	return (int64_t)((uint64_t)r->id << 40 | place);
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
	return number(f->s, query(f->s, Q_SEGMENT, e, "ii", segment_id(&f->row, f->row.base), segment_id(&f->row, place)), id, e);
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
		return fail(f->s, e);
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
			return fail(f->s, e);
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
	int rc = begin_read(s, e);

	if (rc <= 0)
		return rc;
	rc = find(s, f->path, &f->row, e);
	if (rc > 0 && f->row.size > SEGMENT && s->depth == 1 && s->frozen) {
		end_read(s, 0, NULL);
		if (thaw(s))
			return AGAIN;
		rc = begin_read(s, e);
	}
	if (rc > 0 && f->row.size <= SEGMENT && fetch(f, e) < 0)
		rc = -1;
	return rc > 0 && f->content == NULL && !torn(s) ? 1 : end_read(s, rc, e);
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
	return rc < 0 ? -1 : err_set(e, ERR_ABSENT, "%s: not in the store", path);
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
	if (torn(f->s))
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
		end_read(f->s, 0, NULL);
	free(f);
}

/* ---- Making, tuning and migrating a database ---- */

static int
sync_dir(const char *dir, struct err *e)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return err_sys(e, "%s", dir);
	if (fsync(fd) < 0 && errno != EINVAL)
		rc = err_sys(e, "%s", dir);
	close(fd);
	return rc;
}

/* The directories above the file, 0700. */
static int
make_parents(struct sqlite_store *s, struct err *e)
{
	char *path = xstrdup(s->file), *p = path, *slash, *last = path;
	int rc = 0;

	while (rc == 0 && (slash = strchr(p + 1, '/')) != NULL) {
		*slash = '\0';
		if (mkdir(path, 0700) == 0) {
			if (s->o.sync == STORE_SYNC_FULL) {
				char keep = *last;

				*last = '\0';
				rc = sync_dir(path[0] ? path : "/", e);
				*last = keep;
			}
		} else if (errno != EEXIST && access(path, F_OK) < 0) {
			rc = err_sys(e, "cannot create the directory %s", path);
		}
		*slash = '/';
		last = p = slash;
	}
	free(path);
	return rc;
}

static int
create_file(struct sqlite_store *s, struct err *e)
{
	int fd;

	if (make_parents(s, e) < 0)
		return -1;
	fd = open(s->file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 && errno != EEXIST)
		return err_sys(e, "cannot create %s", s->file);
	if (fd >= 0)
		close(fd);
	return 0;
}

/* File systems of other hosts: the log's index is shared memory, which has to be one for all who use the database. */
static bool
is_remote(const char *file)
{
	static const uint32_t remote[] = {
		0x6969 /* nfs */, 0x517b /* smb */, 0xff534d42 /* cifs */, 0xfe534d42 /* smb2 */, 0x65735546 /* fuse */,
		0x01021997 /* 9p */, 0x5346414f /* afs */, 0x6b414653 /* kafs */, 0x00c36400 /* ceph */, 0x73757245 /* coda */,
		0x0bd00bd0 /* lustre */, 0x7461636f /* ocfs2 */, 0x01161970 /* gfs2 */, 0x47504653 /* gpfs */,
		0x19830326 /* beegfs */, 0x786f4256 /* vboxsf */, 0x564c /* ncp */,
	};
	struct statfs fs;
	size_t i;

	if (statfs(file, &fs) < 0)
		return false;
	for (i = 0; i < sizeof(remote) / sizeof(remote[0]); i++)
		if ((uint32_t)fs.f_type == remote[i])
			return true;
	return false;
}

/*
 * Switches the write-ahead log on, outside a transaction. Where others have the database open just now it stays as it
 * is, which is as safe.
 */
static void
use_log(struct sqlite_store *s)
{
	unsigned tries;

	if (s->file == NULL)
		return;
	if (is_remote(s->file)) {
		log_warn("%s: on a network file system, so without a write-ahead log: every change waits for the disk", s->file);
		return;
	}
	for (tries = 0; tries < 50; tries++) {
		if ((sqlite3_exec(s->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL) & 0xff) != SQLITE_BUSY)
			break;
		usleep(20000);
	}
}

/*
 * With the log, NORMAL survives the death of every process and leaves the database whole after a loss of power; what
 * sync=full adds is SQLite's default, which is also kept where there is no log.
 */
static int
tune(struct sqlite_store *s, struct err *e)
{
	if (s->tuned || s->file == NULL)
		return 0;
	if (s->o.sync == STORE_SYNC_NORMAL && is_wal(s) && exec(s, "PRAGMA synchronous = NORMAL", e) < 0)
		return -1;
	s->tuned = true;
	return 0;
}

static int
create_objects(struct sqlite_store *s, size_t from, size_t to, struct err *e)
{
	size_t i;

	for (i = from; i < to; i++)
		if (exec(s, schema[i].sql, e) < 0)
			return -1;
	return 0;
}

static int put(struct sqlite_store *s, const struct row *r, uint64_t place, const void *data, size_t len, struct err *e);
static uint64_t run_of(size_t len);

/* One file of AG2's to ours; its content is never held whole. */
static int
migrate_file(struct sqlite_store *s, int64_t id, int64_t rowid, const char *path, uint64_t version, struct err *e)
{
	struct row r = { .id = id, .base = MIDDLE, .version = version, .mtime = -1 };
	char *piece = xmalloc(SEGMENT);
	sqlite3_blob *blob = NULL;
	uint64_t done = 0, n;
	int rc = -1;

	if (sqlite3_blob_open(s->db, "main", "entries", "content", rowid, 0, &blob) != SQLITE_OK) {
		fail(s, e);
		goto out;
	}
	r.size = (uint64_t)sqlite3_blob_bytes(blob);
	r.run = run_of(r.size);
	for (; done < r.size; done += n) {
		n = r.size - done < SEGMENT ? r.size - done : SEGMENT;
		if (sqlite3_blob_read(blob, piece, (int)n, (int)done) != SQLITE_OK) {
			fail(s, e);
			goto out;
		}
		if (put(s, &r, r.base + done, piece, n, e) < 0)
			goto out;
	}
	rc = run(s, query(s, Q_NEW, e, "iiiiidt", r.id, (int64_t)r.base, (int64_t)r.run, (int64_t)r.size, (int64_t)r.version,
	    r.mtime, path), e);
out:
	sqlite3_blob_close(blob);
	free(piece);
	return rc;
}

static int
migrate_files(struct sqlite_store *s, int64_t *top, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int64_t id = 0;
	int rc;

	if (sqlite3_prepare_v2(s->db, "SELECT rowid, path, version, typeof(path) FROM entries ORDER BY path", -1, &st, NULL) != SQLITE_OK)
		return fail(s, e);
	while ((rc = step(s, st, e)) > 0) {
		int64_t version = sqlite3_column_int64(st, 2);
		const char *path = (const char *)sqlite3_column_text(st, 1);

		if (path == NULL || strcmp((const char *)sqlite3_column_text(st, 3), "text") != 0 ||
		    strlen(path) != (size_t)sqlite3_column_bytes(st, 1)) {
			rc = err_set(e, ERR_DATA, "%s: has a path that is no text: it stays as AG2 made it", name_of(s));
			break;
		}
		if (version < 1)
			version = 1;
		if (version > *top)
			*top = version;
		if (migrate_file(s, ++id, sqlite3_column_int64(st, 0), path, (uint64_t)version, e) < 0) {
			rc = -1;
			break;
		}
	}
	sqlite3_finalize(st);
	return rc;
}

/* Makes the database ours, within the transaction that then changes it. */
static int
make_ours(struct sqlite_store *s, struct err *e)
{
	char sql[256];
	int64_t top = 0;

	if (s->layout == LAYOUT_OURS)
		return 0;
	if (create_objects(s, 0, TABLES, e) < 0)
		return -1;
	if (s->layout == LAYOUT_AG2 && (migrate_files(s, &top, e) < 0 || exec(s, "DROP TABLE entries", e) < 0))
		return -1;
	snprintf(sql, sizeof(sql), "INSERT INTO counter VALUES(%lld); PRAGMA application_id = %d; PRAGMA user_version = %d",
	    (long long)top, APPLICATION_ID, LAYOUT_VERSION);
	if (create_objects(s, TABLES, SCHEMA, e) < 0 || exec(s, sql, e) < 0)
		return -1;
	forget_layout(s);
	s->layout = LAYOUT_OURS;
	return 0;
}

/* ---- Changing ---- */

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)(t.tv_nsec / 1000) / 1e6;
}

static int
put(struct sqlite_store *s, const struct row *r, uint64_t place, const void *data, size_t len, struct err *e)
{
	const char *p = data;
	size_t n;

	for (; len > 0; p += n, place += n, len -= n) {
		n = len < SEGMENT ? len : SEGMENT;
		if (run(s, query(s, Q_PUT, e, "ib", segment_id(r, place), p, n), e) < 0)
			return -1;
	}
	return 0;
}

/* Takes the segments that begin at [from, to) away. */
static int
cut(struct sqlite_store *s, const struct row *r, uint64_t from, uint64_t to, struct err *e)
{
	if (from >= to)
		return 0;
	return run(s, query(s, Q_CUT, e, "ii", segment_id(r, from), segment_id(r, to - 1)), e);
}

/* How many bytes of content that was put are in a small segment at its end. */
static uint64_t
run_of(size_t len)
{
	return len % SEGMENT < RUN ? len % SEGMENT : 0;
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
	if (number(s, query(s, Q_FREE, e, ""), id, e) < 0)
		return -1;
	if (*id < 1 || *id > FILES_MAX)
		return err_set(e, ERR_DATA, "%s: full: it can hold %d files", name_of(s), FILES_MAX);
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
	return run(s, query(s, Q_NEW, e, "iiiiidt", r->id, (int64_t)r->base, INT64_C(0), INT64_C(0), INT64_C(1), 0.0, path), e);
}

/* Gives the row its next version and saves it. */
static int
save(struct sqlite_store *s, struct row *r, struct store_op *op, struct err *e)
{
	int64_t version;

	if (number(s, query(s, Q_VERSION, e, ""), &version, e) < 0)
		return -1;
	op->version = r->version = (uint64_t)version;
	return run(s, query(s, Q_SAVE, e, "iiiiid", r->id, (int64_t)r->base, (int64_t)r->run, (int64_t)r->size, version, now()), e);
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
	if (run(s, query(s, Q_MOVE, e, "iii", segment_id(r, 0), segment_id(r, PLACES - 1), by), e) < 0 ||
	    run(s, query(s, Q_RENUMBER, e, "ii", r->id, to.id), e) < 0)
		return -1;
	*r = to;
	return 0;
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
	r.run = run_of(op->len);
	if (put(s, &r, r.base, op->data, op->len, e) < 0)
		return -1;
	return save(s, &r, op, e);
}

/* Replaces the small segments at the end by one that has op's data too. */
static int
join(struct sqlite_store *s, const struct row *r, const struct store_op *op, struct err *e)
{
	uint64_t end = r->base + r->size, from = end - r->run;
	struct buf all = BUF_INIT_MAX(2 * RUN);
	sqlite3_stmt *st = query(s, Q_BYTES, e, "ii", segment_id(r, from), segment_id(r, end - 1));
	int rc;

	while ((rc = step(s, st, e)) > 0)
		buf_add(&all, sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0));
	if (rc == 0 && all.len != r->run)
		rc = damaged(s, op->path, e);
	buf_add(&all, op->data, op->len);
	if (rc == 0)
		rc = cut(s, r, from, end, e);
	if (rc == 0)
		rc = put(s, r, from, all.data, all.len, e);
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
		rc = put(s, &r, r.base + r.size, op->data, op->len, e);
		r.run = op->len < RUN && r.run < RUN ? r.run + op->len : run_of(op->len);
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
	return run(s, query(s, Q_DROP, e, "i", id), e);
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
		while (rc == 0 && (rc = step(s, st = query(s, Q_BELOW, e, "tt", b[i].from, b[i].to), e)) > 0) {
			id = sqlite3_column_int64(st, 0);
			sqlite3_reset(st);
			rc = drop(s, id, e);
			if (rc == 0 && sqlite3_changes(s->db) == 0)
				rc = err_set(e, ERR_DATA, "%s: damaged: a file cannot be deleted", name_of(s));
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
			rc = fail(s, e);
		else
			rc = put(s, r, place, piece, n, e);
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
	if (cut(s, &r, r.base, place, e) < 0 || put(s, &r, place - op->len, op->data, op->len, e) < 0)
		return -1;
	r.size = r.size - op->upto + op->len;
	r.base = place - op->len;
	rest = r.size - op->len;
	if (rest == 0)
		r.run = run_of(op->len);
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
	int rc = connect_file(s, e), change;

	if (rc < 0)
		return -1;
	if (s->layout == LAYOUT_OURS)
		return 1;
	rc = rc > 0 ? begin_read(s, e) : 0;
	if (rc < 0)
		return -1;
	if (rc == 0)
		s->layout = LAYOUT_EMPTY;
	change = s->layout == LAYOUT_OURS ? 1 : check_all(s, ops, n, e);
	if (change == 0)
		change = changes_something(s, ops, n, e);
	if (rc > 0)
		end_read(s, 0, NULL);
	return change;
}

static int
begin_change(struct sqlite_store *s, bool *made, struct err *e)
{
	int rc = connect_file(s, e);

	if (rc == 0 && create_file(s, e) == 0)
		rc = connect_file(s, e);
	if (rc <= 0)
		return -1;
	/* The log of a new database is there from its first change on. */
	*made = s->layout != LAYOUT_OURS && !is_wal(s);
	if (*made && s->layout == LAYOUT_EMPTY)
		use_log(s);
	if (tune(s, e) < 0 || run(s, query(s, Q_CHANGE, e, ""), e) < 0)
		return -1;
	if (s->layout != LAYOUT_OURS && classify(s, e) < 0) {
		run(s, query(s, Q_ROLLBACK, NULL, ""), NULL);
		return -1;
	}
	*made = *made && s->layout != LAYOUT_OURS && !is_wal(s);
	return 0;
}

static int
sqlite_commit(void *self, struct store_op *ops, size_t n, struct err *e)
{
	struct sqlite_store *s = self;
	bool made;
	int rc;

	if (s->o.mode == STORE_READ)
		return err_set(e, ERR_PERM, "%s: opened for reading only", name_of(s));
	if (s->depth > 0)
		return err_set(e, ERR_BUG, "%s: cannot be changed while a file of it is open for reading", name_of(s));
	rc = look_first(s, ops, n, e);
	if (rc <= 0)
		return rc;
	if (begin_change(s, &made, e) < 0)
		return -1;
	rc = check_all(s, ops, n, e);
	if (rc == 0)
		rc = make_ours(s, e);
	if (rc == 0)
		rc = apply_all(s, ops, n, e);
	if (rc == 0)
		rc = run(s, query(s, Q_COMMIT, e, ""), e);
	if (rc < 0) {
		if (!sqlite3_get_autocommit(s->db))
			run(s, query(s, Q_ROLLBACK, NULL, ""), NULL);
		forget_layout(s);
		return -1;
	}
	if (made) {
		use_log(s);
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
	int rc = real == NULL ? make_parents(s, e) : 0;

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
	.file_read = sqlite_file_read, .file_close = sqlite_file_close, .commit = sqlite_commit

const struct store_backend store_sqlite = {
	.scheme = "sqlite",
	.summary = "sqlite:FILE, one SQLite database, which AG2 can use at the same time",
	.open = sqlite_open,
	.lock = sqlite_lock,
	.unlock = sqlite_unlock,
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

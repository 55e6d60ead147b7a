/*
 * The SQLite back end through its table, and its databases through SQLite itself, as a plain client (AG2) uses them.
 * What all back ends have in common is in store.c.
 */
#include "base/alloc.h"
#include "base/io.h"
#include "base/sha1.h"
#include "store/backend.h"
#include "store/sqlite_peek.h"
#include "tap.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const struct store_backend *const be = &store_sqlite;
static struct err e;

/* ---- Helpers ---- */

static char *
fresh(void)
{
	static int n;

	return xasprintf("%s/%d.db", tmpdir(), ++n);
}

static void *
open_store(const char *file, enum store_mode mode)
{
	struct store_options o = { .mode = mode, .timeout_ms = 300 };
	void *s = NULL;

	e = (struct err)ERR_INIT;
	if (be->open(&s, file, "", &o, &e) < 0)
		return NULL;
	return s;
}

static int
one(void *s, enum store_op_kind kind, const char *path, const void *data, size_t len, struct store_op *out)
{
	struct store_op op = { .kind = kind, .path = path, .data = data, .len = len };
	int rc;

	e = (struct err)ERR_INIT;
	rc = be->commit(s, &op, 1, &e);
	if (rc < 0)
		printf("#   %s\n", e.msg);
	if (out != NULL)
		*out = op;
	return rc;
}

static int
put(void *s, const char *path, const char *text)
{
	return one(s, STORE_OP_WRITE, path, text, strlen(text), NULL);
}

static int
add(void *s, const char *path, const char *text)
{
	return one(s, STORE_OP_APPEND, path, text, strlen(text), NULL);
}

/* The whole file, read in pieces of an awkward size; false when it is not there or fails. */
static bool
get(void *s, const char *path, struct buf *out)
{
	char piece[4999];
	struct store_stat st;
	uint64_t at = 0;
	ssize_t n;
	void *f;

	buf_reset(out);
	e = (struct err)ERR_INIT;
	if (be->file_open(s, path, &f, &st, &e) < 0)
		return false;
	while ((n = be->file_read(f, at, piece, sizeof(piece), &e)) > 0) {
		buf_add(out, piece, (size_t)n);
		at += (uint64_t)n;
	}
	be->file_close(f);
	return n == 0 && out->len == st.size;
}

static void
holds_bytes(void *s, const char *path, const void *want, size_t len, const char *text)
{
	struct buf b = BUF_INIT;

	if (ok(get(s, path, &b), "%s: %s can be read", text, path))
		is_bytes(b.data, b.len, want, len, "%s: %s has its bytes", text, path);
	else
		printf("#   %s\n", e.msg);
	buf_release(&b);
}

static void
holds(void *s, const char *path, const char *want, const char *text)
{
	holds_bytes(s, path, want, strlen(want), text);
}

static int
add_name(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	buf_addf(arg, "%s%s ", name, dir ? "/" : "");
	return 0;
}

static void
lists(void *s, const char *path, const char *want, const char *text)
{
	struct buf b = BUF_INIT;

	ok(be->list(s, path, 0, add_name, &b, &e) == 0, "%s: %s can be listed", text, path);
	is_str(b.data, want, "%s: the children of %s", text, path);
	buf_release(&b);
}

static uint64_t
version(void *s, const char *path)
{
	struct store_stat st;

	return be->stat(s, path, &st, &e) == 1 ? st.version : 0;
}

static void
pattern(struct buf *b, size_t len, unsigned seed)
{
	buf_reset(b);
	buf_reserve(b, len);
	while (b->len < len) {
		seed = seed * 1103515245 + 12345;
		buf_addch(b, (char)(seed >> 16));
	}
}

/* ---- A plain client ---- */

static sqlite3 *
client(const char *file)
{
	sqlite3 *db;

	if (sqlite3_open(file, &db) != SQLITE_OK)
		bail("cannot open %s", file);
	sqlite3_busy_timeout(db, 1000);
	return db;
}

static bool
sql(sqlite3 *db, const char *text)
{
	char *why = NULL;

	if (sqlite3_exec(db, text, NULL, NULL, &why) == SQLITE_OK)
		return true;
	printf("#   %s\n", why);
	sqlite3_free(why);
	return false;
}

static void
sql_file(const char *file, const char *text)
{
	sqlite3 *db = client(file);

	if (!sql(db, text))
		bail("cannot prepare %s", file);
	sqlite3_close(db);
}

static int64_t
sql_number(sqlite3 *db, const char *text)
{
	sqlite3_stmt *st;
	int64_t n = -1;

	if (sqlite3_prepare_v2(db, text, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
		n = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return n;
}

/* AG2's statements, word for word. */
static bool
ag2_write(sqlite3 *db, const char *path, const void *data, size_t len, int64_t v)
{
	sqlite3_stmt *st;
	int rc;

	sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO entries (path, content, version) VALUES (?, ?, ?)", -1, &st, NULL);
	sqlite3_bind_text(st, 1, path, -1, SQLITE_STATIC);
	sqlite3_bind_blob64(st, 2, len ? data : "", len, SQLITE_STATIC);
	sqlite3_bind_int64(st, 3, v);
	rc = sqlite3_step(st);
	sqlite3_finalize(st);
	return rc == SQLITE_DONE;
}

static void
ag2_reads(sqlite3 *db, const char *path, const void *want, size_t len, const char *text)
{
	sqlite3_stmt *st;

	sqlite3_prepare_v2(db, "SELECT content FROM entries WHERE path = ?", -1, &st, NULL);
	sqlite3_bind_text(st, 1, path, -1, SQLITE_STATIC);
	if (ok(sqlite3_step(st) == SQLITE_ROW, "%s: a plain client finds %s", text, path)) {
		is_int(sqlite3_column_type(st, 0), SQLITE_BLOB, "%s: its content is a blob", text);
		is_bytes(sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0), want, len, "%s: with every byte", text);
	}
	sqlite3_finalize(st);
}

static const char odd[] = "a\0b\xff\xfe\0\xc3(\n";
#define ODD odd, sizeof(odd) - 1

/* ---- The tests ---- */

static void
creation(void)
{
	char *dir = xasprintf("%s/new", tmpdir()), *file = xasprintf("%s/deep/x.db", dir), *log = xasprintf("%s-wal", file);
	struct stat st;
	void *s, *r;

	ok(open_store(file, STORE_READ) == NULL && e.code == ERR_NOINPUT, "reading needs a store: %s", e.msg);
	ok(open_store(file, STORE_WRITE) == NULL && e.code == ERR_NOINPUT, "writing without creating too");
	s = open_store(file, STORE_CREATE);
	ok(s != NULL && access(dir, F_OK) < 0, "opening creates nothing");
	lists(s, "/", "", "before there is a file");
	ok(be->stat(s, "/", NULL, &e) == 0, "there is no / in it");
	ok(one(s, STORE_OP_DELETE, "/a", NULL, 0, NULL) == 0 && access(dir, F_OK) < 0, "deleting what is not there creates nothing");
	umask(0);
	ok(put(s, "/a", "text") == 0, "the first change creates it");
	umask(022);
	ok(stat(dir, &st) == 0 && (st.st_mode & 07777) == 0700, "its directory is private");
	ok(stat(file, &st) == 0 && (st.st_mode & 07777) == 0600, "the file is private");
	ok(stat(log, &st) == 0 && (st.st_mode & 07777) == 0600, "and so is the log beside it");
	be->close(s);
	ok(access(log, F_OK) < 0, "nothing is left beside it at the end");
	s = open_store(file, STORE_READ);
	holds(s, "/a", "text", "a second process");
	ok(put(s, "/a", "x") < 0 && e.code == ERR_PERM, "what was opened for reading cannot be changed");
	be->close(s);
	ok(access(log, F_OK) < 0, "nor after reading");
	free(file);

	file = xasprintf("%s/deep/x.db/below.db", dir);
	ok(open_store(file, STORE_CREATE) == NULL && e.code == ERR_NOINPUT, "below a file is no store: %s", e.msg);
	free(file);
	file = xasprintf("%s/empty.db", dir);
	sql_file(file, "PRAGMA journal_mode = WAL; VACUUM");
	r = open_store(file, STORE_READ);
	lists(r, "/", "", "a database without tables");
	s = open_store(file, STORE_WRITE);
	ok(put(s, "/a", "text") == 0, "it can be written");
	holds(r, "/a", "text", "who had it open before");
	be->close(s);
	be->close(r);
	free(dir);
	free(file);
	free(log);
}

static void
appending(void)
{
	struct buf want = BUF_INIT, piece = BUF_INIT;
	char *file = fresh();
	void *s = open_store(file, STORE_CREATE);
	struct store_op op;
	unsigned seed = 7;
	sqlite3 *db;
	bool good = true;
	int i;

	for (i = 0; i < 400; i++) {
		seed = seed * 1103515245 + 12345;
		pattern(&piece, i % 50 == 49 ? 70000 + (seed >> 16) % 90000 : (seed >> 16) % 1500, seed);
		good = good && one(s, STORE_OP_APPEND, "/log/x", piece.data, piece.len, &op) == 0 && op.offset == want.len;
		buf_add(&want, piece.data, piece.len);
	}
	ok(good, "each append says where it begins");
	holds_bytes(s, "/log/x", want.data, want.len, "400 appends");
	be->close(s);
	db = client(file);
	ag2_reads(db, "/log/x", want.data, want.len, "400 appends");
	ok(sql_number(db, "SELECT count(*) FROM segments") < 120, "small segments were joined: %lld",
	    (long long)sql_number(db, "SELECT count(*) FROM segments"));
	ok(sql_number(db, "SELECT max(length(data)) FROM segments") <= 65536, "large ones were cut");
	ok(sql_number(db, "SELECT sum(length(data)) FROM segments") == (int64_t)want.len, "nothing is there twice");
	sqlite3_close(db);
	buf_release(&want);
	buf_release(&piece);
	free(file);
}

/* Bytes from anywhere, in both directions, also where they span segments. */
static void
ranges(void)
{
	struct buf want = BUF_INIT;
	char *file = fresh(), *got = xmalloc(200000);
	void *s = open_store(file, STORE_CREATE), *f;
	static const size_t lens[] = { 1, 7, 4096, 65536, 65537, 150000 };
	bool good = true;
	struct store_stat st;
	size_t i, at;
	ssize_t n;

	pattern(&want, 500000, 3);
	one(s, STORE_OP_WRITE, "/w", want.data, 300000, NULL);
	for (at = 300000; at < want.len; at += 5000)
		one(s, STORE_OP_APPEND, "/w", want.data + at, 5000, NULL);
	ok(be->file_open(s, "/w", &f, &st, &e) == 0 && st.size == want.len, "a file can be opened");
	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		for (at = want.len; at > 24001; at -= 24001) {
			n = be->file_read(f, at - 1, got, lens[i], &e);
			good = good && n == (ssize_t)(lens[i] < want.len - at + 1 ? lens[i] : want.len - at + 1) &&
			    memcmp(got, want.data + at - 1, (size_t)n) == 0;
		}
	ok(good, "any range of it can be read");
	is_int(be->file_read(f, want.len, got, 10, &e), 0, "behind the end is nothing");
	ok(put(s, "/w", "x") < 0 && e.code == ERR_BUG, "the store cannot be changed meanwhile through this handle: %s", e.msg);
	be->file_close(f);
	ok(put(s, "/w", "x") == 0, "but afterwards");
	ok(be->file_open(s, "/none", &f, &st, &e) < 0 && e.code == ERR_ABSENT, "what is not there cannot be opened");
	be->close(s);
	buf_release(&want);
	free(got);
	free(file);
}

static void
snapshots(void)
{
	char *file = fresh(), *log = xasprintf("%s-wal", file), got[64];
	void *a = open_store(file, STORE_CREATE), *b, *f;
	struct buf big = BUF_INIT, all = BUF_INIT;
	uint64_t at = 0;
	ssize_t n;

	pattern(&big, 300000, 1);
	one(a, STORE_OP_WRITE, "/f", big.data, big.len, NULL);
	b = open_store(file, STORE_READ);
	ok(be->file_open(b, "/f", &f, NULL, &e) == 0, "a reader begins");
	n = be->file_read(f, 0, got, sizeof(got), &e);
	ok(n == sizeof(got) && put(a, "/f", "short") == 0 && add(a, "/f", "er") == 0, "a writer is not held up by it");
	while ((n = be->file_read(f, at, got, sizeof(got), &e)) > 0) {
		buf_add(&all, got, (size_t)n);
		at += (uint64_t)n;
	}
	is_bytes(all.data, all.len, big.data, big.len, "the reader gets the version it opened");
	be->file_close(f);
	holds(b, "/f", "shorter", "and then the new one");
	be->close(b);
	be->close(a);

	b = open_store(file, STORE_READ);
	ok(version(b, "/f") > 0 && access(log, F_OK) < 0, "a question alone makes no files beside the database");
	ok(be->file_open(b, "/f", &f, NULL, &e) == 0 && access(log, F_OK) < 0, "nor does reading a small file");
	a = open_store(file, STORE_WRITE);
	ok(put(a, "/f", "changed") == 0 && put(a, "/g", "") == 0, "a writer comes");
	n = be->file_read(f, 0, got, sizeof(got), &e);
	ok(n == 7 && memcmp(got, "shorter", 7) == 0, "what was opened before stays as it was");
	be->file_close(f);
	holds(b, "/f", "changed", "what is opened after that");
	lists(b, "/", "f g ", "after that");
	be->close(b);
	be->close(a);
	ok(access(log, F_OK) < 0, "and at the end nothing is left beside it");

	b = open_store(file, STORE_READ);
	ok(version(b, "/f") > 0, "a reader has the database open");
	a = open_store(file, STORE_WRITE);
	put(a, "/f", "last");
	be->close(a);
	be->close(b);
	ok(access(log, F_OK) < 0, "when it ends after the writer, nothing is left beside it either");
	b = open_store(file, STORE_READ);
	holds(b, "/f", "last", "and the file has it all");
	be->close(b);
	one(a = open_store(file, STORE_WRITE), STORE_OP_WRITE, "/f", big.data, big.len, NULL);
	be->close(a);
	b = open_store(file, STORE_READ);
	ok(be->file_open(b, "/f", &f, NULL, &e) == 0, "a large file is read");
	a = open_store(file, STORE_WRITE);
	ok(put(a, "/f", "other") == 0, "while a writer comes");
	for (at = 0, buf_reset(&all); (n = be->file_read(f, at, got, sizeof(got), &e)) > 0; at += (uint64_t)n)
		buf_add(&all, got, (size_t)n);
	is_bytes(all.data, all.len, big.data, big.len, "it stays as it was to its end");
	be->file_close(f);
	be->close(b);
	be->close(a);
	buf_release(&big);
	buf_release(&all);
	free(file);
	free(log);
}

static off_t
size_of(const char *file)
{
	struct stat st;

	return stat(file, &st) < 0 ? -1 : st.st_size;
}

static void
log_grows(void)
{
	char *file = fresh(), *log = xasprintf("%s-wal", file);
	void *a = open_store(file, STORE_CREATE), *b;
	struct buf big = BUF_INIT;
	bool good = put(a, "/f", "text") == 0;
	off_t most;
	int i;

	pattern(&big, 300000, 1);
	b = open_store(file, STORE_READ);
	ok(be->hold(b, &e) == 0, "a reader holds the database as it is");
	for (i = 0; i < 130; i++)
		good = good && one(a, STORE_OP_WRITE, "/big", big.data, big.len, NULL) == 0;
	ok(good && size_of(log) > 130 * 300000, "a writer goes on beside it, and the log grows");
	be->release(b);
	for (i = 0; i < 110; i++)
		good = good && one(a, STORE_OP_WRITE, "/big", big.data, big.len, NULL) == 0;
	most = size_of(log);
	for (i = 0; i < 60; i++)
		good = good && one(a, STORE_OP_WRITE, "/big", big.data, big.len, NULL) == 0;
	ok(good && size_of(log) == most, "without it the log has begun anew: %lld and %lld bytes", (long long)most, (long long)size_of(log));
	holds(b, "/f", "text", "the reader");
	be->close(b);
	be->close(a);
	ok(access(log, F_OK) < 0, "and goes at the end");
	buf_release(&big);
	free(file);
	free(log);
}

static void
held(void)
{
	char *file = fresh();
	void *b, *a;

	close(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	b = open_store(file, STORE_READ);
	ok(b != NULL && be->hold(b, &e) == 0, "a file without anything in it yet is held");
	a = open_store(file, STORE_CREATE);
	ok(put(a, "/d/f", "1") == 0, "a writer makes it");
	lists(b, "/", "", "held while nothing was there");
	ok(version(b, "/d/f") == 0, "nor is anything found in it");
	be->release(b);
	lists(b, "/", "d/ ", "after that");
	ok(be->hold(b, &e) == 0 && put(a, "/d/g", "2") == 0, "it is held as it is, and changed");
	lists(b, "/d", "f ", "held");
	be->release(b);
	lists(b, "/d", "f g ", "let go");
	be->close(b);
	be->close(a);
	free(file);
}

static void
listing(void)
{
	char *file = fresh(), name[64];
	void *s = open_store(file, STORE_CREATE);
	sqlite3 *db;
	int i;

	put(s, "/d/x-1", "");
	put(s, "/d/x/y", "");
	put(s, "/d/x/z/deep", "");
	put(s, "/d/x0", "");
	put(s, "/d0", "");
	put(s, "/d/\xff\xfe", "");
	put(s, "/d/A", "");
	put(s, "/d/a%_*\t\n", "");
	put(s, "/.ag2/status", "");
	for (i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "/many/%03d/%03d", i % 3, i);
		put(s, name, "");
	}
	lists(s, "/", ".ag2/ d/ d0 many/ ", "in byte order");
	lists(s, "/d", "A a%_*\t\n x-1 x/ x0 \xff\xfe ", "in byte order");
	lists(s, "/d/x", "y z/ ", "in byte order");
	lists(s, "/many", "000/ 001/ 002/ ", "a directory once");
	lists(s, "/d/A", "", "a file");
	lists(s, "/none", "", "what is not there");
	lists(s, "/.ag2", "status ", "what is hidden, by its name");
	db = client(file);
	ok(ag2_write(db, "/d/x", "f", 1, 1), "AG2 makes a file of a directory's name");
	sqlite3_close(db);
	lists(s, "/d", "A a%_*\t\n x x-1 x/ x0 \xff\xfe ", "the file before the directory");
	ok(put(s, "/d/x/y/z", "") < 0 && e.code == ERR_CREATE, "nothing below a file: %s", e.msg);
	ok(put(s, "/d/new/x", "") == 0 && put(s, "/d/new", "") < 0 && e.code == ERR_CREATE, "no file where a directory is: %s", e.msg);
	ok(put(s, "/", "") < 0 && e.code == ERR_CREATE, "/ is a directory");
	ok(one(s, STORE_OP_DELETE, "/d", NULL, 0, NULL) == 0, "a directory can be deleted");
	lists(s, "/", ".ag2/ d0 many/ ", "with what is below it, nothing beside it");
	be->close(s);
	free(file);
}

static void
versions(void)
{
	char *file = fresh();
	void *s = open_store(file, STORE_CREATE);
	struct store_op ops[3] = {
		{ .kind = STORE_OP_WRITE, .path = "/b", .data = "new", .len = 3 },
		{ .kind = STORE_OP_APPEND, .path = "/c", .data = "new", .len = 3 },
		{ .kind = STORE_OP_EXPECT, .path = "/a", .version = 99 },
	};
	uint64_t v, w;
	sqlite3 *db;

	put(s, "/a", "1");
	v = version(s, "/a");
	put(s, "/a", "2");
	w = version(s, "/a");
	ok(v > 0 && w > v, "a version rises");
	one(s, STORE_OP_DELETE, "/a", NULL, 0, NULL);
	put(s, "/a", "3");
	ok(version(s, "/a") > w, "also across deletion");
	w = version(s, "/a");
	db = client(file);
	ok(ag2_write(db, "/a", "4", 1, 1), "AG2 writes with an old counter");
	ok(version(s, "/a") > w, "it rises all the same");
	ok(sql_number(db, "SELECT COALESCE(MAX(version), 0) FROM entries") == (int64_t)version(s, "/a"), "and is the greatest for AG2");
	sqlite3_close(db);
	ok(be->commit(s, ops, 3, &e) < 0 && e.code == ERR_CONFLICT, "an expectation fails: %s", e.msg);
	ok(version(s, "/b") == 0 && version(s, "/c") == 0, "then nothing is done");
	ops[2].version = version(s, "/a");
	ok(be->commit(s, ops, 3, &e) == 0 && ops[0].version == version(s, "/b") && ops[1].version == version(s, "/c") &&
	    ops[1].version > ops[0].version, "else all of it, and the versions are told");
	ops[2] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = "/b/x", .version = 0 };
	ops[1] = (struct store_op){ .kind = STORE_OP_DELETE, .path = "/c" };
	ok(be->commit(s, &ops[2], 1, &e) == 0, "version 0 is not there");
	ops[0].path = "/a/b";
	ok(be->commit(s, ops, 2, &e) < 0 && version(s, "/c") > 0, "a failed operation undoes the ones before");
	ops[2] = ops[0];
	ok(be->commit(s, ops + 1, 2, &e) < 0 && version(s, "/c") > 0, "... also a deletion");
	be->close(s);
	free(file);
}

static int
replace(void *s, const char *path, uint64_t upto, const void *old, const void *data, size_t len)
{
	struct store_op op = { .kind = STORE_OP_REPLACE_PREFIX, .path = path, .data = data, .len = len, .upto = upto };
	struct sha1 h;
	int rc;

	sha1_init(&h);
	sha1_add(&h, old, upto);
	sha1_end(&h, op.sha1);
	rc = be->commit(s, &op, 1, &e);
	return rc;
}

static void
prefixes(void)
{
	static const struct { size_t upto, len; } cases[] = {
		{ 100000, 10 }, { 0, 5 }, { 0, 0 }, { 12, 200000 }, { 65536, 65536 }, { 1, 0 }, { 131072, 3 }, { 150001, 150000 },
	};
	struct buf want = BUF_INIT, piece = BUF_INIT, next = BUF_INIT;
	char *file = fresh();
	void *s = open_store(file, STORE_CREATE);
	sqlite3 *db = NULL;
	size_t i, at;

	pattern(&want, 400000, 5);
	one(s, STORE_OP_WRITE, "/p", want.data, 200000, NULL);
	for (at = 200000; at < want.len; at += 2000)
		one(s, STORE_OP_APPEND, "/p", want.data + at, 2000, NULL);
	db = client(file);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t last = sql_number(db, "SELECT max(id) FROM segments");

		pattern(&piece, cases[i].len, (unsigned)i + 11);
		ok(replace(s, "/p", cases[i].upto, want.data, piece.data, piece.len) == 0, "%zu bytes become %zu", cases[i].upto, cases[i].len);
		buf_reset(&next);
		buf_add(&next, piece.data, piece.len);
		buf_add(&next, want.data + cases[i].upto, want.len - cases[i].upto);
		buf_addch(&next, '!');
		ok(sql_number(db, "SELECT max(id) FROM segments") == last, "what follows stays in its place");
		add(s, "/p", "!");
		buf_reset(&want);
		buf_add(&want, next.data, next.len);
		holds_bytes(s, "/p", want.data, want.len, "after that and an append");
		ag2_reads(db, "/p", want.data, want.len, "after that and an append");
	}
	ok(replace(s, "/p", want.len, want.data, "all new", 7) == 0, "all of it can be replaced");
	add(s, "/p", ", and more");
	holds(s, "/p", "all new, and more", "then");
	ok(replace(s, "/p", 3, "alx", "", 0) < 0 && e.code == ERR_CONFLICT, "other bytes than expected: %s", e.msg);
	ok(replace(s, "/p", 18, "all new, and more ", "", 0) < 0 && e.code == ERR_CONFLICT, "shorter than expected: %s", e.msg);
	ok(replace(s, "/none", 0, "", "", 0) < 0 && e.code == ERR_CONFLICT, "not there: %s", e.msg);
	holds(s, "/p", "all new, and more", "after what failed");
	ok(sql_number(db, "SELECT sum(length(data)) FROM segments") == 17, "nothing is left over");
	sqlite3_close(db);
	be->close(s);
	buf_release(&want);
	buf_release(&piece);
	buf_release(&next);
	free(file);
}

/* A file that has wandered to either end of its places. */
static void
far_places(void)
{
	struct buf want = BUF_INIT, got = BUF_INIT;
	char *file = fresh();
	void *s = open_store(file, STORE_CREATE);
	sqlite3 *db;

	pattern(&want, 100000, 9);
	one(s, STORE_OP_WRITE, "/low", want.data, want.len, NULL);
	one(s, STORE_OP_WRITE, "/high", want.data, want.len, NULL);
	be->close(s);
	sql_file(file, "UPDATE segments SET id = id - (1 << 39) + 5 WHERE id >> 40 = 1;"
	    "UPDATE files SET base = 5 WHERE id = 1;"
	    "UPDATE segments SET id = id + (1 << 39) - 100003 WHERE id >> 40 = 2;"
	    "UPDATE files SET base = base + (1 << 39) - 100003 WHERE id = 2");
	s = open_store(file, STORE_WRITE);
	holds_bytes(s, "/low", want.data, want.len, "at the lowest places");
	ok(replace(s, "/low", 1, want.data, "0123456789", 10) == 0, "a longer prefix at the lowest places");
	ok(add(s, "/high", "!!!") == 0, "an append up to the last place");
	ok(add(s, "/high", "!") == 0, "an append behind the last place");
	buf_adds(&want, "!!!!");
	holds_bytes(s, "/high", want.data, want.len, "moved back");
	buf_drop(&want, 1);
	want.len -= 4;
	db = client(file);
	ok(sql_number(db, "SELECT count(*) FROM files WHERE base BETWEEN 5 AND (1 << 39) + 100000") == 2, "both are in the middle again");
	ok(sql_number(db, "SELECT sum(length(data)) FROM segments") == 200013, "and nowhere else");
	sqlite3_close(db);
	ok(get(s, "/low", &got) && got.len == want.len + 10 && memcmp(got.data, "0123456789", 10) == 0 &&
	    memcmp(got.data + 10, want.data, want.len) == 0, "the longer prefix and what followed are there");
	be->close(s);
	buf_release(&want);
	buf_release(&got);
	free(file);
}

/* ---- What AG2 does ---- */

static void
ag2_statements(void)
{
	char *file = fresh();
	void *s = open_store(file, STORE_CREATE);
	struct buf big = BUF_INIT;
	sqlite3 *db;
	uint64_t v;

	one(s, STORE_OP_WRITE, "/odd", ODD, NULL);
	one(s, STORE_OP_APPEND, "/odd", ODD, NULL);
	put(s, "/empty", "");
	db = client(file);
	ok(sql(db, "CREATE TABLE IF NOT EXISTS entries (path TEXT PRIMARY KEY, content BLOB NOT NULL, version INTEGER NOT NULL DEFAULT 0)"),
	    "AG2's table is there already");
	ag2_reads(db, "/odd", "a\0b\xff\xfe\0\xc3(\na\0b\xff\xfe\0\xc3(\n", 18, "two segments with NULs");
	ag2_reads(db, "/empty", "", 0, "an empty file");
	ok(ag2_write(db, "/odd", ODD, 5) && ag2_write(db, "/new/x", ODD, 6) && ag2_write(db, "/new/e", "", 0, 7), "AG2 replaces and makes");
	holds_bytes(s, "/odd", ODD, "AG2's");
	holds_bytes(s, "/new/x", ODD, "AG2's");
	holds(s, "/new/e", "", "AG2's");
	add(s, "/new/x", "more");
	ag2_reads(db, "/new/x", "a\0b\xff\xfe\0\xc3(\nmore", 13, "appended to AG2's");
	pattern(&big, 300000, 2);
	ok(ag2_write(db, "/big", big.data, big.len, 8), "AG2 writes a large one");
	add(s, "/big", "!");
	buf_addch(&big, '!');
	holds_bytes(s, "/big", big.data, big.len, "AG2's large one, appended to");
	ag2_reads(db, "/big", big.data, big.len, "AG2's large one, appended to");
	ok(sql_number(db, "SELECT count(*) FROM entries WHERE substr(path, 1, 5) = '/new/'") == 2, "AG2 lists by prefix");
	v = version(s, "/odd");
	ok(sql(db, "UPDATE entries SET content = 'u' WHERE path = '/odd'"), "an UPDATE works");
	holds(s, "/odd", "u", "updated");
	ok(version(s, "/odd") > v, "and has a new version");
	sql(db, "INSERT INTO entries VALUES('/odd', 'plain', 1)");
	holds(s, "/odd", "plain", "any INSERT replaces");
	sql(db, "INSERT OR IGNORE INTO entries VALUES('/odd', 'u', 1)");
	holds(s, "/odd", "u", "any INSERT replaces");
	sql(db, "UPDATE OR IGNORE entries SET content = NULL WHERE path = '/odd'; INSERT OR IGNORE INTO entries VALUES('/odd', NULL, 1)");
	holds(s, "/odd", "u", "what was ignored left it alone");
	ok(!sql(db, "INSERT OR REPLACE INTO entries VALUES('/odd', NULL, 1)"), "no content is no content");
	holds(s, "/odd", "u", "what failed left it alone");
	ok(sql(db, "UPDATE entries SET path = '/named' WHERE path = '/odd'"), "a file can be renamed");
	holds(s, "/named", "u", "renamed");
	ok(version(s, "/odd") == 0 && sql(db, "UPDATE entries SET path = '/odd' WHERE path = '/named'") && version(s, "/odd") > 0, "and back");
	ok(sql(db, "DELETE FROM entries WHERE path = '/odd'; DELETE FROM entries WHERE substr(path, 1, 5) = '/new/'"), "AG2 deletes");
	lists(s, "/", "big empty ", "after AG2's deletion");
	ok(sql_number(db, "SELECT sum(length(data)) FROM segments") == (int64_t)big.len, "nothing is left over");
	sql(db, "UPDATE files SET size = size + 1 WHERE path = '/big'");
	ag2_reads(db, "/big", big.data, big.len, "in the way for an SQLite whose group_concat stops at NULs");
	sqlite3_close(db);
	be->close(s);
	buf_release(&big);
	free(file);
}

static void
copy_file(const char *from, const char *to)
{
	struct buf b = BUF_INIT;
	int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0640);

	if (io_read_file(from, &b, &e) < 0 || fd < 0 || io_write_all(fd, b.data, b.len) < 0)
		bail("cannot copy %s", from);
	close(fd);
	buf_release(&b);
}

static bool
same_file(const char *a, const char *b)
{
	struct buf x = BUF_INIT, y = BUF_INIT;
	bool same = io_read_file(a, &x, &e) == 0 && io_read_file(b, &y, &e) == 0 && x.len == y.len && memcmp(x.data, y.data, x.len) == 0;

	buf_release(&x);
	buf_release(&y);
	return same;
}

static void
ag2_database(void)
{
	const char *golden = "tests/golden/ag2.db";
	char *file = fresh(), got[8];
	struct store_stat st;
	struct stat mode;
	sqlite3 *db;
	void *s, *r, *f;

	copy_file(golden, file);
	chmod(file, 0640);
	s = open_store(file, STORE_CREATE);
	lists(s, "/", ".initialized SKILL.md artifacts/ log/ memory/ ", "AG2's database");
	lists(s, "/artifacts", "SKILL.md a b%c_d/ empty.txt wal.log ", "AG2's database");
	holds(s, "/artifacts/a b%c_d/\xc3\xa9.txt", "odd", "AG2's database");
	holds(s, "/artifacts/empty.txt", "", "AG2's database");
	ok(be->stat(s, "/artifacts/wal.log", &st, &e) == 1 && st.size == 9 && st.version == 13 && st.mtime < 0, "AG2's size and version");
	ok(be->stat(s, "/memory", &st, &e) == 1 && st.dir, "a directory");
	ok(be->file_open(s, "/artifacts/wal.log", &f, &st, &e) == 0 && be->file_read(f, 4, got, 5, &e) == 5 && memcmp(got, "tw\xc3\xb6\n", 5) == 0,
	    "a range");
	be->file_close(f);
	ok(one(s, STORE_OP_EXPECT, "/none", NULL, 0, NULL) == 0 && one(s, STORE_OP_DELETE, "/none", NULL, 0, NULL) == 0,
	    "nothing is changed by an expectation, nor by deleting what is not there");
	ok(put(s, "/memory", "") < 0 && e.code == ERR_CREATE, "nor by what fails: %s", e.msg);
	be->close(s);
	ok(same_file(golden, file), "not a byte of AG2's database was changed");

	s = open_store(file, STORE_WRITE);
	r = open_store(file, STORE_READ);
	db = client(file);
	ag2_reads(db, "/artifacts/wal.log", "one\ntw\xc3\xb6\n", 9, "AG2 has it open");
	lists(r, "/memory", "SKILL.md conversations/ working.md ", "a reader has it open");
	ok(add(s, "/artifacts/wal.log", "three\n") == 0, "the first change");
	ok(sql_number(db, "PRAGMA application_id") == 0x61673273 && sql_number(db, "PRAGMA user_version") == 1, "makes it ours");
	ag2_reads(db, "/artifacts/wal.log", "one\ntw\xc3\xb6\nthree\n", 15, "AG2 goes on");
	holds(r, "/artifacts/wal.log", "one\ntw\xc3\xb6\nthree\n", "the reader goes on");
	ok(version(r, "/artifacts/empty.txt") == 16 && version(r, "/artifacts/wal.log") == 17, "versions are kept and go on");
	ok(sql_number(db, "SELECT count(*) FROM entries") == 16 - 2, "every file is there");
	ok(ag2_write(db, "/artifacts/wal.log", "x", 1, 14) && version(r, "/artifacts/wal.log") == 18, "AG2 writes again");
	lists(r, "/", ".initialized SKILL.md artifacts/ log/ memory/ ", "as before");
	ok(stat(file, &mode) == 0 && (mode.st_mode & 07777) == 0640, "the mode of the file is kept");
	sqlite3_close(db);
	be->close(r);
	be->close(s);
	free(file);
}

/* Sizes that make more than one segment, in AG2's layout, as text and with NULs. */
static void
ag2_large(void)
{
	struct buf big = BUF_INIT;
	char *file = fresh();
	sqlite3 *db = client(file);
	void *s;

	sql(db, "create table entries(path text primary key, content blob not null, version integer not null default 0);"
	    "INSERT INTO entries(path, content) VALUES('/text', 'as text')");
	pattern(&big, 200000, 4);
	ag2_write(db, "/big", big.data, big.len, 41);
	ag2_write(db, "/d", "file", 4, 42);
	ag2_write(db, "/d/x", "below it", 8, 43);
	s = open_store(file, STORE_WRITE);
	holds_bytes(s, "/big", big.data, big.len, "read in place");
	holds(s, "/text", "as text", "read in place");
	ok(version(s, "/text") == 1, "what is there has a version");
	ok(put(s, "/new", "") == 0 && version(s, "/new") == 44, "made ours");
	holds_bytes(s, "/big", big.data, big.len, "after that");
	ag2_reads(db, "/big", big.data, big.len, "after that");
	holds(s, "/text", "as text", "after that");
	lists(s, "/", "big d d/ new text ", "a file and a directory of one name");
	ok(put(s, "/d", "can be written") == 0 && put(s, "/d/x", "both") == 0, "both of them can still be changed");
	ok(one(s, STORE_OP_DELETE, "/d", NULL, 0, NULL) == 0, "and deleted");
	lists(s, "/", "big new text ", "then both are gone");
	sqlite3_close(db);
	be->close(s);
	buf_release(&big);
	free(file);
}

/* ---- What is not ours ---- */

static void
refuses(const char *file, const char *says, const char *text)
{
	struct store_stat st;
	void *s = open_store(file, STORE_WRITE);
	bool no = s != NULL && be->stat(s, "/a", &st, &e) < 0 && e.code == ERR_DATA;

	ok(no && strstr(e.msg, says) != NULL, "%s is refused: %s", text, e.msg);
	ok(s != NULL && put(s, "/a", "x") < 0 && e.code == ERR_DATA, "%s is not changed either", text);
	if (s != NULL)
		be->close(s);
}

static void
altered(const char *statements, const char *says, const char *text)
{
	char *file = fresh();
	void *s = open_store(file, STORE_CREATE);

	put(s, "/a", "content");
	be->close(s);
	sql_file(file, statements);
	refuses(file, says, text);
	free(file);
}

static void
foreign(void)
{
	char *file = fresh();
	int fd;
	void *s;

	fd = open(file, O_WRONLY | O_CREAT, 0600);
	ok(io_write_all(fd, "this is no database, but a text of more than a hundred bytes, so that it cannot be taken for one that is cut short.", 115) == 0 &&
	    close(fd) == 0, "a text file");
	refuses(file, "not an SQLite database", "what is no database");
	free(file);
	ok(open_store(tmpdir(), STORE_READ) == NULL && e.code == ERR_DATA, "a directory is refused: %s", e.msg);

	file = fresh();
	sql_file(file, "CREATE TABLE other(x)");
	refuses(file, "not a store", "another program's database");
	free(file);
	file = fresh();
	sql_file(file, "CREATE TABLE entries(path TEXT PRIMARY KEY, content BLOB AS (upper(path)), version INTEGER)");
	refuses(file, "not a store", "a table that is like AG2's, but is not");
	free(file);
	file = fresh();
	sql_file(file, "CREATE TABLE entries(path TEXT PRIMARY KEY, content BLOB NOT NULL, version INTEGER NOT NULL DEFAULT 0);"
	    "CREATE TRIGGER t AFTER INSERT ON entries BEGIN SELECT 1; END");
	refuses(file, "'t'", "AG2's table with a trigger");
	free(file);
	file = fresh();
	sql_file(file, "PRAGMA encoding = 'UTF-16';"
	    "CREATE TABLE entries(path TEXT PRIMARY KEY, content BLOB NOT NULL, version INTEGER NOT NULL DEFAULT 0)");
	refuses(file, "UTF-16", "another encoding");
	free(file);
	altered("PRAGMA user_version = 2; CREATE TABLE more(x); DROP VIEW entries", "newer", "a newer layout");
	altered("PRAGMA user_version = 2", "newer", "a newer layout with the same tables");
	altered("CREATE TRIGGER evil AFTER UPDATE ON files BEGIN DELETE FROM files; END", "'evil'", "a trigger on our tables");
	altered("DROP TRIGGER entries_delete; CREATE TRIGGER entries_delete INSTEAD OF DELETE ON entries BEGIN SELECT 1; END",
	    "'entries_delete'", "a trigger of ours with another text");
	altered("DROP VIEW entries; CREATE VIEW entries AS SELECT path, '' AS content, version FROM files", "'entries'", "another view");
	altered("CREATE INDEX i ON files(abs(size))", "'i'", "an index on our tables");
	altered("DROP TABLE counter; CREATE VIEW counter AS SELECT 1 AS version", "'counter'", "a view in place of a table");

	file = fresh();
	s = open_store(file, STORE_CREATE);
	put(s, "/a", "x");
	be->close(s);
	sql_file(file, "CREATE TABLE mine(x); CREATE VIEW v AS SELECT * FROM mine; CREATE TRIGGER t AFTER INSERT ON mine BEGIN SELECT 1; END");
	s = open_store(file, STORE_WRITE);
	ok(put(s, "/a", "y") == 0, "other tables in the same file are no matter");
	holds(s, "/a", "y", "beside other tables");
	be->close(s);
	free(file);
}

static void
damaged(void)
{
	static const char *const statements[] = {
		"UPDATE files SET size = size + 1",
		"UPDATE files SET base = -1",
		"UPDATE files SET run = -1",
		"UPDATE files SET run = size + 1",
		"UPDATE files SET size = -5",
		"UPDATE files SET size = 9223372036854775807",
		"DELETE FROM segments WHERE id = (SELECT max(id) FROM segments)",
		"DELETE FROM segments",
		"UPDATE segments SET data = ''",
		"UPDATE segments SET data = 5",
		"UPDATE segments SET data = substr(data, 1, 10)",
	};
	struct buf b = BUF_INIT;
	size_t i;

	for (i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
		char *file = fresh();
		void *s = open_store(file, STORE_CREATE);

		pattern(&b, 70000, 1);
		one(s, STORE_OP_WRITE, "/a", b.data, b.len, NULL);
		be->close(s);
		sql_file(file, statements[i]);
		s = open_store(file, STORE_WRITE);
		ok(!get(s, "/a", &b) && e.code == ERR_DATA, "damage is told: %s", e.msg);
		be->close(s);
		free(file);
	}
	buf_release(&b);
}

/* ---- Other processes ---- */

static void
busy(void)
{
	char *file = fresh();
	void *s = open_store(file, STORE_CREATE);
	int gate[2], status;
	sqlite3 *db;
	pid_t pid;
	char c;

	put(s, "/a", "x");
	db = client(file);
	sql(db, "BEGIN IMMEDIATE");
	ok(put(s, "/a", "y") < 0 && e.code == ERR_BUSY, "a database that is held for long: %s", e.msg);
	holds(s, "/a", "x", "while it is held");
	sqlite3_close(db);
	ok(put(s, "/a", "y") == 0, "and when it is let go");
	be->close(s);

	if (pipe(gate) < 0 || (pid = fork()) < 0)
		bail("cannot fork");
	if (pid == 0) {
		db = client(file);
		sql(db, "BEGIN IMMEDIATE");
		if (write(gate[1], "x", 1) != 1)
			_exit(1);
		usleep(100000);
		sql(db, "COMMIT");
		_exit(0);
	}
	ok(read(gate[0], &c, 1) == 1, "a database that is held for a moment");
	s = open_store(file, STORE_WRITE);
	ok(put(s, "/a", "z") == 0, "is waited for");
	waitpid(pid, &status, 0);
	be->close(s);
	close(gate[0]);
	close(gate[1]);
	free(file);
}

/* A writer is killed at any moment; it reports each append once it is done. */
static void
killed(void)
{
	char *file = fresh();
	struct buf text = BUF_INIT, want = BUF_INIT;
	bool good = true;
	int i, k, gate[2];
	pid_t pid;
	void *s;

	for (i = 0; i < 30; i++) {
		size_t before = want.len;
		unsigned char done_one;
		ssize_t n;

		if (pipe(gate) < 0 || (pid = fork()) < 0)
			bail("cannot fork");
		if (pid == 0) {
			s = open_store(file, STORE_CREATE);
			for (k = 0;; k++)
				if (add(s, "/f", "0123456789abcde\n") < 0 || write(gate[1], "x", 1) != 1)
					_exit(1);
		}
		close(gate[1]);
		for (k = 0; k < 1 + i * 3 && (n = read(gate[0], &done_one, 1)) == 1; k++)
			buf_adds(&want, "0123456789abcde\n");
		kill(pid, SIGKILL);
		while ((n = read(gate[0], &done_one, 1)) == 1)
			buf_adds(&want, "0123456789abcde\n");
		close(gate[0]);
		waitpid(pid, NULL, 0);
		s = open_store(file, STORE_READ);
		good = good && get(s, "/f", &text) && text.len >= want.len && text.len <= want.len + 16 && text.len % 16 == 0 && want.len > before;
		be->close(s);
		buf_reset(&want);
		while (want.len < text.len)
			buf_adds(&want, "0123456789abcde\n");
		good = good && memcmp(want.data, text.data, text.len) == 0;
	}
	ok(good, "a writer is killed thirty times: what it reported is there, and at most one append more");
	buf_release(&text);
	buf_release(&want);
	free(file);
}

static void
two_writers(void)
{
	char *file = fresh(), line[40];
	struct buf b = BUF_INIT;
	int i, k, status, next[2] = { 0, 0 };
	bool good = true;
	pid_t pids[2];
	void *s;
	size_t at;

	for (i = 0; i < 2; i++) {
		if ((pids[i] = fork()) < 0)
			bail("cannot fork");
		if (pids[i] != 0)
			continue;
		s = NULL;
		for (k = 0; k < 200; k++) {
			struct store_options o = { .mode = STORE_CREATE, .timeout_ms = 20000 };
			struct store_op op = { .kind = STORE_OP_APPEND, .path = "/f", .data = line, .len = 16 };

			snprintf(line, sizeof(line), "%d %013d\n", i, k);
			if (s == NULL && be->open(&s, file, "", &o, &e) < 0)
				_exit(1);
			if (be->commit(s, &op, 1, &e) < 0 || op.offset % 16 != 0)
				_exit(1);
			if (k % 20 == 0) {
				be->close(s);
				s = NULL;
			}
		}
		if (s != NULL)
			be->close(s);
		_exit(0);
	}
	for (i = 0; i < 2; i++)
		ok(waitpid(pids[i], &status, 0) == pids[i] && status == 0, "writer %d of two has no trouble", i);
	s = open_store(file, STORE_READ);
	ok(get(s, "/f", &b) && b.len == 2 * 200 * 16, "every append of two writers is there");
	for (at = 0; at + 16 <= b.len; at += 16) {
		i = b.data[at] - '0';
		good = good && (i == 0 || i == 1) && atoi(b.data + at + 2) == next[i]++;
	}
	ok(good, "whole and in order");
	be->close(s);
	buf_release(&b);
	free(file);
}

/* In a child without root's rights: 0 when all went well, else the number of the check. */
static int
read_only_checks(const char *dir, const char *file)
{
	struct buf b = BUF_INIT;
	char *log = xasprintf("%s-wal", file);
	void *s;

	if (geteuid() == 0 && setuid(65534) < 0)
		return 1;
	if (access(dir, W_OK) == 0)
		return 2;
	s = open_store(file, STORE_READ);
	if (s == NULL || !get(s, "/a", &b) || strcmp(b.data, "text") != 0)
		return 3;
	if (access(log, F_OK) == 0)
		return 4;
	be->close(s);
	s = open_store(file, STORE_WRITE);
	if (s == NULL || put(s, "/a", "x") == 0 || (e.code != ERR_PERM && e.code != ERR_IO))
		return 5;
	return 0;
}

static void
read_only(void)
{
	char *dir = xasprintf("%s/ro", tmpdir()), *file = xasprintf("%s/x?%%#.db", dir);
	void *s, *w;
	int status;
	pid_t pid;

	s = open_store(file, STORE_CREATE);
	put(s, "/a", "text");
	be->close(s);
	chmod(tmpdir(), 0755);
	chmod(file, 0644);
	chmod(dir, 0555);
	if ((pid = fork()) < 0)
		bail("cannot fork");
	if (pid == 0)
		_exit(read_only_checks(dir, file));
	waitpid(pid, &status, 0);
	is_int(status, 0, "a store in a directory that may not be written can be read, and only that");

	/* Its owner writes while another reads: what is read is never a mixture. */
	chmod(dir, 0755);
	if ((pid = fork()) < 0)
		bail("cannot fork");
	if (pid == 0) {
		struct buf b = BUF_INIT;

		if (geteuid() == 0 && setuid(65534) < 0)
			_exit(1);
		s = open_store(file, STORE_READ);
		if (s == NULL || !get(s, "/a", &b) || strcmp(b.data, "text") != 0)
			_exit(2);
		raise(SIGSTOP);
		_exit(get(s, "/a", &b) && strcmp(b.data, "changed") == 0 ? 0 : 3);
	}
	waitpid(pid, &status, WUNTRACED);
	w = open_store(file, STORE_WRITE);
	ok(put(w, "/a", "changed") == 0, "its owner writes while another holds it open");
	kill(pid, SIGCONT);
	waitpid(pid, &status, 0);
	is_int(status, 0, "who then sees the change");
	be->close(w);
	free(dir);
	free(file);
}

static void
whole_copies(void)
{
	char *file = fresh(), *copy = fresh();
	struct buf b = BUF_INIT;
	void *s = open_store(file, STORE_CREATE);

	pattern(&b, 1000000, 1);
	one(s, STORE_OP_WRITE, "/a", b.data, b.len, NULL);
	add(s, "/a", "!");
	buf_addch(&b, '!');
	be->close(s);
	copy_file(file, copy);
	s = open_store(copy, STORE_READ);
	holds_bytes(s, "/a", b.data, b.len, "a copy of the one file");
	be->close(s);
	buf_release(&b);
	free(file);
	free(copy);
}

static void
memory(void)
{
	struct store_options o = { .mode = STORE_CREATE };
	struct store_op op = { .kind = STORE_OP_WRITE, .path = "/a/b", .data = odd, .len = sizeof(odd) - 1 };
	void *s = NULL, *other = NULL, *l, *m;
	struct store_stat st;

	ok(store_memory.open(&s, "", "", &o, &e) == 0 && store_memory.open(&other, "", "", &o, &e) == 0, "a store in memory");
	ok(store_memory.stat(s, "/", &st, &e) == 0, "is empty");
	ok(store_memory.commit(s, &op, 1, &e) == 0 && store_memory.stat(s, "/a/b", &st, &e) == 1 && st.size == op.len, "can be written");
	ok(store_memory.stat(other, "/a/b", &st, &e) == 0, "is not another's");
	ok(store_memory.lock(s, "/a", 0, -1, &l, &e) == 0 && store_memory.lock(s, "/a", 0, -1, &m, &e) < 0 && e.code == ERR_BUSY,
	    "a lock in it is exclusive");
	ok(store_memory.lock(s, "/b", 0, 0, &m, &e) == 0, "by its name");
	store_memory.unlock(l);
	ok(store_memory.lock(s, "/a", 0, 0, &l, &e) == 0, "and can be let go");
	store_memory.unlock(m);
	store_memory.unlock(l);
	store_memory.close(s);
	store_memory.close(other);
	ok(store_memory.open(&s, "name", "", &o, &e) < 0 && e.code == ERR_USAGE, "it has no name");
}

/* A limit on the size of files stands for a full disk. */
static void
full_disk(void)
{
	char *file = fresh();
	struct buf big = BUF_INIT;
	void *s = open_store(file, STORE_CREATE);
	int status;
	pid_t pid;

	put(s, "/a", "text");
	be->close(s);
	pattern(&big, 2000000, 1);
	if ((pid = fork()) < 0)
		bail("cannot fork");
	if (pid == 0) {
		struct rlimit limit = { 400000, 400000 };

		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		s = open_store(file, STORE_WRITE);
		_exit(one(s, STORE_OP_WRITE, "/a", big.data, big.len, NULL) < 0 && e.code == ERR_IO ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	is_int(status, 0, "a full disk is told");
	s = open_store(file, STORE_WRITE);
	holds(s, "/a", "text", "after that");
	ok(add(s, "/a", "!") == 0, "and when there is room again, all goes on");
	be->close(s);
	buf_release(&big);
	free(file);
}

/* The limit is checked before anything is copied, so these bytes need not be there. */
static void
too_large(void)
{
	char *file = fresh();
	void *s = open_store(file, STORE_CREATE);

	put(s, "/a", "x");
	ok(one(s, STORE_OP_WRITE, "/b", odd, 1000000001, NULL) < 0 && e.code == ERR_DATA && strstr(e.msg, "1 GB") != NULL,
	    "more than 1 GB is refused: %s", e.msg);
	ok(one(s, STORE_OP_APPEND, "/a", odd, 1000000000, NULL) < 0 && e.code == ERR_DATA, "also by appending");
	holds(s, "/a", "x", "then");
	be->close(s);
	free(file);
}

static void
locks(void)
{
	char *file = fresh(), *link = xasprintf("%s/link.db", tmpdir());
	void *s = open_store(file, STORE_CREATE), *t, *l, *m;

	ok(be->lock(s, "/a", 0, 0, &l, &e) == 0, "a lock needs no store yet");
	put(s, "/x", "");
	if (symlink(file, link) < 0)
		bail("cannot link");
	t = open_store(link, STORE_WRITE);
	ok(be->lock(t, "/a", 0, 0, &m, &e) < 0 && e.code == ERR_BUSY, "it excludes another, by whatever name: %s", e.msg);
	ok(be->lock(t, "/b", 0, 0, &m, &e) == 0, "but not of another path");
	be->unlock(l);
	be->unlock(m);
	ok(be->lock(t, "/a", 0, 0, &m, &e) == 0, "and is free afterwards");
	be->unlock(m);
	be->close(s);
	be->close(t);
	free(file);
	free(link);
}

/* ---- The short way to an answer ---- */

#define STATEMENTS 7

static void
schema_of(const char *file, char **sql)
{
	sqlite3 *db = client(file);
	sqlite3_stmt *st;
	int i;

	sqlite3_prepare_v2(db, "SELECT sql FROM sqlite_master WHERE sql NOT NULL ORDER BY rowid", -1, &st, NULL);
	for (i = 0; i < STATEMENTS && sqlite3_step(st) == SQLITE_ROW; i++)
		sql[i] = xstrdup((const char *)sqlite3_column_text(st, 0));
	if (i < STATEMENTS)
		bail("the schema is shorter than expected");
	sqlite3_finalize(st);
	sqlite3_close(db);
}

static void
free_schema(char **sql)
{
	int i;

	for (i = 0; i < STATEMENTS; i++)
		free(sql[i]);
}

static int
peek(const char *file, char **sql, const char *path, struct peek_row *row)
{
	return sqlite_peek(file, (const char *const *)sql, STATEMENTS, 0x61673273, 1, path, row);
}

/* The question of number i: a path that was written, one below or beside it, a beginning of one, or its directory. */
static char *
question(struct buf *b, int i, int names, int files)
{
	unsigned r = (unsigned)(i % files) * 1103515245u + 12345;
	int k;

	buf_reset(b);
	buf_addf(b, "/%u/", r >> 16 & 15);
	for (k = 0; k < names; k++)
		buf_addch(b, (char)('a' + (r >> 20) % 3));
	buf_addf(b, "%u/%d", r >> 24, i % files % 7);
	if (i >= files && i % 3 == 0)
		buf_addch(b, "x/0\xff"[i / 3 % 4]);
	if (i >= files && i % 3 == 1)
		b->data[2 + (unsigned)i * 7919u % (b->len - 2)] = '\0';
	if (b->data[strlen(b->data) - 1] == '/')
		b->data[strlen(b->data) - 1] = '\0';
	if (i >= files && i % 3 == 2)
		*strrchr(b->data, '/') = '\0';
	return b->data;
}

/* Every answer that is given is SQLite's, and nearly all are given. */
static void
peeks(int page_size, int files, int names)
{
	char *file = fresh(), *pragma = xasprintf("PRAGMA page_size = %d; VACUUM", page_size);
	int i, n = 3 * files, known = 0, right = 0, *rc = xcalloc((size_t)n, sizeof(*rc));
	struct peek_row *rows = xcalloc((size_t)n, sizeof(*rows));
	char *sql[STATEMENTS];
	struct buf q = BUF_INIT;
	struct store_op *ops = xcalloc((size_t)files, sizeof(*ops));
	struct store_stat st;
	void *s;

	sql_file(file, pragma);
	s = open_store(file, STORE_CREATE);
	for (i = 0; i < files; i++)
		ops[i] = (struct store_op){ .kind = STORE_OP_APPEND, .path = xstrdup(question(&q, i, names, files)), .data = "12345", .len = (size_t)i % 5 };
	ok(be->commit(s, ops, (size_t)files, &e) == 0, "%d files in pages of %d: %s", files, page_size, e.msg);
	for (i = 0; i < files; i += 9)
		one(s, STORE_OP_DELETE, ops[i].path, NULL, 0, NULL);
	be->close(s);
	schema_of(file, sql);
	for (i = 0; i < n; i++)
		rc[i] = peek(file, sql, question(&q, i, names, files), &rows[i]);
	s = open_store(file, STORE_WRITE);
	for (i = 0; i < n; i++) {
		int want = be->stat(s, question(&q, i, names, files), &st, &e);

		known += rc[i] >= 0;
		right += rc[i] < 0 || (want == 0 && rc[i] == 0) || (want == 1 && st.dir && rc[i] == 2) ||
		    (want == 1 && !st.dir && rc[i] == 1 && (uint64_t)rows[i].size == st.size &&
		    (uint64_t)rows[i].version == st.version && fabs(rows[i].mtime - st.mtime) < 1e-9);
	}
	is_int(right, n, "the answers from the file are SQLite's: %d files in pages of %d, names of %d", files, page_size, names);
	ok(known >= n - n / 10, "and %d of %d are known", known, n);
	be->close(s);
	for (i = 0; i < files; i++)
		free((char *)ops[i].path);
	free_schema(sql);
	buf_release(&q);
	free(ops);
	free(rows);
	free(rc);
	free(pragma);
	free(file);
}

static void
peeks_only_when_sure(void)
{
	char *file = fresh(), *log = xasprintf("%s-wal", file), *link = xasprintf("%s/peek.db", tmpdir());
	char *sql[STATEMENTS], *view;
	struct peek_row row;
	struct buf whole = BUF_INIT;
	void *s = open_store(file, STORE_CREATE);
	size_t i, answers = 0;
	sqlite3 *db;
	int fd;

	put(s, "/a", "text");
	be->close(s);
	schema_of(file, sql);
	is_int(peek(file, sql, "/a", &row), 1, "a file");
	is_int(row.size, 4, "its size");
	is_int(sqlite_peek(file, (const char *const *)sql, STATEMENTS, 0x61673273, 2, "/a", &row), -1, "not in a newer layout");
	view = sql[3];
	sql[3] = (char[]){ "CREATE VIEW entries AS SELECT 1" };
	is_int(peek(file, sql, "/a", &row), -1, "not with another schema");
	sql[3] = view;
	if (symlink(file, link) < 0)
		bail("cannot link");
	is_int(peek(link, sql, "/a", &row), -1, "not through a link: the log would be elsewhere");
	db = client(file);
	sql_number(db, "SELECT count(*) FROM files");
	ok(access(log, F_OK) == 0, "while another uses the log");
	is_int(peek(file, sql, "/a", &row), -1, "it is left to SQLite");
	sqlite3_close(db);
	sql_file(file, "PRAGMA journal_mode = DELETE");
	is_int(peek(file, sql, "/a", &row), -1, "and when there is no log");
	sql_file(file, "PRAGMA journal_mode = WAL");
	is_int(peek(file, sql, "/a", &row), 1, "but not else");

	/* Whatever byte is damaged: an answer or none, but no harm. */
	if (io_read_file(file, &whole, &e) < 0)
		bail("cannot read %s", file);
	for (i = 0; i < whole.len; i += 1 + i % 3) {
		struct peek_row r;

		if (i % 4096 > 1400 && i % 4096 < 3900 && i > 4096)
			continue;
		fd = open(file, O_WRONLY);
		if (pwrite(fd, (char[]){ (char)(whole.data[i] ^ 0x81) }, 1, (off_t)i) != 1)
			bail("cannot write");
		answers += peek(file, sql, "/a", &r) >= -1;
		if (pwrite(fd, whole.data + i, 1, (off_t)i) != 1)
			bail("cannot write");
		close(fd);
	}
	ok(answers > 1000, "damage does no harm: %zu kinds", answers);
	is_int(peek(file, sql, "/a", &row), 1, "and without damage it is known again");
	buf_release(&whole);
	free_schema(sql);
	free(file);
	free(log);
	free(link);
}

int
main(void)
{
	creation();
	appending();
	ranges();
	snapshots();
	log_grows();
	held();
	listing();
	versions();
	prefixes();
	far_places();
	ag2_statements();
	ag2_database();
	ag2_large();
	foreign();
	damaged();
	busy();
	killed();
	two_writers();
	read_only();
	whole_copies();
	memory();
	full_disk();
	too_large();
	locks();
	peeks(4096, 1, 3);
	peeks(4096, 300, 3);
	peeks(4096, 3000, 40);
	peeks(8192, 3000, 200);
	peeks(65536, 2000, 5);
	peeks_only_when_sure();
	return done();
}

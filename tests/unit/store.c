/*
 * What every back end must do alike. AG2_TEST_STORE is the URL of one store to run it on (its content is deleted), or one
 * of the kinds that tests/backend.bash has; without it new stores of each kind that needs no server are used in turn, and
 * tests/23-store-redis*.bats give it those that do. The golden operations are those of AG2, with the answers of
 * its memory store; where ours differ is in `deviations` and, with the reasons, in tests/DEVIATIONS.md.
 */
#include "store/store.h"

#include "base/alloc.h"
#include "base/io.h"
#include "base/sha1.h"
#include "tap.h"

#include <json-c/json.h>
#include <signal.h>
#include <sys/wait.h>

static const char *kind;	/* of the store that is tested, for messages */
static char *url;
static bool shared;		/* two handles see one store */

static struct store *
opened(enum store_mode mode)
{
	struct store_options o = { .mode = mode, .timeout_ms = 5000 };
	struct store *s = NULL;
	struct err e = ERR_INIT;

	if (store_open(&s, url, &o, &e) < 0)
		bail("cannot open %s: %s", url, e.msg);
	return s;
}

/* An empty store. */
static struct store *
fresh(void)
{
	struct store *s = opened(STORE_CREATE);
	struct err e = ERR_INIT;

	if (store_delete(s, "/", &e) < 0)
		bail("cannot empty %s: %s", url, e.msg);
	return s;
}

static void
put(struct store *s, const char *path, const char *text)
{
	struct err e = ERR_INIT;

	if (store_write(s, path, text, strlen(text), &e) < 0)
		ok(false, "%s: writes %s: %s", kind, path, e.msg);
}

static void
reads(struct store *s, const char *path, const char *want, const char *what)
{
	struct buf b = BUF_INIT;
	struct err e = ERR_INIT;
	int rc = store_read(s, path, &b, NULL, &e);

	if (want == NULL)
		ok(rc == -1 && e.code == ERR_ABSENT, "%s: %s", kind, what);
	else
		is_str(rc == 0 ? b.data : e.msg, want, "%s: %s", kind, what);
	buf_release(&b);
}

static uint64_t
version(struct store *s, const char *path)
{
	struct store_stat st = { 0 };
	struct err e = ERR_INIT;
	int rc = store_stat(s, path, &st, &e);

	if (rc < 0)
		ok(false, "%s: stat of %s: %s", kind, path, e.msg);
	return rc == 1 ? st.version : 0;
}

static int
add_name(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	buf_addf(arg, "%s%s|", name, dir ? "/" : "");
	if (st != NULL && st->dir != dir)
		buf_adds(arg, "(stat differs)|");
	return 0;
}

static void
lists(struct store *s, const char *path, unsigned flags, const char *want, const char *what)
{
	struct buf b = BUF_INIT;
	struct err e = ERR_INIT;

	if (store_list(s, path, flags, add_name, &b, &e) != 0)
		buf_adds(&b, e.msg);
	is_str(b.data, want, "%s: %s", kind, what);
	buf_release(&b);
}

/* The golden operations. */

enum instead { REFUSED, CREATE, ANSWER };

static const struct deviation {
	int op;
	enum instead instead;
	const char *json;
} deviations[] = {
	{ 76, REFUSED, NULL }, { 77, REFUSED, NULL }, { 79, REFUSED, NULL }, { 81, REFUSED, NULL }, { 82, REFUSED, NULL },
	{ 83, REFUSED, NULL }, { 84, REFUSED, NULL }, { 117, REFUSED, NULL }, { 118, REFUSED, NULL }, { 146, REFUSED, NULL },
	{ 147, REFUSED, NULL },
	{ 122, CREATE, NULL }, { 124, ANSWER, "null" }, { 125, ANSWER, "[]" },
	{ 130, CREATE, NULL }, { 131, ANSWER, "null" }, { 133, CREATE, NULL }, { 136, ANSWER, "false" },
	{ 138, CREATE, NULL }, { 139, ANSWER, "null" }, { 140, ANSWER, "null" }, { 141, CREATE, NULL },
	/* a range that begins or ends inside a character: AG2 cannot decode it */
	{ 37, ANSWER, "\"bytes:c3\"" }, { 38, ANSWER, "\"bytes:a96c6c6f20e4bda0e5a5bd20f09f9880\"" },
};

static const struct deviation *
deviation_of(int op)
{
	size_t i;

	for (i = 0; i < sizeof(deviations) / sizeof(deviations[0]); i++)
		if (deviations[i].op == op)
			return &deviations[i];
	return NULL;
}

/* A name that is in AG2's listing only because of an operation that ours refuses. */
static bool
of_refused(int op, const char *name, size_t len)
{
	return len == 0 || memchr(name, '\0', len) != NULL || (len > 255 && name[len - 1] != '/') || strcmp(name, ".") == 0 || strcmp(name, "../") == 0 ||
	    (op >= 122 && strcmp(name, "f/") == 0) || (op >= 134 && (strcmp(name, "x") == 0 || strcmp(name, "x/") == 0));
}

static const char *
field(struct json_object *o, const char *name, size_t *len)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, name, &v) || v == NULL)
		return NULL;
	*len = (size_t)json_object_get_string_len(v);
	return json_object_get_string(v);
}

/* store.h takes NUL-terminated paths: one with a NUL in it cannot be said there, and is refused by path.h. */
static int
run_op(struct store *s, struct json_object *o, struct buf *answer, struct err *e)
{
	size_t path_len = 0, len = 0;
	const char *op = field(o, "op", &len), *path = field(o, "path", &path_len), *content = field(o, "content", &len);
	struct json_object *v;
	uint64_t offset;
	int64_t start = 0, end = STORE_END;
	int rc;

	if (memchr(path, '\0', path_len) != NULL)
		return err_set(e, ERR_DATA, "a NUL");
	if (strcmp(op, "write") == 0)
		return store_write(s, path, content, len, e);
	if (strcmp(op, "delete") == 0)
		return store_delete(s, path, e);
	if (strcmp(op, "list") == 0)
		return store_list(s, path, 0, add_name, answer, e);
	if (strcmp(op, "exists") == 0) {
		rc = store_stat(s, path, NULL, e);
		buf_adds(answer, rc == 1 ? "true" : "false");
		return rc < 0 ? -1 : 0;
	}
	if (strcmp(op, "append") == 0) {
		rc = store_append(s, path, content, len, &offset, e);
		buf_addf(answer, "%llu", (unsigned long long)offset);
		return rc;
	}
	if (strcmp(op, "read") == 0) {
		rc = store_read(s, path, answer, NULL, e);
		if (rc == 0 || e->code != ERR_ABSENT)
			return rc;
		buf_adds(answer, "(none)");
		return 0;
	}
	if (strcmp(op, "read_range") != 0)
		return err_set(e, ERR_BUG, "%s?", op);
	if (json_object_object_get_ex(o, "start", &v))
		start = json_object_get_int64(v);
	if (json_object_object_get_ex(o, "end", &v) && v != NULL)
		end = json_object_get_int64(v);
	return store_read_range(s, path, start, end, answer, e);
}

static void
expected(int op, const char *name, struct json_object *v, struct buf *want)
{
	size_t i, n;
	const char *text;

	if (json_object_is_type(v, json_type_array)) {
		for (i = 0; i < json_object_array_length(v); i++) {
			struct json_object *item = json_object_array_get_idx(v, i);

			n = (size_t)json_object_get_string_len(item);
			text = json_object_get_string(item);
			if (!of_refused(op, text, n)) {
				buf_add(want, text, n);
				buf_addch(want, '|');
			}
		}
	} else if (v == NULL) {
		buf_adds(want, strcmp(name, "read") == 0 ? "(none)" : "");
	} else {
		text = json_object_get_string(v);
		n = json_object_is_type(v, json_type_string) ? (size_t)json_object_get_string_len(v) : strlen(text);
		if (strncmp(text, "bytes:", 6) != 0)
			buf_add(want, text, n);
		for (i = 6; strncmp(text, "bytes:", 6) == 0 && i + 1 < n; i += 2)
			buf_addch(want, (char)strtol((char[3]){ text[i], text[i + 1], 0 }, NULL, 16));
	}
}

static void
golden_op(struct store *s, int i, struct json_object *o)
{
	const struct deviation *d = deviation_of(i);
	struct json_object *v = NULL, *ours = NULL;
	struct buf got = BUF_INIT, want = BUF_INIT;
	struct err e = ERR_INIT;
	size_t unused, path_len;
	const char *name = field(o, "op", &unused), *path = field(o, "path", &path_len);
	int rc = run_op(s, o, &got, &e);

	if (d != NULL && d->instead != ANSWER) {
		ok(rc == -1 && e.code == (d->instead == REFUSED ? ERR_DATA : ERR_CREATE), "%s: golden %d: %s %.40s is refused", kind, i, name, path);
	} else {
		json_object_object_get_ex(o, "expect", &v);
		json_object_object_get_ex(v, "memory", &v);
		if (!json_object_object_get_ex(v, "ok", &v) && d == NULL)
			ok(false, "golden %d: AG2 has no answer", i);
		if (d != NULL)
			v = ours = json_tokener_parse(d->json);
		expected(i, name, v, &want);
		if (rc < 0)
			ok(false, "%s: golden %d: %s %.40s: %s", kind, i, name, path, e.msg);
		else
			is_bytes(got.data, got.len, want.data, want.len, "%s: golden %d: %s %.40s", kind, i, name, path);
		json_object_put(ours);
	}
	buf_release(&got);
	buf_release(&want);
}

static void
golden(void)
{
	struct store *s = fresh();
	struct buf text = BUF_INIT;
	struct json_object *all, *ops;
	struct err e = ERR_INIT;
	size_t i;

	if (io_read_file("tests/golden/stores.json", &text, &e) < 0 || (all = json_tokener_parse(text.data)) == NULL)
		bail("tests/golden/stores.json: %s", e.msg);
	json_object_object_get_ex(all, "ops", &ops);
	for (i = 0; i < json_object_array_length(ops); i++)
		golden_op(s, (int)i, json_object_array_get_idx(ops, i));
	json_object_put(all);
	buf_release(&text);
	store_close(s);
}

/* Versions, and what stat says. */

static void
versions(void)
{
	struct store *s = fresh();
	struct store_stat st;
	struct err e = ERR_INIT;
	uint64_t v[8], other, offset;
	int i;

	put(s, "/v", "1");
	v[0] = version(s, "/v");
	put(s, "/v", "1");
	v[1] = version(s, "/v");
	store_append(s, "/v", "2", 1, &offset, &e);
	v[2] = version(s, "/v");
	put(s, "/w", "w");
	other = version(s, "/w");
	store_delete(s, "/v", &e);
	ok(version(s, "/v") == 0, "%s: what is deleted has no version", kind);
	put(s, "/v", "1");
	v[3] = version(s, "/v");
	store_delete(s, "/", &e);
	store_append(s, "/v", "1", 1, &offset, &e);
	v[4] = version(s, "/v");
	put(s, "/d/v", "1");
	v[5] = version(s, "/d/v");
	store_delete(s, "/d", &e);
	put(s, "/d/v", "2");
	v[6] = version(s, "/d/v");
	for (i = 1; i < 5; i++)
		ok(v[i] > v[i - 1], "%s: version %d of a path is above the one before", kind, i);
	ok(v[6] > v[5], "%s: a version rises over the deletion of the directory", kind);
	ok(v[0] > 0 && other > v[2] && v[3] > other, "%s: the last path written has the greatest version", kind);

	ok(store_stat(s, "/d/v", &st, &e) == 1 && !st.dir && st.size == 1 && st.version == v[6], "%s: stat of a file", kind);
	ok(st.mtime < 0 || st.mtime > 1e9, "%s: its time is a time", kind);
	ok(store_stat(s, "/d", &st, &e) == 1 && st.dir && st.size == 0 && st.version == 0, "%s: stat of a directory", kind);
	ok(store_stat(s, "/nope", &st, &e) == 0 && store_stat(s, "/v/below", &st, &e) == 0, "%s: stat of what is not there", kind);
	store_close(s);
}

/* Many versions in a row, as fast as they come: each is above the last. */
static void
versions_quick(void)
{
	struct store *s = fresh();
	struct store_op op = { .kind = STORE_OP_APPEND, .path = "/q", .data = "x", .len = 1 };
	struct err e = ERR_INIT;
	uint64_t last = 0;
	int i, bad = 0;

	for (i = 0; i < 300; i++) {
		op.kind = i % 3 == 2 ? STORE_OP_WRITE : STORE_OP_APPEND;
		if (store_commit(s, &op, 1, &e) < 0 || op.version <= last || version(s, "/q") != op.version)
			bad++;
		last = op.version;
	}
	is_int(bad, 0, "%s: 300 changes in a row, each with a greater version than the one before", kind);
	store_close(s);
}

/* Reading. */

static void
reading(void)
{
	struct store *s = fresh();
	struct store_file *f;
	struct store_stat st;
	struct buf b = BUF_INIT_MAX(10);
	struct err e = ERR_INIT;
	char text[16];
	ssize_t n;

	put(s, "/r", "0123456789");
	ok(store_read(s, "/r", &b, &st, &e) == 0 && st.size == 10 && st.version == version(s, "/r"), "%s: read tells what was read", kind);
	ok(store_read(s, "/r", &b, NULL, &e) == -1 && e.code == ERR_DATA && b.len == 10, "%s: a buffer's maximum is kept, and what was in it", kind);
	buf_release(&b);
	ok(store_read(s, "/r/x", &b, NULL, &e) == -1 && e.code == ERR_ABSENT, "%s: below a file nothing is read", kind);
	ok(store_read(s, "/a/../r", &b, NULL, &e) == -1 && e.code == ERR_DATA, "%s: '..' is refused", kind);

	ok(store_file_open(s, "/nope", &f, NULL, &e) == -1 && e.code == ERR_ABSENT, "%s: a file that is not there is not opened", kind);
	if (!ok(store_file_open(s, "/r", &f, &st, &e) == 0 && st.size == 10, "%s: a file is opened", kind))
		goto out;
	n = store_file_read(f, 3, text, 4, &e);
	is_bytes(text, n < 0 ? 0 : (size_t)n, "3456", 4, "%s: it is read from where one wants", kind);
	n = store_file_read(f, 8, text, sizeof(text), &e);
	is_bytes(text, n < 0 ? 0 : (size_t)n, "89", 2, "%s: up to its end", kind);
	ok(store_file_read(f, 10, text, 1, &e) == 0 && store_file_read(f, 999, text, 1, &e) == 0, "%s: and nothing behind it", kind);
	store_file_close(f);
out:
	store_close(s);
	buf_release(&b);
}

static int
read_all(struct store_file *f, char *text, size_t size)
{
	size_t at = 0;
	ssize_t n;

	while (at < size && (n = store_file_read(f, at, text + at, size - at, NULL)) > 0)
		at += (size_t)n;
	return (int)at;
}

static void
one_version(void)
{
	struct store *s = fresh(), *other = opened(STORE_WRITE);
	struct store_file *f[3] = { NULL };
	char text[3][64] = { "" };
	struct err e = ERR_INIT;
	uint64_t offset;

	put(s, "/a", "first");
	put(s, "/b", "first");
	put(s, "/c", "first");
	store_file_open(s, "/a", &f[0], NULL, &e);
	store_append(other, "/a", "+", 1, &offset, &e);
	read_all(f[0], text[0], 63);
	store_file_close(f[0]);
	store_file_open(s, "/b", &f[1], NULL, &e);
	put(other, "/b", "the second");
	read_all(f[1], text[1], 63);
	store_file_close(f[1]);
	store_file_open(s, "/c", &f[2], NULL, &e);
	store_delete(other, "/c", &e);
	read_all(f[2], text[2], 63);
	store_file_close(f[2]);
	is_str(text[0], "first", "%s: an open file does not show what is appended", kind);
	is_str(text[1], "first", "%s: nor what is written over it", kind);
	is_str(text[2], "first", "%s: nor that it is deleted", kind);
	reads(s, "/a", "first+", "another handle's append is seen");
	reads(s, "/b", "the second", "another handle's write is seen");
	reads(s, "/c", NULL, "another handle's deletion is seen");
	store_close(other);
	store_close(s);
}

/* Listing. */

static int
stop_at_b(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	++*(int *)arg;
	return strcmp(name, "b") == 0 ? 42 : 0;
}

static int
sum_sizes(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	*(long long *)arg += st == NULL ? -1000000 : dir ? (long long)st->version : (long long)(st->size + (st->version == 0));
	return 0;
}

static void
listing(void)
{
	static const char *const names[] = { "/l/b", "/l/a.b", "/l/a/x", "/l/B", "/l/\xc3\xa9", "/l/\xff", "/l/ ", "/l/a-b/c/d", "/l/\n" };
	struct store *s = fresh();
	struct err e = ERR_INIT;
	long long sizes = 0;
	size_t i;
	int count = 0;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		put(s, names[i], "123");
	put(s, "/.ag2/own", "private");
	lists(s, "/l", 0, "\n| |B|a-b/|a.b|a/|b|\xc3\xa9|\xff|", "a listing is in byte order, slashes included");
	lists(s, "/l", STORE_LIST_STAT, "\n| |B|a-b/|a.b|a/|b|\xc3\xa9|\xff|", "and so with stat");
	lists(s, "/l/a-b", 0, "c/|", "it shows immediate children");
	lists(s, "/", 0, "l/|", "what is ours is hidden");
	lists(s, "/", STORE_LIST_ALL, ".ag2/|l/|", "unless all is asked for");
	reads(s, "/.ag2/own", "private", "it can be read");
	is_int(store_list(s, "/l", 0, stop_at_b, &count, &e), 42, "%s: a listing ends with what its function returns", kind);
	is_int(count, 7, "%s: and right there", kind);
	ok(store_list(s, "/l", STORE_LIST_STAT, sum_sizes, &sizes, &e) == 0 && sizes == 21, "%s: stat gives sizes and versions", kind);
	store_delete(s, "/l", &e);
	ok(store_stat(s, "/", NULL, &e) == 0, "%s: with only our own left, the root is not there", kind);
	reads(s, "/.ag2/own", "private", "deleting does not touch it");
	store_delete(s, "/", &e);
	reads(s, "/.ag2/own", "private", "nor does deleting everything");
	store_delete(s, "/.ag2/own", &e);
	store_close(s);
}

/* Commits. */

/* In the same words on each of them. */
static bool
conflicts(const struct err *e, const char *path)
{
	char want[PATH_MAX];

	snprintf(want, sizeof(want), "'%s' is not what it was: read it again", path);
	return e->code == ERR_CONFLICT && strcmp(e->msg, want) == 0;
}

static void
commit_all(void)
{
	struct store *s = fresh();
	struct err e = ERR_INIT;
	struct store_op ops[] = {
		{ .kind = STORE_OP_WRITE, .path = "/c/new", .data = "new", .len = 3 },
		{ .kind = STORE_OP_APPEND, .path = "/c//log/", .data = "2\n", .len = 2 },
		{ .kind = STORE_OP_DELETE, .path = "/c/old" },
		{ .kind = STORE_OP_EXPECT, .path = "/c/log" },
		{ .kind = STORE_OP_EXPECT, .path = "/c/not" },
		{ .kind = STORE_OP_WRITE, .path = "/c/over", .data = "", .len = 0 },
		{ .kind = STORE_OP_DELETE, .path = "/gone" },
		{ .kind = STORE_OP_APPEND, .path = "/made/by/append", .data = "x", .len = 1 },
	};
	uint64_t before;

	put(s, "/c/log", "1\n");
	put(s, "/c/old", "old");
	put(s, "/c/over", "something");
	put(s, "/gone/a/b", "x");
	ops[3].version = before = version(s, "/c/log");
	ok(store_commit(s, ops, 8, &e) == 0, "%s: a commit of eight operations: %s", kind, e.msg);
	reads(s, "/c/new", "new", "it wrote");
	reads(s, "/c/log", "1\n2\n", "it appended");
	reads(s, "/c/old", NULL, "it deleted");
	reads(s, "/c/over", "", "it emptied");
	reads(s, "/made/by/append", "x", "it made a file to append to");
	lists(s, "/", 0, "c/|made/|", "it deleted a directory");
	is_int((long long)ops[1].offset, 2, "%s: the offset of its append", kind);
	ok(ops[1].version > before && ops[1].version == version(s, "/c/log") && ops[0].version == version(s, "/c/new") &&
	    ops[7].version == version(s, "/made/by/append"), "%s: its versions", kind);

	/* The versions have moved on: the same again is refused, whole. */
	ops[0].data = "NEW";
	ok(store_commit(s, ops, 8, &e) == -1 && conflicts(&e, "/c/log"),
	    "%s: an unexpected version is a conflict that names the path: %s", kind, e.msg);
	reads(s, "/c/new", "new", "after it nothing has changed");
	reads(s, "/c/log", "1\n2\n", "nor been appended");
	store_close(s);
}

static void
refuses(struct store *s, struct store_op *ops, size_t n, enum err_code code, const char *what)
{
	struct err e = ERR_INIT;
	int rc = store_commit(s, ops, n, &e);

	ok(rc == -1 && e.code == code && e.msg[0] != '\0', "%s: %s is refused: %.60s", kind, what, e.msg);
}

#define WRITE(p) { .kind = STORE_OP_WRITE, .path = p, .data = "x", .len = 1 }
#define APPEND(p) { .kind = STORE_OP_APPEND, .path = p, .data = "x", .len = 1 }
#define DELETE(p) { .kind = STORE_OP_DELETE, .path = p }
#define EXPECT(p, v) { .kind = STORE_OP_EXPECT, .path = p, .version = v }

static void
commit_refused(void)
{
	struct store *s = fresh();
	struct err e = ERR_INIT;

	put(s, "/d/f", "f");
	put(s, "/keep", "keep");
	refuses(s, (struct store_op[]){ WRITE("/n"), APPEND("/n") }, 2, ERR_USAGE, "one path twice");
	refuses(s, (struct store_op[]){ WRITE("/n/a"), WRITE("/n-a"), DELETE("/n") }, 3, ERR_USAGE, "a path below another");
	refuses(s, (struct store_op[]){ DELETE("/"), WRITE("/n") }, 2, ERR_USAGE, "deleting all and writing");
	refuses(s, (struct store_op[]){ WRITE("/n"), WRITE("/d") }, 2, ERR_CREATE, "a file where a directory is");
	refuses(s, (struct store_op[]){ WRITE("/n"), APPEND("/d") }, 2, ERR_CREATE, "appending where a directory is");
	refuses(s, (struct store_op[]){ WRITE("/n"), WRITE("/d/f/x") }, 2, ERR_CREATE, "a file below a file");
	refuses(s, (struct store_op[]){ WRITE("/n"), APPEND("/d/f/x/y") }, 2, ERR_CREATE, "appending far below a file");
	refuses(s, (struct store_op[]){ WRITE("/n"), WRITE("/") }, 2, ERR_CREATE, "writing the root");
	refuses(s, (struct store_op[]){ WRITE("/n"), WRITE("/.ag2") }, 2, ERR_CREATE, "writing our directory");
	refuses(s, (struct store_op[]){ WRITE("/n"), WRITE("/a/./b") }, 2, ERR_DATA, "a path with '.'");
	refuses(s, (struct store_op[]){ WRITE("/n"), EXPECT("/keep", 0) }, 2, ERR_CONFLICT, "expecting nothing where a file is");
	refuses(s, (struct store_op[]){ WRITE("/n"), EXPECT("/nope", 1) }, 2, ERR_CONFLICT, "expecting a file where nothing is");
	refuses(s, (struct store_op[]){ DELETE("/keep"), EXPECT("/keep", 1) }, 2, ERR_CONFLICT, "expecting a wrong version");
	lists(s, "/", 0, "d/|keep|", "after all that nothing has changed");
	lists(s, "/d", 0, "f|", "nor below");
	ok(store_commit(s, (struct store_op[]){ EXPECT("/d", 0), EXPECT("/nope", 0), EXPECT("/keep", version(s, "/keep")) }, 3, &e) == 0,
	    "%s: expectations alone can be met", kind);
	ok(store_commit(s, NULL, 0, &e) == 0, "%s: an empty commit is nothing", kind);
	ok(store_commit(s, (struct store_op[]){ DELETE("/nope"), DELETE("/d/nope/x") }, 2, &e) == 0, "%s: deleting what is not there is nothing", kind);
	store_close(s);
}

static void
replaces(struct store *s, const char *path, uint64_t upto, const char *prefix, const char *with, const char *want, const char *what)
{
	struct store_op op = { .kind = STORE_OP_REPLACE_PREFIX, .path = path, .data = with, .len = strlen(with), .upto = upto };
	struct err e = ERR_INIT;
	uint64_t before = version(s, path);
	int rc;

	sha1_of(prefix, strlen(prefix), op.sha1);
	rc = store_commit(s, &op, 1, &e);
	if (want != NULL) {
		ok(rc == 0 && op.version > before && op.version == version(s, path), "%s: %s: %s", kind, what, e.msg);
		reads(s, path, want, what);
	} else {
		ok(rc == -1 && conflicts(&e, path), "%s: %s: %s", kind, what, e.msg);
	}
}

static void
prefixes(void)
{
	struct store *s = fresh();
	struct err e = ERR_INIT;
	char *big = xmalloc(700001);
	struct buf b = BUF_INIT;
	struct store_op ops[] = {
		{ .kind = STORE_OP_REPLACE_PREFIX, .path = "/log", .data = "S\n", .len = 2, .upto = 6 },
		{ .kind = STORE_OP_WRITE, .path = "/log.dropped-1", .data = "1\n2\n3\n", .len = 6 },
	};
	size_t i;

	put(s, "/log", "1\n2\n3\n4\n");
	replaces(s, "/log", 4, "1\n3\n", "x", NULL, "another prefix is a conflict");
	replaces(s, "/log", 9, "1\n2\n3\n4\n", "x", NULL, "a prefix longer than the file is a conflict");
	replaces(s, "/nope", 0, "", "x", NULL, "a prefix of nothing is a conflict");
	reads(s, "/log", "1\n2\n3\n4\n", "after a conflict the file is as it was");
	sha1_of("1\n2\n3\n", 6, ops[0].sha1);
	ok(store_commit(s, ops, 2, &e) == 0, "%s: a prefix moves to another file in one commit: %s", kind, e.msg);
	reads(s, "/log", "S\n4\n", "the prefix is replaced and the rest stays");
	reads(s, "/log.dropped-1", "1\n2\n3\n", "the other file has what was taken out");
	replaces(s, "/log", 0, "", "head ", "head S\n4\n", "an empty prefix inserts at the beginning");
	replaces(s, "/log", 5, "head ", "", "S\n4\n", "an empty replacement cuts off");
	replaces(s, "/log", 4, "S\n4\n", "all", "all", "the prefix may be everything");

	for (i = 0; i < 700000; i++)
		big[i] = (char)('a' + i % 23);
	big[700000] = '\0';
	put(s, "/big", big);
	store_append(s, "/big", "tail", 4, NULL, &e);
	replaces(s, "/big", 700000, big, "<>", "<>tail", "a long prefix is replaced");
	put(s, "/big", big);
	memcpy(&ops[0], &(struct store_op){ .kind = STORE_OP_REPLACE_PREFIX, .path = "/big", .data = "<>", .len = 2, .upto = 3 }, sizeof(ops[0]));
	sha1_of(big, 3, ops[0].sha1);
	ok(store_commit(s, ops, 1, &e) == 0 && store_read(s, "/big", &b, NULL, &e) == 0, "%s: a short prefix of a long file is replaced", kind);
	ok(b.len == 699999 && memcmp(b.data, "<>", 2) == 0 && memcmp(b.data + 2, big + 3, b.len - 2) == 0, "%s: all behind it stays", kind);
	buf_release(&b);
	free(big);
	store_close(s);
}

/* Content that is put together from other files, which need not be in memory. */
static void
pieces(void)
{
	struct store *s = fresh();
	struct err e = ERR_INIT;
	struct buf b = BUF_INIT;
	char *big = xmalloc(300001);
	struct store_piece some[] = { { "/log", 0, 2 }, { "/log", 4, 2 }, { NULL, 1, 3 }, { "//other/", 0, 1 }, { "/log", 0, 0 } };
	struct store_piece moved[] = { { "/big", 5, 200000 }, { NULL, 0, 1 }, { "/big", 200005, 99995 } };
	struct store_piece long_one[] = { { "/log", 3, 100 } }, gone[] = { { "/nope", 0, 1 } }, beyond[] = { { NULL, 2, 3 } }, self[] = { { "/new", 0, 1 } };
	struct store_op ops[] = {
		{ .kind = STORE_OP_WRITE, .path = "/new", .data = "<abc>", .len = 5, .pieces = some, .npieces = 5 },
		{ .kind = STORE_OP_REPLACE_PREFIX, .path = "/log", .data = "S\n", .len = 2, .upto = 6, .unchecked = true },
		{ .kind = STORE_OP_EXPECT, .path = "/log" },
	};
	size_t i;

	put(s, "/log", "1\n2\n3\n4\n");
	put(s, "/other", "o");
	ops[2].version = version(s, "/log") + 1;
	ok(store_commit(s, ops, 3, &e) == -1 && conflicts(&e, "/log"), "%s: an unchecked prefix still heeds an expectation", kind);
	ops[2].version = version(s, "/log");
	ok(store_commit(s, ops, 3, &e) == 0, "%s: pieces of a file whose prefix the same commit replaces: %s", kind, e.msg);
	reads(s, "/new", "1\n3\nabco", "are what was there before");
	reads(s, "/log", "S\n4\n", "and the prefix is replaced");
	ops[1].upto = 100;
	ok(store_commit(s, &ops[1], 1, &e) == -1 && conflicts(&e, "/log"), "%s: an unchecked prefix longer than the file is a conflict", kind);
	ops[0].npieces = 1;
	ops[0].pieces = long_one;
	ok(store_commit(s, ops, 1, &e) == -1 && conflicts(&e, "/log"), "%s: a piece longer than its file is a conflict", kind);
	ops[0].pieces = gone;
	ok(store_commit(s, ops, 1, &e) == -1 && conflicts(&e, "/nope"), "%s: so is one of no file", kind);
	ops[0].pieces = self;
	ok(store_commit(s, ops, 1, &e) == -1 && e.code == ERR_USAGE, "%s: a file cannot be made of itself", kind);
	ops[0].pieces = beyond;
	ops[0].len = 4;
	ok(store_commit(s, ops, 1, &e) == -1 && e.code == ERR_USAGE, "%s: a piece beyond the data is refused", kind);
	reads(s, "/new", "1\n3\nabco", "and nothing has changed");

	for (i = 0; i < 300000; i++)
		big[i] = (char)('a' + i % 23);
	big[300000] = '\0';
	put(s, "/big", big);
	put(s, "/log", "head\ntail");
	memcpy(&ops[0], &(struct store_op){ .kind = STORE_OP_REPLACE_PREFIX, .path = "/log", .data = "|", .len = 1, .upto = 5,
		.pieces = moved, .npieces = 3 }, sizeof(ops[0]));
	sha1_of("head\n", 5, ops[0].sha1);
	memcpy(&ops[1], &(struct store_op){ .kind = STORE_OP_DELETE, .path = "/big" }, sizeof(ops[1]));
	ok(store_commit(s, ops, 2, &e) == 0, "%s: a prefix of pieces of a file that the same commit deletes: %s", kind, e.msg);
	ok(store_read(s, "/log", &b, NULL, &e) == 0 && b.len == 300000, "%s: long pieces are there in full", kind);
	ok(memcmp(b.data, big + 5, 200000) == 0 && b.data[200000] == '|' && memcmp(b.data + 200001, big + 200005, 99995) == 0 &&
	    memcmp(b.data + 299996, "tail", 4) == 0, "%s: and in order", kind);
	ok(store_stat(s, "/big", NULL, &e) == 0, "%s: the file is gone", kind);
	store_append(s, "/log", "!", 1, NULL, &e);
	buf_reset(&b);
	ok(store_read(s, "/log", &b, NULL, &e) == 0 && b.len == 300001 && b.data[300000] == '!', "%s: and can be appended to", kind);
	buf_release(&b);
	free(big);
	store_close(s);
}

/* Large values, and appends to them. */
static void
large(void)
{
	struct store *s = fresh();
	struct buf all = BUF_INIT, b = BUF_INIT, part = BUF_INIT;
	struct store_file *f;
	struct err e = ERR_INIT;
	uint64_t offset;
	int i, bad = 0;

	for (i = 0; i < 200; i++) {
		size_t n = (size_t)(i * 7919 % 20000), k;

		buf_reset(&part);
		for (k = 0; k < n; k++)
			buf_addch(&part, (char)(i + k * 31));
		if (store_append(s, "/large", part.data, part.len, &offset, &e) < 0 || offset != all.len)
			bad++;
		buf_add(&all, part.data, part.len);
	}
	is_int(bad, 0, "%s: 200 appends of up to 20 KB, each at the end: %s", kind, e.msg);
	ok(store_read(s, "/large", &b, NULL, &e) == 0 && b.len == all.len && memcmp(b.data, all.data, b.len) == 0, "%s: they read back as written", kind);
	for (i = 0, bad = 0; i < 100; i++) {
		uint64_t from = (uint64_t)i * 104729 % all.len, to = from + (uint64_t)i * 1299709 % (all.len - from);

		buf_reset(&b);
		if (store_read_range(s, "/large", (int64_t)from, (int64_t)to, &b, &e) < 0 || b.len != to - from ||
		    memcmp(b.data, all.data + from, b.len) != 0)
			bad++;
	}
	is_int(bad, 0, "%s: so do a hundred ranges", kind);
	/* A read gives all that it is asked for, wherever the one before ended; a stretch as much as there is. */
	buf_reset(&b);
	buf_reserve(&b, all.len);
	if (!ok(store_file_open(s, "/large", &f, NULL, &e) == 0, "%s: it is opened: %s", kind, e.msg))
		goto out;
	ok(store_file_read(f, 10, b.data, 20, &e) == 20 && store_file_read(f, 25, b.data, 1500000, &e) == 1500000 &&
	    memcmp(b.data, all.data + 25, 1500000) == 0, "%s: a long read behind a short one is whole", kind);
	ok(store_file_read(f, all.len - 7, b.data, 100, &e) == 7, "%s: up to the end", kind);
	ok(store_file_add(f, all.len - 1000000, all.len + 50, &b, &e) == 0 && b.len == 1000000 &&
	    memcmp(b.data, all.data + all.len - 1000000, b.len) == 0, "%s: so is a stretch", kind);
	b.max = b.len + 9;
	ok(store_file_add(f, 0, 10, &b, &e) == -1 && e.code == ERR_DATA && b.len == 1000000, "%s: which keeps to a buffer's maximum", kind);
	b.max = 0;
	store_file_close(f);
out:
	buf_release(&all);
	buf_release(&b);
	buf_release(&part);
	store_close(s);
}

/* Modes. */

static void
modes(void)
{
	struct store *s = fresh(), *reader;
	struct store_lock *l;
	struct err e = ERR_INIT;

	put(s, "/m", "1");
	reader = opened(STORE_READ);
	reads(reader, "/m", "1", "a reader reads");
	ok(store_write(reader, "/m", "2", 1, &e) == -1 && e.code == ERR_PERM, "%s: but does not write", kind);
	ok(store_append(reader, "/m", "2", 1, NULL, &e) == -1 && e.code == ERR_PERM, "%s: nor append", kind);
	ok(store_delete(reader, "/m", &e) == -1 && e.code == ERR_PERM, "%s: nor delete", kind);
	ok(store_lock(reader, "/m", 1000, 0, &l, &e) == -1 && e.code == ERR_PERM, "%s: nor lock", kind);
	reads(reader, "/m", "1", "and all is as it was");
	put(s, "/m", "3");
	reads(reader, "/m", "3", "it sees what others write later");
	store_close(reader);
	store_close(s);
}

static void
missing(const char *scheme, const char *tail)
{
	char *where = xasprintf("%s:%s/new/deep/store%s", scheme, tmpdir(), tail);
	struct store_options o = { .mode = STORE_READ };
	struct store *s = NULL;
	struct stat st;
	struct err e = ERR_INIT;
	char *file = strchr(where, ':') + 1, *above = xasprintf("%s/new", tmpdir());

	ok(store_open(&s, where, &o, &e) == -1 && e.code == ERR_NOINPUT, "%s: a store that is not there is not read: %s", scheme, e.msg);
	o.mode = STORE_WRITE;
	ok(store_open(&s, where, &o, &e) == -1 && e.code == ERR_NOINPUT, "%s: nor written", scheme);
	o.mode = STORE_CREATE;
	if (!ok(store_open(&s, where, &o, &e) == 0, "%s: one can be created: %s", scheme, e.msg))
		goto out;
	reads(s, "/x", NULL, "it is empty");
	lists(s, "/", STORE_LIST_ALL, "", "it lists nothing");
	ok(store_stat(s, "/", NULL, &e) == 0 && store_delete(s, "/x", &e) == 0, "%s: nothing is there, and can be deleted", scheme);
	ok(store_commit(s, (struct store_op[]){ WRITE("/x"), EXPECT("/x", 3) }, 2, &e) == -1 && conflicts(&e, "/x"), "%s: no version is met", scheme);
	ok(lstat(above, &st) == -1, "%s: by all that nothing was created", scheme);
	put(s, "/x", "1");
	ok(lstat(file, &st) == 0 && (st.st_mode & 077) == 0, "%s: the first change creates it, for its user only", scheme);
	ok(lstat(above, &st) == 0 && (st.st_mode & 077) == 0, "%s: and the directories above", scheme);
	reads(s, "/x", "1", "and it has the change");
	store_close(s);
out:
	tap_remove(file, NULL, 0, NULL);
	nftw(above, tap_remove, 16, FTW_DEPTH | FTW_PHYS);
	free(above);
	free(where);
}

/* Locks. */

static void
locking(void)
{
	struct store *s = fresh(), *other;
	struct store_lock *a = NULL, *b = NULL;
	struct err e = ERR_INIT;

	put(s, "/x", "1");
	other = shared ? opened(STORE_WRITE) : s;
	ok(store_lock(s, "/lock/me", 60000, 0, &a, &e) == 0, "%s: a path that is not there can be locked: %s", kind, e.msg);
	ok(store_lock(other, "lock//me/", 60000, 0, &b, &e) == -1 && e.code == ERR_BUSY, "%s: once: %s", kind, e.msg);
	ok(store_lock(other, "/lock/me", 60000, 1200, &b, &e) == -1 && e.code == ERR_BUSY, "%s: waiting ends", kind);
	ok(store_lock(other, "/lock", 60000, 0, &b, &e) == 0, "%s: another path is free", kind);
	store_unlock(b);
	ok(store_write(other, "/lock/me", "x", 1, &e) == 0, "%s: a write does not heed it", kind);
	store_unlock(a);
	ok(store_lock(other, "/lock/me", 60000, 0, &b, &e) == 0, "%s: let go of, it can be taken", kind);
	store_unlock(b);
	store_unlock(NULL);
	if (shared) {
		ok(store_lock(s, "/x", 60000, 0, &a, &e) == 0 && store_lock(s, "/y", 60000, 0, &b, &e) == 0, "%s: two are taken", kind);
		store_close(s);
		ok(store_lock(other, "/x", 60000, 0, &a, &e) == 0 && store_lock(other, "/y", 60000, 0, &b, &e) == 0, "%s: closing lets go of all", kind);
		store_close(other);
	} else {
		store_close(s);
	}
}

/* A child that holds the lock is killed: it is free at once. Another ends properly while we wait: we get it. */
static void
lock_of_the_dead(void)
{
	struct store *s;
	struct store_lock *l = NULL;
	struct err e = ERR_INIT;
	int ready[2], go[2];
	pid_t pid;
	char c = 0;

	store_close(fresh());
	if (pipe(ready) < 0 || pipe(go) < 0)
		bail("pipe");
	if ((pid = fork()) == 0) {
		s = opened(STORE_CREATE);
		c = store_lock(s, "/dead", 60000, 0, &l, &e) == 0 ? 'y' : 'n';
		if (write(ready[1], &c, 1) == 1)
			pause();
		_exit(0);
	}
	if (read(ready[0], &c, 1) != 1)
		c = 'n';
	s = opened(STORE_CREATE);
	ok(c == 'y' && store_lock(s, "/dead", 60000, 0, &l, &e) == -1 && e.code == ERR_BUSY, "%s: another process holds it", kind);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ok(store_lock(s, "/dead", 60000, 2000, &l, &e) == 0, "%s: until it dies: %s", kind, e.msg);
	store_close(s);

	if ((pid = fork()) == 0) {
		s = opened(STORE_CREATE);
		c = store_lock(s, "/dead", 60000, 0, &l, &e) == 0 ? 'y' : 'n';
		if (write(ready[1], &c, 1) == 1 && read(go[0], &c, 1) == 1)
			store_unlock(l);
		pause();
		_exit(0);
	}
	if (read(ready[0], &c, 1) != 1)
		c = 'n';
	s = opened(STORE_CREATE);
	if (write(go[1], "x", 1) != 1)
		c = 'n';
	ok(c == 'y' && store_lock(s, "/dead", 60000, 10000, &l, &e) == 0, "%s: waiting gets it when it is let go: %s", kind, e.msg);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	store_close(s);
	close(ready[0]);
	close(ready[1]);
	close(go[0]);
	close(go[1]);
}

/* URLs. */

static void
urls(void)
{
	static const struct { const char *url; enum err_code code; const char *says; } bad[] = {
		{ "", ERR_USAGE, "empty" }, { "radish://localhost/0", ERR_USAGE, "disk:" }, { "nope:/x", ERR_USAGE, "memory:" },
		{ "Disk:/x", ERR_USAGE, "sqlite:" }, { "disk:", ERR_USAGE, "" }, { "sqlite:", ERR_USAGE, "" },
		{ "disk:/x?sync=maybe", ERR_USAGE, "sync=full" }, { "disk:/x?sync=full&speed=high", ERR_USAGE, "'speed='" },
		{ "memory:?x", ERR_USAGE, "sync=" },
	};
	struct store_options o = { .mode = STORE_CREATE };
	struct store *s = NULL;
	struct err e = ERR_INIT;
	char *cwd = getcwd(NULL, 0), *want;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(store_open(&s, bad[i].url, &o, &e) == -1 && e.code == bad[i].code && strstr(e.msg, bad[i].says) != NULL,
		    "the URL '%s' is refused: %s", bad[i].url, e.msg);

	if (cwd == NULL || chdir(tmpdir()) < 0)
		bail("chdir");
	static const struct { const char *url, *want; } good[] = {
		{ "rel", "disk:%s/rel" }, { "./a:b", "disk:%s/a:b" }, { "disk:rel/x", "disk:%s/rel/x" }, { "x.db", "sqlite:%s/x.db" },
		{ "dir/x.sqlite", "sqlite:%s/dir/x.sqlite" }, { "sqlite:plain", "sqlite:%s/plain" }, { "disk:x.db", "disk:%s/x.db" },
		{ "disk:rel?sync=full", "disk:%s/rel?sync=full" }, { "disk:a?b?", "disk:%s/a?b?" }, { "a?sync=full", "disk:%s/a?sync=full?" },
		{ ".db", "disk:%s/.db" }, { "sqlite:y?sync=normal&sync=full", "sqlite:%s/y?sync=normal&sync=full" }, { "memory:", "memory:" },
	};
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct buf b = BUF_INIT;

		buf_add(&b, good[i].want, strcspn(good[i].want, "%"));
		if (strchr(good[i].want, '%') != NULL)
			buf_addf(&b, "%s%s", tmpdir(), strchr(good[i].want, '%') + 2);
		if (ok(store_open(&s, good[i].url, &o, &e) == 0, "the URL '%s' is good: %s", good[i].url, e.msg)) {
			is_str(store_url(s), b.data, "it is %s in full", good[i].want);
			want = xstrdup(store_url(s));
			store_close(s);
			s = NULL;
			if (ok(store_open(&s, want, &o, &e) == 0, "which is a URL again"))
				is_str(store_url(s), want, "and the same");
			free(want);
			store_close(s);
		}
		buf_release(&b);
	}

	/* A later change of the directory changes nothing. */
	if (store_open(&s, "moved", &o, &e) < 0 || chdir("/") < 0)
		bail("%s", e.msg);
	store_write(s, "/f", "1", 1, &e);
	want = xasprintf("%s/moved/f", tmpdir());
	ok(access(want, R_OK) == 0, "a relative store is where it was when it was opened");
	free(want);
	store_close(s);
	if (chdir(cwd) < 0)
		bail("chdir");
	free(cwd);
}

static void
all(const char *name, const char *where, bool is_shared)
{
	kind = name;
	url = xstrdup(where);
	shared = is_shared;
	golden();
	versions();
	versions_quick();
	reading();
	listing();
	commit_all();
	commit_refused();
	prefixes();
	pieces();
	large();
	locking();
	if (shared) {
		one_version();
		modes();
		lock_of_the_dead();
	}
	free(url);
}

static const struct {
	const char *kind, *scheme, *file, *options;
	bool shared;
} local[] = {
	{ "disk", "disk", "/tree", "", true },
	{ "disk-full", "disk", "/tree-full", "?sync=full", true },
	{ "sqlite", "sqlite", "/store.db", "", true },
	{ "sqlite-full", "sqlite", "/full.db", "?sync=full", true },
	{ "sqlite-ag2", "sqlite", "/plain.db", "?layout=ag2", true },
	{ "memory", "memory", NULL, "", false },
};

static void
all_of(const char *wanted)
{
	char *where;
	size_t i;

	for (i = 0; i < sizeof(local) / sizeof(local[0]); i++) {
		if (wanted[0] != '\0' && strcmp(wanted, local[i].kind) != 0)
			continue;
		where = xasprintf("%s:%s%s%s", local[i].scheme, local[i].file ? tmpdir() : "", local[i].file ? local[i].file : "", local[i].options);
		all(local[i].kind, where, local[i].shared);
		free(where);
	}
}

int
main(void)
{
	const char *given = getenv("AG2_TEST_STORE");

	signal(SIGPIPE, SIG_IGN);	/* as the programs do */
	if (given == NULL)
		given = "";
	if (strchr(given, ':') != NULL) {
		all(given, given, strncmp(given, "memory:", 7) != 0);
		return done();
	}
	if (given[0] == '\0') {
		urls();
		missing("disk", "");
		missing("sqlite", ".db");
	}
	all_of(given);	/* none where it needs a server */
	return done();
}

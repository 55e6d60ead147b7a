#include "base/alloc.h"
#include "path.h"
#include "tap.h"

static void
normalises(const char *path, size_t len, const char *want)
{
	struct buf b = BUF_INIT;
	struct err e = ERR_INIT;
	int rc = path_normalise(&b, path, len, &e);

	if (want != NULL) {
		ok(rc == 0, "'%.40s' is accepted", path);
		is_bytes(b.data, b.len, want, strlen(want), "'%.40s' is '%.40s'", path, want);
	} else {
		ok(rc == -1 && e.code == ERR_DATA && e.msg[0] != '\0', "a path is refused with a reason: %.60s", e.msg);
	}
	if (strnlen(path, len + 1) == len)
		ok(path_is_normal(path) == (want != NULL && strcmp(path, want) == 0), "and %s", path_is_normal(path) ? "as it is" : "not as it is");
	ok(path_can_be(path, len) == (want != NULL && len == strlen(want) && memcmp(path, want, len) == 0), "and %s", path_can_be(path, len) ? "can be named so" : "cannot be named so");
	buf_release(&b);
}

static void
normal(void)
{
	char name[PATH_COMPONENT_MAX + 2], *all = xmalloc(2 * PATH_BYTES_MAX), *p = all;
	int i;

	normalises("", 0, "/");
	normalises("/", 1, "/");
	normalises("///", 3, "/");
	normalises("a", 1, "/a");
	normalises("a//b/", 5, "/a/b");
	normalises("/..x/.y/z.", 10, "/..x/.y/z.");
	normalises("/...", 4, "/...");
	normalises("/a b%_*[\t\n\\", 11, "/a b%_*[\t\n\\");
	normalises("/\xff\xfe", 3, "/\xff\xfe");
	normalises(".", 1, NULL);
	normalises("/a/..", 5, NULL);
	normalises("/a/./b", 6, NULL);
	normalises("../a", 4, NULL);
	normalises("/a\0b", 4, NULL);
	memset(name, 'n', sizeof(name));
	normalises(name, PATH_COMPONENT_MAX + 1, NULL);
	name[PATH_COMPONENT_MAX] = '\0';
	memmove(name + 1, name, PATH_COMPONENT_MAX);
	name[0] = '/';
	name[PATH_COMPONENT_MAX + 1] = '\0';
	normalises(name, PATH_COMPONENT_MAX + 1, name);
	for (i = 0; i < PATH_BYTES_MAX / 2; i++) {
		memcpy(p, "/a", 2);
		p += 2;
	}
	*p = '\0';
	normalises(all, PATH_BYTES_MAX, all);
	memcpy(p, "/a", 3);
	normalises(all, PATH_BYTES_MAX + 2, NULL);
	free(all);
}

static void
can_name(const char *dir, const char *name)
{
	char *path = xasprintf("%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name);
	bool can = path_can_have(dir, name);

	ok(can == (name[0] != '\0' && path_is_normal(path) && strcmp(path_name(path), name) == 0), "'%.20s' in '%.20s' is %s by a path", name, dir, can ? "named" : "not named");
	free(path);
}

static void
names(void)
{
	static const char *const all[] = { "a", "...", "..a", " \n", "", ".", ".." };
	char name[PATH_COMPONENT_MAX + 2], dir[PATH_BYTES_MAX + 1];
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		can_name("/", all[i]);
		can_name("/dir", all[i]);
	}
	ok(path_can_have("/", "a") && !path_can_have("/", ".."), "some are and some are not");
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	can_name("/", name);
	can_name("/", name + 1);
	for (i = 0; i < PATH_BYTES_MAX; i += 2)
		memcpy(dir + i, "/d", 2);
	dir[PATH_BYTES_MAX] = '\0';
	can_name(dir, "a");
	dir[PATH_BYTES_MAX - 2] = '\0';
	can_name(dir, "a");
	can_name(dir, "ab");
}

static void
stream(const char *id, bool good)
{
	struct err e = ERR_INIT;
	int rc = stream_id_check(id, &e);

	ok(good ? rc == 0 : rc == -1 && e.code == ERR_USAGE, "the stream id '%.30s' is %s", id, good ? "accepted" : "refused");
}

int
main(void)
{
	char id[202];

	normal();
	names();

	ok(path_within("/a", "/a"), "a path lies within itself");
	ok(path_within("/a/b", "/a"), "a child lies within its parent");
	ok(!path_within("/ab", "/a"), "a longer name does not");
	ok(!path_within("/a", "/a/b"), "a parent does not lie within its child");
	ok(path_within("/a", "/") && path_within("/", "/"), "all lies within the root");
	is_str(path_name("/a/b.md"), "b.md", "the name is what follows the last slash");
	is_str(path_name("/"), "", "the root has no name");
	ok(path_private("/.ag2") && path_private("/.ag2/x"), "/.ag2 is private, and what is below");
	ok(!path_private("/.ag2x") && !path_private("/a/.ag2"), "other names are not private");

	stream("11111111-2222-4333-8444-555555555555", true);
	stream("a.b_C-9", true);
	stream("", false);
	stream(".a", false);
	stream("a/b", false);
	stream("a b", false);
	stream("\xc3\xa9", false);
	stream("a.dropped-1", false);
	stream("a.torn-", false);
	memset(id, 'x', sizeof(id));
	id[201] = '\0';
	stream(id, false);
	id[200] = '\0';
	stream(id, true);
	return done();
}

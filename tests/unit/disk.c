/* What only the disk store has: the tree of AG2, links, modes, read-only trees, deaths and failures in the middle. */
#include "store/store.h"

#include "base/alloc.h"
#include "base/io.h"
#include "tap.h"

#include <fcntl.h>
#include <grp.h>
#include <json-c/json.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static struct err e;

/* A new directory of its own for each test, not made. */
static char *
fresh(void)
{
	static int n;

	return xasprintf("%s/%d", tmpdir(), ++n);
}

static struct store *
opened(const char *root, enum store_mode mode)
{
	struct store_options o = { .mode = mode, .timeout_ms = 200 };
	struct store *s = NULL;
	char *url = xasprintf("disk:%s?", root);

	e = (struct err)ERR_INIT;
	if (store_open(&s, url, &o, &e) < 0)
		printf("#   %s\n", e.msg);
	free(url);
	return s;
}

static int
put(struct store *s, const char *path, const char *text)
{
	e = (struct err)ERR_INIT;
	return store_write(s, path, text, strlen(text), &e);
}

/* What is read, "(none)", or the error. Lives until the next call. */
static const char *
got(struct store *s, const char *path)
{
	static struct buf b = BUF_INIT;

	buf_reset(&b);
	e = (struct err)ERR_INIT;
	if (store_read(s, path, &b, NULL, &e) < 0)
		buf_adds(&b, e.code == ERR_ABSENT ? "(none)" : e.msg);
	return b.data;
}

static int
add_name(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	buf_addf(arg, "%s%s ", name, dir ? "/" : "");
	return 0;
}

static const char *
names(struct store *s, const char *path)
{
	static struct buf b = BUF_INIT;

	buf_reset(&b);
	e = (struct err)ERR_INIT;
	if (store_list(s, path, 0, add_name, &b, &e) != 0)
		buf_adds(&b, e.msg);
	return b.data;
}

static uint64_t
version(struct store *s, const char *path)
{
	struct store_stat st = { 0 };

	return store_stat(s, path, &st, &e) == 1 ? st.version : 0;
}

/* Plain files, as another program makes them. */

static void
raw_dirs(const char *path)
{
	char *copy = xstrdup(path), *p;

	for (p = strchr(copy + 1, '/'); p != NULL; p = strchr(p + 1, '/')) {
		*p = '\0';
		mkdir(copy, 0755);
		*p = '/';
	}
	free(copy);
}

static void __attribute__((format(printf, 3, 4)))
raw(const char *text, size_t len, const char *fmt, ...)
{
	struct buf path = BUF_INIT;
	va_list ap;
	int fd;

	va_start(ap, fmt);
	buf_vaddf(&path, fmt, ap);
	va_end(ap);
	raw_dirs(path.data);
	fd = open(path.data, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || io_write_all(fd, text, len) < 0)
		bail("%s: %s", path.data, strerror(errno));
	close(fd);
	buf_release(&path);
}

static struct stat
lookup(const char *root, const char *path)
{
	struct stat st = { 0 };
	char *full = xasprintf("%s%s", root, path);

	if (lstat(full, &st) < 0)
		st.st_nlink = 0;
	free(full);
	return st;
}

static bool
there(const char *root, const char *path)
{
	return lookup(root, path).st_nlink > 0;
}

static void
link_to(const char *root, const char *path, const char *target)
{
	char *full = xasprintf("%s%s", root, path);

	raw_dirs(full);
	if (symlink(target, full) < 0)
		bail("%s: %s", full, strerror(errno));
	free(full);
}

static void
raw_time(const char *root, const char *path, time_t seconds)
{
	struct timespec t[2] = { { .tv_sec = seconds }, { .tv_sec = seconds } };
	char *full = xasprintf("%s%s", root, path);

	if (utimensat(AT_FDCWD, full, t, 0) < 0)
		bail("%s: %s", full, strerror(errno));
	free(full);
}

/* Runs fn in a child; its status, or 128 + the signal. */
static int
child(int (*fn)(const char *root), const char *root)
{
	int status;
	pid_t pid;

	fflush(stdout);
	if ((pid = fork()) == 0) {
		int rc = fn(root);

		fflush(stdout);
		_exit(rc);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		bail("fork");
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The tree of AG2. */

static struct json_object *filled;

static void
read_golden(const char *root, const char *what)
{
	struct store *s = opened(root, STORE_READ);
	int good = 0, all = 0;

	if (!ok(s != NULL, "%s: opens", what))
		return;
	json_object_object_foreach(filled, path, v) {
		struct buf b = BUF_INIT;

		all++;
		good += store_read(s, path, &b, NULL, &e) == 0 && b.len == (size_t)json_object_get_string_len(v) &&
		    memcmp(b.data, json_object_get_string(v), b.len) == 0;
		buf_release(&b);
	}
	is_int(good, all, "%s: every file of AG2's reads as AG2 wrote it", what);
	is_str(names(s, "/"), ".initialized SKILL.md artifacts/ log/ memory/ ", "%s: its root is listed", what);
	is_str(names(s, "/artifacts"), "SKILL.md a b%c_d/ empty.txt wal.log ", "%s: and a directory", what);
	store_close(s);
	ok(!there(root, "/.ag2"), "%s: reading leaves nothing behind", what);
}

static void
golden(void)
{
	char *root = fresh(), *path = xasprintf("%s/artifacts/wal.log", root);
	struct buf text = BUF_INIT;
	struct store *s;
	uint64_t offset = 0;

	if (io_read_file("tests/golden/stores_filled.json", &text, &e) < 0 || (filled = json_tokener_parse(text.data)) == NULL)
		bail("tests/golden/stores_filled.json: %s", e.msg);
	read_golden("tests/golden/disk", "AG2's tree");
	json_object_object_foreach(filled, name, v)
		raw(json_object_get_string(v), (size_t)json_object_get_string_len(v), "%s%s", root, name);
	read_golden(root, "a tree made alike");

	s = opened(root, STORE_WRITE);
	ok(store_append(s, "/artifacts/wal.log", "three\n", 6, &offset, &e) == 0 && offset == 9, "it can be appended to");
	ok(put(s, "/memory/working.md", "new") == 0, "and written");
	store_close(s);
	buf_reset(&text);
	ok(io_read_file(path, &text, &e) == 0, "the file is a plain file");
	is_str(text.data, "one\ntw\xc3\xb6\nthree\n", "with just the bytes that AG2 will read");
	is_int(lookup(root, "/memory/working.md").st_mode & 0777, 0644, "a file that is replaced keeps its mode");
	json_object_put(filled);
	buf_release(&text);
	free(path);
	free(root);
}

/* Directories without files, as AG2 leaves them. */
static void
empty_directories(void)
{
	char *root = fresh(), *deep;
	struct store *s;

	raw("x", 1, "%s/a/file", root);
	deep = xasprintf("%s/empty/er/est/x", root);
	raw_dirs(deep);
	free(deep);
	s = opened(root, STORE_WRITE);
	is_str(names(s, "/"), "a/ ", "a directory without files is not listed");
	ok(store_stat(s, "/empty", NULL, &e) == 0 && store_stat(s, "/empty/er", NULL, &e) == 0, "nor there");
	ok(put(s, "/empty/er", "a file now") == 0, "a file can be where it is: %s", e.msg);
	is_str(got(s, "/empty/er"), "a file now", "and is read");
	ok(!there(root, "/.ag2/tmp/g1"), "what was in its way is gone");
	ok(store_append(s, "/empty/er2/x", "1", 1, NULL, &e) == 0 && store_delete(s, "/empty/er2", &e) == 0, "a file comes and goes");
	ok(store_delete(s, "/empty/er", &e) == 0 && !there(root, "/empty"), "directories go with their last file");
	ok(store_delete(s, "/a", &e) == 0 && store_stat(s, "/", NULL, &e) == 0, "with the last file the root is not there");
	ok(there(root, ""), "though its directory is");
	store_close(s);
	free(root);
}

/* A tree as deep as paths can be is walked, and removed, without a descriptor for each level. */
static void
deep_tree(void)
{
	char *root = fresh();
	struct store *s = opened(root, STORE_CREATE);
	struct buf path = BUF_INIT;
	struct rlimit few = { 64, 64 }, was;
	int i;

	for (i = 0; i < 1900; i++)
		buf_adds(&path, "/d");
	getrlimit(RLIMIT_NOFILE, &was);
	few.rlim_max = was.rlim_max;
	setrlimit(RLIMIT_NOFILE, &few);
	ok(put(s, path.data, "deep") == 0, "a file 1900 levels down is written: %s", e.msg);
	is_str(got(s, path.data), "deep", "and read");
	is_str(names(s, "/"), "d/ ", "the tree is listed");
	ok(store_delete(s, "/d/d", &e) == 0, "it is deleted: %s", e.msg);
	ok(!there(root, "/d") && !there(root, "/.ag2/tmp/g1"), "and gone");
	setrlimit(RLIMIT_NOFILE, &was);
	store_close(s);
	buf_release(&path);
	free(root);
}

/* Links. */

static int
without_openat2(const char *root)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0;
}

static char *outside;	/* with the files `secret` and `dir/secret` */

static void
linked_tree(const char *root)
{
	char *secret = xasprintf("%s/secret", outside), *inside = xasprintf("%s/real/file", root), *up;

	raw("inside", 6, "%s/real/file", root);
	raw("secret", 6, "%s", secret);
	raw("secret", 6, "%s/dir/secret", outside);
	link_to(root, "/in", "real/file");
	link_to(root, "/indir", "real");
	link_to(root, "/absolute-in", inside);
	link_to(root, "/out", secret);
	link_to(root, "/outdir", outside);
	up = xasprintf("../%s/secret", strrchr(outside, '/') + 1);
	link_to(root, "/up", up);
	link_to(root, "/dangling", "nowhere");
	link_to(root, "/loop", "loop");
	link_to(root, "/real/self", ".");
	link_to(root, "/real/parent", "..");
	link_to(root, "/proc", "/proc/self/root");
	free(up);
	free(secret);
	free(inside);
}

static void
nothing_outside(const char *root, const char *how)
{
	static const char *const paths[] = { "/out", "/outdir/secret", "/outdir/dir/secret", "/up", "/dangling", "/loop", "/proc/etc/passwd",
	    "/absolute-in", "/real/parent/out" };
	char *secret = xasprintf("%s/secret", outside), *deeper = xasprintf("%s/dir/secret", outside);
	struct store *s = opened(root, STORE_WRITE);
	struct buf b = BUF_INIT;
	size_t i;

	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		is_str(got(s, paths[i]), "(none)", "%s: %s is not read", how, paths[i]);
		ok(store_stat(s, paths[i], NULL, &e) == 0, "%s: nor there", how);
		ok(store_append(s, paths[i], "x", 1, NULL, &e) == -1 && e.code == ERR_CREATE, "%s: nor appended to: %s", how, e.msg);
	}
	ok(put(s, "/outdir/new", "x") == -1 && e.code == ERR_CREATE, "%s: nothing is made through a link that leads out: %s", how, e.msg);
	ok(put(s, "/dangling/new", "x") == -1 && e.code == ERR_CREATE, "%s: nor through one that leads nowhere", how);
	ok(store_delete(s, "/outdir/dir", &e) == 0 && store_delete(s, "/outdir/secret", &e) == 0, "%s: nothing is deleted through one", how);
	ok(put(s, "/out", "mine") == 0 && S_ISREG(lookup(root, "/out").st_mode), "%s: a write takes the place of the link", how);
	ok(store_delete(s, "/outdir", &e) == 0 && !there(root, "/outdir"), "%s: deleting removes the link", how);
	ok(store_delete(s, "/", &e) == 0, "%s: deleting everything removes links", how);
	ok(io_read_file(secret, &b, &e) == 0 && io_read_file(deeper, &b, &e) == 0, "%s: what is outside is there", how);
	is_str(b.data, "secretsecret", "%s: as it was", how);
	buf_release(&b);
	store_close(s);
	free(secret);
	free(deeper);
}

static int
links_without_openat2(const char *root)
{
	struct store *s;
	int before = tap_count, failed = tap_failed;

	if (without_openat2(root) != 0)
		return 99;
	s = opened(root, STORE_WRITE);
	is_str(names(s, "/"), "real/ ", "without openat2: no link is listed");
	is_str(got(s, "/in"), "(none)", "without openat2: no link is read");
	is_str(got(s, "/real/file"), "inside", "without openat2: files are");
	ok(put(s, "/new/deep/file", "x") == 0 && store_append(s, "/new/deep/file", "y", 1, NULL, &e) == 0, "without openat2: and written: %s", e.msg);
	is_str(got(s, "/new/deep/file"), "xy", "without openat2: and read again");
	ok(put(s, "/in/x", "x") == -1 && e.code == ERR_CREATE, "without openat2: not through a link: %s", e.msg);
	store_close(s);
	nothing_outside(root, "without openat2");
	return tap_failed > failed ? 98 : tap_count - before;
}

static void
links(void)
{
	char *root = fresh(), *again = fresh(), *link = fresh();
	struct store *s;
	int n;

	outside = fresh();
	linked_tree(root);
	s = opened(root, STORE_WRITE);
	is_str(names(s, "/"), "in indir/ real/ ", "links are listed when they lead to something inside");
	is_str(names(s, "/real"), "file ", "but not those that lead back up");
	is_str(names(s, "/indir"), "file ", "nor seen through a link");
	is_str(got(s, "/in"), "inside", "a link to a file inside is read");
	is_str(got(s, "/indir/file"), "inside", "and a file through one");
	ok(store_append(s, "/in", "+", 1, NULL, &e) == 0, "it is appended to");
	is_str(got(s, "/real/file"), "inside+", "in the file it leads to");
	ok(put(s, "/indir/other", "o") == 0 && there(root, "/real/other"), "a file is made through a link to a directory");
	ok(put(s, "/indir", "x") == -1 && e.code == ERR_CREATE, "but not in its place");
	ok(put(s, "/in", "own") == 0, "a write to a link");
	is_str(got(s, "/real/file"), "inside+", "leaves alone what it led to");
	is_str(got(s, "/in"), "own", "and is read");
	ok(store_delete(s, "/indir", &e) == 0 && there(root, "/real/file"), "deleting a link to a directory leaves the directory");
	store_close(s);
	nothing_outside(root, "with openat2");

	linked_tree(again);
	n = child(links_without_openat2, again);
	if (n >= 98 || n == 0)
		ok(n == 99, "without openat2: the child says %d (99: no seccomp here)", n);
	else
		tap_count += n;

	/* The root may be a link itself; what is ours may not. */
	if (symlink(again, link) < 0)
		bail("symlink");
	s = opened(link, STORE_WRITE);
	ok(s != NULL && put(s, "/x", "1") == 0, "the root may be a link");
	store_close(s);
	free(root);
	root = fresh();
	raw("x", 1, "%s/x", root);
	link_to(root, "/.ag2", outside);
	s = opened(root, STORE_WRITE);
	ok(put(s, "/y", "1") == -1 && !there(outside, "/lock") && !there(outside, "/tmp"), "our own directory may not lead elsewhere: %s", e.msg);
	is_str(got(s, "/x"), "x", "reading does without");
	store_close(s);
	free(root);
	free(again);
	free(link);
}

/* Other things than files. */
static void
odd_files(void)
{
	char *root = fresh(), *fifo = xasprintf("%s/pipe", root);
	struct store *s;

	raw("x", 1, "%s/file", root);
	if (mkfifo(fifo, 0600) < 0)
		bail("mkfifo");
	s = opened(root, STORE_WRITE);
	is_str(names(s, "/"), "file ", "a named pipe is not listed");
	is_str(got(s, "/pipe"), "(none)", "nor read, nor waited for");
	ok(store_append(s, "/pipe", "x", 1, NULL, &e) == -1 && e.code == ERR_CREATE, "nor appended to: %s", e.msg);
	ok(put(s, "/pipe", "x") == -1 && e.code == ERR_CREATE, "nor written over: %s", e.msg);
	ok(store_delete(s, "/pipe", &e) == 0 && !there(root, "/pipe"), "but deleted");
	ok(put(s, "/.ag2/lock", "x") == -1 && e.code == ERR_PERM, "the lock is not written: %s", e.msg);
	ok(put(s, "/.ag2/tmp/x", "x") == -1 && store_delete(s, "/.ag2/locks", &e) == -1, "nor what else the store needs");
	ok(put(s, "/.ag2/other", "x") == 0 && store_delete(s, "/.ag2", &e) == 0 && there(root, "/.ag2/lock"), "deleting /.ag2 leaves it: %s", e.msg);
	is_str(got(s, "/.ag2/other"), "(none)", "and takes the rest");
	store_close(s);
	free(fifo);
	free(root);
}

/* Owners and modes. */

/* The way to the stores of this test must be open to other users. */
static void
let_others_pass(void)
{
	chmod(tmpdir(), 0755);
	if (getenv("TMPDIR") != NULL)
		chmod(getenv("TMPDIR"), 0711);
}

/* One of the group, who may write the files but owns none: their time can only be set to now. */
static int
as_colleague(const char *root)
{
	struct store *s;
	struct store_lock *l = NULL;
	uint64_t v, last = 0, offset = 0;
	int i, bad = 0;

	if (setgroups(0, NULL) < 0 || setgid(54321) < 0 || setuid(12346) < 0)
		return 99;
	if ((s = opened(root, STORE_WRITE)) == NULL)
		return 97;
	for (i = 0; i < 20; i++, last = v) {
		if (store_append(s, "/d/log", "x", 1, &offset, &e) < 0 || offset != (uint64_t)i + 1)
			bad++;
		v = version(s, "/d/log");
		bad += v <= last;
	}
	if (put(s, "/d/f", "2") < 0 || put(s, "/mine", "3") < 0 || store_lock(s, "/d/f", 0, 0, &l, &e) < 0)
		bad++;
	printf("#   %s\n", e.msg);
	store_close(s);
	return bad;
}

static void
modes(void)
{
	char *root = fresh(), *own;
	struct store *s;
	mode_t mask = umask(0177);

	mkdir(root, 0700);
	chmod(root, 02770);
	if (geteuid() == 0 && chown(root, 12345, 54321) == 0)
		chmod(root, 02770);
	s = opened(root, STORE_WRITE);
	ok(put(s, "/d/f", "1") == 0 && store_append(s, "/d/log", "1", 1, NULL, &e) == 0, "files are made in a store of mode 2770, under umask 177");
	is_int(lookup(root, "/d/f").st_mode & 07777, 0660, "a file has the mode of the store without x");
	is_int(lookup(root, "/d/log").st_mode & 07777, 0660, "and so one that was appended to");
	is_int(lookup(root, "/d").st_mode & 07777, 02770, "a directory has the mode of the store");
	is_int(lookup(root, "/.ag2/lock").st_mode & 0777, 0660, "all who may change the store can lock it");
	if (geteuid() == 0) {
		ok(lookup(root, "/d/f").st_uid == 12345 && lookup(root, "/d/f").st_gid == 54321, "a file has the store's owner and group");
		ok(lookup(root, "/d").st_uid == 12345 && lookup(root, "/d/log").st_uid == 12345, "so have a directory and a log");
		ok(lookup(root, "/.ag2").st_uid == 12345 && lookup(root, "/.ag2/lock").st_uid == 12345, "and what we keep");
	} else {
		skip("owners need root");
		skip("owners need root");
		skip("owners need root");
	}
	if (geteuid() == 0) {
		let_others_pass();
		is_int(child(as_colleague, root), 0, "another user of the group appends, with rising versions, writes and locks");
		ok(lookup(root, "/d/f").st_gid == 54321 && (lookup(root, "/d/f").st_mode & 0777) == 0660, "what is replaced keeps group and mode");
		ok(lookup(root, "/mine").st_gid == 54321 && (lookup(root, "/mine").st_mode & 0777) == 0660, "and what is made has them");
	}
	raw("x", 1, "%s/own", root);
	own = xasprintf("%s/own", root);
	chmod(own, 0604);
	free(own);
	ok(put(s, "/own", "2") == 0, "a file of another mode is replaced");
	is_int(lookup(root, "/own").st_mode & 07777, 0604, "and keeps it");
	store_close(s);
	umask(mask);
	free(root);
}

static int
as_nobody(const char *root)
{
	struct store *s;
	struct store_lock *l;
	bool good;

	if (setgid(65534) < 0 || setuid(65534) < 0)
		return 99;
	if ((s = opened(root, STORE_WRITE)) == NULL)
		return 97;
	good = strcmp(got(s, "/f"), "1") == 0 && strcmp(names(s, "/"), "f ") == 0;
	good = good && put(s, "/f", "2") == -1 && e.code == ERR_PERM;
	good = good && store_append(s, "/f", "2", 1, NULL, &e) == -1 && e.code == ERR_PERM;
	good = good && store_delete(s, "/f", &e) == -1 && e.code == ERR_PERM;
	good = good && store_lock(s, "/f", 0, 0, &l, &e) == -1 && e.code == ERR_PERM;
	good = good && strcmp(got(s, "/f"), "1") == 0;
	store_close(s);
	return good ? 0 : 1;
}

/* A change was decided and its writer died: the record is there, and the number is odd. */
static void
leave_pending(const char *root)
{
	char *path = xasprintf("%s/.ag2/lock", root);
	uint64_t seq = 0;
	int fd = open(path, O_RDWR);

	if (fd < 0 || pread(fd, &seq, 8, 8) != 8 || (seq -= 1, pwrite(fd, &seq, 8, 8)) != 8)
		bail("%s: %s", path, strerror(errno));
	close(fd);
	free(path);
}

static int
pending_as_nobody(const char *root)
{
	struct store *s;
	int rc;

	if (setgid(65534) < 0 || setuid(65534) < 0)
		return 99;
	if ((s = opened(root, STORE_READ)) == NULL)
		return 97;
	got(s, "/f");
	rc = e.code == ERR_PERM ? 0 : 1;
	printf("#   %s\n", e.msg);
	store_close(s);
	return rc;
}

static void
permissions(void)
{
	char *root = fresh();
	struct store *s;
	int i;

	if (geteuid() != 0) {
		skip("other users need root");
		return;
	}
	let_others_pass();
	for (i = 0; i < 2; i++) {
		if (i == 0)
			raw("1", 1, "%s/f", root);
		chmod(root, 0755);
		is_int(child(as_nobody, root), 0, "who may not write a store %s reads it, and that is all", i == 0 ? "of AG2" : "of ours");
		s = opened(root, STORE_WRITE);
		put(s, "/f", "1");
		store_close(s);
	}
	leave_pending(root);
	is_int(child(pending_as_nobody, root), 0, "but not while a dead writer's change waits for one who may");
	s = opened(root, STORE_READ);
	is_str(got(s, "/f"), "1", "who finishes it by reading");
	store_close(s);
	is_int(child(as_nobody, root), 0, "and then all can read again");
	free(root);
}

/* Versions are times: of a clock that was set back, of a file that AG2 wrote under another clock. */
static void
clocks(void)
{
	char *root = fresh();
	struct store *s;
	uint64_t future, v = 0;

	raw("x", 1, "%s/a", root);
	raw("x", 1, "%s/d/b", root);
	raw("x", 1, "%s/old", root);
	raw_time(root, "/a", 4000000000);
	raw_time(root, "/d/b", 4100000000);
	raw_time(root, "/old", 0);
	s = opened(root, STORE_WRITE);
	future = version(s, "/a");
	ok(future == 4000000000 * UINT64_C(1000000000), "a version is the time of the file in nanoseconds");
	ok(store_append(s, "/a", "y", 1, NULL, &e) == 0 && (v = version(s, "/a")) > future, "an append rises above a time to come");
	ok(put(s, "/a", "y") == 0 && version(s, "/a") > v, "so does a write");
	ok(put(s, "/c", "y") == 0 && version(s, "/c") < future, "but not the next write of another file, which is dated now");
	future = version(s, "/d/b");
	ok(store_delete(s, "/d", &e) == 0 && put(s, "/d/b", "1") == 0 && version(s, "/d/b") > future, "a version rises over the deletion of such a file");
	ok(version(s, "/old") > 0, "a file of 1970 has a version, for it is there");
	store_close(s);
	free(root);
}

/* A process that appends again and again, and others that change the file's time, or the file, in between. */
static void
appended_often(void)
{
	char *root = fresh(), *path = xasprintf("%s/log", root), *aside = xasprintf("%s/aside", root);
	struct store_op op = { .kind = STORE_OP_APPEND, .path = "/log", .data = "x", .len = 1 };
	struct store *s = opened(root, STORE_CREATE), *other = opened(root, STORE_CREATE);
	uint64_t v = 0, now, good = 0, told = 0, offset;
	int i;

	put(s, "/log", "");
	for (i = 0; i < 500; i++, v = now) {
		store_append(i % 7 == 6 ? other : s, "/log", "x", 1, NULL, &e);
		now = version(s, "/log");
		good += now > v;
	}
	is_int((long long)good, 500, "each append raises the version");
	for (i = 0, good = 0; i < 500; i++, v = op.version) {
		good += store_commit(i % 7 == 6 ? other : s, &op, 1, &e) == 0 && op.version > v && op.offset == (uint64_t)i + 500;
		told += i % 3 != 0 || version(s, "/log") == op.version;
	}
	is_int((long long)good, 500, "so does each whose version is wanted, and its offset is right");
	is_int((long long)told, 500, "that version is the file's");
	for (i = 0, good = 0; i < 20; i++) {
		store_append(s, "/log", "x", 1, NULL, &e);
		good += store_append(s, "/log", "", 0, NULL, &e) == 0 && version(s, "/log") > v;
		v = version(s, "/log");
	}
	is_int((long long)good, 20, "and one of nothing");
	raw_time(root, "/log", 4000000000);
	v = version(s, "/log");
	ok(store_append(s, "/log", "x", 1, NULL, &e) == 0 && version(s, "/log") > v, "an append rises above a time to come that was set meanwhile");
	v = version(s, "/log");
	ok(store_append(s, "/log", "x", 1, NULL, &e) == 0 && version(s, "/log") > v, "and so the next");
	ok(rename(path, aside) == 0 && store_append(s, "/log", "new", 3, &offset, &e) == 0 && offset == 0, "when the file was renamed another is made");
	is_str(got(s, "/log"), "new", "with what is appended");
	ok(unlink(path) == 0 && store_append(s, "/log", "newer", 5, &offset, &e) == 0 && offset == 0, "and when it was removed");
	is_str(got(s, "/log"), "newer", "with nothing else");
	raw("rewritten", 9, "%s", path);
	ok(store_append(s, "/log", "+", 1, &offset, &e) == 0 && offset == 9, "one that was written anew goes on");
	is_str(got(s, "/log"), "rewritten+", "where it ends");
	store_close(s);
	store_close(other);
	free(aside);
	free(path);
	free(root);
}

/* Appends by others, to the file itself. */
static void
beside_others(void)
{
	char *root = fresh(), *path = xasprintf("%s/log", root);
	struct store *s = opened(root, STORE_CREATE);
	uint64_t offset;
	int fd, i, good = 0;

	put(s, "/log", "");
	fd = open(path, O_WRONLY | O_APPEND);
	for (i = 0; i < 50; i++) {
		if (write(fd, "theirs\n", 7) != 7)
			break;
		good += store_append(s, "/log", "ours\n", 5, &offset, &e) == 0 && offset == (uint64_t)i * 12 + 7;
	}
	is_int(good, 50, "offsets are right beside one who appends without asking");
	close(fd);
	fd = open(path, O_WRONLY | O_TRUNC);
	ok(write(fd, "rewritten\n", 10) == 10 && store_append(s, "/log", "x", 1, &offset, &e) == 0 && offset == 10, "and after it was rewritten in place");
	close(fd);
	is_str(got(s, "/log"), "rewritten\nx", "nothing else is in it");
	store_close(s);
	free(path);
	free(root);
}

/* A full disk, as the limit on the size of files shows it. */

static void
limit(rlim_t most)
{
	struct rlimit r;

	getrlimit(RLIMIT_FSIZE, &r);
	r.rlim_cur = most;
	setrlimit(RLIMIT_FSIZE, &r);
}

static char large[200000];

/* The file is 100 000 bytes; an append of 50 000 gets to 120 000. */
static void
append_base(const char *root)
{
	struct store *s = opened(root, STORE_CREATE);

	memset(large, 'a', sizeof(large));
	if (store_write(s, "/log", large, 100000, &e) < 0 || put(s, "/other", "other") < 0 || put(s, "/gone/x", "gone") < 0)
		bail("%s", e.msg);
	store_close(s);
}

static bool
is_base(struct store *s)
{
	const char *text = got(s, "/log");
	bool good = strlen(text) == 100000 && strspn(text, "a") == 100000;

	return good && strcmp(got(s, "/other"), "other") == 0 && strcmp(got(s, "/gone/x"), "gone") == 0 && strcmp(names(s, "/"), "gone/ log other ") == 0;
}

static int
fail_in_the_middle(const char *root)
{
	struct store_op ops[] = {
		{ .kind = STORE_OP_WRITE, .path = "/new/file", .data = "x", .len = 1 },
		{ .kind = STORE_OP_APPEND, .path = "/other", .data = "+", .len = 1 },
		{ .kind = STORE_OP_DELETE, .path = "/gone" },
		{ .kind = STORE_OP_APPEND, .path = "/log", .data = large, .len = 50000 },
		{ .kind = STORE_OP_APPEND, .path = "/newlog", .data = "x", .len = 1 },
	};
	struct store *s = opened(root, STORE_WRITE);
	int before = tap_count, failed = tap_failed;
	uint64_t v = version(s, "/log");

	signal(SIGXFSZ, SIG_IGN);
	limit(120000);
	ok(store_append(s, "/log", large, 50000, NULL, &e) == -1 && e.code == ERR_IO, "an append that does not fit fails: %s", e.msg);
	ok(is_base(s), "and leaves nothing of it");
	ok(version(s, "/log") >= v, "nor a lower version");
	ok(store_commit(s, ops, 5, &e) == -1 && e.code == ERR_IO, "a commit fails with its append: %s", e.msg);
	ok(is_base(s), "whole");
	ok(store_write(s, "/log", large, 150000, &e) == -1 && e.code == ERR_IO, "a write that does not fit fails: %s", e.msg);
	ok(is_base(s), "and leaves what was there");
	ok(store_append(s, "/fresh/log", large, 150000, NULL, &e) == -1 && !there(root, "/fresh"), "no file is made for what does not fit");
	ok(!there(root, "/new") && !there(root, "/.ag2/tmp/1"), "no part of any of it is left");
	limit(RLIM_INFINITY);
	ok(store_append(s, "/log", large, 50000, NULL, &e) == 0, "with room again it goes on: %s", e.msg);
	store_close(s);
	return tap_failed > failed ? 98 : tap_count - before;
}

/* The same limit kills: the append is cut in its middle, as by a kill in the middle of write(2). */
static int
die_in_the_middle(const char *root)
{
	struct store *s = opened(root, STORE_WRITE);
	struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	signal(SIGXFSZ, SIG_DFL);
	limit(120000);
	store_append(s, "/log", large, 50000, NULL, &e);
	return 1;
}

static void
died(const char *root, enum store_mode mode, const char *who)
{
	struct store *s;
	uint64_t size;

	append_base(root);
	is_int(child(die_in_the_middle, root), 128 + SIGXFSZ, "a writer dies in the middle of an append");
	size = (uint64_t)lookup(root, "/log").st_size;
	ok(size > 100000 && size < 150000, "a part of it is in the file");
	s = opened(root, mode);
	is_int((int)strlen(got(s, "/log")), 150000, "the next %s sees all of it", who);
	store_close(s);
}

static void
failures(void)
{
	char *root = fresh(), *log;
	struct store *s;
	int n;

	append_base(root);
	n = child(fail_in_the_middle, root);
	if (n >= 98 || n == 0)
		ok(false, "a full disk: the child says %d", n);
	else
		tap_count += n;
	free(root);

	root = fresh();
	died(root, STORE_READ, "reader");
	s = opened(root, STORE_WRITE);
	ok(store_append(s, "/log", "x", 1, NULL, &e) == 0 && strlen(got(s, "/log")) == 150001, "and it is appended to");
	store_close(s);
	free(root);

	/* Another program appends before anyone of ours comes: nothing of it may be taken away. */
	root = fresh();
	append_base(root);
	child(die_in_the_middle, root);
	log = xasprintf("%s/log", root);
	n = open(log, O_WRONLY | O_APPEND);
	free(log);
	ok(write(n, "\ntheirs\n", 8) == 8, "another program appends to what a dead writer left");
	close(n);
	s = opened(root, STORE_WRITE);
	ok(strstr(got(s, "/log"), "\ntheirs\n") != NULL, "and keeps what it appended");
	store_close(s);
	free(root);
}

/* The lock. */

static void
busy(void)
{
	char *root = fresh(), *path = xasprintf("%s/.ag2/lock", root);
	struct store *s = opened(root, STORE_CREATE);
	int fd;

	put(s, "/f", "1");
	fd = open(path, O_RDWR);
	flock(fd, LOCK_EX);
	ok(put(s, "/f", "2") == -1 && e.code == ERR_BUSY, "while another holds the lock a writer waits, then gives up: %s", e.msg);
	is_str(got(s, "/f"), "1", "a reader does not wait");
	leave_pending(root);
	got(s, "/f");
	ok(e.code == ERR_BUSY, "but for a change in the middle: %s", e.msg);
	close(fd);
	is_str(got(s, "/f"), "1", "then it reads");
	ok(put(s, "/f", "2") == 0, "and the writer writes: %s", e.msg);

	/* Someone clears away what is ours: two writers must still exclude each other, so the lock is made anew. */
	unlink(path);
	ok(put(s, "/f", "3") == 0 && there(root, "/.ag2/lock"), "a lock that was removed is made again: %s", e.msg);
	raw("no journal of ours, but longer than its head is, which is 64 bytes", 66, "%s", path);
	ok(put(s, "/f", "4") == -1 && e.code == ERR_DATA, "a lock that is none is refused: %s", e.msg);
	got(s, "/f");
	ok(e.code == ERR_DATA, "by readers too");
	unlink(path);
	is_str(got(s, "/f"), "3", "without it the files are there");
	store_close(s);
	free(path);
	free(root);
}

/* A root that is removed and made again, under a handle that stays open. */
static void
root_again(void)
{
	char *root = fresh();
	struct store *s = opened(root, STORE_CREATE);

	put(s, "/a", "1");
	nftw(root, tap_remove, 16, FTW_DEPTH | FTW_PHYS);
	is_str(got(s, "/a"), "(none)", "a store that was removed is empty");
	ok(put(s, "/b", "2") == 0 && there(root, "/b"), "and made again by the next write: %s", e.msg);
	is_str(names(s, "/"), "b ", "which is what it has");
	store_close(s);
	free(root);
	root = fresh();
	raw("x", 1, "%s", root);
	ok(opened(root, STORE_READ) == NULL && e.code == ERR_NOINPUT, "a file is no store");
	ok(opened(root, STORE_CREATE) == NULL && e.code == ERR_CREATE, "nor is one made in its place");
	free(root);
}

int
main(void)
{
	golden();
	empty_directories();
	deep_tree();
	links();
	odd_files();
	modes();
	permissions();
	clocks();
	appended_often();
	beside_others();
	failures();
	busy();
	root_again();
	return done();
}

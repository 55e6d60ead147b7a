/*
 * Stops a process before each of its system calls in turn, where there is ptrace (else it says `skip`).
 *
 *	storesteps kill URL CASE	one change, killed before its first system call, its second, and so on until it is through. After
 *					each death a reader must find what was there before or what the change makes, nothing else, the
 *					versions not fallen, and the next change must work
 *	storesteps again URL CASE	the same by a process that has held the store's lock before
 *	storesteps look URL		a directory is listed in which a commit puts one name in the place of another while the reader
 *					stands before its first system call, its second, and so on. It must see one of the two,
 *					however long the listing is
 */
#include "lib/hammer.h"

#include "base/alloc.h"
#include "base/sha1.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct change {
	const char *name;
	struct store_op ops[4];
	size_t n;
};

static char big[20000], huge[300000];

static struct change changes[] = {
	{ "append", { { .kind = STORE_OP_APPEND, .path = "/s/log", .data = "new\n", .len = 4 } }, 1 },
	{ "append-large", { { .kind = STORE_OP_APPEND, .path = "/s/log", .data = big, .len = sizeof(big) } }, 1 },
	{ "append-new", { { .kind = STORE_OP_APPEND, .path = "/new/dir/log", .data = "new\n", .len = 4 } }, 1 },
	{ "write", { { .kind = STORE_OP_WRITE, .path = "/s/log", .data = huge, .len = sizeof(huge) } }, 1 },
	{ "write-new", { { .kind = STORE_OP_WRITE, .path = "/new/dir/file", .data = "new", .len = 3 } }, 1 },
	{ "delete", { { .kind = STORE_OP_DELETE, .path = "/s/log" } }, 1 },
	{ "delete-directory", { { .kind = STORE_OP_DELETE, .path = "/s" } }, 1 },
	{ "delete-all", { { .kind = STORE_OP_DELETE, .path = "/" } }, 1 },
	{ "replace-prefix", { { .kind = STORE_OP_REPLACE_PREFIX, .path = "/s/log", .data = "x", .len = 1, .upto = 4 } }, 1 },
	{ "many", { { .kind = STORE_OP_REPLACE_PREFIX, .path = "/s/log", .data = "x", .len = 1, .upto = 4 },
	    { .kind = STORE_OP_APPEND, .path = "/s/other", .data = big, .len = sizeof(big) },
	    { .kind = STORE_OP_DELETE, .path = "/s/dir" },
	    { .kind = STORE_OP_WRITE, .path = "/s/log.dropped-1", .data = "old\n", .len = 4 } }, 4 },
};

static void
set_up(struct store *s)
{
	static const char *const files[] = { "/s/log", "/s/other", "/s/dir/a", "/s/dir/b/c", "/outside" };
	struct err e = ERR_INIT;
	size_t i;

	if (store_delete(s, "/", &e) < 0)
		give_up("%s", e.msg);
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (store_write(s, files[i], "old\nmore\n", 9, &e) < 0)
			give_up("%s", e.msg);
}

typedef void child_fn(struct store *s, void *arg);

/*
 * Runs first (NULL: nothing), then fn in a child on a store of its own, up to its system call number k, which it has not made yet. The child, or 0
 * when fn came to its end before.
 */
static pid_t
stopped_at(const char *url, enum store_mode mode, child_fn *first, child_fn *fn, void *arg, long k)
{
	struct store *s;
	int status;
	pid_t pid = fork();
	long at = 0;

	if (pid == 0) {
		s = opened(url, mode);
		if (first != NULL)
			first(s, arg);
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(2);
		raise(SIGSTOP);
		fn(s, arg);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		give_up("fork");
	if (WIFEXITED(status)) {
		if (WEXITSTATUS(status) == 2) {
			say("skip: no ptrace\n");
			_exit(0);
		}
		give_up("the child did not start");
	}
	ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	for (;;) {
		if (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) < 0 || waitpid(pid, &status, 0) < 0)
			give_up("ptrace: %s", strerror(errno));
		if (WIFEXITED(status)) {
			if (WEXITSTATUS(status) != 0)
				give_up("the child failed");
			return 0;
		}
		/* Each call stops twice: going in and coming out. */
		if (WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80) && ++at == 2 * k - 1)
			return pid;
	}
}

/* What a process has to do only once is done: three commits that change nothing. */
static void
warm_up(struct store *s, void *arg)
{
	struct store_op nothing = { .kind = STORE_OP_EXPECT, .path = "/nothing/is/here" };
	struct err e = ERR_INIT;
	int i;

	for (i = 0; i < 3; i++)
		if (store_commit(s, &nothing, 1, &e) < 0)
			give_up("%s", e.msg);
}

static void
do_change(struct store *s, void *arg)
{
	struct change *c = arg;
	struct err e = ERR_INIT;

	if (store_commit(s, c->ops, c->n, &e) < 0)
		give_up("%s: %s", c->name, e.msg);
}

/* Whether the change was killed before its system call number k. */
static bool
killed_at(const char *url, struct change *c, bool warm, long k)
{
	int status;
	pid_t pid = stopped_at(url, STORE_CREATE, warm ? warm_up : NULL, do_change, c, k);

	if (pid == 0)
		return false;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return true;
}

static uint64_t
version_of(struct store *s, const char *path)
{
	struct store_stat st = { 0 };
	struct err e = ERR_INIT;

	if (store_stat(s, path, &st, &e) < 0)
		give_up("%s", e.msg);
	return st.version;
}

/* A write(2) that is killed may have set the file's time and nothing else: so may any file here look, on disk. */
static void
touch_files(const char *url)
{
	static const char *const files[] = { "s/log", "s/other", "new/dir/log" };
	char path[4200];
	size_t i;

	for (i = 0; strncmp(url, "disk:", 5) == 0 && i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%.*s/%s", (int)strcspn(url + 5, "?"), url + 5, files[i]);
		utimensat(AT_FDCWD, path, NULL, 0);
	}
}

static void
one_step(const char *url, struct change *c, long k, const struct buf *before, const struct buf *after, long counts[2])
{
	static const char *const watched[] = { "/s/log", "/s/other" };
	struct store *s = opened(url, STORE_READ);
	struct buf now = BUF_INIT;
	struct err e = ERR_INIT;
	uint64_t v[2];
	size_t i;
	bool is_new;

	snapshot(s, "/", &now);
	is_new = same(&now, after);
	if (!is_new && !same(&now, before))
		give_up("%s: killed before call %ld: neither before nor after, but:\n%.500s", c->name, k, now.data);
	counts[is_new]++;
	for (i = 0; i < 2; i++)
		v[i] = version_of(s, watched[i]);
	store_close(s);
	s = opened(url, STORE_WRITE);
	for (i = 0; i < 2; i++)
		if (store_append(s, watched[i], "x", 1, NULL, &e) < 0 || version_of(s, watched[i]) <= v[i])
			give_up("%s: killed before call %ld: the next append: %s", c->name, k, e.msg);
	store_close(s);
	buf_release(&now);
}

/* Whether there were deaths that left what was, and deaths that left what was to be. */
static bool
every_step(const char *url, struct change *c, bool warm, const struct buf *before, const struct buf *after)
{
	struct store *s = opened(url, STORE_CREATE);
	long k = 0, counts[2] = { 0, 0 };
	bool killed;
	uint64_t v;

	do {
		set_up(s);
		v = version_of(s, "/s/log");
		store_close(s);
		killed = killed_at(url, c, warm, ++k);
		if (killed)
			touch_files(url);
		one_step(url, c, k, before, after, counts);
		s = opened(url, STORE_CREATE);
		if (version_of(s, "/s/log") <= v)
			give_up("%s: killed before call %ld: a version fell", c->name, k);
	} while (killed && k < 10000);
	store_close(s);
	say("%ld calls: %ld times nothing, %ld times all\n", k, counts[0], counts[1]);
	return counts[0] > 0 && counts[1] > 0;
}

static int
steps(const char *url, const char *name, bool warm)
{
	struct change *c = changes, *end = changes + sizeof(changes) / sizeof(changes[0]);
	struct store *s = opened(url, STORE_CREATE);
	struct buf before = BUF_INIT, after = BUF_INIT;
	struct err e = ERR_INIT;
	struct sha1 h;
	bool good;

	while (c < end && strcmp(c->name, name) != 0)
		c++;
	if (c == end)
		give_up("no change is called %s", name);
	memset(big, 'b', sizeof(big));
	memset(huge, 'h', sizeof(huge));
	sha1_init(&h);
	sha1_add(&h, "old\n", 4);
	sha1_end(&h, c->ops[0].sha1);
	set_up(s);
	snapshot(s, "/", &before);
	if (store_commit(s, c->ops, c->n, &e) < 0)
		give_up("%s", e.msg);
	snapshot(s, "/", &after);
	store_close(s);
	good = every_step(url, c, warm, &before, &after);
	buf_release(&before);
	buf_release(&after);
	return good ? 0 : 1;
}

/* ---- look ---- */

#define FILES 2500
#define LARGE 6000000
#define LOOKS 1000
#define GROWTH 16384	/* so that the file grows with each commit */

static int
count_tokens(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	*(int *)arg += strstr(name, "-token-") != NULL;
	return 0;
}

static void
do_look(struct store *s, void *arg)
{
	struct store_stat st = { 0 };
	struct err e = ERR_INIT;
	int tokens = 0;

	if (store_stat(s, "/d", &st, &e) != 1 || !st.dir)
		give_up("the directory is not there: %s", e.msg);
	if (store_list(s, "/d", 0, count_tokens, &tokens, &e) != 0)
		give_up("%s", e.msg);
	if (tokens != 1)
		give_up("a listing beside a commit shows %d names instead of one", tokens);
}

static void
move_token(struct store *s, long i)
{
	char old[40], new[40];
	struct store_op ops[] = { { .kind = STORE_OP_DELETE, .path = old }, { .kind = STORE_OP_WRITE, .path = new } };
	struct err e = ERR_INIT;

	/* From the beginning of the directory to its end and back. */
	snprintf(old, sizeof(old), "/d/%c-token-%ld", (i - 1) % 2 ? 'z' : '0', i - 1);
	snprintf(new, sizeof(new), "/d/%c-token-%ld", i % 2 ? 'z' : '0', i);
	if (store_commit(s, ops, 2, &e) < 0)
		give_up("%s", e.msg);
}

static int
look(const char *url)
{
	/* On sqlite a reader that takes part in the log may be stopped with a lock that a commit has to wait for. */
	enum store_mode mode = strncmp(url, "sqlite:", 7) == 0 ? STORE_READ : STORE_CREATE;
	struct store *s = opened(url, STORE_CREATE);
	struct store_op *ops = xcalloc(FILES, sizeof(*ops));
	char *large = xcalloc(1, LARGE + LOOKS * GROWTH);
	struct err e = ERR_INIT;
	int status;
	long k;
	pid_t pid;

	for (k = 0; k < FILES; k++)
		ops[k] = (struct store_op){ .kind = STORE_OP_WRITE, .path = xasprintf("/d/a-name-that-takes-some-room-%ld", k) };
	if (store_commit(s, ops, FILES, &e) < 0)
		give_up("%s", e.msg);
	move_token(s, 0);
	store_close(s);
	for (k = 1; k < LOOKS && (pid = stopped_at(url, mode, NULL, do_look, NULL, k)) != 0; k++) {
		s = opened(url, STORE_CREATE);
		move_token(s, k);
		/* So much that sqlite brings it from its log into the file that is being read. */
		if (store_write(s, "/large", large, (size_t)(LARGE + k * GROWTH), &e) < 0)
			give_up("%s", e.msg);
		store_close(s);
		ptrace(PTRACE_DETACH, pid, NULL, NULL);
		if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
			give_up("beside system call %ld of the listing", k);
		/* The log, which the reader was not there to remove. */
		s = opened(url, STORE_WRITE);
		version_of(s, "/d");
		store_close(s);
	}
	say("%ld calls\n", k);
	for (k = 0; k < FILES; k++)
		free((char *)ops[k].path);
	free(ops);
	free(large);
	return 0;
}

int
main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";

	signal(SIGPIPE, SIG_IGN);
	if (strcmp(mode, "kill") == 0 && argc == 4)
		return steps(argv[2], argv[3], false);
	if (strcmp(mode, "again") == 0 && argc == 4)
		return steps(argv[2], argv[3], true);
	if (strcmp(mode, "look") == 0 && argc == 3)
		return look(argv[2]);
	fputs("usage: storesteps kill URL CASE | again URL CASE | look URL\n", stderr);
	return 64;
}

/*
 * Works on a store hard, for the tests of crashes and of processes beside each other. Each line on standard output is
 * written, and unbuffered, after what it says was acknowledged by the store.
 *
 *	storehammer append URL PATH TAG N SIZE	appends records `TAG I ...` of SIZE bytes; prints `TAG I OFFSET` for each
 *	storehammer check URL PATH		prints `TAG I OFFSET` for each record in the file; 1 when a record is torn
 *	storehammer watch URL PATH N		reads until N records are there: always whole ones, always more; 1 when not
 *	storehammer commit URL FROM TO		commits of five operations, numbered; prints `I` for each
 *	storehammer committed URL		prints the last I that is there whole, 0 for none; 1 when one is there in part
 *	storehammer kill URL N			N writers that append, each killed at a random moment; then looks for what was
 *						acknowledged: all there, once, where it was said to be, and nothing torn
 *	storehammer kill-commits URL N		the same with commits of five operations: all of one or nothing
 *	storehammer steps URL CASE		kills a writer before each of its system calls in turn; see steps()
 *	storehammer look URL			commits before each system call of a reader in turn; see look()
 */
#include "store/store.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/sha1.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WATCH_SECONDS 60

static noreturn void __attribute__((format(printf, 1, 2)))
give_up(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("storehammer: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	_exit(1);
}

static struct store *
opened(const char *url, enum store_mode mode)
{
	struct store_options o = { .mode = mode, .timeout_ms = 30000 };
	struct store *s = NULL;
	struct err e = ERR_INIT;

	if (store_open(&s, url, &o, &e) < 0)
		give_up("%s: %s", url, e.msg);
	return s;
}

static void __attribute__((format(printf, 1, 2)))
say(const char *fmt, ...)
{
	struct buf b = BUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	buf_vaddf(&b, fmt, ap);
	va_end(ap);
	if (io_write_all(1, b.data, b.len) < 0)
		_exit(1);
	buf_release(&b);
}

static long
number(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text || *end != '\0' || n < 0)
		give_up("'%s' is no number", text);
	return n;
}

/* Records: a line of the size wanted, whose middle follows from its beginning, so that a torn or mixed one shows. */

static void
record(struct buf *b, const char *tag, long i, size_t size)
{
	size_t from = b->len, k;

	buf_addf(b, "%s %ld %zu ", tag, i, size);
	for (k = b->len - from; k + 1 < size; k++)
		buf_addch(b, (char)('a' + (k * 7 + (size_t)i) % 26));
	buf_addch(b, '\n');
}

/* The length of the whole record at p, 0 when there is none. */
static size_t
record_at(const char *p, size_t len, char tag[32], long *i)
{
	const char *end = memchr(p, '\n', len);
	struct buf want = BUF_INIT;
	char head[100];
	size_t size = 0, n, k;
	bool same;

	if (end == NULL)
		return 0;
	n = (size_t)(end - p) + 1;
	k = n < sizeof(head) ? n : sizeof(head) - 1;
	memcpy(head, p, k);
	head[k] = '\0';
	if (sscanf(head, "%31s %ld %zu", tag, i, &size) != 3 || size > n + 100)
		return 0;
	record(&want, tag, *i, size);
	same = want.len == n && memcmp(want.data, p, n) == 0;
	buf_release(&want);
	return same ? n : 0;
}

static int
append(const char *url, const char *path, const char *tag, long n, size_t size)
{
	struct store *s = opened(url, STORE_CREATE);
	struct buf b = BUF_INIT;
	struct err e = ERR_INIT;
	uint64_t offset;
	long i;

	for (i = 1; i <= n; i++) {
		buf_reset(&b);
		record(&b, tag, i, size);
		if (store_append(s, path, b.data, b.len, &offset, &e) < 0)
			give_up("%s", e.msg);
		say("%s %ld %llu\n", tag, i, (unsigned long long)offset);
	}
	buf_release(&b);
	store_close(s);
	return 0;
}

static int
check(const char *url, const char *path)
{
	struct store *s = opened(url, STORE_READ);
	struct buf all = BUF_INIT;
	struct err e = ERR_INIT;
	size_t at = 0, n;
	char tag[32];
	long i;

	if (store_read(s, path, &all, NULL, &e) < 0 && e.code != ERR_ABSENT)
		give_up("%s", e.msg);
	for (; at < all.len; at += n) {
		n = record_at(all.data + at, all.len - at, tag, &i);
		if (n == 0)
			give_up("%s: torn at byte %zu of %zu", path, at, all.len);
		say("%s %ld %zu\n", tag, i, at);
	}
	buf_release(&all);
	store_close(s);
	return 0;
}

static int
watch(const char *url, const char *path, long n)
{
	struct store *s = NULL;
	struct store_options o = { .mode = STORE_READ };
	struct buf all = BUF_INIT;
	struct err e = ERR_INIT;
	double until = clock_monotonic() + WATCH_SECONDS;
	uint64_t offset = 0;
	size_t at, len;
	long seen = 0, looks = 0, i;
	char tag[32];

	while (store_open(&s, url, &o, &e) < 0)
		if (e.code != ERR_NOINPUT || clock_monotonic() > until)
			give_up("%s", e.msg);
	/* Only what is new is read, so that the looks are many. */
	for (; seen < n; looks++) {
		if (clock_monotonic() > until)
			give_up("%s: %ld of %ld records after %d seconds", path, seen, n, WATCH_SECONDS);
		buf_reset(&all);
		if (store_read_range(s, path, (int64_t)offset, STORE_END, &all, &e) < 0)
			give_up("%s", e.msg);
		for (at = 0; at < all.len; at += len, seen++)
			if ((len = record_at(all.data + at, all.len - at, tag, &i)) == 0)
				give_up("%s: torn at byte %llu, %zu bytes from the end, after %ld looks", path,
				    (unsigned long long)offset + at, all.len - at, looks);
		offset += all.len;
	}
	say("%ld records in %ld looks\n", seen, looks);
	buf_release(&all);
	store_close(s);
	return 0;
}

/* Commit I: two files say I, a log has I lines, a file that I-1 made is gone and another is there. */

static void
commit_one(struct store *s, long i)
{
	struct buf text = BUF_INIT, line = BUF_INIT;
	struct err e = ERR_INIT;
	char old[32], new[32];
	struct store_op ops[] = {
		{ .kind = STORE_OP_WRITE, .path = "/c/a" },
		{ .kind = STORE_OP_WRITE, .path = "/c/deep/b" },
		{ .kind = STORE_OP_APPEND, .path = "/c/log" },
		{ .kind = STORE_OP_DELETE, .path = old },
		{ .kind = STORE_OP_WRITE, .path = new },
	};
	size_t k;

	snprintf(old, sizeof(old), "/c/d%ld", i - 1);
	snprintf(new, sizeof(new), "/c/d%ld/x", i);
	buf_addf(&text, "%ld", i);
	record(&line, "log", i, 100);
	for (k = 0; k < 5; k++) {
		ops[k].data = k == 2 ? line.data : text.data;
		ops[k].len = k == 2 ? line.len : text.len;
	}
	if (store_commit(s, ops, 5, &e) < 0)
		give_up("%s", e.msg);
	buf_release(&text);
	buf_release(&line);
}

static int
commit(const char *url, long from, long to)
{
	struct store *s = opened(url, STORE_CREATE);
	long i;

	for (i = from; i <= to; i++) {
		commit_one(s, i);
		say("%ld\n", i);
	}
	store_close(s);
	return 0;
}

static long
value(struct store *s, const char *path)
{
	struct buf b = BUF_INIT;
	struct err e = ERR_INIT;
	long n = 0;

	if (store_read(s, path, &b, NULL, &e) == 0)
		n = number(b.data);
	else if (e.code != ERR_ABSENT)
		give_up("%s", e.msg);
	buf_release(&b);
	return n;
}

static int
collect(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	buf_addf(arg, "%s%s ", name, dir ? "/" : "");
	return 0;
}

/* The number of the last commit; ends the process when there is a part of one. */
static long
committed(struct store *s)
{
	struct buf log = BUF_INIT, names = BUF_INIT, want = BUF_INIT;
	struct err e = ERR_INIT;
	long a = value(s, "/c/a"), b = value(s, "/c/deep/b"), i, lines = 0;
	size_t at, n;
	char tag[32];

	if (store_read(s, "/c/log", &log, NULL, &e) < 0 && e.code != ERR_ABSENT)
		give_up("%s", e.msg);
	for (at = 0; at < log.len; at += n) {
		n = record_at(log.data + at, log.len - at, tag, &i);
		if (n == 0 || i != ++lines)
			give_up("the log is torn or doubled at byte %zu of %zu", at, log.len);
	}
	if (store_list(s, "/c", 0, collect, &names, &e) < 0)
		give_up("%s", e.msg);
	if (a > 0)
		buf_addf(&want, "a d%ld/ deep/ log ", a);
	if (a != b || a != lines || strcmp(names.data, want.data) != 0)
		give_up("a commit is there in part: a %ld, b %ld, %ld lines, files %s", a, b, lines, names.data);
	buf_release(&log);
	buf_release(&names);
	buf_release(&want);
	return a;
}

/* kill and kill-commits: a child works and reports through a pipe; after some reports and a moment more it is killed. */

#define RUNS_PER_FILE 40

struct ack {
	long run, i;
	uint64_t offset;
};

struct acks {
	struct ack *a;
	size_t n, cap;
};

static uint64_t
chance(uint64_t below)
{
	static uint64_t x;

	if (x == 0) {
		x = (uint64_t)(clock_monotonic() * 1e9) | 1;
		fprintf(stderr, "storehammer: seed %llu\n", (unsigned long long)x);
	}
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x % below;
}

static size_t
size_of(long run, long i)
{
	long n = run * 31 + i * 7919;

	return 30 + (size_t)(n % 11 == 0 ? n % 40000 : n % 6000);
}

static noreturn void
append_until_killed(const char *url, const char *path, long run, int report)
{
	struct store *s = opened(url, STORE_CREATE);
	struct buf b = BUF_INIT;
	struct err e = ERR_INIT;
	struct ack a = { .run = run };
	char tag[32];

	snprintf(tag, sizeof(tag), "r%ld", run);
	for (a.i = 1;; a.i++) {
		buf_reset(&b);
		record(&b, tag, a.i, size_of(run, a.i));
		if (store_append(s, path, b.data, b.len, &a.offset, &e) < 0)
			give_up("%s", e.msg);
		if (io_write_all(report, &a, sizeof(a)) < 0)
			_exit(0);
	}
}

static noreturn void
commit_until_killed(const char *url, long run, int report)
{
	struct store *s = opened(url, STORE_CREATE);
	struct ack a = { .run = run };

	for (a.i = committed(s) + 1;; a.i++) {
		commit_one(s, a.i);
		if (io_write_all(report, &a, sizeof(a)) < 0)
			_exit(0);
	}
}

/* Reads reports into acks until `most` more have come (0: all that there are). */
static void
take_reports(int fd, struct acks *acks, size_t most)
{
	struct ack a;
	size_t had = acks->n;

	while (most == 0 || acks->n - had < most) {
		size_t got = 0;
		ssize_t n = 1;

		while (got < sizeof(a) && (n = io_read(fd, (char *)&a + got, sizeof(a) - got)) > 0)
			got += (size_t)n;
		if (n <= 0)
			return;
		acks->a = xgrow(acks->a, acks->n, &acks->cap, sizeof(a));
		acks->a[acks->n++] = a;
	}
}

static void
kill_one(const char *url, const char *path, long run, struct acks *acks)
{
	int p[2], status;
	double until;
	pid_t pid;

	if (pipe(p) < 0 || (pid = fork()) < 0)
		give_up("fork: %s", strerror(errno));
	if (pid == 0) {
		close(p[0]);
		if (path != NULL)
			append_until_killed(url, path, run, p[1]);
		commit_until_killed(url, run, p[1]);
	}
	close(p[1]);
	take_reports(p[0], acks, 1 + chance(4));
	until = clock_monotonic() + (double)chance(400) / 1e6;
	while (clock_monotonic() < until)
		;
	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) < 0 || !WIFSIGNALED(status))
		give_up("run %ld: the writer ended before it was killed", run);
	take_reports(p[0], acks, 0);
	close(p[0]);
}

/* Every record of the file must be whole and no record there twice; those acknowledged are marked. */
static long
find_acknowledged(const char *url, const char *path, struct acks *acks)
{
	struct store *s = opened(url, STORE_READ);
	struct buf all = BUF_INIT;
	struct err e = ERR_INIT;
	long last[RUNS_PER_FILE] = { 0 }, i, run, extra = 0;
	size_t at, n, k = 0;
	char tag[32];

	if (store_read(s, path, &all, NULL, &e) < 0)
		give_up("%s", e.msg);
	for (at = 0; at < all.len; at += n) {
		n = record_at(all.data + at, all.len - at, tag, &i);
		if (n == 0)
			give_up("%s: torn at byte %zu of %zu", path, at, all.len);
		run = strtol(tag + 1, NULL, 10);
		if (i != ++last[run % RUNS_PER_FILE])
			give_up("%s: record %ld of run %ld is lost or doubled at byte %zu", path, i, run, at);
		if (k < acks->n && acks->a[k].run == run && acks->a[k].i == i) {
			if (acks->a[k++].offset != at)
				give_up("%s: record %ld of run %ld is not where it was said to be", path, i, run);
		} else {
			extra++;
		}
	}
	if (k < acks->n)
		give_up("%s: record %ld of run %ld was acknowledged and is lost", path, acks->a[k].i, acks->a[k].run);
	buf_release(&all);
	store_close(s);
	return extra;
}

static int
kill_appends(const char *url, long runs)
{
	struct acks acks = { 0 };
	long run, extra = 0, total = 0;
	char path[40];

	for (run = 0; run < runs; run++) {
		snprintf(path, sizeof(path), "/log/%ld", run / RUNS_PER_FILE);
		kill_one(url, path, run, &acks);
		if (run % RUNS_PER_FILE == RUNS_PER_FILE - 1 || run == runs - 1) {
			extra += find_acknowledged(url, path, &acks);
			total += (long)acks.n;
			acks.n = 0;
		}
	}
	if (extra > runs)
		give_up("%ld records more than the writers can have been at", extra - runs);
	say("%ld writers killed, %ld records acknowledged and there, %ld there and not acknowledged\n", runs, total, extra);
	free(acks.a);
	return 0;
}

static int
kill_commits(const char *url, long runs)
{
	struct acks acks = { 0 };
	struct store *s;
	long run, now, last = 0, extra = 0;

	for (run = 0; run < runs; run++) {
		acks.n = 0;
		kill_one(url, NULL, run, &acks);
		s = opened(url, STORE_READ);
		now = committed(s);
		store_close(s);
		if (acks.n > 0)
			last = acks.a[acks.n - 1].i;
		if (now < last || now > last + 1)
			give_up("run %ld: commit %ld was the last acknowledged and %ld is there", run, last, now);
		extra += now > last;
		last = now;
	}
	say("%ld writers killed, %ld commits there, %ld of them not acknowledged\n", runs, last, extra);
	free(acks.a);
	return 0;
}

/*
 * steps: one change, killed before its first system call, its second, and so on until it is through. After each death a
 * reader must find what was there before or what the change makes, nothing else, the versions not fallen, and the
 * next change must work.
 */

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

/* Everything in the store as text. */
static void
snapshot(struct store *s, const char *path, struct buf *out);

struct down {
	struct store *s;
	const char *path;
	struct buf *out;
};

static int
snapshot_entry(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	struct down *d = arg;
	char *path = xasprintf("%s/%s", d->path[1] ? d->path : "", name);

	buf_addf(d->out, "%s%s\n", path, dir ? "/" : "");
	snapshot(d->s, path, d->out);
	free(path);
	return 0;
}

static void
snapshot(struct store *s, const char *path, struct buf *out)
{
	struct down d = { .s = s, .path = path, .out = out };
	struct err e = ERR_INIT;

	if (store_read(s, path, out, NULL, &e) < 0 && e.code != ERR_ABSENT)
		give_up("%s", e.msg);
	if (store_list(s, path, 0, snapshot_entry, &d, &e) < 0)
		give_up("%s", e.msg);
}

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
 * Runs fn in a child on a store of its own, up to its system call number k, which it has not made yet. The child, or 0
 * when fn came to its end before.
 */
static pid_t
stopped_at(const char *url, enum store_mode mode, child_fn *fn, void *arg, long k)
{
	struct store *s;
	int status;
	pid_t pid = fork();
	long at = 0;

	if (pid == 0) {
		s = opened(url, mode);
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
killed_at(const char *url, struct change *c, long k)
{
	int status;
	pid_t pid = stopped_at(url, STORE_CREATE, do_change, c, k);

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
	is_new = now.len == after->len && memcmp(now.data, after->data, now.len) == 0;
	if (!is_new && (now.len != before->len || memcmp(now.data, before->data, now.len) != 0))
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

static int
steps(const char *url, const char *name)
{
	struct change *c = changes, *end = changes + sizeof(changes) / sizeof(changes[0]);
	struct store *s = opened(url, STORE_CREATE);
	struct buf before = BUF_INIT, after = BUF_INIT;
	struct err e = ERR_INIT;
	struct sha1 h;
	uint64_t v;
	long k = 0, counts[2] = { 0, 0 };
	bool killed;

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
	do {
		set_up(s);
		v = version_of(s, "/s/log");
		store_close(s);
		killed = killed_at(url, c, ++k);
		if (killed)
			touch_files(url);
		one_step(url, c, k, &before, &after, counts);
		s = opened(url, STORE_CREATE);
		if (version_of(s, "/s/log") <= v)
			give_up("%s: killed before call %ld: a version fell", c->name, k);
	} while (killed && k < 10000);
	store_close(s);
	say("%ld calls: %ld times nothing, %ld times all\n", k, counts[0], counts[1]);
	buf_release(&before);
	buf_release(&after);
	return counts[0] > 0 && counts[1] > 0 ? 0 : 1;
}

/*
 * look: a directory is listed in which a commit puts one name in the place of another while the reader stands before its
 * first system call, its second, and so on. It must see one of the two, however long the listing is.
 */

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
	for (k = 1; k < LOOKS && (pid = stopped_at(url, mode, do_look, NULL, k)) != 0; k++) {
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
	if (strcmp(mode, "append") == 0 && argc == 7)
		return append(argv[2], argv[3], argv[4], number(argv[5]), (size_t)number(argv[6]));
	if (strcmp(mode, "check") == 0 && argc == 4)
		return check(argv[2], argv[3]);
	if (strcmp(mode, "watch") == 0 && argc == 5)
		return watch(argv[2], argv[3], number(argv[4]));
	if (strcmp(mode, "commit") == 0 && argc == 5)
		return commit(argv[2], number(argv[3]), number(argv[4]));
	if (strcmp(mode, "committed") == 0 && argc == 3) {
		struct store *s = opened(argv[2], STORE_CREATE);

		say("%ld\n", committed(s));
		store_close(s);
		return 0;
	}
	if (strcmp(mode, "kill") == 0 && argc == 4)
		return kill_appends(argv[2], number(argv[3]));
	if (strcmp(mode, "kill-commits") == 0 && argc == 4)
		return kill_commits(argv[2], number(argv[3]));
	if (strcmp(mode, "look") == 0 && argc == 3)
		return look(argv[2]);
	if (strcmp(mode, "steps") == 0 && argc == 4)
		return steps(argv[2], argv[3]);
	fputs("usage: storehammer append URL PATH TAG N SIZE | check URL PATH | watch URL PATH N | commit URL FROM TO | committed URL | kill URL N | kill-commits URL N | steps URL CASE | look URL\n", stderr);
	return 64;
}

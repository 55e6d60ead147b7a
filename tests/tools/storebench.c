/*
 * What a store takes within one process, as ratios with their targets:
 *
 *	storebench raw DIR LABEL	an append of 1 KB to a disk store that is made in DIR and kept open, 1 = open, lock, append and close
 *					of a file
 *	storebench rewrite URL SIZE LABEL	how many appends of 1 KB to a file of SIZE bytes take as long as reading and writing all of it
 *	storebench watch URL LABEL	milliseconds from a change that another process made to when it is told, and what waiting costs
 *	storebench fill URL N		no figure: makes N small files in /log and one in /memory
 */
#include "lib/figure.h"
#include "lib/hammer.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 4000
#define KB 1024
#define REWRITES 3
#define APPENDS 300
#define CHANGES 200
#define IDLE 2		/* seconds */
#define BATCH 500

static char kilobyte[KB];

static void
raw_append(const char *file)
{
	int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || flock(fd, LOCK_EX) < 0 || write(fd, kilobyte, KB) != KB)
		give_up("%s: %s", file, strerror(errno));
	close(fd);
}

static void
append(struct store *s, const char *path)
{
	struct err e = ERR_INIT;

	if (store_append(s, path, kilobyte, KB, NULL, &e) < 0)
		give_up("%s", e.msg);
}

static void
raw(const char *dir, const char *label)
{
	static double ours[ROUNDS], theirs[ROUNDS];
	char *url = xasprintf("disk:%s/store", dir), *file = xasprintf("%s/raw", dir);
	struct store *s;
	double from;
	size_t i;

	s = opened(url, STORE_CREATE);
	for (i = 0; i < ROUNDS; i++) {
		from = clock_monotonic();
		append(s, "/log/a");
		ours[i] = clock_monotonic() - from;
		from = clock_monotonic();
		raw_append(file);
		theirs[i] = clock_monotonic() - from;
	}
	store_close(s);
	figure(quantile(ours, ROUNDS, 0.5) / quantile(theirs, ROUNDS, 0.5), "", 1.7, label);
	free(url);
	free(file);
}

static void
rewrite(const char *url, size_t size, const char *label)
{
	struct store *s = opened(url, STORE_CREATE);
	double appends[APPENDS], writes[REWRITES], from;
	struct buf all = BUF_INIT;
	struct err e = ERR_INIT;
	size_t i;

	while (all.len < size)
		buf_add(&all, kilobyte, KB);
	if (store_write(s, "/large", all.data, all.len, &e) < 0)
		give_up("%s", e.msg);
	for (i = 0; i < APPENDS; i++) {
		from = clock_monotonic();
		append(s, "/large");
		appends[i] = clock_monotonic() - from;
	}
	for (i = 0; i < REWRITES; i++) {
		buf_reset(&all);
		from = clock_monotonic();
		if (store_read(s, "/large", &all, NULL, &e) < 0)
			give_up("%s", e.msg);
		buf_add(&all, kilobyte, KB);
		if (store_write(s, "/large", all.data, all.len, &e) < 0)
			give_up("%s", e.msg);
		writes[i] = clock_monotonic() - from;
	}
	figure(quantile(writes, REWRITES, 0.5) / quantile(appends, APPENDS, 0.5), "", -500, label);
	buf_release(&all);
	store_close(s);
}

struct shared {
	_Atomic double made;	/* when the last change was */
	_Atomic long next;	/* the change that is wanted */
};

/* Makes a change some time after it is asked to. */
static noreturn void
change_when_asked(const char *url, struct shared *m)
{
	struct store *s = opened(url, STORE_CREATE);
	struct timespec t = { .tv_nsec = 200000 };
	long done = 0;

	for (;;) {
		nanosleep(&t, NULL);
		if (m->next == done)
			continue;
		t.tv_nsec = 200000 + done * 7919 % 3000 * 1000;
		nanosleep(&t, NULL);
		m->made = clock_monotonic();
		append(s, "/watched/log");
		done++;
		t.tv_nsec = 200000;
	}
}

static void
told(void *arg, const char *path, bool removed)
{
	*(double *)arg = clock_monotonic();
}

static double
cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void
watch(const char *url, const char *label)
{
	struct shared *m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct store *s = opened(url, STORE_CREATE);
	struct store_watch *w;
	struct err e = ERR_INIT;
	double times[CHANGES], at = 0, from;
	size_t i;
	pid_t pid;

	append(s, "/watched/log");
	if (m == MAP_FAILED || (pid = fork()) < 0)
		give_up("%s", strerror(errno));
	if (pid == 0)
		change_when_asked(url, m);
	if (store_watch(s, "/watched", &w, &e) < 0)
		give_up("%s", e.msg);
	from = cpu();
	if (store_watch_next(w, IDLE * 1000, told, &at, &e) != 0)
		give_up("a change that nobody made");
	from = (cpu() - from) / IDLE * 100;
	for (i = 0; i < CHANGES; i++) {
		m->next++;
		if (store_watch_next(w, 10000, told, &at, &e) != 1)
			give_up("change %zu is not told", i);
		times[i] = (at - m->made) * 1e3;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	figure(quantile(times, CHANGES, 0.5), " ms", 1, label);
	figure(from, " %", 0.1, "its share of a processor while nothing changes");
	store_watch_close(w);
	store_close(s);
	munmap(m, sizeof(*m));
}

static void
fill(const char *url, long n)
{
	struct store *s = opened(url, STORE_CREATE);
	static struct store_op ops[BATCH];
	static char paths[BATCH][40];
	struct err e = ERR_INIT;
	long i;
	size_t k = 0;

	if (store_write(s, "/memory/working.md", "small\n", 6, &e) < 0)
		give_up("%s", e.msg);
	for (i = 0; i < n; i++) {
		snprintf(paths[k], sizeof(paths[k]), "/log/stream-%ld.jsonl", i);
		ops[k] = (struct store_op){ .kind = STORE_OP_WRITE, .path = paths[k], .data = "{\"type\":\"a\",\"data\":{}}\n", .len = 23 };
		if (++k < BATCH && i < n - 1)
			continue;
		if (store_commit(s, ops, k, &e) < 0)
			give_up("%s", e.msg);
		k = 0;
	}
	store_close(s);
}

int
main(int argc, char **argv)
{
	const char *mode = argc > 3 ? argv[1] : "";

	memset(kilobyte, 'k', KB);
	kilobyte[KB - 1] = '\n';
	signal(SIGPIPE, SIG_IGN);
	if (strcmp(mode, "raw") == 0 && argc == 4)
		raw(argv[2], argv[3]);
	else if (strcmp(mode, "rewrite") == 0 && argc == 5)
		rewrite(argv[2], (size_t)number(argv[3]), argv[4]);
	else if (strcmp(mode, "watch") == 0 && argc == 4)
		watch(argv[2], argv[3]);
	else if (strcmp(mode, "fill") == 0 && argc == 4)
		fill(argv[2], number(argv[3]));
	else {
		fputs("usage: storebench raw DIR LABEL | rewrite URL SIZE LABEL | watch URL LABEL | fill URL N\n", stderr);
		return 64;
	}
	return fclose(stdout) ? 74 : 0;
}

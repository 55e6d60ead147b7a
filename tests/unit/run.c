#include "base/clock.h"
#include "base/io.h"
#include "base/run.h"
#include "base/strays.h"
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define MIB (1024 * 1024)

static int
shell(const char *command, struct buf *out, struct err *e)
{
	struct run r = { .shell = command, .out = out, .timeout = 60 };

	buf_reset(out);
	return run(&r, e);
}

static void
ends(void)
{
	struct buf out = BUF_INIT, errors = BUF_INIT_MAX(4);
	struct err e = ERR_INIT;
	char printf_name[] = "printf", format[] = "%s.", word[] = "a b", none[] = "/nonexistent/program";
	char *argv[] = { printf_name, format, word, NULL }, *absent[] = { none, NULL };
	struct run r = { .argv = argv, .out = &out };

	is_int(shell("printf 'a\\0b'; exit 7", &out, &e), 7, "the exit status is the child's");
	is_bytes(out.data, out.len, "a\0b", 3, "standard output is collected, NULs included");
	is_int(shell("kill -9 $$", &out, &e), 137, "a child that died of a signal gives 128 + signal");
	buf_reset(&out);
	is_int(run(&r, &e), 0, "a program is looked up in PATH");
	is_str(out.data, "a b.", "its arguments arrive as they are");
	r.argv = absent;
	ok(run(&r, &e) == -1 && e.code == ERR_UNAVAIL, "a program that is not there is unavailable");
	ok(strstr(e.msg, none) != NULL && strstr(e.msg, "No such file") != NULL, "and named: %s", e.msg);
	r = (struct run){ .shell = "true", .cwd = "/nonexistent/dir" };
	ok(run(&r, &e) == -1 && strstr(e.msg, "/nonexistent/dir") != NULL, "so is a directory: %s", e.msg);
	r = (struct run){ .shell = "pwd; echo 123456 >&2", .cwd = "/usr", .out = &out, .errors = &errors };
	buf_reset(&out);
	is_int(run(&r, &e), 0, "it runs in the directory asked for");
	is_str(out.data, "/usr\n", "and says so");
	is_str(errors.data, "1234", "of standard error the first bytes are kept");
	buf_release(&out);
	buf_release(&errors);
}

static void
feeds(void)
{
	struct buf out = BUF_INIT, big = BUF_INIT;
	struct err e = ERR_INIT;
	struct run r = { .shell = "cat", .out = &out, .timeout = 60 };
	size_t i;

	for (i = 0; i < 4 * MIB; i++)
		buf_addch(&big, (char)('a' + i % 23));
	r.input = big.data;
	r.input_len = big.len;
	is_int(run(&r, &e), 0, "a filter gets its input while its output is read");
	ok(out.len == big.len && memcmp(out.data, big.data, big.len) == 0, "all 4 MiB come back");
	signal(SIGPIPE, SIG_DFL);
	r.shell = "exec 0<&-; echo done";
	buf_reset(&out);
	is_int(run(&r, &e), 0, "a child need not read its input");
	is_str(out.data, "done\n", "and is heard");
	r.shell = "head -c 10";
	buf_reset(&out);
	is_int(run(&r, &e), 0, "nor read it to its end");
	is_int((long long)out.len, 10, "and gives what it made of it");
	r = (struct run){ .shell = "cat; echo .", .out = &out };
	buf_reset(&out);
	is_int(run(&r, &e), 0, "without input");
	is_str(out.data, ".\n", "standard input is empty");
	buf_release(&out);
	buf_release(&big);
}

static int
stop_at_x(void *arg, const char *data, size_t len)
{
	buf_add(arg, data, len);
	return memchr(data, 'x', len) != NULL ? 42 : 0;
}

static void
limits(void)
{
	struct buf out = BUF_INIT_MAX(1000), seen = BUF_INIT;
	struct err e = ERR_INIT;
	struct run r = { .shell = "while :; do echo y; done", .out = &out };
	double begin;

	ok(run(&r, &e) == -1 && e.code == ERR_DATA, "a child that prints without end is ended: %s", e.msg);
	buf_reset(&out);
	r = (struct run){ .shell = "sleep 300 & sleep 300", .out = &out, .timeout = 0.2 };
	begin = clock_monotonic();
	ok(run(&r, &e) == -1 && e.code == ERR_UNAVAIL, "so is one that takes too long: %s", e.msg);
	ok(clock_monotonic() - begin < 60, "in time");
	r = (struct run){ .shell = "printf ax; sleep 300", .on_output = stop_at_x, .arg = &seen };
	is_int(run(&r, &e), 42, "the reader of its output can end it");
	is_str(seen.data, "ax", "as it arrives");
	r = (struct run){ .shell = "echo b; sleep 20 & exit 3", .out = &out };
	begin = clock_monotonic();
	is_int(run(&r, &e), 3, "what it leaves in the background does not hold us");
	is_str(out.data, "b\n", "and its own output is there");
	buf_release(&out);
	buf_release(&seen);
}

/* Ends it once it has said a line. */
static int
stop_at_line(void *arg, const char *data, size_t len)
{
	buf_add(arg, data, len);
	return memchr(data, '\n', len) != NULL ? 42 : 0;
}

/* Once init has reaped it. */
static bool
is_gone(int pid)
{
	int i;

	for (i = 0; i < 1000 && kill(pid, 0) == 0; i++)
		usleep(10000);
	return pid > 1 && kill(pid, 0) < 0;
}

/* The group: a shell that ignores SIGTERM and its child both end. */
static void
groups(void)
{
	struct buf said = BUF_INIT;
	struct err e = ERR_INIT;
	struct run r = { .shell = "trap '' TERM; sleep 299 & echo $! $$; wait; wait; sleep 299", .on_output = stop_at_line, .arg = &said };
	int child = 0, shell_pid = 0;
	char path[PATH_MAX];

	is_int(run(&r, &e), 42, "a child that ignores SIGTERM is killed");
	ok(sscanf(said.data, "%d %d", &child, &shell_pid) == 2 && child > 1 && shell_pid > 1, "it told its processes");
	ok(kill(shell_pid, 0) < 0 && errno == ESRCH, "the shell is gone");
	ok(is_gone(child), "and what it started");
	buf_reset(&said);
	r.shell = "setsid sh -c 'trap \"\" TERM; sleep 298 & echo $! $$; wait; sleep 298' & wait";
	is_int(run(&r, &e), 42, "one whose child has a session of its own");
	ok(sscanf(said.data, "%d %d", &child, &shell_pid) == 2 && child > 1 && shell_pid > 1, "which told its processes");
	ok(is_gone(shell_pid) && is_gone(child), "that session is gone, too");
	r.shell = "exec 2>/dev/null; trap 'echo bye >\"$F\"; exit' TERM; echo; while :; do sleep 0.01; done";
	snprintf(path, sizeof(path), "%s/bye", tmpdir());
	setenv("F", path, 1);
	is_int(run(&r, &e), 42, "a child that is ended by its reader");
	ok(access(path, F_OK) == 0, "can clean up at SIGTERM");
	buf_release(&said);
}

static void
surroundings(void)
{
	const char *const env[] = { "NEW=1 2", "OLD", "BOTH=ours", NULL };
	struct buf out = BUF_INIT;
	struct err e = ERR_INIT;
	struct run r = { .shell = "echo ${NEW-no} ${OLD-no} ${BOTH-no} ${KEPT-no}", .env = env, .out = &out };
	sigset_t block, old;
	int fd = dup(0), file;
	char path[PATH_MAX];

	setenv("OLD", "1", 1);
	setenv("BOTH", "theirs", 1);
	setenv("KEPT", "kept", 1);
	run(&r, &e);
	is_str(out.data, "1 2 no ours kept\n", "variables are added, removed, replaced and kept");
	ok(fd > 2, "a descriptor without close-on-exec is open");
	shell("ls /proc/self/fd", &out, &e);
	is_str(out.data, "0\n1\n2\n3\n", "the child has 0 to 2 only (3 is ls reading the list)");
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	sigprocmask(SIG_BLOCK, &block, &old);
	shell("grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d '\\t\\n'", &out, &e);
	is_str(out.data, "SigBlk:0000000000000000SigIgn:0000000000000000", "no signal is blocked or ignored there");
	sigprocmask(SIG_SETMASK, &old, NULL);
	shell("cut -d' ' -f5 /proc/$$/stat", &out, &e);
	ok(atol(out.data) > 1 && atol(out.data) != getpgrp(), "it leads a process group of its own");
	snprintf(path, sizeof(path), "%s/out", tmpdir());
	file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	r = (struct run){ .shell = "cat", .input = "to a file", .input_len = 9, .output_fd = file };
	is_int(run(&r, &e), 0, "standard output can be a file");
	close(file);
	buf_reset(&out);
	ok(io_read_file(path, &out, &e) == 0 && strcmp(out.data, "to a file") == 0, "which has it");
	file = open(path, O_RDONLY | O_CLOEXEC);
	r = (struct run){ .shell = "cat", .input_fd = file, .out = &out };
	buf_reset(&out);
	is_int(run(&r, &e), 0, "so can standard input");
	is_str(out.data, "to a file", "and is read");
	close(file);
	close(fd);
	buf_release(&out);
}

/* With 0 to 2 closed, pipes must not land on each other's places. */
static void
closed(void)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		struct buf out = BUF_INIT, errors = BUF_INIT;
		struct run r = { .shell = "cat; echo err >&2", .input = "in", .input_len = 2, .out = &out, .errors = &errors };
		struct err e = ERR_INIT;

		close(0);
		close(1);
		close(2);
		_exit(run(&r, &e) == 0 && strcmp(out.data, "in") == 0 && strcmp(errors.data, "err\n") == 0 ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	is_int(status, 0, "it works with our own standard descriptors closed");
}

/* Signals that come at any time around the wait are seen: a lost one would hang until the timeout of a minute. */
static int
interrupted_after(int micros)
{
	struct run r = { .shell = "exec sleep 60", .timeout = 50 };
	struct err e = ERR_INIT;
	pid_t self = getpid();
	int rc;

	run_catch_signals();
	if (fork() == 0) {
		usleep((useconds_t)micros);
		kill(self, SIGTERM);
		_exit(0);
	}
	rc = run(&r, &e);
	if (rc != -1 || e.code != ERR_UNAVAIL || run_interrupted() != SIGTERM || strstr(e.msg, "interrupted") == NULL)
		return 1;
	return run(&r, &e) == -1 && strstr(e.msg, "interrupted") != NULL ? 0 : 2;
}

static void
interrupts(void)
{
	int i, status, bad = 0;
	double begin = clock_monotonic();

	for (i = 0; i < 40; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(interrupted_after(i * 150));
		waitpid(pid, &status, 0);
		bad += status != 0;
	}
	is_int(bad, 0, "a signal at any moment ends the child and says so, and no other is started then");
	ok(clock_monotonic() - begin < 45, "without waiting for a time limit");
	is_int(run_wakeup_fd(), -1, "nothing is caught before that is asked for");
	signal(SIGINT, SIG_IGN);
	run_catch_signals();
	raise(SIGINT);
	is_int(run_interrupted(), 0, "a signal that was ignored stays ignored");
	raise(SIGHUP);
	is_int(run_interrupted(), SIGHUP, "the signal is told");
}

/* What has ended and is waited for by nobody, as orphans are where process 1 does not care, runs no more. */
static void
left_behind(void)
{
	int p[2], status;
	char c;
	pid_t group;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (pipe(p) < 0 || (group = fork()) < 0) {
		ok(false, "a child is started");
		return;
	}
	if (group == 0) {
		setpgid(0, 0);
		if (fork() == 0)
			(void)!io_read(p[0], &c, 1);
		_exit(0);
	}
	waitpid(group, &status, 0);
	ok(kill(-group, 0) == 0 && !strays_group_ended(group), "a group of which one runs has not ended");
	is_int((int)write(p[1], "", 1), 1, "it is told to end");
	is_int(waitid(P_PGID, (id_t)group, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0, "and does");
	ok(kill(-group, 0) == 0 && strays_group_ended(group), "a group whose last one is only waited for has ended");
	waitpid(-group, &status, 0);
	ok(kill(-group, 0) < 0 && strays_group_ended(group), "so has one that is not there");
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	close(p[0]);
	close(p[1]);
}

int
main(void)
{
	ends();
	feeds();
	limits();
	groups();
	left_behind();
	surroundings();
	closed();
	interrupts();
	return done();
}

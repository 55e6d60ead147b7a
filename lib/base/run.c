#include "base/run.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/strays.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE 1.0	/* seconds between SIGTERM and SIGKILL */
#define CHUNK (64 * 1024)
#define LAST_ERROR_MAX 4096	/* bytes of a last line of stderr that are held back */

static volatile sig_atomic_t caught;
static int wakeup = -1;

static void
on_signal(int sig)
{
	int saved = errno;
	uint64_t one = 1;

	if (caught == 0 || caught == SIGINT)
		caught = sig;
	if (write(wakeup, &one, sizeof(one)) < 0) {
		/* The counter is full: it is readable all the same. */
	}
	errno = saved;
}

void
run_catch_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa = { .sa_handler = on_signal }, old;
	size_t i;

	if (wakeup < 0)
		wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sigemptyset(&sa.sa_mask);
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(signals[i], &sa, NULL);
}

int
run_interrupted(void)
{
	return caught;
}

int
run_check(struct err *e)
{
	return caught == 0 ? 0 : err_set(e, ERR_UNAVAIL, "interrupted by signal %d", caught);
}

int
run_wakeup_fd(void)
{
	return wakeup;
}

enum { IN, OUT, ERR, STATUS, PIPES };

struct child {
	const struct run *r;
	pid_t pid;
	int pidfd;		/* -1: the kernel has none, its end is asked for now and then */
	int ours[PIPES];	/* our ends; -1: none or closed */
	int theirs[PIPES];
	pid_t guard;		/* 0: none */
	int leash;		/* what it waits at */
	size_t fed;		/* bytes of input written */
	double deadline;	/* INFINITY: none */
	bool ended;
	int status;
};

struct failure {		/* what the child could not do before its exec */
	int error;
	bool cwd;
};

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Above 2, so that installing one as stdin cannot overwrite another when ours were closed. */
static int
above_stdio(int fd)
{
	int up;

	if (fd < 0 || fd > 2)
		return fd;
	up = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	close(fd);
	return up;
}

static int
open_pipe(struct child *c, int which, bool to_child, struct err *e)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return err_sys(e, "cannot create a pipe");
	c->ours[which] = above_stdio(p[to_child]);
	c->theirs[which] = above_stdio(p[!to_child]);
	if (c->ours[which] < 0 || c->theirs[which] < 0)
		return err_sys(e, "cannot create a pipe");
	if (which != STATUS)
		fcntl(c->ours[which], F_SETFL, O_NONBLOCK);
	return 0;
}

static bool
hears_output(const struct run *r)
{
	return r->output_fd <= 0 && (r->out != NULL || r->on_output != NULL);
}

static int
open_pipes(struct child *c, struct err *e)
{
	const struct run *r = c->r;

	if (open_pipe(c, STATUS, false, e) < 0)
		return -1;
	if (r->input_fd <= 0 && r->input_len > 0) {
		if (open_pipe(c, IN, true, e) < 0)
			return -1;
	} else if (r->input_fd <= 0 && !r->terminal) {
		c->theirs[IN] = above_stdio(open("/dev/null", O_RDONLY | O_CLOEXEC));
		if (c->theirs[IN] < 0)
			return err_sys(e, "cannot open /dev/null");
	}
	if (hears_output(r) && open_pipe(c, OUT, false, e) < 0)
		return -1;
	return r->errors != NULL || r->last_error != NULL ? open_pipe(c, ERR, false, e) : 0;
}

static size_t
name_length(const char *setting)
{
	return strcspn(setting, "=");
}

static bool
overridden(const char *const *env, const char *setting)
{
	size_t len = name_length(setting);

	for (; env != NULL && *env != NULL; env++)
		if (name_length(*env) == len && memcmp(*env, setting, len) == 0)
			return true;
	return false;
}

/* Ours with the changes; the strings are borrowed. Made before the fork, for memory cannot be had after it. */
static char **
environment(const char *const *env)
{
	size_t n = 0, cap = 0, i;
	char **all = NULL;

	for (i = 0; environ != NULL && environ[i] != NULL; i++) {
		if (overridden(env, environ[i]))
			continue;
		all = xgrow(all, n, &cap, sizeof(*all));
		all[n++] = environ[i];
	}
	for (; env != NULL && *env != NULL; env++) {
		if (strchr(*env, '=') == NULL)
			continue;
		all = xgrow(all, n, &cap, sizeof(*all));
		all[n++] = (char *)(uintptr_t)*env;
	}
	all = xgrow(all, n, &cap, sizeof(*all));
	all[n] = NULL;
	return all;
}

/* What was ignored by intent stays so (nohup), but SIGPIPE and SIGCHLD are ignored only for our own sake. */
static void
default_signals(void)
{
	struct sigaction old, dfl = { .sa_handler = SIG_DFL };
	sigset_t none;
	int sig;

	for (sig = 1; sig < NSIG; sig++) {
		if (sigaction(sig, NULL, &old) < 0)
			continue;
		if (old.sa_handler != SIG_IGN || sig == SIGPIPE || sig == SIGCHLD)
			sigaction(sig, &dfl, NULL);
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void
install(int fd, int as)
{
	if (fd < 0)
		return;
	if (fd == as)
		fcntl(fd, F_SETFD, 0);
	else
		dup2(fd, as);
}

static void __attribute__((noreturn))
become(const struct child *c, char *const *argv, char **env, pid_t parent)
{
	const struct run *r = c->r;
	struct failure f = { 0 };

	if (!r->terminal)
		setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(127);
	install(r->input_fd > 0 ? r->input_fd : c->theirs[IN], 0);
	install(r->output_fd > 0 ? r->output_fd : c->theirs[OUT], 1);
	install(c->theirs[ERR], 2);
	close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
	if (r->keep_fd > 2)
		fcntl(r->keep_fd, F_SETFD, 0);
	default_signals();
	if (r->cwd != NULL && chdir(r->cwd) < 0) {
		f.cwd = true;
	} else {
		execvpe(argv[0], argv, env);
	}
	f.error = errno;
	if (write(c->theirs[STATUS], &f, sizeof(f)) < 0)
		_exit(126);
	_exit(127);
}

/* Signals are blocked across the fork: a handler that ran in the child would wake us for nothing. */
static pid_t
fork_child(const struct child *c, char *const *argv, char **env)
{
	pid_t parent = getpid(), pid;
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = fork();
	if (pid == 0)
		become(c, argv, env, parent);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return pid;
}

/* ---- when we are killed ---- */

static void
pause_for(double seconds)
{
	struct timespec t = { .tv_nsec = (long)(seconds * 1e9) };

	nanosleep(&t, NULL);
}

static void
ask_to_end(pid_t target)
{
	kill(target, SIGTERM);
	kill(target, SIGCONT);
}

/* With all signals blocked; the leash ends with whoever holds the other end. */
static void __attribute__((noreturn))
stand_guard(int leash, pid_t target)
{
	double limit;
	char word;

	dup2(leash, 0);
	close_range(1, ~0U, 0);
	(void)!chdir("/");
	while (io_read(0, &word, 1) > 0)
		;
	ask_to_end(target);
	for (limit = clock_monotonic() + GRACE; kill(target, 0) == 0 && clock_monotonic() < limit;)
		pause_for(0.005);
	kill(target, SIGKILL);
	_exit(0);
}

/*
 * SIGKILL leaves us no time to end the child and what it started: a process of ours does it then, in a group of its own. What
 * shares our terminal is left to the terminal.
 */
static void
post_guard(struct child *c)
{
	sigset_t all, old;
	int p[2];

	if (c->r->terminal || pipe2(p, O_CLOEXEC) < 0)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	c->guard = fork();
	if (c->guard == 0) {
		setpgid(0, 0);
		close(p[1]);
		stand_guard(p[0], -c->pid);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	close(p[0]);
	c->leash = p[1];
}

static void
dismiss_guard(struct child *c)
{
	if (c->guard > 0) {
		kill(c->guard, SIGKILL);
		while (waitpid(c->guard, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close_fd(&c->leash);
}

static int
start(struct child *c, struct err *e)
{
	const struct run *r = c->r;
	char *sh[] = { (char *)(uintptr_t)"/bin/sh", (char *)(uintptr_t)"-c", (char *)(uintptr_t)r->shell, NULL };
	char *const *argv = r->shell != NULL ? sh : r->argv;
	char **env = environment(r->env);
	struct failure f = { 0 };
	int i;

	c->pid = fork_child(c, argv, env);
	free(env);
	for (i = 0; i < PIPES; i++)
		close_fd(&c->theirs[i]);
	if (c->pid < 0)
		return err_set(e, ERR_UNAVAIL, "cannot start a process: %s", strerror(errno));
	if (io_read(c->ours[STATUS], &f, sizeof(f)) == (ssize_t)sizeof(f)) {
		while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
			;
		return err_set(e, ERR_UNAVAIL, "cannot %s '%.200s': %s", f.cwd ? "enter" : "run",
		    f.cwd ? r->cwd : argv[0], strerror(f.error));
	}
	close_fd(&c->ours[STATUS]);
	c->pidfd = pidfd_open(c->pid, 0);
	if (c->pidfd >= 0)
		fcntl(c->pidfd, F_SETFD, FD_CLOEXEC);
	post_guard(c);
	return 0;
}

/* A write to a pipe whose reader is gone, without a SIGPIPE for us, whatever the command does with that signal. */
static ssize_t
write_quietly(int fd, const void *data, size_t len)
{
	struct timespec now = { 0 };
	sigset_t pipe, old, pending;
	bool before;
	ssize_t n;
	int saved;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &old);
	sigpending(&pending);
	before = sigismember(&pending, SIGPIPE) == 1;
	n = write(fd, data, len);
	saved = errno;
	if (n < 0 && saved == EPIPE && !before)
		sigtimedwait(&pipe, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = saved;
	return n;
}

static void
feed(struct child *c)
{
	const char *input = c->r->input;
	ssize_t n = write_quietly(c->ours[IN], input + c->fed, c->r->input_len - c->fed);

	if (n > 0)
		c->fed += (size_t)n;
	if (c->fed == c->r->input_len || (n < 0 && errno != EAGAIN && errno != EINTR))
		close_fd(&c->ours[IN]);
}

static int
take_output(const struct run *r, const char *data, size_t len, struct err *e)
{
	if (r->on_output != NULL)
		return r->on_output(r->arg, data, len);
	buf_add(r->out, data, len);
	if (r->out->over)
		return err_set(e, ERR_DATA, "it printed more than %zu bytes", r->out->max);
	return 0;
}

static void
take_errors(struct buf *b, const char *data, size_t len)
{
	if (b->max != 0 && len > b->max - b->len)
		len = b->max - b->len;
	buf_add(b, data, len);
}

static void
pass_errors(struct buf *last, const char *data, size_t len)
{
	const char *end;
	size_t n;

	buf_add(last, data, len);
	end = last->len > 1 ? memrchr(last->data, '\n', last->len - 1) : NULL;
	n = end != NULL ? (size_t)(end + 1 - last->data) : last->len > LAST_ERROR_MAX ? last->len : 0;
	(void)!io_write_all(2, last->data, n);
	buf_drop(last, n);
}

/* One read; *n is its count. Non-zero when the child must end. */
static int
collect(struct child *c, int which, ssize_t *n, struct err *e)
{
	char data[CHUNK];

	*n = io_read(c->ours[which], data, sizeof(data));
	if (*n < 0 && errno == EAGAIN)
		return 0;
	if (*n <= 0) {
		close_fd(&c->ours[which]);
		return 0;
	}
	if (which == OUT)
		return take_output(c->r, data, (size_t)*n, e);
	if (c->r->errors != NULL)
		take_errors(c->r->errors, data, (size_t)*n);
	else
		pass_errors(c->r->last_error, data, (size_t)*n);
	return 0;
}

/* What was in the pipe when the child ended, and not what others that hold it may still write. */
static int
drain(struct child *c, int which, struct err *e)
{
	ssize_t n = 1;
	long left;
	int rc = 0;

	if (c->ours[which] < 0)
		return 0;
	left = fcntl(c->ours[which], F_GETPIPE_SZ);
	for (; rc == 0 && n > 0 && left > 0 && c->ours[which] >= 0; left -= n)
		rc = collect(c, which, &n, e);
	return rc;
}

static void
reap(struct child *c)
{
	pid_t p;

	if (c->ended)
		return;
	do
		p = waitpid(c->pid, &c->status, WNOHANG);
	while (p < 0 && errno == EINTR);
	c->ended = p != 0;
	if (p < 0)
		c->status = 0;	/* reaped elsewhere: its status is not to be had */
}

/* Nobody is left: all that was in the group has ended. */
static bool
gone(struct child *c, pid_t target)
{
	reap(c);
	return c->ended && (target > 0 || (kill(target, 0) < 0 && errno == ESRCH) || strays_group_ended(-target));
}

static void
terminate(struct child *c)
{
	pid_t target = c->r->terminal ? c->pid : -c->pid;
	struct strays strays = { .n = 0 };
	double limit = clock_monotonic() + GRACE;

	if (c->ended)
		return;
	close_fd(&c->ours[IN]);
	if (target < 0)
		strays_find(&strays, c->pid);	/* while it is there, they can be told by their parents */
	ask_to_end(target);
	strays_signal(&strays, SIGTERM);
	strays_signal(&strays, SIGCONT);
	while (!(gone(c, target) && strays_gone(&strays)) && clock_monotonic() < limit)
		pause_for(0.005);
	if (target < 0)
		strays_find(&strays, c->ended ? -1 : c->pid);
	if (!c->ended || target < 0)
		kill(target, SIGKILL);
	strays_signal(&strays, SIGKILL);
	strays_release(&strays);
	while (!c->ended) {
		reap(c);
		if (!c->ended)
			pause_for(0.005);
	}
}

/* Ctrl-C in a terminal that the child shares is for the child to act on. */
static bool
must_end(const struct child *c)
{
	return run_interrupted() != 0 && !(c->r->terminal && run_interrupted() == SIGINT);
}

static int
wait_ms(const struct child *c)
{
	double left = c->deadline - clock_monotonic();

	if ((c->pidfd < 0 || run_interrupted() != 0) && left > 0.02)
		return 20;
	if (left > 3600)
		return 3600 * 1000;
	return left <= 0 ? 0 : (int)ceil(left * 1000);
}

/* Waits for anything to do and does it. 0 to go on. */
static int
step(struct child *c, struct err *e)
{
	struct pollfd p[] = {
		{ .fd = c->ours[IN], .events = POLLOUT },
		{ .fd = c->ours[OUT], .events = POLLIN },
		{ .fd = c->ours[ERR], .events = POLLIN },
		{ .fd = c->pidfd, .events = POLLIN },
		{ .fd = run_interrupted() != 0 ? -1 : wakeup, .events = POLLIN },
	};
	ssize_t n;
	int rc = 0;

	if (poll(p, sizeof(p) / sizeof(p[0]), wait_ms(c)) < 0 && errno != EINTR)
		return err_sys(e, "cannot wait for a child");
	if (p[IN].revents != 0)
		feed(c);
	if (p[OUT].revents != 0)
		rc = collect(c, OUT, &n, e);
	if (rc == 0 && p[ERR].revents != 0)
		collect(c, ERR, &n, e);
	if (rc == 0 && (c->pidfd < 0 || p[3].revents != 0))
		reap(c);
	if (rc == 0 && !c->ended && must_end(c))
		rc = run_check(e);
	if (rc == 0 && !c->ended && clock_monotonic() >= c->deadline)
		rc = err_set(e, ERR_UNAVAIL, "it ran longer than %g seconds and was ended", c->r->timeout);
	return rc;
}

static int
attend(struct child *c, struct err *e)
{
	int rc = 0;

	while (rc == 0 && !c->ended)
		rc = step(c, e);
	if (rc == 0)
		rc = drain(c, OUT, e);
	else
		terminate(c);
	drain(c, ERR, e);
	if (rc != 0)
		return rc;
	return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}

int
run(const struct run *r, struct err *e)
{
	struct child c = { .r = r, .pidfd = -1, .leash = -1, .ours = { -1, -1, -1, -1 }, .theirs = { -1, -1, -1, -1 }, .deadline = INFINITY };
	int rc = -1, i;

	if (run_check(e) < 0)
		return -1;
	if (r->timeout > 0)
		c.deadline = clock_monotonic() + r->timeout;
	if (open_pipes(&c, e) == 0 && start(&c, e) == 0)
		rc = attend(&c, e);
	dismiss_guard(&c);
	close_fd(&c.pidfd);
	for (i = 0; i < PIPES; i++) {
		close_fd(&c.ours[i]);
		close_fd(&c.theirs[i]);
	}
	return rc;
}

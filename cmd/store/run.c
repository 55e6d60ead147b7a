/* Programs that run with a store at hand: `lock` and `run`. */
#include "command.h"

#include "base/alloc.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void
block_signals(sigset_t *ours, sigset_t *before)
{
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(ours);
	sigaddset(ours, SIGINT);
	sigaddset(ours, SIGQUIT);
	sigaddset(ours, SIGTERM);
	sigaddset(ours, SIGHUP);
	sigaddset(ours, SIGCHLD);
	sigprocmask(SIG_BLOCK, ours, before);
}

static noreturn void
become(char **argv, const char *store)
{
	signal(SIGPIPE, SIG_DFL);
	setenv("AG2_STORE", store, 1);
	execvp(argv[0], argv);
	log_warn("cannot run '%s': %s", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

#define LOOK_MS 200

/*
 * Until the child has ended. A signal that another process sent us goes on to the child; one from the terminal has
 * reached it already. When the lock (may be NULL) is lost the child is told to end, and *lost is set.
 */
static int
wait_child(pid_t child, const sigset_t *ours, struct store_lock *lock, bool *lost)
{
	const struct timespec moment = { .tv_nsec = LOOK_MS * 1000000L };
	struct err e = ERR_INIT;
	siginfo_t info;
	int status, sig;

	for (;;) {
		sig = sigtimedwait(ours, &info, lock != NULL && !*lost ? &moment : NULL);
		if (sig < 0 && errno == EAGAIN && lock != NULL && store_lock_held(lock, &e) < 0) {
			*lost = true;
			log_warn("%s: the command is told to end", e.msg);
			kill(child, SIGTERM);
		}
		if (sig > 0 && sig != SIGCHLD && info.si_code <= 0)
			kill(child, sig);
		if (sig == SIGCHLD && waitpid(child, &status, WNOHANG) == child)
			return status;
	}
}

/* Runs argv as a child in the foreground, which is told to end when we die. Gives waitpid's status. */
static int
run_child(char **argv, const char *store, const sigset_t *ours, const sigset_t *before, struct store_lock *lock, bool *lost)
{
	pid_t self = getpid(), child = fork();
	struct err e = ERR_INIT;

	if (child < 0) {
		err_sys(&e, "cannot start '%s'", argv[0]);
		log_fail(&e);
	}
	if (child == 0) {
		sigprocmask(SIG_SETMASK, before, NULL);
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != self)
			_exit(143);
		become(argv, store);
	}
	return wait_child(child, ours, lock, lost);
}

/* Its exit status is ours. After Ctrl-C we end by it too, so that the calling shell script stops. */
static int
status_of(int wait_status)
{
	if (WIFEXITED(wait_status))
		return WEXITSTATUS(wait_status);
	if (WTERMSIG(wait_status) == SIGINT)
		cli_die_by(SIGINT);
	return 128 + WTERMSIG(wait_status);
}

/* ---- lock ---- */

static double wait_seconds = -1, ttl = 60;

/* So that what COMMAND writes to the store is refused, too, once the lock is lost: see cli_try_open. */
static void
hand_on(struct store *s, const struct store_lock *lock)
{
	char *token = store_lock_token(lock), *held;

	if (token == NULL)
		return;
	held = xasprintf("%s\n%s", store_url(s), token);
	setenv("AG2_LOCK", held, 1);
	free(held);
	free(token);
}

static int
run_lock(char **args, int n)
{
	struct store *s = open_store(STORE_CREATE);
	int64_t wait_ms = wait_seconds < 0 ? -1 : (int64_t)(wait_seconds * 1000);
	struct store_lock *lock;
	struct err e = ERR_INIT;
	sigset_t ours, before;
	char **command = args + 1;
	bool lost = false;
	int status;

	if (strcmp(command[0], "--") == 0 && *++command == NULL)
		usage("lock: which command is to run?");
	if (ttl < 0.001 || ttl > 1e9)
		usage("lock: --ttl needs a time that a lock can be held for");
	if (store_lock(s, args[0], (int64_t)(ttl * 1000), wait_ms, &lock, &e) < 0)
		fail(&e);
	hand_on(s, lock);
	block_signals(&ours, &before);
	status = run_child(command, store_url(s), &ours, &before, lock, &lost);
	if (!lost && store_lock_held(lock, &e) < 0) {
		lost = true;
		log_warn("%s while the command ran", e.msg);
	}
	store_unlock(lock);
	store_close(s);
	return lost ? err_status(ERR_BUSY) : status_of(status);
}

static const struct opt lock_table[] = {
	{ 'w', "wait", OPT_SECONDS, &wait_seconds, "S", "give up after S seconds, with status 75 (default: wait for ever)" },
	{ 0, "ttl", OPT_SECONDS, &ttl, "S", "where hosts share a store: let go when not renewed for S seconds (60)" },
	{ 0 }
};

const struct command command_lock = {
	.name = "lock",
	.operands = "[-w S] [--ttl=S] PATH -- COMMAND [ARGUMENT...]",
	.summary = "hold the lock named PATH while COMMAND runs",
	.table = lock_table,
	.min = 2, .max = -1,
	.program = true,
	.run = run_lock,
	.more = "PATH need not exist; reading and writing do not heed the lock, other lock commands and the turns\n"
		"of agents (on /log/S.jsonl) do. The exit status is that of COMMAND. AG2_STORE is set for it.\n"
		"A lock on a server can be lost, when this host is stopped or cut off for longer than --ttl: then COMMAND\n"
		"gets SIGTERM, and the status is 75; what it writes to AG2_STORE from then on is refused with 75.\n"
		"\nExample:\n"
		"  ag2-store lock -w 10 /memory/working.md -- ./merge-notes\n",
};

/* ---- run ---- */

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *f)
{
	return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

static char *
private_directory(void)
{
	const char *tmp = cli_env("TMPDIR");
	const char *const bases[] = { "/dev/shm", tmp, "/tmp" };
	char *dir;
	size_t i;

	for (i = 0; i < 3; i++) {
		if (bases[i] == NULL)
			continue;
		dir = xasprintf("%s/ag2-store.XXXXXX", bases[i]);
		if (mkdtemp(dir) != NULL)
			return dir;
		free(dir);
	}
	log_die(73, "cannot create a private directory in /dev/shm, $TMPDIR or /tmp: %s", strerror(errno));
}

static int
run_private(char **command)
{
	sigset_t ours, before;
	char *dir, *store;
	int status, tries = 0;

	block_signals(&ours, &before);	/* before there is something to remove */
	dir = private_directory();
	store = xasprintf("disk:%s", dir);
	status = run_child(command, store, &ours, &before, NULL, NULL);
	while (nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0 && ++tries < 10)
		continue;	/* what COMMAND left running may still write */
	if (tries == 10)
		log_warn("cannot remove '%s': %s", dir, strerror(errno));
	free(store);
	free(dir);
	return status_of(status);
}

static int
run_run(char **args, int n)
{
	struct buf url = BUF_INIT;
	struct store *s;
	bool private;

	store_url_given(&url);
	private = strncmp(url.data, "memory:", 7) == 0;
	buf_release(&url);
	if (private)
		return run_private(args);
	s = open_store(STORE_CREATE);
	buf_adds(&url, store_url(s));	/* absolute */
	store_close(s);
	become(args, url.data);
}

const struct command command_run = {
	.name = "run",
	.operands = "-- COMMAND [ARGUMENT...]",
	.summary = "run COMMAND with AG2_STORE set to this store",
	.min = 1, .max = -1,
	.program = true,
	.run = run_run,
	.more = "With -s memory: it gets a store of its own, which is gone when it ends. The exit status is that of\n"
		"COMMAND, 127 when it is not found, 126 when it cannot be run.\n"
		"\nExample:\n"
		"  ag2-store -s memory: run -- sh ./pipeline.sh\n",
};

/*
 * killat K COMMAND [ARGUMENT...]: runs the command and kills it before its system call number K (from 1, threads and children
 * not counted), then waits for what it started. Exits 0 when it was killed, 1 when it ended well before, 3 when it ended
 * otherwise, 77 when nothing can be traced here.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static int
give_up(const char *what)
{
	fprintf(stderr, "killat: %s: %s\n", what, strerror(errno));
	return 70;
}

static pid_t
start(char **argv)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(126);
		/* The leak checker of a sanitizer build traces its process too, and a process has one tracer. */
		setenv("ASAN_OPTIONS", "detect_leaks=0", 0);
		execvp(argv[0], argv);
		_exit(127);
	}
	return pid;
}

/* Orphans come to us: they may still write what the test looks at. */
static void
wait_for_all(void)
{
	while (wait(NULL) > 0 || errno == EINTR)
		;
}

static int
follow(pid_t pid, long k)
{
	long at = 0;
	int status, sig;

	for (;;) {
		sig = 0;
		if (waitpid(pid, &status, 0) < 0)
			return give_up("waitpid");
		if (WIFEXITED(status))
			return WEXITSTATUS(status) == 0 ? 1 : 3;
		if (WIFSIGNALED(status))
			return 3;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {	/* each call stops twice: going in and coming out */
			if (++at == 2 * k - 1) {
				kill(pid, SIGKILL);
				waitpid(pid, &status, 0);
				return 0;
			}
		} else if (WSTOPSIG(status) != SIGTRAP) {
			sig = WSTOPSIG(status);
		}
		if (ptrace(PTRACE_SYSCALL, pid, NULL, sig) < 0)
			return give_up("ptrace");
	}
}

int
main(int argc, char **argv)
{
	pid_t pid;
	int status;
	long k = argc > 2 ? strtol(argv[1], NULL, 10) : 0;

	if (k < 1) {
		fputs("usage: killat K COMMAND [ARGUMENT...]\n", stderr);
		return 64;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	pid = start(argv + 2);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return give_up("fork");
	if (WIFEXITED(status))
		return WEXITSTATUS(status) == 126 ? 77 : 3;
	ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	if (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) < 0)
		return give_up("ptrace");
	status = follow(pid, k);
	wait_for_all();
	return status;
}

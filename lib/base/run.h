/*
 * Running a child: its own process group, SIGPIPE and signal mask at their defaults, every descriptor but 0-2 closed on
 * exec, a time and a size limit. When we end it, the whole group gets SIGTERM, then SIGKILL after a second, and so does what else
 * descends from it (setsid).
 */
#ifndef AG2_RUN_H
#define AG2_RUN_H

#include "base/buf.h"
#include "base/err.h"

struct run {
	const char *shell;		/* a command for `sh -c`, or */
	char *const *argv;		/* a program (looked up in PATH) and its arguments */
	const char *const *env;		/* "NAME=value" to add or replace, or "NAME" to remove; NULL-terminated; may be NULL */
	const char *cwd;		/* may be NULL */
	const void *input;		/* what it gets on stdin; it need not read it all */
	size_t input_len;
	int input_fd;			/* used as its stdin instead when > 0 */
	int output_fd;			/* used as its stdout when > 0; else stdout is collected in out */
	int keep_fd;			/* stays open in the child, under its number, when > 2: for --status-fd */
	struct buf *out;		/* the child is ended and ERR_DATA is the answer when its maximum is exceeded */
	struct buf *errors;		/* collects stderr (only its first max bytes are kept); NULL: shared with ours, or */
	struct buf *last_error;		/* ... given on to ours but for its last line, where a shell says that it cannot start a command */
	double timeout;			/* seconds; 0 means none */
	/* Called as output arrives, instead of collecting; non-zero ends the child and is returned. May be NULL. */
	int (*on_output)(void *arg, const char *data, size_t len);
	void *arg;
	/* Keeps our stdin (when there is no input), stdout (when nothing takes it) and process group: for a command that a person started and may type into. */
	bool terminal;
};

/*
 * Runs it to its end. Returns its exit status (128 + signal when it died of one), or -1: ERR_UNAVAIL when it could not be
 * started, ran out of time, or was ended because we were told to end (see run_interrupted); ERR_DATA when it printed
 * too much. Its end is the end of the program itself: what it left running in the background goes on, unheard. With
 * neither out, on_output nor output_fd its stdout is ours.
 */
int run(const struct run *r, struct err *e);

/*
 * The signal that the command was sent and should end by, 0 if none: of SIGINT, SIGTERM, SIGHUP the first, from when
 * run_catch_signals was called (one that was ignored stays so). Commands that run children or wait for servers call it
 * once they have read their input, and end by run_check what they do from there on; when it is killed, SIGKILL not excepted,
 * a process beside it ends the child and its group in the same way.
 */
void run_catch_signals(void);
int run_interrupted(void);
/* -1 with ERR_UNAVAIL when there was one: what may go on for long, as over all events of a stream, asks now and again. */
int run_check(struct err *e);
/* Readable from the first such signal on and never drained: for a poll that must not miss it. -1 before run_catch_signals. */
int run_wakeup_fd(void);

#endif

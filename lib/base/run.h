/*
 * Running a child: its own process group, SIGPIPE and signal mask at their defaults, every descriptor but 0-2 closed on
 * exec, a time and a size limit. When we end it, the whole group gets SIGTERM, then SIGKILL after a second.
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
	struct buf *out;		/* the child is ended and ERR_DATA is the answer when its maximum is exceeded */
	struct buf *errors;		/* collects stderr (only its first max bytes are kept); NULL: shared with ours */
	double timeout;			/* seconds; 0 means none */
	/* Called as output arrives, instead of collecting; non-zero ends the child and is returned. May be NULL. */
	int (*on_output)(void *arg, const char *data, size_t len);
	void *arg;
};

/*
 * Runs it to its end. Returns its exit status (128 + signal when it died of one), or -1: ERR_UNAVAIL when it could not be
 * started or ran out of time, ERR_DATA when it printed too much. A SIGINT or SIGTERM of ours ends it first (see run_interrupted).
 */
int run(const struct run *r, struct err *e);

/* The signal that the command was sent and should end by, 0 if none; set by handlers that run_catch_signals installs. */
void run_catch_signals(void);
int run_interrupted(void);

#endif

#include "confirm.h"

#include "../cli.h"
#include "base/run.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static int terminal = -1;

/* Until a line is there, or we are told to end: of a signal that comes just before the wait, too. */
static bool
await_line(void)
{
	struct pollfd line = { .fd = terminal, .events = POLLIN };
	sigset_t ours, before;
	int n = -1;

	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGHUP);
	sigprocmask(SIG_BLOCK, &ours, &before);
	while (!run_interrupted() && (n = ppoll(&line, 1, NULL, &before)) < 0 && errno == EINTR)
		;
	sigprocmask(SIG_SETMASK, &before, NULL);
	return n > 0 && !run_interrupted();
}

/* Whatever a model writes is shown before it runs, with nothing in it that a terminal would obey. */
bool
confirmed(const struct call *call)
{
	struct buf shown = BUF_INIT;
	char answer[1000];	/* a line, as terminals give them */
	ssize_t n = 0;
	bool told;

	if (out_in_line() && isatty(1))
		buf_addch(&shown, '\n');
	buf_adds(&shown, "ag2-ask: run ");
	scrub(&shown, call->name, strlen(call->name), false);
	buf_addch(&shown, ' ');
	scrub(&shown, call->arguments, strlen(call->arguments), false);
	buf_adds(&shown, "? [y/N] ");
	out_flush();
	told = io_write_all(terminal, shown.data, shown.len) == 0;
	buf_release(&shown);
	if (told && await_line())
		n = io_read(terminal, answer, sizeof(answer));
	if (n <= 0)	/* the line that was not entered ends here */
		io_write_all(terminal, "\n", 1);
	return n > 0 && (answer[0] == 'y' || answer[0] == 'Y');
}

void
open_terminal(void)
{
	if ((terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)) < 0)
		log_die(78, "--confirm needs a terminal, and there is none");
}

#include "confirm.h"

#include "../cli.h"
#include "base/utf8.h"

#include <fcntl.h>
#include <string.h>

static int terminal = -1;

/* Whatever a model writes is shown before it runs, with nothing in it that a terminal would obey. */
bool
confirmed(const struct call *call)
{
	struct buf shown = BUF_INIT;
	char answer[1000];	/* a line, as terminals give them */
	bool told;

	buf_adds(&shown, "ag2-ask: run ");
	scrub(&shown, call->name, strlen(call->name), false);
	buf_addch(&shown, ' ');
	scrub(&shown, call->arguments, strlen(call->arguments), false);
	buf_adds(&shown, "? [y/N] ");
	out_flush();
	told = io_write_all(terminal, shown.data, shown.len) == 0;
	buf_release(&shown);
	return told && io_read(terminal, answer, sizeof(answer)) > 0 && (answer[0] == 'y' || answer[0] == 'Y');
}

void
open_terminal(void)
{
	if ((terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)) < 0)
		log_die(78, "--confirm needs a terminal, and there is none");
}

#include "policy/command.h"

#include "base/io.h"
#include "base/run.h"

#include <unistd.h>

#define SAID_MAX 300	/* bytes of what a shell says, to be quoted in a message */

struct writer {
	int fd;
	struct buf buf;
};

static int
flush(struct writer *w, struct err *e)
{
	int rc = io_write_all(w->fd, w->buf.data, w->buf.len);

	buf_reset(&w->buf);
	return rc == 0 ? 0 : err_sys(e, "cannot write a temporary file");
}

static int
write_event(void *arg, struct event *ev, struct err *e)
{
	struct writer *w = arg;

	buf_add(&w->buf, ev->line, ev->len);
	buf_addch(&w->buf, '\n');
	return w->buf.len > SPOOL_MEMORY ? flush(w, e) : 0;
}

/* A temporary file with all lines, at its start. */
static int
write_input(struct chain *c, const struct buf *prompts, struct spool *events, struct err *e)
{
	struct writer w = { .fd = chain_tmpfile(chain_opts(c)->tmpdir, e), .buf = BUF_INIT };
	struct spool_reader reader = { .event = write_event, .arg = &w };
	int rc = -1;

	if (w.fd < 0)
		return -1;
	buf_add(&w.buf, prompts->data, prompts->len);
	if (spool_play(events, &reader, e) == 0 && flush(&w, e) == 0)
		rc = lseek(w.fd, 0, SEEK_SET) == 0 ? 0 : err_sys(e, "cannot read a temporary file");
	buf_release(&w.buf);
	if (rc == 0)
		return w.fd;
	close(w.fd);
	return -1;
}

/* The shell's own words when it could not start the command; a command's own are for the user as they are. */
static int
ended(const struct policy_spec *spec, int status, struct buf *said, struct err *e)
{
	size_t len = said->len > 0 && said->data[said->len - 1] == '\n' ? said->len - 1 : said->len;

	if ((status == 126 || status == 127) && len > 0 && len < SAID_MAX)
		return err_set(e, ERR_UNAVAIL, "%s:%.200s: exited with status %d: %.*s", spec->policy->name, spec->command, status,
		    (int)len, said->data);
	(void)!io_write_all(2, said->data, said->len);
	if (status == 0)
		return 0;
	return err_set(e, ERR_UNAVAIL, "%s:%.200s: exited with status %d", spec->policy->name, spec->command, status);
}

int
command_run(struct chain *c, const struct policy_spec *spec, const struct buf *prompts, struct spool *events,
    struct buf *out, int output_fd, struct err *e)
{
	int fd = write_input(c, prompts, events, e), status;
	struct buf said = BUF_INIT;
	struct run r = { .shell = spec->command, .env = chain_opts(c)->env, .cwd = chain_opts(c)->cwd, .input_fd = fd,
		.output_fd = output_fd, .out = out, .last_error = &said };
	int rc;

	if (fd < 0)
		return -1;
	status = run(&r, e);
	close(fd);
	if (status < 0) {
		(void)!io_write_all(2, said.data, said.len);
		rc = err_wrap(e, "%s:%.200s", spec->policy->name, spec->command);
	} else {
		rc = ended(spec, status, &said, e);
	}
	buf_release(&said);
	return rc;
}

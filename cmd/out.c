#include "out.h"

#include "base/io.h"
#include "base/log.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK (64 * 1024)	/* what a pipe holds */

static struct buf out;
static char last = '\n';

int
out_try_flush(struct err *e)
{
	int rc;

	if (out.data == NULL || out.len == 0)
		return 0;
	rc = io_write_all(1, out.data, out.len);
	buf_reset(&out);
	return rc == 0 ? 0 : err_sys(e, "cannot write standard output");
}

/* errno says why writing failed. */
static noreturn void
out_failed(void)
{
	int saved = errno;

	if (saved == EPIPE) {
		signal(SIGPIPE, SIG_DFL);
		raise(SIGPIPE);
	}
	log_warn("cannot write standard output: %s", strerror(saved));
	_exit(74);
}

void
out_flush(void)
{
	if (out_try_flush(NULL) < 0)
		out_failed();
}

/*
 * Whole chunks go out and the rest stays: a few bytes more than a pipe holds would make every write wait for its reader
 * (measured: nearly twice the time for a filter).
 */
void
out_write(const void *data, size_t len)
{
	size_t whole;

	if (len > 0)
		last = ((const char *)data)[len - 1];
	if (out.data == NULL)
		out = (struct buf)BUF_INIT;
	if (len >= CHUNK) {
		out_flush();
		if (io_write_all(1, data, len) < 0)
			out_failed();
		return;
	}
	buf_add(&out, data, len);
	if (out.len >= CHUNK) {
		whole = out.len / CHUNK * CHUNK;
		if (io_write_all(1, out.data, whole) < 0)
			out_failed();
		buf_drop(&out, whole);
	}
}

bool
out_in_line(void)
{
	return last != '\n';
}

void
out_puts(const char *s)
{
	out_write(s, strlen(s));
}

void
out_printf(const char *fmt, ...)
{
	struct buf b = BUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	buf_vaddf(&b, fmt, ap);
	va_end(ap);
	out_write(b.data, b.len);
	buf_release(&b);
}

void
out_close(void)
{
	out_flush();
	buf_release(&out);
	if (close(1) < 0 && errno != EBADF && errno != EINTR) {
		log_warn("cannot write standard output: %s", strerror(errno));
		_exit(74);
	}
}

noreturn void
log_fail(const struct err *e)
{
	log_warn("%s", e->msg);
	exit(err_status(e->code));
}

noreturn void
log_die(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_vwarn(fmt, ap);
	va_end(ap);
	exit(status);
}

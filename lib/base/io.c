#include "base/io.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHUNK (256 * 1024)
#define OUT_CHUNK (64 * 1024)	/* what a pipe holds */

static struct buf out;

ssize_t
io_read(int fd, void *data, size_t len)
{
	ssize_t n;

	do
		n = read(fd, data, len);
	while (n < 0 && errno == EINTR);
	return n;
}

int
io_read_all(int fd, struct buf *b, const char *what, struct err *e)
{
	size_t room, limit;
	ssize_t n;
	char probe;

	for (;;) {
		room = CHUNK;
		limit = b->max ? b->max - b->len : CHUNK;
		if (room > limit)
			room = limit;
		if (room == 0) {
			n = io_read(fd, &probe, 1);
			if (n > 0)
				return err_set(e, ERR_DATA, "%s: larger than %zu bytes", what, b->max);
		} else {
			buf_reserve(b, room);
			n = io_read(fd, b->data + b->len, room);
		}
		if (n < 0)
			return err_sys(e, "cannot read %s", what);
		if (n == 0)
			return 0;
		b->len += (size_t)n;
		b->data[b->len] = '\0';
	}
}

int
io_read_file(const char *path, struct buf *b, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return err_sys(e, "cannot open '%s'", path);
	rc = io_read_all(fd, b, path, e);
	close(fd);
	return rc;
}

int
io_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;
	ssize_t n;

	while (len > 0) {
		n = write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

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

	if (out.data == NULL)
		out = (struct buf)BUF_INIT;
	if (len >= OUT_CHUNK) {
		out_flush();
		if (io_write_all(1, data, len) < 0)
			out_failed();
		return;
	}
	buf_add(&out, data, len);
	if (out.len >= OUT_CHUNK) {
		whole = out.len / OUT_CHUNK * OUT_CHUNK;
		if (io_write_all(1, out.data, whole) < 0)
			out_failed();
		buf_drop(&out, whole);
	}
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

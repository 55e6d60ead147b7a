#include "base/io.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define CHUNK (256 * 1024)

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
	char *quoted;

	if (fd < 0)
		return err_sys(e, "cannot open '%s'", path);
	quoted = xasprintf("'%s'", path);
	rc = io_read_all(fd, b, quoted, e);
	free(quoted);
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

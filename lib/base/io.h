/* Reading and writing descriptors whole, across EINTR and short counts. */
#ifndef AG2_IO_H
#define AG2_IO_H

#include "base/buf.h"
#include "base/err.h"

#include <sys/types.h>

/* One read of up to len bytes: the count, 0 at the end, -1 (errno set; EINTR retried). */
ssize_t io_read(int fd, void *data, size_t len);

/* Appends all that fd has to out. ERR_DATA when out's maximum is exceeded; `what` names the input in messages. */
int io_read_all(int fd, struct buf *out, const char *what, struct err *e);

/* Appends the whole file at path. */
int io_read_file(const char *path, struct buf *out, struct err *e);

/* Writes all. -1 with errno set. */
int io_write_all(int fd, const void *data, size_t len);

#endif

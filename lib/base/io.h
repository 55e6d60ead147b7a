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

/*
 * Buffered standard output for commands. out_flush is called when a line must be seen now; out_close at the end of
 * every command. A closed pipe ends the process quietly by SIGPIPE; any other failure ends it with status 74 and a line.
 */
void out_write(const void *data, size_t len);
void out_puts(const char *s);
void out_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void out_flush(void);
void out_close(void);
int out_try_flush(struct err *e);	/* as out_flush, but a failure is returned (EPIPE: ERR_IO with errno EPIPE) */

#endif

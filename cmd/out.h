/* Standard output, and the end: what a command does with what it has to say. */
#ifndef AG2_OUT_H
#define AG2_OUT_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdnoreturn.h>

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
bool out_in_line(void);			/* what was written last was no end of a line */

/* Says e's message on standard error and exits with e's status; or with the given one. */
noreturn void log_fail(const struct err *e);
noreturn void log_die(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif

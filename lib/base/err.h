/*
 * Errors: what went wrong, for a person, and what a caller can do about it.
 *
 * A function that can fail returns -1 (or NULL) and fills its last parameter, a struct err. On success the struct is
 * not touched. A NULL err is allowed where the caller does not want to know why.
 */
#ifndef AG2_ERR_H
#define AG2_ERR_H

#include <stdarg.h>

enum err_code {
	ERR_NONE,
	ERR_ABSENT,	/* the path is not in the store: the answer is no */
	ERR_CONFLICT,	/* not the version, or not the bytes, that were expected; read again */
	ERR_USAGE,	/* the caller asked for something that makes no sense */
	ERR_DATA,	/* input that cannot be accepted, wherever it came from */
	ERR_NOINPUT,	/* no such store, stream or input file */
	ERR_UNAVAIL,	/* a server, model or child refused or failed; a retry will not help now */
	ERR_BUG,
	ERR_CREATE,	/* cannot create, because something else is in the way */
	ERR_IO,		/* the device failed or is full */
	ERR_BUSY,	/* held by someone else, or told to come back: try again */
	ERR_PERM,
	ERR_CONFIG,
};

struct err {
	enum err_code code;
	char msg[1024];		/* lower case, no newline, no full stop; not yet scrubbed for a terminal */
};

#define ERR_INIT { .code = ERR_NONE, .msg = "" }

/* Sets code and message. Always returns -1, so that a function can end with `return err_set(...)`. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The same with ": strerror(errno)" behind the message and the code that errno maps to (EACCES is ERR_PERM,
 * ENOENT is ERR_NOINPUT, everything else is ERR_IO). */
int err_sys(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts "context: " before the message; the code stays. Returns -1. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The exit status for a code, as the manual pages list them (sysexits with 1 for "the answer is no"). */
int err_status(enum err_code code);

#endif

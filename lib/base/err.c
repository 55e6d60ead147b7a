#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int
err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	if (e == NULL)
		return -1;
	e->code = code;
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	return -1;
}

static enum err_code
code_of_errno(int n)
{
	switch (n) {
	case EACCES:
	case EPERM:
	case EROFS:
		return ERR_PERM;
	case ENOENT:
	case ENOTDIR:
		return ERR_NOINPUT;
	case EAGAIN:
	case EINTR:
		return ERR_BUSY;
	default:
		return ERR_IO;
	}
}

int
err_sys(struct err *e, const char *fmt, ...)
{
	int saved = errno;
	size_t len;
	va_list ap;

	if (e == NULL)
		return -1;
	e->code = code_of_errno(saved);
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	len = strlen(e->msg);
	snprintf(e->msg + len, sizeof(e->msg) - len, ": %s", strerror(saved));
	errno = saved;
	return -1;
}

int
err_wrap(struct err *e, const char *fmt, ...)
{
	char tail[sizeof(e->msg)];
	size_t len;
	va_list ap;

	if (e == NULL)
		return -1;
	memcpy(tail, e->msg, sizeof(tail));
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	len = strlen(e->msg);
	snprintf(e->msg + len, sizeof(e->msg) - len, ": %s", tail);
	return -1;
}

int
err_status(enum err_code code)
{
	static const unsigned char status[] = {
		[ERR_NONE] = 0,		[ERR_ABSENT] = 1,	[ERR_CONFLICT] = 1,
		[ERR_USAGE] = 64,	[ERR_DATA] = 65,	[ERR_NOINPUT] = 66,
		[ERR_UNAVAIL] = 69,	[ERR_BUG] = 70,		[ERR_CREATE] = 73,
		[ERR_IO] = 74,		[ERR_BUSY] = 75,	[ERR_PERM] = 77,
		[ERR_CONFIG] = 78,
	};

	return (size_t)code < sizeof(status) ? status[code] : 70;
}

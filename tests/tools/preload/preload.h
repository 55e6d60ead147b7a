/* What the shims for LD_PRELOAD have in common. */
#ifndef AG2_PRELOAD_H
#define AG2_PRELOAD_H

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>

/* Within a function that stands in the place of another: `real` is that one. */
#define REAL(name) \
	static __typeof__(name) *real; \
	if (real == NULL) \
		real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* One of the functions that open a file, in terms of open_any(at, path, flags, mode). */
#define OPEN(name, at, ...) \
	int name(__VA_ARGS__, int flags, ...) \
	{ \
		mode_t mode; \
		va_list ap; \
		va_start(ap, flags); \
		mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? (mode_t)va_arg(ap, int) : 0; \
		va_end(ap); \
		return open_any(at, path, flags, mode); \
	}
#define OPENS \
	OPEN(open, AT_FDCWD, const char *path) \
	OPEN(open64, AT_FDCWD, const char *path) \
	OPEN(openat, at, int at, const char *path) \
	OPEN(openat64, at, int at, const char *path)

#endif

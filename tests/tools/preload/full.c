/*
 * A shim for LD_PRELOAD: a disk that gets full. With FULL_DIR=DIR and FULL_AT=N the process's change number N that needs room
 * below DIR finds half of it, where it is a write, and none otherwise; those behind it find none. Each process counts its own.
 */
#include "preload.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *dir;
static long steps, full_at;

static void __attribute__((constructor))
begin(void)
{
	const char *n = getenv("FULL_AT");

	dir = getenv("FULL_DIR");
	full_at = n != NULL ? strtol(n, NULL, 10) : LONG_MAX;
}

static bool
is_below(const char *path)
{
	return dir != NULL && strncmp(path, dir, strlen(dir)) == 0;
}

static bool
fd_is_below(int fd)
{
	char link[40], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	return is_below(path);
}

static bool
path_is_below(int at, const char *path)
{
	return path[0] == '/' ? is_below(path) : at != AT_FDCWD && fd_is_below(at);
}

enum room { ALL, HALF, NONE };

static enum room
room(bool below)
{
	if (!below || ++steps < full_at)
		return ALL;
	if (steps == full_at)
		return HALF;
	errno = ENOSPC;
	return NONE;
}

static ssize_t
no_room(void)
{
	errno = ENOSPC;
	return -1;
}

/* ---- data ---- */

#define WRITE(fd, len, call_all, call_half) \
	switch (room(fd_is_below(fd))) { \
	case NONE: \
		return no_room(); \
	case HALF: \
		return (len) > 1 ? (call_half) : no_room(); \
	default: \
		return (call_all); \
	}

ssize_t
write(int fd, const void *data, size_t len)
{
	WRITE(fd, len, syscall(SYS_write, fd, data, len), syscall(SYS_write, fd, data, len / 2))
}

ssize_t
pwrite(int fd, const void *data, size_t len, off_t at)
{
	WRITE(fd, len, syscall(SYS_pwrite64, fd, data, len, at), syscall(SYS_pwrite64, fd, data, len / 2, at))
}

ssize_t
pwrite64(int fd, const void *data, size_t len, off_t at)
{
	return pwrite(fd, data, len, at);
}

ssize_t
writev(int fd, const struct iovec *v, int n)
{
	WRITE(fd, v[0].iov_len, syscall(SYS_writev, fd, v, (long)n), syscall(SYS_write, fd, v[0].iov_base, v[0].iov_len / 2))
}

ssize_t
copy_file_range(int from, off_t *from_at, int to, off_t *to_at, size_t len, unsigned flags)
{
	WRITE(to, len, syscall(SYS_copy_file_range, from, from_at, to, to_at, len, flags),
	    syscall(SYS_copy_file_range, from, from_at, to, to_at, len / 2, flags))
}

int
ftruncate(int fd, off_t len)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && len > st.st_size && room(fd_is_below(fd)) != ALL)
		return (int)no_room();
	return (int)syscall(SYS_ftruncate, fd, len);
}

int
ftruncate64(int fd, off_t len)
{
	return ftruncate(fd, len);
}

/* ---- names ---- */

static int
open_any(int at, const char *path, int flags, mode_t mode)
{
	if ((flags & O_CREAT) != 0 && path_is_below(at, path) && syscall(SYS_faccessat, at, path, F_OK) < 0 && room(true) != ALL)
		return (int)no_room();
	return (int)syscall(SYS_openat, at, path, flags, mode);
}

OPENS

int
mkdirat(int at, const char *path, mode_t mode)
{
	REAL(mkdirat);

	return room(path_is_below(at, path)) == ALL ? real(at, path, mode) : (int)no_room();
}

int
mkdir(const char *path, mode_t mode)
{
	return mkdirat(AT_FDCWD, path, mode);
}

int
linkat(int from, const char *old, int to, const char *new, int flags)
{
	REAL(linkat);

	return room(path_is_below(to, new)) == ALL ? real(from, old, to, new, flags) : (int)no_room();
}

/*
 * A shim for LD_PRELOAD that stands between a program and its files.
 *
 * With POWER_LOG=FILE everything that the process changes in files and directories, and every fsync, is appended to FILE
 * (see power.h) in the order in which it happens, across processes too: each step and its record are one under a lock. With
 * POWER_KILL=N the process is killed before its step number N.
 *
 * With POWER_STATFS=TYPE every file system says that it is of this type, a number.
 */
#include "power.h"
#include "preload.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int log_fd = -1;
static long steps, kill_at;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static long
sys_write(int fd, const void *data, size_t len)
{
	return syscall(SYS_write, fd, data, len);
}

static void __attribute__((constructor))
begin(void)
{
	const char *path = getenv("POWER_LOG"), *n = getenv("POWER_KILL");
	long fd;

	if (path == NULL)
		return;
	kill_at = n != NULL ? strtol(n, NULL, 10) : 0;
	fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0) {
		log_fd = (int)syscall(SYS_fcntl, (int)fd, F_DUPFD_CLOEXEC, 700);
		syscall(SYS_close, (int)fd);
	}
}

/* A record lock belongs to the process, not to the descriptor, which children inherit. */
static void
lock_log(short type)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET };

	while (syscall(SYS_fcntl, log_fd, F_SETLKW, &l) < 0 && errno == EINTR)
		;
}

static bool
enter(void)
{
	if (log_fd < 0)
		return false;
	pthread_mutex_lock(&mutex);
	lock_log(F_WRLCK);
	if (++steps == kill_at)
		kill(getpid(), SIGKILL);
	return true;
}

static void
leave(bool entered)
{
	int saved = errno;

	if (entered) {
		lock_log(F_UNLCK);
		pthread_mutex_unlock(&mutex);
	}
	errno = saved;
}

static void
put(struct power_record r, const void *data, size_t len)
{
	int saved = errno;
	struct iovec v[2] = { { &r, sizeof(r) }, { (void *)data, len } };

	r.len = (uint32_t)len;
	if (syscall(SYS_writev, log_fd, v, 2L) != (long)(sizeof(r) + len)) {
		sys_write(2, "power.so: the record cannot be written\n", 39);
		_exit(99);
	}
	errno = saved;
}

static int64_t
time_of(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* ---- Files ---- */

static void
change(enum power_kind kind, int fd, uint64_t at, const void *data, size_t len)
{
	int saved = errno;
	struct stat st;

	if (fd == 1 && kind == POWER_WRITE)
		put((struct power_record){ .kind = POWER_MARK }, data, len);
	else if (fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
		put((struct power_record){ .kind = kind, .ino = st.st_ino, .at = at, .time = time_of(&st) }, data, len);
	errno = saved;
}

static void
wrote(int fd, const struct iovec *v, int n, ssize_t done, off_t at)
{
	size_t left = done > 0 ? (size_t)done : 0, len;

	if (at < 0)
		at = syscall(SYS_lseek, fd, 0L, SEEK_CUR) - done;
	for (; n > 0 && left > 0; n--, v++) {
		len = v->iov_len < left ? v->iov_len : left;
		change(POWER_WRITE, fd, (uint64_t)at, v->iov_base, len);
		at += (off_t)len;
		left -= len;
	}
}

ssize_t
write(int fd, const void *data, size_t len)
{
	REAL(write);
	struct stat st;
	bool in = fd != log_fd && (fd == 1 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))) && enter();
	ssize_t n = real(fd, data, len);

	if (in)
		wrote(fd, &(struct iovec){ (void *)data, len }, 1, n, -1);
	leave(in);
	return n;
}

ssize_t
writev(int fd, const struct iovec *v, int count)
{
	REAL(writev);
	struct stat st;
	bool in = (fd == 1 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))) && enter();
	ssize_t n = real(fd, v, count);

	if (in)
		wrote(fd, v, count, n, -1);
	leave(in);
	return n;
}

ssize_t
pwrite(int fd, const void *data, size_t len, off_t at)
{
	REAL(pwrite);
	bool in = enter();
	ssize_t n = real(fd, data, len, at);

	if (in)
		wrote(fd, &(struct iovec){ (void *)data, len }, 1, n, at);
	leave(in);
	return n;
}

ssize_t
pwrite64(int fd, const void *data, size_t len, off_t at)
{
	return pwrite(fd, data, len, at);
}

ssize_t
pwritev(int fd, const struct iovec *v, int count, off_t at)
{
	REAL(pwritev);
	bool in = enter();
	ssize_t n = real(fd, v, count, at);

	if (in)
		wrote(fd, v, count, n, at);
	leave(in);
	return n;
}

/* What it copied is read again: the record has the bytes. */
ssize_t
copy_file_range(int from, off_t *from_at, int to, off_t *to_at, size_t len, unsigned flags)
{
	REAL(copy_file_range);
	char path[40], *data;
	bool in = enter();
	off_t at = to_at != NULL ? *to_at : syscall(SYS_lseek, to, 0L, SEEK_CUR);
	ssize_t n = real(from, from_at, to, to_at, len, flags);
	int fd;

	if (in && n > 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", to);
		fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
		data = malloc((size_t)n);
		if (fd < 0 || data == NULL || pread(fd, data, (size_t)n, at) != n)
			abort();
		change(POWER_WRITE, to, (uint64_t)at, data, (size_t)n);
		free(data);
		syscall(SYS_close, fd);
	}
	leave(in);
	return n;
}

int
ftruncate(int fd, off_t len)
{
	REAL(ftruncate);
	bool in = enter();
	int rc = real(fd, len);

	if (in && rc == 0)
		change(POWER_TRUNCATE, fd, (uint64_t)len, NULL, 0);
	leave(in);
	return rc;
}

int
ftruncate64(int fd, off_t len)
{
	return ftruncate(fd, len);
}

int
futimens(int fd, const struct timespec t[2])
{
	REAL(futimens);
	bool in = enter();
	int rc = real(fd, t);

	if (in && rc == 0)
		change(POWER_TIME, fd, 0, NULL, 0);
	leave(in);
	return rc;
}

int
fsync(int fd)
{
	REAL(fsync);
	bool in = enter();
	int rc = in ? 0 : real(fd);	/* that it took effect is assumed, so that a run is not as slow as the disk */

	if (in)
		change(POWER_SYNC, fd, 0, NULL, 0);
	leave(in);
	return rc;
}

int
fdatasync(int fd)
{
	REAL(fdatasync);
	bool in = enter();
	int rc = in ? 0 : real(fd);

	if (in)
		change(POWER_DATASYNC, fd, 0, NULL, 0);
	leave(in);
	return rc;
}

int
syncfs(int fd)
{
	REAL(syncfs);
	bool in = enter();
	int rc = in ? 0 : real(fd);

	if (in)
		put((struct power_record){ .kind = POWER_SYNC_ALL }, NULL, 0);
	leave(in);
	return rc;
}

/* ---- Names ---- */

/* The directory that the last component of path is in, 0 when it cannot be had; name is that component. */
static uint64_t
directory(int at, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char dir[4200];
	struct stat st;
	int rc, saved = errno;

	*name = slash != NULL ? slash + 1 : path;
	if (slash == NULL)
		rc = at == AT_FDCWD ? stat(".", &st) : fstat(at, &st);
	else {
		snprintf(dir, sizeof(dir), "%.*s", slash == path ? 1 : (int)(slash - path), path);
		rc = fstatat(at, dir, &st, 0);
	}
	errno = saved;
	return rc == 0 ? st.st_ino : 0;
}

static bool
is_there(int at, const char *path, struct stat *st)
{
	int saved = errno;
	bool there = fstatat(at, path, st, AT_SYMLINK_NOFOLLOW) == 0;

	errno = saved;
	return there;
}

static void
named(enum power_kind kind, int at, const char *path, uint64_t ino)
{
	const char *name;
	uint64_t dir = directory(at, path, &name);

	put((struct power_record){ .kind = kind, .ino = ino, .dir = dir }, name, strlen(name) + 1);
}

static int
open_any(int at, const char *path, int flags, mode_t mode)
{
	bool makes = (flags & O_CREAT) != 0 && (flags & O_TMPFILE) != O_TMPFILE, in, there = true;
	struct stat st;
	int fd;

	if (log_fd < 0 || (!makes && (flags & O_TRUNC) == 0))
		return (int)syscall(SYS_openat, at, path, flags, mode);
	in = enter();
	if (makes)
		there = is_there(at, path, &st);
	fd = (int)syscall(SYS_openat, at, path, flags, mode);
	if (fd >= 0 && !there && fstat(fd, &st) == 0)
		named(POWER_CREATE, at, path, st.st_ino);
	if (fd >= 0 && there && (flags & O_TRUNC) != 0)
		change(POWER_TRUNCATE, fd, 0, NULL, 0);
	leave(in);
	return fd;
}

OPENS

int
mkdirat(int at, const char *path, mode_t mode)
{
	REAL(mkdirat);
	struct stat st;
	bool in = !is_there(at, path, &st) && enter();	/* else it is no step: their number must not follow from where the test is */
	int rc = real(at, path, mode);

	if (in && rc == 0 && is_there(at, path, &st))
		named(POWER_MKDIR, at, path, st.st_ino);
	leave(in);
	return rc;
}

int
mkdir(const char *path, mode_t mode)
{
	return mkdirat(AT_FDCWD, path, mode);
}

int
unlinkat(int at, const char *path, int flags)
{
	REAL(unlinkat);
	bool in = enter();
	int rc = real(at, path, flags);

	if (in && rc == 0)
		named(POWER_UNLINK, at, path, 0);
	leave(in);
	return rc;
}

int
unlink(const char *path)
{
	return unlinkat(AT_FDCWD, path, 0);
}

int
rmdir(const char *path)
{
	return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int
renameat(int from, const char *old, int to, const char *new)
{
	REAL(renameat);
	char both[2 * 256];
	const char *a, *b;
	bool in = enter();
	int rc = real(from, old, to, new);
	struct power_record r = { .kind = POWER_RENAME };

	if (in && rc == 0) {
		r.dir = directory(from, old, &a);
		r.dir2 = directory(to, new, &b);
		memcpy(both, a, strlen(a) + 1);
		memcpy(both + strlen(a) + 1, b, strlen(b) + 1);
		put(r, both, strlen(a) + strlen(b) + 2);
	}
	leave(in);
	return rc;
}

int
rename(const char *old, const char *new)
{
	return renameat(AT_FDCWD, old, AT_FDCWD, new);
}

int
linkat(int from, const char *old, int to, const char *new, int flags)
{
	REAL(linkat);
	struct stat st;
	bool in = enter();
	int rc = real(from, old, to, new, flags);

	if (in && rc == 0 && is_there(to, new, &st))
		named(POWER_LINK, to, new, st.st_ino);
	leave(in);
	return rc;
}

int
link(const char *old, const char *new)
{
	return linkat(AT_FDCWD, old, AT_FDCWD, new, 0);
}

/* ---- What is said of the system ---- */

int
statfs(const char *path, struct statfs *fs)
{
	const char *type = getenv("POWER_STATFS");
	long rc = syscall(SYS_statfs, path, fs);

	if (rc == 0 && type != NULL)
		fs->f_type = strtol(type, NULL, 0);
	return (int)rc;
}

int
statfs64(const char *path, struct statfs64 *fs)
{
	return statfs(path, (struct statfs *)fs);
}

#include "lock.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/sha1.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define POLL_MIN_MS 5
#define POLL_MAX_MS 100

struct rangelock {
	int fd;
};

static off_t
offset_of(const char *name)
{
	unsigned char sum[20];
	struct sha1 h;
	uint64_t n = 0;
	int i;

	sha1_init(&h);
	sha1_add(&h, name, strlen(name));
	sha1_end(&h, sum);
	for (i = 0; i < 8; i++)
		n = n << 8 | sum[i];
	return (off_t)(n >> 2);
}

/* 0 when the lock was taken, 1 when another holds it, -1 with errno set. */
static int
take(int fd, off_t at)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };
	int rc;

	do
		rc = fcntl(fd, F_OFD_SETLK, &l);
	while (rc < 0 && errno == EINTR);
	if (rc == 0)
		return 0;
	return errno == EAGAIN || errno == EACCES ? 1 : -1;
}

static void
nap(int64_t ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* A lock on a file that was removed meanwhile excludes nobody. */
static bool
removed(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_nlink == 0;
}

/* What cannot be given away stays ours: the lock holds all the same. */
static int
make_file(int dirfd, const char *file, const struct stat *like)
{
	int fd = openat(dirfd, file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);

	if (fd < 0 || like == NULL)
		return fd;
	if (fchown(fd, geteuid() == 0 ? like->st_uid : (uid_t)-1, like->st_gid) < 0 && errno != EPERM)
		goto fail;
	if (fchmod(fd, like->st_mode & 0666) < 0)
		goto fail;
	return fd;
fail:
	close(fd);
	return -1;
}

static int
open_file(int dirfd, const char *file, const struct stat *like, struct err *e)
{
	int fd;

	do {
		fd = openat(dirfd, file, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
		if (fd < 0 && errno == ENOENT)
			fd = make_file(dirfd, file, like);
	} while (fd < 0 && errno == EEXIST);	/* somebody else was first */
	return fd >= 0 ? fd : err_sys(e, "cannot open the lock file '%s'", file);
}

int
rangelock_new(struct rangelock **out, int dirfd, const char *file, const struct stat *like, const char *name, int64_t wait_ms, struct err *e)
{
	double until = clock_monotonic() + (double)wait_ms / 1000;
	int64_t left, pause = POLL_MIN_MS;
	off_t at = offset_of(name);
	int fd, rc;

	if ((fd = open_file(dirfd, file, like, e)) < 0)
		return -1;
	for (;;) {
		rc = take(fd, at);
		if (rc == 0 && !removed(fd))
			break;
		if (rc < 0) {
			err_sys(e, "cannot lock '%s'", name);
			close(fd);
			return -1;
		}
		if (rc == 0) {
			close(fd);
			if ((fd = open_file(dirfd, file, like, e)) < 0)
				return -1;
			continue;
		}
		left = wait_ms < 0 ? pause : (int64_t)((until - clock_monotonic()) * 1000);
		if (left <= 0) {
			close(fd);
			return err_set(e, ERR_BUSY, "'%s' is locked by another process", name);
		}
		nap(left < pause ? left : pause);
		if (pause < POLL_MAX_MS)
			pause = pause * 2 < POLL_MAX_MS ? pause * 2 : POLL_MAX_MS;
	}
	*out = xmalloc(sizeof(**out));
	(*out)->fd = fd;
	return 0;
}

void
rangelock_free(struct rangelock *l)
{
	if (l == NULL)
		return;
	close(l->fd);
	free(l);
}

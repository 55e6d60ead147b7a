#include "store/beneath.h"

#include "base/alloc.h"
#include "base/buf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALWAYS (O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
#define AGAIN 100	/* a rename during the lookup makes openat2 ask for a repetition */

static bool no_openat2;

static int
open_with_openat2(int root, const char *rel, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (unsigned)flags,
		.mode = flags & O_CREAT ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	long fd;
	int i;

	for (i = 0; i < AGAIN; i++) {
		fd = syscall(SYS_openat2, root, rel, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return (int)fd;
}

/* Component by component, each without following a link: it cannot lead anywhere else. */
static int
open_by_steps(int root, const char *rel, int flags, mode_t mode)
{
	int at = root, fd, saved;
	const char *slash;
	char name[256];

	for (;;) {
		slash = strchr(rel, '/');
		if (slash == NULL)
			fd = openat(at, rel, flags | O_NOFOLLOW, mode);
		else if ((size_t)(slash - rel) >= sizeof(name)) {
			fd = -1;
			errno = ENAMETOOLONG;
		} else {
			memcpy(name, rel, (size_t)(slash - rel));
			name[slash - rel] = '\0';
			fd = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		}
		saved = errno;
		if (at != root)
			close(at);
		errno = saved;
		if (fd < 0 || slash == NULL)
			return fd;
		at = fd;
		rel = slash + 1;
	}
}

int
beneath_open(int root, const char *path, int flags, mode_t mode)
{
	const char *rel = path[1] == '\0' ? "." : path + 1;
	int fd;

	/* openat2 refuses flags that mean nothing with O_PATH, which openat overlooks. */
	flags |= flags & O_PATH ? O_CLOEXEC : ALWAYS;
	if (!no_openat2) {
		fd = open_with_openat2(root, rel, flags, mode);
		if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
			return fd;
		no_openat2 = errno == ENOSYS;
	}
	return open_by_steps(root, rel, flags, mode);
}

int
beneath_stat(int root, const char *path, struct stat *st)
{
	int fd = beneath_open(root, path, O_PATH, 0), rc;

	if (fd < 0)
		return -1;
	rc = fstat(fd, st);
	/* Without openat2 a link itself is what O_PATH | O_NOFOLLOW opens. */
	if (rc == 0 && S_ISLNK(st->st_mode)) {
		errno = ELOOP;
		rc = -1;
	}
	close(fd);
	return rc;
}

bool
beneath_absent(int error)
{
	return error == ENOENT || error == ENOTDIR || error == ELOOP || error == EXDEV || error == ENAMETOOLONG;
}

/* Directories still to be read: their paths, so that one descriptor is open however deep the tree is. */
struct todo {
	char **path;
	size_t n, cap;
};

static void
todo_push(struct todo *t, const char *path)
{
	t->path = xgrow(t->path, t->n, &t->cap, sizeof(*t->path));
	t->path[t->n++] = xstrdup(path);
}

static unsigned char
type_of(int dirfd, const struct dirent *d)
{
	struct stat st;

	if (d->d_type != DT_UNKNOWN || fstatat(dirfd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return d->d_type;
	return IFTODT(st.st_mode);
}

static int
walk_one(int root, const char *path, const char *except, struct todo *todo, beneath_fn *fn, void *arg)
{
	int fd = beneath_open(root, path, O_RDONLY | O_DIRECTORY, 0), rc = 0;
	struct buf child = BUF_INIT;
	struct dirent *d;
	unsigned char type;
	DIR *dir;

	if (fd < 0)
		return errno == EACCES ? fn(arg, path, DT_DIR) : 0;
	if ((dir = fdopendir(fd)) == NULL) {
		close(fd);
		return 0;
	}
	while (rc == 0 && (d = readdir(dir)) != NULL) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		buf_reset(&child);
		buf_addf(&child, "%s/%s", path[1] == '\0' ? "" : path, d->d_name);
		if (except != NULL && strcmp(child.data, except) == 0)
			continue;
		type = type_of(fd, d);
		if (type == DT_DIR)
			todo_push(todo, child.data);
		else
			rc = fn(arg, child.data, type);
	}
	closedir(dir);
	buf_release(&child);
	return rc;
}

int
beneath_walk(int root, const char *path, const char *except, beneath_fn *fn, void *arg)
{
	struct todo todo = { 0 };
	char *next;
	int rc = 0;

	todo_push(&todo, path);
	while (rc == 0 && todo.n > 0) {
		next = todo.path[--todo.n];
		rc = walk_one(root, next, except, &todo, fn, arg);
		free(next);
	}
	while (todo.n > 0)
		free(todo.path[--todo.n]);
	free(todo.path);
	return rc;
}

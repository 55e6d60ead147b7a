/*
 * Watching a directory of plain files with inotify. Directories are watched, not files: a file that is renamed over
 * another is another file. Each event is only a hint at a path; what lies there now is looked at above. A file that is just
 * being written is left alone until it is closed, or for a moment when it stays open.
 */
#include "store/disk.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/io.h"
#include "path.h"
#include "store/beneath.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>

#define EVENTS	(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY | IN_CLOSE_WRITE | IN_ONLYDIR)
#define WRITING	0.025		/* seconds for a file that stays open after it was written to */
#define LOOK_MS	1000		/* whether the store is there still */

struct watched {
	int wd;			/* -1: no longer */
	char *dir;
};

struct written {
	char *path;
	double when;		/* to hint at it */
};

struct disk_watch {
	struct disk *d;
	int root;		/* of our own: another may be opened in its place */
	int fd;
	char *path;
	struct watched *dirs;
	size_t n, cap;
	struct written *open;	/* files that were written to and not closed yet */
	size_t nopen, open_cap;
	bool gone;
};

static struct watched *
watched_by(struct disk_watch *w, int wd)
{
	size_t i;

	for (i = w->n; i > 0; i--)
		if (w->dirs[i - 1].wd == wd)
			return &w->dirs[i - 1];
	return NULL;
}

static void
drop(struct disk_watch *w, struct watched *d)
{
	free(d->dir);
	*d = w->dirs[--w->n];
}

/* 1 when it is watched, 0 when there is no such directory. */
static int
add_dir(struct disk_watch *w, const char *dir, struct err *e)
{
	int at = strcmp(dir, "/") == 0 ? fcntl(w->root, F_DUPFD_CLOEXEC, 0) : beneath_open(w->root, dir, O_PATH | O_DIRECTORY, 0), wd;
	char self[64];
	struct watched *old;

	if (at < 0)
		return beneath_absent(errno) || errno == EACCES ? 0 : err_sys(e, "cannot watch '%s'", dir);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", at);
	wd = inotify_add_watch(w->fd, self, EVENTS);
	close(at);
	if (wd < 0 && errno == ENOSPC)
		return err_set(e, ERR_IO, "cannot watch '%s': there may be no more watches (fs.inotify.max_user_watches)", dir);
	if (wd < 0)
		return errno == EACCES || errno == ENOENT || errno == ENOTDIR ? 0 : err_sys(e, "cannot watch '%s'", dir);
	if ((old = watched_by(w, wd)) != NULL)
		drop(w, old);	/* it was known by another name */
	w->dirs = xgrow(w->dirs, w->n, &w->cap, sizeof(*w->dirs));
	w->dirs[w->n++] = (struct watched){ .wd = wd, .dir = xstrdup(dir) };
	return 1;
}

/* Only what leads to what is watched, and what is below it. Nothing of ours, unless it is asked for. */
static bool
wanted(const struct disk_watch *w, const char *path)
{
	if (path_private(path) && !path_private(w->path))
		return false;
	return path_within(path, w->path) || path_within(w->path, path);
}

static bool
is_dir(struct disk_watch *w, const char *path, unsigned char type)
{
	struct stat st;

	if (type == DT_DIR)
		return true;
	return (type == DT_UNKNOWN || type == DT_LNK) && beneath_stat(w->root, path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool
is_watched(const struct disk_watch *w, const char *dir)
{
	size_t i;

	for (i = 0; i < w->n; i++)
		if (strcmp(w->dirs[i].dir, dir) == 0)
			return true;
	return false;
}

/* The directory and all in it. A watch comes before the look, so that what is made meanwhile is seen by one of them. */
static int
add_tree(struct disk_watch *w, const char *top, struct err *e)
{
	char **todo = NULL, *dir, *path;
	size_t n = 0, cap = 0;
	struct dirent *entry;
	int rc = 0, fd;
	DIR *stream;

	todo = xgrow(todo, n, &cap, sizeof(*todo));
	todo[n++] = xstrdup(top);
	while (n > 0) {
		dir = todo[--n];
		if (rc >= 0)
			rc = add_dir(w, dir, e);
		fd = rc > 0 ? beneath_open(w->root, dir, O_RDONLY | O_DIRECTORY, 0) : -1;
		stream = fd >= 0 ? fdopendir(fd) : NULL;
		if (stream == NULL && fd >= 0)
			close(fd);
		while (stream != NULL && (entry = readdir(stream)) != NULL) {
			if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
				continue;
			path = xasprintf("%s/%s", strcmp(dir, "/") == 0 ? "" : dir, entry->d_name);
			/* A link may lead back to where it is: what is watched by a name is not gone into again. */
			if (strlen(path) <= PATH_BYTES_MAX && wanted(w, path) && is_dir(w, path, entry->d_type) &&
			    !(entry->d_type == DT_LNK && is_watched(w, path))) {
				todo = xgrow(todo, n, &cap, sizeof(*todo));
				todo[n++] = path;
			} else {
				free(path);
			}
		}
		if (stream != NULL)
			closedir(stream);
		free(dir);
	}
	free(todo);
	return rc < 0 ? -1 : 0;
}

/* A directory that was moved away is watched still, by a name that is no longer its own. */
static void
forget_tree(struct disk_watch *w, const char *path)
{
	size_t i;

	for (i = w->n; i > 0; i--)
		if (path_within(w->dirs[i - 1].dir, path)) {
			inotify_rm_watch(w->fd, w->dirs[i - 1].wd);
			drop(w, &w->dirs[i - 1]);
		}
}

/* ---- Files that are being written ---- */

static void
is_written(struct disk_watch *w, const char *path)
{
	size_t i;

	for (i = 0; i < w->nopen; i++)
		if (strcmp(w->open[i].path, path) == 0)
			return;
	w->open = xgrow(w->open, w->nopen, &w->open_cap, sizeof(*w->open));
	w->open[w->nopen++] = (struct written){ .path = xstrdup(path), .when = clock_monotonic() + WRITING };
}

static void
is_closed(struct disk_watch *w, const char *path)
{
	size_t i;

	for (i = w->nopen; i > 0; i--)
		if (strcmp(w->open[i - 1].path, path) == 0) {
			free(w->open[i - 1].path);
			w->open[i - 1] = w->open[--w->nopen];
		}
}

/* Hints at those whose time has come; *next is when the next is due. */
static bool
hint_written(struct disk_watch *w, store_hint_fn *fn, void *arg, double *next)
{
	double now = clock_monotonic();
	bool any = false;
	size_t i;

	for (i = w->nopen; i > 0; i--) {
		struct written *f = &w->open[i - 1];

		if (f->when > now) {
			*next = f->when < *next ? f->when : *next;
			continue;
		}
		fn(arg, f->path, 0);
		any = true;
		free(f->path);
		*f = w->open[--w->nopen];
	}
	return any;
}

/* ---- Events ---- */

static int
take_event(struct disk_watch *w, const struct inotify_event *ev, store_hint_fn *fn, void *arg, struct err *e)
{
	struct watched *in = watched_by(w, ev->wd);
	char *path;
	int rc = 0;

	if (ev->mask & IN_Q_OVERFLOW) {
		fn(arg, w->path, 0);
		return add_tree(w, "/", e);
	}
	if (in == NULL || ev->len == 0) {
		if (in != NULL && ev->mask & IN_IGNORED)
			drop(w, in);
		return 0;
	}
	path = xasprintf("%s/%s", strcmp(in->dir, "/") == 0 ? "" : in->dir, ev->name);
	if (!wanted(w, path)) {
		free(path);
		return 0;
	}
	if (ev->mask & (IN_MOVED_FROM | IN_DELETE))
		forget_tree(w, path);
	if (ev->mask & (IN_CREATE | IN_MOVED_TO))
		rc = is_dir(w, path, ev->mask & IN_ISDIR ? DT_DIR : DT_UNKNOWN) ? add_tree(w, path, e) : 0;
	if (!(ev->mask & IN_ISDIR) && ev->mask & (IN_MODIFY | IN_CREATE)) {
		is_written(w, path);
	} else {
		is_closed(w, path);
		fn(arg, path, 0);
	}
	free(path);
	return rc;
}

/* All events that are there. How many, or -1. */
static int
take_events(struct disk_watch *w, store_hint_fn *fn, void *arg, struct err *e)
{
	char events[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
	const struct inotify_event *ev;
	ssize_t n = io_read(w->fd, events, sizeof(events)), at;
	int count = 0;

	if (n < 0)
		return errno == EAGAIN ? 0 : err_sys(e, "cannot watch '%s'", w->d->where);
	for (at = 0; at + (ssize_t)sizeof(*ev) <= n; at += (ssize_t)(sizeof(*ev) + ev->len)) {
		ev = (const struct inotify_event *)(events + at);
		if (take_event(w, ev, fn, arg, e) < 0)
			return -1;
		count++;
	}
	return count;
}

/* Removed, or moved: what is watched is then no longer what others find at its name. */
static bool
root_gone(const struct disk_watch *w)
{
	struct stat ours, there;

	return fstat(w->root, &ours) < 0 || ours.st_nlink == 0 || stat(w->d->where, &there) < 0 ||
	    ours.st_ino != there.st_ino || ours.st_dev != there.st_dev;
}

/* ---- The table's functions ---- */

int
disk_watch(void *self, const char *path, void **watch, struct err *e)
{
	struct disk_watch *w = xcalloc(1, sizeof(*w));
	int rc;

	w->d = self;
	w->path = xstrdup(path);
	w->fd = -1;
	w->root = open(w->d->where, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (w->root < 0)
		rc = err_sys(e, "cannot open the store '%s'", w->d->where);
	else if ((w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) < 0)
		rc = err_sys(e, "cannot watch '%s'", w->d->where);
	else
		rc = add_tree(w, "/", e);
	if (rc < 0)
		disk_watch_close(w);
	else
		*watch = w;
	return rc;
}

int
disk_watch_wait(void *watch, int64_t wait_ms, store_hint_fn *fn, void *arg, struct err *e)
{
	struct disk_watch *w = watch;
	struct pollfd p = { .fd = w->fd, .events = POLLIN };
	double until = clock_monotonic() + (double)wait_ms / 1e3, next, left;
	bool any;
	int n;

	for (;;) {
		if (w->gone)
			return err_set(e, ERR_NOINPUT, "the store '%s' was removed, or moved", w->d->where);
		n = take_events(w, fn, arg, e);
		if (n < 0)
			return -1;
		next = until;
		any = hint_written(w, fn, arg, &next);
		if (root_gone(w)) {
			w->gone = true;
			fn(arg, "/", 0);
			return 1;
		}
		if (n > 0 || any)
			return 1;
		left = (next - clock_monotonic()) * 1000;
		if (left <= 0 && next == until)
			return 0;
		poll(&p, 1, left <= 0 ? 0 : left < LOOK_MS ? (int)left + 1 : LOOK_MS);
	}
}

void
disk_watch_close(void *watch)
{
	struct disk_watch *w = watch;

	if (w->fd >= 0)
		close(w->fd);
	if (w->root >= 0)
		close(w->root);
	while (w->n > 0)
		free(w->dirs[--w->n].dir);
	while (w->nopen > 0)
		free(w->open[--w->nopen].path);
	free(w->dirs);
	free(w->open);
	free(w->path);
	free(w);
}

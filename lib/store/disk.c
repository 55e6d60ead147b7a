/*
 * disk: plain files below a directory, the tree of AG2's disk store. What we add is below /.ag2: lock (see journal.h),
 * locks (for store_lock), tmp/ (files that are being written, things that are being deleted).
 *
 * A file's version is its modification time in nanoseconds, which every change of ours sets: greater than before, and
 * greater than any that was given out. A file that is written whole is made in tmp and renamed, so that a reader keeps
 * the one it has open; one that is appended to grows in place. AG2 itself appends with O_APPEND and writes in place,
 * both without a lock: the offset of an append is therefore where it really went, and a redone append looks first.
 */
#include "store/backend.h"

#include "base/alloc.h"
#include "base/io.h"
#include "base/log.h"
#include "base/sha1.h"
#include "lock.h"
#include "path.h"
#include "store/beneath.h"
#include "store/journal.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CHUNK (256 * 1024)
#define PRIVATE ".ag2"
#define REDO_MAX (1024u * 1024 * 1024)	/* of a file that an append is redone in */
#define UNLOCKED_VIEWS 8		/* looks at something that keeps changing before the lock is taken for it */

struct disk {
	char *where;
	int root;		/* O_PATH; -1 while it is not there */
	int private, tmp;	/* of /.ag2 and /.ag2/tmp; -1 while not needed */
	struct store_options o;
	struct journal journal;
	struct stat like;	/* the root's, which new files and directories take after */
	unsigned gone;		/* names in tmp given to deleted things */
};

static int recover(struct disk *d, struct err *e);

/* Opening and closing. */

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Someone may have cleaned up since it was opened: what is made in a removed directory is lost. */
static bool
removed(int fd)
{
	struct stat st;

	return fd >= 0 && (fstat(fd, &st) < 0 || st.st_nlink == 0);
}

static void
close_all(struct disk *d)
{
	journal_close(&d->journal);
	close_fd(&d->tmp);
	close_fd(&d->private);
	close_fd(&d->root);
}

/* 1 when the root is open, 0 when it is not there. */
static int
root_open(struct disk *d, struct err *e)
{
	if (d->root >= 0 && !removed(d->root))
		return 1;
	close_all(d);	/* or else it was removed, and another may be there by now */
	d->root = open(d->where, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (d->root < 0 && errno == ENOENT)
		return 0;
	if (d->root < 0 && errno == ENOTDIR)
		return err_set(e, d->o.mode == STORE_CREATE ? ERR_CREATE : ERR_NOINPUT, "'%s' is not a directory", d->where);
	if (d->root < 0)
		return err_sys(e, "cannot open the store '%s'", d->where);
	if (fstat(d->root, &d->like) < 0)
		return err_sys(e, "cannot open the store '%s'", d->where);
	return 1;
}

static void
disk_close(void *self)
{
	struct disk *d = self;

	close_all(d);
	free(d->where);
	free(d);
}

static int
disk_open(void **self, const char *where, const struct store_options *o, struct err *e)
{
	struct disk *d;
	int rc;

	if (where[0] == '\0')
		return err_set(e, ERR_USAGE, "disk: needs the path of a directory");
	d = xcalloc(1, sizeof(*d));
	d->where = xstrdup(where);
	d->root = d->private = d->tmp = -1;
	d->o = *o;
	d->journal = (struct journal)JOURNAL_INIT;
	rc = root_open(d, e);
	if (rc == 0 && o->mode != STORE_CREATE)
		rc = err_set(e, ERR_NOINPUT, "there is no store at '%s'", where);
	if (rc < 0) {
		disk_close(d);
		return -1;
	}
	*self = d;
	return 0;
}

static bool
full(const struct disk *d)
{
	return d->o.sync == STORE_SYNC_FULL;
}

static int
sync_dir(struct disk *d, int fd)
{
	int again, rc;

	if (!full(d))
		return 0;
	/* What was opened with O_PATH cannot be synced. */
	again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (again < 0)
		return -1;
	rc = fsync(again);
	close(again);
	return rc;
}

/* A new file or directory takes the owner and group of the store, as far as we may, and the mode given. */
static int
adopt(const struct disk *d, int fd, mode_t mode, uid_t uid, gid_t gid)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	if ((st.st_uid != uid || st.st_gid != gid) && fchown(fd, geteuid() == 0 ? uid : (uid_t)-1, gid) < 0 && errno != EPERM)
		return -1;
	return (st.st_mode & 07777) == mode ? 0 : fchmod(fd, mode);
}

static mode_t
file_mode(const struct disk *d)
{
	return d->like.st_mode & 0666;
}

/* Makes the directory `name` in `at` unless it is there. */
static int
make_dir(struct disk *d, int at, const char *name)
{
	int fd, rc;

	if (mkdirat(at, name, 0700) < 0)
		return errno == EEXIST ? 0 : -1;
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	rc = adopt(d, fd, d->like.st_mode & 07777, d->like.st_uid, d->like.st_gid);
	close(fd);
	return rc < 0 ? -1 : sync_dir(d, at);
}

/* The store's directory and those above it: 0700, for what is in them is the user's own. */
static int
root_make(struct disk *d, struct err *e)
{
	char *path = xstrdup(d->where), *p = path;
	int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), next, rc = -1;
	char *name;

	while (at >= 0 && (name = strsep(&p, "/")) != NULL) {
		if (*name == '\0')
			continue;
		if (mkdirat(at, name, 0700) == 0) {
			if (sync_dir(d, at) < 0)
				goto out;
		} else if (errno != EEXIST) {
			goto out;
		}
		next = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = next;
	}
	rc = at < 0 ? -1 : 0;
out:
	if (rc < 0 && (errno == EACCES || errno == EPERM || errno == EROFS))
		err_sys(e, "cannot create the store '%s'", d->where);
	else if (rc < 0)
		err_set(e, ERR_CREATE, "cannot create the store '%s': %s", d->where, strerror(errno));
	close_fd(&at);
	free(path);
	if (rc == 0 && root_open(d, e) != 1)
		rc = -1;
	return rc;
}

/* The directory `name` below `at`, made when it is not there; never a link. */
static int
open_own(struct disk *d, int at, const char *name, int *fd, struct err *e)
{
	int i;

	for (i = 0; *fd < 0 && i < 2; i++) {
		*fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (*fd < 0 && errno == ENOENT && i == 0 && make_dir(d, at, name) == 0)
			continue;
		if (*fd < 0)
			return err_sys(e, "cannot open '%s' of the store", name);
	}
	return 0;
}

static int
private_open(struct disk *d, struct err *e)
{
	if (removed(d->private))
		close_fd(&d->private);
	return open_own(d, d->root, PRIVATE, &d->private, e);
}

static int
tmp_open(struct disk *d, struct err *e)
{
	if (private_open(d, e) < 0)
		return -1;
	if (removed(d->tmp))
		close_fd(&d->tmp);
	return open_own(d, d->private, "tmp", &d->tmp, e);
}

/* A file in /.ag2 as all who may change the store can open it. */
static int
private_file(struct disk *d, const char *name, struct err *e)
{
	int fd, i;

	if (private_open(d, e) < 0)
		return -1;
	for (i = 0; i < 3; i++) {
		fd = openat(d->private, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 || errno != ENOENT)
			break;
		fd = openat(d->private, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd < 0 || (adopt(d, fd, file_mode(d), d->like.st_uid, d->like.st_gid) == 0 && sync_dir(d, d->private) == 0))
			break;
		close_fd(&fd);
		break;
	}
	return fd >= 0 ? fd : err_sys(e, "cannot open '/" PRIVATE "/%s'", name);
}

static int
make_journal(void *arg, struct err *e)
{
	return private_file(arg, "lock", e);
}

/* Looking without a lock: begin, look, and once more unless view_end says that nothing changed meanwhile. */

struct view {
	uint64_t seq;
	int tries;
	bool locked;
};

static int
lock_for_view(struct disk *d, struct view *v, struct err *e)
{
	if (journal_lock(&d->journal, d->root, false, NULL, NULL, d->o.timeout_ms, e) < 0)
		return -1;
	v->locked = d->journal.held;
	v->seq = 0;
	if (v->locked && (d->journal.seq & 1) != 0 && recover(d, e) < 0) {
		journal_unlock(&d->journal);
		return -1;
	}
	return 0;
}

static int
view_begin(struct disk *d, struct view *v, struct err *e)
{
	if (v->tries++ >= UNLOCKED_VIEWS)
		return lock_for_view(d, v, e);
	if (journal_peek(&d->journal, d->root, &v->seq, e) < 0)
		return -1;
	/* Odd: wait for who is at it, or finish what a dead process began. */
	return (v->seq & 1) != 0 ? lock_for_view(d, v, e) : 0;
}

static bool
view_end(struct disk *d, struct view *v)
{
	uint64_t now;

	if (v->locked) {
		journal_unlock(&d->journal);
		v->locked = false;
		return true;
	}
	return journal_peek(&d->journal, d->root, &now, NULL) == 0 && now == v->seq;
}

/* What is at a path. */

static uint64_t
version_of(const struct stat *st)
{
	int64_t v = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;

	return v > 0 ? (uint64_t)v : 1;
}

static void
describe(const struct stat *from, struct store_stat *st)
{
	st->dir = S_ISDIR(from->st_mode);
	st->size = st->dir ? 0 : (uint64_t)from->st_size;
	st->version = st->dir ? 0 : version_of(from);
	st->mtime = (double)from->st_mtim.tv_sec + (double)from->st_mtim.tv_nsec / 1e9;
}

static int
is_file(void *arg, const char *path, unsigned char type)
{
	const int *root = arg;
	struct stat st;

	if (type == DT_LNK)
		return beneath_stat(*root, path, &st) == 0 && S_ISREG(st.st_mode);
	return type == DT_REG;
}

/* A directory without files is not there; nor does what we keep for ourselves make the root be there. */
static bool
has_files(struct disk *d, const char *path)
{
	return beneath_walk(d->root, path, path[1] == '\0' ? "/" PRIVATE : NULL, is_file, &d->root) != 0;
}

/* 1 and st when a file or a directory that is there is at path, else 0. */
static int
look(struct disk *d, const char *path, struct stat *st, struct err *e)
{
	if (beneath_stat(d->root, path, st) < 0)
		return beneath_absent(errno) ? 0 : err_sys(e, "cannot look at '%s'", path);
	if (S_ISREG(st->st_mode))
		return 1;
	return S_ISDIR(st->st_mode) && has_files(d, path);
}

static int
disk_stat(void *self, const char *path, struct store_stat *out, struct err *e)
{
	struct disk *d = self;
	struct view v = { 0 };
	struct err why;
	struct stat st;
	int rc = root_open(d, e);

	if (rc <= 0)
		return rc;
	do {
		if (view_begin(d, &v, e) < 0)
			return -1;
		rc = look(d, path, &st, &why);
	} while (!view_end(d, &v));
	if (rc == 1)
		describe(&st, out);
	return rc < 0 ? err_set(e, why.code, "%s", why.msg) : rc;
}

/* Listing. */

struct entry {
	char *name;
	struct store_stat st;
};

struct entries {
	struct entry *e;
	size_t n, cap;
};

static void
entries_release(struct entries *l)
{
	while (l->n > 0)
		free(l->e[--l->n].name);
	free(l->e);
	*l = (struct entries){ 0 };
}

static int
by_name(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return store_name_compare(x->name, x->st.dir, y->name, y->st.dir);
}

/* Whether the directory st is `dir` or one of those above it: a link to such a one would make the tree endless. */
static bool
leads_back(struct disk *d, int dir, const struct stat *st)
{
	struct stat here;
	int at = dir, up, depth;
	bool found = false;

	for (depth = 0; at >= 0 && depth < PATH_BYTES_MAX && fstat(at, &here) == 0; depth++) {
		found = here.st_dev == st->st_dev && here.st_ino == st->st_ino;
		if (found || (here.st_dev == d->like.st_dev && here.st_ino == d->like.st_ino))
			break;
		up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (at != dir)
			close(at);
		at = up;
	}
	if (at >= 0 && at != dir)
		close(at);
	return found;
}

/* Adds what the name is, if it is to be seen. A file's stat is only read when it is wanted. */
static void
add_entry(struct disk *d, int fd, const char *path, const struct dirent *de, bool want_stat, struct entries *l)
{
	struct stat st = { .st_mode = DTTOIF(de->d_type) };
	struct buf child = BUF_INIT;
	bool seen = true;

	buf_addf(&child, "%s/%s", path[1] == '\0' ? "" : path, de->d_name);
	if (de->d_type == DT_UNKNOWN || (want_stat && de->d_type == DT_REG))
		seen = fstatat(fd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (seen && S_ISLNK(st.st_mode))
		seen = beneath_stat(d->root, child.data, &st) == 0 && !(S_ISDIR(st.st_mode) && leads_back(d, fd, &st));
	if (seen && S_ISDIR(st.st_mode))
		seen = has_files(d, child.data);
	else if (seen)
		seen = S_ISREG(st.st_mode);
	if (seen) {
		l->e = xgrow(l->e, l->n, &l->cap, sizeof(*l->e));
		l->e[l->n].name = xstrdup(de->d_name);
		describe(&st, &l->e[l->n].st);
		l->n++;
	}
	buf_release(&child);
}

static int
collect(struct disk *d, const char *path, bool want_stat, struct entries *l, struct err *e)
{
	int fd = beneath_open(d->root, path, O_RDONLY | O_DIRECTORY, 0);
	struct dirent *de;
	DIR *dir;
	int rc;

	if (fd < 0)
		return beneath_absent(errno) ? 0 : err_sys(e, "cannot list '%s'", path);
	if ((dir = fdopendir(fd)) == NULL) {
		close(fd);
		return err_sys(e, "cannot list '%s'", path);
	}
	while (errno = 0, (de = readdir(dir)) != NULL)
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
			add_entry(d, fd, path, de, want_stat, l);
	rc = errno == 0 ? 0 : err_sys(e, "cannot list '%s'", path);
	closedir(dir);
	return rc;
}

static int
disk_list(void *self, const char *path, unsigned flags, store_list_fn *fn, void *arg, struct err *e)
{
	struct disk *d = self;
	bool want_stat = (flags & STORE_LIST_STAT) != 0;
	struct entries l = { 0 };
	struct view v = { 0 };
	struct err why;
	size_t i;
	int rc = root_open(d, e);

	if (rc <= 0)
		return rc;
	do {
		entries_release(&l);
		if (view_begin(d, &v, e) < 0)
			return -1;
		rc = collect(d, path, want_stat, &l, &why);
	} while (!view_end(d, &v));
	if (rc < 0)
		err_set(e, why.code, "%s", why.msg);
	if (l.n > 1)
		qsort(l.e, l.n, sizeof(*l.e), by_name);
	for (i = 0; i < l.n && rc == 0; i++)
		rc = fn(arg, l.e[i].name, l.e[i].st.dir, want_stat ? &l.e[i].st : NULL);
	entries_release(&l);
	return rc;
}

/* Reading. */

struct disk_file {
	int fd;
	uint64_t size;		/* when it was opened: what is appended later is another version */
	char *path;
};

/* A descriptor, or -1 with ERR_ABSENT when there is no file. */
static int
open_file(struct disk *d, const char *path, struct stat *st, struct err *e)
{
	int fd = beneath_open(d->root, path, O_RDONLY, 0);

	if (fd >= 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode))
		return fd;
	if (fd < 0 && !beneath_absent(errno) && errno != ENXIO)
		return err_sys(e, "cannot read '%s'", path);
	close_fd(&fd);
	return err_set(e, ERR_ABSENT, "'%s' is not in the store", path);
}

static int
disk_file_open(void *self, const char *path, void **file, struct store_stat *out, struct err *e)
{
	struct disk *d = self;
	struct view v = { 0 };
	struct disk_file *f;
	struct err why;
	struct stat st;
	int fd = -1, rc = root_open(d, e);

	if (rc < 0)
		return -1;
	if (rc == 0)
		return err_set(e, ERR_ABSENT, "'%s' is not in the store", path);
	do {
		close_fd(&fd);
		if (view_begin(d, &v, e) < 0)
			return -1;
		fd = open_file(d, path, &st, &why);
	} while (!view_end(d, &v));
	if (fd < 0)
		return err_set(e, why.code, "%s", why.msg);
	f = xcalloc(1, sizeof(*f));
	f->fd = fd;
	f->size = (uint64_t)st.st_size;
	f->path = xstrdup(path);
	describe(&st, out);
	*file = f;
	return 0;
}

static ssize_t
disk_file_read(void *file, uint64_t offset, void *data, size_t len, struct err *e)
{
	struct disk_file *f = file;
	ssize_t n;

	if (offset >= f->size)
		return 0;
	if (len > f->size - offset)
		len = (size_t)(f->size - offset);
	do
		n = pread(f->fd, data, len, (off_t)offset);
	while (n < 0 && errno == EINTR);
	return n < 0 ? err_sys(e, "cannot read '%s'", f->path) : n;
}

static void
disk_file_close(void *file)
{
	struct disk_file *f = file;

	close(f->fd);
	free(f->path);
	free(f);
}

/* Changing: what a commit comes down to. */

enum step_kind { STEP_DELETE, STEP_APPEND, STEP_RENAME };	/* in the order in which they are applied */

struct step {
	enum step_kind kind;
	char *path;
	uint64_t version;	/* that the file gets */
	uint64_t old_size;	/* APPEND */
	bool create;		/* APPEND: there was no file */
	unsigned staged;	/* RENAME: the name in tmp */
	const void *data;	/* APPEND */
	uint64_t len;
	struct store_op *op;	/* NULL in a change that is carried out again */
	/* How to undo it: */
	int fd;			/* APPEND: open */
	uint64_t written;
	size_t moved_from, moved_to;	/* DELETE: these of the plan's moves */
	bool applied;
};

/* Something that was put aside in tmp. */
struct move {
	char *dir, *name;
	unsigned gone;
};

struct plan {
	struct step *steps;
	size_t n, cap;
	struct move *moves;
	size_t nmoves, moves_cap;
	bool again;		/* a dead writer's, found in the journal */
};

static void
plan_release(struct plan *p)
{
	while (p->n > 0) {
		close_fd(&p->steps[--p->n].fd);
		free(p->steps[p->n].path);
	}
	while (p->nmoves > 0) {
		free(p->moves[--p->nmoves].dir);
		free(p->moves[p->nmoves].name);
	}
	free(p->steps);
	free(p->moves);
}

static struct step *
plan_add(struct plan *p, enum step_kind kind, const char *path)
{
	struct step *s;

	p->steps = xgrow(p->steps, p->n, &p->cap, sizeof(*p->steps));
	s = &p->steps[p->n++];
	*s = (struct step){ .kind = kind, .path = xstrdup(path), .fd = -1 };
	return s;
}

/* The directory part of a path: "/" for what is in the root. Free it. */
static char *
dir_of(const char *path)
{
	size_t n = (size_t)(path_name(path) - path);

	return xmemdup0(path, n > 1 ? n - 1 : 1);
}

static int
in_the_way(const char *path, struct err *e)
{
	return err_set(e, ERR_CREATE, "cannot create '%s': something that is no directory of this store lies on the way", path);
}

/* Makes the directories of `dir` below its part that is there already. */
static int
make_dirs(struct disk *d, const char *dir, const char *path, struct err *e)
{
	char *have = xstrdup(dir), *slash, name[256];
	const char *rest = dir + strlen(dir);
	size_t len;
	int at = -1, next, rc = -1;

	while (have[1] != '\0' && (at = beneath_open(d->root, have, O_PATH | O_DIRECTORY, 0)) < 0 && errno == ENOENT) {
		slash = strrchr(have, '/');
		rest = dir + (slash - have);
		slash[slash == have] = '\0';
	}
	if (have[1] == '\0')
		at = beneath_open(d->root, "/", O_PATH | O_DIRECTORY, 0);
	if (at < 0 && beneath_absent(errno)) {
		in_the_way(path, e);
		goto out;
	}
	while (at >= 0 && *rest != '\0') {
		rest += *rest == '/';
		len = strcspn(rest, "/");
		memcpy(name, rest, len);
		name[len] = '\0';
		rest += len;
		next = make_dir(d, at, name) < 0 ? -1 : openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0 && (errno == ENOTDIR || errno == ELOOP)) {
			in_the_way(path, e);
			goto out;
		}
		close(at);
		at = next;
	}
	rc = at < 0 ? err_sys(e, "cannot create the directory of '%s'", path) : 0;
out:
	close_fd(&at);
	free(have);
	return rc;
}

/* Opens the directory that path is in. With make it is made when it is not there; without, -1 and errno ENOENT. */
static int
parent_open(struct disk *d, const char *path, bool make, struct err *e)
{
	char *dir = dir_of(path);
	int fd = beneath_open(d->root, dir, O_PATH | O_DIRECTORY, 0), error = errno;

	if (fd < 0 && make && error == ENOENT) {
		if (make_dirs(d, dir, path, e) == 0 && (fd = beneath_open(d->root, dir, O_PATH | O_DIRECTORY, 0)) < 0)
			err_sys(e, "cannot open the directory of '%s'", path);
	} else if (fd < 0 && make) {
		if (beneath_absent(error))
			in_the_way(path, e);
		else
			err_sys(e, "cannot open the directory of '%s'", path);
	}
	free(dir);
	errno = error;
	return fd;
}

static bool
reserved(const char *path)
{
	return path_within(path, "/" PRIVATE "/lock") || path_within(path, "/" PRIVATE "/locks") || path_within(path, "/" PRIVATE "/tmp");
}

/* Removes the directories above path that have become empty, but never our own. */
static void
prune(struct disk *d, const char *path)
{
	char *dir = dir_of(path), *up;
	bool more = true;
	int at;

	while (more && dir[1] != '\0' && strcmp(dir, "/" PRIVATE) != 0 && !reserved(dir)) {
		up = dir_of(dir);
		at = beneath_open(d->root, up, O_PATH | O_DIRECTORY, 0);
		more = at >= 0 ? unlinkat(at, path_name(dir), AT_REMOVEDIR) == 0 || errno == ENOENT : errno == ENOENT;
		if (at >= 0 && more)
			sync_dir(d, at);
		close_fd(&at);
		free(dir);
		dir = up;
	}
	free(dir);
}

/* Planning: all that can be refused is refused here, before anything changes. */

static int
conflict(const char *path, struct err *e)
{
	return err_set(e, ERR_CONFLICT, "'%s' is not what it was: read it again", path);
}

static int
check_version(struct disk *d, const struct store_op *op, struct err *e)
{
	struct stat st;
	int rc = beneath_stat(d->root, op->path, &st);

	if (rc < 0 && !beneath_absent(errno))
		return err_sys(e, "cannot look at '%s'", op->path);
	return (rc == 0 && S_ISREG(st.st_mode) ? version_of(&st) : 0) == op->version ? 0 : conflict(op->path, e);
}

static int
check_prefix(struct disk *d, const struct store_op *op, struct err *e)
{
	struct stat st;
	struct err why = ERR_INIT;
	unsigned char sum[20];
	struct sha1 h;
	char *chunk;
	uint64_t at = 0;
	ssize_t n = 0;
	int fd = open_file(d, op->path, &st, &why);

	if (fd < 0)
		return why.code == ERR_ABSENT ? conflict(op->path, e) : err_set(e, why.code, "%s", why.msg);
	chunk = xmalloc(CHUNK);
	sha1_init(&h);
	while (at < op->upto) {
		n = pread(fd, chunk, op->upto - at < CHUNK ? (size_t)(op->upto - at) : CHUNK, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		sha1_add(&h, chunk, (size_t)n);
		at += (uint64_t)n;
	}
	sha1_end(&h, sum);
	if (n < 0)
		err_sys(e, "cannot read '%s'", op->path);
	free(chunk);
	close(fd);
	if (n < 0)
		return -1;
	return at == op->upto && memcmp(sum, op->sha1, sizeof(sum)) == 0 ? 0 : conflict(op->path, e);
}

static int
check_all(struct disk *d, const struct store_op *ops, size_t n, struct err *e)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++) {
		if (ops[i].kind == STORE_OP_EXPECT)
			rc = check_version(d, &ops[i], e);
		else if (reserved(ops[i].path))
			rc = err_set(e, ERR_PERM, "'%s' is kept by the store for itself", ops[i].path);
		else if (ops[i].kind == STORE_OP_REPLACE_PREFIX)
			rc = check_prefix(d, &ops[i], e);
	}
	return rc;
}

/*
 * Whether a file may be at path, whose directory is open. 1 and st when a file is there now, 0 when there is none (maybe
 * a link that leads to no file of ours, or a directory without files).
 */
static int
may_be_file(struct disk *d, int parent, const char *path, struct stat *st, struct err *e)
{
	if (fstatat(parent, path_name(path), st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "cannot look at '%s'", path);
	if (S_ISLNK(st->st_mode) && beneath_stat(d->root, path, st) < 0)
		return 0;
	if (S_ISREG(st->st_mode))
		return 1;
	if (!S_ISDIR(st->st_mode))
		return err_set(e, ERR_CREATE, "cannot create '%s': it is there and no file", path);
	return has_files(d, path) ? err_set(e, ERR_CREATE, "cannot create '%s': it is a directory", path) : 0;
}

static int
plan_append(struct disk *d, struct plan *p, struct store_op *op, struct err *e)
{
	int fd = beneath_open(d->root, op->path, O_WRONLY | O_APPEND, 0), parent, rc = 0;
	struct stat st = { 0 };
	struct step *s;

	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		return err_set(e, ERR_CREATE, "cannot append to '%s': it is there and no file", op->path);
	}
	if (fd < 0 && !beneath_absent(errno) && errno != EISDIR && errno != ENXIO)
		return err_sys(e, "cannot append to '%s'", op->path);
	if (fd < 0) {
		if ((parent = parent_open(d, op->path, true, e)) < 0)
			return -1;
		rc = may_be_file(d, parent, op->path, &st, e);
		if (rc == 0 && S_ISLNK(st.st_mode))
			rc = err_set(e, ERR_CREATE, "cannot append to '%s': a link that leads to no file of this store", op->path);
		close(parent);
		if (rc < 0)
			return -1;
		st.st_size = 0;
	}
	s = plan_add(p, STEP_APPEND, op->path);
	s->op = op;
	s->fd = fd;
	s->create = fd < 0;
	s->old_size = (uint64_t)st.st_size;
	s->version = journal_version(&d->journal, fd < 0 ? 0 : version_of(&st));
	s->data = op->data;
	s->len = op->len;
	return 0;
}

static void
staged_name(char name[16], unsigned n)
{
	snprintf(name, 16, "%u", n);
}

/* A new file in tmp. One that is there already was left by a dead writer. */
static int
stage_create(struct disk *d, unsigned n)
{
	char name[16];
	int fd;

	staged_name(name, n);
	fd = openat(d->tmp, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0 || errno != EEXIST || unlinkat(d->tmp, name, 0) < 0)
		return fd;
	return openat(d->tmp, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

/* What lies behind the replaced prefix. */
static int
copy_rest(struct disk *d, const struct store_op *op, int to, struct err *e)
{
	struct stat st;
	int from = open_file(d, op->path, &st, e), rc = 0;
	char *chunk;
	off_t at = (off_t)op->upto;
	ssize_t n;

	if (from < 0)
		return -1;
	chunk = xmalloc(CHUNK);
	while (rc == 0 && (n = pread(from, chunk, CHUNK, at)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			rc = err_sys(e, "cannot read '%s'", op->path);
		else if (io_write_all(to, chunk, (size_t)n) < 0)
			rc = err_sys(e, "cannot write '%s'", op->path);
		at += n;
	}
	free(chunk);
	close(from);
	return rc;
}

static int
set_version(int fd, uint64_t version)
{
	struct timespec t[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = (time_t)(version / 1000000000), .tv_nsec = (long)(version % 1000000000) } };

	return futimens(fd, t);
}

static int
stage(struct disk *d, const struct step *s, const struct stat *old, struct err *e)
{
	const struct store_op *op = s->op;
	int fd = stage_create(d, s->staged), rc = -1;

	if (fd < 0)
		return err_sys(e, "cannot write '%s'", op->path);
	if (io_write_all(fd, op->data, op->len) < 0)
		err_sys(e, "cannot write '%s'", op->path);
	else if (op->kind == STORE_OP_REPLACE_PREFIX && copy_rest(d, op, fd, e) < 0)
		rc = -1;
	else if (adopt(d, fd, old ? old->st_mode & 0777 : file_mode(d), old ? old->st_uid : d->like.st_uid, old ? old->st_gid : d->like.st_gid) < 0 ||
	    set_version(fd, s->version) < 0 || (full(d) && fsync(fd) < 0))
		err_sys(e, "cannot write '%s'", op->path);
	else
		rc = 0;
	close(fd);
	return rc;
}

static int
plan_write(struct disk *d, struct plan *p, struct store_op *op, struct err *e)
{
	int parent, there;
	struct stat old;
	struct step *s;

	if (tmp_open(d, e) < 0 || (parent = parent_open(d, op->path, true, e)) < 0)
		return -1;
	there = may_be_file(d, parent, op->path, &old, e);
	/* A rename that the directory's mode forbids would fail only after the commit was decided. */
	if (there >= 0 && faccessat(parent, ".", W_OK | X_OK, AT_EACCESS) < 0)
		there = err_sys(e, "cannot write '%s'", op->path);
	close(parent);
	if (there < 0)
		return -1;
	s = plan_add(p, STEP_RENAME, op->path);
	s->op = op;
	s->staged = (unsigned)p->n;
	s->version = journal_version(&d->journal, there ? version_of(&old) : 0);
	return stage(d, s, there ? &old : NULL, e);
}

struct newest {
	struct disk *d;
	uint64_t version;
};

static int
find_newest(void *arg, const char *path, unsigned char type)
{
	struct newest *n = arg;
	struct stat st;

	if (type == DT_REG && beneath_stat(n->d->root, path, &st) == 0 && version_of(&st) > n->version)
		n->version = version_of(&st);
	return 0;
}

/* A version given later to a deleted path must rise above what it had, also when AG2 wrote that under another clock. */
static int
plan_delete(struct disk *d, struct plan *p, struct store_op *op, struct err *e)
{
	struct newest newest = { .d = d };
	struct stat st;
	int parent;

	if (strcmp(op->path, "/") == 0) {
		if (!has_files(d, "/"))
			return 0;
		st.st_mode = S_IFDIR;
	} else {
		parent = parent_open(d, op->path, false, e);
		if (parent < 0)
			return beneath_absent(errno) ? 0 : err_sys(e, "cannot delete '%s'", op->path);
		if (fstatat(parent, path_name(op->path), &st, AT_SYMLINK_NOFOLLOW) < 0) {
			close(parent);
			return errno == ENOENT ? 0 : err_sys(e, "cannot delete '%s'", op->path);
		}
		close(parent);
	}
	if (S_ISDIR(st.st_mode))
		beneath_walk(d->root, op->path, op->path[1] == '\0' ? "/" PRIVATE : NULL, find_newest, &newest);
	else if (S_ISREG(st.st_mode))
		newest.version = version_of(&st);
	if (newest.version > d->journal.last)
		d->journal.last = newest.version;
	plan_add(p, STEP_DELETE, op->path)->op = op;
	return tmp_open(d, e);
}

static int
by_kind(const void *a, const void *b)
{
	return (int)((const struct step *)a)->kind - (int)((const struct step *)b)->kind;
}

static int
plan_make(struct disk *d, struct plan *p, struct store_op *ops, size_t n, struct err *e)
{
	size_t i;
	int rc = check_all(d, ops, n, e);

	for (i = 0; i < n && rc == 0; i++) {
		if (ops[i].kind == STORE_OP_APPEND)
			rc = plan_append(d, p, &ops[i], e);
		else if (ops[i].kind == STORE_OP_DELETE)
			rc = plan_delete(d, p, &ops[i], e);
		else if (ops[i].kind != STORE_OP_EXPECT)
			rc = plan_write(d, p, &ops[i], e);
	}
	if (rc == 0 && p->n > 1)
		qsort(p->steps, p->n, sizeof(*p->steps), by_kind);
	return rc;
}

/* Applying, first or again. */

/* Puts `name` of the directory aside, into tmp; it is purged when the change is done. */
static int
put_aside(struct disk *d, struct plan *p, int parent, const char *dir, const char *name)
{
	struct move *m;
	char gone[16];
	int i;

	for (i = 0; i < 1000; i++) {
		snprintf(gone, sizeof(gone), "g%u", ++d->gone);
		if (renameat(parent, name, d->tmp, gone) == 0)
			break;
		if (errno != ENOTEMPTY && errno != EEXIST && errno != EISDIR && errno != ENOTDIR)
			return errno == ENOENT ? 0 : -1;
	}
	if (i == 1000)
		return -1;
	d->journal.flags |= JOURNAL_PURGE;
	p->moves = xgrow(p->moves, p->nmoves, &p->moves_cap, sizeof(*p->moves));
	m = &p->moves[p->nmoves++];
	m->dir = xstrdup(dir);
	m->name = xstrdup(name);
	m->gone = d->gone;
	return 0;
}

/* All in a directory of which we keep a part: the root, or /.ag2. */
static int
delete_inside(struct disk *d, struct plan *p, const char *path)
{
	int fd = beneath_open(d->root, path, O_RDONLY | O_DIRECTORY, 0), rc = 0;
	struct buf child = BUF_INIT;
	struct dirent *de;
	DIR *dir;

	if (fd < 0)
		return beneath_absent(errno) ? 0 : -1;
	if ((dir = fdopendir(fd)) == NULL) {
		close(fd);
		return -1;
	}
	while (rc == 0 && (de = readdir(dir)) != NULL) {
		buf_reset(&child);
		buf_addf(&child, "%s/%s", path[1] == '\0' ? "" : path, de->d_name);
		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0 || strcmp(child.data, "/" PRIVATE) == 0 || reserved(child.data))
			continue;
		rc = put_aside(d, p, fd, path, de->d_name);
	}
	if (rc == 0)
		rc = sync_dir(d, fd);
	closedir(dir);
	buf_release(&child);
	return rc;
}

static int
apply_delete(struct disk *d, struct plan *p, struct step *s, struct err *e)
{
	char *dir;
	int parent, rc;

	s->moved_from = p->nmoves;
	if (tmp_open(d, e) < 0)
		return -1;
	if (strcmp(s->path, "/") == 0 || strcmp(s->path, "/" PRIVATE) == 0) {
		rc = delete_inside(d, p, s->path);
	} else if ((parent = parent_open(d, s->path, false, e)) < 0) {
		rc = beneath_absent(errno) ? 0 : -1;
	} else {
		/* A single file goes at once; what may have to be undone is put aside. */
		rc = p->n == 1 ? unlinkat(parent, path_name(s->path), 0) : -1;
		if (rc < 0 && p->n == 1 && errno == ENOENT)
			rc = 0;
		else if (rc < 0 && (p->n > 1 || errno == EISDIR || errno == EPERM)) {
			dir = dir_of(s->path);
			rc = put_aside(d, p, parent, dir, path_name(s->path));
			free(dir);
		}
		if (rc == 0)
			rc = sync_dir(d, parent);
		close(parent);
	}
	s->moved_to = p->nmoves;
	return rc == 0 ? 0 : err_sys(e, "cannot delete '%s'", s->path);
}

/* A directory without files stands where a file goes. */
static int
clear_directory(struct disk *d, struct plan *p, const char *path)
{
	char *dir;
	int parent, rc;

	if (has_files(d, path)) {
		errno = EISDIR;
		return -1;
	}
	if (tmp_open(d, NULL) < 0 || (parent = parent_open(d, path, false, NULL)) < 0)
		return -1;
	dir = dir_of(path);
	rc = put_aside(d, p, parent, dir, path_name(path));
	free(dir);
	close(parent);
	return rc;
}

static int
append_create(struct disk *d, struct plan *p, struct step *s, struct err *e)
{
	int parent = parent_open(d, s->path, true, e), i;
	const char *name = path_name(s->path);

	if (parent < 0)
		return -1;
	for (i = 0; s->fd < 0 && i < 3; i++) {
		s->fd = openat(parent, name, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (s->fd >= 0 && (adopt(d, s->fd, file_mode(d), d->like.st_uid, d->like.st_gid) < 0 || sync_dir(d, parent) < 0))
			close_fd(&s->fd);
		else if (s->fd < 0 && errno == EEXIST) {
			/* AG2 was faster, or this is done again. */
			s->fd = beneath_open(d->root, s->path, O_RDWR | O_APPEND, 0);
			if (s->fd < 0 && errno == EISDIR && clear_directory(d, p, s->path) < 0)
				break;
		}
	}
	close(parent);
	return s->fd >= 0 ? 0 : err_sys(e, "cannot create '%s'", s->path);
}

/* The length of the longest end of text that data begins with. */
static size_t
overlap(const struct buf *text, const char *data, size_t len)
{
	size_t n = text->len < len ? text->len : len;

	while (n > 0 && memcmp(text->data + text->len - n, data, n) != 0)
		n--;
	return n;
}

/* Whether the machine was started after the version was given out. */
static bool
before_boot(uint64_t version)
{
	struct timespec now, up;

	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &up);
	return version / 1000000000 < (uint64_t)(now.tv_sec - up.tv_sec);
}

/*
 * How many bytes of the data of an append that a dead writer began are in the file. A killed write(2) may have written
 * any part of them, none with a new time among it. After a loss of power the journal may be older than the file:
 * one that was changed since had the append complete.
 */
static int
already_there(const struct step *s, uint64_t *have, struct err *e)
{
	struct stat st;
	struct buf rest = BUF_INIT_MAX(REDO_MAX);
	bool newer;
	int rc;

	*have = 0;
	if (fstat(s->fd, &st) < 0)
		return err_sys(e, "cannot look at '%s'", s->path);
	newer = version_of(&st) >= s->version && before_boot(s->version);
	if ((uint64_t)st.st_size <= s->old_size) {
		*have = newer ? s->len : 0;
		return 0;
	}
	if (lseek(s->fd, (off_t)s->old_size, SEEK_SET) < 0)
		return err_sys(e, "cannot read '%s'", s->path);
	rc = io_read_all(s->fd, &rest, s->path, e);
	if (rc == 0 && rest.len < s->len && memcmp(rest.data, s->data, rest.len) == 0)
		*have = rest.len;
	else if (rc == 0 && (newer || memmem(rest.data, rest.len, s->data, (size_t)s->len) != NULL))
		*have = s->len;
	else if (rc == 0)
		*have = overlap(&rest, s->data, (size_t)s->len);
	buf_release(&rest);
	return rc;
}

static int
write_counted(int fd, const char *data, uint64_t len, uint64_t *written)
{
	ssize_t n;

	while (*written < len) {
		n = write(fd, data + *written, (size_t)(len - *written));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		*written += (uint64_t)n;
	}
	return 0;
}

/*
 * The file's new version (done again: unless it has a newer one by now). Who may write a file that is another's may only set its time to now, which the kernel takes from
 * a clock that moves every few milliseconds: wait for it to pass the old version.
 */
static int
rise(int fd, struct step *s, bool again)
{
	struct timespec pause = { .tv_nsec = 1000000 };
	struct stat st;
	int i, rc;

	if (again && fstat(fd, &st) == 0 && version_of(&st) >= s->version)
		return 0;
	rc = set_version(fd, s->version);

	for (i = 0; rc < 0 && errno == EPERM && i < 50; i++) {
		if (futimens(fd, NULL) < 0 || fstat(fd, &st) < 0)
			return -1;
		if (version_of(&st) >= s->version || i == 49) {
			s->version = version_of(&st);
			return 0;
		}
		nanosleep(&pause, NULL);
		errno = EPERM;
	}
	return rc;
}

static int
apply_append(struct disk *d, struct plan *p, struct step *s, struct err *e)
{
	off_t end;

	if (s->fd < 0 && !s->create) {
		s->fd = beneath_open(d->root, s->path, O_RDWR | O_APPEND, 0);
		if (s->fd < 0 && beneath_absent(errno))
			return 0;	/* deleted since: what was appended went with it */
		if (s->fd < 0)
			return err_sys(e, "cannot append to '%s'", s->path);
	}
	if (s->fd < 0 && append_create(d, p, s, e) < 0)
		return -1;
	if (p->again && already_there(s, &s->written, e) < 0)
		return -1;
	if (write_counted(s->fd, s->data, s->len, &s->written) < 0)
		return err_sys(e, "cannot append to '%s'", s->path);
	/* Not the size from before: others may have appended in between. A write of nothing does not move to the end. */
	end = lseek(s->fd, 0, s->len > 0 ? SEEK_CUR : SEEK_END);
	if (end < 0 || rise(s->fd, s, p->again) < 0 || (full(d) && fdatasync(s->fd) < 0))
		return err_sys(e, "cannot append to '%s'", s->path);
	if (s->op != NULL)
		s->op->offset = (uint64_t)end - s->len;
	return 0;
}

static int
apply_rename(struct disk *d, struct plan *p, struct step *s, struct err *e)
{
	char name[16];
	struct stat st;
	int parent, rc;

	if (tmp_open(d, e) < 0)
		return -1;
	staged_name(name, s->staged);
	if (p->again && (fstatat(d->tmp, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) || version_of(&st) != s->version))
		return 0;	/* renamed before */
	if ((parent = parent_open(d, s->path, true, e)) < 0)
		return -1;
	rc = renameat(d->tmp, name, parent, path_name(s->path));
	if (rc < 0 && errno == EISDIR && clear_directory(d, p, s->path) == 0)
		rc = renameat(d->tmp, name, parent, path_name(s->path));
	if (rc == 0)
		rc = sync_dir(d, parent);
	if (rc < 0)
		err_sys(e, "cannot write '%s'", s->path);
	close(parent);
	return rc;
}

static int
apply(struct disk *d, struct plan *p, struct err *e)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < p->n && rc == 0; i++) {
		struct step *s = &p->steps[i];

		if (s->kind == STEP_DELETE)
			rc = apply_delete(d, p, s, e);
		else if (s->kind == STEP_APPEND)
			rc = apply_append(d, p, s, e);
		else
			rc = apply_rename(d, p, s, e);
		s->applied = rc == 0;
	}
	for (i = 0; i < p->n && rc == 0; i++)
		if (p->steps[i].kind == STEP_DELETE)
			prune(d, p->steps[i].path);
	return rc;
}

/* Takes back our bytes, unless another has written behind them: then they cannot be taken back. */
static void
undo_append(struct step *s)
{
	struct stat st;
	off_t end;

	if (s->fd < 0 || s->written == 0)
		return;
	end = lseek(s->fd, 0, SEEK_CUR);
	if (end < 0 || fstat(s->fd, &st) < 0 || st.st_size != end || ftruncate(s->fd, end - (off_t)s->written) < 0)
		log_warn("'%s': %llu bytes of an append that failed are left in it", s->path, (unsigned long long)s->written);
	rise(s->fd, s, false);
}

static void
undo_create(struct disk *d, const struct step *s)
{
	struct stat st;
	int parent;

	if (!s->create || s->fd < 0 || fstat(s->fd, &st) < 0 || st.st_size != 0)
		return;
	if ((parent = parent_open(d, s->path, false, NULL)) < 0)
		return;
	unlinkat(parent, path_name(s->path), 0);
	close(parent);
	prune(d, s->path);
}

static int
undo_delete(struct disk *d, struct plan *p, const struct step *s)
{
	char gone[16];
	size_t i;
	int parent, rc = 0;

	for (i = s->moved_to; i-- > s->moved_from;) {
		struct move *m = &p->moves[i];

		snprintf(gone, sizeof(gone), "g%u", m->gone);
		parent = beneath_open(d->root, m->dir, O_PATH | O_DIRECTORY, 0);
		if (parent < 0 || renameat(d->tmp, gone, parent, m->name) < 0)
			rc = -1;
		close_fd(&parent);
	}
	return rc;
}

/* Whether the change that failed in the middle is as if it had not been. A file that was replaced cannot be brought back. */
static bool
undo(struct disk *d, struct plan *p)
{
	size_t i;
	bool done = true;

	for (i = 0; i < p->n; i++)
		if (p->steps[i].kind == STEP_RENAME && p->steps[i].applied)
			return false;
	for (i = p->n; i-- > 0;) {
		struct step *s = &p->steps[i];

		if (s->kind == STEP_APPEND) {
			undo_append(s);
			undo_create(d, s);
		} else if (s->kind == STEP_DELETE) {
			done = undo_delete(d, p, s) == 0 && done;
		}
	}
	return done;
}

/* The record in the journal: what `apply` needs, step by step. The data of the appends follow it. */

static void
put(struct buf *b, uint64_t n)
{
	n = htole64(n);
	buf_add(b, &n, sizeof(n));
}

static bool
get(const struct buf *b, size_t *at, uint64_t *n)
{
	if (b->len - *at < sizeof(*n))
		return false;
	memcpy(n, b->data + *at, sizeof(*n));
	*n = le64toh(*n);
	*at += sizeof(*n);
	return true;
}

static void
encode(const struct plan *p, struct buf *record, struct iovec *data)
{
	size_t i, len;

	for (i = 0; i < p->n; i++) {
		const struct step *s = &p->steps[i];

		len = strlen(s->path);
		put(record, (uint64_t)s->kind << 32 | s->staged);
		put(record, s->version);
		put(record, s->old_size << 1 | s->create);
		put(record, s->len);
		put(record, len);
		buf_add(record, s->path, len);
		data[i].iov_base = (void *)s->data;
		data[i].iov_len = s->kind == STEP_APPEND ? (size_t)s->len : 0;
	}
}

/* Paths were normalised before they were recorded; what is damaged has no right checksum. */
static bool
decode_step(const struct buf *record, size_t *at, struct plan *p)
{
	uint64_t kind, version, size, len, path_len;
	struct step *s;
	char *path;

	if (!get(record, at, &kind) || !get(record, at, &version) || !get(record, at, &size) || !get(record, at, &len) ||
	    !get(record, at, &path_len) || path_len > record->len - *at || path_len == 0 || record->data[*at] != '/' || kind >> 32 > STEP_RENAME)
		return false;
	path = xmemdup0(record->data + *at, (size_t)path_len);
	*at += (size_t)path_len;
	s = plan_add(p, (enum step_kind)(kind >> 32), path);
	free(path);
	s->staged = (unsigned)kind;
	s->version = version;
	s->old_size = size >> 1;
	s->create = size & 1;
	s->len = len;
	return true;
}

/* Removes all that is in tmp. Directories in directories are moved up first, so that no depth is too deep. */
static void
purge(struct disk *d)
{
	struct dirent *de, *in;
	char gone[16];
	DIR *dir, *sub;
	bool more;
	int fd;

	do {
		more = false;
		fd = openat(d->tmp, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 || (dir = fdopendir(fd)) == NULL) {
			close_fd(&fd);
			return;
		}
		while ((de = readdir(dir)) != NULL) {
			if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
				continue;
			if (unlinkat(d->tmp, de->d_name, 0) == 0 || unlinkat(d->tmp, de->d_name, AT_REMOVEDIR) == 0)
				continue;
			fd = openat(d->tmp, de->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (fd < 0 || (sub = fdopendir(fd)) == NULL) {
				close_fd(&fd);
				continue;
			}
			while ((in = readdir(sub)) != NULL) {
				if (strcmp(in->d_name, ".") == 0 || strcmp(in->d_name, "..") == 0 || unlinkat(fd, in->d_name, 0) == 0)
					continue;
				snprintf(gone, sizeof(gone), "g%u", ++d->gone);
				more = renameat(fd, in->d_name, d->tmp, gone) == 0 || more;
			}
			closedir(sub);
			unlinkat(d->tmp, de->d_name, AT_REMOVEDIR);
		}
		closedir(dir);
	} while (more);
}

/* Committing. */

static int
load_data(struct disk *d, struct plan *p, uint64_t at, struct buf *data, struct err *e)
{
	uint64_t used = 0;
	size_t i;

	for (i = 0; i < p->n; i++)
		if (p->steps[i].kind == STEP_APPEND && journal_data(&d->journal, at + data->len, p->steps[i].len, data, e) < 0)
			return -1;
	for (i = 0; i < p->n; i++)
		if (p->steps[i].kind == STEP_APPEND) {
			p->steps[i].data = data->data + used;
			used += p->steps[i].len;
		}
	return 0;
}

/*
 * The journal is held and says that a change was decided, and its writer is dead: carries it out. A record that is not
 * whole can only come from a loss of power, which sync=normal does not promise to survive: the store goes on without it.
 */
static int
recover(struct disk *d, struct err *e)
{
	struct plan p = { .again = true };
	struct buf record = BUF_INIT, data = BUF_INIT;
	struct err why = ERR_INIT;
	uint64_t data_at;
	size_t at = 0;
	bool whole;
	int rc = -1;

	if (!d->journal.writable)
		return err_set(e, ERR_PERM, "'%s': a change that a dead process began has to be finished by someone who may write", d->where);
	whole = journal_record(&d->journal, &record, &data_at, &why) == 0;
	while (whole && at < record.len)
		whole = decode_step(&record, &at, &p);
	whole = whole && load_data(d, &p, data_at, &data, &why) == 0;
	if (!whole) {
		log_warn("'%s': dropping an unfinished change: %s", d->where, why.msg);
	} else if (apply(d, &p, e) < 0) {
		err_wrap(e, "cannot finish the change that a dead process began");
		goto out;
	}
	rc = journal_end(&d->journal, e);
out:
	buf_release(&record);
	buf_release(&data);
	plan_release(&p);
	return rc;
}

static void
tidy(struct disk *d)
{
	if ((d->journal.flags & JOURNAL_PURGE) == 0 || tmp_open(d, NULL) < 0)
		return;
	purge(d);
	d->journal.flags &= ~(uint32_t)JOURNAL_PURGE;
	journal_end(&d->journal, NULL);
}

static int
change_begin(struct disk *d, struct err *e)
{
	if (journal_lock(&d->journal, d->root, true, make_journal, d, d->o.timeout_ms, e) < 0)
		return -1;
	if ((d->journal.seq & 1) != 0 && recover(d, e) < 0) {
		journal_unlock(&d->journal);
		return -1;
	}
	tidy(d);
	return 0;
}

/* Once journal_begin has returned, the change happens: here, or by whoever comes next when we die. */
static int
carry_out(struct disk *d, struct plan *p, struct err *e)
{
	struct buf record = BUF_INIT;
	struct iovec *data = xcalloc(p->n, sizeof(*data));
	size_t i;
	int rc = -1;

	encode(p, &record, data);
	if (d->tmp >= 0 && sync_dir(d, d->tmp) < 0)
		err_sys(e, "cannot write '%s'", d->where);
	else
		rc = journal_begin(&d->journal, &record, data, p->n, full(d), e);
	if (rc == 0)
		rc = apply(d, p, e);
	/* When the end cannot be written the next one finds the change complete. */
	if (rc == 0 || undo(d, p))
		journal_end(&d->journal, NULL);
	for (i = 0; i < p->n && rc == 0; i++)
		p->steps[i].op->version = p->steps[i].version;
	if (rc == 0)
		tidy(d);
	buf_release(&record);
	free(data);
	return rc;
}

/* Operations on a store that is not there: 1 when it has to be made for them. */
static int
nowhere(const struct store_op *ops, size_t n, struct err *e)
{
	size_t i;
	int need = 0;

	for (i = 0; i < n; i++) {
		if ((ops[i].kind == STORE_OP_EXPECT && ops[i].version != 0) || ops[i].kind == STORE_OP_REPLACE_PREFIX)
			return conflict(ops[i].path, e);
		need |= ops[i].kind == STORE_OP_WRITE || ops[i].kind == STORE_OP_APPEND;
	}
	return need;
}

/* The root is open when this returns 1; 0: there is none, and none is needed. */
static int
root_for_change(struct disk *d, const struct store_op *ops, size_t n, struct err *e)
{
	int rc = root_open(d, e);

	if (rc != 0)
		return rc;
	if (d->o.mode != STORE_CREATE)
		return err_set(e, ERR_NOINPUT, "there is no store at '%s' any more", d->where);
	rc = ops != NULL ? nowhere(ops, n, e) : 1;
	if (rc <= 0)
		return rc;
	return root_make(d, e) < 0 ? -1 : 1;
}

/* After a failure nothing of it stays: neither the staged files nor the directories that were made for them. */
static void
clean_up(struct disk *d, const struct plan *p, const struct store_op *ops, size_t n)
{
	char name[16];
	size_t i;

	if ((d->journal.seq & 1) != 0)
		return;		/* decided, and to be finished by the next */
	for (i = 0; i < p->n; i++)
		if (p->steps[i].kind == STEP_RENAME) {
			staged_name(name, p->steps[i].staged);
			unlinkat(d->tmp, name, 0);
		}
	for (i = 0; i < n; i++)
		if (ops[i].kind != STORE_OP_EXPECT)
			prune(d, ops[i].path);
}

static int
disk_commit(void *self, struct store_op *ops, size_t n, struct err *e)
{
	struct disk *d = self;
	struct plan p = { 0 };
	int rc = root_for_change(d, ops, n, e);

	if (rc <= 0)
		return rc;
	if (change_begin(d, e) < 0)
		return -1;
	rc = plan_make(d, &p, ops, n, e);
	if (rc == 0 && p.n > 0)
		rc = carry_out(d, &p, e);
	if (rc < 0)
		clean_up(d, &p, ops, n);
	journal_unlock(&d->journal);
	plan_release(&p);
	return rc;
}

static int
disk_lock(void *self, const char *path, int64_t ttl_ms, int64_t wait_ms, void **lock, struct err *e)
{
	struct disk *d = self;
	int fd;

	(void)ttl_ms;	/* the kernel lets go of it when its holder dies */
	if (root_for_change(d, NULL, 0, e) < 0)
		return -1;
	if ((fd = private_file(d, "locks", e)) < 0)
		return -1;
	close(fd);
	return rangelock_new((struct rangelock **)lock, d->private, "locks", path, wait_ms, e);
}

static void
disk_unlock(void *lock)
{
	rangelock_free(lock);
}

const struct store_backend store_disk = {
	.scheme = "disk",
	.summary = "a directory of plain files",
	.open = disk_open,
	.close = disk_close,
	.stat = disk_stat,
	.list = disk_list,
	.file_open = disk_file_open,
	.file_read = disk_file_read,
	.file_close = disk_file_close,
	.commit = disk_commit,
	.lock = disk_lock,
	.unlock = disk_unlock,
};

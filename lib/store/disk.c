/*
 * disk: plain files below a directory, the tree of AG2's disk store. What we add is below /.ag2: lock (see journal.h),
 * locks (for store_lock), tmp/ (files that are being written, things that are being deleted).
 *
 * A file's version is its modification time in nanoseconds, which every change of ours sets, or leaves to the kernel where that
 * stamps as finely (see journal_stamps): greater than before, and greater than any that was given out but to a file dated more
 * than a day ahead, which goes on from there alone. A file that is written whole is made in tmp and renamed, so that a reader
 * keeps the one it has open; one that is appended to grows in place. AG2 itself appends with O_APPEND and writes in place,
 * both without a lock: the offset of an append is therefore where it really went, and a redone append looks first.
 */
#include "store/disk.h"

#include "base/alloc.h"
#include "lock.h"
#include "path.h"
#include "store/beneath.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define UNLOCKED_VIEWS 8	/* looks at something that keeps changing before the lock is taken for it */


/* ---- Opening and closing ---- */

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

int
disk_root_open(struct disk *d, struct err *e)
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
	plan_release(&d->plan);
	free(d->where);
	free(d);
}

static int
disk_open(void **self, const char *where, const char *own, const struct store_options *o, struct err *e)
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
	d->journal.may_map = !disk_full(d);
	rc = disk_root_open(d, e);
	if (rc == 0 && o->mode != STORE_CREATE)
		rc = err_set(e, ERR_NOINPUT, "there is no store at '%s'", where);
	if (rc < 0) {
		disk_close(d);
		return -1;
	}
	*self = d;
	return 0;
}

int
disk_sync_dir(struct disk *d, int fd)
{
	int again, rc;

	if (!disk_full(d))
		return 0;
	/* What was opened with O_PATH cannot be synced. */
	again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (again < 0)
		return -1;
	rc = fsync(again);
	close(again);
	return rc;
}

int
disk_adopt(const struct disk *d, int fd, mode_t mode, uid_t uid, gid_t gid)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	if ((st.st_uid != uid || st.st_gid != gid) && fchown(fd, geteuid() == 0 ? uid : (uid_t)-1, gid) < 0 && errno != EPERM)
		return -1;
	return (st.st_mode & 07777) == mode ? 0 : fchmod(fd, mode);
}

int
disk_make_dir(struct disk *d, int at, const char *name)
{
	int fd, rc;

	/* Should we die before it is synced: who comes then has to know. */
	if (d->journal.held && (d->journal.flags & JOURNAL_LOOSE) == 0 && journal_flag(&d->journal, JOURNAL_LOOSE, NULL) < 0)
		return -1;
	if (mkdirat(at, name, 0700) < 0)
		return errno == EEXIST ? 0 : -1;
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	rc = disk_adopt(d, fd, d->like.st_mode & 07777, d->like.st_uid, d->like.st_gid);
	close(fd);
	return rc < 0 ? -1 : disk_sync_dir(d, at);
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
			if (disk_sync_dir(d, at) < 0)
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
	if (rc == 0 && disk_root_open(d, e) != 1)
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
		if (*fd < 0 && errno == ENOENT && i == 0 && disk_make_dir(d, at, name) == 0)
			continue;
		if (*fd < 0 && (errno == ENOTDIR || errno == ELOOP))
			return err_set(e, ERR_DATA, "'%s' of the store is no directory: fsck --repair moves aside what is there", name);
		if (*fd < 0)
			return err_sys(e, "cannot open '%s' of the store", name);
	}
	return 0;
}

int
disk_private_open(struct disk *d, struct err *e)
{
	if (removed(d->private))
		close_fd(&d->private);
	return open_own(d, d->root, PRIVATE, &d->private, e);
}

int
disk_tmp_open(struct disk *d, struct err *e)
{
	if (disk_private_open(d, e) < 0)
		return -1;
	if (removed(d->tmp))
		close_fd(&d->tmp);
	return open_own(d, d->private, "tmp", &d->tmp, e);
}

/* A file in /.ag2 as all who may change the store can open it. */
static int
private_file(struct disk *d, const char *name, struct err *e)
{
	struct stat st;
	int fd, i;

	if (disk_private_open(d, e) < 0)
		return -1;
	for (i = 0; i < 3; i++) {
		fd = openat(d->private, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 || errno != ENOENT)
			break;
		fd = openat(d->private, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd < 0 || (disk_adopt(d, fd, disk_file_mode(d), d->like.st_uid, d->like.st_gid) == 0 && disk_sync_dir(d, d->private) == 0))
			break;
		close_fd(&fd);
		break;
	}
	if (fd < 0 ? errno == ELOOP || errno == EISDIR || errno == ENXIO : fstat(fd, &st) == 0 && !S_ISREG(st.st_mode)) {
		close_fd(&fd);
		return err_set(e, ERR_DATA, "'/" PRIVATE "/%s' is no file: fsck --repair moves aside what is there", name);
	}
	return fd >= 0 ? fd : err_sys(e, "cannot open '/" PRIVATE "/%s'", name);
}

static int
make_journal(void *arg, struct err *e)
{
	return private_file(arg, "lock", e);
}

/* ---- Looking without a lock: begin, look, and once more unless view_end says that nothing changed meanwhile ---- */

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
	if (v->locked && (d->journal.seq & 1) != 0 && disk_recover(d, e) < 0) {
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

/* ---- What is at a path ---- */

uint64_t
disk_version_of(const struct stat *st)
{
	int64_t s = st->st_mtim.tv_sec;
	uint64_t v;

	if (s < 0)
		return 1;
	if (s >= JOURNAL_VERSION_MAX / 1000000000)
		return JOURNAL_VERSION_MAX;
	v = (uint64_t)s * 1000000000 + (uint64_t)st->st_mtim.tv_nsec;
	return v > 0 ? v : 1;
}

static void
describe(const struct stat *from, struct store_stat *st)
{
	st->dir = S_ISDIR(from->st_mode);
	st->size = st->dir ? 0 : (uint64_t)from->st_size;
	st->version = st->dir ? 0 : disk_version_of(from);
	st->mtime = (double)from->st_mtim.tv_sec + (double)from->st_mtim.tv_nsec / 1e9;
}

static int
is_file(void *arg, const char *path, unsigned char type)
{
	const int *root = arg;
	struct stat st;

	if (type == DT_LNK)
		return beneath_stat(*root, path, &st) == 0 && S_ISREG(st.st_mode);
	return type == DT_REG || type == DT_DIR;	/* a directory that may not be read: what is in it must not go unnoticed */
}

/* A directory without files is not there; nor does what we keep for ourselves make the root be there. */
bool
disk_has_files(struct disk *d, const char *path)
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
	return S_ISDIR(st->st_mode) && disk_has_files(d, path);
}

static int
disk_stat(void *self, const char *path, struct store_stat *out, struct err *e)
{
	struct disk *d = self;
	struct view v = { 0 };
	struct err why;
	struct stat st;
	int rc = disk_root_open(d, e);

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

/* ---- Listing ---- */

struct entry {
	uint64_t key;
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

/* The first eight bytes of what a listing shows of it: where those of two differ, the names differ in the same way. */
static uint64_t
key_of(const char *name, bool dir)
{
	char head[sizeof(uint64_t)] = "";
	size_t n = strnlen(name, sizeof(head));
	uint64_t key;

	memcpy(head, name, n);
	if (dir && n < sizeof(head))
		head[n] = '/';
	memcpy(&key, head, sizeof(key));
	return be64toh(key);
}

static int
by_name(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
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

	if (de->d_type == DT_UNKNOWN || (want_stat && de->d_type == DT_REG))
		seen = fstatat(fd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (seen && !S_ISREG(st.st_mode))
		buf_addf(&child, "%s/%s", path[1] == '\0' ? "" : path, de->d_name);
	if (seen && S_ISLNK(st.st_mode))
		seen = beneath_stat(d->root, child.data, &st) == 0 && !(S_ISDIR(st.st_mode) && leads_back(d, fd, &st));
	if (seen && S_ISDIR(st.st_mode))
		seen = disk_has_files(d, child.data);
	else if (seen)
		seen = S_ISREG(st.st_mode);
	if (seen) {
		l->e = xgrow(l->e, l->n, &l->cap, sizeof(*l->e));
		l->e[l->n].name = xstrdup(de->d_name);
		l->e[l->n].key = key_of(de->d_name, S_ISDIR(st.st_mode));
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
	int rc = disk_root_open(d, e);

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

/* ---- Reading ---- */

struct disk_file {
	int fd;
	uint64_t size;		/* when it was opened: what is appended later is another version */
	char *path;
};

int
disk_file_fd(struct disk *d, const char *path, struct stat *st, struct err *e)
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
	int fd = -1, rc = disk_root_open(d, e);

	if (rc < 0)
		return -1;
	if (rc == 0)
		return err_set(e, ERR_ABSENT, "'%s' is not in the store", path);
	do {
		close_fd(&fd);
		if (view_begin(d, &v, e) < 0)
			return -1;
		fd = disk_file_fd(d, path, &st, &why);
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

/* ---- Committing ---- */

static void
tidy(struct disk *d)
{
	if ((d->journal.flags & JOURNAL_PURGE) == 0 || disk_tmp_open(d, NULL) < 0)
		return;
	disk_purge(d);
	d->journal.flags &= ~(uint32_t)JOURNAL_PURGE;
	journal_end(&d->journal, NULL);
}

/* What changes without sync=full, or of a dead process, have left in the kernel's memory may be what this change builds on. */
static int
settle(struct disk *d, struct err *e)
{
	if ((d->journal.flags & JOURNAL_LOOSE) == 0)
		return 0;
	if (syncfs(d->journal.fd) < 0)
		return err_sys(e, "cannot sync the store '%s'", d->where);
	d->journal.flags &= ~(uint32_t)JOURNAL_LOOSE;
	return 0;
}

/* Once journal_begin has returned, the change happens: here, or by whoever comes next when we die. */
static int
carry_out(struct disk *d, struct plan *p, struct err *e)
{
	size_t i;
	int rc = -1;

	for (i = 0; i < p->n && !disk_full(d); i++)
		if (p->steps[i].kind != STEP_APPEND || p->steps[i].create)
			d->journal.flags |= JOURNAL_LOOSE;
	plan_encode(p, disk_full(d));
	if (d->tmp >= 0 && disk_sync_dir(d, d->tmp) < 0)
		err_sys(e, "cannot write '%s'", d->where);
	else
		rc = journal_begin(&d->journal, &p->record, p->data, p->n, disk_full(d), e);
	if (rc == 0)
		rc = plan_apply(d, p, e);
	if (disk_full(d))
		d->journal.flags = rc == 0 ? d->journal.flags & ~(uint32_t)JOURNAL_LOOSE : d->journal.flags | JOURNAL_LOOSE;
	/* When the end cannot be written the next one finds the change complete. */
	if (rc == 0 || plan_undo(d, p))
		journal_end(&d->journal, NULL);
	for (i = 0; i < p->n && rc == 0; i++)
		p->steps[i].op->version = p->steps[i].version;
	if (rc == 0)
		tidy(d);
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
			return store_conflict(ops[i].path, e);
		need |= ops[i].kind == STORE_OP_WRITE || ops[i].kind == STORE_OP_APPEND;
	}
	return need;
}

/* The root is open when this returns 1; 0: there is none, and none is needed. */
static int
root_for_change(struct disk *d, const struct store_op *ops, size_t n, struct err *e)
{
	int rc = disk_root_open(d, e);

	if (rc != 0)
		return rc;
	if (d->o.mode != STORE_CREATE)
		return err_set(e, ERR_NOINPUT, "there is no store at '%s' any more", d->where);
	rc = ops != NULL ? nowhere(ops, n, e) : 1;
	if (rc <= 0)
		return rc;
	return root_make(d, e) < 0 ? -1 : 1;
}

/* The journal is held when this returns 1; 0: there is no store, and none is needed. */
static int
lock_for_change(struct disk *d, const struct store_op *ops, size_t n, struct err *e)
{
	/* That the journal is there tells that the root is. */
	int rc = journal_retake(&d->journal, d->o.timeout_ms, e);

	if (rc == 0 && (rc = root_for_change(d, ops, n, e)) == 1 &&
	    journal_lock(&d->journal, d->root, true, make_journal, d, d->o.timeout_ms, e) < 0)
		rc = -1;
	return rc;
}

static int
change_begin(struct disk *d, const struct store_op *ops, size_t n, struct err *e)
{
	int rc = lock_for_change(d, ops, n, e);

	if (rc <= 0)
		return rc;
	if ((d->journal.seq & 1) != 0 && disk_recover(d, e) < 0) {
		journal_unlock(&d->journal);
		return -1;
	}
	if (disk_full(d) && settle(d, e) < 0) {
		journal_unlock(&d->journal);
		return -1;
	}
	tidy(d);
	return 1;
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
			plan_staged(name, p->steps[i].staged);
			unlinkat(d->tmp, name, 0);
		}
	for (i = 0; i < n; i++)
		if (ops[i].kind != STORE_OP_EXPECT)
			disk_prune(d, ops[i].path);
}

static int
disk_commit(void *self, struct store_op *ops, size_t n, struct err *e)
{
	struct disk *d = self;
	struct plan *p = &d->plan;
	int rc = change_begin(d, ops, n, e);

	if (rc <= 0)
		return rc;
	rc = plan_make(d, p, ops, n, e);
	if (rc == 0 && p->n > 0)
		rc = carry_out(d, p, e);
	if (rc < 0)
		clean_up(d, p, ops, n);
	journal_unlock(&d->journal);
	plan_clear(p);
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
	return rangelock_new((struct rangelock **)lock, d->private, "locks", NULL, path, wait_ms, e);
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
	.pieces = true,
	.commit = disk_commit,
	.lock = disk_lock,
	.unlock = disk_unlock,
	.watch = disk_watch,
	.watch_wait = disk_watch_wait,
	.watch_close = disk_watch_close,
	.check = disk_check,
};

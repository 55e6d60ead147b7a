#include "store/disk.h"

#include "base/alloc.h"
#include "base/io.h"
#include "base/sha1.h"
#include "path.h"
#include "store/beneath.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define CHUNK (256 * 1024)
#define COPY_MAX (1u << 30)
#define KEPT (64 * 1024)	/* of a record: a plan that was larger leaves no memory to the next */

/* ---- Plans, and the directories of paths ---- */

void
plan_clear(struct plan *p)
{
	while (p->n > 0) {
		close_fd(&p->steps[--p->n].fd);
		if (p->again)
			free((char *)p->steps[p->n].path);
	}
	while (p->nmoves > 0) {
		free(p->moves[--p->nmoves].dir);
		free(p->moves[p->nmoves].name);
	}
	buf_reset(&p->record);
	if (p->record.cap > KEPT)
		plan_release(p);
}

void
plan_release(struct plan *p)
{
	buf_release(&p->record);
	plan_clear(p);
	free(p->steps);
	free(p->moves);
	free(p->data);
	*p = (struct plan){ 0 };
}

struct step *
plan_add(struct plan *p, enum step_kind kind, const char *path)
{
	struct step *s;

	p->steps = xgrow(p->steps, p->n, &p->cap, sizeof(*p->steps));
	s = &p->steps[p->n++];
	memset(s, 0, sizeof(*s));
	s->kind = kind;
	s->path = path;
	s->fd = -1;
	return s;
}

char *
disk_dir_of(const char *path)
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
		next = disk_make_dir(d, at, name) < 0 ? -1 : openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
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

int
disk_parent(struct disk *d, const char *path, bool make, struct err *e)
{
	char *dir = disk_dir_of(path);
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

bool
disk_reserved(const char *path)
{
	return path_private(path) && (path_within(path, "/" PRIVATE "/lock") || path_within(path, "/" PRIVATE "/locks") || path_within(path, "/" PRIVATE "/tmp"));
}

/* Removes the directories above path that have become empty, but never our own. */
void
disk_prune(struct disk *d, const char *path)
{
	char *dir = disk_dir_of(path), *up;
	bool more = true;
	int at;

	while (more && dir[1] != '\0' && strcmp(dir, "/" PRIVATE) != 0 && !disk_reserved(dir)) {
		up = disk_dir_of(dir);
		at = beneath_open(d->root, up, O_PATH | O_DIRECTORY, 0);
		more = at >= 0 ? unlinkat(at, path_name(dir), AT_REMOVEDIR) == 0 || errno == ENOENT : errno == ENOENT;
		if (at >= 0 && more)
			disk_sync_dir(d, at);
		close_fd(&at);
		free(dir);
		dir = up;
	}
	free(dir);
}

/* ---- Planning: all that can be refused is refused here, before anything changes ---- */

static int
check_version(struct disk *d, const struct store_op *op, struct err *e)
{
	struct stat st;
	int rc = beneath_stat(d->root, op->path, &st);

	if (rc < 0 && !beneath_absent(errno))
		return err_sys(e, "cannot look at '%s'", op->path);
	return (rc == 0 && S_ISREG(st.st_mode) ? disk_version_of(&st) : 0) == op->version ? 0 : store_conflict(op->path, e);
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
	int fd = disk_file_fd(d, op->path, &st, &why);

	if (fd < 0)
		return why.code == ERR_ABSENT ? store_conflict(op->path, e) : err_set(e, why.code, "%s", why.msg);
	if (op->unchecked) {
		close(fd);
		return op->upto <= (uint64_t)st.st_size ? 0 : store_conflict(op->path, e);
	}
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
	return at == op->upto && memcmp(sum, op->sha1, sizeof(sum)) == 0 ? 0 : store_conflict(op->path, e);
}

static int
check_all(struct disk *d, const struct store_op *ops, size_t n, struct err *e)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++) {
		if (ops[i].kind == STORE_OP_EXPECT)
			rc = check_version(d, &ops[i], e);
		else if (disk_reserved(ops[i].path))
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
	return disk_has_files(d, path) ? err_set(e, ERR_CREATE, "cannot create '%s': it is a directory", path) : 0;
}

/* The next version of the file, of which `old` is NULL when it is not there. */
static int
next_version(struct disk *d, const char *path, const struct stat *old, uint64_t *version, bool *timely, struct err *e)
{
	uint64_t has = old != NULL ? disk_version_of(old) : 0;

	if (has >= JOURNAL_VERSION_MAX)
		return err_set(e, ERR_DATA, "'%s' has a time beyond all that a version can be, so that it cannot get a greater one; fsck --repair sets it to now", path);
	*version = journal_version(&d->journal, has, timely);
	return 0;
}

static int
plan_append(struct disk *d, struct plan *p, struct store_op *op, struct err *e)
{
	int fd = beneath_open(d->root, op->path, O_WRONLY | O_APPEND, 0), parent, rc = 0;
	struct stat st = { 0 };
	struct step *s;
	bool timely;

	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		return err_set(e, ERR_CREATE, "cannot append to '%s': it is there and no file", op->path);
	}
	if (fd < 0 && !beneath_absent(errno) && errno != EISDIR && errno != ENXIO)
		return err_sys(e, "cannot append to '%s'", op->path);
	if (fd < 0) {
		if ((parent = disk_parent(d, op->path, true, e)) < 0)
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
	if (next_version(d, op->path, fd >= 0 ? &st : NULL, &s->version, &timely, e) < 0)
		return -1;
	/* With sync=full the time that counts is one that goes to the disk behind the data. */
	s->stamped = timely && fd >= 0 && op->len > 0 && !disk_full(d) && journal_stamps(&d->journal, &st);
	s->data = op->data;
	s->len = op->len;
	return 0;
}

void
plan_staged(char name[16], unsigned n)
{
	snprintf(name, 16, "%u", n);
}

/* A new file in tmp. One that is there already was left by a dead writer. */
static int
stage_create(struct disk *d, unsigned n)
{
	char name[16];
	int fd;

	plan_staged(name, n);
	fd = openat(d->tmp, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0 || errno != EEXIST || unlinkat(d->tmp, name, 0) < 0)
		return fd;
	return openat(d->tmp, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

/* Up to len bytes at `at` to the end of `to`; the kernel moves them where it can. How many there were, -1 with errno set. */
static ssize_t
copy_some(int from, off_t at, int to, size_t len)
{
	ssize_t n = copy_file_range(from, &at, to, NULL, len, 0);
	char *chunk;

	if (n > 0 || (n < 0 && (errno == EIO || errno == ENOSPC || errno == EDQUOT || errno == EFBIG)))
		return n;
	chunk = xmalloc(CHUNK);
	do
		n = pread(from, chunk, len < CHUNK ? len : CHUNK, at);
	while (n < 0 && errno == EINTR);
	if (n > 0 && io_write_all(to, chunk, (size_t)n) < 0)
		n = -1;
	free(chunk);
	return n;
}

static int
copy_piece(struct disk *d, const struct store_op *op, const struct store_piece *piece, int to, struct err *e)
{
	struct stat st;
	struct err why = ERR_INIT;
	int from = disk_file_fd(d, piece->from, &st, &why), rc = 0;
	uint64_t done = 0;
	ssize_t n;

	if (from < 0)
		return why.code == ERR_ABSENT ? store_conflict(piece->from, e) : err_set(e, why.code, "%s", why.msg);
	while (rc == 0 && done < piece->len) {
		n = copy_some(from, (off_t)(piece->offset + done), to, (size_t)(piece->len - done));
		if (n < 0)
			rc = err_sys(e, "cannot write '%s'", op->path);
		else if (n == 0)
			rc = store_conflict(piece->from, e);
		done += (uint64_t)n;
	}
	close(from);
	return rc;
}

static int
write_content(struct disk *d, const struct store_op *op, int to, struct err *e)
{
	const struct store_piece *p;
	size_t i;

	if (op->npieces == 0)
		return io_write_all(to, op->data, op->len) < 0 ? err_sys(e, "cannot write '%s'", op->path) : 0;
	for (i = 0; i < op->npieces; i++) {
		p = &op->pieces[i];
		if (p->from != NULL && copy_piece(d, op, p, to, e) < 0)
			return -1;
		if (p->from == NULL && io_write_all(to, (const char *)op->data + p->offset, (size_t)p->len) < 0)
			return err_sys(e, "cannot write '%s'", op->path);
	}
	return 0;
}

/* What lies behind the replaced prefix. */
static int
copy_rest(struct disk *d, const struct store_op *op, int to, struct err *e)
{
	struct stat st;
	int from = disk_file_fd(d, op->path, &st, e), rc = 0;
	off_t at = (off_t)op->upto;
	ssize_t n;

	if (from < 0)
		return -1;
	while (rc == 0 && (n = copy_some(from, at, to, COPY_MAX)) != 0) {
		if (n < 0)
			rc = err_sys(e, "cannot write '%s'", op->path);
		at += n;
	}
	close(from);
	return rc;
}

int
disk_set_version(int fd, uint64_t version)
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
	if (write_content(d, op, fd, e) < 0)
		rc = -1;
	else if (op->kind == STORE_OP_REPLACE_PREFIX && copy_rest(d, op, fd, e) < 0)
		rc = -1;
	else if (disk_adopt(d, fd, old ? old->st_mode & 0777 : disk_file_mode(d), old ? old->st_uid : d->like.st_uid, old ? old->st_gid : d->like.st_gid) < 0 ||
	    disk_set_version(fd, s->version) < 0 || (disk_full(d) && fsync(fd) < 0))
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
	bool timely;

	if (disk_tmp_open(d, e) < 0 || (parent = disk_parent(d, op->path, true, e)) < 0)
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
	if (next_version(d, op->path, there ? &old : NULL, &s->version, &timely, e) < 0)
		return -1;
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

	if (type == DT_REG && beneath_stat(n->d->root, path, &st) == 0 && disk_version_of(&st) > n->version)
		n->version = disk_version_of(&st);
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
		if (!disk_has_files(d, "/"))
			return 0;
		st.st_mode = S_IFDIR;
	} else {
		parent = disk_parent(d, op->path, false, e);
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
		newest.version = disk_version_of(&st);
	if (newest.version > d->journal.last && newest.version < JOURNAL_VERSION_MAX)
		d->journal.last = newest.version;
	plan_add(p, STEP_DELETE, op->path)->op = op;
	return disk_tmp_open(d, e);
}

static int
by_kind(const void *a, const void *b)
{
	return (int)((const struct step *)a)->kind - (int)((const struct step *)b)->kind;
}

int
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

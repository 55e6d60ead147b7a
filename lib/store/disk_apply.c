#include "store/disk.h"

#include "base/alloc.h"
#include "base/io.h"
#include "base/log.h"
#include "base/sha1.h"
#include "path.h"
#include "store/beneath.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define REDO_MAX (1024u * 1024 * 1024)	/* of a file that an append is redone in */

/* ---- Applying, first or again ---- */

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
		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0 || strcmp(child.data, "/" PRIVATE) == 0 || disk_reserved(child.data))
			continue;
		rc = put_aside(d, p, fd, path, de->d_name);
	}
	if (rc == 0)
		rc = disk_sync_dir(d, fd);
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
	if (disk_tmp_open(d, e) < 0)
		return -1;
	if (strcmp(s->path, "/") == 0 || strcmp(s->path, "/" PRIVATE) == 0) {
		rc = delete_inside(d, p, s->path);
	} else if ((parent = disk_parent(d, s->path, false, e)) < 0) {
		rc = beneath_absent(errno) ? 0 : -1;
	} else {
		/* A single file goes at once; what may have to be undone is put aside. */
		rc = p->n == 1 ? unlinkat(parent, path_name(s->path), 0) : -1;
		if (rc < 0 && p->n == 1 && errno == ENOENT)
			rc = 0;
		else if (rc < 0 && (p->n > 1 || errno == EISDIR || errno == EPERM)) {
			dir = disk_dir_of(s->path);
			rc = put_aside(d, p, parent, dir, path_name(s->path));
			free(dir);
		}
		if (rc == 0)
			rc = disk_sync_dir(d, parent);
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

	if (disk_has_files(d, path)) {
		errno = EISDIR;
		return -1;
	}
	if (disk_tmp_open(d, NULL) < 0 || (parent = disk_parent(d, path, false, NULL)) < 0)
		return -1;
	dir = disk_dir_of(path);
	rc = put_aside(d, p, parent, dir, path_name(path));
	free(dir);
	close(parent);
	return rc;
}

static int
append_create(struct disk *d, struct plan *p, struct step *s, struct err *e)
{
	int parent = disk_parent(d, s->path, true, e), i;
	const char *name = path_name(s->path);

	if (parent < 0)
		return -1;
	for (i = 0; s->fd < 0 && i < 3; i++) {
		s->fd = openat(parent, name, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (s->fd >= 0 && (disk_adopt(d, s->fd, disk_file_mode(d), d->like.st_uid, d->like.st_gid) < 0 || disk_sync_dir(d, parent) < 0))
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

/* Whether that is what a loss of power may leave of the data: of each sector the bytes or zeros. */
static bool
partly_written(const struct buf *there, const char *data, size_t len)
{
	size_t i = 0;

	while (i < there->len && i < len && (there->data[i] == data[i] || there->data[i] == '\0'))
		i++;
	return i == there->len;
}

/*
 * How many bytes of the data of an append that a dead writer began are in the file. A killed write(2) may have written
 * any part of them, none with a new time among it. After a loss of power the journal of changes made without sync=full
 * may be older than the file: one that was changed since had the append complete. With it the journal is first on the
 * disk, and the file may have any part of the data, zeros for the rest; these are taken away.
 */
static int
already_there(const struct step *s, bool full, uint64_t *have, struct err *e)
{
	struct stat st;
	struct buf rest = BUF_INIT_MAX(REDO_MAX);
	bool newer;
	int rc;

	*have = 0;
	if (fstat(s->fd, &st) < 0)
		return err_sys(e, "cannot look at '%s'", s->path);
	newer = disk_version_of(&st) >= s->version && before_boot(s->version);
	if ((uint64_t)st.st_size <= s->old_size) {
		*have = newer && (!full || (uint64_t)st.st_size < s->old_size) ? s->len : 0;
		return 0;
	}
	if (lseek(s->fd, (off_t)s->old_size, SEEK_SET) < 0)
		return err_sys(e, "cannot read '%s'", s->path);
	rc = io_read_all(s->fd, &rest, s->path, e);
	if (rc == 0 && rest.len <= s->len && memcmp(rest.data, s->data, rest.len) == 0)
		*have = rest.len;
	else if (rc == 0 && full && partly_written(&rest, s->data, (size_t)s->len))
		rc = ftruncate(s->fd, (off_t)s->old_size) == 0 ? 0 : err_sys(e, "cannot write '%s'", s->path);
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
 * The file's new version (done again: unless it has a newer one by now). Who may write a file that is another's may only set its
 * time to now, which the kernel takes from a clock that moves every few milliseconds: wait for it to pass the old version.
 */
static int
rise(int fd, struct step *s, bool again)
{
	struct timespec pause = { .tv_nsec = 1000000 };
	struct stat st;
	int i, rc;

	if (again && fstat(fd, &st) == 0 && disk_version_of(&st) >= s->version)
		return 0;
	rc = disk_set_version(fd, s->version);

	for (i = 0; rc < 0 && errno == EPERM && i < 50; i++) {
		if (futimens(fd, NULL) < 0 || fstat(fd, &st) < 0)
			return -1;
		if (disk_version_of(&st) >= s->version || i == 49) {
			s->version = disk_version_of(&st);
			return 0;
		}
		nanosleep(&pause, NULL);
		errno = EPERM;
	}
	return rc;
}

/*
 * The version of the file after an append to it, and where its bytes are: not at the size from before, if others have appended
 * in between, which the size from after tells. A write of nothing does not move to the end.
 */
static int
look_after(struct step *s, struct journal *j, bool again)
{
	bool blind = s->op == NULL || s->op->blind;
	struct stat st;
	off_t end = -1;

	if (s->stamped && blind)
		return 0;
	if (s->stamped && fstat(s->fd, &st) == 0 && disk_version_of(&st) >= s->version) {
		s->version = disk_version_of(&st);
		if (s->version > j->last)
			j->last = s->version;
		if ((uint64_t)st.st_size == s->old_size + s->len)
			end = st.st_size;
	} else if (rise(s->fd, s, again) < 0) {
		return -1;
	}
	if (blind)
		return 0;
	if (end < 0 && (end = lseek(s->fd, 0, s->len > 0 ? SEEK_CUR : SEEK_END)) < 0)
		return -1;
	s->op->offset = (uint64_t)end - s->len;
	return 0;
}

static int
apply_append(struct disk *d, struct plan *p, struct step *s, struct err *e)
{
	if (s->fd < 0 && !s->create) {
		s->fd = beneath_open(d->root, s->path, O_RDWR | O_APPEND, 0);
		if (s->fd < 0 && beneath_absent(errno))
			return 0;	/* deleted since: what was appended went with it */
		if (s->fd < 0)
			return err_sys(e, "cannot append to '%s'", s->path);
	}
	if (s->fd < 0 && append_create(d, p, s, e) < 0)
		return -1;
	if (p->again && already_there(s, (d->journal.flags & JOURNAL_FULL) != 0, &s->written, e) < 0)
		return -1;
	if (write_counted(s->fd, s->data, s->len, &s->written) < 0)
		return err_sys(e, "cannot append to '%s'", s->path);
	if (look_after(s, &d->journal, p->again) < 0 || (disk_full(d) && fsync(s->fd) < 0))
		return err_sys(e, "cannot append to '%s'", s->path);
	return 0;
}

static int
apply_rename(struct disk *d, struct plan *p, struct step *s, struct err *e)
{
	char name[16];
	struct stat st;
	int parent, rc;

	if (disk_tmp_open(d, e) < 0)
		return -1;
	plan_staged(name, s->staged);
	if (p->again && (fstatat(d->tmp, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) || disk_version_of(&st) != s->version))
		return 0;	/* renamed before */
	if ((parent = disk_parent(d, s->path, true, e)) < 0)
		return -1;
	rc = renameat(d->tmp, name, parent, path_name(s->path));
	if (rc < 0 && errno == EISDIR && clear_directory(d, p, s->path) == 0)
		rc = renameat(d->tmp, name, parent, path_name(s->path));
	if (rc == 0)
		rc = disk_sync_dir(d, parent);
	if (rc < 0)
		err_sys(e, "cannot write '%s'", s->path);
	close(parent);
	return rc;
}

int
plan_apply(struct disk *d, struct plan *p, struct err *e)
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
			disk_prune(d, p->steps[i].path);
	return rc;
}

/* ---- Undoing ---- */

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
	if ((parent = disk_parent(d, s->path, false, NULL)) < 0)
		return;
	unlinkat(parent, path_name(s->path), 0);
	close(parent);
	disk_prune(d, s->path);
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
bool
plan_undo(struct disk *d, struct plan *p)
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

/* ---- The record in the journal: what plan_apply needs, step by step; the data of the appends follow it ---- */

/* Of one step, little-endian; its path follows. */
struct recorded {
	uint64_t kind_staged, version, old_size_create, len;
	unsigned char sum[20];
	uint64_t path_len;
} __attribute__((packed));

static void
data_sum(const struct step *s, unsigned char sum[20])
{
	struct sha1 h;

	sha1_init(&h);
	sha1_add(&h, s->data, (size_t)s->len);
	sha1_end(&h, sum);
}

void
plan_encode(struct plan *p, bool full)
{
	struct buf *record = &p->record;
	struct recorded r;
	size_t i, len;

	while (p->data_cap < p->n)
		p->data = xgrow(p->data, p->data_cap, &p->data_cap, sizeof(*p->data));
	for (i = 0; i < p->n; i++) {
		struct step *s = &p->steps[i];

		len = strlen(s->path);
		if (full && s->kind == STEP_APPEND)
			data_sum(s, s->sum);
		r = (struct recorded){
			.kind_staged = htole64((uint64_t)s->kind << 32 | s->staged),
			.version = htole64(s->version),
			.old_size_create = htole64(s->old_size << 1 | s->create),
			.len = htole64(s->len),
			.path_len = htole64(len),
		};
		memcpy(r.sum, s->sum, sizeof(r.sum));
		buf_add(record, &r, sizeof(r));
		buf_add(record, s->path, len);
		p->data[i].iov_base = (void *)s->data;
		p->data[i].iov_len = s->kind == STEP_APPEND ? (size_t)s->len : 0;
	}
}

/* Paths were normalised before they were recorded; what is damaged has no right checksum. */
static bool
decode_step(const struct buf *record, size_t *at, struct plan *p)
{
	uint64_t kind, path_len;
	struct recorded r;
	struct step *s;

	if (record->len - *at < sizeof(r))
		return false;
	memcpy(&r, record->data + *at, sizeof(r));
	*at += sizeof(r);
	kind = le64toh(r.kind_staged);
	path_len = le64toh(r.path_len);
	if (path_len > record->len - *at || path_len == 0 || record->data[*at] != '/' || kind >> 32 > STEP_RENAME)
		return false;
	s = plan_add(p, (enum step_kind)(kind >> 32), xmemdup0(record->data + *at, (size_t)path_len));
	*at += (size_t)path_len;
	s->staged = (unsigned)kind;
	s->version = le64toh(r.version);
	s->old_size = le64toh(r.old_size_create) >> 1;
	s->create = le64toh(r.old_size_create) & 1;
	s->len = le64toh(r.len);
	memcpy(s->sum, r.sum, sizeof(r.sum));
	return true;
}

/* ---- Clearing away ---- */

static bool
is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Empties a directory in tmp and removes it. Whether directories that were in it have been moved up into tmp. */
static bool
flatten(struct disk *d, const char *name)
{
	int fd = openat(d->tmp, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *de;
	char gone[16];
	bool moved = false;
	DIR *dir;

	if (fd < 0 || (dir = fdopendir(fd)) == NULL) {
		close_fd(&fd);
		return false;
	}
	while ((de = readdir(dir)) != NULL) {
		if (is_dots(de->d_name) || unlinkat(fd, de->d_name, 0) == 0)
			continue;
		snprintf(gone, sizeof(gone), "g%u", ++d->gone);
		moved = renameat(fd, de->d_name, d->tmp, gone) == 0 || moved;
	}
	closedir(dir);
	unlinkat(d->tmp, name, AT_REMOVEDIR);
	return moved;
}

/* Directories in directories are moved up first, so that no depth is too deep. */
void
disk_purge(struct disk *d)
{
	struct dirent *de;
	bool more = true;
	DIR *dir;
	int fd;

	while (more) {
		more = false;
		fd = openat(d->tmp, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 || (dir = fdopendir(fd)) == NULL) {
			close_fd(&fd);
			return;
		}
		while ((de = readdir(dir)) != NULL)
			if (!is_dots(de->d_name) && unlinkat(d->tmp, de->d_name, 0) < 0)
				more = flatten(d, de->d_name) || more;
		closedir(dir);
	}
}

/* ---- Recovery ---- */

static int
load_data(struct disk *d, struct plan *p, uint64_t at, struct buf *data, struct err *e)
{
	uint64_t used = 0;
	unsigned char sum[20];
	size_t i;

	for (i = 0; i < p->n; i++)
		if (p->steps[i].kind == STEP_APPEND && journal_data(&d->journal, at + data->len, p->steps[i].len, data, e) < 0)
			return -1;
	for (i = 0; i < p->n; i++)
		if (p->steps[i].kind == STEP_APPEND) {
			p->steps[i].data = data->data + used;
			used += p->steps[i].len;
			data_sum(&p->steps[i], sum);
			if ((d->journal.flags & JOURNAL_FULL) != 0 && memcmp(sum, p->steps[i].sum, sizeof(sum)) != 0)
				return err_set(e, ERR_DATA, "its data are not all on the disk");
		}
	return 0;
}

int
plan_load(struct disk *d, struct plan *p, struct buf *data, struct err *e)
{
	struct buf record = BUF_INIT;
	uint64_t data_at;
	size_t at = 0;
	int rc = journal_record(&d->journal, &record, &data_at, e);

	while (rc == 0 && at < record.len)
		if (!decode_step(&record, &at, p))
			rc = err_set(e, ERR_DATA, "the record of an unfinished change makes no sense");
	if (rc == 0)
		rc = load_data(d, p, data_at, data, e);
	buf_release(&record);
	return rc;
}

/*
 * The journal is held and says that a change was decided, and its writer is dead: carries it out. A record that is not
 * whole can only come from a loss of power, which sync=normal does not promise to survive: the store goes on without it.
 */
int
disk_recover(struct disk *d, struct err *e)
{
	struct plan p = { .again = true };
	struct buf data = BUF_INIT;
	struct err why = ERR_INIT;
	int rc = -1;

	if (!d->journal.writable)
		return err_set(e, ERR_PERM, "'%s': a change that a dead process began has to be finished by someone who may write", d->where);
	if (plan_load(d, &p, &data, &why) < 0) {
		log_warn("'%s': dropping an unfinished change: %s", d->where, why.msg);
	} else if ((d->journal.flags & JOURNAL_FULL) != 0 && fdatasync(d->journal.fd) < 0) {
		/* Its writer may have died before this. */
		err_sys(e, "cannot sync the store '%s'", d->where);
		goto out;
	} else if (plan_apply(d, &p, e) < 0) {
		err_wrap(e, "cannot finish the change that a dead process began");
		goto out;
	}
	/* What its writer had changed, and died before it was synced, is on the disk before it counts as done. */
	if ((d->journal.flags & JOURNAL_FULL) != 0 && syncfs(d->journal.fd) < 0) {
		err_sys(e, "cannot sync the store '%s'", d->where);
		goto out;
	}
	d->journal.flags |= JOURNAL_LOOSE;
	rc = journal_end(&d->journal, e);
out:
	buf_release(&data);
	plan_release(&p);
	return rc;
}

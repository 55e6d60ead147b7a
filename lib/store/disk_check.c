#include "store/disk.h"

#include "base/alloc.h"
#include "base/io.h"
#include "path.h"
#include "store/beneath.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ASIDE_MAX (256u << 20)	/* of a journal that is kept aside */

struct check {
	struct disk *d;
	bool repair;
	store_finding_fn *fn;
	void *arg;
};

/* ---- A change that was begun and not finished ---- */

static void
tell_steps(const struct check *c, const struct plan *p, const char *repaired)
{
	static const char *const what[] = { [STEP_DELETE] = "removing it", [STEP_APPEND] = "an append to it", [STEP_RENAME] = "writing it" };
	size_t i;

	for (i = 0; i < p->n; i++)
		store_found(c->fn, c->arg, p->steps[i].path, "unfinished", repaired, "%s was begun by a process that died and not finished",
		    what[p->steps[i].kind]);
}

/* The journal is held. 1 when nothing is left unfinished. */
static int
check_unfinished(const struct check *c, struct err *e)
{
	struct disk *d = c->d;
	struct plan p = { .again = true };
	struct buf data = BUF_INIT;
	struct err why = ERR_INIT;
	int rc = 1;

	if ((d->journal.seq & 1) == 0)
		return 1;
	if (plan_load(d, &p, &data, &why) < 0)
		store_found(c->fn, c->arg, "/", "unfinished", c->repair ? "dropped" : NULL, "a change that a dead process began cannot be finished: %s", why.msg);
	else
		tell_steps(c, &p, c->repair ? "finished" : NULL);
	buf_release(&data);
	plan_release(&p);
	if (c->repair)
		rc = disk_recover(d, e) < 0 ? -1 : 1;
	return c->repair ? rc : 0;
}

/* ---- What is left in tmp: the journal is held, so nobody is using it ---- */

static bool
is_number(const char *name)
{
	name += *name == 'g';
	return *name != '\0' && name[strspn(name, "0123456789")] == '\0';
}

static void
tell_leftover(const struct check *c, int fd, const char *name)
{
	char *path = xasprintf("/" PRIVATE "/tmp/%s", name);
	const char *repaired = c->repair ? "removed" : NULL;
	struct stat st;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		st = (struct stat){ 0 };
	if (name[0] == 'g' && is_number(name))
		store_found(c->fn, c->arg, path, "leftover", repaired, "was deleted by a process that died before it was gone");
	else if (is_number(name))
		store_found(c->fn, c->arg, path, "leftover", repaired, "%lld bytes of a change that never was made", (long long)st.st_size);
	else
		store_found(c->fn, c->arg, path, "leftover", repaired, "is nothing of this store's");
	free(path);
}

static int
check_tmp(const struct check *c, struct err *e)
{
	struct disk *d = c->d;
	int fd = beneath_open(d->root, "/" PRIVATE "/tmp", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0), n = 0;
	struct dirent *de;
	DIR *dir;

	if (fd < 0 && beneath_absent(errno))
		return 0;	/* or no directory, which was told */
	if (fd < 0 || (dir = fdopendir(fd)) == NULL) {
		close_fd(&fd);
		return err_sys(e, "cannot list '/" PRIVATE "/tmp'");
	}
	while ((de = readdir(dir)) != NULL)
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0) {
			tell_leftover(c, fd, de->d_name);
			n++;
		}
	closedir(dir);
	if (n == 0 || !c->repair)
		return 0;
	if (disk_tmp_open(d, e) < 0)
		return -1;
	if (faccessat(d->tmp, ".", W_OK, AT_EACCESS) < 0)
		return err_sys(e, "cannot empty '/" PRIVATE "/tmp'");
	disk_purge(d);
	return 0;
}

/* ---- What lies where the store's own files and directories belong ---- */

static const char *
kind_of(mode_t mode)
{
	return S_ISREG(mode) ? "a file" : S_ISDIR(mode) ? "a directory" : S_ISLNK(mode) ? "a symbolic link" : "neither file nor directory";
}

/* Gives what is at path (of `name`, in the open directory at) a name that is free, which is put into aside. */
static int
move_aside(int at, const char *name, const char *path, char **aside, struct err *e)
{
	struct stat st;
	char *to = NULL;
	int i, rc = -1;

	for (i = 1; rc < 0 && i < 1000; i++) {
		free(to);
		to = xasprintf("%s.damaged-%d", name, i);
		rc = renameat2(at, name, at, to, RENAME_NOREPLACE);
		/* A file system that cannot do it so. */
		if (rc < 0 && errno == EINVAL && fstatat(at, to, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
			rc = renameat(at, name, at, to);
		if (rc < 0 && errno != EEXIST && errno != EINVAL)
			break;
	}
	if (rc == 0)
		*aside = xasprintf("moved to %.*s%s", (int)(path_name(path) - path), path, to);
	else
		err_sys(e, "cannot move '%s' aside", path);
	free(to);
	return rc;
}

/*
 * Of each kind what should be: nothing else could be used, nor be removed by any command. 1 when what is needed for looking on is all
 * right, or was repaired.
 */
static int
check_own(const struct check *c, struct err *e)
{
	static const struct {
		const char *path;
		mode_t type;
	} own[] = { { "/" PRIVATE, S_IFDIR }, { "/" PRIVATE "/lock", S_IFREG }, { "/" PRIVATE "/locks", S_IFREG }, { "/" PRIVATE "/tmp", S_IFDIR } };
	char *repaired;
	struct stat st;
	size_t i;
	int at = -1, rc = 1;

	for (i = 0; i < sizeof(own) / sizeof(own[0]) && rc >= 0; i++) {
		close_fd(&at);
		at = beneath_open(c->d->root, i == 0 ? "/" : "/" PRIVATE, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
		if (at < 0 || fstatat(at, path_name(own[i].path), &st, AT_SYMLINK_NOFOLLOW) < 0 || (st.st_mode & S_IFMT) == own[i].type)
			continue;
		repaired = NULL;
		if (c->repair && move_aside(at, path_name(own[i].path), own[i].path, &repaired, e) < 0)
			rc = -1;
		else
			store_found(c->fn, c->arg, own[i].path, "damaged", repaired, "is %s, where the store needs %s of its own", kind_of(st.st_mode), kind_of(own[i].type));
		if (repaired == NULL && i < 2)
			rc = rc < 0 ? -1 : 0;
		free(repaired);
	}
	close_fd(&at);
	return rc;
}

/* ---- Times ---- */

static const char *
time_text(uint64_t version, char out[24])
{
	time_t t = (time_t)(version / 1000000000);
	struct tm tm;

	if (gmtime_r(&t, &tm) == NULL || strftime(out, 24, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		out[0] = '\0';
	return out;
}

/* The journal is held. What has been given out ahead of the time stays greater: a file goes on from its own. */
static int
check_clock(const struct check *c, struct err *e)
{
	struct journal *j = &c->d->journal;
	uint64_t now = journal_now(), last = j->last;
	char text[24];

	if (last <= now + JOURNAL_AHEAD)
		return 0;
	if (c->repair) {
		j->last = now;
		if (journal_end(j, e) < 0)
			return -1;
	}
	store_found(c->fn, c->arg, "/", "version", c->repair ? "set to now" : NULL,
	    "the clock of versions is ahead of the time, at %s: all that changes is dated so", time_text(last, text));
	return 0;
}

/* A file's version is its time. One beyond all versions cannot get a greater one, and is the only one that is set back. */
static void
check_time(const struct check *c, const char *path, int fd)
{
	bool beyond, set;
	struct stat st;
	char text[24];
	uint64_t v;

	if (fstat(fd, &st) < 0 || (v = disk_version_of(&st)) <= journal_now() + JOURNAL_AHEAD)
		return;
	beyond = v >= JOURNAL_VERSION_MAX;
	set = beyond && c->repair && futimens(fd, NULL) == 0;
	store_found(c->fn, c->arg, path, "version", set ? "set to now" : NULL, beyond ? "its time is %s or later, which no version can be: it cannot be changed" :
	    "its time, which is its version, is ahead, at %s: touch(1) sets it", time_text(v, text));
}

/* ---- The journal ---- */

/* Keeps its bytes under another name and removes it: the next change makes a new one, and who has it open notices. */
static int
set_aside(struct disk *d, int fd, char name[32], struct err *e)
{
	struct buf bytes = BUF_INIT_MAX(ASIDE_MAX);
	int out = -1, i, rc = -1;

	for (i = 1; out < 0 && i < 1000; i++) {
		snprintf(name, 32, "lock.damaged-%d", i);
		out = openat(d->private, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (out < 0 && errno != EEXIST)
			break;
	}
	if (out < 0 || disk_adopt(d, out, disk_file_mode(d), d->like.st_uid, d->like.st_gid) < 0)
		err_sys(e, "cannot write '/" PRIVATE "/%s'", name);
	else if (io_read_all(fd, &bytes, "/" PRIVATE "/lock", e) < 0)
		;
	else if (io_write_all(out, bytes.data, bytes.len) < 0 || fsync(out) < 0 || unlinkat(d->private, "lock", 0) < 0)
		err_sys(e, "cannot set '/" PRIVATE "/lock' aside");
	else
		rc = 0;
	buf_release(&bytes);
	close_fd(&out);
	return rc;
}

static int
damaged_journal(const struct check *c, const char *why, struct err *e)
{
	struct disk *d = c->d;
	char name[32], *repaired = NULL;
	int fd = -1, rc = 0;

	if (c->repair) {
		if (disk_private_open(d, e) < 0 || (fd = openat(d->private, "lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC)) < 0)
			return err_sys(e, "cannot open '/" PRIVATE "/lock'");
		rc = set_aside(d, fd, name, e);
		close(fd);
		if (rc < 0)
			return -1;
		repaired = xasprintf("moved to /" PRIVATE "/%s; the next change makes a new one", name);
		rc = 1;
	}
	store_found(c->fn, c->arg, "/" PRIVATE "/lock", "damaged", repaired, "is not the journal that it should be (%s): nothing can be changed, or read", why);
	free(repaired);
	return rc;
}

/* Whether there is one that the lock can be taken of: an empty one is new, and would be filled by that. */
static bool
has_journal(struct disk *d)
{
	struct stat st;

	return beneath_stat(d->root, "/" PRIVATE "/lock", &st) == 0 && st.st_size > 0;
}

static int
check_journal(const struct check *c, struct err *e)
{
	struct disk *d = c->d;
	struct err why = ERR_INIT;
	int rc;

	if (!has_journal(d))
		return 1;
	if (journal_lock(&d->journal, d->root, false, NULL, NULL, d->o.timeout_ms, &why) < 0)
		return why.code == ERR_DATA ? damaged_journal(c, why.msg, e) : err_set(e, why.code, "%s", why.msg);
	rc = d->journal.held ? check_unfinished(c, e) : 1;
	if (rc == 1 && d->journal.held && (check_clock(c, e) < 0 || check_tmp(c, e) < 0))
		rc = -1;
	journal_unlock(&d->journal);
	return rc;
}

/* ---- The files ---- */

static void
check_link(const struct check *c, const char *path)
{
	struct stat st;

	if (beneath_stat(c->d->root, path, &st) == 0 || errno == EACCES)
		return;
	if (errno == ENOENT && fstatat(c->d->root, path + 1, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;		/* gone by now */
	store_found(c->fn, c->arg, path, "hidden", NULL, "is a symbolic link that leads out of the store or nowhere, and so is not shown");
}

/* What was moved aside, by check_own or damaged_journal, needs no second word. */
static bool
is_aside(const char *path)
{
	const char *name = path_name(path);

	return strncmp(path, "/" PRIVATE, strlen("/" PRIVATE)) == 0 && strstr(name, ".damaged-") != NULL && name - path <= (ptrdiff_t)strlen("/" PRIVATE "/");
}

static int
check_entry(void *arg, const char *path, unsigned char type)
{
	const struct check *c = arg;
	int fd;

	if (disk_reserved(path) || strcmp(path, "/" PRIVATE) == 0 || is_aside(path))
		return 0;
	if (type == DT_LNK) {
		check_link(c, path);
	} else if (type == DT_DIR) {
		store_found(c->fn, c->arg, path, "unreadable", NULL, "may not be listed: what is in it cannot be reached");
	} else if (type != DT_REG && type != DT_UNKNOWN) {
		store_found(c->fn, c->arg, path, "hidden", NULL, "is neither file nor directory, and so is not shown");
	} else {
		fd = beneath_open(c->d->root, path, O_RDONLY, 0);
		if (fd >= 0)
			check_time(c, path, fd);
		else if (!beneath_absent(errno))
			store_found(c->fn, c->arg, path, "unreadable", NULL, "cannot be read: %s", strerror(errno));
		close_fd(&fd);
	}
	return 0;
}

int
disk_check(void *self, bool repair, store_finding_fn *fn, void *arg, struct err *e)
{
	struct check c = { .d = self, .repair = repair, .fn = fn, .arg = arg };
	int rc = disk_root_open(c.d, e);

	if (rc <= 0)
		return rc < 0 ? -1 : 1;
	rc = check_own(&c, e);
	if (rc == 1)
		rc = check_journal(&c, e);
	if (rc >= 0)
		beneath_walk(c.d->root, "/", NULL, check_entry, &c);
	return rc;
}

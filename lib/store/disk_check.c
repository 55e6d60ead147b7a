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
		return 0;
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
	if (rc == 1 && d->journal.held && check_tmp(c, e) < 0)
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

static int
check_entry(void *arg, const char *path, unsigned char type)
{
	const struct check *c = arg;
	int fd;

	if (disk_reserved(path))
		return 0;
	if (type == DT_LNK) {
		check_link(c, path);
	} else if (type == DT_DIR) {
		store_found(c->fn, c->arg, path, "unreadable", NULL, "may not be listed: what is in it cannot be reached");
	} else if (type != DT_REG && type != DT_UNKNOWN) {
		store_found(c->fn, c->arg, path, "hidden", NULL, "is neither file nor directory, and so is not shown");
	} else {
		fd = beneath_open(c->d->root, path, O_RDONLY, 0);
		if (fd < 0 && !beneath_absent(errno))
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
	rc = check_journal(&c, e);
	if (rc >= 0)
		beneath_walk(c.d->root, "/", NULL, check_entry, &c);
	return rc;
}

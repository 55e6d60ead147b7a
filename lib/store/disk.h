/*
 * The parts of the disk store share this: disk.c opens, looks, lists, reads and commits; disk_plan.c finds out what a commit
 * comes down to, and whether it may be, before anything changes; disk_apply.c carries a plan out, undoes one that
 * failed, and finishes one that a dead process began; disk_check.c is fsck's part.
 */
#ifndef AG2_DISK_H
#define AG2_DISK_H

#include "store/backend.h"
#include "store/journal.h"

#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define PRIVATE ".ag2"

enum step_kind { STEP_DELETE, STEP_APPEND, STEP_RENAME };	/* in the order in which they are applied */

struct step {
	enum step_kind kind;
	const char *path;	/* the op's; the plan's own in one that is carried out again */
	uint64_t version;	/* that the file gets */
	uint64_t old_size;	/* APPEND */
	bool create;		/* APPEND: there was no file */
	bool stamped;		/* APPEND: the write itself gives it a time that is not below `version` */
	unsigned staged;	/* RENAME: the name in tmp */
	const void *data;	/* APPEND */
	uint64_t len;
	unsigned char sum[20];	/* APPEND: SHA-1 of the data, with sync=full */
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

/* What a commit comes down to. */
struct plan {
	struct step *steps;
	size_t n, cap;
	struct move *moves;
	size_t nmoves, moves_cap;
	bool again;		/* a dead writer's, found in the journal */
	/* For the journal: */
	struct buf record;
	struct iovec *data;	/* of each step */
	size_t data_cap;
};

struct disk {
	char *where;
	int root;		/* O_PATH; -1 while it is not there */
	int private, tmp;	/* of /.ag2 and /.ag2/tmp; -1 while not needed */
	struct store_options o;
	struct journal journal;
	struct stat like;	/* the root's, which new files and directories take after */
	unsigned gone;		/* names in tmp given to deleted things */
	struct plan plan;	/* empty but for its memory, between two changes */
};

static inline void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static inline bool
disk_full(const struct disk *d)
{
	return d->o.sync == STORE_SYNC_FULL;
}

static inline mode_t
disk_file_mode(const struct disk *d)
{
	return d->like.st_mode & 0666;
}

/* ---- disk.c ---- */

int disk_sync_dir(struct disk *d, int fd);	/* with sync=full; -1 with errno set */

/* 1 when the root is open, 0 when it is not there. */
int disk_root_open(struct disk *d, struct err *e);
int disk_private_open(struct disk *d, struct err *e);	/* the same for /.ag2, which is made when it is not there */

/* A new file or directory takes owner and group, as far as we may, and mode. -1 with errno set. */
int disk_adopt(const struct disk *d, int fd, mode_t mode, uid_t uid, gid_t gid);

/* Makes the directory `name` in `at`, as the store's own, unless it is there. -1 with errno set. */
int disk_make_dir(struct disk *d, int at, const char *name);

int disk_tmp_open(struct disk *d, struct err *e);	/* d->tmp is open when it returns 0 */

uint64_t disk_version_of(const struct stat *st);
bool disk_has_files(struct disk *d, const char *path);

/* A descriptor of the file, and st, or -1 with ERR_ABSENT when there is none. */
int disk_file_fd(struct disk *d, const char *path, struct stat *st, struct err *e);

/* ---- disk_plan.c ---- */

/* Fills p. What it refuses has changed nothing but, maybe, staged files and directories without files. */
int plan_make(struct disk *d, struct plan *p, struct store_op *ops, size_t n, struct err *e);
struct step *plan_add(struct plan *p, enum step_kind kind, const char *path);	/* path: see struct step */
void plan_clear(struct plan *p);		/* empty, keeps memory for the next one */
void plan_release(struct plan *p);

/*
 * Opens the directory that path is in. With make it is made when it is not there, and -1 comes with e filled; without,
 * -1 comes with errno set only.
 */
int disk_parent(struct disk *d, const char *path, bool make, struct err *e);
void disk_prune(struct disk *d, const char *path);	/* removes the directories above path that have become empty */

char *disk_dir_of(const char *path);		/* the directory part, "/" for what is in the root. Free it. */
bool disk_reserved(const char *path);		/* whether it is of those that the store needs for itself */
void plan_staged(char name[16], unsigned n);	/* the name in tmp */
int disk_set_version(int fd, uint64_t version);	/* -1 with errno set */

/* ---- disk_apply.c: the journal is held ---- */

/* Step by step. After a failure plan_undo says whether all is as if it had not begun. */
int plan_apply(struct disk *d, struct plan *p, struct err *e);
bool plan_undo(struct disk *d, struct plan *p);

/* Fills the record of the plan and the data that go behind it; with full their sums are in the record. */
void plan_encode(struct plan *p, bool full);

/* What the journal has of a change that was begun. ERR_DATA when it is not whole. data is what p points into. */
int plan_load(struct disk *d, struct plan *p, struct buf *data, struct err *e);
int disk_recover(struct disk *d, struct err *e);	/* carries that change out */
void disk_purge(struct disk *d);			/* removes all that is in tmp */

/* ---- disk_check.c ---- */

int disk_check(void *self, bool repair, store_finding_fn *fn, void *arg, struct err *e);

/* ---- disk_watch.c ---- */

int disk_watch(void *self, const char *path, void **watch, struct err *e);
int disk_watch_wait(void *watch, int64_t wait_ms, store_hint_fn *fn, void *arg, struct err *e);
void disk_watch_close(void *watch);

#endif

/*
 * What the files of the SQLite store share above the database (sqlite_db.h): sqlite.c opens, looks and lists; sqlite_read.c
 * reads a file; sqlite_change.c makes changes; sqlite_plain.c makes those in AG2's own layout; sqlite_watch.c waits for
 * those of others; sqlite_check.c is fsck's part.
 */
#ifndef AG2_SQLITE_H
#define AG2_SQLITE_H

#include "path.h"
#include "store/sqlite_db.h"

#define VALUE_MAX	1000000000ULL	/* SQLite's own limit for one value, which the view has to give */

/* The paths below a directory: from "dir/" to before "dir0". */
struct below {
	char from[PATH_BYTES_MAX + 2], to[PATH_BYTES_MAX + 2];
	size_t len;	/* of from */
};

/* ---- sqlite.c, all within a transaction ---- */

int row_damaged(struct sqlite_store *s, const char *path, struct err *e);
int row_find(struct sqlite_store *s, const char *path, struct row *r, struct err *e);	/* 1 and the row, 0 when there is no such file, -1 */
void row_stat(struct store_stat *st, const struct row *r);
int row_below(struct sqlite_store *s, const char *path, struct err *e);		/* 1 when something lies below path */
int path_stat(struct sqlite_store *s, const char *path, struct store_stat *st, struct err *e);

/* What lies below path in one or two parts, returned: below the root, what ag2 keeps for itself neither counts nor is deleted. */
int below_but_private(struct below b[2], const char *path);

/* ---- sqlite_read.c ---- */

/* A file while it is read: one handle that goes from segment to segment. In AG2's layout there is one, the row itself. */
struct reader {
	struct sqlite_store *s;
	struct row row;
	char *path;
	char *content;		/* all of it, when it is small */
	sqlite3_blob *blob;
	uint64_t start, len;	/* the segment's first place and length */
};

int reader_seek(struct reader *f, uint64_t place, struct err *e);	/* to the segment that has it */
int reader_read(struct reader *f, uint64_t offset, void *data, size_t len, struct err *e);	/* the len bytes from offset, which must be there */
void reader_release(struct reader *f);

int sqlite_file_open(void *self, const char *path, void **file, struct store_stat *st, struct err *e);
ssize_t sqlite_file_read(void *file, uint64_t offset, void *data, size_t len, struct err *e);
void sqlite_file_close(void *file);

/* ---- sqlite_change.c ---- */

int sqlite_commit(void *self, struct store_op *ops, size_t n, struct err *e);
int sqlite_next_version(struct sqlite_store *s, int64_t *version, struct err *e);	/* of our layout; ERR_DATA when the counter is damaged */
int sqlite_free_id(struct sqlite_store *s, int64_t *id, struct err *e);		/* one that no file has; ERR_DATA when all are used */
int sqlite_place_file(struct sqlite_store *s, const char *path, struct row *r, struct err *e);	/* the row of path, or, when a file may be made there, one with id 0 */
int sqlite_check_size(const char *path, uint64_t size, uint64_t more, struct err *e);
/* Reads len bytes at offset of the file of a piece; f is all 0 but for s, or what it was in the call before. */
int sqlite_read_piece(struct sqlite_store *s, struct reader *f, const struct store_piece *p, uint64_t offset, char *out, uint64_t len, struct err *e);

/* ---- sqlite_plain.c: the operations that write, in AG2's layout ---- */

struct plain {
	struct sqlite_store *s;
	int64_t top;		/* the greatest version */
};

int plain_begin(struct plain *p, struct err *e);
int plain_apply(struct plain *p, struct store_op *op, struct err *e);
int plain_end(struct plain *p, struct err *e);

/* ---- sqlite_watch.c ---- */

int sqlite_watch(void *self, const char *path, void **watch, struct err *e);
int sqlite_watch_wait(void *watch, int64_t wait_ms, store_hint_fn *fn, void *arg, struct err *e);
void sqlite_watch_close(void *watch);

/* ---- sqlite_check.c ---- */

int sqlite_check(void *self, bool repair, store_finding_fn *fn, void *arg, struct err *e);

#endif

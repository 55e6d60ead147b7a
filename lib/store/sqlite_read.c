#include "store/sqlite.h"

#include "base/alloc.h"

#include <limits.h>
#include <stdlib.h>

void
reader_release(struct reader *f)
{
	sqlite3_blob_close(f->blob);
	f->blob = NULL;
	free(f->path);
	free(f->content);
	f->path = f->content = NULL;
}

/* It must be one that begins at the end of the present one, or be searched for. */
static int
find_segment(struct reader *f, uint64_t place, int64_t *id, struct err *e)
{

	if (f->s->layout == LAYOUT_AG2) {
		*id = f->row.id;
		return 0;
	}
	if (place == f->row.base || (f->blob != NULL && place == f->start + f->len)) {
		*id = segment_id(&f->row, place);
		return 0;
	}
	return db_number(f->s, db_query(f->s, Q_SEGMENT, e, "ii", segment_id(&f->row, f->row.base), segment_id(&f->row, place)), id, e);
}

int
reader_seek(struct reader *f, uint64_t place, struct err *e)
{
	bool ag2 = f->s->layout == LAYOUT_AG2;
	int64_t id;
	int rc;

	if (f->blob != NULL && place >= f->start && place - f->start < f->len)
		return 0;
	if (find_segment(f, place, &id, e) < 0)
		return -1;
	if (f->blob != NULL)
		rc = sqlite3_blob_reopen(f->blob, id);
	else
		rc = sqlite3_blob_open(f->s->db, "main", ag2 ? "entries" : "segments", ag2 ? "content" : "data", id, 0, &f->blob);
	if ((rc & 0xff) == SQLITE_ERROR)
		return row_damaged(f->s, f->path, e);
	if (rc != SQLITE_OK)
		return db_fail(f->s, e);
	f->start = ag2 ? 0 : (uint64_t)id & (PLACES - 1);
	f->len = (uint64_t)sqlite3_blob_bytes(f->blob);
	return place - f->start < f->len ? 0 : row_damaged(f->s, f->path, e);
}

int
reader_read(struct reader *f, uint64_t offset, void *data, size_t len, struct err *e)
{
	uint64_t place = f->row.base + offset, n;
	char *out = data;

	for (; len > 0; place += n, out += n, len -= n) {
		if (reader_seek(f, place, e) < 0)
			return -1;
		n = f->start + f->len - place;
		if (n > len)
			n = len;
		if (n > INT_MAX)
			n = INT_MAX;
		if (sqlite3_blob_read(f->blob, out, (int)n, (int)(place - f->start)) != SQLITE_OK)
			return db_fail(f->s, e);
	}
	return 0;
}

/* Fetches a small file whole, so that nothing has to be kept as it is for the reader. */
static int
fetch(struct reader *f, struct err *e)
{
	f->content = xmalloc(f->row.size + 1);
	if (reader_read(f, 0, f->content, f->row.size, e) < 0)
		return -1;
	sqlite3_blob_close(f->blob);
	f->blob = NULL;
	return 0;
}

/* The file with its read transaction, or without one when it was fetched. 0 when it is not there. */
static int
open_reader(struct reader *f, struct err *e)
{
	struct sqlite_store *s = f->s;
	int rc = db_begin_read(s, e);

	if (rc <= 0)
		return rc;
	rc = row_find(s, f->path, &f->row, e);
	if (rc > 0 && f->row.size > SEGMENT && s->depth == 1 && s->frozen) {
		db_end_read(s, 0, NULL);
		if (db_thaw(s))
			return AGAIN;
		rc = db_begin_read(s, e);
	}
	if (rc > 0 && f->row.size <= SEGMENT && fetch(f, e) < 0)
		rc = -1;
	return rc > 0 && f->content == NULL && !db_torn(s) ? 1 : db_end_read(s, rc, e);
}

int
sqlite_file_open(void *self, const char *path, void **file, struct store_stat *st, struct err *e)
{
	struct reader *f = xcalloc(1, sizeof(*f));
	int rc;

	do {
		reader_release(f);
		*f = (struct reader){ .s = self, .path = xstrdup(path) };
		rc = open_reader(f, e);
	} while (rc == AGAIN);
	if (rc > 0) {
		if (st != NULL)
			row_stat(st, &f->row);
		*file = f;
		return 0;
	}
	reader_release(f);
	free(f);
	return rc < 0 ? -1 : err_set(e, ERR_ABSENT, "'%s' is not in the store", path);
}

ssize_t
sqlite_file_read(void *file, uint64_t offset, void *data, size_t len, struct err *e)
{
	struct reader *f = file;

	if (offset >= f->row.size)
		return 0;
	if (len > f->row.size - offset)
		len = f->row.size - offset;
	if (f->content != NULL) {
		memcpy(data, f->content + offset, len);
		return (ssize_t)len;
	}
	if (reader_read(f, offset, data, len, e) < 0)
		return -1;
	if (db_torn(f->s))
		return err_set(e, ERR_BUSY, "%s: changed while it was read", f->s->file);
	return (ssize_t)len;
}

void
sqlite_file_close(void *file)
{
	struct reader *f = file;
	bool fetched;

	if (f == NULL)
		return;
	fetched = f->content != NULL;
	reader_release(f);
	if (!fetched)
		db_end_read(f->s, 0, NULL);
	free(f);
}

/*
 * Changes of a database in AG2's own layout, one table of whole values, which ?layout=ag2 keeps: each costs the value it
 * changes, however little that is, and the next version is looked for in all of them, for AG2 gives out its own.
 */
#include "store/sqlite.h"

#include "base/alloc.h"

#include <stdlib.h>

/* AG2 may have written versions above the header's, and rows with the greatest may be gone. */
int
plain_begin(struct plain *p, struct err *e)
{
	sqlite3_stmt *st;
	int64_t kept;
	int rc;

	if (layout_number(p->s, "PRAGMA user_version", &kept, e) < 0 || db_number(p->s, db_query(p->s, Q_PLAIN_TOP, e, ""), &p->top, e) < 0)
		return -1;
	if (p->top >= VERSION_MAX) {
		if ((rc = db_step(p->s, st = db_query(p->s, Q_PLAIN_ODD, e, ""), e)) > 0) {
			db_unversioned(p->s, (const char *)sqlite3_column_text(st, 0), (uint64_t)p->top, e);
			sqlite3_reset(st);
		}
		return rc != 0 ? -1 : err_set(e, ERR_DATA, "%s: no version is left to be given", db_name(p->s));
	}
	if (kept > p->top)
		p->top = kept;
	return 0;
}

int
plain_end(struct plain *p, struct err *e)
{
	return layout_set_top(p->s, p->top, e);
}

static int
put(struct plain *p, struct store_op *op, enum query q, const struct buf *data, struct err *e)
{
	op->version = (uint64_t)++p->top;
	return db_run(p->s, db_query(p->s, q, e, "tbi", op->path, data->len > 0 ? data->data : "", data->len, (int64_t)op->version), e);
}

/* The content of an operation, put together from its pieces. */
static int
gather(struct plain *p, const struct store_op *op, struct buf *out, struct err *e)
{
	const struct store_piece *piece;
	struct reader f;
	size_t i;
	int rc = 0;

	if (op->npieces == 0)
		buf_add(out, op->data, op->len);
	for (i = 0; i < op->npieces && rc == 0; i++) {
		piece = &op->pieces[i];
		if (piece->from == NULL) {
			buf_add(out, (const char *)op->data + piece->offset, (size_t)piece->len);
			continue;
		}
		f = (struct reader){ .s = p->s };
		buf_reserve(out, (size_t)piece->len);
		rc = sqlite_read_piece(p->s, &f, piece, 0, out->data + out->len, piece->len, e);
		out->len += rc == 0 ? (size_t)piece->len : 0;
		reader_release(&f);
	}
	return rc;
}

/* What lies behind the replaced prefix, which was checked. */
static int
add_rest(struct plain *p, const struct store_op *op, const struct row *r, struct buf *out, struct err *e)
{
	struct reader f = { .s = p->s, .row = *r, .path = xstrdup(op->path) };
	uint64_t rest = r->size - op->upto;
	int rc;

	buf_reserve(out, (size_t)rest);
	rc = reader_read(&f, op->upto, out->data + out->len, (size_t)rest, e);
	out->len += rc == 0 ? (size_t)rest : 0;
	reader_release(&f);
	return rc;
}

int
plain_apply(struct plain *p, struct store_op *op, struct err *e)
{
	struct buf data = BUF_INIT;
	uint64_t keep;
	struct row r;
	int rc = sqlite_place_file(p->s, op->path, &r, e);

	keep = op->kind == STORE_OP_WRITE ? 0 : op->kind == STORE_OP_APPEND ? r.size : r.size - op->upto;
	if (rc == 0)
		rc = sqlite_check_size(op->path, keep, op->len, e);
	if (rc == 0)
		rc = gather(p, op, &data, e);
	if (rc == 0 && op->kind == STORE_OP_REPLACE_PREFIX)
		rc = add_rest(p, op, &r, &data, e);
	if (rc == 0) {
		op->offset = r.size;
		rc = put(p, op, op->kind == STORE_OP_APPEND && r.id != 0 ? Q_PLAIN_ADD : Q_PLAIN_PUT, &data, e);
	}
	buf_release(&data);
	return rc;
}

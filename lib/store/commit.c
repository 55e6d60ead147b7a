/*
 * Changes, as all back ends take them: paths normalised, what cannot be meant refused before anything happens, pieces put
 * together for those that know none, and with ?lock=1 each under its locks.
 */
#include "store/handle.h"

#include "base/alloc.h"
#include "base/sha1.h"
#include "path.h"

#include <stdlib.h>

static int
tree_order(const void *a, const void *b)
{
	return store_tree_order(*(const char *const *)a, *(const char *const *)b);
}

static int
check_op(const struct store_op *op, struct err *e)
{
	if (op->kind == STORE_OP_EXPECT || op->kind == STORE_OP_DELETE)
		return 0;
	if (strcmp(op->path, "/") == 0 || strcmp(op->path, "/.ag2") == 0)
		return err_set(e, ERR_CREATE, "'%s' is a directory", op->path);
	return 0;
}

static int
check_ops(const struct store_op *ops, size_t n, struct err *e)
{
	const char **changed;
	size_t i, count = 0;
	int rc = 0;

	if (n == 1)
		return check_op(&ops[0], e);
	changed = xcalloc(n, sizeof(*changed));
	for (i = 0; i < n && rc == 0; i++) {
		rc = check_op(&ops[i], e);
		if (ops[i].kind != STORE_OP_EXPECT)
			changed[count++] = ops[i].path;
	}
	if (count > 1)
		qsort(changed, count, sizeof(*changed), tree_order);
	for (i = 1; i < count && rc == 0; i++)
		if (path_within(changed[i], changed[i - 1]))
			rc = err_set(e, ERR_USAGE, "one commit changes both '%s' and '%s'", changed[i - 1], changed[i]);
	free(changed);
	return rc;
}

static void
free_pieces(struct store_op *op)
{
	size_t i;

	for (i = 0; op->pieces != NULL && i < op->npieces; i++)
		free((char *)(uintptr_t)op->pieces[i].from);
	free((void *)(uintptr_t)op->pieces);
}

/* Pieces with normalised paths in place of the caller's; len becomes the length of them all. */
static int
own_pieces(struct store_op *op, struct err *e)
{
	const struct store_piece *given = op->pieces;
	struct store_piece *own = xcalloc(op->npieces, sizeof(*own));
	struct buf p = BUF_INIT;
	uint64_t total = 0;
	size_t i;
	int rc = 0;

	if (op->kind != STORE_OP_WRITE && op->kind != STORE_OP_REPLACE_PREFIX)
		rc = err_set(e, ERR_USAGE, "'%s': only what is written or replaced has pieces", op->path);
	for (i = 0; i < op->npieces && rc == 0; i++) {
		own[i] = given[i];
		own[i].from = NULL;
		total += given[i].len;
		if (given[i].from == NULL) {
			if (given[i].offset > op->len || given[i].len > op->len - given[i].offset)
				rc = err_set(e, ERR_USAGE, "'%s': a piece beyond the data", op->path);
			continue;
		}
		rc = path_normalise(&p, given[i].from, strlen(given[i].from), e);
		own[i].from = xmemdup0(p.data, p.len);
	}
	buf_release(&p);
	op->pieces = own;
	op->len = (size_t)total;
	return rc;
}

int
store_conflict(const char *path, struct err *e)
{
	return err_set(e, ERR_CONFLICT, "'%s' is not what it was: read it again", path);
}

/* What a piece comes from must still be as it was before the commit. */
static int
check_pieces(const struct store_op *ops, size_t at, struct err *e)
{
	size_t i, j;

	for (i = 0; i < ops[at].npieces; i++)
		for (j = 0; ops[at].pieces[i].from != NULL && j <= at; j++)
			if (ops[j].kind != STORE_OP_EXPECT && path_within(ops[at].pieces[i].from, ops[j].path))
				return err_set(e, ERR_USAGE, "one commit changes '%s' and then reads it", ops[j].path);
	return 0;
}

/* Appends what a piece stands for. */
static int
read_piece(struct store *s, const struct store_piece *p, struct buf *out, struct err *e)
{
	struct err why = ERR_INIT;
	struct store_file f = { .be = s->be };
	struct store_stat st;
	size_t before = out->len;
	int rc;

	if (s->be->file_open(s->self, p->from, &f.file, &st, &why) < 0)
		return why.code == ERR_ABSENT ? store_conflict(p->from, e) : err_set(e, why.code, "%s", why.msg);
	rc = store_file_add(&f, p->offset, p->offset + p->len, out, e);
	s->be->file_close(f.file);
	if (rc == 0 && out->len - before != p->len)
		rc = store_conflict(p->from, e);
	return rc;
}

static int
hash_prefix(struct store *s, struct store_op *op, struct err *e)
{
	struct store_piece prefix = { op->path, 0, op->upto };
	struct buf b = BUF_INIT;
	struct sha1 h;
	int rc = read_piece(s, &prefix, &b, e);

	sha1_init(&h);
	sha1_add(&h, b.data, b.len);
	sha1_end(&h, op->sha1);
	buf_release(&b);
	return rc;
}

/* For a back end that knows neither pieces nor unchecked prefixes. The data that is made here goes to *made. */
static int
gather(struct store *s, struct store_op *op, char **made, struct err *e)
{
	struct buf b = BUF_INIT;
	size_t i;
	int rc = op->unchecked ? hash_prefix(s, op, e) : 0;

	if (op->npieces == 0)
		return rc;
	for (i = 0; i < op->npieces && rc == 0; i++) {
		if (op->pieces[i].from != NULL)
			rc = read_piece(s, &op->pieces[i], &b, e);
		else
			buf_add(&b, (const char *)op->data + op->pieces[i].offset, (size_t)op->pieces[i].len);
	}
	free_pieces(op);
	op->npieces = 0;
	op->pieces = NULL;
	op->data = *made = buf_detach(&b, &op->len);
	return rc;
}

#define LOCK_TTL_MS 60000

/* Takes the locks in one order, or two that want the same would wait for each other. */
static int
commit_locked(struct store *s, struct store_op *ops, size_t n, struct err *e)
{
	const char **paths = xcalloc(n, sizeof(*paths));
	void **locks = xcalloc(n, sizeof(*locks));
	size_t i, count = 0, held = 0;
	char *name;
	int rc = 0;

	for (i = 0; i < n; i++)
		if (ops[i].kind != STORE_OP_EXPECT)
			paths[count++] = ops[i].path;
	if (count > 1)
		qsort(paths, count, sizeof(*paths), tree_order);
	while (rc == 0 && held < count) {
		name = xasprintf("store:write:%s", paths[held]);
		rc = s->be->lock(s->self, name, LOCK_TTL_MS, s->timeout_ms, &locks[held], e);
		held += rc == 0;
		free(name);
	}
	if (rc == 0)
		rc = s->be->commit(s->self, ops, n, e);
	while (held > 0)
		s->be->unlock(locks[--held]);
	free(locks);
	free(paths);
	return rc;
}

int
store_commit(struct store *s, struct store_op *ops, size_t n, struct err *e)
{
	struct store_op one, *own;
	struct buf p = BUF_INIT;
	char *one_data = NULL, **data;
	size_t i, made = 0;
	int rc = store_may_change(s, e);

	if (rc < 0 || n == 0)
		return rc;
	own = n == 1 ? &one : xcalloc(n, sizeof(*own));
	data = n == 1 ? &one_data : xcalloc(n, sizeof(*data));
	for (i = 0; i < n && rc == 0; i++) {
		own[i] = ops[i];
		if (!path_is_normal(ops[i].path)) {
			rc = path_normalise(&p, ops[i].path, strlen(ops[i].path), e);
			own[i].path = buf_detach(&p, NULL);
		}
		made++;
		if (own[i].npieces == 0)
			own[i].pieces = NULL;
		else if (rc < 0)
			own[i].npieces = 0;
		else
			rc = own_pieces(&own[i], e);
	}
	if (rc == 0)
		rc = check_ops(own, n, e);
	for (i = 0; i < n && rc == 0; i++)
		rc = check_pieces(own, i, e);
	for (i = 0; i < n && rc == 0 && !s->be->pieces; i++)
		rc = gather(s, &own[i], &data[i], e);
	if (rc == 0 && s->lock)
		rc = commit_locked(s, own, n, e);
	else if (rc == 0)
		rc = s->be->commit(s->self, own, n, e);
	s->commits++;	/* one that failed may have been made all the same */
	for (i = 0; i < made; i++) {
		if (rc == 0) {
			ops[i].version = own[i].version;
			ops[i].offset = own[i].offset;
		}
		if (own[i].path != ops[i].path)
			free((char *)own[i].path);
		if (own[i].npieces > 0)
			free_pieces(&own[i]);
		free(data[i]);
	}
	if (n > 1) {
		free(data);
		free(own);
	}
	buf_release(&p);
	return rc;
}

int
store_write(struct store *s, const char *path, const void *data, size_t len, struct err *e)
{
	struct store_op op = { .kind = STORE_OP_WRITE, .path = path, .data = data, .len = len };

	return store_commit(s, &op, 1, e);
}

int
store_append(struct store *s, const char *path, const void *data, size_t len, uint64_t *offset, struct err *e)
{
	struct store_op op = { .kind = STORE_OP_APPEND, .path = path, .data = data, .len = len, .blind = offset == NULL };
	int rc = store_commit(s, &op, 1, e);

	if (rc == 0 && offset != NULL)
		*offset = op.offset;
	return rc;
}

int
store_delete(struct store *s, const char *path, struct err *e)
{
	struct store_op op = { .kind = STORE_OP_DELETE, .path = path };

	return store_commit(s, &op, 1, e);
}

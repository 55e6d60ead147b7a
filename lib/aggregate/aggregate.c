#include "aggregate/aggregate.h"

#include "aggregate/job.h"
#include "aggregate/seen.h"

/* Whether the cursor knows the log, being at this version, to hold nothing new: that needs no look into it. */
static bool
is_covered(const struct cursor *c, uint64_t version)
{
	return version > 0 && c->seen == version;
}

static bool
nothing_new(const struct job *j, uint64_t version)
{
	struct cursor c;
	bool covered = false;

	if (cursor_read(j->s, j->cursor_path.data, &c, NULL) == 0) {
		covered = is_covered(&c, version);
		cursor_release(&c);
	}
	return covered;
}

int
aggregate_stream(struct aggregate *a, struct store *s, const char *stream, struct err *e)
{
	struct store_stat st = { 0 };
	struct job j;
	int rc;

	job_init(&j, a, s, stream);
	rc = job_has_stream(&j, &st, e);
	if (rc == 0 && !nothing_new(&j, st.version))
		rc = job_locked(&j, job_step, true, e);
	job_release(&j);
	return rc;
}

/* ---- looking ---- */

static int
look(struct job *j, uint64_t version, struct pending *p, struct err *e)
{
	struct store_stat st;
	struct cursor c;
	int rc;

	if (j->a->spec.strategy->external && (rc = store_stat(j->s, j->running_path.data, &st, e)) != 0)
		return rc;
	if (cursor_read(j->s, j->cursor_path.data, &c, e) < 0)
		return -1;
	rc = is_covered(&c, version) ? 0 : pending_read(p, j->s, j->stream, &c, JSONL_BAD_QUIET, e);
	if (rc == 0 && !is_covered(&c, version) && p->seen != version)
		rc = 1;
	cursor_release(&c);
	return rc;
}

int
aggregate_look(const struct aggregate *a, struct store *s, const char *stream, uint64_t version, const struct stream_index *segments,
    struct news *n, struct err *e)
{
	struct aggregate copy = *a;
	struct pending p = { .segments = segments, .counts_only = true, .text = BUF_INIT, .lines = BUF_INIT };
	struct job j;
	int rc;

	job_init(&j, &copy, s, stream);
	rc = look(&j, version, &p, e);
	*n = p.news;
	pending_release(&p);
	job_release(&j);
	return rc;
}

/* ---- moving the cursor ---- */

/* Reads on until the end, a part in memory at a time. */
static int
mark(struct job *j, struct err *e)
{
	struct cursor c, to;
	struct pending p = { .text = BUF_INIT, .lines = BUF_INIT };
	struct buf text = BUF_INIT;
	struct store_op ops[3] = { { .kind = STORE_OP_EXPECT, .path = j->cursor_path.data },
		{ .kind = STORE_OP_WRITE, .path = j->cursor_path.data }, { .kind = STORE_OP_DELETE, .path = j->running_path.data } };
	int rc = cursor_read(j->s, j->cursor_path.data, &c, e);

	if (rc == 0)
		rc = pending_read(&p, j->s, j->stream, &c, j->a->on_bad, e);
	if (rc == 0 && p.n > 0) {
		pending_cursor(&p, p.n, &c, &to);
		cursor_format(&text, &to);
		cursor_release(&to);
		ops[0].version = c.version;
		ops[1].data = text.data;
		ops[1].len = text.len;
		rc = store_commit(j->s, ops, 3, e);
		j->a->ran = true;
		if (rc == 0)
			rc = p.n < p.news.total;
	}
	cursor_release(&c);
	pending_release(&p);
	buf_release(&text);
	return rc;
}

static int
reset(struct job *j, struct err *e)
{
	struct store_op ops[] = { { .kind = STORE_OP_DELETE, .path = j->cursor_path.data },
		{ .kind = STORE_OP_DELETE, .path = j->running_path.data }, { .kind = STORE_OP_DELETE, .path = j->undo_path.data },
		{ .kind = STORE_OP_DELETE, .path = j->seen_path.data } };

	return store_commit(j->s, ops, 4, e);
}

static int
undo(struct job *j, struct err *e)
{
	return undo_run(j->s, j->undo_path.data, j->cursor_path.data, j->seen_path.data, e);
}

static int
change(struct aggregate *a, struct store *s, const char *stream, job_fn *fn, struct err *e)
{
	struct job j;
	int rc;

	job_init(&j, a, s, stream);
	rc = job_locked(&j, fn, false, e);
	job_release(&j);
	return rc;
}

int
aggregate_mark(struct aggregate *a, struct store *s, const char *stream, struct err *e)
{
	return change(a, s, stream, mark, e);
}

int
aggregate_reset(struct aggregate *a, struct store *s, const char *stream, struct err *e)
{
	return change(a, s, stream, reset, e);
}

int
aggregate_undo(struct aggregate *a, struct store *s, const char *stream, struct err *e)
{
	return change(a, s, stream, undo, e);
}

/* One step of aggregating a stream: the strategy is given what came, and all that follows is one commit. */
#include "aggregate/job.h"

#include "base/alloc.h"
#include "base/log.h"
#include "stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool
is_due(const struct job *j, const struct cursor *c, const struct pending *p)
{
	return (p->news.total > 0 && c->covered < j->goal) || aggregate_trigger_is_met(&j->a->trigger, &p->news);
}

/* The name of a run: what it begins and ends with makes it. */
static char *
run_id(const struct job *j, const struct cursor *c, const struct pending *p, size_t n)
{
	struct buf all = BUF_INIT;
	char *id;

	buf_addf(&all, "%s %s %" PRIu64 " %zu", j->a->spec.key, j->stream, c->covered, n);
	buf_add(&all, &p->events[0].sum, sizeof(p->events[0].sum));
	buf_add(&all, &p->events[n - 1].sum, sizeof(p->events[n - 1].sum));
	id = digest_name(all.data, all.len);
	buf_release(&all);
	return id;
}

/*
 * A command that was begun and not seen to end gets the same events again, under the same name. How many they were is
 * written down before it starts. 0: there was none.
 */
static int
begun(const struct job *j, const struct cursor *c, size_t *n, struct err *e)
{
	struct buf text = BUF_INIT_MAX(1000);
	struct err why = ERR_INIT;
	uint64_t covered;
	int rc = 0;

	*n = 0;
	if (!j->a->spec.strategy->external)
		return 0;
	if (store_read(j->s, j->running_path.data, &text, NULL, &why) < 0)
		rc = why.code == ERR_ABSENT ? 0 : err_set(e, why.code, "%s", why.msg);
	else if (sscanf(text.data, "covered %" SCNu64 " events %zu", &covered, n) != 2 || covered != c->covered)
		*n = 0;
	buf_release(&text);
	return rc;
}

static int
note_begun(const struct job *j, const struct cursor *c, size_t n, struct err *e)
{
	struct buf text = BUF_INIT;
	int rc;

	if (!j->a->spec.strategy->external)
		return 0;
	buf_addf(&text, "covered %" PRIu64 " events %zu\n", c->covered, n);
	rc = store_write(j->s, j->running_path.data, text.data, text.len, e);
	buf_release(&text);
	return rc;
}

/*
 * What it cost belongs into the log whether the answer was good or not. When nobody else wrote meanwhile, the log at its new
 * version holds nothing new.
 */
static void
log_use(struct job *j, const struct upkeep_use *use, const struct pending *p, struct cursor *to)
{
	struct buf path = BUF_INIT;
	struct store_stat st;
	struct err why = ERR_INIT;
	uint64_t offset = 0;

	if (use->lines.len == 0)
		return;
	stream_path(&path, j->stream);
	if (stream_append(j->s, j->stream, use->lines.data, use->lines.len, &offset, &why) < 0)
		log_warn("stream %s: what the model cost is not in the log: %s", j->stream, why.msg);
	else if (to->seen > 0 && offset == p->log_size && store_stat(j->s, path.data, &st, NULL) == 1 &&
	    st.size == offset + use->lines.len)
		to->seen = st.version;
	buf_release(&path);
}

/* Output, its old version, cursor, undo, status: all or nothing. */
static int
commit(struct job *j, const struct aggregation *g, const struct cursor *from, const struct cursor *to, struct err *e)
{
	struct store_op ops[5 + OUTPUT_OPS];
	struct buf cursor = BUF_INIT, undo = BUF_INIT;
	struct history history = { NULL };
	size_t n = 0;
	int rc;

	ops[n++] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = j->cursor_path.data, .version = from->version };
	rc = aggregation_ops(g, &history, ops, &n, e);
	cursor_format(&cursor, to);
	ops[n++] = (struct store_op){ .kind = STORE_OP_WRITE, .path = j->cursor_path.data, .data = cursor.data, .len = cursor.len };
	undo_format(&undo, &j->undo, g->path, (struct text){ g->output.data, g->output.len });
	ops[n++] = (struct store_op){ .kind = STORE_OP_WRITE, .path = j->undo_path.data, .data = undo.data, .len = undo.len };
	if (j->a->spec.strategy->external)
		ops[n++] = (struct store_op){ .kind = STORE_OP_DELETE, .path = j->running_path.data };
	ops[n++] = upkeep_op(&j->a->run);
	if (rc == 0)
		rc = store_commit(j->s, ops, n, e);
	history_release(&history);
	buf_release(&cursor);
	buf_release(&undo);
	return rc;
}

/* What an undo of this run, with all its parts, brings back. */
static void
note_before(struct job *j, const struct aggregation *g, const struct cursor *from)
{
	if (j->part && !j->a->keep_all)
		return;
	undo_release(&j->undo);
	if (g->earlier != NULL) {
		j->undo.earlier = xstrdup(g->earlier);
		buf_add(&j->undo.content, g->existing.data, g->existing.len);
	}
	if (from->version > 0) {
		j->undo.has_cursor = true;
		cursor_format(&j->undo.cursor, from);
	}
}

static bool
may_call(struct job *j)
{
	struct aggregate *a = j->a;

	if (a->may_call != NULL && !a->may_call(a->arg))
		j->denied = true;
	return !j->denied;
}

/* What is given: the first n events, or the whole log. */
static void
give(struct aggregation *g, const struct pending *p, size_t n, const struct pending *whole)
{
	const struct pending *from = whole ? whole : p;

	if (whole != NULL)
		n = whole->n;
	g->events = (struct text){ from->text.data, n > 0 ? from->events[n - 1].text_end : 0 };
	g->lines = (struct text){ from->lines.data, n > 0 ? from->events[n - 1].lines_end : 0 };
}

/* A stream that was removed while the model was asked does not come back, not with an episode, a cost or a failure. */
static bool
removed(struct job *j, struct err *e)
{
	struct store_stat st;

	if (job_has_stream(j, &st, e) == 0)
		return false;
	j->a->run.store = NULL;
	return true;
}

/* One call: 0 done, 1 the model cannot take so much, or it may not be asked; -1. ERR_CONFLICT: the commit was too late. */
static int
run_part(struct job *j, const struct cursor *c, const struct pending *p, size_t n, const struct pending *whole, struct err *e)
{
	const struct aggregate_strategy *strategy = j->a->spec.strategy;
	char *id = run_id(j, c, p, n);
	struct aggregation g = AGGREGATION_INIT(j, id);
	struct cursor to;
	struct err why = ERR_INIT;
	int rc = 0;

	give(&g, p, n, whole);
	pending_cursor(p, n, c, &to);
	if (strategy->look != NULL)
		rc = strategy->look(&g, e);
	if (rc == 0)
		rc = note_begun(j, c, n, e);
	if (rc < 0)
		goto out;
	if (!may_call(j)) {
		rc = 1;
		goto out;
	}
	if (!j->a->run.started)
		upkeep_started(&j->a->run, whole ? whole->n : n);
	rc = strategy->make(&g, &why);
	if (removed(j, e)) {
		rc = -1;
		goto out;
	}
	log_use(j, &g.use, p, &to);
	if (rc < 0 && upkeep_too_long(&why) && n > 1 && whole == NULL && !strategy->external) {
		rc = 1;
		goto out;
	}
	if (rc < 0) {
		err_set(e, why.code, "%s", why.msg);
		goto out;
	}
	note_before(j, &g, c);
	upkeep_aggregated(&j->a->run, whole ? whole->n : n, &g.use);
	rc = commit(j, &g, c, &to, e);
	if (rc == 0) {
		upkeep_done(&j->a->run);
		j->a->ran = j->part = true;
	}
out:
	cursor_release(&to);
	aggregation_release(&g);
	free(id);
	return rc;
}

/* Gives what the model can take. */
static int
run_fitting(struct job *j, const struct cursor *c, const struct pending *p, size_t n, const struct pending *whole, struct err *e)
{
	int rc;

	if (j->limit > 0 && n > j->limit && whole == NULL)
		n = j->limit;
	for (;;) {
		rc = run_part(j, c, p, n, whole, e);
		if (rc <= 0 || j->denied)
			return rc < 0 ? -1 : 0;
		n = j->limit = n / 2;
	}
}

/* The log has a new version and nothing new in it: later looks need not go into it again. A nicety that may fail. */
static void
note_seen(struct job *j, struct cursor *c, const struct pending *p)
{
	struct buf text = BUF_INIT;
	struct store_op ops[2] = { { .kind = STORE_OP_EXPECT, .path = j->cursor_path.data, .version = c->version },
		{ .kind = STORE_OP_WRITE, .path = j->cursor_path.data } };

	if (c->version == 0 || c->seen == p->seen)
		return;
	c->seen = p->seen;
	if (c->anchor == p->anchor) {
		c->offset = p->offset;
		c->len = p->len;
		c->segment = p->segment;
		c->segment_version = p->segment_version;
	}
	cursor_format(&text, c);
	ops[1].data = text.data;
	ops[1].len = text.len;
	store_commit(j->s, ops, 2, NULL);
	buf_release(&text);
}

/* 1 when a part was given and there is more, 0 when there is nothing to do any more. */
int
job_step(struct job *j, struct err *e)
{
	struct cursor c;
	struct pending p = { .text = BUF_INIT, .lines = BUF_INIT }, whole = { .text = BUF_INIT, .lines = BUF_INIT };
	size_t n = 0;
	int rc = cursor_read(j->s, j->cursor_path.data, &c, e);

	if (rc == 0)
		rc = pending_read(&p, j->s, j->stream, &c, j->a->on_bad, e);
	if (rc == 0)
		rc = begun(j, &c, &n, e);
	j->a->bad += p.bad;
	if (rc < 0)
		goto out;
	if (p.news.total == 0)
		note_seen(j, &c, &p);
	if (p.news.total == 0 || (n == 0 && !is_due(j, &c, &p)))
		goto out;
	if (j->goal == 0)
		j->goal = c.covered + p.news.total;
	if (n == 0 || n > p.n)
		n = p.n;
	if (j->a->all_events) {
		rc = pending_read_log(&whole, j->s, j->stream, j->a->on_bad, e);
		n = p.n;
	}
	if (rc == 0)
		rc = run_fitting(j, &c, &p, n, j->a->all_events ? &whole : NULL, e);
	if (rc == 0)
		rc = !j->denied;
out:
	cursor_release(&c);
	pending_release(&p);
	pending_release(&whole);
	return rc;
}

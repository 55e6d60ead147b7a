#include "compact/compact.h"

#include "base/alloc.h"
#include "compact/job.h"
#include "moved.h"
#include "stream.h"

#include <stdlib.h>

#define TRIES 5

/* All of strategy.c's. */
static const struct compact_strategy *const strategies[] = { &compact_tail_window, &compact_summarize, &compact_exec };

/* ---- strategies ---- */

static void
find_strategy(struct compact_spec *spec)
{
	size_t i;

	for (i = 0; strcmp(strategies[i]->name, spec->choice.strategy->name) != 0; i++)
		;
	spec->strategy = strategies[i];
}

int
compact_spec_parse(struct compact_spec *spec, const char *text, struct err *e)
{
	*spec = (struct compact_spec){ .strategy = NULL };
	if (strategy_parse(&spec->choice, STRATEGY_COMPACTS, text, e) < 0)
		return -1;
	if (strategy_check(&spec->choice, e) < 0) {
		compact_spec_release(spec);
		return -1;
	}
	find_strategy(spec);
	return 0;
}

void
compact_spec_copy(struct compact_spec *spec, const struct agent *a)
{
	const struct upkeep *u = &a->compact;

	*spec = (struct compact_spec){ .choice = u->choice };
	spec->choice.command = u->choice.command ? xstrdup(u->choice.command) : NULL;
	spec->prompt = u->prompt ? xstrdup(u->prompt) : NULL;
	spec->cwd = a->dir ? xstrdup(a->dir) : NULL;
	find_strategy(spec);
}

void
compact_spec_release(struct compact_spec *spec)
{
	free(spec->choice.command);
	free(spec->cwd);
	free(spec->prompt);
	*spec = (struct compact_spec){ .choice.target = -1 };
}

/* A trigger that would fire again at once is refused: max_events is not above the target. */
static int
compact_check(const struct compact *c, struct err *e)
{
	if (c->spec.choice.target >= 0 && c->trigger.max_events > 0 && c->trigger.max_events <= c->spec.choice.target)
		return err_set(e, ERR_CONFIG, "max-events (%ld) must be greater than the target (%ld), or it would fire at once again",
		    c->trigger.max_events, c->spec.choice.target);
	return 0;
}

/* ---- what is to be done ---- */

static int
add_line(struct job *j, struct kept *k, struct err *e)
{
	k->head_at = j->head.len;
	if (source_read(&j->in, k->offset, k->len, &j->head, e) < 0)
		return -1;
	j->head_lines++;
	return 0;
}

/* Appends the kept lines to head: the Prompt lines, to begin with; the others, behind what the strategy put there. */
static int
add_kept(struct job *j, bool prompts, struct err *e)
{
	size_t i;

	for (i = 0; i < j->cut.nkept; i++)
		if (j->cut.kept[i].prompt == prompts && add_line(j, &j->cut.kept[i], e) < 0)
			return -1;
	return 0;
}

static bool
nothing_goes(const struct job *j)
{
	const struct cut *c = &j->cut;
	uint64_t stays = c->kept_events + (j->c->spec.strategy->folds ? c->summaries_before : 0);

	return c->at == 0 || c->events_before <= stays;
}

int
job_start(struct job *j, uint64_t upto, struct err *e)
{
	struct compact *c = j->c;

	if (j->hashed && source_sha1(&j->in, upto, j->sha1, e) < 0)
		return -1;
	source_let_go(&j->in);
	c->run.what = "Compaction";
	c->run.strategy = c->spec.strategy->class_name;
	if (!c->run.started)
		upkeep_started(&c->run, j->cut.lines);
	return 0;
}

static int
make_head(struct job *j, struct err *e)
{
	const struct compact_strategy *s = j->c->spec.strategy;

	if (s->run != NULL)
		return s->run(j, e);
	if (job_start(j, j->cut.at, e) < 0 || add_kept(j, true, e) < 0 || (s->make != NULL && s->make(j, e) < 0))
		return -1;
	return add_kept(j, false, e);
}

/* Finds what goes and makes what stands for it. 1: there was something to do, and the start is told. */
static int
prepare(struct job *j, struct err *e)
{
	struct compact *c = j->c;
	const struct compact_strategy *s = c->spec.strategy;
	int rc = cut_find(&j->in, c->spec.choice.target > 0 ? c->spec.choice.target : 0, &c->trigger, j->filter, &j->cut, e);

	c->bad = j->in.bad;
	if (rc == 0 && j->cut.due && (s->run ? j->cut.lines > 0 : !nothing_goes(j)))
		rc = make_head(j, e) < 0 ? -1 : 1;
	source_let_go(&j->in);
	return rc;
}

static void
job_release(struct job *j)
{
	source_release(&j->in);
	cut_release(&j->cut);
	buf_release(&j->head);
	upkeep_use_release(&j->use);
}

static uint64_t
lines_after(const struct job *j)
{
	return j->cut.at == 0 ? j->cut.lines : j->head_lines + j->cut.lines - j->cut.lines_before;
}

/* ---- in place ---- */

/* All before the cut but what stays in front. Gives its length. */
static uint64_t
segment_pieces(const struct job *j, struct store_piece *pieces, size_t *n)
{
	uint64_t at = 0, total = 0;
	size_t i;

	*n = 0;
	for (i = 0; i <= j->cut.nkept; i++) {
		uint64_t end = i < j->cut.nkept ? j->cut.kept[i].offset : j->cut.at;

		if (end > at)
			pieces[(*n)++] = (struct store_piece){ j->in.path, at, end - at };
		total += end > at ? end - at : 0;
		if (i < j->cut.nkept)
			at = end + j->cut.kept[i].len;
	}
	return total;
}

#define ALIKE_MAX 4096

/* Whether what is left begins as what goes does, as far as either reaches or is looked at. */
static int
is_alike(const struct job *j, const struct store_piece *first, struct err *e)
{
	struct buf goes = BUF_INIT, stays = BUF_INIT;
	size_t n;
	int rc = store_read_range(j->c->run.store, j->in.path, (int64_t)first->offset,
	    (int64_t)(first->offset + (first->len < ALIKE_MAX ? first->len : ALIKE_MAX)), &goes, e);

	if (rc >= 0 && j->head.len > 0)
		buf_add(&stays, j->head.data, j->head.len < ALIKE_MAX ? j->head.len : ALIKE_MAX);
	else if (rc >= 0)
		rc = store_read_range(j->c->run.store, j->in.path, (int64_t)j->cut.at, (int64_t)(j->cut.at + ALIKE_MAX), &stays, e);
	n = goes.len < stays.len ? goes.len : stays.len;
	if (rc >= 0)
		rc = memcmp(goes.data, stays.data, n) == 0;
	buf_release(&goes);
	buf_release(&stays);
	return rc;
}

struct commit {
	const unsigned char *sha1;	/* of the log up to the cut; NULL: the log's version says that it is what was read */
	struct store_piece *pieces;
	struct buf segment, record, undo, moved_path, moved;
};

static int
try_commit(struct job *j, struct commit *k, struct err *e)
{
	struct compact *c = j->c;
	struct store_op ops[6 + MOVED_OPS];
	struct moved moved;
	uint64_t number, version, len;
	size_t n = 0, npieces;
	int alike;

	if (stream_next_segment(c->run.store, c->run.stream, &number, &version, e) < 0 || moved_read(c->run.store, c->run.stream, &moved, e) < 0)
		return -1;
	len = segment_pieces(j, k->pieces, &npieces);
	stream_segment_path(&k->segment, c->run.stream, number);
	stream_undo_path(&k->record, c->run.stream, number);
	buf_reset(&k->undo);
	alike = is_alike(j, k->pieces, e);
	if (alike < 0)
		return -1;
	undo_record(&k->undo, j, len, alike);
	ops[n++] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = k->segment.data, .version = version };
	if (k->sha1 == NULL)
		ops[n++] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = j->in.path, .version = j->in.version };
	ops[n++] = (struct store_op){ .kind = STORE_OP_WRITE, .path = k->segment.data, .pieces = k->pieces, .npieces = npieces };
	ops[n++] = (struct store_op){ .kind = STORE_OP_WRITE, .path = k->record.data, .data = k->undo.data, .len = k->undo.len };
	moved_ops(&moved, c->run.stream, &(struct move){ j->cut.at, j->head.len, (int64_t)len }, &k->moved_path, &k->moved, ops + n);
	n += MOVED_OPS;
	ops[n++] = upkeep_op(&c->run);
	ops[n] = (struct store_op){ .kind = STORE_OP_REPLACE_PREFIX, .path = j->in.path, .data = j->head.data, .len = j->head.len,
		.upto = j->cut.at, .unchecked = k->sha1 == NULL };
	if (k->sha1 != NULL)
		memcpy(ops[n].sha1, k->sha1, sizeof(ops[n].sha1));
	return store_commit(c->run.store, ops, n + 1, e);
}

/* With a hash, a conflict may be about the segment's number: it is tried again, the summary is not made again. */
static int
commit(struct job *j, const unsigned char *sha1, struct err *e)
{
	struct commit k = { .sha1 = sha1, .pieces = xcalloc(j->cut.nkept + 1, sizeof(*k.pieces)), .segment = BUF_INIT,
		.record = BUF_INIT, .undo = BUF_INIT, .moved_path = BUF_INIT, .moved = BUF_INIT };
	struct err why = ERR_INIT;
	int rc, tries = 0;

	upkeep_compacted(&j->c->run, j->cut.lines, lines_after(j), &j->use);
	do
		rc = try_commit(j, &k, &why);
	while (rc < 0 && why.code == ERR_CONFLICT && sha1 != NULL && ++tries < TRIES);
	if (rc < 0)
		err_set(e, why.code, "%s", why.msg);
	free(k.pieces);
	buf_release(&k.segment);
	buf_release(&k.record);
	buf_release(&k.undo);
	buf_release(&k.moved_path);
	buf_release(&k.moved);
	return rc;
}

/* What an exec: command left as it was is a run too, which is told and kept. */
static int
keep_unchanged(struct job *j, struct err *e)
{
	struct store_op op;

	upkeep_compacted(&j->c->run, j->cut.lines, j->cut.lines, &j->use);
	op = upkeep_op(&j->c->run);
	return store_commit(j->c->run.store, &op, 1, e);
}

static int
run_once(struct job *j, struct store_lock *lock, struct err *e)
{
	int rc = prepare(j, e);

	if (rc <= 0)
		return rc;
	if (store_lock_held(lock, e) < 0)
		return -1;
	rc = j->cut.at > 0 ? commit(j, j->hashed ? j->sha1 : NULL, e) : keep_unchanged(j, e);
	if (rc == 0)
		upkeep_done(&j->c->run);
	return rc;
}

/*
 * What goes is hashed only where the log may have changed by the time of the commit: while a model or a command is waited
 * for, or after it did.
 */
static int
compact_log(struct compact *c, struct store_lock *lock, struct err *e)
{
	struct err why = ERR_INIT;
	struct job j;
	int rc, tries = 0;

	do {
		j = (struct job){ .c = c, .head = BUF_INIT, .hashed = c->spec.strategy->slow || tries > 0, .use = UPKEEP_USE_INIT };
		why = (struct err)ERR_INIT;
		rc = source_of_log(&j.in, c->run.store, c->run.stream, c->on_bad, &why);
		if (rc == 0)
			rc = run_once(&j, lock, &why);
		job_release(&j);
	} while (rc < 0 && why.code == ERR_CONFLICT && !c->spec.strategy->slow && ++tries < TRIES);
	if (rc < 0 && why.code == ERR_CONFLICT)
		err_set(&why, ERR_BUSY, "the log of stream '%s' was rewritten by someone else meanwhile; nothing is changed", c->run.stream);
	if (rc < 0 && c->run.started)
		upkeep_failed(&c->run, &why);
	return rc < 0 ? err_set(e, why.code, "%s", why.msg) : 0;
}

int
compact_stream(struct compact *c, struct store *s, const char *stream, struct err *e)
{
	struct store_lock *lock = NULL;
	int rc;

	c->run.store = s;
	c->run.stream = stream;
	if (compact_check(c, e) < 0 || upkeep_compaction_lock(s, stream, &lock, e) < 0)
		return -1;
	rc = compact_log(c, lock, e);
	store_unlock(lock);
	return rc;
}

/* ---- as a filter ---- */

static int
put_head(struct job *j, compact_line_fn *put, void *arg, struct err *e)
{
	const char *p = j->head.data, *stop = p + j->head.len, *end;

	for (; p < stop; p = end + 1) {
		end = memchr(p, '\n', (size_t)(stop - p));
		if (end == NULL)
			end = stop;
		if (put(arg, p, (size_t)(end - p), e) != 0)
			return -1;
	}
	return 0;
}

static int
put_rest(struct job *j, compact_line_fn *put, void *arg, struct err *e)
{
	struct event ev;
	int rc = source_begin(&j->in, j->cut.at, j->in.size, 0, e);

	while (rc == 0 && (rc = source_next(&j->in, &ev, e)) > 0) {
		rc = put(arg, ev.line, ev.len, e);
		event_release(&ev);
	}
	source_end(&j->in);
	return rc;
}

static int
filter(struct job *j, compact_line_fn *put, void *arg, struct err *e)
{
	struct compact *c = j->c;
	struct err why = ERR_INIT;
	int rc = compact_check(c, &why) < 0 ? -1 : prepare(j, &why);

	if (rc > 0) {
		upkeep_compacted(&c->run, j->cut.lines, lines_after(j), &j->use);
		upkeep_done(&c->run);
		rc = put_head(j, put, arg, &why);
	}
	if (rc == 0)
		rc = put_rest(j, put, arg, &why);
	if (rc < 0 && c->run.started)
		upkeep_failed(&c->run, &why);
	return rc < 0 ? err_set(e, why.code, "%s", why.msg) : 0;
}

int
compact_filter_stream(struct compact *c, struct store *s, const char *stream, compact_line_fn *put, void *arg, struct err *e)
{
	struct job j = { .c = c, .head = BUF_INIT, .use = UPKEEP_USE_INIT };
	int rc = source_of_log(&j.in, s, stream, c->on_bad, e);

	if (rc == 0)
		rc = filter(&j, put, arg, e);
	job_release(&j);
	return rc;
}

int
compact_filter(struct compact *c, int fd, const char *name, compact_line_fn *put, void *arg, struct err *e)
{
	struct job j = { .c = c, .head = BUF_INIT, .filter = true, .use = UPKEEP_USE_INIT };
	int rc = source_of_fd(&j.in, fd, name, c->on_bad, c->tmpdir, e);

	if (rc == 0)
		rc = filter(&j, put, arg, e);
	job_release(&j);
	return rc;
}

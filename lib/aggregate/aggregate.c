#include "aggregate/aggregate.h"

#include "aggregate/pending.h"
#include "aggregate/seen.h"
#include "aggregate/strategy.h"
#include "aggregate/undo.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/opts.h"
#include "history.h"
#include "stream.h"
#include "template.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define LOCK_TTL_MS 60000	/* renewed while it is held, where it has to be */
#define MEMORY_WAIT_MS (600 * 1000LL)	/* for a model that works on memory in another stream's run */
#define TRIES 4
#define RUNNING_DIR "/.ag2/running"

static const struct aggregate_strategy *const strategies[] = { &aggregate_working_memory, &aggregate_conversation_summary,
	&aggregate_exec };
#define N_STRATEGIES (sizeof(strategies) / sizeof(strategies[0]))

/* ---- strategies ---- */

bool
aggregate_list(size_t i, struct aggregate_info *info)
{
	if (i >= N_STRATEGIES)
		return false;
	*info = (struct aggregate_info){ strategies[i]->name, strategies[i]->params, strategies[i]->summary };
	return true;
}

/* `_` and `-` are the same. */
static const struct aggregate_strategy *
find_strategy(const char *name, size_t len)
{
	size_t i, k;

	for (i = 0; i < N_STRATEGIES; i++) {
		for (k = 0; k < len && (name[k] == '_' ? '-' : name[k]) == strategies[i]->name[k]; k++)
			;
		if (k == len && strategies[i]->name[k] == '\0')
			return strategies[i];
	}
	return NULL;
}

static int
unknown_strategy(const char *name, struct err *e)
{
	const char *names[N_STRATEGIES], *near;
	size_t i;

	for (i = 0; i < N_STRATEGIES; i++)
		names[i] = strategies[i]->name;
	near = nearest(name, names, N_STRATEGIES);
	if (near != NULL)
		return err_set(e, ERR_USAGE, "unknown strategy '%.100s'; did you mean '%s'?", name, near);
	return err_set(e, ERR_USAGE, "unknown strategy '%.100s': working-memory, conversation-summary or exec:CMD", name);
}

/* Commands have cursors of their own, each. */
static char *
key_of(const struct aggregate_strategy *strategy, const char *command)
{
	struct line_sum sum;

	if (command == NULL)
		return xstrdup(strategy->name);
	sum = line_sum(command, strlen(command));
	return xasprintf("%s-%02x%02x%02x%02x%02x%02x", strategy->name, sum.sha1[0], sum.sha1[1], sum.sha1[2], sum.sha1[3], sum.sha1[4],
	    sum.sha1[5]);
}

int
aggregate_spec_parse(struct aggregate_spec *spec, const char *text, struct err *e)
{
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : strlen(text);
	const struct aggregate_strategy *strategy = find_strategy(text, len);
	char *name;

	*spec = (struct aggregate_spec){ .strategy = strategy };
	if (strategy == NULL) {
		name = xmemdup0(text, len);
		unknown_strategy(name, e);
		free(name);
		return -1;
	}
	if (strategy->command && (colon == NULL || colon[1] == '\0'))
		return err_set(e, ERR_USAGE, "%s needs a command: %s:CMD", strategy->name, strategy->name);
	if (!strategy->command && colon != NULL)
		return err_set(e, ERR_USAGE, "%s takes no parameters, not '%.100s'", strategy->name, colon + 1);
	if (strategy->command)
		spec->command = xstrdup(colon + 1);
	spec->key = key_of(strategy, spec->command);
	return 0;
}

/* How many entries before i are the same: two of one kind must not share a cursor. */
static size_t
same_before(const struct agent *a, size_t i)
{
	size_t k, n = 0;

	for (k = 0; k < i; k++)
		n += strcmp(a->aggregates[k].strategy, a->aggregates[i].strategy) == 0 &&
		    strcmp(a->aggregates[k].command ? a->aggregates[k].command : "",
		    a->aggregates[i].command ? a->aggregates[i].command : "") == 0;
	return n;
}

int
aggregate_spec_copy(struct aggregate_spec *spec, const struct agent *a, size_t i, struct err *e)
{
	const struct upkeep *u = &a->aggregates[i];
	const struct aggregate_strategy *strategy = find_strategy(u->strategy, strlen(u->strategy));
	size_t n = same_before(a, i);
	char *key;

	*spec = (struct aggregate_spec){ .strategy = strategy };
	if (strategy == NULL)
		return unknown_strategy(u->strategy, e);
	key = key_of(strategy, u->command);
	spec->key = n > 0 ? xasprintf("%s.%zu", key, n + 1) : xstrdup(key);
	free(key);
	spec->command = u->command ? xstrdup(u->command) : NULL;
	spec->cwd = a->dir ? xstrdup(a->dir) : NULL;
	spec->prompt = u->prompt ? xstrdup(u->prompt) : NULL;
	return 0;
}

bool
aggregate_spec_is(const struct aggregate_spec *spec, const struct agent *a, size_t i)
{
	const struct upkeep *u = &a->aggregates[i];

	return find_strategy(u->strategy, strlen(u->strategy)) == spec->strategy &&
	    strcmp(u->command ? u->command : "", spec->command ? spec->command : "") == 0;
}

void
aggregate_spec_release(struct aggregate_spec *spec)
{
	free(spec->command);
	free(spec->cwd);
	free(spec->prompt);
	free(spec->key);
	*spec = (struct aggregate_spec){ .strategy = NULL };
}

struct aggregate_trigger
aggregate_trigger_of(const struct upkeep *u)
{
	return (struct aggregate_trigger){ .anything = u->on_end, .turns = u->every_n_turns, .events = u->every_n_events };
}

/* ---- what strategies share ---- */

int
aggregation_ask(struct aggregation *g, const char *template, struct text existing, struct err *e)
{
	struct template_value values[] = { { "existing", existing.data, existing.len }, { "events", g->events.data, g->events.len } };
	struct buf prompt = BUF_INIT;
	int rc;

	template_fill(&prompt, template, strlen(template), values, 2);
	rc = upkeep_ask(&g->a->model, "aggregation", (struct text){ prompt.data, prompt.len }, &g->output, &g->use, e);
	buf_release(&prompt);
	return rc;
}

int
aggregation_read(struct aggregation *g, const char *path, struct err *e)
{
	struct store_stat st;
	struct err why = ERR_INIT;

	g->existing.max = EXISTING_MAX;
	if (store_read(g->store, path, &g->existing, &st, &why) < 0)
		return why.code == ERR_ABSENT ? 0 : err_set(e, why.code, "%s", why.msg);
	g->earlier = xstrdup(path);
	g->version = st.version;
	return 0;
}

static void
aggregation_release(struct aggregation *g)
{
	buf_release(&g->existing);
	buf_release(&g->output);
	upkeep_use_release(&g->use);
	free(g->earlier);
	free(g->path);
}

/* ---- one run ---- */

/* What is needed for as long as a stream is aggregated. */
struct job {
	struct aggregate *a;
	struct store *s;
	const char *stream;
	struct buf cursor_path, running_path, undo_path, seen_path;
	uint64_t goal;			/* covered lines up to which parts are given, due or not */
	size_t limit;			/* events that the model could take at once; 0: not known */
	struct undo undo;		/* what was there before the first part */
	bool part;			/* a part was done */
	bool denied;			/* may_call said no */
};

static void
path_of(struct buf *out, const char *dir, const struct job *j)
{
	buf_reset(out);
	buf_addf(out, "%s/%s/%s", dir, j->a->spec.key, j->stream);
}

static void
job_init(struct job *j, struct aggregate *a, struct store *s, const char *stream)
{
	*j = (struct job){ .a = a, .s = s, .stream = stream, .cursor_path = BUF_INIT, .running_path = BUF_INIT,
		.undo_path = BUF_INIT, .seen_path = BUF_INIT, .undo = UNDO_INIT };
	cursor_path(&j->cursor_path, a->spec.key, stream);
	path_of(&j->running_path, RUNNING_DIR, j);
	path_of(&j->undo_path, UNDO_DIR, j);
	seen_path(&j->seen_path, a->spec.key);
	a->ran = a->held = false;
	a->run.what = "Aggregation";
	a->run.strategy = a->spec.strategy->class_name;
	a->run.store = s;
	a->run.stream = stream;
	a->run.started = false;
}

static void
job_release(struct job *j)
{
	buf_release(&j->cursor_path);
	buf_release(&j->running_path);
	buf_release(&j->undo_path);
	buf_release(&j->seen_path);
	undo_release(&j->undo);
}

static bool
is_due(const struct job *j, const struct cursor *c, const struct pending *p)
{
	const struct aggregate_trigger *t = &j->a->trigger;

	if (p->total == 0)
		return false;
	return c->covered < j->goal || t->anything || (t->turns > 0 && p->turns >= (uint64_t)t->turns) ||
	    (t->events > 0 && p->counted >= (uint64_t)t->events);
}

/* The name of a run: what it begins and ends with makes it. */
static char *
run_id(const struct job *j, const struct cursor *c, const struct pending *p, size_t n)
{
	char *text = xasprintf("%s %s %" PRIu64 " %zu", j->a->spec.key, j->stream, c->covered, n);
	struct buf all = BUF_INIT;
	struct line_sum sum;
	char *id;

	buf_adds(&all, text);
	buf_add(&all, &p->events[0].sum, sizeof(p->events[0].sum));
	buf_add(&all, &p->events[n - 1].sum, sizeof(p->events[n - 1].sum));
	sum = line_sum(all.data, all.len);
	id = xasprintf("%02x%02x%02x%02x%02x%02x%02x%02x", sum.sha1[0], sum.sha1[1], sum.sha1[2], sum.sha1[3], sum.sha1[4], sum.sha1[5],
	    sum.sha1[6], sum.sha1[7]);
	free(text);
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
commit(struct job *j, struct aggregation *g, const struct cursor *from, const struct cursor *to, struct err *e)
{
	struct store_op ops[10 + HISTORY_OPS];
	struct buf cursor = BUF_INIT, undo = BUF_INIT;
	struct history history = { NULL };
	bool moves = g->earlier != NULL && g->path != NULL && strcmp(g->earlier, g->path) != 0;
	bool same = g->earlier != NULL && g->output.len == g->existing.len && memcmp(g->output.data, g->existing.data, g->output.len) == 0;
	size_t n = 0;
	int rc = 0;

	ops[n++] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = j->cursor_path.data, .version = from->version };
	if (g->earlier != NULL)
		ops[n++] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = g->earlier, .version = g->version };
	if (g->path != NULL && (g->earlier == NULL || moves))
		ops[n++] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = g->path, .version = 0 };
	if (g->earlier != NULL && !same) {
		rc = history_read(j->s, g->earlier, &history, e);
		if (rc == 0)
			n += history_ops(&history, g->earlier, g->existing.data, g->existing.len, ops + n);
	}
	if (moves)
		ops[n++] = (struct store_op){ .kind = STORE_OP_DELETE, .path = g->earlier };
	if (g->path != NULL)
		ops[n++] = (struct store_op){ .kind = STORE_OP_WRITE, .path = g->path, .data = g->output.data, .len = g->output.len };
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

/* One call: 0 done, 1 the model cannot take so much, or it may not be asked; -1. ERR_CONFLICT: the commit was too late. */
static int
run_part(struct job *j, const struct cursor *c, const struct pending *p, size_t n, const struct pending *whole, struct err *e)
{
	const struct aggregate_strategy *strategy = j->a->spec.strategy;
	struct aggregation g = { .a = j->a, .store = j->s, .stream = j->stream, .existing = BUF_INIT, .output = BUF_INIT,
		.use = UPKEEP_USE_INIT };
	char *id = run_id(j, c, p, n);
	struct cursor to;
	struct err why = ERR_INIT;
	int rc = 0;

	g.id = id;
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
	}
	cursor_format(&text, c);
	ops[1].data = text.data;
	ops[1].len = text.len;
	store_commit(j->s, ops, 2, NULL);
	buf_release(&text);
}

/* 1 when a part was given and there is more, 0 when there is nothing to do any more. */
static int
step(struct job *j, struct err *e)
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
	if (p.total == 0)
		note_seen(j, &c, &p);
	if (p.total == 0 || (n == 0 && !is_due(j, &c, &p)))
		goto out;
	if (j->goal == 0)
		j->goal = c.covered + p.total;
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

static int
run_steps(struct job *j, struct err *e)
{
	struct err why = ERR_INIT;
	int rc, tries = 0;

	do {
		rc = step(j, &why);
		if (rc < 0 && why.code == ERR_CONFLICT && ++tries < TRIES)
			rc = 1;
	} while (rc > 0);
	if (rc < 0)
		err_set(e, why.code == ERR_CONFLICT ? ERR_BUSY : why.code, "%s", why.msg);
	return rc;
}

/* ---- a stream ---- */

struct locks {
	struct store_lock *stream, *memory;
};

static int
lock(struct job *j, struct locks *l, struct err *e)
{
	const char *memory = j->a->spec.strategy->memory;
	char *path;
	struct err why = ERR_INIT;
	int rc;

	*l = (struct locks){ NULL, NULL };
	if (store_lock(j->s, j->cursor_path.data, LOCK_TTL_MS, j->a->wait_ms, &l->stream, &why) < 0) {
		j->a->held = why.code == ERR_BUSY;
		return j->a->held ? err_set(e, ERR_BUSY, "stream %s: another aggregates it", j->stream) : err_set(e, why.code, "%s", why.msg);
	}
	if (memory == NULL)
		return 0;
	path = xasprintf("/.ag2/lock%s", memory);
	rc = store_lock(j->s, path, LOCK_TTL_MS, MEMORY_WAIT_MS, &l->memory, e);
	free(path);
	if (rc < 0)
		store_unlock(l->stream);
	return rc;
}

static void
unlock(struct locks *l)
{
	store_unlock(l->memory);
	store_unlock(l->stream);
}

static int
has_stream(struct job *j, struct store_stat *st, struct err *e)
{
	struct buf path = BUF_INIT;
	struct stream_reader *r;
	int rc;

	stream_path(&path, j->stream);
	rc = store_stat(j->s, path.data, st, e);
	buf_release(&path);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	rc = stream_open(j->s, j->stream, true, &r, e);	/* a log that was compacted away whole */
	if (rc == 0)
		stream_close(r);
	return rc;
}

bool
aggregate_seen(const struct aggregate *a, struct store *s, const char *stream, uint64_t version)
{
	struct buf path = BUF_INIT;
	struct cursor c;
	bool seen = false;

	cursor_path(&path, a->spec.key, stream);
	if (version > 0 && cursor_read(s, path.data, &c, NULL) == 0) {
		seen = c.seen == version;
		cursor_release(&c);
	}
	buf_release(&path);
	return seen;
}

int
aggregate_stream(struct aggregate *a, struct store *s, const char *stream, struct err *e)
{
	struct job j;
	struct locks locks;
	struct store_stat st = { 0 };
	struct err left = ERR_INIT;
	int rc;

	job_init(&j, a, s, stream);
	rc = has_stream(&j, &st, e);
	if (rc == 0 && !aggregate_seen(a, s, stream, st.version)) {
		rc = lock(&j, &locks, e);
		if (rc == 0) {
			rc = run_steps(&j, e);
			if (rc == 0 && a->run.started)	/* half a part was too much for the model, and now there is no call left */
				err_set(&left, ERR_UNAVAIL, "no more calls are allowed now");
			if (rc < 0 || a->run.started)
				upkeep_failed(&a->run, rc < 0 ? e : &left);
			unlock(&locks);
		}
	}
	job_release(&j);
	return rc;
}

/* ---- without a log ---- */

static int
write_output(struct aggregate *a, struct store *s, struct aggregation *g, struct err *e)
{
	struct store_op ops[5 + HISTORY_OPS];
	struct history history = { NULL };
	size_t n = 0;
	int rc = 0;

	ops[n++] = upkeep_op(&a->run);
	if (g->path != NULL) {
		if (g->earlier != NULL) {
			rc = history_read(s, g->earlier, &history, e);
			ops[n++] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = g->earlier, .version = g->version };
			n += history_ops(&history, g->earlier, g->existing.data, g->existing.len, ops + n);
			if (strcmp(g->earlier, g->path) != 0)
				ops[n++] = (struct store_op){ .kind = STORE_OP_DELETE, .path = g->earlier };
		}
		ops[n++] = (struct store_op){ .kind = STORE_OP_WRITE, .path = g->path, .data = g->output.data, .len = g->output.len };
	}
	if (rc == 0)
		rc = store_commit(s, ops, n, e);
	history_release(&history);
	return rc;
}

static ssize_t
read_events(void *arg, void *data, size_t len, struct err *e)
{
	struct text *rest = arg;

	if (len > rest->len)
		len = rest->len;
	memcpy(data, rest->data, len);
	rest->data += len;
	rest->len -= len;
	return (ssize_t)len;
}

static bool
is_due_once(const struct aggregate *a, const struct pending *p)
{
	const struct aggregate_trigger *t = &a->trigger;

	return p->total > 0 && (t->anything || (t->turns > 0 && p->turns >= (uint64_t)t->turns) ||
	    (t->events > 0 && p->counted >= (uint64_t)t->events));
}

/* The events of one input: given once. */
static int
run_input(struct aggregate *a, struct aggregation *g, const struct pending *p, struct err *e)
{
	const struct aggregate_strategy *strategy = a->spec.strategy;
	struct line_sum sum = line_sum(p->lines.data, p->lines.len);
	char *id = xasprintf("%02x%02x%02x%02x%02x%02x%02x%02x", sum.sha1[0], sum.sha1[1], sum.sha1[2], sum.sha1[3], sum.sha1[4],
	    sum.sha1[5], sum.sha1[6], sum.sha1[7]);
	int rc;

	a->ran = true;
	g->id = id;
	g->events = (struct text){ p->text.data, p->text.len };
	g->lines = (struct text){ p->lines.data, p->lines.len };
	upkeep_started(&a->run, p->n);
	rc = strategy->make(g, e);
	if (rc == 0)
		upkeep_aggregated(&a->run, p->n, &g->use);
	if (rc == 0 && g->store != NULL)
		rc = write_output(a, g->store, g, e);
	if (rc == 0)
		upkeep_done(&a->run);
	else
		upkeep_failed(&a->run, e);
	free(id);
	return rc;
}

int
aggregate_events(struct aggregate *a, struct store *s, const char *stream, const struct event_list *events, struct err *e)
{
	struct aggregation g = { .a = a, .store = s, .stream = stream, .existing = BUF_INIT, .output = BUF_INIT, .use = UPKEEP_USE_INIT };
	struct buf lines = BUF_INIT;
	struct text rest;
	struct pending p;
	struct jsonl in;
	struct job j;
	size_t i;
	int rc;

	job_init(&j, a, s, stream);
	for (i = 0; i < events->n; i++) {
		buf_add(&lines, events->items[i]->line, events->items[i]->len);
		buf_addch(&lines, '\n');
	}
	rest = (struct text){ lines.data, lines.len };
	jsonl_init(&in, "the turn", a->on_bad, read_events, &rest);
	rc = pending_read_input(&p, &in, e);
	jsonl_release(&in);
	if (rc == 0 && is_due_once(a, &p)) {
		if (a->spec.strategy->look != NULL)
			rc = a->spec.strategy->look(&g, e);
		if (rc == 0)
			rc = run_input(a, &g, &p, e);
	}
	pending_release(&p);
	aggregation_release(&g);
	buf_release(&lines);
	job_release(&j);
	return rc;
}

int
aggregate_filter(struct aggregate *a, int fd, const char *name, struct text existing, struct buf *out, struct err *e)
{
	struct aggregation g = { .a = a, .existing = BUF_INIT, .output = BUF_INIT, .use = UPKEEP_USE_INIT };
	struct pending p;
	struct jsonl in;
	struct job j;
	int rc;

	job_init(&j, a, NULL, NULL);
	jsonl_init_fd(&in, name, a->on_bad, fd);
	rc = pending_read_input(&p, &in, e);
	a->bad = p.bad;
	jsonl_release(&in);
	buf_add(&g.existing, existing.data, existing.len);
	if (rc == 0 && is_due_once(a, &p)) {
		rc = run_input(a, &g, &p, e);
		if (rc == 0)
			buf_add(out, g.output.data, g.output.len);
	} else if (rc == 0) {
		buf_add(out, existing.data, existing.len);
	}
	pending_release(&p);
	aggregation_release(&g);
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
			rc = p.n < p.total;
	}
	cursor_release(&c);
	pending_release(&p);
	buf_release(&text);
	return rc;
}

typedef int change_fn(struct job *j, struct err *e);

/* 1 from fn: once more. */
static int
change(struct aggregate *a, struct store *s, const char *stream, change_fn *fn, struct err *e)
{
	struct locks locks;
	struct job j;
	struct err why = ERR_INIT;
	int rc, tries = 0;

	job_init(&j, a, s, stream);
	rc = lock(&j, &locks, e);
	if (rc == 0) {
		do {
			rc = fn(&j, &why);
			if (rc < 0 && why.code == ERR_CONFLICT && ++tries < TRIES)
				rc = 1;
		} while (rc > 0);
		if (rc < 0)
			err_set(e, why.code == ERR_CONFLICT ? ERR_BUSY : why.code, "%s", why.msg);
		unlock(&locks);
	}
	job_release(&j);
	return rc;
}

int
aggregate_mark(struct aggregate *a, struct store *s, const char *stream, struct err *e)
{
	return change(a, s, stream, mark, e);
}

static int
reset(struct job *j, struct err *e)
{
	struct store_op ops[] = { { .kind = STORE_OP_DELETE, .path = j->cursor_path.data },
		{ .kind = STORE_OP_DELETE, .path = j->running_path.data }, { .kind = STORE_OP_DELETE, .path = j->undo_path.data },
		{ .kind = STORE_OP_DELETE, .path = j->seen_path.data } };

	return store_commit(j->s, ops, 4, e);
}

int
aggregate_reset(struct aggregate *a, struct store *s, const char *stream, struct err *e)
{
	return change(a, s, stream, reset, e);
}

static int
undo(struct job *j, struct err *e)
{
	return undo_run(j->s, j->undo_path.data, j->cursor_path.data, j->seen_path.data, e);
}

int
aggregate_undo(struct aggregate *a, struct store *s, const char *stream, struct err *e)
{
	return change(a, s, stream, undo, e);
}

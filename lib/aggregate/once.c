/* What is no stream of a store: the events of a turn without a log, and those of a filter, are given once and without a cursor. */
#include "aggregate/job.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

static int
write_output(const struct aggregation *g, struct err *e)
{
	struct store_op ops[OUTPUT_OPS];
	struct history h = { NULL };
	size_t n = 0;
	int rc = aggregation_ops(g, &h, ops, &n, e);

	if (rc == 0 && n > 0)
		rc = store_commit(g->store, ops, n, e);
	history_release(&h);
	return rc;
}

static int
look(struct job *j, struct aggregation *g, struct err *e)
{
	if (j->s != NULL)
		return j->a->spec.strategy->look ? j->a->spec.strategy->look(g, e) : 0;
	buf_add(&g->existing, j->existing.data, j->existing.len);
	return 0;
}

static int
once(struct job *j, struct err *e)
{
	const struct pending *p = j->input;
	char *id = digest_name(p->lines.data, p->lines.len);
	struct aggregation g = AGGREGATION_INIT(j, id);
	int rc = look(j, &g, e);

	g.events = (struct text){ p->text.data, p->text.len };
	g.lines = (struct text){ p->lines.data, p->lines.len };
	if (rc == 0) {
		j->a->ran = true;
		if (!j->a->run.started)
			upkeep_started(&j->a->run, p->n);
		rc = j->a->spec.strategy->make(&g, e);
	}
	if (rc == 0) {
		upkeep_aggregated(&j->a->run, p->n, &g.use);
		if (j->s != NULL)
			rc = write_output(&g, e);
		else
			buf_add(j->out, g.output.data, g.output.len);
	}
	if (rc == 0)
		upkeep_done(&j->a->run);
	aggregation_release(&g);
	free(id);
	return rc;
}

struct rest {
	const struct event_list *events;
	size_t i, at;
};

static ssize_t
read_events(void *arg, void *data, size_t len, struct err *e)
{
	struct rest *r = arg;
	const struct event *ev;

	if (r->i == r->events->n || len == 0)
		return 0;
	ev = r->events->items[r->i];
	if (r->at == ev->len) {
		*(char *)data = '\n';
		r->at = 0;
		r->i++;
		return 1;
	}
	if (len > ev->len - r->at)
		len = ev->len - r->at;
	memcpy(data, ev->line + r->at, len);
	r->at += len;
	return (ssize_t)len;
}

int
aggregate_events(struct aggregate *a, struct store *s, const char *stream, const struct event_list *events, struct err *e)
{
	struct rest rest = { .events = events };
	struct pending p;
	struct jsonl in;
	struct job j;
	int rc;

	job_init(&j, a, s, stream);
	a->run.store = NULL;
	jsonl_init(&in, "the turn", a->on_bad, read_events, &rest);
	rc = pending_read_input(&p, &in, e);
	jsonl_release(&in);
	j.input = &p;
	if (rc == 0 && aggregate_trigger_is_met(&a->trigger, &p.news))
		rc = job_locked(&j, once, false, e);
	pending_release(&p);
	job_release(&j);
	return rc;
}

int
aggregate_filter(struct aggregate *a, int fd, const char *name, struct text existing, struct buf *out, struct err *e)
{
	struct pending p;
	struct jsonl in;
	struct job j;
	int rc;

	job_init(&j, a, NULL, "");
	jsonl_init_fd(&in, name, a->on_bad, fd);
	rc = pending_read_input(&p, &in, e);
	a->bad = p.bad;
	jsonl_release(&in);
	j.input = &p;
	j.existing = existing;
	j.out = out;
	if (rc == 0 && aggregate_trigger_is_met(&a->trigger, &p.news))
		rc = job_repeat(&j, once, false, e);
	else if (rc == 0)
		buf_add(out, existing.data, existing.len);
	pending_release(&p);
	job_release(&j);
	return rc;
}

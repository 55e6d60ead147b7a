/* A chain: its stages, its outlet, and feeding it. */
#include "policy/stage.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/run.h"
#include "policy/explain.h"
#include "policy/spool.h"
#include "policy/tail.h"
#include "stream.h"

#include <stdlib.h>
#include <sys/stat.h>

struct held_prompt {
	struct prompt p;	/* points into the two below */
	char *text, *source;
};

/*
 * The last stage: gives to the sink. Until the last prompt is known it holds prompts and spools events, so that when a
 * policy fails nothing has come out.
 */
struct outlet {
	struct stage stage;
	bool open;
	struct held_prompt *prompts;
	size_t n, cap;
	struct spool spool;
};

struct chain {
	struct chain_options o;
	struct stage **stages;	/* of the policies, then the repair when there is one, then the outlet */
	size_t n, policies;
	const struct policy_spec *specs;
	bool can_wait;
	bool begun;		/* an event came: no more prompts */
	struct jsonl *in;	/* what is being fed, for its bad lines; else NULL */
	struct jsonl log;	/* that of chain_feed_stream */
	char *log_path;
	struct event_list halts;
};

const struct chain_options *
chain_opts(const struct chain *c)
{
	return &c->o;
}

bool
chain_can_wait(const struct chain *c)
{
	return c->can_wait || c->o.whole;
}

int
chain_bad(struct chain *c, const struct event *ev, const struct err *why, struct err *e)
{
	chain_why(c, ev, "its content is broken");
	if (c->in != NULL)
		return jsonl_bad(c->in, ev, why, e);
	if (c->o.on_bad == JSONL_BAD_STOP)
		return err_set(e, why->code, "%s", why->msg);
	log_warn("%s", why->msg);
	return 0;
}

int
chain_readable(struct chain *c, const struct event *ev, struct err *e)
{
	struct err bad = ERR_INIT;

	if (!c->o.answer_open || event_check(ev, &bad) == 0)
		return 1;
	return chain_bad(c, ev, &bad, e);
}

void
chain_why(const struct chain *c, const struct event *ev, const char *why)
{
	explain_why(c->o.explain, ev->mark, why);
}

void
chain_halt(struct stage *by, const char *line, size_t len)
{
	struct event *ev = event_own(xmemdup0(line, len), len);

	ev->mark = explain_event(by->chain->o.explain, ev, by->number);
	chain_why(by->chain, ev, "a fatal alert halts");
	event_list_add(&by->chain->halts, ev);
}

/* ---- stages ---- */

int
stage_prompt(struct stage *s, const struct prompt *p, struct err *e)
{
	while (s->ops->prompt == NULL)
		s = s->next;
	explain_reach_prompt(s->chain->o.explain, p, s->number);
	return s->ops->prompt(s, p, e);
}

int
stage_prompts_done(struct stage *s, struct err *e)
{
	while (s->ops->prompts_done == NULL)
		s = s->next;
	return s->ops->prompts_done(s, e);
}

/* What comes without a mark was made by the stage before s. */
static void
account(struct stage *s, struct event *ev, int before)
{
	struct explain *x = s->chain->o.explain;

	if (ev->mark == 0)
		ev->mark = explain_event(x, ev, before);
	explain_reach_event(x, ev, s->number);
}

int
stage_event(struct stage *s, struct event *ev, struct err *e)
{
	struct stage *first = s;

	if (run_check(e) < 0)
		return -1;
	while (s->ops->event == NULL)
		s = s->next;
	if (s->chain->o.explain != NULL)
		account(s, ev, first->before);
	return s->ops->event(s, ev, e);
}

int
stage_end(struct stage *s, struct err *e)
{
	while (s->ops->end == NULL)
		s = s->next;
	return s->ops->end(s, e);
}

int
stage_inject(struct stage *next, struct text content, const char *source, struct err *e)
{
	struct prompt p = { .content = content, .source = source, .at_end = next->chain->o.layout_cache };

	p.mark = explain_prompt(next->chain->o.explain, &p, next->before);

	return stage_prompt(next, &p, e);
}

static void
stage_free(struct stage *s)
{
	if (s->ops->free != NULL)
		s->ops->free(s);
	else
		free(s);
}

/* ---- the outlet ---- */

static struct outlet *
outlet_of(struct stage *s)
{
	return (struct outlet *)s;
}

static int
outlet_prompt(struct stage *s, const struct prompt *p, struct err *e)
{
	struct outlet *o = outlet_of(s);
	struct held_prompt *h;

	o->prompts = xgrow(o->prompts, o->n, &o->cap, sizeof(o->prompts[0]));
	h = &o->prompts[o->n++];
	h->p = *p;
	h->source = p->source != NULL ? xstrdup(p->source) : NULL;
	h->text = xmalloc(p->content.len + p->line.len + 1);
	memcpy(h->text, p->content.data, p->content.len);
	if (p->line.data != NULL)
		memcpy(h->text + p->content.len, p->line.data, p->line.len);
	h->p.source = h->source;
	h->p.content.data = h->text;
	h->p.line.data = p->line.data != NULL ? h->text + p->content.len : NULL;
	return 0;
}

static void
forget_prompts(struct outlet *o)
{
	size_t i;

	for (i = 0; i < o->n; i++) {
		free(o->prompts[i].text);
		free(o->prompts[i].source);
	}
	free(o->prompts);
	o->prompts = NULL;
	o->n = o->cap = 0;
}

static int
to_sink(void *arg, struct event *ev, struct err *e)
{
	const struct chain_sink *sink = arg;

	return sink->event != NULL ? sink->event(sink->arg, ev, e) : 0;
}

static int
outlet_prompts_done(struct stage *s, struct err *e)
{
	struct outlet *o = outlet_of(s);
	const struct chain_sink *sink = &s->chain->o.sink;
	struct spool_reader reader = { .event = to_sink, .arg = &s->chain->o.sink };
	size_t i;
	int rc = 0;

	o->open = true;
	for (i = 0; i < o->n && rc == 0 && sink->prompt != NULL; i++)
		rc = sink->prompt(sink->arg, &o->prompts[i].p, e);
	forget_prompts(o);
	if (rc == 0)
		rc = spool_play(&o->spool, &reader, e);
	spool_release(&o->spool);
	return rc;
}

static int
outlet_event(struct stage *s, struct event *ev, struct err *e)
{
	struct outlet *o = outlet_of(s);
	int readable = s->chain->o.as_ag2 ? chain_readable(s->chain, ev, e) : 1;	/* else the repair has asked */

	if (readable <= 0)
		return readable;
	return o->open ? to_sink(&s->chain->o.sink, ev, e) : spool_add(&o->spool, ev, 0, e);
}

static int
outlet_end(struct stage *s, struct err *e)
{
	return 0;
}

static void
outlet_free(struct stage *s)
{
	forget_prompts(outlet_of(s));
	spool_release(&outlet_of(s)->spool);
	free(s);
}

static const struct stage_ops outlet_ops = {
	.prompt = outlet_prompt,
	.prompts_done = outlet_prompts_done,
	.event = outlet_event,
	.end = outlet_end,
	.free = outlet_free,
};

static struct stage *
outlet_new(struct chain *c)
{
	struct outlet *o = xcalloc(1, sizeof(*o));

	o->stage.ops = &outlet_ops;
	o->spool = (struct spool)SPOOL_INIT;
	o->spool.dir = c->o.tmpdir;
	return &o->stage;
}

/* ---- the chain ---- */

static void
add_stage(struct chain *c, struct stage *s)
{
	s->chain = c;
	s->before = (int)c->n - 1;
	s->number = (int)c->n;
	if (c->n > 0)
		c->stages[c->n - 1]->next = s;
	c->stages[c->n++] = s;
}

int
chain_new(struct chain **out, const struct policy_spec *specs, size_t n, const struct chain_options *o, struct err *e)
{
	struct chain *c = xcalloc(1, sizeof(*c));
	struct stage *s;
	size_t i;

	c->o = *o;
	c->log.buf = (struct buf)BUF_INIT;
	c->specs = specs;
	c->policies = n;
	c->stages = xcalloc(n + 2, sizeof(c->stages[0]));
	for (i = 0; i < n; i++) {
		s = specs[i].policy->open(c, &specs[i], e);
		if (s == NULL) {
			chain_free(c);
			return -1;
		}
		c->can_wait |= specs[i].policy->holds;
		explain_add_stage(o->explain, specs[i].policy->id);
		add_stage(c, s);
	}
	if (!o->as_ag2) {
		add_stage(c, sendable_new(c));
		explain_add_stage(o->explain, EXPLAIN_REPAIR);
	}
	add_stage(c, outlet_new(c));
	c->stages[c->n - 1]->number = EXPLAIN_SENT;
	*out = c;
	return 0;
}

void
chain_free(struct chain *c)
{
	size_t i;

	if (c == NULL)
		return;
	for (i = 0; i < c->n; i++)
		stage_free(c->stages[i]);
	free(c->stages);
	jsonl_release(&c->log);
	free(c->log_path);
	event_list_release(&c->halts);
	free(c);
}

int
chain_prompt(struct chain *c, const struct prompt *p, struct err *e)
{
	struct prompt own = *p;

	if (c->begun)
		return err_set(e, ERR_DATA, "a prompt behind an event");
	own.mark = explain_prompt(c->o.explain, p, -1);
	return stage_prompt(c->stages[0], &own, e);
}

static int
begin(struct chain *c, struct err *e)
{
	if (c->begun)
		return 0;
	c->begun = true;
	return stage_prompts_done(c->stages[0], e);
}

int
chain_event(struct chain *c, struct event *ev, struct err *e)
{
	if (!c->begun && begin(c, e) < 0)
		return -1;
	if (c->o.explain != NULL)
		ev->mark = explain_event(c->o.explain, ev, -1);
	return stage_event(c->stages[0], ev, e);
}

int
chain_end(struct chain *c, struct err *e)
{
	struct stage *outlet = c->stages[c->n - 1];
	size_t i;

	if (begin(c, e) < 0 || stage_end(c->stages[0], e) < 0)
		return -1;
	for (i = 0; i < c->halts.n; i++)
		if (stage_event(outlet, c->halts.items[i], e) < 0)
			return -1;
	return 0;
}

/* ---- feeding ---- */

static int
feed_prompt(struct chain *c, struct event *ev, struct err *e)
{
	struct err why = ERR_INIT;
	struct json_object *data = event_data(ev, &why);
	struct prompt p = { .line = { ev->line, ev->len } };

	if (data != NULL)
		p.content.data = json_get_text(data, "content", &p.content.len);
	if (c->begun)
		err_set(&why, ERR_DATA, "byte 1: a Prompt line behind an event");
	else if (data != NULL && p.content.data == NULL)
		err_set(&why, ERR_DATA, "byte 1: a Prompt line without content");
	if (why.code != ERR_NONE)
		return chain_bad(c, ev, &why, e);
	p.source = json_get_text(data, "source", NULL);
	p.at_end = prompt_at_end(data);
	return chain_prompt(c, &p, e);
}

static int
feed_event(struct chain *c, struct event *ev, struct err *e)
{
	int rc = ev->type->flags & EV_PROMPT ? feed_prompt(c, ev, e) : chain_event(c, ev, e);

	event_release(ev);
	return rc;
}

static int
feed_rest(struct chain *c, struct jsonl *in, struct err *e)
{
	struct event ev;
	int rc;

	while ((rc = jsonl_next(in, &ev, e)) > 0)
		if (feed_event(c, &ev, e) < 0)
			return -1;
	return rc;
}

int
chain_feed(struct chain *c, struct jsonl *in, struct err *e)
{
	struct stat st;

	c->in = in;
	if (in->fd >= 0 && fstat(in->fd, &st) == 0 && S_ISREG(st.st_mode))
		c->o.whole = true;
	return feed_rest(c, in, e);
}

/* ---- feeding a log ---- */

#define READ_FIRST 4096
#define READ_MOST (1u << 20)

struct log_file {		/* read from `at` on */
	struct store_file *file;
	uint64_t at;
	size_t most;		/* bytes of the next read: the head of a log is mostly one line */
};

static ssize_t
read_log(void *arg, void *data, size_t len, struct err *e)
{
	struct log_file *f = arg;
	ssize_t n = store_file_read(f->file, f->at, data, len < f->most ? len : f->most, e);

	if (n > 0)
		f->at += (uint64_t)n;
	if (f->most < READ_MOST)
		f->most *= 2;
	return n;
}

/* Begins to read lines at an offset (0: line 1); what was warned about before is not warned about again. */
static void
open_log(struct chain *c, const char *path, jsonl_read_fn *read, void *arg, uint64_t offset)
{
	uint64_t bad = c->log.bad;

	jsonl_release(&c->log);
	jsonl_init(&c->log, path, c->o.on_bad == JSONL_BAD_STOP ? JSONL_BAD_STOP : JSONL_BAD_ONCE, read, arg);
	c->log.bad = bad;
	if (offset > 0)
		jsonl_set_position(&c->log, 0, offset);
	c->in = &c->log;
}

/* The window for which reading the end of a log is enough, NULL when something before it has to see all. */
static struct stage *
window_of_chain(const struct chain *c, bool *kept_only)
{
	size_t i;

	*kept_only = false;
	if (c->o.explain != NULL)
		return NULL;
	for (i = 0; i < c->policies; i++) {
		const struct policy *policy = c->specs[i].policy;

		if (policy->from_end == NEEDS_ALL)
			return NULL;
		if (policy->from_end == ONLY_THE_END)
			return policy_bool(&c->specs[i], "transparent") || policy_int(&c->specs[i], "step") > 0 ? NULL : c->stages[i];
		*kept_only |= policy == &policy_conversation;
	}
	return NULL;
}

/* A summary at the head of the log stays: the first event that reaches the window is given to it as well. */
static int
feed_head(struct chain *c, struct stage *window, uint64_t end, struct err *e)
{
	struct event ev;
	int rc = 1;

	while (rc > 0 && !window_begun(window) && c->log.offset < end)
		if ((rc = jsonl_next(&c->log, &ev, e)) > 0 && feed_event(c, &ev, e) < 0)
			rc = -1;
	return rc < 0 ? -1 : 0;
}

static int
feed_end(struct chain *c, struct stage *window, bool kept_only, struct store_file *file, uint64_t size, const char *path,
    struct err *e)
{
	struct window_need need = window_needs(window);
	struct log_file f = { .file = file, .most = READ_FIRST };
	uint64_t offset;

	if (tail_find(file, size, &need, kept_only, &offset, e) < 0)
		return -1;
	open_log(c, path, read_log, &f, 0);
	if (!need.as_ag2 && feed_head(c, window, offset, e) < 0)
		return -1;
	if (c->log.offset < offset) {
		f.at = offset;
		f.most = READ_MOST;
		open_log(c, path, read_log, &f, offset);
	}
	return feed_rest(c, &c->log, e);
}

static int
feed_whole_log(struct chain *c, struct store *s, const char *stream, const char *path, struct err *e)
{
	struct stream_reader *r;
	int rc;

	if (stream_open(s, stream, false, &r, e) < 0)
		return -1;
	open_log(c, path, stream_read, r, 0);
	rc = feed_rest(c, &c->log, e);
	stream_close(r);
	return rc;
}

int
chain_feed_stream(struct chain *c, struct store *s, const char *stream, struct err *e)
{
	struct buf path = BUF_INIT;
	struct store_file *file = NULL;
	struct store_stat st;
	bool kept_only;
	struct stage *window = window_of_chain(c, &kept_only);
	int rc;

	c->o.whole = true;
	stream_path(&path, stream);
	free(c->log_path);
	c->log_path = buf_detach(&path, NULL);
	if (window != NULL && store_file_open(s, c->log_path, &file, &st, NULL) == 0) {
		rc = feed_end(c, window, kept_only, file, st.size, c->log_path, e);
		store_file_close(file);
		return rc;
	}
	return feed_whole_log(c, s, stream, c->log_path, e);
}

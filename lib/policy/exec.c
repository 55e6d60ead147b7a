/* exec:CMD: the command is a filter over Prompt and event lines. */
#include "policy/command.h"

#include "base/alloc.h"
#include "policy/explain.h"

#include <stdlib.h>
#include <unistd.h>

struct exec {
	struct stage stage;
	const struct policy_spec *spec;
	struct buf prompts;		/* lines */
	struct spool events;
};

static int
exec_prompt(struct stage *s, const struct prompt *p, struct err *e)
{
	struct exec *x = (struct exec *)s;

	explain_lend(chain_opts(s->chain)->explain, p->content.data, p->content.len, p->mark);
	if (p->line.data != NULL)
		buf_add(&x->prompts, p->line.data, p->line.len);
	else
		build_prompt(&x->prompts, p->content, p->source, p->at_end);
	buf_addch(&x->prompts, '\n');
	return 0;
}

static int
exec_prompts_done(struct stage *s, struct err *e)
{
	return 0;
}

static int
exec_event(struct stage *s, struct event *ev, struct err *e)
{
	explain_lend(chain_opts(s->chain)->explain, ev->line, ev->len, ev->mark);
	return spool_add(&((struct exec *)s)->events, ev, 0, e);
}

static int
give_prompt(struct stage *next, struct event *ev, bool begun, struct err *e)
{
	struct explain *x = chain_opts(next->chain)->explain;
	struct json_object *data = event_data(ev, e);
	struct prompt p = { .line = { ev->line, ev->len } };

	if (data == NULL)
		return -1;
	p.content.data = json_get_text(data, "content", &p.content.len);
	p.source = json_get_text(data, "source", NULL);
	p.at_end = prompt_at_end(data);
	if (p.content.data == NULL)
		return err_set(e, ERR_DATA, "a Prompt line without content");
	if (begun)
		return err_set(e, ERR_DATA, "a Prompt line behind an event");
	p.mark = explain_return(x, p.content.data, p.content.len);
	if (p.mark == 0)
		p.mark = explain_prompt(x, &p, next->before);
	return stage_prompt(next, &p, e);
}

/* Hands on what the command printed. A bad line is the command's failure, not a line to be skipped. */
static int
give_output(struct exec *x, int fd, struct err *e)
{
	struct stage *next = x->stage.next;
	char *name = xasprintf("exec:%.200s", x->spec->command);
	struct jsonl in;
	struct event ev;
	bool begun = false;
	int rc;

	jsonl_init_fd(&in, name, JSONL_BAD_STOP, fd);
	while ((rc = jsonl_next(&in, &ev, e)) > 0) {
		if (ev.type->flags & EV_PROMPT) {
			rc = give_prompt(next, &ev, begun, e);
			if (rc < 0)
				err_wrap(e, "%s", name);
		} else {
			rc = begun ? 0 : stage_prompts_done(next, e);
			begun = true;
			ev.mark = explain_return(chain_opts(next->chain)->explain, ev.line, ev.len);
			rc = rc < 0 ? rc : stage_event(next, &ev, e);
		}
		event_release(&ev);
		if (rc < 0)
			break;
	}
	if (rc == 0 && !begun)
		rc = stage_prompts_done(next, e);
	jsonl_release(&in);
	free(name);
	return rc;
}

static int
exec_end(struct stage *s, struct err *e)
{
	struct exec *x = (struct exec *)s;
	int fd = chain_tmpfile(chain_opts(s->chain)->tmpdir, e), rc;

	if (fd < 0)
		return -1;
	rc = command_run(s->chain, x->spec, &x->prompts, &x->events, NULL, fd, e);
	if (rc == 0 && lseek(fd, 0, SEEK_SET) != 0)
		rc = err_sys(e, "cannot read a temporary file");
	if (rc == 0)
		rc = give_output(x, fd, e);
	explain_forget_lent(chain_opts(s->chain)->explain);
	close(fd);
	return rc < 0 ? -1 : stage_end(s->next, e);
}

static void
exec_free(struct stage *s)
{
	struct exec *x = (struct exec *)s;

	buf_release(&x->prompts);
	spool_release(&x->events);
	free(x);
}

static const struct stage_ops exec_ops = {
	.prompt = exec_prompt,
	.prompts_done = exec_prompts_done,
	.event = exec_event,
	.end = exec_end,
	.free = exec_free,
};

static struct stage *
exec_open(struct chain *c, const struct policy_spec *spec, struct err *e)
{
	struct exec *x = xcalloc(1, sizeof(*x));

	x->stage.ops = &exec_ops;
	x->spec = spec;
	x->prompts = (struct buf)BUF_INIT;
	x->events = (struct spool)SPOOL_INIT;
	x->events.dir = chain_opts(c)->tmpdir;
	return &x->stage;
}

const struct policy policy_exec = {
	.name = "exec",
	.id = "exec",
	.kind = POLICY_FREE,
	.params = "CMD",
	.summary = "your own: CMD is a filter over the same lines",
	.command = true,
	.holds = true,
	.open = exec_open,
};

/* inject:CMD: the command reads the events, its output becomes a prompt. */
#include "policy/command.h"

#include "base/alloc.h"

#include <stdlib.h>

struct inject {
	struct stage stage;
	const struct policy_spec *spec;
	struct spool events;
};

static int
inject_prompts_done(struct stage *s, struct err *e)
{
	return 0;		/* ours comes at the end */
}

static int
inject_event(struct stage *s, struct event *ev, struct err *e)
{
	struct inject *in = (struct inject *)s;

	if (spool_add(&in->events, ev, 0, e) < 0)
		return -1;
	return stage_event(s->next, ev, e);
}

static int
inject_end(struct stage *s, struct err *e)
{
	struct inject *in = (struct inject *)s;
	struct buf none = BUF_INIT, text = BUF_INIT_MAX(EVENT_LINE_MAX);
	int rc = command_run(s->chain, in->spec, &none, &in->events, &text, 0, e);

	while (text.len > 0 && text.data[text.len - 1] == '\n')	/* as $(CMD) does */
		text.data[--text.len] = '\0';
	if (rc == 0 && text.len > 0)
		rc = stage_inject(s->next, (struct text){ text.data, text.len }, "inject", e);
	buf_release(&text);
	if (rc < 0 || stage_prompts_done(s->next, e) < 0)
		return -1;
	return stage_end(s->next, e);
}

static void
inject_free(struct stage *s)
{
	spool_release(&((struct inject *)s)->events);
	free(s);
}

static const struct stage_ops inject_ops = {
	.prompts_done = inject_prompts_done,
	.event = inject_event,
	.end = inject_end,
	.free = inject_free,
};

static struct stage *
inject_open(struct chain *c, const struct policy_spec *spec, struct err *e)
{
	struct inject *in = xcalloc(1, sizeof(*in));

	in->stage.ops = &inject_ops;
	in->spec = spec;
	in->events = (struct spool)SPOOL_INIT;
	in->events.dir = chain_opts(c)->tmpdir;
	return &in->stage;
}

const struct policy policy_inject = {
	.name = "inject",
	.id = "inject",
	.kind = POLICY_INJECTION,
	.params = "CMD",
	.summary = "adds what CMD prints, given the events, as a prompt",
	.command = true,
	.holds = true,
	.open = inject_open,
};

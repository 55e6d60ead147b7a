/* /memory/working.md as a prompt. */
#include "policy/stage.h"

#include "base/alloc.h"

#define PATH "/memory/working.md"
#define HEADING "## Working Memory\n\n"

static int
working_memory_prompts_done(struct stage *s, struct err *e)
{
	struct buf text = BUF_INIT_MAX(EVENT_LINE_MAX);
	struct store *store = chain_opts(s->chain)->store;
	struct err why = ERR_INIT;
	int rc = 0;

	buf_adds(&text, HEADING);
	if (store != NULL && store_read(store, PATH, &text, NULL, &why) < 0 && why.code != ERR_ABSENT) {
		if (e != NULL)
			*e = why;
		rc = -1;
	} else if (text.len > strlen(HEADING)) {
		rc = stage_inject(s->next, (struct text){ text.data, text.len }, "working_memory", e);
	}
	buf_release(&text);
	return rc < 0 ? -1 : stage_prompts_done(s->next, e);
}

static const struct stage_ops working_memory_ops = { .prompts_done = working_memory_prompts_done };

static struct stage *
working_memory_open(struct chain *c, const struct policy_spec *spec, struct err *e)
{
	struct stage *s = xcalloc(1, sizeof(*s));

	s->ops = &working_memory_ops;
	return s;
}

const struct policy policy_working_memory = {
	.name = "working-memory",
	.id = "working_memory",
	.kind = POLICY_INJECTION,
	.params = "",
	.summary = "adds the prompt '## Working Memory' with " PATH,
	.from_end = EACH_FOR_ITSELF,
	.open = working_memory_open,
};

/* Only what makes up a conversation: requests, responses, tool events, summaries, and the items providers replay. */
#include "policy/stage.h"

#include "base/alloc.h"

static int
conversation_event(struct stage *s, struct event *ev, struct err *e)
{
	unsigned flags = ev->type->flags;

	if ((flags & EV_KEPT) || ((flags & EV_HALT) && !chain_opts(s->chain)->as_ag2))
		return stage_event(s->next, ev, e);
	return 0;
}

static const struct stage_ops conversation_ops = { .event = conversation_event };

static struct stage *
conversation_open(struct chain *c, const struct policy_spec *spec, struct err *e)
{
	struct stage *s = xcalloc(1, sizeof(*s));

	s->ops = &conversation_ops;
	return s;
}

const struct policy policy_conversation = {
	.name = "conversation",
	.id = "conversation",
	.kind = POLICY_REDUCTION,
	.params = "",
	.summary = "only conversation and tool events, summaries, provider items",
	.from_end = EACH_FOR_ITSELF,
	.open = conversation_open,
};

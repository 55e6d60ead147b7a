/* The newest events that fit into N tokens, see window.c. */
#include "policy/stage.h"

static struct stage *
open_window(struct chain *c, const struct policy_spec *spec, struct err *e)
{
	return window_new(c, spec, true, e);
}

const struct policy policy_token_budget = {
	.name = "token-budget",
	.id = "token_budget",
	.kind = POLICY_REDUCTION,
	.params = "max_tokens=N,chars_per_token=4,transparent=false,step=0",
	.summary = "the newest events that fit into N tokens",
	.keys = { { "max_tokens", KEY_INT, NULL }, { "chars_per_token", KEY_CHARS, "4" }, { "transparent", KEY_BOOL, "false" },
	    { "step", KEY_INT, "0" } },
	.holds = true,
	.from_end = ONLY_THE_END,
	.check = window_check,
	.open = open_window,
};

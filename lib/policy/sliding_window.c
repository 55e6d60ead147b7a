/* The last N events, see window.c. */
#include "policy/stage.h"

static struct stage *
open_window(struct chain *c, const struct policy_spec *spec, struct err *e)
{
	return window_new(c, spec, false, e);
}

const struct policy policy_sliding_window = {
	.name = "sliding-window",
	.id = "sliding_window",
	.kind = POLICY_REDUCTION,
	.params = "max_events=N,transparent=false,step=0",
	.summary = "the last N events",
	.keys = { { "max_events", KEY_INT, NULL }, { "transparent", KEY_BOOL, "false" },
	    { "step", KEY_INT, "0" } },
	.holds = true,
	.from_end = ONLY_THE_END,
	.check = window_check,
	.open = open_window,
};

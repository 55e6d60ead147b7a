/* The newest events stay, the others go without a trace in the log. */
#include "compact/job.h"

const struct compact_strategy compact_tail_window = {
	.name = "tail-window",
	.class_name = "TailWindowCompact",
};

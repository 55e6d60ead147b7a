/*
 * The strategies of compaction and aggregation by name, as the command line, the agent file, usage texts and completion
 * know them. What each does is in a file of its own in compact/ or aggregate/, which is found by the name.
 */
#ifndef AG2_STRATEGY_H
#define AG2_STRATEGY_H

#include "base/err.h"

#include <stddef.h>

enum strategy_job { STRATEGY_COMPACTS, STRATEGY_AGGREGATES };

struct strategy {
	enum strategy_job job;
	const char *name;		/* "tail-window" */
	enum { STRATEGY_PLAIN, STRATEGY_TARGET, STRATEGY_COMMAND } takes;	/* behind the colon */
	const char *params;		/* the same for usage texts: "target=N"; "" */
	const char *summary;
};

/* One after the other; NULL behind the last. */
const struct strategy *strategy_at(enum strategy_job job, size_t i);

struct strategy_choice {
	const struct strategy *strategy;
	long target;			/* below 0: not given */
	char *command;			/* NULL: not given; the caller's */
};

/*
 * "tail-window:100", "tail_window:target=100", "exec:CMD", or a name alone. `_` and `-` are the same. ERR_USAGE names an
 * unknown strategy with the nearest known one. choice need not be initialised; after an error there is nothing to free.
 */
int strategy_parse(struct strategy_choice *choice, enum strategy_job job, const char *text, struct err *e);
/* Whether the strategy got what it needs, and nothing else: ERR_USAGE. */
int strategy_check(const struct strategy_choice *choice, struct err *e);

#endif

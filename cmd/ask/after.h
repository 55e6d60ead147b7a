/* What follows the answer of a turn: aggregation, then compaction, as their own programs. */
#ifndef AG2_ASK_AFTER_H
#define AG2_ASK_AFTER_H

#include "model.h"
#include "store/store.h"

struct after {
	const struct agent *agent;	/* of a file */
	struct store *store;
	const char *stream;		/* NULL: there is no log (write_event_log: false), and ... */
	const struct event_list *events;	/* ... these are the turn */
	const struct model_options *given;	/* limits are for all parts, the rest for those that name no model of their own */
	const char *record, *replay;	/* cassettes; NULL */
	const char *const *env;		/* of commands, as struct run has it */
	int status_fd;			/* below 0: none */
	bool as_ag2;			/* a strategy is given the whole log each time, and each episode is kept */
};

/*
 * Runs ag2-aggregate and ag2-compact where the agent file configures them; without a log the strategies of aggregation are
 * given the turn here. What failed is told: nothing of it spoils the answer, which is out and in the log. A signal that ends
 * us meanwhile is for the caller (run_interrupted).
 */
void after_turn(const struct after *a);

#endif

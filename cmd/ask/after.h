/* What follows the answer of a turn: aggregation, then compaction, as their own programs. */
#ifndef AG2_ASK_AFTER_H
#define AG2_ASK_AFTER_H

#include "config.h"
#include "store/store.h"

struct after {
	const struct agent *agent;	/* of a file */
	const struct store *store;
	const char *stream;
	const char *model, *base_url, *cacert;	/* of the command line; NULL. For a part that names no model of its own */
	const char *record, *replay;	/* cassettes; NULL */
	int status_fd;			/* below 0: none */
};

/*
 * Runs ag2-aggregate and ag2-compact where the agent file configures them. They say themselves what failed: nothing of it
 * spoils the answer, which is out and in the log. A signal that ends us meanwhile is for the caller (run_interrupted).
 */
void after_turn(const struct after *a);

#endif

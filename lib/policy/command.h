/* The events that go to a command of inject: and exec:, and running it. Private to lib/policy. */
#ifndef AG2_COMMAND_H
#define AG2_COMMAND_H

#include "policy/spool.h"
#include "policy/stage.h"

/*
 * Runs the command with the lines of prompts (whole lines) and then those of events on its stdin. It need not read them
 * all. Its output goes to out, or when that is NULL to the descriptor output_fd. Its failure is ERR_UNAVAIL.
 */
int command_run(struct chain *c, const struct policy_spec *spec, const struct buf *prompts, struct spool *events,
    struct buf *out, int output_fd, struct err *e);

#endif

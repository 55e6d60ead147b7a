/* --explain: what becomes of each event, and where the tokens go. Shared by ag2-assemble and ag2-ask. */
#ifndef AG2_CLI_EXPLAIN_H
#define AG2_CLI_EXPLAIN_H

#include "base/opts.h"
#include "policy/explain.h"

/* A usage error when what came behind --explain= is not json. */
void explain_check(const struct opts *o, const char *how);
/*
 * On standard error: one JSON object a row with how "json", else for each policy what it took in, let go and why, then
 * what is sent by its kinds, as a chart on a terminal.
 */
void explain_tell(const struct explain *x, const char *how);

#endif

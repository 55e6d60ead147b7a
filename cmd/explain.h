/* --explain: what becomes of each event, and where the tokens go. Shared by ag2-assemble and ag2-ask. */
#ifndef AG2_CLI_EXPLAIN_H
#define AG2_CLI_EXPLAIN_H

#include "base/opts.h"
#include "event/jsonl.h"
#include "policy/explain.h"
#include "store/store.h"

/* A usage error when what came behind --explain= is not json. */
void explain_check(const struct opts *o, const char *how);
/*
 * On standard error: one JSON object a row with how "json", else for each policy what it took in, let go and why, then
 * what is sent by its kinds, as a chart on a terminal.
 */
void explain_tell(const struct explain *x, const char *how);

/*
 * Whether alerts wait in the log of a stream, or (in, which may be NULL) in an input, that an alert policy would deliver: for
 * a chain that has none. Says so then. On failure the program ends.
 */
bool explain_lost_alerts(struct store *s, const char *stream, struct jsonl *in);

#endif

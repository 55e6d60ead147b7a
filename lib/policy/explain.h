/*
 * The account of a chain: what became of each prompt and each event of its input, and of those that were made on the way.
 * A chain keeps it when chain_options.explain is set: then a stream is read whole, and each event is weighed.
 * Takes some 90 bytes an event.
 */
#ifndef AG2_EXPLAIN_H
#define AG2_EXPLAIN_H

#include "policy/policy.h"

enum explain_action {
	EXPLAIN_KEPT,		/* came out as it went in */
	EXPLAIN_DROPPED,
	EXPLAIN_INJECTED,	/* made by a policy, and came out */
	EXPLAIN_REPAIRED,	/* changed or made so that what comes out can be sent, and came out */
};
const char *explain_action_name(enum explain_action action);

struct explain_row {
	const char *policy;	/* whose doing it was: "sliding_window", "repair"; NULL for what is kept */
	const char *source;	/* of a prompt, NULL: none */
	const struct event_type *type;	/* NULL: a prompt, or a tool's schema */
	const char *tool;	/* its name, else NULL */
	int64_t index;		/* of an event: its place in the input from 0; -1 for what was not in it */
	int64_t part_of;	/* the index of the event a part of which it is: one that came out as several; -1: none */
	uint64_t line;		/* in the input, of what it was made of where it was made; 0: not known */
	int64_t tokens;		/* of what came out; of what was dropped as it went in */
	int64_t given;		/* as it went in, or was made */
	int64_t files;		/* of what came out of the chain, the tokens of files that the client left out */
	enum explain_action action;
	const char *why;	/* NULL: nothing to say */
	int from, to;		/* the stages that saw it: policies from 0 on, then the repair, the client, EXPLAIN_SENT; from -1: the input */
};
#define EXPLAIN_REPAIR "repair"
#define EXPLAIN_NO_FILES "without its files, which are no part of a request"
#define EXPLAIN_SENT 1000	/* it came out */

struct explain *explain_new(int chars_per_token);
void explain_free(struct explain *x);
int explain_chars(const struct explain *x);
/* A tool whose schema is sent as well. */
void explain_tool(struct explain *x, const char *name, const char *schema, size_t len);

/*
 * Of what came out, only some is sent: a request holds messages, their calls and results. Told for each event that is in
 * it, then whose request it is (borrowed): everything else was left out there.
 */
void explain_taken(struct explain *x, struct event *ev);
void explain_client(struct explain *x, const char *name);

/* The rows: prompts and tools, then events in the order of the input, what was made on the way where it was made. */
void explain_rows(const struct explain *x, void (*fn)(void *arg, const struct explain_row *row), void *arg);
/* The names of the stages of the chain, NULL behind the last. */
const char *explain_stage(const struct explain *x, int stage);

/* How many alerts of the input no response has followed: those that an alert policy would deliver. */
int64_t explain_alerts(const struct explain *x);

/* How chars_per_token is counted where the policies do not say it: that of the first token-budget, else AG2's. */
int explain_chars_of(const struct policy_spec *specs, size_t n);

/* ---- for the chain and its stages; x may be NULL everywhere ---- */

void explain_add_stage(struct explain *x, const char *name);
uint64_t explain_prompt(struct explain *x, const struct prompt *p, int by);	/* by: a stage, -1: the input */
uint64_t explain_event(struct explain *x, struct event *ev, int by);
/* It reaches a stage (EXPLAIN_SENT: the outlet). An event that was taken apart comes out more than once: each part gets a mark of its own. */
void explain_reach_prompt(struct explain *x, const struct prompt *p, int stage);
void explain_reach_event(struct explain *x, struct event *ev, int stage);
/* Why it goes, or comes. A constant text; the last one is told. */
void explain_why(struct explain *x, uint64_t mark, const char *why);
/* For lines that go through a command: which it was, 0 when it is new. Each is found once. */
void explain_lend(struct explain *x, const char *line, size_t len, uint64_t mark);
uint64_t explain_return(struct explain *x, const char *line, size_t len);
void explain_forget_lent(struct explain *x);

#endif

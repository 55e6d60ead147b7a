/*
 * Assembly policies: what the model sees on a call. A chain of stages takes the prompts and events of a stream in order
 * and gives on those that pass; each stage is one policy. A policy is one file and one row in policy.c's table, which
 * also serves usage texts, the agent file and completion.
 *
 * A stage holds what it needs and no more: nothing (conversation), the window, or an open tool turn.
 */
#ifndef AG2_POLICY_H
#define AG2_POLICY_H

#include "event/build.h"
#include "event/jsonl.h"
#include "store/store.h"

enum policy_kind {
	POLICY_INJECTION,
	POLICY_REDUCTION,
	POLICY_FREE,		/* exec: either */
};

struct policy;			/* private: see policy/stage.h */

/* A policy with its parameters, as given on a command line or in an agent file. */
struct policy_param {
	char *key, *value;
};
struct policy_spec {
	const struct policy *policy;
	struct policy_param *params;
	size_t n;
	char *command;		/* of inject: and exec: */
};

/*
 * "sliding-window:80,transparent=true", "exec:CMD". ERR_USAGE names an unknown policy or key with the nearest known one,
 * a value that does not fit, or a missing required one. policy_spec_release frees.
 */
int policy_spec_parse(struct policy_spec *spec, const char *text, struct err *e);
/* The same step by step, for the agent file: name (or "exec"/"inject" with the command as value of key NULL), then keys, then check. */
int policy_spec_init(struct policy_spec *spec, const char *name, struct err *e);
int policy_spec_set(struct policy_spec *spec, const char *key, const char *value, struct err *e);
int policy_spec_check(const struct policy_spec *spec, struct err *e);
void policy_spec_release(struct policy_spec *spec);
const char *policy_spec_name(const struct policy_spec *spec);	/* with underscores: "sliding_window" */

/* The table, for usage texts and completion: name (with dashes), kind, parameters as text, one line. False behind the last. */
struct policy_info {
	const char *name, *params, *summary;
	enum policy_kind kind;
};
bool policy_list(size_t i, struct policy_info *info);

/*
 * AG2's order check: calls fn for each pair of a window (i) that runs before a policy that injects memory or alerts (j),
 * in order. Names are given so that policies we do not have can be checked too. Returns how many there are.
 */
size_t policy_order_check(const char *const *names, size_t n, void (*fn)(void *arg, size_t i, size_t j), void *arg);

/* ---- a chain ---- */

struct prompt {
	struct text content;
	const char *source;	/* "working_memory", ... ; NULL for one that came in without */
	struct text line;	/* the original line when it came as one, else data is NULL */
	bool at_end;		/* place: end (layout=cache) */
	uint64_t mark;		/* see struct event */
};

/* Takes what comes out: all prompts first, then the events. Borrowed for the call. Non-zero (-1 with e set) ends the chain. */
struct chain_sink {
	int (*prompt)(void *arg, const struct prompt *p, struct err *e);
	int (*event)(void *arg, struct event *ev, struct err *e);
	void *arg;
};

struct explain;

struct chain_options {
	struct store *store;		/* for memory policies; NULL: there is no memory */
	bool layout_cache;		/* prompts of policies are marked at_end: memory, alerts, notes */
	bool as_ag2;			/* AG2's rules event for event; else the beyond-AG2 behaviour, and what comes out can be sent */
	const char *const *env;		/* NAME=value for inject: and exec: commands, NULL-terminated; may be NULL */
	const char *cwd;		/* ... and where they run; NULL: where we are */
	enum jsonl_bad on_bad;		/* for events whose content turns out bad */
	bool whole;			/* the input is all at hand (a log, a file): what comes late can move to its place. chain_feed_stream sets it */
	bool answer_open;		/* what comes out is sent now: calls still open at the end get error results, too */
	bool tell_repairs;		/* one warning for each kind of repair at the end */
	struct explain *explain;	/* is told what becomes of everything (policy/explain.h); NULL: nobody asks */
	const char *tmpdir;		/* for events that have to wait; NULL: /var/tmp or /tmp. Borrowed for the chain's life */
	struct chain_sink sink;
};

struct chain;
/* ERR_USAGE for a limit below 0 (which AG2 takes: as_ag2). The specs are borrowed for the chain's life. */
int chain_new(struct chain **out, const struct policy_spec *specs, size_t n, const struct chain_options *o, struct err *e);
void chain_free(struct chain *c);

/*
 * Feeds prompts (before the first event) and events, then the end. Where no stage can still add a prompt and nothing is
 * open, events reach the sink at once; else they wait in memory, past 1 MB in an unlinked temporary file. chain_end gives
 * ERR_DATA when a budget cannot hold prompts, request and open tool turn: the message names the largest.
 */
int chain_prompt(struct chain *c, const struct prompt *p, struct err *e);
int chain_event(struct chain *c, struct event *ev, struct err *e);
int chain_end(struct chain *c, struct err *e);

/*
 * Feeds a whole input: Prompt lines as prompts, everything else as events. A Prompt line behind an event is a bad line.
 * `in` must live until chain_end, which may still find bad lines for it. chain_feed_stream feeds the current log of a
 * stream, from its end when the chain allows it (windows without transparent, step or alert before them), so that a
 * window over a log of any size costs what the window costs; bad lines of a store's log are warned about once.
 */
int chain_feed(struct chain *c, struct jsonl *in, struct err *e);
int chain_feed_stream(struct chain *c, struct store *s, const char *stream, struct err *e);

#endif

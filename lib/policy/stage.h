/*
 * What a policy is made of; private to lib/policy. A chain is a list of stages: prompts and events go in at the first,
 * each stage hands on what passes, and the last one, the outlet, gives it to the sink.
 *
 * The order in which a stage is called: prompt for each prompt that comes, prompts_done once, event for each event, end.
 * A stage that adds a prompt does so when the prompts before it are done; when it knows its prompt only at the end it
 * keeps prompts_done back until then, so that events may come before it further down the chain, and the outlet spools
 * them. A member that is NULL hands on what it got.
 */
#ifndef AG2_STAGE_H
#define AG2_STAGE_H

#include "policy/policy.h"

struct stage;

struct stage_ops {
	int (*prompt)(struct stage *s, const struct prompt *p, struct err *e);
	int (*prompts_done)(struct stage *s, struct err *e);
	int (*event)(struct stage *s, struct event *ev, struct err *e);	/* borrowed: event_dup what is to be held */
	int (*end)(struct stage *s, struct err *e);
	void (*free)(struct stage *s);	/* everything of the stage, itself included; NULL: free() does */
};

struct stage {			/* the first member of each policy's own struct */
	const struct stage_ops *ops;
	struct chain *chain;
	struct stage *next;
	int before;			/* the number of the stage before it, -1: none */
	int number;			/* of the chain's stages, from 0 on; the outlet is EXPLAIN_SENT */
};

int stage_prompt(struct stage *s, const struct prompt *p, struct err *e);
int stage_prompts_done(struct stage *s, struct err *e);
int stage_event(struct stage *s, struct event *ev, struct err *e);
int stage_end(struct stage *s, struct err *e);
/* A prompt of the policy's own. */
int stage_inject(struct stage *next, struct text content, const char *source, struct err *e);

/* ---- the chain as its stages see it ---- */

const struct chain_options *chain_opts(const struct chain *c);
/* An event whose content is broken: reported and left out by the input's rules. -1 when it must stop. */
int chain_bad(struct chain *c, const struct event *ev, const struct err *why, struct err *e);
/*
 * Whether an event's content can be read, where what comes out is sent now: whoever sends it has to read all of it, and
 * would fail. 1 it can, or nobody asks; 0 it was reported and is to be left out; -1.
 */
int chain_readable(struct chain *c, const struct event *ev, struct err *e);
/* Why an event goes, or comes: a constant text, for who asks. */
void chain_why(const struct chain *c, const struct event *ev, const char *why);
/* A HaltEvent made here (a line without newline): it bypasses what follows and comes out last. */
void chain_halt(struct stage *by, const char *line, size_t len);
/* Nothing can come out before the end of the input, or all of it is at hand: what comes late can still be moved. */
bool chain_can_wait(const struct chain *c);
/* A temporary file that has no name. -1 with e set. */
int chain_tmpfile(const char *dir, struct err *e);

/* ---- policies ---- */

enum key_kind {
	KEY_INT,
	KEY_BOOL,
	KEY_CHARS,	/* chars_per_token: 1 or more, or auto */
	KEY_NONE,	/* only the word "none" */
};

struct policy_key {
	const char *name;	/* with underscores; the first key of a policy is that of a value without key */
	enum key_kind kind;
	const char *def;	/* NULL: required, except for KEY_NONE */
};

/* What reading a stream from its end needs to know about a policy. */
enum from_end {
	NEEDS_ALL,		/* it has to see every event */
	EACH_FOR_ITSELF,	/* it lets an event pass or not by its type alone, and adds prompts without looking at events */
	ONLY_THE_END,		/* a window */
};

struct policy {
	const char *name;	/* with dashes */
	const char *id;		/* with underscores: in agent files, and as the source of prompts */
	enum policy_kind kind;
	const char *params;	/* for usage texts */
	const char *summary;
	struct policy_key keys[4];
	bool command;		/* takes a command instead of keys */
	bool holds;		/* with it in a chain, nothing comes out before the end */
	enum from_end from_end;
	/* What its values must be to each other, NULL: nothing. ERR_USAGE. */
	int (*check)(const struct policy_spec *spec, struct err *e);
	struct stage *(*open)(struct chain *c, const struct policy_spec *spec, struct err *e);
};

extern const struct policy policy_working_memory, policy_episodic_memory, policy_alert, policy_conversation,
    policy_sliding_window, policy_token_budget, policy_inject, policy_exec;

/* Parameters as given, else their defaults. KEY_CHARS: 0 stands for auto. */
int64_t policy_int(const struct policy_spec *spec, const char *key);
bool policy_bool(const struct policy_spec *spec, const char *key);
bool policy_given(const struct policy_spec *spec, const char *key);

/* ---- windows ---- */

/* Whether an event counts in a window (AG2: all do). */
bool window_counts(const struct event *ev, bool as_ag2);
int window_check(const struct policy_spec *spec, struct err *e);
struct stage *window_new(struct chain *c, const struct policy_spec *spec, bool budget, struct err *e);
bool window_begun(const struct stage *s);	/* it has seen an event */

/* For finding where a window begins from the end of its input: what it would hold at most. */
struct window_need {
	bool budget, as_ag2;
	int64_t max;		/* events or tokens */
	int chars_per_token;
};
struct window_need window_needs(const struct stage *s);

/* ---- the last stages ---- */

struct stage *sendable_new(struct chain *c);

#endif

/*
 * The agent file: one YAML document for an agent (see ag2-ask(1); libyaml reads it).
 *
 * Strict, since it runs commands: aliases and anchors, tags, duplicate keys, a second document, nesting beyond 64, more
 * than 500 000 values and files over 8 MiB are refused; an unknown key is ERR_CONFIG naming it, its line and the nearest
 * known one; so is a value of the wrong type. Messages begin `FILE:LINE: `. A file that group or others may write is ERR_PERM, one
 * that is not there ERR_NOINPUT. `_` and `-` are the same in keys and in the names of policies and strategies. An empty
 * value (null) is as if the key were not there. Paths in the file are relative to its directory.
 */
#ifndef AG2_CONFIG_H
#define AG2_CONFIG_H

#include "llm/llm.h"
#include "policy/policy.h"
#include "strategy.h"
#include "tool.h"

struct upkeep {			/* compact, or one entry of aggregate */
	struct strategy_choice choice;	/* strategy NULL: none; a command runs in the agent's dir */
	struct llm_config model;	/* provider NULL: the agent's */
	char *prompt;		/* template; NULL: the default one */
	/* The trigger: its own or the common one. -1 or false: not given. 0 is off; of chars_per_token it is CHARS_AUTO. */
	long every_n_turns, every_n_events, max_events, max_tokens, chars_per_token;
	bool on_end;
};

struct agent {
	char *file;		/* absolute where it could be made so; NULL when there is no file */
	char *dir;		/* absolute directory of the file: the cwd of its commands; NULL without a file */
	char *name;		/* default "agent" */
	char *prompt;		/* NULL: none */
	struct llm_config model;	/* provider NULL: none */
	bool has_knowledge;
	char *store;		/* URL, made absolute; NULL: not given */
	char *store_at;		/* "FILE:LINE" of it, for what is found wrong with it when it is opened */
	bool expose_tool, write_event_log;	/* default true */
	char *bootstrap;	/* "default", "none", "exec:CMD" */
	struct upkeep compact;	/* its strategy NULL: none */
	struct upkeep *aggregates;
	size_t aggregates_n;
	bool lone_compact_trigger, lone_aggregate_trigger;	/* there is one, and nothing that it could start */
	struct policy_spec *assembly;
	size_t assembly_n;
	bool layout_cache;
	struct tool *tools;	/* executables, and the knowledge tool where it is listed */
	size_t tools_n;
};

/* Reads file into a, which need not be initialised; after an error it is as agent_init leaves it. */
int agent_read(struct agent *a, const char *file, struct err *e);
/* The same from text: `file` names it in messages, dir (absolute) is what paths are relative to. */
int agent_parse(struct agent *a, const char *text, size_t len, const char *file, const char *dir, struct err *e);
void agent_init(struct agent *a);	/* AG2's defaults, as without a file */
void agent_release(struct agent *a);

#endif

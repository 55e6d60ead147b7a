/*
 * The agent file: one YAML document for an agent (see ag2-agent in the manual; libyaml reads it). Aliases and anchors,
 * duplicate keys, nesting beyond 64 and files over 8 MiB are refused; an unknown key is ERR_CONFIG naming it, its line and the
 * nearest known one. A file that group or others may write is ERR_PERM, for it runs commands. Paths in it are relative to it.
 */
#ifndef AG2_CONFIG_H
#define AG2_CONFIG_H

#include "llm/llm.h"
#include "policy/policy.h"
#include "tool.h"

struct upkeep {			/* compact, or one entry of aggregate */
	char *strategy;		/* "tail_window", "summarize", "working_memory", "conversation_summary", "exec" */
	char *command;		/* of exec */
	long target;		/* of compaction; 0: not given */
	struct llm_config model;	/* provider NULL: the agent's */
	char *prompt;		/* template; NULL: the default one */
	/* trigger; -1 or false: not given */
	long every_n_turns, every_n_events, max_events, max_tokens, chars_per_token;
	bool on_end;
};

struct agent {
	char *file;		/* as given; NULL when there is no file */
	char *dir;		/* absolute directory of the file: the cwd of its commands */
	char *name;		/* default "agent" */
	char *prompt;
	struct llm_config model;
	bool has_knowledge;
	char *store;		/* URL, made absolute */
	bool expose_tool, write_event_log;	/* default true */
	char *bootstrap;	/* "default", "none", "exec:CMD" */
	struct upkeep compact;	/* strategy NULL: none */
	struct upkeep *aggregates;
	size_t aggregates_n;
	struct policy_spec *assembly;
	size_t assembly_n;
	bool layout_cache;
	struct tool *tools;	/* executables */
	size_t tools_n;
};

int agent_read(struct agent *a, const char *file, struct err *e);
void agent_init(struct agent *a);	/* AG2's defaults, as without a file */
void agent_release(struct agent *a);

#endif

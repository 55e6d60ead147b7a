/* The tools of a turn: the agent file's, those of --tool, and knowledge. */
#ifndef AG2_ASK_TOOLS_H
#define AG2_ASK_TOOLS_H

#include "base/opts.h"
#include "config.h"
#include "tool.h"

struct tool_list {
	struct tool *items;
	size_t n, cap;
};

/* The agent's become the list's. A name that cannot be meant is a usage error. */
void collect_tools(struct tool_list *l, struct agent *a, const struct opt_list *given, const struct opts *usage);
bool has_knowledge(const struct tool_list *l);
/* Asks those that say themselves what they are. On failure the program ends. */
void declare_tools(struct tool_list *l, const struct tool_env *env);
void tools_release(struct tool_list *l);

#endif

#include "tools.h"

#include "../cli.h"
#include "base/alloc.h"
#include "base/run.h"

#include <stdlib.h>
#include <string.h>

static struct tool *
tool_add(struct tool_list *l)
{
	l->items = xgrow(l->items, l->n, &l->cap, sizeof(*l->items));
	l->items[l->n] = (struct tool){ .name = NULL };
	return &l->items[l->n++];
}

bool
has_knowledge(const struct tool_list *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (l->items[i].command == NULL)
			return true;
	return false;
}

/* The file's, then those given here, then knowledge. The agent's become ours. */
void
collect_tools(struct tool_list *l, struct agent *a, const struct opt_list *given, const struct opts *usage)
{
	struct err e = ERR_INIT;
	size_t i;

	for (i = 0; i < a->tools_n; i++)
		*tool_add(l) = a->tools[i];
	a->tools_n = 0;
	for (i = 0; i < given->n; i++)
		if (tool_parse(tool_add(l), given->items[i], NULL, &e) < 0)
			cli_usage(usage, "--tool: %s", e.msg);
	if (a->has_knowledge && a->expose_tool && !has_knowledge(l))
		tool_knowledge(tool_add(l));
}

void
declare_tools(struct tool_list *l, const struct tool_env *env)
{
	struct err e = ERR_INIT;
	size_t i, j;

	for (i = 0; i < l->n; i++) {
		if (tool_declare(&l->items[i], env, &e) < 0) {
			if (run_interrupted())
				cli_die_by(run_interrupted());
			log_fail(&e);
		}
		for (j = 0; j < i; j++)
			if (strcmp(l->items[i].name, l->items[j].name) == 0)
				log_die(78, "two tools are called '%s'", l->items[i].name);
	}
}

void
tools_release(struct tool_list *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		tool_release(&l->items[i]);
	free(l->items);
}

/*
 * Tools a model may call: the knowledge tool, and executables (declaration for `--schema`, then arguments as JSON on
 * stdin, the result on stdout, a non-zero exit an error result). Executables get no API keys in their environment, their
 * own process group, a time limit and 1 MiB of output.
 */
#ifndef AG2_TOOL_H
#define AG2_TOOL_H

#include "event/build.h"
#include "store/store.h"

struct tool {
	char *name, *description;		/* NULL until declared */
	struct json_object *parameters;
	char *command;				/* for sh -c; NULL: the knowledge tool */
	char *cwd;
};

struct tool_env {
	struct store *store;
	const char *const *env;			/* NAME=value, or NAME to remove (the API keys); NULL-terminated */
	double timeout;				/* seconds */
};

/* Completes an executable's declaration by running it with --schema. ERR_CONFIG when it declares nothing usable. */
int tool_declare(struct tool *t, const struct tool_env *env, struct err *e);
/* The knowledge tool. */
void tool_knowledge(struct tool *t);
void tool_release(struct tool *t);

/* Runs one call. The record is a ToolResultEvent, ToolErrorEvent or ToolNotFoundEvent; -1 only when interrupted. */
struct json_object *tool_call(const struct tool *tools, size_t n, const struct call *call, const struct tool_env *env, struct err *e);

#endif

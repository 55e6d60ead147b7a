/*
 * Tools a model may call: the knowledge tool, and executables. An executable prints its declaration for `--schema`, as
 * JSON {"name", "description", "parameters"}; for a call it gets the arguments as JSON on stdin, and what it prints is
 * the result; a non-zero exit is an error result with what it printed. It has a process group of its own, a time limit
 * and 1 MiB of output; API keys are not in its environment.
 */
#ifndef AG2_TOOL_H
#define AG2_TOOL_H

#include "event/build.h"
#include "store/store.h"

#define TOOL_OUTPUT_MAX (1u << 20)	/* bytes of a result */
#define TOOL_TIMEOUT 120		/* seconds, unless tool_env says otherwise */

struct tool {
	char *name, *description;		/* NULL until declared */
	struct json_object *parameters;
	char *command;				/* for sh -c; NULL: the knowledge tool */
	char *cwd;				/* NULL: where we are */
};

struct tool_env {
	struct store *store;			/* for the knowledge tool */
	const char *const *env;			/* NAME=value, or NAME to remove (the API keys); NULL-terminated */
	double timeout;				/* seconds; 0: TOOL_TIMEOUT */
	bool (*allowed)(const struct call *call);	/* asked before each call; one that is not allowed is an error result. NULL: all are */
};

/*
 * As a command line or an agent file names it: "knowledge", or a file. A relative file is one in dir (NULL: where we are)
 * when it is there or has a slash, else it is looked up in PATH.
 */
int tool_parse(struct tool *t, const char *text, const char *dir, struct err *e);
/* The knowledge tool. */
void tool_knowledge(struct tool *t);
void tool_release(struct tool *t);

/* Fills what a declaration left out; ERR_CONFIG when the name is not 1-64 of [A-Za-z0-9_-]. */
int tool_check(struct tool *t, struct err *e);
/*
 * Completes the declaration of an executable that has none by running it with --schema. ERR_CONFIG when it declares
 * nothing usable.
 */
int tool_declare(struct tool *t, const struct tool_env *env, struct err *e);

/*
 * Runs one call. The record is a ToolResultEvent, ToolErrorEvent or ToolNotFoundEvent, the caller's to put. NULL only when
 * the process was told to end (run_interrupted). Arguments that are not a JSON object run nothing: an error result.
 */
struct json_object *tool_call(const struct tool *tools, size_t n, const struct call *call, const struct tool_env *env, struct err *e);

#endif

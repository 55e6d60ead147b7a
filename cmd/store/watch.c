/* Waiting for changes: `watch`. */
#include "command.h"

#include "base/alloc.h"
#include "base/run.h"

#include <stdlib.h>

static bool once, verbose;
static double limit = -1;
static const char *command;

struct watching {
	const char *url;
	int status;	/* of the last command that failed */
};

static int
run_command(const struct watching *w, const char *path, bool removed)
{
	char *store = xasprintf("AG2_STORE=%s", w->url), *name = xasprintf("AG2_PATH=%s", path);
	const char *const env[] = { store, name, removed ? "AG2_CHANGE=removed" : "AG2_CHANGE=changed", NULL };
	struct run r = { .shell = command, .env = env, .terminal = true };
	struct err e = ERR_INIT;
	int status;

	out_flush();
	status = run(&r, &e);
	if (status < 0)
		log_warn("%s", e.msg);
	else if (status > 0)
		log_warn("the command for '%s' ended with status %d", path, status);
	free(store);
	free(name);
	return status < 0 ? err_status(e.code) : status;
}

static void
changed(void *arg, const char *path, bool removed)
{
	struct watching *w = arg;
	int status;

	if (command != NULL) {
		status = run_command(w, path, removed);
		w->status = status != 0 ? status : w->status;
		return;
	}
	out_puts(removed ? "removed " : "changed ");
	cli_puts(path);
	out_puts("\n");
}

static int
run_watch(char **args, int n)
{
	struct store *s = open_store(STORE_READ);
	struct watching w = { .url = store_url(s) };
	struct store_watch *watch = NULL;
	const char *path = n > 0 ? args[0] : "/";
	struct err e = ERR_INIT;
	int count, seen = 0;

	if (store_watch(s, path, &watch, &e) < 0)
		fail(&e);
	if (verbose)
		log_warn("watching %s", path);
	do {
		count = store_watch_next(watch, limit < 0 ? -1 : (int64_t)(limit * 1000), changed, &w, &e);
		if (count < 0)
			fail(&e);
		seen += count > 0;
		out_flush();
	} while (count > 0 && !once);
	store_watch_close(watch);
	store_close(s);
	return seen == 0 ? 1 : once ? w.status : 0;
}

static const struct opt watch_table[] = {
	{ '1', "once", OPT_FLAG, &once, NULL, "end after the first change (or those that come with it)" },
	{ 't', "timeout", OPT_SECONDS, &limit, "S", "end when nothing has changed for S seconds; status 1 when nothing did" },
	{ 'x', "exec", OPT_STRING, &command, "CMD", "run this shell command for each change, instead of printing it" },
	{ 'v', "verbose", OPT_FLAG, &verbose, NULL, "say on standard error when the watching has begun" },
	{ 0 }
};

const struct command command_watch = {
	.name = "watch",
	.operands = "[-1v] [-t S] [-x CMD] [PATH]",
	.summary = "tell what changes",
	.table = watch_table,
	.max = 1,
	.run = run_watch,
	.more = "Each file at PATH or below it that is written, made or removed is a line, 'changed /path' or\n"
		"'removed /path', whoever does it; a file that is renamed is two. CMD has the path in AG2_PATH, 'changed'\n"
		"or 'removed' in AG2_CHANGE, and the store in AG2_STORE; one runs at a time.\n"
		"\nExample:\n"
		"  ag2-store watch --exec 'ag2-store cat \"$AG2_PATH\" | wc -c' /memory\n",
};

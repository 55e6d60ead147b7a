#include "after.h"

#include "../cli.h"
#include "base/alloc.h"
#include "base/run.h"

#include <stdlib.h>

#define ARGS 16

struct command_line {
	char *argv[ARGS + 1];
	char *env[8];
	size_t argc, envc;
};

static void
add_arg(struct command_line *l, char *arg)
{
	if (l->argc < ARGS)
		l->argv[l->argc++] = arg;
}

static void
add_option(struct command_line *l, const char *name, const char *value)
{
	if (value != NULL)
		add_arg(l, xasprintf("%s=%s", name, value));
}

static void
set_env(struct command_line *l, const char *name, const char *value)
{
	if (value != NULL)
		l->env[l->envc++] = xasprintf("%s=%s", name, value);
}

static void
release(struct command_line *l)
{
	while (l->argc > 0)
		free(l->argv[--l->argc]);
	while (l->envc > 0)
		free(l->env[--l->envc]);
}

/* A cassette given for the turn is the whole turn's: one of the environment must not be used beside it. */
static void
describe(const struct after *a, struct command_line *l, const char *name, bool own_model)
{
	add_arg(l, cli_program(NULL, name));
	add_option(l, "--config", a->agent->file);
	add_option(l, "--store", store_url(a->store));
	add_option(l, "--stream", a->stream);
	if (a->status_fd >= 0)
		add_arg(l, xasprintf("--status-fd=%d", a->status_fd));
	if (!own_model) {
		add_option(l, "--model", a->model);
		set_env(l, "AG2_BASE_URL", a->base_url);
		set_env(l, "CURL_CA_BUNDLE", a->cacert);
	}
	if (a->record != NULL || a->replay != NULL) {
		l->env[l->envc++] = xstrdup("AG2_RECORD");
		l->env[l->envc++] = xstrdup("AG2_REPLAY");
		set_env(l, a->record ? "AG2_RECORD" : "AG2_REPLAY", a->record ? a->record : a->replay);
	}
}

static void
run_program(const struct after *a, const char *name, bool own_model, const char *extra)
{
	struct command_line l = { .argc = 0 };
	struct run r = { .argv = l.argv, .env = (const char *const *)l.env, .input = "", .output_fd = 2, .keep_fd = a->status_fd };
	struct err e = ERR_INIT;

	describe(a, &l, name, own_model);
	if (extra != NULL)
		add_arg(&l, xstrdup(extra));
	if (run(&r, &e) < 0 && !run_interrupted())
		log_warn("%s", e.msg);
	release(&l);
}

static bool
aggregates_name_models(const struct agent *a)
{
	size_t i;

	for (i = 0; i < a->aggregates_n; i++)
		if (a->aggregates[i].model.provider != NULL)
			return true;
	return false;
}

void
after_turn(const struct after *a)
{
	if (a->agent->aggregates_n > 0 && !run_interrupted())
		run_program(a, "ag2-aggregate", aggregates_name_models(a->agent), NULL);
	if (a->agent->compact.choice.strategy != NULL && !run_interrupted())
		run_program(a, "ag2-compact", a->agent->compact.model.provider != NULL, "--in-place");
}

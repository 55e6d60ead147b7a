#include "after.h"

#include "../cli.h"
#include "aggregate/aggregate.h"
#include "base/alloc.h"
#include "base/run.h"
#include "environ.h"
#include "stream.h"

#include <stdlib.h>
#include <string.h>

#define ARGS 8

/* ---- what a program that asks models is told in its environment ---- */

static void
set_seconds(struct env_list *l, const char *name, double seconds)
{
	if (seconds > 0)
		env_add(l, xasprintf("%s=%.17g", name, seconds));
}

/* A cassette given for the turn is the whole turn's: one of the environment must not be used beside it. */
static void
set_cassette(struct env_list *l, const struct after *a)
{
	if (a->record == NULL && a->replay == NULL)
		return;
	env_add(l, a->record ? xasprintf("AG2_RECORD=%s", a->record) : xstrdup("AG2_RECORD"));
	env_add(l, a->record ? xstrdup("AG2_REPLAY") : xasprintf("AG2_REPLAY=%s", a->replay));
}

static void
model_env(struct env_list *l, const struct after *a, bool own_model)
{
	const struct model_options *o = a->given;

	if (!own_model) {
		env_set(l, "AG2_BASE_URL", o->base_url);
		env_set(l, "CURL_CA_BUNDLE", o->cacert);
	}
	set_seconds(l, "AG2_TIMEOUT", o->timeout);
	set_seconds(l, "AG2_CONNECT_TIMEOUT", o->connect_timeout);
	set_seconds(l, "AG2_FIRST_BYTE_TIMEOUT", o->first_byte_timeout);
	set_seconds(l, "AG2_IDLE_TIMEOUT", o->idle_timeout);
	if (o->retries >= 0)
		env_add(l, xasprintf("AG2_RETRIES=%ld", o->retries));
	set_cassette(l, a);
}

/* ---- the programs ---- */

struct arguments {
	char *items[ARGS + 1];
	size_t n;
};

static void
add_option(struct arguments *l, const char *name, const char *value)
{
	if (value != NULL)
		l->items[l->n++] = xasprintf("%s=%s", name, value);
}

static void
run_program(const struct after *a, const char *name, bool own_model, const char *extra)
{
	struct arguments args = { .n = 0 };
	struct env_list env = { .items = NULL };
	struct run r = { .argv = args.items, .input = "", .output_fd = 2, .keep_fd = a->status_fd };
	struct err e = ERR_INIT;

	args.items[args.n++] = cli_program(NULL, name);
	add_option(&args, "--config", a->agent->file);
	add_option(&args, "--store", store_url(a->store));
	add_option(&args, "--stream", a->stream);
	if (a->status_fd >= 0)
		args.items[args.n++] = xasprintf("--status-fd=%d", a->status_fd);
	if (!own_model)
		add_option(&args, "--model", a->given->model);
	if (extra != NULL)
		args.items[args.n++] = xstrdup(extra);
	model_env(&env, a, own_model);
	env_add(&env, NULL);
	r.env = (const char *const *)env.items;
	if (run(&r, &e) < 0 && !run_interrupted())
		log_warn("%s", e.msg);
	env_release(&env);
	while (args.n > 0)
		free(args.items[--args.n]);
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

/* ---- without a log ---- */

/* The model of the file's entry must not be overruled by AG2_MODEL, which tells commands the agent's. */
static void
asking_env(struct env_list *l, const struct after *a, bool own_model)
{
	size_t i;

	model_env(l, a, own_model);
	for (i = 0; a->env[i] != NULL; i++)
		env_add(l, strncmp(a->env[i], "AG2_MODEL=", 10) == 0 ? xstrdup("AG2_MODEL") : xstrdup(a->env[i]));
	env_add(l, NULL);
}

static void
aggregate_turn(const struct after *a, size_t i, char *ask, const char *turn)
{
	const struct upkeep *u = &a->agent->aggregates[i];
	bool own_model = u->model.provider != NULL;
	struct aggregate g = { .trigger = aggregate_trigger_of(u), .env = a->env, .on_bad = JSONL_BAD_ONCE,
		.run = { .agent = a->agent->name, .status_fd = a->status_fd } };
	struct env_list env = { .items = NULL };
	char *part = xasprintf("aggregate:%zu", i);
	struct err e = ERR_INIT;

	aggregate_spec_copy(&g.spec, a->agent, i);
	asking_env(&env, a, own_model);
	g.model = (struct upkeep_model){ .ask = ask, .model = own_model ? NULL : a->given->model, .part = part,
		.env = (const char *const *)env.items };
	if (aggregate_events(&g, a->store, turn, a->events, &e) < 0 && !run_interrupted())
		log_warn("%s: %s", g.spec.key, e.msg);
	aggregate_spec_release(&g.spec);
	upkeep_run_release(&g.run);
	env_release(&env);
	free(part);
}

/* The turn has no stream; an episode of it is named by an id of its own. */
static void
aggregate_unlogged(const struct after *a)
{
	char *ask = cli_program("AG2_ASK", "ag2-ask"), *turn;
	struct err e = ERR_INIT;
	size_t i;

	if (stream_resolve(a->store, "@new", &turn, NULL, &e) < 0)
		log_fail(&e);
	for (i = 0; i < a->agent->aggregates_n && !run_interrupted(); i++)
		aggregate_turn(a, i, ask, turn);
	free(turn);
	free(ask);
}

void
after_turn(const struct after *a)
{
	if (a->stream == NULL) {
		aggregate_unlogged(a);
		return;
	}
	if (a->agent->aggregates_n > 0 && !run_interrupted())
		run_program(a, "ag2-aggregate", aggregates_name_models(a->agent), NULL);
	if (a->agent->compact.choice.strategy != NULL && !run_interrupted())
		run_program(a, "ag2-compact", a->agent->compact.model.provider != NULL, "--in-place");
}

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

/* A name alone, where nothing is given, takes out what a turn around us left there. */
static void
set_turn(struct env_list *l, const char *name, const char *value)
{
	env_add(l, value != NULL ? xasprintf("%s=%s", name, value) : xstrdup(name));
}

/* What is only for parts without a model of their own is sorted out by ag2-ask --model-of: see use_turn. */
static void
model_env(struct env_list *l, const struct after *a)
{
	const struct model_options *o = a->given;

	set_turn(l, "AG2_TURN_MODEL", o->model);
	set_turn(l, "AG2_TURN_BASE_URL", o->base_url);
	set_turn(l, "AG2_TURN_CACERT", o->cacert);
	set_turn(l, "AG2_TURN_CERT", o->cert);
	set_turn(l, "AG2_TURN_CERT_KEY", o->cert_key);
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
	l->items[l->n++] = value != NULL ? xasprintf("%s=%s", name, value) : xstrdup(name);
}

static void
run_program(const struct after *a, const char *name, struct arguments *args)
{
	struct env_list env = { .items = NULL };
	struct run r = { .argv = args->items, .input = "", .output_fd = 2, .keep_fd = a->status_fd };
	struct err e = ERR_INIT;

	args->items[0] = cli_program(NULL, name);
	add_option(args, "--config", a->agent->file);
	add_option(args, "--store", store_url(a->store));
	add_option(args, "--stream", a->stream);
	if (a->status_fd >= 0)
		args->items[args->n++] = xasprintf("--status-fd=%d", a->status_fd);
	model_env(&env, a);
	env_add(&env, NULL);
	r.env = (const char *const *)env.items;
	if (run(&r, &e) < 0 && !run_interrupted())
		log_warn("%s", e.msg);
	env_release(&env);
	while (args->n > 0)
		free(args->items[--args->n]);
}

static void
aggregate(const struct after *a)
{
	struct arguments args = { .n = 1 };

	if (a->as_ag2) {
		add_option(&args, "--all-events", NULL);
		add_option(&args, "--keep-all", NULL);
	}
	run_program(a, "ag2-aggregate", &args);
}

static void
compact(const struct after *a)
{
	struct arguments args = { .n = 1 };

	add_option(&args, "--in-place", NULL);
	run_program(a, "ag2-compact", &args);
}

/* ---- without a log ---- */

static void
asking_env(struct env_list *l, const struct after *a)
{
	size_t i;

	model_env(l, a);
	for (i = 0; a->env[i] != NULL; i++)
		env_add(l, xstrdup(a->env[i]));
	env_add(l, NULL);
}

static void
aggregate_turn(const struct after *a, size_t i, char *ask, const char *turn)
{
	const struct upkeep *u = &a->agent->aggregates[i];
	struct aggregate g = { .trigger = aggregate_trigger_of(u), .env = a->env, .on_bad = JSONL_BAD_ONCE,
		.run = { .agent = a->agent->name, .status_fd = a->status_fd } };
	struct env_list env = { .items = NULL };
	char *part = xasprintf("aggregate:%zu", i);
	struct err e = ERR_INIT;

	aggregate_spec_copy(&g.spec, a->agent, i);
	asking_env(&env, a);
	g.model = (struct upkeep_model){ .ask = ask, .part = part, .env = (const char *const *)env.items };
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
		aggregate(a);
	if (a->agent->compact.choice.strategy != NULL && !run_interrupted())
		compact(a);
}

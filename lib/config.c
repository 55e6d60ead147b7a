#include "config.h"

#include "base/alloc.h"
#include "base/io.h"
#include "base/opts.h"
#include "event/render.h"
#include "yamltree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (8u << 20)

struct reader {
	const char *file;	/* for messages */
	const char *dir;
	struct agent agent;
	const struct node *compact, *aggregate;		/* looked at when both common triggers are known */
	struct upkeep compact_trigger, aggregate_trigger;
};

/* Every function that takes a value apart: `at` is the field it belongs to. */
typedef int set_fn(struct reader *r, const struct node *n, void *at, struct err *e);

struct key {
	const char *name;
	set_fn *set;
	size_t offset;
};

#define KEYS_MAX 32
#define N(array) (sizeof(array) / sizeof((array)[0]))

/* ---- messages ---- */

/* As node_fail, for an error that came from below, where a wrong word is a usage error. */
static int
fail_at(const struct reader *r, const struct node *n, struct err *e)
{
	if (e != NULL)
		e->code = ERR_CONFIG;
	return err_wrap(e, "%s:%u", r->file, n->line);
}

static const char *
kind_name(const struct node *n)
{
	return n->kind == NODE_MAP ? "a map" : n->kind == NODE_LIST ? "a list" : "text";
}

static const char *
label(const struct node *n)
{
	return n->key ? n->key : "this entry";
}

static int
need(const struct reader *r, const struct node *n, enum node_kind kind, const char *what, struct err *e)
{
	if (n->kind == kind)
		return 0;
	return node_fail(n, r->file, e, "'%.100s' must be %s, not %s", label(n), what, kind_name(n));
}

/* ---- plain values ---- */

static int
set_text(struct reader *r, const struct node *n, void *at, struct err *e)
{
	char **field = at;

	if (need(r, n, NODE_SCALAR, "text", e) < 0)
		return -1;
	free(*field);
	*field = xstrdup(n->text);
	return 0;
}

static int
set_word(struct reader *r, const struct node *n, void *at, struct err *e)
{
	if (need(r, n, NODE_SCALAR, "text", e) < 0)
		return -1;
	if (n->text[0] == '\0' || strchr(n->text, '\n') != NULL)
		return node_fail(n, r->file, e, "'%.100s' must be one line of text", label(n));
	return set_text(r, n, at, e);
}

/* Relative to the file. */
static int
set_path(struct reader *r, const struct node *n, void *at, struct err *e)
{
	char **field = at;

	if (set_word(r, n, at, e) < 0)
		return -1;
	if (n->text[0] != '/') {
		free(*field);
		*field = xasprintf("%s/%s", r->dir, n->text);
	}
	return 0;
}

static int
set_bool(struct reader *r, const struct node *n, void *at, struct err *e)
{
	if (n->kind != NODE_SCALAR || node_type(n) != SCALAR_BOOL)
		return node_fail(n, r->file, e, "'%.100s' must be true or false", label(n));
	*(bool *)at = node_true(n);
	return 0;
}

static int
set_count(struct reader *r, const struct node *n, void *at, struct err *e)
{
	struct err why = ERR_INIT;

	if (n->kind != NODE_SCALAR || parse_long(n->text, label(n), at, &why) < 0 || *(long *)at < 0)
		return node_fail(n, r->file, e, "'%.100s' must be a whole number, 0 or more", label(n));
	return 0;
}

/* Code points that are a token, or how they are told apart. */
static int
set_chars(struct reader *r, const struct node *n, void *at, struct err *e)
{
	long *chars = at;

	if (n->kind == NODE_SCALAR && strcmp(n->text, "auto") == 0) {
		*chars = CHARS_AUTO;
		return 0;
	}
	if (n->kind != NODE_SCALAR || parse_long(n->text, label(n), chars, NULL) < 0 || *chars < 1 || *chars > CHARS_MAX)
		return node_fail(n, r->file, e, "'%.100s' must be a whole number from 1 to %d, or auto", label(n), CHARS_MAX);
	return 0;
}

static int
set_number(struct reader *r, const struct node *n, void *at, struct err *e)
{
	struct err why = ERR_INIT;

	if (n->kind != NODE_SCALAR || parse_seconds(n->text, label(n), at, &why) < 0 || *(double *)at < 0)
		return node_fail(n, r->file, e, "'%.100s' must be a number, 0 or more", label(n));
	return 0;
}

/* ---- maps by a table of keys ---- */

static bool
same_name(const char *a, const char *b)
{
	for (; *a != '\0' && *b != '\0'; a++, b++)
		if ((*a == '-' ? '_' : *a) != (*b == '-' ? '_' : *b))
			return false;
	return *a == *b;
}

static int
unknown_key(const struct reader *r, const struct node *n, const struct key *keys, size_t count, struct err *e)
{
	const char *names[KEYS_MAX];
	size_t i;

	for (i = 0; i < count; i++)
		names[i] = keys[i].name;
	return node_unknown(n, r->file, names, count, e);
}

static int
read_map(struct reader *r, const struct node *map, const struct key *keys, size_t count, void *base, struct err *e)
{
	const struct node *seen[KEYS_MAX] = { NULL }, *n;
	size_t i;

	if (need(r, map, NODE_MAP, "a map", e) < 0)
		return -1;
	for (n = map->first; n != NULL; n = n->next) {
		for (i = 0; i < count && !same_name(keys[i].name, n->key); i++)
			;
		if (i == count)
			return unknown_key(r, n, keys, count, e);
		if (seen[i] != NULL)
			return node_fail(n, r->file, e, "the key '%.100s' is already in line %u", n->key, seen[i]->line);
		seen[i] = n;
		if (node_type(n) == SCALAR_NULL)
			continue;
		if (keys[i].set(r, n, (char *)base + keys[i].offset, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- model ---- */

struct model_map {
	char *provider, *model;
	struct llm_config config;
};

static int
refuse_key(struct reader *r, const struct node *n, void *at, struct err *e)
{
	return node_fail(n, r->file, e, "keys are not kept in this file: name a variable with %s_env, a command with %s_cmd, or a file with %s_file", n->key, n->key, n->key);
}

static void
config_defaults(struct llm_config *c)
{
	*c = (struct llm_config){ .temperature = -1 };
}

static int
model_parse(struct reader *r, const struct node *n, struct llm_config *c, const char *text, struct err *e)
{
	if (llm_config_parse(c, text, e) < 0)
		return fail_at(r, n, e);
	free(c->cwd);
	c->cwd = xstrdup(r->dir);
	return 0;
}

static int
model_names(struct reader *r, const struct node *n, struct model_map *m, struct err *e)
{
	char *both;
	int rc;

	if (m->model == NULL)
		return node_fail(n, r->file, e, "'%.100s' lacks the key 'model'", label(n));
	if (m->provider == NULL)
		return model_parse(r, n, &m->config, m->model, e);
	both = xasprintf("%s:%s", m->provider, m->model);
	rc = model_parse(r, n, &m->config, both, e);
	free(both);
	return rc;
}

/* In an llm_config 0 is the default. */
static int
set_retries(struct reader *r, const struct node *n, void *at, struct err *e)
{
	if (set_count(r, n, at, e) < 0)
		return -1;
	if (*(long *)at == 0)
		*(long *)at = -1;
	return 0;
}

static int
set_json(struct reader *r, const struct node *n, void *at, struct err *e)
{
	struct err why = ERR_INIT;

	if (need(r, n, NODE_MAP, "a map", e) < 0)
		return -1;
	if (node_json(at, n, &why) < 0)
		return err_set(e, ERR_CONFIG, "%s:%s", r->file, why.msg);
	return 0;
}

#define MODEL_KEY(name, set) { #name, set, offsetof(struct model_map, config.name) }

static int
model_map(struct reader *r, const struct node *n, struct llm_config *c, struct err *e)
{
	static const struct key keys[] = {
		{ "provider", set_word, offsetof(struct model_map, provider) },
		{ "model", set_word, offsetof(struct model_map, model) },
		MODEL_KEY(base_url, set_word),
		MODEL_KEY(api_key_env, set_word),
		MODEL_KEY(api_key_cmd, set_word),
		MODEL_KEY(api_key_file, set_path),
		MODEL_KEY(cacert, set_path),
		MODEL_KEY(cert, set_path),
		MODEL_KEY(cert_key, set_path),
		MODEL_KEY(cert_pass_env, set_word),
		MODEL_KEY(cert_pass_cmd, set_word),
		MODEL_KEY(cert_pass_file, set_path),
		MODEL_KEY(cert_pass, refuse_key),
		MODEL_KEY(api_key, refuse_key),
		MODEL_KEY(temperature, set_number),
		MODEL_KEY(max_tokens, set_count),
		MODEL_KEY(timeout, set_number),
		MODEL_KEY(connect_timeout, set_number),
		MODEL_KEY(first_byte_timeout, set_number),
		MODEL_KEY(idle_timeout, set_number),
		MODEL_KEY(retries, set_retries),
		MODEL_KEY(cache, set_bool),
		MODEL_KEY(api_version, set_word),
		MODEL_KEY(options, set_json),
	};
	struct model_map m = { NULL };
	int rc = -1;

	config_defaults(&m.config);
	if (read_map(r, n, keys, N(keys), &m, e) == 0)
		rc = model_names(r, n, &m, e);
	free(m.provider);
	free(m.model);
	if (rc == 0)
		*c = m.config;
	else
		llm_config_release(&m.config);
	return rc;
}

static int
set_model(struct reader *r, const struct node *n, void *at, struct err *e)
{
	struct llm_config c;

	config_defaults(&c);
	if (n->kind == NODE_MAP) {
		if (model_map(r, n, &c, e) < 0)
			return -1;
	} else if (need(r, n, NODE_SCALAR, "PROVIDER:MODEL or a map", e) < 0 || model_parse(r, n, &c, n->text, e) < 0) {
		llm_config_release(&c);
		return -1;
	}
	llm_config_release(at);
	*(struct llm_config *)at = c;
	return 0;
}

/* ---- compact and aggregate ---- */

static void
upkeep_init(struct upkeep *u)
{
	*u = (struct upkeep){ .choice.target = -1, .every_n_turns = -1, .every_n_events = -1, .max_events = -1, .max_tokens = -1,
		.chars_per_token = -1 };
	config_defaults(&u->model);
}

static void
upkeep_release(struct upkeep *u)
{
	free(u->choice.command);
	free(u->prompt);
	llm_config_release(&u->model);
	upkeep_init(u);
}

/* A target that stands beside the strategy, as a key, stays. */
static int
strategy_text(struct reader *r, const struct node *n, struct upkeep *u, enum strategy_job job, const char *text, struct err *e)
{
	struct strategy_choice given;

	if (strategy_parse(&given, job, text, e) < 0)
		return fail_at(r, n, e);
	if (given.target < 0)
		given.target = u->choice.target;
	free(u->choice.command);
	u->choice = given;
	return 0;
}

static int
set_compact_strategy(struct reader *r, const struct node *n, void *at, struct err *e)
{
	return need(r, n, NODE_SCALAR, "text", e) < 0 ? -1 : strategy_text(r, n, at, STRATEGY_COMPACTS, n->text, e);
}

static int
set_aggregate_strategy(struct reader *r, const struct node *n, void *at, struct err *e)
{
	return need(r, n, NODE_SCALAR, "text", e) < 0 ? -1 : strategy_text(r, n, at, STRATEGY_AGGREGATES, n->text, e);
}

/* `exec: CMD` is short for `strategy: exec:CMD`. */
static int
set_exec(struct reader *r, const struct node *n, struct upkeep *u, enum strategy_job job, struct err *e)
{
	char *text;
	int rc;

	if (need(r, n, NODE_SCALAR, "text", e) < 0)
		return -1;
	if (u->choice.strategy != NULL && u->choice.strategy->takes != STRATEGY_COMMAND)
		return node_fail(n, r->file, e, "'strategy' and 'exec' exclude each other");
	text = xasprintf("exec:%s", n->text);
	rc = strategy_text(r, n, u, job, text, e);
	free(text);
	return rc;
}

static int
set_compact_exec(struct reader *r, const struct node *n, void *at, struct err *e)
{
	return set_exec(r, n, at, STRATEGY_COMPACTS, e);
}

static int
set_aggregate_exec(struct reader *r, const struct node *n, void *at, struct err *e)
{
	return set_exec(r, n, at, STRATEGY_AGGREGATES, e);
}

static int
set_compact_trigger(struct reader *r, const struct node *n, void *at, struct err *e)
{
	static const struct key keys[] = {
		{ "max_events", set_count, offsetof(struct upkeep, max_events) },
		{ "max_tokens", set_count, offsetof(struct upkeep, max_tokens) },
		{ "chars_per_token", set_chars, offsetof(struct upkeep, chars_per_token) },
	};

	return read_map(r, n, keys, N(keys), at, e);
}

static int
set_aggregate_trigger(struct reader *r, const struct node *n, void *at, struct err *e)
{
	static const struct key keys[] = {
		{ "every_n_turns", set_count, offsetof(struct upkeep, every_n_turns) },
		{ "every_n_events", set_count, offsetof(struct upkeep, every_n_events) },
		{ "on_end", set_bool, offsetof(struct upkeep, on_end) },
	};

	return read_map(r, n, keys, N(keys), at, e);
}

static const struct key compact_keys[] = {
	{ "strategy", set_compact_strategy, 0 },
	{ "exec", set_compact_exec, 0 },
	{ "target", set_count, offsetof(struct upkeep, choice.target) },
	{ "model", set_model, offsetof(struct upkeep, model) },
	{ "prompt", set_text, offsetof(struct upkeep, prompt) },
	{ "trigger", set_compact_trigger, 0 },
}, aggregate_keys[] = {
	{ "strategy", set_aggregate_strategy, 0 },
	{ "exec", set_aggregate_exec, 0 },
	{ "model", set_model, offsetof(struct upkeep, model) },
	{ "prompt", set_text, offsetof(struct upkeep, prompt) },
	{ "trigger", set_aggregate_trigger, 0 },
};

static bool
has_child(const struct node *map, const char *key)
{
	const struct node *n;

	for (n = map->kind == NODE_MAP ? map->first : NULL; n != NULL; n = n->next)
		if (same_name(n->key, key) && node_type(n) != SCALAR_NULL)
			return true;
	return false;
}

static int
upkeep_complete(struct reader *r, const struct node *n, const struct upkeep *u, struct err *e)
{
	if (u->choice.strategy == NULL)
		return node_fail(n, r->file, e, "'%.100s' lacks the key 'strategy'", label(n));
	if (strategy_check(&u->choice, e) < 0)
		return fail_at(r, n, e);
	if (u->choice.strategy->takes == STRATEGY_TARGET && u->max_events > 0 && u->max_events <= u->choice.target)
		return node_fail(n, r->file, e, "max_events (%ld) must be greater than the target (%ld), or it would fire at once again",
		    u->max_events, u->choice.target);
	return 0;
}

/* One strategy, from a string or a map; the common trigger is its own unless it has one. */
static int
read_upkeep(struct reader *r, const struct node *n, struct upkeep *u, enum strategy_job job, struct err *e)
{
	const struct upkeep *t = job == STRATEGY_COMPACTS ? &r->compact_trigger : &r->aggregate_trigger;
	int rc;

	upkeep_init(u);
	if (!has_child(n, "trigger")) {
		u->every_n_turns = t->every_n_turns;
		u->every_n_events = t->every_n_events;
		u->on_end = t->on_end;
		u->max_events = t->max_events;
		u->max_tokens = t->max_tokens;
		u->chars_per_token = t->chars_per_token;
	}
	if (n->kind == NODE_SCALAR)
		rc = strategy_text(r, n, u, job, n->text, e);
	else if (job == STRATEGY_COMPACTS)
		rc = read_map(r, n, compact_keys, N(compact_keys), u, e);
	else
		rc = read_map(r, n, aggregate_keys, N(aggregate_keys), u, e);
	return rc < 0 ? -1 : upkeep_complete(r, n, u, e);
}

static int
read_aggregates(struct reader *r, const struct node *n, struct err *e)
{
	struct agent *a = &r->agent;
	const struct node *item = n->kind == NODE_LIST ? n->first : n;
	size_t cap = 0;

	for (; item != NULL; item = n->kind == NODE_LIST ? item->next : NULL) {
		a->aggregates = xgrow(a->aggregates, a->aggregates_n, &cap, sizeof(*a->aggregates));
		a->aggregates_n++;
		if (read_upkeep(r, item, &a->aggregates[a->aggregates_n - 1], STRATEGY_AGGREGATES, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- knowledge ---- */

static int
keep_node(struct reader *r, const struct node *n, void *at, struct err *e)
{
	*(const struct node **)at = n;
	return 0;
}

/* The length of the scheme and its colon, 0 for a bare path. */
static size_t
scheme_len(const char *url)
{
	size_t n = strspn(url, "abcdefghijklmnopqrstuvwxyz0123456789+");

	return n > 0 && url[n] == ':' ? n + 1 : 0;
}

/*
 * A relative location is one beside the file. A shell would have expanded `~`; taken as it stands it would be a
 * directory of that name.
 */
static int
set_store(struct reader *r, const struct node *n, void *at, struct err *e)
{
	char **url = at;
	const char *where;
	size_t scheme;

	if (set_word(r, n, at, e) < 0)
		return -1;
	free(r->agent.store_at);
	r->agent.store_at = xasprintf("%s:%u", r->file, n->line);
	scheme = scheme_len(n->text);
	where = n->text + scheme;
	if (scheme > 0 && strncmp(n->text, "disk:", scheme) != 0 && strncmp(n->text, "sqlite:", scheme) != 0)
		return 0;
	if (where[0] == '~')
		return node_fail(n, r->file, e, "'~' is not expanded here: write the whole path");
	if (where[0] == '/' || where[0] == '\0')
		return 0;
	free(*url);
	*url = xasprintf("%.*s%s/%s", (int)scheme, n->text, r->dir, where);
	return 0;
}

static int
set_bootstrap(struct reader *r, const struct node *n, void *at, struct err *e)
{
	if (set_word(r, n, at, e) < 0)
		return -1;
	if (strcmp(n->text, "default") == 0 || strcmp(n->text, "none") == 0)
		return 0;
	if (strncmp(n->text, "exec:", 5) == 0 && n->text[5] != '\0')
		return 0;
	return node_fail(n, r->file, e, "'bootstrap' must be default, none or exec:CMD, not '%.100s'", n->text);
}

static int
read_strategies(struct reader *r, const struct node *n, struct err *e)
{
	struct agent *a = &r->agent;

	if (r->compact != NULL && read_upkeep(r, r->compact, &a->compact, STRATEGY_COMPACTS, e) < 0)
		return -1;
	if (r->compact != NULL && !a->write_event_log)
		return node_fail(r->compact, r->file, e, "'compact' needs the event log, which 'write_event_log: false' turns off");
	if (r->aggregate != NULL && read_aggregates(r, r->aggregate, e) < 0)
		return -1;
	a->lone_compact_trigger = r->compact == NULL && has_child(n, "compact_trigger");
	a->lone_aggregate_trigger = a->aggregates_n == 0 && has_child(n, "aggregate_trigger");
	return 0;
}

static int
set_knowledge(struct reader *r, const struct node *n, void *at, struct err *e)
{
	static const struct key keys[] = {
		{ "store", set_store, offsetof(struct reader, agent.store) },
		{ "expose_tool", set_bool, offsetof(struct reader, agent.expose_tool) },
		{ "write_event_log", set_bool, offsetof(struct reader, agent.write_event_log) },
		{ "bootstrap", set_bootstrap, offsetof(struct reader, agent.bootstrap) },
		{ "compact", keep_node, offsetof(struct reader, compact) },
		{ "compact_trigger", set_compact_trigger, offsetof(struct reader, compact_trigger) },
		{ "aggregate", keep_node, offsetof(struct reader, aggregate) },
		{ "aggregate_trigger", set_aggregate_trigger, offsetof(struct reader, aggregate_trigger) },
	};

	if (read_map(r, n, keys, N(keys), r, e) < 0)
		return -1;
	return read_strategies(r, n, e);
}

/* ---- assembly ---- */

static int
policy_set(struct reader *r, const struct node *n, struct policy_spec *spec, struct err *e)
{
	if (n->kind != NODE_SCALAR)
		return node_fail(n, r->file, e, "'%.100s' must be text, not %s", label(n), kind_name(n));
	return policy_spec_set(spec, n->key, n->text, e) < 0 ? fail_at(r, n, e) : 0;
}

/* {sliding_window: 80} and {exec: CMD} are what a command line joins with a colon. */
static int
policy_from_scalar(struct reader *r, const struct node *n, struct policy_spec *spec, struct err *e)
{
	char *text = xasprintf("%s:%s", n->key, n->text);
	int rc = policy_spec_parse(spec, node_type(n) == SCALAR_NULL ? n->key : text, e);

	free(text);
	return rc < 0 ? fail_at(r, n, e) : 0;
}

/* {sliding_window: {max_events: 80}}, {sliding_window: 80}, {exec: CMD} */
static int
policy_from_map(struct reader *r, const struct node *map, struct policy_spec *spec, struct err *e)
{
	const struct node *n = map->first, *param;

	if (n == NULL || n->next != NULL)
		return node_fail(map, r->file, e, "an entry of 'assembly' is one policy: a name, or one name with its parameters");
	if (n->kind == NODE_SCALAR)
		return policy_from_scalar(r, n, spec, e);
	if (policy_spec_init(spec, n->key, e) < 0)
		return fail_at(r, n, e);
	if (n->kind == NODE_LIST)
		return node_fail(n, r->file, e, "the parameters of '%.100s' must be a map, not a list", n->key);
	for (param = n->first; param != NULL; param = param->next)
		if (node_type(param) != SCALAR_NULL && policy_set(r, param, spec, e) < 0)
			return -1;
	return policy_spec_check(spec, e) < 0 ? fail_at(r, n, e) : 0;
}

static int
set_assembly(struct reader *r, const struct node *n, void *at, struct err *e)
{
	struct agent *a = &r->agent;
	struct policy_spec *spec;
	const struct node *item;
	size_t cap = 0;

	if (need(r, n, NODE_LIST, "a list of policies", e) < 0)
		return -1;
	for (item = n->first; item != NULL; item = item->next) {
		a->assembly = xgrow(a->assembly, a->assembly_n, &cap, sizeof(*a->assembly));
		spec = &a->assembly[a->assembly_n++];
		*spec = (struct policy_spec){ .policy = NULL };
		if (item->kind == NODE_MAP) {
			if (policy_from_map(r, item, spec, e) < 0)
				return -1;
		} else if (need(r, item, NODE_SCALAR, "a policy", e) < 0) {
			return -1;
		} else if (policy_spec_parse(spec, item->text, e) < 0) {
			return fail_at(r, item, e);
		}
	}
	return 0;
}

/* ---- tools ---- */

static int
set_schema(struct reader *r, const struct node *n, void *at, struct err *e)
{
	struct err why = ERR_INIT;

	if (need(r, n, NODE_MAP, "a map, a JSON Schema", e) < 0)
		return -1;
	if (node_json(at, n, &why) < 0)
		return err_set(e, ERR_CONFIG, "%s:%s", r->file, why.msg);
	return 0;
}

static int
tool_from_map(struct reader *r, const struct node *n, struct tool *t, struct err *e)
{
	static const struct key keys[] = {
		{ "name", set_word, offsetof(struct tool, name) },
		{ "description", set_text, offsetof(struct tool, description) },
		{ "parameters", set_schema, offsetof(struct tool, parameters) },
		{ "exec", set_word, offsetof(struct tool, command) },
	};

	if (read_map(r, n, keys, N(keys), t, e) < 0)
		return -1;
	if (t->command == NULL)
		return node_fail(n, r->file, e, "a tool lacks the key 'exec'");
	if (t->name == NULL && (t->description != NULL || t->parameters != NULL))
		return node_fail(n, r->file, e, "a tool that is declared here lacks the key 'name'");
	t->cwd = xstrdup(r->dir);
	return t->name != NULL && tool_check(t, e) < 0 ? fail_at(r, n, e) : 0;
}

static int
set_tools(struct reader *r, const struct node *n, void *at, struct err *e)
{
	struct agent *a = &r->agent;
	const struct node *item;
	struct tool *t;
	size_t cap = 0;

	if (need(r, n, NODE_LIST, "a list of tools", e) < 0)
		return -1;
	for (item = n->first; item != NULL; item = item->next) {
		a->tools = xgrow(a->tools, a->tools_n, &cap, sizeof(*a->tools));
		t = &a->tools[a->tools_n++];
		*t = (struct tool){ .name = NULL };
		if (item->kind == NODE_MAP) {
			if (tool_from_map(r, item, t, e) < 0)
				return -1;
		} else if (need(r, item, NODE_SCALAR, "a tool", e) < 0) {
			return -1;
		} else if (tool_parse(t, item->text, r->dir, e) < 0) {
			return fail_at(r, item, e);
		}
	}
	return 0;
}

/* ---- the file ---- */

static int
set_layout(struct reader *r, const struct node *n, void *at, struct err *e)
{
	if (need(r, n, NODE_SCALAR, "ag2 or cache", e) < 0)
		return -1;
	*(bool *)at = strcmp(n->text, "cache") == 0;
	if (!*(bool *)at && strcmp(n->text, "ag2") != 0)
		return node_fail(n, r->file, e, "'layout' must be ag2 or cache, not '%.100s'", n->text);
	return 0;
}

/* Also `knowledge:` with nothing behind it: a store with all its defaults. */
static void
find_knowledge(struct reader *r, const struct node *root)
{
	const struct node *n;

	for (n = root->first; n != NULL; n = n->next)
		if (strcmp(n->key, "knowledge") == 0)
			r->agent.has_knowledge = true;
}

static int
read_root(struct reader *r, const struct node *root, struct err *e)
{
	static const struct key keys[] = {
		{ "name", set_word, offsetof(struct reader, agent.name) },
		{ "prompt", set_text, offsetof(struct reader, agent.prompt) },
		{ "model", set_model, offsetof(struct reader, agent.model) },
		{ "knowledge", set_knowledge, 0 },
		{ "assembly", set_assembly, 0 },
		{ "layout", set_layout, offsetof(struct reader, agent.layout_cache) },
		{ "tools", set_tools, 0 },
	};

	if (root == NULL || node_type(root) == SCALAR_NULL)
		return 0;
	if (root->kind != NODE_MAP)
		return node_fail(root, r->file, e, "an agent file is a map of keys, not %s", kind_name(root));
	find_knowledge(r, root);
	return read_map(r, root, keys, N(keys), r, e);
}

int
agent_parse(struct agent *a, const char *text, size_t len, const char *file, const char *dir, struct err *e)
{
	struct reader r = { .file = file, .dir = dir };
	struct err why = ERR_INIT;
	struct node *root;
	int rc;

	agent_init(a);
	if (len > FILE_MAX)
		return err_set(e, ERR_CONFIG, "%s: larger than %u bytes", file, FILE_MAX);
	if (yamltree_parse(&root, text, len, &why) < 0)
		return err_set(e, why.code, "%s:%s", file, why.msg);
	agent_init(&r.agent);
	upkeep_init(&r.compact_trigger);
	upkeep_init(&r.aggregate_trigger);
	rc = read_root(&r, root, e);
	if (rc == 0) {
		agent_release(a);
		*a = r.agent;
		a->dir = xstrdup(dir);
	} else {
		agent_release(&r.agent);
	}
	yamltree_free(root);
	return rc;
}

static int
check_mode(int fd, const char *file, struct stat *st, struct err *e)
{
	if (fstat(fd, st) < 0)
		return err_sys(e, "cannot read '%s'", file);
	if (S_ISDIR(st->st_mode))
		return err_set(e, ERR_CONFIG, "%s: is a directory", file);
	if (!S_ISCHR(st->st_mode) && st->st_mode & (S_IWGRP | S_IWOTH))	/* /dev/null keeps nothing that others write */
		return err_set(e, ERR_PERM, "%s: %s may write it, and it runs commands; chmod go-w it", file,
		    st->st_mode & S_IWOTH ? "everyone" : "its group");
	return 0;
}

/* What a pipe says is relative to where we are, for it has no place of its own. */
static char *
directory_of(const char *file, const struct stat *st)
{
	char *path = xstrdup(S_ISREG(st->st_mode) ? file : "."), *slash = strrchr(path, '/'), *dir;

	if (slash == path)
		slash++;
	if (slash != NULL)
		*slash = '\0';
	dir = realpath(slash ? path : ".", NULL);
	free(path);
	return dir;
}

static void
keep_file(struct agent *a, const char *file)
{
	const char *slash = strrchr(file, '/');

	if (strncmp(file, "/dev/", 5) == 0)
		a->file = xstrdup(file);
	else
		a->file = xasprintf("%s/%s", strcmp(a->dir, "/") == 0 ? "" : a->dir, slash ? slash + 1 : file);
}

int
agent_read(struct agent *a, const char *file, struct err *e)
{
	struct buf text = BUF_INIT_MAX(FILE_MAX);
	int fd = open(file, O_RDONLY | O_CLOEXEC), rc = -1;
	char *dir = NULL;
	struct stat st;

	agent_init(a);
	if (fd < 0)
		return err_sys(e, "cannot open '%s'", file);
	if (check_mode(fd, file, &st, e) < 0)
		goto out;
	if (io_read_all(fd, &text, file, e) < 0) {
		if (e != NULL && e->code == ERR_DATA)
			e->code = ERR_CONFIG;
		goto out;
	}
	dir = directory_of(file, &st);
	if (dir == NULL) {
		err_sys(e, "cannot find the directory of '%s'", file);
		goto out;
	}
	agent_release(a);
	rc = agent_parse(a, text.data, text.len, file, dir, e);
	if (rc == 0)
		keep_file(a, file);
out:
	close(fd);
	free(dir);
	buf_release(&text);
	return rc;
}

void
agent_init(struct agent *a)
{
	*a = (struct agent){ .name = xstrdup("agent"), .expose_tool = true, .write_event_log = true,
		.bootstrap = xstrdup("default") };
	config_defaults(&a->model);
	upkeep_init(&a->compact);
}

void
agent_release(struct agent *a)
{
	size_t i;

	free(a->file);
	free(a->dir);
	free(a->name);
	free(a->prompt);
	llm_config_release(&a->model);
	free(a->store);
	free(a->store_at);
	free(a->bootstrap);
	upkeep_release(&a->compact);
	for (i = 0; i < a->aggregates_n; i++)
		upkeep_release(&a->aggregates[i]);
	free(a->aggregates);
	for (i = 0; i < a->assembly_n; i++)
		policy_spec_release(&a->assembly[i]);
	free(a->assembly);
	for (i = 0; i < a->tools_n; i++)
		tool_release(&a->tools[i]);
	free(a->tools);
	*a = (struct agent){ .file = NULL };
}

#include "strategy.h"

#include "base/alloc.h"
#include "base/opts.h"

#include <stdlib.h>
#include <string.h>

static const struct strategy strategies[] = {
	{ STRATEGY_COMPACTS, "tail-window", STRATEGY_TARGET, "target=N", "the newest N events stay, the others go" },
	{ STRATEGY_COMPACTS, "summarize", STRATEGY_TARGET, "target=N", "the newest N events stay, a model's summary stands for the others" },
	{ STRATEGY_COMPACTS, "exec", STRATEGY_COMMAND, "CMD", "your own: CMD gets the events and prints those that stay" },
	{ STRATEGY_AGGREGATES, "working-memory", STRATEGY_PLAIN, "", "merges what is new into /memory/working.md" },
	{ STRATEGY_AGGREGATES, "conversation-summary", STRATEGY_PLAIN, "",
	    "writes a summary of the stream to /memory/conversations/, in place of its earlier one" },
	{ STRATEGY_AGGREGATES, "exec", STRATEGY_COMMAND, "CMD", "your own: CMD reads the events and writes to the store itself" },
};
#define N_STRATEGIES (sizeof(strategies) / sizeof(strategies[0]))

const struct strategy *
strategy_at(enum strategy_job job, size_t i)
{
	size_t k;

	for (k = 0; k < N_STRATEGIES; k++)
		if (strategies[k].job == job && i-- == 0)
			return &strategies[k];
	return NULL;
}

static const struct strategy *
find(enum strategy_job job, const char *name, size_t len)
{
	const struct strategy *s;
	size_t i, k;

	for (i = 0; (s = strategy_at(job, i)) != NULL; i++) {
		for (k = 0; k < len && (name[k] == '_' ? '-' : name[k]) == s->name[k]; k++)
			;
		if (k == len && s->name[k] == '\0')
			break;
	}
	return s;
}

static int
unknown(enum strategy_job job, const char *name, struct err *e)
{
	const char *names[N_STRATEGIES], *near;
	size_t n = 0;

	for (; strategy_at(job, n) != NULL; n++)
		names[n] = strategy_at(job, n)->name;
	near = nearest(name, names, n);
	if (near != NULL)
		return err_set(e, ERR_USAGE, "unknown strategy '%.100s'; did you mean '%s'?", name, near);
	return err_set(e, ERR_USAGE, "unknown strategy '%.100s': %s, %s or exec:CMD", name, names[0], names[1]);
}

static int
take_value(struct strategy_choice *c, const char *value, struct err *e)
{
	if (c->strategy->takes == STRATEGY_PLAIN)
		return err_set(e, ERR_USAGE, "the strategy '%s' has no parameters", c->strategy->name);
	if (c->strategy->takes == STRATEGY_COMMAND) {
		c->command = xstrdup(value);
		return 0;
	}
	if (strncmp(value, "target=", 7) == 0)
		value += 7;
	if (parse_long(value, "target", &c->target, e) < 0)
		return -1;
	return c->target < 0 ? err_set(e, ERR_USAGE, "the target must be 0 or more") : 0;
}

int
strategy_parse(struct strategy_choice *choice, enum strategy_job job, const char *text, struct err *e)
{
	const char *colon = strchr(text, ':');
	char *name = xmemdup0(text, colon ? (size_t)(colon - text) : strlen(text));
	int rc = 0;

	*choice = (struct strategy_choice){ .strategy = find(job, name, strlen(name)), .target = -1 };
	if (choice->strategy == NULL)
		rc = unknown(job, name, e);
	else if (colon != NULL)
		rc = take_value(choice, colon + 1, e);
	free(name);
	return rc;
}

int
strategy_check(const struct strategy_choice *choice, struct err *e)
{
	const struct strategy *s = choice->strategy;

	if (s->takes == STRATEGY_TARGET && choice->target < 0)
		return err_set(e, ERR_USAGE, "the strategy '%s' needs a target, the number of events that stay: %s:100", s->name, s->name);
	if (s->takes != STRATEGY_TARGET && choice->target >= 0)
		return err_set(e, ERR_USAGE, "the strategy '%s' has no target", s->name);
	if (s->takes == STRATEGY_COMMAND && (choice->command == NULL || choice->command[0] == '\0'))
		return err_set(e, ERR_USAGE, "the strategy '%s' lacks its command: %s:CMD", s->name, s->name);
	return 0;
}

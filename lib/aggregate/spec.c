#include "aggregate/strategy.h"

#include "aggregate/cursor.h"
#include "base/alloc.h"

#include <stdlib.h>

/* All of strategy.c's. */
static const struct aggregate_strategy *const strategies[] = { &aggregate_working_memory, &aggregate_conversation_summary,
	&aggregate_exec };

/* Commands have cursors of their own, each. */
static char *
key_of(const struct strategy_choice *choice)
{
	char *digest, *key;

	if (choice->command == NULL)
		return xstrdup(choice->strategy->name);
	digest = digest_name(choice->command, strlen(choice->command));
	key = xasprintf("%s-%s", choice->strategy->name, digest);
	free(digest);
	return key;
}

static bool
same_choice(const struct strategy_choice *a, const struct strategy_choice *b)
{
	return a->strategy == b->strategy && strcmp(a->command ? a->command : "", b->command ? b->command : "") == 0;
}

static void
find_strategy(struct aggregate_spec *spec)
{
	size_t i;

	for (i = 0; strcmp(strategies[i]->name, spec->choice.strategy->name) != 0; i++)
		;
	spec->strategy = strategies[i];
	spec->key = key_of(&spec->choice);
}

int
aggregate_spec_parse(struct aggregate_spec *spec, const char *text, struct err *e)
{
	*spec = (struct aggregate_spec){ .strategy = NULL };
	if (strategy_parse(&spec->choice, STRATEGY_AGGREGATES, text, e) < 0)
		return -1;
	if (strategy_check(&spec->choice, e) < 0) {
		aggregate_spec_release(spec);
		return -1;
	}
	find_strategy(spec);
	return 0;
}

/* Two of one kind must not share a cursor. */
static void
number_key(struct aggregate_spec *spec, const struct agent *a, size_t i)
{
	size_t k, n = 1;
	char *key;

	for (k = 0; k < i; k++)
		n += same_choice(&a->aggregates[k].choice, &a->aggregates[i].choice);
	if (n == 1)
		return;
	key = xasprintf("%s.%zu", spec->key, n);
	free(spec->key);
	spec->key = key;
}

void
aggregate_spec_copy(struct aggregate_spec *spec, const struct agent *a, size_t i)
{
	const struct upkeep *u = &a->aggregates[i];

	*spec = (struct aggregate_spec){ .choice = u->choice };
	spec->choice.command = u->choice.command ? xstrdup(u->choice.command) : NULL;
	spec->cwd = a->dir ? xstrdup(a->dir) : NULL;
	spec->prompt = u->prompt ? xstrdup(u->prompt) : NULL;
	find_strategy(spec);
	number_key(spec, a, i);
}

bool
aggregate_spec_is(const struct aggregate_spec *spec, const struct agent *a, size_t i)
{
	return same_choice(&spec->choice, &a->aggregates[i].choice);
}

void
aggregate_spec_release(struct aggregate_spec *spec)
{
	free(spec->choice.command);
	free(spec->cwd);
	free(spec->prompt);
	free(spec->key);
	*spec = (struct aggregate_spec){ .strategy = NULL };
}

struct aggregate_trigger
aggregate_trigger_of(const struct upkeep *u)
{
	return (struct aggregate_trigger){ .anything = u->on_end, .turns = u->every_n_turns, .events = u->every_n_events };
}

bool
aggregate_trigger_is_set(const struct aggregate_trigger *t)
{
	return t->anything || t->turns > 0 || t->events > 0;
}

bool
aggregate_trigger_is_met(const struct aggregate_trigger *t, const struct news *n)
{
	return n->total > 0 && (t->anything || (t->turns > 0 && n->turns >= (uint64_t)t->turns) ||
	    (t->events > 0 && n->counted >= (uint64_t)t->events));
}

#include "check.h"

#include "../explain.h"
#include "aggregate/aggregate.h"
#include "base/alloc.h"
#include "base/log.h"
#include "trigger.h"

#include <stdlib.h>
#include <string.h>

static void
say_pair(void *arg, size_t i, size_t j)
{
	const struct agent *a = arg;

	log_warn("%s: %s (policy %zu) cuts events before %s (policy %zu) adds its prompt; put it behind",
	    a->file, policy_spec_name(&a->assembly[i]), i + 1, policy_spec_name(&a->assembly[j]), j + 1);
}

size_t
check_order(struct agent *a)
{
	const char **names = xcalloc(a->assembly_n, sizeof(*names));
	size_t i, pairs;

	for (i = 0; i < a->assembly_n; i++)
		names[i] = policy_spec_name(&a->assembly[i]);
	pairs = policy_order_check(names, a->assembly_n, say_pair, a);
	free(names);
	return pairs;
}

/* Without a log a turn is all that there is, and it has one request. */
static bool
beyond_a_turn(const struct agent *a, const struct aggregate_trigger *t)
{
	return !a->write_event_log && !t->anything && t->events <= 0 && t->turns > 1;
}

static size_t
check_aggregate(const struct agent *a, size_t i)
{
	struct aggregate_trigger t = aggregate_trigger_of(&a->aggregates[i]);
	const char *name = a->aggregates[i].choice.strategy->name;

	if (!aggregate_trigger_is_set(&t))
		log_warn("%s: aggregate (%s) has no trigger, so that it never runs; try 'aggregate_trigger: {on_end: true}'", a->file, name);
	else if (beyond_a_turn(a, &t))
		log_warn("%s: aggregate (%s) never runs: with 'write_event_log: false' there is one turn, and it waits for %ld", a->file, name, t.turns);
	else
		return 0;
	return 1;
}

static size_t
check_compact(const struct agent *a)
{
	const struct upkeep *u = &a->compact;

	if (u->choice.strategy == NULL || u->max_events > 0 || u->max_tokens > 0)
		return 0;
	log_warn("%s: compact (%s) has no trigger, so that it never runs; try 'compact_trigger: {max_events: %ld}'", a->file,
	    u->choice.strategy->name, u->choice.target > 0 ? 2 * u->choice.target : 200);
	return 1;
}

size_t
check_triggers(const struct agent *a)
{
	size_t i, n = check_compact(a);

	for (i = 0; i < a->aggregates_n; i++)
		n += check_aggregate(a, i);
	if (a->lone_compact_trigger)
		log_warn("%s: 'compact_trigger' starts nothing, for there is no 'compact'", a->file);
	if (a->lone_aggregate_trigger)
		log_warn("%s: 'aggregate_trigger' starts nothing, for there is no 'aggregate'", a->file);
	return n + a->lone_compact_trigger + a->lone_aggregate_trigger;
}

size_t
check_alerts(const struct agent *a, struct store *s, const char *stream)
{
	size_t i;

	for (i = 0; i < a->assembly_n; i++)
		if (strcmp(policy_spec_name(&a->assembly[i]), "alert") == 0)
			return 0;
	return explain_lost_alerts(s, stream, NULL);
}

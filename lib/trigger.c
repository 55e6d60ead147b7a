#include "trigger.h"

#include "event/render.h"

bool
trigger_is_set(const struct trigger *t)
{
	return t->max_events > 0 || t->max_tokens > 0;
}

bool
trigger_exceeded(const struct trigger *t, const struct trigger_count *c)
{
	return (t->max_events > 0 && c->events > (uint64_t)t->max_events) || (t->max_tokens > 0 && c->tokens > t->max_tokens);
}

int
trigger_add(const struct trigger *t, struct trigger_count *c, struct event *ev, struct err *e)
{
	int64_t cost;

	if (!(ev->type->flags & EV_CONVERSATIONAL))
		return 0;
	c->events++;
	if (t->max_tokens <= 0 || trigger_exceeded(t, c))
		return 0;
	cost = event_tokens(ev, t->chars_per_token, e);
	if (cost < 0)
		return -1;
	c->tokens += cost;
	return 0;
}

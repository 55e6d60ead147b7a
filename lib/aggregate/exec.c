/* A strategy of one's own: a command that is given the event lines and writes where it likes. */
#include "aggregate/strategy.h"

#include "base/alloc.h"
#include "base/run.h"

#include <stdlib.h>

/* What the caller gives, and AG2_RUN. */
static const char **
environment(const struct aggregation *g, const char *id)
{
	size_t n = 0;
	const char **env;

	while (g->a->env != NULL && g->a->env[n] != NULL)
		n++;
	env = xcalloc(n + 2, sizeof(*env));
	if (n > 0)
		memcpy(env, g->a->env, n * sizeof(*env));
	env[n] = id;
	return env;
}

/* With a store, its output is for whoever watches, as its errors are: our own is for ours. */
static int
make(struct aggregation *g, struct err *e)
{
	char *id = xasprintf("AG2_RUN=%s", g->id);
	const char **env = environment(g, id);
	struct run r = { .shell = g->a->spec.choice.command, .env = env, .cwd = g->a->spec.cwd, .input = g->lines.data,
		.input_len = g->lines.len };
	int status;

	g->output.max = EXISTING_MAX;
	if (g->store == NULL)
		r.out = &g->output;
	else
		r.output_fd = 2;
	status = run(&r, e);
	free(env);
	free(id);
	if (status < 0)
		return err_wrap(e, "exec:%.200s", g->a->spec.choice.command);
	if (status > 0)
		return err_set(e, ERR_UNAVAIL, "exec:%.200s: exited with status %d", g->a->spec.choice.command, status);
	return 0;
}

const struct aggregate_strategy aggregate_exec = {
	.name = "exec",
	.class_name = "ExecAggregate",
	.external = true,
	.make = make,
};

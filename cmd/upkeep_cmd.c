#include "upkeep_cmd.h"

#include "base/alloc.h"
#include "complete.h"
#include "help.h"

#include <fcntl.h>
#include <stdlib.h>

void
upkeep_cmd_open(struct upkeep_cmd *c, const char *config)
{
	struct err e = ERR_INIT;

	*c = (struct upkeep_cmd){ .ask = cli_program("AG2_ASK", "ag2-ask") };
	if (config == NULL)
		agent_init(&c->agent);
	else if (agent_read(&c->agent, config, &e) < 0)
		log_fail(&e);
}

static void
env_release(struct upkeep_cmd *c)
{
	size_t i;

	for (i = 0; c->env != NULL && c->env[i] != NULL; i++)
		free(c->env[i]);
	free(c->env);
	c->env = NULL;
}

void
upkeep_cmd_release(struct upkeep_cmd *c)
{
	env_release(c);
	agent_release(&c->agent);
	free(c->ask);
}

void
upkeep_cmd_env(struct upkeep_cmd *c, const struct store *store, const char *stream, const char *model)
{
	const struct llm_config *of_file = &c->agent.model;
	size_t n = 0;

	env_release(c);
	c->env = xcalloc(6, sizeof(c->env[0]));
	if (store != NULL)
		c->env[n++] = xasprintf("AG2_STORE=%s", store_url(store));
	if (stream != NULL)
		c->env[n++] = xasprintf("AG2_STREAM=%s", stream);
	if (c->agent.file != NULL) {
		c->env[n++] = xasprintf("AG2_NAME=%s", c->agent.name);
		c->env[n++] = xasprintf("AG2_CONFIG=%s", c->agent.file);
	}
	if (model == NULL)
		model = cli_env("AG2_TURN_MODEL");
	if (model != NULL)
		c->env[n++] = xasprintf("AG2_MODEL=%s", model);
	else if (of_file->provider != NULL)
		c->env[n++] = xasprintf("AG2_MODEL=%s:%s", of_file->provider, of_file->model);
}

struct upkeep_model
upkeep_cmd_model(const struct upkeep_cmd *c, const char *model, const char *part)
{
	return (struct upkeep_model){ .ask = c->ask, .model = model, .part = c->agent.file ? part : NULL,
		.env = (const char *const *)c->env };
}

void
upkeep_cmd_strategies(enum strategy_job job)
{
	const struct strategy *s;
	size_t i;

	out_puts("Strategies:\n");
	for (i = 0; (s = strategy_at(job, i)) != NULL; i++) {
		char *label = xasprintf("  %s%s%s", s->name, s->params[0] != '\0' ? ":" : "", s->params);

		help_row(label, 23, s->summary);
		free(label);
	}
}

void
upkeep_cmd_complete(enum strategy_job job, const struct opt *table, int n, char **words)
{
	struct complete_state st = { 0 };
	const struct strategy *s;
	size_t i;

	if (complete_option(table, NULL, words, n, false, &st))
		return;
	for (i = 0; (s = strategy_at(job, i)) != NULL; i++) {
		char *text = xasprintf("%s%s", s->name, s->params[0] != '\0' ? ":" : "");

		complete_offer(words[n - 1], text, s->summary);
		free(text);
	}
}

void
upkeep_cmd_status_fd(const struct opts *o, long fd)
{
	if (fd >= 0 && (fd > 1 << 20 || fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0))
		cli_usage(o, "--status-fd %ld: no such descriptor is open", fd);
}

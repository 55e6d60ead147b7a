#include "environ.h"

#include "secrets.h"
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
env_add(struct env_list *l, char *item)
{
	l->items = xgrow(l->items, l->n, &l->cap, sizeof(*l->items));
	l->items[l->n++] = item;
}

void
env_set(struct env_list *l, const char *name, const char *value)
{
	if (value != NULL)
		env_add(l, xasprintf("%s=%s", name, value));
}

void
env_release(struct env_list *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		free(l->items[i]);
	free(l->items);
	*l = (struct env_list){ .items = NULL };
}

/* For the user's own parts: policies, exec: models, the bootstrap. A name alone is taken out. */
static void
commands_env(struct env_list *l, const struct agent *a, const struct store *store, const char *stream, bool filter)
{
	char *model = xasprintf("%s:%s", a->model.provider, a->model.model);

	env_set(l, "AG2_STORE", store ? store_url(store) : NULL);
	if (stream == NULL && !filter)
		env_add(l, xstrdup("AG2_STREAM"));	/* not that of an agent around us */
	env_set(l, "AG2_STREAM", stream);
	env_set(l, "AG2_NAME", a->name);
	env_set(l, "AG2_CONFIG", a->file);
	env_set(l, "AG2_MODEL", model);
	free(model);
}

/* A name alone, when there is one. */
static void
env_hide(struct env_list *l, const char *name)
{
	if (name != NULL)
		env_add(l, xstrdup(name));
}

static void
env_hide_secrets(struct env_list *l, const struct llm_config *c)
{
	env_hide(l, c->api_key_env);
	env_hide(l, c->cert_pass_env);
}

/* Tools do what a model says, so that they do not get its key, nor any other that looks like one. */
static void
tools_env(struct env_list *l, const struct env_list *commands, const struct agent *a)
{
	char *hidden;
	size_t i;

	for (i = 0; i < commands->n; i++)
		env_add(l, xstrdup(commands->items[i]));
	for (i = 0; environ[i] != NULL; i++)
		if ((hidden = secrets_hidden(environ[i])) != NULL)
			env_add(l, hidden);
	env_hide_secrets(l, &a->model);
	env_hide_secrets(l, &a->compact.model);
	for (i = 0; i < a->aggregates_n; i++)
		env_hide_secrets(l, &a->aggregates[i].model);
	env_add(l, NULL);
}

void
children_env(struct env_list *commands, struct env_list *tools, const struct agent *a, const struct store *store, const char *stream, bool filter)
{
	commands_env(commands, a, store, stream, filter);
	tools_env(tools, commands, a);
	env_add(commands, NULL);
}

#include "environ.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void
env_add(struct env_list *l, char *item)
{
	l->items = xgrow(l->items, l->n, &l->cap, sizeof(*l->items));
	l->items[l->n++] = item;
}

static void
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

static bool
ends_with(const char *name, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && memcmp(name + len - n, end, n) == 0;
}

/* Tools do what a model says, so that they do not get its key, nor any other that looks like one. */
static void
tools_env(struct env_list *l, const struct env_list *commands, const struct agent *a)
{
	size_t i, len;

	for (i = 0; i < commands->n; i++)
		env_add(l, xstrdup(commands->items[i]));
	for (i = 0; environ[i] != NULL; i++) {
		len = strcspn(environ[i], "=");
		if (ends_with(environ[i], len, "_API_KEY") || ends_with(environ[i], len, "_AUTH_TOKEN"))
			env_add(l, xmemdup0(environ[i], len));
	}
	if (a->model.api_key_env != NULL)
		env_add(l, xstrdup(a->model.api_key_env));
	if (a->compact.model.api_key_env != NULL)
		env_add(l, xstrdup(a->compact.model.api_key_env));
	for (i = 0; i < a->aggregates_n; i++)
		if (a->aggregates[i].model.api_key_env != NULL)
			env_add(l, xstrdup(a->aggregates[i].model.api_key_env));
	env_add(l, NULL);
}

void
children_env(struct env_list *commands, struct env_list *tools, const struct agent *a, const struct store *store, const char *stream, bool filter)
{
	commands_env(commands, a, store, stream, filter);
	tools_env(tools, commands, a);
	env_add(commands, NULL);
}

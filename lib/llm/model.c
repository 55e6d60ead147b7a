/*
 * Which providers there are, and what names a model. It knows their names only: programs that read an agent file without
 * calling a model need not be linked with what makes the calls.
 */
#include "llm/provider.h"

#include "base/alloc.h"
#include "base/opts.h"

#include <stdlib.h>

#define TIMEOUT 600	/* seconds */

static const struct {
	const char *name, *key_env, *summary;
} providers[] = {
#define NAMES(id, name, key_env, summary) { name, key_env, summary },
	PROVIDER_LIST(NAMES)
};
#define PROVIDERS (sizeof(providers) / sizeof(providers[0]))

static int
unknown_provider(const char *name, size_t len, struct err *e)
{
	const char *names[PROVIDERS], *near;
	struct buf all = BUF_INIT;
	char *word = xmemdup0(name, len);
	size_t i;

	for (i = 0; i < PROVIDERS; i++) {
		names[i] = providers[i].name;
		buf_addf(&all, "%s%s", i == 0 ? "" : i + 1 == PROVIDERS ? " and " : ", ", names[i]);
	}
	near = nearest(word, names, PROVIDERS);
	if (near != NULL)
		err_set(e, ERR_USAGE, "no provider '%.100s': did you mean %s?", word, near);
	else
		err_set(e, ERR_USAGE, "no provider '%.100s': there are %s", word, all.data);
	buf_release(&all);
	free(word);
	return -1;
}

int
provider_index(const char *name, size_t len, size_t *index, struct err *e)
{
	size_t i;

	for (i = 0; i < PROVIDERS; i++)
		if (strlen(providers[i].name) == len && memcmp(providers[i].name, name, len) == 0) {
			*index = i;
			return 0;
		}
	return unknown_provider(name, len, e);
}

int
llm_config_parse(struct llm_config *c, const char *text, struct err *e)
{
	const char *colon = strchr(text, ':');
	size_t i;

	if (colon == NULL)
		return err_set(e, ERR_USAGE, "the model '%.100s' names no provider: write PROVIDER:MODEL, such as openai:gpt-5", text);
	if (provider_index(text, (size_t)(colon - text), &i, e) < 0)
		return -1;
	if (colon[1 + strspn(colon + 1, " \t\r\n")] == '\0')
		return err_set(e, ERR_USAGE, "the model '%.100s' names a provider but no model", text);
	free(c->provider);
	free(c->model);
	c->provider = xstrdup(providers[i].name);
	c->model = xstrdup(colon + 1);
	return 0;
}

static void
free_secret(char *s)
{
	if (s != NULL)
		explicit_bzero(s, strlen(s));
	free(s);
}

void
llm_config_release(struct llm_config *c)
{
	free(c->provider);
	free(c->model);
	free(c->base_url);
	free(c->api_key_env);
	free(c->api_key_cmd);
	free_secret(c->api_key);
	free(c->cacert);
	free(c->cert);
	free(c->cert_key);
	free(c->cert_pass_env);
	free(c->cert_pass_cmd);
	free(c->cert_pass_file);
	free_secret(c->cert_pass);
	free(c->api_key_file);
	free(c->api_version);
	json_object_put(c->options);
	free(c->cwd);
	*c = (struct llm_config){ .temperature = -1 };
}

const char *
llm_key_env(const struct llm_config *c)
{
	size_t i;

	if (c->provider == NULL || provider_index(c->provider, strlen(c->provider), &i, NULL) < 0 || providers[i].key_env == NULL)
		return NULL;
	return c->api_key_env != NULL ? c->api_key_env : providers[i].key_env;
}

void
llm_key_source(const struct llm_config *c, struct buf *out)
{
	const char *variable = llm_key_env(c);

	if (c->api_key == NULL)
		buf_adds(out, "no key was sent");
	else if (c->api_key_cmd != NULL)
		buf_adds(out, "the key is from api_key_cmd");
	else if (c->api_key_file != NULL)
		buf_addf(out, "the key is from '%s'", c->api_key_file);
	else
		buf_addf(out, "the key is from %s", variable != NULL ? variable : "nowhere");
}

bool
llm_provider_list(size_t i, const char **name, const char **summary)
{
	if (i >= PROVIDERS)
		return false;
	*name = providers[i].name;
	*summary = providers[i].summary;
	return true;
}

double
llm_timeout(const struct llm_config *c)
{
	return c->timeout > 0 ? c->timeout : TIMEOUT;
}

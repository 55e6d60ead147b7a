#include "model.h"

#include "../cli.h"
#include "base/alloc.h"
#include "llm/http.h"

#include <stdlib.h>
#include <string.h>

/* A model given here keeps what the file says of the provider, unless it is another one. */
static void
use_model(struct llm_config *c, const char *text, int status)
{
	struct llm_config fresh = { .temperature = -1 };
	struct err e = ERR_INIT;

	if (llm_config_parse(&fresh, text, &e) < 0)
		log_die(status, "%s", e.msg);
	if (c->provider != NULL && strcmp(c->provider, fresh.provider) == 0) {
		free(c->model);
		c->model = xstrdup(fresh.model);
		if (strcmp(c->provider, "exec") == 0) {
			free(c->cwd);
			c->cwd = NULL;
		}
		llm_config_release(&fresh);
		return;
	}
	llm_config_release(c);
	*c = fresh;
}

static void
use_text(char **at, const char *given)
{
	if (given == NULL)
		return;
	free(*at);
	*at = xstrdup(given);
}

static void
use_certificate(struct llm_config *c, const char *cert, const char *key)
{
	if (cert != NULL)
		use_text(&c->cert_key, "");	/* that of the file belongs to another certificate */
	use_text(&c->cert, cert);
	use_text(&c->cert_key, key);
}

/* What the command line of a turn said of its model holds for every part that names none; see cmd/ask/after.c. */
static void
use_turn(struct agent *a)
{
	const char *model = cli_env("AG2_TURN_MODEL");

	if (model != NULL)
		use_model(&a->model, model, 78);
	use_text(&a->model.base_url, cli_env("AG2_TURN_BASE_URL"));
	use_text(&a->model.cacert, cli_env("AG2_TURN_CACERT"));
	use_certificate(&a->model, cli_env("AG2_TURN_CERT"), cli_env("AG2_TURN_CERT_KEY"));
}

/* The model of that part, which is the agent's unless the file names another. */
static struct llm_config *
model_of(struct agent *a, const char *part, const struct opts *usage)
{
	struct llm_config *own = NULL;
	long i = 0;

	if (strcmp(part, "agent") == 0)
		own = NULL;
	else if (strcmp(part, "compact") == 0)
		own = &a->compact.model;
	else if (strncmp(part, "aggregate", 9) == 0 && (part[9] == '\0' ||
	    (part[9] == ':' && parse_long(part + 10, "--model-of", &i, NULL) == 0 && i >= 0)))
		own = (size_t)i < a->aggregates_n ? &a->aggregates[i].model : NULL;
	else
		cli_usage(usage, "--model-of: there is no part '%s' (agent, compact, aggregate, aggregate:N)", part);
	if (own != NULL && own->provider != NULL)
		return own;
	use_turn(a);
	return &a->model;
}

/* Only the model of $AG2_CONFIG is meant where the stream, with its prompts, comes from elsewhere. */
void
read_agent(struct agent *a, const char *file, const struct model_options *o, const struct opts *usage)
{
	struct llm_config model, *from;
	char *name;
	struct err e = ERR_INIT;

	if (file == NULL) {
		agent_init(a);
		return;
	}
	if (agent_read(a, file, &e) < 0)
		log_fail(&e);
	if (o->only) {
		from = o->part ? model_of(a, o->part, usage) : &a->model;
		model = *from;
		*from = (struct llm_config){ .temperature = -1 };
		name = xstrdup(a->name);
		agent_release(a);
		agent_init(a);
		free(a->name);
		a->name = name;
		a->model = model;
	}
}

static void
use_limit(double *at, double given, const char *variable)
{
	const char *text = given > 0 ? NULL : cli_env(variable);
	struct err e = ERR_INIT;

	if (text != NULL && parse_seconds(text, variable, &given, &e) < 0)
		log_die(78, "%s", e.msg);
	if (given > 0)
		*at = given;
}

static void
use_retries(long *at, long given)
{
	const char *text = given >= 0 ? NULL : cli_env("AG2_RETRIES");
	struct err e = ERR_INIT;

	if (text != NULL && (parse_long(text, "AG2_RETRIES", &given, &e) < 0 || given < 0))
		log_die(78, "AG2_RETRIES must be a number from 0 on, not '%s'", text);
	if (given >= 0)
		*at = given > 0 ? given : -1;
}

static void
use_limits(struct llm_config *c, const struct model_options *o)
{
	use_limit(&c->timeout, o->timeout, "AG2_TIMEOUT");
	use_limit(&c->connect_timeout, o->connect_timeout, "AG2_CONNECT_TIMEOUT");
	use_limit(&c->first_byte_timeout, o->first_byte_timeout, "AG2_FIRST_BYTE_TIMEOUT");
	use_limit(&c->idle_timeout, o->idle_timeout, "AG2_IDLE_TIMEOUT");
	use_retries(&c->retries, o->retries);
}

/* The variables are those of curl(1). */
static void
use_certificates(struct llm_config *c, const struct model_options *o)
{
	static const char *const names[] = { "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR" };
	const char *value;
	size_t i;

	use_text(&c->cacert, o->cacert);
	for (i = 0; c->cacert == NULL && i < sizeof(names) / sizeof(names[0]); i++) {
		value = cli_env(names[i]);
		if (value != NULL && !http_trusts(value))
			use_text(&c->cacert, value);
	}
	use_certificate(c, o->cert, o->cert_key);
	if (c->cert_key != NULL && c->cert == NULL)
		log_die(78, "there is a key for a certificate (cert_key), but no certificate (cert)");
}

void
choose_model(struct llm_config *c, const struct model_options *o, bool of_file)
{
	const char *base_url = o->base_url ? o->base_url : cli_env("AG2_BASE_URL"), *model = cli_env("AG2_MODEL");

	if (o->model != NULL)
		use_model(c, o->model, 64);
	else if (model != NULL && (c->provider == NULL || (!of_file && o->part == NULL)))
		use_model(c, model, 78);
	if (c->provider == NULL)
		log_die(78, "no model is configured; try -m openai:gpt-5 (its key in OPENAI_API_KEY), or 'model:' in the agent file");
	use_text(&c->base_url, base_url);
	use_limits(c, o);
	use_certificates(c, o);
}

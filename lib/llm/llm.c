#include "llm/llm.h"

#include "base/alloc.h"
#include "base/opts.h"
#include "llm/cassette.h"
#include "llm/provider.h"

#include <stdlib.h>

#define TIMEOUT 600	/* seconds */

static const struct provider *const providers[] = { &provider_openai, &provider_exec };
#define PROVIDERS (sizeof(providers) / sizeof(providers[0]))

static struct cassette *recording, *replaying;

static const struct provider *
find_provider(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < PROVIDERS; i++)
		if (strlen(providers[i]->name) == len && memcmp(providers[i]->name, name, len) == 0)
			return providers[i];
	return NULL;
}

static int
unknown_provider(const char *name, size_t len, struct err *e)
{
	const char *names[PROVIDERS], *near;
	struct buf all = BUF_INIT;
	char *word = xmemdup0(name, len);
	size_t i;

	for (i = 0; i < PROVIDERS; i++) {
		names[i] = providers[i]->name;
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
llm_config_parse(struct llm_config *c, const char *text, struct err *e)
{
	const char *colon = strchr(text, ':');
	const struct provider *p;

	if (colon == NULL)
		return err_set(e, ERR_USAGE, "the model '%.100s' names no provider: write PROVIDER:MODEL, such as openai:gpt-5", text);
	p = find_provider(text, (size_t)(colon - text));
	if (p == NULL)
		return unknown_provider(text, (size_t)(colon - text), e);
	if (colon[1 + strspn(colon + 1, " \t\r\n")] == '\0')
		return err_set(e, ERR_USAGE, "the model '%.100s' names a provider but no model", text);
	free(c->provider);
	free(c->model);
	c->provider = xstrdup(p->name);
	c->model = xstrdup(colon + 1);
	return 0;
}

void
llm_config_release(struct llm_config *c)
{
	free(c->provider);
	free(c->model);
	free(c->base_url);
	free(c->api_key_env);
	free(c->api_key_cmd);
	if (c->api_key != NULL)
		explicit_bzero(c->api_key, strlen(c->api_key));
	free(c->api_key);
	free(c->cwd);
	*c = (struct llm_config){ .temperature = -1 };
}

const char *
llm_key_env(const struct llm_config *c)
{
	const struct provider *p = c->provider != NULL ? find_provider(c->provider, strlen(c->provider)) : NULL;

	return p == NULL || p->key_env == NULL ? NULL : c->api_key_env != NULL ? c->api_key_env : p->key_env;
}

bool
llm_provider_list(size_t i, const char **name, const char **summary)
{
	if (i >= PROVIDERS)
		return false;
	*name = providers[i]->name;
	*summary = providers[i]->summary;
	return true;
}

double
llm_timeout(const struct llm_config *c)
{
	return c->timeout > 0 ? c->timeout : TIMEOUT;
}

void
llm_reply_release(struct llm_reply *r)
{
	size_t i;

	free(r->message);
	for (i = 0; i < r->calls_n; i++) {
		free(r->calls[i].id);
		free(r->calls[i].name);
		free(r->calls[i].arguments);
	}
	free(r->calls);
	free(r->model);
	free(r->provider);
	free(r->finish_reason);
	event_list_release(&r->events);
	*r = (struct llm_reply){ .usage = USAGE_NONE };
}

static const struct provider *
provider_of(const struct llm_request *r, struct err *e)
{
	const char *name = r->config->provider;
	const struct provider *p = name != NULL ? find_provider(name, strlen(name)) : NULL;

	if (name == NULL)
		err_set(e, ERR_CONFIG, "no model: name one as PROVIDER:MODEL, such as openai:gpt-5");
	else if (p == NULL)
		unknown_provider(name, strlen(name), e);
	return p;
}

int
llm_body(const struct llm_request *r, struct buf *out, struct err *e)
{
	const struct provider *p = provider_of(r, e);

	return p != NULL ? p->body(r, out, e) : -1;
}

int
llm_cassette(const char *record, const char *replay, struct err *e)
{
	cassette_free(recording);
	cassette_free(replaying);
	recording = replaying = NULL;
	if (record != NULL && replay != NULL)
		return err_set(e, ERR_USAGE, "a cassette is recorded or replayed, not both");
	if (record != NULL)
		return (recording = cassette_record_to(record, e)) != NULL ? 0 : -1;
	if (replay != NULL)
		return (replaying = cassette_load(replay, e)) != NULL ? 0 : -1;
	return 0;
}

/* The sink of a recorded call: passes on and keeps the pieces. */
struct tap {
	const struct llm_sink *sink;
	struct json_object *pieces;
};

static int
tap_text(void *arg, const char *text, size_t len, struct err *e)
{
	struct tap *tap = arg;

	json_object_array_add(tap->pieces, json_object_new_string_len(text, (int)len));
	return sink_text(tap->sink, text, len, e);
}

static int
recorded_call(const struct provider *p, const struct llm_request *r, const struct buf *body, const struct llm_sink *sink,
    struct llm_reply *reply, struct err *e)
{
	struct tap tap = { sink, json_object_new_array() };
	struct llm_sink tapped = { tap_text, &tap };
	int rc = p->call(r, body, &tapped, reply, e);

	if (rc == 0)
		rc = cassette_add(recording, r, p->lines, body, tap.pieces, reply, e);
	json_object_put(tap.pieces);
	return rc;
}

int
llm_call(const struct llm_request *r, int (*on_text)(void *arg, const char *text, size_t len, struct err *e), void *arg,
    struct llm_reply *reply, struct err *e)
{
	const struct provider *p = provider_of(r, e);
	struct llm_sink sink = { on_text, arg };
	struct buf body = BUF_INIT;
	int rc = -1;

	*reply = (struct llm_reply){ .usage = USAGE_NONE };
	if (p == NULL)
		return -1;
	if (p->body(r, &body, e) < 0)
		goto out;
	if (replaying != NULL)
		rc = cassette_answer(replaying, r, p->lines, &body, &sink, reply, e);
	else if (recording != NULL)
		rc = recorded_call(p, r, &body, &sink, reply, e);
	else
		rc = p->call(r, &body, &sink, reply, e);
out:
	if (rc < 0)
		llm_reply_release(reply);
	buf_release(&body);
	return rc < 0 ? -1 : 0;
}

#include "llm/llm.h"

#include "base/alloc.h"
#include "llm/cassette.h"
#include "llm/context.h"
#include "llm/origin.h"
#include "llm/reading.h"

#include <stdlib.h>

#define FUNCTIONS(id, name, key_env, summary) &provider_##id,
static const struct provider *const providers[] = { PROVIDER_LIST(FUNCTIONS) };

static struct cassette *recording, *replaying;

void
llm_reply_release(struct llm_reply *r)
{
	size_t i;

	free(r->message);
	for (i = 0; i < r->calls_n; i++) {
		free(r->calls[i].id);
		free(r->calls[i].name);
		free(r->calls[i].arguments);
		free(r->calls[i].vendor_metadata);
		free(r->calls[i].signature);
	}
	free(r->calls);
	json_object_put(r->files);
	free(r->model);
	free(r->provider);
	free(r->finish_reason);
	event_list_release(&r->replay);
	event_list_release(&r->events);
	*r = (struct llm_reply){ .usage = USAGE_NONE };
}

static const struct provider *
provider_of(const struct llm_request *r, struct err *e)
{
	const char *name = r->config->provider;
	size_t i;

	if (name == NULL) {
		err_set(e, ERR_CONFIG, "no model: name one as PROVIDER:MODEL, such as openai:gpt-5");
		return NULL;
	}
	return provider_index(name, strlen(name), &i, e) == 0 ? providers[i] : NULL;
}

int
llm_body(const struct llm_request *r, struct buf *out, struct err *e)
{
	const struct provider *p = provider_of(r, e);
	struct placed placed;
	int rc;

	if (p == NULL || context_place(&placed, r, e) < 0)
		return -1;
	rc = p->body(&placed.request, out, e);
	context_release(&placed);
	return rc;
}

int
llm_origins(const struct llm_request *r, struct llm_origins *o, struct err *e)
{
	const struct provider *p = provider_of(r, e);
	struct placed placed;
	size_t i, at;
	int rc;

	*o = (struct llm_origins){ .n = 0 };
	if (p == NULL || context_place(&placed, r, e) < 0)
		return -1;
	rc = origin_all(p, &placed.request, o, e);
	/* An event that was put in moves those behind it. */
	at = placed.request.stable_n;
	for (i = 0; placed.request.events_n > r->events_n && i < o->events_n; i++) {
		if (o->events[i] == at)
			o->events[i] = r->events_n;
		else if (o->events[i] > at)
			o->events[i]--;
	}
	context_release(&placed);
	return rc;
}

int
llm_sent(const struct llm_request *r, bool *sent, struct err *e)
{
	const struct provider *p = provider_of(r, e);
	struct placed placed;
	bool *all;
	size_t at;
	int rc;

	if (p == NULL || context_place(&placed, r, e) < 0)
		return -1;
	all = xcalloc(placed.request.events_n + 1, sizeof(all[0]));
	rc = origin_sent(p, &placed.request, all, e);
	at = placed.request.events_n > r->events_n ? placed.request.stable_n : r->events_n;	/* of one that was put in */
	memcpy(sent, all, at * sizeof(all[0]));
	if (at < r->events_n)
		memcpy(sent + at, all + at + 1, (r->events_n - at) * sizeof(all[0]));
	free(all);
	context_release(&placed);
	return rc;
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
call(const struct provider *p, const struct llm_request *r, const struct buf *body, const struct llm_sink *sink, struct llm_reply *reply,
    struct err *e)
{
	return p->api != NULL ? api_call(p->api, r, body, sink, reply, e) : p->call(r, body, sink, reply, e);
}

static int
recorded_call(const struct provider *p, const struct llm_request *r, const struct buf *body, const struct llm_sink *sink,
    struct llm_reply *reply, struct err *e)
{
	struct tap tap = { sink, json_object_new_array() };
	struct llm_sink tapped = { tap_text, &tap };
	int rc = call(p, r, body, &tapped, reply, e);

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
	struct placed placed;
	struct buf body = BUF_INIT;
	int rc = -1;

	*reply = (struct llm_reply){ .usage = USAGE_NONE };
	if (p == NULL || context_place(&placed, r, e) < 0)
		return -1;
	r = &placed.request;
	if (p->body(r, &body, e) < 0)
		goto out;
	if (replaying != NULL)
		rc = cassette_answer(replaying, r, p->lines, &body, &sink, reply, e);
	else if (recording != NULL)
		rc = recorded_call(p, r, &body, &sink, reply, e);
	else
		rc = call(p, r, &body, &sink, reply, e);
out:
	if (rc < 0 && replaying == NULL)
		origin_name(p, r, e);
	if (rc < 0)
		llm_reply_release(reply);
	buf_release(&body);
	context_release(&placed);
	return rc < 0 ? -1 : 0;
}

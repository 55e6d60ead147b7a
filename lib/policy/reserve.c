#include "policy/reserve.h"

#include "base/alloc.h"
#include "policy/mend.h"
#include "policy/replay.h"

#include <stdlib.h>

struct reserve_call {
	bool answered;		/* by a container */
	bool alone;		/* a result for it came alone */
	int64_t tokens;		/* of that, at least those of an error result */
};

void
reserve_init(struct reserve *r, int chars_per_token)
{
	struct json_object *error = mend_error("", 0, "", 0);

	*r = (struct reserve){ .chars = chars_per_token, .response = -1, .ids = IDSET_INIT, .builtin = IDSET_INIT };
	r->error = mend_result_tokens(json_get(error, "data"), chars_per_token);
	json_object_put(error);
}

void
reserve_release(struct reserve *r)
{
	idset_release(&r->ids);
	idset_release(&r->builtin);
	free(r->calls);
}

static struct reserve_call *
call_of(struct reserve *r, const char *id, size_t len)
{
	size_t i = r->response >= 0 && id != NULL ? idset_find(&r->ids, id, len) : SIZE_MAX;

	return i != SIZE_MAX ? &r->calls[i] : NULL;
}

static void
open_call(void *arg, const char *id, size_t len)
{
	struct reserve *r = arg;
	bool fresh;
	size_t i = idset_add(&r->ids, id, len, &fresh);

	if (!fresh)
		return;
	r->calls = xgrow(r->calls, i, &r->cap, sizeof(r->calls[0]));
	r->calls[i] = (struct reserve_call){ .tokens = r->error };
}

/* All of what is missing is sent, or nothing when calls are to stay open. */
static struct reserved
owed(const struct reserve *r, bool open_stays)
{
	struct reserved owes = { r->response, 0 };
	size_t i;

	for (i = 0; r->response >= 0 && i < r->ids.n; i++) {
		if (r->calls[i].answered)
			continue;
		if (open_stays && !r->calls[i].alone)
			return (struct reserved){ -1, 0 };
		owes.tokens += r->calls[i].tokens;
	}
	return owes;
}

static struct reserved
close_response(struct reserve *r)
{
	struct reserved owes = owed(r, false);

	r->response = -1;
	idset_reset(&r->ids);
	return owes;
}

static void
note_foreign(void *arg, const char *id, size_t len)
{
	struct reserve *r = arg;

	r->foreign |= call_of(r, id, len) == NULL;
}

static void
note_answer(void *arg, const char *id, size_t len)
{
	call_of(arg, id, len)->answered = true;
}

/* A container that has results of other responses as well may go with those: then it answers none. */
static void
take_results(struct reserve *r, struct event *ev)
{
	r->foreign = false;
	replay_ids(ev, note_foreign, r, NULL);
	if (!r->foreign)
		replay_ids(ev, note_answer, r, NULL);
}

static int64_t
results_placeholders(const struct reserve *r, struct event *ev)
{
	struct pieces ids = { 0 };
	struct mend_list l = { .n = 0 };
	struct json_object *one;
	int64_t tokens = 0;
	size_t i;

	if (!quick_results(ev, &ids))
		mend_list_open(&l, ev);
	for (i = 0; i < l.n; i++) {
		one = NULL;
		json_parse(&one, l.items[i].text.p, l.items[i].text.len, NULL);
		if (mend_blank_result(one))
			tokens += mend_result_tokens(one, r->chars);
		json_object_put(one);
	}
	mend_list_release(&l);
	pieces_release(&ids);
	return tokens;
}

/* With its response, which then needs it; one that is late needs it itself. */
static int64_t
take_result(struct reserve *r, struct json_object *data)
{
	size_t len = 0;
	const char *id = json_get_text(data, "parent_id", &len);
	struct reserve_call *call = call_of(r, id, len);
	int64_t tokens;

	if (call == NULL && id != NULL && idset_find(&r->builtin, id, len) != SIZE_MAX)
		return 0;
	tokens = mend_result_tokens(data, r->chars);
	if (call == NULL)
		return tokens;
	call->alone = true;
	call->tokens = tokens > call->tokens ? tokens : call->tokens;
	return 0;
}

static void
open_builtin(void *arg, const char *id, size_t len)
{
	idset_add(&((struct reserve *)arg)->builtin, id, len, NULL);
}

int64_t
reserve_step(struct reserve *r, struct event *ev, int64_t number, struct reserved *closed)
{
	unsigned flags = ev->type->flags;

	*closed = (struct reserved){ -1, 0 };
	if ((flags & EV_RESPONSE) && mend_says_nothing(ev))
		return 0;	/* it is not sent */
	if (flags & (EV_REQUEST | EV_SUMMARY | EV_RESPONSE))
		*closed = close_response(r);
	if (flags & EV_RESPONSE) {
		r->response = number;
		replay_ids(ev, open_call, r, NULL);
	}
	if (flags & (EV_REQUEST | EV_SUMMARY))
		idset_reset(&r->builtin);
	if (flags & EV_BUILTIN_CALL)
		replay_ids(ev, open_builtin, r, NULL);
	if (flags & EV_REQUEST)
		return mend_says_nothing(ev) ? mend_request_tokens(r->chars) : 0;
	if (flags & EV_RESULT)
		return take_result(r, event_data(ev, NULL));
	if ((flags & EV_RESULTS) == 0)
		return 0;
	take_results(r, ev);
	return results_placeholders(r, ev);
}

struct reserved
reserve_end(struct reserve *r, bool answer_open)
{
	return owed(r, !answer_open);
}

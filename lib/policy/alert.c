/*
 * ObserverAlerts that the model has not seen yet as one prompt; a fatal one halts.
 *
 * An alert counts as seen when a request or results event and then a response follow it: the call that made the response
 * was given it. It also does when a HaltEvent lists it. The stage holds the alerts that are not seen and 20 bytes of each
 * different one that is.
 */
#include "policy/stage.h"

#include "base/alloc.h"
#include "base/sha1.h"
#include "policy/idset.h"

#include <ctype.h>
#include <stdlib.h>

#define KEY 20

struct pending {
	struct event *event;		/* owned */
	char key[KEY];
	bool fatal;
	bool offered;			/* a request or results event followed: the next response has seen it */
	bool listed;			/* by a HaltEvent */
};

struct alert {
	struct stage stage;
	bool delivered_none;
	struct pending *pending;
	size_t n, cap;
	size_t offered;			/* how many of them are */
	size_t looked_at;		/* pending[0..looked_at) are offered */
	struct idset seen;		/* of keys */
	struct idset waiting;		/* keys of pending, by their place; rebuilt when pending shrinks */
};

static struct alert *
alert_of(struct stage *s)
{
	return (struct alert *)s;
}

/* The severity's word; *plain tells that it is no enum. NULL when it is neither. */
static const char *
severity_of(struct json_object *alert, bool *plain)
{
	const char *word = json_get_text(alert, "severity", NULL);

	*plain = word != NULL;
	return word != NULL ? word : json_get_text(json_get(alert, "severity"), "value", NULL);
}

static bool
is_fatal(struct json_object *alert)
{
	bool plain;
	const char *word = severity_of(alert, &plain);

	return word != NULL && strcmp(word, "fatal") == 0;
}

static struct text
member(struct json_object *alert, const char *key)
{
	struct text t;

	t.data = json_get_text(alert, key, &t.len);
	return t.data != NULL ? t : (struct text){ "", 0 };
}

/* Source, severity and message; AG2 tells a plain severity from the enum's. */
static void
make_key(char key[KEY], struct json_object *alert, bool as_ag2)
{
	struct text source = member(alert, "source"), message = member(alert, "message");
	struct sha1 h;
	bool plain;
	const char *word = severity_of(alert, &plain);

	if (word == NULL)
		word = "";
	sha1_init(&h);
	sha1_add(&h, source.data, source.len);
	sha1_add(&h, as_ag2 && plain ? "\0plain" : "\0", as_ag2 && plain ? 7 : 1);
	sha1_add(&h, word, strlen(word) + 1);
	sha1_add(&h, message.data, message.len);
	sha1_end(&h, (unsigned char *)key);
}

static bool
is_seen(const struct alert *a, const char key[KEY])
{
	return idset_find(&a->seen, key, KEY) != SIZE_MAX;
}

static void
offer(struct alert *a, size_t i)
{
	a->offered += !a->pending[i].offered;
	a->pending[i].offered = true;
}

static void
offer_all(struct alert *a)
{
	for (; a->looked_at < a->n; a->looked_at++)
		offer(a, a->looked_at);
}

/* Takes out the pending alerts that are seen now: those marked so, and with `response` those that were offered to it. */
static void
forget_seen(struct alert *a, bool response)
{
	size_t i, kept = 0, looked_at = 0;

	for (i = 0; i < a->n; i++) {
		if (a->pending[i].listed || (response && a->pending[i].offered)) {
			a->offered -= a->pending[i].offered;
			idset_add(&a->seen, a->pending[i].key, KEY, NULL);
			event_free(a->pending[i].event);
		} else {
			a->pending[kept++] = a->pending[i];
			looked_at += i < a->looked_at;
		}
	}
	a->n = kept;
	a->looked_at = looked_at;
	idset_reset(&a->waiting);
	for (i = 0; i < kept; i++)
		idset_add(&a->waiting, a->pending[i].key, KEY, NULL);
}

static void
add_pending(struct alert *a, struct event *ev, const char key[KEY], bool fatal)
{
	size_t i = idset_find(&a->waiting, key, KEY);

	if (i != SIZE_MAX) {	/* one of the two is enough; a fatal one is as new as its last */
		if (fatal && !chain_opts(a->stage.chain)->as_ag2) {
			a->offered -= a->pending[i].offered;
			a->pending[i].offered = false;
			a->looked_at = i < a->looked_at ? i : a->looked_at;
		}
		return;
	}
	idset_add(&a->waiting, key, KEY, NULL);
	a->pending = xgrow(a->pending, a->n, &a->cap, sizeof(a->pending[0]));
	a->pending[a->n] = (struct pending){ .event = event_dup(ev), .fatal = fatal };
	memcpy(a->pending[a->n++].key, key, KEY);
}

static int
take_alert(struct alert *a, struct event *ev, struct err *e)
{
	bool as_ag2 = chain_opts(a->stage.chain)->as_ag2;
	struct json_object *data = event_data(ev, e);
	char key[KEY];

	if (data == NULL)
		return -1;
	make_key(key, data, as_ag2);
	if (a->delivered_none || !is_seen(a, key) || (is_fatal(data) && !as_ag2))
		add_pending(a, ev, key, is_fatal(data));
	return 0;
}

/* The alerts that a HaltEvent lists were seen: it is what came of them. */
static int
take_halt(struct alert *a, struct event *ev, struct err *e)
{
	struct json_object *data = event_data(ev, e), *list;
	char key[KEY];
	size_t i, j, n;
	bool any = false;

	if (data == NULL)
		return -1;
	list = json_get(data, "alerts");
	n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
	for (i = 0; i < n; i++) {
		make_key(key, json_object_array_get_idx(list, i), chain_opts(a->stage.chain)->as_ag2);
		idset_add(&a->seen, key, KEY, NULL);
		j = idset_find(&a->waiting, key, KEY);
		if (j != SIZE_MAX)
			any = a->pending[j].listed = true;
	}
	if (any)
		forget_seen(a, false);
	return 0;
}

static int
alert_event(struct stage *s, struct event *ev, struct err *e)
{
	struct alert *a = alert_of(s);
	struct err why = ERR_INIT;
	unsigned flags = ev->type->flags;
	int rc = 0;

	if (flags & EV_ALERT)
		rc = take_alert(a, ev, &why);
	if (rc < 0)
		return chain_bad(s->chain, ev, &why, e);
	if (!a->delivered_none) {
		if (flags & EV_HALT)
			rc = take_halt(a, ev, &why);
		if (rc < 0)
			return chain_bad(s->chain, ev, &why, e);
		if (flags & (EV_REQUEST | EV_RESULTS))
			offer_all(a);
		if ((flags & EV_RESPONSE) && a->offered > 0)
			forget_seen(a, true);
	}
	return stage_event(s->next, ev, e);
}

static int
alert_prompts_done(struct stage *s, struct err *e)
{
	return 0;		/* ours comes at the end, behind those before it and before those that follow */
}

static void
add_upper(struct buf *out, const char *word)
{
	for (; *word != '\0'; word++)
		buf_addch(out, (char)toupper((unsigned char)*word));
}

static void
add_text(struct buf *out, struct text t)
{
	buf_add(out, t.data, t.len);
}

/* `- [LEVEL] (source): message` */
static void
add_line(struct buf *out, struct json_object *alert)
{
	bool plain;
	const char *word = severity_of(alert, &plain);

	buf_adds(out, "\n- [");
	add_upper(out, word != NULL ? word : "");
	buf_adds(out, "] (");
	add_text(out, member(alert, "source"));
	buf_adds(out, "): ");
	add_text(out, member(alert, "message"));
}

static int
inject_alerts(struct alert *a, struct err *e)
{
	struct buf text = BUF_INIT;
	bool any = false;
	size_t i;
	int rc = 0;

	buf_adds(&text, "[OBSERVER MONITORING ALERTS]");
	for (i = 0; i < a->n; i++) {
		if (a->pending[i].fatal)
			continue;
		add_line(&text, event_data(a->pending[i].event, NULL));
		any = true;
	}
	if (any)
		rc = stage_inject(a->stage.next, (struct text){ text.data, text.len }, "alert", e);
	buf_release(&text);
	return rc;
}

/* One HaltEvent and the notice, for all that are fatal: the first is the reason. */
static int
halt(struct alert *a, struct event *const *fatal, size_t n, struct err *e)
{
	struct json_object *first = event_data(fatal[0], NULL);
	struct text source = member(first, "source"), message = member(first, "message");
	struct buf text = BUF_INIT, line = BUF_INIT;
	int rc;

	buf_adds(&text, "FATAL: ");
	add_text(&text, message);
	rc = build_halt(&line, (struct text){ text.data, text.len }, source, fatal, n, e);
	if (rc == 0) {
		chain_halt(&a->stage, line.data, line.len);
		buf_reset(&text);
		buf_adds(&text, "[FATAL ALERT] (");
		add_text(&text, source);
		buf_adds(&text, "): ");
		add_text(&text, message);
		buf_adds(&text, ". Execution halting.");
		rc = stage_inject(a->stage.next, (struct text){ text.data, text.len }, "alert", e);
	}
	buf_release(&text);
	buf_release(&line);
	return rc;
}

static int
inject_fatal(struct alert *a, struct err *e)
{
	struct event **fatal = xcalloc(a->n + 1, sizeof(fatal[0]));
	size_t i, n = 0;
	int rc = 0;

	for (i = 0; i < a->n; i++)
		if (a->pending[i].fatal)
			fatal[n++] = a->pending[i].event;
	if (n > 0)
		rc = halt(a, fatal, n, e);
	free(fatal);
	return rc;
}

static int
alert_end(struct stage *s, struct err *e)
{
	struct alert *a = alert_of(s);

	if (inject_alerts(a, e) < 0 || inject_fatal(a, e) < 0 || stage_prompts_done(s->next, e) < 0)
		return -1;
	return stage_end(s->next, e);
}

static void
alert_free(struct stage *s)
{
	struct alert *a = alert_of(s);
	size_t i;

	for (i = 0; i < a->n; i++)
		event_free(a->pending[i].event);
	free(a->pending);
	idset_release(&a->seen);
	idset_release(&a->waiting);
	free(a);
}

static const struct stage_ops alert_ops = {
	.prompts_done = alert_prompts_done,
	.event = alert_event,
	.end = alert_end,
	.free = alert_free,
};

static struct stage *
alert_open(struct chain *c, const struct policy_spec *spec, struct err *e)
{
	struct alert *a = xcalloc(1, sizeof(*a));

	a->stage.ops = &alert_ops;
	a->delivered_none = policy_given(spec, "delivered");
	a->seen = a->waiting = (struct idset)IDSET_INIT;
	return &a->stage;
}

const struct policy policy_alert = {
	.name = "alert",
	.id = "alert",
	.kind = POLICY_INJECTION,
	.params = "delivered=none",
	.summary = "adds ObserverAlerts not delivered yet as one prompt; a FATAL one halts",
	.keys = { { "delivered", KEY_NONE, NULL } },
	.holds = true,
	.open = alert_open,
};

/*
 * The last stage beyond AG2: what comes out can be sent. The rules are those of the manual page ag2-assemble(1):
 *
 *  - A response with calls opens a unit. Results containers answer its calls; what a container has besides is taken out
 *    of it. The next request, summary or response closes the unit: calls still open are answered by the results that
 *    were logged one by one, else by an error result.
 *  - A result for a call whose unit was closed is late. Where output can wait, a slot is left behind such a unit, and
 *    events are held from there on; a late result goes into its slot, and at the end the slots that are left are filled
 *    with error results. Where it cannot, the error result goes out at once, and the late result as a note of the user.
 *  - Results for no call, second results, empty responses, and provider items that stand for a response which is not
 *    there are left out. Empty requests and results get a placeholder.
 *
 * Only results containers are sent by providers' clients; single results and announcements of calls are the log's record
 * of a tool round. They go with their unit and are left out without it.
 */
#include "policy/mend.h"
#include "policy/spool.h"
#include "policy/stage.h"

#include "base/alloc.h"
#include "base/log.h"
#include "policy/idset.h"

#include <inttypes.h>
#include <stdlib.h>

#define NO_SLOT SIZE_MAX
#define PENDING_MAX 1000	/* events that wait for the response of a provider item; then there is none to come */

struct unit_call {
	char *name;
	size_t name_len;
	bool answered;			/* by a container that went out */
	struct event *loose;		/* a result that came alone */
};

struct unit {			/* a response with calls, until the next request or response */
	bool active;
	uint64_t line;			/* number of the response's */
	struct idset ids;		/* of its calls, in order, an id each that no other has */
	struct unit_call *calls;
	size_t missing;			/* not answered */
};

struct slot {			/* the place behind a unit that was closed with calls unanswered */
	struct unit unit;
	struct event_list lines;	/* late results that go there */
};

struct late_call {		/* a call that was not answered in time, by its number in sendable.late */
	bool open;			/* no result came yet */
	size_t slot, call;		/* NO_SLOT: it got an error result, a result becomes a note */
};

enum repair { ORPHAN, SECOND, UNANSWERED, MOVED, NOTED, EMPTY, REPAIRS };
static const char *const repair_texts[REPAIRS] = {
	[ORPHAN] = "result without its call left out",
	[SECOND] = "second result of a call left out",
	[UNANSWERED] = "call without a result given an error result",
	[MOVED] = "late result moved to its call",
	[NOTED] = "late result turned into a note",
	[EMPTY] = "event without its content left out",
};

struct repaired {
	uint64_t count, first;		/* first: line number of the first, 0 when it is not known */
};

struct sendable {
	struct stage stage;
	struct unit unit;
	struct idset builtin;		/* ids of the builtin calls since the last request */
	bool *builtin_answered;		/* by the number of the id */
	size_t builtin_cap;
	struct event_list pending;	/* from an anchor or turn item on, until its response */
	struct event_list notes;	/* wait for the unit to be closed */
	struct idset late;
	struct late_call *late_calls;
	size_t late_cap;
	struct slot *slots;
	size_t slots_n, slots_cap, slots_open;
	struct spool held;		/* from the first open slot on */
	struct pieces ids, names;	/* of the line at hand */
	struct idset differ;		/* ids seen in it */
	struct repaired repaired[REPAIRS];
};

static struct sendable *
sendable_of(struct stage *s)
{
	return (struct sendable *)s;
}

static void
count(struct sendable *s, enum repair what, uint64_t line)
{
	if (s->repaired[what].count++ == 0)
		s->repaired[what].first = line;
}

/* The same with an event of the input, whose fate it is. */
static void
repair(struct sendable *s, enum repair what, const struct event *ev)
{
	count(s, what, ev->number);
	chain_why(s->stage.chain, ev, repair_texts[what]);
}

/* An event made here is told with the place of what it was made of. */
static void
stands_for(struct event *made, const struct event *ev)
{
	made->number = ev->number;
	made->offset = ev->offset;
}

/* ---- units ---- */

static void
unit_release(struct unit *u)
{
	size_t i;

	for (i = 0; i < u->ids.n; i++) {
		event_free(u->calls[i].loose);
		free(u->calls[i].name);
	}
	free(u->calls);
	idset_release(&u->ids);
	*u = (struct unit){ .ids = IDSET_INIT };
}

static struct json_object *
calls_of(struct json_object *response)
{
	struct json_object *calls = json_get(json_get(response, "tool_calls"), "calls");

	return json_object_is_type(calls, json_type_array) ? calls : NULL;
}

static size_t
length(struct json_object *array)
{
	return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

static void
unit_begin(struct unit *u, const struct event *ev, size_t calls)
{
	u->active = true;
	u->line = ev->number;
	u->calls = xcalloc(calls + 1, sizeof(u->calls[0]));
}

static void
unit_add(struct unit *u, struct piece id, struct piece name)
{
	bool fresh;
	size_t i = idset_add(&u->ids, id.p, id.len, &fresh);

	if (!fresh)
		return;
	u->calls[i].name = xmemdup0(name.len > 0 ? name.p : "", name.len);
	u->calls[i].name_len = name.len;
	u->missing++;
}

static void
unit_open(struct unit *u, const struct event *ev, struct json_object *calls)
{
	struct json_object *one;
	struct piece id, name;
	size_t i;

	unit_begin(u, ev, length(calls));
	for (i = 0; i < length(calls); i++) {
		one = json_object_array_get_idx(calls, i);
		id = name = (struct piece){ NULL, 0 };
		id.p = json_get_text(one, "id", &id.len);
		name.p = json_get_text(one, "name", &name.len);
		if (id.p != NULL)
			unit_add(u, id, name.p != NULL ? name : (struct piece){ "", 0 });
	}
}

/* The same for a line that was only looked at. */
static void
unit_open_pieces(struct unit *u, const struct event *ev, const struct pieces *ids, const struct pieces *names)
{
	size_t i;

	unit_begin(u, ev, ids->n);
	for (i = 0; i < ids->n; i++)
		unit_add(u, ids->items[i], names->items[i]);
}

/* The number of the call in the unit, SIZE_MAX when it is not there. */
static size_t
unit_call(const struct unit *u, const char *id, size_t len)
{
	return u->active && id != NULL ? idset_find(&u->ids, id, len) : SIZE_MAX;
}

static void
add_error(struct buf *list, const struct unit *u, size_t i)
{
	size_t len;
	const char *id = idset_text(&u->ids, i, &len);
	struct json_object *error = mend_error(id, len, u->calls[i].name, u->calls[i].name_len);

	build_listed(list, error);
	json_object_put(error);
}

/* A container for the calls that are missing: results that came alone, and error results. NULL when there are none. */
static struct event *
fill_missing(struct sendable *s, struct unit *u)
{
	struct buf list = BUF_INIT;
	const struct event *only = NULL;	/* what it is made of, where that is one event */
	struct event *ev;
	size_t i, len, n = 0;
	char *text;

	for (i = 0; i < u->ids.n; i++) {
		if (u->calls[i].answered)
			continue;
		buf_adds(&list, list.len > 0 ? ", " : "");
		if (u->calls[i].loose != NULL && mend_listed(&list, u->calls[i].loose)) {
			only = u->calls[i].loose;
			chain_why(s->stage.chain, only, "its result is in the container made for its round");
		} else {
			count(s, UNANSWERED, u->line);
			add_error(&list, u, i);
		}
		u->calls[i].answered = true;
		n++;
	}
	u->missing = 0;
	if (list.len == 0)
		return NULL;
	build_container(&list);
	text = buf_detach(&list, &len);
	ev = event_own(text, len);
	if (n == 1 && only != NULL)
		stands_for(ev, only);
	return ev;
}

static bool
all_came_alone(const struct unit *u)
{
	size_t i;

	for (i = 0; i < u->ids.n; i++)
		if (!u->calls[i].answered && u->calls[i].loose == NULL)
			return false;
	return true;
}

/* ---- giving on ---- */

/* To the next stage, or behind the slots. */
static int
forward(struct sendable *s, struct event *ev, struct err *e)
{
	return s->held.records > 0 ? spool_add(&s->held, ev, 0, e) : stage_event(s->stage.next, ev, e);
}

/* The same for an event of our own making, which is freed. NULL is nothing. */
static int
forward_own(struct sendable *s, struct event *ev, struct err *e)
{
	int rc = ev != NULL ? forward(s, ev, e) : 0;

	event_free(ev);
	return rc;
}

/* Lets go of what is pending; the provider's items only with the response they belong to. */
static int
give_pending(struct sendable *s, bool with_items, struct err *e)
{
	struct event_list list = s->pending;
	struct event *ev;
	size_t i;
	int rc = 0;

	s->pending = (struct event_list){ 0 };
	for (i = 0; i < list.n && rc == 0; i++) {
		ev = list.items[i];
		if (with_items || (ev->type->flags & (EV_ANCHOR | EV_TURN_ITEM)) == 0)
			rc = forward(s, ev, e);
		else
			chain_why(s->stage.chain, ev, "a provider's item without its response");
	}
	event_list_release(&list);
	return rc;
}

/* In order behind what is pending. */
static int
give(struct sendable *s, struct event *ev, struct err *e)
{
	if (s->pending.n == 0)
		return forward(s, ev, e);
	if (s->pending.n >= PENDING_MAX)
		return give_pending(s, true, e) < 0 ? -1 : forward(s, ev, e);
	event_list_add(&s->pending, event_dup(ev));
	return 0;
}

static int
give_notes(struct sendable *s, struct err *e)
{
	struct event_list list = s->notes;
	size_t i;
	int rc = 0;

	if (list.n == 0)
		return 0;
	s->notes = (struct event_list){ 0 };
	unit_release(&s->unit);		/* a note is a request */
	idset_reset(&s->builtin);
	for (i = 0; i < list.n && rc == 0; i++)
		rc = forward(s, list.items[i], e);
	event_list_release(&list);
	return rc;
}

/* ---- slots ---- */

static int
play_event(void *arg, struct event *ev, struct err *e)
{
	return stage_event(((struct sendable *)arg)->stage.next, ev, e);
}

static int
play_slot(void *arg, uint64_t i, struct err *e)
{
	struct sendable *s = arg;
	struct slot *slot = &s->slots[i];
	struct event *rest;
	size_t j;
	int rc = 0;

	for (j = 0; j < slot->lines.n && rc == 0; j++)
		rc = stage_event(s->stage.next, slot->lines.items[j], e);
	rest = fill_missing(s, &slot->unit);
	if (rc == 0 && rest != NULL)
		rc = stage_event(s->stage.next, rest, e);
	event_free(rest);
	return rc;
}

static void
forget_slots(struct sendable *s)
{
	size_t i;

	for (i = 0; i < s->slots_n; i++) {
		unit_release(&s->slots[i].unit);
		event_list_release(&s->slots[i].lines);
	}
	s->slots_n = s->slots_open = 0;
	idset_reset(&s->late);
}

/* Gives on all that is held: every slot is filled, or this is the end. */
static int
play_held(struct sendable *s, struct err *e)
{
	struct spool_reader reader = { .event = play_event, .mark = play_slot, .arg = s };
	int rc = s->held.records > 0 ? spool_play(&s->held, &reader, e) : 0;

	spool_release(&s->held);
	forget_slots(s);
	return rc;
}

static void
add_late(struct sendable *s, const struct unit *u, size_t slot)
{
	size_t i, j, len;
	const char *id;

	for (i = 0; i < u->ids.n; i++) {
		if (u->calls[i].answered)
			continue;
		id = idset_text(&u->ids, i, &len);
		j = idset_add(&s->late, id, len, NULL);
		s->late_calls = xgrow(s->late_calls, j, &s->late_cap, sizeof(s->late_calls[0]));
		s->late_calls[j] = (struct late_call){ .open = true, .slot = slot, .call = i };
	}
}

static int
open_slot(struct sendable *s, struct err *e)
{
	size_t i = s->slots_n;

	s->slots = xgrow(s->slots, i, &s->slots_cap, sizeof(s->slots[0]));
	s->slots[i] = (struct slot){ .unit = s->unit };
	s->unit = (struct unit){ .ids = IDSET_INIT };
	s->slots_n++;
	s->slots_open++;
	add_late(s, &s->slots[i].unit, i);
	return spool_add(&s->held, NULL, i, e);
}

/* What follows is no part of the unit. */
static int
close_unit(struct sendable *s, struct err *e)
{
	struct unit *u = &s->unit;
	int rc = 0;

	if (u->active && u->missing > 0) {
		if (all_came_alone(u)) {
			rc = forward_own(s, fill_missing(s, u), e);
		} else if (chain_can_wait(s->stage.chain)) {
			rc = open_slot(s, e);
		} else {
			add_late(s, u, NO_SLOT);
			rc = forward_own(s, fill_missing(s, u), e);
		}
	}
	unit_release(u);
	return rc < 0 ? rc : give_notes(s, e);
}

/* ---- results ---- */

enum fate { TAKEN, LATE, DROPPED };

/* Where one result belongs; *late is set for LATE. */
static enum fate
fate_of(struct sendable *s, const char *id, size_t len, struct late_call **late, const struct event *ev)
{
	size_t i = unit_call(&s->unit, id, len);

	if (i != SIZE_MAX) {
		if (!s->unit.calls[i].answered)
			return TAKEN;
		repair(s, SECOND, ev);
		return DROPPED;
	}
	i = id != NULL && len > 0 ? idset_find(&s->late, id, len) : SIZE_MAX;
	if (i != SIZE_MAX && s->late_calls[i].open) {
		*late = &s->late_calls[i];
		return LATE;
	}
	repair(s, i != SIZE_MAX ? SECOND : ORPHAN, ev);
	return DROPPED;
}

static void
answer(struct unit *u, size_t i)
{
	u->missing -= !u->calls[i].answered;
	u->calls[i].answered = true;
}

/* A late result becomes a note, which waits until no unit is in its way. */
static void
note_late(struct sendable *s, struct late_call *late, struct json_object *result, const struct event *ev)
{
	struct event *note = mend_note(result);

	stands_for(note, ev);
	late->open = false;
	repair(s, NOTED, ev);
	event_list_add(&s->notes, note);
}

/* Where a result of a container goes, when it is not the number of a slot. */
#define HERE (SIZE_MAX - 1)
#define NOWHERE SIZE_MAX

/* A result of a container that is late goes into its slot. */
static void
answer_late(struct sendable *s, struct late_call *late, const struct event *container)
{
	struct slot *slot = &s->slots[late->slot];

	late->open = false;
	repair(s, MOVED, container);
	answer(&slot->unit, late->call);
	if (slot->unit.missing == 0)
		s->slots_open--;
}

static size_t
place_result(struct sendable *s, struct json_object *result, const struct event *container)
{
	struct late_call *late;
	size_t len = 0;
	const char *id = json_get_text(result, "parent_id", &len);

	switch (fate_of(s, id, len, &late, container)) {
	case TAKEN:
		answer(&s->unit, unit_call(&s->unit, id, len));
		return HERE;
	case LATE:
		if (late->slot != NO_SLOT) {
			answer_late(s, late, container);
			return late->slot;
		}
		note_late(s, late, result, container);
		break;
	case DROPPED:
		break;
	}
	return NOWHERE;
}

static void
place_results(struct sendable *s, struct mend_list *l)
{
	struct json_object *one;
	size_t i;

	for (i = 0; i < l->n; i++) {
		one = NULL;
		json_parse(&one, l->items[i].text.p, l->items[i].text.len, NULL);
		l->items[i].place = place_result(s, one, l->ev);
		l->items[i].blank = mend_blank_result(one);
		json_object_put(one);
	}
}

/* All of it goes to this place as it is. */
static bool
goes_whole(const struct mend_list *l, size_t place)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (l->items[i].place != place || l->items[i].blank)
			return false;
	return !l->owned;
}

/* Results that follow each other and go to one slot stay together. */
static int
give_results(struct sendable *s, const struct mend_list *l, struct err *e)
{
	size_t i, next, place;
	bool here = false;

	if (goes_whole(l, HERE))
		return forward(s, l->ev, e);
	for (i = 0; i < l->n; i = next) {
		place = l->items[i].place;
		for (next = i + 1; next < l->n && l->items[next].place == place; next++)
			;
		here |= place == HERE;
		if (place != HERE && place != NOWHERE)
			event_list_add(&s->slots[place].lines, goes_whole(l, place) ? event_dup(l->ev) : mend_results(l, i, next, place));
	}
	return here ? forward_own(s, mend_results(l, 0, l->n, HERE), e) : 0;
}

/* Behind a unit that is complete nothing is in the way of a note; behind the last open slot nothing has to wait. */
static int
after_results(struct sendable *s, struct err *e)
{
	if ((!s->unit.active || s->unit.missing == 0) && give_notes(s, e) < 0)
		return -1;
	return s->slots_n > 0 && s->slots_open == 0 ? play_held(s, e) : 0;
}

static int
on_results(struct sendable *s, struct event *ev, struct err *e)
{
	struct mend_list l;
	int rc = 0;

	if (mend_list_open(&l, ev)) {
		place_results(s, &l);
		rc = give_results(s, &l, e);
	} else {
		repair(s, EMPTY, ev);
	}
	mend_list_release(&l);
	return rc < 0 ? rc : after_results(s, e);
}

static int
builtin_result(struct sendable *s, struct event *ev, size_t call, struct err *e)
{
	if (s->builtin_answered[call]) {
		repair(s, SECOND, ev);
		return 0;
	}
	s->builtin_answered[call] = true;
	return forward(s, ev, e);
}

/* A result that came alone: a record of the round, which is used when no container comes. */
static int
on_result(struct sendable *s, struct event *ev, struct json_object *data, struct err *e)
{
	struct late_call *late = NULL;
	struct unit *u = &s->unit;
	size_t len = 0, i;
	const char *id = json_get_text(data, "parent_id", &len);

	i = unit_call(u, id, len);
	if (i == SIZE_MAX) {
		i = id != NULL ? idset_find(&s->builtin, id, len) : SIZE_MAX;
		if (i != SIZE_MAX)
			return builtin_result(s, ev, i, e);
		if (fate_of(s, id, len, &late, ev) != LATE)
			return 0;
		if (late->slot == NO_SLOT) {
			note_late(s, late, data, ev);
			return after_results(s, e);
		}
		u = &s->slots[late->slot].unit;
		i = late->call;
	}
	if (u->calls[i].loose != NULL) {
		repair(s, SECOND, ev);
		return 0;
	}
	event_forget(ev);		/* what waits is held as lines */
	u->calls[i].loose = event_dup(ev);
	if (late == NULL)
		return forward(s, ev, e);
	event_list_add(&s->slots[late->slot].lines, event_dup(ev));
	return 0;
}

/* ---- everything else ---- */

static int
begin_request(struct sendable *s, struct err *e)
{
	if (close_unit(s, e) < 0 || give_pending(s, false, e) < 0)
		return -1;
	idset_reset(&s->builtin);
	return 0;
}

static int
on_request(struct sendable *s, struct event *ev, struct json_object *data, struct err *e)
{
	struct event *mended;

	if (begin_request(s, e) < 0)
		return -1;
	if ((ev->type->flags & EV_REQUEST) == 0 || !mend_blank_request(data))
		return forward(s, ev, e);
	mended = mend_request(ev);
	if (mended == NULL)
		repair(s, EMPTY, ev);
	return forward_own(s, mended, e);
}

static void
tell_id(void *arg, const char *id, size_t len)
{
	idset_add(arg, id, len, NULL);
}

/* Gives on a response whose calls can all be told apart, and opens a unit for them. */
static int
give_response(struct sendable *s, struct event *ev, struct json_object *data, struct err *e)
{
	if (close_unit(s, e) < 0 || give_pending(s, true, e) < 0 || forward(s, ev, e) < 0)
		return -1;
	if (length(calls_of(data)) > 0)
		unit_open(&s->unit, ev, calls_of(data));
	return 0;
}

static int
on_response(struct sendable *s, struct event *ev, struct json_object *data, struct err *e)
{
	struct idset ids = IDSET_INIT;
	struct event *mended = NULL;
	int rc;

	event_ids(ev, tell_id, &ids, NULL);
	if (ids.n < length(calls_of(data))) {
		mended = mend_response(ev);
		if (mended != NULL) {
			ev = mended;
			data = event_data(ev, NULL);
		}
	}
	idset_release(&ids);
	if (mend_blank_response(data))
		chain_why(s->stage.chain, ev, "a response that says nothing");
	rc = mend_blank_response(data) ? give_pending(s, false, e) : give_response(s, ev, data, e);
	event_free(mended);
	return rc;
}

static void
is_announced(void *arg, const char *id, size_t len)
{
	struct unit **u = arg;

	if (*u != NULL && unit_call(*u, id, len) == SIZE_MAX)
		*u = NULL;
}

/* Announcements of calls: records of the round, too. */
static int
on_calls(struct sendable *s, struct event *ev, struct err *e)
{
	struct unit *u = s->unit.active ? &s->unit : NULL;

	event_ids(ev, is_announced, &u, NULL);
	if (u == NULL)
		chain_why(s->stage.chain, ev, "announces calls that are not there");
	return u != NULL ? forward(s, ev, e) : 0;
}

static int
on_builtin_call(struct sendable *s, struct event *ev, struct json_object *data, struct err *e)
{
	size_t len, i;
	const char *id = json_get_text(data, "id", &len);

	if (id != NULL && len > 0 && unit_call(&s->unit, id, len) == SIZE_MAX) {
		i = idset_add(&s->builtin, id, len, NULL);
		s->builtin_answered = xgrow(s->builtin_answered, i, &s->builtin_cap, sizeof(s->builtin_answered[0]));
		s->builtin_answered[i] = false;
	}
	return give_pending(s, true, e) < 0 ? -1 : forward(s, ev, e);
}

/* Types that are not in the table, by their names: a provider's own tool events are paired as well. */
static unsigned
flags_of(const struct event *ev)
{
	static const char result[] = "ToolResultEvent", call[] = "ToolCallEvent";
	struct json_peek peek;
	const char *why;
	size_t at;

	if ((ev->type->flags & EV_UNKNOWN) == 0)
		return ev->type->flags;
	if (json_scan(ev->line, ev->len, &peek, &at, &why) < 0 || peek.type == NULL)
		return EV_UNKNOWN;
	if (peek.type_len >= sizeof(result) - 1 && memcmp(peek.type + peek.type_len - (sizeof(result) - 1), result, sizeof(result) - 1) == 0)
		return EV_RESULT;
	if (peek.type_len >= sizeof(call) - 1 && memcmp(peek.type + peek.type_len - (sizeof(call) - 1), call, sizeof(call) - 1) == 0)
		return EV_BUILTIN_CALL;
	return EV_UNKNOWN;
}

static int
route(struct sendable *s, struct event *ev, unsigned flags, struct json_object *data, struct err *e)
{
	if (flags & (EV_REQUEST | EV_SUMMARY))
		return on_request(s, ev, data, e);
	if (flags & EV_RESPONSE)
		return on_response(s, ev, data, e);
	if (flags & EV_RESULT)
		return on_result(s, ev, data, e);
	if (flags & EV_BUILTIN_CALL)
		return on_builtin_call(s, ev, data, e);
	return on_calls(s, ev, e);
}

/* ---- lines that need no repair, which are almost all: by their text alone ---- */

/* Whether each id is of a call of the unit that is still open, none twice; then they are answered. */
static bool
answer_all(struct unit *u, const struct pieces *ids)
{
	size_t i, j, call;

	for (i = 0; i < ids->n; i++) {
		call = unit_call(u, ids->items[i].p, ids->items[i].len);
		if (call == SIZE_MAX || u->calls[call].answered)
			break;
		answer(u, call);
	}
	if (i == ids->n)
		return true;
	for (j = 0; j < i; j++) {	/* those before it were open */
		u->calls[unit_call(u, ids->items[j].p, ids->items[j].len)].answered = false;
		u->missing++;
	}
	return false;
}

static bool
all_announced(const struct unit *u, const struct pieces *ids)
{
	size_t i;

	for (i = 0; i < ids->n; i++)
		if (unit_call(u, ids->items[i].p, ids->items[i].len) == SIZE_MAX)
			return false;
	return u->active;
}

static bool
is_first_loose(struct unit *u, const struct event *ev, struct pieces *ids)
{
	size_t i;

	if (!quick_ids(ev, ids) || ids->n != 1 || (i = unit_call(u, ids->items[0].p, ids->items[0].len)) == SIZE_MAX || u->calls[i].loose != NULL)
		return false;
	u->calls[i].loose = event_dup(ev);
	return true;
}

static bool
all_differ(struct sendable *s)
{
	bool fresh = true;
	size_t i;

	for (i = 0; i < s->ids.n && fresh && s->ids.n > 1; i++)
		idset_add(&s->differ, s->ids.items[i].p, s->ids.items[i].len, &fresh);
	if (s->differ.size > 1024)
		idset_release(&s->differ);
	else
		idset_reset(&s->differ);
	return fresh;
}

/* 1 when the line was dealt with, 0 when it has to be parsed, -1. */
static int
pass(struct sendable *s, struct event *ev, unsigned flags, struct err *e)
{
	int rc = 0;

	if (flags & (EV_REQUEST | EV_SUMMARY)) {
		if ((flags & EV_REQUEST) && !quick_request(ev))
			return 0;
		rc = begin_request(s, e);
	} else if (flags & EV_RESPONSE) {
		if (!quick_response(ev, &s->ids, &s->names) || !all_differ(s))
			return 0;
		if (close_unit(s, e) < 0 || give_pending(s, true, e) < 0 || forward(s, ev, e) < 0)
			return -1;
		if (s->ids.n > 0)
			unit_open_pieces(&s->unit, ev, &s->ids, &s->names);
		return 1;
	} else if (flags & EV_RESULTS) {
		if (!quick_results(ev, &s->ids) || !answer_all(&s->unit, &s->ids))
			return 0;
		return forward(s, ev, e) < 0 || after_results(s, e) < 0 ? -1 : 1;
	} else if (flags & EV_RESULT) {
		if (!is_first_loose(&s->unit, ev, &s->ids))
			return 0;
	} else if (flags & EV_BUILTIN_CALL) {
		return 0;
	} else if (!quick_ids(ev, &s->ids) || !all_announced(&s->unit, &s->ids)) {
		return 0;
	}
	return rc < 0 || forward(s, ev, e) < 0 ? -1 : 1;
}

static int
sendable_event(struct stage *stage, struct event *ev, struct err *e)
{
	struct sendable *s = sendable_of(stage);
	unsigned flags = flags_of(ev);
	struct json_object *data;
	struct err why = ERR_INIT;
	int rc = chain_readable(stage->chain, ev, e);

	if (rc <= 0)
		return rc;
	if (flags & (EV_ANCHOR | EV_TURN_ITEM)) {
		if (s->pending.n >= PENDING_MAX && give_pending(s, true, e) < 0)
			return -1;
		event_list_add(&s->pending, event_dup(ev));
		return 0;
	}
	if ((flags & (EV_REQUEST | EV_SUMMARY | EV_RESPONSE | EV_RESULTS | EV_RESULT | EV_CALLS | EV_CALL | EV_BUILTIN_CALL)) == 0)
		return give(s, ev, e);
	rc = ev->parsed == NULL ? pass(s, ev, flags, e) : 0;
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (flags & EV_RESULTS)
		return event_check(ev, &why) < 0 ? chain_bad(stage->chain, ev, &why, e) : on_results(s, ev, e);
	data = event_data(ev, &why);
	if (data == NULL)
		return chain_bad(stage->chain, ev, &why, e);
	return route(s, ev, flags, data, e);
}

static void
tell(const struct sendable *s)
{
	const struct repaired *r;
	size_t i;

	for (i = 0; i < REPAIRS; i++) {
		r = &s->repaired[i];
		if (r->count == 1 && r->first == 0)
			log_warn("%s", repair_texts[i]);
		else if (r->count == 1)
			log_warn("line %" PRIu64 ": %s", r->first, repair_texts[i]);
		else if (r->count > 1)
			log_warn("%s, and %" PRIu64 " more of the kind", repair_texts[i], r->count - 1);
	}
}

static int
sendable_end(struct stage *stage, struct err *e)
{
	struct sendable *s = sendable_of(stage);
	struct unit *u = &s->unit;
	int rc = 0;

	/* A call that is open at the end may still be answered; but not behind a note. */
	if (u->active && u->missing > 0 && (s->notes.n > 0 || chain_opts(stage->chain)->answer_open || all_came_alone(u)))
		rc = forward_own(s, fill_missing(s, u), e);
	if (rc < 0 || give_pending(s, false, e) < 0 || give_notes(s, e) < 0 || play_held(s, e) < 0)
		return -1;
	if (chain_opts(stage->chain)->tell_repairs)
		tell(s);
	return stage_end(stage->next, e);
}

static void
sendable_free(struct stage *stage)
{
	struct sendable *s = sendable_of(stage);

	unit_release(&s->unit);
	idset_release(&s->builtin);
	free(s->builtin_answered);
	event_list_release(&s->pending);
	event_list_release(&s->notes);
	forget_slots(s);
	idset_release(&s->late);
	free(s->late_calls);
	free(s->slots);
	pieces_release(&s->ids);
	pieces_release(&s->names);
	idset_release(&s->differ);
	spool_release(&s->held);
	free(s);
}

static const struct stage_ops sendable_ops = { .event = sendable_event, .end = sendable_end, .free = sendable_free };

struct stage *
sendable_new(struct chain *c)
{
	struct sendable *s = xcalloc(1, sizeof(*s));

	s->stage.ops = &sendable_ops;
	s->unit.ids = s->builtin = s->late = s->differ = (struct idset)IDSET_INIT;
	s->held = (struct spool)SPOOL_INIT;
	s->held.dir = chain_opts(c)->tmpdir;
	return &s->stage;
}

#include "event/quick.h"

#include "base/alloc.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The type that peek found, its escapes read where it has some. */
static const struct event_type *
type_of(const struct json_peek *peek)
{
	struct json_object *v = NULL;
	const struct event_type *type;

	if (peek->type == NULL)
		return event_type_find("", 0);
	if (!peek->type_escaped)
		return event_type_find(peek->type, peek->type_len);
	if (json_parse(&v, peek->type - 1, peek->type_len + 2, NULL) < 0)
		return event_type_find("", 0);
	type = event_type_find(json_object_get_string(v), (size_t)json_object_get_string_len(v));
	json_object_put(v);
	return type;
}

int
event_view(struct event *ev, const char *line, size_t len, struct err *e)
{
	struct json_peek peek;
	const char *why;
	size_t at;

	if (len > EVENT_LINE_MAX)
		return err_set(e, ERR_DATA, "byte %u: longer than %u MiB", EVENT_LINE_MAX + 1, EVENT_LINE_MAX >> 20);
	if (json_scan(line, len, &peek, &at, &why) < 0)
		return err_set(e, ERR_DATA, "byte %zu: %s", at + 1, why);
	*ev = (struct event){ .type = type_of(&peek), .line = line, .len = len };
	if (peek.data != NULL) {
		ev->data_at = (uint32_t)(peek.data - line);
		ev->data_len = (uint32_t)peek.data_len;
	}
	return 0;
}

void
event_release(struct event *ev)
{
	json_object_put(ev->parsed);
	ev->parsed = NULL;
	free(ev->owned);
	ev->owned = NULL;
}

struct event *
event_dup(const struct event *ev)
{
	struct event *copy = xmalloc(sizeof(*copy));

	*copy = *ev;
	copy->line = copy->owned = xmemdup0(ev->line, ev->len);
	copy->parsed = ev->parsed != NULL ? json_object_get(ev->parsed) : NULL;
	return copy;
}

struct event *
event_own(char *line, size_t len)
{
	struct event *ev = xmalloc(sizeof(*ev));

	if (event_view(ev, line, len, NULL) < 0)	/* not one of ours after all: keep the bytes, as an unknown event */
		*ev = (struct event){ .type = event_type_find("", 0), .line = line, .len = len };
	ev->owned = line;
	return ev;
}

void
event_free(struct event *ev)
{
	if (ev == NULL)
		return;
	event_release(ev);
	free(ev);
}

static struct json_object *empty;

static void
make_empty(void)
{
	empty = json_object_new_object();
}

struct json_object *
event_data(struct event *ev, struct err *e)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct json_object *data;

	if (ev->parsed == NULL && json_parse(&ev->parsed, ev->line, ev->len, e) < 0)
		return NULL;
	data = json_get(ev->parsed, "data");
	if (json_object_is_type(data, json_type_object))
		return data;
	pthread_once(&once, make_empty);
	return empty;
}

int
event_check(const struct event *ev, struct err *e)
{
	return ev->parsed != NULL ? 0 : json_parses(ev->line, ev->len, e);
}

void
event_forget(struct event *ev)
{
	json_object_put(ev->parsed);
	ev->parsed = NULL;
}

/* The member `key` of each object in list, those that are no string or empty left out. */
static void
ids_of_list(struct json_object *list, const char *key, event_id_fn *fn, void *arg)
{
	size_t i, n, len;
	const char *id;

	n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
	for (i = 0; i < n; i++) {
		id = json_get_text(json_object_array_get_idx(list, i), key, &len);
		if (id != NULL && len > 0)
			fn(arg, id, len);
	}
}

static void
id_of(struct json_object *data, const char *key, event_id_fn *fn, void *arg)
{
	size_t len;
	const char *id = json_get_text(data, key, &len);

	if (id != NULL && len > 0)
		fn(arg, id, len);
}

/* Without parsing, where that is certain. */
static bool
ids_as_written(const struct event *ev, event_id_fn *fn, void *arg)
{
	struct pieces ids = { 0 };
	bool sure = ev->parsed == NULL && quick_ids(ev, &ids) && event_check(ev, NULL) == 0;
	size_t i;

	for (i = 0; sure && i < ids.n; i++)
		fn(arg, ids.items[i].p, ids.items[i].len);
	pieces_release(&ids);
	return sure;
}

int
event_ids(struct event *ev, event_id_fn *fn, void *arg, struct err *e)
{
	struct json_object *data;
	unsigned flags = ev->type->flags;

	if ((flags & (EV_RESPONSE | EV_CALLS | EV_CALL | EV_RESULTS | EV_RESULT)) == 0 || ids_as_written(ev, fn, arg))
		return 0;
	data = event_data(ev, e);
	if (data == NULL)
		return -1;
	if (flags & EV_RESPONSE)
		ids_of_list(json_get(json_get(data, "tool_calls"), "calls"), "id", fn, arg);
	else if (flags & EV_CALLS)
		ids_of_list(json_get(data, "calls"), "id", fn, arg);
	else if (flags & EV_RESULTS)
		ids_of_list(json_get(data, "results"), "parent_id", fn, arg);
	else
		id_of(data, flags & EV_RESULT ? "parent_id" : "id", fn, arg);
	return 0;
}

void
event_list_add(struct event_list *l, struct event *ev)
{
	l->items = xgrow(l->items, l->n, &l->cap, sizeof(l->items[0]));
	l->items[l->n++] = ev;
}

void
event_list_release(struct event_list *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		event_free(l->items[i]);
	free(l->items);
	*l = (struct event_list){ 0 };
}

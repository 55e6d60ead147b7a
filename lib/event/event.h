/*
 * One event: a line of a stream, its type, and on demand its parsed content. The line is never rewritten.
 */
#ifndef AG2_EVENT_H
#define AG2_EVENT_H

#include "event/json.h"
#include "event/type.h"

#include <stdint.h>

#define EVENT_LINE_MAX (64u << 20)	/* bytes; a longer line is a bad line */

struct event {
	const struct event_type *type;	/* never NULL */
	const char *line;		/* without its newline (a CR before it belongs to the line) */
	size_t len;
	uint64_t number;		/* line number in its input, from 1; 0 for an event made here */
	uint32_t data_at, data_len;	/* where in the line its data object is, as event_view found it; 0: not known, or none */
	uint64_t mark;			/* which it is in the account of a chain that explains itself, else 0 */
	uint64_t offset;		/* byte offset of the line in its input */
	char *owned;			/* memory behind line when the event owns it, else NULL: it borrows */
	struct json_object *parsed;	/* the whole record once event_data was asked, else NULL */
};

/*
 * Makes a view of a line (borrowed, must outlive ev). ERR_DATA "byte N: why" when it is no object, its structure or UTF-8
 * is broken, or it is too long. A line without a string `type` is an event of unknown type. event_release frees what was
 * parsed or owned.
 */
int event_view(struct event *ev, const char *line, size_t len, struct err *e);
void event_release(struct event *ev);

/* A heap copy that owns its line. event_free frees it; NULL is allowed. */
struct event *event_dup(const struct event *ev);
/* The same from bytes that are known to be good (made by build.h). Takes over the malloc'd line. */
struct event *event_own(char *line, size_t len);
void event_free(struct event *ev);

/*
 * The record's `data` object, parsed at the first call by the full grammar and kept; borrowed. NULL with ERR_DATA ("byte
 * N: why") when the grammar is broken; an event without data, or whose data is no object, gives an empty object.
 */
struct json_object *event_data(struct event *ev, struct err *e);

/* Whether event_data can have it, without parsing. -1 with ERR_DATA ("byte N: why"). */
int event_check(const struct event *ev, struct err *e);

/* Drops what was parsed, which takes some twenty times as much as the line; it is parsed again when it is asked for. */
void event_forget(struct event *ev);

/*
 * The call ids an event carries, in order: of a response its tool_calls.calls, of a calls container its calls, of a call
 * itself, of a results container the parent ids of its results (empty ones left out), of a result its parent id. Calls
 * fn for each; -1 when the content is broken.
 */
typedef void event_id_fn(void *arg, const char *id, size_t len);
int event_ids(struct event *ev, event_id_fn *fn, void *arg, struct err *e);

/* A growing list that owns its events. */
struct event_list {
	struct event **items;
	size_t n, cap;
};
void event_list_add(struct event_list *l, struct event *ev);	/* takes it over */
void event_list_release(struct event_list *l);

#endif

#include "policy/explain.h"

#include "base/alloc.h"
#include "base/sha1.h"
#include "event/render.h"
#include "policy/idset.h"
#include "policy/stage.h"

#include <stdlib.h>
#include <string.h>

struct entry {			/* its mark is its place + 1 */
	const struct event_type *type;	/* NULL: a prompt or a tool */
	char *name;			/* a prompt's source, a tool's name */
	const char *why;
	uint64_t line, hash;
	int64_t index, part_of;		/* -1: none */
	int64_t given, tokens, files;	/* as it went in, as it came out, and what of that the client left out */
	int16_t from, to;
	bool tool, changed, sent, taken;
};

struct lent {
	uint64_t mark;
	size_t next;			/* place + 1 of the next with the same line */
};

struct explain {
	int chars;
	struct entry *entries;
	size_t n, cap;
	const char **stages;
	size_t stages_n, stages_cap;
	struct idset lines;		/* of what a command was given: hashes */
	size_t *first;			/* by the hash's number: place + 1 in lent */
	size_t first_cap;
	struct lent *lent;
	size_t lent_n, lent_cap;
	int64_t events;			/* of the input */
	int64_t alerts, offered;	/* that wait, and those of them that the next response has seen */
};

struct explain *
explain_new(int chars_per_token)
{
	struct explain *x = xcalloc(1, sizeof(*x));

	x->chars = chars_per_token;
	x->lines = (struct idset)IDSET_INIT;
	return x;
}

void
explain_free(struct explain *x)
{
	size_t i;

	if (x == NULL)
		return;
	for (i = 0; i < x->n; i++)
		free(x->entries[i].name);
	explain_forget_lent(x);
	free(x->entries);
	free(x->stages);
	free(x);
}

int
explain_chars(const struct explain *x)
{
	return x->chars;
}

int
explain_chars_of(const struct policy_spec *specs, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (specs[i].policy == &policy_token_budget)
			return (int)policy_int(&specs[i], "chars_per_token");
	return CHARS_PER_TOKEN;
}

const char *
explain_action_name(enum explain_action action)
{
	static const char *const names[] = { "kept", "dropped", "injected", "repaired" };

	return names[action];
}

void
explain_add_stage(struct explain *x, const char *name)
{
	if (x == NULL)
		return;
	x->stages = xgrow(x->stages, x->stages_n, &x->stages_cap, sizeof(x->stages[0]));
	x->stages[x->stages_n++] = name;
}

const char *
explain_stage(const struct explain *x, int stage)
{
	return stage >= 0 && (size_t)stage < x->stages_n ? x->stages[stage] : NULL;
}

/* ---- entries ---- */

static uint64_t
hash_of(const char *text, size_t len)	/* FNV-1a */
{
	uint64_t h = 14695981039346656037u;
	size_t i;

	for (i = 0; i < len; i++)
		h = (h ^ (unsigned char)text[i]) * 1099511628211u;
	return h;
}

static uint64_t
add(struct explain *x, struct entry entry)
{
	entry.given = entry.tokens;
	entry.index = entry.type != NULL && entry.from < 0 ? x->events++ : -1;
	x->entries = xgrow(x->entries, x->n, &x->cap, sizeof(x->entries[0]));
	x->entries[x->n++] = entry;
	return x->n;
}

static struct entry *
find(struct explain *x, uint64_t mark)
{
	return x != NULL && mark > 0 && mark <= x->n ? &x->entries[mark - 1] : NULL;
}

/* What is broken has no size. It is parsed again by who needs it. */
static int64_t
size_of(const struct explain *x, struct event *ev)
{
	bool was_parsed = ev->parsed != NULL;
	int64_t tokens = event_tokens(ev, x->chars, NULL);

	if (!was_parsed)
		event_forget(ev);
	return tokens < 0 ? 0 : tokens;
}

static int64_t
size_of_prompt(const struct explain *x, const struct prompt *p)
{
	return text_tokens(p->content.data, p->content.len, x->chars);
}

uint64_t
explain_prompt(struct explain *x, const struct prompt *p, int by)
{
	if (x == NULL)
		return 0;
	return add(x, (struct entry){ .name = p->source != NULL ? xstrdup(p->source) : NULL, .tokens = size_of_prompt(x, p), .part_of = -1,
		.hash = hash_of(p->content.data, p->content.len), .from = (int16_t)by, .to = (int16_t)by });
}

static void
note_alert(struct explain *x, unsigned flags)
{
	if (flags & EV_ALERT)
		x->alerts++;
	if (flags & (EV_REQUEST | EV_RESULTS))
		x->offered = x->alerts;
	if (flags & EV_RESPONSE)
		x->alerts -= x->offered;
	if (flags & EV_HALT)
		x->alerts = 0;
	if (flags & (EV_RESPONSE | EV_HALT))
		x->offered = 0;
}

int64_t
explain_alerts(const struct explain *x)
{
	return x->alerts;
}

uint64_t
explain_event(struct explain *x, struct event *ev, int by)
{
	if (x == NULL)
		return 0;
	if (by < 0)
		note_alert(x, ev->type->flags);
	return add(x, (struct entry){ .type = ev->type, .line = ev->number, .tokens = size_of(x, ev), .part_of = -1,
		.hash = hash_of(ev->line, ev->len), .from = (int16_t)by, .to = (int16_t)by });
}

void
explain_tool(struct explain *x, const char *name, const char *schema, size_t len)
{
	add(x, (struct entry){ .name = xstrdup(name), .tool = true, .tokens = text_tokens(schema, len, x->chars), .part_of = -1, .from = -1,
		.to = EXPLAIN_SENT, .sent = true });
}

void
explain_reach_prompt(struct explain *x, const struct prompt *p, int stage)
{
	struct entry *entry = find(x, p->mark);

	if (entry == NULL)
		return;
	entry->to = (int16_t)stage;
	entry->sent = stage == EXPLAIN_SENT;
}

/* One more part of an event, of which a part came out before: the last of the policies' stages has taken it apart. */
static void
add_part(struct explain *x, struct event *ev)
{
	int64_t index = find(x, ev->mark)->index;

	ev->mark = add(x, (struct entry){ .type = ev->type, .line = ev->number, .tokens = size_of(x, ev), .part_of = index,
		.why = "a part of a container that was taken apart", .from = (int16_t)(x->stages_n - 1), .to = EXPLAIN_SENT, .sent = true });
}

void
explain_reach_event(struct explain *x, struct event *ev, int stage)
{
	struct entry *entry = find(x, ev->mark);

	if (entry == NULL)
		return;
	if (stage == EXPLAIN_SENT && entry->sent) {
		add_part(x, ev);
		return;
	}
	if (stage > entry->to)
		entry->to = (int16_t)stage;
	if (stage != EXPLAIN_SENT)
		return;
	entry->sent = true;
	entry->changed = entry->hash != hash_of(ev->line, ev->len);
	if (entry->changed)
		entry->tokens = size_of(x, ev);
}

void
explain_why(struct explain *x, uint64_t mark, const char *why)
{
	struct entry *entry = find(x, mark);

	if (entry != NULL)
		entry->why = why;
}

void
explain_taken(struct explain *x, struct event *ev)
{
	struct entry *entry = find(x, ev->mark);
	int64_t files = files_tokens(ev);

	event_forget(ev);
	if (entry == NULL)
		return;
	entry->taken = true;
	entry->files = files;
	entry->tokens -= files;
	if (files > 0)
		entry->why = EXPLAIN_NO_FILES;
}

void
explain_client(struct explain *x, const char *name)
{
	struct entry *entry;

	explain_add_stage(x, name);
	for (entry = x->entries; entry < x->entries + x->n; entry++) {
		if (entry->type == NULL || !entry->sent || entry->taken)
			continue;
		entry->sent = false;
		entry->to = (int16_t)(x->stages_n - 1);
		if (entry->why == NULL)
			entry->why = "no part of a request";
	}
}

/* ---- lines on their way through a command ---- */

#define KEY 20

static void
key_of(char key[KEY], const char *line, size_t len)
{
	struct sha1 h;

	sha1_init(&h);
	sha1_add(&h, line, len);
	sha1_end(&h, (unsigned char *)key);
}

void
explain_lend(struct explain *x, const char *line, size_t len, uint64_t mark)
{
	char key[KEY];
	size_t i;
	bool fresh;

	if (x == NULL || mark == 0)
		return;
	key_of(key, line, len);
	i = idset_add(&x->lines, key, KEY, &fresh);
	x->first = xgrow(x->first, i, &x->first_cap, sizeof(x->first[0]));
	if (fresh)
		x->first[i] = 0;
	x->lent = xgrow(x->lent, x->lent_n, &x->lent_cap, sizeof(x->lent[0]));
	x->lent[x->lent_n] = (struct lent){ mark, x->first[i] };
	x->first[i] = ++x->lent_n;
}

uint64_t
explain_return(struct explain *x, const char *line, size_t len)
{
	char key[KEY];
	size_t i, *at, *best = NULL;

	if (x == NULL)
		return 0;
	key_of(key, line, len);
	i = idset_find(&x->lines, key, KEY);
	if (i == SIZE_MAX)
		return 0;
	for (at = &x->first[i]; *at != 0; at = &x->lent[*at - 1].next)	/* the oldest is the last of the list */
		best = at;
	if (best == NULL)
		return 0;
	i = *best - 1;
	*best = 0;
	return x->lent[i].mark;
}

void
explain_forget_lent(struct explain *x)
{
	if (x == NULL)
		return;
	idset_release(&x->lines);
	x->lines = (struct idset)IDSET_INIT;
	free(x->first);
	free(x->lent);
	x->first = NULL;
	x->lent = NULL;
	x->first_cap = x->lent_n = x->lent_cap = 0;
}

/* ---- telling ---- */

static bool
is_repair(const struct explain *x, int stage)
{
	const char *name = explain_stage(x, stage);

	return name != NULL && strcmp(name, EXPLAIN_REPAIR) == 0;
}

static enum explain_action
action_of(const struct explain *x, const struct entry *entry)
{
	if (!entry->sent)
		return EXPLAIN_DROPPED;
	if (entry->changed || is_repair(x, entry->from))
		return EXPLAIN_REPAIRED;
	return entry->from >= 0 ? EXPLAIN_INJECTED : EXPLAIN_KEPT;
}

/* Whose doing: who let it go, who made it, who changed it. */
static const char *
policy_of(const struct explain *x, const struct entry *entry, enum explain_action action)
{
	if (action == EXPLAIN_DROPPED)
		return explain_stage(x, entry->to);
	if (action == EXPLAIN_REPAIRED)
		return EXPLAIN_REPAIR;
	return explain_stage(x, entry->from);
}

static const char *
why_of(const struct explain *x, const struct entry *entry, enum explain_action action)
{
	const char *name = policy_of(x, entry, action);

	if (entry->why != NULL)
		return entry->why;
	if (entry->tool)
		return "the schema of a tool";
	if (action == EXPLAIN_REPAIRED)
		return entry->from >= 0 ? "it was missing" : "it could not be sent as it was";
	if (action != EXPLAIN_DROPPED || name == NULL)
		return NULL;
	if (strcmp(name, policy_conversation.id) == 0)
		return "no part of the conversation";
	return strcmp(name, EXPLAIN_REPAIR) == 0 ? "it could not be sent" : "the command did not print it";
}

static void
tell(const struct explain *x, const struct entry *entry, void (*fn)(void *arg, const struct explain_row *row), void *arg)
{
	struct explain_row row = { .type = entry->type, .index = entry->index, .part_of = entry->part_of, .line = entry->line,
		.tokens = entry->tokens, .given = entry->given, .files = entry->files, .from = entry->from, .to = entry->to };

	row.action = action_of(x, entry);
	row.policy = policy_of(x, entry, row.action);
	row.why = why_of(x, entry, row.action);
	if (entry->tool)
		row.tool = entry->name;
	else if (entry->type == NULL)
		row.source = entry->name;
	fn(arg, &row);
}

void
explain_rows(const struct explain *x, void (*fn)(void *arg, const struct explain_row *row), void *arg)
{
	size_t i;

	for (i = 0; i < x->n; i++)
		if (x->entries[i].type == NULL)
			tell(x, &x->entries[i], fn, arg);
	for (i = 0; i < x->n; i++)
		if (x->entries[i].type != NULL)
			tell(x, &x->entries[i], fn, arg);
}

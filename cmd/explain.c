#include "explain.h"

#include "cli.h"
#include "screen.h"

#include "base/alloc.h"
#include "event/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
explain_check(const struct opts *o, const char *how)
{
	if (how != NULL && how[0] != '\0' && strcmp(how, "json") != 0)
		cli_usage(o, "--explain is alone or --explain=json, not '%s'", how);
}

/* ---- JSON ---- */

static void
add_string(struct buf *out, const char *name, const char *text)
{
	buf_addf(out, "\"%s\":", name);
	if (text != NULL)
		json_write_string(out, text, strlen(text), JSON_COMPACT);
	else
		buf_adds(out, "null");
}

static const char *
type_of(const struct explain_row *row)
{
	return row->type != NULL ? row->type->last : row->tool != NULL ? "Tool" : "Prompt";
}

#define PRINT_AT 65536		/* bytes of rows that are printed at once */

static void
json_row(void *arg, const struct explain_row *row)
{
	struct buf *out = arg;

	if (out->len >= PRINT_AT) {
		io_write_all(2, out->data, out->len);
		buf_reset(out);
	}
	buf_adds(out, "{");
	add_string(out, "policy", row->policy);
	if (row->index >= 0)
		buf_addf(out, ",\"index\":%" PRId64 ",", row->index);
	else
		buf_adds(out, ",\"index\":null,");
	add_string(out, "type", type_of(row));
	buf_addf(out, ",\"tokens\":%" PRId64 ",", row->tokens);
	add_string(out, "action", explain_action_name(row->action));
	buf_adds(out, ",");
	add_string(out, "why", row->why);
	if (row->line > 0)
		buf_addf(out, ",\"line\":%" PRIu64, row->line);
	if (row->part_of >= 0)
		buf_addf(out, ",\"part_of\":%" PRId64, row->part_of);
	if (row->given != row->tokens)
		buf_addf(out, ",\"given\":%" PRId64, row->given);
	if (row->tool != NULL || row->source != NULL) {
		buf_adds(out, ",");
		add_string(out, row->tool != NULL ? "name" : "source", row->tool != NULL ? row->tool : row->source);
	}
	buf_adds(out, "}\n");
}

/* ---- sums ---- */

struct sum {
	char *name;		/* or why */
	int64_t n, tokens;
};
struct sums {
	struct sum *items;
	size_t n, cap;
};

static void
sums_add(struct sums *s, const char *name, int64_t tokens)
{
	struct buf shown = BUF_INIT;
	size_t i;

	scrub(&shown, name, strlen(name), false);	/* the source of a prompt may be anybody's text */
	for (i = 0; i < s->n && strcmp(s->items[i].name, shown.data) != 0; i++)
		;
	if (i == s->n) {
		s->items = xgrow(s->items, s->n, &s->cap, sizeof(s->items[0]));
		s->items[s->n++] = (struct sum){ .name = xstrdup(shown.data) };
	}
	buf_release(&shown);
	s->items[i].n++;
	s->items[i].tokens += tokens;
}

static void
sums_release(struct sums *s)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		free(s->items[i].name);
	free(s->items);
	*s = (struct sums){ .items = NULL };
}

struct stage_sum {
	int64_t in, in_tokens, out, out_tokens, made, made_tokens;	/* in: events; out: let go; made: prompts and events */
	struct sums why;
	struct sums changed;		/* tokens: how many more there are of it now */
};

struct account {
	const struct explain *x;
	struct stage_sum *stages;
	size_t stages_n;
	int repair;			/* its number, -1: there is none */
	struct sums sent;	/* by kind */
	int64_t events, prompts, tools, tokens;
};

/* -1: there is none. */
static int
find_stage(const struct explain *x, const char *name)
{
	int i;

	for (i = 0; explain_stage(x, i) != NULL; i++)
		if (strcmp(explain_stage(x, i), name) == 0)
			return i;
	return -1;
}

/* What a person wants to see apart. */
static const char *
kind_of(const struct explain_row *row)
{
	unsigned flags;

	if (row->type == NULL)
		return row->tool != NULL ? "tools" : row->source != NULL ? row->source : "system prompt";
	flags = row->type->flags;
	if (flags & EV_SUMMARY)
		return "summaries";
	if (flags & EV_REQUEST)
		return "requests";
	if (flags & EV_RESPONSE)
		return "responses";
	if (flags & (EV_RESULTS | EV_RESULT))
		return "tool results";
	return flags & (EV_CALLS | EV_CALL | EV_BUILTIN_CALL) ? "tool calls" : "other events";
}

static void
count_stages(struct account *a, const struct explain_row *row)
{
	int64_t size;
	size_t i;

	for (i = 0; i < a->stages_n; i++) {
		struct stage_sum *s = &a->stages[i];

		size = (int)i > a->repair && a->repair >= 0 ? row->tokens + row->files : row->given;
		if (row->type != NULL && (int)i > row->from && (int)i <= row->to) {
			s->in++;
			s->in_tokens += size;
		}
		if (row->from == (int)i) {
			s->made++;
			s->made_tokens += row->given;
		}
		if (row->action == EXPLAIN_DROPPED && row->to == (int)i) {
			s->out++;
			s->out_tokens += size;
			sums_add(&s->why, row->why != NULL ? row->why : "no reason given", size);
		}
	}
}

/* Those that came out as something else: the repair's doing, or the client's, which is the last stage. */
static void
count_changed(struct account *a, const struct explain_row *row)
{
	if (row->action == EXPLAIN_REPAIRED && row->from < a->repair)
		sums_add(&a->stages[a->repair].changed, row->why, row->tokens + row->files - row->given);
	if (row->files > 0)
		sums_add(&a->stages[a->stages_n - 1].changed, EXPLAIN_NO_FILES, -row->files);
}

static void
count_row(void *arg, const struct explain_row *row)
{
	struct account *a = arg;

	count_stages(a, row);
	if (row->action == EXPLAIN_DROPPED)
		return;
	count_changed(a, row);
	a->tokens += row->tokens;
	a->events += row->type != NULL;
	a->tools += row->tool != NULL;
	a->prompts += row->type == NULL && row->tool == NULL;
	sums_add(&a->sent, kind_of(row), row->tokens);
}

/* ---- text ---- */

/* NAME: +PROMPTS (TOKENS), EVENTS in (TOKENS), EVENTS out (TOKENS): short enough for 60 columns. A change has a sign. */
static void
stage_text(struct buf *out, const char *name, const struct stage_sum *s)
{
	size_t i;

	buf_addf(out, "%s: ", name);
	if (s->made > 0)
		buf_addf(out, "+%" PRId64 " (%" PRId64 "), ", s->made, s->made_tokens);
	buf_addf(out, "%" PRId64 " in (%" PRId64 "), %" PRId64 " out (%" PRId64 ")\n", s->in, s->in_tokens, s->out, s->out_tokens);
	for (i = 0; i < s->why.n; i++)
		buf_addf(out, "    %" PRId64 " (%" PRId64 "): %s\n", s->why.items[i].n, s->why.items[i].tokens, s->why.items[i].name);
	for (i = 0; i < s->changed.n; i++)
		buf_addf(out, "    %" PRId64 " (%+" PRId64 "): %s\n", s->changed.items[i].n, s->changed.items[i].tokens, s->changed.items[i].name);
}

static void
unit_text(struct buf *out, const struct explain *x)
{
	buf_adds(out, "events, and in brackets tokens of ");
	if (explain_chars(x) > 0)
		buf_addf(out, "%d code point%s\n", explain_chars(x), explain_chars(x) == 1 ? "" : "s");
	else
		buf_adds(out, "4 ASCII characters or 1 other\n");
}

static void
sent_text(struct buf *out, const struct account *a)
{
	buf_addf(out, "sent: %" PRId64 " tokens (%" PRId64 " event%s, %" PRId64 " prompt%s, %" PRId64 " tool%s)\n", a->tokens,
	    a->events, a->events == 1 ? "" : "s", a->prompts, a->prompts == 1 ? "" : "s", a->tools, a->tools == 1 ? "" : "s");
}

static int
by_tokens(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;

	return x->tokens != y->tokens ? (x->tokens < y->tokens) - (x->tokens > y->tokens) : strcmp(x->name, y->name);
}

/* ---- the chart ---- */

#define LABEL_MAX 20

static int
percent(int64_t part, int64_t whole)
{
	return whole > 0 ? (int)((part * 200 + whole) / (whole * 2)) : 0;
}

/* A bar of `eighths` of a column: blocks where the terminal can show them. */
static void
bar(struct buf *out, int64_t eighths, bool blocks)
{
	static const char *const part[] = { "", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589" };

	for (; eighths >= 8; eighths -= 8)
		buf_adds(out, blocks ? "\u2588" : "#");
	if (eighths > 0)
		buf_adds(out, blocks ? part[eighths] : "#");
}

static size_t
label_width(const struct sums *s)
{
	size_t i, columns, width = 0;

	for (i = 0; i < s->n; i++) {
		columns = text_columns(s->items[i].name, strlen(s->items[i].name));
		width = columns > width ? columns : width;
	}
	return width < LABEL_MAX ? width : LABEL_MAX;
}

static void
label(struct buf *out, const char *name, size_t width)
{
	size_t start = out->len;

	add_clipped(out, name, strlen(name), width);
	buf_addf(out, "%*s", (int)(width - text_columns(out->data + start, out->len - start)), "");
}

/* NAME, tokens, share, bar: one line for each kind, within the width. */
static void
chart(struct buf *out, const struct account *a, int columns, bool colour, bool blocks)
{
	size_t width = label_width(&a->sent), i;
	int64_t most = a->sent.n > 0 ? a->sent.items[0].tokens : 0, room = columns - (int64_t)width - 20;
	const struct sum *s;

	room = room < 4 ? 4 : room > 100 ? 100 : room;
	for (i = 0; i < a->sent.n; i++) {
		s = &a->sent.items[i];
		buf_adds(out, "  ");
		label(out, s->name, width);
		buf_addf(out, " %9" PRId64 " %3d%%  ", s->tokens, percent(s->tokens, a->tokens));
		buf_adds(out, colour ? "\033[36m" : "");
		bar(out, most > 0 ? (s->tokens * room * 8 + most - 1) / most : 0, blocks);
		buf_adds(out, colour ? "\033[0m\n" : "\n");
	}
}

static void
kinds_text(struct buf *out, const struct account *a)
{
	size_t i;

	for (i = 0; i < a->sent.n; i++)
		buf_addf(out, "    %s: %" PRId64 " (%d%%)\n", a->sent.items[i].name, a->sent.items[i].tokens,
		    percent(a->sent.items[i].tokens, a->tokens));
}

static void
text(struct buf *out, const struct explain *x)
{
	struct account a = { .x = x, .repair = find_stage(x, EXPLAIN_REPAIR) };
	size_t i;

	while (explain_stage(x, (int)a.stages_n) != NULL)
		a.stages_n++;
	a.stages = xcalloc(a.stages_n + 1, sizeof(a.stages[0]));
	explain_rows(x, count_row, &a);
	qsort(a.sent.items, a.sent.n, sizeof(a.sent.items[0]), by_tokens);
	unit_text(out, x);
	for (i = 0; i < a.stages_n; i++)
		stage_text(out, explain_stage(x, (int)i), &a.stages[i]);
	sent_text(out, &a);
	if (isatty(2))
		chart(out, &a, cli_width(2), cli_colour(2), cli_utf8());
	else
		kinds_text(out, &a);
	for (i = 0; i < a.stages_n; i++) {
		sums_release(&a.stages[i].why);
		sums_release(&a.stages[i].changed);
	}
	sums_release(&a.sent);
	free(a.stages);
}

static void
say_alerts_lost(void)
{
	log_warn("alerts wait among the events, and there is no alert policy to deliver them");
}

static int
note_prompt(void *arg, const struct prompt *p, struct err *e)
{
	*(bool *)arg |= p->source != NULL && strcmp(p->source, "alert") == 0;
	return 0;
}

bool
explain_lost_alerts(struct store *s, const char *stream, struct jsonl *in)
{
	bool found = false;
	struct chain_options o = { .as_ag2 = true, .on_bad = JSONL_BAD_SKIP, .sink = { note_prompt, NULL, &found } };
	struct policy_spec spec;
	struct err e = ERR_INIT;
	struct chain *c;

	if (policy_spec_parse(&spec, "alert", &e) < 0 || chain_new(&c, &spec, 1, &o, &e) < 0)
		log_fail(&e);
	if ((in != NULL ? chain_feed(c, in, &e) : chain_feed_stream(c, s, stream, &e)) < 0 || chain_end(c, &e) < 0)
		log_fail(&e);
	chain_free(c);
	policy_spec_release(&spec);
	if (found)
		say_alerts_lost();
	return found;
}

void
explain_tell(const struct explain *x, const char *how)
{
	struct buf out = BUF_INIT;

	if (how[0] == '\0')
		text(&out, x);
	else
		explain_rows(x, json_row, &out);
	io_write_all(2, out.data, out.len);
	if (explain_alerts(x) > 0 && find_stage(x, "alert") < 0)
		say_alerts_lost();
	buf_release(&out);
}

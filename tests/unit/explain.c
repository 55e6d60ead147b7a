/* The account of a chain: a row for each event that came out, for each that went in, and every token in one of them. */
#include "tap.h"

#include "event/render.h"
#include "history.h"
#include "policy/explain.h"

struct output {			/* what came out */
	size_t n, cap;
	uint64_t *lines;	/* the line each was made of, 0: none */
	int64_t tokens;
	int chars;
};

static int
take_event(void *arg, struct event *ev, struct err *e)
{
	struct output *out = arg;
	int64_t tokens = event_tokens(ev, out->chars, NULL);

	out->lines = xgrow(out->lines, out->n, &out->cap, sizeof(out->lines[0]));
	out->lines[out->n++] = ev->number;
	out->tokens += tokens < 0 ? 0 : tokens;
	return 0;
}

struct told {			/* what the rows say */
	size_t in, out, parts;
	int64_t tokens;
	uint64_t *lines;	/* of what came out */
	size_t cap;
	bool good;
};

static void
note_row(void *arg, const struct explain_row *row)
{
	struct told *told = arg;

	if (row->type == NULL)
		return;
	if (row->index >= 0)
		told->good &= row->index == (int64_t)told->in++ && row->line == (uint64_t)row->index + 1 && row->part_of < 0;
	if (row->action == EXPLAIN_DROPPED) {
		told->good &= row->tokens == row->given && row->why != NULL && row->policy != NULL && row->to != EXPLAIN_SENT;
		return;
	}
	told->lines = xgrow(told->lines, told->out, &told->cap, sizeof(told->lines[0]));
	told->lines[told->out++] = row->line;
	told->tokens += row->tokens;
	told->good &= row->action != EXPLAIN_KEPT || (row->index >= 0 && row->tokens == row->given);
	if (row->part_of < 0)
		return;
	told->parts++;
	told->good &= row->action == EXPLAIN_REPAIRED && row->index < 0 && row->line == (uint64_t)row->part_of + 1;
}

static int
by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool
same_lines(struct output *out, struct told *told)
{
	if (out->n != told->out || out->n == 0)
		return out->n == told->out;
	qsort(out->lines, out->n, sizeof(out->lines[0]), by_number);
	qsort(told->lines, told->out, sizeof(told->lines[0]), by_number);
	return memcmp(out->lines, told->lines, out->n * sizeof(out->lines[0])) == 0;
}

/* Whether the account of one history is right; adds how many came out as more than one. */
static bool
account(const struct event_list *in, const char *policy, bool whole, size_t *parts)
{
	struct policy_spec spec;
	struct output out = { .chars = strstr(policy, "chars_per_token=1") != NULL ? 1 : 4 };
	struct chain_options o = { .whole = whole, .answer_open = pick(2), .on_bad = JSONL_BAD_SKIP, .explain = explain_new(out.chars),
		.sink = { NULL, take_event, &out } };
	struct told told = { .good = true };
	struct err e = ERR_INIT;
	struct event ev;
	struct chain *c;
	int rc = 0;
	size_t i;

	if (policy_spec_parse(&spec, policy, &e) < 0 || chain_new(&c, &spec, 1, &o, &e) < 0)
		bail("%s", e.msg);
	for (i = 0; i < in->n && rc == 0; i++) {
		if (event_view(&ev, in->items[i]->line, in->items[i]->len, &e) < 0)
			bail("%s", e.msg);
		ev.number = i + 1;
		rc = chain_event(c, &ev, &e);
		event_release(&ev);
	}
	if (rc == 0)
		rc = chain_end(c, &e);
	chain_free(c);
	explain_rows(o.explain, note_row, &told);
	if (rc == 0) {
		told.good &= told.in == in->n && told.tokens == out.tokens && same_lines(&out, &told);
		*parts += told.parts;
	} else {
		told.good = e.code == ERR_DATA;	/* a budget that cannot hold what must be sent */
	}
	explain_free(o.explain);
	policy_spec_release(&spec);
	free(told.lines);
	free(out.lines);
	return told.good;
}

static void
random_histories(const char *policy, bool whole, size_t histories)
{
	struct event_list in = { 0 };
	size_t i, j, bad = 0, parts = 0;

	for (i = 0; i < histories && bad == 0; i++) {
		random_history(&in, 40);
		bad += !account(&in, policy, whole, &parts);
		for (j = 0; j < in.n && bad > 0; j++)
			printf("# %zu %s\n", j, in.items[j]->line);
		event_list_release(&in);
	}
	ok(bad == 0 && (parts > 0) == whole, "%s, %s: rows and tokens are those that came out, %zu containers came out as several", policy,
	    whole ? "all at hand" : "as it comes", parts);
}

int
main(void)
{
	random_histories("conversation", true, 1000);
	random_histories("conversation", false, 1000);
	random_histories("sliding-window:12", true, 1000);
	random_histories("token-budget:500,chars_per_token=1", true, 1000);
	return done();
}

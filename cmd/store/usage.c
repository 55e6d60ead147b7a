/* log usage: the tokens that model calls took, and what they cost, by stream, day, kind and model. */
#include "command.h"
#include "../screen.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/when.h"
#include "event/said.h"
#include "prices.h"
#include "stream.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MODEL_COLUMNS 8		/* at least, however narrow the terminal is */
#define YEAR 5			/* "2026-" */
#define COUNT_MAX 9007199254740991.0	/* tokens of one call: up to here a double tells integers apart */

static bool as_json;
static const char *since_text, *until_text, *prices_file;

struct tokens {
	int64_t calls;
	int64_t input;		/* all that was read, from a cache or not */
	int64_t cached, cache_write, output;
	money cost;
};

/* Calls of one stream, day, kind and model; in the sums at the end stream and day are not told apart. */
struct row {
	size_t stream;
	char day[16];
	char *kind, *model;	/* "" when it is not known */
	struct tokens t;
	bool unpriced;
};

struct rows {
	struct row *items;
	size_t n, cap;
};

struct report {
	struct store *s;
	char **streams;
	size_t streams_n, streams_cap;
	struct rows rows;
	double since, until;
	struct prices *prices;	/* NULL: none */
};

/* ---- what is in the logs ---- */

static bool
is_count(struct json_object *value)
{
	double n = json_object_get_double(value);

	return (json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double)) && n >= 0 && n <= COUNT_MAX &&
	    n == floor(n);
}

/* What is there has to be a number of tokens, or the sums would be of something else. */
static int
check_counts(struct json_object *data, struct err *e)
{
	static const char *const names[] = { "prompt_tokens", "completion_tokens", "total_tokens", "cache_read_input_tokens",
		"cache_creation_input_tokens", "thinking_tokens" };
	struct json_object *counts = json_get(json_get(data, "usage"), "data"), *value;
	struct buf text = BUF_INIT;
	size_t i;
	int rc = 0;

	for (i = 0; i < sizeof(names) / sizeof(names[0]) && rc == 0; i++) {
		value = json_get(counts, names[i]);
		if (value == NULL || is_count(value))
			continue;
		json_write(&text, value, JSON_COMPACT);
		rc = err_set(e, ERR_DATA, "a usage whose %s is %.40s%s, which is no number of tokens: not counted", names[i], text.data,
		    text.len > 40 ? "..." : "");
	}
	buf_release(&text);
	return rc;
}

static int64_t
counted(double n)
{
	return n > 0 ? (int64_t)n : 0;
}

/*
 * Providers count in two ways. What a cache held is part of the input, but not with Anthropic; thinking is part of the output
 * where the total says so.
 */
static void
take_counts(struct tokens *t, struct json_object *data)
{
	struct usage u = usage_of(json_get(json_get(data, "usage"), "data"));
	const char *provider = json_get_text(data, "provider", NULL);
	int64_t prompt = counted(u.prompt), completion = counted(u.completion), total = counted(u.total), thinking = counted(u.thinking);

	*t = (struct tokens){ .calls = 1, .input = prompt, .output = completion, .cached = counted(u.cache_read),
		.cache_write = counted(u.cache_creation) };
	if ((provider != NULL && strcmp(provider, "anthropic") == 0) || t->cached + t->cache_write > prompt)
		t->input += t->cached + t->cache_write;
	if (thinking > 0 && total == prompt + completion + thinking)
		t->output += thinking;
}

/* What is too much for a number stays at the largest. */
static void
add_count(int64_t *sum, int64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = INT64_MAX;
}

static void
add_tokens(struct tokens *sum, const struct tokens *t)
{
	add_count(&sum->calls, t->calls);
	add_count(&sum->input, t->input);
	add_count(&sum->cached, t->cached);
	add_count(&sum->cache_write, t->cache_write);
	add_count(&sum->output, t->output);
	sum->cost += t->cost;
}

static int
by_all(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int order = x->stream != y->stream ? (x->stream > y->stream ? 1 : -1) : strcmp(x->day, y->day);

	if (order == 0)
		order = strcmp(x->kind, y->kind);
	return order ? order : strcmp(x->model, y->model);
}

/* The row like this one, which takes its place where there is none yet. The last is looked at first: calls come in runs. */
static struct row *
row_for(struct rows *l, const struct row *like)
{
	size_t i = l->n;

	while (i-- > 0)
		if (by_all(&l->items[i], like) == 0)
			return &l->items[i];
	l->items = xgrow(l->items, l->n, &l->cap, sizeof(*l->items));
	l->items[l->n] = *like;
	l->items[l->n].kind = xstrdup(like->kind);
	l->items[l->n].model = xstrdup(like->model);
	return &l->items[l->n++];
}

static char *
text_of(struct json_object *data, const char *name)
{
	const char *text = json_get_text(data, name, NULL);

	return (char *)(text != NULL ? text : "");
}

static void
take_event(struct report *r, size_t stream, struct json_object *data)
{
	double time = event_time(data);
	struct row row = { .stream = stream, .kind = text_of(data, "kind"), .model = text_of(data, "model") };
	struct buf day = BUF_INIT;
	struct tokens t;

	if ((r->since != -INFINITY || r->until != INFINITY) && (time < 0 || time < r->since || time >= r->until))
		return;
	add_time(&day, time, false);
	snprintf(row.day, sizeof(row.day), "%.10s", day.data);
	buf_release(&day);
	take_counts(&t, data);
	add_tokens(&row_for(&r->rows, &row)->t, &t);
}

/* What compaction dropped was paid for, too. */
static void
read_stream(struct report *r, size_t stream, bool named)
{
	const char *id = r->streams[stream];
	struct stream_reader *reader;
	struct json_object *data;
	struct jsonl in;
	struct event ev;
	struct err e = ERR_INIT, why;
	int rc;

	if (stream_open(r->s, id, true, &reader, &e) < 0) {
		if (named || e.code != ERR_NOINPUT)
			fail(&e);
		return;		/* gone since it was listed */
	}
	jsonl_init(&in, id, JSONL_BAD_ONCE, stream_read, reader);
	while ((rc = jsonl_next(&in, &ev, &e)) > 0) {
		if (ev.type->flags & EV_USAGE) {
			why = (struct err)ERR_INIT;
			data = event_data(&ev, &why);
			if (data == NULL || check_counts(data, &why) < 0)
				rc = jsonl_bad(&in, &ev, &why, &e);
			else
				take_event(r, stream, data);
		}
		event_release(&ev);
		if (rc < 0)
			break;
	}
	if (rc < 0)
		fail(&e);
	jsonl_release(&in);
	stream_close(reader);
}

static int
add_stream(void *arg, const char *id, const struct store_stat *st)
{
	struct report *r = arg;

	r->streams = xgrow(r->streams, r->streams_n, &r->streams_cap, sizeof(*r->streams));
	r->streams[r->streams_n++] = xstrdup(id);
	return 0;
}

/* ---- prices ---- */

static void
price_row(struct report *r, struct row *row)
{
	const struct price *p = prices_find(r->prices, row->model);
	const struct tokens *t = &row->t;

	row->unpriced = p == NULL;
	if (p != NULL)
		row->t.cost = (money)(t->input - t->cached - t->cache_write) * p->input + (money)t->cached * p->cached +
		    (money)t->cache_write * p->cache_write + (money)t->output * p->output;
}

/* Each model that has no price is said once. */
static void
price_all(struct report *r)
{
	const struct rows *l = &r->rows;
	size_t i, j;

	for (i = 0; i < l->n; i++) {
		price_row(r, &l->items[i]);
		for (j = 0; j < i && strcmp(l->items[j].model, l->items[i].model) != 0; j++)
			continue;
		if (l->items[i].unpriced && j == i)
			log_warn("%s: there is no price for %s%s%s: the sums are without it", prices_file,
			    l->items[i].model[0] != '\0' ? "the model '" : "calls without a model", l->items[i].model,
			    l->items[i].model[0] != '\0' ? "'" : "");
	}
}

/* ---- JSON ---- */

static void
add_member(struct buf *out, const char *name, const char *text)
{
	buf_addf(out, "\"%s\":", name);
	if (text[0] != '\0')
		json_write_string(out, text, strlen(text), JSON_COMPACT);
	else
		buf_adds(out, "null");
	buf_addch(out, ',');
}

static void
print_row_json(const struct report *r, const struct row *row)
{
	const struct tokens *t = &row->t;
	struct buf line = BUF_INIT;

	buf_addch(&line, '{');
	add_member(&line, "stream", r->streams[row->stream]);
	add_member(&line, "day", row->day[0] != '-' ? row->day : "");
	add_member(&line, "kind", row->kind);
	add_member(&line, "model", row->model);
	buf_addf(&line, "\"calls\":%lld,\"input\":%lld,\"cached\":%lld,\"cache_write\":%lld,\"output\":%lld,\"cached_share\":",
	    (long long)t->calls, (long long)t->input, (long long)t->cached, (long long)t->cache_write, (long long)t->output);
	if (t->input > 0)
		json_write_double(&line, round((double)t->cached / (double)t->input * 10000) / 10000);
	else
		buf_adds(&line, "null");
	if (r->prices != NULL) {
		buf_adds(&line, ",\"cost\":");
		if (row->unpriced)
			buf_adds(&line, "null");
		else
			money_add(&line, t->cost, -1);
		buf_addch(&line, ',');
		add_member(&line, "currency", prices_currency(r->prices));
		line.len--;
	}
	buf_adds(&line, "}\n");
	cli_write(line.data, line.len);
	buf_release(&line);
}

/* ---- a table ---- */

enum { CALLS, INPUT, OUTPUT, CACHED, COST, DAY, KIND, MODEL, COLUMNS };

struct line {
	char *cells[COLUMNS];	/* only the first: the line is a heading */
};

struct table {
	struct line *lines;
	size_t n, cap;
	size_t width[COLUMNS];
	size_t gap, model;	/* columns between two, and of the last */
	bool costs;	/* that column is there */
};

static struct line *
new_line(struct table *t)
{
	t->lines = xgrow(t->lines, t->n, &t->cap, sizeof(*t->lines));
	t->lines[t->n] = (struct line){ .cells = { NULL } };
	return &t->lines[t->n++];
}

static char *
cell_of(const char *text)
{
	struct buf out = BUF_INIT;

	cli_add(&out, text[0] != '\0' ? text : "-", text[0] != '\0' ? strlen(text) : 1, false);
	return buf_detach(&out, NULL);
}

static char *
cost_of(const struct report *r, const struct row *row)
{
	struct buf out = BUF_INIT;

	if (row->unpriced)
		return xstrdup("?");
	money_add(&out, row->t.cost, 4);
	return buf_detach(&out, NULL);
}

static void
add_row(struct table *table, const struct report *r, const struct row *row, const char *day)
{
	struct line *line = new_line(table);
	const struct tokens *t = &row->t;

	line->cells[CALLS] = xasprintf("%lld", (long long)t->calls);
	line->cells[INPUT] = xasprintf("%lld", (long long)t->input);
	line->cells[OUTPUT] = xasprintf("%lld", (long long)t->output);
	line->cells[CACHED] = t->input > 0 ? xasprintf("%.0f%%", (double)t->cached / (double)t->input * 100) : xstrdup("-");
	line->cells[COST] = r->prices != NULL ? cost_of(r, row) : xstrdup("");
	line->cells[DAY] = xstrdup(day);
	line->cells[KIND] = cell_of(strcmp(row->kind, "model_call") == 0 ? "turn" : row->kind);
	line->cells[MODEL] = cell_of(row->model);
}

static void
add_titles(struct table *table, const struct report *r)
{
	static const char *const titles[COLUMNS] = { "calls", "input", "output", "cached", "cost", "day", "kind", "model" };
	struct line *line = new_line(table);
	size_t i;

	for (i = 0; i < COLUMNS; i++)
		line->cells[i] = i == COST && r->prices != NULL && prices_currency(r->prices)[0] != '\0' ?
		    cell_of(prices_currency(r->prices)) : xstrdup(titles[i]);
}

static void
measure(struct table *t)
{
	size_t i, j, w;

	for (i = 0; i < t->n; i++)
		for (j = 0; j < COLUMNS && t->lines[i].cells[1] != NULL; j++) {
			w = text_columns(t->lines[i].cells[j], strlen(t->lines[i].cells[j]));
			if (w > t->width[j])
				t->width[j] = w;
		}
	if (!t->costs)
		t->width[COST] = 0;
}

/* Numbers to the right, words to the left; the model's name takes what is left of the screen. */
static void
print_line(const struct table *t, const struct line *line)
{
	struct buf out = BUF_INIT;
	const char *cell;
	size_t i, pad;

	if (line->cells[1] == NULL) {
		buf_addf(&out, "\n%s\n", line->cells[0]);
		cli_write(out.data, out.len);
		buf_release(&out);
		return;
	}
	for (i = 0; i < MODEL; i++) {
		if (t->width[i] == 0)
			continue;
		cell = line->cells[i];
		pad = t->width[i] - text_columns(cell, strlen(cell));
		if (i < DAY)
			buf_addf(&out, "%*s", (int)pad, "");
		buf_adds(&out, cell);
		if (i >= DAY)
			buf_addf(&out, "%*s", (int)pad, "");
		buf_addf(&out, "%*s", (int)t->gap, "");
	}
	add_clipped(&out, line->cells[MODEL], strlen(line->cells[MODEL]), t->model);
	while (out.len > 0 && out.data[out.len - 1] == ' ')
		out.len--;
	buf_addch(&out, '\n');
	cli_write(out.data, out.len);
	buf_release(&out);
}

static void
drop_years(struct table *t)
{
	char *day;
	size_t i;

	for (i = 0; i < t->n; i++) {
		day = t->lines[i].cells[DAY];
		if (day != NULL && strlen(day) == t->width[DAY])
			memmove(day, day + YEAR, strlen(day + YEAR) + 1);
	}
	t->width[DAY] -= YEAR;
}

/* A narrow screen gets one blank between columns, a very narrow one days without their year. In a pipe nothing is cut. */
static void
fit(struct table *t, size_t columns)
{
	size_t used = 0, between = 0, i;

	for (i = 0; i < MODEL; i++) {
		used += t->width[i];
		between += t->width[i] > 0;
	}
	t->gap = used + 2 * between + t->width[MODEL] > columns ? 1 : 2;
	used += t->gap * between;
	if (used + MODEL_COLUMNS > columns && t->width[DAY] > YEAR + 4) {
		drop_years(t);
		used -= YEAR;
	}
	t->model = columns > used + MODEL_COLUMNS ? columns - used : MODEL_COLUMNS;
}

static void
print_table(struct table *t)
{
	size_t i;

	measure(t);
	fit(t, cli_terminal() ? (size_t)cli_width(1) : SIZE_MAX);
	for (i = 0; i < t->n; i++)
		print_line(t, &t->lines[i]);
}

static void
table_release(struct table *t)
{
	size_t i, j;

	for (i = 0; i < t->n; i++)
		for (j = 0; j < COLUMNS; j++)
			free(t->lines[i].cells[j]);
	free(t->lines);
}

static void
rows_release(struct rows *l)
{
	size_t i;

	for (i = 0; i < l->n; i++) {
		free(l->items[i].kind);
		free(l->items[i].model);
	}
	free(l->items);
}

/* All streams and days in one, by kind and model, and the sum of it. */
static void
add_sums(struct table *table, const struct report *r)
{
	struct row all = { .kind = (char *)"all", .model = (char *)" " }, like, *sum;
	struct rows sums = { .items = NULL };
	size_t i;

	for (i = 0; i < r->rows.n; i++) {
		like = r->rows.items[i];
		like.stream = 0;
		like.day[0] = '\0';
		like.t = (struct tokens){ 0 };
		sum = row_for(&sums, &like);
		add_tokens(&sum->t, &r->rows.items[i].t);
		add_tokens(&all.t, &r->rows.items[i].t);
	}
	if (sums.n > 1)
		qsort(sums.items, sums.n, sizeof(*sums.items), by_all);
	new_line(table)->cells[0] = xstrdup("Total");
	for (i = 0; sums.n > 1 && i < sums.n; i++)
		add_row(table, r, &sums.items[i], "");
	add_row(table, r, &all, "");
	rows_release(&sums);
}

static void
print_report(const struct report *r)
{
	struct table table = { .costs = r->prices != NULL };
	const struct row *row;
	size_t i;

	add_titles(&table, r);
	for (i = 0; i < r->rows.n; i++) {
		row = &r->rows.items[i];
		if (i == 0 || row->stream != row[-1].stream)
			new_line(&table)->cells[0] = xasprintf("Stream %s", r->streams[row->stream]);
		add_row(&table, r, row, row->day);
	}
	add_sums(&table, r);
	print_table(&table);
	table_release(&table);
}

/* ---- the command ---- */

static void
open_report(struct report *r, char **args, int n)
{
	double now = clock_now();
	struct err e = ERR_INIT;
	int i;

	*r = (struct report){ .since = -INFINITY, .until = INFINITY };
	if (since_text != NULL && parse_when(since_text, "--since", now, &r->since, &e) < 0)
		usage("usage: %s", e.msg);
	if (until_text != NULL && parse_when(until_text, "--until", now, &r->until, &e) < 0)
		usage("usage: %s", e.msg);
	if (prices_file != NULL && prices_read(&r->prices, prices_file, &e) < 0)
		fail(&e);
	r->s = open_store(STORE_READ);
	for (i = 0; i < n; i++)
		add_stream(r, stream_operand(r->s, args[i]), NULL);
	if (n == 0 && stream_list(r->s, add_stream, r, &e) < 0)
		fail(&e);
}

static void
close_report(struct report *r)
{
	size_t i;

	for (i = 0; i < r->streams_n; i++)
		free(r->streams[i]);
	free(r->streams);
	rows_release(&r->rows);
	prices_free(r->prices);
	store_close(r->s);
}

static int
run_usage(char **args, int n)
{
	struct report r;
	size_t i;

	open_report(&r, args, n);
	for (i = 0; i < r.streams_n; i++)
		read_stream(&r, i, n > 0);
	if (r.rows.n > 1)
		qsort(r.rows.items, r.rows.n, sizeof(*r.rows.items), by_all);
	if (r.prices != NULL)
		price_all(&r);
	for (i = 0; as_json && i < r.rows.n; i++)
		print_row_json(&r, &r.rows.items[i]);
	if (!as_json)
		print_report(&r);
	close_report(&r);
	return 0;
}

static const struct opt usage_table[] = {
	{ 0, "since", OPT_STRING, &since_text, "T", "only calls at or after T: 2026-05-28, yesterday, 7d" },
	{ 0, "until", OPT_STRING, &until_text, "T", "only calls before T" },
	{ 0, "prices", OPT_STRING, &prices_file, "FILE", "what models cost: a YAML file, see ag2-store(1)" },
	{ 0, "json", OPT_FLAG, &as_json, NULL, "one JSON object a line" },
	{ 0 }
};

const struct command command_log_usage = {
	.name = "usage",
	.operands = "[--since=T] [--until=T] [--prices=FILE] [--json] [S...]",
	.summary = "the tokens that model calls took, and their cost",
	.table = usage_table,
	.max = -1,
	.run = run_usage,
	.more = "By stream, day, kind (turn, compaction, aggregation) and model; of all streams, or those given.\n"
		"\nExample:\n"
		"  ag2-store log usage --since 30d --prices prices.yaml\n",
};

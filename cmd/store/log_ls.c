/* log ls: the streams, what is in them, and what upkeep did to them. */
#include "command.h"
#include "../screen.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "event/render.h"
#include "event/said.h"
#include "stream.h"
#include "upkeep.h"
#include "walk.h"

#include <stdio.h>
#include <stdlib.h>

#define OLD (7 * 24 * 3600.0)	/* a failure that a success followed is still shown for a week */

static bool details, as_json;

struct names {
	char **items;
	size_t n, cap;
};

struct line {
	char *id;
	struct store_stat st;
};

struct lines {
	struct line *items;
	size_t n, cap;
};

/* What is in a current log. */
struct figures {
	uint64_t turns, events;
	int64_t tokens;
	double last;		/* the time of its last event, else that of the last change */
};

/* ---- upkeep ---- */

static void
add_note(struct buf *out, const char *what, const char *how, const struct upkeep_event *ev)
{
	buf_addf(out, "%s%s%s ", out->len > 0 ? "; " : "", what, how);
	add_time(out, ev->time, false);
	if (ev->error != NULL)
		buf_addf(out, ": %s", ev->error);
}

/* The last success, a failure behind it or not long before it, and a start without an end: a run that goes on, or was killed. */
static void
describe(struct buf *out, const char *what, const struct upkeep_event ev[3], double now)
{
	double done = ev[UPKEEP_COMPLETED].time, failed = ev[UPKEEP_FAILED].time, started = ev[UPKEEP_STARTED].time;

	if (done >= 0)
		add_note(out, what, " done", &ev[UPKEEP_COMPLETED]);
	if (failed >= 0 && (failed >= done || now - failed < OLD))
		add_note(out, what, " FAILED", &ev[UPKEEP_FAILED]);
	if (started > done && started > failed)
		add_note(out, what, " begun and not ended", &ev[UPKEEP_STARTED]);
}

static void
add_upkeep(struct buf *text, struct store *s, const char *id, double now)
{
	struct upkeep_status st;
	struct err e = ERR_INIT;

	if (upkeep_status_read(s, id, &st, &e) < 0)
		fail(&e);
	describe(text, "aggregation", st.aggregation, now);
	describe(text, "compaction", st.compaction, now);
	if (st.log_failed.time >= 0 && now - st.log_failed.time < OLD)
		add_note(text, "log", " NOT WRITTEN", &st.log_failed);
	upkeep_status_release(&st);
}

static int
add_name(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	struct names *l = arg;

	l->items = xgrow(l->items, l->n, &l->cap, sizeof(*l->items));
	l->items[l->n++] = xstrdup(name);
	return 0;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* ---- what is in it ---- */

static void
count_events(struct store *s, const char *id, struct figures *f)
{
	struct stream_reader *r;
	struct jsonl in;
	struct event ev;
	struct err e = ERR_INIT, bad = ERR_INIT;
	int64_t tokens;
	int rc;

	if (stream_open(s, id, false, &r, &e) < 0) {
		if (e.code != ERR_NOINPUT)
			fail(&e);
		return;		/* gone since it was listed */
	}
	jsonl_init(&in, id, JSONL_BAD_ONCE, stream_read, r);
	while ((rc = jsonl_next(&in, &ev, &e)) > 0) {
		tokens = event_tokens(&ev, CHARS_PER_TOKEN, &bad);
		f->tokens += tokens > 0 ? tokens : 0;
		f->turns += (ev.type->flags & EV_REQUEST) != 0;
		f->events++;
		if (event_data(&ev, NULL) != NULL && event_time(event_data(&ev, NULL)) >= 0)
			f->last = event_time(event_data(&ev, NULL));
		event_release(&ev);
	}
	if (rc < 0)
		fail(&e);
	jsonl_release(&in);
	stream_close(r);
}

static void
print_json_line(const struct line *l, const struct figures *f, const struct buf *upkeep)
{
	struct buf line = BUF_INIT;

	buf_addf(&line, "{\"stream\":\"%s\",\"size\":%llu,\"version\":\"%llu\",\"turns\":%llu,\"events\":%llu,\"tokens\":%lld,\"last\":", l->id,
	    (unsigned long long)l->st.size, (unsigned long long)l->st.version, (unsigned long long)f->turns, (unsigned long long)f->events,
	    (long long)f->tokens);
	if (f->last < 0)
		buf_adds(&line, "null");
	else
		json_write_double(&line, f->last);
	buf_adds(&line, ",\"upkeep\":");
	if (upkeep->len == 0)
		buf_adds(&line, "null");
	else
		json_write_string(&line, upkeep->data, upkeep->len, JSON_COMPACT);
	buf_adds(&line, "}\n");
	cli_write(line.data, line.len);
	buf_release(&line);
}

static void
print_line(const struct line *l, const struct figures *f, const struct buf *upkeep)
{
	struct buf when = BUF_INIT;
	char size[16];

	human_size(size, l->st.size);
	add_time(&when, f->last, false);
	out_printf("%5llu %8lld %6s  %-16s  %s", (unsigned long long)f->turns, (long long)f->tokens, size, when.data, l->id);
	if (upkeep->len > 0) {
		out_puts("  ");
		cli_name(upkeep->data);
	}
	out_puts("\n");
	buf_release(&when);
}

/* ---- the list ---- */

static int
add_line(void *arg, const char *id, const struct store_stat *st)
{
	struct lines *l = arg;

	if (!details && !as_json) {
		out_printf("%s\n", id);
		return 0;
	}
	l->items = xgrow(l->items, l->n, &l->cap, sizeof(*l->items));
	l->items[l->n++] = (struct line){ xstrdup(id), *st };
	return 0;
}

static void
print_details(struct store *s, const struct lines *l)
{
	struct names known = { .items = NULL };
	double now = clock_now();
	struct buf upkeep = BUF_INIT;
	struct err e = ERR_INIT;
	size_t i;

	if (store_list(s, UPKEEP_STATUS_DIR, STORE_LIST_ALL, add_name, &known, &e) < 0)
		fail(&e);
	if (known.n > 1)
		qsort(known.items, known.n, sizeof(*known.items), by_name);
	if (!as_json && l->n > 0 && cli_terminal())
		out_puts("turns   tokens   size  last activity     stream\n");
	for (i = 0; i < l->n; i++) {
		struct figures f = { .last = l->items[i].st.mtime };

		buf_reset(&upkeep);
		count_events(s, l->items[i].id, &f);
		if (known.n > 0 && bsearch(&l->items[i].id, known.items, known.n, sizeof(*known.items), by_name) != NULL)
			add_upkeep(&upkeep, s, l->items[i].id, now);
		if (as_json)
			print_json_line(&l->items[i], &f, &upkeep);
		else
			print_line(&l->items[i], &f, &upkeep);
	}
	buf_release(&upkeep);
	for (i = 0; i < known.n; i++)
		free(known.items[i]);
	free(known.items);
}

static int
run_ls(char **args, int n)
{
	struct store *s = open_store(STORE_READ);
	struct lines l = { .items = NULL };
	struct err e = ERR_INIT;
	size_t i;

	if (stream_list(s, add_line, &l, &e) < 0)
		fail(&e);
	if (details || as_json)
		print_details(s, &l);
	for (i = 0; i < l.n; i++)
		free(l.items[i].id);
	free(l.items);
	store_close(s);
	return 0;
}

static const struct opt ls_table[] = {
	{ 'l', "long", OPT_FLAG, &details, NULL, "turns, tokens, size and last activity before each id, the last upkeep behind it" },
	{ 0, "json", OPT_FLAG, &as_json, NULL, "one JSON object a line, with all of that" },
	{ 0 }
};

const struct command command_log_ls = {
	.name = "ls",
	.operands = "[-l] [--json]",
	.summary = "list the streams",
	.table = ls_table,
	.max = 0,
	.run = run_ls,
	.more = "With -l every current log is read.\n",
};

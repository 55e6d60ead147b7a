/* log ls: the streams, and what upkeep did to them. */
#include "command.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "stream.h"
#include "upkeep.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define OLD (7 * 24 * 3600.0)	/* a failure that a success followed is still shown for a week */

static bool details;

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

static const char *
time_text(double at, char *text, size_t size)
{
	time_t t = (time_t)at;
	struct tm tm;

	if (at < 0 || localtime_r(&t, &tm) == NULL || strftime(text, size, "%Y-%m-%d %H:%M", &tm) == 0)
		snprintf(text, size, "-");
	return text;
}

/* ---- upkeep ---- */

static void
add_note(struct buf *out, const char *what, const char *how, const struct upkeep_event *ev)
{
	char when[40];

	buf_addf(out, "%s%s%s %s", out->len > 0 ? "; " : "", what, how, time_text(ev->time, when, sizeof(when)));
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
print_upkeep(struct store *s, const char *id, double now)
{
	struct buf text = BUF_INIT;
	struct upkeep_status st;
	struct err e = ERR_INIT;

	if (upkeep_status_read(s, id, &st, &e) < 0)
		fail(&e);
	describe(&text, "aggregation", st.aggregation, now);
	describe(&text, "compaction", st.compaction, now);
	if (st.log_failed.time >= 0 && now - st.log_failed.time < OLD)
		add_note(&text, "log", " NOT WRITTEN", &st.log_failed);
	if (text.len > 0) {
		cli_puts("  ");
		cli_write(text.data, text.len);
	}
	upkeep_status_release(&st);
	buf_release(&text);
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

/* ---- the list ---- */

static int
add_line(void *arg, const char *id, const struct store_stat *st)
{
	struct lines *l = arg;

	if (!details) {
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
	struct err e = ERR_INIT;
	char when[40];
	size_t i;

	if (store_list(s, UPKEEP_STATUS_DIR, STORE_LIST_ALL, add_name, &known, &e) < 0)
		fail(&e);
	if (known.n > 1)
		qsort(known.items, known.n, sizeof(*known.items), by_name);
	for (i = 0; i < l->n; i++) {
		out_printf("%11llu  %-16s  %s", (unsigned long long)l->items[i].st.size,
		    time_text(l->items[i].st.mtime, when, sizeof(when)), l->items[i].id);
		if (known.n > 0 && bsearch(&l->items[i].id, known.items, known.n, sizeof(*known.items), by_name) != NULL)
			print_upkeep(s, l->items[i].id, now);
		out_write("\n", 1);
	}
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
	if (details)
		print_details(s, &l);
	for (i = 0; i < l.n; i++)
		free(l.items[i].id);
	free(l.items);
	store_close(s);
	return 0;
}

static const struct opt ls_table[] = {
	{ 'l', "long", OPT_FLAG, &details, NULL, "size and last change of the current log before each id, the last upkeep behind it" },
	{ 0 }
};

const struct command command_log_ls = {
	.name = "ls",
	.operands = "[-l]",
	.summary = "list the streams",
	.table = ls_table,
	.max = 0,
	.run = run_ls,
};

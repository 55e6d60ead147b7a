/*
 * `grep` over files and `log grep` over what was said. Most bytes are never looked at closely: a sieve finds the places in the raw
 * bytes where a match can be, and only the lines there are read.
 */
#include "walk.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/when.h"
#include "event/said.h"
#include "match.h"
#include "path.h"
#include "screen.h"
#include "stream.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define CHUNK (1024 * 1024)
#define SEEN_MAX 4096

static bool ignore_case, names_only, fixed, extended, nul, as_json;
static const char *since_text, *until_text;

struct search {
	struct match match;
	struct sieve sieve;	/* for bytes as they are */
	struct sieve said;	/* for JSON */
	double since, until;
	bool colour, single;	/* single: PATH is a file, whose name need not be said */
	bool found;
	/* where we are */
	const char *label;	/* a path or a stream */
	bool hit;		/* there was one in it */
	double time;
	char **seen;		/* results that matched: a container repeats them */
	size_t seen_n, seen_cap;
};

static void
search_init(struct search *g, const char *pattern, bool any_time)
{
	struct err e = ERR_INIT;
	double now = clock_now();

	*g = (struct search){ .since = -INFINITY, .until = INFINITY, .colour = cli_colour(1) };
	if (fixed && extended)
		usage("grep: -F and -E are two kinds of pattern");
	if (match_init(&g->match, pattern, (fixed ? MATCH_FIXED : 0) | (extended ? MATCH_EXTENDED : 0) | (ignore_case ? MATCH_FOLD : 0), &e) < 0)
		usage("grep: %s", e.msg);
	if (any_time && since_text != NULL && parse_when(since_text, "--since", now, &g->since, &e) < 0)
		usage("grep: %s", e.msg);
	if (any_time && until_text != NULL && parse_when(until_text, "--until", now, &g->until, &e) < 0)
		usage("grep: %s", e.msg);
	sieve_init(&g->sieve, &g->match, false);
	sieve_init(&g->said, &g->match, true);
}

static void
forget_seen(struct search *g)
{
	while (g->seen_n > 0)
		free(g->seen[--g->seen_n]);
}

static void
search_release(struct search *g)
{
	match_release(&g->match);
	forget_seen(g);
	free(g->seen);
}

/* ---- what is printed ---- */

static void
print_coloured(const struct search *g, const char *colour, const char *text)
{
	out_puts(g->colour ? colour : "");
	cli_name(text);
	out_puts(g->colour ? "\033[0m" : "");
}

static void
print_name_only(const struct search *g)
{
	if (as_json) {
		struct buf line = BUF_INIT;

		buf_adds(&line, g->label[0] == '/' ? "{\"path\":" : "{\"stream\":");
		json_write_string(&line, g->label, strlen(g->label), JSON_COMPACT);
		buf_adds(&line, "}\n");
		cli_write(line.data, line.len);
		buf_release(&line);
	} else if (nul) {
		out_write(g->label, strlen(g->label) + 1);
	} else {
		print_coloured(g, "\033[35m", g->label);
		out_puts("\n");
	}
}

/* The line, what matched in it standing out on a terminal. */
static void
print_marked(struct search *g, const char *line, size_t len, size_t start, size_t end)
{
	size_t at = 0;
	int marks;

	for (marks = 0; g->colour && marks < 1000 && end > start; marks++) {
		cli_write(line + at, start - at);
		out_puts("\033[1;31m");
		cli_write(line + start, end - start);
		out_puts("\033[0m");
		at = end;
		if (at >= len || !match_line(&g->match, line, len, at, &start, &end))
			break;
	}
	cli_write(line + at, len - at);
	out_puts("\n");
}

static void
print_said_json(const struct search *g, const char *who, const char *line, size_t len)
{
	struct buf out = BUF_INIT;

	buf_adds(&out, g->label[0] == '/' ? "{\"path\":" : "{\"stream\":");
	json_write_string(&out, g->label, strlen(g->label), JSON_COMPACT);
	buf_adds(&out, ",\"time\":");
	if (g->time < 0)
		buf_adds(&out, "null");
	else
		json_write_double(&out, g->time);
	buf_adds(&out, ",\"role\":");
	json_write_string(&out, who, strlen(who), JSON_COMPACT);
	buf_adds(&out, ",\"text\":");
	json_write_string(&out, line, len, JSON_COMPACT);
	buf_adds(&out, "}\n");
	cli_write(out.data, out.len);
	buf_release(&out);
}

static void
print_said(struct search *g, const char *who, const char *line, size_t len, size_t start, size_t end)
{
	struct buf when = BUF_INIT;

	if (as_json) {
		print_said_json(g, who, line, len);
		return;
	}
	add_time(&when, g->time, true);
	print_coloured(g, "\033[35m", g->label);
	out_puts(nul ? "" : "  ");
	if (nul)
		out_write("", 1);
	print_coloured(g, "\033[2m", when.data);
	out_puts("  ");
	print_coloured(g, "\033[32m", who);
	out_puts("  ");
	print_marked(g, line, len, start, end);
	buf_release(&when);
}

/* A line of a file; on is how far it is behind the file's beginning. */
static void
print_file_line(struct search *g, const char *line, size_t len, uint64_t on, size_t start, size_t end)
{
	struct buf out = BUF_INIT;

	if (as_json) {
		buf_adds(&out, "{\"path\":");
		json_write_string(&out, g->label, strlen(g->label), JSON_COMPACT);
		buf_addf(&out, ",\"offset\":%llu,\"text\":", (unsigned long long)on);
		json_write_string(&out, line, len, JSON_COMPACT);
		buf_adds(&out, "}\n");
		cli_write(out.data, out.len);
		buf_release(&out);
		return;
	}
	if (!g->single) {
		print_coloured(g, "\033[35m", g->label);
		if (nul)
			out_write("", 1);
		else
			print_coloured(g, "\033[36m", ":");
	}
	print_marked(g, line, len, start, end);
}

/* ---- one line ---- */

/* True when the search of this file or stream is over. */
static bool
note_hit(struct search *g)
{
	g->found = true;
	if (names_only && !g->hit)
		print_name_only(g);
	g->hit = true;
	return names_only;
}

static bool
was_seen(struct search *g, const char *id)
{
	size_t i;

	for (i = 0; i < g->seen_n; i++)
		if (strcmp(g->seen[i], id) == 0)
			return true;
	if (g->seen_n == SEEN_MAX)
		forget_seen(g);
	g->seen = xgrow(g->seen, g->seen_n, &g->seen_cap, sizeof(*g->seen));
	g->seen[g->seen_n++] = xstrdup(id);
	return false;
}

static void
search_said(void *arg, const char *who, const char *id, const char *text, size_t len)
{
	struct search *g = arg;
	const char *end = text + len, *newline;
	size_t start, stop;
	bool any = false;

	if (names_only && g->hit)
		return;
	for (; text <= end; text = newline + 1) {
		newline = memchr(text, '\n', (size_t)(end - text));
		newline = newline ? newline : end;
		if (!match_line(&g->match, text, (size_t)(newline - text), 0, &start, &stop))
			continue;
		if (!any && id != NULL && was_seen(g, id))
			return;
		any = true;
		if (note_hit(g))
			return;
		print_said(g, who, text, (size_t)(newline - text), start, stop);
	}
}

/* A response begins a new round of calls, whose ids some models use again. */
static bool
search_event(struct search *g, const char *line, size_t len, struct err *why)
{
	struct event ev;
	struct json_object *data;
	int rc;

	if (event_view(&ev, line, len, why) < 0)
		return false;
	if (ev.type->flags & (EV_CALLS | EV_USAGE))
		return true;	/* says nothing that is not said elsewhere */
	data = event_data(&ev, why);
	if (data == NULL) {
		event_release(&ev);
		return false;
	}
	if (ev.type->flags & EV_RESPONSE)
		forget_seen(g);
	g->time = event_time(data);
	rc = 0;
	if ((g->since == -INFINITY && g->until == INFINITY) || (g->time >= 0 && g->time >= g->since && g->time < g->until))
		rc = event_said(&ev, search_said, g, why);
	event_release(&ev);
	return rc == 0;
}

/* ---- bytes ---- */

/* Gives [data, data + len), whole lines, to fn where the sieve finds something; false when it is over. */
typedef bool line_fn(struct search *g, const char *line, size_t len, uint64_t offset);

static bool
sift(struct search *g, struct sieve *s, const char *data, size_t len, uint64_t offset, line_fn *fn)
{
	size_t at = 0, from;
	const char *start, *end;

	sieve_restart(s);
	while (at < len && (from = sieve_next(s, data, len, at)) < len) {
		start = memrchr(data + at, '\n', from - at);
		start = start ? start + 1 : data + at;
		end = memchr(data + from, '\n', len - from);
		end = end ? end : data + len;
		if (!fn(g, start, (size_t)(end - start), offset + (uint64_t)(start - data)))
			return false;
		at = (size_t)(end - data) + 1;
	}
	return true;
}

/* All that read gives, in whole lines; one over EVENT_LINE_MAX is cut there. */
static void
search_bytes(struct search *g, struct sieve *s, jsonl_read_fn *read, void *arg, line_fn *fn)
{
	struct buf held = BUF_INIT;
	struct err e = ERR_INIT;
	const char *newline;
	uint64_t offset = 0;
	size_t whole;
	ssize_t n;
	bool on = true;

	while (on) {
		buf_reserve(&held, CHUNK);
		n = read(arg, held.data + held.len, CHUNK, &e);
		if (n < 0)
			fail(&e);
		newline = n > 0 ? memrchr(held.data + held.len, '\n', (size_t)n) : NULL;
		held.len += (size_t)n;
		whole = newline ? (size_t)(newline - held.data) + 1 : n == 0 || held.len > EVENT_LINE_MAX ? held.len : 0;
		on = sift(g, s, held.data, whole, offset, fn) && n > 0;
		offset += whole;
		buf_drop(&held, whole);
	}
	buf_release(&held);
}

/* ---- log grep ---- */

struct ids {
	char **items;
	size_t n, cap;
};

static bool
event_line(struct search *g, const char *line, size_t len, uint64_t offset)
{
	struct err why = ERR_INIT;

	if (len > 0 && line[len - 1] == '\r')
		len--;
	if (strspn(line, " \t\r") >= len)
		return true;
	if (offset == 0 && len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
		line += 3;
		len -= 3;
	}
	if (!search_event(g, line, len, &why))
		log_warn("%s: line at offset %llu: %s", g->label, (unsigned long long)offset, why.msg);
	return !(names_only && g->hit);
}

static void
search_stream(struct search *g, struct store *s, const char *id, bool full)
{
	struct stream_reader *r;
	struct err e = ERR_INIT;

	if (stream_open(s, id, full, &r, &e) < 0)
		fail(&e);
	g->label = id;
	g->hit = false;
	forget_seen(g);
	search_bytes(g, &g->said, stream_read, r, event_line);
	stream_close(r);
}

/* Once through the directory, whatever the number of streams. */
static int
note_id(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	struct ids *ids = arg;
	size_t len = strlen(name);
	const char *part = strstr(name, ".dropped-");
	char *id;

	if (dir || len <= 6 || strcmp(name + len - 6, ".jsonl") != 0)
		return 0;
	id = xmemdup0(name, part ? (size_t)(part - name) : len - 6);
	if (stream_id_check(id, NULL) < 0) {
		free(id);
		return 0;
	}
	ids->items = xgrow(ids->items, ids->n, &ids->cap, sizeof(*ids->items));
	ids->items[ids->n++] = id;
	return 0;
}

static int
by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A name that comes more than once has segments; so may one that comes once, when only they are left. */
static void
search_all(struct search *g, struct store *s)
{
	struct ids ids = { 0 };
	struct err e = ERR_INIT;
	struct buf path = BUF_INIT;
	size_t i, next;
	bool full;

	if (store_list(s, "/log", 0, note_id, &ids, &e) < 0)
		fail(&e);
	if (ids.n > 0)
		qsort(ids.items, ids.n, sizeof(*ids.items), by_bytes);
	for (i = 0; i < ids.n; i = next) {
		for (next = i + 1; next < ids.n && strcmp(ids.items[next], ids.items[i]) == 0; next++)
			continue;
		stream_path(&path, ids.items[i]);
		full = next > i + 1 || store_stat(s, path.data, NULL, &e) <= 0;
		search_stream(g, s, ids.items[i], full);
	}
	for (i = 0; i < ids.n; i++)
		free(ids.items[i]);
	free(ids.items);
	buf_release(&path);
}

static int
run_log_grep(char **args, int n)
{
	struct search g;
	struct store *s = open_store(STORE_READ);
	int i;

	search_init(&g, args[0], true);
	for (i = 1; i < n; i++)
		search_stream(&g, s, stream_operand(s, args[i]), true);
	if (n == 1)
		search_all(&g, s);
	search_release(&g);
	store_close(s);
	return g.found ? 0 : 1;
}

#define PATTERN_OPTIONS \
	{ 'i', "ignore-case", OPT_FLAG, &ignore_case, NULL, "upper and lower case are the same, in every script" }, \
	{ 'F', "fixed-strings", OPT_FLAG, &fixed, NULL, "PATTERN is text, no expression" }, \
	{ 'E', "extended-regexp", OPT_FLAG, &extended, NULL, "PATTERN is an extended regular expression" }

static const struct opt log_grep_table[] = {
	PATTERN_OPTIONS,
	{ 'l', "streams", OPT_FLAG, &names_only, NULL, "only the ids of streams with a match" },
	{ '0', "null", OPT_FLAG, &nul, NULL, "a NUL behind each stream's id" },
	{ 0, "since", OPT_STRING, &since_text, "T", "only what was said at or after T: 2026-05-28, yesterday, 7d" },
	{ 0, "until", OPT_STRING, &until_text, "T", "only what was said before T" },
	{ 0, "json", OPT_FLAG, &as_json, NULL, "one JSON object a line" },
	{ 0 }
};

const struct command command_log_grep = {
	.name = "grep",
	.operands = "[-iFEl0] [--since=T] [--until=T] [--json] PATTERN [S...]",
	.summary = "search what was said, in all streams or those given",
	.table = log_grep_table,
	.min = 1, .max = -1,
	.run = run_log_grep,
	.more = "Texts are searched as they were meant, however JSON spells them, in dropped segments too: what users and\n"
		"models said, calls and results of tools, alerts and summaries. Exit status 1 when nothing is found.\n"
		"\nExamples:\n"
		"  ag2-store log grep -i 'caf\303\251'\n"
		"  ag2-store log grep -l --since=7d invoice | while read -r S; do ag2-store log show \"$S\"; done\n",
};

/* ---- grep ---- */

struct file_reader {
	struct store_file *file;
	uint64_t offset;
};

static ssize_t
read_file(void *arg, void *data, size_t len, struct err *e)
{
	struct file_reader *r = arg;
	ssize_t n = store_file_read(r->file, r->offset, data, len, e);

	if (n > 0)
		r->offset += (uint64_t)n;
	return n;
}

static bool
file_line(struct search *g, const char *line, size_t len, uint64_t offset)
{
	size_t start, end;

	if (!match_line(&g->match, line, len, 0, &start, &end))
		return true;
	if (note_hit(g))
		return false;
	if (memchr(line, '\0', len) != NULL && !as_json) {
		cli_name(g->label);
		out_puts(": binary file matches\n");
		return false;
	}
	print_file_line(g, line, len, offset, start, end);
	return true;
}

/* A log's lines are events, and what is searched is what they say. */
static bool
is_log(const char *path)
{
	size_t len = strlen(path);

	return path_within(path, "/log") && len > 6 && strcmp(path + len - 6, ".jsonl") == 0;
}

struct grep {
	struct search search;
	struct store *s;
};

static int
grep_entry(void *arg, const char *path, bool dir, const struct store_stat *st)
{
	struct grep *grep = arg;
	struct search *g = &grep->search;
	struct file_reader r = { 0 };
	struct err e = ERR_INIT;

	if (dir)
		return WALK_ON;
	if (store_file_open(grep->s, path, &r.file, NULL, &e) < 0) {
		if (e.code != ERR_ABSENT)
			fail(&e);
		return WALK_ON;
	}
	g->label = path;
	g->hit = false;
	forget_seen(g);
	if (is_log(path))
		search_bytes(g, &g->said, read_file, &r, event_line);
	else
		search_bytes(g, &g->sieve, read_file, &r, file_line);
	store_file_close(r.file);
	return WALK_ON;
}

static int
run_grep(char **args, int n)
{
	struct grep grep = { .s = open_store(STORE_READ) };
	struct buf path = path_operand(args + 1, n - 1);
	struct store_stat st = { .dir = true };
	struct err e = ERR_INIT;
	bool there;

	search_init(&grep.search, args[0], false);
	if (strcmp(path.data, "/") != 0 && store_stat(grep.s, path.data, &st, &e) < 0)
		fail(&e);
	grep.search.single = !st.dir;
	there = walk(grep.s, path.data, 0, grep_entry, &grep);
	if (!there)
		log_warn("'%s' is not in the store", path.data);
	search_release(&grep.search);
	buf_release(&path);
	store_close(grep.s);
	return there && grep.search.found ? 0 : 1;
}

static const struct opt grep_table[] = {
	PATTERN_OPTIONS,
	{ 'l', "files-with-matches", OPT_FLAG, &names_only, NULL, "only the paths of files with a match" },
	{ '0', "null", OPT_FLAG, &nul, NULL, "a NUL behind each path, for xargs -0" },
	{ 0, "json", OPT_FLAG, &as_json, NULL, "one JSON object a line" },
	{ 0 }
};

const struct command command_grep = {
	.name = "grep",
	.operands = "[-iFEl0] [--json] PATTERN [PATH]",
	.summary = "search the files below PATH",
	.table = grep_table,
	.min = 1, .max = 2,
	.run = run_grep,
	.more = "Lines are searched as they are; in logs what was said, as 'log grep' does. Exit status 1 when nothing\n"
		"is found.\n"
		"\nExamples:\n"
		"  ag2-store grep -i tea /memory\n"
		"  ag2-store grep -l0 draft /artifacts | xargs -0 ag2-store rm\n",
};

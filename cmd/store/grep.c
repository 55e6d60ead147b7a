/* `grep` over files and `log grep` over what was said. */
#include "search.h"
#include "walk.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/when.h"
#include "match.h"
#include "path.h"
#include "stream.h"

#include <math.h>
#include <stdlib.h>

static bool ignore_case, fixed, extended;
static const char *since_text, *until_text;
static struct search_options options = { .since = -INFINITY, .until = INFINITY };

static void
take_bound(const char *text, const char *option, double *t)
{
	struct err e = ERR_INIT;

	if (text != NULL && parse_when(text, option, clock_now(), t, &e) < 0)
		usage("grep: %s", e.msg);
}

static struct search *
begin_search(const char *pattern)
{
	struct err e = ERR_INIT;
	struct search *g;

	if (fixed && extended)
		usage("grep: -F and -E are two kinds of pattern");
	take_bound(since_text, "--since", &options.since);
	take_bound(until_text, "--until", &options.until);
	options.pattern = pattern;
	options.flags = (fixed ? MATCH_FIXED : 0) | (extended ? MATCH_EXTENDED : 0) | (ignore_case ? MATCH_FOLD : 0);
	g = search_new(&options, &e);
	if (g == NULL)
		usage("grep: %s", e.msg);
	return g;
}

/* ---- log grep ---- */

struct ids {
	char **items;
	size_t n, cap;
};

/* listed: it was there a moment ago, and that it is gone is no failure. */
static void
search_stream(struct search *g, struct store *s, const char *id, bool whole, bool listed)
{
	struct stream_reader *r;
	struct err e = ERR_INIT;

	if (stream_open(s, id, whole, &r, &e) < 0) {
		if (listed && e.code == ERR_NOINPUT)
			return;
		search_fail(g, &e);
	}
	search_input(g, id, true, stream_read, r);
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
		search_stream(g, s, ids.items[i], full, true);
	}
	for (i = 0; i < ids.n; i++)
		free(ids.items[i]);
	free(ids.items);
	buf_release(&path);
}

static int
run_log_grep(char **args, int n)
{
	struct store *s = open_store(STORE_READ);
	struct search *g = begin_search(args[0]);
	bool found;
	int i;

	for (i = 1; i < n; i++)
		args[i] = (char *)stream_operand(s, args[i]);	/* all of them before the first is searched */
	for (i = 1; i < n; i++)
		search_stream(g, s, args[i], true, false);
	if (n == 1)
		search_all(g, s);
	found = search_end(g);
	store_close(s);
	return found ? 0 : 1;
}

#define PATTERN_OPTIONS \
	{ 'i', "ignore-case", OPT_FLAG, &ignore_case, NULL, "upper and lower case are the same, in every script" }, \
	{ 'F', "fixed-strings", OPT_FLAG, &fixed, NULL, "PATTERN is text, no expression" }, \
	{ 'E', "extended-regexp", OPT_FLAG, &extended, NULL, "PATTERN is an extended regular expression" }

static const struct opt log_grep_table[] = {
	PATTERN_OPTIONS,
	{ 'l', "streams", OPT_FLAG, &options.names_only, NULL, "only the ids of streams with a match" },
	{ '0', "null", OPT_FLAG, &options.nul, NULL, "a NUL behind each stream's id" },
	{ 0, "since", OPT_STRING, &since_text, "T", "only what was said at or after T: 2026-05-28, yesterday, 7d" },
	{ 0, "until", OPT_STRING, &until_text, "T", "only what was said before T" },
	{ 0, "json", OPT_FLAG, &options.json, NULL, "one JSON object a line" },
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
		"  ag2-store log grep -l0 --since=7d invoice |\n"
		"      xargs -0 -n 1 ag2-store log show --last 1\n",
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

/* A log's lines are events, and what is searched is what they say. */
static bool
is_log(const char *path)
{
	size_t len = strlen(path);

	return path_within(path, "/log") && len > 6 && strcmp(path + len - 6, ".jsonl") == 0;
}

struct grep {
	struct search *search;
	struct store *s;
};

static int
grep_entry(void *arg, const char *path, bool dir, const struct store_stat *st)
{
	struct grep *grep = arg;
	struct file_reader r = { 0 };
	struct err e = ERR_INIT;

	if (dir)
		return WALK_ON;
	if (store_file_open(grep->s, path, &r.file, NULL, &e) < 0) {
		if (e.code != ERR_ABSENT)
			search_fail(grep->search, &e);
		return WALK_ON;
	}
	search_input(grep->search, path, is_log(path), read_file, &r);
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
	bool found;
	int there;

	grep.search = begin_search(args[0]);
	if (strcmp(path.data, "/") != 0 && store_stat(grep.s, path.data, &st, &e) < 0)
		fail(&e);
	options.single = !st.dir;
	there = walk(grep.s, path.data, 0, grep_entry, &grep, &e);
	if (there < 0)
		search_fail(grep.search, &e);
	if (there == 0)
		log_warn("'%s' is not in the store", path.data);
	found = search_end(grep.search);
	buf_release(&path);
	store_close(grep.s);
	return there > 0 && found ? 0 : 1;
}

static const struct opt grep_table[] = {
	PATTERN_OPTIONS,
	{ 'l', "files-with-matches", OPT_FLAG, &options.names_only, NULL, "only the paths of files with a match" },
	{ '0', "null", OPT_FLAG, &options.nul, NULL, "a NUL behind each path, for xargs -0" },
	{ 0, "json", OPT_FLAG, &options.json, NULL, "one JSON object a line" },
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

/* `log rm`, `log prune`: streams as a whole. */
#include "command.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/when.h"
#include "event/said.h"
#include "stream.h"
#include "upkeep.h"

#include <stdio.h>
#include <stdlib.h>

#define TTL_MS 60000

struct doomed {
	const char *id;
	char **paths;
	size_t n, cap;
	/* while a directory is listed */
	const char *dir;
	bool dirs;	/* it is directories that belong to the stream */
	bool (*belongs)(const char *name, const char *id);
};

static void
doom(struct doomed *d, char *path)
{
	d->paths = xgrow(d->paths, d->n, &d->cap, sizeof(*d->paths));
	d->paths[d->n++] = path;
}

/* ID.jsonl, ID.dropped-N.jsonl, ID.torn-N */
static bool
is_log_of(const char *name, const char *id)
{
	size_t len = strlen(id);

	if (strncmp(name, id, len) != 0)
		return false;
	name += len;
	return strcmp(name, ".jsonl") == 0 || strncmp(name, ".dropped-", 9) == 0 || strncmp(name, ".torn-", 6) == 0;
}

/* TIME_ID.md, the time being 20260528T102030 or longer, without an underscore. */
static bool
is_episode_of(const char *name, const char *id)
{
	size_t digits = strspn(name, "0123456789T"), len = strlen(id);

	return digits >= 15 && name[digits] == '_' && strncmp(name + digits + 1, id, len) == 0 && strcmp(name + digits + 1 + len, ".md") == 0;
}

static int
look_at(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	struct doomed *d = arg;

	if (dir == d->dirs && d->belongs(name, d->id))
		doom(d, xasprintf("%s/%s", d->dir, name));
	return 0;
}

static void
collect(struct store *s, struct doomed *d, const char *dir, bool dirs, bool (*belongs)(const char *, const char *))
{
	struct err e = ERR_INIT;

	d->dir = dir;
	d->dirs = dirs;
	d->belongs = belongs;
	if (store_list(s, dir, STORE_LIST_ALL, look_at, d, &e) < 0)
		fail(&e);
}

static void
doom_if_there(struct store *s, struct doomed *d, char *path)
{
	struct err e = ERR_INIT;
	int there = store_stat(s, path, NULL, &e);

	if (there < 0)
		fail(&e);
	if (there > 0)
		doom(d, path);
	else
		free(path);
}

struct names {
	char **items;
	size_t n, cap;
};

static int
note_name(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	struct names *list = arg;

	if (dir) {
		list->items = xgrow(list->items, list->n, &list->cap, sizeof(*list->items));
		list->items[list->n++] = xstrdup(name);
	}
	return 0;
}

/* dir/ANYTHING/ID: what upkeep keeps for each strategy. */
static void
collect_by_strategy(struct store *s, struct doomed *d, const char *dir)
{
	struct names keys = { 0 };
	struct err e = ERR_INIT;
	size_t i;

	if (store_list(s, dir, STORE_LIST_ALL, note_name, &keys, &e) < 0)
		fail(&e);
	for (i = 0; i < keys.n; i++) {
		doom_if_there(s, d, xasprintf("%s/%s/%s", dir, keys.items[i], d->id));
		free(keys.items[i]);
	}
	free(keys.items);
}

/* All that there is of a stream. */
static void
collect_stream(struct store *s, struct doomed *d)
{
	static const char *const by_stream[] = { "/.ag2/compact", "/.ag2/status", "/.ag2/undo", "/.ag2/sent" };
	static const char *const by_strategy[] = { "/.ag2/aggregate", "/.ag2/running", "/.ag2/aggregate-undo" };
	size_t i;

	collect(s, d, "/log", false, is_log_of);
	collect(s, d, "/.ag2/history/log", true, is_log_of);
	collect(s, d, "/memory/conversations", false, is_episode_of);
	for (i = 0; i < sizeof(by_stream) / sizeof(*by_stream); i++)
		doom_if_there(s, d, xasprintf("%s/%s", by_stream[i], d->id));
	for (i = 0; i < sizeof(by_strategy) / sizeof(*by_strategy); i++)
		collect_by_strategy(s, d, by_strategy[i]);
	doom_if_there(s, d, xasprintf("/.ag2/history/memory/conversations/%s.md", d->id));
}

/*
 * Removes it in one commit, under the locks of its turns and its compaction; an aggregation sees that it is gone. version: only while its log has that one, 0 for whichever. The answer
 * is 0, ERR_NOINPUT when there is nothing, ERR_BUSY while a turn is under way, ERR_CONFLICT when it has another version.
 */
static int
remove_stream(struct store *s, const char *id, uint64_t version, struct err *e)
{
	struct doomed d = { .id = id };
	struct buf path = BUF_INIT;
	struct store_lock *lock = NULL, *compaction = NULL;
	struct store_op *ops = NULL;
	size_t i;
	int rc;

	stream_path(&path, id);
	rc = store_lock(s, path.data, TTL_MS, 0, &lock, e);
	if (rc == 0)
		rc = upkeep_compaction_lock(s, id, &compaction, e);
	if (rc < 0)
		goto out;
	collect_stream(s, &d);
	if (d.n == 0) {
		rc = err_set(e, ERR_NOINPUT, "there is no stream '%s' in %s", id, store_url(s));
		goto out;
	}
	doom_if_there(s, &d, xstrdup("/.ag2/seen"));	/* names streams, and is made again */
	ops = xcalloc(d.n + 1, sizeof(*ops));
	ops[0] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = path.data, .version = version };
	for (i = 0; i < d.n; i++)
		ops[i + 1] = (struct store_op){ .kind = STORE_OP_DELETE, .path = d.paths[i] };
	rc = store_commit(s, ops + (version == 0), d.n + (version != 0), e);
out:
	store_unlock(compaction);
	store_unlock(lock);
	for (i = 0; i < d.n; i++)
		free(d.paths[i]);
	free(d.paths);
	free(ops);
	buf_release(&path);
	return rc;
}

static int
run_rm(char **args, int n)
{
	struct store *s = open_store(STORE_WRITE);
	int i, status = 0;

	for (i = 0; i < n; i++)
		args[i] = (char *)stream_operand(s, args[i]);	/* all of them before anything goes */
	for (i = 0; i < n; i++) {
		struct err e = ERR_INIT;

		if (remove_stream(s, args[i], 0, &e) == 0)
			continue;
		if (e.code != ERR_NOINPUT && e.code != ERR_BUSY)
			fail(&e);
		if (e.code == ERR_BUSY)
			log_warn("stream %s is in use: %s", args[i], e.msg);
		else
			log_warn("%s", e.msg);
		status = status == 0 ? err_status(e.code) : status;
	}
	store_close(s);
	return status;
}

const struct command command_log_rm = {
	.name = "rm",
	.operands = "S...",
	.summary = "remove streams: log, segments, torn parts, episode, cursors",
	.min = 1, .max = -1,
	.run = run_rm,
	.more = "Of each stream all goes in one commit, and not while a turn is under way (status 75).\n",
};

struct stream_item {
	char *id;
	struct store_stat st;
};

struct stream_items {
	struct stream_item *all;
	size_t n, cap;
};

static int
note_stream(void *arg, const char *id, const struct store_stat *st)
{
	struct stream_items *list = arg;

	list->all = xgrow(list->all, list->n, &list->cap, sizeof(*list->all));
	list->all[list->n++] = (struct stream_item){ xstrdup(id), *st };
	return 0;
}

static struct stream_items
streams_of(struct store *s)
{
	struct stream_items list = { 0 };
	struct err e = ERR_INIT;

	if (stream_list(s, note_stream, &list, &e) < 0)
		fail(&e);
	return list;
}

static void
items_release(struct stream_items *list)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		free(list->all[i].id);
	free(list->all);
}

static const char *older_than;
static bool dry_run;

/* When something last happened in it; where the store does not know, the log's last event does. */
static double
last_activity(struct store *s, const struct stream_item *item)
{
	struct stream_reader *r;
	struct jsonl in;
	struct event ev;
	struct err e = ERR_INIT;
	double t = item->st.mtime;

	if (t >= 0 || stream_open_tail(s, item->id, 1, &r, NULL, &e) < 0)
		return t;
	jsonl_init(&in, item->id, JSONL_BAD_ONCE, stream_read, r);
	while (jsonl_next(&in, &ev, &e) > 0) {
		if (event_data(&ev, &e) != NULL)
			t = event_time(event_data(&ev, &e));
		event_release(&ev);
	}
	jsonl_release(&in);
	stream_close(r);
	return t;
}

static int
run_prune(char **args, int n)
{
	struct store *s;
	struct stream_items list;
	struct err e = ERR_INIT;
	double before, t;
	size_t i;

	if (older_than == NULL)
		usage("prune: --older-than is needed");
	if (parse_when(older_than, "--older-than", clock_now(), &before, &e) < 0)
		usage("prune: %s", e.msg);
	s = open_store(dry_run ? STORE_READ : STORE_WRITE);
	list = streams_of(s);
	for (i = 0; i < list.n; i++) {
		struct err why = ERR_INIT;

		t = last_activity(s, &list.all[i]);
		if (t < 0 || t >= before)
			continue;
		if (!dry_run && remove_stream(s, list.all[i].id, list.all[i].st.version, &why) < 0) {
			if (why.code != ERR_NOINPUT && why.code != ERR_BUSY && why.code != ERR_CONFLICT)
				fail(&why);
			continue;	/* gone, or in use after all */
		}
		if (dry_run)
			out_printf("%s\n", list.all[i].id);
	}
	items_release(&list);
	store_close(s);
	return 0;
}

static const struct opt prune_table[] = {
	{ 0, "older-than", OPT_STRING, &older_than, "T", "streams last written to before T: 30d, 2026-05-28" },
	{ 'n', "dry-run", OPT_FLAG, &dry_run, NULL, "only print their ids" },
	{ 0 }
};

const struct command command_log_prune = {
	.name = "prune",
	.operands = "--older-than=T [-n]",
	.summary = "remove the streams that were not written to for long",
	.table = prune_table,
	.max = 0,
	.run = run_prune,
	.more = "As 'log rm' does; a stream in use is passed over.\n"
		"\nExample:\n"
		"  ag2-store log prune --older-than 90d\n",
};

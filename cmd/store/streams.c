/* `log tail`, `log rm`, `log prune`: streams as a whole. */
#include "command.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/when.h"
#include "event/said.h"
#include "stream.h"
#include "upkeep.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- tail ---- */

static long lines = 10;
static bool follow;

#define POLL_MS 100

struct follower {
	struct store *s;
	const char *id;
	struct buf path;
	uint64_t version, offset;	/* of the log; all before offset was printed */
	bool begun;			/* offset was compared with what is before it */
	struct buf last;		/* the line printed last, without its newline: it tells where we are in a log that was written anew */
};

static void
print_event_line(struct follower *f, const char *line, size_t len)
{
	cli_write(line, len);
	out_write("\n", 1);
	buf_reset(&f->last);
	buf_add(&f->last, line, len);
}

/* The events that in gives from `skip` on (an offset in all that it gives); one that is not ended yet waits. */
static void
print_from(struct follower *f, struct jsonl *in, uint64_t skip)
{
	struct event ev;
	struct err e = ERR_INIT;
	int rc;

	while ((rc = jsonl_next(in, &ev, &e)) > 0) {
		if (ev.offset >= skip)
			print_event_line(f, ev.line, ev.len);
		event_release(&ev);
	}
	if (rc < 0)
		fail(&e);
}

struct window {
	struct store_file *file;
	uint64_t at, end;
};

static ssize_t
read_window(void *arg, void *data, size_t len, struct err *e)
{
	struct window *w = arg;
	ssize_t n;

	if (len > w->end - w->at)
		len = (size_t)(w->end - w->at);
	n = len > 0 ? store_file_read(w->file, w->at, data, len, e) : 0;
	w->at += n > 0 ? (uint64_t)n : 0;
	return n;
}

/* Where the whole lines of [from, size) end; the last one may lack its newline when it is an event. */
static uint64_t
complete_end(struct store_file *file, uint64_t from, uint64_t size)
{
	char block[65536];
	uint64_t end = size, start;
	struct err e = ERR_INIT;
	struct event ev;
	struct buf line = BUF_INIT;
	const char *newline = NULL;
	ssize_t n;

	while (newline == NULL && end > from) {
		start = end - from > sizeof(block) ? end - sizeof(block) : from;
		n = store_file_read(file, start, block, (size_t)(end - start), &e);
		if (n <= 0)
			break;
		newline = memrchr(block, '\n', (size_t)n);
		end = newline ? start + (uint64_t)(newline - block) + 1 : start;
	}
	if (end == size || size - end > EVENT_LINE_MAX)
		return size;
	buf_reserve(&line, (size_t)(size - end));
	n = store_file_read(file, end, line.data, (size_t)(size - end), &e);
	if (n == (ssize_t)(size - end) && event_view(&ev, line.data, (size_t)n, &e) == 0) {
		event_release(&ev);
		end = size;
	}
	buf_release(&line);
	return end;
}

/* Whether what is before our place in the log still is what was printed last. */
static bool
still_there(const struct follower *f, struct store_file *file, uint64_t size)
{
	size_t len = f->last.len;
	char *have;
	bool same = false;
	uint64_t back;

	if (f->offset > size)
		return false;
	if (len == 0)
		return f->offset == 0 || !f->begun;
	have = xmalloc(len + 2);
	for (back = 0; back <= 2 && !same && f->offset >= len + back; back++)	/* a newline behind it, or a CR of it and one, or none */
		same = store_file_read(file, f->offset - len - back, have, len, NULL) == (ssize_t)len && memcmp(have, f->last.data, len) == 0;
	free(have);
	return same;
}

/*
 * Compaction or somebody else has written the log anew: what was printed last is looked for in the full history, and all that
 * follows it there was not printed yet. When it is nowhere, this is another stream of that name.
 */
static void
find_again(struct follower *f)
{
	struct stream_reader *r;
	struct jsonl in;
	struct event ev;
	struct err e = ERR_INIT;
	uint64_t behind = 0;
	int pass;

	for (pass = 0; pass < 2; pass++) {
		if (stream_open(f->s, f->id, true, &r, &e) < 0) {
			if (e.code == ERR_NOINPUT)
				return;
			fail(&e);
		}
		jsonl_init(&in, f->id, JSONL_BAD_SKIP, stream_read, r);
		if (pass == 1) {
			print_from(f, &in, behind);
		} else {
			while (jsonl_next(&in, &ev, &e) > 0) {
				if (ev.len == f->last.len && memcmp(ev.line, f->last.data, ev.len) == 0)
					behind = ev.offset + ev.len;
				event_release(&ev);
			}
		}
		jsonl_release(&in);
		stream_close(r);
	}
}

/* Prints what has come to the log since. */
static void
catch_up(struct follower *f)
{
	struct window w = { .at = f->offset };
	struct store_stat st;
	struct jsonl in;
	struct err e = ERR_INIT;

	if (store_file_open(f->s, f->path.data, &w.file, &st, &e) < 0) {
		if (e.code != ERR_ABSENT)
			fail(&e);
		return;		/* removed, and perhaps begun again later */
	}
	f->version = st.version;
	if (!f->begun || still_there(f, w.file, st.size)) {
		w.end = complete_end(w.file, f->offset, st.size);
		jsonl_init(&in, f->id, JSONL_BAD_ONCE, read_window, &w);
		jsonl_set_position(&in, 0, f->offset);
		print_from(f, &in, f->offset);
		jsonl_release(&in);
		f->offset = w.end;
		store_file_close(w.file);
	} else {
		f->offset = complete_end(w.file, 0, st.size);
		store_file_close(w.file);
		find_again(f);
	}
	f->begun = true;
	out_flush();
}

/* Until the log has another version. A reader that has gone away is noticed here, not at the next event. */
static void
wait_for_change(struct follower *f)
{
	struct pollfd out = { .fd = 1 };
	struct store_stat st;
	struct err e = ERR_INIT;
	int there;

	for (;;) {
		if (poll(&out, 1, POLL_MS) > 0 && out.revents & (POLLERR | POLLHUP | POLLNVAL))
			cli_die_by(SIGPIPE);
		there = store_stat(f->s, f->path.data, &st, &e);
		if (there < 0 && e.code != ERR_BUSY && e.code != ERR_UNAVAIL)
			fail(&e);
		if (there > 0 && st.version != f->version)
			return;
	}
}

static struct stream_reader *
open_tail(struct follower *f, uint64_t count, struct jsonl *in)
{
	struct stream_reader *r;
	struct err e = ERR_INIT;

	if (stream_open_tail(f->s, f->id, count, &r, &f->offset, &e) < 0)
		fail(&e);
	jsonl_init(in, f->id, JSONL_BAD_ONCE, stream_read, r);
	if (f->offset > 0)
		jsonl_set_position(in, 0, f->offset);
	return r;
}

/* The line before the place where following begins: it is not printed, but shows where we are. */
static void
note_last(struct follower *f)
{
	struct jsonl in;
	struct stream_reader *r = open_tail(f, 1, &in);
	struct event ev;
	struct err e = ERR_INIT;

	while (jsonl_next(&in, &ev, &e) > 0) {
		buf_reset(&f->last);
		buf_add(&f->last, ev.line, ev.len);
		event_release(&ev);
	}
	jsonl_release(&in);
	stream_close(r);
}

static noreturn void
follow_log(struct follower *f)
{
	for (;;) {
		catch_up(f);
		wait_for_change(f);
	}
}

static int
run_tail(char **args, int n)
{
	struct follower f = { .s = open_store(STORE_READ), .path = BUF_INIT, .last = BUF_INIT };
	struct stream_reader *r;
	struct jsonl in;

	f.id = stream_operand(f.s, n > 0 ? args[0] : "@last");
	stream_path(&f.path, f.id);
	if (follow && lines == 0)
		note_last(&f);
	r = open_tail(&f, (uint64_t)lines, &in);
	if (!follow)
		print_from(&f, &in, f.offset);
	jsonl_release(&in);
	stream_close(r);
	if (follow)
		follow_log(&f);
	buf_release(&f.last);
	buf_release(&f.path);
	store_close(f.s);
	return 0;
}

static const struct opt tail_table[] = {
	{ 'n', "lines", OPT_INT, &lines, "N", "how many events (10)" },
	{ 'f', "follow", OPT_FLAG, &follow, NULL, "go on with what is appended, across compaction, until killed" },
	{ 0 }
};

const struct command command_tail = {
	.name = "tail",
	.operands = "[-f] [-n N] [S]",
	.summary = "print the last events of a stream's current log (default: @last)",
	.table = tail_table,
	.max = 1,
	.run = run_tail,
	.more = "Example:\n"
		"  ag2-store log tail -f | jq -r .type\n",
};

/* ---- rm, prune ---- */

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

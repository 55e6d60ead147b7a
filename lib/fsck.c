#include "fsck.h"

#include "aggregate/pending.h"
#include "base/alloc.h"
#include "base/sha1.h"
#include "event/jsonl.h"
#include "path.h"
#include "stream.h"
#include "store/backend.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>

#define LOG_DIR "/log"
#define SUFFIX ".jsonl"
#define DROPPED ".dropped-"
#define IMPORT "/.ag2/import"
#define REPAIR_MAX (1u << 30)	/* bytes of a log of which lines are taken out */
#define TRIES 20
#define LOOKS 5			/* at what may just be being written, before it counts as wrong */
#define PAUSE_MS 100

struct fsck {
	struct store *s;
	bool repair;
	store_finding_fn *fn;
	void *arg;
};

struct names {
	char **items;
	size_t n, cap;
};

static void
names_add(struct names *l, const char *name, size_t len)
{
	l->items = xgrow(l->items, l->n, &l->cap, sizeof(*l->items));
	l->items[l->n++] = xmemdup0(name, len);
}

static void
names_release(struct names *l)
{
	while (l->n > 0)
		free(l->items[--l->n]);
	free(l->items);
}

/* ---- Lines that are no events ---- */

/* Bytes [from, to) of a log, the lines with these numbers. */
struct region {
	uint64_t from, to, line, last;
};

struct scan {
	struct store_file *file;
	uint64_t at;		/* what was read of it */
	uint64_t size, version;
	struct region *bad;
	size_t n, cap;
	uint64_t end, number;	/* of what was looked at, and of the line that begins there */
};

static ssize_t
read_scan(void *arg, void *data, size_t len, struct err *e)
{
	struct scan *c = arg;
	ssize_t n = store_file_read(c->file, c->at, data, len, e);

	c->at += n > 0 ? (uint64_t)n : 0;
	return n;
}

static void
add_region(struct scan *c, uint64_t from, uint64_t to, uint64_t line, uint64_t last)
{
	struct region *before = c->n > 0 ? &c->bad[c->n - 1] : NULL;

	if (before != NULL && before->to == from) {
		before->to = to;
		before->last = last;
		return;
	}
	c->bad = xgrow(c->bad, c->n, &c->cap, sizeof(*c->bad));
	c->bad[c->n++] = (struct region){ from, to, line, last };
}

static bool
is_good(const struct event *ev)
{
	const char *why;
	size_t at;

	return json_check(ev->line, ev->len, &at, &why) == 0;
}

/* From c->end, line c->number, on; what was found before stays. */
static int
scan_on(struct scan *c, struct err *e)
{
	struct jsonl in;
	struct event ev;
	uint64_t bad = 0, begin;
	int rc;

	jsonl_init(&in, "", JSONL_BAD_QUIET, read_scan, c);
	jsonl_set_position(&in, c->number, c->end);
	c->at = c->end;
	while ((rc = jsonl_next(&in, &ev, e)) > 0) {
		begin = ev.offset;
		if (in.bad > bad)
			add_region(c, c->end, begin, c->number, ev.number - 1);
		bad = in.bad;
		c->end = begin + ev.len + (begin + ev.len < c->size);
		c->number = ev.number + 1;
		if (!is_good(&ev))
			add_region(c, begin, c->end, ev.number, ev.number);
		event_release(&ev);
	}
	if (rc == 0 && in.bad > bad)
		add_region(c, c->end, c->size, c->number, in.number - 1);
	jsonl_release(&in);
	return rc;
}

/* Whether the last line has no newline and is no event: it may be one that is being written. */
static int
is_torn(struct scan *c, struct err *e)
{
	char last;
	ssize_t n;

	if (c->n == 0 || c->bad[c->n - 1].to != c->size)
		return 0;
	n = store_file_read(c->file, c->size - 1, &last, 1, e);
	return n < 0 ? -1 : n == 1 && last != '\n';
}

/* 1, 0 when it is not there (any more), -1. */
static int
open_scan(struct store *s, const char *path, struct scan *c, struct err *e)
{
	struct err why = ERR_INIT;
	struct store_stat st;

	store_file_close(c->file);
	c->file = NULL;
	if (store_file_open(s, path, &c->file, &st, &why) < 0)
		return why.code == ERR_ABSENT ? 0 : err_set(e, why.code, "%s", why.msg);
	c->size = st.size;
	c->version = st.version;
	return 1;
}

/* The regions of the file. A line that others are just writing is waited for. */
static int
scan_log(struct store *s, const char *path, struct scan *c, struct err *e)
{
	struct region torn;
	uint64_t size = 0, version = 0;
	int rc = open_scan(s, path, c, e), looks = 0, tries = 0;

	c->n = 0;
	c->end = 0;
	c->number = 1;
	if (rc > 0)
		rc = scan_on(c, e) < 0 ? -1 : is_torn(c, e);
	while (rc > 0 && looks < LOOKS && tries++ < TRIES) {
		looks = c->size == size && c->version == version ? looks + 1 : 0;
		size = c->size;
		version = c->version;
		torn = c->bad[--c->n];
		poll(NULL, 0, PAUSE_MS);
		rc = open_scan(s, path, c, e);
		c->end = torn.from < c->size ? torn.from : 0;
		c->number = c->end > 0 ? torn.line : 1;
		c->n = c->end > 0 ? c->n : 0;
		if (rc > 0)
			rc = scan_on(c, e) < 0 ? -1 : is_torn(c, e);
	}
	/* One that is still being written to after all that time is somebody's work. */
	if (rc > 0 && looks < LOOKS)
		c->n--;
	return rc < 0 ? -1 : 0;
}

static void
scan_release(struct scan *c)
{
	store_file_close(c->file);
	free(c->bad);
}

/* Splits the beginning of the log, up to the last region's end: what stays, what goes. */
static int
split(struct scan *c, struct buf *stays, struct buf *goes, unsigned char sha1[20], struct err *e)
{
	uint64_t upto = c->bad[c->n - 1].to, at = 0;
	struct buf all = BUF_INIT_MAX(REPAIR_MAX);
	struct sha1 h;
	size_t i;
	int rc;

	rc = store_file_add(c->file, 0, upto, &all, e);
	if (rc < 0 || all.len < upto) {
		buf_release(&all);
		return rc < 0 ? -1 : err_set(e, ERR_CONFLICT, "a log became shorter while it was read");
	}
	sha1_init(&h);
	sha1_add(&h, all.data, all.len);
	sha1_end(&h, sha1);
	for (i = 0; i < c->n; i++) {
		buf_add(stays, all.data + at, (size_t)(c->bad[i].from - at));
		buf_add(goes, all.data + c->bad[i].from, (size_t)(c->bad[i].to - c->bad[i].from));
		at = c->bad[i].to;
	}
	buf_release(&all);
	return 0;
}

/* Moves the regions to a file of their own, in one commit. ERR_CONFLICT when the log has changed before their end. */
static int
set_aside(struct fsck *f, const char *path, const char *id, struct scan *c, struct buf *aside, struct err *e)
{
	struct buf stays = BUF_INIT, goes = BUF_INIT;
	struct store_op ops[3];
	int rc = -1;

	ops[2] = (struct store_op){ .kind = STORE_OP_REPLACE_PREFIX, .path = path, .upto = c->bad[c->n - 1].to };
	if (stream_torn_path(f->s, id, aside, e) < 0 || split(c, &stays, &goes, ops[2].sha1, e) < 0)
		goto out;
	ops[0] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = aside->data };
	ops[1] = (struct store_op){ .kind = STORE_OP_WRITE, .path = aside->data, .data = goes.data, .len = goes.len };
	ops[2].data = stays.data;
	ops[2].len = stays.len;
	rc = store_commit(f->s, ops, 3, e);
out:
	buf_release(&stays);
	buf_release(&goes);
	return rc;
}

static void
tell_regions(struct fsck *f, const char *path, const struct scan *c, const char *repaired)
{
	size_t i;

	for (i = 0; i < c->n; i++) {
		const struct region *r = &c->bad[i];

		if (r->last > r->line)
			store_found(f->fn, f->arg, path, "line", repaired, "lines %" PRIu64 " to %" PRIu64 " (%" PRIu64 " bytes at %" PRIu64 ") are no events",
			    r->line, r->last, r->to - r->from, r->from);
		else
			store_found(f->fn, f->arg, path, "line", repaired, "line %" PRIu64 " (%" PRIu64 " bytes at %" PRIu64 ") is no event",
			    r->line, r->to - r->from, r->from);
	}
}

static int
check_log(struct fsck *f, const char *path, const char *id, struct err *e)
{
	struct scan c = { NULL };
	struct buf aside = BUF_INIT;
	char *repaired = NULL;
	struct err why = ERR_INIT;
	int rc, tries = 0;

	do {
		rc = scan_log(f->s, path, &c, &why);
		if (rc < 0 || c.n == 0 || !f->repair || c.bad[c.n - 1].to > REPAIR_MAX)
			break;
		rc = set_aside(f, path, id, &c, &aside, &why);
	} while (rc < 0 && why.code == ERR_CONFLICT && ++tries < TRIES);
	if (rc == 0 && aside.len > 0)
		repaired = xasprintf("moved to %s", aside.data);
	if (rc == 0)
		tell_regions(f, path, &c, repaired);
	/* A file that is damaged was told of by the back end's check. */
	if (rc < 0 && why.code == ERR_DATA)
		rc = 0;
	else if (rc < 0)
		err_set(e, why.code, "%s", why.msg);
	free(repaired);
	buf_release(&aside);
	scan_release(&c);
	return rc;
}

/* ---- Streams and their segments ---- */

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int
note_file(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	if (!dir)
		names_add(arg, name, strlen(name));
	return 0;
}

/* "ID.jsonl" and "ID.dropped-N.jsonl": the length of ID, and N (0 for the log). 0 when it is neither. */
static size_t
log_id(const char *name, uint64_t *number)
{
	size_t len = strlen(name), suffix = strlen(SUFFIX);
	const char *dropped = strstr(name, DROPPED);
	char *end;

	*number = 0;
	if (len <= suffix || strcmp(name + len - suffix, SUFFIX) != 0)
		return 0;
	if (dropped == NULL)
		return len - suffix;
	*number = strtoull(dropped + strlen(DROPPED), &end, 10);
	return *number > 0 && end == name + len - suffix ? (size_t)(dropped - name) : 0;
}

struct unfinished {
	uint64_t segment, log;	/* their versions */
};

/* Whether the lines of the last segment still begin the log: AG2 writes the one before the other. */
static int
find_unfinished(struct store *s, const char *id, uint64_t number, struct unfinished *u, struct err *e)
{
	struct buf path = BUF_INIT;
	struct store_stat st;
	struct err why = ERR_INIT;
	int rc;

	*u = (struct unfinished){ 0 };
	stream_path(&path, id);
	rc = store_stat(s, path.data, &st, e);
	/* Gone by now, or damaged, which the back end's check told. */
	if (rc > 0 && stream_segment_unfinished(s, id, number, &u->segment, &why) < 0)
		rc = why.code == ERR_NOINPUT || why.code == ERR_ABSENT || why.code == ERR_DATA ? 0 : err_set(e, why.code, "%s", why.msg);
	u->log = st.version;
	buf_release(&path);
	return rc > 0 ? u->segment != 0 : rc;
}

/* It is told, and removed with `repair` unless the log has changed; what it holds the log holds. */
static int
remove_unfinished(struct fsck *f, const char *id, uint64_t number, const struct unfinished *u, struct err *e)
{
	struct buf segment = BUF_INIT, log = BUF_INIT;
	struct store_op ops[3];
	struct err why = ERR_INIT;
	int rc;

	stream_segment_path(&segment, id, number);
	stream_path(&log, id);
	ops[0] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = segment.data, .version = u->segment };
	ops[1] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = log.data, .version = u->log };
	ops[2] = (struct store_op){ .kind = STORE_OP_DELETE, .path = segment.data };
	rc = f->repair ? store_commit(f->s, ops, 3, &why) : -1;
	store_found(f->fn, f->arg, segment.data, "segment", rc == 0 ? "removed: the log has them" : NULL,
	    "a compaction did not finish: its lines still begin the log, and AG2 reads them twice");
	rc = f->repair && rc < 0 && why.code != ERR_CONFLICT ? err_set(e, why.code, "%s", why.msg) : 0;
	buf_release(&segment);
	buf_release(&log);
	return rc;
}

static int
check_unfinished(struct fsck *f, const char *id, uint64_t number, struct err *e)
{
	struct unfinished u, before;
	int looks = 0, rc = find_unfinished(f->s, id, number, &u, e);

	while (rc > 0 && looks++ < LOOKS) {
		before = u;
		poll(NULL, 0, PAUSE_MS);
		rc = find_unfinished(f->s, id, number, &u, e);
		if (u.segment != before.segment)
			looks = 0;
	}
	return rc <= 0 ? rc : remove_unfinished(f, id, number, &u, e);
}

/* The names of one stream, names[0..n): its segments are 1, 2, 3 ... */
static int
check_stream(struct fsck *f, char *const *names, size_t n, size_t id_len, struct err *e)
{
	char *id = xmemdup0(names[0], id_len), *path;
	uint64_t number, highest = 0, count = 0;
	size_t i;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++) {
		log_id(names[i], &number);
		count += number > 0;
		highest = number > highest ? number : highest;
		path = xasprintf(LOG_DIR "/%s", names[i]);
		rc = check_log(f, path, id, e);
		free(path);
	}
	if (rc == 0 && count < highest) {
		path = xasprintf(LOG_DIR "/%s" SUFFIX, id);
		store_found(f->fn, f->arg, path, "segment", NULL, "of its %" PRIu64 " dropped segments %" PRIu64 " %s missing", highest, highest - count,
		    highest - count == 1 ? "is" : "are");
		free(path);
	}
	if (rc == 0 && highest > 0)
		rc = check_unfinished(f, id, highest, e);
	free(id);
	return rc;
}

/* '.' is before all other bytes of ids but '-': the names of one stream are put together by their ids. */
static int
by_stream(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	uint64_t number;
	size_t n = log_id(x, &number), m = log_id(y, &number);
	int c = memcmp(x, y, n < m ? n : m);

	if (c == 0 && n != m)
		c = n < m ? -1 : 1;
	return c != 0 ? c : strcmp(x, y);
}

static int
check_streams(struct fsck *f, struct names *ids, struct err *e)
{
	struct names all = { 0 }, logs = { 0 };
	uint64_t number;
	size_t i, n, len;
	char *id;
	int rc = store_list(f->s, LOG_DIR, 0, note_file, &all, e);

	for (i = 0; i < all.n; i++) {
		len = log_id(all.items[i], &number);
		id = xmemdup0(all.items[i], len);
		if (len > 0 && stream_id_check(id, NULL) == 0)
			names_add(&logs, all.items[i], strlen(all.items[i]));
		free(id);
	}
	if (logs.n > 1)
		qsort(logs.items, logs.n, sizeof(*logs.items), by_stream);
	for (i = 0; rc == 0 && i < logs.n; i += n) {
		len = log_id(logs.items[i], &number);
		for (n = 1; i + n < logs.n && log_id(logs.items[i + n], &number) == len && memcmp(logs.items[i], logs.items[i + n], len) == 0; n++)
			;
		names_add(ids, logs.items[i], len);
		rc = check_stream(f, logs.items + i, n, len, e);
	}
	names_release(&all);
	names_release(&logs);
	return rc;
}

/* ---- What upkeep has covered ---- */

static int
note_dir(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	if (dir)
		names_add(arg, name, strlen(name));
	return 0;
}

static int
remove_leftover(struct fsck *f, const char *path, const char *what, struct err *e)
{
	if (f->repair && store_delete(f->s, path, e) < 0)
		return -1;
	store_found(f->fn, f->arg, path, "leftover", f->repair ? "removed" : NULL, "%s", what);
	return 0;
}

/* A log that AG2 wrote from its own memory, or someone cut, has lost what was appended meanwhile. */
static int
check_cursor(struct fsck *f, const char *path, const char *key, const char *id, struct err *e)
{
	struct cursor c;
	struct pending p = { 0 };
	struct err why = ERR_INIT;
	char *log = xasprintf(LOG_DIR "/%s" SUFFIX, id);
	int rc = cursor_read(f->s, path, &c, &why);

	if (rc < 0 && why.code == ERR_DATA) {
		store_found(f->fn, f->arg, path, "cursor", NULL, "is no cursor: ag2-aggregate --stream %s --reset begins anew", id);
		rc = 0;
	} else if (rc == 0 && c.version != 0) {
		rc = pending_read(&p, f->s, id, &c, JSONL_BAD_QUIET, &why);
		pending_release(&p);
		if (rc < 0 && why.code == ERR_DATA) {
			store_found(f->fn, f->arg, log, "cursor", NULL, "is shorter than its cursor, or another log: '%s' has covered %" PRIu64
			    " events, and the last of them is not there any more; it was overwritten or cut", key, c.covered);
			rc = 0;
		}
	}
	if (rc < 0)
		err_set(e, why.code, "%s", why.msg);
	cursor_release(&c);
	free(log);
	return rc;
}

static bool
is_stream(const struct names *ids, const char *id)
{
	return ids->n > 0 && bsearch(&id, ids->items, ids->n, sizeof(*ids->items), by_name) != NULL;
}

/* Whether there is nothing of the stream: it may have been made since the logs were listed. */
static int
is_gone(struct store *s, const struct names *ids, const char *id, struct err *e)
{
	struct stream_reader *r;
	struct err why = ERR_INIT;

	if (is_stream(ids, id))
		return 0;
	if (stream_open(s, id, true, &r, &why) == 0) {
		stream_close(r);
		return 0;
	}
	return why.code == ERR_NOINPUT ? 1 : why.code == ERR_DATA ? 0 : err_set(e, why.code, "%s", why.msg);
}

static int
check_key(struct fsck *f, const char *key, const struct names *ids, struct err *e)
{
	struct names streams = { 0 };
	char *dir = xasprintf(CURSOR_DIR "/%s", key), *path;
	size_t i;
	int rc = store_list(f->s, dir, STORE_LIST_ALL, note_file, &streams, e), gone;

	for (i = 0; rc == 0 && i < streams.n; i++) {
		path = xasprintf("%s/%s", dir, streams.items[i]);
		gone = is_gone(f->s, ids, streams.items[i], e);
		if (gone > 0)
			rc = store_stat(f->s, path, NULL, e) > 0 ? remove_leftover(f, path, "is the cursor of a stream that is not there", e) : 0;
		else
			rc = gone < 0 ? -1 : check_cursor(f, path, key, streams.items[i], e);
		free(path);
	}
	names_release(&streams);
	free(dir);
	return rc;
}

static int
check_cursors(struct fsck *f, struct names *ids, struct err *e)
{
	struct names keys = { 0 };
	size_t i;
	int rc = store_list(f->s, CURSOR_DIR, STORE_LIST_ALL, note_dir, &keys, e);

	if (ids->n > 1)
		qsort(ids->items, ids->n, sizeof(*ids->items), by_name);
	for (i = 0; rc == 0 && i < keys.n; i++)
		rc = check_key(f, keys.items[i], ids, e);
	names_release(&keys);
	return rc;
}

static int
check_import(struct fsck *f, struct err *e)
{
	struct buf path = BUF_INIT_MAX(PATH_BYTES_MAX + 1);
	struct err why = ERR_INIT;
	int rc = store_read(f->s, IMPORT, &path, NULL, &why);

	if (rc == 0 && path.len > 0)
		store_found(f->fn, f->arg, path.data, "unfinished", NULL, "an import has written its beginning only: run it again");
	else if (rc < 0)
		rc = why.code == ERR_ABSENT || why.code == ERR_DATA ? 0 : err_set(e, why.code, "%s", why.msg);
	buf_release(&path);
	return rc;
}

int
fsck(struct store *s, bool repair, store_finding_fn *fn, void *arg, struct err *e)
{
	struct fsck f = { .s = s, .repair = repair, .fn = fn, .arg = arg };
	struct names ids = { 0 };
	int rc = store_check(s, repair, fn, arg, e);

	if (rc <= 0)
		return rc;
	rc = check_streams(&f, &ids, e);
	if (rc == 0)
		rc = check_cursors(&f, &ids, e);
	if (rc == 0)
		rc = check_import(&f, e);
	names_release(&ids);
	return rc;
}

#include "stream.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "moved.h"
#include "path.h"

#include <errno.h>
#include <stdlib.h>

#define LOG_DIR "/log"
#define SUFFIX ".jsonl"
#define BLOCK (64 * 1024)
#define REPAIR_MAX (1u << 30)	/* bytes of a log that is rewritten to take a torn tail off */
#define TRIES 100		/* how often others may change a log under us */
#define HELD_MAX 64		/* segments that a reader holds open */

/* ---- ids ---- */

void
stream_path(struct buf *out, const char *id)
{
	buf_reset(out);
	buf_addf(out, LOG_DIR "/%s" SUFFIX, id);
}

struct list_call {
	stream_list_fn *fn;
	void *arg;
};

static int
list_entry(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	struct list_call *call = arg;
	size_t len = strlen(name), suffix = sizeof(SUFFIX) - 1;
	char *id;
	int rc = 0;

	if (dir || len <= suffix || strcmp(name + len - suffix, SUFFIX) != 0)
		return 0;
	id = xmemdup0(name, len - suffix);
	if (stream_id_check(id, NULL) == 0)
		rc = call->fn(call->arg, id, st);
	free(id);
	return rc;
}

int
stream_list(struct store *s, stream_list_fn *fn, void *arg, struct err *e)
{
	struct list_call call = { fn, arg };

	return store_list(s, LOG_DIR, STORE_LIST_STAT, list_entry, &call, e);
}

struct last {
	char *id;
	uint64_t version;
};

static int
later(void *arg, const char *id, const struct store_stat *st)
{
	struct last *last = arg;

	if (last->id != NULL && st->version <= last->version)
		return 0;
	free(last->id);
	last->id = xstrdup(id);
	last->version = st->version;
	return 0;
}

int
stream_resolve(struct store *s, const char *arg, char **id, bool *fresh, struct err *e)
{
	struct last last = { 0 };
	struct buf uuid = BUF_INIT;

	if (fresh != NULL)
		*fresh = false;
	if (strcmp(arg, "@last") == 0) {
		if (stream_list(s, later, &last, e) < 0) {
			free(last.id);
			return -1;
		}
		*id = last.id;
		return last.id ? 0 : err_set(e, ERR_NOINPUT, "@last: there is no stream in %s", store_url(s));
	}
	if (strcmp(arg, "@new") == 0) {
		if (uuid_add(&uuid, e) < 0)
			return -1;
		*id = buf_detach(&uuid, NULL);
		if (fresh != NULL)
			*fresh = true;
		return 0;
	}
	if (arg[0] == '@')
		return err_set(e, ERR_USAGE, "stream '%.60s': only @last and @new have a meaning", arg);
	if (stream_id_check(arg, e) < 0)
		return -1;
	*id = xstrdup(arg);
	return 0;
}

/* ---- appending ---- */

static bool
blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool
is_event(const char *line, size_t len, bool first)
{
	struct event ev;

	if (first && len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
		line += 3;
		len -= 3;
	}
	if (event_view(&ev, line, len, NULL) < 0)
		return false;
	event_release(&ev);
	return true;
}

/* What a log ends with. */
struct tail {
	uint64_t size, version;
	uint64_t keep;		/* what follows this offset is a torn tail; size when there is none */
	bool newline;		/* the kept part ends with a newline, or is empty */
};

static int
read_at(struct store_file *f, uint64_t offset, size_t len, struct buf *out, struct err *e)
{
	buf_reset(out);
	if (store_file_add(f, offset, offset + len, out, e) < 0)
		return -1;
	return out->len == len ? 0 : err_set(e, ERR_IO, "a log became shorter while it was read");
}

/*
 * Judges the end of the log from its last bytes (the window begins at offset base). Lines that are no events are taken off
 * until one is, blank lines with them. False when the window is too small to tell.
 */
static bool
judge(const struct buf *window, uint64_t base, struct tail *t)
{
	size_t end = window->len, content, start;

	for (;;) {
		content = end;
		while (content > 0 && blank(window->data[content - 1]))
			content--;
		start = content;
		while (start > 0 && window->data[start - 1] != '\n')
			start--;
		if (start == 0 && base > 0)
			return false;
		if (content == 0 || is_event(window->data + start, content - start, base + start == 0))
			break;
		end = start;
	}
	t->keep = base + end;
	t->newline = t->keep == 0 || window->data[end - 1] == '\n';
	return true;
}

static int
inspect_file(struct store_file *f, struct tail *t, struct err *e)
{
	struct buf window = BUF_INIT;
	uint64_t len = 8192;
	bool known = false;
	int rc = 0;

	while (!known) {
		if (len > t->size)
			len = t->size;
		rc = read_at(f, t->size - len, (size_t)len, &window, e);
		if (rc < 0)
			break;
		known = judge(&window, t->size - len, t);
		if (!known && len > EVENT_LINE_MAX) {	/* no line of ours: leave it alone */
			t->keep = t->size;
			t->newline = window.data[window.len - 1] == '\n';
			known = true;
		}
		len *= 4;
	}
	buf_release(&window);
	return rc;
}

static int
inspect(struct store *s, const char *path, struct tail *t, struct err *e)
{
	struct store_file *f;
	struct store_stat st;
	struct err why = ERR_INIT;
	int rc;

	*t = (struct tail){ .newline = true };
	if (store_file_open(s, path, &f, &st, &why) < 0)
		return why.code == ERR_ABSENT ? 0 : err_set(e, why.code, "%s", why.msg);
	t->size = st.size;
	t->version = st.version;
	rc = inspect_file(f, t, e);
	store_file_close(f);
	return rc;
}

/* The number behind `ID.WORD-` in a name that ends with suffix; 0 when it is no such name. */
static uint64_t
part_number(const char *name, const char *id, const char *word, const char *suffix)
{
	size_t len = strlen(id), digits;

	if (strncmp(name, id, len) != 0 || strncmp(name + len, word, strlen(word)) != 0)
		return 0;
	name += len + strlen(word);
	digits = strspn(name, "0123456789");
	if (digits == 0 || digits > 18 || strcmp(name + digits, suffix) != 0)
		return 0;
	return strtoull(name, NULL, 10);
}

struct torn_search {
	const char *id;
	uint64_t highest;
};

static int
torn_entry(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	struct torn_search *search = arg;
	uint64_t n = part_number(name, search->id, ".torn-", "");

	if (n > search->highest)
		search->highest = n;
	return 0;
}

int
stream_torn_path(struct store *s, const char *id, struct buf *out, struct err *e)
{
	struct torn_search search = { .id = id };

	if (store_list(s, LOG_DIR, 0, torn_entry, &search, e) < 0)
		return -1;
	buf_reset(out);
	buf_addf(out, LOG_DIR "/%s.torn-%llu", id, (unsigned long long)search.highest + 1);
	return 0;
}

/* The last good line lacks its newline, as in every log that AG2 wrote. ERR_CONFLICT when the log changed meanwhile. */
static int
append_after_newline(struct store *s, const char *path, const struct tail *t, const void *lines, size_t len, uint64_t *offset,
    struct err *e)
{
	struct buf data = BUF_INIT;
	struct store_op ops[2];
	int rc;

	buf_addch(&data, '\n');
	buf_add(&data, lines, len);
	ops[0] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = path, .version = t->version };
	ops[1] = (struct store_op){ .kind = STORE_OP_APPEND, .path = path, .data = data.data, .len = data.len };
	rc = store_commit(s, ops, 2, e);
	if (rc == 0 && offset != NULL)
		*offset = ops[1].offset + 1;
	buf_release(&data);
	return rc;
}

/* Sets the torn tail aside and appends, in one commit. ERR_CONFLICT when the log changed meanwhile. */
static int
append_after_repair(struct store *s, const char *id, const char *path, const struct tail *t, const void *lines, size_t len,
    uint64_t *offset, struct err *e)
{
	struct buf whole = BUF_INIT_MAX(REPAIR_MAX), torn = BUF_INIT, aside = BUF_INIT;
	struct store_op ops[4];
	struct store_stat st;
	int rc = -1;

	if (stream_torn_path(s, id, &aside, e) < 0 || store_read(s, path, &whole, &st, e) < 0)
		goto out;
	if (st.version != t->version) {
		err_set(e, ERR_CONFLICT, "'%s' was changed by someone else", path);
		goto out;
	}
	buf_add(&torn, whole.data + t->keep, whole.len - t->keep);
	whole.len = t->keep;
	whole.max = 0;
	if (!t->newline)
		buf_addch(&whole, '\n');
	if (offset != NULL)
		*offset = whole.len;
	buf_add(&whole, lines, len);
	ops[0] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = path, .version = t->version };
	ops[1] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = aside.data };
	ops[2] = (struct store_op){ .kind = STORE_OP_WRITE, .path = aside.data, .data = torn.data, .len = torn.len };
	ops[3] = (struct store_op){ .kind = STORE_OP_WRITE, .path = path, .data = whole.data, .len = whole.len };
	rc = store_commit(s, ops, 4, e);
	if (rc == 0)
		log_warn("stream %s ended in %zu bytes that are no event: moved to %s", id, torn.len, aside.data);
out:
	buf_release(&whole);
	buf_release(&torn);
	buf_release(&aside);
	return rc;
}

static int
try_append(struct store *s, const char *id, const char *path, const void *lines, size_t len, uint64_t *offset, struct err *e)
{
	struct tail t;

	if (inspect(s, path, &t, e) < 0)
		return -1;
	if (t.keep < t.size && t.size > REPAIR_MAX) {
		log_warn("stream %s ends in a line that is no event; the log is too large to take it off", id);
		t.keep = t.size;
		t.newline = false;
	}
	if (t.keep < t.size)
		return append_after_repair(s, id, path, &t, lines, len, offset, e);
	if (!t.newline)
		return append_after_newline(s, path, &t, lines, len, offset, e);
	return store_append(s, path, lines, len, offset, e);
}

int
stream_append(struct store *s, const char *id, const void *lines, size_t len, uint64_t *offset, struct err *e)
{
	struct buf path = BUF_INIT;
	struct err why = ERR_INIT;
	int rc, tries = 0;

	stream_path(&path, id);
	do
		rc = try_append(s, id, path.data, lines, len, offset, &why);
	while (rc < 0 && why.code == ERR_CONFLICT && ++tries < TRIES);
	if (rc < 0)
		err_set(e, why.code == ERR_CONFLICT ? ERR_BUSY : why.code, "%s", why.msg);
	buf_release(&path);
	return rc;
}

/* ---- what may be appended ---- */

/* The full grammar, a string type, an object data. */
static int
check_line(const struct event *ev, const char *name, struct err *e)
{
	struct json_peek peek;
	const char *why = NULL;
	size_t at = 0;

	if (json_check(ev->line, ev->len, &at, &why) == 0 && json_scan(ev->line, ev->len, &peek, &at, &why) == 0) {
		at = 0;
		if (peek.type == NULL)
			why = "there is no string 'type'";
		else if (peek.data == NULL)
			why = "there is no object 'data'";
		else
			return 0;
	}
	return err_set(e, ERR_DATA, "%s:%llu: byte %zu: %s", name, (unsigned long long)ev->number, at + 1, why);
}

static int
take_line(const struct event *ev, const char *name, struct buf *out, struct err *e)
{
	if (check_line(ev, name, e) < 0)
		return -1;
	if (ev->type->flags & (EV_TRANSIENT | EV_PROMPT))
		return 0;
	buf_add(out, ev->line, ev->len);
	buf_addch(out, '\n');
	if (out->over)
		return err_set(e, ERR_DATA, "%s: more than %zu bytes in one append", name, out->max);
	return 0;
}

int
stream_filter(int fd, const char *name, struct buf *out, struct err *e)
{
	struct jsonl in;
	struct event ev;
	int rc;

	jsonl_init_fd(&in, name, JSONL_BAD_STOP, fd);
	while ((rc = jsonl_next(&in, &ev, e)) > 0) {
		rc = take_line(&ev, name, out, e);
		event_release(&ev);
		if (rc < 0)
			break;
	}
	jsonl_release(&in);
	return rc;
}

/* ---- reading ---- */

struct segment {
	uint64_t number;
	char *path;
	struct store_file *file;	/* held from the beginning; NULL: opened when it is its turn */
	bool again;		/* its lines begin what follows it */
};

/* A place in the parts of a log, which are read as if they were one. */
struct cursor {
	struct stream_reader *r;
	size_t part;		/* a segment, or the log itself at r->n */
	uint64_t offset;
	struct store_file *file;	/* of a segment that is not held */
	bool line_open;		/* the last byte given was no newline */
};

struct stream_reader {
	struct store *s;
	char *id;
	struct store_file *log;	/* opened first: what compaction takes out of it later is in this version still; may be NULL */
	uint64_t log_version;
	struct segment *segments;
	size_t n, cap;
	struct cursor at;
	uint64_t given;		/* bytes by stream_read */
	uint64_t *begins;	/* of each part in them, the log last; NULL before something was read */
};

static void
cursor_close(struct cursor *c)
{
	if (c->file != NULL)
		store_file_close(c->file);
	c->file = NULL;
}

/* A segment that was listed is gone when its compaction was undone: what it held is in a newer log than ours. */
static int
open_segment(struct stream_reader *r, const struct segment *seg, struct store_file **file, struct store_stat *st, struct err *e)
{
	struct err why = ERR_INIT;

	if (store_file_open(r->s, seg->path, file, st, &why) == 0)
		return 0;
	*file = NULL;
	if (why.code != ERR_ABSENT)
		return err_set(e, why.code, "%s", why.msg);
	return err_set(e, ERR_CONFLICT, "a compaction of stream '%s' was undone while it was read", r->id);
}

static struct store_file *
cursor_file(struct cursor *c, struct err *e)
{
	struct stream_reader *r = c->r;

	if (c->part == r->n)
		return r->log;
	if (r->segments[c->part].file != NULL)
		return r->segments[c->part].file;
	if (c->file == NULL && open_segment(r, &r->segments[c->part], &c->file, NULL, e) < 0)
		return NULL;
	return c->file;
}

/* Up to len bytes of the parts from c on; a newline is put where a part ends without one and something follows. */
static ssize_t
cursor_read(struct cursor *c, char *data, size_t len, struct err *e)
{
	struct stream_reader *r = c->r;
	struct store_file *f;
	ssize_t n;

	for (;;) {
		while (c->part < r->n && r->segments[c->part].again)
			c->part++;
		if (c->part == r->n && r->log == NULL)
			return 0;
		f = cursor_file(c, e);
		if (f == NULL)
			return -1;
		if (c->offset == 0 && c->line_open) {
			n = store_file_read(f, 0, data, 1, e);
			if (n > 0)
				data[0] = '\n';
			c->line_open = n <= 0;
		} else {
			n = store_file_read(f, c->offset, data, len, e);
			if (n > 0) {
				c->offset += (uint64_t)n;
				c->line_open = data[n - 1] != '\n';
			}
		}
		if (n != 0 || c->part == r->n)
			return n;
		cursor_close(c);
		c->part++;
		c->offset = 0;
	}
}

static ssize_t
cursor_read_full(struct cursor *c, char *data, size_t len, struct err *e)
{
	size_t got = 0;
	ssize_t n;

	while (got < len) {
		n = cursor_read(c, data + got, len - got, e);
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

/* The length of a segment without the newlines at its end. */
static int
trimmed_size(struct store_file *f, uint64_t size, uint64_t *out, struct err *e)
{
	char c;

	while (size > 0) {
		if (store_file_read(f, size - 1, &c, 1, e) != 1)
			return -1;
		if (c != '\n')
			break;
		size--;
	}
	*out = size;
	return 0;
}

/* Whether the first `size` bytes of f, and then the end of a line, are what c gives. */
static int
begins(struct store_file *f, uint64_t size, struct cursor *c, struct err *e)
{
	char *mine = xmalloc(BLOCK), *other = xmalloc(BLOCK);
	uint64_t offset = 0;
	size_t want;
	ssize_t n, m;
	int rc = 1;

	while (rc == 1 && offset < size) {
		want = size - offset < BLOCK ? (size_t)(size - offset) : BLOCK;
		n = store_file_read(f, offset, mine, want, e);
		m = n > 0 ? cursor_read_full(c, other, (size_t)n, e) : n;
		if (n < 0 || m < 0)
			rc = -1;
		else if (n == 0 || m != n || memcmp(mine, other, (size_t)n) != 0)
			rc = 0;
		offset += n > 0 ? (uint64_t)n : 0;
	}
	if (rc == 1) {
		m = cursor_read_full(c, other, 1, e);
		rc = m < 0 ? -1 : m == 0 || other[0] == '\n';
	}
	free(mine);
	free(other);
	return rc;
}

void
stream_undo_path(struct buf *out, const char *id, uint64_t number)
{
	buf_reset(out);
	buf_addf(out, "/.ag2/undo/%s/%llu", id, (unsigned long long)number);
}

void
stream_undo_head(struct buf *out, uint64_t segment_len, bool alike)
{
	buf_addf(out, "segment %llu\n%s", (unsigned long long)segment_len, alike ? "alike\n" : "");
}

/* Whether the segment was made by a compaction that ended, and left a log that begins like it. */
static int
is_alike(struct stream_reader *r, const struct segment *seg, const struct store_stat *st, struct err *e)
{
	struct buf path = BUF_INIT, want = BUF_INIT, head = BUF_INIT;
	int rc = 0;

	if (st->version <= r->log_version) {	/* else the log was opened before it was compacted */
		stream_undo_path(&path, r->id, seg->number);
		stream_undo_head(&want, st->size, true);
		rc = store_read_range(r->s, path.data, 0, (int64_t)want.len, &head, e);
		if (rc >= 0)
			rc = head.len == want.len && memcmp(head.data, want.data, want.len) == 0;
	}
	buf_release(&path);
	buf_release(&want);
	buf_release(&head);
	return rc;
}

/* Holds the segment as well when it is one of the last: undoing takes the last first, so older ones stay for as long as it takes to read. */
static int
find_again(struct stream_reader *r, struct segment *seg, struct err *e)
{
	struct cursor c = { .r = r, .part = (size_t)(seg - r->segments) + 1 };
	struct store_file *f;
	struct store_stat st;
	uint64_t size;
	int rc;

	if (open_segment(r, seg, &f, &st, e) < 0)
		return -1;
	rc = trimmed_size(f, st.size, &size, e);
	if (rc == 0)
		rc = begins(f, size, &c, e);
	if (rc > 0) {
		rc = is_alike(r, seg, &st, e);
		seg->again = rc == 0;
	}
	cursor_close(&c);
	if (rc >= 0 && r->n - (size_t)(seg - r->segments) <= HELD_MAX)
		seg->file = f;
	else
		store_file_close(f);
	return rc < 0 ? -1 : 0;
}

static int
segment_entry(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	struct stream_reader *r = arg;
	uint64_t number = dir ? 0 : part_number(name, r->id, ".dropped-", SUFFIX);

	if (number == 0)
		return 0;
	r->segments = xgrow(r->segments, r->n, &r->cap, sizeof(*r->segments));
	r->segments[r->n++] = (struct segment){ .number = number, .path = xasprintf(LOG_DIR "/%s", name) };
	return 0;
}

static int
by_number(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return strcmp(x->path, y->path);
}

struct stream_index {
	char **names;		/* in byte order */
	size_t n, cap;
};

static int
index_entry(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	struct stream_index *x = arg;

	if (dir || strstr(name, ".dropped-") == NULL)
		return 0;
	x->names = xgrow(x->names, x->n, &x->cap, sizeof(*x->names));
	x->names[x->n++] = xstrdup(name);
	return 0;
}

int
stream_index_read(struct store *s, struct stream_index **out, struct err *e)
{
	struct stream_index *x = xcalloc(1, sizeof(*x));

	if (store_list(s, LOG_DIR, 0, index_entry, x, e) < 0) {
		stream_index_free(x);
		return -1;
	}
	*out = x;
	return 0;
}

void
stream_index_free(struct stream_index *x)
{
	if (x == NULL)
		return;
	while (x->n > 0)
		free(x->names[--x->n]);
	free(x->names);
	free(x);
}

static void
list_indexed(struct stream_reader *r, const struct stream_index *x)
{
	char *prefix = xasprintf("%s.dropped-", r->id);
	size_t len = strlen(prefix), low = 0, high = x->n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (strcmp(x->names[middle], prefix) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < x->n && strncmp(x->names[low], prefix, len) == 0; low++)
		segment_entry(r, x->names[low], false, NULL);
	free(prefix);
}

/* Whether segments have come since the index was made: the next number is taken. */
static int
check_index(struct stream_reader *r, struct err *e)
{
	struct buf path = BUF_INIT;
	int rc;

	stream_segment_path(&path, r->id, r->n > 0 ? r->segments[r->n - 1].number + 1 : 1);
	rc = store_stat(r->s, path.data, NULL, e);
	buf_release(&path);
	return rc > 0 ? err_set(e, ERR_CONFLICT, "stream '%s' was compacted since the segments were listed", r->id) : rc;
}

static int
open_segments(struct stream_reader *r, const struct stream_index *x, struct err *e)
{
	size_t i;

	if (x != NULL)
		list_indexed(r, x);
	else if (store_list(r->s, LOG_DIR, 0, segment_entry, r, e) < 0)
		return -1;
	if (r->n > 0)
		qsort(r->segments, r->n, sizeof(*r->segments), by_number);
	if (x != NULL && check_index(r, e) < 0)
		return -1;
	for (i = r->n; i > 0; i--)
		if (find_again(r, &r->segments[i - 1], e) < 0)
			return -1;
	return 0;
}

void
stream_segment_path(struct buf *out, const char *id, uint64_t number)
{
	buf_reset(out);
	buf_addf(out, LOG_DIR "/%s.dropped-%llu" SUFFIX, id, (unsigned long long)number);
}

/* The version of the last segment of those read when its lines still begin the log, else 0. */
static int
version_again(struct stream_reader *r, uint64_t *version, struct err *e)
{
	struct segment *last = &r->segments[r->n - 1];
	struct store_stat st;

	*version = 0;
	if (find_again(r, last, e) < 0)
		return -1;
	if (!last->again)
		return 0;
	if (store_stat(r->s, last->path, &st, e) <= 0)
		return -1;
	*version = st.version;
	return 0;
}

static int
last_segment(struct stream_reader *r, uint64_t *number, uint64_t *version, struct err *e)
{
	if (store_list(r->s, LOG_DIR, 0, segment_entry, r, e) < 0)
		return -1;
	*number = 1;
	*version = 0;
	if (r->n == 0)
		return 0;
	qsort(r->segments, r->n, sizeof(*r->segments), by_number);
	if (version_again(r, version, e) < 0)
		return -1;
	*number = r->segments[r->n - 1].number + (*version == 0);
	return 0;
}

int
stream_next_segment(struct store *s, const char *id, uint64_t *number, uint64_t *version, struct err *e)
{
	struct stream_reader *r;
	int rc;

	if (stream_open(s, id, false, &r, e) < 0)
		return -1;
	rc = last_segment(r, number, version, e);
	stream_close(r);
	return rc;
}

int
stream_segment_unfinished(struct store *s, const char *id, uint64_t number, uint64_t *version, struct err *e)
{
	struct stream_reader *r;
	struct buf path = BUF_INIT;
	int rc;

	if (stream_open(s, id, false, &r, e) < 0)
		return -1;
	stream_segment_path(&path, id, number);
	r->segments = xgrow(r->segments, r->n, &r->cap, sizeof(*r->segments));
	r->segments[r->n++] = (struct segment){ .number = number, .path = buf_detach(&path, NULL) };
	rc = version_again(r, version, e);
	stream_close(r);
	return rc;
}

static int
open_log(struct stream_reader *r, struct err *e)
{
	struct buf path = BUF_INIT;
	struct store_stat st = { 0 };
	struct err why = ERR_INIT;
	int rc;

	stream_path(&path, r->id);
	rc = store_file_open(r->s, path.data, &r->log, &st, &why);
	r->log_version = st.version;
	if (rc < 0) {
		r->log = NULL;
		r->log_version = UINT64_MAX;
		rc = why.code == ERR_ABSENT ? 0 : err_set(e, why.code, "%s", why.msg);
	}
	buf_release(&path);
	return rc;
}

/* The log and what was dropped from it, when no compaction and no undo of one came between; else ERR_CONFLICT. */
static int
open_full(struct stream_reader *r, const struct stream_index *x, struct err *e)
{
	uint64_t before, now;

	if (moved_version(r->s, r->id, &before, e) < 0 || open_log(r, e) < 0 || open_segments(r, x, e) < 0 ||
	    moved_version(r->s, r->id, &now, e) < 0)
		return -1;
	return now == before ? 0 : err_set(e, ERR_CONFLICT, "stream '%s' was compacted while it was read", r->id);
}

static int
try_open(struct store *s, const char *id, bool full, const struct stream_index *x, struct stream_reader **out, struct err *e)
{
	struct stream_reader *r = xcalloc(1, sizeof(*r));
	int rc;

	r->s = s;
	r->id = xstrdup(id);
	r->at.r = r;
	rc = full ? open_full(r, x, e) : open_log(r, e);
	if (rc == 0 && r->log == NULL && r->n == 0)
		rc = err_set(e, ERR_NOINPUT, "there is no stream '%s' in %s", id, store_url(s));
	if (rc < 0) {
		stream_close(r);
		return -1;
	}
	*out = r;
	return 0;
}

static int
open_history(struct store *s, const char *id, bool full, const struct stream_index *x, struct stream_reader **out, struct err *e)
{
	struct err why = ERR_INIT;
	int rc, tries = 0;

	do
		rc = try_open(s, id, full, tries == 0 ? x : NULL, out, &why);
	while (rc < 0 && why.code == ERR_CONFLICT && ++tries < TRIES);
	return rc < 0 ? err_set(e, why.code == ERR_CONFLICT ? ERR_BUSY : why.code, "%s", why.msg) : 0;
}

int
stream_open(struct store *s, const char *id, bool full, struct stream_reader **out, struct err *e)
{
	return open_history(s, id, full, NULL, out, e);
}

int
stream_open_indexed(struct store *s, const char *id, const struct stream_index *x, struct stream_reader **out, struct err *e)
{
	return open_history(s, id, true, x, out, e);
}

ssize_t
stream_read(void *reader, void *data, size_t len, struct err *e)
{
	struct stream_reader *r = reader;
	size_t i = r->at.part;
	ssize_t n = cursor_read(&r->at, data, len, e);

	if (r->begins == NULL) {
		r->begins = xcalloc(r->n + 1, sizeof(*r->begins));
		i = 0;
	} else {
		i++;
	}
	for (; n > 0 && i <= r->at.part; i++)
		r->begins[i] = r->given;
	r->given += n > 0 ? (uint64_t)n : 0;
	if (n < 0 && e != NULL && e->code == ERR_CONFLICT)
		e->code = ERR_BUSY;	/* too late to begin again */
	return n;
}

uint64_t
stream_segment_at(const struct stream_reader *r, uint64_t offset)
{
	size_t i = r->begins != NULL ? r->at.part : 0;

	while (i > 0 && r->begins[i] > offset)
		i--;
	return i < r->n ? r->segments[i].number : 0;
}

bool
stream_last_segment(const struct stream_reader *r, uint64_t *number)
{
	*number = r->n > 0 ? r->segments[r->n - 1].number : 0;
	return r->n == 0 || !r->segments[r->n - 1].again;
}

bool
stream_in_log(const struct stream_reader *r, uint64_t *offset)
{
	*offset = r->at.offset;
	return r->at.part == r->n;
}

void
stream_close(struct stream_reader *r)
{
	size_t i;

	if (r == NULL)
		return;
	cursor_close(&r->at);
	if (r->log != NULL)
		store_file_close(r->log);
	for (i = 0; i < r->n; i++) {
		store_file_close(r->segments[i].file);
		free(r->segments[i].path);
	}
	free(r->segments);
	free(r->begins);
	free(r->id);
	free(r);
}

/* ---- the end of a log ---- */

struct line_count {
	uint64_t want, seen;	/* lines that are not blank */
	bool text;		/* there is something in the line whose beginning was not met yet */
};

/* Goes backwards through the bytes at offset base. True when the beginning of the wanted line is found: *at. */
static bool
count_back(struct line_count *c, const char *data, size_t len, uint64_t base, uint64_t *at)
{
	const char *newline;
	size_t start, i;

	while (len > 0) {
		newline = memrchr(data, '\n', len);
		start = newline ? (size_t)(newline - data) + 1 : 0;
		for (i = start; i < len && !c->text; i++)
			c->text = !blank(data[i]);
		if (newline == NULL)
			return false;
		if (c->text && ++c->seen == c->want) {
			*at = base + start;
			return true;
		}
		c->text = false;
		len = start - 1;
	}
	return false;
}

static int
find_tail(struct store_file *f, uint64_t size, uint64_t lines, uint64_t *at, struct err *e)
{
	struct line_count count = { .want = lines };
	struct buf block = BUF_INIT;
	uint64_t end = size;
	size_t len;
	int rc = 0;

	*at = lines == 0 ? size : 0;
	while (rc == 0 && lines > 0 && end > 0) {
		len = end < BLOCK ? (size_t)end : BLOCK;
		rc = read_at(f, end - len, len, &block, e);
		if (rc == 0 && count_back(&count, block.data, len, end - len, at))
			break;
		end -= len;
	}
	buf_release(&block);
	return rc;
}

int
stream_open_tail(struct store *s, const char *id, uint64_t lines, struct stream_reader **out, uint64_t *offset, struct err *e)
{
	struct buf path = BUF_INIT;
	struct store_stat st;
	struct stream_reader *r = xcalloc(1, sizeof(*r));
	struct err why = ERR_INIT;
	int rc;

	r->s = s;
	r->id = xstrdup(id);
	r->at.r = r;
	stream_path(&path, id);
	rc = store_file_open(s, path.data, &r->log, &st, &why);
	if (rc < 0) {
		r->log = NULL;
		if (why.code == ERR_ABSENT)
			err_set(e, ERR_NOINPUT, "there is no stream '%s' in %s", id, store_url(s));
		else
			err_set(e, why.code, "%s", why.msg);
	}
	if (rc == 0)
		rc = find_tail(r->log, st.size, lines, &r->at.offset, e);
	buf_release(&path);
	if (rc < 0) {
		stream_close(r);
		return -1;
	}
	if (offset != NULL)
		*offset = r->at.offset;
	*out = r;
	return 0;
}

#include "stream.h"

#include "base/alloc.h"
#include "base/log.h"

#include "tap.h"

#include <fcntl.h>

static struct store *s;
static const char *kind;
static struct err err;

static void
put(const char *path, const char *text)
{
	if (store_write(s, path, text, strlen(text), &err) < 0)
		bail("%s", err.msg);
}

static void
is_file(const char *path, const char *want, const char *what)
{
	struct buf got = BUF_INIT;

	ok(store_read(s, path, &got, NULL, &err) == 0, "%s: %s is there", kind, path);
	is_str(got.data, want, "%s: %s", kind, what);
	buf_release(&got);
}

#define GOOD "{\"type\":\"X\",\"data\":{}}"
#define NEXT "{\"type\":\"Y\",\"data\":{\"n\":1}}\n"

static void
append(const char *id, uint64_t want, const char *what)
{
	uint64_t offset = 99999;

	ok(stream_append(s, id, NEXT, strlen(NEXT), &offset, &err) == 0, "%s: append: %s", kind, what);
	is_int((long long)offset, (long long)want, "%s: its offset", kind);
}

static void
appending(void)
{
	append("new", 0, "to a stream that is not there");
	append("new", strlen(NEXT), "behind a whole line");
	is_file("/log/new.jsonl", NEXT NEXT, "both are there");

	put("/log/open.jsonl", GOOD);
	append("open", strlen(GOOD) + 1, "behind a line without newline");
	is_file("/log/open.jsonl", GOOD "\n" NEXT, "the line is ended");

	put("/log/torn.jsonl", GOOD "\n{\"type\"");
	append("torn", strlen(GOOD) + 1, "behind a torn line");
	is_file("/log/torn.jsonl", GOOD "\n" NEXT, "it is gone");
	is_file("/log/torn.torn-1", "{\"type\"", "it is set aside");

	put("/log/all.jsonl", "garbage\nand more");
	put("/log/all.torn-7", "earlier");
	append("all", 0, "to a log of nothing but garbage");
	is_file("/log/all.jsonl", NEXT, "only the event is in it");
	is_file("/log/all.torn-8", "garbage\nand more", "the next number is taken");

	put("/log/blank.jsonl", " \n\n");
	append("blank", 3, "behind blank lines");
	put("/log/mid.jsonl", "bad\n" GOOD "\n");
	append("mid", strlen(GOOD) + 5, "a bad line in the middle stays where it is");
	is_file("/log/mid.jsonl", "bad\n" GOOD "\n" NEXT, "nothing else changed");
}

static int
add_id(void *arg, const char *id, const struct store_stat *st)
{
	buf_addf(arg, "%s:%llu ", id, (unsigned long long)st->size);
	return 0;
}

static void
resolving(void)
{
	struct buf ids = BUF_INIT;
	char *id;
	bool fresh = false;

	ok(stream_resolve(s, "@last", &id, &fresh, &err) == -1 && err.code == ERR_NOINPUT, "%s: @last of an empty store", kind);
	put("/log/b.jsonl", "1");
	put("/log/a.jsonl", "12");
	put("/log/c.dropped-1.jsonl", "1");
	put("/log/.d.jsonl", "1");
	put("/log/e.jsonl/below", "1");
	put("/log/SKILL.md", "1");
	ok(stream_list(s, add_id, &ids, &err) == 0, "%s: listing", kind);
	is_str(ids.data, "a:2 b:1 ", "%s: the streams in order of their ids, with sizes", kind);
	ok(stream_resolve(s, "@last", &id, &fresh, &err) == 0 && !fresh, "%s: @last", kind);
	is_str(id, "a", "%s: the one written last", kind);
	free(id);
	ok(stream_resolve(s, "@new", &id, &fresh, &err) == 0 && fresh && strlen(id) == 36, "%s: @new", kind);
	free(id);
	ok(stream_resolve(s, "a-b.c_D9", &id, NULL, &err) == 0, "%s: an id", kind);
	is_str(id, "a-b.c_D9", "%s: is itself", kind);
	free(id);
	ok(stream_resolve(s, "@now", &id, NULL, &err) == -1 && err.code == ERR_USAGE, "%s: another @ is refused", kind);
	ok(stream_resolve(s, "a/b", &id, NULL, &err) == -1 && err.code == ERR_USAGE, "%s: so is a slash", kind);
	buf_release(&ids);
}

/* Reads r to its end, `step` bytes at a time. */
static void
read_out(struct stream_reader *r, size_t step, struct buf *out)
{
	char data[4096];
	ssize_t n;

	buf_reset(out);
	while ((n = stream_read(r, data, step, &err)) > 0)
		buf_add(out, data, (size_t)n);
	ok(n == 0, "%s: read to the end", kind);
}

static void
reading(void)
{
	static const size_t steps[] = { 1, 2, 7, 4096 };
	struct stream_reader *r;
	struct buf got = BUF_INIT;
	size_t i;

	ok(stream_open(s, "r", true, &r, &err) == -1 && err.code == ERR_NOINPUT, "%s: no such stream", kind);
	put("/log/r.dropped-2.jsonl", "two");
	put("/log/r.dropped-10.jsonl", "ten\n");
	put("/log/r.dropped-1.jsonl", "");
	put("/log/r.dropped-0.jsonl", "no number of ours");
	put("/log/r.dropped-3.jsonl", "a\nb");
	put("/log/r.jsonl", "a\nb\nc");
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		if (stream_open(s, "r", true, &r, &err) < 0)
			bail("%s", err.msg);
		read_out(r, steps[i], &got);
		is_str(got.data, "two\na\nb\nten\na\nb\nc", "%s: all parts in number order, %zu bytes at a time", kind, steps[i]);
		stream_close(r);
	}
	store_delete(s, "/log/r.dropped-10.jsonl", &err);
	ok(stream_open(s, "r", true, &r, &err) == 0, "%s: open", kind);
	read_out(r, 4096, &got);
	is_str(got.data, "two\na\nb\nc", "%s: the segment that begins the log comes once", kind);
	stream_close(r);
	ok(stream_open(s, "r", false, &r, &err) == 0, "%s: open the current log", kind);
	read_out(r, 3, &got);
	is_str(got.data, "a\nb\nc", "%s: only it", kind);
	stream_close(r);
	buf_release(&got);
}

/* What compaction does while a reader is at work must not show. */
static void
reading_during_compaction(const char *url)
{
	struct store_options o = { .mode = STORE_CREATE };
	struct store *other;
	struct stream_reader *r;
	struct buf got = BUF_INIT;

	if (strcmp(url, "memory:") == 0) {
		skip("memory: has no second process");
		return;
	}
	if (store_open(&other, url, &o, &err) < 0)
		bail("%s", err.msg);
	put("/log/k.jsonl", "a\nb\nc\n");
	ok(stream_open(s, "k", true, &r, &err) == 0, "%s: open", kind);
	ok(store_write(other, "/log/k.dropped-1.jsonl", "a\nb\n", 4, &err) == 0 &&
	    store_write(other, "/log/k.jsonl", "c\n", 2, &err) == 0, "%s: compacted by someone else", kind);
	read_out(r, 4096, &got);
	is_str(got.data, "a\nb\nc\n", "%s: the reader has the log as it was", kind);
	stream_close(r);
	store_close(other);
	buf_release(&got);
}

static void
tail(uint64_t lines, const char *want, uint64_t want_offset)
{
	struct stream_reader *r;
	struct buf got = BUF_INIT;
	uint64_t offset;

	ok(stream_open_tail(s, "t", lines, &r, &offset, &err) == 0, "%s: the last %d lines", kind, (int)lines);
	read_out(r, 4096, &got);
	is_str(got.data, want, "%s: are these", kind);
	is_int((long long)offset, (long long)want_offset, "%s: and begin here", kind);
	stream_close(r);
	buf_release(&got);
}

static void
tails(void)
{
	struct stream_reader *r;

	ok(stream_open_tail(s, "t", 1, &r, NULL, &err) == -1 && err.code == ERR_NOINPUT, "%s: no such stream", kind);
	put("/log/t.jsonl", "");
	tail(3, "", 0);
	put("/log/t.jsonl", "one\n\ntwo\n \t\r\nthree");
	tail(0, "", 18);
	tail(1, "three", 13);
	tail(2, "two\n \t\r\nthree", 5);
	tail(3, "one\n\ntwo\n \t\r\nthree", 0);
	tail(4, "one\n\ntwo\n \t\r\nthree", 0);
	put("/log/t.jsonl", "\n\none\n\n");
	tail(1, "one\n\n", 2);
	tail(2, "\n\none\n\n", 0);
}

static void
filter(const char *text, size_t max, int want_rc, const char *want)
{
	struct buf out = BUF_INIT_MAX(max);
	char path[PATH_MAX + 8];
	int fd, rc;

	snprintf(path, sizeof(path), "%s/in", tmpdir());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, text, strlen(text)) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		bail("%s", path);
	rc = stream_filter(fd, "in", &out, &err);
	is_int(rc, want_rc, "filter: %.60s", text);
	if (rc == 0)
		is_str(out.data, want, "gives");
	else
		is_str(err.msg, want, "says");
	close(fd);
	buf_release(&out);
}

static void
filtering(void)
{
	filter("", 0, 0, "");
	filter("\n \n" GOOD, 0, 0, GOOD "\n");
	filter("{\"type\":\"Prompt\",\"data\":{}}\n" NEXT, 0, 0, NEXT);
	filter("{\"type\":\"a.b.ModelMessageChunk\",\"data\":{}}\n" NEXT, 0, 0, NEXT);
	filter(NEXT "{\"type\":\"X\"}\n", 0, -1, "in:2: byte 1: there is no object 'data'");
	filter(NEXT "{\"data\":{}}\n", 0, -1, "in:2: byte 1: there is no string 'type'");
	filter(NEXT NEXT, strlen(NEXT), -1, "in: more than 28 bytes in one append");
}

int
main(void)
{
	static const char *const kinds[] = { "memory", "disk", "sqlite" };
	struct store_options o = { .mode = STORE_CREATE };
	char url[PATH_MAX + 32];
	size_t i;

	log_program("stream-test");
	if (freopen("/dev/null", "w", stderr) == NULL)
		bail("/dev/null");
	filtering();
	for (i = 0; i < 3; i++) {
		kind = kinds[i];
		snprintf(url, sizeof(url), i == 0 ? "memory:" : "%s:%s/%s", kind, tmpdir(), kind);
		if (store_open(&s, url, &o, &err) < 0)
			bail("%s", err.msg);
		resolving();
		appending();
		reading();
		reading_during_compaction(url);
		tails();
		store_close(s);
	}
	return done();
}

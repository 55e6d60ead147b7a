/* Reading streams of lines: what is an event, what is passed over, what is reported and how. */
#include "tap.h"
#include "golden.h"

#include "base/alloc.h"
#include "event/jsonl.h"

#include <fcntl.h>
#include <sys/resource.h>

/* Gives its bytes in pieces of `step`, all that fit with 0. */
struct source {
	const char *data;
	size_t len, pos, step;
};

static ssize_t
give(void *arg, void *data, size_t len, struct err *e)
{
	struct source *s = arg;
	size_t n = s->len - s->pos;

	(void)e;
	if (s->step != 0 && n > s->step)
		n = s->step;
	if (n > len)
		n = len;
	memcpy(data, s->data + s->pos, n);
	s->pos += n;
	return (ssize_t)n;
}

/* Runs fn with standard error going to a file, and leaves what was said there in `said`. */
static struct buf said;

static void
hear(void (*fn)(void *arg), void *arg)
{
	char path[PATH_MAX + 16];
	int saved = dup(2), fd;

	snprintf(path, sizeof(path), "%s/stderr", tmpdir());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (saved < 0 || fd < 0 || dup2(fd, 2) < 0)
		bail("cannot redirect standard error");
	close(fd);
	fn(arg);
	dup2(saved, 2);
	close(saved);
	buf_reset(&said);
	io_read_file(path, &said, NULL);
}

struct run {
	const char *text;
	size_t len, step;
	enum jsonl_bad on_bad;
	uint64_t number, offset;	/* where it begins; 0, 0 for the default */
	/* results */
	struct buf lines;	/* NUMBER@OFFSET LINE\n each */
	int end;
	uint64_t bad;
	char error[1024];
};

static void
read_all(void *arg)
{
	struct run *r = arg;
	struct source s = { .data = r->text, .len = r->len, .step = r->step };
	struct err e = ERR_INIT;
	struct jsonl in;
	struct event ev;

	buf_reset(&r->lines);
	jsonl_init(&in, "in", r->on_bad, give, &s);
	if (r->offset != 0)
		jsonl_set_position(&in, r->number, r->offset);
	while ((r->end = jsonl_next(&in, &ev, &e)) > 0)
		buf_addf(&r->lines, "%llu@%llu %.*s\n", (unsigned long long)ev.number, (unsigned long long)ev.offset, (int)ev.len, ev.line);
	r->bad = in.bad;
	snprintf(r->error, sizeof(r->error), "%s", e.msg);
	jsonl_release(&in);
}

/* All piece sizes must give the same lines and the same words. */
static void
reads(const char *text, size_t len, const char *lines, const char *words, const char *what)
{
	static const size_t steps[] = { 0, 1, 2, 7 };
	struct run r = { .text = text, .len = len, .lines = BUF_INIT };
	size_t i;

	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		r.step = steps[i];
		hear(read_all, &r);
		is_int(r.end, 0, "%s (pieces of %zu): read to the end", what, steps[i]);
		is_str(r.lines.data, lines, "%s (pieces of %zu): lines", what, steps[i]);
		is_str(said.data, words, "%s (pieces of %zu): said", what, steps[i]);
	}
	buf_release(&r.lines);
}

#define READS(text, lines, words, what) reads(text, sizeof(text) - 1, lines, words, what)

static void
test_lines(void)
{
	READS("", "", "", "nothing");
	READS("\n\n", "", "", "newlines only");
	READS("   ", "", "", "blanks only");
	READS("{\"a\":1}\n{\"b\":2}\n", "1@0 {\"a\":1}\n2@8 {\"b\":2}\n", "", "two lines");
	READS("{\"a\":1}\n{\"b\":2}", "1@0 {\"a\":1}\n2@8 {\"b\":2}\n", "", "no newline at the end");
	READS("{\"a\":1}\n\n \t\r\n\r\n{\"b\":2}\n\n", "1@0 {\"a\":1}\n5@15 {\"b\":2}\n", "", "blank lines between");
	READS("{\"a\":1}\r\n{\"b\":2}\r\n", "1@0 {\"a\":1}\r\n2@9 {\"b\":2}\r\n", "", "a CR stays with its line");
	READS("\xef\xbb\xbf{\"a\":1}\n{\"b\":2}\n", "1@3 {\"a\":1}\n2@11 {\"b\":2}\n", "", "a BOM at the start");
	READS("\xef\xbb\xbf\n{\"a\":1}\n", "2@4 {\"a\":1}\n", "", "a BOM alone");
	READS("{\"a\":1}\n\xef\xbb\xbf{\"b\":2}\n", "1@0 {\"a\":1}\n", "ag2: in:2: byte 1: not an object\n", "a BOM elsewhere");
	READS("  {\"a\":1}  \n", "1@0   {\"a\":1}  \n", "", "blanks around the object stay");
	READS("{\"a\":\"\xe2\x80\xa8\"}\n", "1@0 {\"a\":\"\xe2\x80\xa8\"}\n", "", "U+2028 ends no line");
}

static void
test_bad(void)
{
	READS("{\"a\":1}\n{\"type\":\"user\",\"text\":\"abc\n{\"c\":3}\n", "1@0 {\"a\":1}\n3@35 {\"c\":3}\n",
	    "ag2: in:2: byte 27: it ends inside a string\n", "a line cut in the middle");
	READS("{\"a\":1}\n{\"b\":[1,2", "1@0 {\"a\":1}\n", "ag2: in:2: byte 10: it ends inside an object or array\n", "the last line cut");
	READS("{\"a\":\"x\0y\"}\n{\"b\":2}\n", "2@12 {\"b\":2}\n", "ag2: in:1: byte 8: a NUL byte\n", "a NUL");
	READS("{\"a\":1}\n\0\0\0\0{\"b\":2}\n{\"c\":3}\n", "1@0 {\"a\":1}\n3@20 {\"c\":3}\n", "ag2: in:2: byte 1: a NUL byte\n",
	    "NULs in front of a line");
	READS("{\"a\":\"\xff\"}\n{\"b\":2}\n", "2@10 {\"b\":2}\n", "ag2: in:1: byte 7: not valid UTF-8\n", "invalid UTF-8");
	READS("[1]\n\"x\"\n17\nnull\n{}\n", "5@16 {}\n", "ag2: in:1: byte 1: not an object\nag2: in:2: byte 1: not an object\n"
	    "ag2: in:3: byte 1: not an object\nag2: in:4: byte 1: not an object\n", "JSON that is no object");
	READS("{\"type\":\"us{\"type\":\"user\"}\n{}\n", "2@27 {}\n", "ag2: in:1: byte 14: a ',' or '}' must stand here\n",
	    "a torn line with a whole one behind it");
	READS("{\"a\":1} junk\n{}\n", "2@13 {}\n", "ag2: in:1: byte 9: something stands behind the object\n", "junk behind an object");
	READS("{\"a\":1,}\n{'a':1}\n{\"a\":01}\n/*c*/{}\n{\"a\":1,\"a\":2}\n", "3@17 {\"a\":01}\n5@34 {\"a\":1,\"a\":2}\n",
	    "ag2: in:1: byte 8: a key must stand here\nag2: in:2: byte 2: a key must stand here\nag2: in:4: byte 1: not an object\n",
	    "what other readers let pass");
}

static void
test_modes(void)
{
	static const char text[] = "{\"a\":1}\nx\n{\"b\":2}\ny\n";
	struct run r = { .text = text, .len = sizeof(text) - 1, .lines = BUF_INIT };

	r.on_bad = JSONL_BAD_SKIP;
	hear(read_all, &r);
	is_str(said.data, "ag2: in:2: byte 1: not an object\nag2: in:4: byte 1: not an object\n", "skip: each is reported");
	is_int((long long)r.bad, 2, "skip: and counted");
	r.on_bad = JSONL_BAD_ONCE;
	hear(read_all, &r);
	is_str(said.data, "ag2: in:2: byte 1: not an object\n", "once: the first is reported");
	is_str(r.lines.data, "1@0 {\"a\":1}\n3@10 {\"b\":2}\n", "once: the rest is read");
	is_int((long long)r.bad, 2, "once: all are counted");
	r.on_bad = JSONL_BAD_STOP;
	hear(read_all, &r);
	is_int(r.end, -1, "stop: the first is an error");
	is_str(r.error, "in:2: byte 1: not an object", "stop: that says where");
	is_str(said.data, "", "stop: nothing is said besides");
	is_str(r.lines.data, "1@0 {\"a\":1}\n", "stop: what was before it has been read");
	r.on_bad = JSONL_BAD_COUNT;
	r.number = 17;
	r.offset = 1000;
	hear(read_all, &r);
	is_str(said.data, "ag2: in:18: byte 1: not an object\nag2: in:20: byte 1: not an object\n", "counting goes on from where it is told to");
	is_str(r.lines.data, "17@1000 {\"a\":1}\n19@1010 {\"b\":2}\n", "for lines and offsets");
	r.number = 0;
	hear(read_all, &r);
	is_str(said.data, "ag2: in: line at offset 1008: byte 1: not an object\nag2: in: line at offset 1018: byte 1: not an object\n",
	    "an unknown line is named by its offset");
	is_str(r.lines.data, "0@1000 {\"a\":1}\n0@1010 {\"b\":2}\n", "and has no number");
	buf_release(&r.lines);
}

static void
say_bad(void *arg)
{
	struct source s = { .data = "{\"type\":\"ToolCallEvent\",\"data\":{\"id\":01}}\n{}", .len = 45 };
	struct err why = ERR_INIT, e = ERR_INIT;
	struct jsonl in;
	struct event ev;

	(void)arg;
	jsonl_init(&in, "in", JSONL_BAD_COUNT, give, &s);
	is_int(jsonl_next(&in, &ev, &e), 1, "content: passes the scan");
	ok(event_data(&ev, &why) == NULL, "content: is broken");
	is_int(jsonl_bad(&in, &ev, &why, &e), 0, "content: reported");
	is_int((long long)in.bad, 1, "content: and counted");
	in.on_bad = JSONL_BAD_STOP;
	is_int(jsonl_bad(&in, &ev, &why, &e), -1, "content: or an error");
	is_str(e.msg, "in:1: byte 39: a number must not begin with 0", "content: that says where");
	event_release(&ev);
	jsonl_release(&in);
}

static void
test_load(void)
{
	struct json_object *golden = golden_json("serialization_load.json"), *cases = json_get(golden, "cases"), *c;
	struct run r = { .lines = BUF_INIT };
	size_t i, n, lines, raises;
	const char *p, *name;

	for (i = 0; i < json_object_array_length(cases); i++) {
		c = json_object_array_get_idx(cases, i);
		name = json_get_text(c, "name", NULL);
		r.text = json_get_text(c, "text", &r.len);
		hear(read_all, &r);
		for (lines = 0, p = r.lines.data; (p = strchr(p, '\n')) != NULL; p++)
			lines++;
		n = json_get(c, "events") != NULL ? json_object_array_length(json_get(c, "events")) : 0;
		raises = json_get(c, "raises") != NULL;
		ok(raises || lines == n, "%s: %zu events, as AG2 reads", name, n);
		ok(raises || r.bad == 0, "%s: nothing is bad where AG2 finds nothing", name);
		if (strcmp(name, "torn_last_line") == 0)
			ok(lines == 1 && r.bad == 1, "%s: the good line is read, the other one counted", name);
	}
	buf_release(&r.lines);
	json_object_put(golden);
}

/* A line of n bytes between two short ones, written by a child. */
static void
long_line(void *arg)
{
	size_t n = *(size_t *)arg, block = 1 << 20, left;
	char *fill = xmalloc(block);
	struct err e = ERR_INIT;
	struct jsonl in;
	struct event ev;
	int fds[2], lines = 0, r;
	pid_t pid;

	if (pipe(fds) < 0 || (pid = fork()) < 0)
		bail("no child");
	memset(fill, 'x', block);
	if (pid == 0) {
		io_write_all(fds[1], "{\"a\":1}\n{\"b\":\"", 14);
		for (left = n - 8; left > 0; left -= left < block ? left : block)
			io_write_all(fds[1], fill, left < block ? left : block);
		io_write_all(fds[1], "\"}\n{\"c\":3}\n", 11);
		_exit(0);
	}
	close(fds[1]);
	jsonl_init_fd(&in, "in", JSONL_BAD_COUNT, fds[0]);
	while ((r = jsonl_next(&in, &ev, &e)) > 0) {
		lines++;
		if (lines == 2)
			printf("# second: line %llu at %llu, %zu bytes\n", (unsigned long long)ev.number, (unsigned long long)ev.offset, ev.len);
	}
	is_int(r, 0, "a line of %zu bytes: read to the end", n);
	is_int(lines, n > EVENT_LINE_MAX ? 2 : 3, "a line of %zu bytes: is %s", n, n > EVENT_LINE_MAX ? "passed over" : "an event");
	is_int((long long)in.bad, n > EVENT_LINE_MAX, "a line of %zu bytes: bad lines", n);
	jsonl_release(&in);
	close(fds[0]);
	free(fill);
}

static void
test_long(void)
{
	size_t sizes[] = { 1 << 20, EVENT_LINE_MAX, EVENT_LINE_MAX + 1, EVENT_LINE_MAX + (1u << 20), 70000000 };
	struct rusage use;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		hear(long_line, &sizes[i]);
		is_str(said.data, sizes[i] > EVENT_LINE_MAX ? "ag2: in:2: byte 67108865: longer than 64 MiB\n" : "", "a line of %zu bytes: said",
		    sizes[i]);
	}
	getrusage(RUSAGE_SELF, &use);
	printf("# at most %ld kB were resident\n", use.ru_maxrss);
#if !defined(__SANITIZE_ADDRESS__)
	ok(use.ru_maxrss < 80 * 1024, "at most the longest line that is allowed is held");
#endif
}

static ssize_t
fail_reading(void *arg, void *data, size_t len, struct err *e)
{
	(void)arg;
	(void)data;
	(void)len;
	return err_set(e, ERR_IO, "the disk is gone");
}

static void
test_errors(void)
{
	struct jsonl in;
	struct event ev;
	struct err e = ERR_INIT;

	jsonl_init(&in, "in", JSONL_BAD_COUNT, fail_reading, NULL);
	ok(jsonl_next(&in, &ev, &e) == -1 && e.code == ERR_IO, "a reading error is an error");
	is_str(e.msg, "the disk is gone", "and keeps its words");
	jsonl_release(&in);
	jsonl_init_fd(&in, "stdin", JSONL_BAD_COUNT, 999);
	ok(jsonl_next(&in, &ev, &e) == -1, "so is a closed descriptor");
	is_str(e.msg, "cannot read stdin: Bad file descriptor", "and says which");
	jsonl_release(&in);
}

int
main(void)
{
	test_lines();
	test_bad();
	test_modes();
	hear(say_bad, NULL);
	test_load();
	test_errors();
	test_long();
	buf_release(&said);
	return done();
}

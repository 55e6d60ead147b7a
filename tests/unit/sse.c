#include "llm/sse.h"
#include "tap.h"

/* Events as text: NAME(DATA) each. */
static int
note(void *arg, const char *event, const char *data, size_t len, struct err *e)
{
	struct buf *out = arg;

	(void)e;
	buf_addf(out, "%s(", event);
	buf_add(out, data, len);
	buf_adds(out, ")");
	return strcmp(data, "stop") == 0 ? 7 : 0;
}

static int
feed_split(struct buf *out, const char *bytes, size_t len, size_t first, size_t second)
{
	struct sse s;
	int rc;

	buf_reset(out);
	sse_init(&s);
	rc = sse_feed(&s, bytes, first, note, out, NULL);
	if (rc == 0)
		rc = sse_feed(&s, bytes + first, second - first, note, out, NULL);
	if (rc == 0)
		rc = sse_feed(&s, bytes + second, len - second, note, out, NULL);
	sse_release(&s);
	return rc;
}

/* Whole, cut in three at every pair of places, and byte by byte. */
static void
gives(const char *bytes, size_t len, const char *want, const char *what)
{
	struct buf out = BUF_INIT;
	struct sse s;
	size_t i, j;
	int bad = 0;

	feed_split(&out, bytes, len, 0, 0);
	is_str(out.data, want, "%s", what);
	for (i = 0; i <= len; i++) {
		for (j = i; j <= len; j++) {
			feed_split(&out, bytes, len, i, j);
			if (strcmp(out.data, want) != 0 && bad++ == 0)
				printf("# cut at %zu and %zu: %s\n", i, j, out.data);
		}
	}
	is_int(bad, 0, "%s: the same wherever it is cut", what);
	buf_reset(&out);
	sse_init(&s);
	for (i = 0; i < len; i++)
		sse_feed(&s, bytes + i, 1, note, &out, NULL);
	is_str(out.data, want, "%s: byte by byte", what);
	sse_release(&s);
	buf_release(&out);
}
#define GIVES(bytes, want, what) gives(bytes, sizeof(bytes) - 1, want, what)

static void
framing(void)
{
	GIVES("data: a\n\ndata: b\n\n", "(a)(b)", "LF ends lines");
	GIVES("data: a\r\n\r\ndata: b\r\n\r\n", "(a)(b)", "CRLF ends lines");
	GIVES("data: a\r\rdata: b\r\r", "(a)(b)", "CR ends lines");
	GIVES("data: a\r\n\ndata: b\n\r\ndata: c\r\n\r\n", "(a)(b)(c)", "line ends may be mixed");
	GIVES("data: \xe5\x8c\x97\xf0\x9f\x98\x80\n\n", "(\xe5\x8c\x97\xf0\x9f\x98\x80)", "characters of several bytes");
	GIVES(": KEEPALIVE\n\n:\n\ndata: a\n\n: x\n", "(a)", "comments are no events");
	GIVES("data: a\ndata: b\n\n", "(a\nb)", "data lines of one event are joined by a newline");
	GIVES("event: error\ndata: a\n\ndata: b\n\n", "error(a)(b)", "a name is for one event");
	GIVES("event: x\n\ndata: a\n\n", "(a)", "an event without data is none");
	GIVES("data\n\ndata:\n\n", "()()", "data may be empty");
	GIVES("data:a\n\ndata:  b\n\n", "(a)( b)", "one blank behind the colon is not data");
	GIVES("id: 1\nretry: 5\nother\ndata: a\n\n", "(a)", "other fields are skipped");
	GIVES("\xef\xbb\xbf" "data: a\n\n", "(a)", "a byte order mark may come first");
	GIVES("\xef\xbb" "data: a\n\ndata: b\n\n", "(b)", "half a mark is part of the first line");
	GIVES("data: a\n\n\n\n\ndata: b\n\n", "(a)(b)", "blank lines are nothing");
	GIVES("data: a", "", "an event is not there before its blank line");
	GIVES("", "", "nothing is nothing");
}

static void
ends(void)
{
	struct buf out = BUF_INIT;
	struct err e = ERR_INIT;
	struct sse s;
	static char big[1 << 20];
	int i, rc = 0;

	sse_init(&s);
	is_int(sse_feed(&s, "data: a\n\ndata: stop\n\ndata: b\n\n", 30, note, &out, NULL), 7, "the reader can end the feed");
	is_str(out.data, "(a)(stop)", "and gets nothing more");
	sse_release(&s);
	sse_init(&s);
	buf_reset(&out);
	sse_feed(&s, ": c\ndata: a\ndata: b", 19, note, &out, NULL);
	is_int((long long)s.comments, 1, "comments are counted");
	is_int(sse_end(&s, note, &out, NULL), 0, "at the end of the stream");
	is_str(out.data, "(a\nb)", "what lacks its blank line is an event");
	sse_release(&s);
	sse_init(&s);
	memset(big, 'x', sizeof(big));
	for (i = 0; i < 40 && rc == 0; i++)
		rc = sse_feed(&s, big, sizeof(big), note, &out, &e);
	ok(rc < 0 && e.code == ERR_DATA && i < 40, "a line without end is refused: %s", e.msg);
	sse_release(&s);
	sse_init(&s);
	rc = 0;
	for (i = 0; i < 40 && rc == 0; i++) {
		rc = sse_feed(&s, "data: ", 6, note, &out, &e);
		rc = rc == 0 ? sse_feed(&s, big, sizeof(big), note, &out, &e) : rc;
		rc = rc == 0 ? sse_feed(&s, "\n", 1, note, &out, &e) : rc;
	}
	ok(rc < 0 && e.code == ERR_DATA && i < 40, "so is an event without end: %s", e.msg);
	sse_release(&s);
	buf_release(&out);
}

int
main(void)
{
	framing();
	ends();
	return done();
}

/*
 * `log tail`. Following goes by a place in the current log. Appending leaves it where it is; our compactions and their undoing
 * tell by how much they moved it (moved.h); and the lines printed before it show whether somebody else has written the log
 * anew, when it is looked for in the full history by those lines.
 */
#include "command.h"

#include "base/sha1.h"
#include "moved.h"
#include "stream.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static long lines = 10;
static bool follow;

#define POLL_MS 100
#define MARKS 16
#define MARKED_MAX (256u << 10)		/* bytes of the lines marked: they are read at each look */

/* A line before our place. */
struct mark {
	uint64_t before, len;		/* how far before it the line begins */
	unsigned char sha1[20];
};

struct follower {
	struct store *s;
	const char *id;
	struct buf path;
	uint64_t version, offset;	/* of the log; all before offset was printed, or is not to be */
	uint64_t moves;			/* that were made by then */
	struct mark marks[MARKS];	/* the last lines before it, in their order */
	size_t n;
};

static void
drop_marks(struct follower *f, size_t n)
{
	f->n -= n;
	memmove(f->marks, f->marks + n, f->n * sizeof(*f->marks));
}

/* The place goes to offset. */
static void
set_place(struct follower *f, uint64_t offset)
{
	size_t i;

	for (i = 0; i < f->n; i++)
		f->marks[i].before += offset - f->offset;
	f->offset = offset;
}

/* Behind this line, which begins at offset. */
static void
mark_line(struct follower *f, uint64_t offset, const char *line, size_t len)
{
	if (f->n == MARKS)
		drop_marks(f, 1);
	set_place(f, offset + len);
	f->marks[f->n] = (struct mark){ .before = len, .len = len };
	sha1_of(line, len, f->marks[f->n].sha1);
	f->n++;
	while (f->n > 1 && f->marks[0].before > MARKED_MAX)
		drop_marks(f, 1);
}

static void
print_line(const struct event *ev)
{
	cli_write(ev->line, ev->len);
	out_write("\n", 1);
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

static void
print_appended(struct follower *f, struct store_file *file, uint64_t size)
{
	struct window w = { .file = file, .at = f->offset, .end = complete_end(file, f->offset, size) };
	struct jsonl in;
	struct event ev;
	struct err e = ERR_INIT;
	int rc;

	jsonl_init(&in, f->id, JSONL_BAD_ONCE, read_window, &w);
	jsonl_set_position(&in, 0, f->offset);
	while ((rc = jsonl_next(&in, &ev, &e)) > 0) {
		print_line(&ev);
		mark_line(f, ev.offset, ev.line, ev.len);
		event_release(&ev);
	}
	if (rc < 0)
		fail(&e);
	jsonl_release(&in);
	set_place(f, w.end);
}

/* ---- our place in a log that has changed ---- */

static bool
still_there(const struct mark *m, uint64_t place, struct store_file *file)
{
	unsigned char sum[20];
	struct buf line = BUF_INIT;
	struct err e = ERR_INIT;

	if (store_file_add(file, place - m->before, place - m->before + m->len, &line, &e) < 0)
		fail(&e);
	sha1_of(line.data, line.len, sum);
	buf_release(&line);
	return memcmp(sum, m->sha1, sizeof(sum)) == 0;
}

/* Whether `place` is ours: the lines before it, as far as they were there before, are those that were. What was cut off since is forgotten. */
static bool
is_place(struct follower *f, int64_t place, int64_t near, struct store_file *file, uint64_t size)
{
	size_t i;

	if (place < 0 || (uint64_t)place > size)
		return false;
	for (i = f->n; i > 0 && f->marks[i - 1].before <= (uint64_t)near; i--)
		if (f->marks[i - 1].before > (uint64_t)place || !still_there(&f->marks[i - 1], (uint64_t)place, file))
			return false;
	drop_marks(f, i);
	f->offset = (uint64_t)place;
	return true;
}

/* ---- when it is not there any more ---- */

/* Looks for the marks in the full history. A place is an offset in all that is read of it. */
struct search {
	const struct follower *f;
	uint64_t expected;	/* where our place should be: of two as good, the nearer */
	bool sure;		/* and there it is */
	size_t run[MARKS];	/* [i]: how many of the marks up to i are the last lines */
	size_t best, matched;	/* the longest such run; marks found, those that follow it one by one included */
	uint64_t best_far, place;
};

static uint64_t
far(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* The line printed last where it should be, else a longer run of marked lines, or one as long that is nearer, tells the place; then any marked line that comes later. */
static void
look_at_line(struct search *s, const struct event *ev)
{
	const struct follower *f = s->f;
	unsigned char sum[20];
	uint64_t end = ev->offset + ev->len, at;
	bool summed = false, same;
	size_t i;

	for (i = f->n; i-- > 0 && !s->sure;) {
		const struct mark *m = &f->marks[i];

		same = m->len == ev->len;
		if (same && !summed)
			sha1_of(ev->line, ev->len, sum);
		summed = summed || same;
		same = same && memcmp(sum, m->sha1, sizeof(sum)) == 0;
		s->run[i] = same ? 1 + (i > 0 ? s->run[i - 1] : 0) : 0;
		if (!same)
			continue;
		at = end + m->before - m->len;
		s->sure = at == s->expected && i == f->n - 1;
		if (s->sure || s->run[i] > s->best || (s->run[i] == s->best && far(at, s->expected) < s->best_far)) {
			s->best = s->run[i];
			s->best_far = far(at, s->expected);
			s->matched = i + 1;
			s->place = end;
		} else if (i >= s->matched) {
			s->matched = i + 1;
			s->place = end;
		}
	}
}

static struct stream_reader *
open_history(struct follower *f)
{
	struct stream_reader *r;
	struct err e = ERR_INIT;

	if (stream_open(f->s, f->id, true, &r, &e) == 0)
		return r;
	if (e.code != ERR_NOINPUT && e.code != ERR_BUSY)
		fail(&e);
	return NULL;
}

/* Where the current log begins in the history. False when its parts did not stay for as long as this took. */
static bool
log_begin(struct stream_reader *r, uint64_t *begin)
{
	char block[65536];
	struct err e = ERR_INIT;
	uint64_t given = 0, in_log = 0;
	ssize_t n;

	do {
		n = stream_read(r, block, sizeof(block), &e);
		if (n < 0 && e.code == ERR_BUSY)
			return false;
		if (n < 0)
			fail(&e);
		given += (uint64_t)n;
	} while (n > 0 && !stream_in_log(r, &in_log));
	*begin = stream_in_log(r, &in_log) ? given - in_log : given;
	return true;
}

/* Prints the history from `place` on, and marks what is in the log. */
static void
print_history(struct follower *f, struct stream_reader *r, uint64_t begin, uint64_t place)
{
	struct jsonl in;
	struct event ev;
	struct err e = ERR_INIT;
	int rc;

	f->n = 0;
	f->offset = 0;
	jsonl_init(&in, f->id, JSONL_BAD_ONCE, stream_read, r);
	while ((rc = jsonl_next(&in, &ev, &e)) > 0) {
		if (ev.offset >= place)
			print_line(&ev);
		if (ev.offset >= begin)
			mark_line(f, ev.offset - begin, ev.line, ev.len);
		event_release(&ev);
	}
	if (rc < 0)
		fail(&e);
	jsonl_release(&in);
}

static bool
search_history(struct search *s, struct stream_reader *r)
{
	struct jsonl in;
	struct event ev;
	struct err e = ERR_INIT;
	int rc;

	jsonl_init(&in, s->f->id, JSONL_BAD_QUIET, stream_read, r);
	while ((rc = jsonl_next(&in, &ev, &e)) > 0) {
		look_at_line(s, &ev);
		event_release(&ev);
	}
	if (rc < 0 && e.code != ERR_BUSY)
		fail(&e);
	jsonl_release(&in);
	return rc == 0;
}

static bool
moved_since(struct follower *f, const struct moved *m)
{
	struct err e = ERR_INIT;
	uint64_t now;

	if (moved_version(f->s, f->id, &now, &e) < 0)
		fail(&e);
	return now != m->version;
}

/*
 * What was not printed was cut off before it was seen, or somebody else has written the log anew. When none of the marks
 * is found, this is another stream of that name. place: of the log's begin, where it should be. False when it was compacted
 * meanwhile: then all is to be looked at again, and nothing was printed.
 */
static bool
find_again(struct follower *f, const struct moved *now, int64_t place)
{
	struct search s = { .f = f };
	struct stream_reader *r;
	uint64_t begin = 0;
	bool read = true;
	int pass;

	for (pass = 0; read && pass < 3; pass++) {
		r = open_history(f);
		if (r == NULL || moved_since(f, now)) {
			stream_close(r);
			return false;
		}
		if (pass == 0) {
			read = log_begin(r, &begin);
			s.expected = begin + (uint64_t)place;
		} else if (pass == 1) {
			read = search_history(&s, r);
		} else {
			print_history(f, r, begin, s.best > 0 ? s.place : f->n == 0 && s.expected < begin ? s.expected : begin);
		}
		stream_close(r);
	}
	return read;
}

/* ---- following ---- */

/* Prints what has come to the log since. What a compaction changed while we look is looked at the next time. */
static void
catch_up(struct follower *f)
{
	struct store_file *file;
	struct store_stat st;
	struct moved now;
	struct err e = ERR_INIT;
	int64_t place = (int64_t)f->offset, near;
	bool found;

	if (moved_read(f->s, f->id, &now, &e) < 0)
		fail(&e);
	if (store_file_open(f->s, f->path.data, &file, &st, &e) < 0) {
		if (e.code != ERR_ABSENT)
			fail(&e);
		return;		/* removed, and perhaps begun again later */
	}
	if (moved_since(f, &now)) {
		store_file_close(file);
		return;
	}
	found = moved_place(&now, f->moves, &place, &near) && is_place(f, place, near, file, st.size);
	if (found)
		print_appended(f, file, st.size);
	store_file_close(file);
	if (found || find_again(f, &now, place)) {
		f->version = st.version;
		f->moves = now.count;
	}
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
open_tail(struct follower *f, uint64_t count, uint64_t *offset, struct jsonl *in, enum jsonl_bad on_bad)
{
	struct stream_reader *r;
	struct err e = ERR_INIT;

	if (stream_open_tail(f->s, f->id, count, &r, offset, &e) < 0)
		fail(&e);
	jsonl_init(in, f->id, on_bad, stream_read, r);
	if (*offset > 0)
		jsonl_set_position(in, 0, *offset);
	return r;
}

static void
close_tail(struct stream_reader *r, struct jsonl *in)
{
	jsonl_release(in);
	stream_close(r);
}

/* The place where the last lines begin, and what is before it. */
static void
find_place(struct follower *f)
{
	struct jsonl in;
	struct stream_reader *r;
	struct event ev;
	struct moved moved;
	struct err e = ERR_INIT;
	uint64_t from, place;

	do {
		f->n = 0;
		if (moved_read(f->s, f->id, &moved, &e) < 0)
			fail(&e);
		close_tail(open_tail(f, (uint64_t)lines, &place, &in, JSONL_BAD_QUIET), &in);
		r = open_tail(f, (uint64_t)lines + MARKS, &from, &in, JSONL_BAD_QUIET);
		while (jsonl_next(&in, &ev, &e) > 0) {
			if (ev.offset < place)
				mark_line(f, ev.offset, ev.line, ev.len);
			event_release(&ev);
		}
		close_tail(r, &in);
		set_place(f, place);
	} while (moved_since(f, &moved));
	f->moves = moved.count;
}

static noreturn void
follow_log(struct follower *f)
{
	find_place(f);
	for (;;) {
		catch_up(f);
		wait_for_change(f);
	}
}

static void
print_tail(struct follower *f)
{
	struct jsonl in;
	uint64_t from;
	struct stream_reader *r = open_tail(f, (uint64_t)lines, &from, &in, JSONL_BAD_ONCE);
	struct event ev;
	struct err e = ERR_INIT;
	int rc;

	while ((rc = jsonl_next(&in, &ev, &e)) > 0) {
		print_line(&ev);
		event_release(&ev);
	}
	if (rc < 0)
		fail(&e);
	close_tail(r, &in);
}

static int
run_tail(char **args, int n)
{
	struct follower f = { .s = open_store(STORE_READ), .path = BUF_INIT };

	f.id = stream_operand(f.s, n > 0 ? args[0] : "@last");
	stream_path(&f.path, f.id);
	if (follow)
		follow_log(&f);
	print_tail(&f);
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

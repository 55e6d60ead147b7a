#include "event/jsonl.h"

#include "base/io.h"
#include "base/log.h"
#include "base/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CHUNK (256u << 10)	/* bytes asked for at a time */
#define KEEP_MAX (4u << 20)	/* a buffer that one long line made larger is given back */

void
jsonl_init(struct jsonl *in, const char *name, enum jsonl_bad on_bad, jsonl_read_fn *read, void *arg)
{
	*in = (struct jsonl){ .name = name, .on_bad = on_bad, .read = read, .arg = arg, .fd = -1,
		.buf = BUF_INIT_MAX((size_t)EVENT_LINE_MAX + CHUNK), .number = 1 };
}

void
jsonl_init_fd(struct jsonl *in, const char *name, enum jsonl_bad on_bad, int fd)
{
	jsonl_init(in, name, on_bad, NULL, NULL);
	in->fd = fd;
}

void
jsonl_set_position(struct jsonl *in, uint64_t number, uint64_t offset)
{
	in->number = number;
	in->offset = offset;
}

void
jsonl_release(struct jsonl *in)
{
	buf_release(&in->buf);
}

static int
bad_line(struct jsonl *in, uint64_t number, uint64_t offset, const char *why, struct err *e)
{
	char where[64];

	if (number != 0)
		snprintf(where, sizeof(where), "%" PRIu64, number);
	else
		snprintf(where, sizeof(where), " line at offset %" PRIu64, offset);
	in->bad++;
	if (in->on_bad == JSONL_BAD_STOP)
		return err_set(e, ERR_DATA, "%s:%s: %s", in->name, where, why);
	if (in->on_bad != JSONL_BAD_QUIET && (in->on_bad != JSONL_BAD_ONCE || in->bad == 1))
		log_warn("%s:%s: %s", in->name, where, why);
	return 0;
}

int
jsonl_bad(struct jsonl *in, const struct event *ev, const struct err *why, struct err *e)
{
	return bad_line(in, ev->number, ev->offset, why->msg, e);
}

/* Reads on behind what the buffer holds, of which only the line at pos is kept. */
static int
fill(struct jsonl *in, struct err *e)
{
	ssize_t n;

	if (in->pos == in->buf.len && in->buf.cap > KEEP_MAX)
		buf_release(&in->buf);
	else
		buf_drop(&in->buf, in->pos);
	in->pos = 0;
	buf_reserve(&in->buf, CHUNK);
	if (in->read != NULL) {
		n = in->read(in->arg, in->buf.data + in->buf.len, CHUNK, e);
	} else {
		n = io_read(in->fd, in->buf.data + in->buf.len, CHUNK);
		if (n < 0)
			err_sys(e, "cannot read %s", in->name);
	}
	if (n < 0)
		return -1;
	in->buf.len += (size_t)n;
	in->buf.data[in->buf.len] = '\0';
	in->eof = n == 0;
	return 0;
}

/* Takes n bytes off as read. */
static void
advance(struct jsonl *in, size_t n)
{
	in->pos += n;
	in->offset += n;
	in->searched = 0;
}

/* Reports the line that has become too long, and lets go of what is there of it. */
static int
begin_skipping(struct jsonl *in, struct err *e)
{
	char why[64];

	snprintf(why, sizeof(why), "byte %u: longer than %u MiB", EVENT_LINE_MAX + 1, EVENT_LINE_MAX >> 20);
	in->skipping = true;
	if (bad_line(in, in->number, in->offset, why, e) < 0)
		return -1;
	advance(in, in->buf.len - in->pos);
	return 0;
}

/* Finds the end of the line at pos: its bytes and those of its newline (0 where the input ends without). 1, 0 at the end, -1. */
static int
find_line(struct jsonl *in, size_t *len, size_t *newline, struct err *e)
{
	const char *start, *end;
	size_t have;

	for (;;) {
		start = in->buf.data + in->pos;
		have = in->buf.len - in->pos;
		end = memchr(start + in->searched, '\n', have - in->searched);
		if (end != NULL) {
			*len = (size_t)(end - start);
			*newline = 1;
			return 1;
		}
		in->searched = have;
		if (in->eof) {
			*len = have;
			*newline = 0;
			return have > 0 || in->skipping;
		}
		if (in->skipping)
			advance(in, have);
		else if (have > EVENT_LINE_MAX && begin_skipping(in, e) < 0)
			return -1;
		if (fill(in, e) < 0)
			return -1;
	}
}

static bool
is_blank(const char *line, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
			return false;
	return true;
}

/* Makes the event of the line at pos. 1, 0 when it is to be passed over, -1. */
static int
take_line(struct jsonl *in, size_t len, struct event *ev, struct err *e)
{
	const char *line = in->buf.data + in->pos;
	struct err why = ERR_INIT;
	size_t bom = 0;

	if (in->skipping) {
		in->skipping = false;
		return 0;
	}
	if (in->offset == 0 && len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0)
		bom = 3;
	if (is_blank(line + bom, len - bom))
		return 0;
	if (event_view(ev, line + bom, len - bom, &why) < 0)
		return bad_line(in, in->number, in->offset, why.msg, e);
	ev->number = in->number;
	ev->offset = in->offset + bom;
	return 1;
}

int
jsonl_next(struct jsonl *in, struct event *ev, struct err *e)
{
	size_t len, newline;
	int r;

	for (;;) {
		if (run_check(e) < 0)
			return -1;
		r = find_line(in, &len, &newline, e);
		if (r <= 0)
			return r;
		r = take_line(in, len, ev, e);
		advance(in, len + newline);
		if (in->number != 0)
			in->number++;
		if (r != 0)
			return r;
	}
}

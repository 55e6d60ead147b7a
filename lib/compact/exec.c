/*
 * Your own: a command gets the events and prints those that stay, and new ones where it likes. What it does not print is
 * dropped. Memory: what it prints, and a digest of each line of it.
 */
#include "compact/job.h"

#include "base/alloc.h"
#include "base/io.h"
#include "base/run.h"
#include "base/sha1.h"
#include "policy/idset.h"

#include <stdlib.h>
#include <unistd.h>

#define OUTPUT_MAX (1u << 30)

/* A line that the command printed, and how often it is still to be found in the history. */
struct line {
	uint64_t head_at;
	uint64_t left;
};

struct lines {
	struct idset set;		/* of their digests */
	struct line *items;
	size_t cap;
};

/* ---- its input ---- */

static int
flush(int fd, struct buf *b, struct err *e)
{
	int rc = io_write_all(fd, b->data, b->len) < 0 ? err_sys(e, "cannot write a temporary file") : 0;

	buf_reset(b);
	return rc;
}

/* The good lines, in a temporary file at its start; *upto is where the last of them ends. */
static int
write_input(struct job *j, uint64_t *upto, struct err *e)
{
	int fd = compact_tmpfile(j->c->tmpdir, e), rc;
	struct buf b = BUF_INIT;
	struct event ev;

	if (fd < 0)
		return -1;
	*upto = 0;
	rc = source_begin(&j->in, 0, j->in.size, 0, e);
	while (rc == 0 && (rc = source_next(&j->in, &ev, e)) > 0) {
		buf_add(&b, ev.line, ev.len);
		buf_addch(&b, '\n');
		*upto = ev.offset + ev.len + 1;
		event_release(&ev);
		rc = b.len > 1u << 20 ? flush(fd, &b, e) : 0;
	}
	if (*upto > j->in.size)
		*upto = j->in.size;
	source_end(&j->in);
	if (rc == 0)
		rc = flush(fd, &b, e);
	if (rc == 0 && lseek(fd, 0, SEEK_SET) != 0)
		rc = err_sys(e, "cannot read a temporary file");
	buf_release(&b);
	if (rc == 0)
		return fd;
	close(fd);
	return -1;
}

static int
run_command(struct job *j, uint64_t *upto, struct buf *out, struct err *e)
{
	int in = write_input(j, upto, e), status;
	struct run r = { .shell = j->c->spec.choice.command, .env = j->c->env, .cwd = j->c->spec.cwd, .input_fd = in, .out = out };

	if (in < 0)
		return -1;
	if (job_start(j, *upto, e) < 0) {
		close(in);
		return -1;
	}
	status = run(&r, e);
	close(in);
	if (status < 0)
		return err_wrap(e, "exec:%.200s", j->c->spec.choice.command);
	if (status > 0)
		return err_set(e, ERR_UNAVAIL, "exec:%.200s: exited with status %d", j->c->spec.choice.command, status);
	return 0;
}

/* ---- its output ---- */

static int
take_line(struct job *j, struct lines *l, const char *line, size_t len, uint64_t number, struct err *e)
{
	unsigned char sum[20];
	struct json_peek peek;
	const char *why;
	struct event ev;
	size_t at;
	bool fresh;

	if (event_view(&ev, line, len, e) < 0)
		return err_wrap(e, "line %llu of its output", (unsigned long long)number);
	if (json_check(line, len, &at, &why) < 0 || json_scan(line, len, &peek, &at, &why) < 0)
		return err_set(e, ERR_DATA, "line %llu of its output: byte %zu: %s", (unsigned long long)number, at + 1, why);
	if (peek.type == NULL || peek.data == NULL || (ev.type->flags & EV_TRANSIENT) || (!j->filter && (ev.type->flags & EV_PROMPT)))
		return err_set(e, ERR_DATA, "line %llu of its output is no event of a log", (unsigned long long)number);
	sha1_of(line, len, sum);
	at = idset_add(&l->set, (const char *)sum, sizeof(sum), &fresh);
	if (fresh) {
		l->items = xgrow(l->items, at, &l->cap, sizeof(*l->items));
		l->items[at] = (struct line){ .head_at = j->head.len };
	}
	l->items[at].left++;
	buf_add(&j->head, line, len);
	buf_addch(&j->head, '\n');
	j->head_lines++;
	return 0;
}

static int
take_output(struct job *j, struct lines *l, const struct buf *out, struct err *e)
{
	const char *p = out->data, *stop = p + out->len, *end;
	uint64_t number = 0;

	for (; p < stop; p = end + 1) {
		end = memchr(p, '\n', (size_t)(stop - p));
		if (end == NULL)
			end = stop;
		number++;
		if (strspn(p, " \t\r") >= (size_t)(end - p))
			continue;
		if (take_line(j, l, p, (size_t)(end - p), number, e) < 0)
			return -1;
	}
	return j->head_lines > 0 ? 0 : err_set(e, ERR_UNAVAIL, "it printed no events");
}

/* ---- what it dropped ---- */

/* Neighbours here and there are one piece. */
static void
keep(struct cut *cut, const struct kept *k)
{
	struct kept *last = cut->nkept > 0 ? &cut->kept[cut->nkept - 1] : NULL;

	if (last != NULL && last->offset + last->len == k->offset && last->head_at + last->len == k->head_at)
		last->len += k->len;
	else
		cut_keep(cut, k);
}

/* Goes through the history: the lines that were printed stay, the others go. */
static int
compare(struct job *j, struct lines *l, uint64_t upto, uint64_t *gone, struct err *e)
{
	struct event ev;
	unsigned char sum[20];
	struct kept k = { .len = 0 };
	size_t at;
	int rc = source_begin(&j->in, 0, upto, 0, e);

	*gone = 0;
	while (rc == 0 && (rc = source_next(&j->in, &ev, e)) > 0) {
		sha1_of(ev.line, ev.len, sum);
		at = idset_find(&l->set, (const char *)sum, sizeof(sum));
		if (at != SIZE_MAX && l->items[at].left > 0) {
			l->items[at].left--;
			k = (struct kept){ .offset = ev.offset, .len = ev.len + 1, .head_at = l->items[at].head_at };
			if (k.offset + k.len > upto)
				k.len = upto - k.offset;
			keep(&j->cut, &k);
		} else {
			++*gone;
		}
		event_release(&ev);
		rc = 0;
	}
	source_end(&j->in);
	return rc;
}

static int
exec_run(struct job *j, struct err *e)
{
	struct buf out = BUF_INIT_MAX(OUTPUT_MAX);
	struct lines l = { .set = IDSET_INIT };
	uint64_t upto, gone = 0;
	int rc = run_command(j, &upto, &out, e);

	if (rc == 0) {
		rc = take_output(j, &l, &out, e);
		if (rc < 0)
			err_wrap(e, "exec:%.200s", j->c->spec.choice.command);
	}
	if (rc == 0)
		rc = compare(j, &l, upto, &gone, e);
	if (rc == 0 && gone > 0) {
		if (j->head_lines >= j->cut.lines)
			rc = err_set(e, ERR_UNAVAIL, "exec:%.200s: it printed as many events as it was given", j->c->spec.choice.command);
		j->cut.at = upto;
		j->cut.lines_before = j->cut.lines;
	}
	idset_release(&l.set);
	free(l.items);
	buf_release(&out);
	return rc;
}

const struct compact_strategy compact_exec = {
	.name = "exec",
	.class_name = "ExecCompact",
	.slow = true,
	.run = exec_run,
};

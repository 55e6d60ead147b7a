#include "policy/spool.h"

#include "base/io.h"
#include "policy/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHUNK (256 * 1024)

struct record {			/* then len bytes of the line */
	const struct event_type *type;	/* NULL: a mark */
	uint64_t number, offset, mark;
	uint32_t data_at, data_len;
	size_t len;
};

int
chain_tmpfile(const char *dir, struct err *e)
{
	const char *const dirs[] = { dir, "/var/tmp", "/tmp" };
	char name[4096];
	int fd = -1;
	size_t i;

	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]) && fd < 0; i++) {
		if (dirs[i] == NULL)
			continue;
		fd = open(dirs[i], O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
		if (fd >= 0)
			break;
		if (snprintf(name, sizeof(name), "%s/ag2.XXXXXX", dirs[i]) >= (int)sizeof(name))
			continue;
		fd = mkostemp(name, O_CLOEXEC);	/* file systems without O_TMPFILE */
		if (fd >= 0)
			unlink(name);
	}
	return fd >= 0 ? fd : err_sys(e, "cannot create a temporary file");
}

static int
spill(struct spool *s, struct err *e)
{
	if (s->fd < 0 && (s->fd = chain_tmpfile(s->dir, e)) < 0)
		return -1;
	if (io_write_all(s->fd, s->memory.data, s->memory.len) < 0)
		return err_sys(e, "cannot write a temporary file");
	s->in_file += s->memory.len;
	if (s->memory.cap > 2 * SPOOL_MEMORY)
		buf_release(&s->memory);
	buf_reset(&s->memory);
	return 0;
}

int
spool_add(struct spool *s, const struct event *ev, uint64_t mark, struct err *e)
{
	struct record r = { .number = mark };

	if (ev != NULL)
		r = (struct record){ ev->type, ev->number, ev->offset, ev->mark, ev->data_at, ev->data_len, ev->len };
	if (s->memory.len > 0 && s->memory.len + sizeof(r) + r.len > SPOOL_MEMORY && spill(s, e) < 0)
		return -1;
	buf_add(&s->memory, &r, sizeof(r));
	if (ev != NULL)
		buf_add(&s->memory, ev->line, ev->len);
	s->records++;
	return 0;
}

static int
give(const struct spool_reader *reader, const struct record *r, const char *line, struct err *e)
{
	struct event ev = { .type = r->type, .line = line, .len = r->len, .number = r->number, .offset = r->offset,
		.mark = r->mark, .data_at = r->data_at, .data_len = r->data_len };
	int rc;

	if (r->type == NULL)
		return reader->mark(reader->arg, r->number, e);
	rc = reader->event(reader->arg, &ev, e);
	event_release(&ev);
	return rc;
}

/* Gives the whole records in b from *pos on. */
static int
give_all(const struct spool_reader *reader, const struct buf *b, size_t *pos, struct err *e)
{
	struct record r;
	int rc = 0;

	while (rc == 0 && b->len - *pos >= sizeof(r)) {
		memcpy(&r, b->data + *pos, sizeof(r));
		if (b->len - *pos - sizeof(r) < r.len)
			break;
		rc = give(reader, &r, b->data + *pos + sizeof(r), e);
		*pos += sizeof(r) + r.len;
	}
	return rc;
}

static int
play_file(struct spool *s, const struct spool_reader *reader, struct err *e)
{
	struct buf b = BUF_INIT;
	uint64_t at = 0;
	size_t pos = 0;
	ssize_t n;
	int rc = 0;

	while (rc == 0 && at < s->in_file) {
		buf_drop(&b, pos);
		pos = 0;
		buf_reserve(&b, CHUNK);
		n = pread(s->fd, b.data + b.len, CHUNK, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			rc = n < 0 ? err_sys(e, "cannot read a temporary file") : err_set(e, ERR_IO, "a temporary file was cut short");
			break;
		}
		b.len += (size_t)n;
		at += (uint64_t)n;
		rc = give_all(reader, &b, &pos, e);
	}
	buf_release(&b);
	return rc;
}

int
spool_play(struct spool *s, const struct spool_reader *reader, struct err *e)
{
	size_t pos = 0;
	int rc = play_file(s, reader, e);

	return rc != 0 ? rc : give_all(reader, &s->memory, &pos, e);
}

void
spool_release(struct spool *s)
{
	const char *dir = s->dir;

	if (s->fd >= 0)
		close(s->fd);
	buf_release(&s->memory);
	*s = (struct spool)SPOOL_INIT;
	s->dir = dir;
}

#include "compact/job.h"

#include "base/alloc.h"
#include "base/io.h"
#include "base/sha1.h"
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (256 * 1024)

int
compact_tmpfile(const char *dir, struct err *e)
{
	const char *const dirs[] = { dir, "/var/tmp", "/tmp" };
	char name[4096];
	int fd = -1;
	size_t i;

	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]) && fd < 0; i++) {
		if (dirs[i] == NULL)
			continue;
		fd = open(dirs[i], O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
		if (fd >= 0 || snprintf(name, sizeof(name), "%s/ag2.XXXXXX", dirs[i]) >= (int)sizeof(name))
			continue;
		fd = mkostemp(name, O_CLOEXEC);	/* file systems without O_TMPFILE */
		if (fd >= 0)
			unlink(name);
	}
	return fd >= 0 ? fd : err_sys(e, "cannot create a temporary file");
}

int
source_of_log(struct source *in, struct store *s, const char *stream, enum jsonl_bad on_bad, struct err *e)
{
	struct err why = ERR_INIT;
	struct store_stat st;
	struct buf path = BUF_INIT;

	*in = (struct source){ .name = stream, .on_bad = on_bad, .store = s, .fd = -1 };
	stream_path(&path, stream);
	in->path = buf_detach(&path, NULL);
	if (store_file_open(s, in->path, &in->file, &st, &why) < 0) {
		in->file = NULL;
		if (why.code == ERR_ABSENT)
			return err_set(e, ERR_NOINPUT, "there is no stream '%s' in %s", stream, store_url(s));
		return err_set(e, why.code, "%s", why.msg);
	}
	in->size = st.size;
	in->version = st.version;
	in->held = true;
	return 0;
}

static int
copy_all(int from, int to, const char *name, struct err *e)
{
	char *chunk = xmalloc(CHUNK);
	ssize_t n;
	int rc = 0;

	while (rc == 0 && (n = io_read(from, chunk, CHUNK)) != 0)
		if (n < 0)
			rc = err_sys(e, "cannot read %s", name);
		else if (io_write_all(to, chunk, (size_t)n) < 0)
			rc = err_sys(e, "cannot write a temporary file");
	free(chunk);
	return rc;
}

int
source_of_fd(struct source *in, int fd, const char *name, enum jsonl_bad on_bad, const char *tmpdir, struct err *e)
{
	struct stat st;

	*in = (struct source){ .name = name, .on_bad = on_bad, .fd = -1 };
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && lseek(fd, 0, SEEK_CUR) == 0) {
		in->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	} else {
		in->fd = compact_tmpfile(tmpdir, e);
		if (in->fd < 0 || copy_all(fd, in->fd, name, e) < 0)
			return -1;
	}
	if (in->fd < 0 || fstat(in->fd, &st) < 0)
		return err_sys(e, "cannot read %s", name);
	in->size = (uint64_t)st.st_size;
	return 0;
}

void
source_release(struct source *in)
{
	source_end(in);
	source_let_go(in);
	free(in->path);
	if (in->fd >= 0)
		close(in->fd);
	*in = (struct source){ .fd = -1 };
}

static ssize_t
read_at(struct source *in, uint64_t offset, void *data, size_t len, struct err *e)
{
	ssize_t n;

	if (in->file != NULL)
		return store_file_read(in->file, offset, data, len, e);
	do
		n = pread(in->fd, data, len, (off_t)offset);
	while (n < 0 && errno == EINTR);
	return n < 0 ? err_sys(e, "cannot read %s", in->name) : n;
}

static int
open_file(struct source *in, struct err *e)
{
	if (in->store == NULL || in->file != NULL)
		return 0;
	return store_file_open(in->store, in->path, &in->file, NULL, e);
}

static void
close_file(struct source *in)
{
	if (in->held)
		return;
	store_file_close(in->file);
	in->file = NULL;
}

void
source_let_go(struct source *in)
{
	in->held = false;
	close_file(in);
}

static ssize_t
read_next(void *arg, void *data, size_t len, struct err *e)
{
	struct source *in = arg;
	ssize_t n;

	if (len > in->end - in->at)
		len = (size_t)(in->end - in->at);
	n = len > 0 ? read_at(in, in->at, data, len, e) : 0;
	in->at += n > 0 ? (uint64_t)n : 0;
	return n;
}

int
source_begin(struct source *in, uint64_t from, uint64_t to, uint64_t number, struct err *e)
{
	if (open_file(in, e) < 0)
		return -1;
	in->at = from;
	in->end = to;
	jsonl_init(&in->lines, in->name, in->again ? JSONL_BAD_QUIET : in->on_bad, read_next, in);
	jsonl_set_position(&in->lines, number, from);
	return 0;
}

int
source_next(struct source *in, struct event *ev, struct err *e)
{
	return jsonl_next(&in->lines, ev, e);
}

int
source_bad(struct source *in, const struct event *ev, const struct err *why, struct err *e)
{
	return jsonl_bad(&in->lines, ev, why, e);
}

void
source_end(struct source *in)
{
	if (in->lines.read == NULL)
		return;
	if (!in->again)
		in->bad += in->lines.bad;
	in->again = true;
	jsonl_release(&in->lines);
	in->lines = (struct jsonl){ .read = NULL };
	close_file(in);
}

int
source_read(struct source *in, uint64_t offset, uint64_t len, struct buf *out, struct err *e)
{
	uint64_t end = offset + len;
	ssize_t n;
	int rc = 0;

	if (open_file(in, e) < 0)
		return -1;
	buf_reserve(out, (size_t)len);
	while (rc == 0 && offset < end) {
		n = read_at(in, offset, out->data + out->len, (size_t)(end - offset), e);
		if (n < 0)
			rc = -1;
		else if (n == 0)
			rc = err_set(e, ERR_CONFLICT, "'%s' has become shorter while it was read", in->name);
		else {
			out->len += (size_t)n;
			offset += (uint64_t)n;
		}
		out->data[out->len] = '\0';
	}
	close_file(in);
	return rc;
}

int
source_sha1(struct source *in, uint64_t upto, unsigned char sum[20], struct err *e)
{
	char *chunk = xmalloc(CHUNK);
	struct sha1 h;
	uint64_t at = 0;
	ssize_t n;
	int rc = open_file(in, e);

	sha1_init(&h);
	while (rc == 0 && at < upto) {
		n = read_at(in, at, chunk, upto - at < CHUNK ? (size_t)(upto - at) : CHUNK, e);
		if (n <= 0)
			rc = n < 0 ? -1 : err_set(e, ERR_CONFLICT, "'%s' has become shorter while it was read", in->name);
		else
			sha1_add(&h, chunk, (size_t)n);
		at += n > 0 ? (uint64_t)n : 0;
	}
	sha1_end(&h, sum);
	close_file(in);
	free(chunk);
	return rc;
}

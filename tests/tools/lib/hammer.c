#include "hammer.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/io.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void (*on_failure)(void);

noreturn void
give_up(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	if (on_failure != NULL)
		on_failure();
	_exit(1);
}

void
say(const char *fmt, ...)
{
	struct buf b = BUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	buf_vaddf(&b, fmt, ap);
	va_end(ap);
	if (io_write_all(1, b.data, b.len) < 0)
		_exit(1);
	buf_release(&b);
}

long
number(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text || *end != '\0' || n < 0)
		give_up("'%s' is no number", text);
	return n;
}

uint64_t
draw(uint64_t *x, uint64_t below)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x % below;
}

uint64_t
seed_now(void)
{
	return (uint64_t)(clock_monotonic() * 1e9) | 1;
}

static struct store *
try_open(const char *url, enum store_mode mode, bool must)
{
	struct store_options o = { .mode = mode, .timeout_ms = 30000 };
	struct store *s = NULL;
	struct err e = ERR_INIT;

	if (store_open(&s, url, &o, &e) < 0 && (must || e.code != ERR_NOINPUT))
		give_up("%s: %s", url, e.msg);
	return s;
}

struct store *
opened(const char *url, enum store_mode mode)
{
	return try_open(url, mode, true);
}

struct store *
opened_if_there(const char *url)
{
	return try_open(url, STORE_READ, false);
}

struct down {
	struct store *s;
	const char *path;
	struct buf *out;
};

static int
snapshot_entry(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	struct down *d = arg;
	char *path = xasprintf("%s/%s", d->path[1] ? d->path : "", name);

	buf_addf(d->out, "%s%s\n", path, dir ? "/" : "");
	snapshot(d->s, path, d->out);
	free(path);
	return 0;
}

void
snapshot(struct store *s, const char *path, struct buf *out)
{
	struct down d = { .s = s, .path = path, .out = out };
	struct err e = ERR_INIT;

	if (store_read(s, path, out, NULL, &e) < 0 && e.code != ERR_ABSENT)
		give_up("%s", e.msg);
	if (store_list(s, path, 0, snapshot_entry, &d, &e) < 0)
		give_up("%s", e.msg);
}

bool
same(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

void
record(struct buf *b, const char *tag, long i, size_t size)
{
	size_t from = b->len, k;

	buf_addf(b, "%s %ld %zu ", tag, i, size);
	for (k = b->len - from; k + 1 < size; k++)
		buf_addch(b, (char)('a' + (k * 7 + (size_t)i) % 26));
	buf_addch(b, '\n');
}

size_t
record_at(const char *p, size_t len, char tag[TAG_MAX], long *i)
{
	const char *end = memchr(p, '\n', len);
	struct buf want = BUF_INIT;
	char head[100];
	size_t size = 0, n, k;
	bool whole;

	if (end == NULL)
		return 0;
	n = (size_t)(end - p) + 1;
	k = n < sizeof(head) ? n : sizeof(head) - 1;
	memcpy(head, p, k);
	head[k] = '\0';
	if (sscanf(head, "%31s %ld %zu", tag, i, &size) != 3 || size > n + 100)
		return 0;
	record(&want, tag, *i, size);
	whole = want.len == n && memcmp(want.data, p, n) == 0;
	buf_release(&want);
	return whole ? n : 0;
}

#include "llm/sse.h"

#define LINE_MAX_BYTES (16u << 20)

void
sse_init(struct sse *s)
{
	*s = (struct sse){ .line = BUF_INIT_MAX(LINE_MAX_BYTES), .data = BUF_INIT_MAX(LINE_MAX_BYTES), .event = BUF_INIT_MAX(1024) };
}

void
sse_release(struct sse *s)
{
	buf_release(&s->line);
	buf_release(&s->data);
	buf_release(&s->event);
}

static int
dispatch(struct sse *s, sse_fn *fn, void *arg, struct err *e)
{
	int rc = 0;

	if (s->data.len > 0) {
		s->data.data[--s->data.len] = '\0';	/* each data line ended in a newline */
		rc = fn(arg, s->event.data, s->data.data, s->data.len, e);
	}
	buf_reset(&s->data);
	buf_reset(&s->event);
	return rc;
}

static bool
is_field(const char *line, size_t len, const char *name)
{
	return strlen(name) == len && memcmp(line, name, len) == 0;
}

static int
take_line(struct sse *s, const char *line, size_t len, sse_fn *fn, void *arg, struct err *e)
{
	const char *colon, *value;
	size_t name_len, value_len;

	if (len == 0)
		return dispatch(s, fn, arg, e);
	colon = memchr(line, ':', len);
	if (colon == line) {
		s->comments++;
		return 0;
	}
	name_len = colon != NULL ? (size_t)(colon - line) : len;
	value = line + name_len + (colon != NULL);
	value_len = len - (size_t)(value - line);
	if (value_len > 0 && *value == ' ') {
		value++;
		value_len--;
	}
	if (is_field(line, name_len, "data")) {
		buf_add(&s->data, value, value_len);
		buf_addch(&s->data, '\n');
		if (s->data.over)
			return err_set(e, ERR_DATA, "an event of the answer is larger than %u bytes", LINE_MAX_BYTES);
	} else if (is_field(line, name_len, "event")) {
		buf_reset(&s->event);
		buf_add(&s->event, value, value_len);
	}
	return 0;
}

/* The byte order mark that a stream may begin with, however it is split. Returns how many bytes were taken. */
static size_t
skip_bom(struct sse *s, const char *bytes, size_t len)
{
	static const char mark[] = "\xef\xbb\xbf";
	size_t n = 0;

	while (!s->started && n < len) {
		if (bytes[n] == mark[s->bom]) {
			n++;
			s->started = ++s->bom == 3;
			continue;
		}
		buf_add(&s->line, mark, (size_t)s->bom);
		s->started = true;
	}
	return n;
}

static size_t
line_length(const char *bytes, size_t len)
{
	const char *lf = memchr(bytes, '\n', len), *cr = memchr(bytes, '\r', lf != NULL ? (size_t)(lf - bytes) : len);

	return cr != NULL ? (size_t)(cr - bytes) : lf != NULL ? (size_t)(lf - bytes) : len;
}

int
sse_feed(struct sse *s, const char *bytes, size_t len, sse_fn *fn, void *arg, struct err *e)
{
	size_t i = skip_bom(s, bytes, len), n;
	int rc = 0;

	while (rc == 0 && i < len) {
		if (s->cr && bytes[i] == '\n')
			i++;
		s->cr = false;
		n = line_length(bytes + i, len - i);
		if (s->line.len > 0 || i + n == len)
			buf_add(&s->line, bytes + i, n);
		if (s->line.over || n > LINE_MAX_BYTES)
			return err_set(e, ERR_DATA, "a line of the answer is longer than %u bytes", LINE_MAX_BYTES);
		if (i + n == len)
			return 0;
		s->cr = bytes[i + n] == '\r';
		if (s->line.len > 0)
			rc = take_line(s, s->line.data, s->line.len, fn, arg, e);
		else
			rc = take_line(s, bytes + i, n, fn, arg, e);
		buf_reset(&s->line);
		i += n + 1;
	}
	return rc;
}

int
sse_end(struct sse *s, sse_fn *fn, void *arg, struct err *e)
{
	int rc = s->line.len > 0 ? take_line(s, s->line.data, s->line.len, fn, arg, e) : 0;

	buf_reset(&s->line);
	return rc != 0 ? rc : dispatch(s, fn, arg, e);
}

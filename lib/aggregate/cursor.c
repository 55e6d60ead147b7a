#include "aggregate/cursor.h"

#include "base/alloc.h"
#include "base/sha1.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define FILE_MAX (1u << 20)
#define HEAD "ag2 cursor 1\n"
#define NAME_BYTES 8

void
cursor_path(struct buf *out, const char *key, const char *stream)
{
	buf_reset(out);
	buf_addf(out, CURSOR_DIR "/%s/%s", key, stream);
}

struct line_sum
line_sum(const char *line, size_t len)
{
	struct line_sum sum;

	sha1_of(line, len, sum.sha1);
	return sum;
}

char *
digest_name(const void *data, size_t len)
{
	struct line_sum sum = line_sum(data, len);
	struct buf name = BUF_INIT;

	buf_addhex(&name, sum.sha1, NAME_BYTES);
	return buf_detach(&name, NULL);
}

bool
line_sum_is(const struct line_sum *a, const struct line_sum *b)
{
	return memcmp(a->sha1, b->sha1, sizeof(a->sha1)) == 0;
}

void
cursor_add_open(struct cursor *c, const struct line_sum *sum)
{
	if (c->open_n == CURSOR_OPEN_MAX) {
		memmove(c->open, c->open + 1, (c->open_n - 1) * sizeof(c->open[0]));
		c->open_n--;
	}
	c->open = xrealloc(c->open, c->open_n + 1, sizeof(c->open[0]));
	c->open[c->open_n++] = *sum;
}

void
cursor_copy(struct cursor *to, const struct cursor *from)
{
	size_t i;

	*to = *from;
	to->open = NULL;
	to->open_n = 0;
	for (i = 0; i < from->open_n; i++)
		cursor_add_open(to, &from->open[i]);
}

void
cursor_release(struct cursor *c)
{
	free(c->open);
	*c = (struct cursor){ 0 };
}

void
cursor_format(struct buf *out, const struct cursor *c)
{
	size_t i;

	buf_addf(out, HEAD "covered %" PRIu64 "\n", c->covered);
	if (c->anchor > 0) {
		buf_addf(out, "anchor %" PRIu64 " ", c->anchor);
		buf_addhex(out, c->sum.sha1, sizeof(c->sum.sha1));
		buf_addch(out, '\n');
	}
	if (c->len > 0)
		buf_addf(out, "at %" PRIu64 " %" PRIu64, c->offset, c->len);
	if (c->len > 0 && c->segment > 0)
		buf_addf(out, " behind %" PRIu64 " %" PRIu64, c->segment, c->segment_version);
	if (c->len > 0)
		buf_addch(out, '\n');
	if (c->seen > 0)
		buf_addf(out, "seen %" PRIu64 "\n", c->seen);
	for (i = 0; i < c->open_n; i++) {
		buf_adds(out, "open ");
		buf_addhex(out, c->open[i].sha1, sizeof(c->open[i].sha1));
		buf_addch(out, '\n');
	}
}

static bool
parse_sum(const char *text, struct line_sum *out)
{
	unsigned byte;
	size_t i;

	for (i = 0; i < sizeof(out->sha1); i++) {
		if (strspn(text + 2 * i, "0123456789abcdef") < 2 || sscanf(text + 2 * i, "%2x", &byte) != 1)
			return false;
		out->sha1[i] = (unsigned char)byte;
	}
	return text[2 * i] == '\0';
}

static bool
parse_line(struct cursor *c, const char *line)
{
	struct line_sum sum;
	char text[64];

	if (strncmp(line, "open ", 5) == 0) {
		if (!parse_sum(line + 5, &sum))
			return false;
		cursor_add_open(c, &sum);
		return true;
	}
	if (sscanf(line, "anchor %" SCNu64 " %63s", &c->anchor, text) == 2)
		return c->anchor > 0 && parse_sum(text, &c->sum);
	if (sscanf(line, "at %" SCNu64 " %" SCNu64 " behind %" SCNu64 " %" SCNu64, &c->offset, &c->len, &c->segment, &c->segment_version) >= 2)
		return true;
	return sscanf(line, "seen %" SCNu64, &c->seen) == 1 || sscanf(line, "covered %" SCNu64, &c->covered) == 1;
}

static bool
parse(struct cursor *c, char *text)
{
	char *line, *rest = text + strlen(HEAD);

	if (strncmp(text, HEAD, strlen(HEAD)) != 0)
		return false;
	while ((line = strsep(&rest, "\n")) != NULL)
		if (line[0] != '\0' && !parse_line(c, line))
			return false;
	return true;
}

int
cursor_read(struct store *s, const char *path, struct cursor *c, struct err *e)
{
	struct buf text = BUF_INIT_MAX(FILE_MAX);
	struct store_stat st;
	struct err why = ERR_INIT;
	int rc;

	*c = (struct cursor){ 0 };
	rc = store_read(s, path, &text, &st, &why);
	if (rc < 0 && why.code == ERR_ABSENT) {
		rc = 0;
	} else if (rc < 0) {
		err_set(e, why.code, "%s", why.msg);
	} else if (!parse(c, text.data)) {
		rc = err_set(e, ERR_DATA, "'%s' is no cursor (--reset begins anew)", path);
		cursor_release(c);
	} else {
		c->version = st.version;
	}
	buf_release(&text);
	return rc;
}

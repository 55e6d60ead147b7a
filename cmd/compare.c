#include "compare.h"

#include "cli.h"

#include "event/render.h"
#include "llm/outline.h"

#include <string.h>

#define COMPARE_MAX (256u << 20)

struct search {
	size_t at;		/* the byte */
	struct outline_part part;
};

static int
find_part(void *arg, const struct outline_part *p)
{
	struct search *s = arg;

	if (p->end <= s->at)
		return 0;
	s->part = *p;
	return 1;
}

static size_t
common(const struct buf *a, const struct buf *b)
{
	size_t i, n = a->len < b->len ? a->len : b->len;

	for (i = 0; i < n && a->data[i] == b->data[i]; i++)
		;
	return i;
}

void
compare_tell(const char *name, const struct buf *before, const struct buf *now, int chars)
{
	struct search s = { .at = common(before, now) };
	struct buf where = BUF_INIT;
	int64_t tokens = text_tokens(now->data + s.at, now->len - s.at, chars);

	if (s.at == now->len && s.at == before->len) {
		log_warn("compare: all %zu bytes are those of %s", now->len, name);
		return;
	}
	if (s.at == now->len) {
		if (now->len == 0)
			log_warn("compare: nothing came out, where %s has %zu bytes", name, before->len);
		else
			log_warn("compare: all %zu bytes are the beginning of %s, which has %zu more", now->len, name, before->len - now->len);
		return;
	}
	if (outline(now->data, now->len, find_part, &s) == 0)
		buf_adds(&where, "its end");
	else if (s.part.name_len == 4 && memcmp(s.part.name, "line", 4) == 0)
		buf_addf(&where, "line %ld", s.part.index + 1);
	else if (s.part.index < 0)
		buf_addf(&where, "\"%.*s\"", (int)s.part.name_len, s.part.name);
	else
		buf_addf(&where, "%.*s[%ld]", (int)s.part.name_len, s.part.name, s.part.index);
	log_warn("compare: byte %zu of %zu (%.0f %%) is the first that differs from %s, in %s; %lld tokens from there on", s.at + 1,
	    now->len, 100.0 * (double)s.at / (double)now->len, name, where.data, (long long)tokens);
	buf_release(&where);
}

void
compare_read(struct buf *out, const char *file)
{
	struct err e = ERR_INIT;

	*out = (struct buf)BUF_INIT_MAX(COMPARE_MAX);
	if (io_read_file(file, out, &e) < 0)
		log_fail(&e);
}

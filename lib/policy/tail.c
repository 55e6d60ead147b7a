#include "policy/tail.h"

#include "base/alloc.h"
#include "event/quick.h"
#include "event/render.h"

#include <stdlib.h>

#define BLOCK (64 * 1024)

struct backwards {		/* a file's lines, the last one first */
	struct store_file *file;
	char *data;		/* what is read and not given yet: data[start..end), at the end of the memory */
	size_t start, end, cap;
	uint64_t at;		/* offset in the file of data[start] */
	bool too_long;		/* inside a line that is longer than any event's; its end was let go */
	bool done;
};

/* Puts the block before what is there. */
static int
read_before(struct backwards *b, struct err *e)
{
	size_t block = b->at < BLOCK ? (size_t)b->at : BLOCK, have = b->end - b->start;
	char *bigger;
	ssize_t n;

	if (b->start < block) {
		bigger = xmalloc(2 * b->cap + block);
		if (have > 0)
			memcpy(bigger + 2 * b->cap + block - have, b->data + b->start, have);
		free(b->data);
		b->data = bigger;
		b->cap = 2 * b->cap + block;
		b->end = b->cap;
		b->start = b->end - have;
	}
	b->start -= block;
	b->at -= block;
	n = store_file_read(b->file, b->at, b->data + b->start, block, e);
	if (n < 0)
		return -1;
	return (size_t)n == block ? 0 : err_set(e, ERR_IO, "a log became shorter while it was read");
}

/* The line before the one given last, valid until the next call; *line NULL for one that is too long. 1, 0, -1. */
static int
line_before(struct backwards *b, const char **line, size_t *len, uint64_t *offset, struct err *e)
{
	size_t searched = 0, have;
	const char *newline;

	if (b->done)
		return 0;
	b->too_long = false;
	for (;;) {
		have = b->end - b->start;
		newline = have > searched ? memrchr(b->data + b->start, '\n', have - searched) : NULL;
		if (newline != NULL || b->at == 0)
			break;
		searched = have;
		if (have > EVENT_LINE_MAX + 1) {
			b->too_long = true;
			b->end = b->start;
			searched = 0;
		}
		if (read_before(b, e) < 0)
			return -1;
	}
	b->done = newline == NULL;
	*line = newline != NULL ? newline + 1 : b->data + b->start;
	*len = (size_t)(b->data + b->end - *line);
	*offset = b->at + (uint64_t)(*line - (b->data + b->start));
	if (newline != NULL)
		b->end = (size_t)(newline - b->data);
	if (b->too_long)
		*line = NULL;
	return 1;
}

bool
tail_enough(struct tail_count *c, struct event *ev)
{
	const struct window_need *need = c->need;
	unsigned flags = ev->type->flags;
	bool counted = window_counts(ev, need->as_ag2);
	int64_t weight = counted;

	if (c->kept_only && (flags & EV_KEPT) == 0)	/* a HaltEvent passes, too, but does not count */
		return false;
	if (need->budget && counted && !c->at_least)
		weight = event_tokens(ev, need->chars_per_token, NULL);
	else if (need->budget && counted && !quick_tokens(ev, need->chars_per_token, &weight))
		weight = 0;
	if (weight < 0)
		return false;
	c->weight += weight;
	c->events += counted;
	c->response |= (flags & EV_RESPONSE) != 0;
	return (flags & EV_REQUEST) && c->response && c->weight > need->max && c->events > 1;
}

int
tail_find(struct store_file *f, uint64_t size, const struct window_need *need, bool kept_only, uint64_t *offset,
    struct err *e)
{
	struct backwards b = { .file = f, .at = size };
	struct tail_count count = { .need = need, .kept_only = kept_only };
	const char *line;
	struct event ev;
	size_t len;
	bool enough = false;
	int rc;

	*offset = 0;
	while (!enough && (rc = line_before(&b, &line, &len, offset, e)) > 0) {
		if (line == NULL || len == 0 || event_view(&ev, line, len, NULL) < 0)
			continue;
		enough = tail_enough(&count, &ev);
		event_release(&ev);
	}
	free(b.data);
	if (enough)
		return 0;
	*offset = 0;
	return rc;
}

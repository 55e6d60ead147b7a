#include "standing.h"

#include "stream.h"

#include <string.h>

#define TAIL_FIRST (64u << 10)	/* bytes of a log's end that are looked at first for its last response */
#define TAIL_MOST (128u << 20)	/* ... and at most */

static void
count_id(void *arg, const char *id, size_t len)
{
	++*(size_t *)arg;
}

void
standing_add(struct standing *s, struct event *ev)
{
	size_t calls = 0;

	if (ev->type->flags & EV_REQUEST) {
		s->request = true;
	} else if (ev->type->flags & EV_HALT) {
		event_free(s->halt);
		s->halt = event_dup(ev);
	} else if (ev->type->flags & EV_RESPONSE) {
		event_free(s->halt);
		s->open_calls = event_ids(ev, count_id, &calls, NULL) == 0 && calls > 0;
		s->response = true;
		s->request = false;
		s->halt = NULL;
	}
}

bool
standing_unanswered(const struct standing *s)
{
	return s->request || s->open_calls;
}

void
standing_add_lines(struct standing *s, const char *text, size_t len)
{
	const char *end = text + len, *line_end;
	struct event ev;

	for (; text < end; text = line_end + 1) {
		line_end = memchr(text, '\n', (size_t)(end - text));
		if (line_end == NULL)
			line_end = end;
		if (event_view(&ev, text, (size_t)(line_end - text), NULL) == 0) {
			standing_add(s, &ev);
			event_release(&ev);
		}
	}
}

/* Only as much of the log's end as it takes to find its last response: logs grow, turns do not. */
static int
stand_file(struct standing *s, struct store_file *f, uint64_t size, struct err *e)
{
	uint64_t window = TAIL_FIRST, from;
	struct buf tail = BUF_INIT;
	const char *start;
	int rc = 0;

	for (;;) {
		from = size > window ? size - window : 0;
		buf_reset(&tail);
		rc = store_file_add(f, from, size, &tail, e);
		if (rc < 0)
			break;
		start = from > 0 ? memchr(tail.data, '\n', tail.len) : tail.data;
		if (start != NULL)
			standing_add_lines(s, start, tail.len - (size_t)(start - tail.data));
		if (s->response || from == 0 || window >= TAIL_MOST)
			break;
		window *= 4;
		event_free(s->halt);
		*s = (struct standing){ .halt = NULL };
	}
	buf_release(&tail);
	return rc;
}

int
standing_of_stream(struct standing *s, struct store *store, const char *stream, struct err *e)
{
	struct buf path = BUF_INIT;
	struct store_file *f = NULL;
	struct store_stat st;
	struct err why = ERR_INIT;
	int rc;

	stream_path(&path, stream);
	rc = store_file_open(store, path.data, &f, &st, &why);
	if (rc == 0)
		rc = stand_file(s, f, st.size, e);
	else if (why.code == ERR_ABSENT)
		rc = 0;
	else
		rc = err_set(e, why.code, "%s", why.msg);
	store_file_close(f);
	buf_release(&path);
	return rc;
}

#include "moved.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FILE_MAX (MOVES * 80)
#define MOST (INT64_MAX / (4 * MOVES))	/* bytes: no log is so long, and sums of it fit */

static void
moved_path(struct buf *out, const char *stream)
{
	buf_reset(out);
	buf_addf(out, "/.ag2/undo/%s/moved", stream);
}

static void
add_move(struct moved *m, const struct move *move)
{
	if (m->n == MOVES)
		memmove(m->last, m->last + 1, --m->n * sizeof(*m->last));
	m->last[m->n++] = *move;
}

static bool
parse(struct moved *m, char *text)
{
	char *line, *next = text;
	struct move move;

	line = strsep(&next, "\n");
	if (sscanf(line, "%" SCNu64, &m->count) != 1)
		return false;
	while ((line = strsep(&next, "\n")) != NULL && line[0] != '\0') {
		if (sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNd64, &move.upto, &move.len, &move.segment) != 3 || move.upto > MOST ||
		    move.len > MOST || move.segment > MOST || move.segment < -MOST)
			return false;
		add_move(m, &move);
	}
	return m->n <= m->count;
}

int
moved_version(struct store *s, const char *stream, uint64_t *version, struct err *e)
{
	struct buf path = BUF_INIT;
	struct store_stat st;
	int rc;

	moved_path(&path, stream);
	rc = store_stat(s, path.data, &st, e);
	*version = rc > 0 ? st.version : 0;
	buf_release(&path);
	return rc < 0 ? -1 : 0;
}

int
moved_read(struct store *s, const char *stream, struct moved *m, struct err *e)
{
	struct buf path = BUF_INIT, text = BUF_INIT;
	struct store_stat st = { 0 };
	struct store_file *f;
	struct err why = ERR_INIT;
	int rc;

	*m = (struct moved){ 0 };
	moved_path(&path, stream);
	rc = store_file_open(s, path.data, &f, &st, &why);
	if (rc == 0) {
		rc = store_file_add(f, 0, FILE_MAX, &text, &why);
		store_file_close(f);
	}
	if (rc < 0)
		rc = why.code == ERR_ABSENT ? 0 : err_set(e, why.code, "%s", why.msg);
	else if (text.len == 0 || !parse(m, text.data))
		*m = (struct moved){ 0 };
	m->version = st.version;
	buf_release(&path);
	buf_release(&text);
	return rc;
}

void
moved_ops(struct moved *m, const char *stream, const struct move *move, struct buf *path, struct buf *data, struct store_op *ops)
{
	size_t i;

	m->count++;
	add_move(m, move);
	moved_path(path, stream);
	buf_reset(data);
	buf_addf(data, "%" PRIu64 "\n", m->count);
	for (i = 0; i < m->n; i++)
		buf_addf(data, "%" PRIu64 " %" PRIu64 " %" PRId64 "\n", m->last[i].upto, m->last[i].len, m->last[i].segment);
	ops[0] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = path->data, .version = m->version };
	ops[1] = (struct store_op){ .kind = STORE_OP_WRITE, .path = path->data, .data = data->data, .len = data->len };
}

/*
 * Behind what was moved nothing changes but the offset. What was in it went to the segment or stayed in the new head: the last
 * lines of it as the last of the head.
 */
static void
apply(const struct move *move, int64_t *place, int64_t *near)
{
	int64_t upto = (int64_t)move->upto, len = (int64_t)move->len, before = move->segment < 0 ? -move->segment : 0;
	int64_t since;		/* how far before it what was moved with it begins */

	if (*place >= upto) {
		since = *place - upto;
		*place += len - upto;
	} else if (move->segment < 0 ? *place >= 0 : *place > move->segment) {
		since = move->segment < 0 ? len - (upto - *place) - before : *place - move->segment;
		*place = since < 0 ? before : len - (upto - *place);
		since = since < 0 ? 0 : since;
	} else {
		since = *near;
		*place -= move->segment;
	}
	*near = since < *near ? since : *near;
}

bool
moved_place(const struct moved *m, uint64_t count, int64_t *place, int64_t *near)
{
	const struct move *move;

	*near = INT64_MAX;
	if (count > m->count || m->count - count > m->n)
		return false;
	for (move = m->last + m->n - (m->count - count); move < m->last + m->n; move++)
		apply(move, place, near);
	return true;
}

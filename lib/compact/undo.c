/*
 * Putting the last segment back. What a compaction left in front of the log, and how that and the segment make up what was
 * there before, is kept beside the log, in /.ag2/undo/STREAM/NUMBER:
 *
 *	segment LENGTH
 *	alike			(when what is left begins as the segment does)
 *	head LENGTH SHA1
 *	usage OFFSET LENGTH	(in the head: stays)
 *	s OFFSET LENGTH		(then: so many bytes of the segment)
 *	h OFFSET LENGTH		(then: so many bytes of the head)
 */
#include "compact/job.h"

#include "base/alloc.h"
#include "base/sha1.h"
#include "moved.h"
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>

#define RECORD_MAX (256u << 20)

static void
add_line(struct buf *out, const char *word, uint64_t a, uint64_t b)
{
	if (b > 0)
		buf_addf(out, "%s %llu %llu\n", word, (unsigned long long)a, (unsigned long long)b);
}

void
undo_record(struct buf *out, const struct job *j, uint64_t segment_len, bool alike)
{
	unsigned char sum[20];
	uint64_t at = 0, in_segment = 0;
	size_t i;

	sha1_of(j->head.data, j->head.len, sum);
	stream_undo_head(out, segment_len, alike);
	buf_addf(out, "head %zu ", j->head.len);
	buf_addhex(out, sum, sizeof(sum));
	buf_addch(out, '\n');
	add_line(out, "usage", j->usage_at, j->usage_len);
	for (i = 0; i < j->cut.nkept; i++) {
		const struct kept *k = &j->cut.kept[i];

		add_line(out, "s", in_segment, k->offset - at);
		in_segment += k->offset - at;
		add_line(out, "h", k->head_at, k->len);
		at = k->offset + k->len;
	}
	add_line(out, "s", in_segment, j->cut.at - at);
}

/* ---- reading it ---- */

struct undo {
	struct store *s;
	const char *stream;
	struct buf log, segment, record, moved;	/* paths */
	uint64_t number;
	uint64_t segment_len, log_len;
	struct buf head;		/* what goes, and behind it one newline */
	unsigned char sha1[20];
	uint64_t usage_at, usage_len;
	struct store_piece *pieces;
	size_t n, cap;
};

static void
add_piece(struct undo *u, bool of_segment, uint64_t offset, uint64_t len)
{
	u->pieces = xgrow(u->pieces, u->n, &u->cap, sizeof(*u->pieces));
	u->pieces[u->n++] = (struct store_piece){ of_segment ? u->segment.data : NULL, offset, len };
}

static int
read_head(struct undo *u, uint64_t len, struct err *e)
{
	buf_reset(&u->head);
	if (store_read_range(u->s, u->log.data, 0, (int64_t)len, &u->head, e) < 0)
		return -1;
	if (u->head.len != len)
		return err_set(e, ERR_CONFLICT, "the log does not begin any more with what the compaction left");
	buf_addch(&u->head, '\n');
	return 0;
}

static int
parse_sum(const char *hex, unsigned char sum[20])
{
	unsigned byte;
	int i;

	for (i = 0; i < 20; i++) {
		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			return -1;
		sum[i] = (unsigned char)byte;
	}
	return 0;
}

static int
parse_line(struct undo *u, const char *line, struct err *e)
{
	unsigned long long a = 0, b = 0;
	char hex[41] = "";

	if (sscanf(line, "segment %llu", &a) == 1) {
		if (a != u->segment_len)
			return err_set(e, ERR_CONFLICT, "'%s' is not as the compaction left it", u->segment.data);
	} else if (strcmp(line, "alike") == 0) {
		return 0;
	} else if (sscanf(line, "head %llu %40[0-9a-f]", &a, hex) == 2 && strlen(hex) == 40 && parse_sum(hex, u->sha1) == 0) {
		return read_head(u, a, e);
	} else if (sscanf(line, "usage %llu %llu", &a, &b) == 2) {
		u->usage_at = a;
		u->usage_len = b;
	} else if (sscanf(line, "s %llu %llu", &a, &b) == 2 && a <= u->segment_len && b <= u->segment_len - a) {
		add_piece(u, true, a, b);
	} else if (sscanf(line, "h %llu %llu", &a, &b) == 2 && u->head.len > 0 && a < u->head.len && b <= u->head.len - 1 - a) {
		add_piece(u, false, a, b);
	} else {
		return err_set(e, ERR_DATA, "'%s' is damaged", u->record.data);
	}
	return 0;
}

static int
parse_record(struct undo *u, char *text, struct err *e)
{
	char *line, *next = text;

	while ((line = strsep(&next, "\n")) != NULL)
		if (line[0] != '\0' && parse_line(u, line, e) < 0)
			return -1;
	if (u->head.len == 0 || u->usage_at > u->head.len - 1 || u->usage_len > u->head.len - 1 - u->usage_at)
		return err_set(e, ERR_DATA, "'%s' is damaged", u->record.data);
	return 0;
}

/* A compaction by AG2, or by who left no record: a summary at the head is its, and the segment goes before the rest. */
static int
without_record(struct undo *u, struct err *e)
{
	struct source in;
	struct event ev;
	uint64_t upto = 0;
	int rc;

	rc = source_of_log(&in, u->s, u->stream, JSONL_BAD_QUIET, e);
	if (rc == 0)
		rc = source_begin(&in, 0, in.size, 1, e);
	if (rc == 0 && (rc = source_next(&in, &ev, e)) > 0) {
		if (ev.type->flags & EV_SUMMARY)
			upto = ev.offset + ev.len + 1 < in.size ? ev.offset + ev.len + 1 : in.size;
		event_release(&ev);
		rc = 0;
	}
	source_release(&in);
	if (rc < 0 || read_head(u, upto, e) < 0)
		return -1;
	sha1_of(u->head.data, (size_t)upto, u->sha1);
	add_piece(u, true, 0, u->segment_len);
	return 0;
}

/* ---- undoing ---- */

static int
find_segment(struct undo *u, bool *unfinished, struct err *e)
{
	struct store_stat st;
	uint64_t version;
	int rc;

	if (stream_next_segment(u->s, u->stream, &u->number, &version, e) < 0)
		return -1;
	*unfinished = version != 0;
	if (version == 0 && --u->number == 0)
		return err_set(e, ERR_ABSENT, "there is nothing to undo: stream '%s' has no dropped segment", u->stream);
	stream_segment_path(&u->segment, u->stream, u->number);
	rc = store_stat(u->s, u->segment.data, &st, e);
	if (rc == 0)
		rc = err_set(e, ERR_CONFLICT, "'%s' has just been changed by someone else", u->segment.data);
	u->segment_len = rc > 0 ? st.size : 0;
	stream_undo_path(&u->record, u->stream, u->number);
	return rc < 0 ? -1 : 0;
}

static int
read_record(struct undo *u, struct err *e)
{
	struct buf text = BUF_INIT_MAX(RECORD_MAX);
	struct err why = ERR_INIT;
	int rc = store_read(u->s, u->record.data, &text, NULL, &why);

	if (rc == 0)
		rc = parse_record(u, text.data, e);
	else
		rc = why.code == ERR_ABSENT ? without_record(u, e) : err_set(e, why.code, "%s", why.msg);
	buf_release(&text);
	return rc;
}

/* A line that ended with the file needs its newline, now that something follows it. */
static int
end_line(struct undo *u, struct err *e)
{
	const struct store_piece *last = u->n > 0 ? &u->pieces[u->n - 1] : NULL;
	struct buf byte = BUF_INIT;
	int rc = 0;

	if (last == NULL || (u->log_len == u->head.len - 1 && u->usage_len == 0))
		return 0;
	if (last->from != NULL)
		rc = store_read_range(u->s, last->from, (int64_t)(last->offset + last->len - 1), (int64_t)(last->offset + last->len), &byte, e);
	else
		buf_add(&byte, u->head.data + last->offset + last->len - 1, 1);
	if (rc == 0 && byte.len == 1 && byte.data[0] != '\n')
		add_piece(u, false, u->head.len - 1, 1);
	buf_release(&byte);
	return rc;
}

static uint64_t
pieces_len(const struct undo *u)
{
	uint64_t len = 0;
	size_t i;

	for (i = 0; i < u->n; i++)
		len += u->pieces[i].len;
	return len;
}

static int
put_back(struct undo *u, struct err *e)
{
	struct store_stat st = { .size = 0 };
	struct store_op ops[3 + MOVED_OPS];
	struct buf moved_to = BUF_INIT;
	struct moved moved;
	int rc = store_stat(u->s, u->log.data, &st, e);

	u->log_len = st.size;
	if (rc < 0 || moved_read(u->s, u->stream, &moved, e) < 0 || read_record(u, e) < 0 || end_line(u, e) < 0)
		return -1;
	if (u->usage_len > 0)
		add_piece(u, false, u->usage_at, u->usage_len);
	ops[0] = (struct store_op){ .kind = STORE_OP_REPLACE_PREFIX, .path = u->log.data, .data = u->head.data, .len = u->head.len,
		.upto = u->head.len - 1, .pieces = u->pieces, .npieces = u->n };
	memcpy(ops[0].sha1, u->sha1, sizeof(u->sha1));
	ops[1] = (struct store_op){ .kind = STORE_OP_DELETE, .path = u->segment.data };
	ops[2] = (struct store_op){ .kind = STORE_OP_DELETE, .path = u->record.data };
	if (rc == 0) {	/* there is no log any more: the segment is it */
		ops[0].kind = STORE_OP_WRITE;
		ops[0].upto = 0;
	}
	moved_ops(&moved, u->stream, &(struct move){ ops[0].upto, pieces_len(u), -(int64_t)u->segment_len }, &u->moved, &moved_to, ops + 3);
	rc = store_commit(u->s, ops, 3 + MOVED_OPS, e);
	buf_release(&moved_to);
	return rc;
}

int
compact_undo(struct store *s, const char *stream, struct err *e)
{
	struct undo u = { .s = s, .stream = stream, .log = BUF_INIT, .segment = BUF_INIT, .record = BUF_INIT, .moved = BUF_INIT,
		.head = BUF_INIT };
	struct store_lock *lock = NULL;
	bool unfinished = false;
	int rc = upkeep_compaction_lock(s, stream, &lock, e);

	stream_path(&u.log, stream);
	if (rc == 0)
		rc = find_segment(&u, &unfinished, e);
	if (rc == 0 && unfinished)
		rc = store_delete(s, u.segment.data, e);	/* its lines are in the log still */
	else if (rc == 0)
		rc = put_back(&u, e);
	store_unlock(lock);
	free(u.pieces);
	buf_release(&u.log);
	buf_release(&u.segment);
	buf_release(&u.record);
	buf_release(&u.moved);
	buf_release(&u.head);
	return rc;
}

#include "aggregate/pending.h"

#include "base/alloc.h"
#include "event/render.h"
#include "policy/idset.h"
#include "stream.h"

#include <stdlib.h>

/* ---- reading ---- */

/* The log from an offset on, or the full history. */
struct reading {
	struct store_file *log;
	uint64_t at;
	struct stream_reader *full;
	uint64_t given, base;		/* bytes given so far; how many of them came before the log */
	bool in_log;
	struct jsonl lines;
	uint64_t number;		/* of the last conversational line */
};

static ssize_t
read_log(void *arg, void *data, size_t len, struct err *e)
{
	struct reading *r = arg;
	ssize_t n = store_file_read(r->log, r->at, data, len, e);

	if (n > 0)
		r->at += (uint64_t)n;
	return n;
}

static ssize_t
read_full(void *arg, void *data, size_t len, struct err *e)
{
	struct reading *r = arg;
	ssize_t n = stream_read(r->full, data, len, e);
	uint64_t offset;

	if (n > 0) {
		r->given += (uint64_t)n;
		if (!r->in_log && stream_in_log(r->full, &offset)) {
			r->in_log = true;
			r->base = r->given - offset;
		}
	}
	return n;
}

static int
begin_full(struct reading *r, const struct pending *p, struct store *s, const char *stream, enum jsonl_bad on_bad, struct err *e)
{
	*r = (struct reading){ .log = NULL };
	if (p->segments != NULL ? stream_open_indexed(s, stream, p->segments, &r->full, e) < 0 : stream_open(s, stream, true, &r->full, e) < 0)
		return -1;
	jsonl_init(&r->lines, stream, on_bad, read_full, r);
	return 0;
}

static void
end(struct reading *r)
{
	jsonl_release(&r->lines);
	stream_close(r->full);
	if (r->log != NULL)
		store_file_close(r->log);
}

/* The next line that counts. */
static int
next(struct reading *r, struct event *ev, struct err *e)
{
	int rc;

	while ((rc = jsonl_next(&r->lines, ev, e)) > 0) {
		if ((ev->type->flags & EV_CONVERSATIONAL) && !(ev->type->flags & (EV_TRANSIENT | EV_PROMPT)) &&
		    (!(ev->type->flags & EV_SUMMARY) || r->number == 0)) {
			r->number++;
			return 1;
		}
		event_release(ev);
	}
	return rc;
}

/* ---- where the cursor stands ---- */

/* The version of a segment, 0 when it is not there. */
static int
version_of(struct store *s, const char *stream, uint64_t number, uint64_t *version, struct err *e)
{
	struct buf path = BUF_INIT;
	struct store_stat st = { 0 };
	int rc;

	stream_segment_path(&path, stream, number);
	rc = store_stat(s, path.data, &st, e);
	*version = rc > 0 ? st.version : 0;
	buf_release(&path);
	return rc < 0 ? -1 : 0;
}

/* Whether nothing was compacted, or put back, since: equal lines (of one moment) may else stand where the anchor stood. */
static int
is_same_log(struct store *s, const char *stream, const struct cursor *c, struct err *e)
{
	uint64_t last = 0, behind;

	if (c->segment > 0 && version_of(s, stream, c->segment, &last, e) < 0)
		return -1;
	if (last != c->segment_version)
		return 0;
	if (version_of(s, stream, c->segment + 1, &behind, e) < 0)
		return -1;
	return behind == 0;
}

/* 1 when the log is the same and the anchor's bytes are where the cursor says; r then stands behind it. */
static int
begin_behind_anchor(struct reading *r, struct store *s, const char *stream, const struct cursor *c, enum jsonl_bad on_bad, struct err *e)
{
	struct buf path = BUF_INIT, line = BUF_INIT;
	struct err why = ERR_INIT;
	struct line_sum sum;
	int rc = 0;

	*r = (struct reading){ .at = c->offset + c->len, .number = c->anchor };
	if (c->anchor == 0 || c->len == 0 || c->len > EVENT_LINE_MAX)
		return 0;
	stream_path(&path, stream);
	if (store_file_open(s, path.data, &r->log, NULL, &why) < 0) {
		rc = why.code == ERR_ABSENT ? 0 : err_set(e, why.code, "%s", why.msg);
	} else {
		buf_reserve(&line, c->len);
		rc = store_file_read(r->log, c->offset, line.data, c->len, e) == (ssize_t)c->len;
		sum = line_sum(line.data, c->len);
		rc = rc && line_sum_is(&sum, &c->sum) ? is_same_log(s, stream, c, e) : 0;
	}
	buf_release(&path);
	buf_release(&line);
	if (rc == 1) {
		jsonl_init(&r->lines, stream, on_bad, read_log, r);
		jsonl_set_position(&r->lines, 0, r->at);
	} else if (r->log != NULL) {
		store_file_close(r->log);
		r->log = NULL;
	}
	return rc;
}

/* Where the anchor is in the full history: where it should be, else the nearest before, else the nearest behind. */
static int
find_anchor(struct pending *p, struct store *s, const char *stream, const struct cursor *c, struct err *e)
{
	struct reading r;
	struct event ev;
	struct line_sum sum;
	uint64_t found = 0;
	int rc;

	if (begin_full(&r, p, s, stream, JSONL_BAD_QUIET, e) < 0)
		return -1;
	while ((found == 0 || r.number < c->anchor) && (rc = next(&r, &ev, e)) > 0) {
		sum = line_sum(ev.line, ev.len);
		if (line_sum_is(&sum, &c->sum))
			found = r.number;
		event_release(&ev);
	}
	end(&r);
	if (found == 0 && rc == 0)
		rc = err_set(e, ERR_DATA, "stream %s: the last event that was aggregated is not in its history any more (--reset begins anew, --reset --mark goes on from its end)", stream);
	p->anchor = found;
	return rc < 0 ? -1 : 0;
}

/* A reading that stands behind the anchor. */
static int
begin(struct reading *r, struct pending *p, struct store *s, const char *stream, const struct cursor *c, enum jsonl_bad on_bad,
    struct err *e)
{
	struct event ev;
	int rc = begin_behind_anchor(r, s, stream, c, on_bad, e);

	p->anchor = c->anchor;
	p->offset = c->offset;
	p->len = c->len;
	p->segment = c->segment;
	p->segment_version = c->segment_version;
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	p->offset = p->len = p->segment_version = 0;
	if (c->anchor > 0 && find_anchor(p, s, stream, c, e) < 0)
		return -1;
	if (begin_full(r, p, s, stream, on_bad, e) < 0)
		return -1;
	p->unplaced = !stream_last_segment(r->full, &p->segment);
	if (p->segment > 0)
		rc = version_of(s, stream, p->segment, &p->segment_version, e);
	while (rc >= 0 && r->number < p->anchor && (rc = next(r, &ev, e)) > 0) {
		if (!p->unplaced && r->number == p->anchor && r->in_log && ev.offset >= r->base) {
			p->offset = ev.offset - r->base;
			p->len = ev.len;
		}
		event_release(&ev);
	}
	if (rc < 0)
		end(r);
	return rc < 0 ? -1 : 0;
}

/* ---- taking events in ---- */

/* Calls of the turn that is being read, and which of them have results. */
struct calls {
	struct idset called, answered;
	uint64_t turn;
};

static void
note_call(void *arg, const char *id, size_t len)
{
	struct calls *c = arg;

	idset_add(&c->called, id, len, NULL);
}

static void
note_result(void *arg, const char *id, size_t len)
{
	struct calls *c = arg;

	if (idset_find(&c->called, id, len) != SIZE_MAX)
		idset_add(&c->answered, id, len, NULL);
}

static void
follow_calls(struct calls *c, struct event *ev)
{
	unsigned flags = ev->type->flags;

	if (flags & EV_REQUEST) {
		idset_reset(&c->called);
		idset_reset(&c->answered);
		c->turn++;
	} else if (flags & (EV_RESULTS | EV_RESULT)) {
		event_ids(ev, note_result, c, NULL);
	} else if ((flags & (EV_RESPONSE | EV_CALLS | EV_CALL)) && !(flags & EV_BUILTIN_CALL)) {
		event_ids(ev, note_call, c, NULL);
	}
}

/* Broken content is reported and given as nothing; it counts as what its type says. */
static int
hold(struct pending *p, struct jsonl *in, struct event *ev, struct calls *calls, const struct line_sum *sum, struct err *e)
{
	struct pending_event *out;
	struct err why = ERR_INIT;
	size_t before = p->text.len;

	if (p->n > 0)
		buf_addch(&p->text, '\n');
	if (event_render(&p->text, ev, &why) < 0) {
		p->text.len = before;
		p->text.data[before] = '\0';
		if (jsonl_bad(in, ev, &why, e) < 0)
			return -1;
	} else {
		buf_add(&p->lines, ev->line, ev->len);
		buf_addch(&p->lines, '\n');
	}
	follow_calls(calls, ev);
	p->events = xgrow(p->events, p->n, &p->cap, sizeof(*p->events));
	out = &p->events[p->n++];
	*out = (struct pending_event){ .sum = *sum, .text_end = p->text.len, .lines_end = p->lines.len, .turn = calls->turn,
		.open = calls->called.n - calls->answered.n, .request = ev->type->flags & EV_REQUEST };
	return 0;
}

static bool
is_full(const struct pending *p)
{
	return p->text.len > PENDING_TEXT_MAX || p->lines.len > PENDING_LINES_MAX;
}

static void
count(struct pending *p, const struct event *ev)
{
	p->news.total++;
	p->news.turns += (ev->type->flags & EV_REQUEST) != 0;
	p->news.counted += (ev->type->flags & (EV_REQUEST | EV_RESPONSE | EV_CALLS | EV_RESULTS)) != 0;
}

/* A covered line that compaction moved behind the anchor. */
static bool
was_covered(const struct cursor *c, bool *met, const struct line_sum *sum)
{
	size_t i;

	for (i = 0; i < c->open_n; i++)
		if (!met[i] && line_sum_is(&c->open[i], sum)) {
			met[i] = true;
			return true;
		}
	return false;
}

static int
take(struct pending *p, struct reading *r, struct event *ev, const struct cursor *c, bool *met, struct calls *calls, struct err *e)
{
	struct line_sum sum = line_sum(ev->line, ev->len);
	struct pending_event *out;

	if (was_covered(c, met, &sum))
		return 0;
	count(p, ev);
	if (p->counts_only || p->n + 1 < p->news.total || is_full(p))
		return 0;
	if (hold(p, &r->lines, ev, calls, &sum, e) < 0)
		return -1;
	out = &p->events[p->n - 1];
	out->number = r->number;
	if (!p->unplaced && (r->log != NULL || (r->in_log && ev->offset >= r->base))) {
		out->offset = ev->offset - r->base;
		out->len = ev->len;
	}
	return 0;
}

static void
calls_release(struct calls *c)
{
	idset_release(&c->called);
	idset_release(&c->answered);
}

int
pending_read(struct pending *p, struct store *s, const char *stream, const struct cursor *c, enum jsonl_bad on_bad, struct err *e)
{
	struct calls calls = { .called = IDSET_INIT, .answered = IDSET_INIT };
	bool *met = xcalloc(c->open_n + 1, sizeof(*met));
	struct buf path = BUF_INIT;
	struct store_stat st = { 0 };
	struct reading r;
	struct event ev;
	int rc;

	*p = (struct pending){ .segments = p->segments, .counts_only = p->counts_only, .text = BUF_INIT, .lines = BUF_INIT };
	stream_path(&path, stream);
	rc = store_stat(s, path.data, &st, e);
	p->seen = st.version;
	p->log_size = st.size;
	if (rc >= 0)
		rc = begin(&r, p, s, stream, c, on_bad, e);
	if (rc == 0) {
		while ((rc = next(&r, &ev, e)) > 0) {
			rc = take(p, &r, &ev, c, met, &calls, e);
			event_release(&ev);
			if (rc < 0)
				break;
		}
		p->bad = r.lines.bad;
		end(&r);
	}
	calls_release(&calls);
	free(met);
	buf_release(&path);
	return rc < 0 ? -1 : 0;
}

int
pending_read_log(struct pending *p, struct store *s, const char *stream, enum jsonl_bad on_bad, struct err *e)
{
	struct calls calls = { .called = IDSET_INIT, .answered = IDSET_INIT };
	struct line_sum none = { { 0 } };
	struct reading r;
	struct event ev;
	int rc;

	*p = (struct pending){ .text = BUF_INIT, .lines = BUF_INIT };
	r = (struct reading){ .log = NULL };
	if (stream_open(s, stream, false, &r.full, e) < 0)
		return -1;
	jsonl_init(&r.lines, stream, on_bad, read_full, &r);
	while ((rc = jsonl_next(&r.lines, &ev, e)) > 0) {
		if (!(ev.type->flags & (EV_TRANSIENT | EV_PROMPT)))
			rc = hold(p, &r.lines, &ev, &calls, &none, e);
		event_release(&ev);
		if (rc >= 0 && is_full(p))
			rc = err_set(e, ERR_DATA, "stream %s: its log is too large to be given whole", stream);
		if (rc < 0)
			break;
	}
	p->bad = r.lines.bad;
	end(&r);
	calls_release(&calls);
	return rc < 0 ? -1 : 0;
}

int
pending_read_input(struct pending *p, struct jsonl *in, struct err *e)
{
	struct calls calls = { .called = IDSET_INIT, .answered = IDSET_INIT };
	struct line_sum none = { { 0 } };
	struct event ev;
	int rc;

	*p = (struct pending){ .text = BUF_INIT, .lines = BUF_INIT };
	while ((rc = jsonl_next(in, &ev, e)) > 0) {
		if ((ev.type->flags & EV_CONVERSATIONAL) && !(ev.type->flags & (EV_TRANSIENT | EV_PROMPT))) {
			count(p, &ev);
			rc = hold(p, in, &ev, &calls, &none, e);
		}
		event_release(&ev);
		if (rc >= 0 && is_full(p))
			rc = err_set(e, ERR_DATA, "%s: too large to be given whole", in->name);
		if (rc < 0)
			break;
	}
	p->bad = in->bad;
	calls_release(&calls);
	return rc < 0 ? -1 : 0;
}

/* ---- going on ---- */

void
pending_cursor(const struct pending *p, size_t n, const struct cursor *from, struct cursor *to)
{
	size_t i, anchor = SIZE_MAX;
	bool *movable = xcalloc(n, sizeof(*movable));
	uint64_t open = 0;

	cursor_copy(to, from);
	to->covered += n;
	to->anchor = p->anchor;
	to->offset = p->offset;
	to->len = p->len;
	to->seen = n == p->news.total ? p->seen : 0;
	for (i = n; i-- > 0;) {
		if (i + 1 == n || p->events[i].turn != p->events[i + 1].turn)
			open = p->events[i].open;
		movable[i] = open > 0 && !p->events[i].request;
		if (!movable[i] && anchor == SIZE_MAX)
			anchor = i;
	}
	for (i = 0; i < n; i++)
		if (movable[i])
			cursor_add_open(to, &p->events[i].sum);
	if (anchor != SIZE_MAX) {
		to->anchor = p->events[anchor].number;
		to->sum = p->events[anchor].sum;
		to->offset = p->events[anchor].offset;
		to->len = p->events[anchor].len;
	}
	to->segment = p->segment;
	to->segment_version = p->segment_version;
	free(movable);
}

void
pending_release(struct pending *p)
{
	free(p->events);
	buf_release(&p->text);
	buf_release(&p->lines);
	*p = (struct pending){ .text = BUF_INIT, .lines = BUF_INIT };
}

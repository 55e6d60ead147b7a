/*
 * The newest events stay, a model's summary stands for the others. Earlier summaries are folded into it: there is one, at
 * the head. What is longer than a model takes is given to it in pieces, the summary so far with each.
 */
#include "compact/job.h"

#include "base/utf8.h"
#include "event/render.h"
#include "template.h"

#include <stdlib.h>

#define PIECE_TOKENS 60000	/* of one call; a model that takes less says so, and gets halves */
#define PIECE_MIN 2000		/* bytes: a piece that is refused as too long is not halved below this */
#define SMALL 32		/* code points: so short a summary is one even of less */

#define EARLIER "## Earlier summary"
#define CONVERSATION "## Conversation"

static const char first_prompt[] =
	"Write a summary of the conversation below. It replaces the conversation for an agent that goes on from there, so keep "
	"what it will need: what was asked for and decided, facts, names and numbers, results of tools, and what is still to be done. "
	"Be brief, add nothing that was not said, and answer with the summary alone, without a heading.\n"
	"\n" CONVERSATION "\n{events}";
static const char next_prompt[] =
	"Below are the summary of a conversation so far and what came after it. Write one summary of both that replaces them for "
	"an agent that goes on from there: keep what it will need of the earlier summary, and add what was asked for and decided "
	"since, facts, names and numbers, results of tools, and what is still to be done. Be brief, add nothing that was not said, and "
	"answer with the summary alone, without a heading.\n"
	"\n" EARLIER "\n{existing}\n\n" CONVERSATION "\n{events}";

struct digest {
	struct job *job;
	struct buf summary;		/* so far */
	struct buf piece;		/* rendered events that are not in it yet */
	uint64_t given;			/* code points of all that it is to stand for */
	uint64_t events;		/* that it stands for */
};

/* ---- asking ---- */

static void
fill(const struct digest *d, struct text events, struct buf *prompt)
{
	const char *own = d->job->c->spec.prompt, *text = own;
	struct buf both = BUF_INIT;
	struct template_value values[2] = { { "existing", d->summary.data, d->summary.len }, { "events", events.data, events.len } };

	if (own == NULL)
		text = d->summary.len > 0 ? next_prompt : first_prompt;
	if (own != NULL && d->summary.len > 0 && strstr(own, "{existing}") == NULL) {
		buf_add(&both, d->summary.data, d->summary.len);
		buf_addch(&both, '\n');
		buf_add(&both, events.data, events.len);
		values[1] = (struct template_value){ "events", both.data, both.len };
	}
	template_fill(prompt, text, strlen(text), values, 2);
	buf_release(&both);
}

/* A model that repeats the prompt's headings must not have them nest in the next one. */
static void
add_without_headings(struct buf *out, const struct buf *answer)
{
	const char *p = answer->data, *stop = p + answer->len, *end;
	size_t len;

	for (; p < stop; p = end + 1) {
		end = memchr(p, '\n', (size_t)(stop - p));
		if (end == NULL)
			end = stop;
		len = (size_t)(end - p);
		if ((len == strlen(EARLIER) && memcmp(p, EARLIER, len) == 0) ||
		    (len == strlen(CONVERSATION) && memcmp(p, CONVERSATION, len) == 0))
			continue;
		if (out->len > 0)
			buf_addch(out, '\n');
		buf_add(out, p, len);
	}
}

static int
ask(struct digest *d, struct text events, struct err *e)
{
	struct buf prompt = BUF_INIT, answer = BUF_INIT;
	int rc;

	fill(d, events, &prompt);
	rc = upkeep_ask(&d->job->c->model, "compaction", (struct text){ prompt.data, prompt.len }, &answer, &d->job->use, e);
	if (rc == 0) {
		buf_reset(&d->summary);
		add_without_headings(&d->summary, &answer);
		if (d->summary.len == 0)
			rc = err_set(e, ERR_UNAVAIL, "the model's answer holds nothing but headings of the prompt");
	}
	buf_release(&prompt);
	buf_release(&answer);
	return rc;
}

/* About the middle: behind a newline where there is one near, else between characters. */
static size_t
middle(struct text t)
{
	size_t half = t.len / 2;
	const char *newline = memrchr(t.data, '\n', half);

	if (newline != NULL && (size_t)(newline - t.data) > half / 2)
		return (size_t)(newline - t.data) + 1;
	while (half > 0 && ((unsigned char)t.data[half] & 0xc0) == 0x80)
		half--;
	return half;
}

static int
fold(struct digest *d, struct text t, struct err *e)
{
	struct err why = ERR_INIT;
	bool split = t.len > PIECE_MIN && text_tokens(t.data, t.len, CHARS_AUTO) > 2 * PIECE_TOKENS;
	size_t half;

	if (!split) {
		if (ask(d, t, &why) == 0)
			return 0;
		split = t.len > PIECE_MIN && upkeep_too_long(&why);
		if (!split)
			return err_set(e, why.code, "%s", why.msg);
	}
	half = middle(t);
	if (fold(d, (struct text){ t.data, half }, e) < 0)
		return -1;
	return fold(d, (struct text){ t.data + half, t.len - half }, e);
}

static int
fold_piece(struct digest *d, struct err *e)
{
	struct text t = { d->piece.data, d->piece.len };
	int rc;

	while (t.len > 0 && t.data[t.len - 1] == '\n')
		t.len--;
	rc = t.len > 0 ? fold(d, t, e) : 0;
	buf_reset(&d->piece);
	return rc;
}

/* ---- what it is given ---- */

static bool
is_kept(const struct cut *cut, uint64_t offset)
{
	size_t i;

	for (i = 0; i < cut->nkept; i++)
		if (cut->kept[i].offset == offset)
			return true;
	return false;
}

static int
add_summary(struct digest *d, struct event *ev, struct err *e)
{
	struct json_object *data = event_data(ev, e);
	const char *text;
	size_t len;

	if (data == NULL)
		return -1;
	text = json_get_text(data, "summary", &len);
	if (text == NULL || len == 0)
		return 0;
	if (d->summary.len > 0)
		buf_addch(&d->summary, '\n');
	buf_add(&d->summary, text, len);
	d->given += utf8_count(text, len);
	return 0;
}

static int
add_event(struct digest *d, struct event *ev, struct err *e)
{
	size_t before = d->piece.len;

	if (event_render(&d->piece, ev, e) < 0)
		return -1;
	d->given += utf8_count(d->piece.data + before, d->piece.len - before);
	if (d->piece.len > before)
		buf_addch(&d->piece, '\n');
	return 0;
}

/* Logged by an earlier summarize; AG2 logs no such thing. */
static bool
is_own_cost(struct event *ev)
{
	struct json_object *data = ev->type->flags & EV_USAGE ? event_data(ev, NULL) : NULL;
	size_t len;
	const char *kind = data != NULL ? json_get_text(data, "kind", &len) : NULL;

	return kind != NULL && strcmp(kind, "compaction") == 0;
}

/* As AG2 counts: telemetry and the earlier summary are events too. */
static void
count_event(struct digest *d, struct event *ev)
{
	if (!is_kept(&d->job->cut, ev->offset) && !is_own_cost(ev))
		d->events++;
}

/* Reads from *at on until a piece is full; summaries only, or events only. */
static int
read_piece(struct digest *d, bool summaries, uint64_t *at, struct err *e)
{
	struct job *j = d->job;
	struct event ev;
	struct err why = ERR_INIT;
	int64_t tokens = 0;
	size_t before;
	int rc = source_begin(&j->in, *at, j->cut.at, 0, e);

	while (rc == 0 && tokens < PIECE_TOKENS && (rc = source_next(&j->in, &ev, e)) > 0) {
		*at = ev.offset + ev.len;
		before = d->piece.len;
		rc = 0;
		if (!summaries)
			count_event(d, &ev);
		if (summaries && (ev.type->flags & EV_SUMMARY))
			rc = add_summary(d, &ev, &why);
		else if (!summaries && (ev.type->flags & EV_CONVERSATIONAL) && !(ev.type->flags & EV_SUMMARY) && !is_kept(&j->cut, ev.offset))
			rc = add_event(d, &ev, &why);
		if (rc < 0) {
			d->piece.len = before;
			rc = source_bad(&j->in, &ev, &why, e);
		}
		tokens += text_tokens(d->piece.data + before, d->piece.len - before, CHARS_AUTO);
		event_release(&ev);
	}
	if (rc == 0 && tokens < PIECE_TOKENS)
		*at = j->cut.at;
	source_end(&j->in);
	return rc < 0 ? -1 : 0;
}

static int
digest(struct digest *d, struct err *e)
{
	uint64_t at = 0, first = 0;

	if (d->job->cut.summaries_before > 0)
		while (first < d->job->cut.at)
			if (read_piece(d, true, &first, e) < 0)
				return -1;
	while (at < d->job->cut.at)
		if (read_piece(d, false, &at, e) < 0 || fold_piece(d, e) < 0)
			return -1;
	return 0;
}

static int
check(const struct digest *d, struct err *e)
{
	uint64_t len = utf8_count(d->summary.data, d->summary.len);

	if (len < d->given || len <= SMALL)
		return 0;
	return err_set(e, ERR_UNAVAIL, "the model's summary is no shorter (%llu characters) than what it is to stand for (%llu)",
	    (unsigned long long)len, (unsigned long long)d->given);
}

static int
make(struct job *j, struct err *e)
{
	struct digest d = { .job = j, .summary = BUF_INIT, .piece = BUF_INIT };
	const char *prompt = j->c->spec.prompt;
	int rc;

	if (prompt != NULL && strstr(prompt, "{events}") == NULL)
		return err_set(e, ERR_CONFIG, "the prompt of summarize lacks {events}: the model would not see what it is to summarize");
	rc = digest(&d, e);
	if (rc == 0)
		rc = check(&d, e);
	if (rc == 0 && d.summary.len > 0) {
		build_summary(&j->head, (struct text){ d.summary.data, d.summary.len }, d.events);
		buf_addch(&j->head, '\n');
		j->head_lines++;
	}
	j->usage_at = j->head.len;
	j->usage_len = j->use.lines.len;
	buf_add(&j->head, j->use.lines.data, j->use.lines.len);
	buf_release(&d.summary);
	buf_release(&d.piece);
	return rc;
}

const struct compact_strategy compact_summarize = {
	.name = "summarize",
	.class_name = "SummarizeCompact",
	.folds = true,
	.slow = true,
	.make = make,
};

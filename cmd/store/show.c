/* `log show`: a stream as people read it. */
#include "command.h"
#include "../screen.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/when.h"
#include "event/render.h"
#include "event/said.h"
#include "stream.h"
#include "walk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static bool full, plain;
static long last;
static const char *since_text;

struct transcript {
	struct buf out;		/* of the event at hand */
	size_t width;		/* columns */
	bool colour, terminal, drawn;	/* drawn: lines can be drawn */
	bool begun;		/* something came before */
	uint64_t turn;
	char **shown;		/* the results shown since the last response: a container repeats them */
	size_t shown_n, cap;
	struct buf *turns;	/* with --last: the last turns, [first, turns_n) */
	size_t first, turns_n, turns_cap;
};

/* ---- lines ---- */

/* One line behind an indent; line ends and tabs become blanks, what is too long ends in "...". */
static void
add_folded(struct transcript *t, const char *indent, const char *text, size_t len)
{
	struct buf line = BUF_INIT;
	size_t i, left = t->width > strlen(indent) + 10 ? t->width - strlen(indent) : 10;

	cli_add(&line, text, len < 4 * t->width + 64 ? len : 4 * t->width + 64, true);	/* four bytes are a character at most */
	for (i = 0; i < line.len; i++)
		if (line.data[i] == '\n' || line.data[i] == '\r' || line.data[i] == '\t')
			line.data[i] = ' ';
	buf_adds(&t->out, indent);
	add_clipped(&t->out, line.data, line.len, left);
	buf_addch(&t->out, '\n');
	buf_release(&line);
}

/* Text as it is, its last line ended once; on a terminal in lines that fit. */
static void
add_text(struct transcript *t, const char *text, size_t len)
{
	struct buf shown = BUF_INIT;

	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' '))
		len--;
	if (len == 0)
		return;
	cli_add(&shown, text, len, true);
	if (t->terminal) {
		add_wrapped(&t->out, shown.data, shown.len, t->width);
	} else {
		buf_add(&t->out, shown.data, shown.len);
		buf_addch(&t->out, '\n');
	}
	buf_release(&shown);
}

/* With --full: all of it, the lines but the first indented. */
static void
add_block(struct transcript *t, const char *indent, const char *text, size_t len)
{
	struct buf shown = BUF_INIT;
	const char *p, *end, *newline;

	cli_add(&shown, text, len, true);
	buf_adds(&t->out, indent);
	for (p = shown.data, end = p + shown.len; p <= end; p = newline + 1) {
		newline = memchr(p, '\n', (size_t)(end - p));
		newline = newline ? newline : end;
		if (p > shown.data && newline > p)
			buf_adds(&t->out, "     ");
		buf_add(&t->out, p, (size_t)(newline - p));
		buf_addch(&t->out, '\n');
	}
	buf_release(&shown);
}

static void
add_line(struct transcript *t, const char *indent, const char *text, size_t len)
{
	if (full)
		add_block(t, indent, text, len);
	else
		add_folded(t, indent, text, len);
}

static void
add_coloured(struct transcript *t, const char *colour, const char *text)
{
	buf_addf(&t->out, "%s%s%s", t->colour ? colour : "", text, t->colour ? "\033[0m" : "");
}

/* Between what was said by one and by another. */
static void
add_gap(struct transcript *t)
{
	if (t->begun)
		buf_addch(&t->out, '\n');
	t->begun = true;
}

/* note, what is said behind the time, may be NULL; it has a line of its own where there is no room. */
static void
add_heading(struct transcript *t, const char *colour, const char *who, struct json_object *data, const char *note)
{
	struct buf when = BUF_INIT;
	double at = event_time(data);

	if (at >= 0) {
		buf_adds(&when, "  ");
		add_time(&when, at, true);
	}
	if (note != NULL)
		buf_addf(&when, "%s  %s", strlen(who) + when.len + 2 + strlen(note) > t->width ? "\n" : "", note);
	add_gap(t);
	add_coloured(t, colour, who);
	add_coloured(t, "\033[2m", when.data);
	buf_addch(&t->out, '\n');
	buf_release(&when);
}

/* ---- events ---- */

static void
forget_results(struct transcript *t)
{
	while (t->shown_n > 0)
		free(t->shown[--t->shown_n]);
}

static bool
was_shown(struct transcript *t, const char *id)
{
	size_t i;

	for (i = 0; i < t->shown_n; i++)
		if (strcmp(t->shown[i], id) == 0)
			return true;
	t->shown = xgrow(t->shown, t->shown_n, &t->cap, sizeof(*t->shown));
	t->shown[t->shown_n++] = xstrdup(id);
	return false;
}

static void
add_call(struct transcript *t, struct json_object *call)
{
	struct buf line = BUF_INIT;
	const char *name = json_get_text(call, "name", NULL), *arguments = json_get_text(call, "arguments", NULL);

	buf_addf(&line, "%s(%s)", name ? name : "?", arguments ? arguments : "");
	add_line(t, "  -> ", line.data, line.len);
	buf_release(&line);
}

static void
result_text(struct buf *out, struct json_object *result)
{
	struct json_object *parts = json_get(json_get(json_get(result, "result"), "data"), "parts"), *part;
	size_t i, n = json_object_is_type(parts, json_type_array) ? json_object_array_length(parts) : 0, len;
	const char *text;

	for (i = 0; i < n; i++) {
		part = json_object_array_get_idx(parts, i);
		text = json_get_text(part, "content", &len);
		if (out->len > 0)
			buf_addch(out, ' ');
		if (text != NULL)
			buf_add(out, text, len);
		else if (json_object_object_get_ex(part, "data", NULL) && json_get(part, "media_type") == NULL)
			json_write(out, json_get(part, "data"), JSON_COMPACT);
		else
			buf_adds(out, "[media]");
	}
	if (n == 0 && (text = json_get_text(json_get(result, "error"), "message", NULL)) != NULL)
		buf_adds(out, text);
}

static void
add_result(struct transcript *t, struct json_object *result)
{
	const char *id = json_get_text(result, "parent_id", NULL);
	struct buf text = BUF_INIT, line = BUF_INIT;
	char size[16];

	if (id != NULL && was_shown(t, id))
		return;
	result_text(&text, result);
	human_size(size, text.len);
	buf_addf(&line, "%s[%s%s] ", json_get(result, "error") ? "error " : "", size, text.len < 1024 ? " B" : "");
	buf_add(&line, text.data, text.len);
	add_line(t, "  <- ", line.data, line.len);
	buf_release(&line);
	buf_release(&text);
}

static void
add_results(struct transcript *t, struct json_object *results)
{
	size_t i, n = json_object_is_type(results, json_type_array) ? json_object_array_length(results) : 0;

	for (i = 0; i < n; i++)
		add_result(t, json_object_array_get_idx(results, i));
}

static double
count_of(struct json_object *usage, const char *key)
{
	struct json_object *n = json_get(usage, key);

	return json_object_is_type(n, json_type_int) || json_object_is_type(n, json_type_double) ? json_object_get_double(n) : -1;
}

/* "1234 tokens in (80 % cached), 56 out"; NULL when nothing is known. Some providers do not count what is cached into what comes in. */
static char *
usage_text(struct json_object *data)
{
	struct json_object *usage = json_get(json_get(data, "usage"), "data");
	double in = count_of(usage, "prompt_tokens"), out = count_of(usage, "completion_tokens");
	double cached = count_of(usage, "cache_read_input_tokens"), all = cached > in ? in + cached : in;
	struct buf text = BUF_INIT;

	if (in < 0 && out < 0)
		return NULL;
	if (in >= 0)
		buf_addf(&text, "%.0f tokens in", all);
	if (in >= 0 && cached > 0)
		buf_addf(&text, " (%.0f %% cached)", 100 * cached / all);
	if (out >= 0)
		buf_addf(&text, "%s%.0f%s out", in >= 0 ? ", " : "", out, in >= 0 ? "" : " tokens");
	return buf_detach(&text, NULL);
}

static void
add_response(struct transcript *t, struct json_object *data)
{
	struct json_object *calls = json_get(json_get(data, "tool_calls"), "calls");
	size_t i, n = json_object_is_type(calls, json_type_array) ? json_object_array_length(calls) : 0, len = 0;
	const char *text = json_get_text(json_get(data, "message"), "content", &len);
	char *usage = usage_text(data);

	forget_results(t);
	add_heading(t, "\033[1;32m", "Assistant", data, usage);
	if (text != NULL)
		add_text(t, text, len);
	for (i = 0; i < n; i++)
		add_call(t, json_object_array_get_idx(calls, i));
	free(usage);
}

/* What the summariser would read, without "User: ". */
static int
add_request(struct transcript *t, struct event *ev, struct json_object *data, struct err *e)
{
	static const char prefix[] = "User: ";
	struct buf text = BUF_INIT;
	size_t skip = sizeof(prefix) - 1;
	char turn[40];
	int rc = event_render(&text, ev, e);

	if (rc == 0) {
		snprintf(turn, sizeof(turn), "turn %llu", (unsigned long long)t->turn);
		add_heading(t, "\033[1;36m", "User", data, turn);
		if (text.len < skip || memcmp(text.data, prefix, skip) != 0)
			skip = 0;
		add_text(t, text.data + skip, text.len - skip);
	}
	buf_release(&text);
	return rc;
}

static void
add_alert(struct transcript *t, struct json_object *data)
{
	struct json_object *severity = json_get(data, "severity");
	const char *level = json_object_is_type(severity, json_type_string) ? json_object_get_string(severity) :
	    json_get_text(severity, "value", NULL);
	const char *source = json_get_text(data, "source", NULL), *message;
	struct buf line = BUF_INIT;
	size_t len = 0;

	message = json_get_text(data, "message", &len);
	add_heading(t, "\033[1;35m", "Alert", data, NULL);
	buf_addf(&line, "%s from %s: ", level ? level : "?", source ? source : "?");
	if (message != NULL)
		buf_add(&line, message, len);
	add_text(t, line.data, line.len);
	buf_release(&line);
}

static void
add_labelled(struct transcript *t, const char *colour, const char *label, struct json_object *data, const char *key)
{
	size_t len;
	const char *text = json_get_text(data, key, &len);

	add_heading(t, colour, label, data, NULL);
	if (text != NULL)
		add_text(t, text, len);
}

static void
add_summary(struct transcript *t, struct json_object *data)
{
	struct json_object *count = json_get(data, "event_count");
	char label[60] = "Summary";

	if (json_object_is_type(count, json_type_int))
		snprintf(label, sizeof(label), "Summary of %lld events", (long long)json_object_get_int64(count));
	add_labelled(t, "\033[1;34m", label, data, "summary");
}

/* That of a turn's call stands with its response. */
static void
add_usage(struct transcript *t, struct json_object *data)
{
	const char *kind = json_get_text(data, "kind", NULL);
	char *usage = usage_text(data);
	struct buf line = BUF_INIT;

	if (usage != NULL && kind != NULL && strcmp(kind, "model_call") != 0) {
		buf_addf(&line, "%s: %s", kind, usage);
		add_folded(t, "  * ", line.data, line.len);
	}
	buf_release(&line);
	free(usage);
}

/* Of everything else one line: its name, and what it is about. */
static void
add_other(struct transcript *t, struct event *ev, struct json_object *data)
{
	static const char *const keys[] = { "content", "objective", "type_name", "reason" };
	struct json_peek peek = { 0 };
	struct buf line = BUF_INIT;
	const char *why, *text = NULL;
	size_t at, len, i;

	json_scan(ev->line, ev->len, &peek, &at, &why);
	if (ev->type->flags & EV_UNKNOWN && peek.type != NULL)
		buf_add(&line, peek.type, peek.type_len);
	else
		buf_adds(&line, ev->type->last);
	for (i = 0; i < sizeof(keys) / sizeof(*keys) && text == NULL; i++)
		text = json_get_text(data, keys[i], &len);
	if (text != NULL) {
		buf_adds(&line, ": ");
		buf_add(&line, text, len);
	}
	add_line(t, "  * ", line.data, line.len);
	buf_release(&line);
}

static int
add_event(struct transcript *t, struct event *ev, struct json_object *data, struct err *e)
{
	unsigned flags = ev->type->flags;

	if (flags & (EV_TRANSIENT | EV_CALLS | EV_ANCHOR | EV_TURN_ITEM))
		return 0;	/* nothing for people, or said by the response already */
	if (flags & EV_REQUEST)
		return add_request(t, ev, data, e);
	if (flags & EV_RESPONSE)
		add_response(t, data);
	else if (flags & EV_USAGE)
		add_usage(t, data);
	else if (flags & EV_BUILTIN_CALL)
		add_call(t, data);
	else if (flags & EV_CALL)
		return 0;
	else if (flags & EV_RESULTS)
		add_results(t, json_get(data, "results"));
	else if (flags & EV_RESULT)
		add_result(t, data);
	else if (flags & EV_ALERT)
		add_alert(t, data);
	else if (flags & EV_HALT)
		add_labelled(t, "\033[1;31m", "Halted", data, "reason");
	else if (flags & EV_SUMMARY)
		add_summary(t, data);
	else if (flags & EV_PROMPT)
		add_labelled(t, "\033[1;34m", "Prompt", data, "content");
	else
		add_other(t, ev, data);
	return 0;
}

/* As the model reads it that is to summarise it. */
static int
add_plain(struct transcript *t, struct event *ev, struct err *e)
{
	struct buf text = BUF_INIT;
	int rc = event_render(&text, ev, e);

	if (rc == 0 && text.len > 0) {
		cli_add(&t->out, text.data, text.len, true);
		buf_addch(&t->out, '\n');
	}
	buf_release(&text);
	return rc;
}

/* ---- which of them ---- */

/* What was made of an event goes out, or waits to be one of the last turns. */
static void
give_out(struct transcript *t, bool begins)
{
	if (last == 0) {
		out_write(t->out.data, t->out.len);
		buf_reset(&t->out);
		return;
	}
	if (begins || t->turns_n == t->first) {
		if (t->turns_n - t->first == (size_t)last)
			buf_release(&t->turns[t->first++]);
		if (t->first > 64 && t->first > t->turns_n / 2) {
			t->turns_n -= t->first;
			memmove(t->turns, t->turns + t->first, t->turns_n * sizeof(*t->turns));
			t->first = 0;
		}
		t->turns = xgrow(t->turns, t->turns_n, &t->turns_cap, sizeof(*t->turns));
		t->turns[t->turns_n++] = (struct buf)BUF_INIT;
	}
	buf_add(&t->turns[t->turns_n - 1], t->out.data, t->out.len);
	buf_reset(&t->out);
}

static void
give_turns(struct transcript *t)
{
	for (; t->first < t->turns_n; t->first++) {
		out_write(t->turns[t->first].data, t->turns[t->first].len);
		buf_release(&t->turns[t->first]);
	}
	free(t->turns);
}

/* Compaction has taken out what is in a segment. */
static void
add_mark(struct transcript *t, uint64_t segment)
{
	const char *line = t->drawn ? "──" : "--";
	char text[80];

	if (segment > 0)
		snprintf(text, sizeof(text), "%s segment %llu, dropped by compaction %s", line, (unsigned long long)segment, line);
	else
		snprintf(text, sizeof(text), "%s current log %s", line, line);
	add_gap(t);
	add_coloured(t, "\033[2m", text);
	buf_addch(&t->out, '\n');
}

/* r is NULL when it is standard input. */
static int
show(struct transcript *t, struct jsonl *in, const struct stream_reader *r, double since, struct err *e)
{
	struct event ev;
	struct json_object *data;
	uint64_t segment = 0, now;
	bool begun = since == -INFINITY, marked = false;
	double at;
	int rc;

	while ((rc = jsonl_next(in, &ev, e)) > 0) {
		struct err bad = ERR_INIT;

		data = event_data(&ev, &bad);
		at = data != NULL ? event_time(data) : -1;
		begun = at >= 0 ? at >= since : begun;
		t->turn += (ev.type->flags & EV_REQUEST) != 0;
		now = r != NULL ? stream_segment_at(r, ev.offset) : 0;
		if (data != NULL && begun && !plain && (now != segment || (now > 0 && !marked)))
			add_mark(t, now);
		if (data != NULL && begun) {
			marked = true;
			segment = now;
		}
		if (data == NULL || (begun && (plain ? add_plain(t, &ev, &bad) : add_event(t, &ev, data, &bad)) < 0)) {
			if (jsonl_bad(in, &ev, &bad, e) < 0)
				rc = -1;
		}
		give_out(t, begun && ev.type->flags & EV_REQUEST);
		event_release(&ev);
		if (rc < 0)
			break;
	}
	return rc;
}

static int
run_show(char **args, int n)
{
	struct transcript t = { .out = BUF_INIT, .width = (size_t)cli_width(1), .colour = cli_colour(1), .terminal = cli_terminal(),
		.drawn = !cli_terminal() || cli_utf8() };
	bool standard = n > 0 && strcmp(args[0], "-") == 0;
	struct store *s = standard ? NULL : open_store(STORE_READ);
	const char *id = standard ? "stdin" : stream_operand(s, n > 0 ? args[0] : "@last");
	struct stream_reader *r = NULL;
	struct jsonl in;
	double since = -INFINITY;
	struct err e = ERR_INIT;

	if (since_text != NULL && parse_when(since_text, "--since", clock_now(), &since, &e) < 0)
		usage("show: %s", e.msg);
	if (!standard && stream_open(s, id, true, &r, &e) < 0)
		fail(&e);
	if (standard)
		jsonl_init_fd(&in, id, JSONL_BAD_COUNT, 0);
	else
		jsonl_init(&in, id, JSONL_BAD_ONCE, stream_read, r);
	if (!standard && !plain) {
		out_printf("Stream %s\n", id);
		t.begun = true;
	}
	if (show(&t, &in, r, since, &e) < 0)
		fail(&e);
	give_turns(&t);
	standard = standard && in.bad > 0;
	jsonl_release(&in);
	forget_results(&t);
	free(t.shown);
	buf_release(&t.out);
	stream_close(r);
	store_close(s);
	return standard ? 65 : 0;
}

static const struct opt show_table[] = {
	{ 0, "last", OPT_INT, &last, "N", "only the last N turns" },
	{ 0, "since", OPT_STRING, &since_text, "T", "only what came at or after T: 2026-05-28, yesterday, 7d" },
	{ 0, "full", OPT_FLAG, &full, NULL, "calls and results in whole" },
	{ 0, "plain", OPT_FLAG, &plain, NULL, "as the models read it that write summaries" },
	{ 0 }
};

const struct command command_log_show = {
	.name = "show",
	.operands = "[--last=N] [--since=T] [--full] [--plain] [S]",
	.summary = "print a stream as a transcript for people (S '-': standard input)",
	.table = show_table,
	.max = 1,
	.run = run_show,
	.more = "Without S it is the stream last written to. Tool calls and results are folded to a line each. What compaction has dropped is there too, and marked.\n"
		"\nExamples:\n"
		"  ag2-store log show --last 3\n"
		"  ag2-store log cat @last | ag2-assemble working-memory sliding-window:20 |\n"
		"      ag2-store log show -\n",
};

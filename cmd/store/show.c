/* `log show`: a stream as people read it. */
#include "command.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "event/render.h"
#include "stream.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct transcript {
	size_t width;		/* of a folded line, in characters */
	bool colour;
	char **shown;		/* the results shown since the last response: a container repeats them */
	size_t shown_n, cap;
};

/* ---- lines ---- */

/* One line of at most width characters behind an indent; line ends and tabs become blanks, what is too long ends in "...". */
static void
print_folded(const struct transcript *t, const char *indent, const char *text, size_t len)
{
	struct buf line = BUF_INIT;
	size_t i = 0, n, left = t->width > strlen(indent) + 10 ? t->width - strlen(indent) : 10;

	while (i < len && left > 0) {
		n = utf8_decode(text + i, len - i, NULL);
		n = n > 0 ? n : 1;
		if (left == 3 && utf8_count(text + i, len - i) > 3) {
			buf_adds(&line, "...");
			break;
		}
		if (text[i] == '\n' || text[i] == '\r' || text[i] == '\t')
			buf_addch(&line, ' ');
		else
			buf_add(&line, text + i, n);
		i += n;
		left--;
	}
	out_puts(indent);
	cli_write(line.data, line.len);
	out_puts("\n");
	buf_release(&line);
}

/* Text as it is, its last line ended once. */
static void
print_text(const char *text, size_t len)
{
	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' '))
		len--;
	if (len == 0)
		return;
	cli_write(text, len);
	out_puts("\n");
}

static void
print_heading(const struct transcript *t, const char *colour, const char *who, struct json_object *data)
{
	struct json_object *created = json_get(data, "created_at");
	double at = json_object_is_type(created, json_type_double) || json_object_is_type(created, json_type_int) ?
	    json_object_get_double(created) : -1;
	time_t seconds = (time_t)floor(at);
	struct tm tm;
	char when[40] = "";

	if (at >= 0 && at < 1e11 && localtime_r(&seconds, &tm) != NULL)
		strftime(when, sizeof(when), "  %Y-%m-%d %H:%M:%S", &tm);
	out_printf("\n%s%s%s%s%s%s\n", t->colour ? colour : "", who, t->colour ? "\033[0m" : "", t->colour ? "\033[2m" : "", when,
	    t->colour ? "\033[0m" : "");
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
print_call(const struct transcript *t, struct json_object *call)
{
	struct buf line = BUF_INIT;
	const char *name = json_get_text(call, "name", NULL), *arguments = json_get_text(call, "arguments", NULL);

	buf_addf(&line, "%s(%s)", name ? name : "?", arguments ? arguments : "");
	print_folded(t, "  -> ", line.data, line.len);
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
print_result(struct transcript *t, struct json_object *result)
{
	const char *id = json_get_text(result, "parent_id", NULL);
	struct buf text = BUF_INIT;

	if (id != NULL && was_shown(t, id))
		return;
	result_text(&text, result);
	print_folded(t, json_get(result, "error") ? "  <- error: " : "  <- ", text.data, text.len);
	buf_release(&text);
}

static void
print_results(struct transcript *t, struct json_object *results)
{
	size_t i, n = json_object_is_type(results, json_type_array) ? json_object_array_length(results) : 0;

	for (i = 0; i < n; i++)
		print_result(t, json_object_array_get_idx(results, i));
}

static void
print_response(struct transcript *t, struct json_object *data)
{
	struct json_object *calls = json_get(json_get(data, "tool_calls"), "calls");
	size_t i, n = json_object_is_type(calls, json_type_array) ? json_object_array_length(calls) : 0, len = 0;
	const char *text = json_get_text(json_get(data, "message"), "content", &len);

	forget_results(t);
	print_heading(t, "\033[1;32m", "Assistant", data);
	if (text != NULL)
		print_text(text, len);
	for (i = 0; i < n; i++)
		print_call(t, json_object_array_get_idx(calls, i));
}

/* What the summariser would read, without "User: ". */
static int
print_request(struct transcript *t, struct event *ev, struct json_object *data, struct err *e)
{
	static const char prefix[] = "User: ";
	struct buf text = BUF_INIT;
	size_t skip = sizeof(prefix) - 1;
	int rc = event_render(&text, ev, e);

	if (rc == 0) {
		print_heading(t, "\033[1;36m", "User", data);
		if (text.len < skip || memcmp(text.data, prefix, skip) != 0)
			skip = 0;
		print_text(text.data + skip, text.len - skip);
	}
	buf_release(&text);
	return rc;
}

static void
print_alert(const struct transcript *t, struct json_object *data)
{
	struct json_object *severity = json_get(data, "severity");
	const char *level = json_object_is_type(severity, json_type_string) ? json_object_get_string(severity) :
	    json_get_text(severity, "value", NULL);
	const char *source = json_get_text(data, "source", NULL), *message;
	struct buf line = BUF_INIT;
	size_t len = 0;

	message = json_get_text(data, "message", &len);
	print_heading(t, "\033[1;33m", "Alert", data);
	buf_addf(&line, "%s from %s: ", level ? level : "?", source ? source : "?");
	if (message != NULL)
		buf_add(&line, message, len);
	print_text(line.data, line.len);
	buf_release(&line);
}

static void
print_labelled(const struct transcript *t, const char *colour, const char *label, struct json_object *data, const char *key)
{
	size_t len;
	const char *text = json_get_text(data, key, &len);

	print_heading(t, colour, label, data);
	if (text != NULL)
		print_text(text, len);
}

static void
print_summary(const struct transcript *t, struct json_object *data)
{
	struct json_object *count = json_get(data, "event_count");
	char label[60] = "Summary";

	if (json_object_is_type(count, json_type_int))
		snprintf(label, sizeof(label), "Summary of %lld events", (long long)json_object_get_int64(count));
	print_labelled(t, "\033[1;35m", label, data, "summary");
}

/* Of everything else one line: its name, and what it is about. */
static void
print_other(const struct transcript *t, struct event *ev, struct json_object *data)
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
	print_folded(t, "  * ", line.data, line.len);
	buf_release(&line);
}

static int
print_event(struct transcript *t, struct event *ev, struct err *e)
{
	unsigned flags = ev->type->flags;
	struct json_object *data;

	if (flags & (EV_USAGE | EV_TRANSIENT | EV_CALLS | EV_ANCHOR | EV_TURN_ITEM))
		return 0;	/* nothing for people, or said by the response already */
	data = event_data(ev, e);
	if (data == NULL)
		return -1;
	if (flags & EV_REQUEST)
		return print_request(t, ev, data, e);
	if (flags & EV_RESPONSE)
		print_response(t, data);
	else if (flags & EV_BUILTIN_CALL)
		print_call(t, data);
	else if (flags & EV_CALL)
		return 0;
	else if (flags & EV_RESULTS)
		print_results(t, json_get(data, "results"));
	else if (flags & EV_RESULT)
		print_result(t, data);
	else if (flags & EV_ALERT)
		print_alert(t, data);
	else if (flags & EV_HALT)
		print_labelled(t, "\033[1;31m", "Halted", data, "reason");
	else if (flags & EV_SUMMARY)
		print_summary(t, data);
	else
		print_other(t, ev, data);
	return 0;
}

static int
run_show(char **args, int n)
{
	struct transcript t = { .width = (size_t)cli_width(1), .colour = cli_colour(1) };
	struct store *s = open_store(STORE_READ);
	const char *id = stream_operand(s, args[0]);
	struct stream_reader *r;
	struct jsonl in;
	struct event ev;
	struct err e = ERR_INIT, bad = ERR_INIT;
	int rc;

	if (stream_open(s, id, true, &r, &e) < 0)
		fail(&e);
	out_printf("Stream %s\n", id);
	jsonl_init(&in, id, JSONL_BAD_ONCE, stream_read, r);
	while ((rc = jsonl_next(&in, &ev, &e)) > 0) {
		if (print_event(&t, &ev, &bad) < 0)
			jsonl_bad(&in, &ev, &bad, &e);
		event_release(&ev);
	}
	if (rc < 0)
		fail(&e);
	jsonl_release(&in);
	forget_results(&t);
	free(t.shown);
	stream_close(r);
	store_close(s);
	return 0;
}

const struct command command_log_show = {
	.name = "show",
	.operands = "S",
	.summary = "print a stream as a transcript for people",
	.min = 1, .max = 1,
	.run = run_show,
	.more = "Tool calls and results are folded to a line each. Usage, reasoning and the like are left out.\n",
};

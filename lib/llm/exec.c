/*
 * A model that is a command: it gets the stream (Prompt lines, then events) on stdin and prints the answer's text, or
 * event lines. Which of the two is told by the first line that is not blank: a record {"type", "data"} is an event. Newlines at
 * the end of a text do not belong to it, as in $(...).
 */
#include "base/alloc.h"
#include "base/log.h"
#include "base/run.h"
#include "base/utf8.h"
#include "llm/provider.h"
#include "llm/quote.h"

#include <stdlib.h>
#include <unistd.h>

#define NAME "exec"
#define ERRORS_MAX (16 * 1024)

struct reading {
	const struct llm_sink *sink;
	struct buf out;			/* all that came */
	size_t given;			/* bytes of it that are dealt with as text */
	enum { FORM_UNKNOWN, FORM_TEXT, FORM_EVENTS } form;
	struct buf text;
	struct err *e;
};

static int
exec_body(const struct llm_request *r, struct buf *out, struct err *e)
{
	size_t i;

	for (i = 0; i < r->prompts_n; i++) {
		build_prompt(out, r->prompts[i], NULL, false);
		buf_addch(out, '\n');
	}
	for (i = 0; i < r->events_n; i++) {
		buf_add(out, r->events[i]->line, r->events[i]->len);
		buf_addch(out, '\n');
	}
	return 0;
}

static bool
blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool
is_record(const char *line, size_t len)
{
	struct json_peek peek;
	const char *why;
	size_t at;

	return json_scan(line, len, &peek, &at, &why) == 0 && peek.type != NULL && peek.data != NULL;
}

static void
find_form(struct reading *rd, bool ended)
{
	const char *line = rd->out.data, *end;

	while (blank(*line))
		line++;
	end = strchrnul(line, '\n');
	if (*line == '\0' || (*line == '{' && *end == '\0' && !ended))
		return;
	rd->form = *line == '{' && is_record(line, (size_t)(end - line)) ? FORM_EVENTS : FORM_TEXT;
}

/* Bytes of text that can be given out: no part of a character, no newlines that may be the last. */
static size_t
ready(const struct reading *rd, bool ended)
{
	size_t end = rd->out.len, back, n;

	while (end > rd->given && (rd->out.data[end - 1] == '\n' || rd->out.data[end - 1] == '\r'))
		end--;
	for (back = 1; !ended && back <= 3 && back <= end - rd->given; back++) {
		unsigned char c = (unsigned char)rd->out.data[end - back];

		if (c < 0x80)
			break;
		n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 0;
		if (n > back)
			return end - back;
		if (n > 0)
			break;
	}
	return end;
}

static int
give_text(struct reading *rd, bool ended)
{
	size_t end = ready(rd, ended), before = rd->text.len;

	utf8_add_valid(&rd->text, rd->out.data + rd->given, end - rd->given);
	rd->given = end;
	return sink_text(rd->sink, rd->text.data + before, rd->text.len - before, rd->e);
}

static int
on_output(void *arg, const char *data, size_t len)
{
	struct reading *rd = arg;

	buf_add(&rd->out, data, len);
	if (rd->out.over)
		return err_set(rd->e, ERR_UNAVAIL, "%s: it printed more than %u bytes", NAME, ANSWER_MAX);
	if (rd->form == FORM_UNKNOWN)
		find_form(rd, false);
	return rd->form == FORM_TEXT ? give_text(rd, false) : 0;
}

/* ---- event lines ---- */

static int
take_line(struct llm_reply *reply, const char *line, size_t len, size_t number, struct err *e)
{
	struct event ev = { 0 };

	if (event_view(&ev, line, len, e) < 0 || event_data(&ev, e) == NULL) {
		event_release(&ev);
		e->code = ERR_UNAVAIL;
		return err_wrap(e, "%s: line %zu of its output", NAME, number);
	}
	if (!(ev.type->flags & (EV_TRANSIENT | EV_PROMPT)))
		event_list_add(&reply->events, event_dup(&ev));
	event_release(&ev);
	return 0;
}

static int
take_lines(struct reading *rd, struct llm_reply *reply, struct err *e)
{
	const char *p = rd->out.data, *stop = p + rd->out.len, *end;
	size_t number = 1;

	for (; p < stop; p = end + 1, number++) {
		end = memchr(p, '\n', (size_t)(stop - p));
		if (end == NULL)
			end = stop;
		if (strspn(p, " \t\r") >= (size_t)(end - p))
			continue;
		if (take_line(reply, p, (size_t)(end - p), number, e) < 0)
			return -1;
	}
	return 0;
}

static char *
member_copy(struct json_object *obj, const char *key, const char *otherwise)
{
	size_t len;
	const char *text = json_get_text(obj, key, &len);

	return text != NULL ? xmemdup0(text, len) : otherwise != NULL ? xstrdup(otherwise) : NULL;
}

static int
fill_calls(struct llm_reply *reply, struct json_object *calls, struct err *e)
{
	size_t i, n = json_object_is_type(calls, json_type_array) ? json_object_array_length(calls) : 0;
	struct json_object *c;

	reply->calls = n > 0 ? xcalloc(n, sizeof(*reply->calls)) : NULL;
	for (i = 0; i < n; i++) {
		c = json_object_array_get_idx(calls, i);
		reply->calls[i] = (struct call){ member_copy(c, "id", NULL), member_copy(c, "name", NULL), member_copy(c, "arguments", "{}") };
		reply->calls_n = i + 1;
		if (reply->calls[i].id == NULL || reply->calls[i].id[0] == '\0' || reply->calls[i].name == NULL)
			return err_set(e, ERR_UNAVAIL, "%s: its response calls a tool without an id or a name", NAME);
	}
	return 0;
}

static void
fill_usage(struct llm_reply *reply, struct json_object *usage)
{
	reply->usage = usage_of(usage);
	reply->has_usage = usage_known(&reply->usage);
}

int
reply_from_events(struct llm_reply *reply, const char *model, struct err *e)
{
	struct event *last = reply->events.n > 0 ? reply->events.items[reply->events.n - 1] : NULL;
	struct json_object *data;
	const char *text;

	if (last == NULL || !(last->type->flags & EV_RESPONSE))
		return err_set(e, ERR_UNAVAIL, "%s: its last event is no ModelResponse", NAME);
	data = event_data(last, e);
	if (data == NULL)
		return -1;
	text = json_get_text(json_get(data, "message"), "content", &reply->message_len);
	if (text != NULL)
		reply->message = xmemdup0(text, reply->message_len);
	else
		reply->message_len = 0;
	fill_usage(reply, json_get(json_get(data, "usage"), "data"));
	reply->model = member_copy(data, "model", model);
	reply->provider = member_copy(data, "provider", NAME);
	reply->finish_reason = member_copy(data, "finish_reason", NULL);
	return fill_calls(reply, json_get(json_get(data, "tool_calls"), "calls"), e);
}

/* ---- the call ---- */

static void
fill_text(struct reading *rd, const char *model, struct llm_reply *reply)
{
	if (rd->text.len > 0)
		reply->message = buf_detach(&rd->text, &reply->message_len);
	reply->usage = (struct usage)USAGE_NONE;
	reply->model = xstrdup(model);
	reply->provider = xstrdup(NAME);
	reply->finish_reason = xstrdup("stop");
}

/* Text that was to come in one piece, and that of event lines, is given when it is known to be good. */
static int
finish(struct reading *rd, const struct llm_request *r, const struct llm_sink *sink, struct llm_reply *reply, struct err *e)
{
	bool given = r->stream && rd->form == FORM_TEXT;

	if (rd->form == FORM_UNKNOWN)
		find_form(rd, true);
	if (rd->form == FORM_EVENTS) {
		if (take_lines(rd, reply, e) < 0 || reply_from_events(reply, r->config->model, e) < 0)
			return -1;
	} else {
		if (give_text(rd, true) < 0)
			return -1;
		given = r->stream;
		fill_text(rd, r->config->model, reply);
	}
	return given ? 0 : sink_text(sink, reply->message, reply->message_len, e);
}

static int
failed(const char *command, int status, const struct buf *errors, struct err *e)
{
	struct buf line = BUF_INIT;
	size_t start = strspn(errors->data, " \t\r\n");

	quote_text(&line, errors->data + start, strcspn(errors->data + start, "\n"), NULL);
	err_set(e, ERR_UNAVAIL, "%s: '%.200s' exited with status %d%s%s", NAME, command, status, line.len > 0 ? ": " : "", line.data);
	buf_release(&line);
	return -1;
}

/* What it had to say while all went well. */
static void
pass_on(const struct buf *errors)
{
	const char *p = errors->data, *end;

	for (; *p != '\0'; p = *end != '\0' ? end + 1 : end) {
		end = strchrnul(p, '\n');
		if (end > p)
			log_warn("%s: %.*s", NAME, (int)(end - p), p);
	}
}

static int
exec_call(const struct llm_request *r, const struct buf *bytes, const struct llm_sink *sink, struct llm_reply *reply, struct err *e)
{
	static const struct llm_sink nowhere;
	struct err own = ERR_INIT;
	struct reading rd = { .sink = r->stream ? sink : &nowhere, .out = BUF_INIT_MAX(ANSWER_MAX), .text = BUF_INIT, .e = &own };
	struct buf errors = BUF_INIT_MAX(ERRORS_MAX);
	struct run child = { .shell = r->config->model, .env = r->env, .cwd = r->config->cwd, .input = bytes->data,
		.input_len = bytes->len, .errors = &errors, .timeout = llm_timeout(r->config), .on_output = on_output, .arg = &rd };
	int rc = run(&child, &own);

	if (rc > 0)
		rc = failed(r->config->model, rc, &errors, &own);
	else if (rc == 0)
		rc = finish(&rd, r, sink, reply, &own);
	if (rc == 0)
		pass_on(&errors);
	else if (e != NULL)
		*e = own;
	buf_release(&rd.out);
	buf_release(&rd.text);
	buf_release(&errors);
	return rc == 0 ? 0 : -1;
}

const struct provider provider_exec = {
	.lines = true,
	.body = exec_body,
	.call = exec_call,
};

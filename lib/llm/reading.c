#include "llm/reading.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "llm/http.h"
#include "llm/quote.h"

#include <stdlib.h>
#include <strings.h>

#define RETRIES 3
#define PARTS_MAX 16	/* of an answer that stops on the way */
#define BLANKS_MAX 4096	/* bytes that may say nothing at the beginning */

static const struct llm_sink nowhere;

/* ---- what providers ask for ---- */

static void
note_piece(struct reading *rd, struct buf *to, const char *text, size_t len)
{
	rd->pieces++;
	rd->piece = (struct text){ text, len };
	rd->piece_to = to;
}

void
reading_piece(struct reading *rd, struct buf *to, const char *text, size_t len)
{
	note_piece(rd, to != NULL ? to : &rd->dropped, text, len);
	if (to != NULL)
		buf_add(to, text, len);
}

void
reading_arguments(struct reading *rd, struct answer_call *c, struct json_object *value)
{
	call_add_arguments(c, value);
	if (json_object_is_type(value, json_type_string))
		note_piece(rd, &c->arguments, json_object_get_string(value), (size_t)json_object_get_string_len(value));
}

int
reading_text(struct reading *rd, const char *text, size_t len, struct err *e)
{
	if (len > 0)
		note_piece(rd, NULL, text, len);
	return answer_text(&rd->answer, rd->sink, text, len, e);
}

static bool
says_later(const char *code)
{
	static const char *const later[] = { "rate_limit", "overloaded", "429", "503", "529", "RESOURCE_EXHAUSTED", "UNAVAILABLE" };
	size_t i;

	for (i = 0; code != NULL && i < sizeof(later) / sizeof(later[0]); i++)
		if (strstr(code, later[i]) != NULL)
			return true;
	return false;
}

int
reading_error(const struct reading *rd, struct json_object *body, struct err *e)
{
	const char *message = error_message(body), *code = error_code(body), *status = json_get_text(json_get(body, "error"), "status", NULL);
	struct buf words = BUF_INIT;
	bool busy = says_later(code) || says_later(status);

	quote_text(&words, message ? message : "no reason given", strlen(message ? message : "no reason given"), rd->r->config->api_key);
	err_set(e, busy ? ERR_BUSY : ERR_UNAVAIL, "the model's server reports an error: %s", words.data);
	buf_release(&words);
	return -1;
}

static int
malformed(const struct reading *rd, const char *data, size_t len, const char *why, struct err *e)
{
	struct buf words = BUF_INIT;

	quote_body(&words, data, len, rd->r->config->api_key);
	err_set(e, ERR_UNAVAIL, "the answer is malformed (%s): %s", why, words.data);
	buf_release(&words);
	return -1;
}

int
reading_nonsense(const struct reading *rd, const char *why, struct err *e)
{
	return err_set(e, ERR_UNAVAIL, "the answer is malformed: %s", why);
}

void
take_name(char **at, struct json_object *obj, const char *key)
{
	const char *text = json_get_text(obj, key, NULL);

	if (text == NULL || *text == '\0')
		return;
	free(*at);
	*at = xstrdup(text);
}

double
take_count(struct json_object *obj, const char *path)
{
	const char *dot = strchr(path, '.');
	char *name = dot != NULL ? xmemdup0(path, (size_t)(dot - path)) : NULL;
	struct json_object *v = dot != NULL ? json_get(json_get(obj, name), dot + 1) : json_get(obj, path);

	free(name);
	return json_object_is_type(v, json_type_int) || json_object_is_type(v, json_type_double) ? json_object_get_double(v) : -1;
}

void
take_usage(struct answer *a, struct json_object *usage, const struct usage_names *names)
{
	const char *const keys[] = { names->prompt, names->completion, names->total, names->cache_read, names->cache_creation, names->thinking };
	double *const counts[] = { &a->usage.prompt, &a->usage.completion, &a->usage.total, &a->usage.cache_read, &a->usage.cache_creation,
		&a->usage.thinking }, n;
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		n = keys[i] != NULL ? take_count(usage, keys[i]) : -1;
		if (n >= 0) {
			*counts[i] = n;
			a->has_usage = true;
		}
	}
	if (names->total == NULL && a->usage.prompt >= 0 && a->usage.completion >= 0)
		a->usage.total = a->usage.prompt + a->usage.completion;
}

/* ---- frames ---- */

static void
warn_once(struct reading *rd, const char *what)
{
	if (!rd->warned)
		log_warn("the model's server sent %s", what);
	rd->warned = true;
}

/* Bytes that are no UTF-8 spoil one character, not the answer. */
static int
parse(struct reading *rd, struct json_object **out, const char *data, size_t len, struct err *e)
{
	struct buf valid = BUF_INIT;
	int rc;

	if (utf8_valid(data, len) == len)
		return rd->form == FORM_JSON ? json_parse(out, data, len, e) : json_parse_piece(out, data, len, e);
	if (!rd->ending)
		warn_once(rd, "text that is not UTF-8; it is shown as U+FFFD");
	utf8_add_valid(&valid, data, len);
	rc = json_parse(out, valid.data, valid.len, e);
	buf_release(&valid);
	return rc;
}

static int
incomplete(const struct reading *rd, struct err *e)
{
	if (!rd->framed)
		return malformed(rd, rd->whole.data, rd->whole.len, rd->whole.len == 0 ? "it is empty" : "it is no stream of events", e);
	return err_set(e, ERR_UNAVAIL, "the answer is incomplete: it ended without a reason to finish");
}

/* An error in place of a frame, or of the answer: every API has it so, named by the event or by a member of its own. */
static bool
is_error(const char *event, struct json_object *body)
{
	const char *type = json_get_text(body, "type", NULL);

	return strcmp(event, "error") == 0 || json_get(body, "error") != NULL || (type != NULL && strcmp(type, "error") == 0);
}

/* Events that an API numbers come in that order. */
static int
check_number(struct reading *rd, struct json_object *body, struct err *e)
{
	struct json_object *number = rd->api->number != NULL ? json_get(body, rd->api->number) : NULL;

	rd->numbered = json_object_is_type(number, json_type_int);
	if (!rd->numbered)
		return 0;
	if (json_object_get_int64(number) <= rd->number)
		return reading_nonsense(rd, "its events are out of order", e);
	rd->number = json_object_get_int64(number);
	return 0;
}

static int
give_frame(struct reading *rd, const char *event, struct json_object *body, bool whole, struct err *e)
{
	if (is_error(event, body))
		return reading_error(rd, body, e);
	if (!whole && check_number(rd, body, e) < 0)
		return -1;
	return rd->api->frame(rd, event, body, whole, e);
}

/* What an answer is before a frame, to see what it did. */
struct before {
	size_t said, refused, replayed, calls, in_calls;
};

static size_t
length(const char *text)
{
	return text != NULL ? strlen(text) + 1 : 0;
}

static struct before
look_at(const struct answer *a)
{
	struct before b = { a->text.len, a->refusal.len, a->replay.n, a->calls_n, 0 };
	size_t i;

	for (i = 0; i < a->calls_n; i++)
		b.in_calls += a->calls[i].arguments.len + length(a->calls[i].id) + length(a->calls[i].name) + length(a->calls[i].vendor_metadata) +
		    length(a->calls[i].signature);
	return b;
}

/* But for the piece that went into it. */
static bool
same_state(struct reading *rd)
{
	char *state = rd->state, *to = (char *)rd->piece_to;

	if (to != NULL && (uintptr_t)to >= (uintptr_t)state && (uintptr_t)to < (uintptr_t)state + rd->api->state)
		memcpy((char *)rd->state_before + (to - state), to, sizeof(*rd->piece_to));
	return memcmp(state, rd->state_before, rd->api->state) == 0;
}

static bool
is_in_calls(const struct reading *rd)
{
	size_t i;

	for (i = 0; i < rd->answer.calls_n; i++)
		if (rd->piece_to == &rd->answer.calls[i].arguments)
			return true;
	return false;
}

/* The frame did nothing beside giving a piece. */
static bool
was_plain(struct reading *rd, const struct before *b)
{
	const struct answer *a = &rd->answer;
	struct before now = look_at(a);

	if (rd->pieces != 1 || rd->complete || a->finish_reason != NULL || now.calls != b->calls || now.refused != b->refused || now.replayed != b->replayed)
		return false;
	if (rd->piece_to != NULL && now.said != b->said)
		return false;
	return now.in_calls == b->in_calls + (is_in_calls(rd) ? rd->piece.len : 0) && same_state(rd);
}

static void
learn(struct reading *rd, const char *event, const char *data, size_t len)
{
	const char *number = rd->numbered ? rd->api->number : NULL;
	size_t i;

	for (i = 0; i < PLAIN_MAX && rd->api->plain[i].text != NULL; i++)
		if (alike_learn(&rd->alike, &rd->api->plain[i], number, event, data, len, rd->piece.data, rd->piece.len))
			return;
}

/* There is nothing of an answer yet. */
static bool
says_nothing_yet(const struct answer *a)
{
	return a->text.len == 0 && a->refusal.len == 0 && a->calls_n == 0 && a->replay.n == 0 && a->files == NULL;
}

/* Until something is said, only the end of the answer itself tells that nothing will be. */
static bool
too_early(const struct reading *rd)
{
	const char *reason = rd->answer.finish_reason;

	return rd->api->early_ends && says_nothing_yet(&rd->answer) && (reason == NULL || strcasecmp(reason, "stop") == 0);
}

/* A frame as it was parsed; when it is plain text, the next one like it need not be. */
static int
give_parsed(struct reading *rd, const char *event, const char *data, size_t len, struct json_object *body, struct err *e)
{
	struct before before = look_at(&rd->answer);
	bool nothing;
	int rc;

	rd->framed = true;
	rd->pieces = 0;
	rd->piece_to = NULL;
	rd->ended = rd->complete;
	nothing = too_early(rd);
	rd->complete = false;	/* until this frame says so, too: some servers put a reason to finish on each */
	memcpy(rd->state_before, rd->state, rd->api->state);
	rc = give_frame(rd, event, body, false, e);
	if (nothing && !says_nothing_yet(&rd->answer))
		rd->ended = false;	/* it was too early: another one is to come */
	if (rc >= 0 && rd->ended && !rd->complete && rd->answer.calls_n > before.calls)
		rc = reading_nonsense(rd, "a call comes behind its end", e);
	if (rc >= 0 && rd->ended && !rd->complete && rd->answer.text.len > before.said)
		rc = reading_nonsense(rd, "text comes behind its end", e);
	rd->complete = rd->complete || rd->ended;
	if (rc == 0 && was_plain(rd, &before))
		learn(rd, event, data, len);
	else
		alike_forget(&rd->alike);
	return rc;
}

/* Of the frames that were not parsed the last one's numbers count. Its text was taken. */
static int
settle_alike(struct reading *rd, struct err *e)
{
	struct json_object *body;
	int rc = 0;

	if (rd->alike.last.len == 0)
		return 0;
	if (json_parse_piece(&body, rd->alike.last.data, rd->alike.last.len, e) < 0)
		return -1;
	rc = rd->api->frame(rd, rd->alike.event.data, body, false, e);
	json_object_put(body);
	buf_reset(&rd->alike.last);
	return rc;
}

/* Anything but a frame that is like the one before. */
static int
take_new_frame(struct reading *rd, const char *event, const char *data, size_t len, struct err *e)
{
	struct json_object *body = NULL;
	struct err why = ERR_INIT;
	int rc;

	if (settle_alike(rd, e) < 0)
		return -1;
	if (parse(rd, &body, data, len, &why) < 0)
		return rd->ending ? incomplete(rd, e) : malformed(rd, data, len, why.msg, e);
	if (error_body(body) != body) {
		rc = reading_error(rd, error_body(body), e);
	} else if (!json_object_is_type(body, json_type_object)) {
		rc = malformed(rd, data, len, "no object", e);
	} else {
		rc = give_parsed(rd, event, data, len, body, e);
	}
	json_object_put(body);
	rd->done = rd->done || rc > 0;
	return rc;
}

static int
take_frame(struct reading *rd, const char *event, const char *data, size_t len, struct err *e)
{
	rd->told = true;
	if (!alike_fits(&rd->alike, event, data, len, rd->number))
		return take_new_frame(rd, event, data, len, e);
	if (rd->numbered)
		rd->number = rd->alike.number;
	if (rd->piece_to == NULL)
		return answer_text(&rd->answer, rd->sink, rd->alike.text.data, rd->alike.text.len, e);
	if (rd->piece_to != &rd->dropped)
		buf_add(rd->piece_to, rd->alike.text.data, rd->alike.text.len);
	return rd->piece_to->over ? reading_nonsense(rd, "a part of it is too large", e) : 0;
}

static int
on_event(void *arg, const char *event, const char *data, size_t len, struct err *e)
{
	struct reading *rd = arg;

	if (rd->done || len == 0)
		return 0;
	if (strncmp(data + strspn(data, " \t"), "[DONE]", 6) == 0) {	/* as the official clients look */
		rd->done = true;
		return 1;
	}
	if (data[0] == ':') {	/* a relay that took a comment for data */
		warn_once(rd, "a comment as data; it is skipped");
		return 0;
	}
	return take_frame(rd, event, data, len, e);
}

static int
on_line(struct reading *rd, const char *line, size_t len, struct err *e)
{
	if (rd->done || strspn(line, " \t\r") >= len)
		return 0;
	return take_frame(rd, "", line, len, e);
}

/* Whole lines out of bytes at any split. */
static int
feed_lines(struct reading *rd, const char *data, size_t len, struct err *e)
{
	const char *end;
	int rc = 0;

	while (rc == 0 && (end = memchr(data, '\n', len)) != NULL) {
		buf_add(&rd->line, data, (size_t)(end - data));
		len -= (size_t)(end + 1 - data);
		data = end + 1;
		if (rd->line.over)
			break;
		buf_addch(&rd->line, '\n');	/* strspn ends there */
		rc = on_line(rd, rd->line.data, rd->line.len - 1, e);
		buf_reset(&rd->line);
	}
	if (rc == 0)
		buf_add(&rd->line, data, len);
	if (rd->line.over)
		return err_set(e, ERR_UNAVAIL, "a line of the answer is larger than %u bytes", ANSWER_MAX);
	return rc;
}

/* By how it begins, whatever it is called; by its type when that is not to be seen. */
static void
find_form(struct reading *rd, const char *type)
{
	static const char *const fields[] = { "data:", "event:", "id:", "retry:", ":" };
	const char *p = rd->whole.data + strspn(rd->whole.data, "\xef\xbb\xbf \t\r\n");
	size_t i;

	if (*p == '{')
		rd->form = rd->api->lines && rd->r->stream ? FORM_LINES : FORM_JSON;
	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (strncmp(p, fields[i], strlen(fields[i])) == 0)
			rd->form = FORM_STREAM;
	if (rd->form == FORM_UNKNOWN && (strlen(p) > 5 || rd->whole.len > BLANKS_MAX))
		rd->form = strncasecmp(type, "text/event-stream", 17) == 0 ? FORM_STREAM : FORM_JSON;
}

static int
feed(struct reading *rd, const char *data, size_t len, struct err *e)
{
	if (rd->form == FORM_STREAM)
		return sse_feed(&rd->sse, data, len, on_event, rd, e);
	return rd->form == FORM_LINES ? feed_lines(rd, data, len, e) : 0;
}

static int
take_body(struct reading *rd, const struct http_answer *a, const char *data, size_t len, struct err *e)
{
	if (rd->form == FORM_UNKNOWN || rd->form == FORM_JSON || rd->whole.len < 512)
		buf_add(&rd->whole, data, len);
	if (rd->whole.over)
		return err_set(e, ERR_UNAVAIL, "the answer is larger than %u bytes", 2 * ANSWER_MAX);
	if (rd->form != FORM_UNKNOWN)
		return feed(rd, data, len, e);
	find_form(rd, a->type);
	if (rd->form != FORM_UNKNOWN && rd->form != FORM_STREAM && strncmp(rd->whole.data, "\xef\xbb\xbf", 3) == 0)
		buf_drop(&rd->whole, 3);
	/* And with what came before its form was known: */
	return feed(rd, rd->whole.data, rd->whole.len, e);
}

/* The text of all frames that came in one piece is given at once: it is written once, then. */
static int
on_body(void *arg, const struct http_answer *a, const char *data, size_t len, struct err *e)
{
	struct reading *rd = arg;
	bool padding;
	int rc;

	rd->told = false;
	rc = take_body(rd, a, data, len, e);
	padding = !rd->told && rd->sse.line.len == 0 && rd->sse.data.len == 0;	/* comments and blank lines */
	if (screen_flush(&rd->screen, rc < 0, rc < 0 ? NULL : e) < 0)
		return -1;
	return rc < 0 ? -1 : rc > 0 ? HTTP_ENOUGH : !rd->complete || too_early(rd) ? HTTP_MORE : padding ? HTTP_PADDED : HTTP_COMPLETE;
}

/* ---- the end ---- */

/* A stream is complete when the provider said so, then [DONE] or an orderly end. */
static int
end_stream(struct reading *rd, struct err *e)
{
	int rc = 0;

	rd->ending = true;
	if (!rd->done)
		rc = rd->form == FORM_STREAM ? sse_end(&rd->sse, on_event, rd, e) : on_line(rd, rd->line.data, rd->line.len, e);
	if (rc < 0 || settle_alike(rd, e) < 0)
		return -1;
	return rd->complete ? 0 : incomplete(rd, e);
}

/* Lines that were sent though one object was asked for. */
static bool
is_lines(const struct reading *rd)
{
	const char *end = memchr(rd->whole.data, '\n', rd->whole.len);
	struct json_object *first = NULL;
	bool is = rd->api->lines && end != NULL && json_parse_piece(&first, rd->whole.data, (size_t)(end - rd->whole.data), NULL) == 0;

	json_object_put(first);
	return is;
}

static int
end_lines(struct reading *rd, struct err *e)
{
	rd->form = FORM_LINES;
	return feed_lines(rd, rd->whole.data, rd->whole.len, e) < 0 ? -1 : end_stream(rd, e);
}

static int
end_json(struct reading *rd, struct err *e)
{
	struct json_object *body = NULL;
	struct err why = ERR_INIT;
	struct buf words = BUF_INIT;
	int rc = -1;

	if (rd->whole.len == 0)
		return err_set(e, ERR_UNAVAIL, "the model's server gave an empty answer");
	rd->sink = &nowhere;
	if (parse(rd, &body, rd->whole.data, rd->whole.len, &why) < 0 && is_lines(rd)) {
		rc = end_lines(rd, e);
	} else if (body == NULL) {
		quote_body(&words, rd->whole.data, rd->whole.len, rd->r->config->api_key);
		err_set(e, ERR_UNAVAIL, "the answer is neither JSON nor a stream of events: %s", words.data);
	} else if (error_body(body) != body) {
		rc = reading_error(rd, error_body(body), e);
	} else if (!json_object_is_type(body, json_type_object)) {
		rc = malformed(rd, rd->whole.data, rd->whole.len, "no object", e);
	} else {
		rc = give_frame(rd, "", body, true, e);
		if (rc >= 0 && !rd->complete)
			rc = malformed(rd, rd->whole.data, rd->whole.len, "without a reason to finish", e);
	}
	buf_release(&words);
	json_object_put(body);
	return rc < 0 ? -1 : 0;
}

static void
hide_in(char **text, size_t *len, const char *secret)
{
	struct buf clean = BUF_INIT;

	if (*text == NULL)
		return;
	secret_hide(&clean, *text, len != NULL ? *len : strlen(*text), secret);
	free(*text);
	*text = buf_detach(&clean, len);
}

static void
hide_in_events(struct event_list *l, const char *secret)
{
	struct buf clean = BUF_INIT;
	size_t i, len;
	char *line;

	for (i = 0; i < l->n; i++) {
		secret_hide(&clean, l->items[i]->line, l->items[i]->len, secret);
		if (clean.len == l->items[i]->len && memcmp(clean.data, l->items[i]->line, clean.len) == 0) {
			buf_reset(&clean);
			continue;
		}
		event_free(l->items[i]);
		line = buf_detach(&clean, &len);
		l->items[i] = event_own(line, len);
	}
	buf_release(&clean);
}

static void
hide_in_json(struct json_object **value, const char *secret)
{
	struct json_object *clean = NULL;
	struct buf text = BUF_INIT, hidden = BUF_INIT;

	if (*value != NULL)
		json_write(&text, *value, JSON_COMPACT);
	secret_hide(&hidden, text.data, text.len, secret);
	if ((hidden.len != text.len || memcmp(hidden.data, text.data, text.len) != 0) && json_parse(&clean, hidden.data, hidden.len, NULL) == 0) {
		json_object_put(*value);
		*value = clean;
	}
	buf_release(&text);
	buf_release(&hidden);
}

/* A server that echoes what it was sent: of our key nothing gets into a log, or to a tool. */
static void
hide_in_reply(struct llm_reply *reply, const char *secret)
{
	size_t i;

	if (secret == NULL)
		return;
	hide_in(&reply->message, &reply->message_len, secret);
	hide_in(&reply->model, NULL, secret);
	hide_in(&reply->finish_reason, NULL, secret);
	for (i = 0; i < reply->calls_n; i++) {
		hide_in(&reply->calls[i].id, NULL, secret);
		hide_in(&reply->calls[i].name, NULL, secret);
		hide_in(&reply->calls[i].arguments, NULL, secret);
		hide_in(&reply->calls[i].vendor_metadata, NULL, secret);
		hide_in(&reply->calls[i].signature, NULL, secret);
	}
	hide_in_json(&reply->files, secret);
	hide_in_events(&reply->replay, secret);
}

/* All bytes of a part of it came. */
static int
end_part(struct reading *rd, struct err *e)
{
	if ((rd->form == FORM_STREAM || rd->form == FORM_LINES ? end_stream(rd, e) : end_json(rd, e)) == 0)
		return 0;
	screen_flush(&rd->screen, true, NULL);
	return -1;
}

/* What did not come in pieces, or was not wanted so, is given to the sink when it is known to be good. */
static int
finish(struct reading *rd, const struct llm_sink *sink, struct llm_reply *reply, struct err *e)
{
	bool given;

	if (rd->api->end != NULL && rd->api->end(rd, e) < 0)
		return -1;
	if (answer_end_text(&rd->answer, rd->sink, e) < 0 || screen_flush(&rd->screen, true, e) < 0)
		return -1;
	given = rd->sink != &nowhere && rd->answer.text.len > 0;
	if (answer_finish(&rd->answer, rd->api->name, rd->r->config->model, reply, e) < 0)
		return -1;
	hide_in_reply(reply, rd->r->config->api_key);
	return given ? 0 : sink_text(sink, reply->message, reply->message_len, e);
}

/* ---- the call ---- */

static int
post(struct reading *rd, const struct buf *bytes, double timeout, struct err *e)
{
	const struct llm_config *c = rd->r->config;
	struct address a = { .path = BUF_INIT, .key_header = "Authorization: Bearer " };
	struct buf source = BUF_INIT;
	struct http_post p = {
		.base_url = c->base_url != NULL ? c->base_url : rd->api->base_url,
		.key = c->api_key,
		.cacert = c->cacert,
		.cert = c->cert,
		.cert_key = c->cert_key != NULL && c->cert_key[0] != '\0' ? c->cert_key : NULL,
		.cert_pass = c->cert_pass,
		.body = bytes->data,
		.len = bytes->len,
		.timeout = timeout,
		.connect = c->connect_timeout,
		.first_byte = c->first_byte_timeout,
		.idle = c->idle_timeout,
		.retries = c->retries != 0 ? c->retries : RETRIES,
		.stream = rd->r->stream,
		.on_body = on_body,
		.arg = rd,
	};
	int rc;

	if (rd->api->address != NULL)
		rd->api->address(rd->r, &a);
	else
		buf_adds(&a.path, rd->api->path);
	llm_key_source(c, &source);
	p.key_source = source.data;
	p.path = a.path.data;
	p.query = a.query;
	p.headers = a.headers;
	p.key_header = a.key_header;
	rc = http_post(&p, e);
	buf_release(&a.path);
	buf_release(&source);
	return rc;
}

static void
begin(struct reading *rd, const struct api *api, const struct llm_request *r, const struct llm_sink *sink)
{
	*rd = (struct reading){ .r = r, .api = api, .sink = r->stream ? &rd->screened : &nowhere, .answer = ANSWER_INIT,
		.screen = { .to = sink, .secret = r->config->api_key, .text = BUF_INIT }, .screened = { screen_text, &rd->screen }, .whole = BUF_INIT_MAX(2 * ANSWER_MAX), .line = BUF_INIT_MAX(ANSWER_MAX),
		.alike = ALIKE_INIT, .number = INT64_MIN };
	sse_init(&rd->sse);
	rd->state = xmemdup0(api->initial, api->state);
	rd->state_before = xcalloc(api->state + 1, 1);
}

static void
release(struct reading *rd)
{
	if (rd->api->release != NULL)
		rd->api->release(rd->state);
	free(rd->state);
	free(rd->state_before);
	alike_release(&rd->alike);
	sse_release(&rd->sse);
	screen_release(&rd->screen);
	buf_release(&rd->whole);
	buf_release(&rd->line);
	answer_release(&rd->answer);
}

/* The next part is another body, of the same answer. */
static void
begin_part(struct reading *rd)
{
	sse_release(&rd->sse);
	sse_init(&rd->sse);
	alike_release(&rd->alike);
	rd->alike = (struct alike)ALIKE_INIT;
	buf_reset(&rd->whole);
	buf_reset(&rd->line);
	rd->form = FORM_UNKNOWN;
	rd->complete = rd->done = rd->ending = rd->framed = rd->told = rd->ended = false;
	rd->number = INT64_MIN;
}

/* Asks until the answer is all there, within one limit of time. */
static int
ask_parts(struct reading *rd, struct buf *body, struct err *e)
{
	double limit = llm_timeout(rd->r->config), end = clock_monotonic() + limit, left = limit;
	int rc, n;

	for (n = 1; n <= PARTS_MAX; n++) {
		rc = post(rd, body, left, e);
		if (rc < 0 && e != NULL && e->code == ERR_DATA)
			e->code = ERR_UNAVAIL;	/* too large: the server's fault */
		if (rc == 0)
			rc = end_part(rd, e);
		if (rc == 0 && rd->api->resume != NULL)
			rc = rd->api->resume(rd, body, e);
		if (rc <= 0)
			return rc;
		left = end - clock_monotonic();
		if (left <= 0)
			return err_set(e, ERR_UNAVAIL, "the answer was not complete within %g seconds", limit);
		begin_part(rd);
	}
	return err_set(e, ERR_UNAVAIL, "the answer is incomplete: the model paused its turn %d times", PARTS_MAX);
}

int
api_call(const struct api *api, const struct llm_request *r, const struct buf *body, const struct llm_sink *sink,
    struct llm_reply *reply, struct err *e)
{
	struct buf asked = BUF_INIT;
	struct reading rd;
	int rc;

	if (r->config->api_key == NULL && r->config->base_url == NULL && !api->keyless)
		return err_set(e, ERR_PERM, "no key for %s: set %s", r->config->provider, llm_key_env(r->config));
	begin(&rd, api, r, sink);
	buf_add(&asked, body->data, body->len);
	rc = ask_parts(&rd, &asked, e);
	if (rc == 0)
		rc = finish(&rd, sink, reply, e);
	buf_release(&asked);
	release(&rd);
	return rc;
}

int
api_read(const struct api *api, const struct llm_request *r, const char *type, bool (*next)(void *arg, const char **data, size_t *len),
    void *arg, const struct llm_sink *sink, struct llm_reply *reply, struct err *e)
{
	struct http_answer head = { 200, type };
	struct reading rd;
	const char *data;
	size_t len;
	int rc = 0;

	begin(&rd, api, r, sink);
	while (rc >= 0 && rc != HTTP_ENOUGH && next(arg, &data, &len))
		rc = on_body(&rd, &head, data, len, e);
	if (rc >= 0)
		rc = end_part(&rd, e) < 0 ? -1 : finish(&rd, sink, reply, e);
	else if (e != NULL && e->code == ERR_DATA)
		e->code = ERR_UNAVAIL;
	release(&rd);
	return rc;
}

#include "turn.h"

#include "base/alloc.h"
#include "base/run.h"
#include "knowledge.h"
#include "policy/explain.h"
#include "schema.h"
#include "standing.h"
#include "stream.h"

#include <stdlib.h>
#include <string.h>

#define LOCK_TTL_MS (24 * 3600 * 1000LL)

static struct text
text_of(const struct buf *b)
{
	return (struct text){ b->data, b->len };
}

/* ---- where a history stands ---- */

static int
log_exists(const struct turn *t, struct err *e)
{
	struct buf path = BUF_INIT;
	int rc;

	stream_path(&path, t->stream);
	rc = store_stat(t->store, path.data, NULL, e);
	buf_release(&path);
	return rc;
}

static int
find_standing(const struct turn *t, struct standing *s, struct err *e)
{
	size_t i;

	*s = (struct standing){ .halt = NULL };
	if (t->stream != NULL && standing_of_stream(s, t->store, t->stream, e) < 0)
		return -1;
	for (i = 0; i < t->history.n; i++) {
		if (run_check(e) < 0) {
			event_free(s->halt);
			return -1;
		}
		standing_add(s, t->history.items[i]);
		event_forget(t->history.items[i]);
	}
	standing_add_lines(s, t->unsaved.data, t->unsaved.len);
	return 0;
}

/* ---- new events ---- */

static int
tell_lines(const struct turn *t, const struct buf *lines, struct err *e)
{
	const char *text = lines->data, *end = text + lines->len, *line_end;

	for (; t->on_event != NULL && text < end; text = line_end + 1) {
		line_end = memchr(text, '\n', (size_t)(end - text));
		if (t->on_event(t->arg, text, (size_t)(line_end - text), e) != 0)
			return -1;
	}
	return 0;
}

static void
remember_lines(struct turn *t, const struct buf *lines)
{
	const char *text = lines->data, *end = text + lines->len, *line_end;

	for (; text < end; text = line_end + 1) {
		line_end = memchr(text, '\n', (size_t)(end - text));
		event_list_add(&t->history, event_own(xmemdup0(text, (size_t)(line_end - text)), (size_t)(line_end - text)));
	}
}

/* A log that cannot be written does not end the turn: what is not in it is kept here, and tried again with what follows. */
static void
save_lines(struct turn *t, const struct buf *lines)
{
	struct err why = ERR_INIT;

	buf_add(&t->unsaved, lines->data, lines->len);
	if (stream_append(t->store, t->stream, t->unsaved.data, t->unsaved.len, NULL, &why) == 0) {
		buf_reset(&t->unsaved);
		t->log_failed = false;
		return;
	}
	t->log_failed = true;
	t->log_error = why;
}

/* Whole lines become part of the history: in the log first, then told. */
static int
emit(struct turn *t, const struct buf *lines, struct err *e)
{
	if (t->stream != NULL)
		save_lines(t, lines);
	else
		remember_lines(t, lines);
	return tell_lines(t, lines, e);
}

static bool
has_request(const struct turn *t)
{
	return t->text != NULL || t->media_n > 0;
}

/* A log takes no line longer than that; neither does the model, where there is no log. */
static int
add_request(const struct turn *t, struct buf *lines, struct err *e)
{
	struct text text = { t->text, t->text_len };

	build_media_request(lines, &text, t->text != NULL, t->media, t->media_n);
	if (lines->len > EVENT_LINE_MAX)
		return err_set(e, ERR_DATA, "the request is too long: as an event it has more than %u MiB", EVENT_LINE_MAX >> 20);
	buf_addch(lines, '\n');
	return 0;
}

static void
add_call_lines(struct buf *lines, const struct call *calls, size_t n)
{
	size_t i;

	if (n == 0)
		return;
	build_calls(lines, calls, n);
	buf_addch(lines, '\n');
	for (i = 0; i < n; i++) {
		build_call(lines, &calls[i]);
		buf_addch(lines, '\n');
	}
}

static void
add_response_lines(struct buf *lines, const struct llm_reply *r)
{
	struct usage none = USAGE_NONE;
	struct text message = { r->message, r->message_len };
	size_t i;

	for (i = 0; i < r->replay.n; i++) {
		buf_add(lines, r->replay.items[i]->line, r->replay.items[i]->len);
		buf_addch(lines, '\n');
	}
	if (r->has_usage) {
		build_usage(lines, &r->usage, "model_call", r->model, r->provider, r->finish_reason);
		buf_addch(lines, '\n');
	}
	build_response(lines, &(struct response){ r->message ? &message : NULL, r->calls, r->calls_n, r->has_usage ? &r->usage : &none, r->model,
	    r->provider, r->finish_reason, r->files });
	buf_addch(lines, '\n');
}

/* What an exec: model wrote as events is taken as it wrote it. */
static void
add_reply_lines(struct buf *lines, const struct llm_reply *r)
{
	size_t i;

	for (i = 0; i < r->events.n; i++) {
		if (r->events.items[i]->type->flags & (EV_TRANSIENT | EV_PROMPT))
			continue;
		buf_add(lines, r->events.items[i]->line, r->events.items[i]->len);
		buf_addch(lines, '\n');
	}
	if (r->events.n == 0)
		add_response_lines(lines, r);
	add_call_lines(lines, r->calls, r->calls_n);
}

/* ---- what the model sees ---- */

struct assembled {
	struct prompt *prompts;
	size_t prompts_n, prompts_cap;
	struct event_list events;
	size_t bytes;
};

static void
assembled_release(struct assembled *a)
{
	size_t i;

	for (i = 0; i < a->prompts_n; i++)
		free((char *)a->prompts[i].content.data);
	free(a->prompts);
	event_list_release(&a->events);
	*a = (struct assembled){ .prompts = NULL };
}

static int
count_bytes(struct assembled *a, size_t len, struct err *e)
{
	a->bytes += len;
	if (a->bytes > TURN_BYTES_MAX)
		return err_set(e, ERR_DATA, "more than %u MB would be sent to the model; let a policy such as sliding-window bound it",
		    TURN_BYTES_MAX >> 20);
	return 0;
}

static int
take_prompt(void *arg, const struct prompt *p, struct err *e)
{
	struct assembled *a = arg;

	if (count_bytes(a, p->content.len, e) < 0)
		return -1;
	a->prompts = xgrow(a->prompts, a->prompts_n, &a->prompts_cap, sizeof(*a->prompts));
	a->prompts[a->prompts_n++] = (struct prompt){
		.content = { xmemdup0(p->content.data, p->content.len), p->content.len }, .at_end = p->at_end };
	return 0;
}

static int
take_event(void *arg, struct event *ev, struct err *e)
{
	struct assembled *a = arg;
	struct event *copy;

	if (count_bytes(a, ev->len, e) < 0)
		return -1;
	copy = event_dup(ev);
	event_forget(copy);
	event_list_add(&a->events, copy);
	return 0;
}

static int
feed_prompts(const struct turn *t, struct chain *c, struct err *e)
{
	struct prompt own = { .source = NULL };
	size_t i;

	if (t->agent->prompt != NULL && t->agent->prompt[0] != '\0') {
		own.content = (struct text){ t->agent->prompt, strlen(t->agent->prompt) };
		if (chain_prompt(c, &own, e) < 0)
			return -1;
	}
	for (i = 0; i < t->prompts_n; i++)
		if (chain_prompt(c, &t->prompts[i], e) < 0)
			return -1;
	return 0;
}

static int
feed_unsaved(const struct turn *t, struct chain *c, struct err *e)
{
	const char *text = t->unsaved.data, *end = text + t->unsaved.len, *line_end;
	struct event ev;
	int rc = 0;

	for (; rc == 0 && text < end; text = line_end + 1) {
		line_end = memchr(text, '\n', (size_t)(end - text));
		rc = event_view(&ev, text, (size_t)(line_end - text), e);
		if (rc == 0) {
			rc = chain_event(c, &ev, e);
			event_release(&ev);
		}
	}
	return rc;
}

static int
feed(const struct turn *t, struct chain *c, struct err *e)
{
	size_t i;
	int there;

	if (feed_prompts(t, c, e) < 0)
		return -1;
	if (t->stream != NULL) {
		there = log_exists(t, e);
		if (there < 0 || (there > 0 && chain_feed_stream(c, t->store, t->stream, e) < 0))
			return -1;
	}
	for (i = 0; i < t->history.n; i++) {
		if (chain_event(c, t->history.items[i], e) < 0)
			return -1;
		event_forget(t->history.items[i]);
	}
	return feed_unsaved(t, c, e) < 0 ? -1 : chain_end(c, e);
}

/* A mark on a prompt that came is followed, but where the layout is to be AG2's. */
static bool
stands_at_end(const struct turn *t, const struct prompt *p)
{
	return p->at_end && t->layout != LAYOUT_AG2 && !t->as_ag2;
}

static void
fill_request(const struct turn *t, const struct assembled *a, struct llm_request *r, struct text **prompts,
    struct llm_tool **tools)
{
	size_t i, n = 0, end;

	/* The system prompts first, behind them those that stand at the end. */
	*prompts = xcalloc(a->prompts_n, sizeof(**prompts));
	for (i = 0; i < a->prompts_n; i++)
		if (!stands_at_end(t, &a->prompts[i]))
			(*prompts)[n++] = a->prompts[i].content;
	for (i = 0, end = n; i < a->prompts_n; i++)
		if (stands_at_end(t, &a->prompts[i]))
			(*prompts)[end++] = a->prompts[i].content;
	*tools = xcalloc(t->tools_n, sizeof(**tools));
	for (i = 0; i < t->tools_n; i++)
		(*tools)[i] = (struct llm_tool){ t->tools[i].name, t->tools[i].description, t->tools[i].parameters };
	*r = (struct llm_request){ .config = &t->agent->model, .prompts = *prompts, .prompts_n = n,
		.context = *prompts + n, .context_n = end - n,
		.events = a->events.items, .events_n = a->events.n, .tools = *tools, .tools_n = t->tools_n,
		.schema = t->schema, .stream = t->stream_answer, .as_ag2 = t->as_ag2, .env = t->commands_env };
}

/* A tool as it is declared: its name, what it is for, its parameters. */
static void
explain_tools(const struct turn *t, struct explain *x)
{
	struct buf schema = BUF_INIT;
	size_t i;

	for (i = 0; i < t->tools_n; i++) {
		buf_reset(&schema);
		buf_addf(&schema, "%s %s ", t->tools[i].name, t->tools[i].description != NULL ? t->tools[i].description : "");
		if (t->tools[i].parameters != NULL)
			json_write(&schema, t->tools[i].parameters, JSON_COMPACT);
		explain_tool(x, t->tools[i].name, schema.data, schema.len);
	}
	buf_release(&schema);
}

/* What a client leaves out of what was assembled for it; where no request can be made of that, nothing is known. */
static void
explain_request(const struct turn *t, const struct assembled *a, struct explain *x)
{
	bool *sent = xcalloc(a->events.n + 1, sizeof(sent[0]));
	struct text *prompts;
	struct llm_tool *tools;
	struct llm_request r;
	size_t i;

	fill_request(t, a, &r, &prompts, &tools);
	if (llm_sent(&r, sent, NULL) == 0) {
		for (i = 0; i < a->events.n; i++)
			if (sent[i])
				explain_taken(x, a->events.items[i]);
		explain_client(x, t->agent->model.provider);
	}
	free(prompts);
	free(tools);
	free(sent);
}

static int
assemble(const struct turn *t, struct assembled *a, struct err *e)
{
	struct chain_options o = { .store = t->store, .layout_cache = t->layout == LAYOUT_CACHE && !t->as_ag2,
		.as_ag2 = t->as_ag2, .env = t->commands_env, .cwd = t->agent->dir, .on_bad = JSONL_BAD_ONCE,
		.whole = true, .answer_open = true, .tell_repairs = t->round == 0, .sink = { take_prompt, take_event, a } };
	struct chain *c = NULL;
	int rc;

	if (t->on_explain != NULL)
		o.explain = explain_new(explain_chars_of(t->agent->assembly, t->agent->assembly_n));
	rc = chain_new(&c, t->agent->assembly, t->agent->assembly_n, &o, e);
	if (rc == 0)
		rc = feed(t, c, e);
	chain_free(c);
	if (rc == 0 && o.explain != NULL) {
		explain_tools(t, o.explain);
		explain_request(t, a, o.explain);
		t->on_explain(t->arg, o.explain);
	}
	explain_free(o.explain);
	return rc;
}

/* ---- halting ---- */

static int
halt_text(struct buf *out, struct event *halt, struct err *e)
{
	struct json_object *data = event_data(halt, e);
	const char *reason;
	size_t len;

	if (data == NULL)
		return -1;
	reason = json_get_text(data, "reason", &len);
	buf_reset(out);
	buf_adds(out, "HALTED: ");
	buf_add(out, reason ? reason : "", reason ? len : 0);
	return 0;
}

/* A HaltEvent that a policy added comes last; one that stands in the history behind the last response was seen before. */
static struct event *
added_halt(const struct assembled *a)
{
	struct event *last = a->events.n > 0 ? a->events.items[a->events.n - 1] : NULL;

	return last != NULL && last->type->flags & EV_HALT ? last : NULL;
}

/* Whether the next call may be made; *halted is told otherwise. Where it may, a holds what is sent. */
static int
prepare_call(struct turn *t, struct assembled *a, struct event **halt, bool *is_new, struct err *e)
{
	struct standing s;

	*halt = NULL;
	*is_new = false;
	if (find_standing(t, &s, e) < 0)
		return -1;
	if (s.halt != NULL) {
		*halt = s.halt;
		return 0;
	}
	if (assemble(t, a, e) < 0)
		return -1;
	if (added_halt(a) == NULL)
		return 0;
	*halt = event_dup(added_halt(a));
	/* A watcher may have written it just now. */
	if (find_standing(t, &s, e) < 0)
		return -1;
	*is_new = s.halt == NULL || s.halt->len != (*halt)->len || memcmp(s.halt->line, (*halt)->line, s.halt->len) != 0;
	event_free(s.halt);
	return 0;
}

static int
give_text(struct turn *t, const char *text, size_t len, struct err *e)
{
	if (len == 0 || t->on_text == NULL)
		return 0;
	t->last_byte = text[len - 1];
	return t->on_text(t->arg, text, len, e);
}

static int
obey(struct turn *t, struct event *halt, bool is_new, struct err *e)
{
	struct buf line = BUF_INIT;
	struct text answer;
	int rc = -1;

	if (halt_text(&t->answer, halt, e) < 0)
		goto out;
	buf_add(&line, halt->line, halt->len);
	buf_addch(&line, '\n');
	rc = is_new ? emit(t, &line, e) : tell_lines(t, &line, e);
	if (rc < 0)
		goto out;
	buf_reset(&line);
	answer = text_of(&t->answer);
	build_response(&line, &(struct response){ .message = &answer });
	buf_addch(&line, '\n');
	t->halted = true;
	rc = emit(t, &line, e);
	if (rc == 0)
		rc = give_text(t, answer.data, answer.len, e);
out:
	buf_release(&line);
	return rc;
}

/* ---- calls ---- */

struct talk {
	struct turn *turn;
	size_t given;
};

/* What a response said before its tool calls is a line of its own. */
static int
on_text(void *arg, const char *text, size_t len, struct err *e)
{
	struct talk *talk = arg;

	if (talk->given == 0 && talk->turn->last_byte != '\0' && talk->turn->last_byte != '\n' &&
	    give_text(talk->turn, "\n", 1, e) != 0)
		return -1;
	talk->given += len;
	return give_text(talk->turn, text, len, e);
}

static int
tell_request(const struct turn *t, const struct llm_request *r, struct err *e)
{
	struct buf body = BUF_INIT;
	int rc;

	if (t->on_request == NULL)
		return 0;
	rc = llm_body(r, &body, e);
	if (rc == 0)
		rc = t->on_request(t->arg, r, &body, e);
	buf_release(&body);
	return rc;
}

/* One call and its events. An answer that did not come in pieces is given out whole. */
static int
ask(struct turn *t, const struct assembled *a, struct llm_reply *reply, struct err *e)
{
	struct talk talk = { .turn = t };
	struct text *prompts;
	struct llm_tool *tools;
	struct llm_request r;
	struct buf lines = BUF_INIT;
	int rc;

	fill_request(t, a, &r, &prompts, &tools);
	rc = tell_request(t, &r, e);
	if (rc == 0)
		rc = llm_call(&r, t->on_text && t->schema == NULL ? on_text : NULL, &talk, reply, e);
	free(prompts);
	free(tools);
	if (rc < 0)
		return -1;
	add_reply_lines(&lines, reply);
	rc = emit(t, &lines, e);
	buf_release(&lines);
	if (rc == 0 && talk.given == 0 && reply->message_len > 0 && t->schema == NULL)
		rc = on_text(&talk, reply->message, reply->message_len, e);
	return rc;
}

static int
emit_record(struct turn *t, struct json_object *record, struct err *e)
{
	struct buf line = BUF_INIT;
	int rc;

	build_record(&line, record);
	buf_addch(&line, '\n');
	rc = emit(t, &line, e);
	buf_release(&line);
	return rc;
}

/* In the order of the calls, one after the other: what one changes, the next one sees. */
static int
run_tools(struct turn *t, const struct llm_reply *reply, struct err *e)
{
	struct json_object **records = xcalloc(reply->calls_n, sizeof(*records));
	struct buf line = BUF_INIT;
	size_t i;
	int rc = 0;

	for (i = 0; rc == 0 && i < reply->calls_n; i++) {
		records[i] = tool_call(t->tools, t->tools_n, &reply->calls[i], &t->env, e);
		rc = records[i] ? emit_record(t, records[i], e) : -1;
	}
	if (rc == 0) {
		build_results(&line, records, reply->calls_n);
		buf_addch(&line, '\n');
		rc = emit(t, &line, e);
	}
	for (i = 0; i < reply->calls_n; i++)
		json_object_put(records[i]);
	free(records);
	buf_release(&line);
	return rc;
}

/* An answer that does not fit is asked for once more, as a request of its own. */
static int
ask_to_repair(struct turn *t, const char *why, struct err *e)
{
	struct buf text = BUF_INIT, line = BUF_INIT;
	struct text part;
	int rc;

	buf_addf(&text, "Your answer does not fit the JSON Schema that it must fit: %s. Answer again, with the corrected JSON and nothing else.", why);
	part = (struct text){ text.data, text.len };
	build_request(&line, &part, 1);
	buf_addch(&line, '\n');
	rc = emit(t, &line, e);
	t->repaired = true;
	buf_release(&text);
	buf_release(&line);
	return rc;
}

/* 1 when that is the answer, 0 when it is asked for again. */
static int
take_answer(struct turn *t, const struct llm_reply *reply, struct err *e)
{
	struct err why = ERR_INIT;
	struct talk talk = { .turn = t };

	if (t->schema != NULL && schema_check_text(t->schema, reply->message != NULL ? reply->message : "", reply->message_len, &why) < 0) {
		if (t->repaired)
			return err_set(e, ERR_UNAVAIL, "the answer does not fit the schema, nor did the one before it: %s", why.msg);
		return ask_to_repair(t, why.msg, e);
	}
	buf_reset(&t->answer);
	buf_add(&t->answer, reply->message, reply->message_len);
	free(t->finish_reason);
	t->finish_reason = reply->finish_reason != NULL ? xstrdup(reply->finish_reason) : NULL;
	if (t->schema != NULL && on_text(&talk, t->answer.data, t->answer.len, e) < 0)
		return -1;
	return 1;
}

/* One model call with what comes before and after it. 1: that was the answer. */
static int
round_of(struct turn *t, struct err *e)
{
	struct assembled a = { .prompts = NULL };
	struct llm_reply reply = { .message = NULL };
	struct event *halt = NULL;
	bool is_new;
	int rc = prepare_call(t, &a, &halt, &is_new, e);

	if (rc == 0 && halt != NULL) {
		rc = obey(t, halt, is_new, e) < 0 ? -1 : 1;
	} else if (rc == 0) {
		rc = ask(t, &a, &reply, e);
		if (rc == 0 && reply.calls_n == 0) {
			rc = take_answer(t, &reply, e);
		} else if (rc == 0 && run_interrupted()) {
			rc = err_set(e, ERR_UNAVAIL, "interrupted");
		} else if (rc == 0) {
			rc = run_tools(t, &reply, e);
		}
	}
	event_free(halt);
	assembled_release(&a);
	llm_reply_release(&reply);
	return rc;
}

/* ---- the turn ---- */

static bool
has_knowledge_tool(const struct turn *t)
{
	size_t i;

	for (i = 0; i < t->tools_n; i++)
		if (t->tools[i].command == NULL)
			return true;
	return false;
}

/* A program of the user's seeds the store, once; what it prints is for the user. Others wait meanwhile. */
static int
bootstrap_exec(struct turn *t, const char *command, struct err *e)
{
	static const char mark[] = "/.initialized";
	struct run r = { .shell = command, .env = t->commands_env, .cwd = t->agent->dir, .input = "", .output_fd = 2 };
	struct store_lock *lock = NULL;
	struct store_op ops[2] = {
		{ .kind = STORE_OP_EXPECT, .path = mark },
		{ .kind = STORE_OP_WRITE, .path = mark, .data = t->agent->name, .len = strlen(t->agent->name) },
	};
	struct err why = ERR_INIT;
	int rc;

	if (store_lock(t->store, mark, LOCK_TTL_MS, -1, &lock, e) < 0)
		return -1;
	rc = store_stat(t->store, mark, NULL, e);
	if (rc == 0) {
		rc = run(&r, e);
		if (rc > 0)
			rc = err_set(e, ERR_UNAVAIL, "the command ended with status %d", rc);
		if (rc == 0 && store_commit(t->store, ops, 2, &why) < 0 && why.code != ERR_CONFLICT)
			rc = err_set(e, why.code, "%s", why.msg);
	}
	store_unlock(lock);
	return rc < 0 ? err_wrap(e, "bootstrap") : 0;
}

static int
bootstrap(struct turn *t, struct err *e)
{
	const char *how = t->agent->bootstrap;

	if (t->store == NULL || !t->agent->has_knowledge || strcmp(how, "none") == 0)
		return 0;
	if (strncmp(how, "exec:", 5) == 0)
		return bootstrap_exec(t, how + 5, e);
	return knowledge_init(t->store, t->agent->name, has_knowledge_tool(t), NULL, e);
}

/* The stream, when there is to be one. */
static int
check_there(const struct turn *t, struct err *e)
{
	int there = t->stream ? log_exists(t, e) : 1;

	return there == 0 ? err_set(e, ERR_NOINPUT, "there is no stream '%s'", t->stream) : there < 0 ? -1 : 0;
}

static int
check_unanswered(const struct turn *t, struct err *e)
{
	struct standing s;

	if (check_there(t, e) < 0)
		return -1;
	if (find_standing(t, &s, e) < 0)
		return -1;
	event_free(s.halt);
	if (standing_unanswered(&s))
		return 0;
	return err_set(e, ERR_ABSENT, "there is nothing to ask: %s", s.response ? "the last request is answered" : "no request");
}

/* What the provider does not take would stand in the log for ever, and fail every later turn. */
static int
check_media(const struct turn *t, const struct buf *lines, struct err *e)
{
	struct event *ev = event_own(xmemdup0(lines->data, lines->len - 1), lines->len - 1);
	struct llm_request r = { .config = &t->agent->model, .events = &ev, .events_n = 1, .as_ag2 = t->as_ag2 };
	struct buf body = BUF_INIT;
	int rc = llm_body(&r, &body, e);

	buf_release(&body);
	event_free(ev);
	return rc;
}

/* The request, or the unanswered one. */
static int
begin(struct turn *t, struct err *e)
{
	struct buf lines = BUF_INIT;
	int rc;

	if (!has_request(t))
		return check_unanswered(t, e);
	rc = add_request(t, &lines, e);
	if (rc == 0 && t->media_n > 0)
		rc = check_media(t, &lines, e);
	if (rc == 0)
		rc = emit(t, &lines, e);
	buf_release(&lines);
	return rc;
}

static void
start(struct turn *t)
{
	buf_release(&t->answer);
	buf_release(&t->unsaved);
	free(t->finish_reason);
	t->finish_reason = NULL;
	t->answer = t->unsaved = (struct buf)BUF_INIT;
	t->halted = t->log_failed = false;
	t->last_byte = '\0';
	t->round = 0;
}

/* A store that we may read and not write, or whose disk is full, has no lock for us; nor does this turn then disturb another's. */
static int
lock_stream(const struct turn *t, struct store_lock **lock, struct err *e)
{
	struct err why = ERR_INIT;
	struct buf path = BUF_INIT;
	int rc = 0;

	if (t->stream == NULL)
		return 0;
	stream_path(&path, t->stream);
	if (store_lock(t->store, path.data, LOCK_TTL_MS, 0, lock, &why) < 0) {
		if (why.code == ERR_BUSY)
			rc = err_set(e, ERR_BUSY, "another turn of stream '%s' is running", t->stream);
		else if (why.code != ERR_PERM && why.code != ERR_IO)
			rc = err_set(e, why.code, "%s", why.msg);
	}
	buf_release(&path);
	return rc;
}

int
turn_run(struct turn *t, struct err *e)
{
	long rounds = t->max_rounds > 0 ? t->max_rounds : TURN_ROUNDS;
	struct store_lock *lock = NULL;
	int rc;

	start(t);
	if (lock_stream(t, &lock, e) < 0)
		return -1;
	rc = bootstrap(t, e);
	if (rc == 0)
		rc = begin(t, e);
	for (; rc == 0 && t->round < rounds; t->round++)
		rc = round_of(t, e);
	if (rc == 0)
		rc = err_set(e, ERR_UNAVAIL, "no answer: the model still calls tools after %ld rounds", rounds);
	store_unlock(lock);
	return rc < 0 ? -1 : 0;
}

int
turn_body(struct turn *t, struct buf *out, struct err *e)
{
	struct assembled a = { .prompts = NULL };
	struct event *halt = NULL;
	struct text *prompts;
	struct llm_tool *tools;
	struct llm_request r;
	bool is_new;
	int rc;

	start(t);
	if (has_request(t) ? add_request(t, &t->unsaved, e) < 0 : check_there(t, e) < 0)
		return -1;
	rc = prepare_call(t, &a, &halt, &is_new, e);
	if (rc == 0 && halt != NULL) {
		t->halted = true;
		rc = halt_text(&t->answer, halt, e);
	} else if (rc == 0) {
		fill_request(t, &a, &r, &prompts, &tools);
		rc = llm_body(&r, out, e);
		if (rc == 0 && t->on_request != NULL)
			rc = t->on_request(t->arg, &r, out, e);
		free(prompts);
		free(tools);
	}
	event_free(halt);
	assembled_release(&a);
	return rc;
}

void
turn_release(struct turn *t)
{
	event_list_release(&t->history);
	free(t->finish_reason);
	buf_release(&t->answer);
	buf_release(&t->unsaved);
}

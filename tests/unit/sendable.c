/* What comes out of a chain can be sent, whatever went in; and a log read from its end gives what all of it gives. */
#include "tap.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "event/render.h"
#include "history.h"
#include "llm/llm.h"
#include "policy/policy.h"
#include "stream.h"

struct output {
	struct event_list events;
	size_t prompts;
};

static int
take_prompt(void *arg, const struct prompt *p, struct err *e)
{
	((struct output *)arg)->prompts++;
	return 0;
}

static int
take_event(void *arg, struct event *ev, struct err *e)
{
	event_list_add(&((struct output *)arg)->events, event_dup(ev));
	return 0;
}

struct setting {
	const char *policies[4];	/* ends with NULL */
	int64_t budget;			/* of the last policy, in characters; 0: it is none */
	bool whole, answer_open, as_ag2;
	bool parsed;			/* the events come parsed, so that nothing is read off their text */
	enum jsonl_bad on_bad;
};

static size_t
parse_specs(struct policy_spec *specs, const char *const *texts)
{
	struct err e = ERR_INIT;
	size_t n;

	for (n = 0; texts[n] != NULL; n++)
		if (policy_spec_parse(&specs[n], texts[n], &e) < 0)
			bail("%s", e.msg);
	return n;
}

static struct chain *
make_chain(const struct setting *s, struct policy_spec *specs, struct output *out)
{
	struct chain_options o = { .as_ag2 = s->as_ag2, .whole = s->whole, .answer_open = s->answer_open, .on_bad = s->on_bad,
		.sink = { take_prompt, take_event, out } };
	struct err e = ERR_INIT;
	struct chain *c;

	if (chain_new(&c, specs, parse_specs(specs, s->policies), &o, &e) < 0)
		bail("%s", e.msg);
	return c;
}

static void
release_specs(struct policy_spec *specs, const char *const *texts)
{
	size_t i;

	for (i = 0; texts[i] != NULL; i++)
		policy_spec_release(&specs[i]);
}

/* 0, or the error's code. */
static enum err_code
assemble(const struct setting *s, const struct event_list *in, struct output *out)
{
	struct policy_spec specs[4];
	struct err e = ERR_INIT;
	struct chain *c;
	size_t i;
	int rc = 0;

	*out = (struct output){ .prompts = 0 };
	c = make_chain(s, specs, out);
	for (i = 0; i < in->n && rc == 0; i++) {
		struct event ev;

		event_view(&ev, in->items[i]->line, in->items[i]->len, NULL);
		ev.number = i + 1;
		if (s->parsed)
			event_data(&ev, NULL);
		rc = chain_event(c, &ev, &e);
		event_release(&ev);
	}
	if (rc == 0)
		rc = chain_end(c, &e);
	chain_free(c);
	release_specs(specs, s->policies);
	return rc == 0 ? ERR_NONE : e.code;
}

/* ---- what can be sent ---- */

static bool
blank(const char *s)
{
	return s == NULL || s[strspn(s, " \t\r\n")] == '\0';
}

static size_t
length(struct json_object *a)
{
	return json_object_is_type(a, json_type_array) ? json_object_array_length(a) : 0;
}

static bool
blank_parts(struct json_object *parts)
{
	size_t i;

	for (i = 0; i < length(parts); i++)
		if (!blank(json_get_text(json_object_array_get_idx(parts, i), "content", NULL)))
			return false;
	return true;
}

/* The calls that wait for results, and those of the same response that have them. */
struct open_calls {
	const char *ids[16];
	bool done[16];
	size_t n, missing;
};

static const char *
check_results(struct open_calls *open, struct json_object *results)
{
	size_t i, j;

	if (length(results) == 0)
		return "a container without results";
	for (i = 0; i < length(results); i++) {
		struct json_object *one = json_object_array_get_idx(results, i);
		const char *id = json_get_text(one, "parent_id", NULL);

		if (blank_parts(json_get(json_get(json_get(one, "result"), "data"), "parts")))
			return "an empty result";
		for (j = 0; j < open->n && (id == NULL || strcmp(open->ids[j], id) != 0); j++)
			;
		if (j == open->n)
			return "a result whose call does not stand directly before it";
		if (open->done[j])
			return "a second result";
		open->done[j] = true;
		open->missing--;
	}
	return NULL;
}

static const char *
check_response(struct open_calls *open, struct json_object *data)
{
	struct json_object *calls = json_get(json_get(data, "tool_calls"), "calls");
	size_t i;

	if (length(calls) == 0 && blank(json_get_text(json_get(data, "message"), "content", NULL)))
		return "an empty response";
	*open = (struct open_calls){ .n = length(calls), .missing = length(calls) };
	for (i = 0; i < open->n; i++)
		open->ids[i] = json_get_text(json_object_array_get_idx(calls, i), "id", NULL);
	return NULL;
}

static bool
is_open(const struct open_calls *open, const char *id)
{
	size_t i;

	for (i = 0; i < open->n; i++)
		if (id != NULL && strcmp(open->ids[i], id) == 0)
			return true;
	return false;
}

/* A single result belongs to the round before it, or to a builtin call since the last request. */
static const char *
check_result(const struct open_calls *open, const struct event_list *l, size_t at, const char *id)
{
	struct json_object *data;
	unsigned flags;
	size_t i;

	if (is_open(open, id))
		return NULL;
	for (i = at; i > 0 && (l->items[i - 1]->type->flags & EV_REQUEST) == 0; i--) {
		flags = l->items[i - 1]->type->flags;
		data = event_data(l->items[i - 1], NULL);
		if ((flags & EV_BUILTIN_CALL) && strcmp(json_get_text(data, "id", NULL), id) == 0)
			return NULL;
		if ((flags & EV_RESULT) && strcmp(json_get_text(data, "parent_id", NULL), id) == 0)
			return "a second result of a builtin call";
	}
	return "a single result without its call";
}

/* NULL when a provider takes it, else what is wrong. */
static const char *
check_sendable(const struct event_list *l, bool no_open_calls)
{
	struct open_calls open = { .n = 0 };
	const char *wrong = NULL;
	size_t i;

	for (i = 0; i < l->n && wrong == NULL; i++) {
		struct event *ev = l->items[i];
		struct json_object *data = event_data(ev, NULL);
		unsigned f = ev->type->flags;

		if ((f & (EV_REQUEST | EV_RESPONSE | EV_SUMMARY)) && open.missing > 0)
			wrong = "a call without its results";
		else if ((f & EV_REQUEST) && blank_parts(json_get(data, "parts")))
			wrong = "an empty request";
		else if (f & EV_RESPONSE)
			wrong = check_response(&open, data);
		else if (f & EV_RESULTS)
			wrong = check_results(&open, json_get(data, "results"));
		else if (f & EV_RESULT)
			wrong = check_result(&open, l, i, json_get_text(data, "parent_id", NULL));
		else if ((f & EV_CALL) && !(f & EV_BUILTIN_CALL) && !is_open(&open, json_get_text(data, "id", NULL)))
			wrong = "an announcement without its response";
		if (f & (EV_REQUEST | EV_SUMMARY))
			open.n = 0;
	}
	return wrong != NULL ? wrong : no_open_calls && open.missing > 0 ? "a call without its results at the end" : NULL;
}

/* Everything that was added counts, too. Where nothing has to be answered the newest event comes out whatever it weighs. */
static const char *
check_budget(const struct event_list *in, const struct event_list *out, int64_t budget)
{
	int64_t tokens = 0;
	bool asks = false;
	size_t i;

	for (i = 0; i < in->n; i++)
		asks |= (in->items[i]->type->flags & (EV_REQUEST | EV_RESPONSE)) != 0;
	for (i = 0; i < out->n; i++)
		if ((out->items[i]->type->flags & EV_HALT) == 0)
			tokens += event_tokens(out->items[i], 1, NULL);
	return budget > 0 && asks && tokens > budget ? "more than the budget" : NULL;
}

/* ---- what a provider gets ---- */

/*
 * The messages of a body being gone through: the ids that the last assistant's message calls, and are not answered yet; of an API
 * without ids how many those are.
 */
struct talk {
	struct json_object *calls;
	size_t open;
	const char *wrong;
};

static void
take_answer(struct talk *t, const char *id)
{
	if (id == NULL || !json_object_object_get_ex(t->calls, id, NULL))
		t->wrong = "a result in a body that answers no call right before it";
	else
		json_object_object_del(t->calls, id);
}

static bool
empty_content(struct json_object *content)
{
	return content == NULL || (json_object_is_type(content, json_type_string) && blank(json_object_get_string(content))) ||
	    (json_object_is_type(content, json_type_array) && json_object_array_length(content) == 0);
}

static void
take_openai(struct talk *t, struct json_object *m)
{
	const char *role = json_get_text(m, "role", NULL);
	struct json_object *calls = json_get(m, "tool_calls");
	size_t i;

	if (empty_content(json_get(m, "content")) && calls == NULL)
		t->wrong = "an empty message in a body";
	if (strcmp(role, "tool") == 0)
		take_answer(t, json_get_text(m, "tool_call_id", NULL));
	else if (json_object_object_length(t->calls) > 0)
		t->wrong = "a call in a body without its results";
	for (i = 0; i < length(calls); i++)
		json_object_object_add(t->calls, json_get_text(json_object_array_get_idx(calls, i), "id", NULL), NULL);
}

static void
check_block(struct talk *t, struct json_object *block)
{
	static const char *const types[] = { "text", "tool_use", "tool_result", NULL };
	const char *type = json_get_text(block, "type", NULL);
	size_t i = 0;

	while (type != NULL && types[i] != NULL && strcmp(types[i], type) != 0)
		i++;
	if (type == NULL || types[i] == NULL)
		t->wrong = "an unknown block in a body";
	else if (i == 0 && blank(json_get_text(block, "text", NULL)))
		t->wrong = "an empty block in a body";
	else if (i == 1 && !json_object_is_type(json_get(block, "input"), json_type_object))
		t->wrong = "a call in a body whose input is no object";
	else if (i == 2 && empty_content(json_get(block, "content")))
		t->wrong = "an empty result in a body";
}

/* Calls and results are blocks here; one message holds all results. */
static void
take_anthropic(struct talk *t, struct json_object *m)
{
	struct json_object *content = json_get(m, "content"), *one;
	const char *type;
	size_t i;

	if (empty_content(content))
		t->wrong = "an empty message in a body";
	for (i = 0; i < length(content); i++) {
		one = json_object_array_get_idx(content, i);
		type = json_get_text(one, "type", NULL);
		check_block(t, one);
		if (strcmp(type, "tool_result") == 0)
			take_answer(t, json_get_text(one, "tool_use_id", NULL));
	}
	if (json_object_object_length(t->calls) > 0)
		t->wrong = "a call in a body without its results";
	for (i = 0; i < length(content); i++) {
		one = json_object_array_get_idx(content, i);
		if (strcmp(json_get_text(one, "type", NULL), "tool_use") == 0)
			json_object_object_add(t->calls, json_get_text(one, "id", NULL), NULL);
	}
}

/* Text, and a call or an output by its type; the outputs of a round directly behind its calls. */
static void
take_responses(struct talk *t, struct json_object *item)
{
	const char *type = json_get_text(item, "type", NULL), *role = json_get_text(item, "role", NULL);

	if (type == NULL) {
		if (json_object_object_length(t->calls) > 0)
			t->wrong = "a call in a body without its results";
		if (role == NULL || (strcmp(role, "user") != 0 && strcmp(role, "assistant") != 0) || empty_content(json_get(item, "content")))
			t->wrong = "an empty message in a body";
	} else if (strcmp(type, "function_call") == 0) {
		if (json_get_text(item, "name", NULL) == NULL || blank(json_get_text(item, "arguments", NULL)))
			t->wrong = "a call in a body without name or arguments";
		json_object_object_add(t->calls, json_get_text(item, "call_id", NULL), NULL);
	} else if (strcmp(type, "function_call_output") == 0) {
		take_answer(t, json_get_text(item, "call_id", NULL));
		if (empty_content(json_get(item, "output")))
			t->wrong = "an empty result in a body";
	} else {
		t->wrong = "an unknown item in a body";
	}
}

static void
take_gemini_part(struct talk *t, struct json_object *part, size_t *calls, size_t *results)
{
	struct json_object *call = json_get(part, "functionCall"), *result = json_get(part, "functionResponse");
	size_t members = (size_t)json_object_object_length(part);

	if (members != 1)
		t->wrong = "a part of a body with more than one thing in it";
	else if (call == NULL && result == NULL && blank(json_get_text(part, "text", NULL)))
		t->wrong = "an unknown or empty part in a body";
	else if (call != NULL && (!json_object_is_type(json_get(call, "args"), json_type_object) || json_get_text(call, "name", NULL) == NULL))
		t->wrong = "a call in a body without name or arguments";
	else if (result != NULL && (json_get_text(result, "name", NULL) == NULL || !json_object_is_type(json_get(result, "response"), json_type_object) ||
	    json_object_object_length(json_get(result, "response")) == 0))
		t->wrong = "an empty result in a body";
	*calls += call != NULL;
	*results += result != NULL;
	if (result != NULL)
		take_answer(t, json_get_text(result, "id", NULL));
}

/* As many results in one content as there are calls in the one right before it. */
static void
take_gemini(struct talk *t, struct json_object *content)
{
	struct json_object *parts = json_get(content, "parts"), *call;
	const char *role = json_get_text(content, "role", NULL);
	size_t i, calls = 0, results = 0;

	if (length(parts) == 0 || role == NULL || (strcmp(role, "user") != 0 && strcmp(role, "model") != 0))
		t->wrong = "an empty content in a body";
	for (i = 0; i < length(parts) && t->wrong == NULL; i++)
		take_gemini_part(t, json_object_array_get_idx(parts, i), &calls, &results);
	if (t->wrong == NULL && (json_object_object_length(t->calls) > 0 || (results > 0 && results != t->open)))
		t->wrong = "a call in a body without its results";
	if (t->wrong == NULL && (calls > 0) > (strcmp(role, "model") == 0))
		t->wrong = "a call in a body that the user makes";
	t->open = calls;
	for (i = 0; i < length(parts); i++)
		if ((call = json_get(json_object_array_get_idx(parts, i), "functionCall")) != NULL)
			json_object_object_add(t->calls, json_get_text(call, "id", NULL), NULL);
}

/* Results have no ids here: as many messages behind a message as it makes calls. */
static void
take_ollama(struct talk *t, struct json_object *m)
{
	const char *role = json_get_text(m, "role", NULL), *text = json_get_text(m, "content", NULL);
	struct json_object *calls = json_get(m, "tool_calls");
	size_t i;

	if (text == NULL || (blank(text) && length(calls) == 0))
		t->wrong = "an empty message in a body";
	if (strcmp(role, "tool") == 0) {
		if (t->open-- == 0 || json_get_text(m, "tool_name", NULL) == NULL)
			t->wrong = "a result in a body that answers no call right before it";
		return;
	}
	if (t->open > 0)
		t->wrong = "a call in a body without its results";
	t->open = length(calls);
	for (i = 0; i < length(calls); i++)
		if (!json_object_is_type(json_get(json_get(json_object_array_get_idx(calls, i), "function"), "arguments"), json_type_object))
			t->wrong = "a call in a body whose arguments are no object";
}

/* Half a pair, at either level: as bytes, or as an escape in text that is JSON itself. */
static bool
has_halves(const struct buf *body)
{
	struct buf fixed = BUF_INIT;
	bool halves;

	json_fix_surrogate_escapes(&fixed, body->data, body->len);
	halves = utf8_valid(body->data, body->len) != body->len || fixed.len != body->len || memcmp(fixed.data, body->data, body->len) != 0;
	buf_release(&fixed);
	return halves;
}

/* NULL when the body for this provider is what its server takes. */
static const char *
check_body(const struct event_list *l, const char *provider, const char *member, void (*take)(struct talk *, struct json_object *))
{
	const struct llm_config config = { .provider = (char *)provider, .model = (char *)"m", .temperature = -1 };
	const struct llm_request r = { .config = &config, .events = l->items, .events_n = l->n };
	struct talk t = { .calls = json_object_new_object() };
	struct json_object *body = NULL, *messages;
	struct buf text = BUF_INIT;
	struct err e = ERR_INIT;
	size_t i;

	if (llm_body(&r, &text, &e) < 0 || json_parse(&body, text.data, text.len, &e) < 0) {
		printf("# %s: %s\n", provider, e.msg);
		t.wrong = "no body";
	}
	if (has_halves(&text))
		t.wrong = "half a character in a body";
	messages = json_get(body, member);
	for (i = 0; i < length(messages) && t.wrong == NULL; i++)
		take(&t, json_object_array_get_idx(messages, i));
	if (t.wrong == NULL && (json_object_object_length(t.calls) > 0 || t.open > 0))
		t.wrong = "a call in a body without its results at the end";
	if (t.wrong != NULL)
		printf("# %s: %s\n", provider, text.data);
	json_object_put(t.calls);
	json_object_put(body);
	buf_release(&text);
	return t.wrong;
}

static const char *
check_bodies(const struct event_list *l)
{
	static const struct {
		const char *provider, *member;
		void (*take)(struct talk *, struct json_object *);
	} apis[] = {
		{ "openai", "messages", take_openai },
		{ "openai-responses", "input", take_responses },
		{ "anthropic", "messages", take_anthropic },
		{ "gemini", "contents", take_gemini },
		{ "ollama", "messages", take_ollama },
	};
	const char *wrong = NULL;
	size_t i;

	for (i = 0; wrong == NULL && i < sizeof(apis) / sizeof(apis[0]); i++)
		wrong = check_body(l, apis[i].provider, apis[i].member, apis[i].take);
	return wrong;
}

static size_t
count_of(const struct event_list *l, unsigned flags)
{
	size_t i, n = 0;

	for (i = 0; i < l->n; i++)
		n += (l->items[i]->type->flags & flags) != 0;
	return n;
}

/* Every line that was not made here is one of the input's, each used once, in the input's order but for a round's pieces. */
static const char *
check_lines(const struct event_list *in, const struct event_list *out)
{
	bool *used = xcalloc(in->n + 1, sizeof(bool));
	const char *wrong = NULL;
	size_t i, j, last = 0;

	for (i = 0; i < out->n && wrong == NULL; i++) {
		for (j = 0; j < in->n; j++)
			if (!used[j] && in->items[j]->len == out->items[i]->len && memcmp(in->items[j]->line, out->items[i]->line, in->items[j]->len) == 0)
				break;
		if (j == in->n) {
			if (strstr(out->items[i]->line, "\"created_at\"") == NULL && strstr(out->items[i]->line, "\"n\": ") == NULL)
				wrong = "a line that was not there";
			continue;
		}
		used[j] = true;
		if ((out->items[i]->type->flags & (EV_RESULTS | EV_RESULT | EV_CALLS | EV_CALL)) && !(out->items[i]->type->flags & EV_BUILTIN_CALL))
			continue;
		if (j < last)
			wrong = "lines out of order";
		last = j;
	}
	free(used);
	return wrong;
}

static bool
same_events(const struct event_list *a, const struct event_list *b)
{
	size_t i;

	if (a->n != b->n)
		return false;
	for (i = 0; i < a->n; i++)
		if (a->items[i]->len != b->items[i]->len || memcmp(a->items[i]->line, b->items[i]->line, a->items[i]->len) != 0)
			return false;
	return true;
}

static void
show(const char *what, const struct event_list *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		printf("# %s %zu %s\n", what, i, l->items[i]->line);
}

/* Everything that is asked of one assembly. */
static const char *
check_output(const struct setting *s, const struct event_list *in, const struct output *out)
{
	const struct setting again = { .whole = s->whole, .answer_open = s->answer_open };
	struct setting parsed = *s;
	const char *wrong = check_sendable(&out->events, s->answer_open);
	struct output second;

	if (wrong == NULL)
		wrong = check_lines(in, &out->events);
	if (wrong == NULL && s->answer_open)
		wrong = check_bodies(&out->events);
	if (wrong == NULL)
		wrong = check_budget(in, &out->events, s->budget);
	if (wrong == NULL && count_of(in, EV_REQUEST) > 0 && count_of(&out->events, EV_REQUEST) == 0)
		wrong = "no request is left";
	if (wrong == NULL && in->n > 0 && (in->items[0]->type->flags & EV_SUMMARY) && count_of(&out->events, EV_SUMMARY) == 0)
		wrong = "the summary at the head is gone";
	if (wrong != NULL)
		return wrong;
	assemble(&again, &out->events, &second);
	if (!same_events(&out->events, &second.events)) {
		show("second", &second.events);
		wrong = "not the same when assembled again";
	}
	event_list_release(&second.events);
	parsed.parsed = true;
	assemble(&parsed, in, &second);
	if (wrong == NULL && !same_events(&out->events, &second.events)) {
		show("parsed", &second.events);
		wrong = "not the same when its lines come parsed";
	}
	event_list_release(&second.events);
	return wrong;
}

static const char *
name_of(const struct setting *s)
{
	static char name[300];

	snprintf(name, sizeof(name), "%s %s %s%s%s", s->policies[0] != NULL ? s->policies[0] : "no policy",
	    s->policies[0] != NULL && s->policies[1] != NULL ? s->policies[1] : "",
	    s->policies[0] != NULL && s->policies[1] != NULL && s->policies[2] != NULL ? s->policies[2] : "",
	    s->whole ? ", all at hand" : ", as it comes", s->answer_open ? ", sent now" : "");
	return name;
}

/* A budget may be refused; then nothing comes out, which is said by its error. */
static void
always_sendable(struct setting s, size_t histories, size_t most)
{
	struct event_list in = { 0 };
	struct output out;
	const char *wrong = NULL;
	size_t i, refused = 0;
	enum err_code code;

	for (i = 0; i < histories && wrong == NULL; i++) {
		s.whole = pick(2);
		s.answer_open = pick(2);
		s.on_bad = JSONL_BAD_STOP;
		random_history(&in, most);
		code = assemble(&s, &in, &out);
		if (code == ERR_NONE)
			wrong = check_output(&s, &in, &out);
		else if (code == ERR_DATA && strstr(name_of(&s), "token-budget") != NULL)
			refused++;
		else
			wrong = "an error";
		if (wrong != NULL) {
			printf("# %s: %s\n", name_of(&s), wrong);
			show("in", &in);
			show("out", &out.events);
		}
		event_list_release(&in);
		event_list_release(&out.events);
	}
	ok(wrong == NULL && refused < histories / 2, "%zu histories can be sent after: %s", histories, name_of(&s));
}

static void
every_window(size_t histories)
{
	struct event_list in = { 0 };
	struct output out;
	const char *wrong = NULL;
	char window[64];
	size_t i, max;

	for (i = 0; i < histories && wrong == NULL; i++) {
		random_history(&in, 30);
		for (max = 0; max <= in.n && wrong == NULL; max++) {
			struct setting s = { .policies = { window }, .whole = pick(2) };

			snprintf(window, sizeof(window), "sliding-window:%zu", max);
			assemble(&s, &in, &out);
			wrong = check_output(&s, &in, &out);
			if (wrong != NULL) {
				printf("# %s: %s\n", window, wrong);
				show("in", &in);
				show("out", &out.events);
			}
			event_list_release(&out.events);
		}
		event_list_release(&in);
	}
	ok(wrong == NULL, "%zu histories can be sent after a window of every size", histories);
}

/* ---- reading from the end ---- */

static struct store *
memory(void)
{
	struct store_options o = { .mode = STORE_CREATE };
	struct err e = ERR_INIT;
	struct store *s;

	if (store_open(&s, "memory:", &o, &e) < 0)
		bail("%s", e.msg);
	return s;
}

static void
write_log(struct store *s, const struct event_list *l, bool newline)
{
	struct buf text = BUF_INIT;
	size_t i;

	for (i = 0; i < l->n; i++) {
		if (pick(40) == 0)
			buf_adds(&text, pick(2) ? "torn {\n" : "\n");
		buf_add(&text, l->items[i]->line, l->items[i]->len);
		buf_addch(&text, '\n');
	}
	if (!newline && text.len > 0)
		text.len--;
	store_write(s, "/log/s.jsonl", text.data, text.len, NULL);
	buf_release(&text);
}

static enum err_code
assemble_log(const struct setting *s, struct store *store, struct output *out, bool from_end)
{
	struct policy_spec specs[4];
	struct stream_reader *r = NULL;
	struct err e = ERR_INIT;
	struct chain *c;
	struct jsonl in;
	int rc;

	*out = (struct output){ .prompts = 0 };
	c = make_chain(s, specs, out);
	jsonl_init(&in, "log", JSONL_BAD_ONCE, stream_read, NULL);
	if (from_end) {
		rc = chain_feed_stream(c, store, "s", &e);
	} else {
		if (stream_open(store, "s", false, &r, &e) < 0)
			bail("%s", e.msg);
		in.arg = r;
		rc = chain_feed(c, &in, &e);
	}
	if (rc == 0)
		rc = chain_end(c, &e);
	chain_free(c);
	jsonl_release(&in);
	stream_close(r);
	release_specs(specs, s->policies);
	if (rc != 0 && e.code != ERR_DATA)
		printf("# %s\n", e.msg);
	return rc == 0 ? ERR_NONE : e.code;
}

static void
end_equals_all(struct setting s, size_t histories, size_t most, bool wide)
{
	struct event_list in = { 0 };
	struct output end, all;
	struct store *store = memory();
	enum err_code code = ERR_NONE;
	bool good = true;
	size_t i;

	s.whole = true;
	s.on_bad = JSONL_BAD_SKIP;
	for (i = 0; i < histories && good; i++) {
		random_history(&in, most);
		while (wide && in.n > 0 && in.n < 3 * most)
			random_history(&in, in.n + 20);
		write_log(store, &in, pick(2));
		code = assemble_log(&s, store, &end, true);
		good = code == assemble_log(&s, store, &all, false) && (code == ERR_NONE || code == ERR_DATA);
		good = good && same_events(&end.events, &all.events);
		if (!good) {
			printf("# code %d\n", code);
			show("in", &in);
			show("end", &end.events);
			show("all", &all.events);
		}
		event_list_release(&in);
		event_list_release(&end.events);
		event_list_release(&all.events);
	}
	store_close(store);
	ok(good, "%zu logs read from their ends give what all of them gives: %s%s", histories, name_of(&s), s.as_ag2 ? ", as AG2" : "");
}

int
main(void)
{
	static const struct setting settings[] = {
		{ .policies = { NULL } },
		{ .policies = { "conversation" } },
		{ .policies = { "alert", "sliding-window:4" } },
		{ .policies = { "alert", "conversation", "sliding-window:9,transparent=true" } },
		{ .policies = { "token-budget:150,chars_per_token=1" }, .budget = 150 },
		{ .policies = { "token-budget:400,chars_per_token=1" }, .budget = 400 },
		{ .policies = { "token-budget:300,chars_per_token=1,step=100" }, .budget = 300 },
		{ .policies = { "conversation", "token-budget:150,chars_per_token=1,transparent=true" }, .budget = 150 },
		{ .policies = { "sliding-window:12", "token-budget:150,chars_per_token=1" }, .budget = 150 },
		{ .policies = { "sliding-window:8", "conversation", "sliding-window:3" } },
	};
	static const struct setting ends[] = {
		{ .policies = { "sliding-window:0" } },
		{ .policies = { "sliding-window:1" } },
		{ .policies = { "sliding-window:5" } },
		{ .policies = { "conversation", "sliding-window:4" } },
		{ .policies = { "sliding-window:6", "alert" } },
		{ .policies = { "token-budget:25,chars_per_token=1" } },
		{ .policies = { "conversation", "token-budget:12,chars_per_token=1", "sliding-window:3" } },
		{ .policies = { "sliding-window:5" }, .as_ag2 = true },
		{ .policies = { "conversation", "token-budget:10,chars_per_token=1" }, .as_ag2 = true },
	};
	size_t i;

	clock_set("1700000000", NULL);
	if (freopen("/dev/null", "w", stderr) == NULL)	/* the torn lines are warned about */
		bail("no /dev/null");
	for (i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		always_sendable(settings[i], 1200, 30);
	every_window(100);
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		end_equals_all(ends[i], 1000, 40, false);
		end_equals_all(ends[i], 50, 200, true);
	}
	return done();
}

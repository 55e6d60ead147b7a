/* Request bodies of Chat Completions: AG2's message arrays, and what the official client sends. */
#include "tap.h"
#include "golden.h"

#include "base/alloc.h"
#include "llm/llm.h"

static struct llm_config config = { .provider = (char *)"openai", .model = (char *)"gpt-4o", .temperature = -1 };

/* The lists of a history, as llm_request wants them. */
struct history {
	struct text prompts[10];
	size_t prompts_n;
	struct event_list events;
};

static void
add_line(struct history *h, const char *line, size_t len)
{
	struct err e = ERR_INIT;
	struct event ev;

	if (event_view(&ev, line, len, &e) < 0)
		bail("%s: %.100s", e.msg, line);
	event_list_add(&h->events, event_dup(&ev));
}

static void
add_record(struct history *h, struct json_object *record)
{
	struct buf line = BUF_INIT;

	json_write(&line, record, JSON_PYTHON);
	add_line(h, line.data, line.len);
	buf_release(&line);
}

static struct llm_request
request_of(const struct history *h)
{
	return (struct llm_request){ .config = &config, .prompts = h->prompts, .prompts_n = h->prompts_n,
		.events = h->events.items, .events_n = h->events.n };
}

static void
history_of(struct history *h, struct json_object *c)
{
	struct json_object *prompts = json_get(c, "prompt"), *events = json_get(c, "events"), *p;
	size_t i;

	*h = (struct history){ .prompts_n = json_object_array_length(prompts) };
	for (i = 0; i < h->prompts_n; i++) {
		p = json_object_array_get_idx(prompts, i);
		h->prompts[i] = (struct text){ json_object_get_string(p), (size_t)json_object_get_string_len(p) };
	}
	for (i = 0; i < json_object_array_length(events); i++)
		add_record(h, json_object_array_get_idx(events, i));
}

/* Equal as JSON: want is a value, text what was written. */
static void
is_json(const char *text, struct json_object *want, const char *what)
{
	struct err e = ERR_INIT;
	struct json_object *got = NULL;
	struct buf b = BUF_INIT;

	if (json_parse(&got, text, strlen(text), &e) < 0) {
		ok(false, "%s is JSON: %s", what, e.msg);
		return;
	}
	if (!ok(json_object_equal(got, want), "%s", what)) {
		json_write(&b, want, JSON_COMPACT);
		tap_show("got ", text, strlen(text));
		tap_show("want", b.data, b.len);
		buf_release(&b);
	}
	json_object_put(got);
}

static struct json_object *
member_of(const char *text, const char *key)
{
	struct json_object *v = NULL, *m;

	if (json_parse(&v, text, strlen(text), NULL) < 0)
		return NULL;
	m = json_object_get(json_get(v, key));
	json_object_put(v);
	return m;
}

static void
is_member(const char *body, const char *key, struct json_object *want, const char *what)
{
	struct json_object *m = member_of(body, key);
	struct buf b = BUF_INIT;

	json_write(&b, m, JSON_COMPACT);
	is_json(b.data, want, what);
	json_object_put(m);
	buf_release(&b);
}

/* "UrlInput(video)" in AG2's message is what ours names too. */
static void
refused_case(const char *name, int rc, const struct err *e, struct json_object *want)
{
	const char *message = json_get_text(want, "message", NULL), *open = strchr(message, '`'), *close = strchr(open + 1, '`');
	char part[100];

	snprintf(part, sizeof(part), "%.*s", (int)(close - open - 1), open + 1);
	ok(rc < 0 && e->code == ERR_DATA, "%s cannot be sent", name);
	ok(strstr(e->msg, part) != NULL && strstr(e->msg, "openai") != NULL, "%s: named: %s", name, e->msg);
}

static void
golden_case(struct json_object *c)
{
	const char *name = json_get_text(c, "name", NULL);
	struct json_object *want = json_get(c, "openai_chat");
	struct history h;
	struct llm_request r;
	struct buf body = BUF_INIT;
	struct err e = ERR_INIT;
	int rc;

	history_of(&h, c);
	r = request_of(&h);
	r.as_ag2 = true;
	rc = llm_body(&r, &body, &e);
	if (json_get(want, "raises") != NULL)
		refused_case(name, rc, &e, want);
	else if (ok(rc == 0, "%s: a body", name))
		is_member(body.data, "messages", json_get(want, "messages"), name);
	else
		printf("# %s\n", e.msg);
	buf_release(&body);
	event_list_release(&h.events);
}

static void
as_ag2(void)
{
	struct json_object *golden = golden_json("wire.json"), *cases = json_get(golden, "cases"), *tool, *function;
	struct history h = { .prompts_n = 0 };
	struct llm_request r = request_of(&h);
	struct llm_tool t;
	struct buf body = BUF_INIT;
	size_t i;

	for (i = 0; i < json_object_array_length(cases); i++)
		golden_case(json_object_array_get_idx(cases, i));
	tool = json_get(json_get(golden, "knowledge_tool"), "openai_chat");
	function = json_get(tool, "function");
	t = (struct llm_tool){ json_get_text(function, "name", NULL), json_get_text(function, "description", NULL),
		json_object_get(json_get(function, "parameters")) };
	json_object_object_del(t.parameters, "additionalProperties");
	r.tools = &t;
	r.tools_n = 1;
	ok(llm_body(&r, &body, NULL) == 0, "a body with a tool");
	json_object_object_add(t.parameters, "additionalProperties", json_object_new_boolean(0));
	tool = json_object_get(tool);
	{
		struct json_object *all = json_object_new_array();

		json_object_array_add(all, tool);
		is_member(body.data, "tools", all, "the knowledge tool is declared as AG2 does");
		json_object_put(all);
	}
	json_object_put(t.parameters);
	json_object_put(golden);
	buf_release(&body);
}

#define REQUEST(text) "{\"type\": \"ModelRequest\", \"data\": {\"parts\": [{\"__event__\": \"TextInput\", \"content\": \"" text "\"}]}}"
#define CALLS(message, calls) "{\"type\": \"ModelResponse\", \"data\": {\"message\": " message ", \"tool_calls\": {\"calls\": [" calls "]}}}"
#define CALL(id, arguments) "{\"__event__\": \"ToolCallEvent\", \"id\": \"" id "\", \"name\": \"f\", \"arguments\": \"" arguments "\"}"
#define MESSAGE(text) "{\"__event__\": \"ModelMessage\", \"content\": \"" text "\"}"
#define PARTS(parts) "\"result\": {\"__dataclass__\": \"ToolResult\", \"data\": {\"parts\": [" parts "]}}"
#define TEXT(text) "{\"__event__\": \"TextInput\", \"content\": \"" text "\"}"

/* The messages of a body made from these lines, as text. */
static void
messages_are(const char *const *lines, bool ag2, const char *want, const char *what)
{
	struct history h = { .prompts_n = 0 };
	struct json_object *v = NULL;
	struct buf body = BUF_INIT;
	struct llm_request r;
	struct err e = ERR_INIT;

	for (; *lines != NULL; lines++)
		add_line(&h, *lines, strlen(*lines));
	r = request_of(&h);
	r.as_ag2 = ag2;
	if (json_parse(&v, want, strlen(want), &e) < 0)
		bail("%s: %s", what, e.msg);
	if (!ok(llm_body(&r, &body, &e) == 0, "%s: a body", what))
		printf("# %s\n", e.msg);
	else
		is_member(body.data, "messages", v, what);
	json_object_put(v);
	buf_release(&body);
	event_list_release(&h.events);
}
#define MESSAGES(want, what, ...) messages_are((const char *const[]){ __VA_ARGS__, NULL }, false, want, what)
#define AG2_MESSAGES(want, what, ...) messages_are((const char *const[]){ __VA_ARGS__, NULL }, true, want, what)

#define DATA(value) "{\"type\": \"ModelRequest\", \"data\": {\"parts\": [{\"__event__\": \"DataInput\", \"data\": " value "}]}}"
#define CALLED(arguments) "[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":" \
	"{\"name\":\"f\",\"arguments\":\"" arguments "\"}}]}]"

/* AG2 sends numbers that it has read, everyone else what was written. */
static void
numbers(void)
{
#define NUMBERS "[1e5,2.50,1e22,0.00001,-0,-0.0,1e400,12,123456789012345678901234567890]"
#define READ(gap) "[100000.0" gap "2.5" gap "1e+22" gap "1e-05" gap "0" gap "-0.0" gap "Infinity" gap "12" gap "123456789012345678901234567890]"
	MESSAGES("[{\"role\":\"user\",\"content\":\"" NUMBERS "\"}]", "numbers of data keep their spelling", DATA(NUMBERS));
	AG2_MESSAGES("[{\"role\":\"user\",\"content\":\"" READ(",") "\"}]", "as AG2 they are what was read", DATA(NUMBERS));
	AG2_MESSAGES("[{\"role\":\"user\",\"content\":\"{\\\"a\\\":{\\\"b\\\":[1.0]}}\"}]", "at any depth", DATA("{\"a\":{\"b\":[1.00]}}"));
	MESSAGES(CALLED(NUMBERS), "and those of arguments", CALLS("null", CALL("c", NUMBERS)));
	AG2_MESSAGES(CALLED(READ(", ")), "as AG2, too", CALLS("null", CALL("c", NUMBERS)));
}

static void
by_default(void)
{
	MESSAGES("[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"user\",\"content\":\"b\"}]", "an answer without text is left out",
	    REQUEST("a"), CALLS(MESSAGE(""), ""), REQUEST("b"));
	MESSAGES("[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":"
	    "{\"name\":\"f\",\"arguments\":\"{ \\\"id\\\":2512292042121000001 }\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":"
	    "\"(no output)\"}]", "arguments stay as the model wrote them, and a silent tool says so",
	    CALLS("null", CALL("c", "{ \\\"id\\\":2512292042121000001 }")),
	    "{\"type\": \"ToolResultsEvent\", \"data\": {\"results\": [{\"__event__\": \"ToolResultEvent\", \"parent_id\": \"c\", " PARTS(TEXT("")) "}]}}");
	MESSAGES("[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":"
	    "{\"name\":\"f\",\"arguments\":\"{}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"x\"}]",
	    "a result that stands alone is sent, and arguments that are missing are {}", CALLS("null", CALL("c", "")),
	    "{\"type\": \"ToolResultEvent\", \"data\": {\"parent_id\": \"c\", " PARTS(TEXT("x")) "}}");
	MESSAGES("[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":"
	    "{\"name\":\"f\",\"arguments\":\"{}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"x\"}]",
	    "one that is in a container too is sent once", CALLS("null", CALL("c", "{}")),
	    "{\"type\": \"ToolResultEvent\", \"data\": {\"parent_id\": \"c\", " PARTS(TEXT("x")) "}}",
	    "{\"type\": \"ToolResultsEvent\", \"data\": {\"results\": [{\"__event__\": \"ToolResultEvent\", \"parent_id\": \"c\", " PARTS(TEXT("x")) "}]}}");
	MESSAGES("[{\"role\":\"assistant\",\"content\":\"\xef\xbf\xbd ok\",\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":"
	    "{\"name\":\"f\",\"arguments\":\"{\\\"q\\\":\\\"\\\\ufffd\\\"}\"}}]}]", "lone surrogates are sent at neither level",
	    CALLS(MESSAGE("\\ud99c ok"), CALL("c", "{\\\"q\\\":\\\"\\\\ud99c\\\"}")));
	MESSAGES("[{\"role\":\"user\",\"content\":\"a\\u0000b\\u001b\"}]", "NULs and control characters arrive", REQUEST("a\\u0000b\\u001b"));
}

/* The requests of the official client, as recorded from it. */
static void
whole_bodies(void)
{
	struct history h = { .prompts_n = 0 };
	struct llm_request r;
	struct json_object *want;
	struct buf body = BUF_INIT;

#define IS(text, what) do { \
	want = NULL; \
	json_parse(&want, text, strlen(text), NULL); \
	buf_reset(&body); \
	ok(llm_body(&r, &body, NULL) == 0, what ": a body"); \
	is_json(body.data, want, what); \
	json_object_put(want); \
} while (0)
	add_line(&h, REQUEST("hello"), strlen(REQUEST("hello")));
	r = request_of(&h);
	IS("{\"model\":\"gpt-4o\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}", "without prompts or settings neither is sent");
	r.stream = true;
	IS("{\"model\":\"gpt-4o\",\"stream\":true,\"stream_options\":{\"include_usage\":true},"
	    "\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}", "a stream is asked for with its usage");
	r.stream = false;
	h.prompts[0] = (struct text){ "You are terse.", 14 };
	r.prompts_n = 1;
	config.temperature = 0.2;
	config.max_tokens = 100;
	IS("{\"model\":\"gpt-4o\",\"messages\":[{\"role\":\"system\",\"content\":\"You are terse.\"},{\"role\":\"user\",\"content\":\"hello\"}],"
	    "\"temperature\":0.2,\"max_completion_tokens\":100}", "temperature and limit are sent when they are set");
	config.temperature = -1;
	config.max_tokens = 0;
	buf_release(&body);
	event_list_release(&h.events);
}

static void
models(void)
{
	struct llm_config c = { .temperature = -1 };
	struct err e = ERR_INIT;
	const char *name, *summary;

	ok(llm_config_parse(&c, "openai:gpt-5", &e) == 0, "PROVIDER:MODEL is taken");
	is_str(c.provider, "openai", "the provider");
	is_str(c.model, "gpt-5", "the model");
	is_str(llm_key_env(&c), "OPENAI_API_KEY", "its key's variable");
	ok(llm_config_parse(&c, "exec:./m a:b", &e) == 0, "a command may hold colons");
	is_str(c.model, "./m a:b", "and is all behind the first");
	is_str(llm_key_env(&c), NULL, "a command has no key");
	ok(llm_config_parse(&c, "gpt-5", &e) == -1 && e.code == ERR_USAGE, "without a provider: %s", e.msg);
	ok(llm_config_parse(&c, "opnai:x", &e) == -1 && strstr(e.msg, "openai") != NULL, "a misspelt one: %s", e.msg);
	ok(llm_config_parse(&c, "zz:x", &e) == -1 && strstr(e.msg, "and exec") != NULL, "an unknown one: %s", e.msg);
	ok(llm_config_parse(&c, "openai:", &e) == -1 && e.code == ERR_USAGE, "without a model: %s", e.msg);
	ok(llm_provider_list(0, &name, &summary) && strcmp(name, "openai") == 0 && *summary != '\0', "providers are listed");
	ok(!llm_provider_list(99, &name, &summary), "to their end");
	llm_config_release(&c);
}

int
main(void)
{
	models();
	as_ag2();
	by_default();
	numbers();
	whole_bodies();
	return done();
}

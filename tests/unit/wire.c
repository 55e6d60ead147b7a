/* Request bodies of every provider: AG2's message arrays, and the requests that the official clients were seen to send. */
#include "tap.h"
#include "golden.h"
#include "request.h"

#include "base/alloc.h"

/* ---- AG2's arrays ---- */

static const struct wire {
	const char *key, *provider, *model;
	bool cache;
	const char *members[3];
} wires[] = {
	{ "openai_chat", "openai", "m", false, { "messages" } },
	{ "anthropic", "anthropic", "m", false, { "system", "messages" } },
	{ "anthropic_prompt_caching", "anthropic", "m", true, { "system", "messages" } },
	{ "gemini", "gemini", "m", false, { "systemInstruction", "contents" } },
	{ "ollama", "ollama", "m", false, { "messages" } },
	{ "openai_responses", "openai-responses", "m", false, { "instructions", "input" } },
};

/* `BinaryInput(video)` in AG2's message is what ours names too, and at least as closely. */
static void
refused_case(const char *what, const struct wire *w, int rc, const struct err *e, struct json_object *want)
{
	const char *message = json_get_text(want, "message", NULL), *open = strchr(message, '`'), *close;
	char part[100];

	ok(rc < 0 && e->code == ERR_DATA, "%s cannot be sent", what);
	if (open == NULL || rc == 0)
		return;
	close = strchr(open + 1, '`');
	snprintf(part, sizeof(part), "%.*s", (int)(close - open - 1), open + 1);
	ok(strstr(e->msg, part) != NULL && strstr(e->msg, w->provider) != NULL, "%s: named: %s", what, e->msg);
}

/* AG2 hands this one to its client as text, which makes content of it. */
static struct json_object *
member_as_ag2(struct json_object *body, const char *name)
{
	struct json_object *v = json_get(body, name);

	if (v == NULL || strcmp(name, "systemInstruction") != 0)
		return v;
	return json_get(json_object_array_get_idx(json_get(v, "parts"), 0), "text");
}

static void
golden_case(const struct wire *w, struct json_object *c)
{
	struct llm_config config = { .provider = (char *)w->provider, .model = (char *)w->model, .temperature = -1, .cache = w->cache };
	struct json_object *want = json_get(c, w->key), *body;
	char what[200];
	struct asked h;
	struct llm_request r;
	struct buf out = BUF_INIT;
	struct err e = ERR_INIT;
	size_t i;
	int rc;

	asked_of(&h, c);
	r = asked_request(&h, &config);
	r.as_ag2 = true;
	snprintf(what, sizeof(what), "%s: %s", w->key, json_get_text(c, "name", NULL));
	rc = llm_body(&r, &out, &e);
	if (json_get(want, "raises") != NULL) {
		refused_case(what, w, rc, &e, want);
	} else if (!ok(rc == 0, "%s: a body", what)) {
		printf("# %s\n", e.msg);
	} else {
		body = parsed(out.data);
		for (i = 0; i < 3 && w->members[i] != NULL; i++)
			same(member_as_ag2(body, w->members[i]), json_get(want, w->members[i]), what);
		json_object_put(body);
	}
	buf_release(&out);
	event_list_release(&h.events);
}

static bool
there(const char *provider)
{
	const char *name, *summary;
	size_t i;

	for (i = 0; llm_provider_list(i, &name, &summary); i++)
		if (strcmp(name, provider) == 0)
			return true;
	return false;
}

static void
as_ag2(void)
{
	struct json_object *golden = golden_json("wire.json"), *cases = json_get(golden, "cases");
	size_t i, j;

	for (i = 0; i < sizeof(wires) / sizeof(wires[0]); i++)
		for (j = 0; there(wires[i].provider) && j < json_object_array_length(cases); j++)
			golden_case(&wires[i], json_object_array_get_idx(cases, j));
	json_object_put(golden);
}

/* How AG2 declares its knowledge tool, from the same schema. */
static void
tool_case(struct json_object *golden, const struct wire *w, const char *path)
{
	struct llm_config config = { .provider = (char *)w->provider, .model = (char *)w->model, .temperature = -1 };
	struct json_object *all = json_get(golden, "knowledge_tool"), *source = json_get(all, "anthropic"), *want = json_get(all, w->key), *body, *list;
	struct llm_tool t = { json_get_text(source, "name", NULL), json_get_text(source, "description", NULL), json_get(source, "input_schema") };
	struct llm_request r = { .config = &config, .tools = &t, .tools_n = 1, .as_ag2 = true };
	struct buf out = BUF_INIT;

	if (!ok(llm_body(&r, &out, NULL) == 0, "%s: a body with a tool", w->key))
		return;
	body = parsed(out.data);
	list = json_get(body, "tools");
	same(json_object_is_type(want, json_type_array) ? list : json_object_array_get_idx(list, 0), want, path);
	json_object_put(body);
	buf_release(&out);
}

static void
tools_as_ag2(void)
{
	struct json_object *golden = golden_json("wire.json");
	size_t i;

	for (i = 0; i < sizeof(wires) / sizeof(wires[0]); i++)
		if (there(wires[i].provider) && !wires[i].cache)
			tool_case(golden, &wires[i], wires[i].provider);
	json_object_put(golden);
}

/* ---- the official clients ---- */

#define REQUEST(text) "{\"type\": \"ModelRequest\", \"data\": {\"parts\": [{\"__event__\": \"TextInput\", \"content\": \"" text "\"}]}}"
#define PNG "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
#define IMAGE(vendor) "{\"__event__\": \"BinaryInput\", \"vendor_metadata\": " vendor ", \"media_type\": \"image/png\", \"kind\": {\"value\": \"image\"}, " \
	"\"data\": {\"__bytes__\": \"" PNG "\"}}"
#define HELLO "{\"__event__\": \"TextInput\", \"content\": \"hello\"}"
#define PARTS(parts) "{\"type\": \"ModelRequest\", \"data\": {\"parts\": [" parts "]}}"
#define CALLS "{\"type\": \"ModelResponse\", \"data\": {\"message\": {\"__event__\": \"ModelMessage\", \"content\": \"Let me look.\"}, \"tool_calls\": {\"calls\": [" \
	"{\"__event__\": \"ToolCallEvent\", \"id\": \"call_1\", \"name\": \"get_weather\", \"arguments\": \"{\\\"city\\\":\\\"Paris\\\"}\"}, " \
	"{\"__event__\": \"ToolCallEvent\", \"id\": \"call_2\", \"name\": \"get_weather\", \"arguments\": \"{\\\"city\\\":\\\"Tōkyō\\\",\\\"units\\\":\\\"metric\\\"}\"}]}}}"
#define RESULT(class, id, more) "{\"__event__\": \"" class "\", \"parent_id\": \"" id "\", \"name\": \"get_weather\"" more ", \"result\": {\"data\": {\"parts\": [" \
	"{\"__event__\": \"TextInput\", \"content\": \"{\\\"temp\\\":21}\"}]}}}"
#define RESULTS(second) "{\"type\": \"ToolResultsEvent\", \"data\": {\"results\": [" RESULT("ToolResultEvent", "call_1", "") ", " second "]}}"
#define FINE RESULTS(RESULT("ToolResultEvent", "call_2", ""))
#define FAILED RESULTS(RESULT("ToolErrorEvent", "call_2", ", \"error\": {\"__exception__\": \"E\", \"message\": \"x\"}"))
#define PERSON "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"age\":{\"type\":\"integer\"}},\"required\":[\"name\",\"age\"]," \
	"\"additionalProperties\":false}"
#define WEATHER "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\",\"description\":\"City name\"}},\"required\":[\"city\"],\"additionalProperties\":false}"
#define PLAIN_WEATHER "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"}},\"required\":[\"city\"]}"

static const struct reference {
	const char *key;
	const char *lines[4];
	const char *prompt, *tool, *schema, *options, *version;
	double temperature;
	long max_tokens;
	bool stream, cache;
	const char *apart;	/* paths that are not compared, separated by blanks; * is any member of a list. Why: */
	const char *why;
} references[] = {
#define STRICT "strict mode wants every property required; a tool's schema is its author's"
#define CLIENT_CHOSE "the name of the schema is the caller's choice"
	{ "openai-chat-401.1", { REQUEST("err401") } },
	{ "openai-chat-429.1", { REQUEST("err429 openai-chat-429") } },
	{ "openai-chat-simple.1", { REQUEST("hello") }, .prompt = "You are terse.", .temperature = 0.2, .max_tokens = 100 },
	{ "openai-chat-stream.1", { REQUEST("hello") }, .stream = true },
	{ "openai-chat-image.1", { PARTS(HELLO ", " IMAGE("{\"detail\": \"low\"}")) } },
	{ "openai-chat-json.1", { REQUEST("person") }, .schema = PERSON, .apart = "response_format.json_schema.name", .why = CLIENT_CHOSE },
	{ "openai-chat-tools.1", { REQUEST("both cities please") }, .tool = WEATHER,
		.options = "{\"tool_choice\": \"auto\", \"parallel_tool_calls\": true}", .apart = "tools.*.function.strict", .why = STRICT },
	{ "openai-chat-tools.2", { REQUEST("both cities please"), CALLS, FINE }, .tool = WEATHER,
		.apart = "tools.*.function.strict messages.*.refusal", .why = STRICT "; the caller echoed a field that is null" },
	{ "openai-chat-tools-stream.1", { REQUEST("both cities") }, .tool = WEATHER, .stream = true,
		.apart = "tools.*.function.strict stream_options", .why = STRICT "; usage is always asked for" },
	{ "anthropic-500.1", { REQUEST("err500") }, .max_tokens = 256 },
	{ "anthropic-simple.1", { REQUEST("hello") }, .prompt = "You are terse.", .max_tokens = 256, .apart = "temperature",
		.why = "the API of this version refuses it" },
	{ "anthropic-stream.1", { REQUEST("hello") }, .max_tokens = 256, .stream = true },
	{ "anthropic-image.1", { PARTS(IMAGE("{}") ", " HELLO) }, .max_tokens = 256 },
	{ "anthropic-json.1", { REQUEST("hello person") }, .max_tokens = 256, .schema = PERSON },
	{ "anthropic-thinking-cache.1", { REQUEST("reason") }, .prompt = "You are terse.", .max_tokens = 2048, .cache = true,
		.options = "{\"thinking\": {\"type\": \"enabled\", \"budget_tokens\": 1024}}", .apart = "messages.0.content",
		.why = "the last user message is marked as well, as AG2 does" },
	{ "anthropic-tools.1", { REQUEST("both cities please") }, .tool = WEATHER, .max_tokens = 256, .options = "{\"tool_choice\": {\"type\": \"auto\"}}" },
	{ "anthropic-tools.2", { REQUEST("both cities please"), CALLS, FAILED }, .tool = WEATHER, .max_tokens = 256 },
	{ "anthropic-tools-stream.1", { REQUEST("both cities") }, .tool = WEATHER, .max_tokens = 256, .stream = true },
	{ "anthropic-2023-06-01/old-anthropic-json.1", { REQUEST("hello") }, .version = "2023-06-01", .max_tokens = 256, .schema = PERSON },
	{ "anthropic-2023-06-01/old-anthropic-simple.1", { REQUEST("hello") }, .version = "2023-06-01", .prompt = "You are terse.", .max_tokens = 256 },
	{ "anthropic-2023-06-01/old-anthropic-stream.1", { REQUEST("hello") }, .version = "2023-06-01", .max_tokens = 256, .stream = true },
	{ "anthropic-2023-06-01/old-anthropic-tools.1", { REQUEST("both cities") }, .version = "2023-06-01", .tool = PLAIN_WEATHER, .max_tokens = 256 },
	{ "anthropic-2023-06-01/old-anthropic-tools.2", { REQUEST("both cities"), CALLS, FINE }, .version = "2023-06-01", .tool = PLAIN_WEATHER,
		.max_tokens = 256 },
	{ "gemini-simple.1", { REQUEST("hello") }, .prompt = "You are terse.", .temperature = 0.2, .max_tokens = 100 },
	{ "gemini-stream.1", { REQUEST("hello") }, .stream = true },
	{ "gemini-image.1", { PARTS(IMAGE("{}") ", " HELLO) } },
	{ "gemini-json.1", { REQUEST("hello person") }, .schema = PERSON },
#define EMPTY_CONFIG "the client sends a generationConfig without members"
	{ "gemini-tools.1", { REQUEST("both cities please") }, .tool = WEATHER,
		.options = "{\"toolConfig\": {\"functionCallingConfig\": {\"mode\": \"AUTO\"}}}", .apart = "generationConfig", .why = EMPTY_CONFIG },
	{ "gemini-tools.2", { REQUEST("both cities please"), CALLS, FINE }, .tool = WEATHER, .apart = "generationConfig", .why = EMPTY_CONFIG },
	{ "gemini-tools-stream.1", { REQUEST("both cities") }, .tool = WEATHER, .stream = true, .apart = "generationConfig", .why = EMPTY_CONFIG },
	{ "ollama-simple.1", { REQUEST("hello") }, .prompt = "You are terse.", .temperature = 0.2, .max_tokens = 100,
		.options = "{\"options\": {\"num_ctx\": 4096}, \"keep_alive\": \"5m\"}" },
	{ "ollama-stream.1", { REQUEST("hello") }, .stream = true },
	{ "ollama-image.1", { PARTS(HELLO ", " IMAGE("{}")) } },
	{ "ollama-json.1", { REQUEST("hello person") }, .schema = PERSON, .options = "{\"think\": false}" },
	{ "ollama-tools.1", { REQUEST("both cities please") }, .tool = WEATHER },
	{ "ollama-tools.2", { REQUEST("both cities please"), CALLS, FINE }, .tool = WEATHER },
	{ "ollama-tools-stream.1", { REQUEST("both cities") }, .tool = WEATHER, .stream = true },
#define STATELESS "the stream is kept here: nothing is stored there, and reasoning comes encrypted"
#define SHORTHAND "a text alone is the client's shorthand for a user message"
	{ "openai-resp-simple.1", { REQUEST("hello") }, .prompt = "You are terse.", .max_tokens = 100, .apart = "store include input",
		.why = STATELESS "; " SHORTHAND },
	{ "openai-resp-stream.1", { REQUEST("hello") }, .stream = true, .apart = "store include input", .why = STATELESS "; " SHORTHAND },
	{ "openai-resp-image.1", { PARTS(HELLO ", " IMAGE("{\"detail\": \"low\"}")) }, .apart = "store include", .why = STATELESS },
	{ "openai-resp-json.1", { REQUEST("person") }, .schema = PERSON, .apart = "store include input text.format.name",
		.why = STATELESS "; " SHORTHAND "; " CLIENT_CHOSE },
	{ "openai-resp-tools.1", { REQUEST("both cities please") }, .tool = WEATHER, .apart = "tools.*.strict include",
		.why = STRICT "; a model that does not reason refuses it" },
	{ "openai-resp-tools.2", { REQUEST("both cities please"), CALLS, FINE }, .tool = WEATHER,
		.apart = "tools.*.strict include input.*.id input.*.status input.1.type input.1.content.0.annotations",
		.why = STRICT "; " STATELESS "; ids and states of items that were not stored mean nothing" },
	{ "openai-resp-tools-stream.1", { REQUEST("both cities") }, .tool = WEATHER, .stream = true, .apart = "store include input tools.*.strict",
		.why = STATELESS "; " SHORTHAND "; " STRICT },
};

static void
delete_path(struct json_object *v, const char *path)
{
	size_t n = strcspn(path, "."), i;
	char *name = xmemdup0(path, n);
	const char *rest = path[n] == '.' ? path + n + 1 : NULL;

	if (json_object_is_type(v, json_type_array)) {
		for (i = 0; i < json_object_array_length(v); i++)
			if (rest != NULL && (strcmp(name, "*") == 0 || strtoul(name, NULL, 10) == i))
				delete_path(json_object_array_get_idx(v, i), rest);
	} else if (rest == NULL && json_object_is_type(v, json_type_object)) {
		json_object_object_del(v, name);
	} else if (rest != NULL) {
		delete_path(json_get(v, name), rest);
	}
	free(name);
}

static void
delete_paths(struct json_object *v, const char *paths)
{
	char *copy = xstrdup(paths), *at = copy, *path;

	while ((path = strsep(&at, " ")) != NULL)
		delete_path(v, path);
	free(copy);
}

static const char *
provider_of(const char *key)
{
	static const char *const pairs[][2] = { { "openai-chat", "openai" }, { "openai-resp", "openai-responses" }, { "anthropic", "anthropic" },
		{ "gemini", "gemini" }, { "ollama", "ollama" } };
	size_t i;

	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (strncmp(key, pairs[i][0], strlen(pairs[i][0])) == 0)
			return pairs[i][1];
	return "";
}

static void
reference_case(const struct reference *ref, struct json_object *want)
{
	struct llm_config config = { .provider = (char *)provider_of(ref->key), .model = (char *)json_get_text(want, "model", NULL),
		.temperature = ref->temperature > 0 ? ref->temperature : -1, .max_tokens = ref->max_tokens, .cache = ref->cache,
		.api_version = (char *)ref->version, .options = ref->options ? parsed(ref->options) : NULL };
	struct llm_tool t = { "get_weather", "Get weather", ref->tool ? parsed(ref->tool) : NULL };
	struct asked h = { .prompts_n = 0 };
	struct llm_request r = { .config = &config, .prompts = h.prompts, .tools = &t, .tools_n = ref->tool != NULL,
		.schema = ref->schema ? parsed(ref->schema) : NULL, .stream = ref->stream };
	struct json_object *body;
	struct buf out = BUF_INIT;
	struct err e = ERR_INIT;
	size_t i;

	if (config.model == NULL)	/* gemini has it in the path */
		config.model = (char *)"gemini-2.5-flash";
	for (i = 0; i < 4 && ref->lines[i] != NULL; i++)
		asked_line(&h, ref->lines[i], strlen(ref->lines[i]));
	if (ref->prompt != NULL) {
		h.prompts[0] = (struct text){ ref->prompt, strlen(ref->prompt) };
		r.prompts_n = 1;
	}
	r.events = h.events.items;
	r.events_n = h.events.n;
	if (!ok(llm_body(&r, &out, &e) == 0, "%s: a body", ref->key)) {
		printf("# %s\n", e.msg);
	} else {
		body = parsed(out.data);
		if (ref->apart != NULL) {
			printf("# %s: apart from %s: %s\n", ref->key, ref->apart, ref->why);
			delete_paths(body, ref->apart);
			delete_paths(want, ref->apart);
		}
		same(body, want, ref->key);
		json_object_put(body);
	}
	json_object_put(config.options);
	json_object_put(t.parameters);
	json_object_put(r.schema);
	buf_release(&out);
	event_list_release(&h.events);
}

static void
as_clients(void)
{
	struct json_object *golden = golden_json("requests.json");
	size_t i;

	for (i = 0; i < sizeof(references) / sizeof(references[0]); i++)
		if (there(provider_of(references[i].key)))
			reference_case(&references[i], json_get(json_get(golden, references[i].key), "body"));
	json_object_put(golden);
}

int
main(void)
{
	as_ag2();
	tools_as_ag2();
	as_clients();
	return done();
}

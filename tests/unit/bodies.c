/* What is made of a history before it is sent, for every provider; and how a model is named. */
#include "tap.h"
#include "request.h"

#include "base/alloc.h"

#include <stdlib.h>

#define REQUEST(text) "{\"type\": \"ModelRequest\", \"data\": {\"parts\": [{\"__event__\": \"TextInput\", \"content\": \"" text "\"}]}}"
#define CALLS(message, calls) "{\"type\": \"ModelResponse\", \"data\": {\"message\": " message ", \"tool_calls\": {\"calls\": [" calls "]}}}"
#define CALL(id, arguments) "{\"__event__\": \"ToolCallEvent\", \"id\": \"" id "\", \"name\": \"f\", \"arguments\": \"" arguments "\"}"
#define MESSAGE(text) "{\"__event__\": \"ModelMessage\", \"content\": \"" text "\"}"
#define PARTS(parts) "\"result\": {\"__dataclass__\": \"ToolResult\", \"data\": {\"parts\": [" parts "]}}"
#define TEXT(text) "{\"__event__\": \"TextInput\", \"content\": \"" text "\"}"

/* Which member of a body has the messages. */
static const char *
member_of(const char *provider)
{
	return strcmp(provider, "openai-responses") == 0 ? "input" : strcmp(provider, "gemini") == 0 ? "contents" : "messages";
}

/* The messages of a body made from these lines; want NULL: the provider does not take them. */
static void
sent(const struct llm_config *config, bool ag2, const char *const *lines, const char *want, const char *what)
{
	struct asked h = { .prompts_n = 0 };
	struct json_object *wanted = want != NULL ? parsed(want) : NULL, *body;
	struct buf out = BUF_INIT;
	struct llm_request r;
	struct err e = ERR_INIT;
	int rc;

	for (; *lines != NULL; lines++)
		asked_line(&h, *lines, strlen(*lines));
	r = asked_request(&h, config);
	r.as_ag2 = ag2;
	rc = llm_body(&r, &out, &e);
	if (want == NULL) {
		ok(rc < 0 && e.code == ERR_DATA && strstr(e.msg, config->provider) != NULL, "%s: %s: %s", config->provider, what, e.msg);
	} else if (ok(rc == 0, "%s: %s: a body %s", config->provider, what, e.msg)) {
		body = parsed(out.data);
		same(json_get(body, member_of(config->provider)), wanted, what);
		json_object_put(body);
	}
	json_object_put(wanted);
	buf_release(&out);
	event_list_release(&h.events);
}

static void
sent_to(const char *provider, bool ag2, const char *const *lines, const char *want, const char *what)
{
	const struct llm_config config = { .provider = (char *)provider, .model = (char *)"m", .temperature = -1 };

	sent(&config, ag2, lines, want, what);
}
#define LINES(...) (const char *const[]){ __VA_ARGS__, NULL }
#define MESSAGES(want, what, ...) sent_to("openai", false, LINES(__VA_ARGS__), want, what)
#define AG2_MESSAGES(want, what, ...) sent_to("openai", true, LINES(__VA_ARGS__), want, what)

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

/* ---- every provider ---- */

#define ASK(parts) "{\"type\": \"ModelRequest\", \"data\": {\"parts\": [" parts "]}}"
#define BYTES(kind, media, vendor) "{\"__event__\": \"BinaryInput\", \"kind\": {\"value\": \"" kind "\"}, \"media_type\": \"" media "\", \"vendor_metadata\": {" vendor "}, " \
	"\"data\": {\"__bytes__\": \"+/+/\"}}"
#define PNG(vendor) BYTES("image", "image/png", vendor)
#define RESULTS(results) "{\"type\": \"ToolResultsEvent\", \"data\": {\"results\": [" results "]}}"
#define ANSWERS(class, id, parts) "{\"__event__\": \"" class "\", \"parent_id\": \"" id "\", \"name\": \"f\", " PARTS(parts) "}"
#define RESULT(id, text) ANSWERS("ToolResultEvent", id, TEXT(text))

static void
blank_texts(void)
{
	const char *const *lines = LINES(ASK(TEXT("") ", " PNG("") ", " TEXT(" \\n")), CALLS(MESSAGE(" \\n"), CALL("c", "{}")),
	    RESULTS(ANSWERS("ToolResultEvent", "c", TEXT(" ") ", " TEXT(""))), CALLS(MESSAGE("\\t"), ""));

	sent_to("openai", false, lines, "[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,+/+/\"}}]},"
	    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},"
	    "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"(no output)\"}]", "texts of blanks are left out");
	sent_to("openai-responses", false, lines, "[{\"role\":\"user\",\"content\":[{\"type\":\"input_image\",\"image_url\":\"data:image/png;base64,+/+/\"}]},"
	    "{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":\"{}\"},{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"(no output)\"}]",
	    "texts of blanks are left out");
	sent_to("anthropic", false, lines, "[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"+/+/\"}}]},"
	    "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{}}]},"
	    "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"content\":\"(no output)\"}]}]", "texts of blanks are left out");
	sent_to("gemini", false, lines, "[{\"parts\":[{\"inlineData\":{\"mimeType\":\"image/png\",\"data\":\"+/+/\"}}],\"role\":\"user\"},"
	    "{\"parts\":[{\"functionCall\":{\"args\":{},\"id\":\"c\",\"name\":\"f\"}}],\"role\":\"model\"},"
	    "{\"parts\":[{\"functionResponse\":{\"id\":\"c\",\"name\":\"f\",\"response\":{\"result\":\"(no output)\"}}}],\"role\":\"user\"}]", "texts of blanks are left out");
	sent_to("ollama", false, lines, "[{\"role\":\"user\",\"content\":\"\",\"images\":[\"+/+/\"]},"
	    "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{}}}]},{\"role\":\"tool\",\"tool_name\":\"f\",\"content\":\"(no output)\"}]",
	    "texts of blanks are left out");
}

/* The kind of a file is what AG2 calls it; here plain binary is what its media type says. */
static void
kinds(void)
{
	const char *const *kept = LINES(ASK("{\"__event__\": \"FileIdInput\", \"filename\": \"a.PNG\", \"file_id\": \"f1\"}"));
	const char *const *png = LINES(ASK(BYTES("binary", "image/png", ""))), *const *bytes = LINES(ASK(BYTES("binary", "application/octet-stream", ""))),
	    *const *word = LINES(ASK(BYTES("binary", "application/msword", "\"filename\": \"a.doc\""))),
	    *const *wav = LINES(ASK(BYTES("audio", "audio/x-wav", "")));

	sent_to("anthropic", false, png, "[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"+/+/\"}}]}]",
	    "plain binary that is an image");
	sent_to("anthropic", true, png, NULL, "not in AG2");
	sent_to("openai", true, png, NULL, "not in AG2");
	sent_to("ollama", true, png, NULL, "not in AG2");
	sent_to("openai-responses", true, png, "[{\"role\":\"user\",\"content\":[{\"type\":\"input_file\",\"file_data\":\"data:image/png;base64,+/+/\",\"filename\":\"file.png\"}]}]",
	    "in AG2 it is a file");
	sent_to("openai-responses", false, word, "[{\"role\":\"user\",\"content\":[{\"type\":\"input_file\",\"file_data\":\"data:application/msword;base64,+/+/\",\"filename\":\"a.doc\"}]}]",
	    "a file of a kind that is told");
	sent_to("openai-responses", false, bytes, NULL, "bytes of no kind");
	sent_to("openai-responses", false, kept, "[{\"role\":\"user\",\"content\":[{\"type\":\"input_image\",\"file_id\":\"f1\"}]}]", "an image that is kept there");
	sent_to("openai-responses", true, kept, "[{\"role\":\"user\",\"content\":[{\"type\":\"input_file\",\"file_id\":\"f1\"}]}]", "in AG2 it is a file");
	sent_to("openai", false, wav, "[{\"role\":\"user\",\"content\":[{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"+/+/\",\"format\":\"wav\"}}]}]", "sound has the API's names");
	sent_to("openai", true, wav, "[{\"role\":\"user\",\"content\":[{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"+/+/\",\"format\":\"x-wav\"}}]}]", "in AG2 but for mp3 its own");
}

/* What is asked for with a file, in its vendor_metadata. */
static void
wishes(void)
{
	const struct llm_config cached = { .provider = (char *)"anthropic", .model = (char *)"m", .temperature = -1, .cache = true };
	const char *const *pdf = LINES(ASK(TEXT("q") ", " BYTES("document", "application/pdf", "\"citations\": {\"enabled\": true}, \"cache_control\": {\"type\": \"ephemeral\", \"ttl\": \"1h\"}")));
	const char *const *video = LINES(ASK(BYTES("video", "video/mp4", "\"media_resolution\": \"MEDIA_RESOLUTION_LOW\", \"video_metadata\": {\"start_offset\": \"1s\", \"fps\": 2}, \"display_name\": \"d\"")));
#define PDF "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"q\"},{\"type\":\"document\",\"source\":{\"type\":\"base64\",\"media_type\":\"application/pdf\",\"data\":\"+/+/\"}," \
	"\"cache_control\":{\"type\":\"ephemeral\",\"ttl\":\"1h\"},\"citations\":{\"enabled\":true}}]}]"

	sent_to("anthropic", false, pdf, PDF, "citations, and a mark of its own");
	sent(&cached, false, pdf, PDF, "which is kept where the cache is marked");
	sent_to("gemini", false, video, "[{\"parts\":[{\"inlineData\":{\"mimeType\":\"video/mp4\",\"data\":\"+/+/\"},\"mediaResolution\":{\"level\":\"MEDIA_RESOLUTION_LOW\"},"
	    "\"videoMetadata\":{\"startOffset\":\"1s\",\"fps\":2}}],\"role\":\"user\"}]", "a part of a video");
	sent_to("gemini", true, video, "[{\"parts\":[{\"inlineData\":{\"mimeType\":\"video/mp4\",\"data\":\"-_-_\",\"displayName\":\"d\"},\"mediaResolution\":{\"level\":\"MEDIA_RESOLUTION_LOW\"},"
	    "\"videoMetadata\":{\"startOffset\":\"1s\",\"fps\":2}}],\"role\":\"user\"}]", "in AG2 with its name");
}

static void
rounds(void)
{
	const char *const *turned = LINES(REQUEST("q"), CALLS("null", CALL("a", "{}") ", " CALL("b", "[1]") ", " CALL("c", "{\\\"x\\\"")),
	    RESULTS(RESULT("c", "third") ", " RESULT("a", "first") ", " ANSWERS("ToolErrorEvent", "b", TEXT("second"))));
	const struct llm_config cached = { .provider = (char *)"anthropic", .model = (char *)"m", .temperature = -1, .cache = true };
	const char *const *apart = LINES(CALLS("null", CALL("a", "{}") ", " CALL("b", "{}")), RESULTS(RESULT("a", "1")), RESULTS(RESULT("b", "2")));
	const char *const *orphan = LINES(REQUEST("q"), RESULTS(RESULT("gone", "1"))), *const *empty = LINES(CALLS("null", CALL("c", "")), RESULTS(RESULT("c", "1")));
#define L_CALLS(c) "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{}}}," \
	"{\"function\":{\"name\":\"f\",\"arguments\":{\"value\":[1]}}},{\"function\":{\"name\":\"f\",\"arguments\":{\"value\":\"" c "\"}}}]},"

	sent_to("ollama", false, turned, L_CALLS("{\\\"x\\\"") "{\"role\":\"tool\",\"tool_name\":\"f\",\"content\":\"first\"},{\"role\":\"tool\",\"tool_name\":\"f\",\"content\":\"second\"},"
	    "{\"role\":\"tool\",\"tool_name\":\"f\",\"content\":\"third\"}]", "results without ids are in the order of the calls; arguments are always an object");
	sent_to("anthropic", false, turned, "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}},"
	    "{\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"f\",\"input\":{\"value\":[1]}},{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{\"value\":\"{\\\"x\\\"\"}}]},"
	    "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"content\":\"third\"},{\"type\":\"tool_result\",\"tool_use_id\":\"a\",\"content\":\"first\"},"
	    "{\"type\":\"tool_result\",\"tool_use_id\":\"b\",\"content\":\"second\",\"is_error\":true}]}]", "an error is one by its class, too");
	sent_to("gemini", false, apart, "[{\"parts\":[{\"functionCall\":{\"args\":{},\"id\":\"a\",\"name\":\"f\"}},{\"functionCall\":{\"args\":{},\"id\":\"b\",\"name\":\"f\"}}],\"role\":\"model\"},"
	    "{\"parts\":[{\"functionResponse\":{\"id\":\"a\",\"name\":\"f\",\"response\":{\"result\":\"1\"}}},{\"functionResponse\":{\"id\":\"b\",\"name\":\"f\",\"response\":"
	    "{\"result\":\"2\"}}}],\"role\":\"user\"}]", "results of a round stand together");
	sent(&cached, false, apart, "[{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}},{\"type\":\"tool_use\",\"id\":\"b\","
	    "\"name\":\"f\",\"input\":{}}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"a\",\"content\":\"1\"},"
	    "{\"type\":\"tool_result\",\"tool_use_id\":\"b\",\"content\":\"2\",\"cache_control\":{\"type\":\"ephemeral\"}}]}]", "for anthropic, too, with one mark");
	sent_to("anthropic", true, orphan, "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"gone\",\"content\":\"1\"}]}]",
	    "AG2 keeps results where there is no call at all");
	sent_to("anthropic", false, orphan, "[{\"role\":\"user\",\"content\":\"q\"}]", "we do not");
	sent_to("openai-responses", true, empty, "[{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":\"\"},{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"1\"}]",
	    "AG2 leaves arguments untouched there");
	sent_to("openai-responses", false, empty, "[{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":\"{}\"},{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"1\"}]",
	    "we send an object");
}

/* What ran on the provider's side is part of the answer behind it; AG2 has it in the one before it, or alone. */
static void
server_tools(void)
{
#define A_CALL "{\"type\": \"AnthropicServerToolCallEvent\", \"data\": {\"id\": \"s\", \"name\": \"web_search\", \"arguments\": \"{}\", \"block\": {\"__pydantic__\": \"x\", " \
	"\"data\": {\"type\": \"server_tool_use\", \"id\": \"s\", \"name\": \"web_search\", \"input\": {}, \"caller\": null}}}}"
#define A_FOUND "{\"type\": \"AnthropicServerToolResultEvent\", \"data\": {\"parent_id\": \"s\", \"name\": \"web_search\", \"result\": {}, \"block\": {\"__pydantic__\": \"x\", " \
	"\"data\": {\"type\": \"web_search_tool_result\", \"tool_use_id\": \"s\", \"content\": []}}}}"
#define A_BLOCKS "{\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"web_search\",\"input\":{}},{\"type\":\"web_search_tool_result\",\"tool_use_id\":\"s\",\"content\":[]}"
#define G_CALL "{\"type\": \"GeminiServerToolCallEvent\", \"data\": {\"id\": \"s\", \"name\": \"code_execution\", \"arguments\": \"{}\", \"part\": {\"__pydantic__\": \"x\", " \
	"\"data\": {\"executable_code\": {\"code\": \"1\", \"language\": \"PYTHON\"}, \"text\": null}}}}"
#define G_RAN "{\"type\": \"GeminiServerToolResultEvent\", \"data\": {\"parent_id\": \"s\", \"name\": \"code_execution\", \"result\": {}, \"part\": {\"__pydantic__\": \"x\", " \
	"\"data\": {\"code_execution_result\": {\"outcome\": \"OUTCOME_OK\", \"output\": \"1\"}}}}}"
#define G_PARTS "{\"executableCode\":{\"code\":\"1\",\"language\":\"PYTHON\"}},{\"codeExecutionResult\":{\"outcome\":\"OUTCOME_OK\",\"output\":\"1\"}}"
	const char *const *a = LINES(REQUEST("q"), A_CALL, A_FOUND, CALLS(MESSAGE("found"), "")), *const *g = LINES(REQUEST("q"), G_CALL, G_RAN, CALLS(MESSAGE("one"), ""));
#define THOUGHTS "{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"c2ln\"},{\"type\":\"redacted_thinking\",\"data\":\"x\"}"
	const char *const *thought = LINES(REQUEST("q"), CALLS(MESSAGE("So."), "{\"__event__\": \"ToolCallEvent\", \"id\": \"c\", \"name\": \"f\", \"arguments\": \"{}\", "
	    "\"vendor_metadata\": {\"caller\": {\"type\": \"direct\"}, \"thinking\": [" THOUGHTS "]}}"), RESULTS(RESULT("c", "1")));
	const char *const *cut = LINES(REQUEST("q"), A_CALL, A_FOUND, REQUEST("r"), CALLS(MESSAGE("later"), ""));

	sent_to("anthropic", false, a, "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":[" A_BLOCKS ",{\"type\":\"text\",\"text\":\"found\"}]}]", "in the answer");
	sent_to("anthropic", true, a, "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":[" A_BLOCKS "]},{\"role\":\"assistant\",\"content\":["
	    "{\"type\":\"text\",\"text\":\"found\"}]}]", "before it in AG2");
	sent_to("anthropic", false, cut, "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"user\",\"content\":\"r\"},{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"later\"}]}]",
	    "never in the answer to another question");
	sent_to("anthropic", false, thought, "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":[" THOUGHTS ",{\"type\":\"text\",\"text\":\"So.\"},"
	    "{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{},\"caller\":{\"type\":\"direct\"}}]},{\"role\":\"user\",\"content\":["
	    "{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"content\":\"1\"}]}]", "thoughts go back before the calls that came of them");
	sent_to("anthropic", true, thought, "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"So.\"},"
	    "{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{},\"caller\":{\"type\":\"direct\"}}]},{\"role\":\"user\",\"content\":["
	    "{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"content\":\"1\"}]}]", "AG2 does not keep them");
	sent_to("gemini", false, g, "[{\"parts\":[{\"text\":\"q\"}],\"role\":\"user\"},{\"parts\":[" G_PARTS ",{\"text\":\"one\"}],\"role\":\"model\"}]", "in the answer");
	sent_to("gemini", true, g, "[{\"parts\":[{\"text\":\"q\"}],\"role\":\"user\"},{\"parts\":[" G_PARTS "],\"role\":\"model\"},{\"parts\":[{\"text\":\"one\"}],\"role\":\"model\"}]",
	    "before it in AG2");
	sent_to("openai", false, g, "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":\"one\"}]", "another provider's are not sent");
}

/* Every API insists on the schema of an object. */
static void
declarations(void)
{
	static const char *const schemas[][2] = { { "{}", "{\"type\":\"object\",\"properties\":{}}" }, { "{\"type\":\"null\"}", "{\"type\":\"object\",\"properties\":{}}" },
		{ "{\"type\":\"object\"}", "{\"type\":\"object\",\"properties\":{}}" },
		{ "{\"properties\":{\"a\":{}},\"additionalProperties\":true}", "{\"type\":\"object\",\"properties\":{\"a\":{}},\"additionalProperties\":true}" } };
	static const struct llm_config config = { .provider = (char *)"anthropic", .model = (char *)"m", .temperature = -1 };
	struct llm_request r = { .config = &config, .tools_n = 1 };
	struct json_object *body, *want;
	struct llm_tool tool;
	struct buf out = BUF_INIT;
	size_t i;

	for (i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++) {
		buf_reset(&out);
		tool = (struct llm_tool){ "f", "d", parsed(schemas[i][0]) };
		r.tools = &tool;
		llm_body(&r, &out, NULL);
		body = parsed(out.data);
		want = parsed(schemas[i][1]);
		same(json_get(json_object_array_get_idx(json_get(body, "tools"), 0), "input_schema"), want, schemas[i][0]);
		json_object_put(body);
		json_object_put(want);
		json_object_put(tool.parameters);
	}
	buf_release(&out);
}

/* The schema of the answer as a provider is told: at this path of the body. */
static void
shaped(const char *provider, const char *schema, const char *path, const char *want, const char *what)
{
	const struct llm_config config = { .provider = (char *)provider, .model = (char *)"m", .temperature = -1 };
	struct llm_request r = { .config = &config, .schema = parsed(schema) };
	struct json_object *body, *at, *wanted = parsed(want);
	char *copy = xstrdup(path), *rest = copy, *name;
	struct buf out = BUF_INIT;

	llm_body(&r, &out, NULL);
	at = body = parsed(out.data);
	while ((name = strsep(&rest, ".")) != NULL)
		at = json_get(at, name);
	same(at, wanted, what);
	json_object_put(body);
	json_object_put(wanted);
	json_object_put(r.schema);
	buf_release(&out);
	free(copy);
}

static void
schemas(void)
{
#define OPEN "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\",\"properties\":{\"minimum\":{\"type\":\"integer\",\"minimum\":1.50}," \
	"\"list\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/o\"}}},\"required\":[\"minimum\",\"list\"],\"$defs\":{\"o\":{\"type\":\"object\",\"properties\":{}}}}"
#define CLOSED(min) "{\"type\":\"object\",\"properties\":{\"minimum\":{\"type\":\"integer\"" min "},\"list\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/o\"}}}," \
	"\"required\":[\"minimum\",\"list\"],\"$defs\":{\"o\":{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}},\"additionalProperties\":false}"
#define OPTIONAL "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}"
	shaped("openai", OPEN, "response_format.json_schema.schema", CLOSED(",\"minimum\":1.50"), "openai: objects are closed");
	shaped("openai", OPEN, "response_format.json_schema.strict", "true", "and the model is held to it");
	shaped("openai-responses", OPEN, "text.format.schema", CLOSED(",\"minimum\":1.50"), "openai-responses: the same");
	shaped("openai-responses", OPEN, "text.format.strict", "true", "and as strict");
	shaped("openai", OPTIONAL, "response_format.json_schema.strict", "false", "a member that may be missing is not strict");
	shaped("openai", OPTIONAL, "response_format.json_schema.schema", OPTIONAL, "and the schema is sent as it is");
	shaped("openai", "{\"type\":\"object\",\"properties\":{\"a\":{\"oneOf\":[{\"const\":1}]}},\"required\":[\"a\"]}", "response_format.json_schema.strict", "false",
	    "nor is a keyword that the API does not know");
	shaped("openai", "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}", "response_format.json_schema.strict", "false", "nor any names of members");
	shaped("openai", "{\"anyOf\":[{\"type\":\"string\"}]}", "response_format.json_schema.strict", "false", "nor what is no object");
	shaped("anthropic", OPEN, "output_config.format.schema", CLOSED(""), "anthropic: closed, without limits");
	shaped("gemini", OPTIONAL, "generationConfig.responseJsonSchema", OPTIONAL, "gemini: as it is");
	shaped("ollama", OPTIONAL, "format", OPTIONAL, "ollama: as it is");
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
	by_default();
	numbers();
	blank_texts();
	kinds();
	wishes();
	rounds();
	server_tools();
	declarations();
	schemas();
	return done();
}

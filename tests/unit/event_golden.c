/* The codec over every record that AG2 writes: scanned, parsed, written again, and made anew by build.h. */
#include "tap.h"
#include "golden.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "event/build.h"

static struct json_object *cases[400];
static size_t cases_n;

static void
load_case(const char *line, size_t len)
{
	struct err e = ERR_INIT;

	if (cases_n == sizeof(cases) / sizeof(cases[0]) || json_parse(&cases[cases_n++], line, len, &e) < 0)
		bail("serialization.jsonl: %s", e.msg);
}

static const char *
line_of(const char *name)
{
	size_t i;

	for (i = 0; i < cases_n; i++)
		if (strcmp(json_get_text(cases[i], "name", NULL), name) == 0)
			return json_get_text(cases[i], "line", NULL);
	bail("no case %s", name);
}

/* Whether AG2's sample of a log holds this line. */
static bool
in_sample(const char *line)
{
	struct buf log = BUF_INIT;
	bool found;

	golden_text(&log, "log_sample.jsonl");
	found = strstr(log.data, line) != NULL;
	buf_release(&log);
	return found;
}

/* A line of the sample of a log. */
static void
rewrite_line(const char *line, size_t len)
{
	struct buf out = BUF_INIT;
	struct event ev;
	struct err e = ERR_INIT;

	if (event_view(&ev, line, len, &e) < 0 || event_data(&ev, &e) == NULL)
		bail("log_sample.jsonl: %s", e.msg);
	json_write(&out, ev.parsed, JSON_PYTHON);
	is_bytes(out.data, out.len, line, len, "sample: %s is written as it was", ev.type->last);
	buf_release(&out);
	event_release(&ev);
}

static void
rewrite_case(struct json_object *c)
{
	const char *name = json_get_text(c, "name", NULL), *line = json_get_text(c, "line", NULL);
	struct buf out = BUF_INIT;
	struct event ev = { 0 };
	struct err e = ERR_INIT;
	struct json_object *copy;

	if (!ok(event_view(&ev, line, strlen(line), &e) == 0, "%s is an event", name))
		printf("# %s\n", e.msg);
	is_str(ev.type->last, json_get_text(c, "event", NULL), "%s has its type", name);
	is_int((ev.type->flags & EV_TRANSIENT) != 0, json_object_get_boolean(json_get(c, "transient")), "%s: transient", name);
	is_int((ev.type->flags & EV_CONVERSATIONAL) != 0, json_object_get_boolean(json_get(c, "conversational")),
	    "%s: conversational", name);
	ok(event_data(&ev, &e) != NULL && json_get(event_data(&ev, &e), "created_at") != NULL, "%s has its data", name);
	json_write(&out, ev.parsed, JSON_PYTHON);
	is_str(out.data, line, "%s is written as it was", name);

	buf_reset(&out);
	json_write(&out, ev.parsed, JSON_COMPACT);
	ok(json_parse(&copy, out.data, out.len, &e) == 0, "%s: compact JSON is JSON", name);
	buf_reset(&out);
	json_write(&out, copy, JSON_PRETTY);
	json_object_put(copy);
	ok(json_parse(&copy, out.data, out.len, &e) == 0, "%s: pretty JSON is JSON", name);
	buf_reset(&out);
	json_write(&out, copy, JSON_PYTHON);
	is_str(out.data, line, "%s survives compact and pretty", name);
	json_object_put(copy);
	buf_release(&out);
	event_release(&ev);
}

#define CALL(id, name, arguments) { (char *)(id), (char *)(name), (char *)(arguments) }

static struct text
text(const char *s)
{
	return (struct text){ s, strlen(s) };
}

static void
at(const char *clock)
{
	struct err e = ERR_INIT;

	if (clock_set(clock, &e) < 0)
		bail("%s", e.msg);
}

static void
built(struct buf *out, const char *want, const char *what)
{
	struct event ev;

	is_str(out->data, want, "%s", what);
	ok(event_view(&ev, out->data, out->len, NULL) == 0, "%s is an event", what);
	buf_reset(out);
}

static void
test_requests(struct buf *out)
{
	struct text one = text("Hello"), odd = text("h\303\251llo \344\275\240\345\245\275 \360\237\230\200 \"q\" \\ / \t\n\177\001 \342\200\250");
	struct text two[2] = { text("one"), text("two") };

	at("1780000000.5+1");
	build_request(out, &one, 1);
	built(out, line_of("request_text"), "request of one text");
	at("1780000005.5+1");
	build_request(out, &odd, 1);
	built(out, line_of("request_unicode"), "request with everything that is escaped");
	at("1780000007.5+1");
	build_request(out, two, 2);
	ok(in_sample(out->data), "request of two texts");
	buf_reset(out);
	at("1780000004.5+1");
	build_request(out, NULL, 0);
	built(out, line_of("request_no_parts"), "request without parts");
	build_prompt(out, text("a\n\303\251"), "working_memory", false);
	built(out, "{\"type\": \"Prompt\", \"data\": {\"content\": \"a\\n\\u00e9\", \"source\": \"working_memory\"}}", "prompt");
	build_prompt(out, text(""), NULL, false);
	built(out, "{\"type\": \"Prompt\", \"data\": {\"content\": \"\"}}", "prompt without a source");
}

static void
add_media(struct buf *out, const char *now, const char *kind, const char *media_type, const char *filename, const char *data, size_t len)
{
	struct media m = { media_type, kind, filename, { data, len } };

	at(now);
	build_media_request(out, NULL, 0, &m, 1);
}

static void
test_media(struct buf *out)
{
	add_media(out, "1780000048.5+1", "image", "image/png", NULL, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
	built(out, line_of("request_image_data"), "request with an image");
	add_media(out, "1780000050.5+1", "document", "application/pdf", NULL, "%PDF-1.4", 8);
	built(out, line_of("request_doc_data"), "request with a document");
	add_media(out, "1780000054.5+1", "video", "video/mp4", NULL, "\0\0\0\x18" "ftyp", 8);
	built(out, line_of("request_video_data"), "request with a video");
	add_media(out, "1780000056.5+1", "binary", "application/octet-stream", NULL, "\1\2\3", 3);
	built(out, line_of("request_binary_generic"), "request with a file of no known kind");
	add_media(out, "1780000058.5+1", "document", "text/plain", "n\303\266tes.txt", "\1", 1);
	ok(in_sample(out->data), "request with a document that has a name");
	buf_reset(out);
}

#define USAGE_DATA(p, c, t) "{\"__dataclass__\": \"ag2.events.types.Usage\", \"data\": {\"prompt_tokens\": " p ", " \
	"\"completion_tokens\": " c ", \"total_tokens\": " t ", \"cache_read_input_tokens\": null, " \
	"\"cache_creation_input_tokens\": null, \"thinking_tokens\": null}}"

static void
test_responses(struct buf *out)
{
	struct call c5 = CALL("c5", "t", "{}"), c1 = CALL("c1", "add", "{\"a\": 2, \"b\": 3}");
	struct usage u = { 1, 2, 3, -1, -1, -1 }, five = { -1, -1, 5, -1, -1, -1 }, odd = { 1.5, 0, 1e300, -1, -1, -1 };
	struct text full = text("full"), halted = text("HALTED: FATAL: leak");

	at("1780000117.5+1");
	build_response(out, &(struct response){ &full, &c5, 1, &u, "gpt-x", "openai", "tool_calls" });
	built(out, line_of("response_full"), "response with everything");
	at("1780000003.5+1");
	build_response(out, &(struct response){ NULL, &c1, 1, &five, "scripted-1", "scripted", "tool_calls" });
	built(out, "{\"type\": \"ag2.events.types.ModelResponse\", \"data\": {\"created_at\": 1780000005.5, \"response_force\": false, "
	    "\"files\": [], \"tool_calls\": {\"__event__\": \"ag2.events.tool_events.ToolCallsEvent\", \"created_at\": 1780000004.5, "
	    "\"calls\": [{\"__event__\": \"ag2.events.tool_events.ToolCallEvent\", \"created_at\": 1780000003.5, "
	    "\"vendor_metadata\": {}, \"id\": \"c1\", \"name\": \"add\", \"arguments\": \"{\\\"a\\\": 2, \\\"b\\\": 3}\"}]}, "
	    "\"usage\": " USAGE_DATA("null", "null", "5") ", \"model\": \"scripted-1\", \"provider\": \"scripted\", "
	    "\"finish_reason\": \"tool_calls\", \"message\": null}}", "response of calls only, as in a turn");
	at("1780000126.5+1");
	build_response(out, &(struct response){ .message = &halted });
	built(out, "{\"type\": \"ag2.events.types.ModelResponse\", \"data\": {\"created_at\": 1780000127.5, \"tool_calls\": "
	    "{\"__event__\": \"ag2.events.tool_events.ToolCallsEvent\", \"created_at\": 1780000128.5, \"calls\": []}, \"usage\": "
	    USAGE_DATA("null", "null", "null") ", \"response_force\": false, \"files\": [], \"model\": null, \"provider\": null, "
	    "\"finish_reason\": null, \"message\": {\"__event__\": \"ag2.events.types.ModelMessage\", "
	    "\"created_at\": 1780000126.5, \"metadata\": {}, \"content\": \"HALTED: FATAL: leak\"}}}", "halted response, as in a turn");
	at("1780000094.5+1");
	build_response(out, &(struct response){ .calls = &(struct call)CALL("c3", "noop", ""), .calls_n = 1 });
	built(out, line_of("response_call_empty_args"), "response of one call without usage");
	at("1780000028.5");
	build_usage(out, &(struct usage){ 10, 2, 12, -1, -1, -1 }, "model_call", "scripted-1", "scripted", "stop");
	built(out, "{\"type\": \"ag2.events.types.UsageEvent\", \"data\": {\"created_at\": 1780000028.5, \"label\": null, \"kind\": "
	    "\"model_call\", \"model\": \"scripted-1\", \"provider\": \"scripted\", \"finish_reason\": \"stop\", \"usage\": "
	    USAGE_DATA("10", "2", "12") "}}", "usage, as in a turn");
	at("1");
	build_usage(out, &odd, "compaction", NULL, NULL, NULL);
	built(out, "{\"type\": \"ag2.events.types.UsageEvent\", \"data\": {\"created_at\": 1.0, \"model\": null, \"provider\": null, "
	    "\"finish_reason\": null, \"label\": null, \"kind\": \"compaction\", \"usage\": " USAGE_DATA("1.5", "0", "1e+300") "}}",
	    "usage with counts that are no integers");
}

static void
test_tools(struct buf *out)
{
	struct call calls[2] = { CALL("c1", "add", "{\"a\":1}"), CALL("c2", "sub", "{}") }, c4 = CALL("c4", "missing_tool", "{}");
	struct json_object *records[2];

	at("1780000124.5+1");
	build_calls(out, calls, 2);
	built(out, line_of("tool_calls"), "calls container");
	at("1780000127.5+1");
	build_calls(out, NULL, 0);
	built(out, line_of("tool_calls_empty"), "empty calls container");
	at("1780000128.5+1");
	build_call(out, &calls[0]);
	built(out, line_of("tool_call"), "call");
	at("1780000134.5+1");
	records[0] = build_result(&calls[0], text("3"));
	build_record(out, records[0]);
	built(out, line_of("tool_result_text"), "result");
	json_object_put(records[0]);
	at("1780000154.5+1");
	records[0] = build_result(&calls[0], text("3"));
	build_results(out, records, 1);
	built(out, line_of("tool_results_one"), "results container");
	at("1780000164.5");
	build_results(out, NULL, 0);
	built(out, line_of("tool_results_empty"), "empty results container");
	at("1780000067.5+1");
	records[1] = build_not_found(&c4);
	build_record(out, records[1]);
	built(out, "{\"type\": \"ag2.events.tool_events.ToolNotFoundEvent\", \"data\": {\"created_at\": 1780000068.5, \"parent_id\": \"c4\", "
	    "\"name\": \"missing_tool\", \"error\": {\"__exception__\": \"ToolNotFoundError\", \"message\": \"Tool `missing_tool` not "
	    "found\"}, \"result\": {\"__dataclass__\": \"ag2.events.tool_events.ToolResult\", \"data\": {\"parts\": [{\"__event__\": "
	    "\"ag2.events.input_events.TextInput\", \"created_at\": 1780000067.5, \"metadata\": {}, \"content\": "
	    "\"ag2.exceptions.ToolNotFoundError: Tool `missing_tool` not found\\n\"}], \"final\": false, \"metadata\": {}}}}}",
	    "result of a tool that is not there, as in a turn");
	json_object_put(records[1]);
	at("5");
	records[1] = build_error_result(&calls[1], "ToolError", text("exit status 2\n\377"));
	build_results(out, records, 2);
	built(out, "{\"type\": \"ag2.events.tool_events.ToolResultsEvent\", \"data\": {\"created_at\": 5.0, \"results\": [{\"__event__\": "
	    "\"ag2.events.tool_events.ToolResultEvent\", \"created_at\": 1780000155.5, \"parent_id\": \"c1\", \"name\": \"add\", \"result\": "
	    "{\"__dataclass__\": \"ag2.events.tool_events.ToolResult\", \"data\": {\"parts\": [{\"__event__\": "
	    "\"ag2.events.input_events.TextInput\", \"created_at\": 1780000154.5, \"metadata\": {}, \"content\": \"3\"}], \"final\": false, "
	    "\"metadata\": {}}}}, {\"__event__\": \"ag2.events.tool_events.ToolErrorEvent\", \"created_at\": 5.0, \"parent_id\": \"c2\", "
	    "\"name\": \"sub\", \"error\": {\"__exception__\": \"ToolError\", \"message\": \"exit status 2\\n\\ufffd\"}, \"result\": "
	    "{\"__dataclass__\": \"ag2.events.tool_events.ToolResult\", \"data\": {\"parts\": [{\"__event__\": "
	    "\"ag2.events.input_events.TextInput\", \"created_at\": 5.0, \"metadata\": {}, \"content\": \"ToolError: exit status 2\\n\\ufffd\\n\"}], "
	    "\"final\": false, \"metadata\": {}}}}]}}", "results container with an error whose text is not UTF-8");
	json_object_put(records[0]);
	json_object_put(records[1]);
}

static void
test_alerts(struct buf *out)
{
	static const char leak[] = "{\"type\": \"ag2.events.alert.ObserverAlert\", \"data\": {\"created_at\": 1780000121.5, \"data\": {}, "
	    "\"source\": \"monitor\", \"severity\": {\"__enum__\": \"ag2.events.alert.Severity\", \"value\": \"fatal\"}, \"message\": \"leak\"}}";
	struct event *ev;
	struct err e = ERR_INIT;

	at("1780000121.5");
	build_alert(out, "fatal", "monitor", text("leak"));
	built(out, leak, "alert, as in a turn");
	build_alert(out, "odd", "s", text("m"));
	built(out, "{\"type\": \"ag2.events.alert.ObserverAlert\", \"data\": {\"created_at\": 1780000121.5, \"data\": {}, \"source\": \"s\", "
	    "\"severity\": \"odd\", \"message\": \"m\"}}", "alert of a severity that AG2 does not know");

	ev = event_own(xmemdup0(leak, strlen(leak)), strlen(leak));
	at("1780000125.5");
	ok(build_halt(out, text("FATAL: leak"), text("monitor"), &ev, 1, &e) == 0, "halt is built");
	built(out, "{\"type\": \"ag2.events.alert.HaltEvent\", \"data\": {\"created_at\": 1780000125.5, \"reason\": \"FATAL: leak\", "
	    "\"source\": \"monitor\", \"alerts\": [{\"__event__\": \"ag2.events.alert.ObserverAlert\", \"created_at\": 1780000121.5, "
	    "\"data\": {}, \"source\": \"monitor\", \"severity\": {\"__enum__\": \"ag2.events.alert.Severity\", \"value\": \"fatal\"}, "
	    "\"message\": \"leak\"}]}}", "halt, as in a turn");
	event_free(ev);

	ev = event_own(xmemdup0(line_of("alert_fatal"), strlen(line_of("alert_fatal"))), strlen(line_of("alert_fatal")));
	ok(build_halt(out, text("FATAL: fatal msg"), text("mon"), &ev, 1, &e) == 0, "halt of a foreign alert is built");
	ok(strstr(out->data, "\"alerts\": [{\"__event__\": \"ag2.events.alert.ObserverAlert\", \"created_at\": 1780000188.5, \"source\": "
	    "\"mon\", \"severity\": {\"__enum__\": \"ag2.events.alert.Severity\", \"value\": \"fatal\"}, \"message\": \"fatal msg\", "
	    "\"data\": {\"n\": 1}}]") != NULL, "the alert in it keeps its fields and their order");
	buf_reset(out);
	event_free(ev);

	at("1780000194.5");
	build_summary(out, text("We said \303\251"), 7);
	ok(in_sample(out->data), "summary");
}

static char ids[200];

static void
note_id(void *arg, const char *id, size_t len)
{
	(void)arg;
	snprintf(ids + strlen(ids), sizeof(ids) - strlen(ids), "%.*s ", (int)len, id);
}

static void
ids_are(const char *line, const char *want, const char *what)
{
	struct event ev;
	struct err e = ERR_INIT;

	ids[0] = '\0';
	if (event_view(&ev, line, strlen(line), &e) < 0)
		bail("%s: %s", what, e.msg);
	is_int(event_ids(&ev, note_id, NULL, &e), 0, "%s: ids are read", what);
	is_str(ids, want, "%s: ids", what);
	event_release(&ev);
}

static void
test_ids(void)
{
	struct event ev;
	struct err e = ERR_INIT;
	static const char broken[] = "{\"type\": \"ToolCallEvent\", \"data\": {\"id\": 01}}";

	ids_are(line_of("response_full"), "c5 ", "response");
	ids_are(line_of("response_none"), "", "response without calls");
	ids_are(line_of("tool_calls"), "c1 c2 ", "calls container");
	ids_are(line_of("tool_call"), "c1 ", "call");
	ids_are("{\"type\": \"BuiltinToolCallEvent\", \"data\": {\"id\": \"ws1\"}}", "ws1 ", "builtin call");
	ids_are(line_of("tool_results_one"), "c1 ", "results container");
	ids_are(line_of("tool_result_text"), "c1 ", "result");
	ids_are(line_of("tool_error"), "c1 ", "error");
	ids_are(line_of("request_text"), "", "request");
	ids_are("{\"type\": \"ToolResultsEvent\", \"data\": {\"results\": [{\"parent_id\": \"\"}, {\"parent_id\": 5}, 7, {\"parent_id\": \"x\"}]}}",
	    "x ", "results that are odd");
	ids_are("{\"type\": \"ModelResponse\", \"data\": {\"tool_calls\": [1]}}", "", "response whose calls are no container");
	ids_are("{\"type\": \"ModelResponse\", \"data\": [1]}", "", "response whose data is a list");
	ids_are("{\"type\": \"ModelResponse\"}", "", "response without data");
	event_view(&ev, broken, strlen(broken), &e);
	ok(event_ids(&ev, note_id, NULL, &e) == -1 && e.code == ERR_DATA, "content that is no JSON is an error");
	is_str(e.msg, "byte 43: a number must not begin with 0", "it says where");
	event_release(&ev);
}

static void
test_copies(void)
{
	char line[] = "{\"type\": \"ag2.events.types.HumanMessage\", \"data\": {\"content\": \"c\"}}";
	struct event ev, *copy;
	struct event_list list = { 0 };
	int i;

	event_view(&ev, line, strlen(line), NULL);
	ev.number = 7;
	copy = event_dup(&ev);
	memset(line, 'x', strlen(line));
	ok(strstr(copy->line, "HumanMessage") != NULL && copy->number == 7 && copy->len == ev.len, "a copy owns its line");
	event_list_add(&list, copy);
	for (i = 0; i < 100; i++)
		event_list_add(&list, event_own(xmemdup0("{}", 2), 2));
	is_int((long long)list.n, 101, "a list grows");
	is_int(list.items[100]->type->flags & EV_UNKNOWN, EV_UNKNOWN, "a record without a type is of unknown type");
	event_list_release(&list);
	event_free(NULL);
}

int
main(void)
{
	struct buf out = BUF_INIT;
	size_t i;

	golden_lines("serialization.jsonl", load_case);
	for (i = 0; i < cases_n; i++)
		rewrite_case(cases[i]);
	golden_lines("log_sample.jsonl", rewrite_line);
	test_requests(&out);
	test_media(&out);
	test_responses(&out);
	test_tools(&out);
	test_alerts(&out);
	test_ids();
	test_copies();
	for (i = 0; i < cases_n; i++)
		json_object_put(cases[i]);
	buf_release(&out);
	return done();
}

/* Call ids without parsing: never others than those that parsing finds. */
#include "tap.h"
#include "golden.h"

#include "event/quick.h"

static void
add(void *arg, const char *id, size_t len)
{
	struct buf *b = arg;

	buf_addch(b, '|');
	buf_add(b, id, len);
}

/* 1: the same; 0: it cannot tell; -1: others. */
static int
compare(const char *line, size_t len)
{
	struct buf quick = BUF_INIT, parsed = BUF_INIT;
	struct pieces ids = { 0 };
	struct err e = ERR_INIT;
	struct event ev;
	size_t i;
	int rc = 0;

	if (event_view(&ev, line, len, &e) < 0)
		bail("%s", e.msg);
	if (quick_ids(&ev, &ids)) {
		for (i = 0; i < ids.n; i++)
			add(&quick, ids.items[i].p, ids.items[i].len);
		rc = event_data(&ev, &e) == NULL || event_ids(&ev, add, &parsed, &e) < 0 || (quick.len == parsed.len && memcmp(quick.data, parsed.data, quick.len) == 0) ? 1 : -1;
	}
	pieces_release(&ids);
	event_release(&ev);
	buf_release(&quick);
	buf_release(&parsed);
	return rc;
}

static void
sample(const char *line, size_t len)
{
	if (len > 0)
		is_int(compare(line, len), 1, "a line of the sample: %.60s", line);
}

#define RESPONSE(data) "{\"type\": \"ModelResponse\", \"data\": {" data "}}"
#define CALLS(calls) "\"tool_calls\": {\"calls\": [" calls "]}"
#define RESULTS(data) "{\"type\": \"ToolResultsEvent\", \"data\": {" data "}}"

static void
test_cases(void)
{
	static const struct {
		const char *what, *line;
		int want;
	} cases[] = {
		{ "two calls", RESPONSE(CALLS("{\"id\": \"a\", \"name\": \"x\"}, {\"n\": [1, {\"id\": \"no\"}], \"id\":\"b\"}")), 1 },
		{ "no calls", RESPONSE(CALLS("")), 1 },
		{ "no data", "{\"type\": \"ModelResponse\"}", 0 },
		{ "nothing where an object should be", RESPONSE("\"tool_calls\": null"), 1 },
		{ "a list where an object should be", RESPONSE("\"tool_calls\": [{\"calls\": [{\"id\": \"no\"}]}]"), 1 },
		{ "an object where a list should be", RESPONSE("\"tool_calls\": {\"calls\": {\"id\": \"no\"}}"), 1 },
		{ "an id that is no string", RESPONSE(CALLS("{\"id\": 7}, {\"id\": [\"no\"]}, {\"id\": \"\"}, 3, \"x\"")), 1 },
		{ "ids elsewhere", RESPONSE("\"message\": {\"content\": \"\\\"tool_calls\\\": {\\\"calls\\\": [{\\\"id\\\": \\\"no\\\"}]}\"}, "
		    "\"calls\": [{\"id\": \"no\"}], " CALLS("{\"id\": \"a\"}")), 1 },
		{ "a text that ends in backslashes", RESPONSE("\"message\": \"\\\\\\\\\", " CALLS("{\"id\": \"a\"}")), 1 },
		{ "brackets in texts", RESPONSE("\"message\": \"]}{[\", " CALLS("{\"x\": \"]}\", \"id\": \"a\"}")), 1 },
		{ "an id with an escape", RESPONSE(CALLS("{\"id\": \"a\\u0062\"}")), 0 },
		{ "a key with an escape", RESPONSE(CALLS("{\"\\u0069d\": \"a\"}")), 0 },
		{ "a key that comes twice", RESPONSE(CALLS("{\"id\": \"a\", \"id\": \"b\"}")), 0 },
		{ "data that come twice", "{\"type\": \"ToolResultEvent\", \"data\": {\"parent_id\": \"a\"}, \"data\": {\"parent_id\": \"b\"}}", 1 },
		{ "results", RESULTS("\"results\": [{\"parent_id\": \"a\", \"result\": {\"parent_id\": \"no\"}}, {\"parent_id\": \"b\"}]"), 1 },
		{ "a result", "{\"data\": {\"x\": {\"parent_id\": \"no\"}, \"parent_id\": \"a\"}, \"type\": \"ToolErrorEvent\"}", 1 },
		{ "a call", "{\"type\": \"ToolCallEvent\", \"data\": {\"arguments\": \"{\\\"id\\\": \\\"no\\\"}\", \"id\": \"a\"}}", 1 },
		{ "calls", "{\"type\": \"ToolCallsEvent\", \"data\": {\"calls\": [ { \"id\" : \"a\" } , { } ] }}", 1 },
		{ "a request", "{\"type\": \"ModelRequest\", \"data\": {\"id\": \"no\"}}", 1 },
		{ "a broken number", RESPONSE("\"x\": 1.2.3, " CALLS("{\"id\": \"a\"}")), 1 },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		is_int(compare(cases[i].line, strlen(cases[i].line)), cases[i].want, "%s", cases[i].what);
}

/* Bytes that are changed at random: what is still a line gives the same ids, or none. */
static void
test_random(void)
{
	static const char base[] = RESPONSE("\"m\": \"\\\\\\\"\", " CALLS("{\"id\": \"a\", \"n\": {\"id\": \"no\"}}, {\"id\": \"b\"}")),
	    put[] = "\"\\{}[]:, ax1";
	char line[sizeof(base)];
	unsigned seed = 1, i, k, wrong = 0, told = 0;
	struct event ev;

	for (i = 0; i < 200000; i++) {
		memcpy(line, base, sizeof(base));
		for (k = 0; k < 1 + i % 3; k++) {
			seed = seed * 1103515245 + 12345;
			line[(seed >> 8) % (sizeof(base) - 1)] = put[(seed >> 4) % (sizeof(put) - 1)];
		}
		if (event_view(&ev, line, sizeof(base) - 1, NULL) < 0)
			continue;
		event_release(&ev);
		told++;
		wrong += compare(line, sizeof(base) - 1) < 0;
	}
	ok(told > 1000, "%u lines that were changed at random are lines still", told);
	is_int(wrong, 0, "none of them gives other ids");
}

int
main(void)
{
	struct buf log = BUF_INIT;
	const char *p, *end;

	golden_text(&log, "log_sample.jsonl");
	for (p = log.data; *p != '\0'; p = *end ? end + 1 : end) {
		end = strchrnul(p, '\n');
		sample(p, (size_t)(end - p));
	}
	buf_release(&log);
	test_cases();
	test_random();
	return done();
}

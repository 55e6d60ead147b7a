/* Asking a model through ag2-ask as a child (here: a script that stands for it), and lifecycle events. */
#include "tap.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/io.h"
#include "trigger.h"
#include "upkeep.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

static char dir[] = "/tmp/ag2-upkeep.XXXXXX";

/* A program that eats its input, keeping it in DIR/input, and then does what body says. */
static char *
script(const char *body)
{
	char *path = xasprintf("%s/ask", dir), *text = xasprintf("#!/bin/sh\necho \"$*\" >%s/args\ncat >%s/input\n%s\n", dir, dir, body);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

	if (fd < 0 || io_write_all(fd, text, strlen(text)) < 0)
		exit(1);
	close(fd);
	free(text);
	return path;
}

#define RESPONSE(content, reason) "{\"type\": \"ag2.events.types.ModelResponse\", \"data\": {\"finish_reason\": " reason \
	", \"tool_calls\": {\"calls\": []}, \"message\": " content "}}\n"
#define SAID(text) "{\"content\": " text "}"
#define USAGE "{\"type\": \"UsageEvent\", \"data\": {\"model\": \"m\", \"provider\": \"p\", \"finish_reason\": \"stop\", " \
	"\"kind\": \"model_call\", \"usage\": {\"data\": {\"prompt_tokens\": 7, \"completion_tokens\": null, \"total_tokens\": 9}}}}\n"

static int
ask(const char *body, struct buf *answer, struct upkeep_use *use, struct err *e)
{
	struct upkeep_model m = { .ask = script(body), .model = "exec:x y", .part = "compact" };
	struct text prompt = { "say\n\"it\"", 8 };
	int rc;

	buf_reset(answer);
	*e = (struct err)ERR_INIT;
	rc = upkeep_ask(&m, "compaction", prompt, answer, use, e);
	free((char *)(uintptr_t)m.ask);
	return rc;
}

static void
test_answer(void)
{
	struct buf answer = BUF_INIT, seen = BUF_INIT;
	struct upkeep_use use = UPKEEP_USE_INIT;
	struct err e = ERR_INIT;
	char *path = xasprintf("%s/input", dir), *args = xasprintf("%s/args", dir);

	clock_set("5", &e);
	is_int(ask("cat <<'X'\n" USAGE RESPONSE(SAID("\" \\n the answer \\u00a0\\n\""), "\"stop\"") "X", &answer, &use, &e), 0, "an answer");
	is_str(answer.data, "the answer", "comes without the blanks around it");
	is_int(use.calls, 1, "one call");
	ok(use.known && use.total.prompt == 7 && use.total.completion < 0 && use.total.total == 9, "its cost is known");
	ok(strstr(use.lines.data, "\"kind\": \"compaction\", \"model\": \"m\", \"provider\": \"p\"") != NULL, "a usage event of our kind");
	io_read_file(path, &seen, &e);
	ok(strstr(seen.data, "ModelRequest") != NULL && strstr(seen.data, "\"content\": \"say\\n\\\"it\\\"\"") != NULL, "the prompt is a request");
	buf_reset(&seen);
	io_read_file(args, &seen, &e);
	is_str(seen.data, "--events --no-stream --max-rounds=3 --model=exec:x y --model-of=compact\n", "the arguments");
	ask("cat <<'X'\n" USAGE RESPONSE(SAID("\"b\""), "null") "X", &answer, &use, &e);
	ok(use.calls == 2 && use.total.prompt == 14, "costs add up");
	clock_set(NULL, &e);
	buf_release(&answer);
	buf_release(&seen);
	upkeep_use_release(&use);
	free(path);
	free(args);
}

static void
test_no_good(void)
{
	static const struct {
		const char *what, *body, *says;
		enum err_code code;
	} cases[] = {
		{ "empty text", "echo '" RESPONSE(SAID("\"\""), "\"stop\"") "'", "empty", ERR_UNAVAIL },
		{ "blanks", "cat <<'X'\n" RESPONSE(SAID("\" \\n\\t\\u200b\\u3000\""), "\"stop\"") "X", "blank", ERR_UNAVAIL },
		{ "null", "echo '" RESPONSE(SAID("null"), "\"stop\"") "'", "no text", ERR_UNAVAIL },
		{ "no message", "echo '" RESPONSE("null", "null") "'", "no text", ERR_UNAVAIL },
		{ "cut off", "echo '" RESPONSE(SAID("\"a\""), "\"length\"") "'", "cut off", ERR_UNAVAIL },
		{ "filtered", "echo '" RESPONSE(SAID("\"a\""), "\"content_filter\"") "'", "refused", ERR_UNAVAIL },
		{ "refused", "echo '" RESPONSE(SAID("\"I cannot\""), "\"refusal\"") "'", "refused", ERR_UNAVAIL },
		{ "no response", "echo '" USAGE "'", "no answer", ERR_UNAVAIL },
		{ "nothing", ":", "no answer", ERR_UNAVAIL },
		{ "nonsense", "echo hello", "ag2-ask printed", ERR_DATA },
		{ "refused by the server", "echo 'ag2-ask: the server says no' >&2; exit 69", "the server says no", ERR_UNAVAIL },
		{ "come back", "echo 'ag2-ask: later' >&2; exit 75", "later", ERR_BUSY },
		{ "no key", "exit 77", "status 77", ERR_PERM },
		{ "no model", "exit 78", "status 78", ERR_CONFIG },
		{ "it dies", "kill -9 $$", "status 137", ERR_UNAVAIL },
	};
	struct buf answer = BUF_INIT;
	struct upkeep_use use = UPKEEP_USE_INIT;
	struct upkeep_model gone = { .ask = "/nowhere/ag2-ask" };
	struct err e = ERR_INIT;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		is_int(ask(cases[i].body, &answer, &use, &e), -1, "%s: fails", cases[i].what);
		ok(strstr(e.msg, cases[i].says) != NULL, "%s: says so ('%s')", cases[i].what, e.msg);
		is_int(e.code, cases[i].code, "%s: code", cases[i].what);
		is_int(answer.len, 0, "%s: gives no text", cases[i].what);
	}
	is_int(upkeep_ask(&gone, "compaction", (struct text){ "x", 1 }, &answer, &use, &e), -1, "no such program: fails");
	ask("echo 'ag2-ask: 400: context_length_exceeded: maximum context length is 8192 tokens' >&2; exit 69", &answer, &use, &e);
	ok(upkeep_too_long(&e), "a prompt that is too long is told from other refusals");
	ask("echo 'ag2-ask: connection refused' >&2; exit 69", &answer, &use, &e);
	ok(!upkeep_too_long(&e), "... and those from it");
	buf_release(&answer);
	upkeep_use_release(&use);
}

static void
test_lifecycle(void)
{
	static const char *const want[] = {
		"{\"type\": \"ag2.events.lifecycle.CompactionStarted\", \"data\": {\"created_at\": 1780000198.5, \"agent\": \"a\", \"strategy\": \"TailWindowCompact\", \"event_count\": 9}}",
		"{\"type\": \"ag2.events.lifecycle.CompactionCompleted\", \"data\": {\"created_at\": 1780000200.5, \"agent\": \"a\", \"strategy\": \"SummarizeCompact\", \"events_before\": 9, \"events_after\": 4, \"llm_calls\": 1, \"usage\": {\"__dataclass__\": \"ag2.events.types.Usage\", \"data\": {\"prompt_tokens\": null, \"completion_tokens\": null, \"total_tokens\": 5, \"cache_read_input_tokens\": null, \"cache_creation_input_tokens\": null, \"thinking_tokens\": null}}}}",
		"{\"type\": \"ag2.events.lifecycle.CompactionFailed\", \"data\": {\"created_at\": 1780000201.5, \"agent\": \"a\", \"strategy\": \"S\", \"error_type\": \"ValueError\", \"error\": \"x\"}}",
		"{\"type\": \"ag2.events.lifecycle.AggregationCompleted\", \"data\": {\"created_at\": 1780000203.5, \"agent\": \"a\", \"strategy\": \"W\", \"event_count\": 9, \"llm_calls\": 0, \"usage\": {}}}",
		"{\"type\": \"ag2.events.lifecycle.EventLogFailed\", \"data\": {\"created_at\": 1780000205.5, \"agent\": \"a\", \"error_type\": \"OSError\", \"error\": \"disk full\"}}",
	};
	struct usage five = USAGE_NONE, none = USAGE_NONE;
	struct buf line = BUF_INIT;
	struct err e = ERR_INIT;

	five.total = 5;
	clock_set("1780000198.5", &e);
	build_started(&line, "Compaction", "a", "TailWindowCompact", 9);
	is_str(line.data, want[0], "CompactionStarted");
	buf_reset(&line);
	clock_set("1780000200.5", &e);
	build_compacted(&line, "a", "SummarizeCompact", 9, 4, 1, &five);
	is_str(line.data, want[1], "CompactionCompleted with its cost");
	buf_reset(&line);
	clock_set("1780000201.5", &e);
	build_failed(&line, "Compaction", "a", "S", "ValueError", "x");
	is_str(line.data, want[2], "CompactionFailed");
	buf_reset(&line);
	clock_set("1780000203.5", &e);
	build_aggregated(&line, "a", "W", 9, 0, &none);
	is_str(line.data, want[3], "AggregationCompleted without a cost");
	buf_reset(&line);
	clock_set("1780000205.5", &e);
	build_log_failed(&line, "a", "OSError", "disk full");
	is_str(line.data, want[4], "EventLogFailed");
	clock_set(NULL, &e);
	buf_release(&line);
}

static void
test_status(void)
{
	struct store_options options = { .mode = STORE_CREATE };
	struct upkeep_use use = UPKEEP_USE_INIT;
	struct upkeep_status st;
	struct store *s = NULL;
	struct err e = ERR_INIT, why = ERR_INIT;
	struct upkeep_run r = { .what = "Compaction", .agent = "a", .strategy = "S", .status_fd = -1, .stream = "s.1" };
	struct store_op op;
	int p[2];
	struct buf told = BUF_INIT;

	if (store_open(&s, "memory:", &options, &e) < 0 || pipe2(p, O_CLOEXEC) < 0)
		exit(1);
	r.store = s;
	r.status_fd = p[1];
	is_int(upkeep_status_read(s, "s.1", &st, &e), 0, "the status of a stream of which nothing is known");
	ok(st.compaction[UPKEEP_STARTED].time < 0 && st.aggregation[UPKEEP_FAILED].time < 0 && st.log_failed.time < 0, "is empty");
	upkeep_status_release(&st);
	clock_set("100", &e);
	upkeep_started(&r, 3);
	err_set(&why, ERR_UNAVAIL, "no luck");
	clock_set("101", &e);
	upkeep_failed(&r, &why);
	clock_set("102", &e);
	upkeep_started(&r, 3);
	clock_set("103", &e);
	upkeep_compacted(&r, 9, 4, &use);
	op = upkeep_op(&r);
	is_int(store_commit(s, &op, 1, &e), 0, "the Completed event goes with a commit");
	upkeep_done(&r);
	clock_set(NULL, &e);
	is_int(upkeep_status_read(s, "s.1", &st, &e), 0, "the last event of each kind");
	ok(st.compaction[UPKEEP_STARTED].time == 102 && st.compaction[UPKEEP_COMPLETED].time == 103, "is kept");
	ok(st.compaction[UPKEEP_FAILED].time == 101, "a failure is still there after a success");
	is_str(st.compaction[UPKEEP_FAILED].error, "no luck", "... with what it said");
	upkeep_status_release(&st);
	close(p[1]);
	io_read_all(p[0], &told, "pipe", &e);
	close(p[0]);
	is_int(strstr(told.data, "Started") < strstr(told.data, "Failed") && strstr(told.data, "Failed") < strstr(told.data, "Completed"), 1,
	    "the descriptor got them in order");
	buf_release(&told);
	upkeep_run_release(&r);
	upkeep_use_release(&use);
	store_close(s);
}

static int
count(struct trigger *t, struct trigger_count *c, const char *line)
{
	struct err e = ERR_INIT;
	struct event ev;
	int rc;

	if (event_view(&ev, line, strlen(line), &e) < 0)
		exit(1);
	rc = trigger_add(t, c, &ev, &e);
	event_release(&ev);
	return rc;
}

static void
test_trigger(void)
{
	static const char request[] = "{\"type\": \"ModelRequest\", \"data\": {\"parts\": [{\"__event__\": \"TextInput\", \"content\": \"12345678\"}]}}";
	static const char usage[] = "{\"type\": \"UsageEvent\", \"data\": {}}";
	struct trigger t = { .max_events = 2, .chars_per_token = 4 };
	struct trigger_count c = { 0 };
	int i;

	ok(trigger_is_set(&t), "a limit is set");
	for (i = 0; i < 2; i++)
		count(&t, &c, request);
	for (i = 0; i < 5; i++)
		count(&t, &c, usage);
	ok(!trigger_exceeded(&t, &c), "reaching a limit is not exceeding it, and telemetry does not count");
	count(&t, &c, request);
	ok(trigger_exceeded(&t, &c), "one more is");
	t = (struct trigger){ .max_tokens = 4, .chars_per_token = 4 };
	c = (struct trigger_count){ 0 };
	count(&t, &c, request);
	count(&t, &c, request);
	ok(c.tokens == 4 && !trigger_exceeded(&t, &c), "tokens are code points // chars_per_token");
	count(&t, &c, request);
	ok(trigger_exceeded(&t, &c), "and exceed their limit");
	t = (struct trigger){ .max_events = -1, .chars_per_token = 4 };
	ok(!trigger_is_set(&t), "a limit below 0 is none");
}

static void
clean_up(void)
{
	static const char *const names[] = { "ask", "input", "args" };
	size_t i;
	char *path;

	for (i = 0; i < 3; i++) {
		path = xasprintf("%s/%s", dir, names[i]);
		unlink(path);
		free(path);
	}
	rmdir(dir);
}

int
main(void)
{
	if (mkdtemp(dir) == NULL)
		return 1;
	test_answer();
	test_no_good();
	test_lifecycle();
	test_status();
	test_trigger();
	clean_up();
	return done();
}

/* Models that are commands, and calls recorded and replayed. */
#include "tap.h"

#include "base/alloc.h"
#include "base/io.h"
#include "event/json.h"
#include "llm/llm.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct llm_config config = { .temperature = -1, .timeout = 60 };

static struct {
	int rc;
	struct err e;
	struct llm_reply reply;
	struct buf text;	/* pieces, each in brackets */
	int pieces;
} got;

static const char *in_dir(const char *name);
static void put_file(const char *name, const char *text);

static int
on_text(void *arg, const char *text, size_t len, struct err *e)
{
	char name[40];

	(void)arg;
	(void)e;
	buf_addch(&got.text, '[');
	buf_add(&got.text, text, len);
	buf_addch(&got.text, ']');
	snprintf(name, sizeof(name), "piece-%d", ++got.pieces);	/* a command can wait for it */
	put_file(name, "");
	return 0;
}

static void
model(const char *text)
{
	struct err e = ERR_INIT;

	if (llm_config_parse(&config, text, &e) < 0)
		bail("%s", e.msg);
}

static struct event *
own(struct buf *line)
{
	size_t len;
	char *bytes = buf_detach(line, &len);

	return event_own(bytes, len);
}

static struct event *
request(const char *text)
{
	struct buf line = BUF_INIT;
	struct text t = { text, strlen(text) };

	build_request(&line, &t, 1);
	return own(&line);
}

/* A response with one call, and its result. */
static struct event *
called(const char *id, const char *arguments)
{
	struct call c = { (char *)(uintptr_t)id, (char *)"f", (char *)(uintptr_t)arguments };
	struct buf line = BUF_INIT;
	struct usage none = USAGE_NONE;

	build_response(&line, &(struct response){ NULL, &c, 1, &none, "m", "openai", "tool_calls" });
	return own(&line);
}

static struct event *
result(const char *id, const char *text)
{
	struct call c = { (char *)(uintptr_t)id, (char *)"f", (char *)"{}" };
	struct json_object *record = build_result(&c, (struct text){ text, strlen(text) });
	struct buf line = BUF_INIT;

	build_results(&line, &record, 1);
	json_object_put(record);
	return own(&line);
}

/* Asks with these events, which are freed. */
static void
ask_events(bool stream, struct event **events, size_t n)
{
	struct text prompt = { "Be brief.", 9 };
	struct llm_request r = { .config = &config, .prompts = &prompt, .prompts_n = 1, .events = events, .events_n = n, .stream = stream };
	char name[40];
	size_t i;

	llm_reply_release(&got.reply);
	buf_reset(&got.text);
	for (i = 1; i <= (size_t)got.pieces; i++) {
		snprintf(name, sizeof(name), "piece-%zu", i);
		unlink(in_dir(name));
	}
	got.pieces = 0;
	got.e = (struct err)ERR_INIT;
	got.rc = llm_call(&r, on_text, NULL, &got.reply, &got.e);
	for (i = 0; i < n; i++)
		event_free(events[i]);
}

static void
ask(const char *text)
{
	struct event *ev = request(text);

	ask_events(true, &ev, 1);
}

static const char *
in_dir(const char *name)
{
	static char path[PATH_MAX + 100];

	snprintf(path, sizeof(path), "%s/%s", tmpdir(), name);
	return path;
}

static void
put_file(const char *name, const char *text)
{
	FILE *f = fopen(in_dir(name), "we");

	if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0)
		bail("cannot write %s", name);
}

static char *
file_text(const char *name)
{
	struct buf b = BUF_INIT;

	if (io_read_file(in_dir(name), &b, NULL) < 0)
		bail("cannot read %s", name);
	return buf_detach(&b, NULL);
}

static void
replay(const char *text)
{
	static char path[PATH_MAX];
	struct err e = ERR_INIT;

	put_file("hand", text);
	snprintf(path, sizeof(path), "%s/hand", tmpdir());
	if (!ok(llm_cassette(NULL, path, &e) == 0, "the cassette is read"))
		printf("# %s\n", e.msg);
}

/* ---- exec ---- */

#define RESPONSE "{\"type\": \"ModelResponse\", \"data\": {\"message\": {\"__event__\": \"ModelMessage\", \"content\": \"hi\"}, " \
    "\"tool_calls\": {\"__event__\": \"ToolCallsEvent\", \"calls\": [{\"__event__\": \"ToolCallEvent\", \"id\": \"c1\", \"name\": \"f\", " \
    "\"arguments\": \"{ }\"}]}, \"model\": \"mine\", \"usage\": {\"__dataclass__\": \"Usage\", \"data\": {\"total_tokens\": 5}}}}"

#define WAIT(piece) "until [ -e \"$DIR/piece-" piece "\" ]; do sleep 0.01; done; "

static void
commands(void)
{
	setenv("DIR", tmpdir(), 1);
	model("exec:cat");
	ask("hello");
	ok(got.rc == -1 && got.e.code == ERR_UNAVAIL && strstr(got.e.msg, "no ModelResponse") != NULL, "event lines must end in a response: %s", got.e.msg);
	model("exec:wc -l; cat >/dev/null");
	ask("hello");
	is_str(got.reply.message, "2", "a command gets the prompt and the events, a line each");
	is_str(got.text.data, "[2]", "its text is given without the last newline");
	is_str(got.reply.provider, "exec", "the provider");
	is_str(got.reply.finish_reason, "stop", "the reason");
	ok(!got.reply.has_usage, "no usage");
	model("exec:grep -c '\"type\": \"Prompt\", \"data\": {\"content\": \"Be brief.\"' ");
	ask("hello");
	is_str(got.reply.message, "1", "the prompt is a Prompt line");
	model("exec:printf 'a\\n'; " WAIT("1") "printf 'b \\345\\214'; " WAIT("2") "printf '\\227\\n\\n'");
	ask("hello");
	is_str(got.reply.message, "a\nb \xe5\x8c\x97", "text as it comes");
	is_str(got.text.data, "[a][\nb ][\xe5\x8c\x97]", "in whole characters");
	model("exec:printf '{not an event}\\n'");
	ask("hello");
	is_str(got.reply.message, "{not an event}", "JSON-like text is text");
	model("exec:printf 'a\\377b'");
	ask("hello");
	is_str(got.reply.message, "a\xef\xbf\xbd" "b", "what is not UTF-8 is U+FFFD");
	model("exec:true");
	ask("hello");
	ok(got.rc == 0 && got.reply.message == NULL, "an answer may be empty");
	model("exec:echo half; echo 'no  luck' >&2; echo more >&2; exit 3");
	ask("hello");
	ok(got.rc == -1 && got.e.code == ERR_UNAVAIL, "a command that fails is no model");
	ok(strstr(got.e.msg, "status 3: no luck") != NULL && strcmp(strrchr(got.e.msg, 'k'), "k") == 0, "and says why: %s", got.e.msg);
	is_str(got.reply.message, NULL, "its half answer is none");
	model("exec:/nonexistent/model");
	ask("hello");
	ok(got.rc == -1 && strstr(got.e.msg, "127") != NULL, "a command that is not there: %s", got.e.msg);
	config.timeout = 0.2;
	model("exec:echo a; sleep 60");
	ask("hello");
	ok(got.rc == -1 && got.e.code == ERR_UNAVAIL, "a command that does not end: %s", got.e.msg);
	config.timeout = 60;
}

static void
command_events(void)
{
	put_file("events", "\n" RESPONSE "\n");
	setenv("EVENTS", in_dir("events"), 1);
	model("exec:cat \"$EVENTS\"");
	ask("hello");
	ok(got.rc == 0 && got.reply.events.n == 1, "event lines are taken: %s", got.e.msg);
	is_bytes(got.reply.events.items[0]->line, got.reply.events.items[0]->len, RESPONSE, strlen(RESPONSE), "as they were written");
	is_str(got.reply.message, "hi", "the text is the response's");
	is_str(got.text.data, "[hi]", "and given");
	is_str(got.reply.model, "mine", "so is the model");
	ok(got.reply.has_usage && got.reply.usage.total == 5 && got.reply.usage.prompt == -1, "and the usage");
	ok(got.reply.calls_n == 1 && strcmp(got.reply.calls[0].id, "c1") == 0 && strcmp(got.reply.calls[0].arguments, "{ }") == 0, "and the calls");
	put_file("events", RESPONSE "\n{\"type\": \"ModelResponse\", \"data\": {\"message\"\n");
	ask("hello");
	ok(got.rc == -1 && got.e.code == ERR_UNAVAIL && strstr(got.e.msg, "line 2") != NULL, "a bad line is named: %s", got.e.msg);
	is_int((long long)got.reply.events.n, 0, "and nothing is taken");
}

/* ---- by hand ---- */

static void
by_hand(void)
{
	model("openai:gpt-5");
	replay("# made by hand\n\n{\"ask\": \"a?\", \"reply\": {\"text\": \"a1\"}}\n{\"ask\": \"a?\", \"reply\": {\"text\": [\"a\", \"2\"]}}\n"
	    "{\"contains\": \"sum\", \"model\": \"gpt-5\", \"reply\": {\"text\": \"it\", \"usage\": {\"total_tokens\": 3}, \"finish_reason\": \"length\"}}\n"
	    "{\"ask\": \"busy?\", \"reply\": {\"text\": \"so\", \"error\": \"come later\", \"status\": 75}}\n"
	    "{\"ask\": \"tool?\", \"reply\": {\"calls\": [{\"name\": \"f\", \"arguments\": {\"n\": 2512292042121000001}}]}}\n");
	ask("a?");
	is_str(got.reply.message, "a1", "an entry by hand answers, without key or network");
	is_str(got.reply.provider, "openai", "as the provider that is configured");
	is_str(got.reply.model, "gpt-5", "and its model");
	is_str(got.reply.finish_reason, "stop", "complete");
	ask("a?");
	is_str(got.reply.message, "a2", "equal requests are answered in order");
	is_str(got.text.data, "[a][2]", "in the pieces of the cassette");
	ask("a?");
	is_str(got.reply.message, "a2", "the last one repeating");
	ask("the sum of it");
	ok(got.rc == 0 && strcmp(got.reply.message, "it") == 0 && got.reply.usage.total == 3 && strcmp(got.reply.finish_reason, "length") == 0,
	    "a part of what was asked is enough where it says so");
	ask("busy?");
	ok(got.rc == -1 && got.e.code == ERR_BUSY && strcmp(got.e.msg, "come later") == 0, "an error is played too");
	is_str(got.text.data, "[so]", "after its text");
	ask("tool?");
	ok(got.rc == 0 && got.reply.calls_n == 1 && strlen(got.reply.calls[0].id) > 20, "a call gets an id");
	is_str(got.reply.calls[0].arguments, "{\"n\":2512292042121000001}", "its arguments may be an object");
	is_str(got.reply.finish_reason, "tool_calls", "and the reason says so");
	ask("A?");
	ok(got.rc == -1 && got.e.code == ERR_UNAVAIL, "a request that is not there has no answer");
	ok(strstr(got.e.msg, "differs in ask") != NULL && strstr(got.e.msg, "'A?'") != NULL, "and the nearest is told: %s", got.e.msg);
	model("openai:gpt-4");
	ask("the sum of it");
	ok(got.rc == -1 && strstr(got.e.msg, "line 5") != NULL && strstr(got.e.msg, "differs in model") != NULL, "the model counts: %s", got.e.msg);
	replay("{\"provider\": \"openai\", \"model\": \"gpt-5\", \"request\": {\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}, \"reply\": {}}\n");
	model("anthropic:claude");
	ask("hello");
	ok(got.rc == -1 && strstr(got.e.msg, "differs in provider: recorded 'openai', asked 'anthropic'") != NULL,
	    "who is asked is named before what is sent: %s", got.e.msg);
	model("openai:gpt-4");
	ask("hello");
	ok(got.rc == -1 && strstr(got.e.msg, "differs in model") != NULL, "and so is the model: %s", got.e.msg);
	model("openai:gpt-5");
	replay("");
	ask("a?");
	ok(got.rc == -1 && strstr(got.e.msg, "empty") != NULL, "an empty cassette: %s", got.e.msg);
}

static void
refused(const char *text, const char *words, const char *what)
{
	struct err e = ERR_INIT;

	put_file("hand", text);
	ok(llm_cassette(NULL, in_dir("hand"), &e) == -1 && e.code == ERR_DATA && strstr(e.msg, words) != NULL, "%s: %s", what, e.msg);
}

static void
bad_ones(void)
{
	struct err e = ERR_INIT;

	refused("# x\n{\"reply\": {\"text\": \"a\"}\n", ":2:", "a line that is no JSON is named");
	refused("{\"aks\": \"a\", \"reply\": {}}\n", "'aks'", "a misspelt key");
	refused("{\"reply\": {\"txt\": \"a\"}}\n", "'txt'", "one in the reply");
	refused("{\"ask\": \"a\"}\n", "no reply", "no reply");
	refused("[]\n", "no object", "no entry");
	ok(llm_cassette(NULL, in_dir("absent"), &e) == -1 && e.code == ERR_NOINPUT, "no file: %s", e.msg);
	ok(llm_cassette("a", "b", &e) == -1 && e.code == ERR_USAGE, "record and replay at once: %s", e.msg);
	ok(llm_cassette("/nonexistent/dir/c", NULL, &e) == -1, "a place that cannot be written is told before a call: %s", e.msg);
	ok(llm_cassette(NULL, NULL, &e) == 0, "neither is fine");
}

/* ---- recorded ---- */

static void
start_recording(const char *name)
{
	static char path[PATH_MAX];
	struct err e = ERR_INIT;

	snprintf(path, sizeof(path), "%s/%s", tmpdir(), name);
	ok(llm_cassette(path, NULL, &e) == 0, "a recording begins");
}

static void
start_replay(const char *name)
{
	static char path[PATH_MAX];
	struct err e = ERR_INIT;

	snprintf(path, sizeof(path), "%s/%s", tmpdir(), name);
	if (!ok(llm_cassette(NULL, path, &e) == 0, "it is replayed"))
		printf("# %s\n", e.msg);
}

static void
commands_recorded(void)
{
	struct stat st;
	char *text, *message, *pieces;

	start_recording("tape");
	config.api_key = xstrdup("sk-secret-0123456789");
	setenv("SECRET", config.api_key, 1);
	model("exec:printf 'one '; " WAIT("1") "echo two of $SECRET");
	ask("hello");
	message = xstrdup(got.reply.message);
	pieces = xstrdup(got.text.data);
	model("exec:exit 1");
	ask("hello");
	model("exec:cat \"$EVENTS\"");
	put_file("events", RESPONSE "\n");
	ask("hello");
	ok(stat(in_dir("tape"), &st) == 0 && (st.st_mode & 077) == 0, "a cassette is for its owner only");
	text = file_text("tape");
	ok(strstr(text, "sk-secret") == NULL && strstr(text, "two of [key]") != NULL, "a key does not get into it");
	ok(strstr(text, "exit 1") == NULL, "a failed call is not recorded");
	free(text);
	free(config.api_key);
	config.api_key = NULL;
	start_replay("tape");
	unlink(in_dir("events"));
	ask("hello");
	ok(got.rc == 0 && got.reply.events.n == 1, "event lines are replayed: %s", got.e.msg);
	is_bytes(got.reply.events.items[0]->line, got.reply.events.items[0]->len, RESPONSE, strlen(RESPONSE), "byte for byte, at another time");
	ok(got.reply.calls_n == 1 && got.reply.usage.total == 5 && strcmp(got.text.data, "[hi]") == 0, "with calls, usage and text");
	model("exec:printf 'one '; " WAIT("1") "echo two of $SECRET");
	ask("hello");
	is_str(got.text.data, "[one ][two of [key]]", "the pieces are those of the recording");
	ok(strncmp(pieces, "[one ][two", 10) == 0 && strncmp(message, "one two", 7) == 0, "which were these");
	free(message);
	free(pieces);
}

/* Two rounds of a tool loop, with ids that differ between recording and replay. */
static void
ids(void)
{
	struct event *ev[3];

	put_file("loop", "{\"provider\": \"openai\", \"model\": \"gpt-5\", \"request\": {\"messages\": [{\"role\": \"system\", \"content\": \"Be brief.\"}, "
	    "{\"role\": \"user\", \"content\": \"go\"}, {\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"type\": \"function\", \"id\": \"call-1\", "
	    "\"function\": {\"name\": \"f\", \"arguments\": \"{}\"}}]}, {\"role\": \"tool\", \"tool_call_id\": \"call-1\", \"content\": \"r\"}]}, "
	    "\"reply\": {\"text\": \"done\"}}\n");
	start_replay("loop");
	model("openai:gpt-5");
	ev[0] = request("go");
	ev[1] = called("call_x9", "{}");
	ev[2] = result("call_x9", "r");
	ask_events(true, ev, 3);
	ok(got.rc == 0, "the ids of calls do not matter: %s", got.e.msg);
	ev[0] = request("go");
	ev[1] = called("call_x9", "{}");
	ev[2] = result("call_other", "r");
	ask_events(true, ev, 3);
	ok(got.rc == -1 && strstr(got.e.msg, "messages[3].tool_call_id") != NULL, "but which belongs to which: %s", got.e.msg);
	ev[0] = request("go");
	ev[1] = called("call_x9", "{}");
	ev[2] = result("call_x9", "another");
	ask_events(true, ev, 3);
	ok(got.rc == -1 && strstr(got.e.msg, "messages[3].content") != NULL && strstr(got.e.msg, "'another'") != NULL,
	    "a difference is named by where it is: %s", got.e.msg);
	ev[0] = request("go");
	ask_events(true, ev, 1);
	ok(got.rc == -1 && strstr(got.e.msg, "messages[2]") != NULL && strstr(got.e.msg, "asked nothing") != NULL, "so is what is missing: %s", got.e.msg);
	ev[0] = request("go");
	ev[1] = called("c", "{}");
	ev[2] = result("c", "r");
	ask_events(false, ev, 3);
	is_str(got.text.data, "[done]", "without streaming the text is given whole");
}

/* Recorders at once: every line whole. */
static void
together(void)
{
	char *text, *line, *end;
	int i, k, status, bad = 0, n = 0;
	struct json_object *v;

	put_file("many", "{\"ask\": \"torn by a cras");
	for (i = 0; i < 4; i++) {
		if (fork() == 0) {
			static char path[PATH_MAX];

			snprintf(path, sizeof(path), "%s/many", tmpdir());
			if (llm_cassette(path, NULL, NULL) < 0)
				_exit(1);
			model("exec:head -c 100000 /dev/zero | tr '\\0' x");
			for (k = 0; k < 5; k++)
				ask("hello");
			_exit(got.rc == 0 ? 0 : 1);
		}
	}
	for (i = 0; i < 4; i++) {
		wait(&status);
		bad += status != 0;
	}
	is_int(bad, 0, "four record into one file");
	text = file_text("many");
	for (line = strchr(text, '\n') + 1; (end = strchr(line, '\n')) != NULL; line = end + 1, n++) {
		bad += json_parse(&v, line, (size_t)(end - line), NULL) < 0;
		json_object_put(v);
	}
	is_int(n, 20, "each of their calls is a line, the torn one before them too");
	is_int(bad, 0, "and whole");
	free(text);
}

int
main(void)
{
	commands();
	command_events();
	by_hand();
	bad_ones();
	commands_recorded();
	ids();
	together();
	llm_cassette(NULL, NULL, NULL);
	llm_reply_release(&got.reply);
	buf_release(&got.text);
	llm_config_release(&config);
	return done();
}

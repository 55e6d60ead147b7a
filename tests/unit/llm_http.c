/* Whole calls of a Chat Completions server whose every byte is scripted; over TLS with the certificates in $AG2_TEST_CERTS. */
#include "tap.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/run.h"
#include "event/json.h"
#include "llm/llm.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define KEY "sk-test-0123456789abcdef"
#define STREAM "head 200 text/event-stream\n"
#define TEXT(t) "data {\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" t "\"},\"finish_reason\":null}]}\n"
#define FINISH(why) "data {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" why "\"}]}\n"
#define DONE "data [DONE]\n"

static int server_n;		/* connections so far: the number of the next script */
static pid_t server;
static struct llm_config config = { .provider = (char *)"openai", .model = (char *)"gpt-5", .temperature = -1, .timeout = 30,
	.retries = -1 };

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

static void
stop_server(void)
{
	if (server > 0)
		kill(server, SIGKILL);
}

static void
start_server(void)
{
	const char *build = getenv("AG2_BUILD"), *certs = getenv("AG2_TEST_CERTS");
	char *tls = certs != NULL ? xasprintf("-c '%s/good.pem'", certs) : xstrdup("");
	char *command = xasprintf("%s/tools/httpd -d -t 100 %s '%s'", build ? build : "build/release", tls, tmpdir());
	struct buf out = BUF_INIT;
	struct err e = ERR_INIT;
	struct run r = { .shell = command, .out = &out, .timeout = 30 };

	if (run(&r, &e) != 0)
		bail("%s: %s", command, e.msg);
	config.base_url = xasprintf("http%s://127.0.0.1:%ld/v1", certs != NULL ? "s" : "", strtol(out.data, NULL, 10));
	if (certs != NULL)
		config.cacert = xasprintf("%s/ca.pem", certs);
	config.api_key = xstrdup(KEY);
	buf_reset(&out);
	if (io_read_file(in_dir("pid"), &out, &e) < 0)
		bail("%s", e.msg);
	server = (pid_t)strtol(out.data, NULL, 10);
	atexit(stop_server);
	free(command);
	free(tls);
	buf_release(&out);
}

/* One call of the server, which answers by the script. */
static struct {
	int rc;
	struct err e;
	struct llm_reply reply;
	struct buf text;	/* what came through on_text */
	int pieces;
	double took;
	char head[8000], body[8000];
} got;

static int
on_text(void *arg, const char *text, size_t len, struct err *e)
{
	(void)arg;
	(void)e;
	got.pieces++;
	put_file("seen", "");	/* a script can wait for it */
	buf_add(&got.text, text, len);
	return 0;
}

static void
slurp(char *out, size_t size, int n, const char *what)
{
	struct buf b = BUF_INIT;
	char name[40];

	snprintf(name, sizeof(name), "%d.%s", n, what);
	out[0] = '\0';
	if (io_read_file(in_dir(name), &b, NULL) == 0)
		snprintf(out, size, "%s", b.data);
	buf_release(&b);
}

static void
ask(bool stream)
{
	static struct event *question;
	struct llm_request r = { .config = &config, .stream = stream };
	double begin = clock_monotonic();

	if (question == NULL) {
		struct buf line = BUF_INIT;
		struct text t = { "hello", 5 };
		size_t len;
		char *bytes;

		build_request(&line, &t, 1);
		bytes = buf_detach(&line, &len);
		question = event_own(bytes, len);
	}
	r.events = &question;
	r.events_n = 1;
	llm_reply_release(&got.reply);
	buf_reset(&got.text);
	unlink(in_dir("seen"));
	got.pieces = 0;
	got.e = (struct err)ERR_INIT;
	got.rc = llm_call(&r, on_text, NULL, &got.reply, &got.e);
	got.took = clock_monotonic() - begin;
}

static void
call(const char *script, bool stream)
{
	char name[20];

	snprintf(name, sizeof(name), "%d", ++server_n);
	put_file(name, script);
	ask(stream);
	slurp(got.head, sizeof(got.head), server_n, "head");
	slurp(got.body, sizeof(got.body), server_n, "body");
}

static void
answers(const char *script, const char *want, const char *what)
{
	call(script, true);
	if (!ok(got.rc == 0, "%s: an answer", what))
		printf("# %s\n", got.e.msg);
	is_str(got.reply.message, want, "%s", what);
	is_str(got.text.data, want != NULL ? want : "", "%s: given as it came", what);
}

/* Nothing of the reply is filled, and the key is in no message. */
static void
fails(const char *script, enum err_code code, const char *words, const char *what)
{
	call(script, true);
	ok(got.rc == -1 && got.e.code == code, "%s: %s", what, got.e.msg);
	ok(strstr(got.e.msg, words) != NULL, "%s: it says '%s'", what, words);
	ok(strchr(got.e.msg, '\n') == NULL && strstr(got.e.msg, KEY) == NULL, "%s: in one line, without the key", what);
	ok(got.reply.message == NULL && got.reply.calls_n == 0 && got.reply.finish_reason == NULL, "%s: no reply", what);
}

/* ---- good answers ---- */

static void
requests(void)
{
	answers(STREAM TEXT("Hel") "wait seen\n" TEXT("lo") FINISH("stop") "data {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,"
	    "\"total_tokens\":11,\"prompt_tokens_details\":{\"cached_tokens\":4},\"completion_tokens_details\":{\"reasoning_tokens\":1}}}\n" DONE,
	    "Hello", "a stream");
	is_int(got.pieces, 2, "piece by piece");
	is_str(got.reply.model, "m-1", "the model is the one that answered");
	is_str(got.reply.provider, "openai", "the provider");
	is_str(got.reply.finish_reason, "stop", "the reason");
	ok(got.reply.has_usage && got.reply.usage.prompt == 9 && got.reply.usage.completion == 2 && got.reply.usage.total == 11 &&
	    got.reply.usage.cache_read == 4 && got.reply.usage.cache_creation == -1 && got.reply.usage.thinking == 1, "the usage behind the end");
	ok(strncmp(got.head, "POST /v1/chat/completions HTTP/1.1\r\n", 36) == 0, "the path is behind the base URL");
	ok(strstr(got.head, "\r\nAuthorization: Bearer " KEY "\r\n") != NULL, "the key is in its header");
	ok(strstr(got.head, "\r\nContent-Type: application/json\r\n") != NULL, "the body is JSON");
	ok(strcasestr(got.head, "expect:") == NULL, "and sent at once");
	is_str(got.body, "{\"model\":\"gpt-5\",\"stream\":true,\"stream_options\":{\"include_usage\":true},"
	    "\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}", "the body");
	call("head 200 application/json\nbody\nsend {\"model\":\"m-2\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
	    "\"content\":\"Hi\"},\"finish_reason\":\"stop\"}],\"usage\":{\"total_tokens\":3}}\n", false);
	is_str(got.reply.message, "Hi", "an answer in one piece");
	is_str(got.text.data, "Hi", "is given when it is whole");
	ok(got.reply.usage.total == 3 && got.reply.usage.prompt == -1, "with its usage");
	is_str(got.body, "{\"model\":\"gpt-5\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}", "and no stream was asked for");
	call(STREAM TEXT("Hel") TEXT("lo") FINISH("stop") DONE, false);
	is_str(got.reply.message, "Hello", "a server that streams unasked is understood");
	is_int(got.pieces, 1, "and its answer given when it is whole");
}

static void
framing(void)
{
	answers(STREAM "body\nbytes\n" "send data: {\"choices\":[{\"delta\":{\"content\":\"\\xe5\\x8c\\x97\"}}]}\\n\\n\n" FINISH("stop") DONE,
	    "\xe5\x8c\x97", "one byte per write");
	answers(STREAM "send data: {\"choices\":[{\"delta\":{\"content\":\"\\xe5\\x8c\npause 30\n"
	    "send \\x97\"}}]}\\n\\n\n" FINISH("stop") DONE, "\xe5\x8c\x97", "a character cut between two reads");
	answers(STREAM "send data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\\r\\n\\r\\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}"
	    "\\r\\n\\r\\ndata: [DONE]\\r\\n\\r\\n\n", "a", "CRLF");
	answers(STREAM "send data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\\r\\rdata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}"
	    "\\r\\rdata: [DONE]\\r\\r\nhold\n", "a", "CR, and the server holds the connection");
	answers(STREAM "send : KEEPALIVE\\n\\n: KEEPALIVE\\n\\n\n" TEXT("a") "data : KEEPALIVE\n" FINISH("stop") DONE, "a", "comments, also as data");
	answers(STREAM "header Transfer-Encoding: chunked\nchunk data: {\"choices\":[{\"delta\":{\"content\":\"a\nchunk b\"}}]}\\n\\nda\n"
	    "chunk ta: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\\n\\ndata: [DONE]\\n\\n\nlast-chunk\n", "ab", "chunks that cut events");
	answers(STREAM TEXT("a") FINISH("stop") DONE "hold\n", "a", "a server that holds the connection after [DONE]");
	ok(got.took < 20, "does not hold us");
	answers(STREAM TEXT("a") FINISH("stop") "pause 300\ndata {\"choices\":[],\"usage\":{\"total_tokens\":3}}\nhold\n", "a",
	    "nor one that holds it behind the reason to finish");
	ok(got.took < 20 && got.reply.usage.total == 3, "and what came behind that is taken");
	answers(STREAM TEXT("a") FINISH("stop") DONE TEXT("b"), "a", "what comes after [DONE] is not read");
	answers(STREAM TEXT("a") FINISH("stop"), "a", "a reason to finish and an orderly end do without [DONE]");
	answers(STREAM TEXT("a") FINISH("stop") "send data: [DONE]\n", "a", "so does [DONE] without its blank line");
	answers("head 200 text/plain\n" TEXT("a") FINISH("stop") DONE, "a", "a stream under another type is one");
	answers("head 200 -\n" TEXT("a") FINISH("stop") DONE, "a", "and so without a type");
	answers("head 200 application/json; charset=utf-8\nsend {\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n", "a",
	    "plain JSON although a stream was asked for");
	answers(STREAM TEXT("x\\\\ud99c") FINISH("stop") DONE, "x\xef\xbf\xbd", "a lone surrogate is U+FFFD");
	answers(STREAM "data {\"choices\":[{\"delta\":{\"content\":\"a\\xffb\"}}]}\n" FINISH("stop") DONE, "a\xef\xbf\xbd" "b", "so is a byte that is no UTF-8");
}

static void
contents(void)
{
	answers(STREAM "data {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null,\"reasoning_content\":\"hm\"}}]}\n" TEXT("a")
	    "data {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"other\"}}]}\n"
	    "data {\"choices\":null,\"usage\":null}\n" FINISH("length") DONE, "a", "reasoning, nulls and other choices are passed over");
	is_str(got.reply.finish_reason, "length", "a reason other than stop is kept");
	answers(STREAM "data {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"thinking\"}]}}]}\n" FINISH("stop") DONE,
	    "a", "content as an array of parts");
	answers(STREAM "data {\"choices\":[{\"delta\":{\"refusal\":\"I will \"}}]}\ndata {\"choices\":[{\"delta\":{\"refusal\":\"not.\"}}]}\n" FINISH("stop") DONE,
	    "I will not.", "a refusal is the answer");
	is_str(got.reply.finish_reason, "refusal", "and says so");
	answers(STREAM FINISH("content_filter") DONE, NULL, "an answer may have no text");
	is_str(got.reply.finish_reason, "content_filter", "and its reason is told");
}

#define PIECE(s) "data {\"choices\":[{\"delta\":{\"tool_calls\":[" s "]}}]}\n"

static void
has_call(size_t i, const char *id, const char *name, const char *arguments)
{
	if (!ok(i < got.reply.calls_n, "there is a call %zu", i))
		return;
	if (id != NULL)
		is_str(got.reply.calls[i].id, id, "its id");
	else
		ok(strlen(got.reply.calls[i].id) > 20, "an id is made up: %s", got.reply.calls[i].id);
	is_str(got.reply.calls[i].name, name, "its name");
	is_str(got.reply.calls[i].arguments, arguments, "its arguments");
}

static void
calls(void)
{
	answers(STREAM PIECE("{\"index\":0,\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}")
	    PIECE("{\"index\":0,\"function\":{\"arguments\":\"{\\\\\"id\\\\\":\"}}") PIECE("{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":\"\"}}")
	    PIECE("{\"index\":0,\"function\":{\"arguments\":\"2512292042121000001}\"}}") FINISH("tool_calls") DONE, NULL, "calls in pieces");
	is_int((long long)got.reply.calls_n, 2, "two calls");
	has_call(0, "a", "f", "{\"id\":2512292042121000001}");
	has_call(1, "b", "g", "{}");
	answers(STREAM PIECE("{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\\\"p\\\\\":1}\"}}")
	    PIECE("{\"id\":\"b\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\\\"p\\\\\":2}\"}}") FINISH("tool_calls") DONE, NULL, "calls without an index");
	is_int((long long)got.reply.calls_n, 2, "stay apart");
	has_call(0, "a", "f", "{\"p\":1}");
	has_call(1, "b", "f", "{\"p\":2}");
	answers(STREAM PIECE("{\"function\":{\"name\":\"f\",\"arguments\":{\"p\":1}}},{\"function\":{\"name\":\"f\",\"arguments\":{\"p\":2}}}")
	    FINISH("tool_calls") DONE, NULL, "calls without index and id, arguments as objects");
	is_int((long long)got.reply.calls_n, 2, "are two");
	has_call(0, NULL, "f", "{\"p\":1}");
	has_call(1, NULL, "f", "{\"p\":2}");
	ok(strcmp(got.reply.calls[0].id, got.reply.calls[1].id) != 0, "with different ids");
	answers(STREAM PIECE("{\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":\"{\\\\\"a\\\\\"\"}}")
	    PIECE("{\"index\":0,\"function\":{\"arguments\":\":1}\"}}") FINISH("tool_calls") DONE, NULL, "an index without an id");
	is_int((long long)got.reply.calls_n, 1, "is one call");
	has_call(0, NULL, "f", "{\"a\":1}");
	answers(STREAM PIECE("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}")
	    PIECE("{\"index\":0,\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":\"{\\\\\"x\\\\\":\"}}") PIECE("{\"index\":0,\"function\":{\"arguments\":\"1}\"}}")
	    FINISH("tool_calls") DONE, NULL, "one index for all");
	has_call(0, "a", "f", "{}");
	has_call(1, "b", "g", "{\"x\":1}");
	answers(STREAM PIECE("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}")
	    PIECE("{\"index\":1,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}") FINISH("tool_calls") DONE, NULL, "one id for two");
	has_call(0, "a", "f", "{}");
	has_call(1, NULL, "f", "{}");
	answers(STREAM TEXT("thinking") PIECE("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}") FINISH("tool_calls") DONE,
	    "thinking", "text beside a call");
	is_int((long long)got.reply.calls_n, 1, "both are there");
	fails(STREAM PIECE("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"save\",\"arguments\":\"{\\\\\"path\\\\\":\\\\\"a\"}}") FINISH("tool_calls") DONE,
	    ERR_UNAVAIL, "'save'", "arguments that are cut");
	fails(STREAM PIECE("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"save\",\"arguments\":\"{\\\\\"path\\\\\":\\\\\"a\"}}"), ERR_UNAVAIL, "incomplete",
	    "a stream that ends in arguments");
	fails(STREAM PIECE("{\"index\":0,\"id\":\"a\",\"function\":{\"arguments\":\"{}\"}}") FINISH("tool_calls") DONE, ERR_UNAVAIL, "without naming",
	    "a call of nothing");
}

/* ---- bad ones ---- */

static void
cut_short(void)
{
	fails(STREAM TEXT("a") TEXT("b"), ERR_UNAVAIL, "incomplete", "a close before the end");
	is_str(got.text.data, "ab", "what came was given as it came");
	fails(STREAM TEXT("a") "wait seen\nreset\n", ERR_UNAVAIL, "incomplete", "a reset");
	fails(STREAM "header Transfer-Encoding: chunked\nchunk data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\\n\\n\n", ERR_UNAVAIL, "incomplete",
	    "chunks that are cut");
	fails(STREAM "header Content-Length: 5000\n" TEXT("a") FINISH("stop"), ERR_UNAVAIL, "incomplete", "a body shorter than promised");
	fails(STREAM TEXT("a") "send data: {\"choices\":[{\"de\n", ERR_UNAVAIL, "incomplete", "a close inside an event");
	fails(STREAM TEXT("a") DONE, ERR_UNAVAIL, "incomplete", "[DONE] without a reason to finish");
}

/* A whole stream cut behind each of its bytes: what is taken for an answer is the whole answer. */
static void
cut_anywhere(void)
{
	static const char stream[] = "data: {\"choices\":[{\"delta\":{\"content\":\"\xe5\x8c\x97\"}}]}\r\n\r\n: k\n\n"
	    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}\n\n"
	    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"total_tokens\":3}}\n\ndata: [DONE]\n\n";
	size_t end = (size_t)(strstr(stream, "]}\n\ndata: {\"choices\":[],") - stream) + 2, n;
	int wrong = 0, early = 0;
	char script[100];
	FILE *f;

	for (n = 0; n < sizeof(stream); n++) {
		f = fopen(in_dir("cut"), "we");
		if (f == NULL || fwrite(stream, 1, n, f) != n || fclose(f) != 0)
			bail("cannot write a stream");
		snprintf(script, sizeof(script), STREAM "file cut\n");
		call(script, n % 2 == 0);
		early += got.rc == 0 && n < end;
		wrong += got.rc == 0 ? strcmp(got.reply.message, "\xe5\x8c\x97") != 0 || got.reply.calls_n != 1 :
		    got.e.code != ERR_UNAVAIL || got.reply.message != NULL || got.reply.calls_n != 0;
	}
	is_int(early, 0, "a stream cut before its reason to finish is no answer");
	is_int(wrong, 0, "nor is a part of one, wherever it is cut");
	ok(got.rc == 0 && got.reply.usage.total == 3, "all of it is");
}

static void
nonsense(void)
{
	fails("head 200 text/html\nsend <!DOCTYPE html><html><title>Login</title>\\n\n", ERR_UNAVAIL, "web page", "a login page");
	fails(STREAM "send oops\\n\n", ERR_UNAVAIL, "oops", "a stream without events");
	fails(STREAM "body\n", ERR_UNAVAIL, "empty", "an empty stream");
	fails("head 200 application/json\nheader Content-Length: 0\nbody\n", ERR_UNAVAIL, "empty", "no bytes at all");
	fails("head 200 application/json\nsend {\"object\":\"list\"}\n", ERR_UNAVAIL, "malformed", "JSON of another kind");
	fails("head 200 application/json\nsend {\"choices\":[{\"message\":{\"content\":\"a\n", ERR_UNAVAIL, "neither JSON nor", "JSON that is cut");
	fails(STREAM "send data: {\"choices\":[{\"delta\":{\"content\":\"a\"\\ndata: {\"error\":{\"message\":\"read error\"}}\\n\\n\n", ERR_UNAVAIL,
	    "malformed", "an event put into another");
	fails(STREAM TEXT("a") "data {\"error\":{\"message\":\"overheated, key " KEY "\\\\nsorry\"}}\n", ERR_UNAVAIL, "overheated, key [key] sorry", "an error as an event");
	fails(STREAM TEXT("a") "data {\"error\":{\"message\":\"slow down\",\"code\":\"rate_limit_exceeded\"}}\n", ERR_BUSY, "slow down", "a limit as an event");
	fails(STREAM "send {\"error\":\"no such model\"}\\n\n", ERR_UNAVAIL, "no such model", "an error in place of a stream");
	fails(STREAM TEXT("a") "send event: error\\ndata: {\"message\":\"gone\"}\\n\\n\n", ERR_UNAVAIL, "gone", "an event named error");
	fails(STREAM TEXT("a") "data {\"choices\":[{\"delta\":{},\"finish_reason\":\"error\",\"error\":{\"message\":\"upstream\"}}]}\n" DONE, ERR_UNAVAIL,
	    "upstream", "an error in a choice");
	fails(STREAM "data [1]\n", ERR_UNAVAIL, "malformed", "an event that is no object");
}

static void
statuses(void)
{
	fails("head 401 application/json\nsend {\"error\":{\"message\":\"Incorrect API key provided: " KEY "\",\"type\":\"x\"}}\n", ERR_PERM,
	    "Incorrect API key provided: [key]", "401");
	fails("head 403 text/plain\nsend not for you\\n\n", ERR_PERM, "not for you", "403");
	fails("head 429 application/json\nheader Retry-After: 7\nsend {\"error\":{\"message\":\"slow\"}}\n", ERR_BUSY, "come back in 7 s: slow", "429");
	fails("head 429 application/json\nsend {\"error\":{\"message\":\"pay\",\"code\":\"insufficient_quota\"}}\n", ERR_UNAVAIL, "pay", "429 for a used-up quota");
	fails("head 503 text/html\nsend <html>\n", ERR_BUSY, "503", "503");
	fails("head 529 -\nbody\n", ERR_BUSY, "529", "529 without a body");
	fails("head 500 text/plain\nsend a\\x1b[31m\\n\\t\\x00 b\\n\n", ERR_UNAVAIL, "500: a [31m b", "500");
	fails("head 404 application/json\nsend {\"message\":\"no route\"}\n", ERR_UNAVAIL, "no route", "404");
	fails("head 302 -\nheader Location: http://127.0.0.1:1/elsewhere\nbody\n", ERR_UNAVAIL, "redirects", "a redirect is not followed");
	fails("head 204 -\nbody\n", ERR_UNAVAIL, "empty", "204");
}

static void
configured(void)
{
	char *good = config.base_url, *key = config.api_key;

	config.base_url = (char *)"http://192.0.2.1/v1";
	ask(true);
	ok(got.rc == -1 && got.e.code == ERR_CONFIG && strstr(got.e.msg, KEY) == NULL, "no key over http: to elsewhere: %s", got.e.msg);
	config.base_url = (char *)"http://127.evil.example/v1";
	ask(true);
	ok(got.rc == -1 && got.e.code == ERR_CONFIG, "nor to a name that looks like loopback: %s", got.e.msg);
	config.base_url = (char *)"http://127.0.0.1.1/v1";
	ask(true);
	ok(got.rc == -1 && got.e.code == ERR_CONFIG, "all of digits, too: %s", got.e.msg);
	config.base_url = (char *)"http://[::1]:1/v1";
	ask(true);
	ok(got.rc == -1 && got.e.code == ERR_UNAVAIL, "but to this host by IPv6: %s", got.e.msg);
	config.base_url = (char *)"https://me:secret-pw@example.com/v1";
	ask(true);
	ok(got.rc == -1 && got.e.code == ERR_CONFIG && strstr(got.e.msg, "secret-pw") == NULL, "no credentials in a URL: %s", got.e.msg);
	config.base_url = (char *)"file:///etc/passwd";
	ask(true);
	ok(got.rc == -1 && got.e.code == ERR_CONFIG, "no other protocol: %s", got.e.msg);
	config.base_url = (char *)"example.com";
	ask(true);
	ok(got.rc == -1 && got.e.code == ERR_CONFIG, "no URL: %s", got.e.msg);
	config.base_url = (char *)"http://127.0.0.1:1/v1";
	ask(true);
	ok(got.rc == -1 && got.e.code == ERR_UNAVAIL && strstr(got.e.msg, "127.0.0.1") != NULL, "nobody there: %s", got.e.msg);
	config.base_url = NULL;
	config.api_key = NULL;
	ask(true);
	ok(got.rc == -1 && got.e.code == ERR_PERM && strstr(got.e.msg, "OPENAI_API_KEY") != NULL, "no key: %s", got.e.msg);
	config.base_url = good;
	answers(STREAM TEXT("a") FINISH("stop") DONE, "a", "a server of one's own needs no key");
	ok(strcasestr(got.head, "authorization") == NULL, "and gets none");
	config.api_key = (char *)"bad\r\nX-Injected: 1";
	ask(true);
	ok(got.rc == -1 && got.e.code == ERR_CONFIG && strstr(got.e.msg, "Injected") == NULL, "a key is one word: %s", got.e.msg);
	config.api_key = key;
	config.base_url = xasprintf("%s/deployments/x/?api-version=1#f", good);
	answers(STREAM TEXT("a") FINISH("stop") DONE, "a", "a base URL may have a query");
	ok(strncmp(got.head, "POST /v1/deployments/x/chat/completions?api-version=1 HTTP", 58) == 0, "the path goes before it");
	free(config.base_url);
	config.base_url = good;
}

static void
waits(void)
{
	pid_t pid;
	int status, i;

	setenv("http_proxy", "http://127.0.0.1:1", 1);
	answers(STREAM TEXT("a") FINISH("stop") DONE, "a", "loopback is not asked for through a proxy");
	unsetenv("http_proxy");
	config.timeout = 0.3;
	fails(STREAM TEXT("a") "hold\n", ERR_UNAVAIL, "127.0.0.1", "a server that does not go on");
	fails("hold\n", ERR_UNAVAIL, "no answer from 127.0.0.1", "one that does not begin");
	config.timeout = 30;
	put_file("interrupt", "");
	unlink(in_dir("interrupt"));
	pid = fork();
	if (pid == 0) {
		run_catch_signals();
		call(STREAM TEXT("a") "touch interrupt\nhold\n", true);
		_exit(got.rc == -1 && got.e.code == ERR_UNAVAIL && strstr(got.e.msg, "interrupted") != NULL && got.took < 20 ? 0 : 1);
	}
	server_n++;
	for (i = 0; i < 2000 && access(in_dir("interrupt"), F_OK) < 0; i++)
		usleep(10000);
	kill(pid, SIGINT);
	waitpid(pid, &status, 0);
	is_int(status, 0, "a signal ends a call that waits");
}

static int
stop_at_b(void *arg, const char *text, size_t len, struct err *e)
{
	buf_add(arg, text, len);
	return memchr(text, 'b', len) != NULL ? err_set(e, ERR_IO, "disk full") : 0;
}

static void
reader_stops(void)
{
	struct llm_request r = { .config = &config, .stream = true };
	struct buf text = BUF_INIT;
	struct llm_reply reply;
	struct err e = ERR_INIT;
	char name[20];

	snprintf(name, sizeof(name), "%d", ++server_n);
	put_file(name, STREAM TEXT("a") TEXT("b") "hold\n");
	ok(llm_call(&r, stop_at_b, &text, &reply, &e) == -1 && e.code == ERR_IO, "the reader of the text can end the call: %s", e.msg);
	is_str(text.data, "ab", "at once");
	buf_release(&text);
	llm_reply_release(&reply);
}

/* ---- trying again ---- */

#define GOOD STREAM TEXT("yes") FINISH("stop") DONE
#define REFUSES(status, headers) "head " status " application/json\n" headers "send {\"error\":{\"message\":\"later\"}}\n"

static bool
asked(int n)
{
	char name[40];

	snprintf(name, sizeof(name), "%d.head", n);
	return access(in_dir(name), F_OK) == 0;
}

/* The first connection is answered by the script, those behind it well: how many there were, and at least `wait` seconds. */
static void
again(const char *script, int connections, double wait, const char *what)
{
	char name[20];
	int i, first = server_n + 1;

	for (i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "%d", first + i);
		put_file(name, i == 0 ? script : GOOD);
	}
	ask(true);
	for (i = 4; i >= 0 && !asked(first + i); i--) {
		snprintf(name, sizeof(name), "%d", first + i);
		unlink(in_dir(name));
	}
	i++;
	is_int(i, connections, "%s: connections", what);
	server_n += i;
	if (connections > 1)
		ok(got.rc == 0 && strcmp(got.text.data, "yes") == 0 && got.took >= wait, "%s: an answer, not before its time (%g s)", what, got.took);
	else
		ok(got.rc < 0 && got.took < 15, "%s: no answer: %s", what, got.e.msg);
}

static void
http_date(char *out, size_t size, double in)
{
	time_t t = (time_t)(clock_now() + in);
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(out, size, "head 429 -\nheader Retry-After: %a, %d %b %Y %H:%M:%S GMT\nbody\n", &tm);
}

static void
tried_again(void)
{
	static const char *const statuses_again[] = { "408", "409", "429", "500", "502", "503", "504", "529" };
	char script[400];
	size_t i;

	config.retries = 3;
	for (i = 0; i < sizeof(statuses_again) / sizeof(statuses_again[0]); i++) {
		snprintf(script, sizeof(script), "head %s -\nheader Retry-After: 0\nbody\n", statuses_again[i]);
		again(script, 2, 0, statuses_again[i]);
	}
	again(REFUSES("400", "header Retry-After: 0\n"), 1, 0, "a status that does not pass");
	again(REFUSES("401", "header Retry-After: 0\n"), 1, 0, "a key that is refused");
	again("head 429 application/json\nheader Retry-After: 0\nsend {\"error\":{\"message\":\"pay\",\"code\":\"insufficient_quota\"}}\n", 1, 0,
	    "a quota that is used up");
	again(REFUSES("400", "header x-should-retry: true\nheader Retry-After: 0\n"), 2, 0, "a server that wants to be asked again");
	again(REFUSES("503", "header x-should-retry: false\n"), 1, 0, "one that does not");
	again(REFUSES("429", "header Retry-After: 0.3\n"), 2, 0.3, "Retry-After with a fraction");
	again(REFUSES("429", "header retry-after-ms: 200\n"), 2, 0.2, "in milliseconds");
	again(REFUSES("429", "header Retry-After: 0\nheader Retry-After: 0.3\n"), 2, 0.3, "twice: the longer one");
	again(REFUSES("429", "header Retry-After: Wed, 21 Oct 2015 07:28:00 GMT\n"), 2, 0, "a date that is past");
	again(REFUSES("429", "header Retry-After: -1\n"), 2, 0.3, "a negative one is our own pause");
	again(REFUSES("429", "header Retry-After: soon\n"), 2, 0.3, "and so is a word");
	again(REFUSES("429", "header Retry-After: 1.2.3e\n"), 2, 0.3, "and what only begins as a number");
	again(REFUSES("429", "header Retry-After: 0.1.2\n"), 2, 0.3, "or as two");
	again(REFUSES("429", "header retry-after-ms: -200\n"), 2, 0.3, "milliseconds that are negative as well");
	again("head 429 application/json\nsend {\"error\":{\"code\":429,\"details\":[{},{\"retryDelay\":\"soon\"},{\"retryDelay\":\"0.9s\"}]}}\n", 2, 0.9,
	    "in the body, as Google has it");
	again(REFUSES("429", "header Retry-After: 99999999999999999999\n"), 1, 0, "one that is longer than there is time");
	ok(strstr(got.e.msg, "come back in 100000000000000000000 s") != NULL && got.e.code == ERR_BUSY, "is told: %s", got.e.msg);
	http_date(script, sizeof(script), 3600);
	again(script, 1, 0, "a date an hour ahead");
	ok(got.e.code == ERR_BUSY && strstr(got.e.msg, "come back in ") != NULL, "is told as well: %s", got.e.msg);
	http_date(script, sizeof(script), 1.5);
	again(script, 2, 0.2, "a date that comes");
	again("reset\n", 2, 0.3, "a connection that is dropped before anything came");
	again(STREAM "body\nreset\n", 2, 0.3, "and behind the head");
	again(STREAM TEXT("half") "reset\n", 1, 0, "not when text came");
	is_str(got.text.data, "half", "which was shown");
	again(STREAM TEXT("half"), 1, 0, "nor when the stream ended without its end");
}

/* A server that never does better: as often as told, and not longer than told. */
static void
gives_up(void)
{
	char *good = config.base_url;
	int before = server_n;

	put_file("any", REFUSES("503", "header Retry-After: 0\n"));
	config.retries = 2;
	ask(true);
	server_n += 3;
	ok(got.rc < 0 && got.e.code == ERR_BUSY && strstr(got.e.msg, "asked 3 times") != NULL, "retries are bounded: %s", got.e.msg);
	ok(asked(before + 3) && !asked(before + 4), "and counted");
	put_file("any", REFUSES("503", ""));
	config.retries = 1000;
	config.timeout = 1.2;
	ask(true);
	while (asked(server_n + 1))
		server_n++;
	ok(got.rc < 0 && got.took < 10, "one time limit for all of them: %s", got.e.msg);
	config.timeout = 30;
	config.retries = 1;
	config.base_url = (char *)"http://127.0.0.1:1/v1";
	ask(true);
	ok(got.rc < 0 && strstr(got.e.msg, "asked 2 times") != NULL, "a server that is not there is asked again: %s", got.e.msg);
	config.base_url = good;
	config.retries = -1;
	unlink(in_dir("any"));
}

/* Each limit by itself, small. */
static void
limits(void)
{
	config.first_byte_timeout = 0.3;
	fails("hold\n", ERR_UNAVAIL, "sent nothing for 0.3 seconds", "no first byte");
	answers(STREAM TEXT("a") "pause 600\n" TEXT("b") FINISH("stop") DONE, "ab", "the first byte's limit is over when it came");
	config.first_byte_timeout = 0;
	config.idle_timeout = 0.4;
	fails(STREAM TEXT("a") "hold\n", ERR_UNAVAIL, "sent nothing for 0.4 seconds", "silence in a stream");
	answers(STREAM TEXT("a") "pause 200\nsend : still here\\n\\n\npause 200\nsend : and here\\n\\n\npause 200\n" TEXT("b") FINISH("stop") DONE, "ab",
	    "a comment is no silence");
	config.idle_timeout = 0;
	config.timeout = 0.5;
	fails(STREAM TEXT("a") "pause 200\n" TEXT("b") "pause 200\n" TEXT("c") "pause 200\n" TEXT("d") "hold\n", ERR_UNAVAIL, "not complete within 0.5 seconds",
	    "all of it");
	config.timeout = 30;
	config.connect_timeout = 0.3;
	answers(GOOD, "yes", "a limit for connecting is not one for the answer");
	config.connect_timeout = 0;
}

int
main(void)
{
	start_server();
	requests();
	framing();
	contents();
	calls();
	cut_short();
	cut_anywhere();
	nonsense();
	statuses();
	tried_again();
	gives_up();
	limits();
	configured();
	waits();
	reader_stops();
	llm_reply_release(&got.reply);
	buf_release(&got.text);
	free(config.base_url);
	free(config.api_key);
	free(config.cacert);
	return done();
}

/*
 * Answers of every provider, frame by frame: the same result wherever the bytes are cut; and no success from a stream that is
 * cut off, mixed up or random.
 */
#include "tap.h"

#include "base/alloc.h"
#include "event/json.h"
#include "llm/provider.h"
#include "llm/reading.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define FRAMES 40

struct answer_case {
	const char *name;
	const struct provider *provider;
	const char *frames[FRAMES];	/* the last one ends the answer */
	const char *whole;		/* the same as one object; NULL: not tested */
	const char *text, *calls, *finish, *replay;	/* calls: "id name arguments|...", "*" for an id that was made up; replay: types */
	const char *model, *said_by;
	struct usage usage;
	bool checks_order;		/* the API numbers its frames, or tells the whole again at the end */
};

/* ---- one reading ---- */

static struct llm_config config = { .model = (char *)"asked", .temperature = -1, .api_key = (char *)"sk-0123456789abcdef" };

static struct outcome {
	int rc;
	struct err e;
	struct llm_reply reply;
	struct buf text;	/* what was given out as it came */
} got;

/* Pieces: up to `cut`, then `step` bytes at a time. */
struct pieces {
	const char *bytes;
	size_t len, cut, step, at;
};

static bool
next_piece(void *arg, const char **data, size_t *len)
{
	struct pieces *p = arg;
	size_t end = p->at < p->cut ? p->cut : p->at + p->step;

	if (end > p->len)
		end = p->len;
	*data = p->bytes + p->at;
	*len = end - p->at;
	p->at = end;
	return *len > 0;
}

static int
keep_text(void *arg, const char *text, size_t len, struct err *e)
{
	buf_add(&got.text, text, len);
	return 0;
}

static void
forget(void)
{
	llm_reply_release(&got.reply);
	buf_reset(&got.text);
	got.e = (struct err)ERR_INIT;
}

static void
read_bytes(const struct answer_case *c, const char *bytes, size_t len, size_t cut, size_t step, bool stream)
{
	struct pieces p = { bytes, len, cut, step, 0 };
	struct llm_request r = { .config = &config, .stream = stream };
	struct llm_sink sink = { keep_text, NULL };
	const char *type = !stream ? "application/json" : c->provider->api->lines ? "application/x-ndjson" : "text/event-stream";

	forget();
	got.rc = api_read(c->provider->api, &r, type, next_piece, &p, &sink, &got.reply, &got.e);
}

/* ---- what is wanted ---- */

static bool
calls_are(const char *want)
{
	struct buf all = BUF_INIT;
	bool good;
	size_t i;

	for (i = 0; i < got.reply.calls_n; i++)
		buf_addf(&all, "%s%s %s %s", i > 0 ? "|" : "", strncmp(want, "*", 1) == 0 ? "*" : got.reply.calls[i].id, got.reply.calls[i].name,
		    got.reply.calls[i].arguments);
	good = strcmp(all.data, want) == 0;
	if (!good)
		printf("# calls: %s\n", all.data);
	buf_release(&all);
	return good;
}

static bool
replay_is(const char *want)
{
	struct buf all = BUF_INIT;
	bool good;
	size_t i;

	for (i = 0; i < got.reply.replay.n; i++)
		buf_addf(&all, "%s%s", i > 0 ? " " : "", got.reply.replay.items[i]->type->last);
	good = strcmp(all.data, want) == 0;
	if (!good)
		printf("# replay: %s\n", all.data);
	buf_release(&all);
	return good;
}

static bool
is(const char *have, const char *want)
{
	return have == NULL || want == NULL ? have == want : strcmp(have, want) == 0;
}

static bool
as_wanted(const struct answer_case *c)
{
	return got.rc == 0 && is(got.reply.message, c->text) && calls_are(c->calls ? c->calls : "") && is(got.reply.finish_reason, c->finish) &&
	    replay_is(c->replay ? c->replay : "") && is(got.reply.model, c->model) && is(got.reply.provider, c->said_by) &&
	    memcmp(&got.reply.usage, &c->usage, sizeof(c->usage)) == 0 && strcmp(got.text.data, c->text ? c->text : "") == 0;
}

static void
show(void)
{
	printf("# rc %d: %s\n# text %s, finish %s, model %s, by %s, usage %g %g %g %g %g %g\n", got.rc, got.e.msg,
	    got.reply.message ? got.reply.message : "-", got.reply.finish_reason ? got.reply.finish_reason : "-",
	    got.reply.model ? got.reply.model : "-", got.reply.provider ? got.reply.provider : "-", got.reply.usage.prompt,
	    got.reply.usage.completion, got.reply.usage.total, got.reply.usage.cache_read, got.reply.usage.cache_creation,
	    got.reply.usage.thinking);
}

/* ---- bytes of frames ---- */

static size_t
count_frames(const struct answer_case *c)
{
	size_t n = 0;

	while (n < FRAMES && c->frames[n] != NULL)
		n++;
	return n;
}

static void
add_frame(struct buf *out, const struct answer_case *c, const char *frame)
{
	struct json_object *v = NULL;
	const char *type;

	if (c->provider->api->lines) {
		buf_addf(out, "%s\n", frame);
		return;
	}
	if (json_parse(&v, frame, strlen(frame), NULL) == 0 && (type = json_get_text(v, "type", NULL)) != NULL)
		buf_addf(out, "event: %s\n", type);
	buf_addf(out, "data: %s\n\n", frame);
	json_object_put(v);
}

static void
add_frames(struct buf *out, const struct answer_case *c, const char *const *frames, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		add_frame(out, c, frames[i]);
}

/* ---- the tests ---- */

static void
at_every_byte(const struct answer_case *c, const struct buf *all)
{
	size_t i, bad = 0;

	for (i = 1; i <= all->len; i++) {
		read_bytes(c, all->data, all->len, i, all->len, true);
		if (!as_wanted(c) && bad++ == 0)
			show();
	}
	ok(bad == 0, "%s: the same result wherever it is cut (%zu bytes)", c->name, all->len);
	read_bytes(c, all->data, all->len, 0, 1, true);
	ok(as_wanted(c), "%s: and byte by byte", c->name);
}

/* From the last frame's first byte on the end may be there: an event's last blank line is not waited for. */
static void
cut_off(const struct answer_case *c, const struct buf *all)
{
	struct buf last = BUF_INIT;
	size_t i, bad = 0, n = count_frames(c);

	add_frame(&last, c, c->frames[n - 1]);
	for (i = 0; i < all->len - last.len; i++) {
		read_bytes(c, all->data, i, i, 1, true);
		if (got.rc == 0 && bad++ == 0)
			printf("# cut off behind %zu bytes: %.*s\n", i, (int)i, all->data);
		if (got.rc < 0 && got.e.code != ERR_UNAVAIL && bad++ == 0)
			printf("# cut off behind %zu bytes: code %d: %s\n", i, got.e.code, got.e.msg);
	}
	ok(bad == 0, "%s: cut off it is no answer", c->name);
	for (; i < all->len; i++) {
		read_bytes(c, all->data, i, i, 1, true);
		if (got.rc == 0 && !as_wanted(c) && bad++ == 0)
			show();
	}
	ok(bad == 0, "%s: cut off in its last frame it is the answer or none", c->name);
	buf_release(&last);
}

static void
mixed_up(const struct answer_case *c)
{
	const char *frames[FRAMES + 1];
	struct buf bytes = BUF_INIT;
	size_t i, j, n = count_frames(c), bad = 0;

	for (i = 0; i + 1 < n; i++) {	/* the end comes too early: what is behind it is not waited for, and what is missing is missed */
		memcpy(frames, c->frames, sizeof(c->frames));
		frames[i] = c->frames[n - 1];
		buf_reset(&bytes);
		add_frames(&bytes, c, frames, i + 1);
		read_bytes(c, bytes.data, bytes.len, 0, 64, true);
		if (c->checks_order && got.rc == 0 && !as_wanted(c) && bad++ == 0)
			printf("# the end instead of frame %zu: %s\n", i, frames[i]);
	}
	for (i = 0; i + 1 < n; i++)
		for (j = i + 1; j < n; j++) {
			memcpy(frames, c->frames, sizeof(c->frames));
			frames[i] = c->frames[j];
			frames[j] = c->frames[i];
			buf_reset(&bytes);
			add_frames(&bytes, c, frames, n);
			read_bytes(c, bytes.data, bytes.len, 0, 64, true);
			if (c->checks_order && got.rc == 0 && !as_wanted(c) && bad++ == 0)
				printf("# frames %zu and %zu changed places: %s\n", i, j, c->frames[i]);
		}
	for (i = 0; i + 1 < n; i++) {
		memcpy(frames, c->frames, sizeof(c->frames[0]) * (i + 1));
		memcpy(frames + i + 1, c->frames + i, sizeof(c->frames[0]) * (n - i));
		buf_reset(&bytes);
		add_frames(&bytes, c, frames, n + 1);
		read_bytes(c, bytes.data, bytes.len, 0, 64, true);
		if (c->checks_order && got.rc == 0 && !as_wanted(c) && bad++ == 0)
			printf("# frame %zu came twice: %s\n", i, c->frames[i]);
	}
	ok(bad == 0, "%s: mixed up, lost and doubled frames give %s", c->name, c->checks_order ? "no wrong answer" : "no crash");
	buf_release(&bytes);
}

static unsigned
dice(unsigned *seed, unsigned sides)
{
	*seed = *seed * 1103515245u + 12345u;
	return (*seed >> 8) % sides;
}

/* Whatever it is, it is an answer whose calls have arguments that are JSON, or an error that says why. */
static void
random_bytes(const struct answer_case *c, const struct buf *all)
{
	unsigned seed = 1, round, i, n;
	int errors = dup(2), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct buf bytes = BUF_INIT;
	size_t bad = 0, k, at;
	const char *why;

	dup2(nowhere, 2);	/* a warning for most of them */
	for (round = 0; round < 3000; round++) {
		buf_reset(&bytes);
		buf_add(&bytes, all->data, all->len);
		n = 1 + dice(&seed, 4);
		for (i = 0; i < n; i++)
			bytes.data[dice(&seed, (unsigned)bytes.len)] = (char)dice(&seed, 3) == 0 ? (char)dice(&seed, 256) : "{}[]\",:\\0eE-\n"[dice(&seed, 13)];
		read_bytes(c, bytes.data, bytes.len, 0, 1 + dice(&seed, 200), dice(&seed, 4) != 0);
		for (k = 0; got.rc == 0 && k < got.reply.calls_n; k++)
			if (json_check(got.reply.calls[k].arguments, strlen(got.reply.calls[k].arguments), &at, &why) < 0)
				bad++;
		if ((got.rc < 0) != (got.e.code != ERR_NONE) || (got.rc < 0 && got.e.msg[0] == '\0'))
			bad++;
	}
	dup2(errors, 2);
	close(errors);
	close(nowhere);
	ok(bad == 0, "%s: spoilt bytes give an error or an answer that can be used", c->name);
	buf_release(&bytes);
}

static void
run_case(const struct answer_case *c)
{
	struct buf all = BUF_INIT;

	add_frames(&all, c, c->frames, count_frames(c));
	read_bytes(c, all.data, all.len, 0, all.len, true);
	if (!ok(as_wanted(c), "%s: a stream", c->name))
		show();
	at_every_byte(c, &all);
	cut_off(c, &all);
	mixed_up(c);
	random_bytes(c, &all);
	if (c->whole != NULL) {
		read_bytes(c, c->whole, strlen(c->whole), 0, 100, false);
		if (!ok(as_wanted(c), "%s: one object", c->name))
			show();
	}
	buf_release(&all);
}

/* An answer that is none: the end of its message, and its code. */
static void
refused(const struct answer_case *c, const char *const *frames, size_t n, enum err_code code, const char *says, const char *what)
{
	struct buf all = BUF_INIT;

	add_frames(&all, c, frames, n);
	read_bytes(c, all.data, all.len, 0, all.len, true);
	ok(got.rc < 0 && got.e.code == code && strstr(got.e.msg, says) != NULL, "%s: %s: %s", c->name, what, got.e.msg);
	buf_release(&all);
}
#define REFUSED(c, code, says, what, ...) do { \
	const char *const list[] = { __VA_ARGS__ }; \
	refused(c, list, sizeof(list) / sizeof(list[0]), code, says, what); \
} while (0)

/* A file as AG2 logs it, and its place in the response. */
static void
file_is(const char *media, const char *bytes, const char *what)
{
	struct json_object *data = json_get(json_object_array_get_idx(got.reply.files, 0), "data");
	struct buf line = BUF_INIT;

	is_str(json_get_text(json_get(data, "metadata"), "media_type", NULL), media, "%s: of its kind", what);
	is_str(json_get_text(json_get(data, "data"), "__bytes__", NULL), bytes, "%s: its bytes", what);
	build_response(&line, &(struct response){ .model = "m", .files = got.reply.files });
	ok(strstr(line.data, "\"files\": [{\"__dataclass__\": \"ag2.events.types.BinaryResult\", \"data\": {\"data\": {\"__bytes__\": ") != NULL &&
	    strstr(line.data, "\"files\": []") == NULL, "%s: in the response", what);
	buf_release(&line);
}

/* ---- anthropic ---- */

#define A_START "{\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-x\",\"content\":[]," \
	"\"stop_reason\":null,\"usage\":{\"input_tokens\":25,\"cache_creation_input_tokens\":3,\"cache_read_input_tokens\":7,\"output_tokens\":1}}}"
#define A_BLOCK(i, block) "{\"type\":\"content_block_start\",\"index\":" i ",\"content_block\":" block "}"
#define A_DELTA(i, delta) "{\"type\":\"content_block_delta\",\"index\":" i ",\"delta\":" delta "}"
#define A_TEXT(i, t) A_DELTA(i, "{\"type\":\"text_delta\",\"text\":\"" t "\"}")
#define A_JSON(i, t) A_DELTA(i, "{\"type\":\"input_json_delta\",\"partial_json\":\"" t "\"}")
#define A_END(i) "{\"type\":\"content_block_stop\",\"index\":" i "}"
#define A_WHY(why) "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" why "\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":15}}"
#define A_STOP "{\"type\":\"message_stop\"}"
#define A_PING "{\"type\":\"ping\"}"
#define A_USAGE { 25, 15, 40, 7, 3, -1 }
#define A_WHOLE(content, why) "{\"type\":\"message\",\"model\":\"claude-x\",\"content\":[" content "],\"stop_reason\":\"" why "\"," \
	"\"usage\":{\"input_tokens\":25,\"cache_creation_input_tokens\":3,\"cache_read_input_tokens\":7,\"output_tokens\":15}}"

static const struct answer_case anthropic_text = { .name = "anthropic text", .provider = &provider_anthropic,
	.frames = { A_START, A_BLOCK("0", "{\"type\":\"text\",\"text\":\"\"}"), A_PING, A_TEXT("0", "北 G"), A_TEXT("0", "r\\u00fc\\u00dfe"), A_END("0"),
		A_WHY("end_turn"), A_STOP },
	.whole = A_WHOLE("{\"type\":\"text\",\"text\":\"北 Grüße\"}", "end_turn"),
	.text = "北 Grüße", .finish = "end_turn", .model = "claude-x", .said_by = "anthropic", .usage = A_USAGE };

static const struct answer_case anthropic_tools = { .name = "anthropic tools", .provider = &provider_anthropic,
	.frames = { A_START, A_BLOCK("0", "{\"type\":\"text\",\"text\":\"\"}"), A_TEXT("0", "Let me look."), A_END("0"),
		A_BLOCK("1", "{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"f\",\"input\":{}}"), A_JSON("1", ""), A_JSON("1", "{\\\"city\\\":"),
		A_JSON("1", "\\\"Paris\\\"}"), A_END("1"),
		A_BLOCK("2", "{\"type\":\"tool_use\",\"id\":\"toolu_2\",\"name\":\"g\",\"input\":{}}"), A_END("2"), A_WHY("tool_use"), A_STOP },
	.whole = A_WHOLE("{\"type\":\"text\",\"text\":\"Let me look.\"},{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"f\",\"input\":{\"city\":\"Paris\"}},"
	    "{\"type\":\"tool_use\",\"id\":\"toolu_2\",\"name\":\"g\",\"input\":{}}", "tool_use"),
	.text = "Let me look.", .calls = "toolu_1 f {\"city\":\"Paris\"}|toolu_2 g {}", .finish = "tool_use", .model = "claude-x",
	.said_by = "anthropic", .usage = A_USAGE };

#define SEARCHED "{\"type\":\"web_search_tool_result\",\"tool_use_id\":\"srvtoolu_1\",\"content\":[{\"type\":\"web_search_result\",\"url\":\"https://e/\",\"title\":\"T\",\"encrypted_content\":\"x\",\"page_age\":null}]}"
static const struct answer_case anthropic_thinking = { .name = "anthropic thinking", .provider = &provider_anthropic,
	.frames = { A_START, A_BLOCK("0", "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}"),
		A_DELTA("0", "{\"type\":\"thinking_delta\",\"thinking\":\"Hm \"}"), A_DELTA("0", "{\"type\":\"thinking_delta\",\"thinking\":\"so\"}"),
		A_DELTA("0", "{\"type\":\"signature_delta\",\"signature\":\"c2ln\"}"), A_END("0"),
		A_BLOCK("1", "{\"type\":\"server_tool_use\",\"id\":\"srvtoolu_1\",\"name\":\"web_search\",\"input\":{}}"),
		A_JSON("1", "{\\\"query\\\":\\\"q\\\"}"), A_END("1"), A_BLOCK("2", SEARCHED), A_END("2"),
		A_BLOCK("3", "{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"f\",\"input\":{},\"caller\":{\"type\":\"direct\"}}"), A_JSON("3", "{}"), A_END("3"),
		A_WHY("tool_use"), A_STOP },
	.calls = "toolu_1 f {}", .finish = "tool_use", .replay = "AnthropicServerToolCallEvent AnthropicServerToolResultEvent",
	.model = "claude-x", .said_by = "anthropic", .usage = A_USAGE };

static void
anthropic(void)
{
	const struct answer_case *c = &anthropic_text;
	struct buf all = BUF_INIT;

	run_case(&anthropic_text);
	run_case(&anthropic_tools);
	run_case(&anthropic_thinking);
	add_frames(&all, &anthropic_thinking, anthropic_thinking.frames, count_frames(&anthropic_thinking));
	read_bytes(&anthropic_thinking, all.data, all.len, 0, all.len, true);
	is_str(got.reply.calls[0].vendor_metadata, "{\"caller\": {\"type\": \"direct\"}, \"thinking\": [{\"type\": \"thinking\", \"thinking\": \"Hm so\", "
	    "\"signature\": \"c2ln\"}]}", "thoughts are kept with the first call");
	is_str(json_get_text(json_get(json_get(event_data(got.reply.replay.items[0], NULL), "block"), "data"), "id", NULL), "srvtoolu_1",
	    "a tool of the provider is kept with its block");
	buf_release(&all);
	REFUSED(c, ERR_BUSY, "Overloaded", "an error in the stream that passes", A_START, A_BLOCK("0", "{\"type\":\"text\",\"text\":\"\"}"), A_TEXT("0", "a"),
	    "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}");
	REFUSED(c, ERR_UNAVAIL, "boom [key]", "one that does not, without the key", A_START,
	    "{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"boom sk-0123456789abcdef\"}}");
	REFUSED(c, ERR_UNAVAIL, "incomplete", "without message_stop", A_START, A_BLOCK("0", "{\"type\":\"text\",\"text\":\"a\"}"), A_END("0"), A_WHY("end_turn"));
	REFUSED(c, ERR_UNAVAIL, "before its end", "without a stop_reason", A_START, A_BLOCK("0", "{\"type\":\"text\",\"text\":\"a\"}"), A_END("0"), A_STOP);
	REFUSED(c, ERR_UNAVAIL, "before its end", "with a block that did not end", A_START, A_BLOCK("0", "{\"type\":\"text\",\"text\":\"a\"}"), A_WHY("end_turn"), A_STOP);
	REFUSED(c, ERR_UNAVAIL, "arguments of the call of 'f'", "arguments that are cut", A_START, A_BLOCK("0", "{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}"),
	    A_JSON("0", "{\\\"a\\\":"), A_END("0"), A_WHY("max_tokens"), A_STOP);
	REFUSED(c, ERR_UNAVAIL, "paused", "a turn that is paused", A_START, A_WHY("pause_turn"), A_STOP);
}

/* ---- openai ---- */

#define O(delta, why) "{\"model\":\"gpt-x\",\"choices\":[{\"index\":0,\"delta\":" delta ",\"finish_reason\":" why "}]}"
#define O_CALL(i, head, arguments) O("{\"tool_calls\":[{\"index\":" i "," head "\"function\":{" arguments "}}]}", "null")

/* Its last frame is the one that tells why it ends. */
static const struct answer_case openai_tools = { .name = "openai tools", .provider = &provider_openai,
	.frames = { O("{\"role\":\"assistant\",\"content\":\"Let \"}", "null"), O("{\"content\":\"me 北\"}", "null"),
		O_CALL("0", "\"id\":\"c1\",\"type\":\"function\",", "\"name\":\"f\",\"arguments\":\"\""), O_CALL("0", "", "\"arguments\":\"{\\\"a\\\":\""),
		O_CALL("0", "", "\"arguments\":\"1}\""), O_CALL("1", "\"id\":\"c2\",\"type\":\"function\",", "\"name\":\"g\",\"arguments\":\"{}\""),
		"{\"model\":\"gpt-x\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":5,\"total_tokens\":14,"
		"\"prompt_tokens_details\":{\"cached_tokens\":4},\"completion_tokens_details\":{\"reasoning_tokens\":2}}}", O("{}", "\"tool_calls\"") },
	.text = "Let me 北", .calls = "c1 f {\"a\":1}|c2 g {}", .finish = "tool_calls", .model = "gpt-x", .said_by = "openai",
	.usage = { 9, 5, 14, 4, -1, 2 } };

static void
openai_errors(const struct answer_case *c)
{
	REFUSED(c, ERR_BUSY, "too many", "an error in the stream whose code is a number", O("{\"content\":\"a\"}", "null"),
	    "{\"error\":{\"code\":429,\"message\":\"too many\"}}");
	REFUSED(c, ERR_UNAVAIL, "broke", "another one", O("{\"content\":\"a\"}", "null"), "{\"error\":{\"code\":500,\"message\":\"broke\"}}");
	REFUSED(c, ERR_UNAVAIL, "gone", "an error of one choice", "{\"choices\":[{\"index\":0,\"error\":{\"message\":\"gone\"},\"delta\":{}}]}");
	REFUSED(c, ERR_UNAVAIL, "behind its end", "a stream that goes on behind its end", O("{\"content\":\"a\"}", "null"), O("{}", "\"stop\""), O("{\"content\":\"a\"}", "null"));
	REFUSED(c, ERR_UNAVAIL, "behind its end", "and with a call", O("{}", "\"stop\""), O_CALL("0", "\"id\":\"c1\",", "\"name\":\"f\",\"arguments\":\"{}\""));
}

/* ---- openai-responses ---- */

#define R(n, type, more) "{\"type\":\"response." type "\",\"sequence_number\":" n more "}"
#define R_TEXT(n, t) R(n, "output_text.delta", ",\"item_id\":\"msg_1\",\"output_index\":1,\"content_index\":0,\"delta\":\"" t "\"")
#define R_DONE(n, item) R(n, "output_item.done", ",\"output_index\":0,\"item\":" item)
#define R_REASONING "{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"why\"}],\"encrypted_content\":\"gAAA\"}"
#define R_SEARCH "{\"id\":\"ws_1\",\"type\":\"web_search_call\",\"status\":\"completed\",\"action\":{\"type\":\"search\",\"query\":\"q\"}}"
#define R_MESSAGE(t) "{\"id\":\"msg_1\",\"type\":\"message\",\"status\":\"completed\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"" t "\",\"annotations\":[]}]}"
#define R_CALL(id, name, arguments) "{\"id\":\"fc_" id "\",\"type\":\"function_call\",\"status\":\"completed\",\"call_id\":\"" id "\",\"name\":\"" name "\",\"arguments\":\"" arguments "\"}"
#define R_ITEMS R_REASONING "," R_SEARCH "," R_MESSAGE("Let me 北") "," R_CALL("c1", "f", "{\\\"a\\\":1}") "," R_CALL("c2", "g", "{}")
#define R_RESPONSE(status, output, more) "{\"id\":\"resp_1\",\"object\":\"response\",\"status\":\"" status "\",\"model\":\"gpt-x\",\"error\":null,\"output\":[" output "]," \
	"\"usage\":{\"input_tokens\":9,\"input_tokens_details\":{\"cached_tokens\":4},\"output_tokens\":5,\"output_tokens_details\":{\"reasoning_tokens\":2},\"total_tokens\":14}" more "}"

static const struct answer_case responses_tools = { .name = "responses tools", .provider = &provider_openai_responses,
	.frames = { R("0", "created", ",\"response\":{\"status\":\"in_progress\"}"), R_DONE("1", R_REASONING), R_DONE("2", R_SEARCH), R_TEXT("3", "Let "),
		R_TEXT("4", "me 北"), R_DONE("5", R_MESSAGE("Let me 北")), R("6", "function_call_arguments.delta", ",\"delta\":\"{\""),
		R_DONE("7", R_CALL("c1", "f", "{\\\"a\\\":1}")), R_DONE("8", R_CALL("c2", "g", "{}")),
		R("9", "completed", ",\"response\":" R_RESPONSE("completed", R_ITEMS, "")) },
	.whole = R_RESPONSE("completed", R_ITEMS, ""),
	.text = "Let me 北", .calls = "c1 f {\"a\":1}|c2 g {}", .finish = "completed",
	.replay = "OpenAIReasoningEvent OpenAIServerToolCallEvent OpenAIServerToolResultEvent", .model = "gpt-x", .said_by = "openai",
	.usage = { 9, 5, 14, 4, -1, 2 }, .checks_order = true };

#define R_IMAGE R_RESPONSE("completed", "{\"id\":\"ig_1\",\"type\":\"image_generation_call\",\"status\":\"completed\",\"output_format\":\"webp\",\"result\":\"iVBORw==\"}", "")

/* Servers that leave out what they told already. */
static const struct answer_case responses_cut = { .name = "responses incomplete", .provider = &provider_openai_responses,
	.frames = { R_TEXT("3", "Let me"), R_DONE("5", R_MESSAGE("Let me")),
		R("9", "incomplete", ",\"response\":" R_RESPONSE("incomplete", "", ",\"incomplete_details\":{\"reason\":\"max_output_tokens\"}")) },
	.text = "Let me", .finish = "max_output_tokens", .model = "gpt-x", .said_by = "openai", .usage = { 9, 5, 14, 4, -1, 2 } };

static void
responses_image(void)
{
	REFUSED(&responses_tools, ERR_UNAVAIL, "not ended", "a response that was cancelled",
	    R("1", "completed", ",\"response\":" R_RESPONSE("cancelled", "", "")));
	read_bytes(&responses_tools, R_IMAGE, strlen(R_IMAGE), 0, 50, false);
	ok(got.rc == 0 && got.reply.message == NULL, "responses: an image alone is an answer: %s", got.e.msg);
	file_is("image/webp", "iVBORw==", "responses");
	is_str(json_get_text(json_get(json_get(json_object_array_get_idx(got.reply.files, 0), "data"), "metadata"), "id", NULL), "ig_1", "with what is known of it");
	ok(replay_is("OpenAIServerToolCallEvent OpenAIServerToolResultEvent"), "and the call that made it");
}

static void
responses(void)
{
	const struct answer_case *c = &responses_tools;
	struct json_object *item;
	struct buf all = BUF_INIT;

	responses_image();
	run_case(&responses_tools);
	run_case(&responses_cut);
	add_frames(&all, c, c->frames, count_frames(c));
	read_bytes(c, all.data, all.len, 0, all.len, true);
	item = json_get(event_data(got.reply.replay.items[0], NULL), "item");
	is_str(json_get_text(item, "__pydantic__", NULL), "openai.types.responses.response_reasoning_item.ResponseReasoningItem",
	    "a reasoning item is kept as AG2 keeps it");
	is_str(json_get_text(json_get(item, "data"), "encrypted_content", NULL), "gAAA", "with its content");
	ok(json_object_object_get_ex(json_get(item, "data"), "status", NULL), "and every member of its class");
	buf_release(&all);
	REFUSED(c, ERR_UNAVAIL, "not the whole", "a piece of text that is lost", R_TEXT("1", "Let "),
	    R("9", "completed", ",\"response\":" R_RESPONSE("completed", R_MESSAGE("Let me"), "")));
	REFUSED(c, ERR_BUSY, "slow down", "a failure that passes",
	    R("1", "failed", ",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"slow down\"}}"));
	REFUSED(c, ERR_BUSY, "slow down", "an error event that passes",
	    "{\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"slow down\",\"param\":null,\"sequence_number\":1}");
	REFUSED(c, ERR_UNAVAIL, "boom", "an error event", "{\"type\":\"error\",\"code\":\"server_error\",\"message\":\"boom\",\"param\":null,\"sequence_number\":1}");
	REFUSED(c, ERR_UNAVAIL, "arguments of the call of 'f'", "arguments that are cut",
	    R("9", "incomplete", ",\"response\":" R_RESPONSE("incomplete", R_CALL("c1", "f", "{\\\"a"), ",\"incomplete_details\":{\"reason\":\"max_output_tokens\"}")));
}

/* ---- gemini ---- */

#define G(parts, more) "{\"candidates\":[{\"content\":{\"parts\":[" parts "],\"role\":\"model\"},\"index\":0" more "}],\"modelVersion\":\"gemini-x\"}"
#define G_USAGE "\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":5,\"totalTokenCount\":16,\"cachedContentTokenCount\":4,\"thoughtsTokenCount\":2}"
#define G_END "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\"}],\"role\":\"model\"},\"finishReason\":\"STOP\",\"index\":0}]," G_USAGE ",\"modelVersion\":\"gemini-x\"}"
#define G_F "{\"functionCall\":{\"id\":\"c1\",\"name\":\"f\",\"args\":{\"a\":1}},\"thoughtSignature\":\"c2l-_w==\"}"

static const struct answer_case gemini_tools = { .name = "gemini tools", .provider = &provider_gemini,
	.frames = { G("{\"text\":\"hm\",\"thought\":true}", ""), G("{\"text\":\"Let \"}", ""), G("{\"text\":\"me 北\"}", ""),
		G("{\"executableCode\":{\"language\":\"PYTHON\",\"code\":\"1+1\"}},{\"codeExecutionResult\":{\"outcome\":\"OUTCOME_OK\",\"output\":\"2\"}}", ""),
		G(G_F ",{\"functionCall\":{\"id\":\"c2\",\"name\":\"g\",\"args\":{}}}", ""), G_END },
	.whole = "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Let me 北\"},{\"executableCode\":{\"language\":\"PYTHON\",\"code\":\"1+1\"}},"
	    "{\"codeExecutionResult\":{\"outcome\":\"OUTCOME_OK\",\"output\":\"2\"}}," G_F ",{\"functionCall\":{\"id\":\"c2\",\"name\":\"g\",\"args\":{}}}],"
	    "\"role\":\"model\"},\"finishReason\":\"STOP\"}]," G_USAGE ",\"modelVersion\":\"gemini-x\"}",
	.text = "Let me 北", .calls = "c1 f {\"a\":1}|c2 g {}", .finish = "STOP", .replay = "GeminiServerToolCallEvent GeminiServerToolResultEvent",
	.model = "gemini-x", .said_by = "gemini", .usage = { 9, 5, 16, 4, -1, 2 } };

static const struct answer_case gemini_image = { .name = "gemini image", .provider = &provider_gemini,
	.frames = { G("{\"text\":\"Here: \"}", ""), G("{\"inlineData\":{\"mimeType\":\"image/png\",\"data\":\"+_-_\"}}", ""), G_END },
	.text = "Here: ", .finish = "STOP", .model = "gemini-x", .said_by = "gemini", .usage = { 9, 5, 16, 4, -1, 2 } };

static void
gemini(void)
{
	const struct answer_case *c = &gemini_tools;
	struct buf all = BUF_INIT;

	run_case(&gemini_image);
	add_frames(&all, &gemini_image, gemini_image.frames, count_frames(&gemini_image));
	read_bytes(&gemini_image, all.data, all.len, 0, all.len, true);
	file_is("image/png", "+/+/", "an image");
	buf_reset(&all);

	run_case(c);
	add_frames(&all, c, c->frames, count_frames(c));
	read_bytes(c, all.data, all.len, 0, all.len, true);
	is_str(got.reply.calls[0].signature, "c2l+/w==", "a thought signature is kept, in the base64 of AG2");
	buf_reset(&all);
	build_call(&all, &got.reply.calls[0]);
	ok(strstr(all.data, "ag2.config.gemini.events.GeminiToolCallEvent") != NULL && strstr(all.data, "\"thought_signature\": {\"__bytes__\": \"c2l+/w==\"}") != NULL,
	    "in an event of AG2's class");
	buf_release(&all);
	REFUSED(c, ERR_BUSY, "exhausted", "an error in the stream", G("{\"text\":\"a\"}", ""),
	    "{\"error\":{\"code\":429,\"message\":\"exhausted\",\"status\":\"RESOURCE_EXHAUSTED\"}}");
	REFUSED(c, ERR_UNAVAIL, "MALFORMED_FUNCTION_CALL", "a call that the model got wrong", G("", ",\"finishReason\":\"MALFORMED_FUNCTION_CALL\""));
	REFUSED(c, ERR_UNAVAIL, "behind its end", "a stream that comes twice", G("{\"text\":\"a\"}", ""), G_END, G("{\"text\":\"a\"}", ""), G_END);
	REFUSED(c, ERR_UNAVAIL, "blocked the prompt (SAFETY)", "a prompt that is blocked", "{\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}");
}

/* ---- ollama ---- */

#define L(message) "{\"model\":\"llama-x\",\"created_at\":\"2026-01-01T00:00:00Z\",\"message\":" message ",\"done\":false}"
#define L_END "{\"model\":\"llama-x\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done_reason\":\"stop\",\"done\":true,\"prompt_eval_count\":9,\"eval_count\":5}"

static const struct answer_case ollama_tools = { .name = "ollama tools", .provider = &provider_ollama,
	.frames = { L("{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"hm\"}"), L("{\"role\":\"assistant\",\"content\":\"Let \"}"),
		L("{\"role\":\"assistant\",\"content\":\"me 北\"}"),
		L("{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"a\":1}}},{\"function\":{\"name\":\"g\",\"arguments\":{}}}]}"),
		L_END },
	.whole = "{\"model\":\"llama-x\",\"message\":{\"role\":\"assistant\",\"content\":\"Let me 北\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"a\":1}}},"
	    "{\"function\":{\"name\":\"g\",\"arguments\":{}}}]},\"done_reason\":\"stop\",\"done\":true,\"prompt_eval_count\":9,\"eval_count\":5}",
	.text = "Let me 北", .calls = "* f {\"a\":1}|* g {}", .finish = "stop", .model = "llama-x", .said_by = "ollama", .usage = { 9, 5, 14, -1, -1, -1 } };

static void
ollama(void)
{
	const struct answer_case *c = &ollama_tools;
	struct buf all = BUF_INIT;

	run_case(c);
	buf_adds(&all, "\xef\xbb\xbf");
	add_frames(&all, c, c->frames, count_frames(c));
	read_bytes(c, all.data, all.len, 0, 1, true);
	ok(as_wanted(c), "a byte order mark before lines is accepted");
	buf_release(&all);
	REFUSED(c, ERR_UNAVAIL, "out of memory", "an error in the stream", L("{\"content\":\"a\"}"), "{\"error\":\"out of memory\"}");
	REFUSED(c, ERR_UNAVAIL, "incomplete", "without done", L("{\"content\":\"a\"}"));
}

/* ---- characters whose halves are in two frames ---- */

#define O_DELTA(delta) "{\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{" delta "}}]}"
#define O_TEXT(t) O_DELTA("\"content\":\"" t "\"")
#define O_JSON(start, t) O_DELTA("\"tool_calls\":[{\"index\":0," start "\"function\":{" t "}}]")
#define O_WHY(why) "{\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" why "\"}]}"

static const struct answer_case openai_halves = { .name = "openai, halves of characters", .provider = &provider_openai,
	.frames = { O_TEXT("a\\ud83d"), O_TEXT("\\ude00b\\ude00\\ud83d"), O_TEXT(""), O_TEXT("c\\ud83d"),
		O_JSON("\"id\":\"1\",", "\"name\":\"f\",\"arguments\":\"{\\\"q\\\":\\\"\\ud83d\""), O_JSON("", "\"arguments\":\"\\ude00\\ud83d\\\"}\""),
		O_WHY("tool_calls") },
	.text = "a\U0001f600b\ufffd\ufffdc\ufffd", .calls = "1 f {\"q\":\"\U0001f600\ufffd\"}", .finish = "tool_calls", .model = "m", .said_by = "openai",
	.usage = USAGE_NONE };

static const struct answer_case anthropic_halves = { .name = "anthropic, halves of characters", .provider = &provider_anthropic,
	.frames = { A_START, A_BLOCK("0", "{\"type\":\"text\",\"text\":\"\"}"), A_TEXT("0", "a\\ud83d"), A_PING, A_TEXT("0", "\\ude00\\ud83d"), A_END("0"),
		A_BLOCK("1", "{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"f\",\"input\":{}}"), A_JSON("1", "{\\\"q\\\":\\\"\\ud83d"),
		A_JSON("1", "\\ude00\\\"}"), A_END("1"), A_WHY("tool_use"), A_STOP },
	.text = "a\U0001f600\ufffd", .calls = "1 f {\"q\":\"\U0001f600\"}", .finish = "tool_use", .model = "claude-x", .said_by = "anthropic",
	.usage = A_USAGE };

static const struct answer_case responses_halves = { .name = "responses, halves of characters", .provider = &provider_openai_responses,
	.frames = { R_TEXT("3", "a\\ud83d"), R_TEXT("4", "\\ude00\\ud83d"), R_DONE("5", R_MESSAGE("a\\ud83d\\ude00\\ud83d")),
		R("9", "completed", ",\"response\":" R_RESPONSE("completed", R_MESSAGE("a\\ud83d\\ude00\\ud83d"), "")) },
	.text = "a\U0001f600\ufffd", .finish = "completed", .model = "gpt-x", .said_by = "openai", .usage = { 9, 5, 14, 4, -1, 2 } };

static const struct answer_case gemini_halves = { .name = "gemini, halves of characters", .provider = &provider_gemini,
	.frames = { G("{\"text\":\"a\\ud83d\"}", ""), G("{\"text\":\"\\ude00\\ud83d\"}", ""), G_END },
	.text = "a\U0001f600\ufffd", .finish = "STOP", .model = "gemini-x", .said_by = "gemini", .usage = { 9, 5, 16, 4, -1, 2 } };

static const struct answer_case ollama_halves = { .name = "ollama, halves of characters", .provider = &provider_ollama,
	.frames = { L("{\"role\":\"assistant\",\"content\":\"a\\ud83d\"}"), L("{\"role\":\"assistant\",\"content\":\"\\ude00\\ud83d\"}"), L_END },
	.text = "a\U0001f600\ufffd", .finish = "stop", .model = "llama-x", .said_by = "ollama", .usage = { 9, 5, 14, -1, -1, -1 } };

static void
halves(const struct answer_case *c)
{
	struct buf all = BUF_INIT;

	add_frames(&all, c, c->frames, count_frames(c));
	read_bytes(c, all.data, all.len, 0, all.len, true);
	if (!ok(as_wanted(c), "%s: joined where they meet", c->name))
		show();
	at_every_byte(c, &all);
	buf_release(&all);
}

int
main(void)
{
	run_case(&openai_tools);
	openai_errors(&openai_tools);
	responses();
	anthropic();
	gemini();
	ollama();
	halves(&openai_halves);
	halves(&anthropic_halves);
	halves(&responses_halves);
	halves(&gemini_halves);
	halves(&ollama_halves);
	forget();
	buf_release(&got.text);
	return done();
}

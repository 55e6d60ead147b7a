/*
 * A stream is read with the same result whether frames that are like the one before are taken apart or not: of every provider,
 * with pieces of text of all kinds, numbers that change, and frames that are spoilt, doubled, lost or out of place.
 * SOAK=1: a hundred times as many.
 */
#include "tap.h"

#include "event/json.h"
#include "llm/provider.h"
#include "llm/reading.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned seed = 1;

static unsigned
dice(unsigned sides)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 8) % sides;
}

#define PICK(list) (list)[dice(sizeof(list) / sizeof((list)[0]))]

/* ---- frames ---- */

/* What stands between the quotes of a piece of text. */
static const char *
text(void)
{
	static const char *const plain[] = { "a", " word", "b c", "\\n", "", "x", "The ", " end." };
	static const char *const others[] = { "北", "\xc3\xa9", "\\u5317", "\\ud83d\\ude00", "\\ud83d", "\\ude00", "\\\"", "\\\\", "\\/", "\\u0000", "\\u0061",
		"\\x", "\\u12", "\xff", "\xe5\x8c", "\x01", "\t", "\"", "a\",\"b\":\"", "[key]", "0123456789abcdef0123456789abcdef", "\\", "sk-0123456789" };

	return dice(3) > 0 ? PICK(plain) : PICK(others);
}

static const char *
count(void)
{
	static const char *const counts[] = { "1", "2", "3", "40", "5.5", "1e3", "-1", "0", "00", "1.", "null", "\"7\"", "123456789012345678901234567890", "[]", "true" };

	return dice(2) > 0 ? counts[dice(4)] : PICK(counts);
}

static const char *
unread(void)
{
	static const char *const values[] = { "\"a\"", "\"b\"", "\"\"", "\"\\u0041\"", "\"\\q\"", "\"\xff\"", "17", "1a", "null", "{}", "\"x\",\"error\":{\"message\":\"e\"}" };

	return dice(2) > 0 ? values[dice(3)] : PICK(values);
}

/* The numbers of events: mostly they rise. */
static unsigned
number(unsigned *n)
{
	*n += dice(30) > 0 ? 1 + dice(2) : 0;
	return *n;
}

static void
openai_frame(struct buf *out, unsigned *n)
{
	static const char *const others[] = { "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}",
		"{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"other\"}},{\"index\":0,\"delta\":{\"content\":\"this\"}}]}",
		"{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"this\"}},{\"index\":0,\"delta\":{\"content\":\"this\"}}]}",
		"{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\",\"content\":\"b\"}}]}", "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\",\"content\":\"b\"}}]}",
		"{\"choices\":[{\"index\":0,\"delta\":{\"refusal\":\"no\",\"content\":\"c\"}}]}", "{\"error\":{\"message\":\"bad\"}}", "{}", "[]", "7" };
	static const char *const ends[] = { "null", "null", "null", "null", "null", "null", "null", "\"stop\"", "\"length\"" };

	if (dice(12) == 0)
		buf_adds(out, PICK(others));
	else if (dice(12) == 0)
		buf_addf(out, "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%s\",\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\","
		    "\"arguments\":\"1\"}}]}}]}", text());
	else if (dice(2) == 0)
		buf_addf(out, "{\"id\":\"i\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%s\"},\"finish_reason\":%s}],\"obfuscation\":%s}", text(),
		    dice(20) > 0 ? "null" : PICK(ends), unread());
	else
		buf_addf(out, "{\"created\":%u,\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%s\"}}],\"usage\":{\"prompt_tokens\":%s,\"completion_tokens\":%s,"
		    "\"total_tokens\":%u}}", ++*n, text(), dice(9) > 0 ? "3" : count(), count(), dice(9));
}

static void
responses_frame(struct buf *out, unsigned *n)
{
	static const char *const others[] = { "{\"type\":\"response.output_text.delta\",\"delta\":\"unnumbered\"}", "{\"type\":\"response.output_text.delta\",\"delta\":\"x\"}",
		"{\"type\":\"response.output_text.delta\",\"sequence_number\":-5,\"delta\":\"x\"}", "{\"type\":\"response.output_text.delta\",\"sequence_number\":-5,\"delta\":\"y\"}",
		"{\"type\":\"response.output_text.delta\",\"sequence_number\":99999,\"sequence_number\":1,\"delta\":\"x\"}",
		"{\"type\":\"response.output_text.delta\",\"sequence_number\":1.5,\"delta\":\"x\"}", "{\"type\":\"response.in_progress\"}" };

	if (dice(25) == 0)
		buf_adds(out, PICK(others));
	else
		buf_addf(out, "{\"type\":\"response.output_text.delta\",\"sequence_number\":%u,\"delta\":\"%s\",\"obfuscation\":%s}", number(n), text(),
		    dice(5) > 0 ? "\"o\"" : unread());
}

static void
anthropic_frame(struct buf *out, unsigned *n)
{
	static const char *const others[] = { "{\"type\":\"ping\"}", "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"t\"}}",
		"{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"t\"}}", "{\"type\":\"content_block_stop\",\"index\":0}",
		"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}}" };

	if (dice(30) == 0)
		buf_adds(out, PICK(others));
	else if (dice(20) == 0)
		buf_addf(out, "{\"index\":0, \"delta\":{\"type\":\"text_delta\",\"text\":\"%s\"},\"type\":\"content_block_delta\"}", text());
	else
		buf_addf(out, "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"%s\"}}", text());
}

/* Of a call's arguments, and of thoughts. */
static void
anthropic_call_frame(struct buf *out, unsigned *n)
{
	static const char *const others[] = { "{\"type\":\"ping\"}", "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"t\"}}",
		"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"t\"}}",
		"{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"a\"}}" };

	if (dice(40) == 0)
		buf_adds(out, PICK(others));
	else
		buf_addf(out, "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"%s\"}}", text());
}

static void
anthropic_thought_frame(struct buf *out, unsigned *n)
{
	static const char *const others[] = { "{\"type\":\"ping\"}", "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"s\"}}",
		"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}}",
		"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"t\"}}" };

	if (dice(30) == 0)
		buf_adds(out, PICK(others));
	else
		buf_addf(out, "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"%s\"}}", text());
}

static void
openai_call_frame(struct buf *out, unsigned *n)
{
	static const char *const others[] = { "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"d\",\"function\":{\"name\":\"g\",\"arguments\":\"1\"}}]}}]}",
		"{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"z\"}}]}}]}", "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"said\"}}]}",
		"{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"y\"}},{\"index\":0,\"function\":{\"arguments\":\"y\"}}]}}]}" };
	unsigned kind = dice(40);

	if (kind == 0)
		buf_adds(out, PICK(others));
	else if (kind < 8)
		buf_addf(out, "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\",\"reasoning_content\":\"%s\"}}],\"obfuscation\":%s}", text(), unread());
	else if (kind < 12)
		buf_addf(out, "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"%s\"}}],\"content\":\"%s\"}}]}", text(),
		    dice(4) > 0 ? "" : text());
	else
		buf_addf(out, "{\"created\":%u,\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"%s\"}}]}}],\"usage\":{\"prompt_tokens\":%s}}", ++*n,
		    text(), count());
}

static void
gemini_frame(struct buf *out, unsigned *n)
{
	static const char *const others[] = { "{\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"f\",\"args\":{}}}]}}]}",
		"{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"t\",\"thought\":true}]}}]}", "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"u\",\"thought\":true}]}}]}",
		"{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"p\"},{\"text\":\"q\"}]}}]}", "{\"candidates\":[{\"content\":{\"parts\":[{\"executableCode\":{\"code\":\"1\"}}]}}]}" };

	if (dice(15) == 0)
		buf_adds(out, PICK(others));
	else
		buf_addf(out, "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"%s\"}],\"role\":\"model\"},\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":3,"
		    "\"candidatesTokenCount\":%s,\"totalTokenCount\":%u%s},\"responseId\":%s}", text(), count(), ++*n, dice(9) > 0 ? "" : ",\"thoughtsTokenCount\":4",
		    dice(5) > 0 ? "\"r\"" : unread());
}

static void
ollama_frame(struct buf *out, unsigned *n)
{
	static const char *const others[] = { "{\"message\":{\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{}}}]},\"done\":false}", "",
		"{\"message\":{\"content\":\"no end\"}}", "{\"error\":\"out of memory\"}", "{\"message\":{\"content\":\"t\",\"tool_calls\":[]},\"done\":false} " };

	if (dice(15) == 0)
		buf_adds(out, PICK(others));
	else if (dice(9) == 0)
		buf_addf(out, "{\"message\":{\"content\":\"%s\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{}}}]},\"done\":false}", text());
	else
		buf_addf(out, "{\"model\":\"m\",\"created_at\":\"2026-%02u\",\"message\":{\"role\":\"assistant\",\"content\":\"%s\"},\"done\":false}", ++*n % 100, text());
}

#define LINES 6

static const struct maker {
	const char *name;
	const struct provider *provider;
	void (*frame)(struct buf *out, unsigned *n);
	const char *begin[LINES], *end[LINES];
} makers[] = {
	{ "openai", &provider_openai, openai_frame, { NULL }, { "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}" } },
	{ "openai-responses", &provider_openai_responses, responses_frame, { NULL }, { NULL } },
	{ "anthropic", &provider_anthropic, anthropic_frame, { "{\"type\":\"message_start\",\"message\":{\"model\":\"c\",\"usage\":{\"input_tokens\":2}}}",
		"{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}" },
		{ "{\"type\":\"content_block_stop\",\"index\":0}", "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":3}}",
		"{\"type\":\"message_stop\"}" } },
	{ "anthropic, a call", &provider_anthropic, anthropic_call_frame, { "{\"type\":\"message_start\",\"message\":{\"model\":\"c\",\"usage\":{\"input_tokens\":2}}}",
		"{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}}",
		"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":\\\"\"}}" },
		{ "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"\\\"}\"}}",
		"{\"type\":\"content_block_stop\",\"index\":0}", "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":3}}",
		"{\"type\":\"message_stop\"}" } },
	{ "anthropic, a thought", &provider_anthropic, anthropic_thought_frame, { "{\"type\":\"message_start\",\"message\":{\"model\":\"c\",\"usage\":{\"input_tokens\":2}}}",
		"{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}" },
		{ "{\"type\":\"content_block_stop\",\"index\":0}",
		"{\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}}", "{\"type\":\"content_block_stop\",\"index\":1}",
		"{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":3}}", "{\"type\":\"message_stop\"}" } },
	{ "openai, a call", &provider_openai, openai_call_frame,
		{ "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"\\\"\"}}]}}]}" },
		{ "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\"\"}}]}}]}",
		"{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}" } },
	{ "gemini", &provider_gemini, gemini_frame, { NULL }, { "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\"}]},\"finishReason\":\"STOP\",\"index\":0}]}" } },
	{ "ollama", &provider_ollama, ollama_frame, { NULL }, { "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"eval_count\":4}" } },
};
#define MAKERS (sizeof(makers) / sizeof(makers[0]))

/* ---- streams ---- */

static void
add_line(struct buf *out, const struct maker *m, const char *frame)
{
	if (m->provider->api->lines)
		buf_addf(out, "%s\n", frame);
	else
		buf_addf(out, "%sdata: %s\n\n", dice(40) == 0 ? "event: error\n" : "", frame);
}

/* Runs of frames that are much the same: a run goes on with the same dice. */
static void
make_stream(struct buf *out, const struct maker *m)
{
	struct buf frame = BUF_INIT;
	unsigned n = 0, frames = 4 + dice(24), i, times;

	buf_reset(out);
	for (i = 0; i < LINES && m->begin[i] != NULL; i++)
		add_line(out, m, m->begin[i]);
	while (frames-- > 0) {
		buf_reset(&frame);
		m->frame(&frame, &n);
		for (times = dice(25) == 0 ? 2 : dice(40) == 0 ? 0 : 1; times > 0; times--)
			add_line(out, m, frame.data);
	}
	for (i = 0; i < LINES && m->end[i] != NULL; i++)
		add_line(out, m, m->end[i]);
	for (i = dice(4) == 0 ? 1 + dice(3) : 0; i > 0; i--)
		out->data[dice((unsigned)out->len)] = (char)dice(3) == 0 ? (char)dice(256) : "{}[]\",:\\0e-\n1"[dice(13)];
	if (dice(10) == 0)
		out->len = dice((unsigned)out->len);
	buf_release(&frame);
}

/* ---- readings ---- */

struct outcome {
	int rc;
	struct err e;
	struct llm_reply reply;
	struct buf text;
};

struct pieces {
	const struct buf *bytes;
	size_t at, step;
};

static bool
next_piece(void *arg, const char **data, size_t *len)
{
	struct pieces *p = arg;

	*data = p->bytes->data + p->at;
	*len = p->bytes->len - p->at < p->step ? p->bytes->len - p->at : p->step;
	p->at += *len;
	return *len > 0;
}

static int
keep_text(void *arg, const char *bytes, size_t len, struct err *e)
{
	buf_add(arg, bytes, len);
	return 0;
}

static void
read_stream(struct outcome *o, const struct api *api, const struct buf *bytes, size_t step)
{
	static const struct llm_config config = { .model = (char *)"asked", .temperature = -1, .api_key = (char *)"sk-0123456789abcdef" };
	struct pieces p = { bytes, 0, step };
	struct llm_request r = { .config = &config, .stream = true };
	struct llm_sink sink = { keep_text, &o->text };

	*o = (struct outcome){ .e = ERR_INIT, .text = BUF_INIT };
	o->rc = api_read(api, &r, api->lines ? "application/x-ndjson" : "text/event-stream", next_piece, &p, &sink, &o->reply, &o->e);
}

static void
release(struct outcome *o)
{
	if (o->rc == 0)
		llm_reply_release(&o->reply);
	buf_release(&o->text);
}

static bool
is(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool
same_reply(const struct llm_reply *a, const struct llm_reply *b)
{
	size_t i;

	if (a->message_len != b->message_len || (a->message_len > 0 && memcmp(a->message, b->message, a->message_len) != 0) || a->calls_n != b->calls_n ||
	    !is(a->model, b->model) || !is(a->finish_reason, b->finish_reason) || memcmp(&a->usage, &b->usage, sizeof(a->usage)) != 0 ||
	    a->has_usage != b->has_usage || a->replay.n != b->replay.n)
		return false;
	for (i = 0; i < a->calls_n; i++)	/* ids may be made up */
		if (!is(a->calls[i].name, b->calls[i].name) || !is(a->calls[i].arguments, b->calls[i].arguments) ||
		    !is(a->calls[i].vendor_metadata, b->calls[i].vendor_metadata))
			return false;
	return true;
}

static bool
same(const struct outcome *a, const struct outcome *b)
{
	return a->rc == b->rc && a->e.code == b->e.code && strcmp(a->e.msg, b->e.msg) == 0 && a->text.len == b->text.len &&
	    memcmp(a->text.data, b->text.data, a->text.len) == 0 && (a->rc < 0 || same_reply(&a->reply, &b->reply));
}

/* This API tells all of the text again at the end. */
static void
end_responses(struct buf *bytes)
{
	struct outcome o;

	read_stream(&o, provider_openai_responses.api, bytes, 100);
	buf_adds(bytes, "\n\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":["
	    "{\"type\":\"output_text\",\"text\":");
	json_write_string(bytes, o.text.data, o.text.len, JSON_COMPACT);
	buf_adds(bytes, "}]}]}}\n\n");
	release(&o);
}

/* The number of differences; *good counts the answers. */
static size_t
compare(const struct maker *m, size_t streams, size_t *good)
{
	struct api slow = *m->provider->api;
	struct buf bytes = BUF_INIT;
	struct outcome with, without;
	size_t bad = 0;

	memset(slow.plain, 0, sizeof(slow.plain));
	for (*good = 0; streams > 0; streams--) {
		make_stream(&bytes, m);
		if (m->provider == &provider_openai_responses)
			end_responses(&bytes);
		read_stream(&with, m->provider->api, &bytes, 1 + dice(400));
		read_stream(&without, &slow, &bytes, 4000);
		if (!same(&with, &without) && bad++ == 0)
			printf("# %.*s\n# %d %s | %s\n# %d %s | %s\n", (int)bytes.len, bytes.data, with.rc, with.e.msg, with.text.data, without.rc, without.e.msg,
			    without.text.data);
		*good += with.rc == 0;
		release(&with);
		release(&without);
	}
	buf_release(&bytes);
	return bad;
}

/* Two frames that gave these texts, and a third. */
static bool
fits_behind(struct alike *a, const char *texts, const char *first, const char *second, const char *third)
{
	static const struct alike_members m = { .text = "a.0.t", .unread = { "u" }, .counts = { "c" } };

	alike_forget(a);
	alike_learn(a, &m, NULL, "", first, strlen(first), texts, 1);
	alike_learn(a, &m, NULL, "", second, strlen(second), texts + 1, 1);
	return alike_fits(a, "", third, strlen(third), 0);
}

/* That it is used at all, and for what. */
static void
what_fits(void)
{
	struct alike a = ALIKE_INIT;

	ok(fits_behind(&a, "xy", "{\"u\":\"1\",\"a\":[{\"t\":\"x\"}],\"c\":1}", "{\"u\":\"2\",\"a\":[{\"t\":\"y\"}],\"c\":2}", "{\"u\":\"3\",\"a\":[{\"t\":\"z\\n\"}],\"c\":3}"),
	    "a frame that differs in its text, and in what does not matter, is like the ones before");
	ok(a.text.len == 2 && memcmp(a.text.data, "z\n", 2) == 0, "its text is read");
	is_str(a.last.data, "{\"u\":\"3\",\"a\":[{\"t\":\"\"}],\"c\":3}", "what counts is kept");
	ok(!fits_behind(&a, "xy", "{\"a\":[{\"t\":\"x\"}],\"b\":1}", "{\"a\":[{\"t\":\"y\"}],\"b\":1}", "{\"a\":[{\"t\":\"z\"}],\"b\":2}"), "one that differs elsewhere is not");
	ok(!fits_behind(&a, "xy", "{\"a\":[{\"t\":\"x\"}]}", "{\"a\":[{\"t\":\"y\"}]}", "{\"a\":[{\"t\":\"\\q\"}]}"), "nor one that is not JSON");
	ok(!fits_behind(&a, "xx", "{\"a\":[{\"t\":\"x\"}]}", "{\"a\":[{\"t\":\"x\"}]}", "{\"a\":[{\"t\":\"z\"}]}"), "nor behind others that do not show where the text is from");
	ok(!fits_behind(&a, "xy", "{\"a\":[{\"t\":\"x\",\"t\":\"x\"}]}", "{\"a\":[{\"t\":\"x\",\"t\":\"y\"}]}", "{\"a\":[{\"t\":\"x\",\"t\":\"z\"}]}"),
	    "nor where its name stands twice");
	alike_release(&a);
}

int
main(void)
{
	size_t times = getenv("SOAK") != NULL ? 300000 : 3000, bad[MAKERS], good[MAKERS], i;
	int errors = dup(2), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

	what_fits();
	dup2(nowhere, 2);	/* a warning for many of them */
	for (i = 0; i < MAKERS; i++)
		bad[i] = compare(&makers[i], times, &good[i]);
	dup2(errors, 2);
	close(errors);
	close(nowhere);
	for (i = 0; i < MAKERS; i++)
		ok(bad[i] == 0 && good[i] > times / 50, "%s: streams are read with the same result (%zu of them answers)", makers[i].name, good[i]);
	return done();
}

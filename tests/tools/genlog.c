/*
 * genlog BYTES [SEED]: the log of a busy agent on stdout, whole turns until it has at least BYTES. The same arguments
 * give the same bytes. Answers of some hundred bytes, tool results up to 16 KB, a UsageEvent before each response.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POOL (64 << 10)

static uint64_t seed = 1, written;
static double now = 1780000000.5;
static char pool[POOL + 32];
static size_t words[POOL], words_n;

static unsigned
pick(unsigned below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % below;
}

static double
tick(void)
{
	return now += 1;
}

/* Words as they stand in a JSON string of AG2's: escapes for quotes, newlines and everything beyond ASCII. */
static void
fill_pool(void)
{
	static const char *const vocabulary[] = { "the", "of", "store", "event", "memory", "window", "reads", "writes", "appends",
		"a", "which", "because", "turn", "answer", "caf\\u00e9", "\\u4f60\\u597d", "\\\"quoted\\\"", "path", "line,\\n", "and",
		"version", "lock", "compaction", "in", "to", "keeps", "question", "summary", "{braces}", "[1, 2]" };
	size_t len = 0;

	while (len < POOL) {
		words[words_n++] = len;
		len += snprintf(pool + len, sizeof pool - len, "%s ", vocabulary[pick(sizeof vocabulary / sizeof *vocabulary)]);
	}
	words[words_n] = len;
}

static void
text(unsigned words_wanted)
{
	unsigned from;

	for (; words_wanted > 4096; words_wanted -= 4096)
		text(4096);
	from = pick(words_n - words_wanted);
	written += fwrite(pool + words[from], 1, words[from + words_wanted] - words[from], stdout);
}

#define put(...) (written += printf(__VA_ARGS__))

static void
usage(void)
{
	put("{\"__dataclass__\": \"ag2.events.types.Usage\", \"data\": {\"prompt_tokens\": %u, \"completion_tokens\": %u, "
	    "\"total_tokens\": null, \"cache_read_input_tokens\": null, \"cache_creation_input_tokens\": null, "
	    "\"thinking_tokens\": null}}", pick(100000), pick(2000));
}

static void
call(unsigned id)
{
	put("\"created_at\": %.1f, \"vendor_metadata\": {}, \"id\": \"call_%u\", \"name\": \"search\", \"arguments\": "
	    "\"{\\\"query\\\": \\\"", tick(), id);
	text(4);
	put("\\\"}\"}");
}

static void
response(unsigned id, unsigned answer_words)
{
	put("{\"type\": \"ag2.events.types.UsageEvent\", \"data\": {\"created_at\": %.1f, \"label\": null, \"kind\": \"model_call\", "
	    "\"model\": \"m-1\", \"provider\": \"openai\", \"finish_reason\": \"stop\", \"usage\": ", tick());
	usage();
	put("}}\n{\"type\": \"ag2.events.types.ModelResponse\", \"data\": {\"created_at\": %.1f, \"response_force\": false, "
	    "\"files\": [], \"tool_calls\": {\"__event__\": \"ag2.events.tool_events.ToolCallsEvent\", \"created_at\": %.1f, "
	    "\"calls\": [", tick(), tick());
	if (!answer_words) {
		put("{\"__event__\": \"ag2.events.tool_events.ToolCallEvent\", ");
		call(id);
	}
	put("]}, \"usage\": ");
	usage();
	put(", \"model\": \"m-1\", \"provider\": \"openai\", \"finish_reason\": \"%s\", \"message\": ", answer_words ? "stop" : "tool_calls");
	if (answer_words) {
		put("{\"__event__\": \"ag2.events.types.ModelMessage\", \"created_at\": %.1f, \"metadata\": {}, \"content\": \"", tick());
		text(answer_words);
		put("\"}}}\n");
	} else
		put("null}}\n");
}

static void
result(unsigned id, unsigned result_words, uint64_t state)
{
	put("\"created_at\": %.1f, \"parent_id\": \"call_%u\", \"name\": \"search\", \"result\": {\"__dataclass__\": "
	    "\"ag2.events.tool_events.ToolResult\", \"data\": {\"parts\": [{\"__event__\": "
	    "\"ag2.events.input_events.TextInput\", \"created_at\": %.1f, \"metadata\": {}, \"content\": \"", now + 2, id, now + 1);
	seed = state;		/* the container repeats its results */
	text(result_words);
	put("\"}], \"final\": false, \"metadata\": {}}}}");
}

static void
round_of_tools(unsigned id)
{
	unsigned result_words = pick(10) ? 20 + pick(200) : pick(2500);
	uint64_t state;

	response(id, 0);
	state = seed;
	put("{\"type\": \"ag2.events.tool_events.ToolCallsEvent\", \"data\": {\"created_at\": %.1f, \"calls\": [{\"__event__\": "
	    "\"ag2.events.tool_events.ToolCallEvent\", ", tick());
	call(id);
	seed = state;
	put("]}}\n{\"type\": \"ag2.events.tool_events.ToolCallEvent\", \"data\": {");
	call(id);
	state = seed;
	put("}\n{\"type\": \"ag2.events.tool_events.ToolResultEvent\", \"data\": {");
	result(id, result_words, state);
	put("}\n{\"type\": \"ag2.events.tool_events.ToolResultsEvent\", \"data\": {\"created_at\": %.1f, \"results\": "
	    "[{\"__event__\": \"ag2.events.tool_events.ToolResultEvent\", ", now + 3);
	result(id, result_words, state);
	put("]}}\n");
	now += 3;
}

static void
turn(void)
{
	static unsigned id;
	unsigned rounds = pick(4);

	put("{\"type\": \"ag2.events.input_events.ModelRequest\", \"data\": {\"created_at\": %.1f, \"parts\": [{\"__event__\": "
	    "\"ag2.events.input_events.TextInput\", \"created_at\": %.1f, \"metadata\": {}, \"content\": \"", now + 2, now + 1);
	now += 2;
	text(3 + pick(60));
	put("\"}]}}\n");
	while (rounds--)
		round_of_tools(++id);
	response(0, 20 + pick(200));
}

int
main(int argc, char **argv)
{
	uint64_t size;

	if (argc < 2 || argc > 3) {
		fputs("usage: genlog BYTES [SEED]\n", stderr);
		return 64;
	}
	size = strtoull(argv[1], NULL, 10);
	if (argc == 3)
		seed = strtoull(argv[2], NULL, 10);
	fill_pool();
	while (written < size && !ferror(stdout))
		turn();
	return fclose(stdout) ? 74 : 0;
}

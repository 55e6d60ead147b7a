/*
 * bigturn rounds N: a turn of N events on stdout: one request, then rounds of a call, its announcement, its result and the
 * container of that. bigturn parallel N: a request, one response with N calls, their announcements and results, one by one
 * and in one container. bigturn alone N: the same without the container, which has to be made. bigturn late N: the same with a
 * container for each result, behind the next request, so that each has to be moved. bigturn parse: reads lines and parses each by json-c, to compare with.
 */
#include <json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double now = 1780000000.5;

#define TYPE(t) "{\"type\": \"ag2.events." t "\", \"data\": {\"created_at\": %.1f, "

static void
call(unsigned i)
{
	printf("{\"__event__\": \"ag2.events.tool_events.ToolCallEvent\", \"created_at\": %.1f, \"vendor_metadata\": {}, \"id\": \"call_%u\", "
	    "\"name\": \"lookup\", \"arguments\": \"{\\\"q\\\": %u}\"}", now, i, i);
}

static void
result_fields(unsigned i)
{
	printf("\"parent_id\": \"call_%u\", \"name\": \"lookup\", \"result\": {\"__dataclass__\": \"ag2.tools.types.ToolResult\", \"data\": {\"parts\": "
	    "[{\"__event__\": \"ag2.events.input_events.TextInput\", \"created_at\": %.1f, \"metadata\": {}, \"content\": \"The answer to %u is %u, "
	    "as far as it is known.\"}], \"final\": false}}", i, now, i, i * 7);
}

static void
request(void)
{
	printf(TYPE("input_events.ModelRequest") "\"parts\": [{\"__event__\": \"ag2.events.input_events.TextInput\", \"created_at\": %.1f, "
	    "\"metadata\": {}, \"content\": \"Look all of it up.\"}]}}\n", now, now);
}

static void
response(unsigned from, unsigned to)
{
	unsigned i;

	printf(TYPE("types.ModelResponse") "\"response_force\": false, \"files\": [], \"tool_calls\": {\"__event__\": \"ag2.events.tool_events."
	    "ToolCallsEvent\", \"created_at\": %.1f, \"calls\": [", now, now);
	for (i = from; i < to; i++) {
		fputs(i > from ? ", " : "", stdout);
		call(i);
	}
	printf("]}, \"message\": null}}\n");
	for (i = from; i < to; i++)
		printf(TYPE("tool_events.ToolCallEvent") "\"vendor_metadata\": {}, \"id\": \"call_%u\", \"name\": \"lookup\", \"arguments\": "
		    "\"{\\\"q\\\": %u}\"}}\n", now, i, i);
}

static void
results_alone(unsigned from, unsigned to)
{
	unsigned i;

	for (i = from; i < to; i++) {
		printf(TYPE("tool_events.ToolResultEvent"), now);
		result_fields(i);
		printf("}}\n");
	}
}

static void
container(unsigned from, unsigned to)
{
	unsigned i;

	printf(TYPE("tool_events.ToolResultsEvent") "\"results\": [", now);
	for (i = from; i < to; i++) {
		printf("%s{\"__event__\": \"ag2.events.tool_events.ToolResultEvent\", \"created_at\": %.1f, ", i > from ? ", " : "", now);
		result_fields(i);
		printf("}");
	}
	printf("]}}\n");
}

static int
parse(void)
{
	struct json_tokener *tok = json_tokener_new();
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	while ((n = getline(&line, &cap, stdin)) > 0) {
		json_tokener_reset(tok);
		json_object_put(json_tokener_parse_ex(tok, line, (int)n));
	}
	json_tokener_free(tok);
	free(line);
	return 0;
}

int
main(int argc, char **argv)
{
	unsigned n = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0, i;

	if (argc == 2 && strcmp(argv[1], "parse") == 0)
		return parse();
	if (n == 0) {
		fputs("usage: bigturn rounds|parallel|alone|late N\n       bigturn parse\n", stderr);
		return 64;
	}
	request();
	for (i = 0; strcmp(argv[1], "rounds") == 0 && i < n / 4; i++) {
		response(i, i + 1);
		results_alone(i, i + 1);
		container(i, i + 1);
	}
	if (strcmp(argv[1], "rounds") != 0)
		response(0, n);
	if (strcmp(argv[1], "parallel") == 0 || strcmp(argv[1], "alone") == 0)
		results_alone(0, n);
	if (strcmp(argv[1], "parallel") == 0)
		container(0, n);
	if (strcmp(argv[1], "late") == 0) {
		request();
		for (i = 0; i < n; i++)
			container(i, i + 1);
	}
	return fflush(stdout) == 0 ? 0 : 74;
}

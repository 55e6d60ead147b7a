/*
 * A scripted session of an agent, call by call, to see how much of what is sent repeats the call before.
 *
 * session make DIR TURNS: for each model call, DIR/NNNN.events is what the log grew by since the call before, and
 * DIR/NNNN.memory, where it was rewritten, the working memory. Every third turn calls a tool, so that it has two calls; the
 * memory is rewritten every tenth turn; alerts come every seventh. The same arguments give the same bytes.
 *
 * session share FILE...: the bytes of each file that are the same as in the file before, as a percentage of all bytes (the
 * first file is not counted).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed = 1;
static double now = 1780000000.5;
static FILE *events;
static unsigned calls;
static const char *dir;

static unsigned
pick(unsigned below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((seed >> 33) % below);
}

static double
tick(void)
{
	return now += 1;
}

static void
words(FILE *f, unsigned n)
{
	static const char *const vocabulary[] = { "the", "store", "keeps", "every", "event", "that", "an", "agent", "writes", "and",
		"which", "of", "them", "a", "window", "shows", "depends", "on", "what", "was", "asked", "before", "in", "this", "turn" };

	while (n-- > 0)
		fprintf(f, "%s%s", vocabulary[pick(sizeof(vocabulary) / sizeof(vocabulary[0]))], n > 0 ? " " : "");
}

static FILE *
open_file(const char *suffix)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%04u.%s", dir, calls, suffix);
	f = fopen(path, "w");
	if (f == NULL) {
		perror(path);
		exit(74);
	}
	return f;
}

static void
close_file(FILE *f)
{
	if (fclose(f) != 0) {
		perror("session");
		exit(74);
	}
}

/* What follows belongs to the next call. */
static void
next_call(void)
{
	if (events != NULL)
		close_file(events);
	calls++;
	events = open_file("events");
}

#define TYPE(t) "{\"type\": \"ag2.events." t "\", \"data\": {\"created_at\": %.1f, "
#define PART "{\"__event__\": \"ag2.events.input_events.TextInput\", \"created_at\": %.1f, \"metadata\": {}, \"content\": \""

static void
request(unsigned turn)
{
	fprintf(events, TYPE("input_events.ModelRequest") "\"parts\": [" PART "Question %u: ", tick(), tick(), turn);
	words(events, 10 + pick(40));
	fputs("?\"}]}}\n", events);
}

static void
usage(void)
{
	fprintf(events, TYPE("types.UsageEvent") "\"kind\": \"model_call\"}}\n", tick());
}

static void
answer(unsigned turn)
{
	usage();
	fprintf(events, TYPE("types.ModelResponse") "\"tool_calls\": {\"calls\": []}, \"message\": {\"content\": \"Answer %u: ", tick(), turn);
	words(events, 40 + pick(120));
	fputs(".\"}}}\n", events);
}

static void
tool(unsigned turn)
{
	next_call();
	usage();
	fprintf(events, TYPE("types.ModelResponse") "\"message\": null, \"tool_calls\": {\"calls\": [{\"id\": \"c%u\", \"name\": \"lookup\", "
	    "\"arguments\": \"{\\\"turn\\\": %u}\"}]}}}\n", tick(), turn, turn);
	fprintf(events, TYPE("tool_events.ToolResultsEvent") "\"results\": [{\"__event__\": \"ag2.events.tool_events.ToolResultEvent\", "
	    "\"parent_id\": \"c%u\", \"name\": \"lookup\", \"result\": {\"data\": {\"parts\": [" PART "Result %u: ", tick(), turn, tick(), turn);
	words(events, 60 + pick(200));
	fputs("\"}]}}}]}}\n", events);
}

static void
alert(unsigned turn)
{
	fprintf(events, TYPE("alert.ObserverAlert") "\"source\": \"watch\", \"severity\": \"warning\", \"message\": \"Alert %u\", \"data\": {}}}\n",
	    tick(), turn);
}

static void
memory(unsigned turn)
{
	FILE *f = open_file("memory");

	fprintf(f, "Memory %u: ", turn);
	words(f, 120);
	fputs("\n", f);
	close_file(f);
}

static int
make(unsigned turns)
{
	unsigned i;

	next_call();
	for (i = 1; i <= turns; i++) {
		if (i % 10 == 1)
			memory(i);
		if (i % 7 == 0)
			alert(i);
		request(i);
		if (i % 3 == 0)
			tool(i);
		if (i == turns)
			break;
		next_call();		/* what the call gave is what the next one's log grew by */
		answer(i);
	}
	close_file(events);
	return 0;
}

static char *
read_file(const char *path, size_t *len)
{
	FILE *f = fopen(path, "r");
	char *data = NULL;
	size_t cap = 0, n;

	*len = 0;
	if (f == NULL) {
		perror(path);
		exit(66);
	}
	do {
		data = realloc(data, cap += 65536);
		if (data == NULL)
			exit(71);
		*len += n = fread(data + *len, 1, cap - *len, f);
	} while (n > 0);
	fclose(f);
	return data;
}

static int
share(char **files, int n)
{
	size_t before_len, len, i, same = 0, all = 0;
	char *before = read_file(files[0], &before_len), *body;
	int k;

	for (k = 1; k < n; k++) {
		body = read_file(files[k], &len);
		for (i = 0; i < len && i < before_len && body[i] == before[i]; i++)
			;
		same += i;
		all += len;
		free(before);
		before = body;
		before_len = len;
	}
	free(before);
	printf("%.1f\n", all > 0 ? 100.0 * (double)same / (double)all : 0.0);
	return 0;
}

int
main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "make") == 0) {
		dir = argv[2];
		return make((unsigned)strtoul(argv[3], NULL, 10));
	}
	if (argc > 3 && strcmp(argv[1], "share") == 0)
		return share(argv + 2, argc - 2);
	fputs("usage: session make DIR TURNS\n       session share FILE...\n", stderr);
	return 64;
}

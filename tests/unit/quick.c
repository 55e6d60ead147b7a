/* Looking at lines without parsing them gives what parsing gives, or no answer. */
#include "event/quick.h"

#include "base/alloc.h"
#include "event/render.h"
#include "policy/mend.h"
#include "history.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>

struct ids {
	char *items[64];
	size_t n;
};

static void
note(void *arg, const char *id, size_t len)
{
	struct ids *ids = arg;

	if (ids->n < 64)
		ids->items[ids->n++] = xmemdup0(id, len);
}

static void
ids_release(struct ids *ids)
{
	while (ids->n > 0)
		free(ids->items[--ids->n]);
}

static bool
same_ids(struct event *ev, const struct pieces *got)
{
	struct ids want = { .n = 0 };
	bool same = event_data(ev, NULL) != NULL && event_ids(ev, note, &want, NULL) == 0 && want.n == got->n;	/* by its values */
	size_t i;

	for (i = 0; same && i < want.n; i++)
		same = strlen(want.items[i]) == got->items[i].len && memcmp(want.items[i], got->items[i].p, got->items[i].len) == 0;
	ids_release(&want);
	return same;
}

static size_t sizes;		/* that were answered */

static bool
same_size(struct event *ev, int chars)
{
	int64_t tokens;

	if ((ev->type->flags & EV_CONVERSATIONAL) == 0 || !quick_tokens(ev, chars, &tokens))
		return true;
	sizes++;
	return event_data(ev, NULL) == NULL || tokens == event_tokens(ev, chars, NULL);	/* what is parsed is weighed by its values */
}

/* Whatever it answers of a line is what parsing says. Returns whether it answered. */
static bool
agrees(struct event *ev, bool *right)
{
	struct pieces ids = { 0 }, names = { 0 };
	unsigned flags = ev->type->flags;
	bool sure = false;

	*right = true;
	if (flags & EV_REQUEST) {
		sure = quick_request(ev);
		*right = !sure || !mend_blank_request(event_data(ev, NULL));
	} else if (flags & EV_RESPONSE) {
		sure = quick_response(ev, &ids, &names);
		*right = !sure || (same_ids(ev, &ids) && names.n == ids.n && !mend_blank_response(event_data(ev, NULL)));
	} else if (flags & EV_RESULTS) {
		sure = quick_results(ev, &ids);
		*right = !sure || same_ids(ev, &ids);
	} else if (flags & (EV_RESULT | EV_CALLS | EV_CALL)) {
		sure = quick_ids(ev, &ids);
		*right = !sure || same_ids(ev, &ids);
	}
	*right &= same_size(ev, 4) && same_size(ev, 1) && same_size(ev, CHARS_AUTO);
	pieces_release(&ids);
	pieces_release(&names);
	return sure;
}

static void
file(const char *path, size_t answers)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t cap = 0, sure = 0;
	ssize_t n;
	bool right, all = true;
	struct event ev;

	while (f != NULL && (n = getline(&line, &cap, f)) > 0) {
		if (event_view(&ev, line, (size_t)n - 1, NULL) < 0)
			continue;
		sure += agrees(&ev, &right);
		if (!right)
			printf("# %s\n", line);
		all &= right;
		event_release(&ev);
	}
	if (f != NULL)
		fclose(f);
	free(line);
	ok(all && sure >= answers, "%s: %zu lines looked at, at least %zu", path, sure, answers);
}

static void
one(const char *line, bool want, const char *what)
{
	struct event ev;
	bool right, sure;

	if (event_view(&ev, line, strlen(line), NULL) < 0) {
		ok(false, "%s: a line", what);
		return;
	}
	sure = agrees(&ev, &right);
	ok(right && sure == want, "%s: %s", what, want ? "answered" : "left to who parses");
	event_release(&ev);
}

#define REQUEST(parts) "{\"type\": \"ModelRequest\", \"data\": {\"parts\": " parts "}}"
#define RESPONSE(fields) "{\"type\": \"ModelResponse\", \"data\": {" fields "}}"
#define RESULTS(list) "{\"type\": \"ToolResultsEvent\", \"data\": {\"results\": " list "}}"

static void
lines(void)
{
	one(REQUEST("[{\"content\": \"a\"}]"), true, "a request with text");
	one(REQUEST("[{\"content\": \" \\n\\t\"}]"), false, "a request of blanks in escapes");
	one(REQUEST("[{\"content\": \"\\u2003\"}]"), false, "a request of a wide blank");
	one(REQUEST("[{\"content\": \"\\n\\\"quoted\"}]"), true, "a request that begins with escapes");
	one(REQUEST("[]"), false, "a request without parts");
	one(REQUEST("[{\"cont\\u0065nt\": \"\"}]"), false, "an escape in a key");
	one("{\"type\": \"ModelRequest\", \"data\": {\"parts\": [{\"content\": \"a\"}], \"parts\": []}}", false, "parts that come twice");
	one("{\"type\": \"ModelRequest\", \"data\": {\"parts\": [{\"content\": \"a\"}]}, \"data\": {\"parts\": []}}", false, "data that comes twice");
	one(RESPONSE("\"message\": {\"content\": \"a\"}"), true, "an answer");
	one(RESPONSE("\"message\": {\"content\": \"\"}"), false, "an empty answer");
	one(RESPONSE("\"message\": null, \"tool_calls\": null"), false, "no answer");
	one(RESPONSE("\"message\": null, \"tool_calls\": {\"calls\": [{\"id\": \"a\", \"name\": \"f\"}, {\"name\": \"g\", \"id\": \"b\"}]}"), true, "calls");
	one(RESPONSE("\"tool_calls\": {\"calls\": [{\"id\": \"a\"}]}"), false, "a call without a name");
	one(RESPONSE("\"tool_calls\": {\"calls\": [{\"id\": \"\", \"name\": \"f\"}]}"), false, "a call without an id");
	one(RESPONSE("\"tool_calls\": {\"calls\": [{\"id\": \"\\u0061\", \"name\": \"f\"}]}"), false, "an id with an escape");
	one(RESPONSE("\"tool_calls\": {\"calls\": []}, \"message\": {\"content\": \"a\"}"), true, "an answer with an empty list of calls");
	one(RESULTS("[{\"parent_id\": \"a\", \"result\": {\"data\": {\"parts\": [{\"content\": \"x\"}]}}}]"), true, "results");
	one(RESULTS("[{\"parent_id\": \"a\", \"result\": {\"data\": {\"parts\": [{\"content\": \"\"}]}}}]"), false, "an empty result");
	one(RESULTS("[{\"parent_id\": \"a\"}]"), false, "a result without a value");
	one(RESULTS("[]"), false, "no results");
	one(REQUEST("[{\"__event__\": \"TextInput\", \"content\": \"\\ud83d\\ude00\\ud83d\\ude00 \\\\ \\u00e9 \xc3\xa9\"}]"), true, "surrogates and escapes");
	one(REQUEST("[{\"__event__\": \"TextInput\", \"content\": \"\\ud83d \\ude00x\"}]"), true, "lone surrogates");
}

/* weigh LINE: 1 when its size is answered, and right; 0 when it is left to who parses; -1 when it is wrong. */
static int
weigh(const char *line)
{
	struct event ev;
	size_t before = sizes;
	bool right;

	if (event_view(&ev, line, strlen(line), NULL) < 0)
		return -1;
	right = same_size(&ev, 1) && same_size(&ev, 3) && same_size(&ev, CHARS_AUTO);
	event_release(&ev);
	return !right ? -1 : sizes > before;
}

static bool
is_line(const char *line)
{
	struct event ev;

	return event_view(&ev, line, strlen(line), NULL) == 0;
}

static void
weights(void)
{
	static const struct {
		const char *what, *line;
		int want;
	} cases[] = {
		{ "a text", REQUEST("[{\"__event__\": \"ag2.events.input_events.TextInput\", \"content\": \"four words of text\"}]"), 1 },
		{ "texts", REQUEST("[{\"content\": \"ab\", \"__event__\": \"TextInput\"}, {\"__event__\": \"TextInput\", \"content\": \"cd\"}]"), 1 },
		{ "no parts", REQUEST("[]"), 1 },
		{ "escapes, pairs of surrogates, halves of them", REQUEST("[{\"__event__\": \"TextInput\", \"content\": \"\\n\\u0041\\u00e9"
		    "\\ud83d\\ude00\\uD83D\\ud83d\\uDE00\\ude00\\ude00\\ud83d\\n\\\\u0041\\u0000\\udbff\\udfff\"}]"), 1 },
		{ "a half at the end", REQUEST("[{\"__event__\": \"TextInput\", \"content\": \"\\ud83d\"}]"), 1 },
		{ "other scripts", REQUEST("[{\"__event__\": \"TextInput\", \"content\": \"\xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80 na\xc3\xafve\"}]"), 1 },
		{ "an image", REQUEST("[{\"__event__\": \"UrlInput\", \"url\": \"x\", \"kind\": \"image\"}]"), 0 },
		{ "a part without its class", REQUEST("[{\"content\": \"a\"}]"), 0 },
		{ "a part without its text", REQUEST("[{\"__event__\": \"TextInput\"}]"), 0 },
		{ "data for a text", REQUEST("[{\"__event__\": \"DataInput\", \"data\": {\"content\": \"a\"}}]"), 0 },
		{ "an answer", RESPONSE("\"message\": {\"content\": \"an answer\"}, \"files\": []"), 1 },
		{ "an empty one", RESPONSE("\"message\": {\"content\": \"\"}, \"tool_calls\": null, \"files\": null"), 1 },
		{ "no message", RESPONSE("\"x\": 1"), 1 },
		{ "a message that is none", RESPONSE("\"message\": \"text\""), 0 },
		{ "a content that is no text", RESPONSE("\"message\": {\"content\": 12345}"), 0 },
		{ "files", RESPONSE("\"message\": {\"content\": \"a\"}, \"files\": [{}, {}]"), 0 },
		{ "calls", RESPONSE("\"message\": null, \"tool_calls\": {\"calls\": [{\"name\": \"look\", \"arguments\": \"{\\\"q\\\": 1}\"}, "
		    "{\"arguments\": \"\", \"name\": \"f\"}]}"), 1 },
		{ "a call without arguments", RESPONSE("\"tool_calls\": {\"calls\": [{\"name\": \"f\"}]}"), 0 },
		{ "arguments that are no text", RESPONSE("\"tool_calls\": {\"calls\": [{\"name\": \"f\", \"arguments\": {}}]}"), 0 },
		{ "results", RESULTS("[{\"result\": {\"data\": {\"parts\": [{\"__event__\": \"TextInput\", \"content\": \"abc\"}]}}}, {\"result\": {\"data\": "
		    "{\"parts\": [{\"__event__\": \"TextInput\", \"content\": \"abcdef\"}, {\"__event__\": \"TextInput\", \"content\": \"\"}]}}}]"), 1 },
		{ "a result without a value", RESULTS("[{\"parent_id\": \"a\"}]"), 1 },
		{ "a summary", "{\"type\": \"CompactionSummary\", \"data\": {\"summary\": \"what was\"}}", 0 },
		{ "a content that decides", "{\"type\": \"CompactionSummary\", \"data\": {\"content\": \"this\", \"summary\": \"what was\"}}", 1 },
		{ "a result that came alone", "{\"type\": \"ToolResultEvent\", \"data\": {\"parent_id\": \"a\"}}", 0 },
		{ "no data", "{\"type\": \"ModelRequest\"}", 0 },
		{ "parts that come twice", "{\"type\": \"ModelRequest\", \"data\": {\"parts\": [], \"parts\": []}}", 0 },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		is_int(weigh(cases[i].line), cases[i].want, "the size of %s", cases[i].what);
}

/* Lines of random histories, and bytes of them changed at random. */
static void
random_lines(void)
{
	static const char put[] = "\"\\{}[]:, aud8cf0";
	struct event_list l = { 0 };
	size_t i, j, k, wrong = 0, before = sizes;
	char *line;

	for (i = 0; i < 300; i++) {
		random_history(&l, 40);
		for (j = 0; j < l.n; j++) {
			line = xmemdup0(l.items[j]->line, l.items[j]->len);
			wrong += weigh(line) < 0;
			for (k = 0; k < 1 + i % 3; k++)
				line[pick((uint32_t)l.items[j]->len)] = put[pick(sizeof(put) - 1)];
			wrong += is_line(line) && weigh(line) < 0;
			free(line);
		}
		event_list_release(&l);
	}
	ok(wrong == 0 && sizes - before > 10000, "%zu sizes of lines made and changed at random are those that parsing gives", sizes - before);
}

int
main(void)
{
	file("tests/golden/log_sample.jsonl", 5);
	lines();
	weights();
	random_lines();
	return done();
}

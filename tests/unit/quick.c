/* Looking at lines without parsing them gives what parsing gives, or no answer. */
#include "policy/quick.h"

#include "base/alloc.h"
#include "event/render.h"
#include "policy/mend.h"
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
	bool same = event_ids(ev, note, &want, NULL) == 0 && want.n == got->n;
	size_t i;

	for (i = 0; same && i < want.n; i++)
		same = strlen(want.items[i]) == got->items[i].len && memcmp(want.items[i], got->items[i].p, got->items[i].len) == 0;
	ids_release(&want);
	return same;
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
		sure = quick_ids(ev, flags, &ids);
		*right = !sure || same_ids(ev, &ids);
	}
	*right &= quick_tokens_at_least(ev, 4) <= event_tokens(ev, 4, NULL) && quick_tokens_at_least(ev, 1) <= event_tokens(ev, 1, NULL) &&
	    quick_tokens_at_least(ev, CHARS_AUTO) <= event_tokens(ev, CHARS_AUTO, NULL);
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

int
main(void)
{
	file("tests/golden/log_sample.jsonl", 5);
	lines();
	return done();
}

/*
 * Random histories for the tests of what policies do: short lines with all families of events, in and out of order.
 */
#ifndef AG2_TEST_HISTORY_H
#define AG2_TEST_HISTORY_H

#include "base/alloc.h"
#include "event/event.h"

#include <stdint.h>

static uint64_t random_state = 0x853c49e6748fea9b;

/* xorshift: the same histories on every machine. */
static inline uint32_t
pick(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return n == 0 ? 0 : (uint32_t)(random_state >> 33) % n;
}

static inline void __attribute__((format(printf, 2, 3)))
add_line(struct event_list *l, const char *fmt, ...)
{
	struct buf b = BUF_INIT;
	struct event *ev;
	va_list ap;
	size_t len;
	char *line;

	va_start(ap, fmt);
	buf_vaddf(&b, fmt, ap);
	va_end(ap);
	line = buf_detach(&b, &len);
	ev = event_own(line, len);
	ev->number = l->n + 1;
	event_list_add(l, ev);
}

static inline void
add_request(struct event_list *l, const char *text)
{
	add_line(l, "{\"type\": \"ModelRequest\", \"data\": {\"n\": %zu, \"parts\": [{\"__event__\": \"TextInput\", \"content\": \"%s\"}]}}",
	    l->n, text);
}

static inline void
add_answer(struct event_list *l, const char *text)
{
	add_line(l, "{\"type\": \"ModelResponse\", \"data\": {\"n\": %zu, \"message\": {\"content\": \"%s\"}}}", l->n, text);
}

/* ids: numbers below 100, as call ids. */
static inline void
add_ids(struct buf *b, const char *before, const char *after, const unsigned *ids, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		buf_addf(b, "%s%sc%u%s", i > 0 ? ", " : "", before, ids[i], after);
}

/* Arguments as models write them, within a JSON string. */
static inline const char *
some_arguments(void)
{
	static const char *const arguments[] = { "{}", "", " ", "[1]", "null", "{\\\"a\\\"", "{\\\"q\\\": \\\"\\\\ud83d \\\\ud83d\\\\ude00\\\"}", "{\\\"q\\\": \\\"\\udc00\\\"}",
		"{\\\"n\\\": 12345678901234567890123}" };

	return arguments[pick(2) ? 0 : pick(9)];
}

static inline void
add_calls(struct event_list *l, const unsigned *ids, size_t n)
{
	struct buf b = BUF_INIT, tail = BUF_INIT;

	buf_addf(&tail, "\", \"name\": \"f\", \"arguments\": \"%s\"}", some_arguments());
	add_ids(&b, "{\"id\": \"", tail.data, ids, n);
	add_line(l, "{\"type\": \"ModelResponse\", \"data\": {\"n\": %zu, \"message\": null, \"tool_calls\": {\"calls\": [%s]}}}", l->n, b.data);
	buf_release(&b);
	buf_release(&tail);
}

static inline void
add_announced(struct event_list *l, const unsigned *ids, size_t n)
{
	struct buf b = BUF_INIT;

	add_ids(&b, "{\"id\": \"", "\", \"name\": \"f\"}", ids, n);
	add_line(l, "{\"type\": \"ToolCallsEvent\", \"data\": {\"n\": %zu, \"calls\": [%s]}}", l->n, b.data);
	buf_release(&b);
}

static inline void
add_results(struct event_list *l, const unsigned *ids, size_t n, const char *text)
{
	struct buf b = BUF_INIT, tail = BUF_INIT;

	buf_addf(&tail, "\", \"name\": \"f\", \"result\": {\"data\": {\"parts\": [{\"__event__\": \"TextInput\", \"content\": \"%s\"}]}}}", text);
	add_ids(&b, "{\"__event__\": \"ToolResultEvent\", \"parent_id\": \"", tail.data, ids, n);
	add_line(l, "{\"type\": \"ToolResultsEvent\", \"data\": {\"n\": %zu, \"results\": [%s]}}", l->n, b.data);
	buf_release(&b);
	buf_release(&tail);
}

static inline void
add_result(struct event_list *l, const char *type, unsigned id, const char *text)
{
	add_line(l, "{\"type\": \"%s\", \"data\": {\"n\": %zu, \"parent_id\": \"c%u\", \"name\": \"f\", \"result\": {\"data\": {\"parts\": "
	    "[{\"__event__\": \"TextInput\", \"content\": \"%s\"}]}}}}", type, l->n, id, text);
}

static inline void
add_call(struct event_list *l, const char *type, unsigned id)
{
	add_line(l, "{\"type\": \"%s\", \"data\": {\"n\": %zu, \"id\": \"c%u\", \"name\": \"f\", \"arguments\": \"{}\"}}", type, l->n, id);
}

/* Some distinct ids out of the first `range`. */
static inline size_t
some_ids(unsigned *ids, size_t most, unsigned range)
{
	size_t n = 1 + pick((uint32_t)most), i, j;

	for (i = 0; i < n; i++) {
		ids[i] = pick(range);
		for (j = 0; j < i; j++)
			if (ids[j] == ids[i]) {
				n = i;
				break;
			}
	}
	return n;
}

static inline const char *
some_text(void)
{
	static const char *const texts[] = { "", " ", "a", "four", "a text of some length", "twelve bytes", "\\n", " \\u0020",
		"\\\"quoted\\\" \\\\", "half \\ud83d", "\\ude00\\u0000", "{\\\"json\\\": \\\"\\\\ud83d\\\"}" };

	return texts[pick(12)];
}

/* One event of any family, with ids out of the first `range`. */
static inline void
add_any(struct event_list *l, unsigned range)
{
	unsigned ids[4];
	size_t n = some_ids(ids, 3, range);

	switch (pick(22)) {
	case 0: case 1: case 2: add_request(l, some_text()); break;
	case 3: case 4: add_answer(l, some_text()); break;
	case 5: case 6: case 7: add_calls(l, ids, n); break;
	case 8: case 9: case 10: add_results(l, ids, n, some_text()); break;
	case 11: add_announced(l, ids, n); break;
	case 12: add_call(l, "ToolCallEvent", ids[0]); break;
	case 13: add_result(l, pick(2) ? "ToolResultEvent" : "ToolErrorEvent", ids[0], some_text()); break;
	case 14: add_call(l, "BuiltinToolCallEvent", ids[0]); break;
	case 15: add_result(l, "BuiltinToolResultEvent", ids[0], "x"); break;
	case 16: add_line(l, "{\"type\": \"OpenAIReasoningEvent\", \"data\": {\"n\": %zu}}", l->n); break;
	case 17: add_line(l, "{\"type\": \"XAIAssistantEvent\", \"data\": {\"n\": %zu}}", l->n); break;
	case 18: add_line(l, "{\"type\": \"UsageEvent\", \"data\": {\"n\": %zu}}", l->n); break;
	case 19: add_line(l, "{\"type\": \"ObserverAlert\", \"data\": {\"n\": %zu, \"source\": \"s%u\", \"severity\": \"%s\", \"message\": \"m\", \"data\": {}}}",
	    l->n, pick(3), pick(8) ? "warning" : "fatal"); break;
	case 20: add_line(l, "{\"type\": \"my.own.Kind\", \"data\": {\"n\": %zu}}", l->n); break;
	default: add_line(l, "{\"type\": \"%s\", \"data\": {\"n\": %zu, \"summary\": \"s\", \"reason\": \"r\", \"source\": \"s\", \"alerts\": []}}",
	    pick(2) ? "HaltEvent" : "CompactionSummary", l->n); break;
	}
}

/* A whole round as an agent logs it. */
static inline void
add_round(struct event_list *l, unsigned range)
{
	unsigned ids[4];
	size_t n = some_ids(ids, 3, range), i;

	add_calls(l, ids, n);
	add_announced(l, ids, n);
	for (i = 0; i < n; i++)
		add_call(l, "ToolCallEvent", ids[i]);
	for (i = 0; i < n; i++)
		add_result(l, "ToolResultEvent", ids[i], "x");
	add_results(l, ids, n, some_text());
	if (pick(2))
		add_line(l, "{\"type\": \"UsageEvent\", \"data\": {\"n\": %zu}}", l->n);
}

/* Up to `most` events; some histories are all chance, some mostly in order, with a piece lost or out of place here and there. */
static inline void
random_history(struct event_list *l, size_t most)
{
	size_t n = pick((uint32_t)most + 1);
	unsigned range = 2 + pick(8);
	bool chaos = pick(2);

	if (pick(4) == 0 && n > 0)
		add_line(l, "{\"type\": \"CompactionSummary\", \"data\": {\"summary\": \"before\", \"event_count\": 3}}");
	while (l->n < n) {
		if (chaos || pick(5) == 0)
			add_any(l, range);
		else if (pick(3) == 0)
			add_request(l, "a question");
		else if (pick(2))
			add_round(l, range);
		else
			add_answer(l, "an answer");
		if (!chaos && l->n > 0 && pick(12) == 0)
			event_free(l->items[--l->n]);
	}
}

#endif

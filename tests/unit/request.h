/* Requests made of event lines, and their bodies, for the tests of providers. Include it behind tap.h, in one file per program. */
#ifndef AG2_TEST_REQUEST_H
#define AG2_TEST_REQUEST_H

#include "event/json.h"
#include "llm/llm.h"

struct asked {
	struct text prompts[10];
	size_t prompts_n;
	struct event_list events;
};

static inline void
asked_line(struct asked *h, const char *line, size_t len)
{
	struct err e = ERR_INIT;
	struct event ev;

	if (event_view(&ev, line, len, &e) < 0)
		bail("%s: %.100s", e.msg, line);
	event_list_add(&h->events, event_dup(&ev));
}

/* Of a golden case: its prompts and events. The prompts stay the case's. */
static inline void
asked_of(struct asked *h, struct json_object *c)
{
	struct json_object *prompts = json_get(c, "prompt"), *events = json_get(c, "events"), *p;
	struct buf line = BUF_INIT;
	size_t i;

	*h = (struct asked){ .prompts_n = json_count(prompts) };
	for (i = 0; i < h->prompts_n; i++) {
		p = json_object_array_get_idx(prompts, i);
		h->prompts[i] = (struct text){ json_object_get_string(p), (size_t)json_object_get_string_len(p) };
	}
	for (i = 0; i < json_count(events); i++) {
		buf_reset(&line);
		json_write(&line, json_object_array_get_idx(events, i), JSON_PYTHON);
		asked_line(h, line.data, line.len);
	}
	buf_release(&line);
}

static inline struct llm_request
asked_request(const struct asked *h, const struct llm_config *config)
{
	return (struct llm_request){ .config = config, .prompts = h->prompts, .prompts_n = h->prompts_n, .events = h->events.items,
		.events_n = h->events.n };
}

static inline struct json_object *
parsed(const char *text)
{
	struct err e = ERR_INIT;
	struct json_object *v;

	if (json_parse(&v, text, strlen(text), &e) < 0)
		bail("%s: %.200s", e.msg, text);
	return v;
}

/* Equal as JSON. */
static inline bool
same(struct json_object *got, struct json_object *want, const char *what)
{
	struct buf a = BUF_INIT, b = BUF_INIT;
	bool good = ok(json_object_equal(got, want), "%s", what);

	if (!good) {
		json_write(&a, got, JSON_COMPACT);
		json_write(&b, want, JSON_COMPACT);
		tap_show("got ", a.data, a.len);
		tap_show("want", b.data, b.len);
	}
	buf_release(&a);
	buf_release(&b);
	return good;
}

#endif

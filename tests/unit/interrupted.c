/* Once the program is told to end, nothing that goes over many events goes on. The last test of its process, for there is no way back. */
#include "tap.h"
#include "request.h"

#include "base/alloc.h"
#include "base/run.h"
#include "event/jsonl.h"
#include "policy/policy.h"

#include <signal.h>

static const char line[] = "{\"type\": \"ModelRequest\", \"data\": {\"parts\": [{\"__event__\": \"TextInput\", \"content\": \"x\"}]}}\n";

static ssize_t
read_lines(void *arg, void *data, size_t len, struct err *e)
{
	if (len < sizeof(line))
		bail("%zu bytes are too few", len);
	memcpy(data, line, sizeof(line) - 1);
	return sizeof(line) - 1;
}

static int
no_prompt(void *arg, const struct prompt *p, struct err *e)
{
	return 0;
}

static int
count_event(void *arg, struct event *ev, struct err *e)
{
	++*(int *)arg;
	return 0;
}

/* One step of each kind of work; want: what it returns when it goes on, and -1 when it does not. */
static void
goes_on(struct jsonl *in, struct chain *c, const struct llm_request *r, bool on, const char *when)
{
	struct buf body = BUF_INIT;
	struct err e = ERR_INIT;
	struct event ev;
	int rc;

	ok(run_check(&e) == (on ? 0 : -1) && e.code == (on ? ERR_NONE : ERR_UNAVAIL), "%s: what asks is told", when);
	rc = jsonl_next(in, &ev, &e);
	ok(rc == (on ? 1 : -1), "%s: the next line of a stream: %d", when, rc);
	if (rc > 0)
		event_release(&ev);
	rc = chain_event(c, r->events[0], &e);
	ok(rc == (on ? 0 : -1), "%s: an event into the policies: %d", when, rc);
	rc = llm_body(r, &body, &e);
	ok(rc == (on ? 0 : -1), "%s: the body of a request: %d", when, rc);
	buf_release(&body);
}

int
main(void)
{
	const struct llm_config config = { .provider = (char *)"openai", .model = (char *)"m", .temperature = -1 };
	int events = 0;
	struct chain_options o = { .sink = { no_prompt, count_event, &events } };
	struct asked h = { .prompts_n = 0 };
	struct policy_spec spec;
	struct llm_request r;
	struct err e = ERR_INIT;
	struct chain *c;
	struct jsonl in;

	asked_line(&h, line, sizeof(line) - 2);
	r = asked_request(&h, &config);
	if (policy_spec_parse(&spec, "conversation", &e) < 0 || chain_new(&c, &spec, 1, &o, &e) < 0)
		bail("%s", e.msg);
	jsonl_init(&in, "lines", JSONL_BAD_STOP, read_lines, NULL);
	run_catch_signals();
	goes_on(&in, c, &r, true, "before a signal");
	raise(SIGTERM);
	goes_on(&in, c, &r, false, "behind it");
	ok(run_interrupted() == SIGTERM && events == 1, "the signal is there to end by, and nothing more came out (%d)", events);
	jsonl_release(&in);
	chain_free(c);
	policy_spec_release(&spec);
	event_list_release(&h.events);
	return done();
}

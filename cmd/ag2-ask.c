/* ag2-ask: asks a model, as a filter over a stream or as a whole turn of an agent; see man/ag2-ask.1. */
#include "ask/after.h"
#include "ask/answer_json.h"
#include "ask/attach.h"
#include "ask/check.h"
#include "ask/confirm.h"
#include "ask/environ.h"
#include "ask/input.h"
#include "ask/model.h"
#include "ask/request.h"
#include "ask/secrets.h"
#include "ask/tools.h"
#include "ask/verbose.h"
#include "cli.h"
#include "explain.h"

#include "base/alloc.h"
#include "base/io.h"
#include "base/run.h"
#include "base/utf8.h"
#include "stream.h"
#include "schema.h"
#include "turn.h"
#include "upkeep.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX (16u << 20)
#define SCHEMA_MAX (1u << 20)

static struct {
	const char *store, *config, *stream, *record, *replay, *layout, *explain, *compare;
	struct model_options model;
	struct opt_list tools, images, files;
	bool last, skip_bad, strict, events, dry, verbose, no_stream, as_ag2, check, no_upkeep;
	long max_rounds, status_fd;
	bool json, confirm;
	const char *schema;
	double tool_timeout;
} o = { .model.retries = -1, .max_rounds = TURN_ROUNDS, .status_fd = -1, .tool_timeout = TOOL_TIMEOUT };

static const struct opt options[] = {
	CLI_OPT_STORE(&o.store),
	CLI_OPT_CONFIG(&o.config),
	{ 'm', "model", OPT_STRING, &o.model.model, "PROVIDER:MODEL", "the model, such as openai:gpt-5 or exec:CMD" },
	{ 0, "base-url", OPT_STRING, &o.model.base_url, "URL", "where the provider's API is" },
	{ 0, "model-of", OPT_STRING, &o.model.part, "PART", "the model that $AG2_CONFIG names for `agent`, `compact`, `aggregate` or `aggregate:N` (from 0)" },
	{ 0, "stream", OPT_STRING, &o.stream, "S", "a whole turn of this stream (@last, @new)" },
	{ 'C', "continue", OPT_FLAG, &o.last, NULL, "the same as --stream @last" },
	{ 0, "skip-bad", OPT_FLAG, &o.skip_bad, NULL, "bad lines on stdin are no failure" },
	{ 0, "strict", OPT_FLAG, &o.strict, NULL, "stop at the first bad line" },
	{ 0, "events", OPT_FLAG, &o.events, NULL, "print the new event lines instead of the text" },
	{ 'n', "dry-run", OPT_FLAG, &o.dry, NULL, "print the request's body; send and write nothing" },
	{ 'v', "verbose", OPT_FLAG, &o.verbose, NULL, "say on stderr which tools are called and what was used" },
	{ 0, "no-stream", OPT_FLAG, &o.no_stream, NULL, "print nothing before the answer is complete" },
	{ 0, "json", OPT_FLAG, &o.json, NULL, "print one JSON object: text, stop, usage, calls" },
	{ 0, "schema", OPT_STRING, &o.schema, "FILE", "a JSON Schema that the answer must fit" },
	{ 0, "as-ag2", OPT_FLAG, &o.as_ag2, NULL, "AG2's rules, event for event" },
	{ 0, "explain", OPT_OPTIONAL, &o.explain, "json", "say on stderr what is sent and what not, and where the tokens go" },
	{ 0, "compare", OPT_STRING, &o.compare, "FILE|last", "say on stderr where the request begins to differ from an earlier one" },
	{ 0, "layout", OPT_STRING, &o.layout, "ag2|cache", "where prompts go that change often; cache: to the end" },
	{ 0, "check", OPT_FLAG, &o.check, NULL, "only check the agent file; 1 when a policy is out of order or upkeep never runs" },
	{ 0, "image", OPT_LIST, &o.images, "FILE", "an image that goes with the request; may be repeated" },
	{ 0, "file", OPT_LIST, &o.files, "FILE", "a file of any kind that goes with it; may be repeated" },
	{ 0, "tool", OPT_LIST, &o.tools, "FILE|knowledge", "a tool the model may call; may be repeated" },
	{ 0, "confirm", OPT_FLAG, &o.confirm, NULL, "ask on the terminal before each tool call" },
	{ 0, "max-rounds", OPT_INT, &o.max_rounds, "N", "model calls of one turn (50)" },
	{ 0, "tool-timeout", OPT_SECONDS, &o.tool_timeout, "S", "seconds a tool may take (120)" },
	{ 0, "timeout", OPT_SECONDS, &o.model.timeout, "S", "seconds a model call may take in all (600)" },
	{ 0, "connect-timeout", OPT_SECONDS, &o.model.connect_timeout, "S", "to connect (30)" },
	{ 0, "first-byte-timeout", OPT_SECONDS, &o.model.first_byte_timeout, "S", "until the first byte of the answer" },
	{ 0, "idle-timeout", OPT_SECONDS, &o.model.idle_timeout, "S", "of silence within an answer" },
	{ 0, "retries", OPT_INT, &o.model.retries, "N", "how often a call that failed in passing is tried again (3)" },
	{ 0, "cacert", OPT_STRING, &o.model.cacert, "FILE|DIR", "the certificates to trust instead of the system's" },
	{ 0, "cert", OPT_STRING, &o.model.cert, "FILE", "our own certificate" },
	{ 0, "cert-key", OPT_STRING, &o.model.cert_key, "FILE", "its key, where it is not in the same file" },
	{ 0, "record", OPT_STRING, &o.record, "FILE", "add every model call to this cassette" },
	{ 0, "replay", OPT_STRING, &o.replay, "FILE", "answer from this cassette, without network and key" },
	{ 0, "no-upkeep", OPT_FLAG, &o.no_upkeep, NULL, "leave compaction and aggregation to others" },
	{ 0, "status-fd", OPT_INT, &o.status_fd, "N", "write lifecycle events to this descriptor" },
	{ 0 }
};

static const struct opts usage = {
	.program = "ag2-ask",
	.usage = "ag2-ask [OPTION...] [TEXT...] <EVENTS\n"
	    "       ag2-ask {-c FILE | -s URL | --stream S | -C} [OPTION...] [TEXT...]",
	.summary = "Asks a model and runs the tools it calls until there is an answer.",
	.table = options,
	.more = "As a filter, a stream of events comes on stdin and TEXT is asked behind it, --image and --file with it. With\n"
	    "a store, an agent file or a stream it is a whole turn, kept in the stream's log; TEXT - is the text on stdin;\n"
	    "without TEXT a request that was not answered is asked again.\n"
	    "\nExamples:\n"
	    "  ag2-ask -m openai:gpt-5 'Why is the sky blue?' </dev/null\n"
	    "  ag2-ask -c journal.yaml -C 'What should I read next?'\n"
	    "  ag2-ask -c journal.yaml --check\n",
};

static bool
is_filter(void)
{
	return o.stream == NULL && !o.last && o.config == NULL && o.store == NULL;
}

static void
check_options(void)
{
	if (o.stream != NULL && o.last)
		cli_usage(&usage, "--stream and -C exclude each other");
	if (o.skip_bad && o.strict)
		cli_usage(&usage, "--skip-bad and --strict exclude each other");
	cli_check_layout(&usage, o.layout, o.as_ag2);
	explain_check(&usage, o.explain);
	if (o.compare != NULL && strcmp(o.compare, "last") == 0 && is_filter())
		cli_usage(&usage, "--compare last is for a stream of a store");
	if (o.model.part != NULL && !is_filter())
		cli_usage(&usage, "--model-of is for a filter");
	if (o.max_rounds < 1)
		cli_usage(&usage, "--max-rounds must be 1 or more");
	if (o.json && o.events)
		cli_usage(&usage, "--json and --events exclude each other");
	if (o.model.retries < -1)
		cli_usage(&usage, "--retries must be 0 or more");
	if (o.tool_timeout <= 0)
		cli_usage(&usage, "--tool-timeout must be more than 0");
	if (o.status_fd >= 0 && (o.status_fd > 1 << 20 || fcntl((int)o.status_fd, F_SETFD, FD_CLOEXEC) < 0))
		cli_usage(&usage, "--status-fd %ld: no such descriptor is open", o.status_fd);
}

/* ---- what to ask ---- */

static void
join_operands(struct buf *text, char **words, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		if (i > 0)
			buf_addch(text, ' ');
		buf_adds(text, words[i]);
	}
}

/* Its last newline ends the line and is not part of the text. */
static void
read_text(struct buf *text)
{
	struct err e = ERR_INIT;

	if (is_filter())
		cli_usage(&usage, "TEXT cannot be '-' where stdin is a stream");
	if (io_read_all(0, text, "stdin", &e) < 0)
		log_fail(&e);
	if (text->len > 0 && text->data[text->len - 1] == '\n')
		text->data[--text->len] = '\0';
	if (text->len == 0)
		log_die(65, "stdin: there is no text");
}

/* False without TEXT. */
static bool
get_text(struct buf *text, char **words, int n)
{
	size_t good;

	if (n == 0)
		return false;
	if (n == 1 && strcmp(words[0], "-") == 0)
		read_text(text);
	else
		join_operands(text, words, n);
	if (text->len == 0)
		cli_usage(&usage, "TEXT is empty");
	good = utf8_valid(text->data, text->len);
	if (good < text->len)
		log_die(65, "the text is not UTF-8: byte %zu", good + 1);
	return true;
}

/* Standard input is one thing: the stream, the text, or one file. */
static void
check_stdin(char **words, int n)
{
	size_t i, files = 0;

	for (i = 0; i < o.images.n + o.files.n; i++)
		files += strcmp(i < o.images.n ? o.images.items[i] : o.files.items[i - o.images.n], "-") == 0;
	if (files > 0 && is_filter())
		cli_usage(&usage, "--image and --file cannot be '-' where stdin is a stream");
	if (files > 1 || (files > 0 && n == 1 && strcmp(words[0], "-") == 0))
		cli_usage(&usage, "'-' can stand once: stdin is one file or the text");
}

/* ---- store and stream ---- */

/* Nothing is made for -n: a store that is not there yet has nothing in it. */
static struct store *
open_store(const struct agent *a)
{
	struct store *s = NULL;
	struct err e = ERR_INIT;

	if (!o.dry)
		return cli_open(o.store, a, STORE_CREATE);
	if (cli_try_open(&s, o.store, a, STORE_READ, &e) < 0 && e.code != ERR_NOINPUT)
		log_fail(&e);
	return s;
}

/* NULL where no log is written. */
static char *
choose_stream(struct store *s, const struct agent *a)
{
	const char *want = o.last ? "@last" : o.stream;
	struct err e = ERR_INIT;
	bool fresh = false;
	char *id = NULL;

	if (!a->write_event_log) {
		if (want != NULL)
			log_die(78, "%s: 'write_event_log: false' keeps no streams that could be continued", a->file);
		return NULL;
	}
	if (s == NULL && want != NULL && strcmp(want, "@last") == 0)
		err_set(&e, ERR_NOINPUT, "@last: there is no stream yet");
	else if (s == NULL)
		return NULL;
	if (e.code != ERR_NONE || stream_resolve(s, want ? want : "@new", &id, &fresh, &e) < 0) {
		if (o.last && e.code == ERR_NOINPUT)
			log_die(66, "-C: there is no stream yet to go on with; without -C one begins");
		log_fail(&e);
	}
	if (fresh && !o.dry)
		log_warn("stream %s", id);
	return id;
}

/* ---- what is seen ---- */

struct output {
	struct request_watch watch;
	bool broken;		/* standard output is a pipe that nobody reads any more */
	char last;		/* byte of the answer's text */
	size_t files;		/* of the last response */
};

static int
flush_output(struct output *out, struct err *e)
{
	int rc;

	errno = 0;
	rc = out_try_flush(e);
	out->broken = rc < 0 && errno == EPIPE;
	return rc;
}

static int
print_text(void *arg, const char *text, size_t len, struct err *e)
{
	struct output *out = arg;

	out->last = text[len - 1];
	cli_write(text, len);
	return flush_output(out, e);
}

static void
see_event(struct output *out, const char *line, size_t len)
{
	struct json_object *data;
	struct event ev;

	if (event_view(&ev, line, len, NULL) < 0)
		return;
	if (o.verbose || o.json || (ev.type->flags & EV_RESPONSE)) {
		data = event_data(&ev, NULL);
		if (o.verbose)
			say_event(&ev, data);
		if (o.json)
			json_note(&ev, data);
		if (ev.type->flags & EV_RESPONSE)
			out->files = json_count(json_get(data, "files"));
	}
	event_release(&ev);
}

static int
print_event(void *arg, const char *line, size_t len, struct err *e)
{
	see_event(arg, line, len);
	if (!o.events)
		return 0;
	cli_write(line, len);
	out_write("\n", 1);
	return flush_output(arg, e);
}

/* What was not printed as it came, and the newline that ends a line. */
static void
finish_text(struct output *out, const struct buf *answer)
{
	if (o.events || o.json)
		return;
	if (o.no_stream && answer->len > 0) {
		cli_write(answer->data, answer->len);
		out->last = answer->data[answer->len - 1];
	}
	if (out->last != '\0' && out->last != '\n')
		out_write("\n", 1);
}

static int
on_request(void *arg, const struct llm_request *r, const struct buf *body, struct err *e)
{
	return see_request(&((const struct output *)arg)->watch, r, body, e);
}

static void
tell_explained(void *arg, const struct explain *x)
{
	explain_tell(x, o.explain);
}

static void
tell_log_failed(const struct turn *t)
{
	log_warn("the log of stream '%s' could not be written: %s", t->stream, t->log_error.msg);
	upkeep_log_failed((int)o.status_fd, t->store, t->stream, t->agent->name, &t->log_error);
}

/* ---- running it ---- */

/* The turn is over and told; of a turn that was halted as of one that was not. */
static void
keep_up(const struct turn *t)
{
	struct after a = { .agent = t->agent, .store = t->store, .stream = t->stream, .events = &t->history, .given = &o.model,
		.record = o.record, .replay = o.replay, .env = t->commands_env, .status_fd = (int)o.status_fd, .as_ag2 = o.as_ag2 };

	if (o.no_upkeep || t->store == NULL || t->agent->file == NULL)
		return;
	after_turn(&a);
	if (run_interrupted())
		cli_die_by(run_interrupted());
}

/* An answer that was cut short is not the answer: it is not in the log, and whoever reads a pipe sees the status. */
static int
failed(const struct output *out, const struct err *e)
{
	if (out->last != '\0' && out->last != '\n' && cli_terminal()) {
		out_write("\n", 1);
		out_try_flush(NULL);
	}
	if (run_interrupted())
		cli_die_by(run_interrupted());
	if (out->broken)
		cli_die_by(SIGPIPE);
	log_warn("%s", e->msg);
	return err_status(e->code);
}

static int
print_body(struct turn *t, const struct output *out)
{
	struct buf body = BUF_INIT;
	struct err e = ERR_INIT;

	if (turn_body(t, &body, &e) < 0) {
		buf_release(&body);
		return failed(out, &e);
	}
	if (t->halted)
		log_warn("nothing would be sent: %s", t->answer.data);
	else
		cli_write(body.data, body.len);
	if (body.len > 0 && body.data[body.len - 1] != '\n')
		out_write("\n", 1);
	buf_release(&body);
	return t->halted ? 3 : 0;
}

static void
print_json(const struct turn *t)
{
	struct buf text = BUF_INIT;

	json_tell(&text, &t->answer, t->stream);
	cli_write(text.data, text.len);
	buf_release(&text);
}

static struct json_object *
read_schema(const char *path)
{
	struct buf text = BUF_INIT_MAX(SCHEMA_MAX);
	struct json_object *schema = NULL;
	struct err e = ERR_INIT;

	if (io_read_file(path, &text, &e) < 0)
		log_fail(&e);
	if (json_parse(&schema, text.data, text.len, &e) < 0 || !json_object_is_type(schema, json_type_object))
		log_die(65, "the schema '%s' is not a JSON object", path);
	if (schema_usable(schema, &e) < 0)
		log_die(65, "'%s': %s", path, e.msg);
	buf_release(&text);
	return schema;
}

/* An answer that is not what it seems, or none to be seen. The reason it ended for is the provider's word. */
static void
tell_end(const struct turn *t, size_t files)
{
	const char *reason = t->finish_reason != NULL ? t->finish_reason : "not given";
	enum llm_end end = llm_end_of(t->finish_reason);
	size_t i;

	for (i = 0; i < t->answer.len && strchr(" \t\r\n", t->answer.data[i]) != NULL; i++)
		;
	if (t->halted)
		return;
	if (files > 0 && !o.json && !o.events)
		log_warn("the answer has %zu file%s: --json and --events print files, and a log holds them", files, files == 1 ? "" : "s");
	if (files == 0 && i == t->answer.len)
		log_warn("the answer is empty (finish_reason %.100s)", reason);
	else if (end == LLM_END_CUT)
		log_warn("the answer was cut off (finish_reason %.100s)", reason);
	else if (end == LLM_END_REFUSED)
		log_warn("the answer was filtered or refused (finish_reason %.100s)", reason);
}

static int
run_turn(struct turn *t, struct output *out)
{
	struct err e = ERR_INIT;

	t->on_event = print_event;
	t->on_text = o.events || o.json || o.no_stream ? NULL : print_text;
	t->arg = out;
	if (turn_run(t, &e) < 0) {
		if (t->log_failed)
			tell_log_failed(t);
		return failed(out, &e);
	}
	finish_text(out, &t->answer);
	if (o.json)
		print_json(t);
	out_flush();
	tell_end(t, out->files);
	if (t->log_failed) {
		tell_log_failed(t);
		return 74;
	}
	keep_up(t);
	return t->halted ? 3 : 0;
}

/* A person who types a question at a terminal has no stream to give. */
static void
read_input(struct input *in, bool asks)
{
	if (!isatty(0))
		read_stream(in, o.strict ? JSONL_BAD_STOP : o.skip_bad ? JSONL_BAD_SKIP : JSONL_BAD_COUNT);
	else if (!asks)
		cli_usage(&usage, "there is neither TEXT nor a stream on stdin");
}

/* All that a turn needs and that lives as long as it. */
struct session {
	struct input in;
	struct media *media;
	size_t media_n;
	struct tool_list tools;
	struct env_list commands, for_tools;
	struct store *store;
	char *stream;
	struct turn turn;
};

static void
open_session(struct session *s, struct agent *a, bool has_text)
{
	bool asks;

	s->media = attach_read(o.images.items, o.images.n, o.files.items, o.files.n, &s->media_n);
	asks = has_text || s->media_n > 0;
	if (is_filter())
		read_input(&s->in, asks);
	else if (!asks && !o.last && (o.stream == NULL || strcmp(o.stream, "@new") == 0))
		cli_usage(&usage, "a new stream needs TEXT");
	run_catch_signals();
	collect_tools(&s->tools, a, &o.tools, &usage);
	if (!is_filter() || has_knowledge(&s->tools))
		s->store = open_store(a);
	if (!is_filter())
		s->stream = choose_stream(s->store, a);
	if (!o.dry && o.replay == NULL)
		secrets_find(&a->model);
	children_env(&s->commands, &s->for_tools, a, s->store, s->stream, is_filter());
}

static void
fill_turn(struct session *s, const struct agent *a, const struct buf *text)
{
	if (o.confirm)
		open_terminal();
	s->turn = (struct turn){
		.agent = a,
		.store = is_filter() ? NULL : s->store,
		.stream = s->stream,
		.history = s->in.events,
		.prompts = s->in.prompts,
		.prompts_n = s->in.prompts_n,
		.text = text ? text->data : NULL,
		.text_len = text ? text->len : 0,
		.media = s->media,
		.media_n = s->media_n,
		.env = { s->store, (const char *const *)s->for_tools.items, o.tool_timeout, o.confirm ? confirmed : NULL },
		.commands_env = (const char *const *)s->commands.items,
		.on_explain = o.explain != NULL ? tell_explained : NULL,
		.layout = o.layout == NULL ? (a->layout_cache ? LAYOUT_CACHE : LAYOUT_AS_MARKED) :
		    strcmp(o.layout, "cache") == 0 ? LAYOUT_CACHE : LAYOUT_AG2,
		.as_ag2 = o.as_ag2,
		.stream_answer = !o.no_stream,
		.schema = o.schema != NULL ? read_schema(o.schema) : NULL,
		.max_rounds = o.max_rounds,
	};
	s->in.events = (struct event_list){ .items = NULL };
	declare_tools(&s->tools, &s->turn.env);
	s->turn.tools = s->tools.items;
	s->turn.tools_n = s->tools.n;
}

static void
close_session(struct session *s)
{
	json_object_put(s->turn.schema);
	turn_release(&s->turn);
	input_release(&s->in);
	attach_free(s->media, s->media_n);
	tools_release(&s->tools);
	env_release(&s->commands);
	env_release(&s->for_tools);
	store_close(s->store);
	free(s->stream);
}

/* text is NULL without TEXT. */
static int
ask(struct agent *a, const struct buf *text)
{
	struct session s = { .stream = NULL };
	struct output out = { .broken = false };
	int status;

	open_session(&s, a, text != NULL);
	fill_turn(&s, a, text);
	out.watch = (struct request_watch){ s.store, s.stream, o.compare, o.dry, o.dry && o.verbose };
	s.turn.arg = &out;
	s.turn.on_request = o.compare != NULL || (o.dry && o.verbose) ? on_request : NULL;
	if (o.compare != NULL && strcmp(o.compare, "last") == 0 && s.stream == NULL && s.store != NULL)
		cli_usage(&usage, "--compare last is for a stream of a store");
	status = o.dry ? print_body(&s.turn, &out) : run_turn(&s.turn, &out);
	if (status <= 1 && s.in.bad > 0)
		status = 65;
	close_session(&s);
	return status;
}

/* The stream is looked into when it is named. */
static int
check(struct agent *a)
{
	size_t found;
	struct store *s;
	char *stream;

	if (a->file == NULL)
		cli_usage(&usage, "--check needs an agent file (-c FILE)");
	found = check_order(a) + check_triggers(a);
	if (o.stream != NULL || o.last) {
		s = cli_open(o.store, a, STORE_READ);
		stream = choose_stream(s, a);
		found += check_alerts(a, s, stream);
		free(stream);
		store_close(s);
	}
	return found > 0 ? 1 : 0;
}

static void
set_cassette(void)
{
	struct err e = ERR_INIT;

	if (o.record == NULL && o.replay == NULL) {
		o.record = cli_env("AG2_RECORD");
		o.replay = cli_env("AG2_REPLAY");
	}
	if (llm_cassette(o.record, o.replay, &e) < 0)
		log_fail(&e);
}

int
main(int argc, char **argv)
{
	struct buf text = BUF_INIT_MAX(TEXT_MAX);
	struct agent agent;
	bool has_text;
	int n, status;

	cli_start("ag2-ask");
	n = cli_parse(&usage, argc, argv, false);
	check_options();
	o.model.only = is_filter();
	read_agent(&agent, o.config ? o.config : cli_env("AG2_CONFIG"), &o.model, &usage);
	if (o.check) {
		status = check(&agent);
	} else {
		choose_model(&agent.model, &o.model, o.config != NULL);
		set_cassette();
		check_stdin(argv, n);
		has_text = get_text(&text, argv, n);
		if (!is_filter() && agent.file != NULL)
			check_order(&agent);
		status = ask(&agent, has_text ? &text : NULL);
	}
	agent_release(&agent);
	buf_release(&text);
	out_close();
#ifndef __SANITIZE_ADDRESS__	/* which tells of leaks at exit() */
	_exit(status);	/* or each library that libcurl brought takes its tables apart */
#endif
	return status;
}

/* ag2-ask: asks a model, as a filter over a stream or as a whole turn of an agent; see man/ag2-ask.1. */
#include "ask/after.h"
#include "ask/answer_json.h"
#include "cli.h"
#include "compare.h"
#include "explain.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/run.h"
#include "base/utf8.h"
#include "event/render.h"
#include "stream.h"
#include "turn.h"
#include "upkeep.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX (16u << 20)
#define KEY_MAX 8192
#define SCHEMA_MAX (1u << 20)

static struct {
	const char *store, *config, *model, *base_url, *model_of, *stream, *record, *replay, *layout, *explain, *compare;
	struct opt_list tools;
	bool last, skip_bad, strict, events, dry, verbose, no_stream, as_ag2, check, no_upkeep;
	long max_rounds, status_fd;
	bool json, confirm;
	const char *schema;
	double tool_timeout, timeout, connect_timeout, first_byte_timeout, idle_timeout;
	long retries;
} o = { .retries = -1, .max_rounds = TURN_ROUNDS, .status_fd = -1, .tool_timeout = TOOL_TIMEOUT };

static const struct opt options[] = {
	CLI_OPT_STORE(&o.store),
	CLI_OPT_CONFIG(&o.config),
	{ 'm', "model", OPT_STRING, &o.model, "PROVIDER:MODEL", "the model, such as openai:gpt-5 or exec:CMD" },
	{ 0, "base-url", OPT_STRING, &o.base_url, "URL", "where the provider's API is" },
	{ 0, "model-of", OPT_STRING, &o.model_of, "PART", "the model that $AG2_CONFIG names for `compact`, `aggregate` or `aggregate:N` (from 0)" },
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
	{ 0, "check", OPT_FLAG, &o.check, NULL, "only check the agent file; 1 when its policies' order is wrong" },
	{ 0, "tool", OPT_LIST, &o.tools, "FILE|knowledge", "a tool the model may call; may be repeated" },
	{ 0, "confirm", OPT_FLAG, &o.confirm, NULL, "ask on the terminal before each tool call" },
	{ 0, "max-rounds", OPT_INT, &o.max_rounds, "N", "model calls of one turn (50)" },
	{ 0, "tool-timeout", OPT_SECONDS, &o.tool_timeout, "S", "seconds a tool may take (120)" },
	{ 0, "timeout", OPT_SECONDS, &o.timeout, "S", "seconds a model call may take in all (600)" },
	{ 0, "connect-timeout", OPT_SECONDS, &o.connect_timeout, "S", "to connect (30)" },
	{ 0, "first-byte-timeout", OPT_SECONDS, &o.first_byte_timeout, "S", "until the first byte of the answer" },
	{ 0, "idle-timeout", OPT_SECONDS, &o.idle_timeout, "S", "of silence within an answer" },
	{ 0, "retries", OPT_INT, &o.retries, "N", "how often a call that failed in passing is tried again (3)" },
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
	.more = "As a filter, a stream of events comes on stdin and TEXT is asked behind it. With a store, an agent file or a\n"
	    "stream it is a whole turn, kept in the stream's log; TEXT - is the text on stdin; without TEXT a request that was\n"
	    "not answered is asked again.\n",
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
	if (o.model_of != NULL && !is_filter())
		cli_usage(&usage, "--model-of is for a filter");
	if (o.max_rounds < 1)
		cli_usage(&usage, "--max-rounds must be 1 or more");
	if (o.json && o.events)
		cli_usage(&usage, "--json and --events exclude each other");
	if (o.retries < -1)
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

/* ---- the agent ---- */

static void
say_pair(void *arg, size_t i, size_t j)
{
	const struct agent *a = arg;

	log_warn("%s: %s (policy %zu) cuts events before %s (policy %zu) adds its prompt; put it behind",
	    a->file, policy_spec_name(&a->assembly[i]), i + 1, policy_spec_name(&a->assembly[j]), j + 1);
}

static size_t
warn_order(struct agent *a)
{
	const char **names = xcalloc(a->assembly_n, sizeof(*names));
	size_t i, pairs;

	for (i = 0; i < a->assembly_n; i++)
		names[i] = policy_spec_name(&a->assembly[i]);
	pairs = policy_order_check(names, a->assembly_n, say_pair, a);
	free(names);
	return pairs;
}

/* The model of that part, which is the agent's unless the file names another. */
static struct llm_config *
model_of(struct agent *a, const char *part)
{
	struct llm_config *own = NULL;
	long i = 0;

	if (strcmp(part, "compact") == 0)
		own = &a->compact.model;
	else if (strncmp(part, "aggregate", 9) == 0 && (part[9] == '\0' ||
	    (part[9] == ':' && parse_long(part + 10, "--model-of", &i, NULL) == 0 && i >= 0)))
		own = (size_t)i < a->aggregates_n ? &a->aggregates[i].model : NULL;
	else
		cli_usage(&usage, "--model-of: there is no part '%s' (compact, aggregate, aggregate:N)", part);
	return own != NULL && own->provider != NULL ? own : &a->model;
}

/* Only the model of $AG2_CONFIG is meant where the stream, with its prompts, comes from elsewhere. */
static void
read_agent(struct agent *a)
{
	const char *file = o.config ? o.config : cli_env("AG2_CONFIG");
	struct llm_config model, *from;
	char *name;
	struct err e = ERR_INIT;

	if (file == NULL) {
		agent_init(a);
		return;
	}
	if (agent_read(a, file, &e) < 0)
		log_fail(&e);
	if (is_filter()) {
		from = o.model_of ? model_of(a, o.model_of) : &a->model;
		model = *from;
		*from = (struct llm_config){ .temperature = -1 };
		name = xstrdup(a->name);
		agent_release(a);
		agent_init(a);
		free(a->name);
		a->name = name;
		a->model = model;
	}
}

/* A model given here keeps what the file says of the provider, unless it is another one. */
static void
use_model(struct llm_config *c, const char *text, int status)
{
	struct llm_config fresh = { .temperature = -1 };
	struct err e = ERR_INIT;

	if (llm_config_parse(&fresh, text, &e) < 0)
		log_die(status, "%s", e.msg);
	if (c->provider != NULL && strcmp(c->provider, fresh.provider) == 0) {
		free(c->model);
		c->model = xstrdup(fresh.model);
		if (strcmp(c->provider, "exec") == 0) {
			free(c->cwd);
			c->cwd = NULL;
		}
		llm_config_release(&fresh);
		return;
	}
	llm_config_release(c);
	*c = fresh;
}

static void
use_limit(double *at, double given)
{
	if (given > 0)
		*at = given;
}

static void
use_limits(struct llm_config *c)
{
	use_limit(&c->timeout, o.timeout);
	use_limit(&c->connect_timeout, o.connect_timeout);
	use_limit(&c->first_byte_timeout, o.first_byte_timeout);
	use_limit(&c->idle_timeout, o.idle_timeout);
	if (o.retries >= 0)
		c->retries = o.retries > 0 ? o.retries : -1;
}

static void
choose_model(struct llm_config *c)
{
	const char *base_url = o.base_url ? o.base_url : cli_env("AG2_BASE_URL"), *model = cli_env("AG2_MODEL");

	if (o.model != NULL)
		use_model(c, o.model, 64);
	else if (model != NULL && (c->provider == NULL || o.config == NULL))
		use_model(c, model, 78);
	if (c->provider == NULL)
		log_die(78, "no model is configured; try -m openai:gpt-5 (its key in OPENAI_API_KEY), or 'model:' in the agent file");
	if (base_url != NULL) {
		free(c->base_url);
		c->base_url = xstrdup(base_url);
	}
	use_limits(c);
}

/* ---- keys ---- */

/* Its first line. Neither the command's output nor its words are ever shown: both may be the secret. */
static char *
key_from_command(const struct agent *a, const char *command)
{
	struct buf out = BUF_INIT_MAX(KEY_MAX);
	struct run r = { .shell = command, .cwd = a->dir, .input = "", .out = &out, .timeout = 60 };
	struct err e = ERR_INIT;
	char *key;
	int rc = run(&r, &e);

	if (run_interrupted())
		cli_die_by(run_interrupted());
	if (rc < 0)
		log_die(78, "api_key_cmd failed: it could not be run, took too long or printed too much");
	if (rc > 0)
		log_die(78, "api_key_cmd failed with status %d", rc);
	key = xmemdup0(out.data, strcspn(out.data, "\r\n"));
	explicit_bzero(out.data, out.len);
	buf_release(&out);
	if (key[0] == '\0')
		log_die(78, "api_key_cmd printed no key");
	return key;
}

/* Its first line; whoever else may read the file may have the key. */
static char *
key_from_file(const struct agent *a, const char *name)
{
	char *path = name[0] == '/' || a->dir == NULL ? xstrdup(name) : xasprintf("%s/%s", a->dir, name), *key;
	struct buf text = BUF_INIT_MAX(KEY_MAX);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct err e = ERR_INIT;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		log_die(errno == EACCES ? 77 : 78, "cannot read the key's file '%s': %s", path, strerror(errno));
	if ((st.st_mode & 077) != 0)
		log_die(77, "the key's file '%s' can be read by others: chmod 600 it", path);
	if (io_read_all(fd, &text, "the key", &e) < 0)
		log_die(78, "the key's file '%s' cannot be read", path);
	close(fd);
	key = xmemdup0(text.data, strcspn(text.data, "\r\n"));
	explicit_bzero(text.data, text.len);
	buf_release(&text);
	if (key[0] == '\0')
		log_die(78, "the key's file '%s' is empty", path);
	free(path);
	return key;
}

static void
find_key(struct agent *a)
{
	struct llm_config *c = &a->model;
	const char *name = c->api_key_env ? c->api_key_env : llm_key_env(c), *key;

	if (name == NULL)
		return;
	if (c->api_key_cmd != NULL) {
		c->api_key = key_from_command(a, c->api_key_cmd);
		return;
	}
	if (c->api_key_file != NULL) {
		c->api_key = key_from_file(a, c->api_key_file);
		return;
	}
	key = cli_env(name);
	c->api_key = key ? xstrdup(key) : NULL;
}

/* ---- what children are told ---- */

struct env_list {
	char **items;
	size_t n, cap;
};

static void
env_add(struct env_list *l, char *item)
{
	l->items = xgrow(l->items, l->n, &l->cap, sizeof(*l->items));
	l->items[l->n++] = item;
}

static void
env_set(struct env_list *l, const char *name, const char *value)
{
	if (value != NULL)
		env_add(l, xasprintf("%s=%s", name, value));
}

static void
env_release(struct env_list *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		free(l->items[i]);
	free(l->items);
	*l = (struct env_list){ .items = NULL };
}

/* For the user's own parts: policies, exec: models, the bootstrap. A name alone is taken out. */
static void
commands_env(struct env_list *l, const struct agent *a, const struct store *store, const char *stream)
{
	char *model = xasprintf("%s:%s", a->model.provider, a->model.model);

	env_set(l, "AG2_STORE", store ? store_url(store) : NULL);
	if (stream == NULL && !is_filter())
		env_add(l, xstrdup("AG2_STREAM"));	/* not that of an agent around us */
	env_set(l, "AG2_STREAM", stream);
	env_set(l, "AG2_NAME", a->name);
	env_set(l, "AG2_CONFIG", a->file);
	env_set(l, "AG2_MODEL", model);
	free(model);
}

static bool
ends_with(const char *name, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && memcmp(name + len - n, end, n) == 0;
}

/* Tools do what a model says, so that they do not get its key, nor any other that looks like one. */
static void
tools_env(struct env_list *l, const struct env_list *commands, const struct agent *a)
{
	size_t i, len;

	for (i = 0; i < commands->n; i++)
		env_add(l, xstrdup(commands->items[i]));
	for (i = 0; environ[i] != NULL; i++) {
		len = strcspn(environ[i], "=");
		if (ends_with(environ[i], len, "_API_KEY") || ends_with(environ[i], len, "_AUTH_TOKEN"))
			env_add(l, xmemdup0(environ[i], len));
	}
	if (a->model.api_key_env != NULL)
		env_add(l, xstrdup(a->model.api_key_env));
	if (a->compact.model.api_key_env != NULL)
		env_add(l, xstrdup(a->compact.model.api_key_env));
	for (i = 0; i < a->aggregates_n; i++)
		if (a->aggregates[i].model.api_key_env != NULL)
			env_add(l, xstrdup(a->aggregates[i].model.api_key_env));
	env_add(l, NULL);
}

/* ---- tools ---- */

struct tool_list {
	struct tool *items;
	size_t n, cap;
};

static struct tool *
tool_add(struct tool_list *l)
{
	l->items = xgrow(l->items, l->n, &l->cap, sizeof(*l->items));
	l->items[l->n] = (struct tool){ .name = NULL };
	return &l->items[l->n++];
}

static bool
has_knowledge(const struct tool_list *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (l->items[i].command == NULL)
			return true;
	return false;
}

/* The file's, then those given here, then knowledge. The agent's become ours. */
static void
collect_tools(struct tool_list *l, struct agent *a)
{
	struct err e = ERR_INIT;
	size_t i;

	for (i = 0; i < a->tools_n; i++)
		*tool_add(l) = a->tools[i];
	a->tools_n = 0;
	for (i = 0; i < o.tools.n; i++)
		if (tool_parse(tool_add(l), o.tools.items[i], NULL, &e) < 0)
			cli_usage(&usage, "--tool: %s", e.msg);
	if (a->has_knowledge && a->expose_tool && !has_knowledge(l))
		tool_knowledge(tool_add(l));
}

static void
declare_tools(struct tool_list *l, const struct tool_env *env)
{
	struct err e = ERR_INIT;
	size_t i, j;

	for (i = 0; i < l->n; i++) {
		if (tool_declare(&l->items[i], env, &e) < 0) {
			if (run_interrupted())
				cli_die_by(run_interrupted());
			log_fail(&e);
		}
		for (j = 0; j < i; j++)
			if (strcmp(l->items[i].name, l->items[j].name) == 0)
				log_die(78, "two tools are called '%s'", l->items[i].name);
	}
}

static void
tools_release(struct tool_list *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		tool_release(&l->items[i]);
	free(l->items);
}

/* ---- the stream on stdin ---- */

struct input {
	struct prompt *prompts;
	size_t prompts_n, prompts_cap, bytes;
	struct event_list events;
	uint64_t bad;
};

static bool
add_prompt(struct input *in, struct json_object *data)
{
	size_t len;
	const char *content = json_get_text(data, "content", &len);

	if (content == NULL)
		return false;
	in->prompts = xgrow(in->prompts, in->prompts_n, &in->prompts_cap, sizeof(*in->prompts));
	in->prompts[in->prompts_n++] = (struct prompt){ .content = { xmemdup0(content, len), len },
		.at_end = prompt_at_end(data) };
	return true;
}

/* All of it goes to the model, so that all of it is read by the full grammar. */
static int
add_line(struct input *in, struct jsonl *lines, struct event *ev, struct err *e)
{
	struct err why = ERR_INIT;
	struct json_object *data = event_data(ev, &why);

	in->bytes += ev->len;
	if (in->bytes > TURN_BYTES_MAX)
		return err_set(e, ERR_DATA, "stdin: more than %u MB; let a policy such as sliding-window bound the stream",
		    TURN_BYTES_MAX >> 20);
	if (data == NULL)
		return jsonl_bad(lines, ev, &why, e);
	if (ev->type->flags & EV_PROMPT) {
		if (add_prompt(in, data))
			return 0;
		err_set(&why, ERR_DATA, "a Prompt without text");
		return jsonl_bad(lines, ev, &why, e);
	}
	event_forget(ev);
	event_list_add(&in->events, event_dup(ev));
	return 0;
}

/* A person who types a question at a terminal has no stream to give. */
static void
read_stream(struct input *in, bool has_text)
{
	enum jsonl_bad on_bad = o.strict ? JSONL_BAD_STOP : o.skip_bad ? JSONL_BAD_SKIP : JSONL_BAD_COUNT;
	struct err e = ERR_INIT;
	struct jsonl lines;
	struct event ev;
	int rc;

	if (isatty(0)) {
		if (!has_text)
			cli_usage(&usage, "there is neither TEXT nor a stream on stdin");
		return;
	}
	jsonl_init_fd(&lines, "stdin", on_bad, 0);
	while ((rc = jsonl_next(&lines, &ev, &e)) > 0) {
		rc = add_line(in, &lines, &ev, &e);
		event_release(&ev);
		if (rc < 0)
			break;
	}
	if (rc < 0)
		log_fail(&e);
	in->bad = o.skip_bad ? 0 : lines.bad;
	jsonl_release(&lines);
}

static void
input_release(struct input *in)
{
	size_t i;

	for (i = 0; i < in->prompts_n; i++)
		free((char *)in->prompts[i].content.data);
	free(in->prompts);
	event_list_release(&in->events);
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
		log_die(66, "there is no stream yet");
	if (s == NULL)
		return NULL;
	if (stream_resolve(s, want ? want : "@new", &id, &fresh, &e) < 0)
		log_fail(&e);
	if (fresh && !o.dry)
		log_warn("stream %s", id);
	return id;
}

/* ---- what is seen ---- */

struct output {
	struct store *store;	/* for --compare last */
	const char *stream;
	bool broken;		/* standard output is a pipe that nobody reads any more */
	char last;		/* byte of the answer's text */
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
say_text(const char *what, struct json_object *data, const char *key)
{
	size_t len;
	const char *text = json_get_text(data, key, &len);

	log_warn("%s%.*s", what, (int)(text ? len < 200 ? len : 200 : 0), text ? text : "");
}

static void
say_usage(struct json_object *data)
{
	struct json_object *usage_data = json_get(json_get(data, "usage"), "data");
	struct json_object *in = json_get(usage_data, "prompt_tokens"), *out = json_get(usage_data, "completion_tokens"),
	    *all = json_get(usage_data, "total_tokens");

	log_warn("tokens: %s in, %s out, %s in all", in ? json_object_get_string(in) : "?",
	    out ? json_object_get_string(out) : "?", all ? json_object_get_string(all) : "?");
}

/* -v: what happens between the request and the answer. */
static void
say_event(const char *line, size_t len)
{
	struct json_object *data;
	struct event ev;

	if (event_view(&ev, line, len, NULL) < 0)
		return;
	data = event_data(&ev, NULL);
	if (ev.type->flags & EV_USAGE)
		say_usage(data);
	else if (strcmp(ev.type->last, "ToolCallEvent") == 0)
		say_text("tool: ", data, "name");
	else if (ev.type->flags & EV_ERROR_RESULT)
		say_text("tool failed: ", json_get(data, "error"), "message");
	event_release(&ev);
}

static int
print_event(void *arg, const char *line, size_t len, struct err *e)
{
	if (o.verbose)
		say_event(line, len);
	if (o.json)
		json_note(line, len);
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

/* -n -v: which line each message comes from. */
static int
say_origins(const struct llm_request *r, struct err *e)
{
	const struct event *ev;
	size_t *origin, n, i;

	if (llm_origins(r, &origin, &n, e) < 0)
		return -1;
	for (i = 0; i < n; i++) {
		ev = origin[i] < r->events_n ? r->events[origin[i]] : NULL;
		if (ev == NULL)
			log_warn("message %zu: %s", i, origin[i] == SIZE_MAX ? "the prompts" : "the context");
		else if (ev->number > 0)
			log_warn("message %zu: line %llu, %s", i, (unsigned long long)ev->number, ev->type->last);
		else if (ev->offset > 0)
			log_warn("message %zu: byte %llu, %s", i, (unsigned long long)ev->offset, ev->type->last);
		else
			log_warn("message %zu: new, %s", i, ev->type->last);
	}
	free(origin);
	return 0;
}

static char *
sent_path(const struct output *out)
{
	return xasprintf("/.ag2/sent/%s", out->stream);
}

/* The request sent before this one in the stream; of this process or, by who asked for it, another. */
static int
read_last(const struct output *out, struct buf *before, struct err *e)
{
	struct err why = ERR_INIT;
	char *path = sent_path(out);
	int rc = store_read(out->store, path, before, NULL, &why);

	free(path);
	if (rc < 0 && why.code != ERR_ABSENT)
		return err_set(e, why.code, "%s", why.msg);
	if (rc < 0)
		log_warn("compare: no earlier request of stream '%s' is kept%s", out->stream, o.dry ? "" : "; this one is");
	return rc < 0 ? 0 : 1;
}

static int
compare_last(const struct output *out, const struct buf *body, struct err *e)
{
	struct buf before = BUF_INIT;
	char *path;
	int rc = out->store != NULL ? read_last(out, &before, e) : 0;

	if (rc > 0)
		compare_tell("the last request", &before, body, CHARS_PER_TOKEN);
	buf_release(&before);
	if (rc < 0 || o.dry)
		return rc < 0 ? -1 : 0;
	path = sent_path(out);
	rc = store_write(out->store, path, body->data, body->len, e);
	free(path);
	return rc;
}

static int
see_request(void *arg, const struct llm_request *r, const struct buf *body, struct err *e)
{
	const struct output *out = arg;
	struct buf before;

	if (o.dry && o.verbose && say_origins(r, e) < 0)
		return -1;
	if (o.compare == NULL)
		return 0;
	if (strcmp(o.compare, "last") == 0)
		return compare_last(out, body, e);
	compare_read(&before, o.compare);
	if (before.len > 0 && before.data[before.len - 1] == '\n' && body->data[body->len - 1] != '\n')
		before.len--;	/* the newline that -n ends the body with */
	compare_tell(o.compare, &before, body, CHARS_PER_TOKEN);
	buf_release(&before);
	return 0;
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
	struct after a = { .agent = t->agent, .store = t->store, .stream = t->stream, .model = o.model, .base_url = o.base_url,
		.record = o.record, .replay = o.replay, .status_fd = (int)o.status_fd };

	if (o.no_upkeep || t->stream == NULL || t->agent->file == NULL)
		return;
	after_turn(&a);
	if (run_interrupted())
		cli_die_by(run_interrupted());
}

static int
print_body(struct turn *t)
{
	struct buf body = BUF_INIT;
	struct err e = ERR_INIT;

	if (turn_body(t, &body, &e) < 0)
		log_fail(&e);
	if (t->halted)
		log_warn("nothing would be sent: %s", t->answer.data);
	else
		cli_write(body.data, body.len);
	if (body.len > 0 && body.data[body.len - 1] != '\n')
		out_write("\n", 1);
	buf_release(&body);
	return t->halted ? 3 : 0;
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

static int terminal = -1;

/* Whatever a model writes is shown before it runs, with nothing in it that a terminal would obey. */
static bool
confirmed(const struct call *call)
{
	struct buf shown = BUF_INIT;
	char answer[1000];	/* a line, as terminals give them */
	bool told;

	buf_adds(&shown, "ag2-ask: run ");
	scrub(&shown, call->name, strlen(call->name), false);
	buf_addch(&shown, ' ');
	scrub(&shown, call->arguments, strlen(call->arguments), false);
	buf_adds(&shown, "? [y/N] ");
	out_flush();
	told = io_write_all(terminal, shown.data, shown.len) == 0;
	buf_release(&shown);
	return told && io_read(terminal, answer, sizeof(answer)) > 0 && (answer[0] == 'y' || answer[0] == 'Y');
}

static void
open_terminal(void)
{
	if (o.confirm && (terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)) < 0)
		log_die(78, "--confirm needs a terminal, and there is none");
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
	buf_release(&text);
	return schema;
}

/* An answer that is not what it seems, or none to be seen. The reason it ended for is the provider's word. */
static void
tell_end(const struct turn *t)
{
	const char *reason = t->finish_reason != NULL ? t->finish_reason : "not given";
	enum llm_end end = llm_end_of(t->finish_reason);
	size_t i;

	for (i = 0; i < t->answer.len && strchr(" \t\r\n", t->answer.data[i]) != NULL; i++)
		;
	if (t->halted)
		return;
	if (i == t->answer.len)
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
	tell_end(t);
	if (t->log_failed) {
		tell_log_failed(t);
		return 74;
	}
	keep_up(t);
	return t->halted ? 3 : 0;
}

/* All that a turn needs and that lives as long as it. */
struct session {
	struct input in;
	struct tool_list tools;
	struct env_list commands, for_tools;
	struct store *store;
	char *stream;
	struct turn turn;
};

static void
open_session(struct session *s, struct agent *a, bool has_text)
{
	if (is_filter())
		read_stream(&s->in, has_text);
	else if (!has_text && !o.last && (o.stream == NULL || strcmp(o.stream, "@new") == 0))
		cli_usage(&usage, "a new stream needs TEXT");
	run_catch_signals();
	collect_tools(&s->tools, a);
	if (!is_filter() || has_knowledge(&s->tools))
		s->store = open_store(a);
	if (!is_filter())
		s->stream = choose_stream(s->store, a);
	if (!o.dry && o.replay == NULL)
		find_key(a);
	commands_env(&s->commands, a, s->store, s->stream);
	tools_env(&s->for_tools, &s->commands, a);
	env_add(&s->commands, NULL);
}

static void
fill_turn(struct session *s, const struct agent *a, const struct buf *text)
{
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
	out.store = s.store;
	out.stream = s.stream;
	s.turn.arg = &out;
	s.turn.on_request = o.compare != NULL || (o.dry && o.verbose) ? see_request : NULL;
	if (o.compare != NULL && strcmp(o.compare, "last") == 0 && s.stream == NULL && s.store != NULL)
		cli_usage(&usage, "--compare last is for a stream of a store");
	status = o.dry ? print_body(&s.turn) : run_turn(&s.turn, &out);
	if (status <= 1 && s.in.bad > 0)
		status = 65;
	close_session(&s);
	return status;
}

static int
check(struct agent *a)
{
	if (a->file == NULL)
		cli_usage(&usage, "--check needs an agent file (-c FILE)");
	return warn_order(a) > 0 ? 1 : 0;
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
	read_agent(&agent);
	if (o.check) {
		status = check(&agent);
	} else {
		choose_model(&agent.model);
		set_cassette();
		has_text = get_text(&text, argv, n);
		if (!is_filter() && agent.file != NULL)
			warn_order(&agent);
		status = ask(&agent, has_text ? &text : NULL);
	}
	agent_release(&agent);
	buf_release(&text);
	out_close();
	return status;
}

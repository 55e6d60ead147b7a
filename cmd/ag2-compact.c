/* ag2-compact: the old part of a history goes, what stays can stand alone; see man/ag2-compact.1. */
#include "upkeep_cmd.h"

#include "base/alloc.h"
#include "base/run.h"
#include "compact/compact.h"
#include "event/render.h"
#include "stream.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

static const char *url, *config, *stream_given, *model, *chars;
static bool in_place, skip_bad, strict, undo;
static long max_events, max_tokens, status_fd = -1;

static const struct opt table[] = {
	CLI_OPT_STORE(&url),
	CLI_OPT_CONFIG(&config),
	{ 0, "stream", OPT_STRING, &stream_given, "S", "the log of this stream (@last) instead of standard input" },
	{ 'i', "in-place", OPT_FLAG, &in_place, NULL, "compact the log itself; what goes becomes a segment beside it" },
	{ 'm', "model", OPT_STRING, &model, "PROVIDER:MODEL", "the model that summarizes" },
	{ 0, "max-events", OPT_INT, &max_events, "N", "act only on more than N conversational events" },
	{ 0, "max-tokens", OPT_INT, &max_tokens, "N", "act only when they cost more than N tokens, as estimated" },
	{ 0, "chars-per-token", OPT_STRING, &chars, "N|auto", "code points that are a token (4); auto: one that is not ASCII is a token" },
	{ 0, "undo", OPT_FLAG, &undo, NULL, "put the last segment back" },
	{ 0, "skip-bad", OPT_FLAG, &skip_bad, NULL, "bad lines are skipped and named, and the exit status stays 0" },
	{ 0, "strict", OPT_FLAG, &strict, NULL, "stop at the first bad line" },
	{ 0, "status-fd", OPT_INT, &status_fd, "N", "write lifecycle events to this descriptor" },
	{ 0 }
};

static void
print_strategies(void)
{
	upkeep_cmd_strategies(STRATEGY_COMPACTS);
}

static void
complete(int n, char **words)
{
	upkeep_cmd_complete(STRATEGY_COMPACTS, table, n, words);
}

static const struct opts usage = {
	.complete = complete,
	.program = "ag2-compact",
	.usage = "ag2-compact [-s URL] [-c FILE] [--stream S [-i]] [--skip-bad|--strict] [-m MODEL] [--max-events N] "
	    "[--max-tokens N] [--chars-per-token N] [--status-fd N] [STRATEGY]\n"
	    "       ag2-compact [-s URL] [-c FILE] --stream S --undo",
	.summary = "Trims the history of a stream: its newest events stay, the others go or are summarized.",
	.table = table,
	.print_more = print_strategies,
	.more = "Tokens are estimated: code points divided by --chars-per-token, rounded down for each text.\n"
	    "\nExamples:\n"
	    "  ag2-compact --stream @last -i --max-events 200 tail-window:100\n"
	    "  ag2-compact --stream @last -i -m openai:gpt-5-mini summarize:100\n"
	    "  ag2-store log cat --current @last | ag2-compact tail-window:20\n",
};

static enum jsonl_bad
on_bad(void)
{
	if (strict)
		return JSONL_BAD_STOP;
	if (stream_given != NULL)
		return JSONL_BAD_ONCE;
	return skip_bad ? JSONL_BAD_SKIP : JSONL_BAD_COUNT;
}

static void
check_options(int n, char *const *args)
{
	if (skip_bad && strict)
		cli_usage(&usage, "--skip-bad and --strict exclude each other");
	if ((in_place || undo) && stream_given == NULL)
		cli_usage(&usage, "%s needs --stream", undo ? "--undo" : "-i");
	if (n > 1)
		cli_usage(&usage, "one strategy, not '%s' as well", args[1]);
	if (undo && n > 0)
		cli_usage(&usage, "--undo takes no strategy");
	if (n == 0 && config == NULL && !undo)
		cli_usage(&usage, "which strategy? tail-window:N, summarize:N or exec:CMD");
	upkeep_cmd_status_fd(&usage, status_fd);
}

static int
chars_per_token(void)
{
	long n;

	if (chars == NULL)
		return CHARS_PER_TOKEN;
	if (strcmp(chars, "auto") == 0)
		return CHARS_AUTO;
	if (parse_long(chars, "--chars-per-token", &n, NULL) < 0 || n < 1 || n > CHARS_MAX)
		cli_usage(&usage, "--chars-per-token: a number from 1 to %d, or auto", CHARS_MAX);
	return (int)n;
}

/* The file's strategy has the file's trigger: none never fires. One given here acts unless a threshold given here holds it. */
static bool
read_spec(struct compact *c, const struct upkeep_cmd *u, const char *given)
{
	const struct upkeep *file = &u->agent.compact;
	struct err e = ERR_INIT;

	c->trigger = (struct trigger){ .max_events = max_events, .max_tokens = max_tokens, .chars_per_token = chars_per_token() };
	if (given != NULL) {
		if (compact_spec_parse(&c->spec, given, &e) < 0)
			cli_usage(&usage, "%s", e.msg);
		return true;
	}
	if (file->choice.strategy == NULL)
		log_die(78, "%s: there is no 'compact:' in it, and no strategy was given", config);
	compact_spec_copy(&c->spec, &u->agent);
	if (!trigger_is_set(&c->trigger)) {
		c->trigger.max_events = file->max_events > 0 ? file->max_events : 0;
		c->trigger.max_tokens = file->max_tokens > 0 ? file->max_tokens : 0;
	}
	if (chars == NULL && file->chars_per_token >= 0)
		c->trigger.chars_per_token = (int)file->chars_per_token;
	return trigger_is_set(&c->trigger);
}

static int
put_line(void *arg, const char *line, size_t len, struct err *e)
{
	cli_write(line, len);
	out_write("\n", 1);
	return 0;
}

static noreturn void
fail(const struct err *e)
{
	out_flush();
	if (run_interrupted() != 0)
		cli_die_by(run_interrupted());
	log_fail(e);
}

static char *
resolve(struct store *s)
{
	struct err e = ERR_INIT;
	char *id;

	if (stream_resolve(s, stream_given, &id, NULL, &e) < 0)
		log_fail(&e);
	return id;
}

static void
compact(struct compact *c, struct upkeep_cmd *u)
{
	struct store *s = stream_given ? cli_open(url, &u->agent, in_place ? STORE_WRITE : STORE_READ) : NULL;
	char *stream = s ? resolve(s) : NULL;
	struct err e = ERR_INIT;
	int rc;

	upkeep_cmd_env(u, s, stream, model);
	c->model = upkeep_cmd_model(u, model, "compact");
	c->env = (const char *const *)u->env;
	c->tmpdir = cli_env("TMPDIR");
	c->on_bad = on_bad();
	c->run.agent = u->agent.name;
	c->run.status_fd = (int)status_fd;
	run_catch_signals();
	if (s == NULL)
		rc = compact_filter(c, 0, "stdin", put_line, NULL, &e);
	else if (in_place)
		rc = compact_stream(c, s, stream, &e);
	else
		rc = compact_filter_stream(c, s, stream, put_line, NULL, &e);
	if (rc < 0)
		fail(&e);
	store_close(s);
	free(stream);
}

static void
run_undo(struct upkeep_cmd *u)
{
	struct store *s = cli_open(url, &u->agent, STORE_WRITE);
	char *stream = resolve(s);
	struct err e = ERR_INIT;

	if (compact_undo(s, stream, &e) < 0)
		fail(&e);
	store_close(s);
	free(stream);
}

/* Nothing to be done: a filter gives what it gets. */
static void
pass(struct compact *c, struct upkeep_cmd *u)
{
	if (in_place)
		return;
	c->trigger.max_events = LONG_MAX;
	compact(c, u);
}

int
main(int argc, char **argv)
{
	struct compact c = { .run = { .status_fd = -1 } };
	struct upkeep_cmd u;
	int n, status;

	cli_start("ag2-compact");
	n = cli_parse(&usage, argc, argv, false);
	check_options(n, argv);
	upkeep_cmd_open(&u, config);
	if (undo)
		run_undo(&u);
	else if (read_spec(&c, &u, n > 0 ? argv[0] : NULL))
		compact(&c, &u);
	else
		pass(&c, &u);
	status = stream_given == NULL && c.bad > 0 && !skip_bad ? 65 : 0;
	compact_spec_release(&c.spec);
	upkeep_run_release(&c.run);
	upkeep_cmd_release(&u);
	out_close();
	return status;
}

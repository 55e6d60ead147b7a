/* ag2-aggregate: what an agent learns from its streams goes into its memory. */
#include "aggregate/all.h"

#include "base/alloc.h"
#include "base/run.h"
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>

#define TEMPLATE_MAX (1u << 20)
#define MEMORY_MAX (16u << 20)
#define WAIT_MS 60000

static const char *url, *config, *stream_given, *model, *template_file, *existing_file;
static bool all, mark, skip_bad, strict, all_events, keep_all, reset, undo, exit_code;
static long jobs = -1, max_calls = -1, turns = -1, events = -1, status_fd = -1;
static double idle = -1;

static const struct opt table[] = {
	CLI_OPT_STORE(&url),
	CLI_OPT_CONFIG(&config),
	{ 0, "stream", OPT_STRING, &stream_given, "S", "aggregate this stream" },
	{ 0, "all", OPT_FLAG, &all, NULL, "every stream that is due, for cron" },
	{ 'j', "jobs", OPT_INT, &jobs, "N", "--all: so many streams at once" },
	{ 0, "idle", OPT_SECONDS, &idle, "T", "--all: only streams nothing was written to for T seconds" },
	{ 0, "mark", OPT_FLAG, &mark, NULL, "take everything as aggregated; nothing is asked" },
	{ 0, "max-calls", OPT_INT, &max_calls, "N", "--all: ask the model at most so often" },
	{ 0, "skip-bad", OPT_FLAG, &skip_bad, NULL, "bad lines are skipped and named, and the exit status stays 0" },
	{ 0, "strict", OPT_FLAG, &strict, NULL, "stop at the first bad line" },
	{ 'm', "model", OPT_STRING, &model, "MODEL", "PROVIDER:MODEL" },
	{ 0, "every-n-turns", OPT_INT, &turns, "N", "due when N requests came since the last run" },
	{ 0, "every-n-events", OPT_INT, &events, "N", "due when N requests, responses, calls and results came since the last run" },
	{ 0, "template", OPT_STRING, &template_file, "FILE", "the prompt, with {existing} and {events}" },
	{ 0, "existing", OPT_STRING, &existing_file, "FILE", "as a filter: what memory is now" },
	{ 0, "all-events", OPT_FLAG, &all_events, NULL, "give the whole current log each time, as AG2 does" },
	{ 0, "keep-all", OPT_FLAG, &keep_all, NULL, "conversation-summary: leave earlier episodes where they are" },
	{ 0, "reset", OPT_FLAG, &reset, NULL, "forget what was aggregated" },
	{ 0, "undo", OPT_FLAG, &undo, NULL, "take the last run back" },
	{ 0, "exit-code", OPT_FLAG, &exit_code, NULL, "exit 1 when nothing was due" },
	{ 0, "status-fd", OPT_INT, &status_fd, "N", "write lifecycle events to this descriptor" },
	{ 0 }
};

static void
print_strategies(void)
{
	upkeep_cmd_strategies(STRATEGY_AGGREGATES);
}

static void
complete(int n, char **words)
{
	upkeep_cmd_complete(STRATEGY_AGGREGATES, table, n, words);
}

static const struct opts usage = {
	.complete = complete,
	.program = "ag2-aggregate",
	.usage = "ag2-aggregate [-s URL] [-c FILE] --stream S|--all [OPTION...] [STRATEGY]\n"
		"       ag2-aggregate [--existing FILE] [OPTION...] STRATEGY <events >text",
	.summary = "Writes what an agent learns from its streams into its memory.",
	.table = table,
	.print_more = print_strategies,
	.more = "Examples:\n"
		"  ag2-aggregate --stream @last -m openai:gpt-5-mini working-memory\n"
		"  ag2-aggregate -c journal.yaml --all --idle 600\n"
		"  ag2-store log cat S | ag2-aggregate -m openai:gpt-5 conversation-summary >S.md\n",
};

/* ---- options ---- */

static void
check_options(int n)
{
	bool filter = stream_given == NULL && !all;

	if (n > 1)
		cli_usage(&usage, "one strategy at a time; more of them belong into an agent file");
	if (stream_given != NULL && all)
		cli_usage(&usage, "--stream and --all exclude each other");
	if (!all && (jobs >= 0 || idle >= 0 || max_calls >= 0))
		cli_usage(&usage, "-j, --idle and --max-calls are for --all");
	if (filter && (mark || reset || undo || all_events || keep_all))
		cli_usage(&usage, "--mark, --reset, --undo, --all-events and --keep-all are for --stream or --all");
	if (undo && (all || mark || reset))
		cli_usage(&usage, "--undo is for --stream, and alone");
	if (!filter && existing_file != NULL)
		cli_usage(&usage, "--existing is for a filter: memory is read from the store");
	if (skip_bad && strict)
		cli_usage(&usage, "--skip-bad and --strict exclude each other");
	if (jobs == 0 || jobs > 1000)
		cli_usage(&usage, "-j must be 1 to 1000");
	if (n == 0 && config == NULL)
		cli_usage(&usage, "which strategy? working-memory, conversation-summary or exec:CMD");
}

static char *
read_template(void)
{
	struct buf text = BUF_INIT_MAX(TEMPLATE_MAX);
	struct err e = ERR_INIT;

	if (io_read_file(template_file, &text, &e) < 0)
		log_fail(&e);
	return buf_detach(&text, NULL);
}

static void
set_common(struct aggregate *a, const struct upkeep_cmd *cmd, const struct upkeep *of_file)
{
	if (of_file != NULL)
		a->trigger = aggregate_trigger_of(of_file);
	else
		a->trigger.anything = true;
	if (mark)
		a->trigger.anything = true;
	else if (turns >= 0 || events >= 0)
		a->trigger = (struct aggregate_trigger){ .turns = turns, .events = events };
	if (template_file != NULL) {
		free(a->spec.prompt);
		a->spec.prompt = read_template();
	}
	a->all_events = all_events;
	a->keep_all = keep_all;
	a->wait_ms = all ? 0 : WAIT_MS;
	a->on_bad = strict ? JSONL_BAD_STOP : skip_bad ? JSONL_BAD_SKIP : stream_given || all ? JSONL_BAD_ONCE : JSONL_BAD_COUNT;
	a->run.agent = cmd->agent.name;
	a->run.status_fd = (int)status_fd;
}

/* A strategy on the command line is the file's entry of that kind, where there is one. */
static void
plan_one(struct aggregates *p, const char *text)
{
	struct aggregate_spec spec;
	struct err e = ERR_INIT;
	size_t i;

	if (aggregate_spec_parse(&spec, text, &e) < 0)
		cli_usage(&usage, "%s", e.msg);
	for (i = 0; i < p->cmd.agent.aggregates_n && !aggregate_spec_is(&spec, &p->cmd.agent, i); i++)
		;
	aggregates_add(p);
	if (i < p->cmd.agent.aggregates_n) {
		aggregate_spec_release(&spec);
		aggregate_spec_copy(&spec, &p->cmd.agent, i);
		p->parts[0] = xasprintf("aggregate:%zu", i);
	} else {
		p->parts[0] = xstrdup("agent");
	}
	p->items[0].spec = spec;
	set_common(&p->items[0], &p->cmd, i < p->cmd.agent.aggregates_n ? &p->cmd.agent.aggregates[i] : NULL);
}

static void
plan_file(struct aggregates *p)
{
	const struct agent *agent = &p->cmd.agent;
	size_t i;

	if (agent->aggregates_n == 0)
		log_die(78, "%s names no aggregate, and no strategy is given", config);
	for (i = 0; i < agent->aggregates_n; i++) {
		aggregates_add(p);
		aggregate_spec_copy(&p->items[i].spec, agent, i);
		p->parts[i] = xasprintf("aggregate:%zu", i);
		set_common(&p->items[i], &p->cmd, &agent->aggregates[i]);
	}
}

static void
check_plan(const struct aggregates *p)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		if (template_file != NULL && p->items[i].spec.choice.command != NULL)
			cli_usage(&usage, "--template is not for exec");
	if (stream_given == NULL && !all && p->n != 1)
		cli_usage(&usage, "a filter has one strategy; which of the agent file's?");
}

/* ---- as a filter ---- */

static int
filter(struct aggregates *p)
{
	struct aggregate *a = &p->items[0];
	struct buf existing = BUF_INIT_MAX(MEMORY_MAX), out = BUF_INIT;
	struct err e = ERR_INIT;
	int rc, status = 0;

	if (existing_file != NULL && io_read_file(existing_file, &existing, &e) < 0)
		log_fail(&e);
	aggregates_stream(p, NULL, NULL);
	run_catch_signals();
	rc = aggregate_filter(a, 0, "stdin", (struct text){ existing.data, existing.len }, &out, &e);
	if (rc < 0 && run_interrupted())
		cli_die_by(run_interrupted());
	if (rc < 0)
		log_fail(&e);
	cli_write(out.data, out.len);
	if (out.len > 0 && out.data[out.len - 1] != '\n')
		out_write("\n", 1);
	if (a->bad > 0 && a->on_bad == JSONL_BAD_COUNT)
		status = 65;
	else if (!a->ran && exit_code)
		status = 1;
	buf_release(&existing);
	buf_release(&out);
	return status;
}

/* ---- one stream ---- */

static int
work(struct aggregates *p, size_t i, struct store *s, const char *stream, struct err *e)
{
	struct aggregate *a = &p->items[i];

	if (undo)
		return aggregate_undo(a, s, stream, e);
	if (reset && aggregate_reset(a, s, stream, e) < 0)
		return -1;
	if (mark)
		return aggregate_mark(a, s, stream, e);
	return reset ? 0 : aggregate_stream(a, s, stream, e);
}

static int
one_stream(struct aggregates *p)
{
	struct store *s = cli_open(url, &p->cmd.agent, STORE_WRITE);
	struct err e = ERR_INIT;
	bool ran = undo || reset || mark;
	char *stream;
	size_t i;
	int status = 0;

	if (stream_resolve(s, stream_given, &stream, NULL, &e) < 0)
		log_fail(&e);
	aggregates_stream(p, s, stream);
	run_catch_signals();
	for (i = 0; i < p->n && !run_interrupted(); i++) {
		e = (struct err)ERR_INIT;
		if (work(p, i, s, stream, &e) < 0) {
			log_warn("%s: %s", p->items[i].spec.key, e.msg);
			if (status == 0)
				status = err_status(e.code);
		}
		ran |= p->items[i].ran;
	}
	free(stream);
	store_close(s);
	if (run_interrupted())
		cli_die_by(run_interrupted());
	return status != 0 ? status : exit_code && !ran ? 1 : 0;
}

int
main(int argc, char **argv)
{
	struct aggregates p = { .work = work };
	int n, status;

	cli_start("ag2-aggregate");
	n = cli_parse(&usage, argc, argv, false);
	check_options(n);
	upkeep_cmd_status_fd(&usage, status_fd);
	upkeep_cmd_open(&p.cmd, config);
	p.model = model;
	if (n > 0)
		plan_one(&p, argv[0]);
	else
		plan_file(&p);
	check_plan(&p);
	p.url = url;
	p.jobs = jobs;
	p.idle = idle;
	p.max_calls = max_calls;
	p.whole = reset;
	if (all)
		status = all_streams(&p, exit_code);
	else
		status = stream_given != NULL ? one_stream(&p) : filter(&p);
	aggregates_release(&p);
	out_close();
	return status;
}

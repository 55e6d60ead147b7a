/* ag2-assemble: a stream in, what the model is to see out. */
#include "cli.h"
#include "compare.h"
#include "complete.h"
#include "explain.h"

#include "base/alloc.h"
#include "base/run.h"
#include "config.h"
#include "event/render.h"
#include "policy/policy.h"
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *url, *config, *prompt, *stream_given, *layout, *explain, *compare;
static bool skip_bad, strict, check, as_ag2;

static const struct opt table[] = {
	CLI_OPT_STORE(&url),
	CLI_OPT_CONFIG(&config),
	{ 0, "prompt", OPT_STRING, &prompt, "TEXT", "the system prompt, put first" },
	{ 0, "stream", OPT_STRING, &stream_given, "S", "read the current log of this stream instead of standard input" },
	{ 0, "skip-bad", OPT_FLAG, &skip_bad, NULL, "bad lines are skipped and named, and the exit status stays 0" },
	{ 0, "strict", OPT_FLAG, &strict, NULL, "stop at the first bad line" },
	{ 0, "check", OPT_FLAG, &check, NULL, "only say what is wrong with the order of the policies" },
	{ 0, "explain", OPT_OPTIONAL, &explain, "json", "say on stderr what each policy took in and let go, and where the tokens go" },
	{ 0, "compare", OPT_STRING, &compare, "FILE", "say on stderr where the output begins to differ from an earlier one" },
	{ 0, "layout", OPT_STRING, &layout, "ag2|cache", "cache: what changes often goes to the end, so that provider caches keep hitting" },
	{ 0, "as-ag2", OPT_FLAG, &as_ag2, NULL, "AG2's rules event for event, without repair" },
	{ 0 }
};

struct setting {
	struct agent agent;
	struct policy_spec *specs;	/* of the command line, or the agent's */
	size_t n;
	bool own;			/* of the command line */
	struct store *store;
	char *stream;			/* its id, NULL: standard input */
	char *env[6];
};

/* ---- the policies ---- */

static char *
policy_help(void)
{
	struct buf text = BUF_INIT;
	struct policy_info info;
	char *name;
	size_t i;

	buf_adds(&text, "Policies, in the order in which they run (POLICY or POLICY:KEY=VALUE,...):\n");
	for (i = 0; policy_list(i, &info); i++) {
		name = xasprintf("%s%s%s", info.name, info.params[0] != '\0' ? ":" : "", info.params);
		buf_addf(&text, "  %s\n        %s\n", name, info.summary);
		free(name);
	}
	buf_adds(&text, "\nExample:\n  ag2-store log cat --current @last |\n      ag2-assemble working-memory alert sliding-window:80\n");
	return buf_detach(&text, NULL);
}

static void
read_specs(struct setting *s, const struct opts *o, char *const *args, size_t n)
{
	struct err e = ERR_INIT;
	size_t i;

	agent_init(&s->agent);
	if (config != NULL) {
		agent_release(&s->agent);
		if (agent_read(&s->agent, config, &e) < 0)
			log_fail(&e);
	}
	s->specs = s->agent.assembly;
	s->n = s->agent.assembly_n;
	if (n == 0)
		return;
	s->own = true;
	s->n = n;
	s->specs = xcalloc(n, sizeof(s->specs[0]));
	for (i = 0; i < n; i++)
		if (policy_spec_parse(&s->specs[i], args[i], &e) < 0)
			cli_usage(o, "%s", e.msg);
}

static bool
has(const struct setting *s, const char *name)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (strcmp(policy_spec_name(&s->specs[i]), name) == 0)
			return true;
	return false;
}

static bool
has_command(const struct setting *s)
{
	return has(s, "inject") || has(s, "exec");
}

/* ---- where it comes from ---- */

static void
open_all(struct setting *s)
{
	struct err e = ERR_INIT;

	if (stream_given == NULL && !has(s, "working_memory") && !has(s, "episodic_memory"))
		return;
	s->store = cli_open(url, &s->agent, STORE_READ);
	if (stream_given != NULL && stream_resolve(s->store, stream_given, &s->stream, NULL, &e) < 0)
		log_fail(&e);
}

/* What inject: and exec: commands find in their environment. */
static void
make_env(struct setting *s)
{
	struct buf where = BUF_INIT;
	size_t n = 0;

	if (!has_command(s))
		return;
	if (s->store != NULL)
		s->env[n++] = xasprintf("AG2_STORE=%s", store_url(s->store));
	else if (cli_store_url(&where, url, s->agent.store, NULL, NULL) == 0)
		s->env[n++] = xasprintf("AG2_STORE=%s", where.data);
	if (s->stream != NULL)
		s->env[n++] = xasprintf("AG2_STREAM=%s", s->stream);
	if (config != NULL) {
		s->env[n++] = xasprintf("AG2_NAME=%s", s->agent.name);
		s->env[n++] = xasprintf("AG2_CONFIG=%s", config);
	}
	if (s->agent.model.provider != NULL && s->agent.model.model != NULL)
		s->env[n++] = xasprintf("AG2_MODEL=%s:%s", s->agent.model.provider, s->agent.model.model);
	buf_release(&where);
}

/* What is ready goes out before we wait for more. */
static ssize_t
read_stdin(void *arg, void *data, size_t len, struct err *e)
{
	ssize_t n;

	out_flush();
	n = io_read(0, data, len);
	return n < 0 ? err_sys(e, "cannot read standard input") : n;
}

static enum jsonl_bad
on_bad(void)
{
	return strict ? JSONL_BAD_STOP : skip_bad ? JSONL_BAD_SKIP : JSONL_BAD_COUNT;
}

static bool
bad_input(uint64_t lines)
{
	return lines > 0 && on_bad() == JSONL_BAD_COUNT;
}

static bool
is_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* ---- where it goes ---- */

static struct buf written = BUF_INIT;	/* what came out, for --compare */

static void
put_line(const char *line, size_t len)
{
	if (compare != NULL) {
		buf_add(&written, line, len);
		buf_addch(&written, '\n');
	}
	if (cli_terminal()) {
		cli_write(line, len);
	} else {
		out_write(line, len);
	}
	out_write("\n", 1);
}

static int
put_prompt(void *arg, const struct prompt *p, struct err *e)
{
	struct buf line = BUF_INIT;

	if (p->line.data != NULL) {
		put_line(p->line.data, p->line.len);
		return 0;
	}
	build_prompt(&line, p->content, p->source, p->at_end);
	put_line(line.data, line.len);
	buf_release(&line);
	return 0;
}

static int
put_event(void *arg, struct event *ev, struct err *e)
{
	put_line(ev->line, ev->len);
	return 0;
}

/* ---- --check ---- */

static void
tell_pair(void *arg, size_t i, size_t j)
{
	const struct setting *s = arg;

	log_warn("policy %zu (%s) trims before policy %zu (%s) adds a prompt: put %s first, so that what it adds is counted",
	    i + 1, policy_spec_name(&s->specs[i]), j + 1, policy_spec_name(&s->specs[j]), policy_spec_name(&s->specs[j]));
}

/* Whether alerts wait that no policy delivers: in the stream, or on a standard input that has any events. *bad: its bad lines. */
static bool
alerts_lost(struct setting *s, uint64_t *bad)
{
	struct stat st;
	struct jsonl in;
	bool found = false;

	if (has(s, "alert"))
		return false;
	if (stream_given != NULL) {
		open_all(s);
		found = explain_lost_alerts(s->store, s->stream, NULL);
	} else if (fstat(0, &st) == 0 && (S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))) {
		jsonl_init_fd(&in, "stdin", on_bad(), 0);
		found = explain_lost_alerts(NULL, NULL, &in);
		*bad = in.bad;
		jsonl_release(&in);
	}
	return found;
}

static int
check_order(struct setting *s)
{
	const char **names = xcalloc(s->n + 1, sizeof(names[0]));
	uint64_t bad = 0;
	size_t i;
	bool found;

	for (i = 0; i < s->n; i++)
		names[i] = policy_spec_name(&s->specs[i]);
	found = policy_order_check(names, s->n, tell_pair, s) > 0 || alerts_lost(s, &bad);
	free(names);
	return bad_input(bad) ? 65 : found ? 1 : 0;
}

/* ---- the work ---- */

static void
tell_compared(const struct buf *before, int chars)
{
	out_flush();
	compare_tell(compare, before, &written, chars > 0 ? chars : CHARS_PER_TOKEN);
	buf_release(&written);
}

static bool
layout_cache(const struct setting *s)
{
	return layout != NULL ? strcmp(layout, "cache") == 0 : s->agent.layout_cache && !as_ag2;
}

static int
feed(struct setting *s, struct chain *c, struct jsonl *in, struct err *e)
{
	struct prompt first = { .content = { prompt, 0 } };

	if (prompt == NULL)
		first.content.data = s->agent.prompt;
	if (first.content.data != NULL && first.content.data[0] != '\0') {
		first.content.len = strlen(first.content.data);
		if (chain_prompt(c, &first, e) < 0)
			return -1;
	}
	return s->stream != NULL ? chain_feed_stream(c, s->store, s->stream, e) : chain_feed(c, in, e);
}

static int
assemble(struct setting *s)
{
	struct chain_options o = { .store = s->store, .layout_cache = layout_cache(s), .as_ag2 = as_ag2, .env = (const char *const *)s->env,
		.cwd = s->own ? NULL : s->agent.dir, .on_bad = on_bad(), .whole = s->stream != NULL || is_file(0), .tell_repairs = true,
		.explain = explain != NULL ? explain_new(explain_chars_of(s->specs, s->n)) : NULL,
		.tmpdir = cli_env("TMPDIR"), .sink = { put_prompt, put_event, NULL } };
	struct err e = ERR_INIT;
	struct buf before = BUF_INIT;
	struct chain *c;
	struct jsonl in;
	int rc;

	if (compare != NULL)
		compare_read(&before, compare);
	if (chain_new(&c, s->specs, s->n, &o, &e) < 0)
		log_fail(&e);
	jsonl_init(&in, "stdin", on_bad(), read_stdin, NULL);
	rc = feed(s, c, &in, &e);
	if (has_command(s))
		run_catch_signals();
	if (rc == 0)
		rc = chain_end(c, &e);
	if (rc < 0 && run_interrupted() != 0)
		cli_die_by(run_interrupted());
	if (rc < 0) {
		out_flush();
		log_fail(&e);
	}
	chain_free(c);
	jsonl_release(&in);
	if (explain != NULL) {
		out_flush();
		explain_tell(o.explain, explain);
	}
	explain_free(o.explain);
	if (compare != NULL)
		tell_compared(&before, explain_chars_of(s->specs, s->n));
	buf_release(&before);
	return bad_input(in.bad) ? 65 : 0;
}

static void
release(struct setting *s)
{
	size_t i;

	for (i = 0; s->own && i < s->n; i++)
		policy_spec_release(&s->specs[i]);
	if (s->own)
		free(s->specs);
	for (i = 0; s->env[i] != NULL; i++)
		free(s->env[i]);
	free(s->stream);
	store_close(s->store);
	agent_release(&s->agent);
}

/* Policies, and behind a colon or a comma the keys of one. */
static void
complete(int n, char **words)
{
	const char *word = words[n - 1], *colon = strchr(word, ':'), *comma = strrchr(word, ','), *p;
	struct complete_state st = { 0 };
	struct policy_info info;
	char *text;
	size_t i, len, known;

	if (complete_option(table, NULL, words, n, false, &st))
		return;
	for (i = 0; policy_list(i, &info); i++) {
		if (colon == NULL) {
			text = xasprintf("%s%s", info.name, info.params[0] != '\0' ? ":" : "");
			complete_offer(word, text, info.summary);
			free(text);
			continue;
		}
		if (strlen(info.name) != (size_t)(colon - word) || strncmp(info.name, word, strlen(info.name)) != 0)
			continue;
		known = (size_t)((comma ? comma : colon) + 1 - word);
		for (p = info.params; *p != '\0'; p += len + (p[len] == ',')) {
			len = strcspn(p, ",");
			text = xasprintf("%.*s%.*s%s", (int)known, word, (int)strcspn(p, "=,"), p, p[strcspn(p, "=,")] == '=' ? "=" : "");
			complete_offer(word, text, NULL);
			free(text);
		}
	}
}

int
main(int argc, char **argv)
{
	struct opts o = { .program = "ag2-assemble", .complete = complete,
		.usage = "ag2-assemble [-s URL] [-c FILE] [--prompt TEXT] [--stream S] [--skip-bad|--strict] [--check] [--explain[=json]] [--compare FILE] [--layout=ag2|cache] [--as-ag2] [POLICY...]",
		.summary = "Turns a stream of events into what the model is to see.", .table = table };
	struct setting s = { 0 };
	char *more;
	int n, status;

	cli_start("ag2-assemble");
	o.more = more = policy_help();
	n = cli_parse(&o, argc, argv, false);
	if (skip_bad && strict)
		cli_usage(&o, "--skip-bad and --strict exclude each other");
	cli_check_layout(&o, layout, as_ag2);
	explain_check(&o, explain);
	if (compare != NULL && strcmp(compare, "last") == 0)
		cli_usage(&o, "--compare last is about requests that were sent: ag2-ask -n --compare last");
	read_specs(&s, &o, argv, (size_t)n);
	if (check) {
		status = check_order(&s);
	} else {
		open_all(&s);
		make_env(&s);
		status = assemble(&s);
	}
	release(&s);
	free(more);
	out_close();
	return status;
}

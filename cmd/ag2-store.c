/* ag2-store: looks into a knowledge store and changes it. Everything but the table is in store/. */
#include "store/command.h"
#include "complete.h"
#include "help.h"

#include "base/alloc.h"
#include "config.h"
#include "stream.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *url, *config;
static const char *running;	/* "ag2-store log cat" */

static const struct opt common[] = {
	CLI_OPT_STORE(&url),
	CLI_OPT_CONFIG(&config),
	{ 0 }
};

static const struct command *const commands[] = {
	&command_init,
	&command_ls,
	&command_tree,
	&command_cat,
	&command_write,
	&command_append,
	&command_edit,
	&command_rm,
	&command_exists,
	&command_stat,
	&command_history,
	&command_restore,
	&command_grep,
	&command_export,
	&command_import,
	&command_fsck,
	&command_watch,
	&command_lock,
	&command_run,
	&command_tool,
	&command_log,
	NULL
};

/* ---- what commands use ---- */

/* That of -c, read at the first call; NULL without -c. */
static const struct agent *
agent_file(void)
{
	static struct agent agent;
	struct err e = ERR_INIT;

	if (config != NULL && agent.file == NULL && agent_read(&agent, config, &e) < 0)
		log_fail(&e);
	return config != NULL ? &agent : NULL;
}

static const char *
agent_store(void)
{
	const struct agent *agent = url == NULL ? agent_file() : NULL;

	return agent != NULL ? agent->store : NULL;
}

struct store *
open_store(enum store_mode mode)
{
	return cli_open(url, url == NULL ? agent_file() : NULL, mode);
}

void
store_url_given(struct buf *out)
{
	struct err e = ERR_INIT;

	if (cli_store_url(out, url, agent_store(), NULL, &e) < 0)
		log_fail(&e);
}

const char *
agent_name(void)
{
	const struct agent *agent = agent_file();

	return agent != NULL ? agent->name : "agent";
}

noreturn void
fail(const struct err *e)
{
	out_flush();
	log_fail(e);
}

noreturn void
usage(const char *fmt, ...)
{
	struct buf text = BUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	buf_vaddf(&text, fmt, ap);
	va_end(ap);
	out_flush();
	log_die(64, "%s (see '%s --help')", text.data, running);
}

void
read_input(const char *file, struct buf *out)
{
	bool standard = file == NULL || strcmp(file, "-") == 0;
	struct err e = ERR_INIT;
	int fd = 0;

	out->max = INPUT_MAX;
	if (!standard)
		fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		err_sys(&e, "cannot open '%s'", file);
		fail(&e);
	}
	if (io_read_all(fd, out, standard ? "standard input" : file, &e) < 0)
		fail(&e);
	if (!standard)
		close(fd);
}

const char *
stream_operand(struct store *s, const char *arg)
{
	static char **ids;	/* of all operands: they live as long as we do */
	static size_t n, cap;
	struct err e = ERR_INIT;
	char *id;
	bool fresh;

	if (stream_resolve(s, arg, &id, &fresh, &e) < 0)
		fail(&e);
	ids = xgrow(ids, n, &cap, sizeof(*ids));
	ids[n++] = id;
	if (fresh)
		log_warn("stream %s", id);
	return id;
}

/* ---- finding and running one ---- */

static void
print_list(const struct command *const *list, const char *prefix)
{
	char label[80];

	for (; *list != NULL; list++) {
		if ((*list)->commands != NULL) {
			snprintf(label, sizeof(label), "%s ", (*list)->name);
			print_list((*list)->commands, label);
			continue;
		}
		snprintf(label, sizeof(label), "  %s%s", prefix, (*list)->name);
		help_row(label, 13, (*list)->summary);
	}
}

static void
print_commands(void)
{
	out_puts("Commands ('ag2-store help COMMAND' tells more):\n");
	print_list(commands, "");
}

static const struct command *
find(const struct command *const *list, const char *name)
{
	const char *names[32], *near;
	size_t n = 0, i;

	for (i = 0; list[i] != NULL; i++) {
		if (strcmp(list[i]->name, name) == 0)
			return list[i];
		if (n < 31)
			names[n++] = list[i]->name;
	}
	names[n++] = "help";
	near = nearest(name, names, n);
	usage("unknown command '%s'%s%s%s", name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static void
print_subcommands(void)
{
	out_puts("Commands:\n");
	print_list(command_log.commands, "log ");
}

static int
parse(const struct command *c, int argc, char **argv)
{
	static char line[400];
	struct opts o = { .program = running, .usage = line, .summary = c->summary, .table = c->table, .common = common, .more = c->more };
	bool stop = c->commands != NULL || c->program;
	int i;

	snprintf(line, sizeof(line), "%s%s%s", running, c->operands ? " " : "", c->operands ? c->operands : "");
	if (c->commands != NULL)
		o.print_more = print_subcommands;
	for (i = 1; c->program && i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			stop = false;
	return cli_parse(&o, argc, argv, stop);
}

static int
dispatch(const struct command *const *list, int argc, char **argv)
{
	const struct command *c = find(list, argv[0]);
	static char name[80];
	int n;

	snprintf(name, sizeof(name), "%s %s", list == commands ? "ag2-store" : "ag2-store log", c->name);
	running = name;
	n = parse(c, argc, argv);
	if (n < c->min)
		usage("%s: too few arguments: %s", c->name, c->operands);
	if (c->max >= 0 && n > c->max)
		usage("%s: one argument too many: '%s'", c->name, argv[c->max]);
	return c->commands != NULL ? dispatch(c->commands, n, argv) : c->run(argv, n);
}

/* `help [COMMAND...]` is `[COMMAND...] --help`. */
static int
help(int argc, char **argv)
{
	static char option[] = "--help";
	char *args[4];
	int n = 0;

	for (; n < argc && n < 2; n++)
		args[n] = argv[n];
	args[n++] = option;
	args[n] = NULL;
	return dispatch(commands, n, args);
}

/* ---- completion ---- */

static void
offer_commands(const struct command *const *list, const char *word)
{
	for (; *list != NULL; list++)
		complete_offer(word, (*list)->name, (*list)->summary);
	if (list == commands)
		complete_offer(word, "help", "what a command does and takes");
}

/* What a usage line, `[--json] [-n N] PATH [FILE]`, calls the operand at index; what ends in dots is all that follow, too. */
static void
operand_kind(const char *operands, int index, char kind[32])
{
	bool more = false;
	size_t len;
	int seen = 0;

	kind[0] = '\0';
	for (; operands != NULL && *operands != '\0' && seen <= index; operands += strspn(operands, " ")) {
		len = strcspn(operands, " ");
		if (operands[0] == '-' || strncmp(operands, "[-", 2) == 0) {
			if (operands[0] == '[' && memchr(operands, ']', len) == NULL)
				len += 1 + strcspn(operands + len + (operands[len] == ' '), " ");	/* its value */
		} else {
			snprintf(kind, 32, "%.*s", (int)strspn(operands + (*operands == '['), "ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
			    operands + (*operands == '['));
			more = memmem(operands, len, "...", 3) != NULL;
			seen++;
		}
		operands += len;
	}
	if (seen <= index && !more)
		kind[0] = '\0';
}

static void
complete_in(const struct command *const *list, int n, char **words, struct complete_state *st)
{
	const struct command *c = NULL;
	char kind[32];
	size_t i;

	for (i = 0; list[i] != NULL && n > 1; i++)
		if (strcmp(list[i]->name, words[0]) == 0)
			c = list[i];
	if (n <= 1) {
		offer_commands(list, words[0]);
		return;
	}
	if (c == NULL || complete_option(c->table, common, words + 1, n - 1, c->commands != NULL, st))
		return;
	if (c->commands != NULL) {
		complete_in(c->commands, n - 1 - st->first, words + 1 + st->first, st);
		return;
	}
	operand_kind(c->operands, st->operands, kind);
	complete_kind(kind, words[n - 1], "", st);
}

static void
complete(int n, char **words)
{
	struct complete_state st = { 0 };

	if (complete_option(common, NULL, words, n, true, &st))
		return;
	if (strcmp(words[st.first], "help") == 0 && st.first < n - 1)
		offer_commands(commands, words[n - 1]);
	else
		complete_in(commands, n - st.first, words + st.first, &st);
}

int
main(int argc, char **argv)
{
	static const struct opts o = {
		.program = "ag2-store",
		.usage = "ag2-store [-s URL] [-c FILE] COMMAND [ARGUMENT...]",
		.summary = "Looks into a knowledge store and changes it.",
		.table = common,
		.print_more = print_commands,
		.complete = complete,
		.more = "Without -s and -c the store is $AG2_STORE, else ~/.local/state/ag2/store.db.\n"
			"\nExamples:\n"
			"  ag2-store -s disk:./state init --name journal\n"
			"  ag2-store -s disk:./state tree\n"
			"  echo 'prefers tea' | ag2-store write /memory/working.md\n"
			"  S=$(ag2-store log new); ag2-store log user \"$S\" 'What should I read next?'\n",
	};
	static char help_option[] = "--help", *ask_help[] = { NULL, help_option, NULL };
	int n, status;

	cli_start("ag2-store");
	running = "ag2-store";
	n = cli_parse(&o, argc, argv, true);
	if (n == 0)
		usage("which command?");
	if (strcmp(argv[0], "help") == 0 && n == 1)
		cli_parse(&o, 2, ask_help, true);
	status = strcmp(argv[0], "help") == 0 ? help(n - 1, argv + 1) : dispatch(commands, n, argv);
	out_close();
	return status;
}

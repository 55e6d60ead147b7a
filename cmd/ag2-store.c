/* ag2-store: looks into a knowledge store and changes it. Everything but the table is in store/. */
#include "store/command.h"

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
	static char *id;
	struct err e = ERR_INIT;
	bool fresh;

	if (stream_resolve(s, arg, &id, &fresh, &e) < 0)
		fail(&e);
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
		snprintf(label, sizeof(label), "%s%s", prefix, (*list)->name);
		out_printf("  %-11s  %s\n", label, (*list)->summary);
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

int
main(int argc, char **argv)
{
	static const struct opts o = {
		.program = "ag2-store",
		.usage = "ag2-store [-s URL] [-c FILE] COMMAND [ARGUMENT...]",
		.summary = "Looks into a knowledge store and changes it.",
		.table = common,
		.print_more = print_commands,
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

/*
 * The commands of ag2-store. Each is one struct command, listed in ag2-store.c (those of `log` in log.c); usage texts and
 * the names offered for a mistyped one come from there.
 */
#ifndef AG2_STORE_COMMAND_H
#define AG2_STORE_COMMAND_H

#include "../cli.h"

struct command {
	const char *name;
	const char *operands;		/* for the usage line */
	const char *summary;		/* one line */
	const struct opt *table;	/* may be NULL */
	const char *more;		/* examples and what --help should say besides; may be NULL */
	int min, max;			/* operands; max below 0: any number */
	bool program;			/* they end in a program with its own options: without `--` the first operand ends ours */
	int (*run)(char **args, int n);	/* gives the exit status */
	const struct command *const *commands;	/* instead of run: commands of its own, NULL-terminated */
};

extern const struct command command_init, command_tool;				/* agent.c */
extern const struct command command_ls, command_tree;				/* ls.c */
extern const struct command command_export, command_import;			/* archive.c */
extern const struct command command_history, command_restore, command_edit;	/* history.c */
extern const struct command command_exists, command_stat;			/* stat.c */
extern const struct command command_cat, command_write, command_append, command_rm;	/* file.c */
extern const struct command command_lock, command_run;				/* run.c */
extern const struct command command_grep, command_log_grep;				/* grep.c */
extern const struct command command_fsck;					/* fsck.c */
extern const struct command command_watch;					/* watch.c */
extern const struct command command_log;					/* log.c */
extern const struct command command_log_ls;					/* log_ls.c */
extern const struct command command_tail;					/* tail.c */
extern const struct command command_log_rm, command_log_prune;			/* streams.c */
extern const struct command command_log_show;					/* show.c */
extern const struct command command_log_usage;					/* usage.c */

/* The store of -s, -c and the environment. On failure the program ends. */
struct store *open_store(enum store_mode mode);
/* Its URL as given, for what need not be opened; "memory:" is to be told from others. */
void store_url_given(struct buf *out);
/* The agent's name: of the agent file, else "agent". Borrowed for the life of the process. */
const char *agent_name(void);

/* Writes what is there of the output, says e's message and ends with its status. */
noreturn void fail(const struct err *e);
/* Ends with 64 and a pointer to this command's --help. */
noreturn void usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Appends FILE ("-" or NULL: standard input) to out, INPUT_MAX bytes at most. On failure the program ends. */
#define INPUT_MAX (1u << 30)
#define INPUT_CHUNK (256u * 1024)	/* what is read at a time where all of it need not be held */
void read_input(const char *file, struct buf *out);

/* The id for a stream operand; that of @new is told on standard error. Borrowed for the life of the process. */
const char *stream_operand(struct store *s, const char *arg);

/* One JSON object on a line about a path, as ls --json and stat --json print it. */
void print_json(const char *path, const struct store_stat *st);

#endif

/*
 * Options from a table, GNU style: `--name=value`, `--name value`, unambiguous prefixes refused, `-x value`, `-xvalue`,
 * flags bundled, `--` ends options, options may follow operands. `_` and `-` are the same in names. The table also gives
 * --help, completion, and what the manual-page test compares. --help and --version are known everywhere.
 */
#ifndef AG2_OPTS_H
#define AG2_OPTS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum opt_kind {
	OPT_FLAG,	/* bool: set */
	OPT_STRING,	/* const char *: borrowed from argv */
	OPT_LIST,	/* struct opt_list: collected */
	OPT_INT,	/* long: decimal; a negative number is refused */
	OPT_SECONDS,	/* double: not negative */
	OPT_OPTIONAL,	/* const char *: --name or --name=value; "" without a value */
};

struct opt_list {
	const char **items;
	size_t n, cap;
};

struct opt {
	char letter;		/* 0 when there is none */
	const char *name;	/* long name without dashes; NULL when there is none */
	enum opt_kind kind;
	void *value;
	const char *arg;	/* for help: URL, FILE, N; NULL for flags */
	const char *help;	/* one line */
};

struct opts {
	const char *program;
	const char *usage;	/* lines behind "usage: ", without the word */
	const char *summary;	/* one line: what it is for */
	const struct opt *table;	/* ends with { 0 } */
	const struct opt *common;	/* more of them, e.g. what all commands of a program take; may be NULL */
	const char *more;	/* printed behind the options: operands, policies, examples; may be NULL */
	void (*print_more)(void);	/* prints such text, before `more`; may be NULL */
	/* For commands, see cmd/complete.h: offers what the last of n words can become. NULL: options only. */
	void (*complete)(int n, char **words);
};

/*
 * Takes the options out of argv (argc entries, argv[0] skipped) and moves the operands to its front: argv[0..n), argv[n]
 * is NULL. Returns n, or -1 with ERR_USAGE. With stop_at_operand the first operand ends the options (for `CMD ARG...`). Where --help or
 * --version comes, nothing behind it is looked at, and the answer is OPTS_HELP or OPTS_VERSION.
 */
enum { OPTS_HELP = -2, OPTS_VERSION = -3 };
int opts_parse(const struct opts *o, int argc, char **argv, bool stop_at_operand, struct err *e);

/* --help and --version, in this order, as a table has them. */
extern const struct opt opts_standard[];

static inline bool
opt_is_end(const struct opt *p)
{
	return p->name == NULL && p->letter == 0;
}

static inline bool
opt_takes_value(const struct opt *p)
{
	return p->kind != OPT_FLAG && p->kind != OPT_OPTIONAL;
}

/* Whole-string numbers. ERR_USAGE names `what`. */
int parse_long(const char *text, const char *what, long *out, struct err *e);
int parse_seconds(const char *text, const char *what, double *out, struct err *e);

/* The entry of names nearest to word (edit distance at most 3, and less than half the word), or NULL. */
const char *nearest(const char *word, const char *const *names, size_t n);

#endif

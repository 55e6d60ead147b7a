/*
 * Completion, from the tables that also make --help. `PROGRAM --completion=SHELL` prints a script for bash, zsh or fish that asks the
 * program itself: `PROGRAM --complete WORD...` prints, one a line, what the last word can become (behind a tab what that
 * is), or `:files`.
 */
#ifndef AG2_COMPLETE_H
#define AG2_COMPLETE_H

#include "cli.h"

/* When these arguments are one of the two, does it and ends the program. To be called before options are parsed. */
void complete_maybe(const struct opts *o, int argc, char **argv);

/* What is known of the words before the last one. */
struct complete_state {
	const char *url, *config;	/* of -s and -c; may be NULL */
	int operands;			/* before the last word */
	int first;			/* where the first of them is, n - 1 when the last word would be it */
};

/*
 * Offers options, or the value of one, for the last of n words; false when it is an operand. Where stop, the first operand
 * ends the options.
 */
bool complete_option(const struct opt *table, const struct opt *common, char **words, int n, bool stop, struct complete_state *st);

/* Offers text when it begins with word; what tells what it is, may be NULL. */
void complete_offer(const char *word, const char *text, const char *what);

/* Offers what an operand or a value can be that usage texts call kind: PATH, S, FILE, URL, or alternatives: "ag2|cache". */
void complete_kind(const char *kind, const char *word, const char *before, const struct complete_state *st);

#endif

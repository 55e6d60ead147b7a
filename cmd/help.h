/* --help and --version, from the tables of options. */
#ifndef AG2_HELP_H
#define AG2_HELP_H

#include "base/opts.h"

#include <stdnoreturn.h>
#include <stddef.h>

/* What a whole program takes besides, not one of its commands; complete_maybe does it. */
extern const struct opt program_options[];

/* Prints it to standard output and ends the program. */
noreturn void print_help(const struct opts *o);
noreturn void print_version(const struct opts *o);

/* A line of such a list: the label in so many columns, and text in the rest of the terminal's. */
void help_row(const char *label, size_t width, const char *text);

#endif

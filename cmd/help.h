/* --help and --version, from the tables of options. */
#ifndef AG2_HELP_H
#define AG2_HELP_H

#include "base/opts.h"

#include <stdnoreturn.h>

/* Prints it to standard output and ends the program. */
noreturn void print_help(const struct opts *o);
noreturn void print_version(const struct opts *o);

#endif

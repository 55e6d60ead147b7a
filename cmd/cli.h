/*
 * What the commands share and the library must not do: the environment, the terminal, signals, exit statuses.
 *
 * A main is: cli_start, cli_parse, cli_open, the work, out_close. Environment variables are read through cli_env only.
 */
#ifndef AG2_CLI_H
#define AG2_CLI_H

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/opts.h"
#include "out.h"
#include "config.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdnoreturn.h>

/*
 * To be called first: names the program, makes sure that descriptors 0-2 are taken (a closed one fails when it is used, and no
 * store is ever opened in its place), ignores SIGPIPE (out_flush ends by it), sets the clock of AG2_NOW (status 78 when it
 * is no time).
 */
void cli_start(const char *program);

/* The variable's value; NULL when it is not set or empty. */
const char *cli_env(const char *name);

/* The options that all programs have for their store and agent file, to be put into tables: -s URL and -c FILE. */
#define CLI_OPT_STORE(p) { 's', "store", OPT_STRING, (p), "URL", "the store: disk:ROOT, sqlite:FILE, redis://HOST:PORT/DB, memory:, or a path" }
#define CLI_OPT_CONFIG(p) { 'c', "config", OPT_STRING, (p), "FILE", "the agent file" }

/*
 * Completion when that is asked for (complete.h), else opts_parse, whose --help and --version end the program, and so does a usage error, with status 64 and a line that
 * points to --help.
 */
int cli_parse(const struct opts *o, int argc, char **argv, bool stop_at_operand);
noreturn void cli_usage(const struct opts *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A usage error when --layout (NULL: not given) is neither ag2 nor cache, or is cache together with --as-ag2. */
void cli_check_layout(const struct opts *o, const char *layout, bool as_ag2);

/*
 * The store's URL: url (of -s) when it is not NULL, else file_store (knowledge.store of the agent file) when it is not
 * NULL, else $AG2_STORE, else $XDG_STATE_HOME/ag2/store.db, else $HOME/.local/state/ag2/store.db. ERR_CONFIG when none of
 * these is there. out is reset. *fallback, may be NULL, tells that it is one of the last two.
 */
int cli_store_url(struct buf *out, const char *url, const char *file_store, bool *fallback, struct err *e);

/*
 * Opens that store; file is the agent file, NULL: there is none. The directory of the last two is made (0700) when mode is
 * STORE_CREATE. On failure the program ends with the error's status; a URL of the agent file that cannot be meant is an error
 * of that file, with its line.
 */
struct store *cli_open(const char *url, const struct agent *file, enum store_mode mode);
int cli_try_open(struct store **out, const char *url, const struct agent *file, enum store_mode mode, struct err *e);

/* ---- the terminal ---- */

bool cli_terminal(void);		/* standard output is one */
bool cli_colour(int fd);		/* fd is one, TERM is not "dumb" and NO_COLOR is not set */
int cli_width(int fd);			/* columns of the terminal on fd; 80 when it is not known */

bool cli_utf8(void);			/* the user's locale is one of UTF-8: lines and blocks can be drawn. Text is UTF-8 in any case */

/* Writes foreign text to standard output: scrubbed on a terminal (lines and tabs stay), the bytes themselves elsewhere. */
void cli_write(const void *data, size_t len);
void cli_puts(const char *text);
/* The same for a name, of a file or a stream, which is part of a line: on a terminal newlines and tabs are shown, too. */
void cli_name(const char *name);
/* The same into a buffer: as cli_write does it when lines are kept, else as cli_name. */
void cli_add(struct buf *out, const void *data, size_t len, bool keep_lines);

/*
 * A program of ours: $variable when it is set (NULL: there is none), else `name` beside the running program, else `name`, to be looked up in PATH.
 * The string is the caller's.
 */
char *cli_program(const char *variable, const char *name);

/* Ends the program by this signal as if it had not been caught, so that a shell sees what happened. */
noreturn void cli_die_by(int sig);

#endif

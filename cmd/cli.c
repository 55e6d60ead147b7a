#include "cli.h"
#include "complete.h"
#include "help.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* open(2) gives the lowest free number: a store must never become the standard output that the caller closed. */
static void
fill_descriptors(void)
{
	int fd, got;

	for (fd = 0; fd < 3; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		got = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);	/* so that using it fails as if it were closed */
		if (got != fd)
			_exit(74);
	}
}

void
cli_start(const char *program)
{
	struct err e = ERR_INIT;
	const char *now;

	log_program(program);
	fill_descriptors();
	signal(SIGPIPE, SIG_IGN);
	now = cli_env("AG2_NOW");
	if (now != NULL && clock_set(now, &e) < 0)
		log_die(78, "%s", e.msg);
}

const char *
cli_env(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

noreturn void
cli_usage(const struct opts *o, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_die(64, "%s (see '%s --help')", text, o->program);
}

void
cli_check_layout(const struct opts *o, const char *layout, bool as_ag2)
{
	if (layout == NULL)
		return;
	if (strcmp(layout, "ag2") != 0 && strcmp(layout, "cache") != 0)
		cli_usage(o, "--layout is ag2 or cache, not '%s'", layout);
	if (as_ag2 && strcmp(layout, "cache") == 0)
		cli_usage(o, "--as-ag2 has AG2's layout: --layout=cache excludes it");
}

int
cli_parse(const struct opts *o, int argc, char **argv, bool stop_at_operand)
{
	struct err e = ERR_INIT;
	int n;

	complete_maybe(o, argc, argv);
	n = opts_parse(o, argc, argv, stop_at_operand, &e);
	if (n == OPTS_HELP)
		print_help(o);
	if (n == OPTS_VERSION)
		print_version(o);
	if (n < 0)
		cli_usage(o, "%s", e.msg);
	return n;
}

int
cli_store_url(struct buf *out, const char *url, const char *file_store, bool *fallback, struct err *e)
{
	const char *dir;

	buf_reset(out);
	if (fallback != NULL)
		*fallback = false;
	if (url == NULL)
		url = file_store;
	if (url == NULL)
		url = cli_env("AG2_STORE");
	if (url != NULL) {
		buf_adds(out, url);
		return 0;
	}
	if (fallback != NULL)
		*fallback = true;
	dir = cli_env("XDG_STATE_HOME");
	if (dir != NULL && dir[0] == '/') {	/* the specification has others ignored */
		buf_addf(out, "%s/ag2/store.db", dir);
		return 0;
	}
	dir = cli_env("HOME");
	if (dir == NULL || dir[0] != '/')
		return err_set(e, ERR_CONFIG, "which store? give -s URL or set AG2_STORE (there is no home directory to look in)");
	buf_addf(out, "%s/.local/state/ag2/store.db", dir);
	return 0;
}

/* Makes the directories above path. Failing is no error here: opening the store says what is wrong. */
static void
make_parents(char *path)
{
	char *slash;

	for (slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
}

/* The locks that `ag2-store lock` holds for us on just this store; see store_lock_token. */
static const char *
held_for_us(const char *url)
{
	const char *held = cli_env("AG2_LOCK");
	size_t n = strlen(url);

	return held != NULL && strncmp(held, url, n) == 0 && held[n] == '\n' ? held + n + 1 : NULL;
}

int
cli_try_open(struct store **out, const char *url, const struct agent *file, enum store_mode mode, struct err *e)
{
	struct store_options options = { .mode = mode, .password = cli_env("REDISCLI_AUTH") };
	struct buf where = BUF_INIT;
	bool fallback;
	int rc = cli_store_url(&where, url, file != NULL ? file->store : NULL, &fallback, e);

	if (rc == 0 && fallback && mode == STORE_CREATE)
		make_parents(where.data);
	if (rc == 0) {
		options.under = held_for_us(where.data);
		rc = store_open(out, where.data, &options, e);
	}
	if (rc < 0 && fallback && e->code == ERR_NOINPUT)
		err_set(e, ERR_NOINPUT, "there is no store yet at %s; -s URL or AG2_STORE names another one", where.data);
	if (rc < 0 && url == NULL && file != NULL && file->store != NULL && e->code == ERR_USAGE) {
		e->code = ERR_CONFIG;
		err_wrap(e, "%s", file->store_at);
	}
	buf_release(&where);
	return rc;
}

struct store *
cli_open(const char *url, const struct agent *file, enum store_mode mode)
{
	struct store *s = NULL;
	struct err e = ERR_INIT;

	if (cli_try_open(&s, url, file, mode, &e) < 0)
		log_fail(&e);
	return s;
}

bool
cli_terminal(void)
{
	static int known = -1;

	if (known < 0)
		known = isatty(1);
	return known;
}

bool
cli_colour(int fd)
{
	const char *term = cli_env("TERM");

	return cli_env("NO_COLOR") == NULL && term != NULL && strcmp(term, "dumb") != 0 && isatty(fd);
}

bool
cli_utf8(void)
{
	setlocale(LC_CTYPE, "");
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

int
cli_width(int fd)
{
	struct winsize size;
	const char *columns = cli_env("COLUMNS");
	long n;

	if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	if (columns != NULL && parse_long(columns, "COLUMNS", &n, NULL) == 0 && n > 0 && n < 10000)
		return (int)n;
	return 80;
}

void
cli_add(struct buf *out, const void *data, size_t len, bool keep_lines)
{
	if (cli_terminal())
		scrub(out, data, len, keep_lines);
	else
		buf_add(out, data, len);
}

static void
write_shown(const void *data, size_t len, bool keep_lines)
{
	struct buf shown = BUF_INIT;

	if (!cli_terminal()) {
		out_write(data, len);
		return;
	}
	scrub(&shown, data, len, keep_lines);
	out_write(shown.data, shown.len);
	buf_release(&shown);
}

void
cli_write(const void *data, size_t len)
{
	write_shown(data, len, true);
}

void
cli_puts(const char *text)
{
	cli_write(text, strlen(text));
}

void
cli_name(const char *name)
{
	write_shown(name, strlen(name), false);
}

/* The directory of the running program, with its slash; empty where it is not known. */
static void
own_directory(struct buf *out)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path));

	while (n > 0 && path[n - 1] != '/')
		n--;
	if (n > 0)
		buf_add(out, path, (size_t)n);
}

char *
cli_program(const char *variable, const char *name)
{
	const char *given = variable ? cli_env(variable) : NULL;
	struct buf path = BUF_INIT;

	if (given != NULL)
		return xstrdup(given);
	own_directory(&path);
	buf_adds(&path, name);
	if (path.data[0] == '/' && access(path.data, X_OK) == 0)
		return buf_detach(&path, NULL);
	buf_release(&path);
	return xstrdup(name);
}

noreturn void
cli_die_by(int sig)
{
	sigset_t set;

	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(sig);
	_exit(128 + sig);
}

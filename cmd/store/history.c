/* history, restore, edit: old versions of files, and changing one by hand. */
#include "command.h"

#include "base/alloc.h"
#include "base/run.h"
#include "history.h"
#include "path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TRIES 5

/* ---- history ---- */

/* Normalised, as history.h wants it. */
static char *
operand(const char *path)
{
	struct buf out = BUF_INIT;
	struct err e = ERR_INIT;

	if (path_normalise(&out, path, strlen(path), &e) < 0)
		fail(&e);
	return buf_detach(&out, NULL);
}

static void
print_entry(size_t n, const struct history_entry *entry)
{
	time_t t = (time_t)entry->time;
	char when[40] = "-";
	struct tm tm;

	if (localtime_r(&t, &tm) != NULL)
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	out_printf("%2zu  %s  %llu\n", n, when, (unsigned long long)entry->size);
}

static int
run_history(char **args, int n)
{
	struct store *s = open_store(STORE_READ);
	char *path = operand(args[0]);
	struct history h;
	struct err e = ERR_INIT;
	size_t i;
	int status;

	if (history_read(s, path, &h, &e) < 0)
		fail(&e);
	for (i = 0; i < h.n; i++)
		print_entry(i + 1, &h.entries[i]);
	if (h.n == 0)
		log_warn("there is no old version of '%s'", path);
	status = h.n > 0 ? 0 : 1;
	history_release(&h);
	free(path);
	store_close(s);
	return status;
}

const struct command command_history = {
	.name = "history",
	.operands = "PATH",
	.summary = "list the old versions of a file",
	.min = 1, .max = 1,
	.run = run_history,
	.more = "Each line: its number (1 is the newest), when it was replaced, its bytes. The last ten versions\n"
		"are kept of what ag2-aggregate, restore and edit replace.\n"
		"\nExample:\n"
		"  ag2-store history /memory/working.md\n",
};

/* ---- replacing a file ---- */

/* What is there becomes the newest old version. ERR_CONFLICT when that is not version `st` (NULL: not there) any more. */
static int
replace(struct store *s, const char *path, const struct buf *old, const struct store_stat *st, const struct buf *new, struct err *e)
{
	struct store_op ops[2 + HISTORY_OPS];
	struct history h = { NULL };
	size_t n = 0;
	int rc;

	ops[n++] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = path, .version = st ? st->version : 0 };
	ops[n++] = (struct store_op){ .kind = STORE_OP_WRITE, .path = path, .data = new->data, .len = new->len };
	rc = st != NULL ? history_read(s, path, &h, e) : 0;
	if (rc == 0 && st != NULL)
		n += history_ops(&h, path, old->data, old->len, ops + n);
	if (rc == 0)
		rc = store_commit(s, ops, n, e);
	history_release(&h);
	return rc;
}

/* False when path is not there. */
static bool
read_now(struct store *s, const char *path, struct buf *out, struct store_stat *st)
{
	struct err e = ERR_INIT;

	out->max = INPUT_MAX;
	if (store_read(s, path, out, st, &e) == 0)
		return true;
	if (e.code != ERR_ABSENT)
		fail(&e);
	return false;
}

/* ---- restore ---- */

/* Nothing is changed where the version is there already. */
static int
restore(struct store *s, const char *path, const char *from, struct err *e)
{
	struct buf old = BUF_INIT, new = BUF_INIT_MAX(INPUT_MAX);
	struct store_stat st;
	bool there = read_now(s, path, &old, &st);
	int rc = store_read(s, from, &new, NULL, e);

	if (rc == 0 && !(there && old.len == new.len && memcmp(old.data, new.data, new.len) == 0))
		rc = replace(s, path, &old, there ? &st : NULL, &new, e);
	buf_release(&old);
	buf_release(&new);
	return rc;
}

/* Others may change the file meanwhile: a few times we begin again. */
static void
restore_or_fail(struct store *s, const char *path, const char *from)
{
	struct err e;
	int rc, tries = 0;

	do {
		e = (struct err)ERR_INIT;
		rc = restore(s, path, from, &e);
	} while (rc < 0 && e.code == ERR_CONFLICT && ++tries < TRIES);
	if (rc < 0) {
		if (e.code == ERR_CONFLICT)
			e.code = ERR_BUSY;
		fail(&e);
	}
}

static int
run_restore(char **args, int n)
{
	struct store *s = open_store(STORE_WRITE);
	char *path = operand(args[0]);
	struct err e = ERR_INIT;
	struct history h;
	long which = 1;
	int status = 1;

	if (n > 1 && (parse_long(args[1], "N", &which, NULL) < 0 || which < 1))
		usage("restore: N is a number that history shows, not '%s'", args[1]);
	if (history_read(s, path, &h, &e) < 0)
		fail(&e);
	if (h.n == 0) {
		log_warn("there is no old version of '%s'", path);
	} else if ((size_t)which > h.n) {
		log_warn("there is no old version %ld of '%s', only %zu", which, path, h.n);
	} else {
		restore_or_fail(s, path, h.entries[which - 1].path);
		status = 0;
	}
	history_release(&h);
	free(path);
	store_close(s);
	return status;
}

const struct command command_restore = {
	.name = "restore",
	.operands = "PATH [N]",
	.summary = "bring an old version of a file back",
	.min = 1, .max = 2,
	.run = run_restore,
	.more = "N is the number that history shows; without it the newest. What is there now becomes an old\n"
		"version itself, so that a second restore takes the first one back.\n",
};

/* ---- edit ---- */

static int
make_file(const char *path, const struct buf *content, char *name, size_t size)
{
	const char *dir = cli_env("TMPDIR"), *base = strrchr(path, '/') + 1;
	const char *dot = strrchr(base, '.');	/* editors go by it */
	int fd, suffix = dot != NULL && dot > base && strlen(dot) < 20 ? (int)strlen(dot) : 0;

	if (snprintf(name, size, "%s/ag2-XXXXXX%s", dir ? dir : "/tmp", suffix ? dot : "") >= (int)size)
		return -1;
	fd = mkostemps(name, suffix, O_CLOEXEC);
	if (fd >= 0 && io_write_all(fd, content->data, content->len) == 0)
		return close(fd);
	if (fd >= 0) {
		close(fd);
		unlink(name);
	}
	return -1;
}

static int
run_editor(char *name)
{
	const char *editor = cli_env("VISUAL") ? cli_env("VISUAL") : cli_env("EDITOR") ? cli_env("EDITOR") : "vi";
	char *command = xasprintf("%s \"$@\"", editor);
	char sh[] = "sh", c[] = "-c", *argv[] = { sh, c, command, sh, name, NULL };
	struct run r = { .argv = argv, .terminal = true };
	struct err e = ERR_INIT;
	int status = run(&r, &e);

	free(command);
	if (status < 0)
		fail(&e);
	return status;
}

static int
run_edit(char **args, int n)
{
	struct store *s = open_store(STORE_CREATE);
	char *path = operand(args[0]), name[1024];
	struct buf old = BUF_INIT, new = BUF_INIT_MAX(INPUT_MAX);
	struct store_stat st;
	struct err e = ERR_INIT;
	bool there = read_now(s, path, &old, &st);
	int status;

	if (make_file(path, &old, name, sizeof(name)) < 0)
		log_die(73, "cannot make a file to edit: %s", strerror(errno));
	status = run_editor(name);
	if (status != 0) {
		unlink(name);
		log_die(69, "the editor ended with status %d; nothing was changed", status);
	}
	if (io_read_file(name, &new, &e) < 0)
		fail(&e);
	if (new.len != old.len || memcmp(new.data, old.data, new.len) != 0) {
		if (replace(s, path, &old, there ? &st : NULL, &new, &e) < 0) {
			log_warn("what you wrote is in %s", name);
			if (e.code == ERR_CONFLICT)
				e.code = ERR_BUSY;
			fail(&e);
		}
	}
	unlink(name);
	buf_release(&old);
	buf_release(&new);
	free(path);
	store_close(s);
	return 0;
}

const struct command command_edit = {
	.name = "edit",
	.operands = "PATH",
	.summary = "change a file with $VISUAL or $EDITOR",
	.min = 1, .max = 1,
	.run = run_edit,
	.more = "The file is written as a whole when the editor ends well and the text was changed. When someone\n"
		"else changed it meanwhile nothing is written (75), and the edited text is kept where the message says.\n",
};

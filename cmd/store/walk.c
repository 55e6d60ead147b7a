#include "walk.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "path.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct item {
	char *name;
	bool dir;
	struct store_stat st;
};

struct items {
	struct item *all;
	size_t n, cap;
};

static int
add(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	struct items *list = arg;

	list->all = xgrow(list->all, list->n, &list->cap, sizeof(*list->all));
	list->all[list->n++] = (struct item){ xstrdup(name), dir, st ? *st : (struct store_stat){ 0 } };
	return 0;
}

/* path is the directory's, and is that again afterwards. 1 when there is something in it. */
static int
walk_below(struct store *s, struct buf *path, unsigned flags, walk_fn *fn, void *arg, struct err *e)
{
	struct items list = { 0 };
	size_t i, len = path->len;
	int rc = store_list(s, len > 0 ? path->data : "/", flags, add, &list, e);

	for (i = 0; i < list.n; i++) {
		buf_addch(path, '/');
		buf_adds(path, list.all[i].name);
		if (rc == 0 && fn(arg, path->data, list.all[i].dir, flags & STORE_LIST_STAT ? &list.all[i].st : NULL) == WALK_ON && list.all[i].dir)
			rc = walk_below(s, path, flags, fn, arg, e) < 0 ? -1 : 0;
		path->len = len;
		path->data[len] = '\0';
		free(list.all[i].name);
	}
	free(list.all);
	return rc < 0 ? -1 : list.n > 0;
}

int
walk(struct store *s, const char *path, unsigned flags, walk_fn *fn, void *arg, struct err *e)
{
	struct buf at = BUF_INIT;
	struct store_stat st;
	bool root = strcmp(path, "/") == 0;
	int found = root ? 0 : store_stat(s, path, &st, e), rc;

	if (found < 0)
		return -1;
	if (found > 0 && !st.dir)
		fn(arg, path, false, &st);
	if (!root)
		buf_adds(&at, path);
	rc = walk_below(s, &at, flags, fn, arg, e);
	buf_release(&at);
	return rc == 0 && (root || found > 0) ? 1 : rc;
}

struct buf
path_operand(char **args, int n)
{
	struct buf path = BUF_INIT;
	struct err e = ERR_INIT;

	if (path_normalise(&path, n > 0 ? args[0] : "/", n > 0 ? strlen(args[0]) : 1, &e) < 0)
		fail(&e);
	return path;
}

/* ---- progress ---- */

void
human_size(char out[16], uint64_t bytes)
{
	static const char units[] = "KMGTPE";
	double value = (double)bytes;
	size_t i = 0;

	if (bytes < 1024) {
		snprintf(out, 16, "%u", (unsigned)bytes);
		return;
	}
	for (value /= 1024; value >= 999.5 && units[i + 1] != '\0'; i++)
		value /= 1024;
	snprintf(out, 16, value < 9.95 ? "%.1f%c" : "%.0f%c", value, units[i]);
}

void
human_age(char out[16], double mtime)
{
	static const struct { double seconds; char unit; } units[] = {
		{ 31557600, 'y' }, { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' }, { 0, 's' }
	};
	double seconds = clock_now() - mtime;
	size_t i = 0;

	snprintf(out, 16, "-");
	if (mtime < 0)
		return;
	if (seconds < 0)
		seconds = 0;
	while (seconds < units[i].seconds)
		i++;
	snprintf(out, 16, "%.0f%c", units[i].seconds > 0 ? (double)(long)(seconds / units[i].seconds) : seconds, units[i].unit);
}

void
progress_begin(struct progress *p)
{
	const char *term = cli_env("TERM");

	p->on = isatty(2) && term != NULL && strcmp(term, "dumb") != 0;
	p->begun = p->shown = clock_monotonic();
}

static void
add_of(struct buf *line, const char *done, const char *all, const char *unit)
{
	buf_addf(line, "%s%s%s%s", done, all[0] != '\0' ? " of " : "", all, unit);
}

/* At most five times a second, and never for what takes less. */
void
progress_step(struct progress *p)
{
	struct buf line = BUF_INIT;
	char done[24], all[24] = "";
	double now, left;

	if (!p->on || (now = clock_monotonic()) - p->shown < 0.2)
		return;
	p->shown = now;
	buf_adds(&line, "\r");
	snprintf(done, sizeof(done), "%llu", (unsigned long long)p->files);
	if (p->all_files > 0)
		snprintf(all, sizeof(all), "%llu", (unsigned long long)p->all_files);
	add_of(&line, done, all, " files, ");
	human_size(done, p->bytes);
	all[0] = '\0';
	if (p->all_bytes > 0)
		human_size(all, p->all_bytes);
	add_of(&line, done, all, "");
	if (p->bytes > 0 && p->all_bytes > p->bytes) {
		left = (now - p->begun) * (double)(p->all_bytes - p->bytes) / (double)p->bytes;
		if (left < 86400)
			buf_addf(&line, ", %.0f:%02.0f left", (double)((long)left / 60), (double)((long)left % 60));
	}
	buf_adds(&line, "\033[K");
	if (io_write_all(2, line.data, line.len) < 0)
		p->on = false;
	buf_release(&line);
}

void
progress_end(struct progress *p)
{
	if (p->on && p->shown > p->begun && io_write_all(2, "\r\033[K", 4) < 0)
		p->on = false;
}

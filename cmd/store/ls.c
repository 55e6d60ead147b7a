#include "command.h"
#include "../screen.h"

#include "base/alloc.h"
#include "path.h"
#include "walk.h"

#include <stdio.h>
#include <stdlib.h>

static bool all, details, recursive, one, nul, as_json;
static int version_width = 1, size_width = 1;	/* of the directory that is printed */

struct entry {
	char *name;
	bool dir;
	struct store_stat st;
};

struct entries {
	struct entry *items;
	size_t n, cap;
};

static int
add(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	struct entries *list = arg;

	list->items = xgrow(list->items, list->n, &list->cap, sizeof(*list->items));
	list->items[list->n] = (struct entry){ xstrdup(name), dir, st ? *st : (struct store_stat){ 0 } };
	list->items[list->n++].st.dir = dir;
	return 0;
}

static void
release(struct entries *list)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		free(list->items[i].name);
	free(list->items);
}

static struct entries
gather(struct store *s, const char *path, unsigned flags)
{
	struct entries list = { 0 };
	struct err e = ERR_INIT;

	if (store_list(s, path, flags, add, &list, &e) < 0)
		fail(&e);
	return list;
}

static char *
below(const char *dir, const char *name)
{
	return xasprintf("%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name);
}

/* ---- how names look ---- */

static void
print_name(const char *name, bool dir)
{
	bool colour = dir && cli_colour(1);

	out_puts(colour ? "\033[1;34m" : "");
	cli_name(name);
	out_puts(colour ? "\033[0m" : "");
	out_puts(dir ? "/" : "");
}

/* Columns that a name takes on the terminal. */
static size_t
shown_width(const struct entry *entry)
{
	struct buf shown = BUF_INIT;
	size_t width;

	scrub(&shown, entry->name, strlen(entry->name), false);
	width = text_columns(shown.data, shown.len) + entry->dir;
	buf_release(&shown);
	return width;
}

/* Down the columns, as ls does. */
static void
print_columns(const struct entries *list)
{
	size_t i, row, width = 1, columns, rows, w;

	for (i = 0; i < list->n; i++) {
		w = shown_width(&list->items[i]) + 2;
		width = w > width ? w : width;
	}
	columns = (size_t)cli_width(1) / width;
	if (columns == 0)
		columns = 1;
	rows = (list->n + columns - 1) / columns;
	for (row = 0; row < rows; row++) {
		for (i = row; i < list->n; i += rows) {
			print_name(list->items[i].name, list->items[i].dir);
			if (i + rows < list->n)
				out_printf("%*s", (int)(width - shown_width(&list->items[i])), "");
		}
		out_puts("\n");
	}
}

static void
print_details(const struct store_stat *st)
{
	char when[16];

	if (st->dir) {
		out_printf("%*s %*s %5s  ", version_width, "-", size_width, "-", "-");
		return;
	}
	human_age(when, st->mtime);
	out_printf("%*llu %*llu %5s  ", version_width, (unsigned long long)st->version, size_width, (unsigned long long)st->size, when);
}

static void
measure(const struct entries *list)
{
	size_t i;
	int n;

	version_width = cli_terminal() ? 7 : 1;	/* with a heading */
	size_width = cli_terminal() ? 4 : 1;
	for (i = 0; i < list->n; i++) {
		n = snprintf(NULL, 0, "%llu", (unsigned long long)list->items[i].st.version);
		version_width = n > version_width ? n : version_width;
		n = snprintf(NULL, 0, "%llu", (unsigned long long)list->items[i].st.size);
		size_width = n > size_width ? n : size_width;
	}
}

static void
print_entry(const char *path, const char *name, const struct store_stat *st)
{
	if (recursive)
		name = path;
	if (as_json) {
		print_json(path, st);
	} else if (nul) {
		print_name(name, st->dir);
		out_write("", 1);
	} else {
		if (details)
			print_details(st);
		print_name(name, st->dir);
		out_puts("\n");
	}
}

static void
print_all(struct store *s, const char *path, const struct entries *list, unsigned flags)
{
	struct entries inner;
	struct entry *entry;
	char *inner_path;

	if (!as_json && !nul && !details && !recursive && !one && cli_terminal()) {
		print_columns(list);
		return;
	}
	measure(list);
	if (details && !recursive && !as_json && !nul && cli_terminal())
		out_printf("%*s %*s %5s  name\n", version_width, "version", size_width, "size", "age");
	for (entry = list->items; entry < list->items + list->n; entry++) {
		inner_path = below(path, entry->name);
		print_entry(inner_path, entry->name, &entry->st);
		if (recursive && entry->dir) {
			inner = gather(s, inner_path, flags);
			print_all(s, inner_path, &inner, flags);
			release(&inner);
			measure(list);
		}
		free(inner_path);
	}
}

/* Nothing is below path: it may be a file, which is then listed itself. */
static int
print_file(struct store *s, const char *path)
{
	struct store_stat st;
	struct err e = ERR_INIT;
	int there = store_stat(s, path, &st, &e);

	if (there < 0)
		fail(&e);
	if (there == 0 && strcmp(path, "/") != 0) {
		log_warn("'%s' is not in the store", path);
		return 1;
	}
	if (there > 0 && !st.dir)
		print_entry(path, path, &st);
	return 0;
}

static int
run_ls(char **args, int n)
{
	struct store *s = open_store(STORE_READ);
	unsigned flags = (all ? STORE_LIST_ALL : 0) | (details || as_json ? STORE_LIST_STAT : 0);
	struct buf path = BUF_INIT;
	struct err e = ERR_INIT;
	struct entries list;
	int status = 0;

	if (path_normalise(&path, n > 0 ? args[0] : "/", n > 0 ? strlen(args[0]) : 1, &e) < 0)
		fail(&e);
	list = gather(s, path.data, flags);
	if (list.n == 0)
		status = print_file(s, path.data);
	else
		print_all(s, path.data, &list, flags);
	release(&list);
	buf_release(&path);
	store_close(s);
	return status;
}

static const struct opt ls_table[] = {
	{ 'a', "all", OPT_FLAG, &all, NULL, "also what ag2 keeps for itself, in /.ag2" },
	{ 'l', "long", OPT_FLAG, &details, NULL, "version, size and age before each name" },
	{ 'R', "recursive", OPT_FLAG, &recursive, NULL, "everything below, each by its path" },
	{ '1', NULL, OPT_FLAG, &one, NULL, "one name a line, as into a pipe" },
	{ '0', "null", OPT_FLAG, &nul, NULL, "end each name with a NUL instead of a newline" },
	{ 0, "json", OPT_FLAG, &as_json, NULL, "one JSON object a line" },
	{ 0 }
};

const struct command command_ls = {
	.name = "ls",
	.operands = "[-alR10] [--json] [PATH]",
	.summary = "list what is in a directory",
	.table = ls_table,
	.min = 0, .max = 1,
	.run = run_ls,
	.more = "Names come in the order of their bytes; those of directories end in '/'.\n"
		"\nExamples:\n"
		"  ag2-store ls -l /memory/conversations\n"
		"  ag2-store ls -R0 | xargs -0 printf '%s\\n'\n",
};

/* ---- tree ---- */

/* What is drawn before a name: on its line, below the line of one with more behind it. */
static const struct drawing {
	const char *next, *last, *beside, *below;
} lines = { "├── ", "└── ", "│   ", "    " }, ascii = { "|-- ", "`-- ", "|   ", "    " };

struct tree {
	struct store *s;
	const struct drawing *drawing;
	struct buf indent;
	unsigned long dirs, files;
	unsigned flags;
};

/* What stands before a file's name with -l. */
static void
print_leaf_details(const struct store_stat *st)
{
	char size[16], when[16];

	human_size(size, st->size);
	human_age(when, st->mtime);
	out_printf("[v%llu %s %s]  ", (unsigned long long)st->version, size, when);
}

static void
branch(struct tree *t, const char *path)
{
	struct entries list = gather(t->s, path, t->flags);
	size_t i, indent = t->indent.len;
	char *inner;

	for (i = 0; i < list.n; i++) {
		out_write(t->indent.data, t->indent.len);
		out_puts(i + 1 < list.n ? t->drawing->next : t->drawing->last);
		if (details && !list.items[i].dir)
			print_leaf_details(&list.items[i].st);
		print_name(list.items[i].name, list.items[i].dir);
		out_puts("\n");
		*(list.items[i].dir ? &t->dirs : &t->files) += 1;
		if (!list.items[i].dir)
			continue;
		buf_adds(&t->indent, i + 1 < list.n ? t->drawing->beside : t->drawing->below);
		inner = below(path, list.items[i].name);
		branch(t, inner);
		free(inner);
		t->indent.len = indent;
		t->indent.data[indent] = '\0';
	}
	release(&list);
}

static int
print_entry_json(void *arg, const char *path, bool dir, const struct store_stat *st)
{
	struct store_stat known = *st;

	known.dir = dir;
	print_json(path, &known);
	return WALK_ON;
}

static int
run_tree(char **args, int n)
{
	struct tree t = { .s = open_store(STORE_READ), .indent = BUF_INIT, .drawing = cli_terminal() && !cli_utf8() ? &ascii : &lines,
		.flags = (all ? STORE_LIST_ALL : 0) | (details || as_json ? STORE_LIST_STAT : 0) };
	struct buf path = BUF_INIT;
	struct store_stat st = { .dir = true };
	struct err e = ERR_INIT;
	int there;

	if (path_normalise(&path, n > 0 ? args[0] : "/", n > 0 ? strlen(args[0]) : 1, &e) < 0)
		fail(&e);
	there = strcmp(path.data, "/") == 0 ? 1 : store_stat(t.s, path.data, &st, &e);
	if (there < 0)
		fail(&e);
	if (there == 0) {
		log_warn("'%s' is not in the store", path.data);
	} else if (as_json) {
		if (walk(t.s, path.data, t.flags, print_entry_json, NULL, &e) < 0)
			fail(&e);
	} else {
		print_name(path.data, false);
		out_puts("\n");
		branch(&t, path.data);
		out_printf("\n%lu director%s, %lu file%s\n", t.dirs, t.dirs == 1 ? "y" : "ies", t.files, t.files == 1 ? "" : "s");
	}
	buf_release(&t.indent);
	buf_release(&path);
	store_close(t.s);
	return there > 0 ? 0 : 1;
}

static const struct opt tree_table[] = {
	{ 'a', "all", OPT_FLAG, &all, NULL, "also what ag2 keeps for itself, in /.ag2" },
	{ 'l', "long", OPT_FLAG, &details, NULL, "version, size and age before each file" },
	{ 0, "json", OPT_FLAG, &as_json, NULL, "no drawing: one JSON object a line, as ls -R --json" },
	{ 0 }
};

const struct command command_tree = {
	.name = "tree",
	.operands = "[-al] [--json] [PATH]",
	.summary = "draw everything below a directory",
	.table = tree_table,
	.min = 0, .max = 1,
	.run = run_tree,
};

#include "help.h"
#include "cli.h"

#include <stdlib.h>

/* One column for the option, one for its text. */
static size_t
add_label(struct buf *out, const struct opt *p)
{
	size_t start = out->len;

	buf_adds(out, "  ");
	if (p->letter != 0)
		buf_addf(out, "-%c%s", p->letter, p->name ? ", " : "");
	else
		buf_adds(out, "    ");
	if (p->name != NULL)
		buf_addf(out, "--%s", p->name);
	if (p->arg != NULL && p->kind == OPT_OPTIONAL)
		buf_addf(out, "[=%s]", p->arg);
	else if (p->arg != NULL)
		buf_addf(out, "%s%s", p->name ? "=" : " ", p->arg);
	return out->len - start;
}

/* The length of the first word of text; `[-x VALUE]` is one. */
static size_t
word_length(const char *text)
{
	size_t i;
	int open = 0;

	for (i = 0; text[i] != '\0' && text[i] != '\n' && (text[i] != ' ' || open > 0); i++)
		open += (text[i] == '[') - (text[i] == ']');
	return i;
}

/* Text whose first line begins at `column`; all are as long as the terminal is wide, and the others begin behind `indent` blanks. */
static void
add_filled(struct buf *out, const char *text, size_t column, size_t indent)
{
	size_t width = (size_t)cli_width(1), len;
	bool first = true;

	for (; *text != '\0'; text += len + (text[len] == ' ')) {
		len = word_length(text);
		if (*text == '\n' || (!first && column + 1 + len > width)) {
			buf_addf(out, "\n%*s", (int)indent, "");
			column = indent;
			first = true;
		}
		if (*text == '\n') {
			text += 1 + strspn(text + 1, " ");
			len = word_length(text);
		}
		buf_addf(out, "%s%.*s", first ? "" : " ", (int)len, text);
		column += len + !first;
		first = false;
	}
	buf_addch(out, '\n');
}

void
help_row(const char *label, size_t width, const char *text)
{
	struct buf line = BUF_INIT;

	buf_addf(&line, "%-*s  ", (int)width, label);
	add_filled(&line, text, line.len, width + 2);
	out_write(line.data, line.len);
	buf_release(&line);
}

const struct opt program_options[] = {
	{ 0, "completion", OPT_STRING, NULL, "SHELL", "print the completion for bash, zsh or fish, and end" },
	{ 0 }
};

static void
print_options(const struct opts *o)
{
	const struct opt *tables[] = { o->table, o->common, strchr(o->program, ' ') == NULL ? program_options : NULL, opts_standard }, *p;
	struct buf label = BUF_INIT;
	size_t i, width = 0, n;

	for (i = 0; i < 4; i++)
		for (p = tables[i]; p != NULL && !opt_is_end(p); p++) {
			n = add_label(&label, p);
			width = n > width ? n : width;
		}
	out_puts("\nOptions:\n");
	for (i = 0; i < 4; i++)
		for (p = tables[i]; p != NULL && !opt_is_end(p); p++) {
			buf_reset(&label);
			add_label(&label, p);
			help_row(label.data, width, p->help);
		}
	buf_release(&label);
}

static void
print_filled(const char *before, const char *text)
{
	struct buf line = BUF_INIT;

	buf_adds(&line, before);
	add_filled(&line, text, line.len, line.len);
	out_write(line.data, line.len);
	buf_release(&line);
}

/* Paragraphs are filled; lines that begin with a blank stand as they are. */
static void
print_text(const char *text)
{
	struct buf paragraph = BUF_INIT;
	size_t len;

	for (; *text != '\0'; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		if (len > 0 && *text != ' ') {
			buf_addf(&paragraph, "%s%.*s", paragraph.len > 0 ? " " : "", (int)len, text);
			if (text[len] == '\n' && text[len + 1] != '\n' && text[len + 1] != ' ' && text[len + 1] != '\0')
				continue;
			print_filled("", paragraph.data);
			buf_reset(&paragraph);
		} else {
			out_printf("%.*s\n", (int)len, text);
		}
	}
	buf_release(&paragraph);
}

noreturn void
print_help(const struct opts *o)
{
	print_filled("usage: ", o->usage);
	if (o->summary != NULL)
		print_filled("", o->summary);
	print_options(o);
	if (o->print_more != NULL) {
		out_puts("\n");
		o->print_more();
	}
	if (o->more != NULL) {
		out_puts("\n");
		print_text(o->more);
	}
	out_close();
	exit(0);
}

noreturn void
print_version(const struct opts *o)
{
	out_printf("%s %s\n", o->program, AG2_VERSION);
	out_close();
	exit(0);
}

#include "help.h"
#include "out.h"

#include "base/buf.h"

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

static void
print_options(const struct opts *o)
{
	const struct opt *tables[] = { o->table, o->common, opts_standard }, *p;
	struct buf line = BUF_INIT;
	size_t i, width = 0, n;

	for (i = 0; i < 3; i++)
		for (p = tables[i]; p != NULL && !opt_is_end(p); p++) {
			n = add_label(&line, p);
			width = n > width ? n : width;
		}
	out_puts("\nOptions:\n");
	for (i = 0; i < 3; i++)
		for (p = tables[i]; p != NULL && !opt_is_end(p); p++) {
			buf_reset(&line);
			add_label(&line, p);
			out_printf("%-*s  %s\n", (int)width, line.data, p->help);
		}
	buf_release(&line);
}

noreturn void
print_help(const struct opts *o)
{
	out_printf("usage: %s\n", o->usage);
	if (o->summary != NULL)
		out_printf("%s\n", o->summary);
	print_options(o);
	if (o->print_more != NULL) {
		out_puts("\n");
		o->print_more();
	}
	if (o->more != NULL)
		out_printf("\n%s", o->more);
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

/* fsck: looks through the store for what is not as it should be, and repairs it. */
#include "command.h"

#include "event/json.h"
#include "fsck.h"

static bool repair, as_json;

struct counts {
	unsigned long long found, left;
};

static void
print_line(const struct store_finding *f)
{
	cli_name(f->path);
	cli_puts(": ");
	cli_name(f->what);
	if (f->repaired != NULL) {
		cli_puts(": ");
		cli_name(f->repaired);
	}
	cli_puts("\n");
}

static void
print_object(const struct store_finding *f)
{
	struct buf line = BUF_INIT;

	buf_adds(&line, "{\"path\":");
	json_write_string(&line, f->path, strlen(f->path), JSON_COMPACT);
	buf_adds(&line, ",\"kind\":");
	json_write_string(&line, f->kind, strlen(f->kind), JSON_COMPACT);
	buf_adds(&line, ",\"what\":");
	json_write_string(&line, f->what, strlen(f->what), JSON_COMPACT);
	buf_adds(&line, ",\"repaired\":");
	if (f->repaired != NULL)
		json_write_string(&line, f->repaired, strlen(f->repaired), JSON_COMPACT);
	else
		buf_adds(&line, "null");
	buf_adds(&line, "}\n");
	cli_write(line.data, line.len);
	buf_release(&line);
}

static void
tell(void *arg, const struct store_finding *f)
{
	struct counts *c = arg;

	c->found++;
	c->left += f->repaired == NULL;
	if (as_json)
		print_object(f);
	else
		print_line(f);
	out_flush();
}

static int
run_fsck(char **args, int n)
{
	struct store *s = open_store(repair ? STORE_WRITE : STORE_READ);
	struct counts c = { 0 };
	struct err e = ERR_INIT;

	if (fsck(s, repair, tell, &c, &e) < 0)
		fail(&e);
	store_close(s);
	return c.left > 0 ? 1 : 0;
}

static const struct opt fsck_table[] = {
	{ 0, "repair", OPT_FLAG, &repair, NULL, "put right what can be put right" },
	{ 0, "json", OPT_FLAG, &as_json, NULL, "one JSON object a line: path, kind, what, repaired (what was done, or null)" },
	{ 0 }
};

const struct command command_fsck = {
	.name = "fsck",
	.operands = "[--repair] [--json]",
	.summary = "look for what is torn, left over or out of step, and repair it",
	.table = fsck_table,
	.max = 0,
	.run = run_fsck,
	.more = "Each thing found is a line, 'PATH: what is wrong', with ': what was done' behind it when that was repaired.\n"
		"The status is 1 when something is, and is left, wrong. Nothing is lost by --repair: lines of a log that are no\n"
		"events move to /log/S.torn-N, and so on; others can use the store meanwhile.\n"
		"\nExample:\n"
		"  ag2-store fsck || ag2-store fsck --repair\n",
};

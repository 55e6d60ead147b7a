/* The commands of `log`: streams of events in the store. */
#include "command.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "event/build.h"
#include "standing.h"
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>

#define APPEND_MAX (1u << 30)

/* ---- new ---- */

static int
run_new(char **args, int n)
{
	struct store *s = open_store(STORE_CREATE);
	struct buf path = BUF_INIT;
	struct err e = ERR_INIT;
	char *id;

	if (stream_resolve(s, "@new", &id, NULL, &e) < 0)
		fail(&e);
	stream_path(&path, id);
	if (store_write(s, path.data, "", 0, &e) < 0)
		fail(&e);
	out_printf("%s\n", id);
	free(id);
	buf_release(&path);
	store_close(s);
	return 0;
}

static const struct command command_new = {
	.name = "new",
	.summary = "begin a stream and print its id",
	.max = 0,
	.run = run_new,
	.more = "Example:\n"
		"  S=$(ag2-store log new)\n",
};

/* ---- cat, answer ---- */

static struct stream_reader *
open_reader(struct store *s, const char *id, bool full)
{
	struct stream_reader *r;
	struct err e = ERR_INIT;

	if (stream_open(s, id, full, &r, &e) < 0)
		fail(&e);
	return r;
}

/* Good lines as they are, each with a newline. */
static void
print_lines(struct jsonl *in)
{
	struct event ev;
	struct err e = ERR_INIT;
	int rc;

	while ((rc = jsonl_next(in, &ev, &e)) > 0) {
		cli_write(ev.line, ev.len);
		out_write("\n", 1);
		event_release(&ev);
	}
	if (rc < 0)
		fail(&e);
	jsonl_release(in);
}

static bool current;

static int
run_cat(char **args, int n)
{
	struct store *s = open_store(STORE_READ);
	const char *id = stream_operand(s, args[0]);
	struct stream_reader *r = open_reader(s, id, !current);
	struct jsonl in;

	jsonl_init(&in, id, JSONL_BAD_ONCE, stream_read, r);
	print_lines(&in);
	stream_close(r);
	store_close(s);
	return 0;
}

static const struct opt cat_table[] = {
	{ 0, "current", OPT_FLAG, &current, NULL, "only the current log, without what compaction dropped" },
	{ 0 }
};

static const struct command command_log_cat = {
	.name = "cat",
	.operands = "[--current] S",
	.summary = "print the events of a stream, dropped ones first",
	.table = cat_table,
	.min = 1, .max = 1,
	.run = run_cat,
	.more = "A line that is no event is left out, with a warning.\n"
		"\nExample:\n"
		"  ag2-store log cat --current @last | ag2-assemble sliding-window:80\n",
};

/* Opens the last `lines` lines of a log and reads them through in. */
static struct stream_reader *
open_tail(struct store *s, const char *id, uint64_t lines, struct jsonl *in, uint64_t *offset)
{
	struct stream_reader *r;
	struct err e = ERR_INIT;

	if (stream_open_tail(s, id, lines, &r, offset, &e) < 0)
		fail(&e);
	jsonl_init(in, id, JSONL_BAD_ONCE, stream_read, r);
	if (*offset > 0)
		jsonl_set_position(in, 0, *offset);
	return r;
}

/* The last response among the lines that in gives; its text goes to out. 1 when there is one. */
static int
last_response(struct jsonl *in, struct buf *out)
{
	struct event ev;
	struct err e = ERR_INIT;
	struct json_object *data;
	const char *text;
	size_t len;
	int found = 0, rc;

	while ((rc = jsonl_next(in, &ev, &e)) > 0) {
		if (ev.type->flags & EV_RESPONSE) {
			buf_reset(out);
			data = event_data(&ev, &e);
			text = data ? json_get_text(json_get(data, "message"), "content", &len) : NULL;
			if (text != NULL)
				buf_add(out, text, len);
			found = 1;
		}
		event_release(&ev);
	}
	if (rc < 0)
		fail(&e);
	return found;
}

static int
run_answer(char **args, int n)
{
	struct store *s = open_store(STORE_READ);
	const char *id = stream_operand(s, n > 0 ? args[0] : "@last");
	struct buf text = BUF_INIT;
	struct stream_reader *r;
	struct jsonl in;
	uint64_t offset = 1, lines;
	int found = 0;

	for (lines = 64; !found && offset > 0; lines *= 32) {
		r = open_tail(s, id, lines, &in, &offset);
		found = last_response(&in, &text);
		jsonl_release(&in);
		stream_close(r);
	}
	store_close(s);
	if (text.len == 0) {
		log_warn(found ? "the last response of stream %s has no text" : "there is no response in stream %s", id);
		return 1;
	}
	cli_write(text.data, text.len);
	if (text.data[text.len - 1] != '\n')
		out_puts("\n");
	buf_release(&text);
	return 0;
}

static const struct command command_answer = {
	.name = "answer",
	.operands = "[S]",
	.summary = "print the text of a stream's last response (default: @last)",
	.max = 1,
	.run = run_answer,
};

/* ---- append, user, alert ---- */

static void
append_lines(struct store *s, const char *id, const struct buf *lines)
{
	struct err e = ERR_INIT;

	if (lines->len > 0 && stream_append(s, id, lines->data, lines->len, NULL, &e) < 0)
		fail(&e);
}

/*
 * A halt that is obeyed comes out of ag2-ask, wherever it was found: one that stands behind the last response of this log
 * already is the same one, to the microsecond of its time.
 */
static void
drop_known_halt(struct store *s, const char *id, struct buf *lines)
{
	struct standing st = { .halt = NULL };
	struct err e = ERR_INIT;
	size_t from, len;
	char *end;

	if (memmem(lines->data, lines->len, "HaltEvent", 9) == NULL)
		return;
	if (standing_of_stream(&st, s, id, &e) < 0)
		fail(&e);
	for (from = 0; st.halt != NULL && from < lines->len; from += len) {
		end = memchr(lines->data + from, '\n', lines->len - from);
		len = (size_t)(end - (lines->data + from)) + 1;
		if (len - 1 != st.halt->len || memcmp(lines->data + from, st.halt->line, len - 1) != 0)
			continue;
		memmove(lines->data + from, lines->data + from + len, lines->len - from - len);
		lines->len -= len;
		len = 0;
	}
	event_free(st.halt);
}

static int
run_append(char **args, int n)
{
	struct buf lines = BUF_INIT_MAX(APPEND_MAX);
	struct err e = ERR_INIT;
	struct store *s;
	const char *id;

	if (stream_filter(0, "stdin", &lines, &e) < 0)
		fail(&e);
	s = open_store(STORE_CREATE);
	id = stream_operand(s, args[0]);
	drop_known_halt(s, id, &lines);
	append_lines(s, id, &lines);
	buf_release(&lines);
	store_close(s);
	return 0;
}

static const struct command command_log_append = {
	.name = "append",
	.operands = "S",
	.summary = "append event lines from standard input, all or none",
	.min = 1, .max = 1,
	.run = run_append,
	.more = "Every line must be a JSON object with a string 'type' and an object 'data', or nothing is\n"
		"written (status 65). Prompt lines and transient events are left out, and a HaltEvent that\n"
		"stands behind the last response of the log already.\n"
		"\nExample:\n"
		"  ag2-store log cat --current \"$S\" | ag2-assemble conversation |\n"
		"      ag2-ask -m openai:gpt-5 --events | ag2-store log append \"$S\"\n",
};

/* TEXT, or with `-` standard input without its last newline. */
static struct buf
text_operand(const char *arg, const char *what)
{
	struct buf text = BUF_INIT;

	if (strcmp(arg, "-") == 0) {
		read_input(NULL, &text);
		if (text.len > 0 && text.data[text.len - 1] == '\n')
			text.data[--text.len] = '\0';
	} else {
		buf_adds(&text, arg);
	}
	if (text.len == 0)
		log_die(65, "the %s is empty", what);
	if (text.len > EVENT_LINE_MAX / 8)	/* escaped it may be six times as long, and it has to fit a line */
		log_die(65, "the %s is longer than %u bytes", what, EVENT_LINE_MAX / 8);
	return text;
}

static void
append_event(const char *stream, struct buf *line)
{
	struct store *s = open_store(STORE_CREATE);

	buf_addch(line, '\n');
	append_lines(s, stream_operand(s, stream), line);
	store_close(s);
}

static int
run_user(char **args, int n)
{
	struct buf text = text_operand(args[1], "text"), line = BUF_INIT;
	struct text part = { text.data, text.len };

	build_request(&line, &part, 1);
	append_event(args[0], &line);
	buf_release(&line);
	buf_release(&text);
	return 0;
}

static const struct command command_user = {
	.name = "user",
	.operands = "S TEXT",
	.summary = "append what a user says (TEXT '-': standard input)",
	.min = 2, .max = 2,
	.run = run_user,
	.more = "Example:\n"
		"  ag2-store log user @new 'What should I read next?'\n",
};

static const char *severity, *source;

static int
run_alert(char **args, int n)
{
	static const char *const known[] = { "info", "warning", "critical", "fatal" };
	struct buf text, line = BUF_INIT;
	size_t i;

	if (severity == NULL || source == NULL)
		usage("alert: --severity and --source are needed");
	for (i = 0; i < 4 && strcasecmp(severity, known[i]) != 0; i++)
		continue;
	if (i == 4)
		usage("alert: the severity is info, warning, critical or fatal, not '%s'", severity);
	text = text_operand(args[1], "message");
	build_alert(&line, known[i], source, (struct text){ text.data, text.len });
	append_event(args[0], &line);
	buf_release(&line);
	buf_release(&text);
	return 0;
}

static const struct opt alert_table[] = {
	{ 0, "severity", OPT_STRING, &severity, "V", "info, warning, critical or fatal (which halts the agent)" },
	{ 0, "source", OPT_STRING, &source, "X", "who raises it" },
	{ 0 }
};

static const struct command command_alert = {
	.name = "alert",
	.operands = "S --severity=V --source=X TEXT",
	.summary = "append an alert for the model to see (TEXT '-': standard input)",
	.table = alert_table,
	.min = 2, .max = 2,
	.run = run_alert,
	.more = "It can be raised in the middle of a turn: the log is read again before each call of the model.\n"
		"\nExample:\n"
		"  ag2-store log alert @last --severity warning --source df 'disk 91 % full'\n",
};

static const struct command *const log_commands[] = {
	&command_new,
	&command_log_ls,
	&command_log_cat,
	&command_log_show,
	&command_answer,
	&command_log_append,
	&command_user,
	&command_alert,
	&command_log_grep,
	&command_log_usage,
	&command_tail,
	&command_log_rm,
	&command_log_prune,
	NULL
};

const struct command command_log = {
	.name = "log",
	.operands = "COMMAND [ARGUMENT...]",
	.summary = "streams of events",
	.min = 1, .max = -1,
	.commands = log_commands,
	.more = "A stream S is named by its id, @last (the one last written to) or @new.\n",
};

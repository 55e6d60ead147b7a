#include "command.h"

#include "base/utf8.h"

#include <stdlib.h>

#define CHUNK (256 * 1024)

/* ---- cat ---- */

static const char *range;

struct range {
	int64_t start, end;	/* end STORE_END: to the end of the file */
};

static bool
parse_bound(const char *text, size_t len, long *out)
{
	char copy[32];

	if (len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return parse_long(copy, "range", out, NULL) == 0;
}

/* START, START: or START:END; START may be left out before the colon. */
static struct range
parse_range(const char *text)
{
	struct range r = { 0, STORE_END };
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : strlen(text);
	long start = 0, end = 0;

	if ((len > 0 || colon == NULL) && !parse_bound(text, len, &start))
		usage("cat: the range is START[:END] in bytes, not '%s'", text);
	if (colon != NULL && colon[1] != '\0') {
		if (!parse_bound(colon + 1, strlen(colon + 1), &end))
			usage("cat: the range is START[:END] in bytes, not '%s'", text);
		r.end = end;
	}
	r.start = start;
	return r;
}

/* Clamped to the file; a negative start counts from its end; an end before the start is an empty range. */
static void
clamp(struct range *r, uint64_t size)
{
	int64_t most = size < INT64_MAX ? (int64_t)size : INT64_MAX - 1;

	if (r->start < 0)
		r->start = r->start + most > 0 ? r->start + most : 0;
	if (r->start > most)
		r->start = most;
	if (r->end > most)
		r->end = most;
	if (r->end < r->start)
		r->end = r->start;
}

/* True when offset lies between the bytes of one UTF-8 character. */
static bool
inside_character(struct store_file *f, uint64_t offset)
{
	char window[8];
	uint64_t base = offset < 3 ? 0 : offset - 3;
	ssize_t n = offset > 0 ? store_file_read(f, base, window, sizeof(window), NULL) : 0;
	size_t i, len;

	for (i = 0; n > 0 && base + i < offset && i < (size_t)n; i++) {
		len = utf8_decode(window + i, (size_t)n - i, NULL);
		if (len > 0 && base + i + len > offset)
			return true;
		if (len > 1)
			i += len - 1;
	}
	return false;
}

static void
warn_of_cut(struct store_file *f, const char *path, const struct range *r)
{
	if (r->start < r->end && inside_character(f, (uint64_t)r->start))
		log_warn("'%s': byte %lld is inside a character", path, (long long)r->start);
	if (r->start < r->end && inside_character(f, (uint64_t)r->end))
		log_warn("'%s': byte %lld is inside a character", path, (long long)r->end);
}

/* How many bytes at the end of data are the beginning of a character that is not complete. */
static size_t
incomplete(const char *data, size_t len)
{
	size_t back;
	unsigned char c;

	for (back = 1; back <= 3 && back <= len; back++) {
		c = (unsigned char)data[len - back];
		if (c >= 0xc0)
			return back < (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u) ? back : 0;
		if (c < 0x80)
			return 0;
	}
	return 0;
}

static void
copy_range(struct store_file *f, const struct range *r, struct err *e)
{
	static char data[CHUNK + 4];
	uint64_t at = (uint64_t)r->start, end = (uint64_t)r->end;
	size_t kept = 0, want;
	ssize_t n;

	while (at < end) {
		want = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
		n = store_file_read(f, at, data + kept, want, e);
		if (n < 0)
			fail(e);
		if (n == 0)
			break;
		at += (uint64_t)n;
		want = kept + (size_t)n;
		kept = cli_terminal() ? incomplete(data, want) : 0;
		cli_write(data, want - kept);
		memmove(data, data + want - kept, kept);
	}
	cli_write(data, kept);
}

static int
cat(struct store *s, const char *path, const struct range *wanted)
{
	struct range r = *wanted;
	struct store_file *f;
	struct store_stat st;
	struct err e = ERR_INIT;

	if (store_file_open(s, path, &f, &st, &e) < 0) {
		if (e.code != ERR_ABSENT)
			fail(&e);
		out_flush();
		if (store_stat(s, path, &st, NULL) > 0 && st.dir)
			log_warn("'%s' is a directory", path);
		else
			log_warn("%s", e.msg);
		return 1;
	}
	clamp(&r, st.size);
	if (range != NULL)
		warn_of_cut(f, path, &r);
	copy_range(f, &r, &e);
	store_file_close(f);
	return 0;
}

static int
run_cat(char **args, int n)
{
	struct range r = range ? parse_range(range) : (struct range){ 0, STORE_END };
	struct store *s = open_store(STORE_READ);
	int i, status = 0;

	for (i = 0; i < n; i++)
		status |= cat(s, args[i], &r);
	store_close(s);
	return status;
}

static const struct opt cat_table[] = {
	{ 0, "range", OPT_STRING, &range, "START[:END]", "only these bytes, the first being 0" },
	{ 0 }
};

const struct command command_cat = {
	.name = "cat",
	.operands = "[--range=START[:END]] PATH...",
	.summary = "print files",
	.table = cat_table,
	.min = 1, .max = -1,
	.run = run_cat,
	.more = "A negative START counts from the end. A range that begins or ends inside a character is\n"
		"given as asked for, with a warning.\n"
		"\nExamples:\n"
		"  ag2-store cat /memory/working.md\n"
		"  ag2-store cat --range=-1000 /artifacts/build.log\n",
};

/* ---- write, append ---- */

static long if_version = -1;

static int
run_write(char **args, int n)
{
	struct buf content = BUF_INIT;
	struct store_op ops[2] = { { .kind = STORE_OP_EXPECT, .path = args[0] }, { .kind = STORE_OP_WRITE, .path = args[0] } };
	bool expect = if_version >= 0;
	struct err e = ERR_INIT;
	struct store *s;

	read_input(n > 1 ? args[1] : NULL, &content);
	ops[0].version = (uint64_t)if_version;
	ops[1].data = content.data;
	ops[1].len = content.len;
	s = open_store(STORE_CREATE);
	if (store_commit(s, ops + !expect, 1 + expect, &e) < 0)
		fail(&e);
	buf_release(&content);
	store_close(s);
	return 0;
}

static const struct opt write_table[] = {
	{ 0, "if-version", OPT_INT, &if_version, "V", "only when the file's version is V (0: when it is not there)" },
	{ 0 }
};

const struct command command_write = {
	.name = "write",
	.operands = "[--if-version=V] PATH [FILE]",
	.summary = "make FILE or standard input the whole file at PATH",
	.table = write_table,
	.min = 1, .max = 2,
	.run = run_write,
	.more = "With --if-version the exit status is 1, and nothing is written, when the version is another.\n"
		"\nExamples:\n"
		"  echo 'prefers tea' | ag2-store write /memory/working.md\n"
		"  ag2-store write /artifacts/report.pdf report.pdf\n",
};

static int
run_append(char **args, int n)
{
	struct buf content = BUF_INIT;
	struct err e = ERR_INIT;
	struct store *s;
	uint64_t offset;

	read_input(n > 1 ? args[1] : NULL, &content);
	s = open_store(STORE_CREATE);
	if (store_append(s, args[0], content.data, content.len, &offset, &e) < 0)
		fail(&e);
	out_printf("%llu\n", (unsigned long long)offset);
	buf_release(&content);
	store_close(s);
	return 0;
}

const struct command command_append = {
	.name = "append",
	.operands = "PATH [FILE]",
	.summary = "put FILE or standard input behind the end of the file; print the offset",
	.min = 1, .max = 2,
	.run = run_append,
	.more = "The offset is where the appended bytes begin, also while others append.\n"
		"\nExample:\n"
		"  make 2>&1 | ag2-store append /artifacts/build.log\n",
};

/* ---- rm ---- */

static bool directories, force;

static int
remove_path(struct store *s, const char *path)
{
	struct store_stat st;
	struct err e = ERR_INIT;
	int there = store_stat(s, path, &st, &e);

	if (there < 0)
		fail(&e);
	if (there == 0 && !force)
		log_warn("'%s' is not in the store", path);
	if (there == 0)
		return force ? 0 : 1;
	if (st.dir && !directories) {
		log_warn("cannot remove '%s': it is a directory (-r removes it and what is below)", path);
		return 1;
	}
	if (store_delete(s, path, &e) < 0)
		fail(&e);
	return 0;
}

static int
run_rm(char **args, int n)
{
	struct store *s;
	int i, status = 0;

	for (i = 0; i < n; i++)
		if (args[i][strspn(args[i], "/")] == '\0')
			usage("rm: '%s' is the whole store: name what is to go", args[i]);
	s = open_store(STORE_WRITE);
	for (i = 0; i < n; i++)
		status |= remove_path(s, args[i]);
	store_close(s);
	return status;
}

static const struct opt rm_table[] = {
	{ 'r', "recursive", OPT_FLAG, &directories, NULL, "directories too, with everything below" },
	{ 'f', "force", OPT_FLAG, &force, NULL, "what is not there is no failure" },
	{ 0 }
};

const struct command command_rm = {
	.name = "rm",
	.operands = "[-r] [-f] PATH...",
	.summary = "remove files and directories",
	.table = rm_table,
	.min = 1, .max = -1,
	.run = run_rm,
};

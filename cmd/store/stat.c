#include "walk.h"

#include "event/json.h"
#include "path.h"

#include <math.h>
#include <time.h>

static int
run_exists(char **args, int n)
{
	struct store *s = open_store(STORE_READ);
	struct err e = ERR_INIT;
	int there = store_stat(s, args[0], NULL, &e);

	if (there < 0)
		fail(&e);
	store_close(s);
	return there > 0 ? 0 : 1;
}

const struct command command_exists = {
	.name = "exists",
	.operands = "PATH",
	.summary = "exit 0 when there is a file or directory at PATH, else 1",
	.min = 1, .max = 1,
	.run = run_exists,
};

void
print_json(const char *path, const struct store_stat *st)
{
	struct buf line = BUF_INIT;

	buf_adds(&line, "{\"path\":");
	json_write_string(&line, path, strlen(path), JSON_COMPACT);
	if (st->dir) {
		buf_adds(&line, ",\"type\":\"directory\"");
	} else {
		buf_addf(&line, ",\"type\":\"file\",\"size\":%llu,\"version\":\"%llu\",\"modified\":", (unsigned long long)st->size,
		    (unsigned long long)st->version);
		if (st->mtime < 0)
			buf_adds(&line, "null");
		else
			json_write_double(&line, st->mtime);
	}
	buf_adds(&line, "}\n");
	cli_write(line.data, line.len);
	buf_release(&line);
}

static void
print_lines(const char *path, const struct store_stat *st)
{
	struct tm tm;
	time_t t = (time_t)floor(st->mtime);
	char when[40] = "unknown", age[16], size[16];

	out_puts("path:     ");
	cli_name(path);
	out_printf("\ntype:     %s\n", st->dir ? "directory" : "file");
	if (st->dir)
		return;
	if (st->mtime >= 0 && gmtime_r(&t, &tm) != NULL)
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	human_size(size, st->size);
	human_age(age, st->mtime);
	out_printf("size:     %llu%s%s%s\nversion:  %llu\nmodified: %s\nage:      %s\n", (unsigned long long)st->size,
	    st->size < 1024 ? "" : " (", st->size < 1024 ? "" : size, st->size < 1024 ? "" : ")", (unsigned long long)st->version, when, age);
}

static bool as_json;

static int
run_stat(char **args, int n)
{
	struct store *s = open_store(STORE_READ);
	struct buf path = BUF_INIT;
	struct store_stat st;
	struct err e = ERR_INIT;
	int there;

	if (path_normalise(&path, args[0], strlen(args[0]), &e) < 0)
		fail(&e);
	there = store_stat(s, path.data, &st, &e);
	if (there < 0)
		fail(&e);
	if (there == 0)
		log_warn("'%s' is not in the store", path.data);
	else if (as_json)
		print_json(path.data, &st);
	else
		print_lines(path.data, &st);
	buf_release(&path);
	store_close(s);
	return there > 0 ? 0 : 1;
}

static const struct opt stat_table[] = {
	{ 0, "json", OPT_FLAG, &as_json, NULL, "print one JSON object" },
	{ 0 }
};

const struct command command_stat = {
	.name = "stat",
	.operands = "[--json] PATH",
	.summary = "print type, size, version and time of the last change",
	.table = stat_table,
	.min = 1, .max = 1,
	.run = run_stat,
	.more = "The version of a file only ever rises; write --if-version takes it.\n",
};

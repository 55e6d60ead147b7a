#include "base/opts.h"

#include "base/alloc.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEAREST_MAX 3
#define NAME_MAX_LEN 64

int
parse_long(const char *text, const char *what, long *out, struct err *e)
{
	const char *p = text + (*text == '-');
	long value;

	if (*p == '\0' || p[strspn(p, "0123456789")] != '\0')
		return err_set(e, ERR_USAGE, "%s must be a whole number, not '%.60s'", what, text);
	errno = 0;
	value = strtol(text, NULL, 10);
	if (errno != 0)
		return err_set(e, ERR_USAGE, "%s: %.60s is out of range", what, text);
	*out = value;
	return 0;
}

int
parse_seconds(const char *text, const char *what, double *out, struct err *e)
{
	size_t whole = strspn(text, "0123456789"), part = 0;
	const char *end = text + whole;

	if (*end == '.') {
		part = strspn(end + 1, "0123456789");
		end += 1 + part;
	}
	if (*end != '\0' || whole + part == 0)
		return err_set(e, ERR_USAGE, "%s must be a number of seconds, not '%.60s'", what, text);
	if (whole > 12)
		return err_set(e, ERR_USAGE, "%s: %.60s is out of range", what, text);
	*out = strtod(text, NULL);
	return 0;
}

/* The number of insertions, deletions, replacements and swaps of neighbours that make b of a. */
static size_t
distance(const char *a, const char *b)
{
	size_t rows[3][NAME_MAX_LEN + 1], la = strlen(a), lb = strlen(b), i, j, best;
	size_t *before = rows[0], *last = rows[1], *now = rows[2], *spare;

	if (la > NAME_MAX_LEN || lb > NAME_MAX_LEN)
		return SIZE_MAX;
	for (j = 0; j <= lb; j++)
		last[j] = j;
	for (i = 1; i <= la; i++) {
		now[0] = i;
		for (j = 1; j <= lb; j++) {
			best = last[j - 1] + (a[i - 1] != b[j - 1]);
			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
		spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[lb];
}

const char *
nearest(const char *word, const char *const *names, size_t n)
{
	size_t i, d, best = NEAREST_MAX + 1;
	const char *found = NULL;

	for (i = 0; i < n; i++) {
		d = distance(word, names[i]);
		if (d < best && 2 * d < strlen(word)) {
			best = d;
			found = names[i];
		}
	}
	return found;
}

/* `_` and `-` are the same. */
static bool
same_name(const char *a, size_t len, const char *b)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (b[i] == '\0' || (a[i] == '_' ? '-' : a[i]) != (b[i] == '_' ? '-' : b[i]))
			return false;
	return b[len] == '\0';
}

static const struct opt *
find_name(const struct opt *p, const char *name, size_t len)
{
	for (; p != NULL && !opt_is_end(p); p++)
		if (p->name != NULL && same_name(name, len, p->name))
			return p;
	return NULL;
}

static const struct opt *
find_letter(const struct opt *p, char letter)
{
	for (; p != NULL && !opt_is_end(p); p++)
		if (p->letter == letter)
			return p;
	return NULL;
}

/* how is what the user wrote, for messages. */
static int
store_value(const struct opt *p, const char *how, const char *value, struct err *e)
{
	struct opt_list *list;
	long *number;

	switch (p->kind) {
	case OPT_FLAG:
		*(bool *)p->value = true;
		return 0;
	case OPT_STRING:
	case OPT_OPTIONAL:
		*(const char **)p->value = value ? value : "";
		return 0;
	case OPT_LIST:
		list = p->value;
		list->items = xgrow(list->items, list->n, &list->cap, sizeof(*list->items));
		list->items[list->n++] = value;
		return 0;
	case OPT_INT:
		number = p->value;
		if (parse_long(value, how, number, e) < 0)
			return -1;
		return *number < 0 ? err_set(e, ERR_USAGE, "%s must not be negative", how) : 0;
	case OPT_SECONDS:
		return parse_seconds(value, how, p->value, e);
	}
	return err_set(e, ERR_BUG, "%s: no such kind of option", how);
}

static size_t
add_names(const struct opt *p, const char **names, size_t n, size_t most)
{
	for (; p != NULL && !opt_is_end(p); p++)
		if (p->name != NULL && n < most)
			names[n++] = p->name;
	return n;
}

static int
unknown(const struct opts *o, const char *name, size_t len, struct err *e)
{
	const char *names[128], *near;
	char word[NAME_MAX_LEN + 1];
	size_t n, i;

	n = add_names(o->table, names, 0, 126);
	n = add_names(o->common, names, n, 126);
	names[n++] = "help";
	names[n++] = "version";
	snprintf(word, sizeof(word), "%.*s", (int)len, name);
	for (i = 0; word[i] != '\0'; i++)
		if (word[i] == '_')
			word[i] = '-';
	near = nearest(word, names, n);
	return err_set(e, ERR_USAGE, "unknown option '--%.*s'%s%s%s", (int)(len < 60 ? len : 60), name,
	    near ? "; did you mean '--" : "", near ? near : "", near ? "'?" : "");
}

const struct opt opts_standard[] = {
	{ 0, "help", OPT_FLAG, NULL, NULL, "print what it does and takes, and end" },
	{ 0, "version", OPT_FLAG, NULL, NULL, "print the version and end" },
	{ 0 }
};

/* `--name`, `--name=value`, `--name value`: *i is moved over a value that is its own argument. Gives what opts_parse does. */
static int
long_option(const struct opts *o, char **argv, int argc, int *i, struct err *e)
{
	const char *name = argv[*i] + 2, *value = strchr(name, '=');
	size_t len = value ? (size_t)(value++ - name) : strlen(name);
	const struct opt *p = find_name(o->table, name, len);
	char how[NAME_MAX_LEN + 3];

	if (p == NULL)
		p = find_name(o->common, name, len);
	if (p == NULL) {
		p = find_name(opts_standard, name, len);
		if (p == NULL)
			return unknown(o, name, len, e);
		if (value == NULL)
			return p == opts_standard ? OPTS_HELP : OPTS_VERSION;
	}
	snprintf(how, sizeof(how), "--%s", p->name);
	if (value != NULL && p->kind == OPT_FLAG)
		return err_set(e, ERR_USAGE, "%s takes no value", how);
	if (value == NULL && opt_takes_value(p)) {
		if (*i + 1 >= argc)
			return err_set(e, ERR_USAGE, "%s needs a value: %s=%s", how, how, p->arg ? p->arg : "VALUE");
		value = argv[++*i];
	}
	return store_value(p, how, value, e);
}

/* `-x`, `-xyz`, `-xvalue`, `-x value`. */
static int
short_options(const struct opts *o, char **argv, int argc, int *i, struct err *e)
{
	const char *at = argv[*i] + 1, *value;
	const struct opt *p;
	char how[3] = "-";

	while (*at != '\0') {
		p = find_letter(o->table, *at);
		if (p == NULL)
			p = find_letter(o->common, *at);
		if (p == NULL)
			return err_set(e, ERR_USAGE, "unknown option '-%c'", *at);
		how[1] = *at++;
		value = NULL;
		if (p->kind != OPT_FLAG) {
			value = *at != '\0' ? at : NULL;
			at = "";
		}
		if (value == NULL && opt_takes_value(p)) {
			if (*i + 1 >= argc)
				return err_set(e, ERR_USAGE, "%s needs a value: %s %s", how, how, p->arg ? p->arg : "VALUE");
			value = argv[++*i];
		}
		if (store_value(p, how, value, e) < 0)
			return -1;
	}
	return 0;
}

int
opts_parse(const struct opts *o, int argc, char **argv, bool stop_at_operand, struct err *e)
{
	int i, n = 0, rc;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (argv[i][0] == '-' && argv[i][1] == '-')
			rc = long_option(o, argv, argc, &i, e);
		else if (argv[i][0] == '-' && argv[i][1] != '\0')
			rc = short_options(o, argv, argc, &i, e);
		else if (stop_at_operand)
			break;
		else {
			argv[n++] = argv[i];
			continue;
		}
		if (rc < 0)
			return rc;
	}
	while (i < argc)
		argv[n++] = argv[i++];
	if (argc > 0)
		argv[n] = NULL;
	return n;
}

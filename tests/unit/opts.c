#include "base/opts.h"

#include "tap.h"

#define MOST 16

static bool flag, all;
static const char *text, *explain, *url;
static struct opt_list list;
static long number;
static double seconds;

static const struct opt table[] = {
	{ 'f', "force", OPT_FLAG, &flag, NULL, "a flag" },
	{ 'a', NULL, OPT_FLAG, &all, NULL, "a letter only" },
	{ 't', "some-text", OPT_STRING, &text, "TEXT", "a string" },
	{ 0, "item", OPT_LIST, &list, "ITEM", "a list" },
	{ 'n', "number", OPT_INT, &number, "N", "a number" },
	{ 'w', "wait", OPT_SECONDS, &seconds, "S", "seconds" },
	{ 0, "explain", OPT_OPTIONAL, &explain, "FORM", "may have a value" },
	{ 0 }
};
static const struct opt common[] = {
	{ 's', "store", OPT_STRING, &url, "URL", "in the common table" },
	{ 0 }
};
static const struct opts opts = { .program = "t", .usage = "t", .table = table, .common = common };

static char *args[MOST];
static struct err err;

/* Parses words separated by blanks ("''" is the empty word); the operands are left in args. */
static int
parse(const char *line, bool stop)
{
	static char copy[500];
	int argc = 1;
	char *rest = copy, *word;

	flag = all = false;
	text = explain = url = NULL;
	list.n = 0;
	number = -1;
	seconds = -1;
	err = (struct err)ERR_INIT;
	args[0] = (char *)"t";
	snprintf(copy, sizeof(copy), "%s", line);
	while ((word = strsep(&rest, " ")) != NULL && argc < MOST)
		if (word[0] != '\0')
			args[argc++] = strcmp(word, "''") == 0 ? word + 2 : word;
	return opts_parse(&opts, argc, args, stop, &err);
}

static void
forms(void)
{
	is_int(parse("--some-text=x -f op", false), 1, "one operand is left");
	ok(flag && strcmp(text, "x") == 0 && strcmp(args[0], "op") == 0, "--name=value, a flag, the operand");
	ok(parse("--some-text x", false) == 0 && strcmp(text, "x") == 0, "--name value");
	ok(parse("--some_text x", false) == 0 && strcmp(text, "x") == 0, "_ and - are the same in a name");
	ok(parse("-t x", false) == 0 && strcmp(text, "x") == 0, "-x value");
	ok(parse("-tx", false) == 0 && strcmp(text, "x") == 0, "-xvalue");
	ok(parse("-faty", false) == 0 && flag && all && strcmp(text, "y") == 0, "bundled flags, then one with a value");
	ok(parse("-t -- op", false) == 1 && strcmp(text, "--") == 0, "a value may look like an option");
	ok(parse("--some-text=", false) == 0 && strcmp(text, "") == 0, "an empty value is a value");
	ok(parse("--item a --item=b", false) == 0 && list.n == 2 && strcmp(list.items[1], "b") == 0, "a list collects in order");
	ok(parse("--explain op", false) == 1 && strcmp(explain, "") == 0, "an optional value is not taken from the next argument");
	ok(parse("--explain=json", false) == 0 && strcmp(explain, "json") == 0, "an optional value behind =");
	ok(parse("-n 12 -w1.5", false) == 0 && number == 12 && seconds == 1.5, "numbers");
	ok(parse("-s u", false) == 0 && strcmp(url, "u") == 0, "the common table");
}

static void
operands(void)
{
	ok(parse("a -f b", false) == 2 && flag && strcmp(args[1], "b") == 0, "options may follow operands");
	ok(parse("a -- -f", false) == 2 && !flag && strcmp(args[1], "-f") == 0, "-- ends the options");
	ok(parse("- -f", false) == 1 && flag && strcmp(args[0], "-") == 0, "- is an operand");
	ok(parse("-f a -n x", true) == 3 && flag && number == -1 && strcmp(args[1], "-n") == 0, "the first operand can end the options");
	ok(parse("a -- b", true) == 3 && strcmp(args[1], "--") == 0, "then a later -- is an operand");
	ok(parse("-- a", true) == 1 && strcmp(args[0], "a") == 0, "a -- before it is not");
	ok(parse("''", false) == 1 && args[0][0] == '\0', "an empty operand stays");
	is_int(parse("", false), 0, "nothing at all");
	ok(parse("-f -- a b", true) == 2 && args[2] == NULL, "a NULL follows the operands, so that they can be run");
}

static void
refused(const char *line, const char *message)
{
	int rc = parse(line, false);

	ok(rc == -1 && err.code == ERR_USAGE, "refused: %s", line);
	is_str(err.msg, message, "... and says why");
}

static void
refusals(void)
{
	refused("--forc", "unknown option '--forc'; did you mean '--force'?");
	refused("--some-test=1", "unknown option '--some-test'; did you mean '--some-text'?");
	refused("--some_txet", "unknown option '--some_txet'; did you mean '--some-text'?");
	refused("--zzz", "unknown option '--zzz'");
	refused("-fz", "unknown option '-z'");
	refused("--force=1", "--force takes no value");
	refused("--some-text", "--some-text needs a value: --some-text=TEXT");
	refused("-ft", "-t needs a value: -t TEXT");
	refused("-n x", "-n must be a whole number, not 'x'");
	refused("-n ''", "-n must be a whole number, not ''");
	refused("--number=-1", "--number must not be negative");
	refused("-n 99999999999999999999", "-n: 99999999999999999999 is out of range");
	refused("-w -1", "-w must be a number of seconds, not '-1'");
	refused("-w 1e3", "-w must be a number of seconds, not '1e3'");
	refused("-w .", "-w must be a number of seconds, not '.'");
	refused("-w nan", "-w must be a number of seconds, not 'nan'");
}

static void
standard(void)
{
	is_int(parse("-f --help --no-such", false), OPTS_HELP, "--help is told to the caller, and what is behind it not looked at");
	is_int(parse("op --version", false), OPTS_VERSION, "so is --version");
	ok(parse("-- --help", false) == 1 && strcmp(args[0], "--help") == 0, "behind -- it is an operand");
	ok(parse("op --help", true) == 2 && strcmp(args[1], "--help") == 0, "so it is behind the operand that ends the options");
	ok(parse("-t --help", false) == 0 && strcmp(text, "--help") == 0, "it may be a value");
	refused("--help=x", "--help takes no value");
	refused("--versoin", "unknown option '--versoin'; did you mean '--version'?");
}

static void
helpers(void)
{
	static const char *const names[] = { "list", "append", "exists" };
	long v;
	double d;

	ok(parse_long("-5", "it", &v, NULL) == 0 && v == -5, "parse_long takes negative numbers");
	ok(parse_long("5 ", "it", &v, NULL) == -1, "parse_long takes whole strings only");
	ok(parse_seconds(".25", "it", &d, NULL) == 0 && d == 0.25, "parse_seconds without digits before the point");
	ok(parse_seconds("3.", "it", &d, NULL) == 0 && d == 3, "parse_seconds without digits behind the point");
	is_str(nearest("exist", names, 3), "exists", "the nearest name");
	is_str(nearest("lits", names, 3), "list", "two swapped letters are one step");
	ok(nearest("xy", names, 3) == NULL, "nothing is near to a short stranger");
	ok(nearest("", names, 3) == NULL, "nor to the empty word");
}

int
main(void)
{
	forms();
	operands();
	refusals();
	standard();
	helpers();
	free(list.items);
	return done();
}

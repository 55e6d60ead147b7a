/* The structural scan, the full grammar, reading and writing of JSON. */
#include "tap.h"
#include "golden.h"

#include "base/alloc.h"
#include "event/json.h"

#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <sys/wait.h>

static int
scans(const char *text, size_t len, struct json_peek *peek)
{
	struct json_peek mine;
	const char *why;
	size_t at;

	return json_scan(text, len, peek != NULL ? peek : &mine, &at, &why) == 0;
}

static int
checks(const char *text, size_t len)
{
	const char *why;
	size_t at;

	return json_check(text, len, &at, &why) == 0;
}

/* Text for the scan: bad at that byte (from 0) for that reason; with why NULL it is good. */
static void
scan_is(const char *text, size_t len, size_t want_at, const char *want_why, const char *what)
{
	struct json_peek peek;
	const char *why = NULL;
	size_t at = 0;
	int r = json_scan(text, len, &peek, &at, &why);

	is_int(r, want_why == NULL ? 0 : -1, "scan: %s", what);
	is_str(why, want_why, "scan: %s: why", what);
	is_int((long long)at, (long long)want_at, "scan: %s: where", what);
}

#define SCAN(text, at, why, what) scan_is(text, sizeof(text) - 1, at, why, what)

static void
test_scan(void)
{
	SCAN("{}", 0, NULL, "an empty object");
	SCAN(" \t{ } \r", 0, NULL, "blanks around and inside");
	SCAN("{\"a\":01,\"b\":tru,\"c\":[1 2,],\"d\":{'x':/**/}}", 0, NULL, "values are not looked into");
	SCAN("{\"a\":\"\t\"}", 0, NULL, "a raw control character in a string is left to the grammar");
	SCAN("", 0, "not an object", "nothing");
	SCAN("[1]", 0, "not an object", "an array");
	SCAN("\"{}\"", 0, "not an object", "a string");
	SCAN("{\"a\":1}x", 7, "something stands behind the object", "junk behind it");
	SCAN("{\"a\":1}{}", 7, "something stands behind the object", "another object behind it");
	SCAN("{\"a\":1,}", 7, "a key must stand here", "a trailing comma");
	SCAN("{'a':1}", 1, "a key must stand here", "single quotes");
	SCAN("{\"a\" 1}", 5, "a ':' must stand here", "no colon");
	SCAN("{\"a\":}", 5, "a value is missing", "no value");
	SCAN("{\"a\":1 2}", 7, "a ',' or '}' must stand here", "two values");
	SCAN("{\"a\":1]", 6, "a ',' or '}' must stand here", "closed by the wrong bracket");
	SCAN("{\"a\":[1}}", 7, "a '}' where a ']' must be", "an array closed by a brace");
	SCAN("{\"a\":{\"b\":[{]}}}", 12, "a ']' where a '}' must be", "an object closed by a bracket");
	SCAN("{\"a\":[1,2", 9, "it ends inside an object or array", "cut inside an array");
	SCAN("{\"a\":[1,\"x", 10, "it ends inside a string", "cut inside a string of an array");
	SCAN("{\"a\":\"x", 7, "it ends inside a string", "cut inside a string");
	SCAN("{\"a\":\"x\\", 8, "it ends inside a string", "cut behind a backslash");
	SCAN("{\"a\":\"x\\\"}", 10, "it ends inside a string", "an escaped quote ends no string");
	SCAN("{\"a", 3, "it ends inside a string", "cut inside a key");
	SCAN("{\"a\"", 4, "it ends before a value", "cut behind a key");
	SCAN("{\"a\":", 5, "it ends before a value", "cut before a value");
	SCAN("{\"a\":1", 6, "it ends inside an object or array", "cut behind a value");
	SCAN("{\"a\":1,", 7, "it ends inside an object or array", "cut behind a comma");
	SCAN("{", 1, "it ends inside an object or array", "cut at once");
	SCAN("{\"a\":\"x\0y\"}", 7, "a NUL byte", "a NUL in a string");
	SCAN("{\"a\":{\"b\":\"x\0y\"}}", 12, "a NUL byte", "a NUL in a nested string");
	SCAN("{\"a\":1}\0", 7, "a NUL byte", "a NUL behind it");
	SCAN("\0\0\0\0", 0, "a NUL byte", "NULs only");
	SCAN("{\"a\":\"\xff\"}", 6, "not valid UTF-8", "a byte that is not UTF-8");
	SCAN("{\"a\":{\"b\":\"\xc3\"}}", 11, "not valid UTF-8", "half a character");
	SCAN("{\"\xed\xa0\x80\":1}", 2, "not valid UTF-8", "a surrogate");
	SCAN("{\"a\":\xc3\xa9}", 0, NULL, "characters outside strings are left to the grammar");
	SCAN("{\"a\":\"\xc3\xa9\xf0\x9f\x98\x80\",\"b\":[\"\xe4\xbd\xa0\"]}", 0, NULL, "characters of any length");
}

static void
type_is(const char *text, const char *type, const char *data)
{
	struct json_peek p;
	char *got;

	ok(scans(text, strlen(text), &p), "peek: %s", text);
	got = p.type != NULL ? xmemdup0(p.type, p.type_len) : NULL;
	is_str(got, type, "peek: %s: type", text);
	free(got);
	got = p.data != NULL ? xmemdup0(p.data, p.data_len) : NULL;
	is_str(got, data, "peek: %s: data", text);
	free(got);
}

static void
test_peek(void)
{
	struct json_peek p;

	type_is("{\"type\": \"a.B\", \"data\": {\"x\": [1, {}]} }", "a.B", "{\"x\": [1, {}]}");
	type_is("{\"data\":{},\"x\":{\"type\":\"no\",\"data\":{\"a\":1}},\"type\":\"B\"}", "B", "{}");
	type_is("{\"type\":\"A\",\"type\":\"B\",\"data\":{\"a\":1},\"data\":{\"b\":2}}", "B", "{\"b\":2}");
	type_is("{\"type\":\"A\",\"type\":5,\"data\":{},\"data\":[1]}", NULL, NULL);
	type_is("{\"type\":\"A\",\"t\\u0079pe\":\"B\"}", "B", NULL);
	type_is("{\"\\u0074\\u0079\\u0070\\u0065\":\"B\",\"dat\\u0061\":{\"c\":3}}", "B", "{\"c\":3}");
	type_is("{\"type\":\"A\",\"ty\\u0000pe\":\"B\",\"type\\u0000\":\"C\",\"t\\ype\":\"D\"}", "A", NULL);
	type_is("{\"Type\":\"A\",\"types\":\"B\",\"typ\":\"C\",\"\":\"D\"}", NULL, NULL);
	type_is("{\"x\":\"\\\\\",\"type\":\"A\"}", "A", NULL);
	type_is("{\"type\":\"\"}", "", NULL);
	ok(scans("{\"type\":\"a\\u002eB\"}", 19, &p) && p.type_escaped && p.type_len == 8, "peek: escapes in the type are told");
	ok(scans("{\"type\":\"a.B\"}", 14, &p) && !p.type_escaped, "peek: and that there are none");
}

/* Every length of strings around block borders, with quotes, backslashes and brackets at each place. */
static void
test_blocks(void)
{
	static const char *const inside[] = { "\\\"", "\\\\", "[", "}", "\\\\\\\"", "\xc3\xa9", "_y" };
	char text[400];
	struct json_peek p;
	size_t k, n, bad = 0, len;

	for (k = 0; k < sizeof(inside) / sizeof(inside[0]); k++) {
		for (n = 0; n < 140; n++) {
			len = (size_t)snprintf(text, sizeof(text), "{\"data\":{\"a\":\"%*s%s\",\"b\":[\"%s\"]},\"type\":\"%*s%s\"}", (int)n, "",
			    inside[k], inside[k], (int)n, "", inside[k]);
			bad += !scans(text, len, &p) || p.type_len != n + strlen(inside[k]) || p.data[p.data_len - 1] != '}';
			bad += !checks(text, len);
			bad += scans(text, len - 1, NULL) || checks(text, len - 1);
		}
	}
	is_int((long long)bad, 0, "scan: strings of all lengths across block borders");
	for (bad = 0, n = 1; n < 300; n++) {
		memset(text, '\\', sizeof(text));
		memcpy(text, "{\"a\":[\"", 7);
		memcpy(text + 7 + n, "\"]}", 3);
		bad += scans(text, 7 + n + 3, NULL) != (n % 2 == 0);
		text[5] = '"';
		bad += scans(text, 6 + n, NULL);
		memcpy(text, "{\"ab\":\"", 7);
		memcpy(text + 7 + n, "\"}", 2);
		bad += scans(text, 7 + n + 2, NULL) != (n % 2 == 0);
	}
	is_int((long long)bad, 0, "scan: runs of backslashes of all lengths");
}

static void
nested(size_t depth, bool good)
{
	struct buf text = BUF_INIT;
	size_t i;

	buf_adds(&text, "{\"data\":");
	for (i = 1; i < depth; i++)
		buf_adds(&text, i % 2 ? "[" : "{\"a\":");
	buf_adds(&text, "1");
	for (i = depth - 1; i > 0; i--)
		buf_adds(&text, i % 2 ? "]" : "}");
	buf_adds(&text, "}");
	is_int(scans(text.data, text.len, NULL), good, "scan: %zu levels", depth);
	is_int(checks(text.data, text.len), good, "check: %zu levels", depth);
	buf_release(&text);
}

static void
test_depth(void)
{
	size_t n = 1000000;
	char *bomb = xmalloc(n + 8);

	nested(JSON_DEPTH, true);
	nested(JSON_DEPTH + 1, false);
	memset(bomb, '[', n + 8);
	ok(!checks(bomb, n), "check: a million open brackets are refused");
	memcpy(bomb, "{\"data\":", 8);
	ok(!scans(bomb, n + 8, NULL), "scan: a million open brackets are refused");
	ok(!checks(bomb, n + 8), "check: behind a key as well");
	free(bomb);
}

static void
check_is(const char *text, size_t len, size_t want_at, const char *want_why)
{
	const char *why = NULL;
	size_t at = 0;
	struct json_object *v = NULL;
	struct err e = ERR_INIT;
	char msg[200];

	is_int(json_check(text, len, &at, &why), want_why == NULL ? 0 : -1, "check: %s", text);
	is_str(why, want_why, "check: %s: why", text);
	is_int((long long)at, (long long)want_at, "check: %s: where", text);
	if (want_why == NULL)
		return;
	snprintf(msg, sizeof(msg), "byte %zu: %s", want_at + 1, want_why);
	ok(json_parse(&v, text, len, &e) == -1 && v == NULL && e.code == ERR_DATA, "parse: %s", text);
	is_str(e.msg, msg, "parse: %s: message", text);
	ok(json_parses(text, len, &e) == -1 && e.code == ERR_DATA, "parses: %s", text);
	is_str(e.msg, msg, "parses: %s: message", text);
}

#define CHECK(text, at, why) check_is(text, sizeof(text) - 1, at, why)

static void
test_grammar(void)
{
	CHECK(" [1, -0, 0.5, -1.5e+10, 1E5, NaN, Infinity, -Infinity, true, false, null, \"\", {}, []] ", 0, NULL);
	CHECK("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"", 0, NULL);
	CHECK("", 0, "it ends before a value");
	CHECK("[1,]", 3, "a value must stand here");
	CHECK("{\"a\":1,}", 7, "a key must stand here");
	CHECK("{'a':1}", 1, "a key must stand here");
	CHECK("{a:1}", 1, "a key must stand here");
	CHECK("{1:1}", 1, "a key must stand here");
	CHECK("['a']", 1, "a value must stand here");
	CHECK("01", 1, "a number must not begin with 0");
	CHECK("-", 0, "a value must stand here");
	CHECK("-x", 1, "a digit must stand here");
	CHECK("1.", 2, "a digit must stand here");
	CHECK(".5", 0, "a value must stand here");
	CHECK("+1", 0, "a value must stand here");
	CHECK("1e", 2, "a digit must stand here");
	CHECK("1e+", 3, "a digit must stand here");
	CHECK("0x10", 1, "something stands behind the value");
	CHECK("1 2", 2, "something stands behind the value");
	CHECK("{} x", 3, "something stands behind the value");
	CHECK("/*c*/1", 0, "a value must stand here");
	CHECK("1//c", 1, "something stands behind the value");
	CHECK("nul", 0, "a value must stand here");
	CHECK("True", 0, "a value must stand here");
	CHECK("nan", 0, "a value must stand here");
	CHECK("-Inf", 0, "a value must stand here");
	CHECK("[1 2]", 3, "a ',' or ']' must stand here");
	CHECK("{\"a\":1 \"b\":2}", 7, "a ',' or '}' must stand here");
	CHECK("{\"a\",1}", 4, "a ':' must stand here");
	CHECK("[1", 2, "it ends inside an array");
	CHECK("{\"a\":1", 6, "it ends inside an object");
	CHECK("{", 1, "it ends inside an object");
	CHECK("\"a", 2, "it ends inside a string");
	CHECK("\"\\", 2, "it ends inside a string");
	CHECK("\"\\x41\"", 2, "no such escape");
	CHECK("\"\\u12g4\"", 3, "\\u without four hexadecimal digits");
	CHECK("\"a\tb\"", 2, "a control character in a string");
	CHECK("\"a\nb\"", 2, "a control character in a string");
	CHECK("\"\x7f\"", 0, NULL);
	CHECK("\"a\0b\"", 2, "a NUL byte");
	CHECK("\"\xff\"", 1, "not valid UTF-8");
	CHECK("\"\xc0\x80\"", 1, "not valid UTF-8");
	CHECK("\"\xc3\xa9\"", 0, NULL);
	CHECK("\xef\xbb\xbf{}", 0, "a value must stand here");
}

/* What a text becomes in each style, and as Python's repr. */
static void
written(const char *text, const char *compact, const char *python, const char *repr)
{
	struct json_object *v;
	struct err e = ERR_INIT;
	struct buf out = BUF_INIT;

	if (json_parse(&v, text, strlen(text), &e) < 0)
		bail("%s: %s", text, e.msg);
	json_write(&out, v, JSON_COMPACT);
	is_str(out.data, compact, "compact: %s", text);
	buf_reset(&out);
	json_write(&out, v, JSON_PYTHON);
	is_str(out.data, python, "Python: %s", text);
	buf_reset(&out);
	json_write_repr(&out, v);
	is_str(out.data, repr, "repr: %s", text);
	buf_release(&out);
	json_object_put(v);
}

static void
test_writing(void)
{
	struct json_object *v;
	struct buf out = BUF_INIT;
	static const char text[] = "{\"a\": [1, {\"b\": []}], \"c\": {}}";

	written("null", "null", "null", "None");
	written("[true,false]", "[true,false]", "[true, false]", "[True, False]");
	written("{\"a\":1,\"b\":{\"c\":[]},\"a\":2}", "{\"a\":2,\"b\":{\"c\":[]}}", "{\"a\": 2, \"b\": {\"c\": []}}", "{'a': 2, 'b': {'c': []}}");
	written("[9223372036854775807,-9223372036854775808,9223372036854775808,18446744073709551616,123456789012345678901234567890]",
	    "[9223372036854775807,-9223372036854775808,9223372036854775808,18446744073709551616,123456789012345678901234567890]",
	    "[9223372036854775807, -9223372036854775808, 9223372036854775808, 18446744073709551616, 123456789012345678901234567890]",
	    "[9223372036854775807, -9223372036854775808, 9223372036854775808, 18446744073709551616, 123456789012345678901234567890]");
	written("[1.0,1.50,1E5,19.95,-0.0,-0,1e400,0.1]", "[1.0,1.50,1E5,19.95,-0.0,-0,1e400,0.1]", "[1.0, 1.50, 1E5, 19.95, -0.0, -0, 1e400, 0.1]",
	    "[1.0, 1.5, 100000.0, 19.95, -0.0, 0, inf, 0.1]");
	written("[NaN,Infinity,-Infinity]", "[NaN,Infinity,-Infinity]", "[NaN, Infinity, -Infinity]", "[nan, inf, -inf]");
	written("\"\\u00e9\\ud83d\\ude00\\u4f60\\/\\u007f\"", "\"\xc3\xa9\xf0\x9f\x98\x80\xe4\xbd\xa0/\x7f\"", "\"\\u00e9\\ud83d\\ude00\\u4f60/\\u007f\"",
	    "'\xc3\xa9\xf0\x9f\x98\x80\xe4\xbd\xa0/\\x7f'");
	written("\"\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\"", "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\"", "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\"",
	    "'\"\\\\\\x08\\x0c\\n\\r\\t\\x00\\x1f'");
	written("\"\\ud83d x \\ude00 \\ud83d\\ud83d\\ude00\"", "\"\xef\xbf\xbd x \xef\xbf\xbd \xef\xbf\xbd\xf0\x9f\x98\x80\"",
	    "\"\\ufffd x \\ufffd \\ufffd\\ud83d\\ude00\"", "'\xef\xbf\xbd x \xef\xbf\xbd \xef\xbf\xbd\xf0\x9f\x98\x80'");
	written("[\"it's\",\"say \\\"x\\\"\",\"it's \\\"q\\\"\",\"\"]", "[\"it's\",\"say \\\"x\\\"\",\"it's \\\"q\\\"\",\"\"]",
	    "[\"it's\", \"say \\\"x\\\"\", \"it's \\\"q\\\"\", \"\"]", "[\"it's\", 'say \"x\"', 'it\\'s \"q\"', '']");
	json_parse(&v, text, strlen(text), NULL);
	json_write(&out, v, JSON_PRETTY);
	is_str(out.data, "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": {}\n}", "pretty");
	json_object_put(v);
	buf_reset(&out);
	json_write_string(&out, "a\xff\xc3", 3, JSON_COMPACT);
	is_str(out.data, "\"a\xef\xbf\xbd\xef\xbf\xbd\"", "what is not UTF-8 is replaced");
	buf_reset(&out);
	json_write_string(&out, "a\xff", 2, JSON_PYTHON);
	is_str(out.data, "\"a\\ufffd\"", "in Python's style as well");
	buf_reset(&out);
	v = json_object_new_uint64(UINT64_MAX);
	json_write(&out, v, JSON_COMPACT);
	is_str(out.data, "18446744073709551615", "the largest unsigned integer");
	json_object_put(v);
	buf_release(&out);
}

static void
double_is(double value, const char *want)
{
	struct buf out = BUF_INIT;

	json_write_double(&out, value);
	is_str(out.data, want, "float %s", want);
	buf_release(&out);
}

static void
test_doubles(void)
{
	double_is(0, "0.0");
	double_is(-0.0, "-0.0");
	double_is(1, "1.0");
	double_is(-1.5, "-1.5");
	double_is(0.1, "0.1");
	double_is(0.1 + 0.2, "0.30000000000000004");
	double_is(1.0 / 3, "0.3333333333333333");
	double_is(100, "100.0");
	double_is(1780000000.5, "1780000000.5");
	double_is(1780000000.123456, "1780000000.123456");
	double_is(123456789012345680.0, "1.2345678901234568e+17");
	double_is(9007199254740993.0, "9007199254740992.0");
	double_is(1e15, "1000000000000000.0");
	double_is(1e16, "1e+16");
	double_is(1e22, "1e+22");
	double_is(1e23, "1e+23");
	double_is(1.5e300, "1.5e+300");
	double_is(0.0001, "0.0001");
	double_is(0.00012345, "0.00012345");
	double_is(0.00001, "1e-05");
	double_is(1e-7, "1e-07");
	double_is(5e-324, "5e-324");
	double_is(2.2250738585072014e-308, "2.2250738585072014e-308");
	double_is(1.7976931348623157e308, "1.7976931348623157e+308");
	double_is(NAN, "NaN");
	double_is(INFINITY, "Infinity");
	double_is(-INFINITY, "-Infinity");
}

/* Makes a locale with a decimal comma where its sources are installed but not it, and lets setlocale find it. */
static void
make_locale(void)
{
	char path[PATH_MAX + 16];
	pid_t pid;
	int fd;

	snprintf(path, sizeof(path), "%s/de_DE.UTF-8", tmpdir());
	pid = fork();
	if (pid == 0) {
		fd = open("/dev/null", O_RDWR);
		dup2(fd, 1);
		dup2(fd, 2);
		execlp("localedef", "localedef", "-i", "de_DE", "-f", "UTF-8", path, (char *)NULL);
		_exit(127);
	}
	if (pid > 0 && waitpid(pid, NULL, 0) == pid)
		setenv("LOCPATH", tmpdir(), 1);
}

static bool
comma_locale(void)
{
	static const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "fr_FR.utf8" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (setlocale(LC_ALL, names[i]) != NULL && strcmp(localeconv()->decimal_point, ",") == 0)
			return true;
	return false;
}

static void
test_locale(void)
{
	struct json_object *v;
	struct buf out = BUF_INIT;

	if (!comma_locale())
		make_locale();
	if (!comma_locale()) {
		skip("no locale with a decimal comma is installed");
		return;
	}
	json_parse(&v, "[19.95]", 7, NULL);
	ok(json_object_get_double(json_object_array_get_idx(v, 0)) == 19.95, "numbers are read with a point where the locale has a comma");
	json_write(&out, v, JSON_COMPACT);
	json_write_double(&out, 0.5);
	buf_adds(&out, " ");
	json_write_repr(&out, v);
	is_str(out.data, "[19.95]0.5 [19.95]", "and written with one");
	json_object_put(v);
	buf_release(&out);
	setlocale(LC_ALL, "C");
}

static void
test_access(void)
{
	static const char text[] = "{\"s\": \"a\\u0000b\", \"n\": 5, \"z\": null, \"o\": {\"x\": \"y\"}}";
	struct json_object *v;
	struct err e = ERR_INIT;
	size_t len = 0;

	json_parse(&v, text, strlen(text), NULL);
	is_bytes(json_get_text(v, "s", &len), 3, "a\0b", 3, "a NUL in a value stays");
	is_int((long long)len, 3, "and is counted");
	ok(json_get_text(v, "n", &len) == NULL && json_get_text(v, "z", NULL) == NULL && json_get_text(v, "no", NULL) == NULL,
	    "what is no string has no text");
	is_str(json_get_text(json_get(v, "o"), "x", NULL), "y", "members of members");
	ok(json_get(json_get(v, "n"), "x") == NULL && json_get(NULL, "x") == NULL, "what is no object has no members");
	json_object_put(v);
	ok(json_parse(&v, "{\"a\\u0000x\": 1}", 15, &e) == -1, "a NUL in a key is refused");
	is_str(e.msg, "byte 2: a NUL inside a key", "and said");
	ok(json_parses("{\"a\\u0000x\": 1}", 15, &e) == -1, "without parsing, too");
	is_str(e.msg, "byte 2: a NUL inside a key", "and said");
	ok(json_parses("{\"a\": \"x\\u0000\", \"b\": 1}", 24, &e) == 0, "one in a string is none in the next key");
	ok(json_parse(&v, "null", 4, &e) == 0 && v == NULL, "null is no value");
}

static void
fixed(const char *text, const char *want)
{
	struct buf out = BUF_INIT;

	json_fix_surrogate_escapes(&out, text, strlen(text));
	is_str(out.data, want, "surrogate escapes: %s", text);
	buf_release(&out);
}

static void
test_surrogates(void)
{
	fixed("{\"q\": \"\\ud99c\", \"n\": 12345678901234567890}", "{\"q\": \"\\ufffd\", \"n\": 12345678901234567890}");
	fixed("\"\\ud83d\\ude00 \\uDC00 \\u00e9\"", "\"\\ud83d\\ude00 \\ufffd \\u00e9\"");
	fixed("\"\\ud83d\\ud83d\\ude00\"", "\"\\ufffd\\ud83d\\ude00\"");
	fixed("\"\\\\ud83d \\\\\\ud83d\"", "\"\\\\ud83d \\\\\\ufffd\"");
	fixed("\"\\ud83d", "\"\\ufffd");
	fixed("\"\\ud8", "\"\\ud8");
	fixed("\"\\u", "\"\\u");
	fixed("\\", "\\");
	fixed("", "");
}

/* xorshift64, so that a failure is repeated by its seed alone. */
static uint64_t seed = 88172645463325252u;

static unsigned
dice(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 33) % n;
}

static size_t fuzzed, accepted, disagreed;

static void
mutate(char *text, size_t len)
{
	static const char special[] = "\"\\{}[],:0u\0\x80\xff\xc3\n e-";
	unsigned n = 1 + dice(3);
	size_t at, other;

	while (n-- > 0) {
		at = dice((unsigned)len);
		other = dice((unsigned)len);
		switch (dice(3)) {
		case 0:
			text[at] = special[dice(sizeof(special) - 1)];
			break;
		case 1:
			text[at] = text[other];
			break;
		default:
			text[at] = (char)dice(256);
		}
	}
}

/* A changed line never crashes a reader; what the grammar accepts of objects, the scan accepts, and they see one type. */
static void
fuzz_line(const char *line, size_t len)
{
	struct json_object *v;
	struct json_peek peek;
	struct buf out = BUF_INIT;
	char *text;
	size_t n, k;
	int i;

	for (i = 0; i < 60; i++) {
		/* of its own size, so that a sanitizer sees the first byte read too far */
		n = i % 3 == 0 ? 1 + dice((unsigned)len) : len;
		text = xmalloc(n);
		memcpy(text, line, n);
		mutate(text, n);
		for (k = 0; k < n && strchr(" \t\r\n", text[k]) != NULL && text[k] != '\0'; k++)
			;
		fuzzed++;
		v = NULL;
		if (json_parse(&v, text, n, NULL) == 0 && k < n && text[k] == '{') {
			accepted++;
			if (!scans(text, n, &peek) || !checks(text, n))
				disagreed++;
			else if ((peek.type != NULL) != (json_get_text(v, "type", NULL) != NULL))
				disagreed++;
			else if ((peek.data != NULL) != json_object_is_type(json_get(v, "data"), json_type_object))
				disagreed++;
			buf_reset(&out);
			json_write(&out, v, JSON_PYTHON);
			disagreed += !checks(out.data, out.len);
		} else {
			scans(text, n, &peek);
		}
		json_object_put(v);
		buf_reset(&out);
		json_fix_surrogate_escapes(&out, text, n);
		free(text);
	}
	buf_release(&out);
}

int
main(void)
{
	test_scan();
	test_peek();
	test_blocks();
	test_depth();
	test_grammar();
	test_writing();
	test_doubles();
	test_locale();
	test_access();
	test_surrogates();
	golden_lines("log_sample.jsonl", fuzz_line);
	golden_lines("serialization.jsonl", fuzz_line);
	printf("# %zu changed lines, of which %zu are JSON\n", fuzzed, accepted);
	ok(fuzzed > 5000 && accepted > fuzzed / 20, "enough changed lines are JSON and enough are not");
	is_int((long long)disagreed, 0, "the scan accepts what the grammar accepts, and both see the same type and data");
	return done();
}

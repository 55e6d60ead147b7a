/*
 * JSON text: checking it, reading it into json-c values, writing those.
 *
 * The grammar is RFC 8259 plus Python's NaN, Infinity and -Infinity. Of duplicate keys the last wins. Text is UTF-8
 * (checked). Nesting is limited to 512.
 */
#ifndef AG2_JSON_H
#define AG2_JSON_H

#include "base/buf.h"
#include "base/err.h"

#include <json.h>
#include <stdint.h>

#define JSON_DEPTH 512

/*
 * A structural scan of one line: an object, strings closed, brackets balanced, valid UTF-8, no NUL, nothing behind the
 * object but blanks. It finds what routing needs without looking into values, at a few GB/s on long strings. On failure
 * *at is the byte (from 0) and *why a constant text.
 */
struct json_peek {
	const char *type;	/* the value of the last top-level "type" when it is a string (raw, between its quotes), else NULL */
	size_t type_len;
	bool type_escaped;	/* ... it contains escapes: decode before use */
	const char *data;	/* the raw value of the last top-level "data" when it is an object, braces included, else NULL */
	size_t data_len;
};
int json_scan(const char *line, size_t len, struct json_peek *peek, size_t *at, const char **why);

/*
 * Over the string, object, array or plain value that begins at p, within a line that json_scan has passed: what is behind it, NULL
 * when it does not end before `end`. *escaped, may be NULL, tells of a string whether there is a backslash in it.
 */
const char *json_skip(const char *p, const char *end, bool *escaped);

/* The full grammar for one value. -1 with *at and *why. */
int json_check(const char *text, size_t len, size_t *at, const char **why);

/* Whether json_parse would take it, and if not, what it would say; nothing is made of it. */
int json_parses(const char *text, size_t len, struct err *e);

/*
 * Checks and parses one value. Integers that json-c would round keep their digits, lone surrogates become U+FFFD. A NUL
 * inside a key is refused. ERR_DATA names byte and reason ("byte 17: ..."). The value is the caller's: json_object_put.
 * JSON null gives a NULL *out with return 0.
 */
int json_parse(struct json_object **out, const char *text, size_t len, struct err *e);

/*
 * The same, but a lone surrogate stays as the half of a pair (see utf8.h), whose other half may be in the next text: for pieces
 * of a stream. What json_write_string makes of it is valid again.
 */
int json_parse_piece(struct json_object **out, const char *text, size_t len, struct err *e);

/*
 * How values are written. Numbers keep their source spelling where they came from text: every parsed number that is not an
 * integer of 64 bits is a json_type_double whose spelling is its json_object_get_userdata.
 */
enum json_style {
	JSON_COMPACT,	/* no blanks, UTF-8 as it is: what goes over the wire */
	JSON_PYTHON,	/* json.dumps: ", " and ": ", ASCII with \uXXXX: what AG2 writes into logs */
	JSON_PRETTY,	/* two blanks a level, UTF-8: for people */
};
void json_write(struct buf *out, struct json_object *value, enum json_style style);

/*
 * Floats in it, at any depth, are written from now on as Python writes those it has read, 1e5 as 100000.0 and -0 as 0;
 * integers keep all their digits.
 */
void json_forget_spelling(struct json_object *value);

/*
 * Takes the string whose opening quote is at *p, or the number at *p, as json_parse_piece() would; *p is then behind it. The text of the
 * string is where it stands, or in scratch when there are escapes in it. False when it is not valid.
 */
bool json_take_string(const char **p, const char *end, struct buf *scratch, const char **text, size_t *len);
bool json_take_number(const char **p, const char *end);

/* The number at the start of text with a point as its decimal sign, whatever the locale. */
double json_number(const char *text);

/* One JSON string, quotes included, in the style's escapes. Invalid UTF-8 becomes U+FFFD, two halves of a pair are joined. */
void json_write_string(struct buf *out, const char *text, size_t len, enum json_style style);

/* A float as Python's repr writes it: shortest that reads back, "1.0", "1e+22", "nan" as NaN. */
void json_write_double(struct buf *out, double value);

/* Python's repr of a value: None, True, 'text' with Python's choice of quotes, dicts and lists. */
void json_write_repr(struct buf *out, struct json_object *value);

/*
 * Text that itself is JSON (tool arguments) made fit to be sent: lone \uD800-\uDFFF escapes in it become \ufffd, nothing
 * else changes (digits, blanks, order stay).
 */
void json_fix_surrogate_escapes(struct buf *out, const char *text, size_t len);

/* Member access that never fails: NULL when obj is no object, or has no such member. */
struct json_object *json_get(struct json_object *obj, const char *key);
/* The elements of an array; 0 of anything else. */
size_t json_count(struct json_object *list);
/* The bytes of a string member (len by json-c, NULs inside are kept), NULL when it is not a string. */
const char *json_get_text(struct json_object *obj, const char *key, size_t *len);

#endif

#include "event/repr.h"

#include "base/utf8.h"

#include <string.h>

/* Single quotes, unless that saves escaping: there are single ones and no double ones. */
static char
choose_quote(const char *text, size_t len)
{
	return memchr(text, '\'', len) != NULL && memchr(text, '"', len) == NULL ? '"' : '\'';
}

static void
add_escape(struct buf *out, uint32_t c)
{
	switch (c) {
	case '\n':
		buf_adds(out, "\\n");
		break;
	case '\r':
		buf_adds(out, "\\r");
		break;
	case '\t':
		buf_adds(out, "\\t");
		break;
	default:
		buf_addf(out, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)c);
	}
}

void
repr_text(struct buf *out, const char *text, size_t len)
{
	char quote = len > 0 ? choose_quote(text, len) : '\'';
	size_t i, n;
	uint32_t c;

	buf_addch(out, quote);
	for (i = 0; i < len; i += n) {
		n = utf8_decode(text + i, len - i, &c);
		if (n == 0) {
			c = 0xfffd;
			n = 1;
		}
		if (c == (unsigned char)quote || c == '\\') {
			buf_addch(out, '\\');
			buf_addch(out, (char)c);
		} else if (repr_printable(c)) {
			utf8_add(out, c);
		} else {
			add_escape(out, c);
		}
	}
	buf_addch(out, quote);
}

void
repr_bytes(struct buf *out, const void *data, size_t len)
{
	const unsigned char *p = data;
	char quote = len > 0 ? choose_quote(data, len) : '\'';
	size_t i;

	buf_addch(out, 'b');
	buf_addch(out, quote);
	for (i = 0; i < len; i++) {
		if (p[i] == (unsigned char)quote || p[i] == '\\') {
			buf_addch(out, '\\');
			buf_addch(out, (char)p[i]);
		} else if (p[i] >= 0x20 && p[i] < 0x7f) {
			buf_addch(out, (char)p[i]);
		} else {
			add_escape(out, p[i]);
		}
	}
	buf_addch(out, quote);
}

/* As Python has it after reading it: integers in their digits, everything else a float. */
static void
repr_number(struct buf *out, struct json_object *value)
{
	const char *spelling;

	if (json_object_is_type(value, json_type_int)) {
		json_write_number(out, value);
		return;
	}
	spelling = json_object_get_userdata(value);
	if (spelling == NULL || strpbrk(spelling, ".eENI") != NULL)
		repr_double(out, json_object_get_double(value));
	else
		buf_adds(out, strcmp(spelling, "-0") == 0 ? "0" : spelling);
}

static void
repr_list(struct buf *out, struct json_object *array)
{
	size_t i, n = json_object_array_length(array);

	buf_addch(out, '[');
	for (i = 0; i < n; i++) {
		if (i > 0)
			buf_adds(out, ", ");
		json_write_repr(out, json_object_array_get_idx(array, i));
	}
	buf_addch(out, ']');
}

static void
repr_dict(struct buf *out, struct json_object *obj)
{
	bool first = true;

	buf_addch(out, '{');
	json_object_object_foreach(obj, key, value) {
		if (!first)
			buf_adds(out, ", ");
		repr_text(out, key, strlen(key));
		buf_adds(out, ": ");
		json_write_repr(out, value);
		first = false;
	}
	buf_addch(out, '}');
}

void
json_write_repr(struct buf *out, struct json_object *value)
{
	switch (json_object_get_type(value)) {
	case json_type_null:
		buf_adds(out, "None");
		break;
	case json_type_boolean:
		buf_adds(out, json_object_get_boolean(value) ? "True" : "False");
		break;
	case json_type_int:
	case json_type_double:
		repr_number(out, value);
		break;
	case json_type_string:
		repr_text(out, json_object_get_string(value), (size_t)json_object_get_string_len(value));
		break;
	case json_type_array:
		repr_list(out, value);
		break;
	case json_type_object:
		repr_dict(out, value);
		break;
	}
}

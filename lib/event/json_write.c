#include "event/json.h"
#include "event/repr.h"

#include "base/utf8.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The shortest digits that read back as value (finite, not 0), without a point: d.ddd * 10^*exponent. printf writes the
 * locale's decimal sign, so only its digits are used. A number of up to fifteen digits is what these many digits of a normal double
 * are, with zeros behind it: fewer need not be tried.
 */
static size_t
shortest_digits(double value, char digits[20], int *exponent)
{
	char text[64], spelled[64];
	size_t n = 0;
	const char *p;
	int precision = fpclassify(value) == FP_SUBNORMAL ? 0 : DBL_DIG - 1;

	for (; precision <= 16; precision++) {
		snprintf(text, sizeof(text), "%.*e", precision, value);
		for (n = 0, p = text; *p != 'e'; p++)
			if (*p >= '0' && *p <= '9' && n < 18)
				digits[n++] = *p;
		*exponent = (int)strtol(p + 1, NULL, 10);
		digits[n] = '\0';
		snprintf(spelled, sizeof(spelled), "%se%d", digits, *exponent - precision);
		if (json_number(spelled) == value)
			break;
	}
	while (n > 1 && digits[n - 1] == '0')
		digits[--n] = '\0';
	return n;
}

void
repr_double(struct buf *out, double value)
{
	char digits[20];
	int exponent, i;
	size_t n;

	if (isnan(value) || isinf(value)) {
		buf_adds(out, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
		return;
	}
	if (signbit(value))
		buf_addch(out, '-');
	if (value == 0) {
		buf_adds(out, "0.0");
		return;
	}
	n = shortest_digits(fabs(value), digits, &exponent);
	if (exponent < -4 || exponent >= 16) {
		buf_addch(out, digits[0]);
		if (n > 1)
			buf_addf(out, ".%s", digits + 1);
		buf_addf(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
	} else if (exponent < 0) {
		buf_adds(out, "0.");
		for (i = -1; i > exponent; i--)
			buf_addch(out, '0');
		buf_add(out, digits, n);
	} else {
		for (i = 0; i <= exponent; i++)
			buf_addch(out, (size_t)i < n ? digits[i] : '0');
		buf_addch(out, '.');
		buf_adds(out, n > (size_t)exponent + 1 ? digits + exponent + 1 : "0");
	}
}

void
json_write_double(struct buf *out, double value)
{
	if (isnan(value))
		buf_adds(out, "NaN");
	else if (isinf(value))
		buf_adds(out, value < 0 ? "-Infinity" : "Infinity");
	else
		repr_double(out, value);
}

static void
write_unicode(struct buf *out, uint32_t c)
{
	if (c >= 0x10000) {
		c -= 0x10000;
		buf_addf(out, "\\u%04x\\u%04x", (unsigned)(0xd800 + (c >> 10)), (unsigned)(0xdc00 + (c & 0x3ff)));
	} else {
		buf_addf(out, "\\u%04x", (unsigned)c);
	}
}

/* The one character at text that cannot stand as it is; returns its bytes. */
static size_t
write_special(struct buf *out, const char *text, size_t len, enum json_style style)
{
	static const char names[] = "\"\\bfnrt", values[] = "\"\\\b\f\n\r\t";
	const char *which = *text != '\0' ? strchr(values, *text) : NULL;
	uint32_t c;
	size_t n;

	if (which != NULL) {
		buf_addch(out, '\\');
		buf_addch(out, names[which - values]);
		return 1;
	}
	n = utf8_decode(text, len, &c);
	if (n == 0)
		n = utf8_decode_half(text, len, &c);
	if (n == 0)
		c = 0xfffd;
	if (style == JSON_PYTHON || c < 0x20)
		write_unicode(out, c);
	else
		utf8_add(out, c);
	return n > 0 ? n : 1;
}

void
json_write_string(struct buf *out, const char *text, size_t len, enum json_style style)
{
	size_t i = 0, from;

	buf_addch(out, '"');
	while (i < len) {
		for (from = i; i < len; i++) {
			unsigned char c = (unsigned char)text[i];

			if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\' || (c == 0x7f && style == JSON_PYTHON))
				break;
		}
		buf_add(out, text + from, i - from);
		if (i < len)
			i += write_special(out, text + i, len - i, style);
	}
	buf_addch(out, '"');
}

void
json_write_number(struct buf *out, struct json_object *value)
{
	const char *spelling;

	if (json_object_is_type(value, json_type_int)) {
		int64_t n = json_object_get_int64(value);

		if (n < 0)
			buf_addf(out, "%" PRId64, n);
		else
			buf_addf(out, "%" PRIu64, json_object_get_uint64(value));
		return;
	}
	spelling = json_object_get_userdata(value);
	if (spelling != NULL)
		buf_adds(out, spelling);
	else
		json_write_double(out, json_object_get_double(value));
}

static void write_value(struct buf *out, struct json_object *value, enum json_style style, unsigned level);

/* Before an item (first or not) and before the closing bracket (first: there was none). */
static void
write_gap(struct buf *out, enum json_style style, unsigned level, bool first, bool closing)
{
	if (!first && !closing)
		buf_adds(out, style == JSON_PYTHON ? ", " : ",");
	if (style != JSON_PRETTY || (first && closing))
		return;
	buf_addch(out, '\n');
	for (level -= closing; level > 0; level--)
		buf_adds(out, "  ");
}

static void
write_array(struct buf *out, struct json_object *array, enum json_style style, unsigned level)
{
	size_t i, n = json_object_array_length(array);

	buf_addch(out, '[');
	for (i = 0; i < n; i++) {
		write_gap(out, style, level + 1, i == 0, false);
		write_value(out, json_object_array_get_idx(array, i), style, level + 1);
	}
	write_gap(out, style, level + 1, n == 0, true);
	buf_addch(out, ']');
}

static void
write_object(struct buf *out, struct json_object *obj, enum json_style style, unsigned level)
{
	bool first = true;

	buf_addch(out, '{');
	json_object_object_foreach(obj, key, value) {
		write_gap(out, style, level + 1, first, false);
		json_write_string(out, key, strlen(key), style);
		buf_adds(out, style == JSON_COMPACT ? ":" : ": ");
		write_value(out, value, style, level + 1);
		first = false;
	}
	write_gap(out, style, level + 1, first, true);
	buf_addch(out, '}');
}

static void
write_value(struct buf *out, struct json_object *value, enum json_style style, unsigned level)
{
	switch (json_object_get_type(value)) {
	case json_type_null:
		buf_adds(out, "null");
		break;
	case json_type_boolean:
		buf_adds(out, json_object_get_boolean(value) ? "true" : "false");
		break;
	case json_type_int:
	case json_type_double:
		json_write_number(out, value);
		break;
	case json_type_string:
		json_write_string(out, json_object_get_string(value), (size_t)json_object_get_string_len(value), style);
		break;
	case json_type_array:
		write_array(out, value, style, level);
		break;
	case json_type_object:
		write_object(out, value, style, level);
		break;
	}
}

void
json_write(struct buf *out, struct json_object *value, enum json_style style)
{
	write_value(out, value, style, 0);
}

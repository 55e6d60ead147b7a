#include "screen.h"

#include "base/utf8.h"

#include <locale.h>
#include <math.h>
#include <time.h>
#include <wchar.h>

int
char_columns(const char *text, size_t len, size_t *bytes)
{
	static locale_t utf8;
	locale_t before;
	uint32_t c;
	int w;

	*bytes = utf8_decode(text, len, &c);
	if (*bytes == 0) {
		*bytes = 1;
		return 1;
	}
	if (c < 0x80)
		return 1;
	if (utf8 == (locale_t)0)
		utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	if (utf8 == (locale_t)0)
		return 1;
	before = uselocale(utf8);
	w = wcwidth((wchar_t)c);
	uselocale(before);
	return w >= 0 ? w : 1;
}

size_t
text_columns(const char *text, size_t len)
{
	size_t i = 0, n, width = 0;

	for (; i < len; i += n)
		width += (size_t)char_columns(text + i, len - i, &n);
	return width;
}

/* The length of the beginning that takes at most so many columns. */
static size_t
fitting(const char *text, size_t len, size_t columns)
{
	size_t i = 0, n, width = 0;

	while (i < len) {
		width += (size_t)char_columns(text + i, len - i, &n);
		if (width > columns)
			break;
		i += n;
	}
	return i;
}

void
add_clipped(struct buf *out, const char *text, size_t len, size_t columns)
{
	size_t fits = fitting(text, len, columns);

	if (fits < len) {
		buf_add(out, text, fitting(text, len, columns > 3 ? columns - 3 : 0));
		buf_adds(out, "...");
	} else {
		buf_add(out, text, len);
	}
}

/* Not to be the first of a line: closing marks of Chinese and Japanese. */
static bool
closes(const char *text, size_t len)
{
	static const uint32_t marks[] = { 0x3001, 0x3002, 0x3009, 0x300b, 0x300d, 0x300f, 0x3011, 0x3015, 0x30fc, 0xff01, 0xff09, 0xff0c, 0xff0e,
		0xff1a, 0xff1b, 0xff1f, 0xff3d, 0xff5d };
	uint32_t c = 0;
	size_t i;

	utf8_decode(text, len, &c);
	for (i = 0; i < sizeof(marks) / sizeof(*marks); i++)
		if (c == marks[i])
			return true;
	return false;
}

/*
 * The length of the first line, of what does not fit one: the last place where it may be broken in what does, which is a blank, or
 * beside a wide character.
 */
static size_t
line_length(const char *text, size_t len, size_t columns)
{
	size_t fits = fitting(text, len, columns), i, n, best = 0;
	bool wide = false;
	int w;

	if (fits == 0)
		char_columns(text, len, &fits);
	for (i = 0; i <= fits && i < len; i += n) {
		w = char_columns(text + i, len - i, &n);
		if (i > 0 && (text[i] == ' ' || ((wide || w == 2) && text[i - 1] != ' ' && !closes(text + i, len - i))))
			best = i;
		wide = w == 2;
	}
	return best > 0 ? best : fits;
}

static void
wrap_line(struct buf *out, const char *text, size_t len, size_t columns)
{
	size_t n;

	while (fitting(text, len, columns) < len) {
		n = line_length(text, len, columns);
		buf_add(out, text, n);
		buf_addch(out, '\n');
		text += n;
		len -= n;
		while (len > 0 && *text == ' ') {
			text++;
			len--;
		}
	}
	buf_add(out, text, len);
}

void
add_wrapped(struct buf *out, const char *text, size_t len, size_t columns)
{
	const char *end = text + len, *newline;

	for (;;) {
		newline = memchr(text, '\n', (size_t)(end - text));
		wrap_line(out, text, (size_t)((newline ? newline : end) - text), columns);
		buf_addch(out, '\n');
		if (newline == NULL)
			return;
		text = newline + 1;
	}
}

void
add_time(struct buf *out, double t, bool with_seconds)
{
	time_t seconds = (time_t)floor(t);
	struct tm tm;
	char text[64];

	if (t < 0 || t >= 1e11 || localtime_r(&seconds, &tm) == NULL) {
		buf_addch(out, '-');
		return;
	}
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	buf_add(out, text, strlen(text) - (with_seconds ? 0 : 3));
}

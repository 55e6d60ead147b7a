#include "base/log.h"

#include "base/utf8.h"

#include <errno.h>
#include <unistd.h>

static const char *program = "ag2";

void
log_program(const char *name)
{
	program = name;
}

static bool
hidden(uint32_t c, bool keep_lines)
{
	if (c == '\n' || c == '\t')
		return !keep_lines;
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
	    (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

void
scrub(struct buf *out, const char *text, size_t len, bool keep_lines)
{
	size_t i = 0, n, k;
	uint32_t c;

	while (i < len) {
		n = utf8_decode(text + i, len - i, &c);
		if (n != 0 && !hidden(c, keep_lines)) {
			buf_add(out, text + i, n);
			i += n;
			continue;
		}
		if (n == 0)
			n = 1;
		for (k = 0; k < n; k++)
			buf_addf(out, "\\x%02x", (unsigned char)text[i + k]);
		i += n;
	}
}

void
log_vwarn(const char *fmt, va_list ap)
{
	struct buf raw = BUF_INIT, line = BUF_INIT;
	size_t done = 0;
	ssize_t n;

	buf_vaddf(&raw, fmt, ap);
	buf_addf(&line, "%s: ", program);
	scrub(&line, raw.data, raw.len, false);
	buf_addch(&line, '\n');
	while (done < line.len) {
		n = write(2, line.data + done, line.len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	buf_release(&raw);
	buf_release(&line);
}

void
log_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_vwarn(fmt, ap);
	va_end(ap);
}

/* Reading the golden files of the tests through the library itself. Include it behind tap.h, in one file per program. */
#ifndef AG2_GOLDEN_H
#define AG2_GOLDEN_H

#include "base/io.h"
#include "event/json.h"

static inline void
golden_text(struct buf *out, const char *name)
{
	struct err e = ERR_INIT;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "tests/golden/%s", name);
	if (io_read_file(path, out, &e) < 0)
		bail("%s", e.msg);
}

static inline struct json_object *
golden_json(const char *name)
{
	struct buf text = BUF_INIT;
	struct json_object *v;
	struct err e = ERR_INIT;

	golden_text(&text, name);
	if (json_parse(&v, text.data, text.len, &e) < 0)
		bail("%s: %s", name, e.msg);
	buf_release(&text);
	return v;
}

/* Calls fn with each line of a file, without its newline. */
static inline void
golden_lines(const char *name, void (*fn)(const char *line, size_t len))
{
	struct buf text = BUF_INIT;
	char *p, *end;

	golden_text(&text, name);
	for (p = text.data; p < text.data + text.len; p = end + 1) {
		end = memchr(p, '\n', (size_t)(text.data + text.len - p));
		if (end == NULL)
			end = text.data + text.len;
		if (end > p)
			fn(p, (size_t)(end - p));
	}
	buf_release(&text);
}

#endif

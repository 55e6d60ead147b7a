/* How text stands on a terminal. */
#ifndef AG2_SCREEN_H
#define AG2_SCREEN_H

#include "base/buf.h"

/* Columns of the first character of text, whose length goes to *bytes: 2 for wide ones, 0 for what is put onto another; whatever the locale. */
int char_columns(const char *text, size_t len, size_t *bytes);
size_t text_columns(const char *text, size_t len);

/* At most `columns` of text that was scrubbed, on one line; what is too long ends in "...". */
void add_clipped(struct buf *out, const char *text, size_t len, size_t columns);

/* Lines of at most `columns`, broken at blanks where there are some, and beside wide characters, each with its newline. */
void add_wrapped(struct buf *out, const char *text, size_t len, size_t columns);

/* "2026-05-28 10:20:30" of local time, without the seconds when they are not wanted; "-" for what is below 0. */
void add_time(struct buf *out, double t, bool with_seconds);

#endif

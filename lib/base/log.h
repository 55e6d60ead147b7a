/*
 * Lines on standard error, for commands and for the warnings that library code has to give while it goes on. Each is
 * one write(2) of "program: text\n" with control characters, bidi overrides and invalid UTF-8 shown as \x1b.
 */
#ifndef AG2_LOG_H
#define AG2_LOG_H

#include "base/buf.h"
#include "base/err.h"

#include <stdarg.h>

void log_program(const char *name);	/* borrowed for the life of the process */

void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_vwarn(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

/*
 * Appends text as it may be shown on a terminal: C0 (but newline and tab when keep_lines), DEL, C1, bidi controls
 * (U+061C, U+200E, U+200F, U+202A-202E, U+2066-2069) and bytes that are not UTF-8 as \xNN, byte by byte.
 */
void scrub(struct buf *out, const char *text, size_t len, bool keep_lines);

#endif

/*
 * TAP for the unit tests: ok() and is_*() print one line each, done() the plan. A test program is
 *
 *	int main(void) { ok(1 + 1 == 2, "one and one is two"); return done(); }
 *
 * All state is static in this header: include it in one file per program. Tests run with the top of the source as their
 * current directory, so data is "tests/golden/...".
 */
#ifndef AG2_TAP_H
#define AG2_TAP_H

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int tap_count, tap_failed;

/* Comment lines; what is not printable is shown as \xNN, so that a value cannot look like a TAP line of its own. */
static inline void
tap_show(const char *label, const char *p, size_t len)
{
	size_t i, most = len < 2000 ? len : 2000;

	printf("#   %s (%zu bytes): '", label, len);
	for (i = 0; i < most; i++) {
		unsigned char c = (unsigned char)p[i];

		if (c >= 0x20 && c < 0x7f)
			putchar(c);
		else
			printf("\\x%02x", c);
	}
	printf("'%s\n", most < len ? "..." : "");
}

static inline bool __attribute__((format(printf, 2, 0)))
tap_vline(bool good, const char *fmt, va_list ap)
{
	char text[1000], *c;

	vsnprintf(text, sizeof(text), fmt, ap);
	for (c = text; *c != '\0'; c++)
		if ((unsigned char)*c < 0x20 || *c == '#')
			*c = '?';
	printf("%sok %d - %s\n", good ? "" : "not ", ++tap_count, text);
	if (!good)
		tap_failed++;
	fflush(stdout);
	return good;
}

/* Each of these returns whether the test passed. */
static inline bool __attribute__((format(printf, 2, 3)))
tap_ok(bool good, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tap_vline(good, fmt, ap);
	va_end(ap);
	return good;
}

/* ok(cond, fmt, ...): the condition is named when it does not hold. */
#define ok(cond, ...) \
	(tap_ok((cond), __VA_ARGS__) ? true : (printf("#   %s:%d: %s\n", __FILE__, __LINE__, #cond), fflush(stdout), false))

/* NULL is a value of its own. */
static inline bool __attribute__((format(printf, 3, 4)))
is_str(const char *got, const char *want, const char *fmt, ...)
{
	bool good = got == NULL || want == NULL ? got == want : strcmp(got, want) == 0;
	va_list ap;

	va_start(ap, fmt);
	tap_vline(good, fmt, ap);
	va_end(ap);
	if (!good) {
		tap_show("got ", got ? got : "(NULL)", strlen(got ? got : "(NULL)"));
		tap_show("want", want ? want : "(NULL)", strlen(want ? want : "(NULL)"));
	}
	return good;
}

static inline bool __attribute__((format(printf, 5, 6)))
is_bytes(const void *got, size_t got_len, const void *want, size_t want_len, const char *fmt, ...)
{
	bool good = got_len == want_len && (got_len == 0 || memcmp(got, want, got_len) == 0);
	va_list ap;

	va_start(ap, fmt);
	tap_vline(good, fmt, ap);
	va_end(ap);
	if (!good) {
		tap_show("got ", got, got_len);
		tap_show("want", want, want_len);
	}
	return good;
}

static inline bool __attribute__((format(printf, 3, 4)))
is_int(long long got, long long want, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tap_vline(got == want, fmt, ap);
	va_end(ap);
	if (got != want)
		printf("#   got %lld, want %lld\n", got, want);
	return got == want;
}

static inline void __attribute__((format(printf, 1, 2)))
skip(const char *fmt, ...)
{
	va_list ap;
	char text[500];

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	printf("ok %d # skip %s\n", ++tap_count, text);
}

/* Ends the program: for a set-up step without which no test makes sense. */
static inline void __attribute__((format(printf, 1, 2), __noreturn__))
bail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("Bail out! ");
	vprintf(fmt, ap);
	printf("\n");
	va_end(ap);
	exit(1);
}

static char tap_dir[PATH_MAX];

static int
tap_remove(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st;
	(void)type;
	(void)f;
	return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

static inline void
tap_clean(void)
{
	nftw(tap_dir, tap_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* A directory of this program's own, removed when it exits. */
static inline const char *
tmpdir(void)
{
	const char *base = getenv("TMPDIR");

	if (tap_dir[0] != '\0')
		return tap_dir;
	snprintf(tap_dir, sizeof(tap_dir), "%s/tap.XXXXXX", base && base[0] ? base : "/tmp");
	if (mkdtemp(tap_dir) == NULL)
		bail("cannot create %s: %s", tap_dir, strerror(errno));
	atexit(tap_clean);
	return tap_dir;
}

/* The exit status for main. */
static inline int
done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed == 0 && tap_count > 0 ? 0 : 1;
}

#endif

/*
 * Appends to a store and looks at what is there, for the tests of processes beside each other. Each line on standard output
 * is written, and unbuffered, after what it says was acknowledged by the store.
 *
 *	storehammer append URL PATH TAG N SIZE	appends records `TAG I ...` of SIZE bytes; prints `TAG I OFFSET` for each
 *	storehammer check URL PATH		prints `TAG I OFFSET` for each record in the file; 1 when a record is torn
 *	storehammer watch URL PATH N		reads until N records are there: always whole ones, always more; 1 when not
 */
#include "lib/hammer.h"

#include "base/clock.h"

#include <signal.h>
#include <stdio.h>

#define WATCH_SECONDS 60

static int
append(const char *url, const char *path, const char *tag, long n, size_t size)
{
	struct store *s = opened(url, STORE_CREATE);
	struct buf b = BUF_INIT;
	struct err e = ERR_INIT;
	uint64_t offset;
	long i;

	for (i = 1; i <= n; i++) {
		buf_reset(&b);
		record(&b, tag, i, size);
		if (store_append(s, path, b.data, b.len, &offset, &e) < 0)
			give_up("%s", e.msg);
		say("%s %ld %llu\n", tag, i, (unsigned long long)offset);
	}
	buf_release(&b);
	store_close(s);
	return 0;
}

static int
check(const char *url, const char *path)
{
	struct store *s = opened(url, STORE_READ);
	struct buf all = BUF_INIT;
	struct err e = ERR_INIT;
	size_t at = 0, n;
	char tag[TAG_MAX];
	long i;

	if (store_read(s, path, &all, NULL, &e) < 0 && e.code != ERR_ABSENT)
		give_up("%s", e.msg);
	for (; at < all.len; at += n) {
		n = record_at(all.data + at, all.len - at, tag, &i);
		if (n == 0)
			give_up("%s: torn at byte %zu of %zu", path, at, all.len);
		say("%s %ld %zu\n", tag, i, at);
	}
	buf_release(&all);
	store_close(s);
	return 0;
}

static int
watch(const char *url, const char *path, long n)
{
	struct store *s = NULL;
	struct store_options o = { .mode = STORE_READ };
	struct buf all = BUF_INIT;
	struct err e = ERR_INIT;
	double until = clock_monotonic() + WATCH_SECONDS;
	uint64_t offset = 0;
	size_t at, len;
	long seen = 0, looks = 0, i;
	char tag[TAG_MAX];

	while (store_open(&s, url, &o, &e) < 0)
		if (e.code != ERR_NOINPUT || clock_monotonic() > until)
			give_up("%s", e.msg);
	/* Only what is new is read, so that the looks are many. */
	for (; seen < n; looks++) {
		if (clock_monotonic() > until)
			give_up("%s: %ld of %ld records after %d seconds", path, seen, n, WATCH_SECONDS);
		buf_reset(&all);
		if (store_read_range(s, path, (int64_t)offset, STORE_END, &all, &e) < 0)
			give_up("%s", e.msg);
		for (at = 0; at < all.len; at += len, seen++)
			if ((len = record_at(all.data + at, all.len - at, tag, &i)) == 0)
				give_up("%s: torn at byte %llu, %zu bytes from the end, after %ld looks", path,
				    (unsigned long long)offset + at, all.len - at, looks);
		offset += all.len;
	}
	say("%ld records in %ld looks\n", seen, looks);
	buf_release(&all);
	store_close(s);
	return 0;
}

int
main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";

	signal(SIGPIPE, SIG_IGN);
	if (strcmp(mode, "append") == 0 && argc == 7)
		return append(argv[2], argv[3], argv[4], number(argv[5]), (size_t)number(argv[6]));
	if (strcmp(mode, "check") == 0 && argc == 4)
		return check(argv[2], argv[3]);
	if (strcmp(mode, "watch") == 0 && argc == 5)
		return watch(argv[2], argv[3], number(argv[4]));
	fputs("usage: storehammer append URL PATH TAG N SIZE | check URL PATH | watch URL PATH N\n", stderr);
	return 64;
}

/* Archives as nobody's tar makes them: what a header says is checked, and no byte of it is believed too far. */
#include "tap.h"

#include "base/alloc.h"
#include "tar.h"

#include <stdint.h>

struct source {
	const char *data;
	size_t len, at, most;	/* most bytes of one read */
};

static ssize_t
read_source(void *arg, void *data, size_t len, struct err *e)
{
	struct source *s = arg;

	if (len > s->most)
		len = s->most;
	if (len > s->len - s->at)
		len = s->len - s->at;
	memcpy(data, s->data + s->at, len);
	s->at += len;
	return (ssize_t)len;
}

/* ---- making archives ---- */

static void
set_checksum(char *block)
{
	unsigned sum = 0, i;

	memset(block + 148, ' ', 8);
	for (i = 0; i < TAR_BLOCK; i++)
		sum += (unsigned char)block[i];
	snprintf(block + 148, 8, "%06o", sum);
	block[155] = ' ';
}

static void
add_entry(struct buf *out, char type, const char *name, const char *size, const void *content, size_t len)
{
	char block[TAR_BLOCK] = "";

	snprintf(block, 100, "%s", name);
	memcpy(block + 124, size, 12);
	block[156] = type;
	memcpy(block + 257, "ustar\00000", 8);
	set_checksum(block);
	buf_add(out, block, sizeof(block));
	buf_add(out, content, len);
	memset(block, 0, sizeof(block));
	buf_add(out, block, tar_pad(len));
}

static void
add_text(struct buf *out, char type, const char *name, const char *content)
{
	char size[13];

	snprintf(size, sizeof(size), "%011o", (unsigned)strlen(content));
	add_entry(out, type, name, size, content, strlen(content));
}

/* What the archive has: "NAME:SIZE " for each entry that is a file, "NAME/ " for a directory, then the error, or "." at the end. */
static void
listing(struct buf *out, const struct buf *archive, size_t most)
{
	struct source s = { archive->data, archive->len, 0, most };
	struct tar t;
	struct tar_entry entry;
	struct err e = ERR_INIT;
	int rc;

	buf_reset(out);
	tar_init(&t, read_source, &s);
	while ((rc = tar_next(&t, &entry, &e)) > 0) {
		if (entry.dir)
			buf_addf(out, "%s ", entry.name);
		else
			buf_addf(out, "%s:%llu ", entry.name, (unsigned long long)entry.size);
	}
	buf_adds(out, rc < 0 ? e.msg : ".");
	if (rc < 0 && e.code != ERR_DATA)
		buf_addf(out, " (code %d)", (int)e.code);
	tar_release(&t);
}

/* However the bytes come. */
static void
is_listed(const struct buf *archive, const char *want, const char *what)
{
	static const size_t steps[] = { 1 << 20, 512, 7 };
	struct buf got = BUF_INIT;
	size_t i;

	for (i = 0; i < 3; i++) {
		listing(&got, archive, steps[i]);
		if (strcmp(got.data, want) != 0)
			break;
	}
	is_str(got.data, want, "%s", what);
	buf_release(&got);
}

static const char size_1[] = "00000000001", none[] = "00000000000";

struct made {
	char type;
	const char *name, *content;
};

/* One archive of at most three entries with an end. */
static void
entries_are(const struct made *made, const char *want, const char *what)
{
	struct buf a = BUF_INIT;

	for (; made->type != '-'; made++)
		add_text(&a, made->type, made->name, made->content);
	tar_end(&a, a.len);
	is_listed(&a, want, what);
	buf_release(&a);
}

#define LIST(...) (const struct made[]){ __VA_ARGS__, { '-' } }

static void
kinds(void)
{
	entries_are(LIST({ '0', "a", "x" }, { '5', "d/", "" }, { '\0', "old", "yy" }, { '7', "c", "" }), "a:1 d/ old:2 c:0 .", "files and directories");
	entries_are(LIST({ '0', "a", "x" }, { '1', "l", "" }), "a:1 'l' is a hard link: a store has only files", "a hard link");
	entries_are(LIST({ '2', "l", "" }), "'l' is a symbolic link: a store has only files", "a symbolic link");
	entries_are(LIST({ 'K', "././@LongLink", "to" }, { '2', "l", "" }), "'././@LongLink' is a symbolic link: a store has only files", "one with GNU's long target");
	entries_are(LIST({ '3', "tty", "" }), "'tty' is a device: a store has only files", "a character device");
	entries_are(LIST({ '4', "sda", "" }), "'sda' is a device: a store has only files", "a block device");
	entries_are(LIST({ '6', "p", "" }), "'p' is a named pipe: a store has only files", "a pipe");
	entries_are(LIST({ 'S', "s", "" }), "'s' is a sparse file: a store has only files", "GNU's old sparse file");
	entries_are(LIST({ 'V', "label", "" }), "'label' is of an unknown kind: a store has only files", "a volume's label");
	entries_are(LIST({ 'x', "p", "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n" }, { '0', "GNUSparseFile.1/s", "1\n0\n1\nx" }),
	    "'GNUSparseFile.1/s' is a sparse file: a store has only files", "a sparse file of the pax format");
}

static void
headers(void)
{
	entries_are(LIST({ 'x', "p", "13 path=long\n" }, { '0', "short", "x" }, { '0', "next", "" }), "long:1 next:0 .", "a path of a pax header is the next entry's only");
	entries_are(LIST({ 'x', "p", "13 path=../e\n" }, { '0', "short", "x" }), "../e:1 .", "it comes as it is, for the caller to refuse");
	entries_are(LIST({ 'L', "././@LongLink", "gnu" }, { '0', "short", "x" }), "gnu:1 .", "GNU's long name");
	entries_are(LIST({ 'x', "p", "13 path=long\n" }, { 'L', "x", "gnu" }, { '0', "short", "x" }), "gnu:1 .", "the later of both");
	entries_are(LIST({ 'g', "p", "13 path=long\n" }, { '0', "short", "x" }), "short:1 .", "a global header names no file");
	entries_are(LIST({ 'x', "p", "10 size=1\n" }, { '0', "a", "x" }), "a:1 .", "a size of a pax header");
	entries_are(LIST({ 'x', "p", "11 size=-1\n" }, { '0', "a", "x" }), "byte 1024: a pax header that is none", "a size below 0");
	entries_are(LIST({ 'x', "p", "29 size=99999999999999999999\n" }, { '0', "a", "x" }), "byte 1024: a pax header that is none", "one over all numbers");
	entries_are(LIST({ 'x', "p", "28 size=9000000000000000000\n" }, { '0', "a", "x" }), "a:9000000000000000000 the archive is cut short", "a size that is not there");
	entries_are(LIST({ 'x', "p", "0 path=x\n" }, { '0', "a", "x" }), "byte 1024: a pax header that is none", "a record of no length");
	entries_are(LIST({ 'x', "p", "99 path=x\n" }, { '0', "a", "x" }), "byte 1024: a pax header that is none", "a record that is longer than its header");
	entries_are(LIST({ 'x', "p", "99999999999999999999 path=x\n" }, { '0', "a", "x" }), "byte 1024: a pax header that is none", "a record's length over all numbers");
	entries_are(LIST({ 'x', "p", "9 pathxx\n" }, { '0', "a", "x" }), "byte 1024: a pax header that is none", "a record without =");
	entries_are(LIST({ 'x', "p", "10 path=x \n" }, { '0', "a", "x" }), "byte 1024: a pax header that is none", "a record whose length is not its own");
	entries_are(LIST({ 'x', "p", "13 path=long\n" }), ".", "a header with nothing behind it");
}

static void
sizes(void)
{
	static const struct { const char *size, *want, *what; } table[] = {
		{ "\x80\0\0\0\0\0\0\0\0\0\0\1", "a:1 .", "GNU's binary size" },
		{ "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", "a:9223372036854775807 the archive is cut short", "the largest that can be" },
		{ "\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", "byte 0: a size that is no number", "a size over 2^63" },
		{ "\x80\1\0\0\0\0\0\0\0\0\0\0", "byte 0: a size that is no number", "a size over 2^64" },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "byte 0: a size that is no number", "a negative one" },
		{ "0000000000x", "byte 0: a size that is no number", "a size with a letter" },
		{ "777777777777", "a:68719476735 the archive is cut short", "twelve digits, and nothing behind them" },
		{ "          1 ", "a:1 .", "blanks before it, as old ones have" },
	};
	struct buf a = BUF_INIT;
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(*table); i++) {
		buf_reset(&a);
		add_entry(&a, '0', "a", table[i].size, "x", 1);
		tar_end(&a, a.len);
		is_listed(&a, table[i].want, table[i].what);
	}
	buf_reset(&a);
	add_entry(&a, 'x', "p", "00004000001", "", 0);
	is_listed(&a, "byte 512: a header of 1048577 bytes", "a pax header over 1 MiB is not read");
	buf_release(&a);
}

/* At every length: what is whole before the cut is there, and nothing is made up. */
static void
cuts(void)
{
	struct buf a = BUF_INIT, cut = BUF_INIT, got = BUF_INIT;
	size_t n, end;
	bool good = true;

	add_entry(&a, '0', "a", size_1, "x", 1);
	add_text(&a, 'x', "p", "13 path=long\n");
	add_entry(&a, '0', "b", none, "", 0);
	end = a.len;
	for (n = 1; n <= end; n++) {
		const char *want = n < 512 ? "the archive is cut short" : n < 1024 ? "a:1 the archive is cut short" : n == 1024 ? "a:1 ." :
		    n < 2048 ? "a:1 the archive is cut short" : n == 2048 ? "a:1 ." : n < end ? "a:1 the archive is cut short" : "a:1 long:0 .";

		buf_reset(&cut);
		buf_add(&cut, a.data, n);
		listing(&got, &cut, 1 << 20);
		good = good && strcmp(got.data, want) == 0;
	}
	ok(good, "an archive is told to be cut short at every byte but between entries");
	buf_reset(&a);
	is_listed(&a, ".", "no bytes at all");
	buf_adds(&a, "this is no archive");
	is_listed(&a, "the archive is cut short", "some text");
	while (a.len < TAR_BLOCK)
		buf_addch(&a, 'x');
	is_listed(&a, "this is no tar archive", "a block of text");
	buf_release(&a);
	buf_release(&cut);
	buf_release(&got);
}

/* Any byte changed: an answer, in bounds (which the sanitizers see). */
static void
damage(void)
{
	struct buf a = BUF_INIT, got = BUF_INIT;
	uint32_t state = 12345;
	size_t i, at, answers = 0;
	char before;

	tar_header(&a, "/\xc3\xa9", 3, 3);
	buf_adds(&a, "abc");
	for (i = 0; i < tar_pad(3); i++)
		buf_addch(&a, '\0');
	add_text(&a, 'L', "././@LongLink", "a long name");
	add_text(&a, '0', "short", "x");
	tar_end(&a, a.len);
	for (i = 0; i < 4000; i++) {
		state = state * 1664525 + 1013904223;
		at = (state >> 8) % 3584;
		before = a.data[at];
		a.data[at] = (char)(state >> 3);
		if (at % TAR_BLOCK < 500 && i % 2 == 0 && a.data[at / TAR_BLOCK * TAR_BLOCK + 257] == 'u')
			set_checksum(a.data + at / TAR_BLOCK * TAR_BLOCK);
		listing(&got, &a, 1 << 20);
		answers += got.len > 0;
		a.data[at] = before;
		if (at % TAR_BLOCK < 500 && i % 2 == 0 && a.data[at / TAR_BLOCK * TAR_BLOCK + 257] == 'u')
			set_checksum(a.data + at / TAR_BLOCK * TAR_BLOCK);
	}
	ok(answers == 4000, "4000 damaged archives are answered");
	buf_release(&a);
	buf_release(&got);
}

int
main(void)
{
	kinds();
	headers();
	sizes();
	cuts();
	damage();
	return done();
}

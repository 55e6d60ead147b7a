/* UTF-8: what is valid, what is counted, what is replaced. */
#include "tap.h"

#include "base/utf8.h"

static void
valid_to(const char *text, size_t len, size_t want, const char *what)
{
	is_int((long long)utf8_valid(text, len), (long long)want, "%s", what);
}

#define VALID(text, want, what) valid_to(text, sizeof(text) - 1, want, what)

/* Every code point there and back. */
static void
test_all(void)
{
	struct buf b = BUF_INIT;
	uint32_t c, got;
	size_t bad = 0, n, most;

	for (c = 0; c <= 0x10ffff; c++) {
		buf_reset(&b);
		utf8_add(&b, c);
		n = utf8_decode(b.data, b.len, &got);
		if (c >= 0xd800 && c <= 0xdfff)
			bad += got != 0xfffd;
		else
			bad += n != b.len || got != c || utf8_valid(b.data, b.len) != b.len || utf8_count(b.data, b.len) != 1;
		for (most = 0; most < b.len; most++)
			bad += utf8_decode(b.data, most, NULL) != 0;
	}
	is_int((long long)bad, 0, "every character is encoded and decoded, no part of one is");
	buf_reset(&b);
	utf8_add(&b, 0x110000);
	is_str(b.data, "\xef\xbf\xbd", "what is no character is encoded as U+FFFD");
	buf_release(&b);
}

/* Every place in a text that is longer than a word, so that the fast path meets it at each alignment. */
static void
test_places(void)
{
	char text[40];
	size_t at, len, bad = 0;

	for (len = 1; len <= sizeof(text); len++) {
		for (at = 0; at < len; at++) {
			memset(text, 'a', len);
			text[at] = '\x80';
			bad += utf8_valid(text, len) != at;
			if (at + 1 < len) {
				memcpy(text + at, "\xc3\xa9", 2);
				bad += utf8_valid(text, len) != len || utf8_count(text, len) != len - 1;
			}
		}
	}
	is_int((long long)bad, 0, "a bad byte is found wherever it is");
}

static void
replaced(const char *text, size_t len, const char *want, const char *what)
{
	struct buf b = BUF_INIT;

	utf8_add_valid(&b, text, len);
	is_str(b.data, want, "%s", what);
	buf_release(&b);
}

static void
joined(const char *text, const char *want, const char *what)
{
	struct buf b = BUF_INIT;

	utf8_add_joined(&b, text, strlen(text));
	is_str(b.data, want, "%s", what);
	buf_release(&b);
}

int
main(void)
{
	VALID("", 0, "nothing is valid");
	VALID("a\0b", 3, "a NUL is a character");
	VALID("ab\xc0\x80", 2, "an overlong NUL");
	VALID("\xc1\xbf", 0, "an overlong letter");
	VALID("\xe0\x9f\xbf", 0, "three bytes for two");
	VALID("\xf0\x8f\xbf\xbf", 0, "four bytes for three");
	VALID("\xed\x9f\xbf", 3, "the last character before the surrogates");
	VALID("\xed\xa0\x80", 0, "the first surrogate");
	VALID("\xed\xbf\xbf", 0, "the last surrogate");
	VALID("\xf4\x8f\xbf\xbf", 4, "the last character");
	VALID("\xf4\x90\x80\x80", 0, "one more than that");
	VALID("\xf5\x80\x80\x80", 0, "a byte that begins nothing");
	VALID("x\xe4\xbd", 1, "a character cut at its end");
	VALID("x\xe4\xbdy", 1, "a character cut in the middle");
	test_all();
	test_places();
	is_int((long long)utf8_count("h\xc3\xa9\xf0\x9f\x98\x80\xff", 8), 4, "a byte that is not valid counts as one");
	replaced("a\xff\xe4\xbdz", 5, "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz", "each bad byte is replaced");
	joined("\xed\xa0\xbd\xed\xb8\x80", "\xf0\x9f\x98\x80", "two halves are a character");
	joined("a\xed\xa0\xbdz\xed\xb8\x80", "a\xef\xbf\xbdz\xef\xbf\xbd", "a half alone is one U+FFFD");
	joined("\xed\xb8\x80\xed\xa0\xbd", "\xef\xbf\xbd\xef\xbf\xbd", "the wrong way round they are two");
	joined("\xed\xa0\xbd\xff\xed", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", "other bad bytes are one each");
	joined("\xed\xaf\xbf\xed\xbf\xbf", "\xf4\x8f\xbf\xbf", "the last character");
	replaced("", 0, "", "nothing is nothing");
	return done();
}

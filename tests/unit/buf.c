/* Growing buffers and their limits. */
#include "tap.h"

#include "base/buf.h"

int
main(void)
{
	struct buf b = BUF_INIT, small = BUF_INIT_MAX(10);
	size_t i, len;
	char *text;

	is_str(b.data, "", "a new buffer is an empty string");
	buf_add(&b, "a\0b", 3);
	buf_adds(&b, "cd");
	buf_addch(&b, 'e');
	buf_addf(&b, "%d %s", 7, "x");
	is_bytes(b.data, b.len + 1, "a\0bcde7 x", 10, "additions follow each other, a NUL behind them");
	buf_drop(&b, 2);
	is_str(b.data, "bcde7 x", "the front is taken off");
	buf_drop(&b, b.len);
	is_int((long long)b.len, 0, "all of it");
	for (i = 0; i < 100000; i++)
		buf_addf(&b, "%zu,", i);
	ok(b.len == 588890 && strlen(b.data) == b.len, "it grows");
	buf_addf(&b, "%0500d", 1);
	is_int((long long)b.len, 588890 + 500, "by long formatted texts too");
	text = buf_detach(&b, &len);
	ok(len == 588890 + 500 && b.len == 0 && strcmp(b.data, "") == 0, "its bytes are handed over");
	free(text);
	text = buf_detach(&b, NULL);
	is_str(text, "", "so are none");
	free(text);

	buf_adds(&small, "12345");
	buf_adds(&small, "67890");
	ok(!small.over && small.len == 10, "a limit is reached");
	buf_addch(&small, 'x');
	ok(small.over && small.len == 10, "but not passed");
	buf_reset(&small);
	buf_adds(&small, "12345");
	buf_adds(&small, "678901");
	buf_adds(&small, "6");
	ok(small.over && strcmp(small.data, "12345") == 0, "what is too long is not added at all, nor what comes later");
	ok(small.cap <= 11, "a buffer with a limit takes no more memory than that");
	buf_reset(&small);
	ok(!small.over && small.len == 0, "reset makes it usable again");
	buf_reserve(&small, 11);
	ok(small.over, "room for more than the limit is refused");
	buf_release(&small);
	ok(!small.over && small.cap == 0, "release gives it back");
	buf_reserve(&b, (size_t)-1);
	ok(b.over, "a size that overflows is refused");
	buf_release(&b);
	return done();
}

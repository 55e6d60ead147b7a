/* What a file is taken for, and base64. */
#include "tap.h"

#include "base/base64.h"
#include "media.h"

static void
is_type(const char *name, const char *data, size_t len, const char *want)
{
	is_str(media_of(name, data, len), want, "%s that begins with %.*s is %s", name, (int)strcspn(data, "\n"), data, want);
}

static void
test_types(void)
{
	is_type("a.png", "\x89PNG\r\n\x1a\n", 8, "image/png");
	is_type("wrong.txt", "\xff\xd8\xff\xe0", 4, "image/jpeg");
	is_type("a", "GIF89a", 6, "image/gif");
	is_type("a", "RIFF\1\2\3\4WEBPVP8", 15, "image/webp");
	is_type("a", "RIFF\1\2\3\4WAVEfmt", 15, "audio/wav");
	is_type("a", "RIFF", 4, "text/plain");
	is_type("a", "%PDF-1.7\n\xe2\xe3", 11, "application/pdf");
	is_type("a", "\0\0\0\x18" "ftypisom", 12, "video/mp4");
	is_type("a", "\0\0\0\x18" "ftypM4A ", 12, "audio/mp4");
	is_type("a.mkv", "\x1a\x45\xdf\xa3", 4, "video/x-matroska");
	is_type("a.webm", "\x1a\x45\xdf\xa3", 4, "video/webm");
	is_type("a.PNG", "only text", 9, "text/plain");
	is_type("notes.MD", "# h\303\251", 5, "text/markdown");
	is_type("a.json", "{}", 2, "text/plain");
	is_type("a.b/c", "x", 1, "text/plain");
	is_type("latin.txt", "h\351", 2, "application/octet-stream");
	is_type("a.mpg", "\0\0\1\xba", 4, "video/mpeg");
	is_type("a", "a\0b", 3, "application/octet-stream");
	ok(media_by_name("https://h/x.jpeg?size=1.png") != NULL &&
	    strcmp(media_by_name("https://h/x.jpeg?size=1.png"), "image/jpeg") == 0, "a query is not part of a URL's name");
	ok(media_by_name("png") == NULL && media_by_name(".") == NULL, "a name without a suffix says nothing");
}

static void
test_kinds(void)
{
	is_str(media_kind("image/png"), "image", "an image");
	is_str(media_kind("audio/wav"), "audio", "sound");
	is_str(media_kind("video/mp4"), "video", "video");
	is_str(media_kind("application/pdf"), "document", "a document");
	is_str(media_kind("text/csv"), "document", "text is a document");
	is_str(media_kind("imagery/x"), "binary", "a kind is a whole word");
}

static void
test_base64(void)
{
	static const char *const texts[] = { "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy" };
	struct buf out = BUF_INIT;
	size_t i;

	for (i = 0; i < 7; i++) {
		buf_reset(&out);
		base64_encode(&out, "foobar", i);
		is_str(out.data, texts[i], "%zu bytes in base64", i);
		buf_reset(&out);
		base64_decode(&out, texts[i], strlen(texts[i]));
		ok(out.len == i && memcmp(out.data, "foobar", i) == 0, "and back");
	}
	buf_reset(&out);
	base64_encode(&out, "\xff\xfe\xfd\0\x80", 5);
	is_str(out.data, "//79AIA=", "bytes of every kind");
	buf_reset(&out);
	base64_decode(&out, "/ /7\n9A-IA==Zg", 14);
	ok(out.len == 5 && memcmp(out.data, "\xff\xfe\xfd\0\x80", 5) == 0, "blanks are passed over, and all behind the padding");
	buf_release(&out);
}

int
main(void)
{
	test_types();
	test_kinds();
	test_base64();
	return done();
}

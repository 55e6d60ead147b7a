#include "tap.h"
#include "template.h"

static void
fills(const char *text, const char *want, const char *what)
{
	static const struct template_value values[] = {
		{ "existing", "OLD {events}", 12 },
		{ "events", "a\0b", 3 },
		{ "e", "", 0 },
	};
	struct buf b = BUF_INIT;

	template_fill(&b, text, strlen(text), values, 3);
	is_str(b.data, want, "%s", what);
	buf_release(&b);
}

int
main(void)
{
	static const struct template_value nul = { "x", "a\0b", 3 };
	struct buf b = BUF_INIT;

	fills("", "", "an empty template is empty");
	fills("no braces", "no braces", "text without braces stays");
	fills("[{existing}]", "[OLD {events}]", "a value's own braces are not filled again");
	fills("{e}{e}x{e}", "x", "a name is filled each time it stands there, also with nothing");
	fills("{\"json\": {\"a\": 1}} {unknown} {}", "{\"json\": {\"a\": 1}} {unknown} {}", "other braces stay");
	fills("{{e}}", "{}", "a brace around a name stays");
	fills("{existing", "{existing", "a name without its end stays");
	fills("{ e }{E}", "{ e }{E}", "blanks and case count");
	fills("{", "{", "a brace at the end stays");

	template_fill(&b, "<{x}\0{x}>", 9, &nul, 1);
	is_bytes(b.data, b.len, "<a\0b\0a\0b>", 9, "NULs in template and value are kept");
	buf_release(&b);
	return done();
}

/* A key taken out of what a server says, in whatever form and pieces it comes. */
#include "tap.h"

#include "llm/secret.h"

#define KEY "sk-t/est+0123456789abcdef"

static void
hides(void (*hide)(struct buf *, const char *, size_t, const char *), const char *text, const char *want, const char *what)
{
	struct buf out = BUF_INIT;

	hide(&out, text, strlen(text), KEY);
	is_str(out.data, want, "%s", what);
	buf_release(&out);
}

static void
whole(void)
{
	hides(secret_hide, "a " KEY " b " KEY, "a [key] b [key]", "as it is");
	hides(secret_hide, "sk-t%2Fest%2B0123456789abcdef sk-t%2fest%2b0123456789abcdef", "[key] [key]", "percent-encoded");
	hides(secret_hide, "\"sk-t\\/est+0123456789abcdef\"", "\"[key]\"", "as JSON");
	hides(secret_hide, "736b2d742f6573742b30313233343536373839616263646566", "[key]", "in hex");
	hides(secret_hide, "c2stdC9lc3QrMDEyMzQ1Njc4OWFiY2RlZg==", "[key]g==", "in base64");
	hides(secret_hide, "0123456789 sk-t/est", "0123456789 sk-t/est", "a part is not the key");
	hides(secret_hide, "nothing", "nothing", "none");
}

/* x:KEY and xy:KEY, as in a header of basic authorization. */
static void
base64(void)
{
	static const char *const encoded[] = { "eDpzay10L2VzdCswMTIzNDU2Nzg5YWJjZGVm", "eHk6c2stdC9lc3QrMDEyMzQ1Njc4OWFiY2RlZg==",
		"eHl6OnNrLXQvZXN0KzAxMjM0NTY3ODlhYmNkZWY=" };
	struct buf out = BUF_INIT;
	size_t i;

	for (i = 0; i < 3; i++) {
		buf_reset(&out);
		secret_hide(&out, encoded[i], strlen(encoded[i]), KEY);
		ok(strstr(out.data, "[key]") != NULL && out.len < 20, "behind %zu other bytes in base64: %s", i + 2, out.data);
	}
	buf_release(&out);
}

static void
parts(void)
{
	hides(secret_hide_parts, "Incorrect key: sk-t****cdef", "Incorrect key: sk-t****cdef", "what a server masks itself");
	hides(secret_hide_parts, "sk-t/est+01 then 23456789ab", "[key] then [key]", "in pieces");
	hides(secret_hide_parts, "%73%6b-t\\u002fest\\x2b0123\\\"", "[key]\\\"", "each character in its own way");
	hides(secret_hide_parts, "% \\u12 \\x %zz", "% \\u12 \\x %zz", "what is no escape");
	hides(secret_hide_parts, "caf\xc3\xa9", "caf\xc3\xa9", "other characters");
}

/* A local server is given some word, and an answer may be about it. */
static void
words(void)
{
	struct buf out = BUF_INIT;

	secret_hide(&out, "use ollama, or lm-studio", 24, "ollama");
	secret_hide(&out, "", 0, "lm-studio");
	is_str(out.data, "use ollama, or lm-studio", "a word in place of a key is no secret");
	buf_reset(&out);
	secret_hide_parts(&out, "bad key ollama", 14, "ollama");
	is_str(out.data, "bad key [key]", "but not shown in a message");
	buf_release(&out);
}

/* ---- as it comes ---- */

static struct buf given = BUF_INIT;

static int
take(void *arg, const char *text, size_t len, struct err *e)
{
	(void)arg;
	(void)e;
	buf_add(&given, text, len);
	return 0;
}

/* Split at every place, and byte by byte: of the key no more than three bytes are seen. */
static void
streams(void)
{
	static const char text[] = "yes, " KEY " is " KEY "sk-t";
	static const struct llm_sink sink = { take, NULL };
	size_t step, i, bad = 0, lost = 0;

	for (step = 1; step < sizeof(text); step++) {
		struct screen s = { .to = &sink, .secret = KEY, .text = BUF_INIT };

		buf_reset(&given);
		for (i = 0; i < sizeof(text) - 1; i += step) {
			screen_text(&s, text + i, i + step < sizeof(text) ? step : sizeof(text) - 1 - i, NULL);
			screen_flush(&s, false, NULL);
		}
		screen_flush(&s, true, NULL);
		bad += strstr(given.data, "t/est") != NULL || strstr(given.data, "0123") != NULL;
		lost += strncmp(given.data, "yes, ", 5) != 0 || strstr(given.data, " is ") == NULL || given.len < 20 ||
		    strcmp(given.data + given.len - 4, "sk-t") != 0;
		screen_release(&s);
	}
	is_int((long long)bad, 0, "a key in pieces of any size is not given on");
	is_int((long long)lost, 0, "what is around it is");
	is_str(given.data, "yes, [key] is [key]sk-t", "in one piece");
}

/* Each form as it may come in an answer, behind and before other text, in pieces of any size. */
static void
forms_stream(void)
{
	static const char *const forms[] = { "sk-t%2Fest%2B0123456789abcdef", "sk-t\\/est+0123456789abcdef", "736b2d742f6573742b30313233343536373839616263646566",
		"736B2D742F6573742B30313233343536373839616263646566", "c2stdC9lc3QrMDEyMzQ1Njc4OWFiY2RlZg==", "eDpzay10L2VzdCswMTIzNDU2Nzg5YWJjZGVm",
		"eHk6c2stdC9lc3QrMDEyMzQ1Njc4OWFiY2RlZg==" };
	static const struct llm_sink sink = { take, NULL };
	char text[200];
	size_t i, step, at, len, bad = 0;

	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		len = (size_t)snprintf(text, sizeof(text), "yes %s no", forms[i]);
		for (step = 1; step < len; step++) {
			struct screen s = { .to = &sink, .secret = KEY, .text = BUF_INIT };

			buf_reset(&given);
			for (at = 0; at < len; at += step) {
				screen_text(&s, text + at, at + step < len ? step : len - at, NULL);
				screen_flush(&s, false, NULL);
			}
			screen_flush(&s, true, NULL);
			screen_release(&s);
			if ((strstr(given.data, "[key]") == NULL || given.len > 25 || strncmp(given.data, "yes ", 4) != 0 ||
			    strcmp(given.data + given.len - 3, " no") != 0) && bad++ == 0)
				printf("# %s by %zu: %s\n", forms[i], step, given.data);
		}
	}
	is_int((long long)bad, 0, "no form of a key is given on, in pieces of any size");
}

static void
no_delay(void)
{
	static const struct llm_sink sink = { take, NULL };
	struct screen s = { .to = &sink, .secret = KEY, .text = BUF_INIT };

	buf_reset(&given);
	screen_text(&s, "yes", 3, NULL);
	screen_flush(&s, false, NULL);
	is_str(given.data, "yes", "a text that ends as the key begins is not held back");
	screen_text(&s, " sk-t", 5, NULL);
	screen_flush(&s, false, NULL);
	is_str(given.data, "yes ", "more of it is");
	screen_text(&s, "oo", 2, NULL);
	screen_flush(&s, false, NULL);
	is_str(given.data, "yes sk-too", "until it is known to be none");
	screen_text(&s, " sk-t/est+01234567", 18, NULL);
	screen_flush(&s, true, NULL);
	is_str(given.data, "yes sk-too [key]", "most of a key at the end is not given on");
	screen_release(&s);
}

int
main(void)
{
	whole();
	base64();
	parts();
	words();
	streams();
	forms_stream();
	no_delay();
	buf_release(&given);
	return done();
}

#include "llm/quote.h"

#include "base/utf8.h"
#include "event/json.h"
#include "llm/secret.h"

#define QUOTED_MAX 200		/* code points */
#define LOOKED_AT (64 * 1024)	/* bytes */

static bool
blank(char c)
{
	return (unsigned char)c <= ' ' || c == 0x7f;
}

void
quote_text(struct buf *out, const char *bytes, size_t len, const char *secret)
{
	struct buf clean = BUF_INIT, valid = BUF_INIT;
	size_t i = 0, n, count = 0;
	bool gap = false;

	while (len > 0 && blank(*bytes)) {
		bytes++;
		len--;
	}
	/* Before anything is shortened for people, so that no part of a secret is left at the end. */
	secret_hide_parts(&clean, bytes, len < LOOKED_AT ? len : LOOKED_AT, secret);
	utf8_add_valid(&valid, clean.data, clean.len);
	for (; i < valid.len; i += n) {
		n = utf8_decode(valid.data + i, valid.len - i, NULL);
		if (n == 1 && blank(valid.data[i])) {
			gap = count > 0;
			continue;
		}
		if (count++ == QUOTED_MAX) {
			buf_adds(out, "...");
			break;
		}
		if (gap)
			buf_addch(out, ' ');
		gap = false;
		buf_add(out, valid.data + i, n);
	}
	buf_release(&clean);
	buf_release(&valid);
}

struct json_object *
error_body(struct json_object *body)
{
	struct json_object *first = json_count(body) == 1 ? json_object_array_get_idx(body, 0) : NULL;

	return json_get(first, "error") != NULL ? first : body;
}

const char *
error_message(struct json_object *body)
{
	struct json_object *error = json_get(body, "error");
	const char *text = json_get_text(body, "error", NULL);

	if (text == NULL)
		text = json_get_text(error, "message", NULL);
	return text != NULL ? text : json_get_text(body, "message", NULL);
}

/* A word, else of some relays the status as a number. It stands in the error, or where there is none in its place. */
const char *
error_code(struct json_object *body)
{
	struct json_object *error = json_get(body, "error"), *code = json_get(error != NULL ? error : body, "code");
	const char *text = json_get_text(error != NULL ? error : body, "code", NULL);

	if (text == NULL)
		text = json_get_text(error, "type", NULL);
	return text != NULL || !json_object_is_type(code, json_type_int) ? text : json_object_get_string(code);
}

/* What of the request is meant: OpenAI's param, the field of Google's first violation. NULL when it is not said. Borrowed. */
static const char *
error_place(struct json_object *body)
{
	struct json_object *error = json_get(body, "error"), *details = json_get(error, "details"), *violations;
	size_t i, n = json_object_is_type(details, json_type_array) ? json_object_array_length(details) : 0;

	for (i = 0; i < n; i++) {
		violations = json_get(json_object_array_get_idx(details, i), "fieldViolations");
		if (json_object_is_type(violations, json_type_array) && json_object_array_length(violations) > 0)
			return json_get_text(json_object_array_get_idx(violations, 0), "field", NULL);
	}
	return json_get_text(error, "param", NULL);
}

static void
quote_error(struct buf *out, struct json_object *body, const char *message, const char *secret)
{
	const char *place = error_place(body);

	quote_text(out, message, strlen(message), secret);
	if (place == NULL || place[0] == '\0' || strstr(message, place) != NULL)
		return;
	buf_adds(out, " (at ");
	quote_text(out, place, strlen(place), secret);
	buf_adds(out, ")");
}

static bool
web_page(const char *bytes, size_t len)
{
	while (len > 0 && blank(*bytes)) {
		bytes++;
		len--;
	}
	return len > 5 && (strncasecmp(bytes, "<!doc", 5) == 0 || strncasecmp(bytes, "<html", 5) == 0);
}

void
quote_body(struct buf *out, const char *bytes, size_t len, const char *secret)
{
	struct json_object *body = NULL;
	const char *message = NULL;

	if (json_parse(&body, bytes, len, NULL) == 0)
		message = error_message(error_body(body));
	if (message != NULL)
		quote_error(out, error_body(body), message, secret);
	else if (web_page(bytes, len))
		buf_adds(out, "(a web page)");
	else
		quote_text(out, bytes, len, secret);
	json_object_put(body);
}

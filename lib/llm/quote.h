/* What a server said, as it may be quoted in an error message. */
#ifndef AG2_QUOTE_H
#define AG2_QUOTE_H

#include "base/buf.h"

#include <json.h>

/* Appends bytes as one line of at most 200 code points: blanks collapsed, UTF-8 made valid, the secret (may be NULL) taken out. */
void quote_text(struct buf *out, const char *bytes, size_t len, const char *secret);

/* The same for a body that reports an error: only its message when it is JSON that has one, and what it is about, a word for a web page. */
void quote_body(struct buf *out, const char *bytes, size_t len, const char *secret);

/* Of the list of one error that Google answers with, its element; of anything else itself. Borrowed. */
struct json_object *error_body(struct json_object *body);

/* The message and code in {"error": {"message", "code" or "type"}}, {"error": "..."} or {"message"}; NULL when absent. Borrowed. */
const char *error_message(struct json_object *body);
const char *error_code(struct json_object *body);

#endif

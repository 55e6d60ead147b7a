/* Taking a key out of what others say: a server that echoes what it was sent must not get it into a log. */
#ifndef AG2_SECRET_H
#define AG2_SECRET_H

#include "llm/provider.h"

/*
 * What is shorter is a word that stands for a key where none is wanted (`ollama`, `lm-studio`, `not-needed`), and an answer may
 * well have it: it is kept. Messages for people lose it from SECRET_PART on.
 */
#define SECRET_MIN 12
#define SECRET_PART 4

/*
 * Appends bytes with `[key]` for the secret (NULL: none): as it is, in base64 (also as a part of something that is), in hex,
 * percent-encoded, and as JSON may write it. Linear.
 */
void secret_hide(struct buf *out, const char *bytes, size_t len, const char *secret);

/*
 * The same for what is only to be read by people: of the secret eight bytes in a row are enough, and any of its characters may
 * be escaped in any of these ways. For short texts.
 */
void secret_hide_parts(struct buf *out, const char *bytes, size_t len, const char *secret);

/* Text on its way to a sink, without the secret in any of those forms although it comes in pieces. The beginning of one is held back. */
struct screen {
	const struct llm_sink *to;
	const char *secret;	/* NULL: none */
	struct buf text;
	size_t given;		/* so much of it was */
	struct forms *forms;
};
int screen_text(void *arg, const char *text, size_t len, struct err *e);	/* a sink's function: takes text, gives nothing yet */
int screen_flush(struct screen *s, bool last, struct err *e);	/* gives what came; last: all but most of a secret */
void screen_release(struct screen *s);

#endif

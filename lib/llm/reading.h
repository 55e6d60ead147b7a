/*
 * Asking over HTTP and reading the answer: server-sent events, JSON lines, or one JSON object, whichever a server sends. A
 * provider says where to, and takes the frames apart.
 */
#ifndef AG2_READING_H
#define AG2_READING_H

#include "llm/alike.h"
#include "llm/provider.h"
#include "llm/secret.h"
#include "llm/sse.h"

/* Where a request goes. */
struct address {
	struct buf path;		/* behind the base URL: /chat/completions */
	const char *query;		/* alt=sse; NULL: none */
	const char *headers[4];		/* beside the usual ones, NULL behind the last */
	const char *key_header;		/* "Authorization: Bearer " */
};

struct reading;

#define PLAIN_MAX 3

struct api {
	const char *name, *base_url;
	bool keyless;			/* its own base URL is asked without a key, too */
	bool lines;			/* a stream is JSON lines, not server-sent events */
	size_t state;			/* bytes of the provider's own state; 0: it has none */
	const void *initial;		/* what it begins as */
	const char *number;		/* the member of its frames that counts them up; NULL: none */
	bool early_ends;		/* servers are known to tell a reason to finish before anything is said, too: that is none */
	struct alike_members plain[PLAIN_MAX];	/* of the frames that are a piece of text, or of what else comes in pieces, and no more */
	const char *path;		/* of an API that is all at one place, its key a bearer token; else: */
	void (*address)(const struct llm_request *r, struct address *a);
	/*
	 * Takes one frame, an object that is no error: of a stream (event is its name, "" without), or the whole answer. Sets
	 * rd->complete when the provider says with it that the answer is whole. 0 to go on, 1 when nothing more is wanted, -1 with e.
	 */
	int (*frame)(struct reading *rd, const char *event, struct json_object *frame, bool whole, struct err *e);
	/* The end of a complete answer, before the reply is made of rd->answer; NULL: nothing to do. */
	int (*end)(struct reading *rd, struct err *e);
	/*
	 * Whether a complete answer is only the beginning of it, for which the same is to be asked again with what came put behind
	 * the request: 1, and it is, 0, or -1 with e. What state and answer hold stays; NULL: never.
	 */
	int (*resume)(struct reading *rd, struct buf *body, struct err *e);
	void (*release)(void *state);	/* NULL: it owns nothing */
};

struct reading {
	const struct llm_request *r;
	const struct api *api;
	const struct llm_sink *sink;
	struct answer answer;
	void *state;
	bool complete;
	/* private */
	struct screen screen;	/* between the provider and the reader of the text */
	struct llm_sink screened;
	struct sse sse;
	enum { FORM_UNKNOWN, FORM_STREAM, FORM_LINES, FORM_JSON } form;
	struct buf whole;	/* a body that is one JSON value; of a stream its first bytes, to quote */
	struct buf line;	/* of JSON lines: one that is not whole yet */
	bool done;		/* nothing more is wanted */
	bool ending;		/* no more bytes come */
	bool warned;
	bool framed;		/* a frame was taken */
	bool told;		/* so was one of the piece that came last */
	bool ended;		/* the answer was complete before the last frame that was parsed */
	struct alike alike;
	void *state_before;	/* the last frame that was parsed */
	unsigned pieces;	/* in it */
	struct text piece;	/* the last of them, as long as it lives */
	struct buf *piece_to;	/* where it went; NULL: it is text */
	struct buf dropped;	/* where pieces go that nobody wants */
	bool numbered;		/* it has a number */
	int64_t number;		/* of the last one that has */
};

/* Asks it. */
int api_call(const struct api *api, const struct llm_request *r, const struct buf *body, const struct llm_sink *sink,
    struct llm_reply *reply, struct err *e);

/*
 * Reads an answer whose bytes come from elsewhere: next() gives the pieces, 0 behind the last, of a body of this Content-Type.
 * The same as api_call() but for HTTP.
 */
int api_read(const struct api *api, const struct llm_request *r, const char *type, bool (*next)(void *arg, const char **data, size_t *len),
    void *arg, const struct llm_sink *sink, struct llm_reply *reply, struct err *e);

/* For frame(): text for the reader; an error that the server reports within a frame; a frame that cannot be meant. */
int reading_text(struct reading *rd, const char *text, size_t len, struct err *e);
/* A piece of something else, behind what is in `to`; NULL: it is not wanted. A frame that does nothing but that need not be parsed when it comes again. */
void reading_piece(struct reading *rd, struct buf *to, const char *text, size_t len);
/* The same of a call's arguments, in any form (call_add_arguments). */
void reading_arguments(struct reading *rd, struct answer_call *c, struct json_object *value);
int reading_error(const struct reading *rd, struct json_object *body, struct err *e);
int reading_nonsense(const struct reading *rd, const char *why, struct err *e);
/* Replaces a name of the answer (model, finish_reason) by a string member that is there and not empty. */
void take_name(char **at, struct json_object *obj, const char *key);
/* A number, -1 when there is none. The path may have one dot: "details.cached_tokens". */
double take_count(struct json_object *obj, const char *path);
/*
 * The counts of tokens that are there, under these paths; others stay as they are. Without a name for the total (NULL) it
 * is the sum of the first two.
 */
struct usage_names {
	const char *prompt, *completion, *total, *cache_read, *cache_creation, *thinking;
};
void take_usage(struct answer *a, struct json_object *usage, const struct usage_names *names);

#endif

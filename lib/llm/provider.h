/* What a provider is to llm.c, and what providers share. */
#ifndef AG2_PROVIDER_H
#define AG2_PROVIDER_H

#include "llm/llm.h"

/* Where the answer's text goes as it arrives; NULL fn: nowhere. Whole characters only. */
struct llm_sink {
	int (*fn)(void *arg, const char *text, size_t len, struct err *e);
	void *arg;
};
int sink_text(const struct llm_sink *s, const char *text, size_t len, struct err *e);

/* Every provider: provider_ID, its name, the variable its key comes from (NULL: it has no keys), one line for usage texts. */
#define PROVIDER_LIST(row) \
	row(openai, "openai", "OPENAI_API_KEY", "OpenAI Chat Completions, and servers compatible with it (base URL)") \
	row(exec, "exec", NULL, "a command: the stream on stdin, the answer or event lines on stdout")

/* Its place in the list. ERR_USAGE names the nearest, or all. */
int provider_index(const char *name, size_t len, size_t *index, struct err *e);

struct provider {
	bool lines;			/* its body is JSON lines, not one JSON object */
	/* The request as bytes. What a cassette compares. */
	int (*body)(const struct llm_request *r, struct buf *out, struct err *e);
	/* Sends them and fills the reply, which is empty; after an error it holds what llm_reply_release frees. */
	int (*call)(const struct llm_request *r, const struct buf *body, const struct llm_sink *sink, struct llm_reply *reply,
	    struct err *e);
};

#define DECLARE(id, name, key_env, summary) extern const struct provider provider_##id;
PROVIDER_LIST(DECLARE)
#undef DECLARE

/* The time limit that is in force, in seconds. */
double llm_timeout(const struct llm_config *c);

#define ANSWER_MAX (64u << 20)	/* bytes of an answer's text, or of one call's arguments */

/*
 * An answer that comes in pieces, whatever the provider calls them: text, tool calls, usage, and why it ended.
 */
struct answer {
	struct buf text, refusal;
	struct answer_call {
		bool has_index;
		long index;
		char *id, *name;
		struct buf arguments;
	} *calls;
	size_t calls_n, calls_cap;
	struct usage usage;
	bool has_usage;
	char *model, *finish_reason;
};
#define ANSWER_INIT { .text = BUF_INIT_MAX(ANSWER_MAX), .refusal = BUF_INIT_MAX(ANSWER_MAX), .usage = USAGE_NONE }
void answer_release(struct answer *a);
/* Appends text and gives it to the sink. */
int answer_text(struct answer *a, const struct llm_sink *sink, const char *text, size_t len, struct err *e);
/* The call that a piece belongs to: by index (-1: not given), by id (NULL: not given); a new one where neither is known. */
struct answer_call *answer_call(struct answer *a, long index, const char *id, const char *name, struct err *e);
/*
 * Hands over to the reply: ids are made up where there are none, or one came twice; a refusal stands for the text where
 * there is none, with the finish reason "refusal". ERR_UNAVAIL names a call whose arguments are not JSON or that has no name.
 */
int answer_finish(struct answer *a, const char *provider, const char *model, struct llm_reply *reply, struct err *e);

/* Fills a reply from its events, the last of which must be a response. ERR_UNAVAIL when it is not, or calls lack ids or names. */
int reply_from_events(struct llm_reply *reply, const char *model, struct err *e);

/* ---- parts of events, as all providers see them ---- */

struct part {
	enum { PART_TEXT, PART_URL, PART_BINARY, PART_FILE } form;
	const char *type;		/* "UrlInput", for messages */
	const char *kind;		/* of PART_URL and PART_BINARY: image, audio, video, document, binary */
	struct buf text;		/* of PART_TEXT (a DataInput is its JSON); part_release frees it */
	struct json_object *value;	/* the part itself, borrowed */
};
/* ERR_DATA when it is none that is known. */
int part_read(struct part *p, struct json_object *value, struct err *e);
void part_release(struct part *p);
/* ERR_DATA: "UrlInput(video) cannot be sent to openai". */
int part_refuse(const struct part *p, const char *provider, struct err *e);

/* Puts where an event came from before the message. Returns -1. */
int event_wrap(const struct event *ev, struct err *e);

/* A call's arguments as they are sent: as the model wrote them but for lone surrogates; as_ag2: as AG2 writes JSON; {} for none. */
void arguments_add(struct buf *out, const char *text, size_t len, bool as_ag2);

/* All text parts of the last request among the events, joined by newlines: what was asked. */
int last_request(struct buf *out, const struct llm_request *r, struct err *e);

#endif

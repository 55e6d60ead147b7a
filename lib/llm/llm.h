/*
 * Asking a model. A provider is one file and one row in provider.h: it builds a request body from prompts, events and tools,
 * and takes the answer's frames apart. HTTP is in http.c (the only file that knows libcurl), SSE framing in sse.c,
 * cassettes in cassette.c.
 */
#ifndef AG2_LLM_H
#define AG2_LLM_H

#include "event/build.h"
#include "event/event.h"

struct llm_config {
	char *provider, *model;		/* "openai", "gpt-5"; provider "exec": model is the command */
	char *base_url;			/* NULL: the provider's own */
	char *api_key_env;		/* NULL: the provider's own, OPENAI_API_KEY */
	char *api_key_cmd;		/* prints the key as its first line, run by the command that asks; NULL: none */
	char *api_key_file;		/* holds the key in its first line, and is nobody else's to read; NULL: none */
	char *api_key;			/* the value, read by the command from its environment; never printed; NULL when there is none */
	char *cacert;			/* whose certificates to trust, a file or a hashed directory; NULL: whom the system trusts */
	char *cert, *cert_key;		/* files with our certificate and its key; NULL: none, the same one */
	char *cert_pass_env, *cert_pass_cmd, *cert_pass_file;	/* what unlocks that key, as for the API's */
	char *cert_pass;		/* the value, as api_key */
	double temperature;		/* below 0: not sent */
	long max_tokens;		/* 0: not sent */
	double timeout;			/* seconds in all, with what is tried again; 0: 600 */
	double connect_timeout;		/* seconds to connect; 0: 30 */
	double first_byte_timeout;	/* seconds until anything comes; 0: as idle_timeout, all of `timeout` where the answer is no stream */
	double idle_timeout;		/* seconds in which nothing may come; 0: half of `timeout`, at least 300 */
	long retries;			/* how often a call is tried again that failed before it gave anything; 0: 3, below 0: never */
	bool cache;			/* mark what may be cached, where a provider wants to be told */
	char *api_version;		/* of anthropic; NULL: the newest that is known */
	struct json_object *options;	/* further members of the request's body, as the provider names them; NULL: none */
	char *cwd;			/* where exec: runs its command; NULL: where we are */
};
/* "PROVIDER:MODEL" into provider and model. ERR_USAGE naming the providers there are. */
int llm_config_parse(struct llm_config *c, const char *text, struct err *e);
void llm_config_release(struct llm_config *c);
/* The environment variable a provider takes its key from, NULL for one without keys. */
const char *llm_key_env(const struct llm_config *c);
/* "the key is from OPENAI_API_KEY", or what else it comes from; "no key was sent". */
void llm_key_source(const struct llm_config *c, struct buf *out);
bool llm_provider_list(size_t i, const char **name, const char **summary);

struct llm_tool {
	const char *name, *description;
	struct json_object *parameters;	/* JSON Schema */
};

struct llm_request {
	const struct llm_config *config;
	const struct text *prompts;	/* system prompts in order */
	size_t prompts_n;
	/*
	 * Prompts that change often (layout: cache). They go behind what came before: as one `<context>` text block of the
	 * last user turn, before the question and after tool results. llm.c places them among the events, so that a provider's
	 * body() gets events with them in, and none here.
	 */
	const struct text *context;
	size_t context_n;
	struct event *const *events;	/* assembled and sendable */
	size_t events_n;
	/*
	 * Of a provider's body(): the first so many events come again unchanged in the next call, until a window moves its
	 * cut; where a cache can be told how far it may go, it is to there.
	 */
	size_t stable_n;
	struct origins *origins;	/* of a provider's body(): is told whose part of it is written, see origin.h; NULL: nobody asks */
	const struct llm_tool *tools;
	size_t tools_n;
	struct json_object *schema;	/* JSON Schema that the answer must fit; NULL: none */
	bool stream;
	bool as_ag2;			/* messages exactly as AG2 maps them */
	const char *const *env;		/* for exec: */
};

struct llm_reply {
	char *message;			/* NULL: none */
	size_t message_len;
	struct call *calls;		/* ids are made up, unique, where the provider gave none */
	size_t calls_n;
	struct usage usage;
	bool has_usage;
	char *model, *provider, *finish_reason;
	struct json_object *files;	/* an array of what build_file() makes; NULL: none */
	struct event_list replay;	/* the provider's own events, which come before the response: reasoning items, its tools' calls */
	struct event_list events;	/* exec: what it wrote as event lines instead, in order; the last is a response */
};
void llm_reply_release(struct llm_reply *r);

/* What a provider's finish_reason (NULL: none) says of the answer: it is whole, was cut at a limit, was filtered or refused. */
enum llm_end { LLM_END_WHOLE, LLM_END_CUT, LLM_END_REFUSED };
enum llm_end llm_end_of(const char *finish_reason);

/* The HTTP request's body as it would be sent (ag2-ask -n). ERR_DATA names a part that the provider cannot take. */
int llm_body(const struct llm_request *r, struct buf *out, struct err *e);

/* What the messages of that body were made of: events, by their places in r->events. No messages for exec:. */
struct llm_origins {
	size_t *events;			/* r->events_n: the context, where it is a message of its own */
	size_t *ends;			/* of message i are events[ends[i - 1]] to events[ends[i] - 1], in order; none: it is the prompts */
	size_t n;			/* messages */
	size_t events_n, events_cap, ends_cap;
};
int llm_origins(const struct llm_request *r, struct llm_origins *o, struct err *e);
void llm_origins_release(struct llm_origins *o);
/* A message's, for a person: `line 3, ModelRequest`, `lines 4-5, ToolResultEvent; line 7, ModelRequest`, `the prompts`. */
void llm_origin_text(struct buf *out, const struct llm_request *r, const struct llm_origins *o, size_t message);

/* Whether anything of each of r->events is in that body: sent has r->events_n entries. What no model is sent is no error. */
int llm_sent(const struct llm_request *r, bool *sent, struct err *e);

/* Record or replay every call; NULL paths: neither. Both set is ERR_USAGE. Kept for the process; the strings are borrowed. */
int llm_cassette(const char *record, const char *replay, struct err *e);

/*
 * Calls the model. on_text (may be NULL) gets the answer's text as it arrives, in whole characters; with `stream` off, and where
 * a server does not stream, all of it once it is known to be good. Non-zero from it ends the call (-1, e set by it). The
 * reply, which need not be initialised, is only filled when the provider said that it is complete, whatever the reason:
 * finish_reason "length" and "content_filter" are answers too, "refusal" one whose text is the model's refusal; its
 * message is NULL when there is no text.
 *
 * ERR_UNAVAIL: not reachable, refused, cut short, nonsense, interrupted; ERR_BUSY: told to come back (429 unless a quota is used
 * up, 503, 529); ERR_PERM: no key, or the key was refused (401, 403); ERR_CONFIG: a base URL or key that cannot be used; ERR_DATA:
 * something in the request cannot be sent. Messages are one line, quote a short excerpt of the server's own message, and
 * never hold the key.
 */
int llm_call(const struct llm_request *r, int (*on_text)(void *arg, const char *text, size_t len, struct err *e), void *arg,
    struct llm_reply *reply, struct err *e);

#endif

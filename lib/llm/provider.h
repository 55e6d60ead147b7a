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
	row(openai_responses, "openai-responses", "OPENAI_API_KEY", "OpenAI Responses") \
	row(anthropic, "anthropic", "ANTHROPIC_API_KEY", "Anthropic Messages") \
	row(gemini, "gemini", "GEMINI_API_KEY", "Google Gemini") \
	row(ollama, "ollama", "OLLAMA_API_KEY", "Ollama, on this host unless there is a base URL; it needs no key") \
	row(exec, "exec", NULL, "a command: the stream on stdin, the answer or event lines on stdout")

/* Its place in the list. ERR_USAGE names the nearest, or all. */
int provider_index(const char *name, size_t len, size_t *index, struct err *e);

struct provider {
	/* The request as bytes. What a cassette compares. */
	int (*body)(const struct llm_request *r, struct buf *out, struct err *e);
	bool lines;			/* they are JSON lines, not one JSON object */
	/* One that is asked over HTTP: how it takes an answer's frames, see reading.h. */
	const struct api *api;
	/* Any other (api NULL): sends them and fills the reply, which is empty; after an error it holds what llm_reply_release frees. */
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
	bool half;		/* the last piece of text ended in one, which is kept back */
	char half_bytes[3];
	struct answer_call {
		bool has_index;
		long index;
		char *id, *name;
		struct buf arguments;
		char *vendor_metadata, *signature;	/* as in struct call */
	} *calls;
	size_t calls_n, calls_cap;
	struct json_object *files;	/* as in struct llm_reply */
	size_t files_size;
	struct event_list replay;	/* as in struct llm_reply */
	struct usage usage;
	bool has_usage;
	char *model, *finish_reason;
};
#define ANSWER_INIT { .text = BUF_INIT_MAX(ANSWER_MAX), .refusal = BUF_INIT_MAX(ANSWER_MAX), .usage = USAGE_NONE }
void answer_release(struct answer *a);
/* Appends text and gives it to the sink. Of a character whose halves are in two pieces, the first waits for the second. */
int answer_text(struct answer *a, const struct llm_sink *sink, const char *text, size_t len, struct err *e);
/* There is no more of it. */
int answer_end_text(struct answer *a, const struct llm_sink *sink, struct err *e);
/* Makes what came in pieces valid: halves of a pair that stand together are its character (see utf8.h). */
void join_halves(struct buf *b);
/* The call that a piece belongs to: by index (-1: not given), by id (NULL: not given); a new one where neither is known. */
struct answer_call *answer_call(struct answer *a, long index, const char *id, const char *name, struct err *e);
/* One that comes whole, an object with a name, an id and arguments under these names. */
struct answer_call *answer_whole_call(struct answer *a, struct json_object *call, const char *id, const char *arguments, struct err *e);
/* Arguments that come as JSON text, or as what it says; NULL: nothing. */
void call_add_arguments(struct answer_call *c, struct json_object *value);
int answer_make_id(char **id, struct err *e);	/* replaces it by one that is unique */
/* A file: its bytes in base64, an object that is taken over. ERR_UNAVAIL when all of them are too much. */
int answer_file(struct answer *a, const char *base64, size_t len, struct json_object *metadata, struct err *e);
/* An event of the provider's own that comes before the response: one line, made by build.h. The buffer is empty afterwards. */
void answer_replay(struct answer *a, struct buf *line);
/*
 * Hands over to the reply: ids are made up where there are none, or one came twice; a refusal stands for the text where
 * there is none, with the finish reason "refusal". ERR_UNAVAIL names a call whose arguments are not JSON or that has no name.
 */
int answer_finish(struct answer *a, const char *provider, const char *model, struct llm_reply *reply, struct err *e);

/* Whatever its case; NULL behind the last. */
bool is_one_of(const char *word, const char *const *words);

/* Fills a reply from its events, the last of which must be a response. ERR_UNAVAIL when it is not, or calls lack ids or names. */
int reply_from_events(struct llm_reply *reply, const char *model, struct err *e);

/* ---- writing requests ---- */

/* A comma, unless an object or a list begins. What writes members puts it first. */
void put_comma(struct buf *out);
void put_name(struct buf *out, const char *name);		/* "name": */
void put_string(struct buf *out, const char *text, size_t len);	/* a JSON string; NULL is "" */
void put_member(struct buf *out, const char *name, const char *text, size_t len);	/* "name":"text" */
void put_member_str(struct buf *out, const char *name, const char *text);
void put_member_of(struct buf *out, const char *name, struct json_object *obj, const char *key);	/* what obj has under key, "" for nothing */
/* A message that is an object with a role: begun, and a whole one that is a text. */
void put_message(struct buf *out, const char *role);
void put_text_message(struct buf *out, const char *role, const char *text, size_t len);
/* A value without its members that are null, at any depth: clients' objects are logged with them. */
void put_sparse(struct buf *out, struct json_object *value);
/* All prompts in one, joined by newlines. */
void put_prompts(struct buf *out, const struct llm_request *r);

/*
 * Settings of a body: a JSON object of the provider's own, into which the configured options are merged member by member.
 * A value at a path such as generationConfig.temperature.
 */
void setting_add(struct json_object *settings, const char *path, struct json_object *value);
/* Temperature and limit of tokens under their names; none when they are not set. */
void settings_usual(struct json_object *settings, const struct llm_request *r, const char *temperature, const char *max_tokens);
/*
 * Merges the options (but `tools`), appends ,"name":value for each member, and frees the settings. ERR_CONFIG: an option is
 * one of `mine` (NULL behind the last), which are made from the stream.
 */
int put_settings(struct buf *out, struct json_object *settings, const struct llm_request *r, const char *const *mine, struct err *e);
/* "name", "description" and the schema under its name: always of an object with properties, which APIs insist on. */
void put_declaration(struct buf *out, const struct llm_tool *t, const char *schema_name);
/* The schema was just written: shuts out arguments beyond its properties, unless it speaks of them. */
void put_no_more_arguments(struct buf *out, struct json_object *schema);
#define SCHEMA_NAME "answer"	/* where an API wants the schema of the answer to have a name */
/*
 * The schema of the answer, a copy that is the caller's to be shaped as an API wants it. What says of an object nothing else is closed:
 * it has no members but its properties.
 */
struct json_object *shape_copy(const struct llm_request *r);
void shape_close(struct json_object *schema);
void shape_drop(struct json_object *schema, const char *const *keywords);	/* at any depth; NULL behind the last */
/* "json_schema", the name, the schema and whether it is strict, under paths that begin so; OpenAI's two APIs. */
void shape_openai(struct json_object *settings, const struct llm_request *r, const char *type, const char *schema);
/* "tools": ours as declare() writes each of them, then those of the options; nothing where there are none. */
void put_tools(struct buf *out, const struct llm_request *r, void (*declare)(struct buf *out, const struct llm_request *r, const struct llm_tool *t));
void put_option_tools(struct buf *out, const struct llm_request *r);	/* only the latter, in a list that is begun */

/* ---- a history, as all providers see it ---- */

/*
 * What a provider makes of a history, in its order. Every result comes once, from the container of its round; where it is in
 * none, with those that stand next to it. replay and stable_end may be NULL.
 */
struct walk {
	int (*request)(void *b, struct json_object *parts, struct err *e);	/* parts: an array or NULL */
	int (*response)(void *b, struct json_object *data, struct err *e);
	int (*result)(void *b, struct json_object *result, struct err *e);	/* one after the other; or those of a round: */
	int (*results)(void *b, struct json_object *const *results, size_t n, struct err *e);
	int (*summary)(void *b, const char *text, size_t len, struct err *e);	/* with its heading */
	/* A provider's own event. 1: it is written with the next response. */
	int (*replay)(void *b, const struct event_type *type, struct json_object *data, struct err *e);
	void (*stable_end)(void *b);		/* here ends what comes again in the next call (stable_n) */
	bool ag2_takes_loose;	/* as_ag2: results that are in no container are sent, too */
};
int walk_history(const struct llm_request *r, const struct walk *w, void *b, struct err *e);

/* Nothing but white space: some servers refuse a text like that. The byte behind it is a NUL. */
bool is_blank(const char *text, size_t len);
/* Of a response: its text (NULL: none, or blank; as_ag2 those count), its calls (NULL and n 0: none). Of a result: its parts. */
const char *response_text(struct json_object *data, bool as_ag2, size_t *len);
struct json_object *response_calls(struct json_object *data, size_t *n);
struct json_object *result_parts(struct json_object *result);
bool result_failed(struct json_object *result);
/* No text in any of them, or blank. A model that sees nothing as a result takes it for a failure; some servers refuse it. */
bool says_nothing(struct json_object *parts);
#define NO_OUTPUT "(no output)"
/* What a call's arguments say, {} for none; NULL when they are not JSON. The caller's. */
struct json_object *call_arguments(struct json_object *call);
/* They as a value: what is no object becomes {"value": ...}, what is no JSON its text, for APIs take only objects; as_ag2: as it is. */
void put_arguments(struct buf *out, struct json_object *call, bool as_ag2);
/* They as text, under this name: as the model wrote them but for lone surrogates; as_ag2: as AG2 writes JSON; {} for none. */
void put_arguments_text(struct buf *out, const char *name, struct json_object *call, bool as_ag2);
/* "tool_calls": what one() writes of each; nothing where there are none. */
void put_tool_calls(struct buf *out, struct json_object *calls, void (*one)(struct buf *out, struct json_object *call, bool as_ag2), bool as_ag2);

/* ---- parts of events, as all providers see them ---- */

struct part {
	enum { PART_TEXT, PART_URL, PART_BINARY, PART_FILE } form;
	const char *type;		/* "UrlInput", for messages */
	const char *kind;		/* of PART_URL and PART_BINARY: image, audio, video, document, binary */
	bool as_ag2;			/* only what the part itself says counts, as in AG2 */
	struct buf text;		/* of PART_TEXT (a DataInput is its JSON); part_release frees it */
	struct json_object *value;	/* the part itself, borrowed */
};
/* ERR_DATA when it is none that is known. */
int part_read(struct part *p, struct json_object *value, bool as_ag2, struct err *e);
void part_release(struct part *p);
/* ERR_DATA: "UrlInput(video) cannot be sent to openai". */
int part_refuse(const struct part *p, const char *provider, struct err *e);

/* Each of them, without blank texts where there is anything else (but as_ag2); not 0 from fn ends it. parts that are no array are none. */
int each_part(const struct llm_request *r, struct json_object *parts, int (*fn)(void *arg, struct part *p, struct err *e), void *arg, struct err *e);

/*
 * What a message or a result holds: the list of what item() writes of each part; one text alone is a string, but in
 * CONTENT_LIST. With CONTENT_OF_TEXT documents that are text are texts (part_as_text).
 */
enum content_form { CONTENT_LIST, CONTENT_PLAIN, CONTENT_OF_TEXT };
typedef int put_part(const void *arg, struct buf *out, const struct part *p, struct err *e);
int put_content(struct buf *out, const struct llm_request *r, struct json_object *parts, enum content_form form, put_part *item, const void *arg, struct err *e);

/* By its kind; of a file that the provider keeps by its name. */
bool part_is_image(const struct part *p);

/* For APIs that take no documents: one that is text becomes that text, below the file's name. Any other part stays as it is. */
void part_as_text(struct part *p);

/* A string member of a part, "" when absent. Its bytes in base64. Its media type's second half: svg+xml is svg. */
const char *part_member(const struct part *p, const char *key);
const char *part_base64(const struct part *p);
void part_decode(const struct part *p, struct buf *out);	/* the bytes themselves */
struct text part_suffix(const struct part *p);
/* Where it is: its URL, or its bytes as data:image/png;base64,... */
void put_part_url(struct buf *out, const char *name, const struct part *p);
void put_filename(struct buf *out, const struct part *p);	/* "filename": its own, else file.SUFFIX */

/* Puts where an event came from before the message. Returns -1. */
int event_wrap(const struct event *ev, struct err *e);

/* All text parts of the last request among the events, joined by newlines: what was asked. */
int last_request(struct buf *out, const struct llm_request *r, struct err *e);

#endif

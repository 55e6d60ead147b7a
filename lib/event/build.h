/*
 * Making new event lines, exactly as AG2's EventLogWriter spells them: Python's JSON style, defaulted fields first
 * (base class first), then given ones. Each function appends one record without newline. Times come from clock_now(),
 * one call for each created_at, in the order AG2 constructs them (parts before their container).
 */
#ifndef AG2_EVENT_BUILD_H
#define AG2_EVENT_BUILD_H

#include "event/event.h"

struct text {			/* borrowed bytes */
	const char *data;
	size_t len;
};

struct media {			/* a file in a request; the strings are borrowed */
	const char *media_type;
	const char *kind;	/* image, audio, video, document, binary */
	const char *filename;	/* NULL: none */
	struct text data;	/* the bytes themselves */
};

struct usage {			/* tokens; below 0 is not known and written as null */
	double prompt, completion, total, cache_read, cache_creation, thinking;
};
#define USAGE_NONE { -1, -1, -1, -1, -1, -1 }

/* The counts of an event's usage (its "data"), of which whatever is no number, or below 0, is not known; NULL: none is. */
struct usage usage_of(struct json_object *counts);
bool usage_known(const struct usage *u);	/* of what was sent, of the answer, or of both */
void usage_add(struct usage *sum, const struct usage *u);		/* what is known of u; a sum begins as USAGE_NONE */

struct call {			/* one tool call of a response; the strings belong to whoever holds it */
	char *id, *name, *arguments;	/* arguments: JSON text as the model wrote it */
	char *vendor_metadata;		/* JSON text of an object; NULL: {} */
	char *signature;		/* base64: a thought signature, which makes it a GeminiToolCallEvent; NULL: none */
};

struct provider_item {			/* what a provider wants back as it was: in AG2 an object of its client's classes */
	const char *field;		/* "item" */
	const char *class;		/* "openai.types.responses.response_reasoning_item.ResponseReasoningItem" */
	struct json_object *value;
};

/* at_end: "place": "end", see ag2-ask(1) on layouts. */
void build_prompt(struct buf *out, struct text content, const char *source, bool at_end);
bool prompt_at_end(struct json_object *data);	/* what the data of a Prompt line says of its place */
void build_request(struct buf *out, const struct text *parts, size_t n);
/* The same with files behind the texts. */
void build_media_request(struct buf *out, const struct text *texts, size_t texts_n, const struct media *media, size_t media_n);
/* What a response holds; what is NULL is not there. */
struct response {
	const struct text *message;
	const struct call *calls;
	size_t calls_n;
	const struct usage *usage;
	const char *model, *provider, *finish_reason;
	struct json_object *files;	/* an array of build_file() */
};
/*
 * With usage (USAGE_NONE where the server sent none), model, provider or finish_reason, or calls: a client's response.
 * With none of them: one that stands in for a model's, such as "HALTED: reason".
 */
void build_response(struct buf *out, const struct response *r);
/* A file that a model made, a BinaryResult: its bytes in any base64, an object that is taken over with its media_type. */
struct json_object *build_file(const char *base64, size_t len, struct json_object *metadata);
void build_usage(struct buf *out, const struct usage *usage, const char *kind, const char *model, const char *provider,
    const char *finish_reason);
void build_calls(struct buf *out, const struct call *calls, size_t n);		/* ToolCallsEvent */
void build_call(struct buf *out, const struct call *call);			/* ToolCallEvent */

/* Results are built as records (type and data) first, since a container repeats them; json_object_put them. */
struct json_object *build_result(const struct call *call, struct text result);			/* ToolResultEvent */
struct json_object *build_error_result(const struct call *call, const char *exception, struct text message);	/* ToolErrorEvent */
struct json_object *build_not_found(const struct call *call);					/* ToolNotFoundEvent */

/* Events of a provider's own: a reasoning item, and the calls and results of tools that run on its side. type: "OpenAIServerToolCallEvent". */
void build_reasoning(struct buf *out, const struct provider_item *item, struct text content);
void build_server_call(struct buf *out, const char *type, const struct call *call, const struct provider_item *item);
/* What it was is told by call's id and name; content NULL: no parts; item NULL: none. */
void build_server_result(struct buf *out, const char *type, const struct call *call, const struct text *content,
    const struct provider_item *item);

void build_record(struct buf *out, struct json_object *record);					/* one of the above as a line */
void build_results(struct buf *out, struct json_object *const *records, size_t n);		/* ToolResultsEvent */
/* The same one by one: a record as it stands in the container's list, and the container made of the list, whose elements ", " separates. */
void build_listed(struct buf *list, struct json_object *record);
void build_container(struct buf *list);

void build_alert(struct buf *out, const char *severity, const char *source, struct text message);
/* alerts: the ObserverAlert events listed in it, in order. */
int build_halt(struct buf *out, struct text reason, struct text source, struct event *const *alerts, size_t n, struct err *e);
void build_summary(struct buf *out, struct text summary, uint64_t event_count);

/*
 * Lifecycle events, which are told on a descriptor and never written to a log. `what` is "Compaction" or "Aggregation";
 * usage NULL or without any count is written as AG2 writes that nothing is known.
 */
void build_started(struct buf *out, const char *what, const char *agent, const char *strategy, uint64_t events);
void build_compacted(struct buf *out, const char *agent, const char *strategy, uint64_t before, uint64_t after, uint64_t calls,
    const struct usage *usage);
void build_aggregated(struct buf *out, const char *agent, const char *strategy, uint64_t events, uint64_t calls,
    const struct usage *usage);
void build_failed(struct buf *out, const char *what, const char *agent, const char *strategy, const char *error_type,
    const char *error);
void build_log_failed(struct buf *out, const char *agent, const char *error_type, const char *error);

#endif

#include "event/build.h"

#include "base/base64.h"
#include "base/clock.h"

#include <stdio.h>
#include <string.h>

/*
 * AG2 writes the fields that took their default first, in the order of their declaration, then those that were given, in
 * the order of the call that made the event; what stands in which group here is what its agents and clients do.
 */

static struct text
text_of(const char *s)
{
	return (struct text){ s, strlen(s) };
}

static void
add_text(struct buf *out, struct text t)
{
	json_write_string(out, t.data, t.len, JSON_PYTHON);
}

static void
add_string(struct buf *out, const char *s)
{
	if (s != NULL)
		add_text(out, text_of(s));
	else
		buf_adds(out, "null");
}

static void
open_record(struct buf *out, const char *type, double created_at)
{
	buf_adds(out, "{\"type\": ");
	add_string(out, event_type_find(type, strlen(type))->name);
	buf_adds(out, ", \"data\": {\"created_at\": ");
	json_write_double(out, created_at);
}

/* An event inside an event. */
static void
open_nested(struct buf *out, const char *type, double created_at)
{
	buf_adds(out, "{\"__event__\": ");
	add_string(out, event_type_find(type, strlen(type))->name);
	buf_adds(out, ", \"created_at\": ");
	json_write_double(out, created_at);
}

void
build_prompt(struct buf *out, struct text content, const char *source, bool at_end)
{
	buf_adds(out, "{\"type\": \"Prompt\", \"data\": {\"content\": ");
	add_text(out, content);
	if (source != NULL) {
		buf_adds(out, ", \"source\": ");
		add_string(out, source);
	}
	if (at_end)
		buf_adds(out, ", \"place\": \"end\"");
	buf_adds(out, "}}");
}

bool
prompt_at_end(struct json_object *data)
{
	const char *place = json_get_text(data, "place", NULL);

	return place != NULL && strcmp(place, "end") == 0;
}

/* A field that may have been given: written when its group's turn comes. */
static void
add_optional(struct buf *out, const char *name, const char *value, bool given)
{
	if ((value != NULL) != given)
		return;
	buf_addf(out, ", \"%s\": ", name);
	add_string(out, value);
}

static void
add_text_part(struct buf *out, struct text t)
{
	open_nested(out, "TextInput", clock_now());
	buf_adds(out, ", \"metadata\": {}, \"content\": ");
	add_text(out, t);
	buf_adds(out, "}");
}

static void
add_media_part(struct buf *out, const struct media *m)
{
	bool plain = strcmp(m->kind, "binary") == 0;

	open_nested(out, "BinaryInput", clock_now());
	buf_adds(out, ", \"metadata\": {}");
	if (m->filename == NULL)
		buf_adds(out, ", \"vendor_metadata\": {}");
	if (!plain)
		add_optional(out, "media_type", m->media_type, true);
	if (m->filename != NULL) {
		buf_adds(out, ", \"vendor_metadata\": {\"filename\": ");
		add_string(out, m->filename);
		buf_adds(out, "}");
	}
	buf_adds(out, ", \"kind\": {\"__enum__\": \"ag2.events.input_events.BinaryType\", \"value\": ");
	add_string(out, m->kind);
	buf_adds(out, "}");
	if (plain)
		add_optional(out, "media_type", m->media_type, true);
	buf_adds(out, ", \"data\": {\"__bytes__\": \"");
	base64_encode(out, m->data.data, m->data.len);
	buf_adds(out, "\"}}");
}

void
build_media_request(struct buf *out, const struct text *texts, size_t texts_n, const struct media *media, size_t media_n)
{
	struct buf nested = BUF_INIT;
	size_t i;

	for (i = 0; i < texts_n + media_n; i++) {
		if (i > 0)
			buf_adds(&nested, ", ");
		if (i < texts_n)
			add_text_part(&nested, texts[i]);
		else
			add_media_part(&nested, &media[i - texts_n]);
	}
	open_record(out, "ModelRequest", clock_now());
	buf_adds(out, ", \"parts\": [");
	buf_add(out, nested.data, nested.len);
	buf_adds(out, "]}}");
	buf_release(&nested);
}

void
build_request(struct buf *out, const struct text *parts, size_t n)
{
	build_media_request(out, parts, n, NULL, 0);
}

/* A count is an integer where it is one: providers send integers, and AG2 keeps them so. */
static void
add_count(struct buf *out, const char *name, double count, bool first)
{
	buf_addf(out, "%s\"%s\": ", first ? "" : ", ", name);
	if (count < 0)
		buf_adds(out, "null");
	else if (count < 9007199254740992.0 && (double)(int64_t)count == count)
		buf_addf(out, "%lld", (long long)count);
	else
		json_write_double(out, count);
}

static double
count_of(struct json_object *counts, const char *name)
{
	struct json_object *n = json_get(counts, name);

	return (json_object_is_type(n, json_type_int) || json_object_is_type(n, json_type_double)) && json_object_get_double(n) >= 0 ?
	    json_object_get_double(n) : -1;
}

struct usage
usage_of(struct json_object *counts)
{
	return (struct usage){ count_of(counts, "prompt_tokens"), count_of(counts, "completion_tokens"), count_of(counts, "total_tokens"),
		count_of(counts, "cache_read_input_tokens"), count_of(counts, "cache_creation_input_tokens"),
		count_of(counts, "thinking_tokens") };
}

bool
usage_known(const struct usage *u)
{
	return u->prompt >= 0 || u->completion >= 0 || u->total >= 0;
}

static void
sum_up(double *sum, double n)
{
	if (n >= 0)
		*sum = (*sum < 0 ? 0 : *sum) + n;
}

void
usage_add(struct usage *sum, const struct usage *u)
{
	sum_up(&sum->prompt, u->prompt);
	sum_up(&sum->completion, u->completion);
	sum_up(&sum->total, u->total);
	sum_up(&sum->cache_read, u->cache_read);
	sum_up(&sum->cache_creation, u->cache_creation);
	sum_up(&sum->thinking, u->thinking);
}

static void
add_usage(struct buf *out, const struct usage *usage)
{
	static const struct usage none = USAGE_NONE;
	const struct usage *u = usage != NULL ? usage : &none;

	buf_adds(out, ", \"usage\": {\"__dataclass__\": \"ag2.events.types.Usage\", \"data\": {");
	add_count(out, "prompt_tokens", u->prompt, true);
	add_count(out, "completion_tokens", u->completion, false);
	add_count(out, "total_tokens", u->total, false);
	add_count(out, "cache_read_input_tokens", u->cache_read, false);
	add_count(out, "cache_creation_input_tokens", u->cache_creation, false);
	add_count(out, "thinking_tokens", u->thinking, false);
	buf_adds(out, "}}");
}

static void
add_call_fields(struct buf *out, const struct call *call)
{
	if (call->vendor_metadata == NULL)
		buf_adds(out, ", \"vendor_metadata\": {}");
	buf_adds(out, ", \"id\": ");
	add_string(out, call->id);
	buf_adds(out, ", \"name\": ");
	add_string(out, call->name);
	buf_adds(out, ", \"arguments\": ");
	add_string(out, call->arguments);
	if (call->vendor_metadata != NULL)
		buf_addf(out, ", \"vendor_metadata\": %s", call->vendor_metadata);
	if (call->signature != NULL) {
		buf_adds(out, ", \"thought_signature\": {\"__bytes__\": ");
		add_string(out, call->signature);
		buf_adds(out, "}");
	}
}

static const char *
call_type(const struct call *call)
{
	return call->signature != NULL ? "GeminiToolCallEvent" : "ToolCallEvent";
}

/* The calls of a container, without its brackets. */
static void
add_calls(struct buf *out, const struct call *calls, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (i > 0)
			buf_adds(out, ", ");
		open_nested(out, call_type(&calls[i]), clock_now());
		add_call_fields(out, &calls[i]);
		buf_adds(out, "}");
	}
}

static void
add_tool_calls(struct buf *out, const struct buf *calls, double created_at)
{
	buf_adds(out, ", \"tool_calls\": ");
	open_nested(out, "ToolCallsEvent", created_at);
	buf_adds(out, ", \"calls\": [");
	buf_add(out, calls->data, calls->len);
	buf_adds(out, "]}");
}

struct json_object *
build_file(const char *base64, size_t len, struct json_object *metadata)
{
	struct json_object *file = json_object_new_object(), *data = json_object_new_object(), *bytes = json_object_new_object();
	struct buf raw = BUF_INIT, text = BUF_INIT;

	base64_decode(&raw, base64, len);
	base64_encode(&text, raw.data, raw.len);
	json_object_object_add(bytes, "__bytes__", json_object_new_string_len(text.data, (int)text.len));
	json_object_object_add(data, "data", bytes);
	json_object_object_add(data, "metadata", metadata);
	json_object_object_add(file, "__dataclass__", json_object_new_string("ag2.events.types.BinaryResult"));
	json_object_object_add(file, "data", data);
	buf_release(&raw);
	buf_release(&text);
	return file;
}

static void
add_message(struct buf *out, const struct text *message, double created_at)
{
	buf_adds(out, ", \"message\": ");
	if (message == NULL) {
		buf_adds(out, "null");
		return;
	}
	open_nested(out, "ModelMessage", created_at);
	buf_adds(out, ", \"metadata\": {}, \"content\": ");
	add_text(out, *message);
	buf_adds(out, "}");
}

void
build_response(struct buf *out, const struct response *r)
{
	struct buf nested = BUF_INIT;
	bool called = r->calls_n > 0 || r->usage != NULL || r->model != NULL || r->provider != NULL || r->finish_reason != NULL;
	double message_at = r->message != NULL ? clock_now() : 0, calls_at = 0, created_at;

	add_calls(&nested, r->calls, r->calls_n);
	if (called)
		calls_at = clock_now();
	created_at = clock_now();
	if (!called)
		calls_at = clock_now();
	open_record(out, "ModelResponse", created_at);
	if (!called)
		add_tool_calls(out, &nested, calls_at);
	if (r->usage == NULL)
		add_usage(out, NULL);
	buf_adds(out, ", \"response_force\": false");
	if (r->files == NULL)
		buf_adds(out, ", \"files\": []");
	add_optional(out, "model", r->model, false);
	add_optional(out, "provider", r->provider, false);
	add_optional(out, "finish_reason", r->finish_reason, false);
	if (called)
		add_tool_calls(out, &nested, calls_at);
	if (r->usage != NULL)
		add_usage(out, r->usage);
	add_optional(out, "model", r->model, true);
	add_optional(out, "provider", r->provider, true);
	add_optional(out, "finish_reason", r->finish_reason, true);
	if (r->files != NULL) {
		buf_adds(out, ", \"files\": ");
		json_write(out, r->files, JSON_PYTHON);
	}
	add_message(out, r->message, message_at);
	buf_adds(out, "}}");
	buf_release(&nested);
}

void
build_usage(struct buf *out, const struct usage *usage, const char *kind, const char *model, const char *provider,
    const char *finish_reason)
{
	open_record(out, "UsageEvent", clock_now());
	add_optional(out, "model", model, false);
	add_optional(out, "provider", provider, false);
	add_optional(out, "finish_reason", finish_reason, false);
	buf_adds(out, ", \"label\": null, \"kind\": ");
	add_string(out, kind);
	add_optional(out, "model", model, true);
	add_optional(out, "provider", provider, true);
	add_optional(out, "finish_reason", finish_reason, true);
	add_usage(out, usage);
	buf_adds(out, "}}");
}

void
build_calls(struct buf *out, const struct call *calls, size_t n)
{
	struct buf nested = BUF_INIT;

	add_calls(&nested, calls, n);
	open_record(out, "ToolCallsEvent", clock_now());
	buf_adds(out, ", \"calls\": [");
	buf_add(out, nested.data, nested.len);
	buf_adds(out, "]}}");
	buf_release(&nested);
}

void
build_call(struct buf *out, const struct call *call)
{
	open_record(out, call_type(call), clock_now());
	add_call_fields(out, call);
	buf_adds(out, "}}");
}

static void
add_item(struct buf *out, const struct provider_item *item)
{
	buf_addf(out, ", \"%s\": {\"__pydantic__\": ", item->field);
	add_string(out, item->class);
	buf_adds(out, ", \"data\": ");
	json_write(out, item->value, JSON_PYTHON);
	buf_adds(out, "}");
}

void
build_reasoning(struct buf *out, const struct provider_item *item, struct text content)
{
	open_record(out, "OpenAIReasoningEvent", clock_now());
	add_item(out, item);
	buf_adds(out, ", \"content\": ");
	add_text(out, content);
	buf_adds(out, "}}");
}

void
build_server_call(struct buf *out, const char *type, const struct call *call, const struct provider_item *item)
{
	open_record(out, type, clock_now());
	add_call_fields(out, call);
	add_item(out, item);
	buf_adds(out, "}}");
}

void
build_server_result(struct buf *out, const char *type, const struct call *call, const struct text *content,
    const struct provider_item *item)
{
	double part_at = content != NULL ? clock_now() : 0;

	open_record(out, type, clock_now());
	buf_adds(out, ", \"parent_id\": ");
	add_string(out, call->id);
	buf_adds(out, ", \"name\": ");
	add_string(out, call->name);
	buf_adds(out, ", \"result\": {\"__dataclass__\": \"ag2.events.tool_events.ToolResult\", \"data\": {\"parts\": [");
	if (content != NULL) {
		open_nested(out, "TextInput", part_at);
		buf_adds(out, ", \"metadata\": {}, \"content\": ");
		add_text(out, *content);
		buf_adds(out, "}");
	}
	buf_adds(out, "], \"final\": false, \"metadata\": {}}}");
	if (item != NULL)
		add_item(out, item);
	buf_adds(out, "}}");
}

static struct json_object *
string_object(const char *s)
{
	return s != NULL ? json_object_new_string(s) : NULL;
}

/* {"type": ..., "data": {...}} with created_at, parent_id and name. */
static struct json_object *
result_record(const char *type, double created_at, const struct call *call, struct json_object **data)
{
	struct json_object *record = json_object_new_object();

	*data = json_object_new_object();
	json_object_object_add(record, "type", string_object(event_type_find(type, strlen(type))->name));
	json_object_object_add(record, "data", *data);
	json_object_object_add(*data, "created_at", json_object_new_double(created_at));
	json_object_object_add(*data, "parent_id", string_object(call->id));
	json_object_object_add(*data, "name", string_object(call->name));
	return record;
}

static struct json_object *
text_part(double created_at, struct text content)
{
	struct json_object *part = json_object_new_object();

	json_object_object_add(part, "__event__", string_object("ag2.events.input_events.TextInput"));
	json_object_object_add(part, "created_at", json_object_new_double(created_at));
	json_object_object_add(part, "metadata", json_object_new_object());
	json_object_object_add(part, "content", json_object_new_string_len(content.data, (int)content.len));
	return part;
}

/* The ToolResult with one part. */
static struct json_object *
result_object(struct json_object *part)
{
	struct json_object *result = json_object_new_object(), *data = json_object_new_object(), *parts = json_object_new_array();

	json_object_array_add(parts, part);
	json_object_object_add(data, "parts", parts);
	json_object_object_add(data, "final", json_object_new_boolean(0));
	json_object_object_add(data, "metadata", json_object_new_object());
	json_object_object_add(result, "__dataclass__", string_object("ag2.events.tool_events.ToolResult"));
	json_object_object_add(result, "data", data);
	return result;
}

struct json_object *
build_result(const struct call *call, struct text result)
{
	struct json_object *data, *record, *part = text_part(clock_now(), result);

	record = result_record("ToolResultEvent", clock_now(), call, &data);
	json_object_object_add(data, "result", result_object(part));
	return record;
}

/* type is ToolErrorEvent or ToolNotFoundEvent; shown is what the model reads. */
static struct json_object *
error_record(const char *type, const struct call *call, const char *exception, struct text message, struct text shown)
{
	struct json_object *data, *record, *error = json_object_new_object(), *part = text_part(clock_now(), shown);

	record = result_record(type, clock_now(), call, &data);
	json_object_object_add(error, "__exception__", string_object(exception));
	json_object_object_add(error, "message", json_object_new_string_len(message.data, (int)message.len));
	json_object_object_add(data, "error", error);
	json_object_object_add(data, "result", result_object(part));
	return record;
}

struct json_object *
build_error_result(const struct call *call, const char *exception, struct text message)
{
	struct buf shown = BUF_INIT;
	struct json_object *record;

	buf_addf(&shown, "%s: ", exception);
	buf_add(&shown, message.data, message.len);
	buf_addch(&shown, '\n');
	record = error_record("ToolErrorEvent", call, exception, message, (struct text){ shown.data, shown.len });
	buf_release(&shown);
	return record;
}

struct json_object *
build_not_found(const struct call *call)
{
	struct buf message = BUF_INIT, shown = BUF_INIT;
	struct json_object *record;

	buf_addf(&message, "Tool `%s` not found", call->name);
	buf_addf(&shown, "ag2.exceptions.ToolNotFoundError: %s\n", message.data);
	record = error_record("ToolNotFoundEvent", call, "ToolNotFoundError", (struct text){ message.data, message.len },
	    (struct text){ shown.data, shown.len });
	buf_release(&shown);
	buf_release(&message);
	return record;
}

void
build_record(struct buf *out, struct json_object *record)
{
	json_write(out, record, JSON_PYTHON);
}

/* A record as a part of another: `__event__` and its fields, as AG2 nests events. */
static void
add_nested_record(struct buf *out, const char *type, struct json_object *data)
{
	buf_adds(out, "{\"__event__\": ");
	add_string(out, type);
	json_object_object_foreach(data, key, value) {
		buf_adds(out, ", ");
		add_string(out, key);
		buf_adds(out, ": ");
		json_write(out, value, JSON_PYTHON);
	}
	buf_adds(out, "}");
}

void
build_listed(struct buf *list, struct json_object *record)
{
	add_nested_record(list, json_get_text(record, "type", NULL), json_get(record, "data"));
}

void
build_container(struct buf *list)
{
	struct buf head = BUF_INIT;

	open_record(&head, "ToolResultsEvent", clock_now());
	buf_adds(&head, ", \"results\": [");
	buf_reserve(list, head.len + 4);
	memmove(list->data + head.len, list->data, list->len);
	memcpy(list->data, head.data, head.len);
	list->len += head.len;
	buf_adds(list, "]}}");
	buf_release(&head);
}

void
build_results(struct buf *out, struct json_object *const *records, size_t n)
{
	struct buf list = BUF_INIT;
	size_t i;

	for (i = 0; i < n; i++) {
		buf_adds(&list, i > 0 ? ", " : "");
		build_listed(&list, records[i]);
	}
	build_container(&list);
	buf_add(out, list.data, list.len);
	buf_release(&list);
}

static bool
is_severity(const char *s)
{
	return strcmp(s, "info") == 0 || strcmp(s, "warning") == 0 || strcmp(s, "critical") == 0 || strcmp(s, "fatal") == 0;
}

void
build_alert(struct buf *out, const char *severity, const char *source, struct text message)
{
	open_record(out, "ObserverAlert", clock_now());
	buf_adds(out, ", \"data\": {}, \"source\": ");
	add_string(out, source);
	buf_adds(out, ", \"severity\": ");
	if (is_severity(severity)) {
		buf_adds(out, "{\"__enum__\": \"ag2.events.alert.Severity\", \"value\": ");
		add_string(out, severity);
		buf_adds(out, "}");
	} else {
		add_string(out, severity);
	}
	buf_adds(out, ", \"message\": ");
	add_text(out, message);
	buf_adds(out, "}}");
}

int
build_halt(struct buf *out, struct text reason, struct text source, struct event *const *alerts, size_t n, struct err *e)
{
	struct buf nested = BUF_INIT;
	struct json_object *data;
	int ret = -1;
	size_t i;

	for (i = 0; i < n; i++) {
		data = event_data(alerts[i], e);
		if (data == NULL)
			goto out;
		if (i > 0)
			buf_adds(&nested, ", ");
		add_nested_record(&nested, alerts[i]->type->name, data);
	}
	open_record(out, "HaltEvent", clock_now());
	buf_adds(out, ", \"reason\": ");
	add_text(out, reason);
	buf_adds(out, ", \"source\": ");
	add_text(out, source);
	buf_adds(out, ", \"alerts\": [");
	buf_add(out, nested.data, nested.len);
	buf_adds(out, "]}}");
	ret = 0;
out:
	buf_release(&nested);
	return ret;
}

void
build_summary(struct buf *out, struct text summary, uint64_t event_count)
{
	open_record(out, "CompactionSummary", clock_now());
	buf_adds(out, ", \"summary\": ");
	add_text(out, summary);
	buf_addf(out, ", \"event_count\": %llu}}", (unsigned long long)event_count);
}

/* ---- lifecycle ---- */

static void
open_lifecycle(struct buf *out, const char *what, const char *end, const char *agent)
{
	char type[64];

	snprintf(type, sizeof(type), "%s%s", what, end);
	open_record(out, type, clock_now());
	buf_adds(out, ", \"agent\": ");
	add_string(out, agent);
}

static void
add_strategy(struct buf *out, const char *strategy)
{
	buf_adds(out, ", \"strategy\": ");
	add_string(out, strategy);
}

static bool
is_known(const struct usage *u)
{
	return u != NULL && (u->prompt >= 0 || u->completion >= 0 || u->total >= 0 || u->cache_read >= 0 ||
	    u->cache_creation >= 0 || u->thinking >= 0);
}

static void
add_cost(struct buf *out, uint64_t calls, const struct usage *usage)
{
	buf_addf(out, ", \"llm_calls\": %llu", (unsigned long long)calls);
	if (is_known(usage))
		add_usage(out, usage);
	else
		buf_adds(out, ", \"usage\": {}");
	buf_adds(out, "}}");
}

void
build_started(struct buf *out, const char *what, const char *agent, const char *strategy, uint64_t events)
{
	open_lifecycle(out, what, "Started", agent);
	add_strategy(out, strategy);
	buf_addf(out, ", \"event_count\": %llu}}", (unsigned long long)events);
}

void
build_compacted(struct buf *out, const char *agent, const char *strategy, uint64_t before, uint64_t after, uint64_t calls,
    const struct usage *usage)
{
	open_lifecycle(out, "Compaction", "Completed", agent);
	add_strategy(out, strategy);
	buf_addf(out, ", \"events_before\": %llu, \"events_after\": %llu", (unsigned long long)before, (unsigned long long)after);
	add_cost(out, calls, usage);
}

void
build_aggregated(struct buf *out, const char *agent, const char *strategy, uint64_t events, uint64_t calls,
    const struct usage *usage)
{
	open_lifecycle(out, "Aggregation", "Completed", agent);
	add_strategy(out, strategy);
	buf_addf(out, ", \"event_count\": %llu", (unsigned long long)events);
	add_cost(out, calls, usage);
}

static void
add_error(struct buf *out, const char *error_type, const char *error)
{
	buf_adds(out, ", \"error_type\": ");
	add_string(out, error_type);
	buf_adds(out, ", \"error\": ");
	add_string(out, error);
	buf_adds(out, "}}");
}

void
build_failed(struct buf *out, const char *what, const char *agent, const char *strategy, const char *error_type,
    const char *error)
{
	open_lifecycle(out, what, "Failed", agent);
	add_strategy(out, strategy);
	add_error(out, error_type, error);
}

void
build_log_failed(struct buf *out, const char *agent, const char *error_type, const char *error)
{
	open_lifecycle(out, "EventLog", "Failed", agent);
	add_error(out, error_type, error);
}

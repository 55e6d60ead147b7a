#include "event/type.h"

#include <stdint.h>
#include <string.h>

/* What is written to a log and counts in windows; the same and kept by the conversation policy; what is never written. */
#define PLAIN EV_CONVERSATIONAL
#define KEPT (EV_CONVERSATIONAL | EV_KEPT)
#define TRANSIENT EV_TRANSIENT
#define BUILTIN (KEPT | EV_CALL | EV_BUILTIN_CALL)
#define RESULT (KEPT | EV_RESULT)
#define ERROR_RESULT (KEPT | EV_RESULT | EV_ERROR_RESULT)
#define PART (PLAIN | EV_INPUT_PART)

#define TYPE(module, class, bits) { module "." class, class, bits }

const struct event_type event_types[] = {
	TYPE("ag2.events.base", "BaseEvent", PLAIN),
	TYPE("ag2.events.types", "ModelEvent", PLAIN),
	TYPE("ag2.events.types", "ModelReasoning", TRANSIENT),
	TYPE("ag2.events.types", "ModelMessage", TRANSIENT),
	TYPE("ag2.events.types", "ModelResponse", KEPT | EV_RESPONSE),
	TYPE("ag2.events.types", "UsageEvent", EV_USAGE),
	TYPE("ag2.events.types", "ModelMessageChunk", TRANSIENT),
	TYPE("ag2.events.types", "HumanInputRequest", PLAIN),
	TYPE("ag2.events.types", "ToolApprovalRequest", PLAIN),
	TYPE("ag2.events.types", "HumanMessage", PLAIN),
	TYPE("ag2.events.tool_events", "ToolCallsEvent", KEPT | EV_CALLS),
	TYPE("ag2.events.tool_events", "ToolResultsEvent", KEPT | EV_RESULTS),
	TYPE("ag2.events.tool_events", "ToolEvent", PLAIN),
	TYPE("ag2.events.tool_events", "ToolCallEvent", KEPT | EV_CALL),
	TYPE("ag2.events.tool_events", "ClientToolCallEvent", PLAIN),
	TYPE("ag2.events.tool_events", "BuiltinToolCallEvent", BUILTIN),
	TYPE("ag2.events.tool_events", "ToolResultEvent", RESULT),
	TYPE("ag2.events.tool_events", "BuiltinToolResultEvent", RESULT),
	TYPE("ag2.events.tool_events", "ToolErrorEvent", ERROR_RESULT),
	TYPE("ag2.events.tool_events", "ToolNotFoundEvent", ERROR_RESULT),
	TYPE("ag2.events.input_events", "Input", PART),
	TYPE("ag2.events.input_events", "ModelRequest", KEPT | EV_REQUEST),
	TYPE("ag2.events.input_events", "DrainedModelRequest", KEPT | EV_REQUEST),
	TYPE("ag2.events.input_events", "MessageEnqueued", TRANSIENT),
	TYPE("ag2.events.input_events", "DataInput", PART),
	TYPE("ag2.events.input_events", "TextInput", PART),
	TYPE("ag2.events.input_events", "BinaryInput", PART),
	TYPE("ag2.events.input_events", "FileIdInput", PART),
	TYPE("ag2.events.input_events", "UrlInput", PART),
	TYPE("ag2.events.alert", "ObserverAlert", PLAIN | EV_ALERT),
	TYPE("ag2.events.alert", "HaltEvent", PLAIN | EV_HALT),
	TYPE("ag2.events.lifecycle", "ObserverStarted", TRANSIENT),
	TYPE("ag2.events.lifecycle", "ObserverCompleted", TRANSIENT),
	TYPE("ag2.events.lifecycle", "CompactionStarted", TRANSIENT),
	TYPE("ag2.events.lifecycle", "CompactionCompleted", TRANSIENT),
	TYPE("ag2.events.lifecycle", "CompactionFailed", TRANSIENT),
	TYPE("ag2.events.lifecycle", "AggregationStarted", TRANSIENT),
	TYPE("ag2.events.lifecycle", "AggregationCompleted", TRANSIENT),
	TYPE("ag2.events.lifecycle", "AggregationFailed", TRANSIENT),
	TYPE("ag2.events.lifecycle", "EventLogFailed", TRANSIENT),
	TYPE("ag2.events.lifecycle", "UnknownEvent", PLAIN),
	TYPE("ag2.events.task_events", "TaskEvent", PLAIN),
	TYPE("ag2.events.task_events", "TaskStarted", PLAIN),
	TYPE("ag2.events.task_events", "TaskProgress", TRANSIENT),
	TYPE("ag2.events.task_events", "TaskCompleted", PLAIN),
	TYPE("ag2.events.task_events", "TaskFailed", PLAIN),
	TYPE("ag2.events.task_events", "TaskExpired", PLAIN),
	TYPE("ag2.events.task_events", "TaskCancelled", PLAIN),
	TYPE("ag2.events.voice", "TranscriptionChunkEvent", PLAIN),
	TYPE("ag2.events.voice", "TranscriptionCompletedEvent", PLAIN),
	TYPE("ag2.events.voice", "SynthesizedAudioEvent", PLAIN),
	TYPE("ag2.events.voice", "RecordedAudioEvent", PLAIN),
	TYPE("ag2.compact", "CompactionSummary", KEPT | EV_SUMMARY),
	TYPE("ag2.config.openai.events", "OpenAIServerToolCallEvent", BUILTIN),
	TYPE("ag2.config.openai.events", "OpenAIServerToolResultEvent", RESULT),
	TYPE("ag2.config.openai.events", "OpenAIReasoningEvent", KEPT | EV_ANCHOR),
	TYPE("ag2.config.anthropic.events", "AnthropicServerToolCallEvent", BUILTIN),
	TYPE("ag2.config.anthropic.events", "AnthropicServerToolResultEvent", RESULT),
	TYPE("ag2.config.gemini.events", "GeminiToolCallEvent", KEPT | EV_CALL),
	TYPE("ag2.config.gemini.events", "GeminiServerToolCallEvent", BUILTIN),
	TYPE("ag2.config.gemini.events", "GeminiServerToolResultEvent", RESULT),
	TYPE("ag2.acp.events", "ACPPlan", PLAIN),
	TYPE("ag2.acp.events", "ACPModeChange", PLAIN),
	TYPE("ag2.acp.events", "ACPAvailableCommands", PLAIN),
	TYPE("ag2.config.xai.events", "XAIAssistantEvent", KEPT | EV_TURN_ITEM),
	{ "Prompt", "Prompt", EV_PROMPT },
};
const size_t event_types_n = sizeof(event_types) / sizeof(event_types[0]);

static const struct event_type unknown = TYPE("ag2.events.lifecycle", "UnknownEvent", PLAIN | EV_UNKNOWN);

#define SLOTS 512	/* a power of two, several times the table */

static unsigned char slots[SLOTS];	/* 1 + index into event_types, 0 when free; open addressing */
static unsigned char lengths[sizeof(event_types) / sizeof(event_types[0])];

/* Length, ends and middle tell the classes apart; a stream asks once a line, so it must not read the whole name. */
static unsigned
slot_of(const char *s, size_t len)
{
	unsigned h = (unsigned)len;

	h = h * 37 + (unsigned char)s[0];
	h = h * 37 + (unsigned char)s[len / 2];
	h = h * 37 + (unsigned char)s[len / 3];
	h = h * 37 + (unsigned char)s[len - 1];
	return (h ^ h >> 9) % SLOTS;
}

static void __attribute__((constructor))
fill_slots(void)
{
	size_t i;
	unsigned s;

	_Static_assert(sizeof(event_types) / sizeof(event_types[0]) < 255, "slots holds bytes");
	for (i = 0; i < event_types_n; i++) {
		lengths[i] = (unsigned char)strlen(event_types[i].last);
		for (s = slot_of(event_types[i].last, lengths[i]); slots[s] != 0; s = (s + 1) % SLOTS)
			;
		slots[s] = (unsigned char)(i + 1);
	}
}

const struct event_type *
event_type_find(const char *name, size_t len)
{
	const char *dot = len > 0 ? memrchr(name, '.', len) : NULL;
	const char *last = dot != NULL ? dot + 1 : name;
	size_t n = len - (size_t)(last - name), i;
	unsigned s;

	if (n == 0)
		return &unknown;
	for (s = slot_of(last, n); slots[s] != 0; s = (s + 1) % SLOTS) {
		i = slots[s] - 1u;
		if (lengths[i] == n && memcmp(event_types[i].last, last, n) == 0)
			return &event_types[i];
	}
	return &unknown;
}

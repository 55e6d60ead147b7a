/* The table of event types against the list of AG2's classes. */
#include "tap.h"
#include "golden.h"

#include "event/type.h"

static const struct {
	const char *family;
	unsigned flags;
} families[] = {
	{ "request", EV_REQUEST }, { "response", EV_RESPONSE }, { "calls", EV_CALLS }, { "call", EV_CALL },
	{ "builtin_call", EV_BUILTIN_CALL }, { "results", EV_RESULTS }, { "result", EV_RESULT },
	{ "error_result", EV_ERROR_RESULT }, { "replay_anchor", EV_ANCHOR }, { "replay_turn", EV_TURN_ITEM },
	{ "summary", EV_SUMMARY }, { "input_part", EV_INPUT_PART },
};

#define CLASS_FLAGS (EV_ALERT | EV_HALT | EV_USAGE)

static unsigned
flags_of(struct json_object *row)
{
	struct json_object *list = json_get(row, "families");
	unsigned flags = 0;
	size_t i, k;

	flags |= json_object_get_boolean(json_get(row, "transient")) ? EV_TRANSIENT : 0;
	flags |= json_object_get_boolean(json_get(row, "conversational")) ? EV_CONVERSATIONAL : 0;
	flags |= json_object_get_boolean(json_get(row, "kept_by_conversation")) ? EV_KEPT : 0;
	for (i = 0; i < json_object_array_length(list); i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(list, i));

		for (k = 0; k < sizeof(families) / sizeof(families[0]); k++)
			if (strcmp(families[k].family, name) == 0)
				break;
		if (k == sizeof(families) / sizeof(families[0]))
			bail("unknown family %s", name);
		flags |= families[k].flags;
	}
	return flags;
}

static const struct event_type *
find(const char *name)
{
	return event_type_find(name, strlen(name));
}

int
main(void)
{
	struct json_object *golden = golden_json("types.json"), *types = json_get(golden, "types");
	size_t n = 0, i;

	json_object_object_foreach(types, name, row) {
		const struct event_type *t = find(name);
		const char *last = strrchr(name, '.') + 1;

		n++;
		is_str(t->name, name, "%s is in the table under its name", name);
		is_str(t->last, last, "%s ends in its class", name);
		is_int(t->flags & ~CLASS_FLAGS, flags_of(row), "%s has AG2's flags and families", name);
		ok(find(last) == t, "bare %s is the same", last);
	}
	is_int((long long)event_types_n, (long long)n + 1, "the table holds these and Prompt");
	for (i = 0; i < event_types_n; i++)
		ok(find(event_types[i].name) == &event_types[i], "row %zu is found", i);

	is_str(find("autogen.beta.events.input_events.ModelRequest")->name, "ag2.events.input_events.ModelRequest",
	    "the module in front of a class does not matter");
	is_int(find("ag2.events.alert.ObserverAlert")->flags & CLASS_FLAGS, EV_ALERT, "ObserverAlert is the alert");
	is_int(find("ag2.events.alert.HaltEvent")->flags & CLASS_FLAGS, EV_HALT, "HaltEvent is the halt");
	is_int(find("ag2.events.types.UsageEvent")->flags & CLASS_FLAGS, EV_USAGE, "UsageEvent is the usage");
	is_int(find("Prompt")->flags, EV_PROMPT, "Prompt is only a prompt");
	is_int(find("my.app.Custom")->flags, EV_UNKNOWN | EV_CONVERSATIONAL, "an unlisted class is conversational, of no family");
	is_int(find("")->flags, EV_UNKNOWN | EV_CONVERSATIONAL, "so is an empty name");
	is_int(find("ag2.events.types.")->flags, EV_UNKNOWN | EV_CONVERSATIONAL, "so is one that ends in a dot");
	is_int(find("ModelRequest.x")->flags, EV_UNKNOWN | EV_CONVERSATIONAL, "only the last component counts");
	is_int(find("modelrequest")->flags, EV_UNKNOWN | EV_CONVERSATIONAL, "case counts");
	is_int(event_type_find("ModelRequestX", 12)->flags, find("ModelRequest")->flags, "the length given ends the name");
	json_object_put(golden);
	return done();
}

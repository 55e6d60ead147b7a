#include "verbose.h"

#include "base/log.h"

#include <string.h>

static void
say_text(const char *what, struct json_object *data, const char *key)
{
	size_t len;
	const char *text = json_get_text(data, key, &len);

	log_warn("%s%.*s", what, (int)(text ? len < 200 ? len : 200 : 0), text ? text : "");
}

static void
say_usage(struct json_object *data)
{
	struct json_object *usage_data = json_get(json_get(data, "usage"), "data");
	struct json_object *in = json_get(usage_data, "prompt_tokens"), *out = json_get(usage_data, "completion_tokens"),
	    *all = json_get(usage_data, "total_tokens");

	log_warn("tokens: %s in, %s out, %s in all", in ? json_object_get_string(in) : "?",
	    out ? json_object_get_string(out) : "?", all ? json_object_get_string(all) : "?");
}

void
say_event(const struct event *ev, struct json_object *data)
{
	if (ev->type->flags & EV_USAGE)
		say_usage(data);
	else if ((ev->type->flags & EV_CALL) && !(ev->type->flags & EV_BUILTIN_CALL))
		say_text("tool: ", data, "name");
	else if (ev->type->flags & EV_ERROR_RESULT)
		say_text("tool failed: ", json_get(data, "error"), "message");
}

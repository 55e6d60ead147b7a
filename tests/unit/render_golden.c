/* What events cost and how they read, against AG2's own results. */
#include "tap.h"
#include "golden.h"

#include "event/render.h"

static const char *
line_of(struct json_object *c, struct buf *line)
{
	struct json_object *record = json_get(c, "event");

	if (record == NULL)
		return json_get_text(c, "event_line", NULL);
	json_write(line, record, JSON_PYTHON);
	return line->data;
}

static void
check_case(struct json_object *c)
{
	const char *name = json_get_text(c, "name", NULL), *want, *line;
	struct buf text = BUF_INIT, out = BUF_INIT;
	struct event ev;
	struct err e = ERR_INIT;
	size_t len;
	char key[32];
	int n;

	line = line_of(c, &text);
	if (event_view(&ev, line, strlen(line), &e) < 0)
		bail("%s: %s", name, e.msg);
	want = json_get_text(c, "str", &len);
	is_int(event_repr(&out, &ev, &e), 0, "%s: text of the whole event", name);
	is_bytes(out.data, out.len, want, len, "%s: is Python's", name);
	buf_reset(&out);
	want = json_get_text(c, "render", &len);
	is_int(event_render(&out, &ev, &e), 0, "%s: rendering", name);
	is_bytes(out.data, out.len, want, len, "%s: is AG2's", name);
	for (n = 1; n <= 8; n++) {
		snprintf(key, sizeof(key), "tokens_%d", n);
		if (json_get(c, key) != NULL)
			is_int(event_tokens(&ev, n, &e), json_object_get_int64(json_get(c, key)), "%s: %s", name, key);
	}
	event_release(&ev);
	buf_release(&out);
	buf_release(&text);
}

static void
repr_is(const char *line, const char *want, const char *what)
{
	struct buf out = BUF_INIT;
	struct event ev;
	struct err e = ERR_INIT;

	if (event_view(&ev, line, strlen(line), &e) < 0)
		bail("%s: %s", what, e.msg);
	if (event_repr(&out, &ev, &e) < 0)
		buf_adds(&out, e.msg);
	is_str(out.data, want, "%s", what);
	event_release(&ev);
	buf_release(&out);
}

static void
render_is(const char *line, const char *want, int64_t tokens, const char *what)
{
	struct buf out = BUF_INIT;
	struct event ev;
	struct err e = ERR_INIT;

	if (event_view(&ev, line, strlen(line), &e) < 0)
		bail("%s: %s", what, e.msg);
	if (event_render(&out, &ev, &e) < 0)
		buf_adds(&out, e.msg);
	is_str(out.data, want, "%s: reads so", what);
	is_int(event_tokens(&ev, 1, &e), tokens, "%s: costs so", what);
	event_release(&ev);
	buf_release(&out);
}

#define X76 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

/* What no golden case has. */
static void
test_repr(void)
{
	repr_is("{\"type\": \"my.app.Custom\", \"data\": {\"created_at\": 1.5, \"a\": {\"__bytes__\": \"aGk=\"}, \"content\": \"x\"}}",
	    "UnknownEvent(type_name='my.app.Custom', data={'created_at': 1.5, 'a': {'__bytes__': 'aGk='}, 'content': 'x'})",
	    "an unlisted class is an UnknownEvent with its data as they are");
	repr_is("{\"type\": \"ModelRequest\", \"data\": [1]}", "UnknownEvent(type_name='ModelRequest', data=[1])",
	    "so is a class whose data are no object");
	repr_is("{\"data\": {}}", "UnknownEvent(type_name=None, data={})", "and a record without a type");
	repr_is("{\"type\": \"ag2.events.types.HumanMessage\", \"data\": {\"parent_id\": \"" X76 "xx\", \"content\": \"" X76 "xxx\"}}",
	    "HumanMessage(parent_id='" X76 "xx', content='" X76 "xxx...' (len=79))", "80 characters with quotes are shown, 81 are cut");
	repr_is("{\"type\": \"ag2.events.types.HumanMessage\", \"data\": {\"content\": \"" X76 "it's \\u4f60\\u597d!\"}}",
	    "HumanMessage(content=\"" X76 "it'...\" (len=84))", "what is cut keeps its quotes and counts characters");
	repr_is("{\"type\": \"UnknownEvent\", \"data\": {\"type_name\": \"t\", \"data\": {\"long\": \"" X76 "xxxxxxx\"}}}",
	    "UnknownEvent(type_name='t', data={'long': '" X76 "xxxxxxx'})", "only an event's own fields are cut");
	repr_is("{\"type\": \"UnknownEvent\", \"data\": {\"data\": [\"\\u00a0\\u200b\\ud83d\\ude00\\u00ad\\ufeff\\u00e9\\u0300\\ue000\\u0378\\udb40\\udc01\"]}}",
	    "UnknownEvent(data=['\\xa0\\u200b\360\237\230\200\\xad\\ufeff\303\251\314\200\\ue000\\u0378\\U000e0001'])",
	    "characters that do not print are escaped");
	repr_is("{\"type\": \"UnknownEvent\", \"data\": {\"data\": [1.50, 1E5, -0.0, 1e16, 123456789012345678901234567890, -0, 1e400, 2e-5, 0.0001]}}",
	    "UnknownEvent(data=[1.5, 100000.0, -0.0, 1e+16, 123456789012345678901234567890, 0, inf, 2e-05, 0.0001])",
	    "numbers are Python's, whatever their spelling");
	repr_is("{\"type\": \"TaskFailed\", \"data\": {\"task_id\": \"t\", \"error\": {\"__exception__\": \"builtins.RuntimeError\", \"message\": \"boom\"}}}",
	    "TaskFailed(task_id='t', error=RuntimeError('boom'))", "an exception");
	repr_is("{\"type\": \"ModelRequest\", \"data\": {\"parts\": [{\"__event__\": \"no.such.Part\", \"content\": \"x\"}, "
	    "{\"__event__\": \"ag2.events.input_events.UrlInput\", \"metadata\": {\"a\": 1}, \"kind\": \"image\", \"url\": \"u\"}, "
	    "{\"__event__\": \"ag2.events.input_events.UrlInput\", \"kind\": \"hologram\", \"url\": \"u\"}]}}",
	    "ModelRequest(parts=[{'__event__': 'no.such.Part', 'content': 'x'}, UrlInput(kind=<BinaryType.IMAGE: 'image'>, url='u'), "
	    "UrlInput(kind='hologram', url='u')])", "parts of unlisted classes are dicts, old kinds are enums");
	repr_is("{\"type\": \"ToolErrorEvent\", \"data\": {\"parent_id\": \"c1\", \"name\": \"it's\", \"error\": 1, \"result\": null}}",
	    "ToolErrorEvent(parent_id=c1, name='it's', result=None)", "a result that is none");
	repr_is("{\"type\": \"UnknownEvent\", \"data\": {\"x\": 01}}", "byte 41: a number must not begin with 0", "broken content is an error");
}

static void
test_render(void)
{
	render_is("{\"type\": \"ModelRequest\", \"data\": {\"parts\": [{\"__event__\": \"DataInput\", \"data\": {\"__uuid__\": \"u-1\"}}, "
	    "{\"__event__\": \"TextInput\", \"content\": \"\"}, {\"__event__\": \"FileIdInput\", \"file_id\": \"f\"}, "
	    "{\"__event__\": \"BinaryInput\", \"kind\": \"binary\", \"media_type\": \"application/x\", \"data\": {\"__bytes__\": \"\"}}, "
	    "{\"__event__\": \"no.such\", \"a\": null}]}}",
	    "User: u-1 [binary] [application] {'__event__': 'no.such', 'a': None}", 3 + 1000 + 1000 + 35, "a request of odd parts");
	render_is("{\"type\": \"ToolResultsEvent\", \"data\": {\"results\": [{\"__event__\": \"ToolErrorEvent\", \"result\": null}]}}",
	    "ToolResultsEvent(results=[ToolErrorEvent(parent_id=None, name='None', result=None)])", 0, "a result that is none");
	render_is("{\"type\": \"Prompt\", \"data\": {\"content\": \"be kind\"}}", "be kind", 7, "a prompt");
	render_is("{\"type\": \"my.Custom\", \"data\": {\"content\": \"x\"}}", "UnknownEvent(type_name='my.Custom', data={'content': 'x'})", 58,
	    "an unlisted class, whatever its content");
	render_is("{\"type\": \"UsageEvent\", \"data\": {\"label\": \"x\"}}", "", 0, "telemetry");
	is_int(text_tokens("h\303\251llo \344\275\240", 10, 4), 1, "code points are counted, not bytes");
	is_int(text_tokens("\344\275\240\345\245\275abcde", 11, CHARS_AUTO), 3, "auto: each that is not ASCII is a token, four that are too");
	is_int(text_tokens("", 0, 1), 0, "nothing costs nothing");
}

int
main(void)
{
	struct json_object *golden = golden_json("rendering.json"), *cases = json_get(golden, "cases");
	size_t i;

	for (i = 0; i < json_object_array_length(cases); i++)
		check_case(json_object_array_get_idx(cases, i));
	test_repr();
	test_render();
	json_object_put(golden);
	return done();
}

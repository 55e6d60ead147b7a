#include "tool.h"

#include "base/alloc.h"
#include "base/run.h"
#include "base/utf8.h"
#include "knowledge.h"
#include "llm/quote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ERRORS_MAX (64u << 10)	/* bytes of stderr that an error result shows */
#define NAME_MAX_LEN 64

static void
add_quoted(struct buf *out, const char *text)
{
	buf_addch(out, '\'');
	for (; *text != '\0'; text++)
		if (*text == '\'')
			buf_adds(out, "'\\''");
		else
			buf_addch(out, *text);
	buf_addch(out, '\'');
}

int
tool_parse(struct tool *t, const char *text, const char *dir, struct err *e)
{
	struct buf path = BUF_INIT, command = BUF_INIT;

	*t = (struct tool){ .name = NULL };
	if (text[0] == '\0')
		return err_set(e, ERR_USAGE, "a tool is 'knowledge' or the file of a program, not ''");
	if (strcmp(text, "knowledge") == 0) {
		tool_knowledge(t);
		return 0;
	}
	if (text[0] != '/' && dir != NULL)
		buf_addf(&path, "%s/", dir);
	else if (strchr(text, '/') == NULL)
		buf_adds(&path, "./");
	buf_adds(&path, text);
	if (strchr(text, '/') == NULL && access(path.data, F_OK) != 0) {
		buf_reset(&path);
		buf_adds(&path, text);
	}
	add_quoted(&command, path.data);
	t->command = buf_detach(&command, NULL);
	t->cwd = dir ? xstrdup(dir) : NULL;
	buf_release(&path);
	return 0;
}

void
tool_release(struct tool *t)
{
	free(t->name);
	free(t->description);
	free(t->command);
	free(t->cwd);
	json_object_put(t->parameters);
	*t = (struct tool){ .name = NULL };
}

/* Takes a declaration's members over into t; false when it has no name. */
static bool
take_declaration(struct tool *t, struct json_object *o)
{
	struct json_object *parameters = json_get(o, "parameters");
	const char *name, *description;
	size_t name_len, description_len;

	name = json_get_text(o, "name", &name_len);
	description = json_get_text(o, "description", &description_len);
	if (name == NULL || memchr(name, '\0', name_len) != NULL)
		return false;
	if (parameters != NULL && !json_object_is_type(parameters, json_type_object))
		return false;
	t->name = xmemdup0(name, name_len);
	t->description = description ? xmemdup0(description, description_len) : NULL;
	t->parameters = json_object_get(parameters);
	return true;
}

void
tool_knowledge(struct tool *t)
{
	struct json_object *schema = knowledge_schema();

	*t = (struct tool){ .name = NULL };
	take_declaration(t, schema);
	json_object_put(schema);
}

static struct json_object *
no_parameters(void)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "type", json_object_new_string("object"));
	json_object_object_add(o, "properties", json_object_new_object());
	return o;
}

int
tool_check(struct tool *t, struct err *e)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
	size_t n = strlen(t->name);

	if (n == 0 || n > NAME_MAX_LEN || t->name[strspn(t->name, allowed)] != '\0')
		return err_set(e, ERR_CONFIG, "the tool name '%.80s' is not 1 to %d letters, digits, '_' and '-'", t->name,
		    NAME_MAX_LEN);
	if (t->description == NULL)
		t->description = xstrdup("");
	if (t->parameters == NULL)
		t->parameters = no_parameters();
	return 0;
}

static double
time_limit(const struct tool_env *env)
{
	return env->timeout > 0 ? env->timeout : TOOL_TIMEOUT;
}

/* What a program said last on stderr, which of a shell is why it could not start it. */
static void
add_said(struct buf *out, const struct buf *errors)
{
	const char *end = errors->data + errors->len, *start;

	while (end > errors->data && strchr(" \t\r\n", end[-1]) != NULL)
		end--;
	if (end == errors->data)
		return;
	start = memrchr(errors->data, '\n', (size_t)(end - errors->data));
	start = start != NULL ? start + 1 : errors->data;
	buf_adds(out, ": ");
	quote_text(out, start, (size_t)(end - start), NULL);
}

int
tool_declare(struct tool *t, const struct tool_env *env, struct err *e)
{
	struct buf out = BUF_INIT_MAX(TOOL_OUTPUT_MAX), errors = BUF_INIT_MAX(ERRORS_MAX), said = BUF_INIT;
	struct json_object *o = NULL;
	struct err why = ERR_INIT;
	char *command;
	struct run r;
	int rc = -1;

	if (t->name != NULL)
		return 0;
	command = xasprintf("%s --schema", t->command);
	r = (struct run){ .shell = command, .env = env->env, .cwd = t->cwd, .out = &out, .errors = &errors,
		.timeout = time_limit(env) };
	rc = run(&r, &why);
	add_said(&said, &errors);
	if (rc < 0) {
		err_set(e, ERR_CONFIG, "the tool %s does not declare itself: %s%s", t->command, why.msg, said.data);
	} else if (rc > 0) {
		rc = err_set(e, ERR_CONFIG, "the tool %s does not declare itself: '--schema' ended with status %d%s", t->command, rc,
		    said.data);
	} else if (json_parse(&o, out.data, out.len, &why) < 0) {
		rc = err_set(e, ERR_CONFIG, "the tool %s: what it prints for '--schema' is no JSON: %s", t->command, why.msg);
	} else if (!take_declaration(t, o)) {
		rc = err_set(e, ERR_CONFIG,
		    "the tool %s: '--schema' must print {\"name\": \"...\", \"description\": \"...\", \"parameters\": {...}}",
		    t->command);
	} else {
		rc = tool_check(t, e);
	}
	json_object_put(o);
	free(command);
	buf_release(&out);
	buf_release(&errors);
	buf_release(&said);
	return rc;
}

/* ---- calls ---- */

static struct text
text_of(const struct buf *b)
{
	return (struct text){ b->data, b->len };
}

static struct json_object *
error_text(const struct call *call, const char *exception, const char *text)
{
	return build_error_result(call, exception, (struct text){ text, strlen(text) });
}

/* A last newline is the program's way to end a line, not part of its answer. What is no UTF-8 cannot be logged or sent. */
static void
clean_output(struct buf *out, const struct buf *raw)
{
	size_t len = raw->len;

	if (len > 0 && raw->data[len - 1] == '\n')
		len--;
	utf8_add_valid(out, raw->data, len);
}

/* Why it failed, then what it said on stderr, or on stdout when it said nothing there. */
static struct json_object *
failed_result(const struct call *call, const char *exception, const char *why, const struct buf *out, const struct buf *errors)
{
	struct buf text = BUF_INIT;
	struct json_object *record;
	const struct buf *said = errors->len > 0 ? errors : out;

	buf_adds(&text, why);
	if (said->len > 0) {
		buf_adds(&text, ":\n");
		clean_output(&text, said);
	}
	record = build_error_result(call, exception, text_of(&text));
	buf_release(&text);
	return record;
}

static struct json_object *
call_program(const struct tool *t, const struct call *call, const struct tool_env *env, struct err *e)
{
	struct buf out = BUF_INIT_MAX(TOOL_OUTPUT_MAX), errors = BUF_INIT_MAX(ERRORS_MAX), text = BUF_INIT;
	const char *input = call->arguments[0] ? call->arguments : "{}";
	struct run r = { .shell = t->command, .env = env->env, .cwd = t->cwd, .input = input, .input_len = strlen(input),
		.out = &out, .errors = &errors, .timeout = time_limit(env) };
	struct json_object *record = NULL;
	struct err why = ERR_INIT;
	char status[80];
	int rc = run(&r, &why);

	if (run_interrupted()) {
		err_set(e, ERR_UNAVAIL, "interrupted");
	} else if (rc < 0) {
		record = failed_result(call, "RuntimeError", why.msg, &text, &errors);
	} else if (rc > 0) {
		snprintf(status, sizeof(status), "the tool failed with status %d", rc);
		record = failed_result(call, "RuntimeError", status, &out, &errors);
	} else {
		clean_output(&text, &out);
		record = build_result(call, text_of(&text));
	}
	buf_release(&out);
	buf_release(&errors);
	buf_release(&text);
	return record;
}

static struct json_object *
call_knowledge(const struct call *call, const struct tool_env *env)
{
	struct buf out = BUF_INIT_MAX(TOOL_OUTPUT_MAX), text = BUF_INIT;
	struct json_object *record;
	struct err why = ERR_INIT;

	if (env->store == NULL) {
		record = error_text(call, "RuntimeError", "there is no knowledge store");
	} else if (knowledge_call(env->store, call->arguments, strlen(call->arguments), &out, &why) < 0) {
		record = error_text(call, "RuntimeError", why.msg);
	} else {
		utf8_add_valid(&text, out.data, out.len);
		record = build_result(call, text_of(&text));
	}
	buf_release(&out);
	buf_release(&text);
	return record;
}

/* Models send nothing at all when there are no arguments. */
static bool
arguments_ok(const struct call *call, struct err *why)
{
	struct json_object *o = NULL;
	bool good;

	if (call->arguments[0] == '\0')
		return true;
	if (json_parse(&o, call->arguments, strlen(call->arguments), why) < 0)
		return false;
	good = json_object_is_type(o, json_type_object);
	if (!good)
		err_set(why, ERR_DATA, "they must be a JSON object");
	json_object_put(o);
	return good;
}

struct json_object *
tool_call(const struct tool *tools, size_t n, const struct call *call, const struct tool_env *env, struct err *e)
{
	struct err why = ERR_INIT;
	struct json_object *record;
	char *text;
	size_t i;

	for (i = 0; i < n && strcmp(tools[i].name, call->name) != 0; i++)
		;
	if (i == n)
		return build_not_found(call);
	if (!arguments_ok(call, &why)) {
		text = xasprintf("the tool was not run, its arguments are wrong: %s", why.msg);
		record = error_text(call, "ValueError", text);
		free(text);
		return record;
	}
	if (env->allowed != NULL && !env->allowed(call)) {
		if (!run_interrupted())
			return error_text(call, "PermissionError", "the user did not allow this call");
		err_set(e, ERR_UNAVAIL, "interrupted");
		return NULL;
	}
	return tools[i].command ? call_program(&tools[i], call, env, e) : call_knowledge(call, env);
}

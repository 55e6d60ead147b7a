#include "command.h"

#include "knowledge.h"
#include "path.h"

#include <unistd.h>

static const char *name;
static bool no_tool, schema;

/* The store of `disk:./memory` has its files in ./memory/memory, which is hardly ever meant. */
static void
warn_of_root(const char *url)
{
	static const char *const names[] = { "memory", "log", "artifacts" };
	const char *last;
	size_t i;

	if (strncmp(url, "disk:", 5) != 0)
		return;
	last = path_name(url + 5);
	for (i = 0; i < 3; i++)
		if (strcmp(last, names[i]) == 0 || (strncmp(last, names[i], strlen(names[i])) == 0 && last[strlen(names[i])] == '?'))
			log_warn("the store's root is itself called '%s': its own /%s will be %s/%s", names[i], names[i], url + 5, names[i]);
}

static int
run_init(char **args, int n)
{
	struct store *s = open_store(STORE_CREATE);
	struct err e = ERR_INIT;
	bool done;

	warn_of_root(store_url(s));
	if (knowledge_init(s, name ? name : agent_name(), !no_tool, &done, &e) < 0)
		fail(&e);
	if (done) {
		out_puts("initialised ");
		cli_name(store_url(s));
		out_puts("\n");
	}
	store_close(s);
	return 0;
}

static const struct opt init_table[] = {
	{ 0, "name", OPT_STRING, &name, "NAME", "the agent's name (default: that of the agent file, else 'agent')" },
	{ 0, "no-tool", OPT_FLAG, &no_tool, NULL, "the agent will have no knowledge tool: do not speak of it" },
	{ 0 }
};

const struct command command_init = {
	.name = "init",
	.operands = "[--name=NAME] [--no-tool]",
	.summary = "make a store what an agent expects: a name, and a SKILL.md in each directory",
	.table = init_table,
	.min = 0, .max = 0,
	.run = run_init,
	.more = "Says which store it was; does and says nothing when it was initialised before. Files that are\n"
		"there already stay as they are.\n",
};

static int
print_schema(void)
{
	struct json_object *declaration = knowledge_schema();
	struct buf text = BUF_INIT;

	json_write(&text, declaration, JSON_COMPACT);
	buf_addch(&text, '\n');
	out_write(text.data, text.len);
	buf_release(&text);
	json_object_put(declaration);
	return 0;
}

static int
run_tool(char **args, int n)
{
	struct buf call = BUF_INIT, answer = BUF_INIT;
	struct json_object *parsed = NULL;
	struct err e = ERR_INIT;
	struct store *s;

	if (schema)
		return print_schema();
	read_input(NULL, &call);
	if (json_parse(&parsed, call.data, call.len, &e) < 0 || !json_object_is_type(parsed, json_type_object))
		log_die(65, "standard input: %s%s", e.msg, e.code == ERR_NONE ? "a call is a JSON object of arguments" : "");
	json_object_put(parsed);
	s = open_store(STORE_CREATE);
	if (knowledge_call(s, call.data, call.len, &answer, &e) < 0)
		fail(&e);
	cli_write(answer.data, answer.len);
	if (cli_terminal() && (answer.len == 0 || answer.data[answer.len - 1] != '\n'))
		out_puts("\n");
	buf_release(&call);
	buf_release(&answer);
	store_close(s);
	return 0;
}

static const struct opt tool_table[] = {
	{ 0, "schema", OPT_FLAG, &schema, NULL, "print the tool's declaration as JSON instead" },
	{ 0 }
};

const struct command command_tool = {
	.name = "tool",
	.operands = "[--schema]",
	.summary = "the knowledge tool: one call as JSON on standard input, what the model reads on output",
	.table = tool_table,
	.min = 0, .max = 0,
	.run = run_tool,
	.more = "Example:\n"
		"  echo '{\"action\": \"list\", \"path\": \"/memory\"}' | ag2-store tool\n",
};

#include "knowledge.h"

#include "base/alloc.h"

#include "tap.h"

static struct store *s;
static struct err err;

static void
call(const char *arguments, const char *want)
{
	struct buf out = BUF_INIT;

	ok(knowledge_call(s, arguments, strlen(arguments), &out, &err) == 0, "%.80s", arguments);
	is_str(out.data, want, "the model reads");
	buf_release(&out);
}

static void
initialising(void)
{
	struct buf text = BUF_INIT;
	bool done_it = false;

	ok(knowledge_init(s, "a b", true, &done_it, &err) == 0 && done_it, "init");
	ok(knowledge_init(s, "other", true, &done_it, &err) == 0 && !done_it, "the second time it does nothing");
	ok(store_read(s, "/.initialized", &text, NULL, &err) == 0, "the mark is there");
	is_str(text.data, "a b", "with the name");
	buf_reset(&text);
	ok(store_read(s, "/SKILL.md", &text, NULL, &err) == 0, "the root's text is there");
	ok(strncmp(text.data, "# a b Knowledge Store\n", 22) == 0, "with its title");
	ok(text.data[text.len - 1] == '\n', "and a last newline");
	buf_release(&text);
}

static void
answers(void)
{
	call("{\"action\":\"read\",\"path\":\"/none\"}", "Not found: /none");
	call("{\"action\":\"read\",\"path\":\"none/\"}", "Not found: none/");
	call("{\"action\":\"read\",\"path\":\"/memory\"}", "Not found: /memory");
	call("{\"action\":\"read\"}", "Not found: /");
	call("{\"action\":\"write\",\"path\":\"a/b\",\"content\":\"x\\u0000y\"}", "Written to a/b");
	call("{\"action\":\"list\",\"path\":\"/a\"}", "b");
	call("{\"action\":\"list\",\"path\":\"/a/b\"}", "Empty: /a/b");
	call("{\"action\":\"write\",\"path\":\"/a/SKILL.md\",\"content\":\"text\"}", "Written to /a/SKILL.md");
	call("{\"action\":\"write\",\"path\":\"/a/c/d\",\"content\":\"1\"}", "Written to /a/c/d");
	call("{\"action\":\"list\",\"path\":\"/a/\"}", "text\n---\nSKILL.md\nb\nc/");
	call("{\"action\":\"delete\",\"path\":\"/a/b\"}", "Deleted: /a/b");
	call("{\"action\":\"delete\",\"path\":\"/a/b\"}", "Deleted: /a/b");
	call("{\"action\":\"delete\",\"path\":\"/a\"}", "Deleted: /a");
	call("{\"action\":\"list\",\"path\":\"/a\"}", "Empty: /a");
}

static void
refusals(void)
{
	static const char refused[] = "Refused to ";
	static const char *const paths[] = { "/", "", "//", "/log", "log/", "/log/x", "/.ag2", "/.ag2/x/y" };
	struct buf arguments = BUF_INIT, out = BUF_INIT;
	size_t i;

	for (i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		buf_reset(&arguments);
		buf_reset(&out);
		buf_addf(&arguments, "{\"action\":\"%s\",\"path\":\"%s\",\"content\":\"x\"}", i % 2 ? "delete" : "write", paths[i]);
		ok(knowledge_call(s, arguments.data, arguments.len, &out, &err) == 0 && strncmp(out.data, refused, sizeof(refused) - 1) == 0,
		    "refused: %s", arguments.data);
	}
	call("{\"action\":\"write\",\"path\":\"/logs\",\"content\":\"x\"}", "Written to /logs");
	if (store_write(s, "/.ag2/secret", "x", 1, &err) < 0)
		bail("%s", err.msg);
	call("{\"action\":\"read\",\"path\":\"/.ag2/secret\"}", "Not found: /.ag2/secret");
	call("{\"action\":\"list\",\"path\":\"/.ag2\"}", "Empty: /.ag2");
	buf_release(&arguments);
	buf_release(&out);
}

static void
mistakes(void)
{
	call("", "Unknown action ''. The actions are read, write, list and delete.");
	call("{}", "Unknown action ''. The actions are read, write, list and delete.");
	call("{\"action\":\"lists\"}", "Unknown action 'lists'. The actions are read, write, list and delete.");
	call("{\"action\":\"write\",\"path\":\"/x\"}", "Nothing was written: action 'write' needs content that is not empty");
	call("{\"action\":\"write\",\"path\":\"/x\",\"content\":{}}", "The argument 'content' must be a string.");
	call("{\"action\":\"read\",\"path\":7}", "The argument 'path' must be a string.");
	call("[]", "The arguments must be a JSON object.");
	call("null", "The arguments must be a JSON object.");
	call("{\"action\":\"read\",\"path\":\"/../x\"}", "Error: '/../x': '.' and '..' are not allowed in a path");
}

/* More than a model, or one line of a log, can take. */
static void
too_large(void)
{
	char *big = xmalloc(9 << 20);

	memset(big, 'x', 9 << 20);
	if (store_write(s, "/big", big, 9 << 20, &err) < 0)
		bail("%s", err.msg);
	call("{\"action\":\"read\",\"path\":\"/big\"}", "Too large to read: /big (9437184 bytes)");
	free(big);
}

int
main(void)
{
	struct store_options o = { .mode = STORE_CREATE };
	struct json_object *schema = knowledge_schema();

	if (store_open(&s, "memory:", &o, &err) < 0)
		bail("%s", err.msg);
	is_str(json_object_get_string(json_get(schema, "name")), "knowledge", "the declaration names the tool");
	json_object_put(schema);
	initialising();
	answers();
	refusals();
	mistakes();
	too_large();
	store_close(s);
	return done();
}

#include "knowledge.h"

#include "path.h"

/* What a model can take in, and what fits into one line of a log when every byte of it has to be escaped. */
#define READ_MAX (8u << 20)
#define INIT_TRIES 10

/* ---- bootstrap ---- */

static const char root_text[] =
    "This store is where you keep what you know from one conversation to the next. %s\n\n"
    "## What is where\n"
    "- `/log/`: what was said, one file for each conversation; written for you\n"
    "- `/artifacts/`: files and data from outside\n"
    "- `/memory/`: your working memory, and a summary of each conversation; kept up to date for you\n";

static const char log_text[] =
    "One file for each conversation, with its events as JSON lines. They are added while you talk; leave them as they are.";

static const char artifacts_text[] =
    "Files that came in, pages that were fetched, reference material. Put here whatever you will want to look at again.";

static const char memory_text[] =
    "`working.md` is what you know at present. `conversations/` has a summary of each earlier conversation. Both are "
    "rewritten by aggregation, from what was said.";

static int
add_missing(struct store *s, struct store_op *ops, size_t *n, const char *path, const char *data, size_t len, struct err *e)
{
	int there = store_stat(s, path, NULL, e);

	if (there != 0)
		return there < 0 ? -1 : 0;
	ops[(*n)++] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = path };
	ops[(*n)++] = (struct store_op){ .kind = STORE_OP_WRITE, .path = path, .data = data, .len = len };
	return 0;
}

/* One attempt; ERR_CONFLICT when somebody else wrote one of the files meanwhile. */
static int
try_init(struct store *s, const char *name, const struct buf *root, bool *done, struct err *e)
{
	struct store_op ops[10];
	size_t n = 0;

	if (add_missing(s, ops, &n, "/.initialized", name, strlen(name), e) < 0)
		return -1;
	*done = n > 0;
	if (!*done)
		return 0;
	if (add_missing(s, ops, &n, "/SKILL.md", root->data, root->len, e) < 0 ||
	    add_missing(s, ops, &n, "/log/SKILL.md", log_text, sizeof(log_text) - 1, e) < 0 ||
	    add_missing(s, ops, &n, "/artifacts/SKILL.md", artifacts_text, sizeof(artifacts_text) - 1, e) < 0 ||
	    add_missing(s, ops, &n, "/memory/SKILL.md", memory_text, sizeof(memory_text) - 1, e) < 0)
		return -1;
	return store_commit(s, ops, n, e);
}

int
knowledge_init(struct store *s, const char *name, bool with_tool, bool *done, struct err *e)
{
	struct buf root = BUF_INIT;
	struct err why = ERR_INIT;
	bool made = false;
	int rc, tries = 0;

	buf_addf(&root, "# %s Knowledge Store\n\n", name);
	buf_addf(&root, root_text, with_tool ? "Read and change it with the `knowledge` tool." : "It is looked after for you.");
	do
		rc = try_init(s, name, &root, &made, &why);
	while (rc < 0 && why.code == ERR_CONFLICT && ++tries < INIT_TRIES);
	if (rc < 0)
		err_set(e, why.code, "%s", why.msg);
	else if (done != NULL)
		*done = made;
	buf_release(&root);
	return rc;
}

/* ---- the tool ---- */

static const char description[] =
    "Your knowledge store: files that stay from one conversation to the next.\n"
    "The action is one of\n"
    "read: the content of the file at path;\n"
    "write: make content the whole file at path;\n"
    "list: the names below path, directories with a slash;\n"
    "delete: remove the file or directory at path.";

static struct json_object *
string_parameter(const char *title, const char *value)
{
	struct json_object *p = json_object_new_object();

	if (value != NULL)
		json_object_object_add(p, "default", json_object_new_string(value));
	json_object_object_add(p, "title", json_object_new_string(title));
	json_object_object_add(p, "type", json_object_new_string("string"));
	return p;
}

struct json_object *
knowledge_schema(void)
{
	struct json_object *tool = json_object_new_object(), *parameters = json_object_new_object();
	struct json_object *properties = json_object_new_object(), *required = json_object_new_array();

	json_object_object_add(properties, "action", string_parameter("Action", NULL));
	json_object_object_add(properties, "path", string_parameter("Path", "/"));
	json_object_object_add(properties, "content", string_parameter("Content", ""));
	json_object_array_add(required, json_object_new_string("action"));
	json_object_object_add(parameters, "properties", properties);
	json_object_object_add(parameters, "required", required);
	json_object_object_add(parameters, "type", json_object_new_string("object"));
	json_object_object_add(tool, "name", json_object_new_string("knowledge"));
	json_object_object_add(tool, "description", json_object_new_string(description));
	json_object_object_add(tool, "parameters", parameters);
	return tool;
}

struct request {
	const char *path;		/* as the model wrote it */
	size_t path_len;
	const char *normal;		/* normalised */
	const char *content;
	size_t content_len;
	struct buf *out;
};

/* "Label: PATH", with the path as the model wrote it. */
static int
answer(const struct request *q, const char *label)
{
	buf_adds(q->out, label);
	buf_add(q->out, q->path, q->path_len);
	return 0;
}

static int
action_read(struct store *s, const struct request *q, struct err *e)
{
	struct buf content = BUF_INIT_MAX(READ_MAX);
	struct store_stat st;
	int rc = path_private(q->normal) ? 0 : store_stat(s, q->normal, &st, e);

	if (rc <= 0)
		return rc < 0 ? -1 : answer(q, "Not found: ");
	if (st.dir)
		return answer(q, "Not found: ");
	if (st.size > READ_MAX) {
		answer(q, "Too large to read: ");
		buf_addf(q->out, " (%llu bytes)", (unsigned long long)st.size);
		return 0;
	}
	rc = store_read(s, q->normal, &content, NULL, e);
	if (rc == 0)
		buf_add(q->out, content.data, content.len);
	buf_release(&content);
	return rc;
}

/* True, and an answer says so, when a model must not change this path. */
static bool
guarded(const struct request *q, const char *verb)
{
	const char *why = NULL;

	if (strcmp(q->normal, "/") == 0)
		why = "the store itself";
	else if (path_within(q->normal, "/log"))
		why = "the log, which is written for you";
	else if (path_private(q->normal))
		why = "not yours";
	if (why == NULL)
		return false;
	buf_addf(q->out, "Refused to %s ", verb);
	buf_add(q->out, q->path, q->path_len);
	buf_addf(q->out, ": it is %s", why);
	return true;
}

static int
action_write(struct store *s, const struct request *q, struct err *e)
{
	if (q->content_len == 0) {
		buf_adds(q->out, "Nothing was written: action 'write' needs content that is not empty");
		return 0;
	}
	if (guarded(q, "write"))
		return 0;
	if (store_write(s, q->normal, q->content, q->content_len, e) < 0)
		return -1;
	return answer(q, "Written to ");
}

static int
action_delete(struct store *s, const struct request *q, struct err *e)
{
	if (guarded(q, "delete"))
		return 0;
	if (store_delete(s, q->normal, e) < 0)
		return -1;
	return answer(q, "Deleted: ");
}

static int
add_entry(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	struct buf *entries = arg;

	buf_addf(entries, "%s%s%s", entries->len > 0 ? "\n" : "", name, dir ? "/" : "");
	return 0;
}

static int
action_list(struct store *s, const struct request *q, struct err *e)
{
	struct buf entries = BUF_INIT, skill = BUF_INIT_MAX(READ_MAX), path = BUF_INIT;
	struct store_stat st;
	int rc = 0;

	if (!path_private(q->normal))
		rc = store_list(s, q->normal, 0, add_entry, &entries, e);
	if (rc < 0 || entries.len == 0) {
		rc = rc < 0 ? -1 : answer(q, "Empty: ");
		goto out;
	}
	buf_addf(&path, "%s/SKILL.md", strcmp(q->normal, "/") == 0 ? "" : q->normal);
	rc = store_stat(s, path.data, &st, e);
	if (rc > 0)
		rc = st.dir || st.size > READ_MAX ? 0 : store_read(s, path.data, &skill, NULL, e);
	if (rc < 0)
		goto out;
	if (skill.len > 0) {
		buf_add(q->out, skill.data, skill.len);
		buf_adds(q->out, "\n---\n");
	}
	buf_add(q->out, entries.data, entries.len);
out:
	buf_release(&entries);
	buf_release(&skill);
	buf_release(&path);
	return rc;
}

static const struct {
	const char *name;
	int (*run)(struct store *s, const struct request *q, struct err *e);
} actions[] = {
	{ "read", action_read },
	{ "write", action_write },
	{ "list", action_list },
	{ "delete", action_delete },
};

static int
act(struct store *s, const char *action, size_t len, const struct request *q, struct err *e)
{
	size_t i;

	for (i = 0; i < sizeof(actions) / sizeof(*actions); i++)
		if (len == strlen(actions[i].name) && memcmp(action, actions[i].name, len) == 0)
			return actions[i].run(s, q, e);
	buf_adds(q->out, "Unknown action '");
	buf_add(q->out, action, len);
	buf_adds(q->out, "'. The actions are read, write, list and delete.");
	return 0;
}

/* A string argument, or its default when it is not given. False, and an answer says so, when it is no string. */
static bool
argument(struct json_object *arguments, const char *key, const char *fallback, const char **text, size_t *len, struct buf *out)
{
	if (json_get(arguments, key) == NULL) {
		*text = fallback;
		*len = strlen(fallback);
		return true;
	}
	*text = json_get_text(arguments, key, len);
	if (*text == NULL)
		buf_addf(out, "The argument '%s' must be a string.", key);
	return *text != NULL;
}

int
knowledge_call(struct store *s, const char *arguments, size_t len, struct buf *out, struct err *e)
{
	struct json_object *parsed = NULL;
	struct request q = { .out = out };
	struct buf normal = BUF_INIT;
	struct err why = ERR_INIT;
	const char *action;
	size_t action_len;
	int rc = 0;

	if (len > 0 && json_parse(&parsed, arguments, len, &why) < 0) {
		buf_addf(out, "The arguments are not valid JSON: %s", why.msg);
		goto out;
	}
	if (len > 0 && !json_object_is_type(parsed, json_type_object)) {
		buf_adds(out, "The arguments must be a JSON object.");
		goto out;
	}
	if (!argument(parsed, "action", "", &action, &action_len, out) ||
	    !argument(parsed, "path", "/", &q.path, &q.path_len, out) ||
	    !argument(parsed, "content", "", &q.content, &q.content_len, out))
		goto out;
	if (path_normalise(&normal, q.path, q.path_len, &why) < 0) {
		buf_addf(out, "Error: %s", why.msg);
		goto out;
	}
	q.normal = normal.data;
	rc = act(s, action, action_len, &q, &why);
	if (rc < 0 && (why.code == ERR_CREATE || why.code == ERR_ABSENT)) {	/* the model's mistake, not the store's */
		buf_addf(out, "Error: %s", why.msg);
		rc = 0;
	}
	if (rc < 0)
		err_set(e, why.code, "%s", why.msg);
out:
	json_object_put(parsed);
	buf_release(&normal);
	return rc;
}

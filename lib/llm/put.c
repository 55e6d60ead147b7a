/* Writing the parts of a request's body. */
#include "llm/provider.h"

#include <stdlib.h>

void
put_comma(struct buf *out)
{
	char last = out->len > 0 ? out->data[out->len - 1] : '{';

	if (last != '{' && last != '[')
		buf_addch(out, ',');
}

void
put_name(struct buf *out, const char *name)
{
	put_comma(out);
	buf_addf(out, "\"%s\":", name);
}

void
put_string(struct buf *out, const char *text, size_t len)
{
	json_write_string(out, text != NULL ? text : "", len, JSON_COMPACT);
}

void
put_member(struct buf *out, const char *name, const char *text, size_t len)
{
	put_name(out, name);
	put_string(out, text, len);
}

void
put_member_str(struct buf *out, const char *name, const char *text)
{
	put_member(out, name, text, strlen(text));
}

void
put_member_of(struct buf *out, const char *name, struct json_object *obj, const char *key)
{
	size_t len = 0;
	const char *text = json_get_text(obj, key, &len);

	put_member(out, name, text, len);
}

void
put_message(struct buf *out, const char *role)
{
	put_comma(out);
	buf_adds(out, "{");
	put_member_str(out, "role", role);
}

void
put_text_message(struct buf *out, const char *role, const char *text, size_t len)
{
	put_message(out, role);
	put_member(out, "content", text, len);
	buf_adds(out, "}");
}

static struct json_object *
sparse(struct json_object *value)
{
	struct json_object *copy;
	size_t i;

	if (json_object_is_type(value, json_type_array)) {
		copy = json_object_new_array();
		for (i = 0; i < json_object_array_length(value); i++)
			json_object_array_add(copy, sparse(json_object_array_get_idx(value, i)));
		return copy;
	}
	if (!json_object_is_type(value, json_type_object))
		return json_object_get(value);
	copy = json_object_new_object();
	json_object_object_foreach(value, key, member) {
		if (member != NULL)
			json_object_object_add(copy, key, sparse(member));
	}
	return copy;
}

void
put_sparse(struct buf *out, struct json_object *value)
{
	struct json_object *copy = sparse(value);

	json_write(out, copy, JSON_COMPACT);
	json_object_put(copy);
}

void
put_prompts(struct buf *out, const struct llm_request *r)
{
	size_t i;

	for (i = 0; i < r->prompts_n; i++) {
		buf_adds(out, i > 0 ? "\n" : "");
		buf_add(out, r->prompts[i].data, r->prompts[i].len);
	}
}

/* ---- what a message holds ---- */

int
each_part(const struct llm_request *r, struct json_object *parts, int (*fn)(void *arg, struct part *p, struct err *e), void *arg, struct err *e)
{
	bool all = r->as_ag2 || says_nothing(parts);
	size_t i;
	struct part p;
	int rc = 0;

	for (i = 0; rc == 0 && i < json_count(parts); i++) {
		rc = part_read(&p, json_object_array_get_idx(parts, i), r->as_ag2, e);
		if (rc == 0 && (all || p.form != PART_TEXT || !is_blank(p.text.data, p.text.len)))
			rc = fn(arg, &p, e);
		part_release(&p);
	}
	return rc;
}

struct content {
	struct buf *out;
	enum content_form form;
	put_part *item;
	const void *arg;
	bool alone;		/* it is the only part */
};

static int
content_part(void *arg, struct part *p, struct err *e)
{
	struct content *c = arg;
	int rc;

	if (c->form == CONTENT_OF_TEXT)
		part_as_text(p);
	if (c->alone && p->form == PART_TEXT) {
		put_string(c->out, p->text.data, p->text.len);
		return 0;
	}
	if (c->alone)
		buf_adds(c->out, "[");
	put_comma(c->out);
	rc = c->item(c->arg, c->out, p, e);
	if (c->alone)
		buf_adds(c->out, "]");
	return rc;
}

int
put_content(struct buf *out, const struct llm_request *r, struct json_object *parts, enum content_form form, put_part *item, const void *arg,
    struct err *e)
{
	struct content c = { out, form, item, arg, json_count(parts) == 1 && form != CONTENT_LIST };
	int rc;

	if (!c.alone)
		buf_adds(out, "[");
	rc = each_part(r, parts, content_part, &c, e);
	if (!c.alone)
		buf_adds(out, "]");
	return rc;
}

/* ---- the arguments of a call ---- */

struct json_object *
call_arguments(struct json_object *call)
{
	struct json_object *value = NULL;
	size_t len = 0;
	const char *text = json_get_text(call, "arguments", &len);

	if (text == NULL || strspn(text, " \t\r\n") == len)
		return json_object_new_object();
	return json_parse(&value, text, len, NULL) == 0 ? value : NULL;
}

void
put_arguments(struct buf *out, struct json_object *call, bool as_ag2)
{
	struct json_object *value = call_arguments(call);
	bool fine = as_ag2 || json_object_is_type(value, json_type_object);
	size_t at, len;
	const char *text = json_get_text(call, "arguments", &len), *why;

	if (as_ag2)
		json_forget_spelling(value);
	if (value == NULL && !fine && json_check(text, len, &at, &why) < 0)
		value = json_object_new_string_len(text, (int)len);
	buf_adds(out, fine ? "" : "{\"value\":");
	json_write(out, value, JSON_COMPACT);
	buf_adds(out, fine ? "" : "}");
	json_object_put(value);
}

/* As the model wrote them but for lone surrogates; as AG2 writes JSON where that is wanted. */
static void
arguments_add(struct buf *out, const char *text, size_t len, bool as_ag2)
{
	struct json_object *value = NULL;

	if (strspn(text, " \t\r\n") == len) {
		buf_adds(out, "{}");
	} else if (as_ag2 && json_parse(&value, text, len, NULL) == 0) {
		json_forget_spelling(value);
		json_write(out, value, JSON_PYTHON);
	} else {
		json_fix_surrogate_escapes(out, text, len);
	}
	json_object_put(value);
}

void
put_arguments_text(struct buf *out, const char *name, struct json_object *call, bool as_ag2)
{
	size_t len = 0;
	const char *text = json_get_text(call, "arguments", &len);
	struct buf arguments = BUF_INIT;

	arguments_add(&arguments, text != NULL ? text : "", len, as_ag2);
	put_member(out, name, arguments.data, arguments.len);
	buf_release(&arguments);
}

void
put_tool_calls(struct buf *out, struct json_object *calls, void (*one)(struct buf *out, struct json_object *call, bool as_ag2), bool as_ag2)
{
	size_t i, n = json_count(calls);

	if (n == 0)
		return;
	put_name(out, "tool_calls");
	buf_adds(out, "[");
	for (i = 0; i < n; i++) {
		put_comma(out);
		one(out, json_object_array_get_idx(calls, i), as_ag2);
	}
	buf_adds(out, "]");
}

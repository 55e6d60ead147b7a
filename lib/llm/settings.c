/* The settings of a request: our own, and the options that a user gives under the provider's names. */
#include "llm/provider.h"

#include "base/alloc.h"

#include <stdlib.h>

void
setting_add(struct json_object *settings, const char *path, struct json_object *value)
{
	const char *dot = strchr(path, '.');
	struct json_object *inner;
	char *name;

	if (dot == NULL) {
		json_object_object_add(settings, path, value);
		return;
	}
	name = xmemdup0(path, (size_t)(dot - path));
	inner = json_get(settings, name);
	if (inner == NULL) {
		inner = json_object_new_object();
		json_object_object_add(settings, name, inner);
	}
	setting_add(inner, dot + 1, value);
	free(name);
}

void
settings_usual(struct json_object *settings, const struct llm_request *r, const char *temperature, const char *max_tokens)
{
	if (r->config->temperature >= 0)
		setting_add(settings, temperature, json_object_new_double(r->config->temperature));
	if (r->config->max_tokens > 0)
		setting_add(settings, max_tokens, json_object_new_int64(r->config->max_tokens));
}

/* Objects member by member, lists by adding to them; what is given explicitly wins otherwise. */
static void
merge(struct json_object *into, struct json_object *from)
{
	struct json_object *there;
	size_t i;

	json_object_object_foreach(from, key, value) {
		there = json_get(into, key);
		if (json_object_is_type(there, json_type_object) && json_object_is_type(value, json_type_object))
			merge(there, value);
		else if (json_object_is_type(there, json_type_array) && json_object_is_type(value, json_type_array))
			for (i = 0; i < json_count(value); i++)
				json_object_array_add(there, json_object_get(json_object_array_get_idx(value, i)));
		else
			json_object_object_add(into, key, json_object_get(value));
	}
}

static int
check_options(struct json_object *options, const char *const *mine, const char *provider, struct err *e)
{
	size_t i;

	for (i = 0; mine[i] != NULL; i++)
		if (json_object_object_get_ex(options, mine[i], NULL))
			return err_set(e, ERR_CONFIG, "the option '%s' of %s is made from the stream and the settings: it cannot be given", mine[i],
			    provider);
	return 0;
}

int
put_settings(struct buf *out, struct json_object *settings, const struct llm_request *r, const char *const *mine, struct err *e)
{
	struct json_object *options = r->config->options;
	int rc = 0;

	if (options != NULL) {
		rc = check_options(options, mine, r->config->provider, e);
		if (rc == 0)
			merge(settings, options);
		json_object_object_del(settings, "tools");
	}
	if (rc == 0) {
		json_object_object_foreach(settings, key, value) {
			put_comma(out);
			put_string(out, key, strlen(key));
			buf_addch(out, ':');
			json_write(out, value, JSON_COMPACT);
		}
	}
	json_object_put(settings);
	return rc;
}

static void
put_parameters(struct buf *out, struct json_object *schema)
{
	const char *type = json_get_text(schema, "type", NULL);
	bool object = type != NULL && strcmp(type, "object") == 0;

	if (object && json_get(schema, "properties") != NULL) {
		json_write(out, schema, JSON_COMPACT);
		return;
	}
	buf_adds(out, "{\"type\":\"object\"");
	if (json_object_is_type(schema, json_type_object)) {
		json_object_object_foreach(schema, key, value) {
			if (strcmp(key, "type") == 0)
				continue;
			put_comma(out);
			put_string(out, key, strlen(key));
			buf_addch(out, ':');
			json_write(out, value, JSON_COMPACT);
		}
	}
	buf_adds(out, json_get(schema, "properties") != NULL ? "}" : ",\"properties\":{}}");
}

void
put_declaration(struct buf *out, const struct llm_tool *t, const char *schema_name)
{
	put_member_str(out, "name", t->name);
	if (t->description != NULL)
		put_member_str(out, "description", t->description);
	put_name(out, schema_name);
	put_parameters(out, t->parameters);
}

void
put_no_more_arguments(struct buf *out, struct json_object *schema)
{
	if (schema != NULL && (json_get(schema, "properties") == NULL || json_object_object_get_ex(schema, "additionalProperties", NULL)))
		return;
	out->len--;	/* the closing brace */
	buf_adds(out, ",\"additionalProperties\":false}");
}

static struct json_object *
option_tools(const struct llm_request *r)
{
	return json_get(r->config->options, "tools");
}

void
put_option_tools(struct buf *out, const struct llm_request *r)
{
	struct json_object *tools = option_tools(r);
	size_t i;

	for (i = 0; i < json_count(tools); i++) {
		put_comma(out);
		json_write(out, json_object_array_get_idx(tools, i), JSON_COMPACT);
	}
}

void
put_tools(struct buf *out, const struct llm_request *r, void (*declare)(struct buf *out, const struct llm_request *r, const struct llm_tool *t))
{
	size_t i;

	if (r->tools_n == 0 && option_tools(r) == NULL)
		return;
	put_name(out, "tools");
	buf_adds(out, "[");
	for (i = 0; i < r->tools_n; i++) {
		put_comma(out);
		declare(out, r, &r->tools[i]);
	}
	put_option_tools(out, r);
	buf_adds(out, "]");
}

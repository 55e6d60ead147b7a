/* The schema of the answer, as each API takes it. What one cannot be told is checked here all the same (see schema.h). */
#include "llm/provider.h"

#include "schema.h"

#include <stdio.h>

struct json_object *
shape_copy(const struct llm_request *r)
{
	struct json_object *copy = NULL;
	struct buf text = BUF_INIT;

	json_write(&text, r->schema, JSON_COMPACT);
	json_parse(&copy, text.data, text.len, NULL);
	json_object_object_del(copy, "$schema");	/* for people, and other programs */
	buf_release(&text);
	return copy;
}

static bool
is_object_schema(struct json_object *schema)
{
	const char *type = json_get_text(schema, "type", NULL);

	return json_object_is_type(schema, json_type_object) && (json_get(schema, "properties") != NULL || (type != NULL && strcmp(type, "object") == 0));
}

static int
close_one(void *arg, struct json_object *schema)
{
	if (is_object_schema(schema) && !json_object_object_get_ex(schema, "additionalProperties", NULL))
		json_object_object_add(schema, "additionalProperties", json_object_new_boolean(0));
	return schema_each(schema, close_one, arg);
}

void
shape_close(struct json_object *schema)
{
	close_one(NULL, schema);
}

static int
drop_one(void *arg, struct json_object *schema)
{
	const char *const *keywords = *(const char *const **)arg;
	size_t i;

	if (!json_object_is_type(schema, json_type_object))
		return 0;
	for (i = 0; keywords[i] != NULL; i++)
		json_object_object_del(schema, keywords[i]);
	return schema_each(schema, drop_one, arg);
}

void
shape_drop(struct json_object *schema, const char *const *keywords)
{
	drop_one(&keywords, schema);
}

static bool
all_required(struct json_object *schema)
{
	struct json_object *required = json_get(schema, "required"), *properties = json_get(schema, "properties");
	size_t i;

	json_object_object_foreach(properties, key, value) {
		(void)value;
		for (i = 0; i < json_count(required); i++)
			if (strcmp(json_object_get_string(json_object_array_get_idx(required, i)), key) == 0)
				break;
		if (i == json_count(required))
			return false;
	}
	return true;
}

/* 1 when it is not. */
static int
not_strict(void *arg, struct json_object *schema)
{
	static const char *const known[] = { "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref",
		"$defs", "definitions", "title", "description", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum",
		"exclusiveMaximum", "minItems", "maxItems" };
	struct json_object *more = json_get(schema, "additionalProperties");
	size_t i;

	if (!json_object_is_type(schema, json_type_object))
		return !json_object_is_type(schema, json_type_boolean) || json_object_get_boolean(schema);
	json_object_object_foreach(schema, key, value) {
		(void)value;
		for (i = 0; i < sizeof(known) / sizeof(known[0]) && strcmp(key, known[i]) != 0; i++)
			;
		if (i == sizeof(known) / sizeof(known[0]))
			return 1;
	}
	if (is_object_schema(schema) && (!json_object_is_type(more, json_type_boolean) || json_object_get_boolean(more) || !all_required(schema)))
		return 1;
	return schema_each(schema, not_strict, arg);
}

/* What OpenAI can hold a model to: every object closed, all its members required, and only the keywords that it knows. */
static bool
shape_strict(struct json_object *schema)
{
	return is_object_schema(schema) && not_strict(NULL, schema) == 0;
}

/* What is not strict is sent as it is, and the model is not held to it but told. */
void
shape_openai(struct json_object *settings, const struct llm_request *r, const char *type, const char *schema)
{
	struct json_object *closed = shape_copy(r), *shape;
	char path[100];
	bool strict;

	shape_close(closed);
	strict = shape_strict(closed);
	shape = strict ? json_object_get(closed) : shape_copy(r);
	json_object_put(closed);
	setting_add(settings, type, json_object_new_string("json_schema"));
	snprintf(path, sizeof(path), "%s.name", schema);
	setting_add(settings, path, json_object_new_string(SCHEMA_NAME));
	snprintf(path, sizeof(path), "%s.schema", schema);
	setting_add(settings, path, shape);
	snprintf(path, sizeof(path), "%s.strict", schema);
	setting_add(settings, path, json_object_new_boolean(strict));
}

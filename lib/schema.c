#include "schema.h"

#include <math.h>

static int check(struct json_object *schema, struct json_object *value, struct buf *path, struct err *e);

static bool
is_type(const char *type, struct json_object *value)
{
	switch (json_object_get_type(value)) {
	case json_type_null:
		return strcmp(type, "null") == 0;
	case json_type_boolean:
		return strcmp(type, "boolean") == 0;
	case json_type_int:
		return strcmp(type, "integer") == 0 || strcmp(type, "number") == 0;
	case json_type_double:
		return strcmp(type, "number") == 0 || (strcmp(type, "integer") == 0 && floor(json_object_get_double(value)) == json_object_get_double(value));
	case json_type_string:
		return strcmp(type, "string") == 0;
	case json_type_array:
		return strcmp(type, "array") == 0;
	case json_type_object:
		return strcmp(type, "object") == 0;
	}
	return false;
}

static int
check_type(struct json_object *type, struct json_object *value, const struct buf *path, struct err *e)
{
	size_t i;

	if (json_object_is_type(type, json_type_string) && !is_type(json_object_get_string(type), value))
		return err_set(e, ERR_DATA, "%.400s: no %.40s", path->data, json_object_get_string(type));
	if (!json_object_is_type(type, json_type_array))
		return 0;
	for (i = 0; i < json_object_array_length(type); i++)
		if (is_type(json_object_get_string(json_object_array_get_idx(type, i)), value))
			return 0;
	return err_set(e, ERR_DATA, "%.400s: of none of the types it may have", path->data);
}

static int
check_enum(struct json_object *list, struct json_object *value, const struct buf *path, struct err *e)
{
	size_t i;

	if (!json_object_is_type(list, json_type_array))
		return 0;
	for (i = 0; i < json_object_array_length(list); i++)
		if (json_object_equal(json_object_array_get_idx(list, i), value))
			return 0;
	return err_set(e, ERR_DATA, "%.400s: none of the values it may have", path->data);
}

/* What lies one step deeper; the path is as before afterwards. */
static int
check_member(struct json_object *schema, const char *key, struct json_object *value, struct buf *path, struct err *e)
{
	size_t len = path->len;
	int rc;

	buf_addf(path, ".%.100s", key);
	rc = check(schema, value, path, e);
	path->len = len;
	path->data[len] = '\0';
	return rc;
}

static int
check_required(struct json_object *required, struct json_object *value, const struct buf *path, struct err *e)
{
	size_t i;
	const char *name;

	for (i = 0; json_object_is_type(required, json_type_array) && i < json_object_array_length(required); i++) {
		name = json_object_get_string(json_object_array_get_idx(required, i));
		if (name != NULL && !json_object_object_get_ex(value, name, NULL))
			return err_set(e, ERR_DATA, "%.400s: '%.100s' is missing", path->data, name);
	}
	return 0;
}

static int
check_object(struct json_object *schema, struct json_object *value, struct buf *path, struct err *e)
{
	struct json_object *properties = json_get(schema, "properties"), *more = json_get(schema, "additionalProperties"), *its;

	if (check_required(json_get(schema, "required"), value, path, e) < 0)
		return -1;
	json_object_object_foreach(value, key, member) {
		if (json_object_is_type(properties, json_type_object) && json_object_object_get_ex(properties, key, &its)) {
			if (check_member(its, key, member, path, e) < 0)
				return -1;
		} else if (json_object_is_type(more, json_type_boolean) && !json_object_get_boolean(more)) {
			return err_set(e, ERR_DATA, "%.400s: '%.100s' does not belong there", path->data, key);
		} else if (check_member(more, key, member, path, e) < 0) {
			return -1;
		}
	}
	return 0;
}

static int
check_array(struct json_object *items, struct json_object *value, struct buf *path, struct err *e)
{
	size_t i, len = path->len;

	for (i = 0; i < json_object_array_length(value); i++) {
		buf_addf(path, "[%zu]", i);
		if (check(items, json_object_array_get_idx(value, i), path, e) < 0)
			return -1;
		path->len = len;
		path->data[len] = '\0';
	}
	return 0;
}

static int
check_any(struct json_object *list, struct json_object *value, struct buf *path, struct err *e)
{
	size_t i, len = path->len;

	if (!json_object_is_type(list, json_type_array))
		return 0;
	for (i = 0; i < json_object_array_length(list); i++) {
		if (check(json_object_array_get_idx(list, i), value, path, NULL) == 0)
			return 0;
		path->len = len;
		path->data[len] = '\0';
	}
	return err_set(e, ERR_DATA, "%.400s: fits none of what it may be", path->data);
}

/* A schema that is no object asks nothing. */
static int
check(struct json_object *schema, struct json_object *value, struct buf *path, struct err *e)
{
	struct json_object *constant;

	if (!json_object_is_type(schema, json_type_object))
		return 0;
	if (check_type(json_get(schema, "type"), value, path, e) < 0 || check_enum(json_get(schema, "enum"), value, path, e) < 0 ||
	    check_any(json_get(schema, "anyOf"), value, path, e) < 0)
		return -1;
	if (json_object_object_get_ex(schema, "const", &constant) && !json_object_equal(constant, value))
		return err_set(e, ERR_DATA, "%.400s: not the value it must have", path->data);
	if (json_object_is_type(value, json_type_object))
		return check_object(schema, value, path, e);
	if (json_object_is_type(value, json_type_array))
		return check_array(json_get(schema, "items"), value, path, e);
	return 0;
}

int
schema_check(struct json_object *schema, struct json_object *value, struct err *e)
{
	struct buf path = BUF_INIT;
	int rc;

	buf_adds(&path, "$");
	rc = check(schema, value, &path, e);
	buf_release(&path);
	return rc;
}

int
schema_check_text(struct json_object *schema, const char *text, size_t len, struct err *e)
{
	struct json_object *value = NULL;
	int rc;

	if (json_parse(&value, text, len, e) < 0)
		return err_wrap(e, "it is not JSON");
	rc = schema_check(schema, value, e);
	json_object_put(value);
	return rc;
}

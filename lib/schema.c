#include "schema.h"

#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>

#define STEPS_MAX 1000000	/* schemas that may be tried for one value: alternatives within alternatives can be endless */
#define DEPTH_MAX 1000		/* of schemas within each other: one may refer to itself */

struct check {
	struct json_object *root;
	struct buf path;	/* "$.items[2].age" */
	size_t steps, depth;
	bool lost;		/* too much to be told; nothing more is tried */
};

static int check(struct check *c, struct json_object *schema, struct json_object *value, struct err *e);

static int
misfit(const struct check *c, struct err *e, const char *why)
{
	return err_set(e, ERR_DATA, "%.400s: %s", c->path.data, why);
}

/* ---- what a schema refers to ---- */

/* One step of a JSON pointer: ~1 is a slash, ~0 a tilde. */
static struct json_object *
step(struct json_object *at, const char *name, size_t len)
{
	struct buf key = BUF_INIT;
	struct json_object *next;
	size_t i;

	for (i = 0; i < len; i++) {
		if (name[i] == '~' && i + 1 < len && (name[i + 1] == '0' || name[i + 1] == '1'))
			buf_addch(&key, name[++i] == '1' ? '/' : '~');
		else
			buf_addch(&key, name[i]);
	}
	if (json_object_is_type(at, json_type_array))
		next = json_object_array_get_idx(at, strtoul(key.data, NULL, 10));
	else
		next = json_get(at, key.data);
	buf_release(&key);
	return next;
}

/* "#" and "#/$defs/node"; NULL when there is nothing there. */
static struct json_object *
resolve(struct json_object *root, const char *ref)
{
	struct json_object *at = root;
	size_t len;

	if (*ref++ != '#' || (*ref != '/' && *ref != '\0'))
		return NULL;
	while (at != NULL && *ref == '/') {
		len = strcspn(++ref, "/");
		at = step(at, ref, len);
		ref += len;
	}
	return at;
}

int
schema_each(struct json_object *schema, int (*fn)(void *arg, struct json_object *inner), void *arg)
{
	static const char *const maps[] = { "properties", "patternProperties", "$defs", "definitions", "dependentSchemas" };
	static const char *const lists[] = { "prefixItems", "allOf", "anyOf", "oneOf" };
	static const char *const ones[] = { "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames" };
	struct json_object *inner;
	size_t i, j;
	int rc;

	for (i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		inner = json_get(schema, maps[i]);
		if (!json_object_is_type(inner, json_type_object))
			continue;
		json_object_object_foreach(inner, key, value) {
			(void)key;
			if ((rc = fn(arg, value)) != 0)
				return rc;
		}
	}
	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		inner = json_get(schema, lists[i]);
		for (j = 0; j < json_count(inner); j++)
			if ((rc = fn(arg, json_object_array_get_idx(inner, j))) != 0)
				return rc;
	}
	for (i = 0; i < sizeof(ones) / sizeof(ones[0]); i++)
		if ((inner = json_get(schema, ones[i])) != NULL && (rc = fn(arg, inner)) != 0)
			return rc;
	return 0;
}

struct refs {
	struct json_object *root;
	struct err *e;
};

static int
check_refs(void *arg, struct json_object *schema)
{
	const struct refs *r = arg;
	const char *ref = json_get_text(schema, "$ref", NULL);

	if (ref != NULL && resolve(r->root, ref) == NULL)
		return err_set(r->e, ERR_DATA, "the schema refers to '%.200s', which is not in it", ref);
	return schema_each(schema, check_refs, arg);
}

int
schema_usable(struct json_object *schema, struct err *e)
{
	struct refs r = { schema, e };

	return check_refs(&r, schema);
}

/* ---- plain values ---- */

static bool
is_number(struct json_object *v)
{
	return json_object_is_type(v, json_type_int) || json_object_is_type(v, json_type_double);
}

/* 1 and 1.0 are one value. */
static bool
equal(struct json_object *a, struct json_object *b)
{
	if (is_number(a) && is_number(b) && json_object_get_type(a) != json_object_get_type(b))
		return json_object_get_double(a) == json_object_get_double(b);
	return json_object_equal(a, b);
}

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
check_type(const struct check *c, struct json_object *type, struct json_object *value, struct err *e)
{
	size_t i;

	if (json_object_is_type(type, json_type_string) && !is_type(json_object_get_string(type), value))
		return err_set(e, ERR_DATA, "%.400s: no %.40s", c->path.data, json_object_get_string(type));
	if (!json_object_is_type(type, json_type_array))
		return 0;
	for (i = 0; i < json_object_array_length(type); i++)
		if (is_type(json_object_get_string(json_object_array_get_idx(type, i)), value))
			return 0;
	return misfit(c, e, "of none of the types it may have");
}

static int
check_values(const struct check *c, struct json_object *schema, struct json_object *value, struct err *e)
{
	struct json_object *list = json_get(schema, "enum"), *constant;
	size_t i;

	for (i = 0; i < json_count(list) && !equal(json_object_array_get_idx(list, i), value); i++)
		;
	if (json_object_is_type(list, json_type_array) && i == json_count(list))
		return misfit(c, e, "none of the values it may have");
	if (json_object_object_get_ex(schema, "const", &constant) && !equal(constant, value))
		return misfit(c, e, "not the value it must have");
	return 0;
}

/* Every limit that a number, or how many there are of something, has: 2 is "not less than", which a minimum wants. */
static int
check_limits(const struct check *c, struct json_object *schema, double n, const char *const *keywords, const char *what, struct err *e)
{
	struct json_object *limit;
	size_t i;
	double l;

	for (i = 0; i < 4 && keywords[i] != NULL; i++) {
		limit = json_get(schema, keywords[i]);
		if (!is_number(limit))
			continue;
		l = json_object_get_double(limit);
		if (i == 0 ? n < l : i == 1 ? n > l : i == 2 ? n <= l : n >= l)
			return err_set(e, ERR_DATA, "%.400s: %s than %s %.40s", c->path.data, i % 2 == 0 ? "less" : "more", what, json_object_get_string(limit));
	}
	return 0;
}

static int
check_number(const struct check *c, struct json_object *schema, struct json_object *value, struct err *e)
{
	static const char *const limits[] = { "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum" };
	struct json_object *of = json_get(schema, "multipleOf");
	double n = json_object_get_double(value), times;

	if (is_number(of) && json_object_get_double(of) > 0) {
		times = n / json_object_get_double(of);
		if (fabs(times - round(times)) > 1e-9 * fmax(1, fabs(times)))
			return err_set(e, ERR_DATA, "%.400s: no multiple of %.40s", c->path.data, json_object_get_string(of));
	}
	return check_limits(c, schema, n, limits, "the limit", e);
}

/* ---- values in values ---- */

/* What lies one step deeper, which was just added to the path; the path is as `before` afterwards. */
static int
check_inner(struct check *c, struct json_object *schema, struct json_object *value, size_t before, struct err *e)
{
	int rc = check(c, schema, value, e);

	c->path.len = before;
	c->path.data[before] = '\0';
	return rc;
}

static int
check_required(const struct check *c, struct json_object *required, struct json_object *value, struct err *e)
{
	size_t i;
	const char *name;

	for (i = 0; i < json_count(required); i++) {
		name = json_object_get_string(json_object_array_get_idx(required, i));
		if (name != NULL && !json_object_object_get_ex(value, name, NULL))
			return err_set(e, ERR_DATA, "%.400s: '%.100s' is missing", c->path.data, name);
	}
	return 0;
}

static int
check_object(struct check *c, struct json_object *schema, struct json_object *value, struct err *e)
{
	static const char *const limits[] = { "minProperties", "maxProperties", NULL };
	struct json_object *properties = json_get(schema, "properties"), *more = json_get(schema, "additionalProperties"), *its;
	bool patterns = json_get(schema, "patternProperties") != NULL;	/* which may be meant by any name */
	size_t before = c->path.len;

	if (check_required(c, json_get(schema, "required"), value, e) < 0 ||
	    check_limits(c, schema, json_object_object_length(value), limits, "so many members:", e) < 0)
		return -1;
	json_object_object_foreach(value, key, member) {
		if (!json_object_is_type(properties, json_type_object) || !json_object_object_get_ex(properties, key, &its)) {
			if (json_object_is_type(more, json_type_boolean) && !json_object_get_boolean(more) && !patterns)
				return err_set(e, ERR_DATA, "%.400s: '%.100s' does not belong there", c->path.data, key);
			its = patterns ? NULL : more;
		}
		buf_addf(&c->path, ".%.100s", key);
		if (check_inner(c, its, member, before, e) < 0)
			return -1;
	}
	return 0;
}

static int
check_unique(const struct check *c, struct json_object *value, struct err *e)
{
	size_t i, j, n = json_object_array_length(value);

	for (i = 0; i < n && i < 1000; i++)
		for (j = 0; j < i; j++)
			if (equal(json_object_array_get_idx(value, i), json_object_array_get_idx(value, j)))
				return misfit(c, e, "a value that comes twice");
	return 0;
}

static int
check_array(struct check *c, struct json_object *schema, struct json_object *value, struct err *e)
{
	static const char *const limits[] = { "minItems", "maxItems", NULL };
	struct json_object *items = json_get(schema, "items"), *first = json_get(schema, "prefixItems"), *unique = json_get(schema, "uniqueItems");
	size_t i, before = c->path.len;

	if (check_limits(c, schema, (double)json_object_array_length(value), limits, "so many items:", e) < 0)
		return -1;
	if (json_object_is_type(unique, json_type_boolean) && json_object_get_boolean(unique) && check_unique(c, value, e) < 0)
		return -1;
	for (i = 0; i < json_object_array_length(value); i++) {
		buf_addf(&c->path, "[%zu]", i);
		if (check_inner(c, i < json_count(first) ? json_object_array_get_idx(first, i) : items, json_object_array_get_idx(value, i), before, e) < 0)
			return -1;
	}
	return 0;
}

static int
check_inside(struct check *c, struct json_object *schema, struct json_object *value, struct err *e)
{
	static const char *const lengths[] = { "minLength", "maxLength", NULL };

	switch (json_object_get_type(value)) {
	case json_type_object:
		return check_object(c, schema, value, e);
	case json_type_array:
		return check_array(c, schema, value, e);
	case json_type_string:
		return check_limits(c, schema, (double)utf8_count(json_object_get_string(value), (size_t)json_object_get_string_len(value)), lengths,
		    "so many characters:", e);
	case json_type_int:
	case json_type_double:
		return check_number(c, schema, value, e);
	default:
		return 0;
	}
}

/* ---- schemas of schemas ---- */

/* How many of them it fits, 2 meaning more than one. */
static size_t
count_fits(struct check *c, struct json_object *list, struct json_object *value)
{
	size_t i, before = c->path.len, fits = 0;

	for (i = 0; i < json_count(list) && fits < 2; i++)
		fits += check_inner(c, json_object_array_get_idx(list, i), value, before, NULL) == 0;
	return fits;
}

static int
check_choice(struct check *c, struct json_object *schema, struct json_object *value, struct err *e)
{
	struct json_object *any = json_get(schema, "anyOf"), *one = json_get(schema, "oneOf"), *all = json_get(schema, "allOf"), *not = json_get(schema, "not");
	size_t fits, i, before = c->path.len;

	for (i = 0; i < json_count(all); i++)
		if (check(c, json_object_array_get_idx(all, i), value, e) < 0)
			return -1;
	if (json_object_is_type(any, json_type_array) && count_fits(c, any, value) == 0)
		return misfit(c, e, "fits none of what it may be");
	if (json_object_is_type(one, json_type_array) && (fits = count_fits(c, one, value)) != 1)
		return misfit(c, e, fits == 0 ? "fits none of what it may be" : "fits more than one of what it may be");
	if (not != NULL && check_inner(c, not, value, before, NULL) == 0)
		return misfit(c, e, "is what it must not be");
	return 0;
}

/* A schema that is no object asks nothing, but that false fits nothing. */
static int
check_one(struct check *c, struct json_object *schema, struct json_object *value, struct err *e)
{
	const char *ref = json_get_text(schema, "$ref", NULL);

	if (json_object_is_type(schema, json_type_boolean) && !json_object_get_boolean(schema))
		return misfit(c, e, "nothing may be there");
	if (!json_object_is_type(schema, json_type_object))
		return 0;
	if (ref != NULL && check(c, resolve(c->root, ref), value, e) < 0)
		return -1;
	if (check_type(c, json_get(schema, "type"), value, e) < 0 || check_values(c, schema, value, e) < 0 || check_choice(c, schema, value, e) < 0)
		return -1;
	return check_inside(c, schema, value, e);
}

static int
check(struct check *c, struct json_object *schema, struct json_object *value, struct err *e)
{
	int rc;

	if (c->lost || ++c->steps > STEPS_MAX || c->depth == DEPTH_MAX) {
		c->lost = true;
		return misfit(c, e, "cannot be checked, the schema goes round in circles");
	}
	c->depth++;
	rc = check_one(c, schema, value, e);
	c->depth--;
	return rc;
}

static int
schema_check(struct json_object *schema, struct json_object *value, struct err *e)
{
	struct check c = { .root = schema, .path = BUF_INIT };
	int rc;

	buf_adds(&c.path, "$");
	rc = check(&c, schema, value, e);
	if (c.lost) {
		c.path.len = 1;
		c.path.data[1] = '\0';
		rc = misfit(&c, e, "cannot be checked, the schema goes round in circles");
	}
	buf_release(&c.path);
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

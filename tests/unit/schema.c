/* What fits a schema, and what is said of what does not. */
#include "tap.h"

#include "schema.h"

static void
check(const char *schema, const char *value, const char *why)
{
	struct json_object *s = NULL;
	struct err e = ERR_INIT;
	int rc;

	if (json_parse(&s, schema, strlen(schema), &e) < 0)
		bail("%s", e.msg);
	rc = schema_check_text(s, value, strlen(value), &e);
	if (why == NULL)
		ok(rc == 0, "%s fits %s: %s", value, schema, e.msg);
	else
		ok(rc < 0 && e.code == ERR_DATA && strstr(e.msg, why) != NULL, "%s does not fit %s: %s", value, schema, e.msg);
	json_object_put(s);
}

#define PERSON "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"age\":{\"type\":\"integer\"}},\"required\":[\"name\"],\"additionalProperties\":false}"

#define NODE "{\"$ref\":\"#/$defs/node\",\"$defs\":{\"node\":{\"type\":\"object\",\"properties\":{\"v\":{\"$ref\":\"#/$defs/a~1b\"},\"next\":{\"anyOf\":[{\"$ref\":\"#/$defs/node\"}," \
	"{\"type\":\"null\"}]}},\"required\":[\"v\"]},\"a/b\":{\"type\":\"integer\"}}}"

static void
usable(const char *schema, const char *why)
{
	struct json_object *s = NULL;
	struct err e = ERR_INIT;
	int rc;

	json_parse(&s, schema, strlen(schema), NULL);
	rc = schema_usable(s, &e);
	ok(why == NULL ? rc == 0 : rc < 0 && e.code == ERR_DATA && strstr(e.msg, why) != NULL, "%s can%s be used: %s", schema, why ? "not" : "", e.msg);
	json_object_put(s);
}

static void
references(void)
{
	check(NODE, "{\"v\":1,\"next\":{\"v\":2,\"next\":null}}", NULL);
	check(NODE, "{\"v\":1,\"next\":{\"v\":\"x\"}}", "$.next: fits none");
	check(NODE, "{\"v\":\"x\"}", "$.v: no integer");
	check("{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}", "[[],[[]]]", NULL);
	check("{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}", "[[],[1]]", "$[1][0]: no array");
	check("{\"$ref\":\"#\"}", "1", "in circles");
	check("{\"$defs\":{\"a\":{\"anyOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/a\"}]}},\"$ref\":\"#/$defs/a\"}", "1", "in circles");
	check("{\"items\":{\"$ref\":\"#/prefixItems/0\"},\"prefixItems\":[{\"type\":\"string\"}]}", "[\"a\",1]", "$[1]: no string");
	usable(NODE, NULL);
	usable("{\"$ref\":\"#\"}", NULL);
	usable("{\"items\":{\"$ref\":\"#/$defs/gone\"}}", "'#/$defs/gone'");
	usable("{\"properties\":{\"a\":{\"anyOf\":[{\"$ref\":\"https://e/s.json\"}]}}}", "'https://e/s.json'");
	usable("{\"not\":{\"$ref\":\"other.json#/a\"}}", "'other.json#/a'");
}

static void
choices(void)
{
	check("{\"allOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}", "{\"a\":1,\"b\":2}", NULL);
	check("{\"allOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}", "{\"a\":1}", "'b' is missing");
	check("{\"oneOf\":[{\"type\":\"integer\"},{\"minimum\":3}]}", "1", NULL);
	check("{\"oneOf\":[{\"type\":\"integer\"},{\"minimum\":3}]}", "4", "more than one");
	check("{\"oneOf\":[{\"type\":\"integer\"},{\"minimum\":3}]}", "1.5", "fits none");
	check("{\"not\":{\"type\":\"null\"}}", "null", "must not be");
	check("{\"not\":{\"type\":\"null\"}}", "0", NULL);
	check("{\"properties\":{\"a\":{\"allOf\":[{\"properties\":{\"b\":{\"oneOf\":[{\"const\":1},{\"const\":2}]}}}]}}}", "{\"a\":{\"b\":3}}", "$.a.b: fits none");
}

static void
limits(void)
{
	check("{\"minimum\":1,\"exclusiveMaximum\":2}", "1", NULL);
	check("{\"minimum\":1,\"exclusiveMaximum\":2}", "2", "more than the limit 2");
	check("{\"minimum\":1.5}", "1", "less than the limit 1.5");
	check("{\"multipleOf\":0.1}", "0.3", NULL);
	check("{\"multipleOf\":2}", "3", "no multiple of 2");
	check("{\"minLength\":2,\"maxLength\":3}", "\"\\u5317\\u5317\"", NULL);
	check("{\"minLength\":2}", "\"\\u5317\"", "less than so many characters: 2");
	check("{\"minItems\":1,\"maxItems\":2}", "[1,2,3]", "more than so many items: 2");
	check("{\"uniqueItems\":true}", "[1,2,1.0]", "twice");
	check("{\"minProperties\":1}", "{}", "less than so many members: 1");
	check("{\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}", "[\"a\"]", NULL);
	check("{\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}", "[\"a\",1]", "$[1]: nothing");
	check("{\"patternProperties\":{\"^x\":{}},\"additionalProperties\":false}", "{\"x1\":1}", NULL);
	check("{\"type\":[\"object\",\"array\"],\"items\":{\"type\":\"number\"}}", "[\"a\"]", "$[0]: no number");
}

int
main(void)
{
	check(PERSON, "{\"name\":\"a\",\"age\":3}", NULL);
	check(PERSON, "{\"name\":\"a\"}", NULL);
	check(PERSON, "{\"name\":\"a\",\"age\":3.0}", NULL);
	check(PERSON, "{\"name\":\"a\",\"age\":3.5}", "$.age: no integer");
	check(PERSON, "{\"name\":\"a\",\"age\":null}", "$.age: no integer");
	check(PERSON, "{\"age\":3}", "$: 'name' is missing");
	check(PERSON, "{\"name\":\"a\",\"x\":1}", "'x' does not belong there");
	check(PERSON, "[]", "$: no object");
	check(PERSON, "Sure! {\"name\":\"a\"}", "it is not JSON");
	check(PERSON, "", "it is not JSON");
	check("{\"type\":\"array\",\"items\":" PERSON "}", "[{\"name\":\"a\"},{\"name\":1}]", "$[1].name: no string");
	check("{\"type\":\"array\",\"items\":" PERSON "}", "[]", NULL);
	check("{\"enum\":[\"a\",1,null]}", "null", NULL);
	check("{\"enum\":[\"a\",1,null]}", "2", "none of the values");
	check("{\"const\":null}", "1", "not the value");
	check("{\"type\":[\"string\",\"null\"]}", "null", NULL);
	check("{\"type\":[\"string\",\"null\"]}", "1", "none of the types");
	check("{\"type\":\"object\",\"additionalProperties\":{\"type\":\"number\"}}", "{\"a\":1,\"b\":\"x\"}", "$.b: no number");
	check("{\"anyOf\":[{\"type\":\"string\"}," PERSON "]}", "{\"name\":\"a\"}", NULL);
	check("{\"anyOf\":[{\"type\":\"string\"}," PERSON "]}", "7", "fits none");
	check("{}", "[1,{}]", NULL);
	check("true", "1", NULL);
	check("false", "1", "nothing may be there");
	check("{\"enum\":[1]}", "1.0", NULL);
	check("{\"const\":2.50}", "2.5", NULL);
	references();
	choices();
	limits();
	return done();
}

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
	return done();
}

/*
 * Checking a value against a JSON Schema: type, enum, const, properties, required, additionalProperties, items and anyOf, at any
 * depth. Other keywords are not looked at, so what fits here may still be refused by who wrote the schema.
 */
#ifndef AG2_SCHEMA_H
#define AG2_SCHEMA_H

#include "event/json.h"

/* ERR_DATA tells where and why: "$.items[2].age: no integer". */
int schema_check(struct json_object *schema, struct json_object *value, struct err *e);

/* The same for JSON text; text that is no JSON does not fit either. */
int schema_check_text(struct json_object *schema, const char *text, size_t len, struct err *e);

#endif

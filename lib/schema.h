/*
 * Checking a value against a JSON Schema, at any depth: type, enum, const, properties, required, additionalProperties, minProperties,
 * maxProperties, items, prefixItems, minItems, maxItems, uniqueItems, minimum, maximum, exclusiveMinimum, exclusiveMaximum,
 * multipleOf, minLength, maxLength, allOf, anyOf, oneOf, not, and $ref within the schema. Other keywords (pattern and format among
 * them) are not looked at, so what fits here may still be refused by who wrote the schema.
 */
#ifndef AG2_SCHEMA_H
#define AG2_SCHEMA_H

#include "event/json.h"

/* A schema that can be checked against: ERR_DATA names a $ref that leads nowhere, or out of it. */
int schema_usable(struct json_object *schema, struct err *e);

/* ERR_DATA tells where the JSON text does not fit, and why: "$.items[2].age: no integer". Text that is no JSON does not fit. */
int schema_check_text(struct json_object *schema, const char *text, size_t len, struct err *e);

/* Each schema that is directly within this one, whatever the keyword; not 0 from fn ends it. */
int schema_each(struct json_object *schema, int (*fn)(void *arg, struct json_object *inner), void *arg);

#endif

/* Pieces of Python's repr. Private to lib/event. */
#ifndef AG2_REPR_H
#define AG2_REPR_H

#include "event/json.h"
#include "event/type.h"

/* A float: "1.0", "1e+22", "nan", "-inf". */
void repr_double(struct buf *out, double value);
/* A number as it was spelled, or as json_write would. */
void json_write_number(struct buf *out, struct json_object *value);

/* A str and a bytes object, in the quotes that Python chooses. Invalid UTF-8 counts as U+FFFD. */
void repr_text(struct buf *out, const char *text, size_t len);
void repr_bytes(struct buf *out, const void *data, size_t len);

/*
 * Python's repr and str of a value as AG2 has it in memory: nested events, dataclasses, enums, bytes, UUIDs and
 * exceptions where the record has their markers. str differs for strings and for the last four.
 */
void repr_value(struct buf *out, struct json_object *value);
void str_value(struct buf *out, struct json_object *value);

/* The type of an event inside an event, NULL when value is none (or of a class that is not listed). */
const struct event_type *nested_type(struct json_object *value);

/* Whether str.isprintable() holds for one code point. */
bool repr_printable(uint32_t c);

#endif

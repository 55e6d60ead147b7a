/* Prompt templates: {name} replaced in one pass, every other brace left alone (also such braces that values bring in). */
#ifndef AG2_TEMPLATE_H
#define AG2_TEMPLATE_H

#include "base/buf.h"

struct template_value {
	const char *name;
	const char *data;
	size_t len;
};
void template_fill(struct buf *out, const char *text, size_t len, const struct template_value *values, size_t n);

#endif

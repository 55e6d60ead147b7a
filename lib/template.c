#include "template.h"

/* The value whose {name} stands at text, or NULL. */
static const struct template_value *
named_at(const char *text, size_t len, const struct template_value *values, size_t n)
{
	size_t i, name;

	for (i = 0; i < n; i++) {
		name = strlen(values[i].name);
		if (len >= name + 2 && memcmp(text + 1, values[i].name, name) == 0 && text[name + 1] == '}')
			return &values[i];
	}
	return NULL;
}

void
template_fill(struct buf *out, const char *text, size_t len, const struct template_value *values, size_t n)
{
	const char *end = text + len, *brace;
	const struct template_value *v;

	while (text < end) {
		brace = memchr(text, '{', (size_t)(end - text));
		if (brace == NULL)
			brace = end;
		buf_add(out, text, (size_t)(brace - text));
		text = brace;
		if (text == end)
			break;
		v = named_at(text, (size_t)(end - text), values, n);
		if (v != NULL) {
			buf_add(out, v->data, v->len);
			text += strlen(v->name) + 2;
		} else {
			buf_addch(out, *text++);
		}
	}
}

#include "yamltree.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/opts.h"
#include "event/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct parser {
	yaml_parser_t yaml;
	yaml_event_t event;	/* the current one */
	bool has_event;
	size_t values;
	const char *text;
};

static unsigned
line_of(const struct parser *p)
{
	return (unsigned)p->event.start_mark.line + 1;
}

/* A byte that is no text has no mark of its own. */
static unsigned
line_of_byte(const char *text, size_t offset)
{
	const char *end = text + offset;
	unsigned line = 1;

	while ((text = memchr(text, '\n', (size_t)(end - text))) != NULL) {
		text++;
		line++;
	}
	return line;
}

static int
syntax_error(const struct parser *p, struct err *e)
{
	const char *problem = p->yaml.problem ? p->yaml.problem : "cannot be read";
	unsigned line = (unsigned)p->yaml.problem_mark.line + 1;
	const char *context = p->yaml.context;

	if (p->yaml.error == YAML_READER_ERROR)
		return err_set(e, ERR_CONFIG, "%u: %s", line_of_byte(p->text, p->yaml.problem_offset), problem);
	if (context != NULL)
		return err_set(e, ERR_CONFIG, "%u: %s (%s, which begins in line %zu)", line, problem, context,
		    p->yaml.context_mark.line + 1);
	return err_set(e, ERR_CONFIG, "%u: %s", line, problem);
}

static int
advance(struct parser *p, struct err *e)
{
	if (p->has_event)
		yaml_event_delete(&p->event);
	p->has_event = false;
	if (!yaml_parser_parse(&p->yaml, &p->event))
		return syntax_error(p, e);
	p->has_event = true;
	return 0;
}

/* What all values have in common, whatever their kind. */
static int
check_properties(const struct parser *p, const yaml_char_t *anchor, const yaml_char_t *tag, struct err *e)
{
	if (anchor != NULL)
		return err_set(e, ERR_CONFIG, "%u: anchors are not allowed ('&%s')", line_of(p), (const char *)anchor);
	if (tag != NULL)
		return err_set(e, ERR_CONFIG, "%u: tags are not allowed ('%s')", line_of(p), (const char *)tag);
	return 0;
}

static int
scalar_text(const struct parser *p, char **text, struct err *e)
{
	const char *value = (const char *)p->event.data.scalar.value;
	size_t len = p->event.data.scalar.length;

	if (memchr(value, '\0', len) != NULL)
		return err_set(e, ERR_CONFIG, "%u: a value contains a NUL", line_of(p));
	*text = xmemdup0(value, len);
	return 0;
}

static int
parse_scalar(struct parser *p, struct node *n, struct err *e)
{
	if (check_properties(p, p->event.data.scalar.anchor, p->event.data.scalar.tag, e) < 0)
		return -1;
	n->kind = NODE_SCALAR;
	n->plain = p->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	return scalar_text(p, &n->text, e);
}

static int
by_key(const void *a, const void *b)
{
	const struct node *const *x = a, *const *y = b;
	int order = strcmp((*x)->key, (*y)->key);

	return order ? order : ((*x)->line > (*y)->line) - ((*x)->line < (*y)->line);
}

static int
check_duplicates(const struct node *map, struct err *e)
{
	const struct node **sorted, *n;
	size_t count = 0, i;
	int rc = 0;

	for (n = map->first; n != NULL; n = n->next)
		count++;
	sorted = xcalloc(count, sizeof(*sorted));
	for (i = 0, n = map->first; n != NULL; n = n->next)
		sorted[i++] = n;
	qsort(sorted, count, sizeof(*sorted), by_key);
	for (i = 1; i < count && rc == 0; i++)
		if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0)
			rc = err_set(e, ERR_CONFIG, "%u: the key '%.100s' is already in line %u", sorted[i]->line, sorted[i]->key,
			    sorted[i - 1]->line);
	free(sorted);
	return rc;
}

static int parse_value(struct parser *p, struct node *n, int depth, struct err *e);

/* Children up to the end of the list or map, which is then the current event. */
static int
parse_children(struct parser *p, struct node *parent, yaml_event_type_t end, int depth, struct err *e)
{
	struct node **tail = &parent->first, *n;

	for (;;) {
		if (advance(p, e) < 0)
			return -1;
		if (p->event.type == end)
			return 0;
		n = *tail = xcalloc(1, sizeof(*n));
		tail = &n->next;
		n->line = line_of(p);
		if (parent->kind == NODE_MAP) {
			if (p->event.type != YAML_SCALAR_EVENT && p->event.type != YAML_ALIAS_EVENT)
				return err_set(e, ERR_CONFIG, "%u: a key must be plain text", n->line);
			if (parse_value(p, n, depth, e) < 0)
				return -1;
			n->key = n->text;
			n->text = NULL;
			if (advance(p, e) < 0)
				return -1;
		}
		if (parse_value(p, n, depth, e) < 0)
			return -1;
	}
}

/* The value that begins with the current event; ends with its last event current. */
static int
parse_value(struct parser *p, struct node *n, int depth, struct err *e)
{
	if (++p->values > YAMLTREE_VALUES)
		return err_set(e, ERR_CONFIG, "%u: more than %d values", line_of(p), YAMLTREE_VALUES);
	if (depth >= YAMLTREE_DEPTH && p->event.type != YAML_SCALAR_EVENT)
		return err_set(e, ERR_CONFIG, "%u: nested deeper than %d", line_of(p), YAMLTREE_DEPTH);
	switch (p->event.type) {
	case YAML_SCALAR_EVENT:
		return parse_scalar(p, n, e);
	case YAML_SEQUENCE_START_EVENT:
		if (check_properties(p, p->event.data.sequence_start.anchor, p->event.data.sequence_start.tag, e) < 0)
			return -1;
		n->kind = NODE_LIST;
		return parse_children(p, n, YAML_SEQUENCE_END_EVENT, depth + 1, e);
	case YAML_MAPPING_START_EVENT:
		if (check_properties(p, p->event.data.mapping_start.anchor, p->event.data.mapping_start.tag, e) < 0)
			return -1;
		n->kind = NODE_MAP;
		if (parse_children(p, n, YAML_MAPPING_END_EVENT, depth + 1, e) < 0)
			return -1;
		return check_duplicates(n, e);
	case YAML_ALIAS_EVENT:
		return err_set(e, ERR_CONFIG, "%u: aliases are not allowed ('*%s')", line_of(p),
		    (const char *)p->event.data.alias.anchor);
	default:
		return err_set(e, ERR_BUG, "%u: unexpected YAML event %d", line_of(p), (int)p->event.type);
	}
}

static int
parse_stream(struct parser *p, struct node **root, struct err *e)
{
	if (advance(p, e) < 0 || advance(p, e) < 0)	/* the stream, the first document */
		return -1;
	if (p->event.type == YAML_STREAM_END_EVENT)
		return 0;
	if (advance(p, e) < 0)
		return -1;
	*root = xcalloc(1, sizeof(**root));
	(*root)->line = line_of(p);
	if (parse_value(p, *root, 0, e) < 0)
		return -1;
	if (advance(p, e) < 0 || advance(p, e) < 0)	/* the document's end, the stream's */
		return -1;
	if (p->event.type != YAML_STREAM_END_EVENT)
		return err_set(e, ERR_CONFIG, "%u: a second document begins", line_of(p));
	return 0;
}

int
yamltree_parse(struct node **root, const char *text, size_t len, struct err *e)
{
	struct parser p = { 0 };
	int rc;

	/* libyaml takes one for a column, so that the second key would stand elsewhere than the first. */
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		text += 3;
		len -= 3;
	}
	p.text = text;
	*root = NULL;
	if (!yaml_parser_initialize(&p.yaml))
		return err_set(e, ERR_BUG, "1: cannot start the YAML parser");
	yaml_parser_set_encoding(&p.yaml, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&p.yaml, (const unsigned char *)text, len);
	rc = parse_stream(&p, root, e);
	if (p.has_event)
		yaml_event_delete(&p.event);
	yaml_parser_delete(&p.yaml);
	if (rc < 0) {
		yamltree_free(*root);
		*root = NULL;
	}
	return rc;
}

/* Recursion is bounded by the depth that was accepted. */
void
yamltree_free(struct node *n)
{
	struct node *next;

	for (; n != NULL; n = next) {
		next = n->next;
		yamltree_free(n->first);
		free(n->key);
		free(n->text);
		free(n);
	}
}

int
node_fail(const struct node *n, const char *file, struct err *e, const char *fmt, ...)
{
	struct buf what = BUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	buf_vaddf(&what, fmt, ap);
	va_end(ap);
	err_set(e, ERR_CONFIG, "%s:%u: %s", file, n->line, what.data);
	buf_release(&what);
	return -1;
}

int
node_unknown(const struct node *n, const char *file, const char *const *names, size_t count, struct err *e)
{
	char *word = xstrdup(n->key), *c;
	const char *near;

	for (c = word; *c != '\0'; c++)
		if (*c == '-')
			*c = '_';
	near = nearest(word, names, count);
	free(word);
	return node_fail(n, file, e, "unknown key '%.100s'%s%s%s", n->key, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static bool
one_of(const char *text, const char *const *words, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strcmp(text, words[i]) == 0)
			return true;
	return false;
}

static bool
all_of(const char *text, const char *set)
{
	return *text != '\0' && text[strspn(text, set)] == '\0';
}

#define DIGITS "0123456789"

static bool
is_int(const char *s)
{
	if (s[0] == '0' && s[1] == 'o')
		return all_of(s + 2, "01234567");
	if (s[0] == '0' && s[1] == 'x')
		return all_of(s + 2, DIGITS "abcdefABCDEF");
	if (*s == '-' || *s == '+')
		s++;
	return all_of(s, DIGITS);
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool
is_float(const char *s)
{
	size_t before, after = 0;

	if (*s == '-' || *s == '+')
		s++;
	s += before = strspn(s, DIGITS);
	if (*s == '.')
		s += 1 + (after = strspn(s + 1, DIGITS));
	if (before == 0 && after == 0)
		return false;
	if (*s == '\0')
		return true;
	if (*s != 'e' && *s != 'E')
		return false;
	s++;
	if (*s == '-' || *s == '+')
		s++;
	return all_of(s, DIGITS);
}

static bool
is_infinite(const char *s)
{
	static const char *const inf[] = { ".inf", ".Inf", ".INF" }, *const nan[] = { ".nan", ".NaN", ".NAN" };

	if (one_of(s, nan, 3))
		return true;
	if (*s == '-' || *s == '+')
		s++;
	return one_of(s, inf, 3);
}

bool
node_true(const struct node *n)
{
	static const char *const yes[] = { "true", "True", "TRUE" };

	return n->kind == NODE_SCALAR && n->plain && one_of(n->text, yes, 3);
}

enum scalar_type
node_type(const struct node *n)
{
	static const char *const null[] = { "", "~", "null", "Null", "NULL" }, *const no[] = { "false", "False", "FALSE" };

	if (n->kind != NODE_SCALAR || !n->plain)
		return SCALAR_TEXT;
	if (one_of(n->text, null, 5))
		return SCALAR_NULL;
	if (node_true(n) || one_of(n->text, no, 3))
		return SCALAR_BOOL;
	if (is_int(n->text))
		return SCALAR_INT;
	if (is_float(n->text) || is_infinite(n->text))
		return SCALAR_FLOAT;
	return SCALAR_TEXT;
}

/* 0x1f, 0o17, +5, 007: integers that JSON spells otherwise. */
static struct json_object *
other_int(const char *s)
{
	int base = s[0] == '0' && s[1] == 'x' ? 16 : s[0] == '0' && s[1] == 'o' ? 8 : 10;
	long long v;
	char *end;

	errno = 0;
	v = strtoll(base == 10 ? s : s + 2, &end, base);
	return errno == 0 && *end == '\0' ? json_object_new_int64(v) : NULL;
}

static int
number_json(struct json_object **out, const struct node *n, struct err *e)
{
	const char *s = n->text;

	if (json_parse(out, s, strlen(s), NULL) == 0)
		return 0;
	*out = NULL;
	if (node_type(n) == SCALAR_INT)
		*out = other_int(s);
	else if (!is_infinite(s))
		*out = json_object_new_double(strtod(s, NULL));
	if (*out == NULL)
		return err_set(e, ERR_CONFIG, "%u: JSON cannot hold the number '%.100s'", n->line, s);
	return 0;
}

static int
scalar_json(struct json_object **out, const struct node *n, struct err *e)
{
	switch (node_type(n)) {
	case SCALAR_NULL:
		*out = NULL;
		return 0;
	case SCALAR_BOOL:
		*out = json_object_new_boolean(node_true(n));
		return 0;
	case SCALAR_INT:
	case SCALAR_FLOAT:
		return number_json(out, n, e);
	default:
		*out = json_object_new_string_len(n->text, (int)strlen(n->text));
		return 0;
	}
}

int
node_json(struct json_object **out, const struct node *n, struct err *e)
{
	const struct node *child;
	struct json_object *v;

	if (n->kind == NODE_SCALAR)
		return scalar_json(out, n, e);
	*out = n->kind == NODE_LIST ? json_object_new_array() : json_object_new_object();
	for (child = n->first; child != NULL; child = child->next) {
		if (node_json(&v, child, e) < 0) {
			json_object_put(*out);
			*out = NULL;
			return -1;
		}
		if (n->kind == NODE_LIST)
			json_object_array_add(*out, v);
		else
			json_object_object_add(*out, child->key, v);
	}
	return 0;
}

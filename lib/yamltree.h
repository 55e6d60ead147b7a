/*
 * A YAML document as a tree that remembers its lines, and nothing of YAML that can surprise: no aliases, anchors, tags,
 * duplicate keys, keys that are not scalars, NULs or second documents; bounded in depth and in the number of values. So
 * a few hundred bytes cannot become gigabytes, and what stands in the file is what is meant.
 */
#ifndef AG2_YAMLTREE_H
#define AG2_YAMLTREE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <json.h>

#define YAMLTREE_DEPTH 64
#define YAMLTREE_VALUES 500000

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
	struct node *next;	/* the next child of the same parent */
	struct node *first;	/* children of a list or map in the order of the file */
	char *key;		/* of a map's child */
	char *text;		/* of a scalar */
	unsigned line;		/* of its key if it has one, else its own; from 1 */
	enum node_kind kind;
	bool plain;		/* a scalar without quotes: may be null, a boolean or a number */
};

/* *root is NULL for an empty document. Every error is ERR_CONFIG "LINE: what". yamltree_free frees; NULL is allowed. */
int yamltree_parse(struct node **root, const char *text, size_t len, struct err *e);
void yamltree_free(struct node *n);

/* For who reads the tree: ERR_CONFIG "FILE:LINE: what"; and that n's key is none of these, with the nearest of them (`-` is `_`). */
int node_fail(const struct node *n, const char *file, struct err *e, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
int node_unknown(const struct node *n, const char *file, const char *const *names, size_t count, struct err *e);

/* What a scalar is by the core schema of YAML 1.2. */
enum scalar_type { SCALAR_TEXT, SCALAR_NULL, SCALAR_BOOL, SCALAR_INT, SCALAR_FLOAT };
enum scalar_type node_type(const struct node *n);
bool node_true(const struct node *n);	/* of SCALAR_BOOL */

/* The whole as a JSON value; numbers keep their digits. *out is the caller's; errors as above. */
int node_json(struct json_object **out, const struct node *n, struct err *e);

#endif

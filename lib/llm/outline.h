/* What the bytes of a request body belong to: its members, and the elements of those that are arrays. */
#ifndef AG2_OUTLINE_H
#define AG2_OUTLINE_H

#include <stdbool.h>
#include <stddef.h>

struct outline_part {
	const char *name;	/* the member's, between its quotes */
	size_t name_len;
	long index;		/* of an element of its array; -1: the member has no elements */
	size_t start, end;	/* bytes of the body, value or element; a member's from its name on */
};
/*
 * Calls fn for each part in order; non-zero from it ends the walk and is returned. Of a body that is no JSON object (JSON
 * lines) each line is a part named "line", with its index. What is broken ends the walk.
 */
int outline(const char *body, size_t len, int (*fn)(void *arg, const struct outline_part *p), void *arg);

/* Whether it is an element of the array that holds the history, whatever the provider calls it. */
bool outline_is_message(const struct outline_part *p);

#endif

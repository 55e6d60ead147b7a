/* What our children find in their environment, and what not. */
#ifndef AG2_ASK_ENVIRON_H
#define AG2_ASK_ENVIRON_H

#include "config.h"
#include "store/store.h"

struct env_list {
	char **items;		/* as struct run has it, NULL-terminated */
	size_t n, cap;
};

void env_add(struct env_list *l, char *item);	/* NAME=value, NAME (is taken out), or the NULL at the end; the list's then */
void env_set(struct env_list *l, const char *name, const char *value);	/* nothing for NULL */

/*
 * For the user's own parts (policies, models, the bootstrap), and for tools, which get no keys. store and stream may be NULL; a
 * filter leaves the stream of an agent around us as it is.
 */
void children_env(struct env_list *commands, struct env_list *tools, const struct agent *a, const struct store *store, const char *stream, bool filter);
void env_release(struct env_list *l);

#endif

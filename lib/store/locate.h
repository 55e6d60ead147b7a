/* Where a store's URL leads: the back end, the place, the options. For store.c only. */
#ifndef AG2_STORE_LOCATE_H
#define AG2_STORE_LOCATE_H

#include "store/backend.h"

struct location {
	const struct store_backend *be;
	char *where;		/* absolute, where it is a file's name */
	const char *options;	/* what follows the last '?', borrowed from the URL; NULL when there is none */
	struct buf own;		/* the options that are the back end's own */
};

/* Fills l, which is released in any case, and what the URL says of o. Errors: ERR_USAGE, or what getcwd said. */
int location_init(struct location *l, const char *url, struct store_options *o, struct err *e);
void location_release(struct location *l);

/* A URL again, the same wherever the current directory is; to be freed. */
char *location_url(const struct location *l);

#endif

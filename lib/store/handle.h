/* An open store, for store.c, commit.c and watch.c, which are what lies above the back ends. */
#ifndef AG2_STORE_HANDLE_H
#define AG2_STORE_HANDLE_H

#include "store/backend.h"

struct store {
	const struct store_backend *be;
	void *self;
	char *url;
	enum store_mode mode;
	struct store_lock *locks;
	uint64_t commits;	/* that were made through it */
	unsigned timeout_ms;
	bool lock;		/* each change under locks of its own */
};

struct store_file {
	const struct store_backend *be;
	void *file;
};

/* ERR_PERM when it is opened for reading. */
int store_may_change(const struct store *s, struct err *e);

#endif

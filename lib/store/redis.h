/* What the files of the store on a Redis server share: redis.c, redis_lock.c, redis_watch.c, redis_check.c. */
#ifndef AG2_REDIS_H
#define AG2_REDIS_H

#include "store/backend.h"
#include "store/redis_link.h"

struct redis_store {
	struct redis_place place;
	struct redis_link *link;
	struct store_options o;
	char *prefix;
	char id[33];			/* of this handle, for what must be told from others' */
	uint64_t serial;		/* of its last change */
	bool wait_disk;			/* after each change, until it is on disk */
	struct keeper *keeper;		/* NULL before the first lock */
};

double redis_deadline(const struct redis_store *s);
const char *redis_shown(const struct redis_store *s);

/* Runs a script over the store's own connection, within the timeout, and releases w. */
redisReply *redis_ask(struct redis_store *s, enum redis_script script, struct redis_words *w, struct err *e);

/* For an answer that makes no sense: frees it, fills e, gives -1. */
int redis_nonsense(struct redis_store *s, redisReply *r, struct err *e);

/* The text at a place of an answer's list; NULL when there is none. */
const char *redis_text_at(const redisReply *r, size_t i);

int redis_check(void *self, bool repair, store_finding_fn *fn, void *arg, struct err *e);

int redis_lock(void *self, const char *path, int64_t ttl_ms, int64_t wait_ms, void **lock, struct err *e);
int redis_lock_held(void *lock, struct err *e);
void redis_unlock(void *lock);
void redis_add_locks(struct redis_store *s, struct redis_words *w);	/* their number, and path and token of each */
void redis_free_keeper(struct redis_store *s);				/* when no lock is left */

int redis_watch(void *self, const char *path, void **watch, struct err *e);
int redis_watch_wait(void *watch, int64_t wait_ms, store_hint_fn *fn, void *arg, struct err *e);
void redis_watch_close(void *watch);

#endif

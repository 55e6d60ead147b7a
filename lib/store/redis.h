/* What the files of the store on a Redis server share. */
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
	char *under;			/* the locks of those who started us: "LENGTH:TOKENPATH" of each; NULL: none */
	bool wait_disk;			/* after each change, until it is on disk */
	struct keeper *keeper;		/* NULL before the first lock */
};

#define REDIS_SMALL	(256 * 1024)	/* bytes: such a file is fetched when it is opened, a larger one stays for readers when it is replaced */
#define REDIS_KEEP_MS	60000		/* so long */

enum redis_transport { REDIS_TCP, REDIS_SOCKET, REDIS_TLS };

/* Fills the place, the prefix and the password from a URL's parts (see backend.h, open). ERR_USAGE; ERR_PERM when password_cmd fails. */
int redis_take_url(struct redis_store *s, const char *where, const char *own, enum redis_transport over, struct err *e);

double redis_deadline(const struct redis_store *s);
const char *redis_shown(const struct redis_store *s);

/* Runs a script over the store's own connection, within the timeout, and releases w. */
redisReply *redis_ask(struct redis_store *s, enum redis_script script, struct redis_words *w, struct err *e);

/* For an answer that makes no sense: frees it, fills e, gives -1. */
int redis_nonsense(struct redis_store *s, redisReply *r, struct err *e);

/* The text at a place of an answer's list; NULL when there is none. */
const char *redis_text_at(const redisReply *r, size_t i);

/* The number that is written there, 0 when there is none. */
uint64_t redis_number_at(const redisReply *r, size_t i);

int redis_stat(void *self, const char *path, struct store_stat *st, struct err *e);
int redis_file_open(void *self, const char *path, void **file, struct store_stat *st, struct err *e);
ssize_t redis_file_read(void *file, uint64_t offset, void *data, size_t len, struct err *e);
void redis_file_close(void *file);
int redis_list(void *self, const char *path, unsigned flags, store_list_fn *fn, void *arg, struct err *e);

int redis_check(void *self, bool repair, store_finding_fn *fn, void *arg, struct err *e);

int redis_lock(void *self, const char *path, int64_t ttl_ms, int64_t wait_ms, void **lock, struct err *e);
int redis_lock_held(void *lock, struct err *e);
char *redis_lock_token(void *lock);
void redis_unlock(void *lock);
void redis_add_locks(struct redis_store *s, struct redis_words *w);	/* their number, and path and token of each */
void redis_free_keeper(struct redis_store *s);				/* when no lock is left */

int redis_watch(void *self, const char *path, void **watch, struct err *e);
int redis_watch_wait(void *watch, int64_t wait_ms, store_hint_fn *fn, void *arg, struct err *e);
void redis_watch_close(void *watch);

#endif

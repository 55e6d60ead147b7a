/*
 * What a back end provides to store.c and commit.c: one const table, listed in locate.c's array. Paths are normalised, and relative
 * locations in URLs are made absolute, before they come here. Contracts and errors are those of store.h's functions.
 */
#ifndef AG2_STORE_BACKEND_H
#define AG2_STORE_BACKEND_H

#include "store/store.h"

/* Something may have changed at path or below it; version, when it is not 0, is the file's. */
typedef void store_hint_fn(void *arg, const char *path, uint64_t version);

struct store_backend {
	const char *scheme;		/* as in the URL, without the colon */
	const char *summary;		/* one line for usage texts */
	bool remote;			/* what follows the scheme is no file's name and stays as it is */
	const char *const *options;	/* its own, each with the '=' behind its name, NULL-terminated; may be NULL */
	/*
	 * Opens `where`: the URL without scheme and options. own are those of its own options that were given, parted by '&', "" for none.
	 * self is the back end's own state, freed by close.
	 */
	int (*open)(void **self, const char *where, const char *own, const struct store_options *o, struct err *e);
	void (*close)(void *self);
	int (*stat)(void *self, const char *path, struct store_stat *st, struct err *e);
	int (*list)(void *self, const char *path, unsigned flags, store_list_fn *fn, void *arg, struct err *e);
	int (*file_open)(void *self, const char *path, void **file, struct store_stat *st, struct err *e);
	ssize_t (*file_read)(void *file, uint64_t offset, void *data, size_t len, struct err *e);	/* may give fewer bytes; 0 only at the end */
	void (*file_close)(void *file);
	int (*hold)(void *self, struct err *e);	/* these two may be NULL */
	void (*release)(void *self);
	bool pieces;			/* commit takes pieces and unchecked prefixes; else they come as data and with their hash */
	int (*commit)(void *self, struct store_op *ops, size_t n, struct err *e);
	int (*lock)(void *self, const char *path, int64_t ttl_ms, int64_t wait_ms, void **lock, struct err *e);
	int (*lock_held)(void *lock, struct err *e);	/* NULL: a lock is never lost */
	char *(*lock_token)(void *lock);		/* NULL: the same */
	void (*unlock)(void *lock);
	/*
	 * Watching, NULL where only this handle can change anything. watch_wait waits up to wait_ms (never for ever) and hints at
	 * what may have changed since the last wait, or since watch: 1, 0 when there is nothing, -1.
	 */
	int (*watch)(void *self, const char *path, void **watch, struct err *e);
	int (*watch_wait)(void *watch, int64_t wait_ms, store_hint_fn *fn, void *arg, struct err *e);
	void (*watch_close)(void *watch);
	int (*check)(void *self, bool repair, store_finding_fn *fn, void *arg, struct err *e);
};

/* The order of a listing: bytes, a directory's name with its '/'. So a file `a.txt` comes before a directory `a`. */
int store_name_compare(const char *a, bool a_dir, const char *b, bool b_dir);

/* Byte order with '/' before everything else, so that what lies below a path follows it at once. */
int store_tree_order(const char *a, const char *b);

/* ERR_CONFLICT: what a commit expects of the file, or of what it is to take from it, is not so. -1. */
int store_conflict(const char *path, struct err *e);

/* Between two tries for a lock that others hold for a moment; tries counts them from 0. */
void store_contend(unsigned tries);

/* Tells a finding; repaired may be NULL. */
void store_found(store_finding_fn *fn, void *arg, const char *path, const char *kind, const char *repaired, const char *what, ...)
    __attribute__((format(printf, 6, 7)));

extern const struct store_backend store_disk, store_sqlite, store_redis, store_redis_unix, store_redis_tls, store_memory;

#endif

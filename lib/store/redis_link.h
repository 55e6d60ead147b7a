/*
 * A connection to a Redis server (or Valkey, or a node of a cluster): commands with a deadline, again over a new
 * connection when one is lost, redirections followed, errors told apart. For the back end in redis.c only.
 */
#ifndef AG2_REDIS_LINK_H
#define AG2_REDIS_LINK_H

#include "base/buf.h"
#include "base/err.h"
#include "store/redis_script.h"

#include <hiredis/hiredis.h>

/* Where, and as whom. All strings are the owner's; a link borrows it. */
struct redis_place {
	char *socket;		/* a Unix socket, or */
	char *host;
	int port;
	bool tls;
	char *cacert, *cert, *key;	/* with TLS, files: whom to trust, as whom to come; NULL: the system's authorities, nobody */
	char *user;		/* NULL: the default user */
	char *password;		/* NULL: none */
	long db;
	bool hashed;		/* the keys' names have a {...}: a cluster can be used */
};

void redis_place_release(struct redis_place *p);

/* The arguments of a command. */
struct redis_words {
	const char **word;
	size_t *len;
	char **own;		/* what is to be freed of them, NULL elsewhere */
	size_t n, cap;
};

void redis_words_release(struct redis_words *w);
void redis_add(struct redis_words *w, const void *data, size_t len);		/* borrowed */
void redis_adds(struct redis_words *w, const char *text);			/* borrowed */
void redis_addf(struct redis_words *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

struct redis_link;

/* Nothing is connected yet. name (CLIENT SETNAME) may be NULL. Both are borrowed. */
struct redis_link *redis_link_new(const struct redis_place *place, const char *name);
void redis_link_free(struct redis_link *l);
const char *redis_link_shown(const struct redis_link *l);	/* "redis at HOST:PORT", for messages */
int redis_link_fd(const struct redis_link *l);			/* -1 while it is not connected */

/* After a call that failed: the server may have carried the command out. */
bool redis_link_unsure(const struct redis_link *l);

/* Takes notice of the connection's end, for one who polls it: true when it is lost. Not to be called with an answer due. */
bool redis_link_gone(struct redis_link *l);

/*
 * Sends the command and gives its answer, never one of type error: free it with freeReplyObject. Until the deadline (of
 * clock_monotonic) a lost connection is made anew and the command sent AGAIN, and a server that is loading or not
 * settled yet is waited for. Errors: ERR_UNAVAIL there is no server · ERR_BUSY no answer in time, or loading ·
 * ERR_PERM password, permission, read-only replica · ERR_IO out of memory, or it cannot save · ERR_CONFIG · ERR_DATA.
 * NULL on error.
 */
redisReply *redis_call(struct redis_link *l, const struct redis_words *w, double deadline, struct err *e);

/* The same for a script; w are its ARGV, the first of them the prefix. */
redisReply *redis_run(struct redis_link *l, enum redis_script script, const struct redis_words *w, double deadline, struct err *e);

/*
 * For a connection that does nothing else: SUBSCRIBE, and whether anything has come by now, without waiting; true also when the connection
 * is lost, which redis_link_fd then says (it is -1).
 */
int redis_link_subscribe(struct redis_link *l, const char *channel, double deadline, struct err *e);
bool redis_link_news(struct redis_link *l);

#endif

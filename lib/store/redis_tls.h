/*
 * TLS to a Redis server, where hiredis was built with it (hiredis_ssl, of hiredis 1.x). Its library and OpenSSL are loaded
 * when a connection first wants them: that takes longer than these programs take to start.
 */
#ifndef AG2_REDIS_TLS_H
#define AG2_REDIS_TLS_H

#include "store/redis_link.h"

#ifdef AG2_HIREDIS_SSL
#define REDIS_TLS_SUMMARY "rediss://..., the same over TLS"
#else
#define REDIS_TLS_SUMMARY "rediss://..., the same over TLS: not in this build"
#endif

/* 0 when it can be had. ERR_CONFIG: this build has none, or its libraries are not installed. */
int redis_tls_load(struct err *e);

/*
 * Begins TLS over a connection that was just made to host (the certificate's name or address). The place says which authorities
 * are trusted, by default the system's, and as whom we come. *ssl is for redis_tls_step; it ends with the connection.
 */
struct ssl_st;
int redis_tls_begin(redisContext *c, const struct redis_place *p, const char *host, struct ssl_st **ssl, struct err *e);

/* 1 when TLS is there, 0 when the socket is to be waited for (*events, as poll has them), -1: ERR_UNAVAIL. */
int redis_tls_step(struct ssl_st *ssl, short *events, struct err *e);

#endif

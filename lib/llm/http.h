/*
 * One POST over HTTP: HTTP/2 where TLS offers it, packed answers, and the proxies of the environment as curl(1) has them (none for
 * http: to this host). The key goes into one header and nowhere else: not over http: except to loopback, not to where a
 * redirect points (none is followed), and is taken out of whatever the server says before that is quoted.
 */
#ifndef AG2_HTTP_H
#define AG2_HTTP_H

#include "base/buf.h"
#include "base/err.h"

enum { HTTP_MORE, HTTP_ENOUGH, HTTP_COMPLETE, HTTP_PADDED };

struct http_answer {
	long status;		/* 200-299 */
	const char *type;	/* its Content-Type; "" when it has none */
};

struct http_post {
	const char *base_url, *path;		/* https://api.openai.com/v1, /chat/completions; a query of the first stays behind */
	const char *query;			/* one more, alt=sse; NULL: none */
	const char *const *headers;		/* "Name: value", NULL-terminated; without secrets */
	const char *key_header, *key;		/* "Authorization: Bearer ", and the key; NULL key: neither is sent */
	const char *key_source;		/* what is said of it when it is refused (401): "the key is from OPENAI_API_KEY" */
	const char *cacert;			/* whom to trust: a file of certificates or a hashed directory; NULL: whom the system trusts */
	const char *cert, *cert_key, *cert_pass;	/* ours, its key (NULL: in the same file), what unlocks that; NULL: none */
	const char *body;
	size_t len;
	double timeout;				/* seconds in all, attempts and pauses together */
	double connect, first_byte, idle;	/* seconds, as in llm.h; 0: the default */
	long retries;				/* attempts beside the first; below 0: none */
	bool stream;				/* the answer comes in pieces; else silence may last as long as all */
	/*
	 * Gets the body of a 2xx answer as it comes: HTTP_MORE to go on, HTTP_COMPLETE when it has what it must have but the end may bring
	 * more (a server that only holds the connection then is left soon), HTTP_PADDED when it had it before and this piece brings
	 * nothing, HTTP_ENOUGH when nothing more is waited for, -1.
	 */
	int (*on_body)(void *arg, const struct http_answer *a, const char *data, size_t len, struct err *e);
	void *arg;
};

/*
 * What failed in passing is tried again, after a pause: connections that failed before anything came, and the statuses 408, 409,
 * 429 (but not for a used-up quota), 500 and above, of a proxy that is to connect as well, unless x-should-retry says otherwise. The pause is what Retry-After says
 * (seconds, with a fraction, or a date), retry-after-ms or Google's retryDelay, or grows from half a second to eight, less up to a quarter by chance. None is begun
 * that would end behind the time limit, and nothing is tried again once on_body got something.
 *
 * 0 when the body came to an orderly end or on_body wanted no more. -1 with on_body's error, or: ERR_UNAVAIL not
 * reachable, refused, cut short, out of time, interrupted; ERR_BUSY status 429 (but not for a used-up quota), 503 and 529; ERR_PERM 401,
 * 403 and 407; ERR_CONFIG a URL, key or certificate that cannot be used. Messages name the host and quote the server in one line.
 */
int http_post(const struct http_post *p, struct err *e);

/* Whether these certificates (as `cacert`) are those that are trusted anyway, by the fastest way to them. */
bool http_trusts(const char *path);

#endif

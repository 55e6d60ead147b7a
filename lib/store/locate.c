#include "store/locate.h"

#include "base/alloc.h"
#include "base/opts.h"

#include <stdlib.h>
#include <unistd.h>

static const struct store_backend *const backends[] = {
	&store_disk,
	&store_sqlite,
	&store_redis,
	&store_redis_unix,
	&store_redis_tls,
	&store_memory,
};
#define BACKENDS (sizeof(backends) / sizeof(backends[0]))

static size_t
scheme_length(const char *url)
{
	size_t n = strspn(url, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");

	return n > 0 && url[n] == ':' ? n : 0;
}

static const struct store_backend *
backend_named(const char *scheme, size_t len)
{
	size_t i;

	for (i = 0; i < BACKENDS; i++)
		if (strlen(backends[i]->scheme) == len && memcmp(backends[i]->scheme, scheme, len) == 0)
			return backends[i];
	return NULL;
}

static bool
ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n > k && strcmp(s + n - k, end) == 0;
}

static int
unknown_scheme(const char *url, size_t len, struct err *e)
{
	struct buf known = BUF_INIT;
	size_t i;

	for (i = 0; i < BACKENDS; i++)
		buf_addf(&known, "%s%s:", i == 0 ? "" : i + 1 < BACKENDS ? ", " : " and ", backends[i]->scheme);
	/* No more of it: there may be a password in it. */
	err_set(e, ERR_USAGE, "no kind of store is called '%.*s'; there are %s (a file with a colon in its name has ./ before it)",
	    (int)(len < 40 ? len : 40), url, known.data);
	buf_release(&known);
	return -1;
}

/* "/a/./b" is "/a/b": it is shown to people, and compared by them. */
static void
drop_dots(char *path)
{
	char *dot;

	while ((dot = strstr(path, "/./")) != NULL)
		memmove(dot, dot + 2, strlen(dot + 2) + 1);
}

/* Fills l from url; the location is made absolute here, once, so that a later chdir changes nothing. */
static int
locate(const char *url, struct location *l, struct err *e)
{
	size_t scheme = scheme_length(url), len;
	const char *where = url, *mark = NULL;
	char *cwd;

	if (scheme > 0) {
		if ((l->be = backend_named(url, scheme)) == NULL)
			return unknown_scheme(url, scheme, e);
		where = url + scheme + 1;
		mark = strrchr(where, '?');
	} else {
		const char *kind = ends_with(url, ".db") || ends_with(url, ".sqlite") ? "sqlite" : "disk";

		if (url[0] == '\0')
			return err_set(e, ERR_USAGE, "the store's URL is empty");
		if ((l->be = backend_named(kind, strlen(kind))) == NULL)
			return err_set(e, ERR_USAGE, "'%s': this build has no %s: stores", url, kind);
	}
	l->options = mark ? mark + 1 : NULL;
	len = mark ? (size_t)(mark - where) : strlen(where);
	if (l->be->remote) {
		l->where = xmemdup0(where, len);
		return 0;
	}
	if (len == 0 || where[0] == '/') {
		l->where = xmemdup0(where, len);
		drop_dots(l->where);
		return 0;
	}
	if ((cwd = getcwd(NULL, 0)) == NULL)
		return err_sys(e, "cannot tell the current directory");
	l->where = xasprintf("%s/%.*s", strcmp(cwd, "/") == 0 ? "" : cwd, (int)len, where);
	drop_dots(l->where);
	free(cwd);
	return 0;
}

static int
one_option(const char *text, size_t len, const char *more, struct store_options *o, struct err *e)
{
	static const char *const known[] = { [STORE_SYNC_NORMAL] = "sync=normal", [STORE_SYNC_FULL] = "sync=full" };
	const char *mark;
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strlen(known[i]) == len && memcmp(known[i], text, len) == 0) {
			o->sync = (enum store_sync)i;
			return 0;
		}
	if (len == strlen("lock=1") && memcmp(text, "lock=", 5) == 0 && (text[5] == '0' || text[5] == '1')) {
		o->lock = text[5] == '1';
		return 0;
	}
	/* Its value is not told: it may be a password, or the rest of one. */
	mark = memchr(text, '=', len);
	if (mark == NULL)
		return err_set(e, ERR_USAGE, "an option of the store's URL has no '='; there are sync=normal, sync=full, lock=1, timeout=%s", more);
	len = (size_t)(mark + 1 - text);
	return err_set(e, ERR_USAGE, "'%.*s' is no option of a store; there are sync=normal, sync=full, lock=1, timeout=%s",
	    (int)(len < 40 ? len : 40), text, more);
}

/* "timeout=S": 1 when it is that, 0 when it is another option. */
static int
take_timeout(const char *text, size_t len, struct store_options *o, struct err *e)
{
	const size_t n = strlen("timeout=");
	double seconds = 0;
	char *given;
	int rc;

	if (len < n || memcmp(text, "timeout=", n) != 0)
		return 0;
	given = xmemdup0(text + n, len - n);
	rc = parse_seconds(given, "timeout", &seconds, e);
	if (rc == 0 && (seconds <= 0 || seconds > 86400))
		rc = err_set(e, ERR_USAGE, "a timeout of %s seconds", given);
	free(given);
	if (rc == 0)
		o->timeout_ms = seconds < 0.001 ? 1 : (unsigned)(seconds * 1000 + 0.5);
	return rc < 0 ? -1 : 1;
}

/* Whether it is one of the back end's own. */
static bool
is_own_option(const struct store_backend *be, const char *text, size_t len)
{
	size_t i, n;

	for (i = 0; be->options != NULL && be->options[i] != NULL; i++) {
		n = strlen(be->options[i]);
		if (len >= n && memcmp(text, be->options[i], n) == 0)
			return true;
	}
	return false;
}

/* The back end's own are handed on. */
static int
take_options(struct location *l, struct store_options *o, struct err *e)
{
	const char *text = l->options;
	struct buf more = BUF_INIT;
	size_t len, i;
	int rc = 0;

	for (i = 0; l->be->options != NULL && l->be->options[i] != NULL; i++)
		buf_addf(&more, ", %s", l->be->options[i]);
	for (; rc == 0 && text != NULL && *text != '\0'; text += len + (text[len] == '&')) {
		len = strcspn(text, "&");
		if (len > 0 && is_own_option(l->be, text, len))
			buf_addf(&l->own, "%s%.*s", l->own.len == 0 ? "" : "&", (int)len, text);
		else if (len > 0 && (rc = take_timeout(text, len, o, e)) == 0)
			rc = one_option(text, len, more.data, o, e);
		rc = rc < 0 ? -1 : 0;
	}
	buf_release(&more);
	return rc;
}

/* A '?' in the location itself needs one behind it, or what follows it would be taken for options. */
char *
location_url(const struct location *l)
{
	bool mark = (l->options != NULL && l->options[0] != '\0') || strchr(l->where, '?') != NULL;

	return xasprintf("%s:%s%s%s", l->be->scheme, l->where, mark ? "?" : "", l->options ? l->options : "");
}

int
location_init(struct location *l, const char *url, struct store_options *o, struct err *e)
{
	*l = (struct location){ .own = BUF_INIT };
	return locate(url, l, e) < 0 ? -1 : take_options(l, o, e);
}

void
location_release(struct location *l)
{
	free(l->where);
	buf_release(&l->own);
}

/* What a URL says of a store on a Redis server: where, as whom, which prefix. */
#include "store/redis.h"

#include "base/alloc.h"
#include "base/run.h"

#include <stdio.h>
#include <stdlib.h>

#define PREFIX		"ag2:knowledge"
#define PORT		6379
#define PASSWORD_MAX	4096

static int
decode(const char *text, size_t len, char **out, struct err *e)
{
	struct buf b = BUF_INIT;
	size_t i;
	char hex[3] = "", *end;

	for (i = 0; i < len; i++) {
		if (text[i] != '%') {
			buf_addch(&b, text[i]);
			continue;
		}
		memcpy(hex, text + i + 1, len - i > 2 ? 2 : 0);
		if (len - i <= 2 || strtol(hex, &end, 16) <= 0 || *end != '\0') {
			buf_release(&b);
			return err_set(e, ERR_USAGE, "the store's URL: a '%%' without two hexadecimal digits behind it");
		}
		buf_addch(&b, (char)strtol(hex, NULL, 16));
		i += 2;
	}
	free(*out);
	*out = buf_detach(&b, NULL);
	return 0;
}

static int
number(const char *text, size_t len, long least, long most, const char *what, long *out, struct err *e)
{
	char copy[16] = "", *end;

	if (len > 0 && len < sizeof(copy)) {
		memcpy(copy, text, len);
		*out = strtol(copy, &end, 10);
		if (*end == '\0' && copy[0] >= '0' && copy[0] <= '9' && *out >= least && *out <= most)
			return 0;
	}
	/* What it is instead is not told: in a URL that was put together in a wrong way it is a password. */
	return err_set(e, ERR_USAGE, "the store's URL has no %s where one belongs", what);
}

/*
 * "user:password@", wherever it stands in a URL, in however wrong a place: no part of it is told. A ':' and a '@' that are
 * meant for a socket's name are %3a and %40.
 */
static int
refuse_password(const char *where, enum redis_transport over, struct err *e)
{
	const char *sign = strrchr(where, '@');
	size_t host = strncmp(where, "//", 2) == 0 ? 2 + strcspn(where + 2, "/@") : 0;

	if (sign != NULL && memchr(where, ':', (size_t)(sign - where)) != NULL)
		return err_set(e, ERR_USAGE, "a password in the store's URL is for all to see; it is taken from REDISCLI_AUTH or password_cmd=");
	if (over == REDIS_SOCKET && where[host] == '@')
		return err_set(e, ERR_USAGE, "the store's URL: with a socket the user goes into user=");
	return 0;
}

/* "[user@]host[:port][/db]" */
static int
take_address(struct redis_place *p, const char *at, size_t len, struct err *e)
{
	const char *end = at + len, *slash = memchr(at, '/', len), *sign, *colon;
	size_t n;
	long port = PORT;

	if (slash == NULL)
		slash = end;
	if ((sign = memrchr(at, '@', (size_t)(slash - at))) != NULL) {
		if (sign > at && decode(at, (size_t)(sign - at), &p->user, e) < 0)
			return -1;
		at = sign + 1;
	}
	n = (size_t)(slash - at);
	if (n > 0 && at[0] == '[' && (colon = memchr(at, ']', n)) != NULL) {
		p->host = xmemdup0(at + 1, (size_t)(colon - at - 1));
		colon = colon + 1 < slash ? colon + 1 : NULL;
		if (colon != NULL && *colon != ':')
			return err_set(e, ERR_USAGE, "the store's URL: the host is followed by '%.*s'", (int)(slash - colon), colon);
	} else {
		colon = memchr(at, ':', n);
		p->host = xmemdup0(at, (size_t)((colon ? colon : slash) - at));
	}
	if (colon != NULL && number(colon + 1, (size_t)(slash - colon - 1), 1, 65535, "port", &port, e) < 0)
		return -1;
	if (p->host[0] == '\0') {
		free(p->host);
		p->host = xstrdup("127.0.0.1");
	}
	p->port = (int)port;
	return slash + 1 >= end ? 0 : number(slash + 1, (size_t)(end - slash - 1), 0, 1000000, "number of a database", &p->db, e);
}

struct url_options {
	char *prefix, *password_cmd, *db;
};

static int
take_option(struct redis_place *p, struct url_options *u, const char *text, size_t len, struct err *e)
{
	struct { const char *name; char **to; } known[] = {
		{ "prefix=", &u->prefix }, { "password_cmd=", &u->password_cmd }, { "db=", &u->db }, { "user=", &p->user },
		{ "cacert=", &p->cacert }, { "cert=", &p->cert }, { "key=", &p->key },
	};
	size_t i, n;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		n = strlen(known[i].name);
		if (len >= n && memcmp(text, known[i].name, n) == 0)
			return decode(text + n, len - n, known[i].to, e);
	}
	return err_set(e, ERR_BUG, "an option that is none");
}

/* As AG2: colons at its end belong to what stands between the prefix and the path. */
static int
take_prefix(struct redis_store *s, const char *given, struct err *e)
{
	size_t n;
	const char *open;

	s->prefix = xstrdup(given != NULL ? given : PREFIX);
	n = strlen(s->prefix);
	while (n > 0 && s->prefix[n - 1] == ':')
		s->prefix[--n] = '\0';
	if (n == 0 || n > 512)
		return err_set(e, ERR_USAGE, "the store's URL: a prefix of %zu bytes", n);
	open = strchr(s->prefix, '{');
	s->place.hashed = open != NULL && strchr(open, '}') > open + 1;
	return 0;
}

static int
take_password(struct redis_store *s, const char *command, struct err *e)
{
	struct buf out = BUF_INIT_MAX(PASSWORD_MAX);
	struct run r = { .shell = command, .out = &out, .timeout = s->o.timeout_ms / 1e3 };
	int status;

	if (command == NULL) {
		s->place.password = s->o.password != NULL && s->o.password[0] != '\0' ? xstrdup(s->o.password) : NULL;
		s->o.password = NULL;
		return 0;
	}
	s->o.password = NULL;
	status = run(&r, e);
	if (status == 0) {
		s->place.password = xmemdup0(out.data, strcspn(out.data, "\r\n"));
	} else if (status > 0) {
		err_set(e, ERR_PERM, "the store's password_cmd ended with status %d", status);
	} else {
		err_wrap(e, "the store's password_cmd");
	}
	explicit_bzero(out.data, out.len);
	buf_release(&out);
	return status == 0 ? 0 : -1;
}

/* The URL goes on to programs that run elsewhere. */
static int
check_file(const char *file, const char *what, struct err *e)
{
	if (file == NULL || file[0] == '/')
		return 0;
	return err_set(e, ERR_USAGE, "the store's URL: %s= needs a whole path, from the root, not '%.100s'", what, file);
}

int
redis_take_url(struct redis_store *s, const char *where, const char *own, enum redis_transport over, struct err *e)
{
	const char *text = own;
	size_t len = strlen(where), n;
	struct url_options u = { 0 };
	int rc = 0;

	s->place.tls = over == REDIS_TLS;
	if (refuse_password(where, over, e) < 0)
		return -1;
	if (over == REDIS_SOCKET && len == 0)
		rc = err_set(e, ERR_USAGE, "redis+unix: needs the path of the server's socket");
	else if (over == REDIS_SOCKET)
		rc = decode(where, len, &s->place.socket, e);
	else if (len < 2 || memcmp(where, "//", 2) != 0)
		rc = err_set(e, ERR_USAGE, "the store's URL: a server is redis://HOST:PORT/DB or redis+unix:/SOCKET");
	else
		rc = take_address(&s->place, where + 2, len - 2, e);
	for (; rc == 0 && *text != '\0'; text += n + (text[n] == '&'))
		if ((n = strcspn(text, "&")) > 0)
			rc = take_option(&s->place, &u, text, n, e);
	if (rc == 0 && u.db != NULL)
		rc = number(u.db, strlen(u.db), 0, 1000000, "number of a database", &s->place.db, e);
	if (rc == 0)
		rc = check_file(s->place.cacert, "cacert", e) < 0 || check_file(s->place.cert, "cert", e) < 0 || check_file(s->place.key, "key", e) < 0 ? -1 : 0;
	if (rc == 0)
		rc = take_prefix(s, u.prefix, e);
	if (rc == 0)
		rc = take_password(s, u.password_cmd, e);
	free(u.prefix);
	free(u.password_cmd);
	free(u.db);
	return rc;
}

/*
 * The store on a Redis server: the scripts are in redis_script.c, the connection is in redis_link.c, locks in redis_lock.c,
 * watching in redis_watch.c, fsck in redis_check.c. A file that is open
 * for reading is one version of it: small ones are fetched when they are opened; of large ones parts are, as long as they
 * were only appended to, and a value that is replaced stays under another name for the time that readers need.
 */
#include "store/redis.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/run.h"
#include "store/redis_tls.h"

#include <stdio.h>
#include <stdlib.h>

#define PREFIX		"ag2:knowledge"
#define PORT		6379
#define VALUE_MAX	((uint64_t)512 << 20)
#define SMALL		(256 * 1024)	/* fetched when opened */
#define WINDOW		(256 * 1024)	/* fetched at a time of a larger one, at least */
#define PART		(16 << 20)	/* and at most */
#define KEEP_MS		60000
#define NAMES_AT_ONCE	20000
#define PASSWORD_MAX	4096

struct redis_file {
	struct redis_store *s;
	char *path;
	uint64_t base, size;
	char *data;			/* bytes of it: from `start`, `len` many */
	uint64_t start, len;
};

double
redis_deadline(const struct redis_store *s)
{
	return clock_monotonic() + s->o.timeout_ms / 1e3;
}

const char *
redis_shown(const struct redis_store *s)
{
	return redis_link_shown(s->link);
}

redisReply *
redis_ask(struct redis_store *s, enum redis_script script, struct redis_words *w, struct err *e)
{
	redisReply *r = redis_run(s->link, script, w, redis_deadline(s), e);

	redis_words_release(w);
	return r;
}

int
redis_nonsense(struct redis_store *s, redisReply *r, struct err *e)
{
	freeReplyObject(r);
	return err_set(e, ERR_UNAVAIL, "%s: it answers in a way that no Redis would", redis_shown(s));
}

const char *
redis_text_at(const redisReply *r, size_t i)
{
	return r->type == REDIS_REPLY_ARRAY && i < r->elements && r->element[i]->type == REDIS_REPLY_STRING ? r->element[i]->str : NULL;
}

static uint64_t
number_at(const redisReply *r, size_t i)
{
	const char *text = redis_text_at(r, i);

	return text != NULL ? strtoull(text, NULL, 10) : 0;
}

static double
time_at(const redisReply *r, size_t i)
{
	const char *text = redis_text_at(r, i);
	double t = text != NULL ? strtod(text, NULL) : -1;

	return t >= 0 ? t : -1;
}

/* ---- URLs ---- */

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
number(const char *text, size_t len, long most, const char *what, long *out, struct err *e)
{
	char copy[16] = "", *end;

	if (len > 0 && len < sizeof(copy)) {
		memcpy(copy, text, len);
		*out = strtol(copy, &end, 10);
		if (*end == '\0' && copy[0] >= '0' && copy[0] <= '9' && *out <= most)
			return 0;
	}
	return err_set(e, ERR_USAGE, "the store's URL: '%.*s' is no %s", len < 60 ? (int)len : 60, text, what);
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
		if (memchr(at, ':', (size_t)(sign - at)) != NULL)
			return err_set(e, ERR_USAGE, "a password in the store's URL is for all to see; it is taken from REDISCLI_AUTH or password_cmd=");
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
	if (colon != NULL && number(colon + 1, (size_t)(slash - colon - 1), 65535, "port", &port, e) < 0)
		return -1;
	if (p->host[0] == '\0') {
		free(p->host);
		p->host = xstrdup("127.0.0.1");
	}
	p->port = (int)port;
	return slash + 1 >= end ? 0 : number(slash + 1, (size_t)(end - slash - 1), 1000000, "number of a database", &p->db, e);
}

enum transport { TCP, SOCKET, TLS };

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

static int
take_url(struct redis_store *s, const char *where, const char *own, enum transport over, struct err *e)
{
	const char *text = own;
	size_t len = strlen(where), n;
	struct url_options u = { 0 };
	int rc = 0;

	s->place.tls = over == TLS;
	if (over == SOCKET)
		rc = decode(where, len, &s->place.socket, e);
	else if (len < 2 || memcmp(where, "//", 2) != 0)
		rc = err_set(e, ERR_USAGE, "the store's URL: a server is redis://HOST:PORT/DB or redis+unix:/SOCKET");
	else
		rc = take_address(&s->place, where + 2, len - 2, e);
	for (; rc == 0 && *text != '\0'; text += n + (text[n] == '&'))
		if ((n = strcspn(text, "&")) > 0)
			rc = take_option(&s->place, &u, text, n, e);
	if (rc == 0 && u.db != NULL)
		rc = number(u.db, strlen(u.db), 1000000, "number of a database", &s->place.db, e);
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

/* ---- Opening ---- */

static int
make_id(char id[33], struct err *e)
{
	struct buf b = BUF_INIT;
	size_t i, n = 0;
	int rc = uuid_add(&b, e);

	for (i = 0; rc == 0 && i < b.len && n < 32; i++)
		if (b.data[i] != '-')
			id[n++] = b.data[i];
	id[n] = '\0';
	buf_release(&b);
	return rc;
}

/* Speaks with the server at once, so that what is wrong is said before any work is done. */
static int
look_for(struct redis_store *s, struct err *e)
{
	struct redis_words w = { 0 };
	redisReply *r;
	long long there;

	redis_adds(&w, s->prefix);
	if ((r = redis_ask(s, REDIS_THERE, &w, e)) == NULL)
		return -1;
	if (r->type != REDIS_REPLY_INTEGER)
		return redis_nonsense(s, r, e);
	there = r->integer;
	freeReplyObject(r);
	if (there == 0 && s->o.mode != STORE_CREATE)
		return err_set(e, ERR_NOINPUT, "%s has no store with the prefix '%s'", redis_shown(s), s->prefix);
	return 0;
}

/* The value of a setting of the server, to be freed; NULL where it is not to be had. */
static char *
setting(struct redis_store *s, const char *name)
{
	struct redis_words w = { 0 };
	redisReply *r;
	char *value = NULL;

	redis_adds(&w, "CONFIG");
	redis_adds(&w, "GET");
	redis_adds(&w, name);
	r = redis_call(s->link, &w, redis_deadline(s), NULL);
	redis_words_release(&w);
	if (r != NULL && redis_text_at(r, 1) != NULL)
		value = xstrdup(redis_text_at(r, 1));
	if (r != NULL)
		freeReplyObject(r);
	return value;
}

/* Until the changes so far are on the server's disk (Redis 7.2 and later). */
static int
wait_disk(struct redis_store *s, struct err *e)
{
	struct redis_words w = { 0 };
	redisReply *r;
	bool done;

	redis_adds(&w, "WAITAOF");
	redis_adds(&w, "1");
	redis_adds(&w, "0");
	redis_addf(&w, "%u", s->o.timeout_ms);
	r = redis_call(s->link, &w, redis_deadline(s) + 1, e);
	redis_words_release(&w);
	if (r == NULL)
		return -1;
	done = r->type == REDIS_REPLY_ARRAY && r->elements > 0 && r->element[0]->type == REDIS_REPLY_INTEGER && r->element[0]->integer > 0;
	freeReplyObject(r);
	return done ? 0 : err_set(e, ERR_BUSY, "%s: the change is made, and not known to be on its disk", redis_shown(s));
}

/* sync=full is promised only where it can be kept. */
static int
look_at_disk(struct redis_store *s, struct err *e)
{
	char *on, *when;

	if (s->o.sync != STORE_SYNC_FULL || s->o.mode == STORE_READ)
		return 0;
	on = setting(s, "appendonly");
	when = setting(s, "appendfsync");
	s->wait_disk = on == NULL || when == NULL || strcmp(on, "yes") != 0 || strcmp(when, "always") != 0;
	free(on);
	free(when);
	if (s->wait_disk && wait_disk(s, NULL) < 0)
		return err_set(e, ERR_CONFIG, "%s: sync=full is more than it can keep: it needs appendonly yes, and appendfsync always or Redis 7.2", redis_shown(s));
	return 0;
}

static void
redis_close(void *self)
{
	struct redis_store *s = self;

	if (s == NULL)
		return;
	redis_free_keeper(s);
	redis_link_free(s->link);
	redis_place_release(&s->place);
	free(s->prefix);
	free(s);
}

static int
open_any(void **self, const char *where, const char *own, const struct store_options *o, enum transport over, struct err *e)
{
	struct redis_store *s = xcalloc(1, sizeof(*s));
	int rc;

	s->o = *o;
	rc = take_url(s, where, own, over, e);
	if (rc == 0)
		rc = make_id(s->id, e);
	if (rc == 0) {
		s->link = redis_link_new(&s->place, NULL);
		rc = look_for(s, e);
	}
	if (rc == 0)
		rc = look_at_disk(s, e);
	if (rc < 0)
		redis_close(s);
	else
		*self = s;
	return rc;
}

static int
redis_open(void **self, const char *where, const char *own, const struct store_options *o, struct err *e)
{
	return open_any(self, where, own, o, TCP, e);
}

static int
redis_unix_open(void **self, const char *where, const char *own, const struct store_options *o, struct err *e)
{
	return open_any(self, where, own, o, SOCKET, e);
}

/* ---- Looking ---- */

/* 1 with the answer in *r when it is there (to be freed), 0, -1. */
static int
look(struct redis_store *s, const char *path, size_t content, redisReply **r, struct err *e)
{
	struct redis_words w = { 0 };
	const char *what;

	redis_adds(&w, s->prefix);
	redis_adds(&w, path);
	redis_adds(&w, s->o.mode == STORE_READ ? "r" : "w");
	redis_addf(&w, "%zu", content);
	if ((*r = redis_ask(s, REDIS_STAT, &w, e)) == NULL)
		return -1;
	if ((what = redis_text_at(*r, 0)) == NULL || (what[0] == 'f' && redis_text_at(*r, 5) == NULL))
		return redis_nonsense(s, *r, e);
	if (what[0] != '\0')
		return 1;
	freeReplyObject(*r);
	return 0;
}

static void
describe(const redisReply *r, struct store_stat *st)
{
	*st = (struct store_stat){ .mtime = -1, .dir = true };
	if (redis_text_at(r, 0)[0] == 'f')
		*st = (struct store_stat){ .size = number_at(r, 1), .version = number_at(r, 2), .mtime = time_at(r, 4) };
}

static int
redis_stat(void *self, const char *path, struct store_stat *st, struct err *e)
{
	redisReply *r;
	int rc = look(self, path, 0, &r, e);

	if (rc <= 0)
		return rc;
	describe(r, st);
	freeReplyObject(r);
	return 1;
}

static int
redis_file_open(void *self, const char *path, void **file, struct store_stat *st, struct err *e)
{
	struct redis_store *s = self;
	struct redis_file *f;
	redisReply *r;
	int rc = look(s, path, SMALL, &r, e);

	if (rc <= 0)
		return rc < 0 ? -1 : err_set(e, ERR_ABSENT, "'%s' is not in the store", path);
	describe(r, st);
	if (st->dir) {
		freeReplyObject(r);
		return err_set(e, ERR_ABSENT, "'%s' is a directory", path);
	}
	if (st->size <= SMALL && r->element[5]->len != st->size)
		return redis_nonsense(s, r, e);
	f = xcalloc(1, sizeof(*f));
	f->s = s;
	f->path = xstrdup(path);
	f->base = number_at(r, 3);
	f->size = st->size;
	f->len = r->element[5]->len;
	f->data = xmemdup0(r->element[5]->str, (size_t)f->len);
	freeReplyObject(r);
	*file = f;
	return 0;
}

/* Fetches from offset what is wanted, or a little more. */
static int
fetch(struct redis_file *f, uint64_t offset, size_t len, struct err *e)
{
	struct redis_store *s = f->s;
	struct redis_words w = { 0 };
	uint64_t n = len < WINDOW ? WINDOW : len > PART ? PART : len;
	redisReply *r;

	if (n > f->size - offset)
		n = f->size - offset;
	redis_adds(&w, s->prefix);
	redis_adds(&w, f->path);
	redis_addf(&w, "%llu", (unsigned long long)f->base);
	redis_addf(&w, "%llu", (unsigned long long)f->size);
	redis_addf(&w, "%llu", (unsigned long long)offset);
	redis_addf(&w, "%llu", (unsigned long long)n);
	redis_addf(&w, "%d", KEEP_MS);
	if ((r = redis_ask(s, REDIS_RANGE, &w, e)) == NULL)
		return -1;
	if (r->type == REDIS_REPLY_NIL) {
		freeReplyObject(r);
		return err_set(e, ERR_BUSY, "'%s' was changed while it was read", f->path);
	}
	if (r->type != REDIS_REPLY_STRING || r->len != n)
		return redis_nonsense(s, r, e);
	free(f->data);
	f->data = xmemdup0(r->str, r->len);
	f->start = offset;
	f->len = r->len;
	freeReplyObject(r);
	return 0;
}

static ssize_t
redis_file_read(void *file, uint64_t offset, void *data, size_t len, struct err *e)
{
	struct redis_file *f = file;
	uint64_t n;

	if (offset >= f->size || len == 0)
		return 0;
	if ((offset < f->start || offset >= f->start + f->len) && fetch(f, offset, len, e) < 0)
		return -1;
	n = f->start + f->len - offset;
	if (n > len)
		n = len;
	memcpy(data, f->data + (offset - f->start), (size_t)n);
	return (ssize_t)n;
}

static void
redis_file_close(void *file)
{
	struct redis_file *f = file;

	free(f->path);
	free(f->data);
	free(f);
}

/* ---- Listing ---- */

struct child {
	char *name;
	struct store_stat st;
};

struct children {
	struct child *c;
	size_t n, cap;
};

static int
child_order(const void *a, const void *b)
{
	const struct child *x = a, *y = b;

	return store_name_compare(x->name, x->st.dir, y->name, y->st.dir);
}

/* Names that no call can say (AG2 can make an empty one, and one with a NUL) are left out. */
static int
add_children(struct children *all, const redisReply *r, bool details)
{
	size_t i, step = details ? 4 : 1;

	for (i = 1; i + step <= r->elements; i += step) {
		const char *name = redis_text_at(r, i);
		size_t len;
		struct child c = { .st = { .mtime = -1 } };

		if (name == NULL)
			return -1;
		len = r->element[i]->len;
		if (len == 0 || strlen(name) != len)
			continue;
		c.st.dir = name[len - 1] == '/';
		if (c.st.dir && --len == 0)
			continue;
		if (details && !c.st.dir)
			c.st = (struct store_stat){ .size = number_at(r, i + 1), .version = number_at(r, i + 2), .mtime = time_at(r, i + 3) };
		c.name = xmemdup0(name, len);
		all->c = xgrow(all->c, all->n, &all->cap, sizeof(c));
		all->c[all->n++] = c;
	}
	return 0;
}

static int
fetch_children(struct redis_store *s, const char *path, bool details, struct children *all, struct err *e)
{
	struct redis_words w;
	redisReply *r;
	char *from = xstrdup("");

	do {
		w = (struct redis_words){ 0 };
		redis_adds(&w, s->prefix);
		redis_adds(&w, path);
		redis_adds(&w, from);
		redis_adds(&w, details ? "y" : "n");
		redis_adds(&w, s->o.mode == STORE_READ ? "r" : "w");
		redis_addf(&w, "%d", NAMES_AT_ONCE);
		r = redis_ask(s, REDIS_LIST, &w, e);
		free(from);
		if (r == NULL)
			return -1;
		if (redis_text_at(r, 0) == NULL || add_children(all, r, details) < 0)
			return redis_nonsense(s, r, e);
		from = xmemdup0(r->element[0]->str, r->element[0]->len);
		freeReplyObject(r);
	} while (from[0] != '\0');
	free(from);
	return 0;
}

static int
redis_list(void *self, const char *path, unsigned flags, store_list_fn *fn, void *arg, struct err *e)
{
	struct children all = { 0 };
	bool details = (flags & STORE_LIST_STAT) != 0;
	size_t i;
	int rc = fetch_children(self, path, details, &all, e);

	if (rc == 0 && all.n > 1)
		qsort(all.c, all.n, sizeof(*all.c), child_order);
	for (i = 0; rc == 0 && i < all.n; i++)
		rc = fn(arg, all.c[i].name, all.c[i].st.dir, details ? &all.c[i].st : NULL);
	for (i = 0; i < all.n; i++)
		free(all.c[i].name);
	free(all.c);
	return rc;
}

/* ---- Changes ---- */

static void
add_op(struct redis_words *w, const struct store_op *op)
{
	static const char *const kinds[] = { [STORE_OP_WRITE] = "write", [STORE_OP_APPEND] = "append", [STORE_OP_DELETE] = "delete",
	    [STORE_OP_EXPECT] = "expect", [STORE_OP_REPLACE_PREFIX] = "prefix" };
	bool content = op->kind != STORE_OP_DELETE && op->kind != STORE_OP_EXPECT;
	char sum[41] = "";
	size_t i;

	for (i = 0; op->kind == STORE_OP_REPLACE_PREFIX && i < 20; i++)
		snprintf(sum + 2 * i, 3, "%02x", op->sha1[i]);
	redis_adds(w, kinds[op->kind]);
	redis_adds(w, op->path);
	redis_add(w, content && op->len > 0 ? op->data : "", content ? op->len : 0);
	redis_addf(w, "%llu", (unsigned long long)op->version);
	redis_addf(w, "%llu", (unsigned long long)op->upto);
	redis_addf(w, "%s", sum);
}

static int
too_large(struct redis_store *s, const char *path, unsigned long long size, struct err *e)
{
	return err_set(e, ERR_DATA, "%s: would be larger than 512 MB (%llu bytes), the most that a file in a Redis store can be", path, size);
}

/* Why nothing was changed. */
static int
refused(struct redis_store *s, redisReply *r, struct err *e)
{
	const char *what = redis_text_at(r, 0), *path = redis_text_at(r, 1), *more = redis_text_at(r, 2);

	if (what == NULL || path == NULL)
		return redis_nonsense(s, r, e);
	if (strcmp(what, "conflict") == 0)
		err_set(e, ERR_CONFLICT, "%s: not as expected", path);
	else if (strcmp(what, "lock") == 0)
		err_set(e, ERR_BUSY, "the lock on '%s' was lost: nothing is written without it", path);
	else if (strcmp(what, "directory") == 0)
		err_set(e, ERR_CREATE, "%s: is a directory", path);
	else if (strcmp(what, "file") == 0 && more != NULL)
		err_set(e, ERR_CREATE, "%s: %s is a file", path, more);
	else if (strcmp(what, "large") == 0)
		too_large(s, path, (unsigned long long)number_at(r, 2), e);
	else if (strcmp(what, "counter") == 0)
		err_set(e, ERR_DATA, "%s: %s is no number", redis_shown(s), path);
	else
		return redis_nonsense(s, r, e);
	freeReplyObject(r);
	return -1;
}

static int
take_answers(struct redis_store *s, redisReply *r, struct store_op *ops, size_t n, struct err *e)
{
	const char *at = redis_text_at(r, 1);
	char *end;
	size_t i;

	for (i = 0; i < n && at != NULL; i++) {
		unsigned long long version = strtoull(at, &end, 10), offset;

		if (end == at || *end != ' ')
			return redis_nonsense(s, r, e);
		at = end;
		offset = strtoull(at, &end, 10);
		if (end == at)
			return redis_nonsense(s, r, e);
		at = end;
		if (ops[i].kind != STORE_OP_EXPECT && ops[i].kind != STORE_OP_DELETE)
			ops[i].version = version;
		if (ops[i].kind == STORE_OP_APPEND)
			ops[i].offset = offset;
	}
	if (at == NULL)
		return redis_nonsense(s, r, e);
	freeReplyObject(r);
	return 0;
}

static int
redis_commit(void *self, struct store_op *ops, size_t n, struct err *e)
{
	struct redis_store *s = self;
	struct redis_words w = { 0 };
	redisReply *r;
	size_t i;

	for (i = 0; i < n; i++)
		if (ops[i].len > VALUE_MAX)
			return too_large(s, ops[i].path, (unsigned long long)ops[i].len, e);
	redis_adds(&w, s->prefix);
	redis_adds(&w, s->id);
	redis_addf(&w, "%llu", (unsigned long long)++s->serial);
	redis_addf(&w, "%llu", 2ULL * s->o.timeout_ms + 60000);
	redis_addf(&w, "%d", SMALL);
	redis_addf(&w, "%d", KEEP_MS);
	redis_addf(&w, "%llu", (unsigned long long)VALUE_MAX);
	redis_add_locks(s, &w);
	for (i = 0; i < n; i++)
		add_op(&w, &ops[i]);
	if ((r = redis_ask(s, REDIS_COMMIT, &w, e)) == NULL) {
		if (!redis_link_unsure(s->link))
			return -1;
		if (e != NULL)
			e->code = ERR_BUSY;
		return err_wrap(e, "it is not known whether the change was made");
	}
	if (redis_text_at(r, 0) == NULL || strcmp(redis_text_at(r, 0), "ok") != 0)
		return refused(s, r, e);
	if (take_answers(s, r, ops, n, e) < 0)
		return -1;
	return s->wait_disk ? wait_disk(s, e) : 0;
}

static int
redis_tls_open(void **self, const char *where, const char *own, const struct store_options *o, struct err *e)
{
	return redis_tls_load(e) < 0 ? -1 : open_any(self, where, own, o, TLS, e);
}

static const char *const options[] = { "prefix=", "password_cmd=", "db=", "user=", NULL };
static const char *const tls_options[] = { "prefix=", "password_cmd=", "db=", "user=", "cacert=", "cert=", "key=", NULL };

#define COMMON \
	.close = redis_close, .stat = redis_stat, .list = redis_list, .file_open = redis_file_open, \
	.file_read = redis_file_read, .file_close = redis_file_close, .commit = redis_commit, .lock = redis_lock, \
	.lock_held = redis_lock_held, .unlock = redis_unlock, \
	.watch = redis_watch, .watch_wait = redis_watch_wait, .watch_close = redis_watch_close, .check = redis_check

const struct store_backend store_redis = {
	.scheme = "redis",
	.summary = "redis://[USER@]HOST:PORT/DB?prefix=PREFIX, a Redis server or cluster, which AG2 can use at the same time",
	.remote = true,
	.options = options,
	.open = redis_open,
	COMMON
};

const struct store_backend store_redis_unix = {
	.scheme = "redis+unix",
	.summary = "redis+unix:/SOCKET?db=DB&prefix=PREFIX, the same on this host",
	.options = options,
	.open = redis_unix_open,
	COMMON
};

const struct store_backend store_redis_tls = {
	.scheme = "rediss",
	.summary = REDIS_TLS_SUMMARY,
	.remote = true,
	.options = tls_options,
	.open = redis_tls_open,
	COMMON
};

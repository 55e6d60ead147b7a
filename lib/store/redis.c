/*
 * The store on a Redis server: opening it and changing it. URLs are in redis_url.c, looking in redis_read.c, the scripts in
 * redis_script.c, the connection is in redis_link.c, locks in redis_lock.c, watching in redis_watch.c, fsck in redis_check.c.
 */
#include "store/redis.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "store/redis_tls.h"

#include <stdio.h>
#include <stdlib.h>

#define VALUE_MAX	((uint64_t)512 << 20)

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
	return err_set(e, ERR_DATA, "%s: it answers in a way that no Redis would", redis_shown(s));
}

const char *
redis_text_at(const redisReply *r, size_t i)
{
	return r->type == REDIS_REPLY_ARRAY && i < r->elements && r->element[i]->type == REDIS_REPLY_STRING ? r->element[i]->str : NULL;
}

uint64_t
redis_number_at(const redisReply *r, size_t i)
{
	const char *text = redis_text_at(r, i);

	return text != NULL ? strtoull(text, NULL, 10) : 0;
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
	free(s->under);
	free(s);
}

static int
open_any(void **self, const char *where, const char *own, const struct store_options *o, enum redis_transport over, struct err *e)
{
	struct redis_store *s = xcalloc(1, sizeof(*s));
	int rc;

	s->o = *o;
	s->o.under = NULL;
	s->under = o->under != NULL ? xstrdup(o->under) : NULL;
	rc = redis_take_url(s, where, own, over, e);
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
	return open_any(self, where, own, o, REDIS_TCP, e);
}

static int
redis_unix_open(void **self, const char *where, const char *own, const struct store_options *o, struct err *e)
{
	return open_any(self, where, own, o, REDIS_SOCKET, e);
}

static int
redis_tls_open(void **self, const char *where, const char *own, const struct store_options *o, struct err *e)
{
	return redis_tls_load(e) < 0 ? -1 : open_any(self, where, own, o, REDIS_TLS, e);
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
		store_conflict(path, e);
	else if (strcmp(what, "lock") == 0)
		err_set(e, ERR_BUSY, "the lock on '%s' was lost: nothing is written without it", path);
	else if (strcmp(what, "directory") == 0)
		err_set(e, ERR_CREATE, "%s: is a directory", path);
	else if (strcmp(what, "file") == 0 && more != NULL)
		err_set(e, ERR_CREATE, "%s: %s is a file", path, more);
	else if (strcmp(what, "large") == 0)
		too_large(s, path, (unsigned long long)redis_number_at(r, 2), e);
	else if (strcmp(what, "counter") == 0)
		err_set(e, ERR_DATA, "%s: no version can follow what is in %s: nothing can be written until fsck --repair has set it", redis_shown(s), path);
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
	redis_addf(&w, "%d", REDIS_SMALL);
	redis_addf(&w, "%d", REDIS_KEEP_MS);
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

/* ---- The tables ---- */

static const char *const options[] = { "prefix=", "password_cmd=", "db=", "user=", NULL };
static const char *const tls_options[] = { "prefix=", "password_cmd=", "db=", "user=", "cacert=", "cert=", "key=", NULL };

#define COMMON \
	.close = redis_close, .stat = redis_stat, .list = redis_list, .file_open = redis_file_open, \
	.file_read = redis_file_read, .file_close = redis_file_close, .commit = redis_commit, .lock = redis_lock, \
	.lock_held = redis_lock_held, .lock_token = redis_lock_token, .unlock = redis_unlock, \
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

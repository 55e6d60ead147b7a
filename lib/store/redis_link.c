#include "store/redis_link.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/sha1.h"
#include "store/redis_tls.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SLICE		(64 * 1024)	/* handed to hiredis at a time: it moves what is left after each write */
#define ANSWER_MAX	((size_t)640 << 20)
#define REDIRECTIONS	8
#define PAUSE_FIRST	0.005
#define PAUSE_MOST	0.5

struct redis_link {
	const struct redis_place *place;
	const char *name;
	redisContext *c;	/* NULL: not connected */
	char *host;		/* the node of a cluster that we were sent to; NULL: the place itself */
	int port;
	char *shown;
	bool ever;		/* it was connected once: a refusal is then likely to pass */
	bool unsure;		/* the command may have been carried out */
	const char *held_up;	/* what the server said why it cannot answer this command yet; NULL: nothing */
	char sha[REDIS_SCRIPTS][41];
};

void
redis_place_release(struct redis_place *p)
{
	free(p->socket);
	free(p->host);
	free(p->user);
	free(p->cacert);
	free(p->cert);
	free(p->key);
	if (p->password != NULL)
		explicit_bzero(p->password, strlen(p->password));
	free(p->password);
	*p = (struct redis_place){ 0 };
}

/* ---- Words ---- */

void
redis_words_release(struct redis_words *w)
{
	size_t i;

	for (i = 0; i < w->n; i++)
		free(w->own[i]);
	free(w->word);
	free(w->len);
	free(w->own);
	*w = (struct redis_words){ 0 };
}

static void
add_word(struct redis_words *w, const char *data, size_t len, char *own)
{
	if (w->n == w->cap) {
		w->cap = w->cap == 0 ? 16 : 2 * w->cap;
		w->word = xrealloc(w->word, w->cap, sizeof(*w->word));
		w->len = xrealloc(w->len, w->cap, sizeof(*w->len));
		w->own = xrealloc(w->own, w->cap, sizeof(*w->own));
	}
	w->word[w->n] = data;
	w->len[w->n] = len;
	w->own[w->n++] = own;
}

void
redis_add(struct redis_words *w, const void *data, size_t len)
{
	add_word(w, data, len, NULL);
}

void
redis_adds(struct redis_words *w, const char *text)
{
	add_word(w, text, strlen(text), NULL);
}

void
redis_addf(struct redis_words *w, const char *fmt, ...)
{
	struct buf b = BUF_INIT;
	size_t len;
	char *text;
	va_list ap;

	va_start(ap, fmt);
	buf_vaddf(&b, fmt, ap);
	va_end(ap);
	text = buf_detach(&b, &len);
	add_word(w, text, len, text);
}

/* ---- The connection ---- */

static void
show(struct redis_link *l)
{
	const struct redis_place *p = l->place;
	const char *host = l->host ? l->host : p->host;

	free(l->shown);
	if (p->socket != NULL && l->host == NULL)
		l->shown = xasprintf("redis at %s", p->socket);
	else
		l->shown = xasprintf(strchr(host, ':') ? "redis at [%s]:%d" : "redis at %s:%d", host, l->host ? l->port : p->port);
}

struct redis_link *
redis_link_new(const struct redis_place *place, const char *name)
{
	struct redis_link *l = xcalloc(1, sizeof(*l));

	l->place = place;
	l->name = name;
	show(l);
	return l;
}

static void
hang_up(struct redis_link *l)
{
	if (l->c != NULL)
		redisFree(l->c);
	l->c = NULL;
}

void
redis_link_free(struct redis_link *l)
{
	if (l == NULL)
		return;
	hang_up(l);
	free(l->host);
	free(l->shown);
	free(l);
}

const char *
redis_link_shown(const struct redis_link *l)
{
	return l->shown;
}

bool
redis_link_unsure(const struct redis_link *l)
{
	return l->unsure;
}

int
redis_link_fd(const struct redis_link *l)
{
	return l->c != NULL ? l->c->fd : -1;
}

bool
redis_link_gone(struct redis_link *l)
{
	char c;
	ssize_t n;

	if (l->c == NULL)
		return true;
	/* What TLS itself has to say comes as well. */
	if (l->place->tls) {
		if (redisBufferRead(l->c) == REDIS_OK && sdslen(l->c->reader->buf) == 0)
			return false;
		hang_up(l);
		return true;
	}
	n = recv(l->c->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	hang_up(l);	/* something that nobody asked for is no better than the end */
	return true;
}

/* What became of an attempt. */
enum outcome {
	DONE,
	LOST,		/* the connection: worth another try */
	REFUSED,	/* there is no server */
	LATE,		/* the deadline has passed */
	FAILED,		/* for good */
};

static enum outcome
late(struct redis_link *l, struct err *e)
{
	if (l->held_up != NULL)
		err_set(e, ERR_BUSY, "%s: %s, and gave no other answer in time", l->shown, l->held_up);
	else
		err_set(e, ERR_BUSY, "%s: no answer in time", l->shown);
	return LATE;
}

static enum outcome
lost(struct redis_link *l, struct err *e)
{
	const char *why = l->c == NULL ? "the connection is lost" : l->c->err == REDIS_ERR_EOF ? "it closed the connection" :
	    l->c->errstr[0] != '\0' ? l->c->errstr : "the connection is lost";

	err_set(e, ERR_UNAVAIL, "%s: %s", l->shown, why);
	return LOST;
}

static enum outcome
await(struct redis_link *l, short events, double deadline, struct err *e)
{
	struct pollfd p = { .fd = l->c->fd, .events = events };
	double left = deadline - clock_monotonic();
	int n;

	if (left <= 0)
		return late(l, e);
	n = poll(&p, 1, left > 1e6 ? 1000000000 : (int)(left * 1000) + 1);
	if (n == 0 && clock_monotonic() >= deadline)
		return late(l, e);
	return DONE;	/* a signal, or half a millisecond: the caller sees that nothing came, and waits again */
}

static enum outcome
send_all(struct redis_link *l, const struct buf *b, double deadline, struct err *e)
{
	enum outcome rc = DONE;
	size_t at = 0, n;
	int done;

	while (rc == DONE && at < b->len) {
		n = b->len - at < SLICE ? b->len - at : SLICE;
		if (redisAppendFormattedCommand(l->c, b->data + at, n) != REDIS_OK)
			return lost(l, e);
		at += n;
		for (done = 0; rc == DONE && !done;) {
			if (redisBufferWrite(l->c, &done) != REDIS_OK)
				rc = lost(l, e);
			else if (!done)
				rc = await(l, POLLOUT, deadline, e);
		}
	}
	return rc;
}

static enum outcome
receive(struct redis_link *l, redisReply **answer, double deadline, struct err *e)
{
	enum outcome rc;
	size_t before = 0, now;

	for (;;) {
		if (redisGetReplyFromReader(l->c, (void **)answer) != REDIS_OK)
			return lost(l, e);
		if (*answer != NULL)
			return DONE;
		/* hiredis reads a part at a time, so the socket is asked first and waited for when it has no more. */
		if (redisBufferRead(l->c) != REDIS_OK)
			return lost(l, e);
		now = sdslen(l->c->reader->buf);
		if (now > ANSWER_MAX) {
			err_set(e, ERR_DATA, "%s: it sends more than an answer can be", l->shown);
			return FAILED;
		}
		if (now == before && (rc = await(l, POLLIN, deadline, e)) != DONE)
			return rc;
		before = now;
	}
}

/* Whether the server, which has closed the connection, said why before (that it has too many clients). hiredis reads no more behind an error. */
static bool
said_why(struct redis_link *l, redisReply **answer)
{
	l->c->err = 0;
	if (redisBufferRead(l->c) == REDIS_OK && redisGetReplyFromReader(l->c, (void **)answer) == REDIS_OK && *answer != NULL) {
		if ((*answer)->type == REDIS_REPLY_ERROR)
			return true;
		freeReplyObject(*answer);
		*answer = NULL;
	}
	return false;
}

/* One command over the connection at hand. */
static enum outcome
exchange(struct redis_link *l, const struct redis_words *w, redisReply **answer, double deadline, struct err *e)
{
	struct buf b = BUF_INIT;
	enum outcome rc;
	size_t i;

	*answer = NULL;
	buf_addf(&b, "*%zu\r\n", w->n);
	for (i = 0; i < w->n; i++) {
		buf_addf(&b, "$%zu\r\n", w->len[i]);
		buf_add(&b, w->word[i], w->len[i]);
		buf_adds(&b, "\r\n");
	}
	rc = send_all(l, &b, deadline, e);
	explicit_bzero(b.data, b.len < 4096 ? b.len : 4096);	/* it may be AUTH */
	buf_release(&b);
	if (rc == DONE)
		rc = receive(l, answer, deadline, e);
	else if (rc == LOST && said_why(l, answer))
		return DONE;
	if (rc != DONE)
		hang_up(l);	/* an answer that comes later must not be taken for another's */
	return rc;
}

/* ---- Errors that the server sends ---- */

static const struct complaint {
	const char *begins;
	enum err_code code;
	bool passes;		/* soon: worth waiting for, up to the deadline */
	const char *says;
} complaints[] = {
	{ "LOADING", ERR_BUSY, true, "it is still loading its data" },
	{ "BUSY ", ERR_BUSY, true, "it is busy with a script" },
	{ "MASTERDOWN", ERR_BUSY, true, "it is a replica that has lost its master" },
	{ "CLUSTERDOWN", ERR_BUSY, true, "the cluster is down" },
	{ "TRYAGAIN", ERR_BUSY, true, "the cluster is moving the keys" },
	{ "ERR max number of clients", ERR_BUSY, true, "it has too many clients" },
	{ "NOREPLICAS", ERR_BUSY, false, "it has too few replicas to take changes" },
	{ "READONLY", ERR_PERM, false, "it is a read-only replica" },
	{ "NOAUTH", ERR_PERM, false, "it wants a password (of REDISCLI_AUTH, or password_cmd= in the URL)" },
	{ "WRONGPASS", ERR_PERM, false, "it does not accept the user or the password" },
	{ "ERR invalid password", ERR_PERM, false, "it does not accept the password" },
	{ "NOPERM", ERR_PERM, false, "this user may not do that there" },
	{ "ERR The user executing the script can't", ERR_PERM, false, "this user may not do that there" },
	{ "The user executing the script can't", ERR_PERM, false, "this user may not do that there" },	/* Redis 6 */
	{ "ERR ACL failure in script", ERR_PERM, false, "this user may not do that there" },
	{ "DENIED", ERR_PERM, false, "it is in protected mode and lets in nobody from elsewhere" },
	{ "OOM", ERR_IO, false, "it is out of memory (its maxmemory)" },
	{ "MISCONF", ERR_IO, false, "it cannot save to its disk, and takes no changes" },
	{ "WRONGTYPE", ERR_DATA, false, "a key of the store holds something that is no store's" },
	{ "ERR string exceeds maximum allowed size", ERR_DATA, false, "larger than a value can be there" },
	{ "ERR value is not an integer", ERR_DATA, false, "a number of the store is none" },
	{ "ERR increment or decrement would overflow", ERR_DATA, false, "a number of the store is at its end" },
	{ "CROSSSLOT", ERR_CONFIG, false, "a cluster needs a prefix with a {...} in it" },
	{ "ERR DB index", ERR_CONFIG, false, "it does not have that many databases" },
	{ "ERR invalid DB index", ERR_CONFIG, false, "it does not have that many databases" },
	{ "ERR SELECT is not allowed in cluster mode", ERR_CONFIG, false, "a cluster has only database 0" },
};

/* In Redis 6 what a command within a script was refused for stands behind where that was. */
static const char *
core(const char *text)
{
	const char *in = strstr(text, "@user_script: "), *colon = in ? strstr(in + 14, ": ") : NULL;

	if (colon == NULL)
		return text;
	return colon[2] == '-' ? colon + 3 : colon + 2;
}

static const struct complaint *
complaint_of(const char *text)
{
	size_t i;

	text = core(text);
	for (i = 0; i < sizeof(complaints) / sizeof(complaints[0]); i++)
		if (strncmp(text, complaints[i].begins, strlen(complaints[i].begins)) == 0)
			return &complaints[i];
	return NULL;
}

static bool
is_error(const redisReply *r, const char *begins)
{
	return r->type == REDIS_REPLY_ERROR && strncmp(r->str, begins, strlen(begins)) == 0;
}

/* Fills e with what the error r says; true when it may pass. */
static bool
complain(struct redis_link *l, const redisReply *r, struct err *e)
{
	const struct complaint *c = complaint_of(r->str);

	if (c != NULL)
		err_set(e, c->code, "%s: %s (%.200s)", l->shown, c->says, core(r->str));
	else if (l->place->password != NULL && strstr(r->str, l->place->password) != NULL)
		err_set(e, ERR_PERM, "%s: it refuses the password, and repeats it", l->shown);	/* as a server without AUTH does */
	else
		err_set(e, ERR_UNAVAIL, "%s: it says: %.400s", l->shown, r->str);
	if (c == NULL || !c->passes)
		return false;
	l->held_up = c->says;
	return true;
}

/* ---- Connecting ---- */

static enum outcome
no_connection(struct redis_link *l, int error, struct err *e)
{
	enum err_code code = error == EACCES || error == EPERM ? ERR_PERM : ERR_UNAVAIL;

	err_set(e, code, "%s: %s", l->shown, error == ENOENT ? "no server is there (no such socket)" :
	    error == ECONNREFUSED ? "no server is there (connection refused)" :
	    error != 0 ? strerror(error) : l->c != NULL && l->c->errstr[0] != '\0' ? l->c->errstr : "cannot connect");
	hang_up(l);
	return error == EAGAIN ? LOST : REFUSED;
}

/* TLS over the new connection. */
static enum outcome
secure(struct redis_link *l, double deadline, struct err *e)
{
	const char *host = l->host != NULL ? l->host : l->place->host;
	struct ssl_st *ssl = NULL;
	enum outcome rc = DONE;
	short events = 0;
	int done = redis_tls_begin(l->c, l->place, host, &ssl, e);

	while (done == 0 && rc == DONE)
		if ((done = redis_tls_step(ssl, &events, e)) == 0)
			rc = await(l, events, deadline, e);
	if (done < 0) {
		err_wrap(e, "%s", l->shown);
		rc = FAILED;
	}
	if (rc != DONE)
		hang_up(l);
	return rc;
}

static enum outcome
dial(struct redis_link *l, double deadline, struct err *e)
{
	const struct redis_place *p = l->place;
	enum outcome rc;
	int error = 0;
	socklen_t size = sizeof(error);

	errno = 0;
	l->c = l->host != NULL ? redisConnectNonBlock(l->host, l->port) :
	    p->socket != NULL ? redisConnectUnixNonBlock(p->socket) : redisConnectNonBlock(p->host, p->port);
	if (l->c == NULL || l->c->err != 0)
		return no_connection(l, l->c != NULL && l->c->err == REDIS_ERR_IO ? errno : 0, e);
	fcntl(l->c->fd, F_SETFD, FD_CLOEXEC);
	if ((rc = await(l, POLLOUT, deadline, e)) != DONE) {
		hang_up(l);
		return rc;
	}
	if (getsockopt(l->c->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		error = errno;
	if (error != 0)
		return no_connection(l, error, e);
	l->c->flags |= REDIS_CONNECTED;
	return p->tls ? secure(l, deadline, e) : DONE;
}

/* A command of the beginning. A server without a password is no reason to stop when we have one. */
static enum outcome
introduce(struct redis_link *l, const struct redis_words *w, double deadline, struct err *e)
{
	redisReply *r;
	enum outcome rc = exchange(l, w, &r, deadline, e);

	if (rc != DONE)
		return rc;
	if (r->type == REDIS_REPLY_ERROR && strstr(r->str, "without any password configured") == NULL &&
	    strstr(r->str, "no password is set") == NULL) {
		rc = complain(l, r, e) ? LOST : FAILED;
		hang_up(l);
	}
	freeReplyObject(r);
	return rc;
}

static enum outcome
greet(struct redis_link *l, double deadline, struct err *e)
{
	const struct redis_place *p = l->place;
	struct redis_words w = { 0 };
	enum outcome rc = DONE;

	if (p->password != NULL) {
		redis_adds(&w, "AUTH");
		if (p->user != NULL)
			redis_adds(&w, p->user);
		redis_adds(&w, p->password);
		rc = introduce(l, &w, deadline, e);
		redis_words_release(&w);
	}
	if (rc == DONE && l->name != NULL) {
		redis_adds(&w, "CLIENT");
		redis_adds(&w, "SETNAME");
		redis_adds(&w, l->name);
		rc = introduce(l, &w, deadline, e);
		redis_words_release(&w);
	}
	if (rc == DONE && p->db != 0) {
		redis_adds(&w, "SELECT");
		redis_addf(&w, "%ld", p->db);
		rc = introduce(l, &w, deadline, e);
		redis_words_release(&w);
	}
	return rc;
}

/* The node is gone, or says nothing: the place that is known knows who follows it. False when we were there. */
static bool
leave_node(struct redis_link *l)
{
	if (l->host == NULL)
		return false;
	hang_up(l);
	free(l->host);
	l->host = NULL;
	show(l);
	return true;
}

static enum outcome
connected(struct redis_link *l, double deadline, struct err *e)
{
	enum outcome rc;

	if (l->c != NULL)
		return DONE;
	rc = dial(l, deadline, e);
	if (rc == DONE)
		rc = greet(l, deadline, e);
	if (rc == DONE)
		l->ever = true;
	else if (rc == REFUSED && leave_node(l))
		rc = LOST;
	return rc == REFUSED && l->ever ? LOST : rc;
}

/* ---- Commands ---- */

/* "MOVED 3999 127.0.0.1:6381", "ASK ...": goes there. An empty host is the one that said so. */
static enum outcome
redirected(struct redis_link *l, const redisReply *r, double deadline, struct err *e)
{
	bool ask = r->str[0] == 'A';
	const char *at = strrchr(r->str, ' '), *colon = strrchr(r->str, ':');
	struct redis_words w = { 0 };
	enum outcome rc;
	char *host, *end;
	long port;

	if (!l->place->hashed) {
		err_set(e, ERR_CONFIG, "%s: a cluster, which needs a prefix with a {...} in it", l->shown);
		return FAILED;
	}
	if (at == NULL || colon == NULL || colon < at || (port = strtol(colon + 1, &end, 10)) <= 0 || port > 65535 || *end != '\0') {
		err_set(e, ERR_UNAVAIL, "%s: it sends us elsewhere without saying where: %.200s", l->shown, r->str);
		return FAILED;
	}
	host = colon > at + 1 ? xmemdup0(at + 1, (size_t)(colon - at - 1)) :
	    l->host != NULL || l->place->host != NULL ? xstrdup(l->host ? l->host : l->place->host) : xstrdup("127.0.0.1");
	free(l->host);
	l->host = host;
	l->port = (int)port;
	show(l);
	hang_up(l);
	rc = connected(l, deadline, e);
	if (rc == DONE && ask) {
		redis_adds(&w, "ASKING");
		rc = introduce(l, &w, deadline, e);
		redis_words_release(&w);
	}
	return rc;
}

static enum outcome
attempt(struct redis_link *l, const struct redis_words *w, redisReply **answer, double deadline, struct err *e)
{
	enum outcome rc = connected(l, deadline, e);
	bool before = l->unsure;
	int hops;

	for (hops = 0; rc == DONE; hops++) {
		l->unsure = true;
		rc = exchange(l, w, answer, deadline, e);
		if (rc != DONE)
			return rc;
		l->unsure = before;
		if ((*answer)->type != REDIS_REPLY_ERROR || is_error(*answer, "NOSCRIPT"))
			return DONE;
		if (!is_error(*answer, "MOVED ") && !is_error(*answer, "ASK ")) {
			rc = complain(l, *answer, e) ? LOST : FAILED;
		} else if (hops < REDIRECTIONS) {
			rc = redirected(l, *answer, deadline, e);
		} else {
			err_set(e, ERR_BUSY, "%s: the cluster sends us round in circles", l->shown);
			rc = LOST;
		}
		freeReplyObject(*answer);
		*answer = NULL;
	}
	return rc;
}

/* Sleeps a little longer each time, with a part left to chance, so that many do not come back at once. */
static bool
pause_before(double *pause, double deadline)
{
	double now = clock_monotonic(), part = now * 1e6, length;
	struct timespec t;

	part = 0.5 + (part - (double)(uint64_t)part) / 2;
	length = *pause * part;
	*pause = *pause * 2 < PAUSE_MOST ? *pause * 2 : PAUSE_MOST;
	if (now + length >= deadline)
		return false;
	t = (struct timespec){ .tv_sec = 0, .tv_nsec = (long)(length * 1e9) };
	nanosleep(&t, NULL);
	return true;
}

/* As redis_call, but NOSCRIPT is an answer. */
static redisReply *
persist(struct redis_link *l, const struct redis_words *w, double deadline, struct err *e)
{
	redisReply *answer = NULL;
	double pause = PAUSE_FIRST;
	enum outcome rc;

	l->held_up = NULL;
	do
		rc = attempt(l, w, &answer, deadline, e);
	while (rc == LOST && pause_before(&pause, deadline));
	if (rc == LATE)
		leave_node(l);
	return rc == DONE ? answer : NULL;
}

redisReply *
redis_call(struct redis_link *l, const struct redis_words *w, double deadline, struct err *e)
{
	l->unsure = false;
	return persist(l, w, deadline, e);
}

static const char *
name_of(struct redis_link *l, enum redis_script script)
{
	unsigned char sum[20];
	struct sha1 h;
	size_t i;

	if (l->sha[script][0] == '\0') {
		sha1_init(&h);
		sha1_add(&h, redis_script_text[script], strlen(redis_script_text[script]));
		sha1_end(&h, sum);
		for (i = 0; i < sizeof(sum); i++)
			snprintf(l->sha[script] + 2 * i, 3, "%02x", sum[i]);
	}
	return l->sha[script];
}

redisReply *
redis_run(struct redis_link *l, enum redis_script script, const struct redis_words *w, double deadline, struct err *e)
{
	struct redis_words all = { 0 };
	redisReply *r;
	size_t i;

	redis_adds(&all, "EVALSHA");
	redis_adds(&all, name_of(l, script));
	redis_adds(&all, "2");
	redis_addf(&all, "%s:__index", w->word[0]);
	redis_addf(&all, "%s:__ag2:none", w->word[0]);
	for (i = 0; i < w->n; i++)
		redis_add(&all, w->word[i], w->len[i]);
	l->unsure = false;
	r = persist(l, &all, deadline, e);
	/* A server that does not know it may be one that was started anew, and have carried it out before. */
	if (r != NULL && r->type == REDIS_REPLY_ERROR) {
		freeReplyObject(r);
		all.word[0] = "EVAL";
		all.len[0] = strlen("EVAL");
		all.word[1] = redis_script_text[script];
		all.len[1] = strlen(redis_script_text[script]);
		r = persist(l, &all, deadline, e);
	}
	redis_words_release(&all);
	return r;
}

int
redis_link_subscribe(struct redis_link *l, const char *channel, double deadline, struct err *e)
{
	struct redis_words w = { 0 };
	redisReply *r;

	redis_adds(&w, "SUBSCRIBE");
	redis_adds(&w, channel);
	r = persist(l, &w, deadline, e);
	redis_words_release(&w);
	if (r == NULL)
		return -1;
	freeReplyObject(r);
	return 0;
}

bool
redis_link_news(struct redis_link *l)
{
	redisReply *r = NULL;
	bool news = false;

	if (l->c == NULL)
		return true;
	if (redisBufferRead(l->c) != REDIS_OK) {
		hang_up(l);
		return true;
	}
	while (redisGetReplyFromReader(l->c, (void **)&r) == REDIS_OK && r != NULL) {
		freeReplyObject(r);
		r = NULL;
		news = true;
	}
	if (l->c->err == 0)
		return news;
	hang_up(l);
	return true;
}

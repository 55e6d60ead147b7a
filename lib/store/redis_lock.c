/*
 * A key with the holder's token that expires, and a thread with a connection of its own that renews it while it is held.
 * A process that dies lets go of it: whoever waits sees that the connection, which is named after the holder, has gone,
 * and takes the key away when it stays away. That can be seen only at the server where the holder was connected, whose id the
 * token has: not at the one that a cluster has moved the key to, nor at one that was started anew. There, and where
 * connections cannot be seen at all (a proxy, a user who may not list them), only the time to live ends a lock.
 */
#include "store/redis.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LOCK_TTL_MS	60000
#define DEAD_SECONDS	0.5		/* how long a holder's connection is missed before it counts as dead */
#define ASK_SECONDS	1.0		/* how long a server is asked whether a lock whose time is over is ours yet */
#define SEEN		" seen "

struct redis_lock {
	struct redis_lock *next;
	struct keeper *keeper;
	char *path, *token;
	int64_t ttl_ms;
	double sure_until;		/* of clock_monotonic: nobody else can have taken it before */
	bool lost;
};

struct keeper {
	struct redis_store *s;
	struct redis_link *link;	/* the thread's, once it runs */
	char name[48];
	char *server;			/* whose list its connection is in; NULL: it cannot be seen */
	pthread_t thread;
	pthread_mutex_t mutex;		/* for what follows */
	int wake[2];
	bool stop;
	struct redis_lock *locks;
	uint64_t count;			/* of tokens */
};

/* Whether a connection of that name is there: 1, 0, -1 when the server does not say. */
static int
is_connected(struct redis_link *l, const char *name, double until)
{
	struct redis_words w = { 0 };
	char *want = xasprintf(" name=%s ", name);
	redisReply *r;
	int there = -1;

	redis_adds(&w, "CLIENT");
	redis_adds(&w, "LIST");
	r = redis_call(l, &w, until, NULL);
	if (r != NULL && r->str != NULL)	/* a string, of whichever kind */
		there = strstr(r->str, want) != NULL;
	if (r != NULL)
		freeReplyObject(r);
	redis_words_release(&w);
	free(want);
	return there;
}

/* The server's id, another each time that it is started; to be freed. NULL when it does not say. */
static char *
server_id(struct redis_link *l, double until)
{
	static const char line[] = "run_id:";
	struct redis_words w = { 0 };
	const char *at = NULL;
	char *id = NULL;
	redisReply *r;

	redis_adds(&w, "INFO");
	redis_adds(&w, "server");
	r = redis_call(l, &w, until, NULL);
	redis_words_release(&w);
	if (r != NULL && r->str != NULL)
		at = strstr(r->str, line);
	if (at != NULL)
		id = xmemdup0(at + strlen(line), strcspn(at + strlen(line), "\r\n"));
	if (r != NULL)
		freeReplyObject(r);
	return id;
}

/* 1 when the lock is ours for as long again, 0 when it is not ours, -1 when the server cannot be asked. */
static int
renew(struct redis_store *s, struct redis_link *link, const char *path, const char *token, int64_t ttl_ms, double until)
{
	struct redis_words w = { 0 };
	redisReply *r;
	int held = -1;

	redis_adds(&w, s->prefix);
	redis_adds(&w, path);
	redis_adds(&w, token);
	redis_addf(&w, "%lld", (long long)ttl_ms);
	r = redis_run(link, REDIS_RENEW, &w, until, NULL);
	if (r != NULL && r->type == REDIS_REPLY_INTEGER)
		held = r->integer == 1;
	if (r != NULL)
		freeReplyObject(r);
	redis_words_release(&w);
	return held;
}

static struct redis_lock *
lock_with(struct keeper *k, const char *token)
{
	struct redis_lock *l;

	for (l = k->locks; l != NULL; l = l->next)
		if (strcmp(l->token, token) == 0)
			return l;
	return NULL;
}

/* The lock that is to be renewed next, and when; the mutex is held. */
static struct redis_lock *
next_due(struct keeper *k, double *when)
{
	struct redis_lock *l, *first = NULL;
	double due;

	*when = 1e18;
	for (l = k->locks; l != NULL; l = l->next) {
		due = l->sure_until - (double)l->ttl_ms * 2 / 3000;
		if (!l->lost && due < *when) {
			*when = due;
			first = l;
		}
	}
	return first;
}

/* For the thread. The lock may be let go of meanwhile. */
static void
renew_due(struct keeper *k, struct redis_lock *l)
{
	char *path = xstrdup(l->path), *token = xstrdup(l->token);
	int64_t ttl_ms = l->ttl_ms;
	double from = clock_monotonic(), until = l->sure_until > from + 0.05 ? l->sure_until : from + 0.05;
	int held;

	pthread_mutex_unlock(&k->mutex);
	held = renew(k->s, k->link, path, token, ttl_ms, until);
	pthread_mutex_lock(&k->mutex);
	if ((l = lock_with(k, token)) != NULL) {
		if (held == 1)
			l->sure_until = from + (double)ttl_ms / 1e3;
		else if (held == 0 || clock_monotonic() > l->sure_until)
			l->lost = true;
		else	/* not reached: again, but not at once */
			poll(NULL, 0, 10);
	}
	free(path);
	free(token);
}

/* Waits for the next renewal, a word from the others, or the end of the connection. */
static void
keeper_waits(struct keeper *k, double when)
{
	struct pollfd p[2] = { { .fd = k->wake[0], .events = POLLIN }, { .fd = redis_link_fd(k->link), .events = POLLIN } };
	double left = when - clock_monotonic();
	char drop[16];

	poll(p, 2, left <= 0 ? 0 : left > 3600 ? 3600000 : (int)(left * 1000) + 1);
	if (p[0].revents != 0 && read(k->wake[0], drop, sizeof(drop)) < 0)
		return;
}

static void *
keeper_works(void *arg)
{
	struct keeper *k = arg;
	struct redis_lock *l;
	double when;

	pthread_mutex_lock(&k->mutex);
	while (!k->stop) {
		bool gone = redis_link_gone(k->link);

		l = next_due(k, &when);
		if (l != NULL && (gone || when <= clock_monotonic())) {
			renew_due(k, l);
			continue;
		}
		pthread_mutex_unlock(&k->mutex);
		keeper_waits(k, when);
		pthread_mutex_lock(&k->mutex);
	}
	pthread_mutex_unlock(&k->mutex);
	return NULL;
}

/* Signals are the program's, not the thread's. */
static int
start_thread(struct keeper *k)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&k->thread, NULL, keeper_works, k);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static int
make_keeper(struct redis_store *s, struct err *e)
{
	struct keeper *k;
	int rc;

	if (s->keeper != NULL)
		return 0;
	k = xcalloc(1, sizeof(*k));
	k->s = s;
	snprintf(k->name, sizeof(k->name), "ag2-lock-%s", s->id);
	if (pipe2(k->wake, O_CLOEXEC | O_NONBLOCK) < 0) {
		free(k);
		return err_sys(e, "cannot make a pipe");
	}
	k->link = redis_link_new(&s->place, k->name);
	renew(s, k->link, "/", "", 1, redis_deadline(s));	/* nothing; but of a cluster we are then where the locks are */
	if (is_connected(k->link, k->name, redis_deadline(s)) == 1)
		k->server = server_id(k->link, redis_deadline(s));
	pthread_mutex_init(&k->mutex, NULL);
	if ((rc = start_thread(k)) == 0) {
		s->keeper = k;
		return 0;
	}
	redis_link_free(k->link);
	close(k->wake[0]);
	close(k->wake[1]);
	free(k->server);
	free(k);
	return err_set(e, ERR_IO, "cannot start a thread: %s", strerror(rc));
}

static void
wake_keeper(struct keeper *k)
{
	ssize_t n = write(k->wake[1], "", 1);

	(void)n;	/* a full pipe wakes as well */
}

void
redis_free_keeper(struct redis_store *s)
{
	struct keeper *k = s->keeper;

	if (k == NULL)
		return;
	pthread_mutex_lock(&k->mutex);
	k->stop = true;
	pthread_mutex_unlock(&k->mutex);
	wake_keeper(k);
	pthread_join(k->thread, NULL);
	redis_link_free(k->link);
	pthread_mutex_destroy(&k->mutex);
	close(k->wake[0]);
	close(k->wake[1]);
	free(k->server);
	free(k);
}

static bool
is_lost(struct redis_lock *l)
{
	bool lost;

	pthread_mutex_lock(&l->keeper->mutex);
	lost = l->lost;
	pthread_mutex_unlock(&l->keeper->mutex);
	return lost;
}

/* The next of the locks that we are under: its token, and the path behind it. False at the end. */
static bool
next_under(const char **at, int *token, int *path)
{
	char *end;
	size_t len = strtoul(*at, &end, 10);
	const char *slash;

	if (end == *at || *end != ':' || strnlen(end + 1, len) < len || (slash = memchr(end + 1, '/', len)) == NULL)
		return false;
	*at = end + 1;
	*token = (int)(slash - *at);
	*path = (int)len - *token;
	return true;
}

char *
redis_lock_token(void *lock)
{
	const struct redis_lock *l = lock;
	const char *outer = l->keeper->s->under;

	return xasprintf("%s%zu:%s%s", outer != NULL ? outer : "", strlen(l->token) + strlen(l->path), l->token, l->path);
}

/* The script checks that they are held still. One that is known to be lost stays in: its holder writes no more. */
void
redis_add_locks(struct redis_store *s, struct redis_words *w)
{
	struct redis_lock *l, *first = s->keeper != NULL ? s->keeper->locks : NULL;
	const char *under = s->under != NULL ? s->under : "", *at;
	int token, path;
	size_t n = 0;

	for (l = first; l != NULL; l = l->next)
		n++;
	for (at = under; next_under(&at, &token, &path); at += token + path)
		n++;
	redis_addf(w, "%zu", n);
	for (at = under; next_under(&at, &token, &path); at += token + path) {
		redis_addf(w, "%.*s", path, at + token);
		redis_addf(w, "%.*s", token, at);
	}
	for (l = first; l != NULL; l = l->next) {
		redis_adds(w, l->path);
		redis_adds(w, is_lost(l) ? "lost" : l->token);
	}
}

/* 1 when it is ours now; else 0 with the holder's token in *holder, to be freed. `dead` is a holder to be replaced. */
static int
take(struct redis_store *s, const char *path, const char *token, int64_t ttl_ms, const char *dead, char **holder, struct err *e)
{
	struct redis_words w = { 0 };
	redisReply *r;

	redis_adds(&w, s->prefix);
	redis_adds(&w, path);
	redis_adds(&w, token);
	redis_addf(&w, "%lld", (long long)ttl_ms);
	redis_adds(&w, dead != NULL ? dead : "");
	if ((r = redis_ask(s, REDIS_TAKE, &w, e)) == NULL)
		return -1;
	if (r->type != REDIS_REPLY_STRING)
		return redis_nonsense(s, r, e);
	*holder = r->len > 0 ? xmemdup0(r->str, r->len) : NULL;
	freeReplyObject(r);
	return *holder == NULL;
}

/* "CONNECTION COUNT seen SERVER": the connection has gone from that server, where it could be seen, as we look there. */
static bool
seems_dead(struct redis_store *s, const char *holder)
{
	const char *space = strchr(holder, ' '), *seen = strstr(holder, SEEN);
	char *name, *id = NULL;
	bool dead;

	if (space == NULL || seen == NULL)
		return false;
	name = xmemdup0(holder, (size_t)(space - holder));
	dead = is_connected(s->link, name, redis_deadline(s)) == 0 && (id = server_id(s->link, redis_deadline(s))) != NULL &&
	    strcmp(id, seen + strlen(SEEN)) == 0;
	free(id);
	free(name);
	return dead;
}

/* One round of waiting. 1 taken, 0 not, -1. *missed is the holder whose connection was missed before, since *since. */
static int
try_lock(struct redis_store *s, const char *path, const char *token, int64_t ttl_ms, char **missed, double *since, struct err *e)
{
	char *holder = NULL;
	int rc = take(s, path, token, ttl_ms, NULL, &holder, e);

	if (rc != 0)
		return rc;
	if (!seems_dead(s, holder)) {
		free(*missed);
		*missed = NULL;
	} else if (*missed == NULL || strcmp(*missed, holder) != 0) {
		free(*missed);
		*missed = xstrdup(holder);
		*since = clock_monotonic();
	} else if (clock_monotonic() - *since >= DEAD_SECONDS) {
		free(holder);
		rc = take(s, path, token, ttl_ms, *missed, &holder, e);
	}
	free(holder);
	return rc;
}

static struct redis_lock *
hold(struct keeper *k, const char *path, char *token, int64_t ttl_ms, double since)
{
	struct redis_lock *l = xcalloc(1, sizeof(*l));

	l->keeper = k;
	l->path = xstrdup(path);
	l->token = token;
	l->ttl_ms = ttl_ms;
	l->sure_until = since + (double)ttl_ms / 1e3;
	pthread_mutex_lock(&k->mutex);
	l->next = k->locks;
	k->locks = l;
	pthread_mutex_unlock(&k->mutex);
	wake_keeper(k);
	return l;
}

int
redis_lock(void *self, const char *path, int64_t ttl_ms, int64_t wait_ms, void **lock, struct err *e)
{
	struct redis_store *s = self;
	double until, since = 0, from, pause = 0.005;
	char *token, *missed = NULL;
	const char *server;
	int rc;

	if (ttl_ms <= 0)
		ttl_ms = LOCK_TTL_MS;
	if (make_keeper(s, e) < 0)
		return -1;
	server = s->keeper->server;
	token = xasprintf("%s %llu%s%s", s->keeper->name, (unsigned long long)++s->keeper->count, server != NULL ? SEEN : "", server != NULL ? server : "");
	until = clock_monotonic() + (double)wait_ms / 1e3;
	for (;;) {
		from = clock_monotonic();
		rc = try_lock(s, path, token, ttl_ms, &missed, &since, e);
		/* Whether a holder is dead is seen through to the end: who does not wait would never find out. */
		if (rc != 0 || (wait_ms >= 0 && clock_monotonic() >= until && missed == NULL))
			break;
		poll(NULL, 0, (int)(pause * 1000));
		pause = pause < 0.1 ? pause * 2 : pause;
	}
	free(missed);
	if (rc == 1) {
		*lock = hold(s->keeper, path, token, ttl_ms, from);
		return 0;
	}
	free(token);
	return rc < 0 ? -1 : err_set(e, ERR_BUSY, "%s: held by another process", path);
}

/* Beyond its time the lock may be another's, though the thread has not found out yet: we may just have been woken, too. */
static void
make_sure(struct redis_lock *l)
{
	struct keeper *k = l->keeper;
	double from = clock_monotonic(), sure_until;
	int held;

	pthread_mutex_lock(&k->mutex);
	sure_until = l->sure_until;
	pthread_mutex_unlock(&k->mutex);
	if (from < sure_until)
		return;
	held = renew(k->s, k->s->link, l->path, l->token, l->ttl_ms, from + ASK_SECONDS);
	pthread_mutex_lock(&k->mutex);
	if (held == 1)
		l->sure_until = from + (double)l->ttl_ms / 1e3;
	else
		l->lost = true;
	pthread_mutex_unlock(&k->mutex);
}

int
redis_lock_held(void *lock, struct err *e)
{
	struct redis_lock *l = lock;

	if (!is_lost(l))
		make_sure(l);
	return is_lost(l) ? err_set(e, ERR_BUSY, "the lock on '%s' was lost", l->path) : 0;
}

void
redis_unlock(void *lock)
{
	struct redis_lock *l = lock, **p;
	struct keeper *k = l->keeper;
	struct redis_words w = { 0 };
	bool lost = is_lost(l);
	redisReply *r;

	pthread_mutex_lock(&k->mutex);
	for (p = &k->locks; *p != l; p = &(*p)->next)
		;
	*p = l->next;
	pthread_mutex_unlock(&k->mutex);
	/* One that was lost is another's by now, or ends by itself; its server may be gone, and is not waited for. */
	if (!lost) {
		redis_adds(&w, k->s->prefix);
		redis_adds(&w, l->path);
		redis_adds(&w, l->token);
		if ((r = redis_ask(k->s, REDIS_RELEASE, &w, NULL)) != NULL)
			freeReplyObject(r);
	}
	free(l->path);
	free(l->token);
	free(l);
}

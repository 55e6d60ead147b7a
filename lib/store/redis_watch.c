/*
 * Our changes are told on a channel, so that they are noticed at once; AG2's are not, and are looked for twice a second. What
 * changed has a version above the last that was seen; a name that came late or went shows in the count.
 */
#include "store/redis.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define LOOK_MS		500
#define LATE		100	/* versions that another may have taken long before it adds the name */

struct redis_watch {
	struct redis_store *s;
	struct redis_link *news;
	char *path, *channel;
	uint64_t counter, count;
	bool unsure;		/* a file that came may have hidden from the count that another went */
	bool deaf;		/* the server does not let us listen */
};

/* 1 when there is something new, with hints at it; fn may be NULL. */
static int
look(struct redis_watch *w, store_hint_fn *fn, void *arg, struct err *e)
{
	struct redis_words words = { 0 };
	uint64_t counter, count;
	redisReply *r;
	size_t i;
	bool all;

	redis_adds(&words, w->s->prefix);
	redis_addf(&words, "%llu", (unsigned long long)(w->counter > LATE ? w->counter - LATE : 0));
	if ((r = redis_ask(w->s, REDIS_CHANGES, &words, e)) == NULL)
		return -1;
	if (redis_text_at(r, 0) == NULL || redis_text_at(r, 1) == NULL)
		return redis_nonsense(w->s, r, e);
	counter = strtoull(redis_text_at(r, 0), NULL, 10);
	count = strtoull(redis_text_at(r, 1), NULL, 10);
	all = count < w->count || counter < w->counter || (counter == w->counter && count != w->count);
	for (i = 2; fn != NULL && !all && counter != w->counter && i + 1 < r->elements; i += 2)
		if (redis_text_at(r, i) != NULL && redis_text_at(r, i + 1) != NULL)
			fn(arg, r->element[i]->str, strtoull(r->element[i + 1]->str, NULL, 10));
	if (fn != NULL && all)
		fn(arg, w->path, 0);
	freeReplyObject(r);
	w->unsure = !all && (w->unsure || counter != w->counter);
	i = counter != w->counter || count != w->count;
	w->counter = counter;
	w->count = count;
	return (int)i;
}

static void
listen_again(struct redis_watch *w)
{
	struct err e = ERR_INIT;

	if (!w->deaf && redis_link_fd(w->news) < 0 && redis_link_subscribe(w->news, w->channel, redis_deadline(w->s), &e) < 0)
		w->deaf = e.code == ERR_PERM;
}

int
redis_watch(void *self, const char *path, void **watch, struct err *e)
{
	struct redis_watch *w = xcalloc(1, sizeof(*w));

	w->s = self;
	w->path = xstrdup(path);
	w->channel = xasprintf("%s:__ag2:changed", w->s->prefix);
	w->news = redis_link_new(&w->s->place, NULL);
	listen_again(w);
	if (look(w, NULL, NULL, e) < 0) {
		redis_watch_close(w);
		return -1;
	}
	*watch = w;
	return 0;
}

int
redis_watch_wait(void *watch, int64_t wait_ms, store_hint_fn *fn, void *arg, struct err *e)
{
	struct redis_watch *w = watch;
	double until = clock_monotonic() + (double)wait_ms / 1e3;
	struct pollfd p;
	double left;
	int rc;

	for (;;) {
		if ((rc = look(w, fn, arg, e)) != 0)
			return rc;
		left = (until - clock_monotonic()) * 1000;
		if (left <= 0)
			return 0;
		listen_again(w);
		p = (struct pollfd){ .fd = redis_link_fd(w->news), .events = POLLIN };
		if (poll(&p, 1, left < LOOK_MS ? (int)left + 1 : LOOK_MS) > 0) {
			redis_link_news(w->news);
		} else if (w->unsure && left >= LOOK_MS) {
			w->unsure = false;
			fn(arg, w->path, 0);
			return 1;
		}
	}
}

void
redis_watch_close(void *watch)
{
	struct redis_watch *w = watch;

	redis_link_free(w->news);
	free(w->channel);
	free(w->path);
	free(w);
}

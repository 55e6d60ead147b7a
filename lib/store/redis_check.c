/*
 * fsck of a Redis store: whether AG2's index, its values and what we keep for ourselves are in step. AG2 makes a change in three
 * commands, so that a file between two of them looks as if one were missing: what looks wrong is looked at again, and counts
 * only when it stays so.
 */
#include "store/redis.h"

#include "base/alloc.h"
#include "path.h"

#include <poll.h>
#include <stdlib.h>

#define AT_ONCE "1000"
#define LOOKS 4			/* that find the same, before something is wrong, and the time between two */
#define PAUSE_MS 400
#define TRIES 12		/* what is another thing each time until then is somebody's work */
#define EXPIRY_MS 60000

struct suspect {
	char *path, *judgement;	/* NULL: not looked at yet */
	unsigned looks;		/* that had this judgement, one behind the other */
};

struct suspects {
	struct suspect *all;
	size_t n, cap;
};

struct check {
	struct redis_store *s;
	bool repair;
	store_finding_fn *fn;
	void *arg;
	struct suspects files, keys;
};

static void
suspect(struct suspects *l, const char *path)
{
	l->all = xgrow(l->all, l->n, &l->cap, sizeof(*l->all));
	l->all[l->n++] = (struct suspect){ .path = xstrdup(path) };
}

static void
suspect_release(struct suspect *s)
{
	free(s->path);
	free(s->judgement);
}

static void
suspects_release(struct suspects *l)
{
	while (l->n > 0)
		suspect_release(&l->all[--l->n]);
	free(l->all);
	*l = (struct suspects){ 0 };
}

static int
by_path(const void *a, const void *b)
{
	return strcmp(((const struct suspect *)a)->path, ((const struct suspect *)b)->path);
}

/* ---- Asking ---- */

/* What REDIS_JUDGE says, to be freed; NULL on error. */
static char *
judge(struct redis_store *s, const char *path, struct err *e)
{
	struct redis_words w = { 0 };
	redisReply *r;
	char *what;

	redis_adds(&w, s->prefix);
	redis_adds(&w, path);
	if ((r = redis_ask(s, REDIS_JUDGE, &w, e)) == NULL)
		return NULL;
	if (r->type != REDIS_REPLY_STRING) {
		redis_nonsense(s, r, e);
		return NULL;
	}
	what = xmemdup0(r->str, r->len);
	freeReplyObject(r);
	return what;
}

/* 1 when it was mended, 0 when it was not wrong any more. */
static int
mend(struct redis_store *s, const char *what, const char *path, struct err *e)
{
	struct redis_words w = { 0 };
	redisReply *r;
	int done;

	redis_adds(&w, s->prefix);
	redis_adds(&w, what);
	redis_adds(&w, path);
	redis_addf(&w, "%d", EXPIRY_MS);
	if ((r = redis_ask(s, REDIS_MEND, &w, e)) == NULL)
		return -1;
	if (r->type != REDIS_REPLY_INTEGER)
		return redis_nonsense(s, r, e);
	done = r->integer == 1;
	freeReplyObject(r);
	return done;
}

/* The prefix as a pattern that matches nothing else, and all keys behind it. */
static void
add_pattern(struct buf *out, const char *prefix)
{
	for (; *prefix != '\0'; prefix++) {
		if (strchr("*?[]^-\\", *prefix) != NULL)
			buf_addch(out, '\\');
		buf_addch(out, *prefix);
	}
	buf_adds(out, ":*");
}

/* Calls take for each name that the script gives, part after part. A NUL in a name ends it: no path of ours has one. */
static int
scan(struct check *c, enum redis_script script, void (*take)(struct check *c, const char *name, size_t len), struct err *e)
{
	struct buf pattern = BUF_INIT;
	char *cursor = xstrdup("0");
	struct redis_words w;
	redisReply *r;
	size_t i;
	int rc = 0;

	add_pattern(&pattern, c->s->prefix);
	do {
		w = (struct redis_words){ 0 };
		redis_adds(&w, c->s->prefix);
		redis_adds(&w, cursor);
		redis_adds(&w, AT_ONCE);
		redis_adds(&w, pattern.data);
		r = redis_ask(c->s, script, &w, e);
		free(cursor);
		cursor = NULL;
		if (r == NULL || redis_text_at(r, 0) == NULL) {
			rc = r == NULL ? -1 : redis_nonsense(c->s, r, e);
			break;
		}
		cursor = xmemdup0(r->element[0]->str, r->element[0]->len);
		for (i = 1; i < r->elements; i++)
			if (redis_text_at(r, i) != NULL)
				take(c, r->element[i]->str, r->element[i]->len);
		freeReplyObject(r);
	} while (strcmp(cursor, "0") != 0);
	free(cursor);
	buf_release(&pattern);
	return rc;
}

/* ---- What there is one of ---- */

static int
check_store(struct check *c, struct err *e)
{
	struct redis_words w = { 0 };
	const char *what, *text;
	redisReply *r;
	int rc = 1;

	redis_adds(&w, c->s->prefix);
	if ((r = redis_ask(c->s, REDIS_JUDGE_STORE, &w, e)) == NULL)
		return -1;
	what = redis_text_at(r, 0);
	text = redis_text_at(r, 1);
	if (what != NULL && text != NULL && strcmp(what, "counter") == 0) {
		if (c->repair && mend(c->s, what, "/", e) < 0)
			rc = -1;
		else
			store_found(c->fn, c->arg, "/", "version", c->repair ? "set" : NULL, "%s", text);
	} else if (what != NULL && text != NULL) {
		store_found(c->fn, c->arg, "/", "type", NULL, "the key '%s' %s: the store cannot be used", what, text);
		rc = 0;
	}
	freeReplyObject(r);
	return rc;
}

/* ---- Files ---- */

static void
take_listed(struct check *c, const char *path, size_t len)
{
	if (len == 1 || !path_can_be(path, len))
		store_found(c->fn, c->arg, path, "hidden", NULL, "is a path that no command of ours can name");
	else
		suspect(&c->files, path);
}

static void
take_key(struct check *c, const char *name, size_t len)
{
	if (name[0] == '/')
		suspect(&c->files, name);
	else
		suspect(&c->keys, name);
}

static void
take_info(struct check *c, const char *path, size_t len)
{
	suspect(&c->files, path);
}

/* Keeps those of which the judgement is not "". They are in order, some twice. How many have not been looked at often enough, or -1. */
static int
look_again(struct check *c, struct err *e)
{
	struct suspects *l = &c->files;
	size_t i, kept = 0;
	int rc = 0;

	if (l->n > 1)
		qsort(l->all, l->n, sizeof(*l->all), by_path);
	for (i = 0; i < l->n; i++) {
		struct suspect *s = &l->all[i];
		char *what = NULL;

		if (rc >= 0 && (kept == 0 || strcmp(l->all[kept - 1].path, s->path) != 0) && (what = judge(c->s, s->path, e)) == NULL)
			rc = -1;
		if (what == NULL || what[0] == '\0') {
			free(what);
			suspect_release(s);
			continue;
		}
		s->looks = s->judgement != NULL && strcmp(s->judgement, what) == 0 ? s->looks + 1 : 1;
		free(s->judgement);
		s->judgement = what;
		if (rc >= 0 && s->looks < LOOKS)
			rc++;
		l->all[kept++] = *s;
	}
	l->n = kept;
	return rc;
}

static int
tell_file(struct check *c, const struct suspect *s, struct err *e)
{
	static const struct {
		const char *what, *kind, *text, *repaired;
	} known[] = {
		{ "value", "index", "is in AG2's index and has no content", "taken out of the index" },
		{ "index", "index", "has content and is not in AG2's index: no listing shows it", "put into the index" },
		{ "name", "index", "is in AG2's index and not in ours: no listing shows it", "our index was made anew" },
		{ "version", "version", "has a version that nobody can have given it: no change of it would be noticed", "given a new one" },
		{ "info", "leftover", "is gone, but something is kept about it", "removed" },
		{ "type", "type", "is no string: it cannot be read", NULL },
		{ "both", "both", "is a file and a directory: it is read, but cannot be copied to a disk", NULL },
	};
	size_t i, len = strcspn(s->judgement, " ");

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strlen(known[i].what) != len || strncmp(s->judgement, known[i].what, len) != 0)
			continue;
		if (c->repair && known[i].repaired != NULL && mend(c->s, s->judgement, s->path, e) < 0)
			return -1;
		store_found(c->fn, c->arg, s->path, known[i].kind, c->repair ? known[i].repaired : NULL, "%s", known[i].text);
	}
	return 0;
}

static int
check_files(struct check *c, struct err *e)
{
	size_t i;
	int tries = 0, rc = look_again(c, e);

	while (rc > 0 && ++tries < TRIES) {
		poll(NULL, 0, PAUSE_MS);
		rc = look_again(c, e);
	}
	for (i = 0; rc >= 0 && i < c->files.n; i++)
		if (c->files.all[i].looks >= LOOKS)
			rc = tell_file(c, &c->files.all[i], e);
	return rc < 0 ? -1 : 0;
}

static int
check_keys(struct check *c, struct err *e)
{
	const char *name;
	size_t i;
	int rc = 0;

	for (i = 0; rc == 0 && i < c->keys.n; i++) {
		name = c->keys.all[i].path;
		if (c->repair && mend(c->s, "expiry", name, e) < 0)
			rc = -1;
		else
			store_found(c->fn, c->arg, "/", "leftover", c->repair ? "goes in a minute" : NULL, "the key '%s:%s' should have come to an end by itself", c->s->prefix, name);
	}
	return rc;
}

int
redis_check(void *self, bool repair, store_finding_fn *fn, void *arg, struct err *e)
{
	struct check c = { .s = self, .repair = repair, .fn = fn, .arg = arg };
	int rc = check_store(&c, e);

	if (rc > 0 && (scan(&c, REDIS_SCAN_INDEX, take_listed, e) < 0 || scan(&c, REDIS_SCAN_KEYS, take_key, e) < 0 ||
	    scan(&c, REDIS_SCAN_INFO, take_info, e) < 0 || check_files(&c, e) < 0 || check_keys(&c, e) < 0))
		rc = -1;
	suspects_release(&c.files);
	suspects_release(&c.keys);
	return rc;
}

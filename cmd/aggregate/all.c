#include "all.h"

#include "aggregate/seen.h"
#include "base/alloc.h"
#include "base/run.h"
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ID_SIZE 256		/* a stream id in the pipe of work: what is written and read in one piece */
#define LOCK_TTL_MS 60000	/* renewed while it is held, where it has to be */

/* ---- the plan ---- */

void
aggregates_add(struct aggregates *p)
{
	p->items = xrealloc(p->items, p->n + 1, sizeof(*p->items));
	p->parts = xrealloc(p->parts, p->n + 1, sizeof(*p->parts));
	p->items[p->n] = (struct aggregate){ .run.status_fd = -1 };
	p->parts[p->n++] = NULL;
}

void
aggregates_stream(struct aggregates *p, struct store *s, const char *stream)
{
	size_t i;

	upkeep_cmd_env(&p->cmd, s, stream, p->model);
	for (i = 0; i < p->n; i++) {
		p->items[i].env = (const char *const *)p->cmd.env;
		p->items[i].model = upkeep_cmd_model(&p->cmd, p->model, p->parts[i]);
	}
}

void
aggregates_release(struct aggregates *p)
{
	size_t i;

	for (i = 0; i < p->n; i++) {
		aggregate_spec_release(&p->items[i].spec);
		upkeep_run_release(&p->items[i].run);
		free(p->parts[i]);
	}
	free(p->items);
	free(p->parts);
	upkeep_cmd_release(&p->cmd);
}

/* ---- what the workers share ---- */

struct shared {
	atomic_long calls;		/* left; below 0: any number */
	atomic_bool limited, stop, ran;
	atomic_int status;		/* of the first failure */
};

static struct shared *shared;

static void
share(long max_calls)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		log_die(70, "no memory to share");
	shared->limited = max_calls >= 0;
	shared->calls = max_calls;
}

static bool
may_call(void *arg)
{
	return !shared->stop && (!shared->limited || atomic_fetch_sub(&shared->calls, 1) > 0);
}

static bool
is_over(void)
{
	return shared->stop || run_interrupted() || (shared->limited && shared->calls <= 0);
}

/* What would be the same with any stream: settings, keys, a store that is full, a server that is down or wants a pause. */
static bool
concerns_all(const struct aggregate *a, const struct err *e)
{
	if (e->code == ERR_BUSY)
		return !a->held;
	return upkeep_unreachable(e) || e->code == ERR_CONFIG || e->code == ERR_PERM || e->code == ERR_USAGE || e->code == ERR_IO || e->code == ERR_BUG;
}

static void
failed(const struct aggregate *a, const char *stream, const struct err *e)
{
	bool ends = concerns_all(a, e);
	int none = 0;

	if (a->held || e->code == ERR_NOINPUT || run_interrupted())	/* another has it; it was removed meanwhile */
		return;
	if (ends && atomic_exchange(&shared->stop, true))
		return;
	log_warn("stream %s: %s: %s", stream, a->spec.key, e->msg);
	atomic_compare_exchange_strong(&shared->status, &none, err_status(e->code));
}

static void
one(struct aggregates *p, struct store *s, const char *stream)
{
	size_t i;

	aggregates_stream(p, s, stream);
	for (i = 0; i < p->n && !is_over(); i++) {
		struct err e = ERR_INIT;

		p->items[i].may_call = may_call;
		if (p->work(p, i, s, stream, &e) < 0)
			failed(&p->items[i], stream, &e);
		if (p->items[i].ran)
			shared->ran = true;
	}
}

/* ---- workers ---- */

struct workers {
	pid_t *pids;
	long n;
	int work;		/* ids go in here */
};

static noreturn void
worker(struct aggregates *p, int work)
{
	char id[ID_SIZE];
	struct store *s = cli_open(p->url, &p->cmd.agent, STORE_WRITE);

	run_catch_signals();
	while (!is_over() && io_read(work, id, sizeof(id)) == (ssize_t)sizeof(id))
		one(p, s, id);
	store_close(s);
	_exit(0);
}

/* Before the store is opened here: a handle does not survive a fork. */
static void
start_workers(struct aggregates *p, struct workers *w)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		log_die(70, "no pipe: %s", strerror(errno));
	w->pids = xcalloc((size_t)p->jobs, sizeof(*w->pids));
	for (w->n = 0; w->n < p->jobs; w->n++) {
		pid = fork();
		if (pid < 0)
			break;
		if (pid == 0) {
			close(ends[1]);
			worker(p, ends[0]);
		}
		w->pids[w->n] = pid;
	}
	close(ends[0]);
	if (w->n == 0)
		log_die(70, "cannot fork: %s", strerror(errno));
	w->work = ends[1];
}

static void
end_workers(struct workers *w)
{
	long i;
	int status;

	close(w->work);
	for (i = 0; i < w->n; i++) {
		while (waitpid(w->pids[i], &status, 0) < 0 && errno == EINTR)
			if (run_interrupted())
				kill(w->pids[i], run_interrupted());
		if (status != 0 && shared->status == 0)
			shared->status = WIFEXITED(status) ? WEXITSTATUS(status) : 70;
	}
	free(w->pids);
}

/* ---- all ---- */

struct candidate {
	char *id;
	uint64_t version;
};

struct candidates {
	struct candidate *items;
	size_t n, cap;
	double idle, now;
};

/* The listing must not be kept open while cursors are read. */
static int
note_stream(void *arg, const char *id, const struct store_stat *st)
{
	struct candidates *c = arg;

	if (c->idle >= 0 && st->mtime >= 0 && c->now - st->mtime < c->idle)
		return 0;
	c->items = xgrow(c->items, c->n, &c->cap, sizeof(*c->items));
	c->items[c->n++] = (struct candidate){ xstrdup(id), st->version };
	return 0;
}

/* What is new there for item i, as far as it can be told without taking it up; false when it cannot. */
static bool
look(struct aggregates *p, size_t i, struct store *s, const struct stream_index *segments, struct seen *seen, const struct candidate *c)
{
	const struct aggregate *a = &p->items[i];
	struct news news;
	bool fresh = false;

	if (!seen_has(seen, c->id, c->version, &news) || aggregate_trigger_is_met(&a->trigger, &news)) {
		fresh = true;
		if (aggregate_look(a, s, c->id, c->version, segments, &news, NULL) != 0 || aggregate_trigger_is_met(&a->trigger, &news))
			return false;
	}
	seen_note(seen, c->id, c->version, &news, fresh);
	return true;
}

/* Whether any strategy is due there, or cannot say. */
static bool
is_due(struct aggregates *p, struct store *s, const struct stream_index *segments, struct seen *seen, const struct candidate *c)
{
	bool due = p->whole;
	size_t i;

	for (i = 0; i < p->n && !p->whole; i++)
		if (!look(p, i, s, segments, &seen[i], c))
			due = true;
	return due;
}

static void
hand_out(struct aggregates *p, struct store *s, struct workers *w, const char *id)
{
	char text[ID_SIZE] = "";

	if (w == NULL) {
		one(p, s, id);
		return;
	}
	snprintf(text, sizeof(text), "%s", id);
	if (io_write_all(w->work, text, sizeof(text)) < 0)	/* no worker is left: it was said why */
		shared->stop = true;
}

/* That of the store's files, which no AG2_NOW sets. */
static double
real_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
each(struct aggregates *p, struct store *s, struct workers *w)
{
	struct candidates c = { .idle = p->idle, .now = real_time() };
	struct seen *seen = xcalloc(p->n, sizeof(*seen));
	struct stream_index *segments;
	struct err e = ERR_INIT;
	size_t i;

	for (i = 0; i < p->n; i++)
		seen_read(&seen[i], s, p->items[i].spec.key);
	/* A log that has the version of the first listing has no segment that is not in the second. */
	if (stream_list(s, note_stream, &c, &e) < 0 || stream_index_read(s, &segments, &e) < 0)
		log_fail(&e);
	for (i = 0; i < c.n; i++) {
		if (!is_over() && is_due(p, s, segments, seen, &c.items[i]))
			hand_out(p, s, w, c.items[i].id);
		free(c.items[i].id);
	}
	free(c.items);
	stream_index_free(segments);
	for (i = 0; i < p->n; i++) {
		if (!is_over() && !p->whole)
			seen_write(&seen[i], s);
		seen_release(&seen[i]);
	}
	free(seen);
}

static struct store_lock *
lock_host(struct store *s)
{
	struct store_lock *l;
	const char *given = cli_env("AG2_HOST");
	char host[256] = "localhost", *path;
	struct err e = ERR_INIT;

	if (given == NULL && gethostname(host, sizeof(host) - 1) == 0)
		given = host;
	path = xasprintf("/.ag2/lock/aggregate-all/%s", given ? given : host);
	if (store_lock(s, path, LOCK_TTL_MS, 0, &l, &e) < 0) {
		if (e.code == ERR_BUSY)
			exit(75);
		log_fail(&e);
	}
	free(path);
	return l;
}

int
all_streams(struct aggregates *p, bool exit_code)
{
	struct workers w = { NULL };
	struct store_lock *l;
	struct store *s;

	share(p->max_calls);
	if (p->jobs > 1)
		start_workers(p, &w);
	s = cli_open(p->url, &p->cmd.agent, STORE_WRITE);
	l = lock_host(s);
	run_catch_signals();
	each(p, s, p->jobs > 1 ? &w : NULL);
	if (p->jobs > 1)
		end_workers(&w);
	store_unlock(l);
	store_close(s);
	if (run_interrupted())
		cli_die_by(run_interrupted());
	return shared->status != 0 ? shared->status : exit_code && !shared->ran ? 1 : 0;
}

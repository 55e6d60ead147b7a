/*
 * storesoak [-w WRITERS] [-r READERS] [-p PATHS] [-k EVERY] [-o KINDS] [-t MICROSECONDS] [-f] [-x PROGRAM] [-u] [-s SEED] URL N: works on a store, which must be empty, until N changes are
 * acknowledged, kills a writer or a reader at a random moment after each EVERY of them (0: none), then looks for what
 * was acknowledged. It prints what there was, and exits 0 when nothing was lost, there twice, elsewhere than was said, or seen by halves.
 *
 * Each of WRITERS (4) makes changes that follow from SEED, its number, how often it was killed, and how many changes it has made
 * since: so what was acknowledged is all that has to be kept. KINDS are the letters of those that are made (all: `awct`):
 *	a	appends a record to one of the PATHS (2) logs that all writers share
 *	w	writes one of the files that all share
 *	c	a commit of six operations: two files of its own have its number, a log of its own has a line for each, a directory
 *		takes the place of another, and a log that all share gets a record
 *	t	takes the beginning of that log into a segment beside it, as a compaction does
 * READERS (2) look at all that beside them. In memory there is one process, where all take turns, and nobody to kill.
 *
 * With -t each of them waits about so long before its next change or look. Without, writers that keep the store open do all that the
 * processors can: how long the slowest of a hundred takes is then for the scheduler to say, also where they share nothing.
 *
 * With -f a writer opens and closes the store for each change, as a command does; the time that a change takes is then with that.
 *
 * With -x appends are made, and logs are looked at, by running PROGRAM, which is ag2-store, once for each (and with no kills).
 *
 * With -u the server itself may go away and come back: a change that is told to be of unknown outcome ends its writer, as
 * if it had been killed, and a reader tries again.
 */
#include "lib/figure.h"
#include "lib/hammer.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/sha1.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LANES_MAX 64
#define PATHS_MAX 64
#define SHARED_FILES 4
#define STALLED 120	/* seconds without an acknowledgement */
#define UNSURE 75	/* the exit status of a writer that does not know whether its change was made */

enum kind { APPEND = 'a', WRITE = 'w', COMMIT = 'c', TAKE = 't', NOTHING = '-' };

/* What was acknowledged, in memory that the writer shares with its parent: it is there whatever becomes of the writer. */
struct ack {
	uint32_t run, i;
	char kind;
	uint64_t offset;	/* APPEND */
	uint64_t version;	/* WRITE: that the file got; COMMIT: the number */
	double seconds;
};

struct lane {
	atomic_size_t n;
	struct ack *acks;
	_Atomic uint64_t begun;	/* the number of its last commit, whether it came to its end or not */
};

struct shared {
	atomic_bool stop;
	atomic_size_t acked, looks, halves, fell;
};

static struct {
	const char *url, *kinds, *program;
	size_t n, writers, readers, paths, every, pause;
	uint64_t seed;
	bool fresh, unsure;
} o = { .kinds = "awct", .writers = 4, .readers = 2, .paths = 2, .every = 40 };

static struct shared *shared;
static struct lane *lanes;	/* shared, too: one for each writer */

static void *
map(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		give_up("%s", strerror(errno));
	return p;
}

/* ---- The changes ---- */

struct writer {
	size_t lane;
	uint32_t run, i;
	struct store *s;
	uint64_t number;	/* of its last commit */
};

struct change {
	enum kind kind;
	char tag[TAG_MAX];
	size_t file, size;
};

static uint64_t
mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static struct change
change_of(size_t lane, uint32_t run, uint32_t i)
{
	uint64_t x = mix(o.seed + mix(((uint64_t)lane << 48) + ((uint64_t)run << 24) + i)) | 1;
	static const char weights[] = "aaaaaawwwcct";
	struct change c;

	do
		c.kind = (enum kind)weights[draw(&x, sizeof(weights) - 1)];
	while (strchr(o.kinds, c.kind) == NULL);
	snprintf(c.tag, sizeof(c.tag), "%zu.%u", lane, run);
	c.file = draw(&x, c.kind == WRITE ? SHARED_FILES : o.paths);
	c.size = 30 + draw(&x, draw(&x, 25) == 0 ? 20000 : 600);
	return c;
}

static char *
log_path(size_t k)
{
	return xasprintf("/logs/%zu", k);
}

static char *
file_path(size_t k)
{
	return xasprintf("/shared/%zu", k);
}

static char *
own_path(size_t lane, const char *name)
{
	return xasprintf("/own/%zu%s", lane, name);
}

static char *
segment_path(size_t k)
{
	return xasprintf("/turns.dropped-%zu", k);
}

/* What a run of the program with these arguments prints, with `input` on its standard input. */
static void
run_program(const char *const *argv, const struct buf *input, struct buf *output)
{
	int in[2], out[2], status;
	struct err e = ERR_INIT;
	pid_t pid;

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || (pid = vfork()) < 0)
		give_up("%s: %s", argv[0], strerror(errno));
	if (pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execvp(argv[0], (char **)argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	if (io_write_all(in[1], input->data, input->len) < 0 && errno != EPIPE)
		give_up("%s: %s", argv[0], strerror(errno));
	close(in[1]);
	if (io_read_all(out[0], output, argv[0], &e) < 0)
		give_up("%s", e.msg);
	close(out[0]);
	/* 1 is the answer no: a log that is not there yet. */
	if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) > 1)
		give_up("%s %s failed with wait status %d", argv[0], argv[3], status);
}

/* A change that was refused, but for a good reason, ends the process. */
static void
refused(const struct err *e)
{
	if (o.unsure && (e->code == ERR_BUSY || e->code == ERR_UNAVAIL))
		_exit(UNSURE);
	give_up("%s", e->msg);
}

static void
do_append(struct writer *w, const struct change *c, struct ack *a)
{
	struct buf b = BUF_INIT, said = BUF_INIT;
	struct err e = ERR_INIT;
	char *path = log_path(c->file);

	record(&b, c->tag, w->i, c->size);
	if (o.program != NULL) {
		run_program((const char *[]){ o.program, "-s", o.url, "append", path, NULL }, &b, &said);
		said.data[strcspn(said.data, "\n")] = '\0';
		a->offset = (uint64_t)number(said.data);
	} else if (store_append(w->s, path, b.data, b.len, &a->offset, &e) < 0)
		refused(&e);
	buf_release(&b);
	buf_release(&said);
	free(path);
}

static void
do_write(struct writer *w, const struct change *c, struct ack *a)
{
	struct buf b = BUF_INIT;
	struct err e = ERR_INIT;
	char *path = file_path(c->file);
	struct store_op op = { .kind = STORE_OP_WRITE, .path = path };

	record(&b, c->tag, w->i, c->size * 8);
	op.data = b.data;
	op.len = b.len;
	if (store_commit(w->s, &op, 1, &e) < 0)
		refused(&e);
	a->version = op.version;
	buf_release(&b);
	free(path);
}

static void
do_commit(struct writer *w, const struct change *c, struct ack *a)
{
	struct buf text = BUF_INIT, line = BUF_INIT, own = BUF_INIT;
	struct err e = ERR_INIT;
	char old[60], new[60];
	struct store_op ops[6];
	size_t k;

	a->version = w->number + 1;
	snprintf(old, sizeof(old), "/own/%zu/d%zu", w->lane, (size_t)w->number);
	snprintf(new, sizeof(new), "/own/%zu/d%zu/x", w->lane, (size_t)a->version);
	buf_addf(&text, "%zu", (size_t)a->version);
	record(&own, "own", (long)a->version, 100);
	record(&line, c->tag, w->i, c->size);
	ops[0] = (struct store_op){ .kind = STORE_OP_WRITE, .path = own_path(w->lane, "/a"), .data = text.data, .len = text.len };
	ops[1] = (struct store_op){ .kind = STORE_OP_WRITE, .path = own_path(w->lane, "/deep/b"), .data = text.data, .len = text.len };
	ops[2] = (struct store_op){ .kind = STORE_OP_APPEND, .path = own_path(w->lane, "/log"), .data = own.data, .len = own.len };
	ops[3] = (struct store_op){ .kind = STORE_OP_DELETE, .path = old };
	ops[4] = (struct store_op){ .kind = STORE_OP_WRITE, .path = new, .data = text.data, .len = text.len };
	ops[5] = (struct store_op){ .kind = STORE_OP_APPEND, .path = "/turns", .data = line.data, .len = line.len };
	atomic_store(&lanes[w->lane].begun, a->version);
	if (store_commit(w->s, ops, 6, &e) < 0)
		refused(&e);
	w->number = a->version;
	for (k = 0; k < 3; k++)
		free((char *)ops[k].path);
	buf_release(&text);
	buf_release(&line);
	buf_release(&own);
}

static bool
is_there(struct store *s, size_t segment)
{
	struct err e = ERR_INIT;
	char *path = segment_path(segment);
	int there = store_stat(s, path, NULL, &e);

	if (there < 0)
		refused(&e);
	free(path);
	return there > 0;
}

/* They are numbered from 1 without a gap, and none goes away. */
static size_t
count_segments(struct store *s)
{
	size_t there = 0, not_there = 1, mid;

	while (is_there(s, not_there)) {
		there = not_there;
		not_there *= 2;
	}
	while (there + 1 < not_there) {
		mid = there + (not_there - there) / 2;
		if (is_there(s, mid))
			there = mid;
		else
			not_there = mid;
	}
	return there;
}

/* Somebody else may have done it meanwhile: then it is nothing. */
static void
do_take(struct writer *w, const struct change *c, struct ack *a)
{
	struct buf all = BUF_INIT;
	struct err e = ERR_INIT;
	char *segment = segment_path(count_segments(w->s) + 1);
	struct store_op ops[] = {
		{ .kind = STORE_OP_EXPECT, .path = segment },
		{ .kind = STORE_OP_REPLACE_PREFIX, .path = "/turns", .data = "" },
		{ .kind = STORE_OP_WRITE, .path = segment },
	};
	struct sha1 h;

	if (store_read(w->s, "/turns", &all, NULL, &e) < 0 && e.code != ERR_ABSENT)
		refused(&e);
	for (ops[1].upto = all.len / 2; ops[1].upto > 0 && all.data[ops[1].upto - 1] != '\n'; ops[1].upto--)
		;
	sha1_init(&h);
	sha1_add(&h, all.data, (size_t)ops[1].upto);
	sha1_end(&h, ops[1].sha1);
	ops[2].data = all.data;
	ops[2].len = (size_t)ops[1].upto;
	if (ops[1].upto == 0)
		a->kind = NOTHING;
	else if (store_commit(w->s, ops, 3, &e) < 0 && e.code == ERR_CONFLICT)
		a->kind = NOTHING;
	else if (e.code != ERR_NONE && e.code != ERR_ABSENT)
		refused(&e);
	buf_release(&all);
	free(segment);
}

static struct store *
opened_by_and_by(enum store_mode mode)
{
	struct store_options options = { .mode = mode, .timeout_ms = 30000 };
	struct store *s = NULL;
	struct err e = ERR_INIT;

	while (store_open(&s, o.url, &options, &e) < 0) {
		if (e.code == ERR_NOINPUT || (o.unsure && (e.code == ERR_BUSY || e.code == ERR_UNAVAIL)))
			nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
		else
			give_up("%s: %s", o.url, e.msg);
		if (atomic_load(&shared->stop))
			_exit(0);
	}
	return s;
}

static void
change_one(struct writer *w)
{
	struct lane *l = &lanes[w->lane];
	struct change c = change_of(w->lane, w->run, ++w->i);
	struct ack a = { .run = w->run, .i = w->i, .kind = (char)c.kind };
	size_t n = atomic_load(&l->n);
	double from = clock_monotonic();

	if (w->s == NULL && o.program == NULL)
		w->s = opened_by_and_by(STORE_CREATE);
	switch (c.kind) {
	case APPEND: do_append(w, &c, &a); break;
	case WRITE: do_write(w, &c, &a); break;
	case COMMIT: do_commit(w, &c, &a); break;
	default: do_take(w, &c, &a); break;
	}
	if (o.fresh) {
		store_close(w->s);
		w->s = NULL;
	}
	a.seconds = clock_monotonic() - from;
	l->acks[n] = a;
	atomic_store(&l->n, n + 1);
	if (a.kind != NOTHING)
		atomic_fetch_add(&shared->acked, 1);
}

/* ---- What a writer's own files must be ---- */

static int
collect(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	buf_addf(arg, "%s%s ", name, dir ? "/" : "");
	return 0;
}

static uint64_t
value(struct store *s, size_t lane, const char *name)
{
	struct buf b = BUF_INIT;
	struct err e = ERR_INIT;
	char *path = own_path(lane, name);
	uint64_t n = 0;

	if (store_read(s, path, &b, NULL, &e) == 0)
		n = (uint64_t)number(b.data);
	else if (e.code != ERR_ABSENT)
		refused(&e);
	buf_release(&b);
	free(path);
	return n;
}

/* Whether the names are those of one commit; its number, 0 before the first. */
static bool
whole_names(struct store *s, size_t lane, uint64_t *n)
{
	struct buf names = BUF_INIT, want = BUF_INIT;
	struct err e = ERR_INIT;
	char *path = own_path(lane, "");
	unsigned long long k = 0;
	bool whole;

	if (store_list(s, path, 0, collect, &names, &e) < 0)
		refused(&e);
	if (sscanf(names.data, "a d%llu/", &k) == 1)
		buf_addf(&want, "a d%llu/ deep/ log ", k);
	whole = same(&names, &want);
	*n = k;
	buf_release(&names);
	buf_release(&want);
	free(path);
	return whole;
}

/* The number of the lane's last commit, when all of it is there and nothing of another. */
static bool
whole_commit(struct store *s, size_t lane, uint64_t *n)
{
	struct buf log = BUF_INIT;
	struct err e = ERR_INIT;
	char *path = own_path(lane, "/log"), tag[TAG_MAX];
	size_t at = 0, len = 1;
	uint64_t lines = 0;
	long i;
	bool whole = whole_names(s, lane, n);

	if (store_read(s, path, &log, NULL, &e) < 0 && e.code != ERR_ABSENT)
		refused(&e);
	for (; at < log.len && len > 0; at += len) {
		len = record_at(log.data + at, log.len - at, tag, &i);
		lines++;
		whole = whole && len > 0 && (uint64_t)i == lines;
	}
	whole = whole && lines == *n && value(s, lane, "/a") == *n && value(s, lane, "/deep/b") == *n;
	buf_release(&log);
	free(path);
	return whole;
}

/* ---- Readers ---- */

struct reader {
	struct store *s;
	uint64_t x, at[PATHS_MAX], version[SHARED_FILES];
	bool began[PATHS_MAX], snapshots;
};

static void
half(const char *path, uint64_t at)
{
	fprintf(stderr, "storesoak: %s: a reader sees a part of something at byte %llu\n", path, (unsigned long long)at);
	atomic_fetch_add(&shared->halves, 1);
}

/* The bytes are whole records; when they are not it is told, and the rest passed over. */
static size_t
whole_records(const struct buf *b, const char *path, uint64_t from)
{
	char tag[TAG_MAX];
	size_t at, n;
	long i;

	for (at = 0; at < b->len; at += n)
		if ((n = record_at(b->data + at, b->len - at, tag, &i)) == 0) {
			half(path, from + at);
			return b->len;
		}
	return at;
}

/* Only what is new, so that the looks are many. A reader begins at the end. */
static void
look_at_log(struct reader *r, size_t k)
{
	struct store_stat st = { 0 };
	struct buf b = BUF_INIT, none = BUF_INIT;
	struct err e = ERR_INIT;
	char *path = log_path(k), *range;

	if (!r->began[k] && store_stat(r->s, path, &st, &e) < 0)
		refused(&e);
	if (!r->began[k])
		r->at[k] = st.size;
	r->began[k] = true;
	range = xasprintf("--range=%llu", (unsigned long long)r->at[k]);
	if (o.program != NULL)
		run_program((const char *[]){ o.program, "-s", o.url, "cat", range, path, NULL }, &none, &b);
	else if (store_read_range(r->s, path, (int64_t)r->at[k], STORE_END, &b, &e) < 0)
		refused(&e);
	r->at[k] += whole_records(&b, path, r->at[k]);
	buf_release(&b);
	free(path);
	free(range);
}

static void
look_at_file(struct reader *r, size_t k)
{
	struct store_stat st = { 0 };
	struct buf b = BUF_INIT;
	struct err e = ERR_INIT;
	char *path = file_path(k), tag[TAG_MAX];
	long i;

	if (store_read(r->s, path, &b, &st, &e) < 0 && e.code != ERR_ABSENT)
		refused(&e);
	if (b.len > 0 && record_at(b.data, b.len, tag, &i) != b.len)
		half(path, 0);
	if (b.len > 0 && st.version < r->version[k])
		atomic_fetch_add(&shared->fell, 1);
	r->version[k] = st.version;
	buf_release(&b);
	free(path);
}

static void
look_at_commit(struct reader *r, size_t lane)
{
	struct err e = ERR_INIT;
	uint64_t n;
	bool whole;

	if (r->snapshots && store_hold(r->s, &e) < 0)
		refused(&e);
	whole = r->snapshots ? whole_commit(r->s, lane, &n) : whole_names(r->s, lane, &n);
	if (!whole)
		half("/own", lane);
	if (r->snapshots)
		store_release(r->s);
}

static void
look_at_turns(struct reader *r)
{
	struct buf b = BUF_INIT;
	struct err e = ERR_INIT;

	if (store_read(r->s, "/turns", &b, NULL, &e) < 0 && e.code != ERR_ABSENT)
		refused(&e);
	whole_records(&b, "/turns", 0);
	buf_release(&b);
}

static void
look_one(struct reader *r)
{
	switch (draw(&r->x, 8)) {
	case 0: look_at_turns(r); break;
	case 1: look_at_commit(r, draw(&r->x, o.writers)); break;
	case 2: case 3: look_at_file(r, draw(&r->x, SHARED_FILES)); break;
	default: look_at_log(r, draw(&r->x, o.paths)); break;
	}
	atomic_fetch_add(&shared->looks, 1);
}

static bool
has_snapshots(void)
{
	return strncmp(o.url, "sqlite:", 7) == 0 || strncmp(o.url, "memory:", 7) == 0;
}

/* ---- Processes ---- */

static void
pause_for(double seconds)
{
	nanosleep(&(struct timespec){ .tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) }, NULL);
}

static void
pause_between(uint64_t *x)
{
	if (o.pause > 0)
		pause_for((double)(o.pause / 2 + draw(x, o.pause)) / 1e6);
}

static noreturn void
write_until_killed(size_t lane, uint32_t run, uint64_t x)
{
	struct writer w = { .lane = lane, .run = run, .s = opened_by_and_by(STORE_CREATE) };

	if (strchr(o.kinds, COMMIT) != NULL && !whole_commit(w.s, lane, &w.number))
		give_up("run %u of writer %zu finds a part of its commit", run, lane);
	while (!atomic_load(&shared->stop)) {
		change_one(&w);
		pause_between(&x);
	}
	store_close(w.s);
	_exit(0);
}

static noreturn void
read_until_killed(uint64_t x)
{
	struct reader r = { .x = x, .s = opened_by_and_by(STORE_READ), .snapshots = has_snapshots() };

	while (!atomic_load(&shared->stop)) {
		look_one(&r);
		pause_between(&r.x);
	}
	store_close(r.s);
	_exit(0);
}

struct worker {
	pid_t pid;
	uint32_t run;
};

/* The first o.writers of them write. */
static void
start(struct worker *all, size_t k, uint64_t *x)
{
	uint64_t seed = draw(x, UINT64_MAX) | 1;
	pid_t parent = getpid();

	all[k].pid = fork();
	if (all[k].pid < 0)
		give_up("fork: %s", strerror(errno));
	if (all[k].pid > 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	if (k < o.writers)
		write_until_killed(k, all[k].run, seed);
	read_until_killed(seed);
}

struct counts {
	size_t kills, unsure, acked[128], extra, lost, twice, elsewhere, torn;
};

/* Those that ended by themselves although they were not told to. */
static void
look_after(struct worker *all, struct counts *c, uint64_t *x)
{
	int status;
	pid_t pid;
	size_t k;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (k = 0; all[k].pid != pid; k++)
			;
		if (!o.unsure || !WIFEXITED(status) || WEXITSTATUS(status) != UNSURE)
			give_up("%s %zu ended with wait status %d", k < o.writers ? "writer" : "reader", k, status);
		c->unsure += k < o.writers;
		all[k].run++;
		start(all, k, x);
	}
}

static void
kill_one(struct worker *all, struct counts *c, uint64_t *x)
{
	size_t k = draw(x, 8) > 0 ? draw(x, o.writers) : draw(x, o.writers + o.readers);
	double until = clock_monotonic() + (double)draw(x, 400) / 1e6;
	int status;

	/* Sleeping would end when it suits the scheduler. */
	while (clock_monotonic() < until)
		;
	kill(all[k].pid, SIGKILL);
	if (waitpid(all[k].pid, &status, 0) < 0 || (!WIFSIGNALED(status) && !o.unsure))
		give_up("worker %zu ended before it was killed", k);
	c->kills++;
	all[k].run++;
	start(all, k, x);
}

static void
work(struct counts *c, uint64_t *x)
{
	struct worker all[2 * LANES_MAX] = { 0 };
	size_t k, now = 0, seen = 0, next = o.every;
	double moved = clock_monotonic();
	int status;

	for (k = 0; k < o.writers + o.readers; k++)
		start(all, k, x);
	for (; now < o.n; now = atomic_load(&shared->acked)) {
		look_after(all, c, x);
		if (o.every > 0 && now >= next) {
			kill_one(all, c, x);
			next = now + o.every / 2 + draw(x, o.every);
		} else {
			pause_for(0.0002);
		}
		if (now != seen)
			moved = clock_monotonic();
		else if (clock_monotonic() - moved > STALLED)
			give_up("nothing was acknowledged for %d seconds", STALLED);
		seen = now;
	}
	atomic_store(&shared->stop, true);
	for (k = 0; k < o.writers + o.readers; k++)
		if (waitpid(all[k].pid, &status, 0) < 0 || !WIFEXITED(status) || (WEXITSTATUS(status) != 0 && !(o.unsure && WEXITSTATUS(status) == UNSURE)))
			give_up("worker %zu ended with wait status %d", k, status);
}

static struct store *
take_turns(uint64_t *x)
{
	struct store *s = opened("memory:", STORE_CREATE);
	struct writer writers[LANES_MAX];
	struct reader r = { .x = *x, .s = s, .snapshots = true };
	size_t k;

	for (k = 0; k < o.writers; k++)
		writers[k] = (struct writer){ .lane = k, .s = s };
	while (atomic_load(&shared->acked) < o.n) {
		change_one(&writers[draw(x, o.writers)]);
		look_one(&r);
	}
	return s;
}

/* ---- Looking for what was acknowledged ---- */

static struct ack *
ack_find(size_t lane, uint32_t run, uint32_t i)
{
	struct lane *l = &lanes[lane];
	size_t lo = 0, hi = atomic_load(&l->n), mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (l->acks[mid].run < run || (l->acks[mid].run == run && l->acks[mid].i < i))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < atomic_load(&l->n) && l->acks[lo].run == run && l->acks[lo].i == i ? &l->acks[lo] : NULL;
}

/* Each run may have made one change that was not acknowledged: the one after its last. */
static bool
was_under_way(size_t lane, uint32_t run, uint32_t i)
{
	return ack_find(lane, run, i) == NULL && (i == 1 || ack_find(lane, run, i - 1) != NULL);
}

struct search {
	struct counts *c;
	enum kind kind;
	bool *found[LANES_MAX];	/* for each ack */
	struct { uint32_t run, i; } last[LANES_MAX];
};

static void
complain(size_t *count, const char *path, size_t at, const char *what)
{
	if ((*count)++ < 10)
		fprintf(stderr, "storesoak: %s, at byte %zu: %s\n", path, at, what);
}

/* A record of the writers at byte `at` of path; NULL where offsets are not those that were told. */
static void
seen_record(struct search *f, const char *path, const size_t *file, size_t at, const char *tag, long i)
{
	struct ack *a;
	size_t lane;
	uint32_t run;
	struct change c;

	if (sscanf(tag, "%zu.%u", &lane, &run) != 2 || lane >= o.writers)
		give_up("%s: a record of nobody at byte %zu", path, at);
	a = ack_find(lane, run, (uint32_t)i);
	c = change_of(lane, run, (uint32_t)i);
	if (c.kind != f->kind || (file != NULL && c.file != *file))
		complain(&f->c->elsewhere, path, at, "a record that belongs elsewhere");
	if (a == NULL && !was_under_way(lane, run, (uint32_t)i))
		complain(&f->c->elsewhere, path, at, "a record that nobody can have written");
	if (a != NULL && f->found[lane][a - lanes[lane].acks])
		complain(&f->c->twice, path, at, "a record that was there before");
	else if (file != NULL && a != NULL && a->offset != at)
		complain(&f->c->elsewhere, path, at, "a record whose offset was told otherwise");
	if (a != NULL)
		f->found[lane][a - lanes[lane].acks] = true;
	else
		f->c->extra++;
	/* What a writer does it does one after the other, so this finds what is twice and was not acknowledged, too. */
	if (run < f->last[lane].run || (run == f->last[lane].run && (uint32_t)i <= f->last[lane].i))
		complain(&f->c->twice, path, at, "a record that comes behind a later one, or again");
	f->last[lane].run = run;
	f->last[lane].i = (uint32_t)i;
}

static void
search_file(struct search *f, struct store *s, const char *path, const size_t *file)
{
	struct buf all = BUF_INIT;
	struct err e = ERR_INIT;
	char tag[TAG_MAX];
	size_t at, n;
	long i;

	if (store_read(s, path, &all, NULL, &e) < 0 && e.code != ERR_ABSENT)
		give_up("%s", e.msg);
	for (at = 0; at < all.len; at += n) {
		if ((n = record_at(all.data + at, all.len - at, tag, &i)) == 0) {
			complain(&f->c->torn, path, at, "torn");
			break;
		}
		seen_record(f, path, file, at, tag, i);
	}
	buf_release(&all);
}

static void
search_begin(struct search *f, struct counts *c, enum kind kind)
{
	size_t k;

	memset(f, 0, sizeof(*f));
	f->c = c;
	f->kind = kind;
	for (k = 0; k < o.writers; k++)
		f->found[k] = xcalloc(atomic_load(&lanes[k].n) + 1, 1);
}

static void
search_end(struct search *f)
{
	size_t k, i;

	for (k = 0; k < o.writers; k++) {
		for (i = 0; i < atomic_load(&lanes[k].n); i++)
			if (lanes[k].acks[i].kind == (char)f->kind && !f->found[k][i]) {
				fprintf(stderr, "storesoak: change %u of run %u of writer %zu is lost\n", lanes[k].acks[i].i, lanes[k].acks[i].run, k);
				f->c->lost++;
			}
		free(f->found[k]);
	}
}

static void
check_logs(struct store *s, struct counts *c)
{
	struct search f;
	size_t k;
	char *path;

	search_begin(&f, c, APPEND);
	for (k = 0; k < o.paths; k++) {
		memset(f.last, 0, sizeof(f.last));
		path = log_path(k);
		search_file(&f, s, path, &k);
		free(path);
	}
	search_end(&f);
}

/* The segments, then the log, are one series. */
static void
check_turns(struct store *s, struct counts *c)
{
	struct search f;
	size_t k, n = count_segments(s);
	char *path;

	search_begin(&f, c, COMMIT);
	for (k = 1; k <= n; k++) {
		path = segment_path(k);
		search_file(&f, s, path, NULL);
		free(path);
	}
	search_file(&f, s, "/turns", NULL);
	search_end(&f);
}

static void
check_commits(struct store *s, struct counts *c)
{
	uint64_t n, last;
	size_t k, i;

	for (k = 0; k < o.writers; k++) {
		for (i = atomic_load(&lanes[k].n); i > 0 && lanes[k].acks[i - 1].kind != COMMIT; i--)
			;
		last = i > 0 ? lanes[k].acks[i - 1].version : 0;
		if (!whole_commit(s, k, &n))
			complain(&c->torn, "/own", k, "a part of a commit");
		else if (n < last)
			complain(&c->lost, "/own", k, "the last commit is lost");
		else if (n > atomic_load(&lanes[k].begun))	/* several in a row may be of writers that were killed then */
			complain(&c->elsewhere, "/own", k, "a commit that nobody can have made");
	}
}

/* What has the greatest version is there, unless a change that was not acknowledged came behind it. */
static void
check_file(struct store *s, size_t file, struct counts *c)
{
	struct store_stat st = { 0 };
	struct buf b = BUF_INIT;
	struct err e = ERR_INIT;
	char *path = file_path(file), tag[TAG_MAX] = "";
	const struct ack *last = NULL, *a;
	size_t k, i, lane = 0, owner = 0;
	uint32_t run = 0;
	long n = 0;

	for (k = 0; k < o.writers; k++)
		for (i = 0; i < atomic_load(&lanes[k].n); i++) {
			a = &lanes[k].acks[i];
			if (a->kind != WRITE || change_of(k, a->run, a->i).file != file)
				continue;
			if (last != NULL && a->version == last->version)
				complain(&c->twice, path, 0, "a version that two writers were told");
			if (last == NULL || a->version > last->version)
				last = a, owner = k;
		}
	if (store_read(s, path, &b, &st, &e) < 0 && e.code != ERR_ABSENT)
		give_up("%s", e.msg);
	if (b.len > 0 && (record_at(b.data, b.len, tag, &n) != b.len || sscanf(tag, "%zu.%u", &lane, &run) != 2))
		complain(&c->torn, path, 0, "torn");
	else if (last != NULL && (b.len == 0 || st.version < last->version))
		complain(&c->lost, path, 0, "the last write is lost");
	else if (last != NULL && st.version == last->version && (lane != owner || run != last->run || (uint32_t)n != last->i))
		complain(&c->elsewhere, path, 0, "not what has the greatest version");
	else if (last != NULL && st.version > last->version && !was_under_way(lane, run, (uint32_t)n))
		complain(&c->elsewhere, path, 0, "a write that nobody can have made");
	buf_release(&b);
	free(path);
}

static void
check(struct store *s, struct counts *c)
{
	size_t k, i;

	check_logs(s, c);
	check_turns(s, c);
	check_commits(s, c);
	for (k = 0; k < SHARED_FILES; k++)
		check_file(s, k, c);
	for (k = 0; k < o.writers; k++)
		for (i = 0; i < atomic_load(&lanes[k].n); i++)
			c->acked[(unsigned char)lanes[k].acks[i].kind]++;
}

/* How long appends took, in microseconds. */
static void
append_times(double *p50, double *p99)
{
	double *all = NULL;
	size_t n = 0, cap = 0, k, i;

	for (k = 0; k < o.writers; k++)
		for (i = 0; i < atomic_load(&lanes[k].n); i++)
			if (lanes[k].acks[i].kind == APPEND) {
				all = xgrow(all, n, &cap, sizeof(*all));
				all[n++] = lanes[k].acks[i].seconds * 1e6;
			}
	*p50 = quantile(all, n, 0.5);
	*p99 = quantile(all, n, 0.99);
	free(all);
}

static int
report(const struct counts *c)
{
	size_t acked = c->acked[APPEND] + c->acked[WRITE] + c->acked[COMMIT] + c->acked[TAKE], looks = atomic_load(&shared->looks);
	size_t halves = c->torn + atomic_load(&shared->halves), fell = atomic_load(&shared->fell);
	double p50, p99;
	char label[120];

	append_times(&p50, &p99);
	say("%zu acknowledged (%zu appends, %zu writes, %zu commits, %zu compactions), %zu killed, %zu unsure, %zu there and not acknowledged, %zu looks\n",
	    acked, c->acked[APPEND], c->acked[WRITE], c->acked[COMMIT], c->acked[TAKE], c->kills, c->unsure, c->extra, looks);
	say("lost %zu, twice %zu, elsewhere %zu, halves read %zu, versions fallen %zu\n", c->lost, c->twice, c->elsewhere, halves, fell);
	if (p50 > 0 && o.every > 0)
		say("an append: p50 %.0f us, p99 %.0f us, %.0f times as much\n", p50, p99, p99 / p50);
	snprintf(label, sizeof(label), "the slowest of a hundred appends (%.1f ms) by the median (%.1f ms)", p99 / 1e3, p50 / 1e3);
	if (p50 > 0 && o.every == 0)
		figure(p99 / p50, "", 50, label);
	fflush(stdout);
	return c->lost + c->twice + c->elsewhere + halves + fell == 0 ? 0 : 1;
}

static int
usage(void)
{
	fputs("usage: storesoak [-w WRITERS] [-r READERS] [-p PATHS] [-k EVERY] [-o KINDS] [-t MICROSECONDS] [-f] [-x PROGRAM] [-u] [-s SEED] URL N\n", stderr);
	return 64;
}

int
main(int argc, char **argv)
{
	struct counts c = { 0 };
	struct store *s;
	uint64_t x;
	size_t k;
	int opt;

	while ((opt = getopt(argc, argv, "w:r:p:k:o:s:t:x:fu")) != -1)
		switch (opt) {
		case 'w': o.writers = (size_t)number(optarg); break;
		case 'r': o.readers = (size_t)number(optarg); break;
		case 'p': o.paths = (size_t)number(optarg); break;
		case 'k': o.every = (size_t)number(optarg); break;
		case 'o': o.kinds = optarg; break;
		case 's': o.seed = (uint64_t)number(optarg); break;
		case 't': o.pause = (size_t)number(optarg); break;
		case 'x': o.program = optarg; break;
		case 'f': o.fresh = true; break;
		case 'u': o.unsure = true; break;
		default: return usage();
		}
	if (argc != optind + 2 || o.writers < 1 || o.writers > LANES_MAX || o.readers > LANES_MAX || o.paths < 1 || o.paths > PATHS_MAX ||
	    strspn(o.kinds, "awct") != strlen(o.kinds) || strpbrk(o.kinds, "awc") == NULL || (o.program != NULL && o.every > 0))
		return usage();
	signal(SIGPIPE, SIG_IGN);
	o.url = argv[optind];
	o.n = (size_t)number(argv[optind + 1]);
	if (o.seed == 0)
		o.seed = seed_now();
	x = mix(o.seed) | 1;
	shared = map(sizeof(*shared));
	lanes = map(o.writers * sizeof(*lanes));
	/* Some room for what is nothing, and for those that are under way when N is reached. */
	for (k = 0; k < o.writers; k++)
		lanes[k].acks = map((2 * o.n + 1000) * sizeof(struct ack));
	if (strncmp(o.url, "memory:", 7) == 0) {
		s = take_turns(&x);
	} else {
		work(&c, &x);
		atomic_store(&shared->stop, false);	/* nobody is left; the server may be on its way back */
		s = opened_by_and_by(STORE_READ);
	}
	check(s, &c);
	store_close(s);
	if (report(&c) == 0)
		return 0;
	fprintf(stderr, "storesoak: seed %llu\n", (unsigned long long)o.seed);
	return 1;
}

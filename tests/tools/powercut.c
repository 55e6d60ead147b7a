/*
 * powercut DIR disk|sqlite SEED N SAMPLES: whether a store with ?sync=full survives the loss of power.
 *
 * N changes, which follow from SEED, are made in a store below DIR (an empty directory) by processes of which some are killed,
 * under power.so. Then for each moment of the record, and each of several things that a disk may have kept of what was not
 * synced by then, the files are put together as they would be found again, and looked at with the library: all that was
 * acknowledged before the moment must be there, of the change under way all or nothing, no version may have fallen, and
 * the store must work. SAMPLES is how many choices of what is kept are drawn for each moment besides the systematic ones.
 * Prints how many moments and different states there were, and exits 0 when all were whole.
 *
 * What a disk may do: writes to a file that were not synced are kept or lost, each sector for itself, and so is the
 * length; fdatasync keeps content and length, fsync the time as well. A name that was made, removed or changed is kept when
 * its directory was synced since; those of one directory are kept in order; a rename is one thing.
 */
#include "lib/hammer.h"
#include "preload/power.h"

#include "base/alloc.h"
#include "base/io.h"
#include "base/sha1.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECTOR 512

/* ---- The changes ---- */

#define OPS_MAX 5
#define PATH_ROOM 48

struct change {
	struct store_op ops[OPS_MAX];
	char paths[OPS_MAX][PATH_ROOM];
	struct buf data[OPS_MAX];
	size_t n;
};

static void
change_release(struct change *c)
{
	size_t i;

	for (i = 0; i < OPS_MAX; i++)
		buf_release(&c->data[i]);
}

/* The number of the change, then lines up to about len bytes. */
static void
fill(struct buf *b, long i, size_t len)
{
	buf_addf(b, "change %ld\n", i);
	while (b->len < len)
		buf_addf(b, "line at %zu of change %ld\n", b->len, i);
}

static struct store_op *
add(struct change *c, enum store_op_kind kind, const char *path, long i, size_t len)
{
	struct store_op *op = &c->ops[c->n];

	snprintf(c->paths[c->n], PATH_ROOM, "%s", path);
	if (kind != STORE_OP_DELETE)
		fill(&c->data[c->n], i, len);
	*op = (struct store_op){ .kind = kind, .path = c->paths[c->n], .data = c->data[c->n].data, .len = c->data[c->n].len };
	c->n++;
	return op;
}

/* The first lines of the log become one. Without a log: an append. */
static void
shorten(struct change *c, struct store *s, const char *path, long i, uint64_t *x)
{
	struct store_op *op;
	struct buf b = BUF_INIT;
	struct err e = ERR_INIT;
	struct sha1 h;

	if (store_read(s, path, &b, NULL, &e) < 0 || b.len == 0) {
		add(c, STORE_OP_APPEND, path, i, 30);
	} else {
		op = add(c, STORE_OP_REPLACE_PREFIX, path, i, 30);
		op->upto = draw(x, b.len);
		sha1_init(&h);
		sha1_add(&h, b.data, (size_t)op->upto);
		sha1_end(&h, op->sha1);
	}
	buf_release(&b);
}

/* Change number i (from 1) of a store that is as s, in memory, is. */
static void
make_change(struct change *c, struct store *s, long i, uint64_t *x)
{
	enum { KINDS = 12 };
	static const char *const logs[] = { "/log/a.jsonl", "/log/b.jsonl" };
	const char *log = logs[draw(x, 2)];
	char path[PATH_ROOM];

	memset(c, 0, sizeof(*c));
	switch (i <= KINDS ? i % KINDS : (long)draw(x, KINDS + 4)) {
	case 1: add(c, STORE_OP_APPEND, log, i, 10000 + draw(x, 10000)); break;
	case 2: add(c, STORE_OP_WRITE, "/memory/working.md", i, 100 + draw(x, 300)); break;
	case 3: add(c, STORE_OP_WRITE, "/big", i, 70000 + draw(x, 70000)); break;
	case 4:
		snprintf(path, sizeof(path), "/new/%ld/log", i);
		add(c, STORE_OP_APPEND, path, i, 50);
		break;
	case 5:
		snprintf(path, sizeof(path), "/new/%ld/deep/file", i);
		add(c, STORE_OP_WRITE, path, i, 50);
		break;
	case 6: shorten(c, s, log, i, x); break;
	case 7:
		add(c, STORE_OP_WRITE, "/memory/deleted-directory", i, 20);
		add(c, STORE_OP_DELETE, "/new", i, 0);
		break;
	case 8:
		shorten(c, s, "/log/a.jsonl", i, x);
		snprintf(path, sizeof(path), "/log/a.dropped-%ld.jsonl", i);
		add(c, STORE_OP_WRITE, path, i, 3000);
		break;
	case 9:
		add(c, STORE_OP_APPEND, "/log/a.jsonl", i, 200);
		add(c, STORE_OP_APPEND, "/log/b.jsonl", i, draw(x, 2) ? 100 : 9000);
		add(c, STORE_OP_DELETE, "/big", i, 0);
		add(c, STORE_OP_WRITE, "/memory/working.md", i, 100);
		snprintf(path, sizeof(path), "/new/%ld", i);
		add(c, STORE_OP_APPEND, path, i, 50);
		break;
	case 10:
		add(c, STORE_OP_DELETE, log, i, 0);
		add(c, STORE_OP_APPEND, "/log/other", i, 40);
		break;
	case 11: add(c, STORE_OP_APPEND, "/log/other", i, 600); break;
	default: add(c, STORE_OP_APPEND, log, i, 20 + draw(x, 200)); break;
	}
}

/* What the store is after each change, by carrying them out in memory. */
static struct buf *
foresee(uint64_t seed, long n)
{
	struct buf *all = xcalloc((size_t)n + 2, sizeof(*all));
	struct store *s = opened("memory:", STORE_CREATE);
	struct err e = ERR_INIT;
	struct change c;
	long i;

	for (i = 0; i <= n + 1; i++)
		all[i] = (struct buf)BUF_INIT;
	for (i = 1; i <= n; i++) {
		make_change(&c, s, i, &seed);
		if (store_commit(s, c.ops, c.n, &e) < 0)
			give_up("change %ld in memory: %s", i, e.msg);
		snapshot(s, "/", &all[i]);
		change_release(&c);
	}
	buf_adds(&all[n + 1], "no state at all");
	store_close(s);
	return all;
}

/* Goes on with the changes from where the store is, and says after each: its number and the versions that it gave. */
static int
work(const char *url, uint64_t seed, long n)
{
	struct buf *after = foresee(seed, n), now = BUF_INIT, said = BUF_INIT;
	struct store *s = opened(url, STORE_CREATE), *mirror = opened("memory:", STORE_CREATE);
	struct err e = ERR_INIT;
	struct change c;
	long i, done = n;
	size_t k;

	snapshot(s, "/", &now);
	while (done > 0 && !same(&now, &after[done]))
		done--;
	if (!same(&now, &after[done]))
		give_up("the store is as it is after no change:\n%.300s", now.data);
	buf_addf(&said, "found %ld\n", done);
	if (io_write_all(1, said.data, said.len) < 0)
		_exit(1);
	for (i = 1; i <= n; i++) {
		make_change(&c, mirror, i, &seed);
		if (store_commit(mirror, c.ops, c.n, &e) < 0 || (i > done && store_commit(s, c.ops, c.n, &e) < 0))
			give_up("change %ld: %s", i, e.msg);
		buf_reset(&said);
		buf_addf(&said, "%ld", i);
		for (k = 0; k < c.n; k++)
			buf_addf(&said, " %s %llu", c.paths[k], c.ops[k].kind == STORE_OP_DELETE ? 0ULL : (unsigned long long)c.ops[k].version);
		buf_addch(&said, '\n');
		if (i > done && io_write_all(1, said.data, said.len) < 0)
			_exit(1);
		change_release(&c);
	}
	store_close(s);
	return 0;
}

/* ---- The record ---- */

struct object {		/* a file or a directory that was there at some time */
	bool dir;
	uint64_t ino;
	struct buf synced;	/* a file's content */
	int64_t time;
	struct name {
		char *name;
		size_t object;
	} *names;
	size_t n, cap;
};

struct step {
	struct power_record r;
	char *data;
	size_t object, dir, dir2;	/* SIZE_MAX: none of ours */
	bool pending, kept;
};

static struct step *steps;
static size_t nsteps, steps_cap;
static struct object *objects;
static size_t nobjects, objects_cap;

#define NONE SIZE_MAX

/* The last one of that number: they are given anew. */
static size_t
object_of(uint64_t ino)
{
	size_t i = nobjects;

	while (i > 0)
		if (objects[--i].ino == ino)
			return i;
	return NONE;
}

static size_t
object_new(uint64_t ino, bool dir)
{
	objects = xgrow(objects, nobjects, &objects_cap, sizeof(*objects));
	objects[nobjects] = (struct object){ .dir = dir, .ino = ino, .synced = BUF_INIT };
	return nobjects++;
}

static void
read_record(const char *path)
{
	struct buf all = BUF_INIT;
	struct err e = ERR_INIT;
	struct step *s;
	size_t at;

	if (io_read_file(path, &all, &e) < 0)
		give_up("%s", e.msg);
	for (at = 0; at + sizeof(s->r) <= all.len; at += s->r.len) {
		steps = xgrow(steps, nsteps, &steps_cap, sizeof(*steps));
		s = &steps[nsteps++];
		memset(s, 0, sizeof(*s));
		memcpy(&s->r, all.data + at, sizeof(s->r));
		at += sizeof(s->r);
		if (s->r.len > all.len - at)
			give_up("the record ends early");
		s->data = xmemdup0(all.data + at, s->r.len);
		s->dir = object_of(s->r.dir);
		s->dir2 = s->r.kind == POWER_RENAME ? object_of(s->r.dir2) : NONE;
		if ((s->r.kind == POWER_CREATE || s->r.kind == POWER_MKDIR) && s->dir != NONE)
			s->object = object_new(s->r.ino, s->r.kind == POWER_MKDIR);
		else
			s->object = object_of(s->r.ino);
	}
	buf_release(&all);
}

static bool
is_data(const struct step *s)
{
	return s->r.kind == POWER_WRITE || s->r.kind == POWER_TRUNCATE || s->r.kind == POWER_TIME;
}

static bool
is_name(const struct step *s)
{
	return s->r.kind >= POWER_CREATE;
}

/* ---- Files and directories as a disk has them ---- */

static void
set_length(struct buf *b, size_t len)
{
	if (len > b->len) {
		buf_reserve(b, len - b->len);
		memset(b->data + b->len, 0, len - b->len);
	}
	b->len = len;
	b->data[len] = '\0';
}

/* Of a write the bytes from..to. */
static void
apply_part(struct buf *b, const struct step *s, size_t from, size_t to)
{
	if (s->r.at + to > b->len)
		set_length(b, (size_t)s->r.at + to);
	memcpy(b->data + s->r.at + from, s->data + from, to - from);
}

static void
apply_data(struct buf *b, const struct step *s)
{
	if (s->r.kind == POWER_WRITE)
		apply_part(b, s, 0, s->r.len);
	else if (s->r.kind == POWER_TRUNCATE)
		set_length(b, (size_t)s->r.at);
}

static void
set_name(struct object *o, const char *name, size_t object)
{
	size_t i = 0;

	while (i < o->n && strcmp(o->names[i].name, name) != 0)
		i++;
	if (i < o->n && object == NONE) {
		free(o->names[i].name);
		o->names[i] = o->names[--o->n];
	} else if (i < o->n) {
		o->names[i].object = object;
	} else if (object != NONE) {
		o->names = xgrow(o->names, o->n, &o->cap, sizeof(*o->names));
		o->names[o->n++] = (struct name){ xstrdup(name), object };
	}
}

static size_t
find_name(const struct object *o, const char *name)
{
	size_t i;

	for (i = 0; i < o->n; i++)
		if (strcmp(o->names[i].name, name) == 0)
			return o->names[i].object;
	return NONE;
}

static void
apply_name(struct object *all, const struct step *s)
{
	size_t moved = NONE;

	if (s->r.kind != POWER_RENAME) {
		if (s->dir != NONE)
			set_name(&all[s->dir], s->data, s->r.kind == POWER_UNLINK ? NONE : s->object);
		return;
	}
	if (s->dir != NONE) {
		moved = find_name(&all[s->dir], s->data);
		set_name(&all[s->dir], s->data, NONE);
	}
	if (s->dir2 != NONE)
		set_name(&all[s->dir2], s->data + strlen(s->data) + 1, moved);
}

/* ---- Going through the record: what is on the disk for certain, and what is pending ---- */

static void
settle_file(size_t object, size_t end, bool time_too)
{
	size_t i;

	for (i = 0; i < end; i++) {
		if (!steps[i].pending || !is_data(&steps[i]) || steps[i].object != object)
			continue;
		apply_data(&objects[object].synced, &steps[i]);
		if (time_too)
			objects[object].time = steps[i].r.time;
		/* Without it the time is still to come, and nothing else of the step. */
		steps[i].pending = !time_too;
		if (!time_too)
			steps[i].r.kind = POWER_TIME;
	}
}

/* The names of one directory, and what of others they presuppose. */
static void
settle_names(size_t dir, size_t end)
{
	bool *wanted = xcalloc(nobjects, sizeof(*wanted));
	size_t i;

	wanted[dir] = true;
	for (i = end; i-- > 0;) {
		struct step *s = &steps[i];

		s->kept = s->pending && is_name(s) && ((s->dir != NONE && wanted[s->dir]) || (s->dir2 != NONE && wanted[s->dir2]));
		if (s->kept && s->dir != NONE)
			wanted[s->dir] = true;
		if (s->kept && s->dir2 != NONE)
			wanted[s->dir2] = true;
	}
	for (i = 0; i < end; i++)
		if (steps[i].kept) {
			apply_name(objects, &steps[i]);
			steps[i].pending = false;
		}
	free(wanted);
}

/* Step i has happened. */
static void
advance(size_t i)
{
	struct step *s = &steps[i];
	size_t k;

	if (s->r.kind == POWER_SYNC_ALL) {
		for (k = 0; k < nobjects; k++) {
			if (objects[k].dir)
				settle_names(k, i);
			else
				settle_file(k, i, true);
		}
	} else if (s->r.kind == POWER_SYNC || s->r.kind == POWER_DATASYNC) {
		if (s->object != NONE && objects[s->object].dir)
			settle_names(s->object, i);
		else if (s->object != NONE)
			settle_file(s->object, i, s->r.kind == POWER_SYNC);
	} else {
		s->pending = (is_data(s) && s->object != NONE) || (is_name(s) && (s->dir != NONE || s->dir2 != NONE));
	}
}

/* ---- States ---- */

enum data_fate { KEPT, LOST, ZEROS, TORN, SECTORS };	/* ZEROS: the length is kept, the bytes are not */
enum name_fate { NAMES_KEPT, NAMES_LOST, NAMES_DRAWN };

struct fate {
	enum data_fate data;
	enum name_fate names;
	bool time;		/* is kept */
	bool drawn;		/* each file has its own */
	size_t torn;		/* TORN: this much of the last write is there */
};

static void
keep_sectors(struct buf *b, const struct step *s, uint64_t *x)
{
	size_t from, to;

	if (s->r.kind == POWER_WRITE) {
		if (s->r.at + s->r.len > b->len)
			set_length(b, (size_t)(s->r.at + s->r.len));
		for (from = 0; from < s->r.len; from = to) {
			to = from + SECTOR - (size_t)(s->r.at + from) % SECTOR;
			to = to < s->r.len ? to : s->r.len;
			if (draw(x, 2))
				apply_part(b, s, from, to);
		}
	} else if (draw(x, 2)) {
		apply_data(b, s);
	}
}

static void
content_of(size_t object, size_t end, struct fate f, uint64_t *x, struct buf *b, int64_t *time)
{
	const struct object *o = &objects[object];
	size_t i, last = NONE;

	buf_reset(b);
	buf_add(b, o->synced.data, o->synced.len);
	*time = o->time;
	if (f.drawn) {
		f.data = (enum data_fate[]){ KEPT, LOST, ZEROS, SECTORS, SECTORS }[draw(x, 5)];
		f.time = draw(x, 2);
	}
	if (end > 0 && steps[end - 1].pending && steps[end - 1].r.kind == POWER_WRITE)
		last = end - 1;
	for (i = 0; i < end; i++) {
		const struct step *s = &steps[i];

		if (!s->pending || !is_data(s) || s->object != object)
			continue;
		if (f.time)
			*time = s->r.time;
		if (f.data == TORN && i == last)
			apply_part(b, s, 0, f.torn < s->r.len ? f.torn : s->r.len);
		else if (f.data == KEPT || f.data == TORN)
			apply_data(b, s);
		else if (f.data == SECTORS)
			keep_sectors(b, s, x);
		else if (f.data == ZEROS && s->r.kind == POWER_WRITE && s->r.at + s->r.len > b->len)
			set_length(b, (size_t)(s->r.at + s->r.len));
	}
}

/* Those of a directory are kept up to one of them: what comes behind a lost one is lost. */
static void
choose_names(size_t end, enum name_fate fate, uint64_t *x)
{
	bool *over = xcalloc(nobjects, sizeof(*over));
	size_t i;

	for (i = 0; i < end; i++) {
		struct step *s = &steps[i];

		s->kept = false;
		if (!s->pending || !is_name(s))
			continue;
		s->kept = fate != NAMES_LOST && (s->dir == NONE || !over[s->dir]) && (s->dir2 == NONE || !over[s->dir2]) &&
		    (fate == NAMES_KEPT || draw(x, 3) > 0);
		if (!s->kept && s->dir != NONE)
			over[s->dir] = true;
		if (!s->kept && s->dir2 != NONE)
			over[s->dir2] = true;
	}
	free(over);
}

static void
names_copy(struct object *to, const struct object *from)
{
	size_t i;

	*to = *from;
	to->names = NULL;
	to->n = to->cap = 0;
	for (i = 0; i < from->n; i++)
		set_name(to, from->names[i].name, from->names[i].object);
}

/* A state as it will be written: paths in the order of their making, with their content. */
struct state {
	struct entry {
		char *path;
		bool dir;
		struct buf content;
		int64_t time;
	} *e;
	size_t n, cap;
};

static void
state_reset(struct state *st)
{
	while (st->n > 0) {
		free(st->e[--st->n].path);
		buf_release(&st->e[st->n].content);
	}
}

static void
collect(struct object *all, size_t dir, const char *path, size_t end, struct fate f, uint64_t *x, struct state *st)
{
	struct entry *e;
	size_t i;

	for (i = 0; i < all[dir].n; i++) {
		size_t object = all[dir].names[i].object;
		char *child = xasprintf("%s/%s", path, all[dir].names[i].name);

		st->e = xgrow(st->e, st->n, &st->cap, sizeof(*st->e));
		e = &st->e[st->n++];
		*e = (struct entry){ .path = child, .dir = all[object].dir, .content = BUF_INIT };
		if (e->dir)
			collect(all, object, child, end, f, x, st);
		else
			content_of(object, end, f, x, &e->content, &e->time);
	}
}

static void
state_of(size_t end, struct fate f, uint64_t *x, struct state *st)
{
	struct object *all = xcalloc(nobjects, sizeof(*all));
	size_t i;

	choose_names(end, f.names, x);
	for (i = 0; i < nobjects; i++)
		names_copy(&all[i], &objects[i]);
	for (i = 0; i < end; i++)
		if (steps[i].kept)
			apply_name(all, &steps[i]);
	state_reset(st);
	collect(all, 0, "", end, f, x, st);
	for (i = 0; i < nobjects; i++) {
		while (all[i].n > 0)
			free(all[i].names[--all[i].n].name);
		free(all[i].names);
	}
	free(all);
}

static void
state_hash(const struct state *st, size_t acked, unsigned char sum[20])
{
	struct sha1 h;
	size_t i;

	sha1_init(&h);
	sha1_add(&h, &acked, sizeof(acked));
	for (i = 0; i < st->n; i++) {
		sha1_add(&h, st->e[i].path, strlen(st->e[i].path) + 1);
		sha1_add(&h, &st->e[i].time, sizeof(st->e[i].time));
		sha1_add(&h, &st->e[i].content.len, sizeof(st->e[i].content.len));
		sha1_add(&h, st->e[i].content.data, st->e[i].content.len);
	}
	sha1_end(&h, sum);
}

static bool
is_new_state(const struct state *st, size_t acked)
{
	static unsigned char (*seen)[20];
	static size_t n, cap;
	unsigned char sum[20];
	size_t i;

	state_hash(st, acked, sum);
	for (i = n; i-- > 0;)
		if (memcmp(seen[i], sum, sizeof(sum)) == 0)
			return false;
	seen = xgrow(seen, n, &cap, sizeof(*seen));
	memcpy(seen[n++], sum, sizeof(sum));
	return true;
}

static void
remove_tree(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *de;

	while (d != NULL && (de = readdir(d)) != NULL)
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0 && unlinkat(fd, de->d_name, 0) < 0)
			remove_tree(fd, de->d_name);
	if (d != NULL)
		closedir(d);
	unlinkat(at, name, AT_REMOVEDIR);
}

static void
state_write(const struct state *st, const char *dir)
{
	size_t i;

	remove_tree(AT_FDCWD, dir);
	if (mkdir(dir, 0700) < 0)
		give_up("%s: %s", dir, strerror(errno));
	for (i = 0; i < st->n; i++) {
		const struct entry *e = &st->e[i];
		struct timespec t[2] = { { .tv_nsec = UTIME_OMIT }, { e->time / 1000000000, e->time % 1000000000 } };
		char *path = xasprintf("%s%s", dir, e->path);
		int fd = e->dir ? -1 : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

		if (e->dir ? mkdir(path, 0700) < 0 : fd < 0 || io_write_all(fd, e->content.data, e->content.len) < 0 || (e->time > 0 && futimens(fd, t) < 0))
			give_up("%s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		free(path);
	}
}

/* ---- Looking at a state ---- */

/* The greatest version that was acknowledged for each path. */
struct known {
	char path[PATH_ROOM];
	uint64_t version;
};

static struct known *knowns;
static size_t nknowns, knowns_cap;

static void
learn(const char *said, long *acked, long *found)
{
	char path[PATH_ROOM], *end;
	unsigned long long version;
	int used;
	size_t i;

	/* By one who came after a death: the change before it was made and not acknowledged. */
	if (sscanf(said, "found %ld", found) == 1)
		return;
	*acked = *found = strtol(said, &end, 10);
	for (; sscanf(end, " %47s %llu%n", path, &version, &used) == 2; end += used) {
		for (i = 0; i < nknowns && strcmp(knowns[i].path, path) != 0; i++)
			;
		if (i == nknowns) {
			knowns = xgrow(knowns, nknowns, &knowns_cap, sizeof(*knowns));
			snprintf(knowns[nknowns].path, PATH_ROOM, "%s", path);
			knowns[nknowns++].version = 0;
		}
		if (version > knowns[i].version)
			knowns[i].version = version;
	}
}

static void
check_versions(struct store *s)
{
	struct store_stat st = { 0 };
	struct err e = ERR_INIT;
	size_t i;

	for (i = 0; i < nknowns; i++) {
		if (store_stat(s, knowns[i].path, &st, &e) == 1 && !st.dir && st.version < knowns[i].version)
			give_up("%s has version %llu, and had %llu", knowns[i].path, (unsigned long long)st.version, (unsigned long long)knowns[i].version);
	}
}

/* A change of each kind works, and versions rise. */
static void
check_goes_on(struct store *s)
{
	static const char *const paths[] = { "/log/a.jsonl", "/memory/working.md" };
	struct buf was = BUF_INIT, is = BUF_INIT;
	struct err e = ERR_INIT;
	size_t i, k;

	for (i = 0; i < 2; i++) {
		struct store_op op = { .kind = i ? STORE_OP_WRITE : STORE_OP_APPEND, .path = paths[i], .data = "more", .len = 4 };

		buf_reset(&was);
		buf_reset(&is);
		if (i == 0 && store_read(s, paths[i], &was, NULL, &e) < 0 && e.code != ERR_ABSENT)
			give_up("%s", e.msg);
		buf_adds(&was, "more");
		if (store_commit(s, &op, 1, &e) < 0 || store_read(s, paths[i], &is, NULL, &e) < 0)
			give_up("afterwards: %s", e.msg);
		if (!same(&was, &is))
			give_up("afterwards: %s is not what was written", paths[i]);
		for (k = 0; k < nknowns; k++)
			if (strcmp(knowns[k].path, paths[i]) == 0 && op.version <= knowns[k].version)
				give_up("afterwards: %s gets version %llu, and had %llu", paths[i], (unsigned long long)op.version, (unsigned long long)knowns[k].version);
	}
	buf_release(&was);
	buf_release(&is);
}

static void
check_state(const char *url, const struct buf *after, long acked, long found, bool reader)
{
	struct store *s = reader ? opened_if_there(url) : opened(url, STORE_CREATE);
	struct buf now = BUF_INIT;
	long i;

	if (s != NULL)
		snapshot(s, "/", &now);
	for (i = acked; i <= found + 1 && !same(&now, &after[i]); i++)
		;
	if (i > found + 1)
		give_up("none of the changes %ld to %ld, but:\n%.300s", acked, found + 1, now.data);
	if (s != NULL)
		check_versions(s);
	store_close(s);
	s = opened(url, STORE_CREATE);
	check_goes_on(s);
	store_close(s);
	buf_release(&now);
}

struct replay {
	const char *dir;	/* where the states are made */
	char *url;
	const struct buf *after;
	long acked, found, states;
	struct state state;
	uint64_t x;
};

/* The last steps before the moment, for whoever has to find out. */
static void
show_steps(size_t end)
{
	static const char *const kinds[] = { "", "mark", "write", "truncate", "time", "sync", "datasync", "sync all", "create", "mkdir", "link", "unlink", "rename" };
	size_t i;

	for (i = end > 30 ? end - 30 : 0; i < end; i++) {
		const struct step *s = &steps[i];

		fprintf(stderr, "%zu%c %s: object %zd in %zd %zd, at %llu, %u bytes, %s\n", i, s->pending ? '*' : ' ', kinds[s->r.kind], (ssize_t)s->object,
		    (ssize_t)s->dir, (ssize_t)s->dir2, (unsigned long long)s->r.at, s->r.len, is_name(s) || s->r.kind == POWER_MARK ? s->data : "");
	}
}

static struct replay *trying;
static struct fate tried;
static size_t tried_at;

static void
say_where(void)
{
	show_steps(tried_at);
	fprintf(stderr, "before step %zu of %zu, change %ld acknowledged, data %d, names %d, time %d, drawn %d, torn %zu: not whole; it is in %s\n",
	    tried_at, nsteps, trying->acked, tried.data, tried.names, tried.time, tried.drawn, tried.torn, trying->dir);
	on_failure = NULL;
	state_write(&trying->state, trying->dir);
}

static void
try(struct replay *r, size_t end, struct fate f)
{
	state_of(end, f, &r->x, &r->state);
	if (!is_new_state(&r->state, (size_t)r->acked))
		return;
	r->states++;
	trying = r;
	tried = f;
	tried_at = end;
	state_write(&r->state, r->dir);
	on_failure = say_where;
	check_state(r->url, r->after, r->acked, r->found, r->states % 2);
	on_failure = NULL;
}

/* All the states of the moment before step `end`. */
static void
try_moment(struct replay *r, size_t end, long samples)
{
	static const struct fate systematic[] = {
		{ KEPT, NAMES_KEPT, true, false, 0 }, { LOST, NAMES_KEPT, false, false, 0 }, { LOST, NAMES_KEPT, true, false, 0 },
		{ KEPT, NAMES_LOST, true, false, 0 }, { KEPT, NAMES_KEPT, false, false, 0 }, { LOST, NAMES_LOST, false, false, 0 },
		{ ZEROS, NAMES_KEPT, true, false, 0 }, { ZEROS, NAMES_KEPT, false, false, 0 },
		{ TORN, NAMES_KEPT, true, false, 1 }, { TORN, NAMES_KEPT, true, false, 12 }, { TORN, NAMES_KEPT, false, false, SECTOR },
	};
	size_t i, len = end > 0 && steps[end - 1].r.kind == POWER_WRITE ? steps[end - 1].r.len : 0;

	for (i = 0; i < sizeof(systematic) / sizeof(systematic[0]); i++)
		try(r, end, systematic[i]);
	if (len > 1) {
		try(r, end, (struct fate){ TORN, NAMES_KEPT, true, false, len / 2 });
		try(r, end, (struct fate){ TORN, NAMES_KEPT, true, false, len - 1 });
	}
	for (i = 0; i < (size_t)samples; i++)
		try(r, end, (struct fate){ KEPT, NAMES_DRAWN, true, true, 0 });
}

/* ---- Making the record ---- */

static char *
shim_path(void)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		give_up("/proc/self/exe: %s", strerror(errno));
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	return xasprintf("%s/power.so", self);
}

/* Whether a worker, killed before its step `kill_at` (0: not killed), came to the end. */
static bool
make_record(const char *url, const char *seed, const char *n, const char *file, long kill_at)
{
	char *shim = shim_path(), *at = xasprintf("%ld", kill_at);
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		setenv("LD_PRELOAD", shim, 1);
		setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0", 1);
		setenv("POWER_LOG", file, 1);
		setenv("POWER_KILL", at, 1);
		/* What it says is in the record. */
		if (freopen("/dev/null", "w", stdout) == NULL)
			_exit(126);
		execl("/proc/self/exe", "powercut", "work", url, seed, n, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		give_up("fork: %s", strerror(errno));
	if (!WIFSIGNALED(status) && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
		give_up("the worker failed");
	free(shim);
	free(at);
	return WIFEXITED(status);
}

static char *
url_in(const char *kind, const char *dir, const char *options)
{
	return xasprintf("%s:%s/%s%s", kind, dir, strcmp(kind, "disk") == 0 ? "made/store" : "made/s.db", options);
}

int
main(int argc, char **argv)
{
	struct replay r = { 0 };
	char *base, *url, *file;
	struct stat st;
	long n, kills = 0;
	uint64_t x;
	size_t i;

	if (argc == 5 && strcmp(argv[1], "work") == 0)
		return work(argv[2], strtoull(argv[3], NULL, 10), strtol(argv[4], NULL, 10));
	if (argc != 6 || (n = strtol(argv[4], NULL, 10)) < 1 || (x = strtoull(argv[3], NULL, 10)) < 1) {
		fputs("usage: powercut DIR disk|sqlite SEED N SAMPLES\n", stderr);
		return 64;
	}
	base = xasprintf("%s/base", argv[1]);
	file = xasprintf("%s/record", argv[1]);
	r.dir = xasprintf("%s/state", argv[1]);
	r.url = url_in(argv[2], r.dir, "");
	r.after = foresee(x, n);
	r.x = x;
	url = url_in(argv[2], base, "?sync=full");
	if (mkdir(base, 0700) < 0 || stat(base, &st) < 0)
		give_up("%s: %s", base, strerror(errno));
	object_new(st.st_ino, true);
	while (!make_record(url, argv[3], argv[4], file, kills < (n < 4 ? 1 : n / 4) ? 1 + (long)draw(&x, 90) : 0))
		kills++;
	read_record(file);
	for (i = 0; i < nsteps; i++) {
		try_moment(&r, i, strtol(argv[5], NULL, 10));
		advance(i);
		if (steps[i].r.kind == POWER_MARK)
			learn(steps[i].data, &r.acked, &r.found);
	}
	try_moment(&r, nsteps, strtol(argv[5], NULL, 10));
	/* Of the last one the writer may have been killed before it said so. */
	if (r.found != n)
		give_up("the record has %ld changes of %ld", r.found, n);
	printf("%ld changes, %ld writers killed, %zu moments, %ld states, all whole\n", n, kills, nsteps + 1, r.states);
	fflush(stdout);
	_exit(0);	/* the record and what was foreseen go with the process */
}

/*
 * `export` and `import`: a store, or a part of it, as a tar archive.
 *
 * The archive has what is in the store, and of what ag2 keeps for itself that which belongs to it wherever it lies (the
 * cursors and old versions, not locks and unfinished business). Its last entry says how many files and bytes there are: an
 * archive that was cut short is told from a whole one, and it is where no file of a user can be.
 */
#include "walk.h"

#include "base/alloc.h"
#include "base/run.h"
#include "path.h"
#include "tar.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARKER ".ag2/export-complete"
#define UNFINISHED "/.ag2/import"	/* names the file of which an import has written the beginning */
#define PIECE (64u << 20)	/* larger files are read and written in pieces */
#define BATCH 64		/* small files that are written as one */
#define BATCH_BYTES (1u << 20)

/* What of /.ag2 goes into an archive and comes out of one. */
static bool
is_kept(const char *path)
{
	static const char *const kept[] = { "/.ag2/aggregate", "/.ag2/aggregate-undo", "/.ag2/compact", "/.ag2/history", "/.ag2/status",
		"/.ag2/undo" };
	size_t i;

	if (!path_private(path) || strcmp(path, "/.ag2") == 0)
		return true;
	for (i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		if (path_within(path, kept[i]))
			return true;
	return false;
}

/* ---- export ---- */

struct export {
	struct store *s;
	struct progress progress;
	uint64_t written;	/* of the archive */
	char *piece;
};

static void
put(struct export *x, const void *data, size_t len)
{
	out_write(data, len);
	x->written += len;
}

static void
put_header(struct export *x, const char *name, uint64_t size)
{
	struct buf header = BUF_INIT;

	tar_header(&header, name, strlen(name), size);
	put(x, header.data, header.len);
	buf_release(&header);
}

static void
put_padding(struct export *x, uint64_t size)
{
	static const char zeros[TAR_BLOCK];

	put(x, zeros, tar_pad(size));
}

/* A short read is a file that somebody who knows nothing of versions has made shorter just now. */
static void
put_content(struct export *x, struct store_file *f, const char *path, uint64_t size)
{
	struct err e = ERR_INIT;
	uint64_t at = 0;
	ssize_t n;

	while (at < size) {
		n = store_file_read(f, at, x->piece, size - at < INPUT_CHUNK ? (size_t)(size - at) : INPUT_CHUNK, &e);
		if (n < 0)
			fail(&e);
		if (n == 0)
			log_die(75, "'%s' became shorter while it was read; the archive is not complete: export again", path);
		put(x, x->piece, (size_t)n);
		at += (uint64_t)n;
		x->progress.bytes += (uint64_t)n;
		progress_step(&x->progress);
	}
}

static int
export_entry(void *arg, const char *path, bool dir, const struct store_stat *listed)
{
	struct export *x = arg;
	struct store_file *f;
	struct store_stat st;
	struct err e = ERR_INIT;

	if (!is_kept(path))
		return WALK_PASS;
	if (dir)
		return WALK_ON;
	if (store_file_open(x->s, path, &f, &st, &e) < 0) {
		if (e.code != ERR_ABSENT)
			fail(&e);
		return WALK_ON;	/* gone since it was listed */
	}
	put_header(x, path + 1, st.size);
	put_content(x, f, path, st.size);
	put_padding(x, st.size);
	store_file_close(f);
	x->progress.files++;
	progress_step(&x->progress);
	return WALK_ON;
}

static int
count_entry(void *arg, const char *path, bool dir, const struct store_stat *st)
{
	struct progress *p = arg;

	if (!is_kept(path))
		return WALK_PASS;
	p->all_files += !dir;
	p->all_bytes += st->size;
	return WALK_ON;
}

static void
put_end(struct export *x)
{
	struct buf end = BUF_INIT;

	buf_addf(&end, "{\"files\": %llu, \"bytes\": %llu}\n", (unsigned long long)x->progress.files, (unsigned long long)x->progress.bytes);
	put_header(x, MARKER, end.len);
	put(x, end.data, end.len);
	put_padding(x, end.len);
	buf_reset(&end);
	tar_end(&end, x->written);
	put(x, end.data, end.len);
	buf_release(&end);
}

static int
run_export(char **args, int n)
{
	struct export x = { .piece = xmalloc(INPUT_CHUNK) };
	struct buf path = path_operand(args, n);
	int there;
	struct err e = ERR_INIT;

	if (cli_terminal())
		usage("export: an archive is nothing for a terminal: write it to a file or a pipe");
	x.s = open_store(STORE_READ);
	if (store_hold(x.s, &e) < 0)
		fail(&e);
	progress_begin(&x.progress);
	if (x.progress.on && walk(x.s, path.data, STORE_LIST_ALL | STORE_LIST_STAT, count_entry, &x.progress, &e) < 0)
		fail(&e);
	there = walk(x.s, path.data, STORE_LIST_ALL, export_entry, &x, &e);
	if (there < 0)
		fail(&e);
	if (there > 0)
		put_end(&x);
	else
		log_warn("'%s' is not in the store", path.data);
	progress_end(&x.progress);
	store_release(x.s);
	store_close(x.s);
	buf_release(&path);
	free(x.piece);
	return there > 0 ? 0 : 1;
}

const struct command command_export = {
	.name = "export",
	.operands = "[PATH]",
	.summary = "write everything below PATH to standard output as a tar archive",
	.max = 1,
	.run = run_export,
	.more = "Of an SQLite store it has one moment in time. Equal files make equal archives, whatever store they lie in.\n"
		"\nExamples:\n"
		"  ag2-store -s disk:./state export >backup.tar\n"
		"  ag2-store -s disk:./state export | ag2-store -s sqlite:state.db import\n",
};

/* ---- import ---- */

static bool overwrite;

struct import {
	struct store *s;
	struct tar tar;
	struct progress progress;
	uint64_t written;		/* files that this run has put into the store */
	struct store_op batch[BATCH];
	size_t n, bytes;
	char *unfinished;		/* the path of which an earlier import has written the beginning; may be NULL */
};

/* What is there stays there, and the same command again passes over it. */
static noreturn void
stopped(struct import *m, int status, const char *why)
{
	progress_end(&m->progress);
	log_warn("%s", why);
	log_die(status, "%llu files of the archive are in the store; the same import again goes on from there", (unsigned long long)m->progress.files);
}

static noreturn void
interrupted(struct import *m)
{
	progress_end(&m->progress);
	log_warn("interrupted: %llu files of the archive are in the store; the same import again goes on from there",
	    (unsigned long long)m->progress.files);
	cli_die_by(run_interrupted());
}

/* Waits for input or a signal. */
static ssize_t
read_archive(void *arg, void *data, size_t len, struct err *e)
{
	struct import *m = arg;
	struct pollfd fds[] = { { .fd = 0, .events = POLLIN }, { .fd = run_wakeup_fd(), .events = POLLIN } };
	ssize_t n;

	while (run_interrupted() == 0 && poll(fds, 2, -1) <= 0)
		continue;
	if (run_interrupted() != 0)
		interrupted(m);
	n = io_read(0, data, len);
	return n < 0 ? err_sys(e, "cannot read standard input") : n;
}

static void
clear_batch(struct import *m)
{
	size_t i;

	for (i = 0; i < m->n; i++) {
		free((char *)m->batch[i].path);
		free((char *)m->batch[i].data);
	}
	m->n = m->bytes = 0;
}

/* All in one commit; one by one when that cannot be, so that those before the one in the way are there and it is named. */
static void
write_batch(struct import *m)
{
	struct err e = ERR_INIT;
	size_t i;

	if (m->n == 0)
		return;
	if (store_commit(m->s, m->batch, m->n, &e) < 0) {
		for (i = 0; i < m->n; i++) {
			struct err why = ERR_INIT;

			if (store_commit(m->s, &m->batch[i], 1, &why) < 0)
				stopped(m, err_status(why.code), why.msg);
			m->progress.files++;
		}
	} else {
		m->progress.files += m->n;
	}
	m->written += m->n;
	clear_batch(m);
}

/* 1 when the file at path has just these bytes at offset, and `size` in all; 0 when it has others; -1 when it is not there. */
static int
compare(struct import *m, const char *path, uint64_t offset, const char *data, size_t len, uint64_t size)
{
	struct store_file *f;
	struct store_stat st;
	struct err e = ERR_INIT;
	char *have;
	size_t done = 0;
	ssize_t n = 1;
	int rc;

	if (store_file_open(m->s, path, &f, &st, &e) < 0) {
		if (e.code == ERR_ABSENT)
			return -1;
		stopped(m, err_status(e.code), e.msg);
	}
	rc = st.size == size;
	have = xmalloc(INPUT_CHUNK);
	while (rc == 1 && done < len && n > 0) {
		n = store_file_read(f, offset + done, have, len - done < INPUT_CHUNK ? len - done : INPUT_CHUNK, &e);
		rc = n > 0 && memcmp(have, data + done, (size_t)n) == 0;
		done += n > 0 ? (size_t)n : 0;
	}
	free(have);
	store_file_close(f);
	if (n < 0)
		stopped(m, err_status(e.code), e.msg);
	return rc;
}

static noreturn void
in_the_way(struct import *m, const char *path)
{
	struct buf why = BUF_INIT;

	buf_addf(&why, "'%s' is there with other content (--overwrite replaces it)", path);
	stopped(m, 73, why.data);
}

static void
take_piece(struct import *m, char *data, size_t len)
{
	struct err e = ERR_INIT;
	size_t got = 0;
	ssize_t n;

	while (got < len) {
		n = tar_read(&m->tar, data + got, len - got, &e);
		if (n < 0) {
			write_batch(m);
			stopped(m, err_status(e.code), e.msg);
		}
		got += (size_t)n;
		m->progress.bytes += (uint64_t)n;
		progress_step(&m->progress);
	}
}

/* One that is held whole: written with others of its kind. */
static void
import_small(struct import *m, const char *path, size_t size)
{
	char *data = xmalloc(size + 1);
	int there;

	if (m->n == BATCH || (m->n > 0 && m->bytes + size > BATCH_BYTES))
		write_batch(m);
	take_piece(m, data, size);
	there = compare(m, path, 0, data, size, size);
	if (there == 0 && !overwrite) {
		write_batch(m);
		in_the_way(m, path);
	}
	if (there > 0) {
		m->progress.files++;
		free(data);
		return;
	}
	m->batch[m->n++] = (struct store_op){ .kind = STORE_OP_WRITE, .path = xstrdup(path), .data = data, .len = size };
	m->bytes += size;
}

/* A piece of a larger one. The first says that it is one, the last that it is complete. */
static void
write_piece(struct import *m, const char *path, uint64_t at, const char *data, size_t len, bool last)
{
	struct store_op ops[] = {
		{ .kind = at == 0 ? STORE_OP_WRITE : STORE_OP_APPEND, .path = path, .data = data, .len = len },
		{ .kind = last ? STORE_OP_DELETE : STORE_OP_WRITE, .path = UNFINISHED, .data = path, .len = last ? 0 : strlen(path) },
	};
	struct err e = ERR_INIT;

	if (store_commit(m->s, ops, at == 0 || last ? 2 : 1, &e) < 0)
		stopped(m, err_status(e.code), e.msg);
}

static void
import_large(struct import *m, const char *path, uint64_t size)
{
	bool ours = m->unfinished != NULL && strcmp(m->unfinished, path) == 0, write = overwrite || ours;
	char *piece = xmalloc(PIECE);
	uint64_t at;
	size_t len;
	int there;

	write_batch(m);
	for (at = 0; at < size; at += len) {
		len = size - at < PIECE ? (size_t)(size - at) : PIECE;
		take_piece(m, piece, len);
		if (!write) {
			there = compare(m, path, at, piece, len, size);
			if (there == 0)
				in_the_way(m, path);
			write = there < 0 && at == 0;
		}
		if (write)
			write_piece(m, path, at, piece, len, at + len == size);
	}
	m->written += write;
	m->progress.files++;
	free(piece);
}

/* The name of an entry as a path. `./` in front, as `tar c .` makes it, is no harm; `..` is. */
static void
entry_path(struct import *m, const struct tar_entry *entry, struct buf *path)
{
	struct err e = ERR_INIT;
	size_t skip = 0;

	while (entry->len - skip >= 2 && entry->name[skip] == '.' && entry->name[skip + 1] == '/')
		skip += 2;
	if (entry->dir && entry->len - skip == 1 && entry->name[skip] == '.')
		skip++;
	if (path_normalise(path, entry->name + skip, entry->len - skip, &e) < 0) {
		write_batch(m);
		stopped(m, err_status(e.code), e.msg);
	}
}

/* The marker: as many files and bytes as it says, and nothing behind it. */
static void
check_marker(struct import *m, uint64_t size, uint64_t files)
{
	struct buf want = BUF_INIT;
	struct tar_entry more;
	struct err e = ERR_INIT;
	char have[100];
	uint64_t bytes = m->progress.bytes;
	int rc;

	buf_addf(&want, "{\"files\": %llu, \"bytes\": %llu}\n", (unsigned long long)files, (unsigned long long)bytes);
	if (size < sizeof(have))
		take_piece(m, have, (size_t)size);
	write_batch(m);
	if (size != want.len || memcmp(have, want.data, want.len) != 0)
		stopped(m, 65, "the archive has other files than its last entry says: something was added or taken out");
	rc = tar_next(&m->tar, &more, &e);
	if (rc != 0)
		stopped(m, 65, rc < 0 ? e.msg : "the archive goes on behind its last entry");
	buf_release(&want);
}

static void
import_entries(struct import *m)
{
	struct tar_entry entry;
	struct buf path = BUF_INIT;
	struct err e = ERR_INIT;
	uint64_t files = 0;
	int rc;

	while ((rc = tar_next(&m->tar, &entry, &e)) > 0) {
		entry_path(m, &entry, &path);
		if (strcmp(path.data, "/" MARKER) == 0) {
			check_marker(m, entry.size, files);
			buf_release(&path);
			return;
		}
		if (run_interrupted() != 0) {
			write_batch(m);
			interrupted(m);
		}
		if (entry.dir || !is_kept(path.data))
			continue;
		files++;
		if (entry.size > PIECE)
			import_large(m, path.data, entry.size);
		else
			import_small(m, path.data, (size_t)entry.size);
		progress_step(&m->progress);
	}
	write_batch(m);
	stopped(m, 65, rc < 0 ? e.msg : "the archive is cut short: its last entry, which says that it is complete, is missing");
}

static void
find_unfinished(struct import *m)
{
	struct buf path = BUF_INIT_MAX(PATH_BYTES_MAX);
	struct err e = ERR_INIT;

	if (store_read(m->s, UNFINISHED, &path, NULL, &e) == 0 && path.len > 0)
		m->unfinished = buf_detach(&path, NULL);
	buf_release(&path);
}

/* So that whoever writes the archive is not ended by a signal. */
static void
drain(struct import *m)
{
	struct err e = ERR_INIT;
	char data[8192];

	while (read_archive(m, data, sizeof(data), &e) > 0)
		continue;
}

static int
run_import(char **args, int n)
{
	struct import m = { 0 };
	struct stat st;

	if (isatty(0))
		usage("import: the archive comes from standard input: give it a file or a pipe");
	m.s = open_store(STORE_CREATE);
	run_catch_signals();
	if (fstat(0, &st) == 0 && S_ISREG(st.st_mode))
		m.progress.all_bytes = (uint64_t)st.st_size;
	progress_begin(&m.progress);
	find_unfinished(&m);
	tar_init(&m.tar, read_archive, &m);
	import_entries(&m);
	drain(&m);
	progress_end(&m.progress);
	tar_release(&m.tar);
	free(m.unfinished);
	store_close(m.s);
	return 0;
}

static const struct opt import_table[] = {
	{ 0, "overwrite", OPT_FLAG, &overwrite, NULL, "replace files that are there with other content" },
	{ 0 }
};

const struct command command_import = {
	.name = "import",
	.operands = "[--overwrite]",
	.summary = "take the files of an archive on standard input into the store",
	.table = import_table,
	.max = 0,
	.run = run_import,
	.more = "A file that is there with the same bytes is passed over, so an import that was ended half-way goes on\n"
		"when it is run again. One with other bytes ends it (status 73) without --overwrite; so does an archive that\n"
		"is cut short (65), after what came before was taken.\n"
		"\nExample:\n"
		"  ag2-store import <backup.tar\n",
};

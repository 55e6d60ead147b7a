#include "store/sqlite_db.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LOG_ALONE	1000	/* frames, after which the log is brought into the database, and when others write as well */
#define LOG_SHARED	8000
#define READERS_SECONDS	0.05	/* for which readers of what is older are waited for then */

static unsigned connections;	/* of this process, to whatever file */

/* ---- Errors and statements ---- */

const char *
db_name(const struct sqlite_store *s)
{
	return s->file ? s->file : "memory:";
}

static enum err_code
code_of(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_PROTOCOL:
		return ERR_BUSY;
	case SQLITE_PERM:
	case SQLITE_AUTH:
	case SQLITE_READONLY:
		return ERR_PERM;
	case SQLITE_FULL:
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
	case SQLITE_NOLFS:
	case SQLITE_NOMEM:
		return ERR_IO;
	case SQLITE_MISUSE:
		return ERR_BUG;
	default:
		return ERR_DATA;
	}
}

int
db_fail(struct sqlite_store *s, struct err *e)
{
	int rc = sqlite3_extended_errcode(s->db), sys = sqlite3_system_errno(s->db);

	switch (rc & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_PROTOCOL:
		return err_set(e, ERR_BUSY, "%s: held by another process", db_name(s));
	case SQLITE_NOTADB:
		return err_set(e, ERR_DATA, "%s: not an SQLite database", db_name(s));
	case SQLITE_CORRUPT:
		return err_set(e, ERR_DATA, "%s: damaged: %s", db_name(s), sqlite3_errmsg(s->db));
	case SQLITE_FULL:
		return err_set(e, ERR_IO, "%s: no space left on the device", db_name(s));
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
		if (sys != 0) {
			errno = sys;
			err_sys(e, "%s", db_name(s));
			if (e != NULL && e->code == ERR_NOINPUT)
				e->code = ERR_IO;
			return -1;
		}
	}
	return err_set(e, code_of(rc), "%s: %s", db_name(s), sqlite3_errmsg(s->db));
}

int
db_unversioned(struct sqlite_store *s, const char *path, uint64_t version, struct err *e)
{
	return err_set(e, ERR_DATA, "%s: '%s' is damaged: its version is %llu, which none can be, so that it cannot get a greater one; "
	    "fsck --repair gives it another", db_name(s), path, (unsigned long long)version);
}

int
db_exec(struct sqlite_store *s, const char *sql, struct err *e)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_fail(s, e);
}

sqlite3_stmt *
db_query(struct sqlite_store *s, enum query q, struct err *e, const char *types, ...)
{
	sqlite3_stmt **st = &s->statements[q];
	const void *data;
	int i, rc = SQLITE_OK;
	va_list ap;

	if (*st == NULL)
		rc = sqlite3_prepare_v2(s->db, layout_query(s->layout, q), -1, st, NULL);
	va_start(ap, types);
	for (i = 1; *types != '\0' && rc == SQLITE_OK; i++)
		switch (*types++) {
		case 't':
			rc = sqlite3_bind_text(*st, i, va_arg(ap, const char *), -1, SQLITE_STATIC);
			break;
		case 'v':
			rc = sqlite3_bind_value(*st, i, va_arg(ap, sqlite3_value *));
			break;
		case 'i':
			rc = sqlite3_bind_int64(*st, i, va_arg(ap, int64_t));
			break;
		case 'd':
			rc = sqlite3_bind_double(*st, i, va_arg(ap, double));
			break;
		case 'b':
			data = va_arg(ap, const void *);
			rc = sqlite3_bind_blob64(*st, i, data, va_arg(ap, size_t), SQLITE_STATIC);
			break;
		}
	va_end(ap);
	if (rc == SQLITE_OK)
		return *st;
	db_fail(s, e);
	return NULL;
}

int
db_step(struct sqlite_store *s, sqlite3_stmt *st, struct err *e)
{
	int rc;

	if (st == NULL)
		return -1;
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		return 1;
	rc = rc == SQLITE_DONE ? 0 : db_fail(s, e);
	sqlite3_reset(st);
	return rc;
}

int
db_run(struct sqlite_store *s, sqlite3_stmt *st, struct err *e)
{
	int rc = db_step(s, st, e);

	if (rc > 0)
		sqlite3_reset(st);
	return rc < 0 ? -1 : 0;
}

int
db_number(struct sqlite_store *s, sqlite3_stmt *st, int64_t *out, struct err *e)
{
	int rc = db_step(s, st, e);

	if (rc == 0)
		return err_set(e, ERR_DATA, "%s: damaged: a row is missing", db_name(s));
	if (rc < 0)
		return -1;
	*out = sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	return 0;
}

int
db_know(struct sqlite_store *s, struct err *e)
{
	int64_t now;

	if (db_number(s, db_query(s, Q_SCHEMA, e, ""), &now, e) < 0)
		return -1;
	if (s->layout == LAYOUT_OURS && s->schema == now)
		return 0;
	if (layout_find(s, e) < 0)
		return -1;
	s->schema = now;
	return 0;
}

void
db_forget(struct sqlite_store *s)
{
	int i;

	for (i = Q_FIND; i < QUERIES; i++) {
		sqlite3_finalize(s->statements[i]);
		s->statements[i] = NULL;
	}
	s->layout = LAYOUT_UNKNOWN;
}

/* ---- Opening ---- */

void
db_disconnect(struct sqlite_store *s)
{
	int i;

	for (i = 0; i < QUERIES; i++) {
		sqlite3_finalize(s->statements[i]);
		s->statements[i] = NULL;
	}
	if (s->db != NULL)
		connections--;
	sqlite3_close(s->db);
	s->db = NULL;
	s->layout = LAYOUT_UNKNOWN;
	s->frozen = s->tuned = s->alone = false;
}

unsigned
db_connections(void)
{
	return connections;
}

static sqlite3_file *
file_pointer(struct sqlite_store *s)
{
	sqlite3_file *f = NULL;

	sqlite3_file_control(s->db, "main", SQLITE_FCNTL_FILE_POINTER, &f);
	return f != NULL && f->pMethods != NULL ? f : NULL;
}

/* Read through SQLite: closing a descriptor of our own would drop its locks. */
bool
db_is_wal(struct sqlite_store *s)
{
	sqlite3_file *f = file_pointer(s);
	unsigned char v[2];

	return f != NULL && f->pMethods->xRead(f, v, sizeof(v), 18) == SQLITE_OK && v[0] == 2 && v[1] == 2;
}

static bool
log_exists(struct sqlite_store *s)
{
	return access(sqlite3_filename_wal(sqlite3_db_filename(s->db, "main")), F_OK) == 0;
}

/* The journal of a change that was not finished, which would have to be undone. */
static bool
journal_exists(struct sqlite_store *s)
{
	return access(sqlite3_filename_journal(sqlite3_db_filename(s->db, "main")), F_OK) == 0;
}

/*
 * SQLite's own handler sleeps longer each time, up to a tenth of a second, so that of many who wait whoever came last goes first, and
 * the slowest change in a hundred takes twice as long as with this one.
 */
static int
busy(void *self, int tries)
{
	struct sqlite_store *s = self;

	if (tries == 0)
		s->busy_until = clock_monotonic() + (s->busy_short ? READERS_SECONDS : s->o.timeout_ms / 1e3);
	else if (clock_monotonic() >= s->busy_until)
		return 0;
	store_contend((unsigned)tries);
	return 1;
}

/*
 * After a commit that left so many frames in the log. SQLite's own would bring them into the database then, and when others wrote meanwhile,
 * which it lets them, the log does not begin anew: so it does that after every further commit, with two syncs. Beside others the log
 * may grow, until one of them holds the others up for as long as it takes. Readers are not waited for long; the log then grows on.
 */
static int
after_commit(void *self, sqlite3 *db, const char *name, int frames)
{
	struct sqlite_store *s = self;
	int all = 0, done = 0;

	if (frames < s->log_frames)
		s->log_next = s->log_most;
	s->log_frames = frames;
	if (frames < s->log_next)
		return SQLITE_OK;
	s->busy_short = true;
	sqlite3_wal_checkpoint_v2(db, name, s->log_most == LOG_ALONE ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_FULL, &all, &done);
	s->busy_short = false;
	if (done < all)
		s->log_most = LOG_SHARED;
	s->log_next = frames + s->log_most;
	return SQLITE_OK;
}

/* The locked-down connection: nothing in the database's schema is run, nothing of it is trusted. */
static int
connect_flags(struct sqlite_store *s, const char *name, int flags, struct err *e)
{
	static bool configured;
	int rc;

	/* No statistics, and few pages to begin with: a command's one question has to be quick. */
	if (!configured) {
		sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
		sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 4);
		configured = true;
	}
	rc = sqlite3_open_v2(name, &s->db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, NULL);
	if (s->db == NULL)
		return err_set(e, ERR_IO, "%s: out of memory", db_name(s));
	connections++;
	if (rc != SQLITE_OK) {
		db_fail(s, e);
		db_disconnect(s);
		return -1;
	}
	sqlite3_extended_result_codes(s->db, 1);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_busy_handler(s->db, busy, s);
	s->log_frames = 0;
	s->log_most = s->log_next = LOG_ALONE;
	sqlite3_wal_hook(s->db, after_commit, s);
	return 0;
}

static bool
can_write_beside(const char *file)
{
	char *dir = xstrdup(file), *slash = strrchr(dir, '/');
	bool can;

	*(slash == dir ? slash + 1 : slash) = '\0';
	can = faccessat(AT_FDCWD, dir, W_OK, AT_EACCESS) == 0;
	free(dir);
	return can;
}

/* The name under which SQLite opens a file that does not change. */
static char *
immutable_uri(const char *file)
{
	struct buf uri = BUF_INIT;

	buf_adds(&uri, "file:");
	for (; *file != '\0'; file++)
		if (strchr("%?#", *file) != NULL)
			buf_addf(&uri, "%%%02x", (unsigned char)*file);
		else
			buf_addch(&uri, *file);
	buf_adds(&uri, "?immutable=1");
	return buf_detach(&uri, NULL);
}

/* A lock as every user of the database holds it, on a connection that by itself takes none. */
static int
lock_shared(struct sqlite_store *s, struct err *e)
{
	sqlite3_file *f = file_pointer(s);
	int rc = SQLITE_IOERR, tries = 0;

	if (f != NULL)
		do
			rc = f->pMethods->xLock(f, SQLITE_LOCK_SHARED);
		while (rc == SQLITE_BUSY && busy(s, tries++));
	if (rc == SQLITE_BUSY)
		return err_set(e, ERR_BUSY, "%s: held by another process", s->file);
	return rc == SQLITE_OK ? 0 : err_set(e, code_of(rc), "%s: cannot be locked for reading", s->file);
}

static off_t
file_size(const struct sqlite_store *s)
{
	struct stat st;

	return stat(s->file, &st) < 0 ? -1 : st.st_size;
}

/*
 * To take part in a write-ahead log, a reader makes files beside the database: that takes most of the time of a short
 * question, is not possible where one may not write, and of a file that one may not write it locks the owner out. While
 * there is no log, the database can be read as a file that does not change. Nobody who uses the log can remove it while
 * we hold our lock: so when there is none after reading either, nothing was written meanwhile (see db_torn()). SQLite
 * asks for the size of such a file when it opens it, before we have the lock: what grew in between is not read so.
 *
 * 1 when it is so opened, 0 when it cannot be: there is a log, or none is used, or it is being written.
 */
static int
freeze(struct sqlite_store *s, struct err *e)
{
	off_t size = file_size(s);
	char *uri = immutable_uri(s->file);
	int rc = connect_flags(s, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, e);

	free(uri);
	if (rc < 0)
		return -1;
	if (db_is_wal(s) && (rc = lock_shared(s, e)) == 0 && !log_exists(s) && !journal_exists(s) && file_size(s) == size) {
		s->frozen = true;
		return 1;
	}
	db_disconnect(s);
	return rc;
}

int
db_look_for(struct sqlite_store *s, struct err *e)
{
	struct stat st;

	if (stat(s->file, &st) < 0) {
		if (errno == ENOENT && s->o.mode == STORE_CREATE)
			return 0;
		return err_sys(e, "%s", s->file);
	}
	return S_ISREG(st.st_mode) ? 1 : err_set(e, ERR_DATA, "%s: not a file", s->file);
}

int
db_connect(struct sqlite_store *s, struct err *e)
{
	int rc;

	if (s->db != NULL)
		return 1;
	if (s->file == NULL)
		return connect_flags(s, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, e) < 0 ? -1 : 1;
	rc = db_look_for(s, e);
	if (rc <= 0)
		return rc;
	if (s->o.mode == STORE_READ && !s->live && !s->alone && (rc = freeze(s, e)) != 0)
		return rc;
	if (connect_flags(s, s->file, SQLITE_OPEN_READWRITE, e) < 0)
		return -1;
	return s->alone && db_exec(s, "PRAGMA locking_mode = EXCLUSIVE", e) < 0 ? -1 : 1;
}

bool
db_thaw(struct sqlite_store *s)
{
	if (!s->frozen || faccessat(AT_FDCWD, s->file, W_OK, AT_EACCESS) < 0 || !can_write_beside(s->file))
		return false;
	s->live = true;
	db_disconnect(s);
	return true;
}

/* ---- Read transactions ---- */

bool
db_torn(struct sqlite_store *s)
{
	return s->frozen && log_exists(s);
}

/* The log is there, as a change leaves it that could not be made on a full disk, and its index, in memory that is shared, cannot be. */
static bool
no_index(struct sqlite_store *s)
{
	return s->db != NULL && !s->alone && (sqlite3_extended_errcode(s->db) & 0xff) == SQLITE_IOERR && sqlite3_system_errno(s->db) == ENOSPC;
}

static int
begin_first(struct sqlite_store *s, struct err *e)
{
	int rc;

	if (db_torn(s))
		db_disconnect(s);
	rc = db_connect(s, e);
	if (rc <= 0)
		return rc;
	if (db_run(s, db_query(s, Q_BEGIN, e, ""), e) < 0)
		return -1;
	if (db_know(s, e) < 0)
		rc = no_index(s) ? AGAIN : -1;
	else if (s->layout == LAYOUT_EMPTY)
		rc = 0;
	if (rc != 1)
		db_run(s, db_query(s, Q_COMMIT, NULL, ""), NULL);
	return rc;
}

int
db_begin_read(struct sqlite_store *s, struct err *e)
{
	int rc = 1;

	if (s->held_empty)
		return 0;
	if (s->depth == 0)
		do {
			rc = begin_first(s, e);
			/* Whoever has the database alone needs no shared memory; when it is closed, log and index go. */
			if (rc == AGAIN) {
				db_disconnect(s);
				s->alone = true;	/* until it is disconnected again */
			}
		} while (rc == AGAIN || (rc <= 0 && db_torn(s)));
	if (rc > 0)
		s->depth++;
	return rc;
}

int
db_end_read(struct sqlite_store *s, int rc, struct err *e)
{
	s->depth--;
	if (db_torn(s)) {
		if (s->depth > 0)
			return err_set(e, ERR_BUSY, "%s: changed while it was read", s->file);
		db_disconnect(s);
		return AGAIN;
	}
	/* It changed nothing: when this fails, there is nothing to be undone. */
	if (s->depth == 0)
		db_run(s, db_query(s, Q_COMMIT, NULL, ""), NULL);
	if (s->depth == 0 && s->alone)
		db_disconnect(s);
	return rc;
}

void
db_remove_log(struct sqlite_store *s)
{
	if (!db_torn(s) || !db_thaw(s))
		return;
	if (db_begin_read(s, NULL) > 0)
		db_end_read(s, 0, NULL);
}

/* ---- Making files, and how changes are kept ---- */

/* One that may not be read cannot be synced; nobody who is let in there by us has made anything in it. */
static int
sync_dir(const char *dir, struct err *e)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return errno == EACCES ? 0 : err_sys(e, "%s", dir);
	if (fsync(fd) < 0 && errno != EINVAL)
		rc = err_sys(e, "%s", dir);
	close(fd);
	return rc;
}

static int
cannot_create(const char *path, struct err *e)
{
	err_sys(e, "cannot create %s", path);
	if (e != NULL && e->code == ERR_NOINPUT)
		e->code = ERR_CREATE;
	return -1;
}

static int
make_directory(const char *path, struct err *e)
{
	int why;

	if (mkdir(path, 0700) == 0)
		return 0;
	/* Above it there may be directories in which nothing can be made, not even tried. */
	why = errno;
	if (why == EEXIST || access(path, F_OK) == 0)
		return 0;
	errno = why;
	return cannot_create(path, e);
}

int
db_make_parents(struct sqlite_store *s, struct err *e)
{
	char *path = xstrdup(s->file), *p = path, *slash;
	int rc = 0;

	while (rc == 0 && (slash = strchr(p + 1, '/')) != NULL) {
		*slash = '\0';
		rc = make_directory(path, e);
		*slash = '/';
		p = slash;
	}
	free(path);
	return rc;
}

int
db_sync_parents(struct sqlite_store *s, struct err *e)
{
	char *path, *slash;
	int rc = 0;

	if (s->file == NULL || s->o.sync != STORE_SYNC_FULL)
		return 0;
	path = xstrdup(s->file);
	while (rc == 0 && (slash = strrchr(path, '/')) != NULL) {
		*slash = '\0';
		rc = sync_dir(path[0] ? path : "/", e);
	}
	free(path);
	return rc;
}

int
db_create(struct sqlite_store *s, struct err *e)
{
	int fd;

	if (db_make_parents(s, e) < 0)
		return -1;
	fd = open(s->file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 && errno != EEXIST)
		return cannot_create(s->file, e);
	if (fd >= 0)
		close(fd);
	return 0;
}

/* File systems of other hosts: the log's index is shared memory, which has to be one for all who use the database. */
static bool
is_remote(const char *file)
{
	static const uint32_t remote[] = {
		0x6969 /* nfs */, 0x517b /* smb */, 0xff534d42 /* cifs */, 0xfe534d42 /* smb2 */, 0x65735546 /* fuse */,
		0x01021997 /* 9p */, 0x5346414f /* afs */, 0x6b414653 /* kafs */, 0x00c36400 /* ceph */, 0x73757245 /* coda */,
		0x0bd00bd0 /* lustre */, 0x7461636f /* ocfs2 */, 0x01161970 /* gfs2 */, 0x47504653 /* gpfs */,
		0x19830326 /* beegfs */, 0x786f4256 /* vboxsf */, 0x564c /* ncp */,
	};
	struct statfs fs;
	size_t i;

	if (statfs(file, &fs) < 0)
		return false;
	for (i = 0; i < sizeof(remote) / sizeof(remote[0]); i++)
		if ((uint32_t)fs.f_type == remote[i])
			return true;
	return false;
}

void
db_use_log(struct sqlite_store *s)
{
	unsigned tries;

	if (s->file == NULL)
		return;
	if (is_remote(s->file)) {
		log_warn("%s: on a network file system, so without a write-ahead log: every change waits for the disk", s->file);
		return;
	}
	for (tries = 0; tries < 50; tries++) {
		if ((sqlite3_exec(s->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL) & 0xff) != SQLITE_BUSY)
			break;
		usleep(20000);
	}
}

int
db_tune(struct sqlite_store *s, struct err *e)
{
	if (s->tuned || s->file == NULL)
		return 0;
	if (s->o.sync == STORE_SYNC_NORMAL && db_is_wal(s) && db_exec(s, "PRAGMA synchronous = NORMAL", e) < 0)
		return -1;
	s->tuned = true;
	return 0;
}

/* ---- Segments ---- */

int
segment_put(struct sqlite_store *s, const struct row *r, uint64_t place, const void *data, size_t len, struct err *e)
{
	const char *p = data;
	size_t n;

	for (; len > 0; p += n, place += n, len -= n) {
		n = len < SEGMENT ? len : SEGMENT;
		if (db_run(s, db_query(s, Q_PUT, e, "ib", segment_id(r, place), p, n), e) < 0)
			return -1;
	}
	return 0;
}

uint64_t
segment_run(size_t len)
{
	return len % SEGMENT < RUN ? len % SEGMENT : 0;
}

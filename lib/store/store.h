/*
 * The knowledge store: bytes under Unix-like paths, the same on every back end.
 *
 * Paths given to these functions are normalised here, once, above the back ends (see path.h); what path.h refuses is
 * ERR_DATA. Directories are implicit: they exist while something lies below them. Creating a file where a directory is,
 * or below a file, is ERR_CREATE (AG2 can leave such a store behind: it is readable, file before directory).
 *
 * Every change is atomic across processes: others see all of it or nothing, and what was acknowledged (the function
 * returned 0) survives the death of any process (sync=normal) or the loss of power (sync=full). A version is a number
 * that only ever rises for a path, also across its deletion; it says nothing across paths except that on one store the
 * path with the greatest version was written last.
 *
 * Common errors: ERR_ABSENT the path is not there (or is a directory, where a file is meant) · ERR_NOINPUT there is no
 * store at the URL and the mode does not create one · ERR_BUSY held by another process beyond the timeout · ERR_PERM ·
 * ERR_IO, the disk is full among it · ERR_DATA the store's own structures are damaged.
 */
#ifndef AG2_STORE_H
#define AG2_STORE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

struct store;
struct store_file;
struct store_lock;
struct store_watch;

enum store_mode {
	STORE_READ,	/* nothing is created or changed, not even the store's layout; ERR_NOINPUT when it is not there */
	STORE_WRITE,	/* may be changed, must be there */
	STORE_CREATE,	/* may be changed, is created by the first change (not by opening) */
};

enum store_sync {
	STORE_SYNC_NORMAL,	/* acknowledged changes survive the death of every process */
	STORE_SYNC_FULL,	/* ... and the loss of power */
};

struct store_options {
	enum store_mode mode;
	enum store_sync sync;		/* ?sync= in the URL wins */
	unsigned timeout_ms;		/* how long to wait for other writers, or for a server; 0 means 10 000 */
	const char *password;		/* for a server; borrowed during store_open; may be NULL */
	bool lock;			/* ?lock=1 */
	const char *under;		/* what store_lock_token gave to the process that started us; borrowed during store_open; may be NULL */
};

/*
 * Opens the store at url: disk:ROOT, sqlite:FILE, memory:, redis://[USER@]HOST:PORT/DB, redis+unix:/SOCKET, or a bare path
 * (sqlite when it ends in .db or .sqlite, else disk). What follows the last '?' of a URL with a scheme is options, parted
 * by '&': sync=normal|full; lock=1, with which each change is made under locks named store:write:PATH (as AG2's
 * LockedKnowledgeStore has them; reading is not held up), ERR_BUSY beyond the timeout; timeout=S; of sqlite also layout=ag2; of a server also prefix=, db=, user= and password_cmd= (a command
 * whose first line of output is the password), with %XX in their values. An unknown scheme or option is ERR_USAGE. *out is closed with store_close.
 *
 * A server that is not there is ERR_UNAVAIL, one that does not answer in time ERR_BUSY; nothing waits longer than the
 * timeout. A change whose answer was lost is asked about again; where that fails too it is ERR_BUSY, and the message says
 * that it is not known whether the change was made.
 */
int store_open(struct store **out, const char *url, const struct store_options *options, struct err *e);
void store_close(struct store *s);		/* NULL is allowed */
const char *store_url(const struct store *s);	/* absolute (relative paths resolved when opened), for messages and AG2_STORE */

struct store_stat {
	uint64_t size;		/* bytes; 0 for a directory */
	uint64_t version;	/* 0 for a directory */
	double mtime;		/* seconds since the epoch of the last change; below 0 where the back end does not know */
	bool dir;
};

/* 1 when path is a file or directory (file first), 0 when it is not there, -1 on error. st may be NULL. "/" is there when anything outside /.ag2 is. */
int store_stat(struct store *s, const char *path, struct store_stat *st, struct err *e);

/* Appends the whole content to out (its maximum applies: ERR_DATA when exceeded). st, may be NULL, describes just what was read. */
int store_read(struct store *s, const char *path, struct buf *out, struct store_stat *st, struct err *e);

/*
 * Appends the bytes [start, end) to out, STORE_END standing for the end of the file. As AG2: a missing path or a directory
 * gives nothing, and so does a negative end; a negative start counts from the end; bounds are clamped to the file.
 */
#define STORE_END INT64_MAX
int store_read_range(struct store *s, const char *path, int64_t start, int64_t end, struct buf *out, struct err *e);

/*
 * A file opened for reading is one version of it, whatever others do meanwhile. On sqlite it holds a read transaction:
 * close it before changing the store through the same handle.
 */
int store_file_open(struct store *s, const char *path, struct store_file **out, struct store_stat *st, struct err *e);
ssize_t store_file_read(struct store_file *f, uint64_t offset, void *data, size_t len, struct err *e);	/* bytes: fewer than len only where the file ends */
int store_file_add(struct store_file *f, uint64_t from, uint64_t to, struct buf *out, struct err *e);	/* appends [from, to) to out, or what there is of it */
void store_file_close(struct store_file *f);

/*
 * From store_hold to store_release everything read is of one moment, where the back end can do that (sqlite, memory); elsewhere each
 * file is of its own. Not to be changed through the same handle meanwhile.
 */
int store_hold(struct store *s, struct err *e);
void store_release(struct store *s);

/*
 * Calls fn for each immediate child of path in the byte order of what `ls` prints, directories with a '/' behind their
 * names (`a.txt` is before `a/`); they have dir set and come without the '/'. A name that is both, as AG2 can leave it,
 * comes twice, the file first. A missing path has no children. /.ag2 is left out unless STORE_LIST_ALL. st is filled
 * (else NULL) with STORE_LIST_STAT. fn returning non-zero ends the listing, which returns that value. fn must not change
 * the store. What other programs have left under a name that no path can have is passed over. Names are NUL-terminated bytes.
 */
enum { STORE_LIST_ALL = 1, STORE_LIST_STAT = 2 };
typedef int store_list_fn(void *arg, const char *name, bool dir, const struct store_stat *st);
int store_list(struct store *s, const char *path, unsigned flags, store_list_fn *fn, void *arg, struct err *e);

/* Changes. store_commit is the one primitive; the others are commits of one operation. */
enum store_op_kind {
	STORE_OP_WRITE,		/* the whole file becomes data */
	STORE_OP_APPEND,	/* data goes behind the end; the offset where it begins goes to `offset` */
	STORE_OP_DELETE,	/* the file, or everything below the directory; nothing when it is not there; "/" leaves /.ag2 */
	STORE_OP_EXPECT,	/* fails the commit unless the file's version is `version` (0: is not there) */
	STORE_OP_REPLACE_PREFIX, /* the first `upto` bytes, whose SHA-1 must be `sha1`, become data; what follows stays */
};

/*
 * Content may be put together from pieces, so that what moves from one file to another never has to be in memory: len
 * bytes at offset of the file `from` as it was before the commit, or of the operation's own data where from is NULL. A
 * piece that is not there in full is ERR_CONFLICT. On redis they are read before the commit. The file must not be one that this or an earlier operation of the commit
 * changes (ERR_USAGE).
 */
struct store_piece {
	const char *from;
	uint64_t offset, len;
};

struct store_op {
	enum store_op_kind kind;
	const char *path;
	const void *data;		/* borrowed */
	size_t len;
	uint64_t version;		/* in: EXPECT; out: the file's new version, for WRITE, APPEND, REPLACE_PREFIX */
	uint64_t offset;		/* out: APPEND */
	bool blind;			/* APPEND: neither is wanted, and what is out is nothing that counts */
	uint64_t upto;			/* REPLACE_PREFIX */
	unsigned char sha1[20];		/* REPLACE_PREFIX */
	bool unchecked;			/* REPLACE_PREFIX: sha1 is not given; an EXPECT says what the file must be */
	const struct store_piece *pieces;	/* WRITE, REPLACE_PREFIX: when npieces is not 0, the content instead of data */
	size_t npieces;
};

/*
 * All operations, in order, or none. Every EXPECT and every prefix is checked before anything changes: ERR_CONFLICT
 * names the path that was not as expected (a prefix of a file that is not there never is). No two operations that change
 * may have the same path, or one below the other (ERR_USAGE). ERR_PERM on a store opened with STORE_READ.
 */
int store_commit(struct store *s, struct store_op *ops, size_t n, struct err *e);

int store_write(struct store *s, const char *path, const void *data, size_t len, struct err *e);
int store_append(struct store *s, const char *path, const void *data, size_t len, uint64_t *offset, struct err *e);
int store_delete(struct store *s, const char *path, struct err *e);

/*
 * A lock named by a path (which need not exist), between cooperating processes; reads and writes do not heed it. Waits up
 * to wait_ms (0: not at all, but for a moment where the holder seems to have died; below 0: for ever), then ERR_BUSY. It is let go by store_unlock, by store_close, and when
 * the process dies; on a back end that several hosts share, also ttl_ms after it was last renewed. It is not inherited
 * by children. Two locks of one process exclude each other too.
 */
int store_lock(struct store *s, const char *path, int64_t ttl_ms, int64_t wait_ms, struct store_lock **out, struct err *e);
void store_unlock(struct store_lock *l);	/* NULL is allowed; not after store_close, which frees it */

/*
 * 0 while the lock is held. ERR_BUSY when it was lost, which happens only where ttl_ms counts: our host was stopped or cut
 * off for so long. From then on every change through this store is ERR_BUSY, until the lock is let go.
 */
int store_lock_held(struct store_lock *l, struct err *e);

/*
 * For a child that changes the same store while we hold the lock: with it in `under` each change of the child's is ERR_BUSY, too, once
 * the lock is lost, though we be stopped and cannot tell. To be freed; NULL where a lock is not lost.
 */
char *store_lock_token(const struct store_lock *l);

/*
 * Watching the file at path, or all below it; neither need be there. From when store_watch returns every change is
 * noticed, whoever makes it: AG2, another program, this process. Several changes of one file may be told as one.
 */
int store_watch(struct store *s, const char *path, struct store_watch **out, struct err *e);

/*
 * Waits up to wait_ms (below 0: for ever) for changes and calls fn for each file that changed, came, or went (removed), in
 * the order of a tree; renaming is both. fn may use the store. Returns how many there were, 0 when the time was over, -1:
 * ERR_NOINPUT when the store itself has gone, ERR_USAGE when no change could ever come (for ever, in memory).
 */
typedef void store_watch_fn(void *arg, const char *path, bool removed);
int store_watch_next(struct store_watch *w, int64_t wait_ms, store_watch_fn *fn, void *arg, struct err *e);
void store_watch_close(struct store_watch *w);	/* NULL is allowed; not after store_close */

/*
 * Something in the store that is not as it should be. path is where (never NULL; "/" for what concerns all of it), kind a word for programs, what a line for
 * people; repaired says what was done about it, NULL when nothing was.
 */
struct store_finding {
	const char *path, *kind, *what, *repaired;
};
typedef void store_finding_fn(void *arg, const struct store_finding *f);

/*
 * Looks through the back end's own structures, beside others who use the store: what one of them has half done counts as
 * wrong only when it stays so. Nothing is changed without `repair` (which needs a store that may be changed), and with it no
 * byte of a file is lost: what cannot stay where it is goes to a path that is told. 1, or 0 when the files cannot be read, or not
 * without changing something, until what was found is repaired; -1 when the check itself could not be made.
 */
int store_check(struct store *s, bool repair, store_finding_fn *fn, void *arg, struct err *e);

#endif

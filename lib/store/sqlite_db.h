/*
 * The database of a store: its connection, its statements, what kind of database it is. For the back end in sqlite.c only.
 */
#ifndef AG2_SQLITE_DB_H
#define AG2_SQLITE_DB_H

#include "store/backend.h"

#include <sqlite3.h>

#define APPLICATION_ID	0x61673273	/* "ag2s", in the database's header */
#define LAYOUT_VERSION	1
#define LAYOUT_OBJECTS	7		/* tables, views and triggers of ours */
#define SEGMENT		(64 * 1024)	/* larger content is cut at this */
#define RUN		(16 * 1024)	/* small segments are joined when together they have as much */
#define PLACES		(UINT64_C(1) << 40)
#define MIDDLE		(UINT64_C(1) << 39)
#define FILES_MAX	8388607		/* what is left of 63 bits */
#define VERSION_MAX	(INT64_C(1) << 62)	/* a greater one is damage: what counts on from there would leave the integers */
#define VERSION_TEXT	"4611686018427387904"

enum layout {
	LAYOUT_UNKNOWN,
	LAYOUT_EMPTY,	/* no tables: an empty store */
	LAYOUT_AG2,	/* as AG2 makes it */
	LAYOUT_OURS,
};

enum query {
	Q_BEGIN, Q_CHANGE, Q_COMMIT, Q_ROLLBACK,
	Q_SCHEMA,
	Q_FIND,		/* these are there in AG2's layout too */
	Q_NAMES,
	Q_LIST,
	Q_DROP, Q_BELOW,
	Q_SEGMENT, Q_BYTES, Q_CUT, Q_PUT, Q_MOVE,
	Q_FREE, Q_NEW, Q_SAVE, Q_RENUMBER, Q_VERSION,
	Q_PLAIN_TOP, Q_PLAIN_ODD, Q_PLAIN_PUT, Q_PLAIN_ADD,	/* only there */
	QUERIES
};

struct sqlite_store {
	char *file;		/* NULL: in memory */
	struct store_options o;
	sqlite3 *db;		/* NULL while there is no file, or before the first use */
	enum layout layout;
	bool old;		/* LAYOUT_OURS, with a view or triggers of an earlier version */
	enum layout wanted;	/* what a change makes of it: LAYOUT_OURS, or LAYOUT_AG2 with ?layout=ag2 */
	int64_t schema;		/* the number of changes of the schema that the layout was found with */
	unsigned depth;		/* read transactions that are open */
	bool frozen;		/* opened as a file that does not change: see freeze() */
	bool alone;		/* opened so that others are kept out: see no_index() */
	bool live;		/* not to be frozen: what is read must stay as it is for longer */
	bool held;		/* a read transaction is open until sqlite_release() */
	bool held_empty;	/* or there was nothing then, and what others make is not looked at until then */
	double busy_until;	/* when waiting for another ends */
	bool busy_short;	/* it is not worth waiting for that long */
	int log_frames, log_next, log_most;	/* see after_commit() */
	bool tuned;		/* durability was set */
	bool peeked;		/* a question was already asked without opening it */
	sqlite3_stmt *statements[QUERIES];
	struct memory_lock *locks;	/* of a store in memory */
};

/* A row of files. */
struct row {
	int64_t id;		/* 0: not there yet */
	uint64_t base, size, run, version;
	double mtime;
};

/* What went wrong is said with the file's name in front. Functions return 0, or -1 with e filled, unless they say more. */

const char *db_name(const struct sqlite_store *s);	/* for messages */

/* Reports what SQLite said last. */
int db_fail(struct sqlite_store *s, struct err *e);

/* ERR_DATA, about a file whose version is beyond VERSION_MAX. */
int db_unversioned(struct sqlite_store *s, const char *path, uint64_t version, struct err *e);

/* Runs statements that give nothing. */
int db_exec(struct sqlite_store *s, const char *sql, struct err *e);

/*
 * The statement of q in the layout at hand, with its parameters bound as types says: t text (const char *), i int64_t,
 * d double, b bytes (const void *, size_t), v a value (sqlite3_value *). All are borrowed until it is reset. NULL on error.
 */
sqlite3_stmt *db_query(struct sqlite_store *s, enum query q, struct err *e, const char *types, ...);

/* 1 when there is a row, 0 at the end, -1 on error. The statement is reset but for a row. */
int db_step(struct sqlite_store *s, sqlite3_stmt *st, struct err *e);

/* Runs a statement of which no row is wanted; st may be NULL, after a failure of db_query(). */
int db_run(struct sqlite_store *s, sqlite3_stmt *st, struct err *e);

/* The one number that a statement gives. */
int db_number(struct sqlite_store *s, sqlite3_stmt *st, int64_t *out, struct err *e);

/* Finds out which layout it is when that is not known, or somebody has made another. Within a transaction. */
int db_know(struct sqlite_store *s, struct err *e);

/* Forgets which layout it is, with the statements made for it. */
void db_forget(struct sqlite_store *s);

/* 1 when there is a file, 0 when there need not be one yet, -1 on error. */
int db_look_for(struct sqlite_store *s, struct err *e);

/* 1 when connected, 0 when there is no file, -1 on error. */
int db_connect(struct sqlite_store *s, struct err *e);
void db_disconnect(struct sqlite_store *s);

unsigned db_connections(void);	/* of this process, to whatever file */

/* Whether the header says that changes go through a write-ahead log. */
bool db_is_wal(struct sqlite_store *s);

/* Whether the database was frozen and need not be; then it has to be opened again. */
bool db_thaw(struct sqlite_store *s);

/* While we held our lock nobody could remove the log; with it in place the file alone is not the whole database. */
void db_remove_log(struct sqlite_store *s);

/* Something was written under a frozen database: what was read may be neither the one nor the other. */
bool db_torn(struct sqlite_store *s);

/* 1: end it with db_end_read(). 0: there is nothing in the store. Within another one it is part of that. */
int db_begin_read(struct sqlite_store *s, struct err *e);

enum { AGAIN = 2 };

/* Gives rc back, or AGAIN when all has to be read once more. */
int db_end_read(struct sqlite_store *s, int rc, struct err *e);

/* Begins again after what db_end_read() answers AGAIN to. */
#define READING(s, rc, e, body) \
	do { \
		rc = db_begin_read(s, e); \
		if (rc > 0) { \
			body; \
			rc = db_end_read(s, rc, e); \
		} \
	} while (rc == AGAIN)

/* The directories above the file, 0700. ERR_CREATE when there is something in the way. */
int db_make_parents(struct sqlite_store *s, struct err *e);

/*
 * With sync=full, of a new database: syncs all the directories above it. Any of them may have been made by a writer that died
 * before it had done so.
 */
int db_sync_parents(struct sqlite_store *s, struct err *e);

/* The file, empty and 0600, and the directories above it. */
int db_create(struct sqlite_store *s, struct err *e);

/*
 * Switches the write-ahead log on, outside a transaction. Where others have the database open just now it stays as it
 * is, which is as safe.
 */
void db_use_log(struct sqlite_store *s);

/*
 * With the log, NORMAL survives the death of every process and leaves the database whole after a loss of power; what
 * sync=full adds is SQLite's default, which is also kept where there is no log.
 */
int db_tune(struct sqlite_store *s, struct err *e);

static inline int64_t
segment_id(const struct row *r, uint64_t place)
{
	return (int64_t)((uint64_t)r->id << 40 | place);
}

/* Puts content at a place of the file, cut into segments. */
int segment_put(struct sqlite_store *s, const struct row *r, uint64_t place, const void *data, size_t len, struct err *e);

/* How many bytes of content that was put are in a small segment at its end. */
uint64_t segment_run(size_t len);

/* ---- sqlite_layout.c ---- */

/* The text of q in the layout. */
const char *layout_query(enum layout layout, enum query q);

/* The statements of our schema in the order of their creation. Borrowed. */
void layout_statements(const char *sql[LAYOUT_OBJECTS]);

/* Finds out which layout it is, within a transaction. ERR_DATA when it is none that can be used. */
int layout_find(struct sqlite_store *s, struct err *e);

/*
 * Within a transaction, of a database that layout_find() refuses: makes the view and the triggers anew when that is all that is amiss,
 * our tables being what they should be. 1 when it did, 0 when more is wrong, -1.
 */
int layout_mend(struct sqlite_store *s, struct err *e);

/* The one number that a statement gives. */
int layout_number(struct sqlite_store *s, const char *sql, int64_t *out, struct err *e);

/* Makes the database what s->wanted says, within the transaction that then changes it. */
int layout_make(struct sqlite_store *s, struct err *e);

/* In AG2's layout the greatest version that was given out is kept in the header of the database, as far as it has room for it. */
int layout_set_top(struct sqlite_store *s, int64_t top, struct err *e);

#endif

/*
 * The journal of a disk store: the file /.ag2/lock. Its flock serialises those who change the store; its first page says
 * whether a change is under way and holds what it takes to carry it out again.
 *
 * A change is: lock; check; stage; journal_begin, which decides it; apply; journal_end; unlock. `seq` is odd from begin to
 * end, so whoever finds it odd while holding the lock knows that its writer died, and applies the record again. A
 * reader takes no lock: it looks at seq before and after, and looks again at the files when seq was odd or has changed.
 *
 * Layout, numbers little-endian: 8 bytes magic · u64 seq · u64 last, the greatest version given out so far · u32 grain,
 * the file system's time stamps in nanoseconds · u32 flags · u32 where the record begins · u32 its length · 20 bytes
 * sum of all that from seq on and of the record, which is its SHA-1, or without `full` 8 bytes and zeros · 4 zero · (at 64, or at 4096 when it does not fit) the record, then the
 * bytes that it appends. Up to a page goes in one write(2), which a signal cannot cut in two; or, by who changes the store
 * again and again without `full`, into the page mapped, seq last.
 */
#ifndef AG2_JOURNAL_H
#define AG2_JOURNAL_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum {			/* flags */
	JOURNAL_PURGE = 1,	/* /.ag2/tmp holds deleted things */
	JOURNAL_LOOSE = 2,	/* names were made, changed or removed that need not be on the disk yet */
	JOURNAL_FULL = 4,	/* the record was made with `full`: what it says may be half on the disk */
};

struct journal {
	int fd;			/* -1: not open */
	bool writable;
	bool held;
	bool may_map;		/* the first page is mapped when the lock is taken again; for who needs no `full` */
	bool taken;		/* it was, at least once */
	void *page;		/* NULL: not mapped */
	bool fine;		/* see journal_stamps; found out when the page is mapped */
	dev_t dev;
	/* as of journal_lock: */
	uint64_t seq, last;
	uint32_t grain, flags;
	uint32_t area, record_len;
};

#define JOURNAL_INIT { .fd = -1 }
#define JOURNAL_VERSION_MAX INT64_C(9200000000000000000)	/* nanoseconds: in 2261. A later time counts as this one. */
#define JOURNAL_AHEAD (INT64_C(86400) * 1000000000)	/* what is further than a day from now is no clock that differs */
#define JOURNAL_RECORD_MAX (64 * 1024 * 1024)

/* The sequence number now; 0 where there is no journal or none that we may read. root is the store's directory. */
int journal_peek(struct journal *j, int root, uint64_t *seq, struct err *e);

/*
 * Takes the lock and reads the page. With `change` the file must be writable and is created through make(arg), which
 * returns its descriptor or -1 with e filled; without, a journal that is not there is not held (0 is returned all the same).
 */
int journal_lock(struct journal *j, int root, bool change, int (*make)(void *arg, struct err *e), void *arg, unsigned wait_ms, struct err *e);

/*
 * The same for a change, by a process that had it before: 1 when it is held, 0 when it is not, and journal_lock is to be called
 * for the directory that the store is in now: it was not open so far, or others have removed it, or gave it a second name.
 */
int journal_retake(struct journal *j, unsigned wait_ms, struct err *e);
void journal_unlock(struct journal *j);
void journal_close(struct journal *j);

/* Decides a change: record, and behind it the n pieces of data, are in the file when it returns 0. With full, on the disk. */
int journal_begin(struct journal *j, const struct buf *record, const struct iovec *data, size_t n, bool full, struct err *e);

/* Writes the flags while no change is under way. */
int journal_flag(struct journal *j, uint32_t flags, struct err *e);

/* The change is done, or undone. */
int journal_end(struct journal *j, struct err *e);

/* The record of the change under way, and where in the file the data behind it begins. ERR_DATA when it is damaged. */
int journal_record(struct journal *j, struct buf *record, uint64_t *data_at, struct err *e);

/* Appends len bytes of the data at `at` to out. */
int journal_data(struct journal *j, uint64_t at, uint64_t len, struct buf *out, struct err *e);

/*
 * Whether a write stamps the file st, which was just looked at, with the time of a clock that is fine enough: a version
 * given out before is passed by it, and two of its states that anyone looked at have two times.
 */
bool journal_stamps(const struct journal *j, const struct stat *st);

/* The time now, as a version. */
uint64_t journal_now(void);

/*
 * A version greater than all that were given out, than `old`, and than the time, that the file system can store. *timely: it is
 * the time itself. A file dated far ahead goes on from there alone, and does not take along what others get. `old` must be
 * below JOURNAL_VERSION_MAX.
 */
uint64_t journal_version(struct journal *j, uint64_t old, bool *timely);

#endif

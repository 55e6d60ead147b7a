/*
 * Archives in the POSIX pax format (IEEE 1003.1, pax, "ustar interchange format"), as a stream in both directions. Only
 * what a store has: regular files by name. Names are bytes; one of more than
 * 100, or with others than ASCII, is told in a pax header. One that is no UTF-8 stands in the plain header when it fits,
 * else in a pax header with `hdrcharset=BINARY`. Time, owner and mode are the same in every header (0, 0, 0600), so that equal
 * files make equal archives.
 */
#ifndef AG2_TAR_H
#define AG2_TAR_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

#define TAR_BLOCK 512

/* Appends the headers of a file of size bytes; its content follows, then tar_pad(size) zero bytes. name has no leading slash. */
void tar_header(struct buf *out, const char *name, size_t len, uint64_t size);

static inline size_t
tar_pad(uint64_t size)
{
	return (size_t)(-size & (TAR_BLOCK - 1));
}

/* The two blocks that end an archive, filled up to a record of 20 blocks; written is the size of all before it. */
void tar_end(struct buf *out, uint64_t written);

/* Where an archive comes from: up to len bytes, 0 at the end, -1 with e set. */
typedef ssize_t tar_read_fn(void *arg, void *data, size_t len, struct err *e);

struct tar {
	tar_read_fn *read;
	void *arg;
	uint64_t offset;	/* bytes read of the archive */
	/* private */
	struct buf name, given;	/* given: the name of a pax or GNU header, for the next entry */
	bool named, sized, sparse;
	uint64_t size;		/* ... and its size */
	uint64_t left;		/* content of the present entry that was not read yet */
	size_t pad;
	struct buf in;		/* read ahead */
	size_t pos;
	bool eof;
};

struct tar_entry {
	const char *name;	/* as it is in the archive, NUL-terminated; until the next call */
	size_t len;
	uint64_t size;
	bool dir;
};

void tar_init(struct tar *t, tar_read_fn *read, void *arg);
void tar_release(struct tar *t);

/*
 * The next entry; what is left of the one before is passed over. 1, 0 at the end of the archive, -1: ERR_DATA when it is no
 * archive, is damaged or ends within an entry, and for every entry that is neither file nor directory. The archives of GNU
 * tar, and those before POSIX, can be read too.
 */
int tar_next(struct tar *t, struct tar_entry *entry, struct err *e);

/* Up to len bytes of the entry's content; 0 at its end, -1 when the archive ends within. */
ssize_t tar_read(struct tar *t, void *data, size_t len, struct err *e);

#endif

/*
 * Events that have to wait: in memory, and beyond 1 MB in an unlinked temporary file.
 */
#ifndef AG2_SPOOL_H
#define AG2_SPOOL_H

#include "event/event.h"

#define SPOOL_MEMORY (1u << 20)

struct spool {
	struct buf memory;	/* the records behind those in the file */
	int fd;			/* -1: no file yet */
	uint64_t in_file;	/* bytes */
	uint64_t records;
	const char *dir;	/* where the file goes, NULL: the usual places; borrowed */
};
#define SPOOL_INIT { .memory = BUF_INIT, .fd = -1 }

/* Adds an event (its line is copied), or with ev NULL a mark. */
int spool_add(struct spool *s, const struct event *ev, uint64_t mark, struct err *e);

/* Calls event or mark for each record in order; non-zero ends it and is returned. Nothing may be added meanwhile. */
struct spool_reader {
	int (*event)(void *arg, struct event *ev, struct err *e);
	int (*mark)(void *arg, uint64_t mark, struct err *e);
	void *arg;
};
int spool_play(struct spool *s, const struct spool_reader *r, struct err *e);

void spool_release(struct spool *s);	/* empty and usable again */

#endif

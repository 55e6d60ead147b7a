/* What several commands do with everything below a path: going through it, and telling how far they are. */
#ifndef AG2_STORE_WALK_H
#define AG2_STORE_WALK_H

#include "command.h"

/* Of a directory (st is NULL without STORE_LIST_STAT): WALK_PASS does not go into it. */
enum { WALK_ON, WALK_PASS };
typedef int walk_fn(void *arg, const char *path, bool dir, const struct store_stat *st);

/*
 * Calls fn for all that lies below path (normalised), in byte order of the whole paths, directories before what is in them; for a file at path
 * itself when there is one. One directory after the other is held, with those above it. 1, 0 when there is nothing at path, -1 with e
 * set. fn may read the store.
 */
int walk(struct store *s, const char *path, unsigned flags, walk_fn *fn, void *arg, struct err *e);

/* The operand, "/" when there is none, normalised. On failure the program ends. */
struct buf path_operand(char **args, int n);

/* A line on standard error that is written over, when that is a terminal; totals of 0 are not known. */
struct progress {
	uint64_t files, bytes, all_files, all_bytes;
	double begun, shown;
	bool on;
};
void progress_begin(struct progress *p);
void progress_step(struct progress *p);		/* after the counts have changed */
void progress_end(struct progress *p);		/* takes the line away */

/* Bytes for people: "812", "1.5K", "12M". */
void human_size(char out[16], uint64_t bytes);
/* How long ago: "12s", "3h", "8d"; "-" for what is below 0. */
void human_age(char out[16], double mtime);

#endif

/*
 * A shortcut for many streams: how much that is new for a strategy was found in which logs, at which versions. One file,
 * /.ag2/seen/KEY, a line `STREAM VERSION EVENTS TURNS COUNTED` each (the last three left out when all are 0; see struct news) in the
 * order of ids, instead of a cursor and a log for every stream. What puts a cursor back deletes it in the same commit, and it is only
 * written where it still is what was read. A cursor that went on since makes it say too much, never too little.
 */
#ifndef AG2_SEEN_H
#define AG2_SEEN_H

#include "aggregate/aggregate.h"

struct seen {
	char *path;
	struct buf text;	/* of the file */
	uint64_t version;	/* of the file; 0 when it is not there */
	size_t at;		/* how far the lookups are */
	struct buf now;		/* what is known now */
	bool changed;
};

void seen_path(struct buf *out, const char *key);	/* out is reset */
/* A file that cannot be read is as good as none. */
void seen_read(struct seen *k, struct store *s, const char *key);
/* Whether the file knows the stream at this version. To be called in the order of ids. */
bool seen_has(struct seen *k, const char *stream, uint64_t version, struct news *n);
/* Notes what was found by seen_has, or (fresh) otherwise. */
void seen_note(struct seen *k, const char *stream, uint64_t version, const struct news *n, bool fresh);
/* Writes the file when it would not be the same. A nicety that may fail. */
void seen_write(struct seen *k, struct store *s);
void seen_release(struct seen *k);

#endif

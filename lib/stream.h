/*
 * Streams in a store: /log/S.jsonl, the segments that compaction dropped from it (/log/S.dropped-N.jsonl), torn tails
 * that were set aside (/log/S.torn-N).
 */
#ifndef AG2_STREAM_H
#define AG2_STREAM_H

#include "event/event.h"
#include "event/jsonl.h"
#include "store/store.h"

/*
 * The id for what a user gave: a checked id, "@last" (the stream last written to; ERR_NOINPUT when there is none), "@new"
 * (a fresh UUID, *fresh set). *id is the caller's. fresh may be NULL.
 */
int stream_resolve(struct store *s, const char *arg, char **id, bool *fresh, struct err *e);
void stream_path(struct buf *out, const char *id);		/* "/log/ID.jsonl"; out is reset */

/* Every stream of the store in byte order of ids, with its current log's stat. */
typedef int stream_list_fn(void *arg, const char *id, const struct store_stat *st);
int stream_list(struct store *s, stream_list_fn *fn, void *arg, struct err *e);

/*
 * Appends whole lines (each ends with a newline; checked by the caller, e.g. by stream_filter) in one store append,
 * moving a torn tail (a last line without newline that is no event) to /log/ID.torn-N first; a last good line without
 * newline gets one. *offset, may be NULL, is where the bytes begin.
 */
int stream_append(struct store *s, const char *id, const void *lines, size_t len, uint64_t *offset, struct err *e);

/* Where what is no event of a log of stream id is set aside: the first free "/log/ID.torn-N" behind all that are there. out is reset. */
int stream_torn_path(struct store *s, const char *id, struct buf *out, struct err *e);

/*
 * What `log append` does with its input: reads lines, refuses the whole when any is bad by the full grammar or lacks a
 * string type and an object data (ERR_DATA naming `name`:line: byte), drops Prompt and transient lines, and appends the
 * rest, each with its newline, to out.
 */
int stream_filter(int fd, const char *name, struct buf *out, struct err *e);

/* The names of all segments, by one listing, for who opens many histories: a listing for each takes the square of them. */
struct stream_index;
int stream_index_read(struct store *s, struct stream_index **out, struct err *e);
void stream_index_free(struct stream_index *x);			/* NULL is allowed */

/*
 * A log read as one input: the full history (segments in number order, one whose lines still begin what follows once), or current only.
 * It is of one moment, whatever is compacted or undone while it is opened and read; ERR_BUSY where others do so without end.
 */
struct stream_reader;
int stream_open(struct store *s, const char *id, bool full, struct stream_reader **out, struct err *e);	/* ERR_NOINPUT when there is no such stream */
/* The full history, by the index as long as that is not out of date. */
int stream_open_indexed(struct store *s, const char *id, const struct stream_index *x, struct stream_reader **out, struct err *e);
ssize_t stream_read(void *reader, void *data, size_t len, struct err *e);	/* a jsonl_read_fn */
/* Whether reading has come to the current log, behind all segments; *offset is how much of the log was given. */
bool stream_in_log(const struct stream_reader *r, uint64_t *offset);
/* Where a byte that was read comes from: the number of the segment, 0 for the current log. offset counts all that was read. */
uint64_t stream_segment_at(const struct stream_reader *r, uint64_t offset);
/* The number of the last segment, 0 when there is none. False when its lines begin the log as well. */
bool stream_last_segment(const struct stream_reader *r, uint64_t *number);
void stream_close(struct stream_reader *r);			/* NULL is allowed */

/*
 * Where compaction puts what it drops: *number is one more than the highest segment's, *version 0. When the lines of the
 * highest segment still begin the log (a compaction that AG2 did not finish), it is that one with its version: what is
 * dropped now begins with the same lines and takes its place.
 */
int stream_next_segment(struct store *s, const char *id, uint64_t *number, uint64_t *version, struct err *e);
/* The version of the segment with this number, which is there, when it is such a one; else 0. Of others nothing is read. */
int stream_segment_unfinished(struct store *s, const char *id, uint64_t number, uint64_t *version, struct err *e);
void stream_segment_path(struct buf *out, const char *id, uint64_t number);	/* out is reset */

/* "/.ag2/undo/ID/NUMBER": how ag2-compact made a segment, written in the commit that made it; out is reset. */
void stream_undo_path(struct buf *out, const char *id, uint64_t number);
/*
 * How that begins. alike: the log that the compaction left begins as the segment does, by lines that are the same; so that
 * it does is no sign of a compaction that did not finish.
 */
void stream_undo_head(struct buf *out, uint64_t segment_len, bool alike);

/*
 * The current log from the last `lines` lines on that are not blank (all of it when there are fewer), found from its end.
 * *offset, may be NULL, is where they begin. ERR_NOINPUT as above.
 */
int stream_open_tail(struct store *s, const char *id, uint64_t lines, struct stream_reader **out, uint64_t *offset, struct err *e);

#endif

/* What came in a stream since a cursor: found, counted, and rendered as a model reads it. */
#ifndef AG2_PENDING_H
#define AG2_PENDING_H

#include "aggregate/aggregate.h"
#include "aggregate/cursor.h"
#include "stream.h"

#define PENDING_TEXT_MAX (8u << 20)	/* bytes of rendered events, and ... */
#define PENDING_LINES_MAX (64u << 20)	/* of their lines, that one reading holds */

struct pending_event {
	struct line_sum sum;
	uint64_t number;		/* in the history, from 1 */
	uint64_t offset, len;		/* in the current log; len 0: not in it */
	size_t text_end, lines_end;	/* where it ends in the buffers below */
	uint64_t turn;			/* which of the turns read (they begin with a request) it belongs to */
	uint64_t open;			/* calls of that turn without a result, after this event */
	bool request;
};

struct pending {
	/* in */
	const struct stream_index *segments;	/* NULL: they are listed */
	bool counts_only;		/* nothing is held */
	/* out */
	struct pending_event *events;	/* those held: the oldest; more may follow (news) */
	size_t n, cap;
	struct buf text;		/* rendered, a newline between two */
	struct buf lines;		/* as they are, each with a newline */
	struct news news;		/* conversational events since the cursor */
	uint64_t seen;			/* the log's version, not newer than what was read */
	uint64_t log_size;		/* its bytes then */
	uint64_t anchor, offset, len;	/* where the cursor's anchor is now */
	uint64_t segment, segment_version;	/* behind which the offsets are; see cursor.h */
	bool unplaced;			/* the log was about to change: no offset is worth keeping */
	uint64_t bad;
};

/*
 * Reads what came since c. Where the anchor is still where it was in the log, only what lies behind it is read; else
 * the full history, the anchor being looked for backwards from where it should be, then from there forwards. ERR_DATA
 * when it is not found. ERR_NOINPUT: no such stream. p need only have what is `in`.
 */
int pending_read(struct pending *p, struct store *s, const char *stream, const struct cursor *c, enum jsonl_bad on_bad, struct err *e);

/* All events of the current log, telemetry (which renders as an empty line) among them; nothing but text, lines and n is filled. */
int pending_read_log(struct pending *p, struct store *s, const char *stream, enum jsonl_bad on_bad, struct err *e);

/* The conversational events of an input, up to the maxima (ERR_DATA when there are more). */
int pending_read_input(struct pending *p, struct jsonl *in, struct err *e);

/* The cursor behind the first n events (n > 0); `to` need not be initialised. Its `seen` is set when these are all. */
void pending_cursor(const struct pending *p, size_t n, const struct cursor *from, struct cursor *to);
void pending_release(struct pending *p);

#endif

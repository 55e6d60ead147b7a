/*
 * Reading streams of JSON lines.
 */
#ifndef AG2_JSONL_H
#define AG2_JSONL_H

#include "event/event.h"

#include <sys/types.h>

/* Where lines come from: read up to len bytes, 0 at the end, -1 with e set. */
typedef ssize_t jsonl_read_fn(void *arg, void *data, size_t len, struct err *e);

enum jsonl_bad {
	JSONL_BAD_COUNT,	/* skip, report, count: the caller exits 65 at the end */
	JSONL_BAD_SKIP,		/* skip and report, no failure (--skip-bad) */
	JSONL_BAD_STOP,		/* the first one is an error (--strict) */
	JSONL_BAD_ONCE,		/* skip, report only the first: a store's log */
	JSONL_BAD_QUIET,	/* skip, count, say nothing: another reading of the same lines reports them */
};

struct jsonl {
	const char *name;	/* for messages: "stdin", a file, a stream; borrowed */
	enum jsonl_bad on_bad;
	uint64_t bad;		/* bad lines so far */
	/* private */
	jsonl_read_fn *read;
	void *arg;
	int fd;
	struct buf buf;
	size_t pos;
	size_t searched;	/* bytes behind pos that are known to hold no newline */
	uint64_t number, offset;	/* of the line at pos */
	bool eof, skipping;	/* skipping: inside a line that is too long */
};

void jsonl_init(struct jsonl *in, const char *name, enum jsonl_bad on_bad, jsonl_read_fn *read, void *arg);
void jsonl_init_fd(struct jsonl *in, const char *name, enum jsonl_bad on_bad, int fd);
/*
 * Starts counting lines and bytes elsewhere than at 1 and 0 (reading from the middle of a log). Line 0: not known; messages
 * then give the line's offset.
 */
void jsonl_set_position(struct jsonl *in, uint64_t number, uint64_t offset);

/*
 * The next good line as a view into the reader's buffer, valid until the next call. 1, 0 at the end, -1 on a read error
 * or, with JSONL_BAD_STOP, on a bad line (ERR_DATA), or when the program is told to end (run_check). Bad lines are reported as `NAME:LINE: byte N: why` through log_warn;
 * N counts from 1 within the line.
 * Blank lines are skipped, a BOM at offset 0 is accepted, the last line may lack its newline. Memory: the longest
 * line, at most EVENT_LINE_MAX; a longer one is skipped without being held.
 */
int jsonl_next(struct jsonl *in, struct event *ev, struct err *e);

/* Reports a line that turned out bad when its content was read, by the reader's rules; returns -1 when it must stop. */
int jsonl_bad(struct jsonl *in, const struct event *ev, const struct err *why, struct err *e);

void jsonl_release(struct jsonl *in);

#endif

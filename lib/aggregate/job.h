/* One aggregation at work: what the files of lib/aggregate that run strategies share. */
#ifndef AG2_AGGREGATE_JOB_H
#define AG2_AGGREGATE_JOB_H

#include "aggregate/pending.h"
#include "aggregate/strategy.h"
#include "aggregate/undo.h"
#include "history.h"

/* What is needed for as long as a stream, or an input, is aggregated. */
struct job {
	struct aggregate *a;
	struct store *s;		/* NULL: a filter */
	const char *stream;
	/* a stream */
	struct buf cursor_path, running_path, undo_path, seen_path;
	uint64_t goal;			/* covered lines up to which parts are given, due or not */
	size_t limit;			/* events that the model could take at once; 0: not known */
	struct undo undo;		/* what was there before the first part */
	bool part;			/* a part was done */
	bool denied;			/* may_call said no */
	/* an input */
	const struct pending *input;
	struct text existing;		/* without a store: what memory is */
	struct buf *out;		/* without a store: what it then is */
};

void job_init(struct job *j, struct aggregate *a, struct store *s, const char *stream);
void job_release(struct job *j);

/*
 * Calls fn until it gives 0 (1: once more), again a few times when others were faster (ERR_CONFLICT, in the end ERR_BUSY).
 * A run that was begun and did not end is told as failed; so is, with `tells`, a failure before it.
 */
typedef int job_fn(struct job *j, struct err *e);
int job_repeat(struct job *j, job_fn *fn, bool tells, struct err *e);
/* The same under the lock of the stream, and of the memory that the strategy changes. */
int job_locked(struct job *j, job_fn *fn, bool tells, struct err *e);

/* What came since the cursor, all of it or as much as the model can take: 1 when a part was given and there is more. */
int job_step(struct job *j, struct err *e);

/* ERR_NOINPUT when there is no such stream (any more). st is of its log. */
int job_has_stream(struct job *j, struct store_stat *st, struct err *e);

/* ---- an aggregation (strategy.h) ---- */

#define AGGREGATION_INIT(j, name) { .a = (j)->a, .store = (j)->s, .stream = (j)->stream, .id = (name), .existing = BUF_INIT, \
	.output = BUF_INIT, .use = UPKEEP_USE_INIT }
void aggregation_release(struct aggregation *g);

/* The operations that write its output and keep the old version of it: at most this many, into ops. h is empty before, and owns paths. */
#define OUTPUT_OPS (HISTORY_OPS + 4)
int aggregation_ops(const struct aggregation *g, struct history *h, struct store_op *ops, size_t *n, struct err *e);

#endif

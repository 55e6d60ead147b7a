/*
 * What compaction and aggregation share: asking a model through ag2-ask as a child, telling how it went (lifecycle events
 * on a descriptor, the last of each kind in the store), and what it cost.
 */
#ifndef AG2_UPKEEP_H
#define AG2_UPKEEP_H

#include "event/build.h"
#include "store/store.h"

/* ---- asking a model ---- */

#define UPKEEP_ANSWER_MAX (16u << 20)	/* bytes of what ag2-ask may print */

struct upkeep_model {
	const char *ask;		/* the program ag2-ask: a path, or a name that is looked up in PATH */
	const char *model;		/* PROVIDER:MODEL; NULL: ag2-ask finds it (the agent file of AG2_CONFIG in env, AG2_MODEL) */
	const char *part;		/* which model of the agent file: "compact", "aggregate:0", ...; NULL: the agent's */
	const char *const *env;		/* what it is told, see struct run; may be NULL */
	const char *cwd;		/* may be NULL */
};

/* What the calls of one run cost together. */
struct upkeep_use {
	uint64_t calls;			/* that were answered and came with a usage: what AG2 calls llm_calls */
	bool known;			/* a usage came */
	struct usage total;
	struct buf lines;		/* a UsageEvent line, with newline, for each usage: they belong into the log */
};
#define UPKEEP_USE_INIT { .total = USAGE_NONE, .lines = BUF_INIT }
void upkeep_use_release(struct upkeep_use *use);

/*
 * Sends prompt as one request and appends the text of the answer, without the blanks around it, to answer; use grows by
 * what it cost (also where the answer is no good). kind is that of the UsageEvents: "compaction", "aggregation".
 *
 * An answer that is no good is ERR_UNAVAIL and says which: empty, blank or null, refused, cut off, or calls of tools that
 * nobody offered. ERR_UNAVAIL, ERR_BUSY, ERR_PERM, ERR_CONFIG, ERR_DATA, ...: what ag2-ask failed with, in its words.
 */
int upkeep_ask(const struct upkeep_model *m, const char *kind, struct text prompt, struct buf *answer, struct upkeep_use *use,
    struct err *e);

/* Whether it failed because the prompt was more than the model takes: a smaller one may do. */
bool upkeep_too_long(const struct err *e);
/* Whether it failed because the server is not there: another prompt would fare no better. */
bool upkeep_unreachable(const struct err *e);

/* ---- telling how it went ---- */

/*
 * One run. Exactly one end is told for a start: upkeep_done, or upkeep_failed. Without a start nothing is told but a
 * failure before it. Nothing here fails: a status that the store does not take is not kept.
 */
struct upkeep_run {
	const char *what;		/* "Compaction", "Aggregation" */
	const char *agent, *strategy;	/* as AG2's events name them: "SummarizeCompact" */
	int status_fd;			/* below 0: none */
	struct store *store;		/* where the last events are kept; NULL: nowhere */
	const char *stream;
	bool started;
	struct buf line, path;		/* of the end; private */
};

void upkeep_started(struct upkeep_run *r, uint64_t events);
/* Makes the Completed event. It is told by upkeep_done, once what it tells is true. */
void upkeep_compacted(struct upkeep_run *r, uint64_t before, uint64_t after, const struct upkeep_use *use);
void upkeep_aggregated(struct upkeep_run *r, uint64_t events, const struct upkeep_use *use);
/* The write of that event into the store, to be part of the commit that it tells of. Valid until the next call here. */
struct store_op upkeep_op(struct upkeep_run *r);
void upkeep_done(struct upkeep_run *r);
void upkeep_failed(struct upkeep_run *r, const struct err *why);
void upkeep_run_release(struct upkeep_run *r);

/* A log that could not be written (an EventLogFailed event). */
void upkeep_log_failed(int status_fd, struct store *s, const char *stream, const char *agent, const struct err *why);

/* The lock under which the log of a stream is compacted; ERR_BUSY at once when another holds it. */
int upkeep_compaction_lock(struct store *s, const char *stream, struct store_lock **lock, struct err *e);

/* ---- what is known of a stream ---- */

/*
 * The last events of a stream, one file each: /.ag2/status/STREAM/TYPE, TYPE being CompactionStarted and so on. An event
 * that is not there has a time below 0.
 */
struct upkeep_event {
	double time;		/* seconds since the epoch */
	char *error;		/* of a failure; else NULL */
};
enum upkeep_end { UPKEEP_STARTED, UPKEEP_COMPLETED, UPKEEP_FAILED };
struct upkeep_status {
	struct upkeep_event compaction[3], aggregation[3];	/* by enum upkeep_end */
	struct upkeep_event log_failed;
};
int upkeep_status_read(struct store *s, const char *stream, struct upkeep_status *st, struct err *e);
void upkeep_status_release(struct upkeep_status *st);
#define UPKEEP_STATUS_DIR "/.ag2/status"

#endif

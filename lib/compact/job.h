/* What the files of lib/compact share. */
#ifndef AG2_COMPACT_JOB_H
#define AG2_COMPACT_JOB_H

#include "compact/compact.h"

/* ---- a history that can be read several times ---- */

struct source {
	const char *name;
	enum jsonl_bad on_bad;
	struct store *store;		/* a log; or */
	char *path;
	int fd;				/* a file */
	uint64_t size, version;		/* of the log when it was read first */
	uint64_t bad;			/* bad lines met by the first reading; later ones are silent */
	bool again;
	bool held;			/* the log is one version of it until source_let_go; then each reading opens it */
	/* an open reading */
	struct store_file *file;
	uint64_t at, end;
	struct jsonl lines;
};

int source_of_log(struct source *in, struct store *s, const char *stream, enum jsonl_bad on_bad, struct err *e);
/* All of fd, copied into a temporary file unless it is a file that can be read again. */
int source_of_fd(struct source *in, int fd, const char *name, enum jsonl_bad on_bad, const char *tmpdir, struct err *e);
void source_release(struct source *in);

/* A reading of the lines that begin in [from, to); number is that of the first one, 0 when it is not known. */
int source_begin(struct source *in, uint64_t from, uint64_t to, uint64_t number, struct err *e);
int source_next(struct source *in, struct event *ev, struct err *e);
int source_bad(struct source *in, const struct event *ev, const struct err *why, struct err *e);	/* as jsonl_bad */
void source_end(struct source *in);

/* To be called before the store is changed, or anybody waited for. */
void source_let_go(struct source *in);
int source_read(struct source *in, uint64_t offset, uint64_t len, struct buf *out, struct err *e);
int source_sha1(struct source *in, uint64_t upto, unsigned char sum[20], struct err *e);

/* ---- the cut ---- */

/* A line before the cut that stays in front. */
struct kept {
	uint64_t offset, len;		/* in the history, with its newline where it has one */
	uint64_t head_at;		/* where it is in the new head */
	bool prompt, conversational;
};

struct cut {
	uint64_t lines, events;		/* in the whole history: good lines, conversational ones */
	struct trigger_count count;	/* of the whole history */
	bool due;			/* the trigger is exceeded, or not set */
	uint64_t at;			/* where what stays begins; 0: there is nothing to cut */
	uint64_t lines_before, events_before, summaries_before;	/* the cut */
	struct kept *kept;
	size_t nkept, kept_cap;
	uint64_t kept_events;
};

/* One reading of the history and, when it is due, one of its tail. Target 0 only counts. Memory: the tail, and the calls that wait. */
int cut_find(struct source *in, long target, const struct trigger *trigger, bool prompts_stay, struct cut *out, struct err *e);
void cut_release(struct cut *cut);
void cut_keep(struct cut *cut, const struct kept *k);

/* ---- a run ---- */

struct job {
	struct compact *c;
	struct source in;
	struct cut cut;
	struct buf head;		/* the lines that stand for what goes: summary, usage, calls that wait */
	bool filter;			/* there is no log that is changed: Prompt lines stay in front */
	uint64_t usage_at, usage_len;	/* the usage events in it */
	uint64_t prompts_len;		/* the Prompt lines at its begin */
	uint64_t head_lines;		/* events in it, usage not counted */
	bool hashed;			/* sha1 is that of all before the cut when it was read */
	unsigned char sha1[20];
	struct upkeep_use use;
};

struct compact_strategy {
	const char *name, *class_name;	/* AG2's in events */
	bool folds;			/* summaries before the cut live on in the new one: they alone are nothing to compact */
	bool slow;			/* asks or runs others: the log may be changed meanwhile */
	/* Makes head. NULL: there is nothing to make. */
	int (*make)(struct job *j, struct err *e);
	/* Instead of cutting by target and make: reads, calls job_start, fills cut and head; cut.at 0: nothing goes. */
	int (*run)(struct job *j, struct err *e);
};

extern const struct compact_strategy compact_tail_window, compact_summarize, compact_exec;

/*
 * The history was read up to `upto`, where the cut is or may be: hashes it where that is asked for, lets go of it, and tells
 * the start. What follows may take its time.
 */
int job_start(struct job *j, uint64_t upto, struct err *e);
/* A new temporary file without a name; -1. */
int compact_tmpfile(const char *dir, struct err *e);
/* What it takes to put a segment of that length back where the log begins with j's head now; alike: see stream_undo_head. */
void undo_record(struct buf *out, const struct job *j, uint64_t segment_len, bool alike);

#endif

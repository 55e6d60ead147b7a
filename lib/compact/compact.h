/*
 * Compaction: the head of a history goes, what stays can stand alone. A strategy is one file, here in compact.c's table and
 * by its name in strategy.c's.
 *
 * The cut is the same for all strategies with a target: the last `target` conversational events stay, telemetry between
 * them rides along, then the cut rises until both sides are whole (policy/replay.h). Calls before the cut that wait for
 * their results stay in front, verbatim, with what belongs to them: the newest `target` of them, older ones are dead and go.
 */
#ifndef AG2_COMPACT_H
#define AG2_COMPACT_H

#include "config.h"
#include "event/jsonl.h"
#include "store/store.h"
#include "trigger.h"
#include "upkeep.h"

struct compact_strategy;		/* private: see compact/job.h */

struct compact_spec {
	const struct compact_strategy *strategy;
	struct strategy_choice choice;
	char *cwd;			/* where a command runs; NULL: where we are */
	char *prompt;			/* template of summarize, with {events} and {existing}; NULL: the default one */
};

/* "tail-window:100", "summarize:target=50", "exec:CMD". ERR_USAGE. */
int compact_spec_parse(struct compact_spec *spec, const char *text, struct err *e);
/* The same from an agent file's `compact`, whose strategy is not NULL. */
void compact_spec_copy(struct compact_spec *spec, const struct agent *a);
void compact_spec_release(struct compact_spec *spec);

struct compact {
	struct compact_spec spec;
	struct trigger trigger;		/* not set: it acts */
	struct upkeep_model model;	/* of summarize */
	const char *const *env;		/* of exec; may be NULL */
	const char *tmpdir;		/* NULL: /var/tmp or /tmp */
	enum jsonl_bad on_bad;
	struct upkeep_run run;		/* agent and status_fd by the caller */
	/* out */
	uint64_t bad;			/* bad lines met */
};

/*
 * Compacts the log of a stream: the dropped lines become its next segment and leave the log in one commit, together with
 * the usage event and the Completed event; what was appended since the log was read stays behind the rest. 0 also when the
 * trigger is not exceeded or there is nothing that could go: nothing is told and no model asked then.
 *
 * ERR_BUSY: another compaction of the stream is running, or the log was rewritten meanwhile. ERR_NOINPUT: no such stream.
 * The model's and the command's failures; after each the log is as it was.
 */
int compact_stream(struct compact *c, struct store *s, const char *stream, struct err *e);

/*
 * The same as a filter: gives the lines that stay, in order. From the log of a stream, which is not changed (fd below 0),
 * or from a descriptor, where Prompt lines stay in front.
 */
typedef int compact_line_fn(void *arg, const char *line, size_t len, struct err *e);
int compact_filter_stream(struct compact *c, struct store *s, const char *stream, compact_line_fn *put, void *arg, struct err *e);
int compact_filter(struct compact *c, int fd, const char *name, compact_line_fn *put, void *arg, struct err *e);

/*
 * Puts the last segment back in front of the log, in one commit; a usage event of that compaction stays. ERR_ABSENT: there
 * is no segment. ERR_CONFLICT: the log does not begin any more with what that compaction left. Segments that AG2 wrote are
 * put back too: a CompactionSummary at the head of the log is then taken for theirs.
 */
int compact_undo(struct store *s, const char *stream, struct err *e);

#endif

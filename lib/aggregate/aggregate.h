/*
 * Aggregation: what an agent learns from a stream goes into its memory. A strategy is one file, in spec.c's table and by its
 * name in strategy.c's.
 *
 * A run gives the strategy the events that came since its last success on the stream (see cursor.h). What it made, the old
 * version of that, the cursor, and the status are one commit that expects what was read to be as it was: so each event
 * counts once, whatever dies and whoever runs beside.
 */
#ifndef AG2_AGGREGATE_H
#define AG2_AGGREGATE_H

#include "config.h"
#include "event/jsonl.h"
#include "store/store.h"
#include "stream.h"
#include "upkeep.h"

struct aggregate_strategy;		/* private: see aggregate/strategy.h */

struct aggregate_spec {
	const struct aggregate_strategy *strategy;
	struct strategy_choice choice;
	char *cwd;			/* where a command runs; NULL: where we are */
	char *prompt;			/* template with {existing} and {events}; NULL: the default one */
	char *key;			/* names the cursor */
};

/* "working-memory", "exec:CMD". ERR_USAGE names an unknown one with the nearest known. */
int aggregate_spec_parse(struct aggregate_spec *spec, const char *text, struct err *e);
/* The same from entry i of an agent file's list. */
void aggregate_spec_copy(struct aggregate_spec *spec, const struct agent *a, size_t i);
/* Whether a spec is of the kind of the file's entry i: the same strategy (and command). */
bool aggregate_spec_is(const struct aggregate_spec *spec, const struct agent *a, size_t i);
void aggregate_spec_release(struct aggregate_spec *spec);

/* Counted since the last success on the stream: requests; requests, responses, calls and results containers. */
struct aggregate_trigger {
	bool anything;			/* due when anything is new */
	long turns, events;		/* 0 or below: off */
};
struct aggregate_trigger aggregate_trigger_of(const struct upkeep *u);
bool aggregate_trigger_is_set(const struct aggregate_trigger *t);	/* else it is never due */

/* What came in a stream since the last success: conversational events, and which of them the triggers count. */
struct news {
	uint64_t total, turns, counted;
};
bool aggregate_trigger_is_met(const struct aggregate_trigger *t, const struct news *n);

struct aggregate {
	struct aggregate_spec spec;
	struct aggregate_trigger trigger;
	struct upkeep_model model;
	const char *const *env;		/* of exec; may be NULL */
	enum jsonl_bad on_bad;
	bool all_events;		/* give the whole current log, as AG2 does */
	bool keep_all;			/* conversation-summary: leave the earlier episode, and do not show it */
	int64_t wait_ms;		/* for another that aggregates the stream; 0: ERR_BUSY at once */
	bool (*may_call)(void *arg);	/* asked before each call of a model or command; NULL: it may */
	void *arg;
	struct upkeep_run run;		/* agent and status_fd by the caller; the rest is private */
	/* out */
	bool ran;			/* something was due (or is new: mark) */
	bool held;			/* ERR_BUSY because another aggregates the stream */
	uint64_t bad;			/* bad lines met */
};

/*
 * Aggregates a stream: 0 also when nothing is due. What is too much for the model is given in parts, each of which counts
 * when it is done. ERR_BUSY: another is at work, or memory is changed again and again meanwhile; else the failures of the
 * model, the command, the store. Memory and cursor are then as they were, or at the last part that was done.
 */
int aggregate_stream(struct aggregate *a, struct store *s, const char *stream, struct err *e);

/*
 * What a turn without a log gives: these events, once, without a cursor. Nothing is kept of how it went; stream is the
 * turn's own name, for its episode.
 */
int aggregate_events(struct aggregate *a, struct store *s, const char *stream, const struct event_list *events, struct err *e);

/* Without a store: the events of an input; appends what the memory then is to out. existing is what it was. */
int aggregate_filter(struct aggregate *a, int fd, const char *name, struct text existing, struct buf *out, struct err *e);

/* Moves the cursor to the end of the stream, nothing being given to anyone; forgets the cursor; takes back the last run. */
int aggregate_mark(struct aggregate *a, struct store *s, const char *stream, struct err *e);
int aggregate_reset(struct aggregate *a, struct store *s, const char *stream, struct err *e);
/* ERR_ABSENT when there is nothing (more) to take back, ERR_DATA when its output was changed since. */
int aggregate_undo(struct aggregate *a, struct store *s, const char *stream, struct err *e);

/*
 * What is new in a stream whose log is at this version, counted without locks. 1: that cannot be told, for it was changed
 * meanwhile, or a command that was begun is to be given the same again.
 */
int aggregate_look(const struct aggregate *a, struct store *s, const char *stream, uint64_t version, const struct stream_index *segments,
    struct news *n, struct err *e);

#endif

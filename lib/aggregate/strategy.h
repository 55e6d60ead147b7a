/* What the files of lib/aggregate share. */
#ifndef AG2_AGGREGATE_STRATEGY_H
#define AG2_AGGREGATE_STRATEGY_H

#include "aggregate/aggregate.h"

#define EXISTING_MAX (16u << 20)

/* One run over some events. */
struct aggregation {
	const struct aggregate *a;
	struct store *store;		/* NULL: a filter */
	const char *stream;
	struct text events;		/* rendered, a newline between two */
	struct text lines;		/* the same as they are */
	const char *id;			/* the same for a repetition of the run */
	/* what is there, filled by look */
	struct buf existing;
	char *earlier;			/* the file that has it; NULL: none */
	uint64_t version;		/* of that file */
	/* what is made */
	char *path;			/* where output goes: earlier's path, or a new one; NULL: nowhere */
	struct buf output;
	struct upkeep_use use;
};

struct aggregate_strategy {
	const char *name, *class_name;	/* AG2's in events */
	bool external;			/* its output is not ours: at least once, not exactly once */
	const char *memory;		/* what all streams share, and one run at a time changes; NULL: nothing */
	/* Fills existing, earlier, version, path from the store. NULL: nothing is there. */
	int (*look)(struct aggregation *g, struct err *e);
	int (*make)(struct aggregation *g, struct err *e);
};

extern const struct aggregate_strategy aggregate_working_memory, aggregate_conversation_summary, aggregate_exec;

/* Asks the model with the template filled; the answer becomes output. */
int aggregation_ask(struct aggregation *g, const char *template, struct text existing, struct err *e);
/* Reads a file into existing: version 0 and earlier NULL when it is not there. */
int aggregation_read(struct aggregation *g, const char *path, struct err *e);

#endif

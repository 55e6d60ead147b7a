/* What ag2-aggregate is to do, and doing it to every stream. */
#ifndef AG2_AGGREGATE_ALL_H
#define AG2_AGGREGATE_ALL_H

#include "../upkeep_cmd.h"
#include "aggregate/aggregate.h"

struct aggregates {
	struct upkeep_cmd cmd;
	struct aggregate *items;	/* one for each strategy */
	char **parts;			/* which model of the agent file each has */
	size_t n;
	const char *url, *model;	/* of -s and -m */
	long jobs, max_calls;		/* of --all; below 0: not given */
	double idle;
	bool whole;			/* also streams with nothing new */
	/* Does item i to a stream. */
	int (*work)(struct aggregates *p, size_t i, struct store *s, const char *stream, struct err *e);
};

void aggregates_add(struct aggregates *p);		/* room for one more */
/* Tells the children which store and stream it is about; both may be NULL. */
void aggregates_stream(struct aggregates *p, struct store *s, const char *stream);
void aggregates_release(struct aggregates *p);

/*
 * Every stream, `jobs` at once. A stream that another works on is passed over. Gives the exit status: 75, silently, when
 * another does this on the same host; 1 with exit_code when nothing was due.
 */
int all_streams(struct aggregates *p, bool exit_code);

#endif

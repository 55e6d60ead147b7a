/*
 * Searching a lot of bytes: a sieve finds the places in them where a match can be, and only the lines there are read. Where there
 * is more than a little, several processors look at parts of it; what is found comes out in the order of the input.
 */
#ifndef AG2_STORE_SEARCH_H
#define AG2_STORE_SEARCH_H

#include "command.h"

#include "event/jsonl.h"

struct search_options {
	const char *pattern;
	unsigned flags;			/* MATCH_… */
	double since, until;		/* of events; infinite: any */
	bool names_only, nul, json;
	bool single;			/* there is one file, whose name need not be said */
};

struct search;

/* NULL with ERR_USAGE when the pattern is none. o is borrowed, and may be changed until the first input. */
struct search *search_new(const struct search_options *o, struct err *e);

/* The next input, a path's ("/…") or a stream's; events: its lines are events, and what they say is searched. On failure the program ends, with what was found before. */
void search_input(struct search *g, const char *label, bool events, jsonl_read_fn *read, void *arg);

/* Prints what was found so far, and ends the program as fail does. */
noreturn void search_fail(struct search *g, const struct err *e);

/* Waits for what is under way, prints it and frees g; whether there was a match. */
bool search_end(struct search *g);

#endif

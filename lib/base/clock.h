/* Time for new events: the clock's, or the one that tests set. */
#ifndef AG2_CLOCK_H
#define AG2_CLOCK_H

#include "base/buf.h"
#include "base/err.h"

/*
 * Sets a clock of our own: "T" or "T+STEP", seconds as decimal numbers; each clock_now then gives T, T+STEP, ... A NULL
 * text leaves the real clock. ERR_USAGE when it is no number.
 */
int clock_set(const char *text, struct err *e);
double clock_now(void);			/* seconds since the epoch, to microseconds */
double clock_monotonic(void);		/* seconds, for waiting; never set */

/* Appends a fresh random UUID (version 4). With clock_set, UUIDs stay random. */
int uuid_add(struct buf *b, struct err *e);

#endif

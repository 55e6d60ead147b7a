/*
 * Frames that are alike. Of a stream nearly every frame is the one before it with another piece of text (or of a thought, or of a call's arguments), and with members
 * that do not matter: such a one need not be taken apart again, for what it does is known but for the text. The frame that was
 * learned is compared byte by byte, the values in its gaps are read by the rules of json_parse_piece(), so that a frame that
 * parsing would refuse, or that could do anything else, fits never.
 */
#ifndef AG2_ALIKE_H
#define AG2_ALIKE_H

#include "base/buf.h"
#include "event/build.h"

#include <stdint.h>

#define ALIKE_MEMBERS 4

/* Paths of strings and numbers in a frame: names, and places in lists from 0, with dots between: choices.0.delta.content. */
struct alike_members {
	const char *text;			/* the piece of text */
	const char *unread[ALIKE_MEMBERS];	/* what a provider does not look at */
	const char *counts[ALIKE_MEMBERS];	/* numbers of which the last one counts */
};

struct alike {
	struct buf frame, event;	/* the frame that was learned, and its event's name */
	struct alike_gap {
		enum { GAP_TEXT, GAP_UNREAD, GAP_COUNT, GAP_NUMBER } what;
		bool string;		/* else a number */
		size_t from, to;	/* in frame */
	} gaps[2 * ALIKE_MEMBERS + 2];
	size_t gaps_n;
	bool proven;			/* by a second one: its text stands where it was looked for */
	struct buf said;		/* the text of the frame that was learned */
	/* Of the frame that fitted last: */
	struct text text;		/* in it, or in scratch */
	int64_t number;
	struct buf last;		/* the frame without its text; empty where nothing in it counts */
	struct buf scratch, ignored;
};
#define ALIKE_INIT { .frame = BUF_INIT, .event = BUF_INIT, .said = BUF_INIT, .last = BUF_INIT, .scratch = BUF_INIT, \
	.ignored = BUF_INIT }
void alike_release(struct alike *a);

/*
 * A frame that was parsed, and did nothing but give this text. `number` (NULL: none) is the path of an integer that rises
 * from frame to frame. It takes two of them, with different texts, until others fit. False when its text is not at m's place: nothing is learned.
 */
bool alike_learn(struct alike *a, const struct alike_members *m, const char *number, const char *event, const char *data, size_t len,
    const char *text, size_t text_len);

/* What comes next may mean something else by the same bytes. */
void alike_forget(struct alike *a);

/*
 * Whether the frame is like the one that was learned: then its text is in a->text, its number in a->number (above `below`), and a->last
 * holds what counts.
 */
bool alike_fits(struct alike *a, const char *event, const char *data, size_t len, int64_t below);

#endif

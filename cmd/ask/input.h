/* The stream that a filter gets: prompts, then events. */
#ifndef AG2_ASK_INPUT_H
#define AG2_ASK_INPUT_H

#include "event/jsonl.h"
#include "turn.h"

struct input {
	struct prompt *prompts;
	size_t prompts_n, prompts_cap, bytes;
	struct event_list events;
	uint64_t bad;		/* lines that are a failure */
};

/* All of standard input; what is wrong with it beyond bad lines ends the program. */
void read_stream(struct input *in, enum jsonl_bad on_bad);
void input_release(struct input *in);

#endif

/*
 * One turn of an agent: the request into the log, then for each model call the policies on the whole history, the halt
 * check, the call, its events into the log, the tools; until there is an answer.
 */
#ifndef AG2_TURN_H
#define AG2_TURN_H

#include "config.h"

struct turn {
	const struct agent *agent;		/* model, prompt, assembly, tools; never changed */
	struct store *store;			/* NULL as a filter */
	const char *stream;			/* NULL: the history is `history` alone (filter, write_event_log: false) */
	struct event_list history;		/* without a stream: what came on stdin, grows by what the turn makes */
	const struct text *prompts;		/* Prompt lines that came on stdin (filter) */
	size_t prompts_n;
	const char *text;			/* the request; NULL: an unanswered one is asked again */
	size_t text_len;
	struct tool *tools;			/* declared */
	size_t tools_n;
	struct tool_env env;
	bool as_ag2, stream_answer;
	long max_rounds;
	/* What the caller sees as it happens; any may be NULL. */
	int (*on_text)(void *arg, const char *text, size_t len, struct err *e);
	int (*on_event)(void *arg, const char *line, size_t len, struct err *e);	/* each new event line */
	void *arg;
	/* out */
	struct buf answer;			/* the last response's text */
	bool halted, log_failed;
	struct err log_error;
};

/*
 * Runs it. 0 with an answer (or halted). -1: ERR_ABSENT when there is nothing to ask (answered already), the model's
 * errors (see llm_call), ERR_BUSY when the stream's turn is held elsewhere. After an error the request is in the log and nothing half is.
 */
int turn_run(struct turn *t, struct err *e);

/* The request body of the first model call (ag2-ask -n); nothing is sent or written. */
int turn_body(struct turn *t, struct buf *out, struct err *e);

#endif

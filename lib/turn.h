/*
 * One turn of an agent: the request into the log, then for each model call the policies on the whole history, the halt
 * check, the call, its events into the log, the tools; until there is an answer.
 *
 * What is logged when: the request before the model is asked; a response with its usage and the announcements of its
 * calls, in one append, when the provider has said that it is complete and before a tool starts; each tool's result when
 * it ends; the container of all results after the last. So whatever ends the process, nothing in the log is half, and
 * the next turn (or this one again) goes on from what is there. The log is read again before each call, for tools and
 * watchers may have appended to it.
 */
#ifndef AG2_TURN_H
#define AG2_TURN_H

#include "config.h"

#define TURN_ROUNDS 50			/* model calls of a turn, unless told otherwise */
#define TURN_BYTES_MAX (128u << 20)	/* bytes of the events and prompts of one call */

struct turn {
	const struct agent *agent;		/* model, prompt, assembly, bootstrap; never changed */
	struct store *store;			/* NULL: none (filter) */
	const char *stream;			/* NULL: the history is `history` alone (filter, write_event_log: false) */
	struct event_list history;		/* without a stream: what came on stdin, grows by what the turn makes */
	const struct prompt *prompts;		/* Prompt lines that came on stdin; the agent's own comes before them */
	size_t prompts_n;
	const char *text;			/* the request */
	size_t text_len;
	const struct media *media;		/* files that go with it; without text and media an unanswered request is asked again */
	size_t media_n;
	const struct tool *tools;		/* declared */
	size_t tools_n;
	struct tool_env env;			/* of tools */
	const char *const *commands_env;	/* for policies, exec: models and the bootstrap, as struct run has it */
	enum { LAYOUT_AS_MARKED, LAYOUT_AG2, LAYOUT_CACHE } layout;	/* prompts at the end: those that came so; none; also the policies' */
	bool as_ag2;				/* AG2's layout, too */
	bool stream_answer;			/* ask for the answer in pieces, which on_text then gets as they arrive */
	/* JSON Schema that the answer must fit, checked here, too; one that does not is asked for once more, in a request that says
	 * why. Its text is given to on_text only when it fits. NULL: none. */
	struct json_object *schema;
	long max_rounds;			/* 0: TURN_ROUNDS */
	/* What the caller sees as it happens; either may be NULL. Non-zero (e set) ends the turn. on_text
	 * gets every response's text, also what comes with tool calls (each then a line of its own). */
	int (*on_text)(void *arg, const char *text, size_t len, struct err *e);
	int (*on_event)(void *arg, const char *line, size_t len, struct err *e);	/* each new event line, without newline */
	/* Gets each request, with its body, before it is sent (turn_body: instead). Non-zero (e set) ends the turn. */
	int (*on_request)(void *arg, const struct llm_request *r, const struct buf *body, struct err *e);
	/*
	 * Told before each model call what became of the history (policy/explain.h); NULL: nobody asks.
	 */
	void (*on_explain)(void *arg, const struct explain *x);
	void *arg;
	/* out */
	struct buf answer;			/* the last response's text */
	char *finish_reason;			/* and why it ended; NULL: nobody said */
	bool halted;				/* the answer is "HALTED: reason" */
	bool log_failed;			/* something is not in the log: log_error says why. The turn went on without */
	struct err log_error;
	/* private */
	struct buf unsaved;			/* lines that are part of the history and not in the log */
	char last_byte;				/* of the text given out */
	bool repaired;				/* the answer was asked for once more */
	long round;				/* model calls before this one */
};

/*
 * Runs it. 0 with an answer (or halted). -1: ERR_ABSENT when there is nothing to ask (answered already), ERR_NOINPUT when
 * nothing is asked and there is no such stream, ERR_DATA when the request is longer than a line may be, ERR_BUSY when another turn of this stream runs, ERR_UNAVAIL also when the model still
 * wants tools after max_rounds calls, else the errors of the model (llm_call), the store and the policies.
 */
int turn_run(struct turn *t, struct err *e);

/*
 * The request body of the first model call (ag2-ask -n); nothing is sent or written. When a HaltEvent forbids the call,
 * `halted` is set, `answer` filled and out left empty.
 */
int turn_body(struct turn *t, struct buf *out, struct err *e);

void turn_release(struct turn *t);	/* history, answer and what is private */

#endif

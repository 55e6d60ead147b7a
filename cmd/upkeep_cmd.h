/* What ag2-compact and ag2-aggregate share: the agent file, ag2-ask as their child, what children are told. */
#ifndef AG2_UPKEEP_CMD_H
#define AG2_UPKEEP_CMD_H

#include "cli.h"
#include "config.h"
#include "upkeep.h"

struct upkeep_cmd {
	struct agent agent;		/* of -c, or AG2's defaults */
	char *ask;			/* the program */
	char **env;			/* NAME=value for commands and ag2-ask, NULL-terminated; made by upkeep_cmd_env */
};

/* Reads the agent file (NULL: none) and finds ag2-ask. On failure the program ends. */
void upkeep_cmd_open(struct upkeep_cmd *c, const char *config);
void upkeep_cmd_release(struct upkeep_cmd *c);

/*
 * What commands (exec:) and ag2-ask are told: AG2_STORE, AG2_STREAM, AG2_NAME, AG2_CONFIG, and AG2_MODEL: model (of -m), else
 * that of the turn that runs us, else the agent file's, else it stays as it is. store and stream may be NULL. May be called
 * again for another stream.
 */
void upkeep_cmd_env(struct upkeep_cmd *c, const struct store *store, const char *stream, const char *model);

/* How to ask for this part ("agent", "compact", "aggregate:1"); model, of -m, may be NULL. Borrows c. */
struct upkeep_model upkeep_cmd_model(const struct upkeep_cmd *c, const char *model, const char *part);

/* For usage texts and completion, what is behind the options. */
void upkeep_cmd_strategies(enum strategy_job job);
void upkeep_cmd_complete(enum strategy_job job, const struct opt *table, int n, char **words);

/* Ends the program (64) unless fd is negative or an open descriptor, which is then not inherited. */
void upkeep_cmd_status_fd(const struct opts *o, long fd);

#endif

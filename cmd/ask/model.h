/* Whose model is asked: the agent file's, that of the command line, or that of the environment. */
#ifndef AG2_ASK_MODEL_H
#define AG2_ASK_MODEL_H

#include "base/opts.h"
#include "config.h"

/* What the command line says of it. */
struct model_options {
	const char *model, *base_url, *part;	/* -m, --base-url, --model-of; NULL */
	const char *cacert, *cert, *cert_key;	/* NULL: not given */
	double timeout, connect_timeout, first_byte_timeout, idle_timeout;	/* 0: not given */
	long retries;				/* below 0: not given */
	bool only;				/* of an agent file only the model is meant: the stream, with its prompts, comes from elsewhere */
};

/* The agent of the file, else (NULL) one that has nothing. On failure the program ends, as with those below. */
void read_agent(struct agent *a, const char *file, const struct model_options *o, const struct opts *usage);
/*
 * of_file: the file was named on the command line, so that its model comes before that of the environment, as that of a part
 * does. Limits come from the environment (AG2_TIMEOUT, ...) where they are not given.
 */
void choose_model(struct llm_config *c, const struct model_options *o, bool of_file);

#endif

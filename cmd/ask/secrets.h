/* The secrets of a model call: the API's key, and what unlocks the key of our certificate. */
#ifndef AG2_ASK_SECRETS_H
#define AG2_ASK_SECRETS_H

#include "llm/llm.h"

#define CERT_PASS_ENV "AG2_CERT_PASS"	/* where the file names nothing */

/*
 * Fills api_key and cert_pass, each from its command, else its file, else its variable. Where a command or file fails the
 * program ends: 77 for a file that others can read, 78. Before that the process is made one whose memory and environment
 * others of this user, a tool that a model calls among them, cannot look into, and of which no core is dumped.
 */
void secrets_find(struct llm_config *c);

/*
 * What a tool is to have instead of this setting ("NAME=value") of our environment: NULL when it may have it, else a name
 * alone, for none, or a setting without what is secret in it. The caller's.
 */
char *secrets_hidden(const char *setting);

#endif

/* Where the model's key comes from: a command, a file, or the environment. */
#ifndef AG2_ASK_KEY_H
#define AG2_ASK_KEY_H

#include "config.h"

/* Fills a->model.api_key, NULL where there is none. The program ends when what is configured gives no key. */
void find_key(struct agent *a);

#endif

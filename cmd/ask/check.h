/* What is wrong with an agent although its file is right. */
#ifndef AG2_ASK_CHECK_H
#define AG2_ASK_CHECK_H

#include "config.h"
#include "store/store.h"

/* Warns of each pair of policies of which the first cuts what the second adds to; how many there are. */
size_t check_order(struct agent *a);
/* Warns of compactions and aggregations that will never run, and triggers that start none; how many there are. */
size_t check_triggers(const struct agent *a);
/* Warns of alerts that wait in a stream when no policy delivers them; 1 then. */
size_t check_alerts(const struct agent *a, struct store *s, const char *stream);

#endif

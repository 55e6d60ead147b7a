/*
 * Looking through a whole store for what is not as it should be: the back end's own structures (store_check), then what lies in
 * it: lines of logs that are no events, segments that do not go on or that a compaction left behind, logs that are not what
 * upkeep has covered, what is kept about streams that are gone, an import that stopped.
 */
#ifndef AG2_FSCK_H
#define AG2_FSCK_H

#include "store/store.h"

/*
 * Calls fn for each finding, in the order in which they are found. Others may use the store meanwhile. With repair: store_check
 * says what is promised; lines that are no events move to /log/S.torn-N. -1 when it could not be looked through.
 */
int fsck(struct store *s, bool repair, store_finding_fn *fn, void *arg, struct err *e);

#endif

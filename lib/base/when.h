/* Points in time as people write them. */
#ifndef AG2_WHEN_H
#define AG2_WHEN_H

#include "base/err.h"

/*
 * Seconds since the epoch of: `2026-05-28`, `2026-05-28T10:20[:30[.5]]` (a blank for the T is good too) with `Z`, `+HH:MM` or nothing
 * for local time; `now`, `today`, `yesterday` (their beginning); `90s`, `30m`, `12h`, `7d`, `2w` (as long before now); `@SECONDS`.
 * A day stands for its beginning. ERR_USAGE names `what`.
 */
int parse_when(const char *text, const char *what, double now, double *out, struct err *e);

#endif

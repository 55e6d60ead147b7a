/* --compare: where a request begins to differ from an earlier one. Shared by ag2-assemble and ag2-ask. */
#ifndef AG2_CLI_COMPARE_H
#define AG2_CLI_COMPARE_H

#include "base/buf.h"

/*
 * Says on standard error the first byte at which `now` differs from `before`, the part of it in which that lies (a member, a
 * message, a line), and how many tokens of `chars` code points come from there on. `name` is what before is called.
 */
void compare_tell(const char *name, const struct buf *before, const struct buf *now, int chars);
/* The whole file, or the program ends. */
void compare_read(struct buf *out, const char *file);

#endif

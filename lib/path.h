/*
 * Store paths and stream ids.
 *
 * A store path is absolute, Unix-like and made of bytes: nothing is folded or normalised but slashes. `a//b/` is `/a/b`;
 * the empty path is `/`. Refused: a component `.` or `..`, a NUL, a component over 255 bytes, a path over 4096 bytes.
 */
#ifndef AG2_PATH_H
#define AG2_PATH_H

#include "base/buf.h"
#include "base/err.h"

#define PATH_COMPONENT_MAX 255
#define PATH_BYTES_MAX 4096

/* Puts the normalised form of the len bytes at path into out (which is reset first). ERR_DATA when it is refused. */
int path_normalise(struct buf *out, const char *path, size_t len, struct err *e);

/* Whether that is what it is already. */
bool path_is_normal(const char *path);

/* The same of len bytes that others have made, which may have a NUL in them: false for a path that no command can name. */
bool path_can_be(const char *path, size_t len);

/* The same of what is called `name`, which has no slash, in the directory `dir`. */
bool path_can_have(const char *dir, const char *name);

/* True when path is dir or lies below it; both normalised. Everything lies below "/". */
bool path_within(const char *path, const char *dir);

/* The part behind the last slash; "" for "/". Borrowed from path. */
const char *path_name(const char *path);

/* True for what ag2 keeps for itself: /.ag2 and everything below. path is normalised. */
bool path_private(const char *path);

/*
 * A stream id: 1-200 of [A-Za-z0-9._-], not starting with a dot, not containing `.dropped-` or `.torn-` (design of the
 * log's file names). ERR_USAGE otherwise.
 */
int stream_id_check(const char *id, struct err *e);

#endif

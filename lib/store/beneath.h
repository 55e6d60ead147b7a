/*
 * Opening what lies below a directory and nothing else, whatever symbolic links and concurrent renames do. Paths are store
 * paths ("/a/b"; "/" is the directory itself). A link is followed where all of its way stays below the directory
 * (openat2 with RESOLVE_BENEATH: relative links only); where the kernel or a seccomp filter has no openat2, no link is.
 */
#ifndef AG2_BENEATH_H
#define AG2_BENEATH_H

#include <stdbool.h>
#include <sys/stat.h>

/*
 * As openat(2), with O_CLOEXEC, O_NOCTTY and O_NONBLOCK. -1 with errno set. The descriptor may be of any type: a caller
 * that wants a file looks at fstat.
 */
int beneath_open(int root, const char *path, int flags, mode_t mode);

/* fstat of what path leads to. -1 with errno set. */
int beneath_stat(int root, const char *path, struct stat *st);

/* Whether errno, after one of these, says that nothing that a reader may see is at the path. */
bool beneath_absent(int error);

/*
 * Calls fn for everything below the directory at path that is no directory, in no order, links not followed, with its
 * store path and d_type. fn returning non-zero ends the walk, which returns that value; else 0. What cannot be opened or
 * goes away meanwhile is passed over, but for a directory that may not be read: fn is called for that with DT_DIR.
 * `except`, a store path, is left out with all below it (NULL: nothing is).
 */
typedef int beneath_fn(void *arg, const char *path, unsigned char type);
int beneath_walk(int root, const char *path, const char *except, beneath_fn *fn, void *arg);

#endif

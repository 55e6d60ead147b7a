/*
 * Named locks between the processes of one host, in one small file: an open-file-description lock (fcntl F_OFD_SETLK) on
 * one byte, at an offset made from the name. The kernel lets go of it when its holder dies, so there is nothing to clean
 * up and no time to live. Two names can share a byte (one chance in 2^62): they then only wait for each other.
 */
#ifndef AG2_LOCK_H
#define AG2_LOCK_H

#include "base/err.h"

#include <stdint.h>
#include <sys/stat.h>

struct rangelock;

/*
 * Takes the lock `name` in the file that dirfd and file name. When it is not there it is made, with the owner, as far as we may,
 * the group and the permissions of `like`, or as ours and 0600 where that is NULL. Waits up to wait_ms
 * (0 not at all, below 0 for ever), then ERR_BUSY. Release with rangelock_free. Not inherited across exec.
 */
int rangelock_new(struct rangelock **out, int dirfd, const char *file, const struct stat *like, const char *name, int64_t wait_ms, struct err *e);
void rangelock_free(struct rangelock *l);

#endif

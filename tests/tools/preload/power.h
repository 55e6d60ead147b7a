/*
 * The record that power.so makes of what a process does to files, and powercut reads. Numbers are the machine's own; a
 * record is this head, then `len` bytes: the data of a write, the text of a mark, or a name (two for a rename, each ended by NUL).
 */
#ifndef AG2_POWER_H
#define AG2_POWER_H

#include <stdint.h>

enum power_kind {
	POWER_MARK = 1,		/* what was written to standard output: an acknowledgement */
	POWER_WRITE,		/* ino, at; time: the file's modification time afterwards */
	POWER_TRUNCATE,		/* ino, at: the new length; time */
	POWER_TIME,		/* ino; time */
	POWER_SYNC,		/* ino: fsync of a file or a directory */
	POWER_DATASYNC,		/* ino: fdatasync */
	POWER_SYNC_ALL,		/* syncfs */
	POWER_CREATE,		/* dir, name: the new file ino */
	POWER_MKDIR,		/* the same for a directory */
	POWER_LINK,		/* dir, name: one more name of ino */
	POWER_UNLINK,		/* dir, name (also of a directory) */
	POWER_RENAME,		/* dir, dir2, both names */
};

struct power_record {
	uint32_t kind, len;
	uint64_t ino, dir, dir2;
	uint64_t at;
	int64_t time;		/* nanoseconds */
};

#endif

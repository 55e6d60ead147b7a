/*
 * The answer to one question about a database, read from its file. Opening it with SQLite means parsing every table, view
 * and trigger in it, which takes several times as long as starting a program; a shell that asks for one path after the
 * other would do little else.
 *
 * It is sound because it is easily content with not knowing: only a database with exactly the schema that is given, all
 * of it on the first page, in whose log mode nobody has a log, and only under the lock that every user of it takes.
 */
#ifndef AG2_SQLITE_PEEK_H
#define AG2_SQLITE_PEEK_H

#include "store/store.h"

/* A row of the table `files`. */
struct peek_row {
	int64_t id, base, size, run, version;
	double mtime;
};

/*
 * 1 when there is a file at path (row is filled), 2 when there is a directory, 0 when there is neither, -1 when it has to
 * be asked in the usual way. sql are the n statements of the schema in the order of their creation, the table `files` the
 * first of them, application and layout the numbers in the header. The process must have no SQLite connection to the
 * file: closing this descriptor would drop its locks.
 */
int sqlite_peek(const char *file, const char *const *sql, size_t n, uint32_t application, uint32_t layout, const char *path,
    struct peek_row *row);

#endif

#include "store/sqlite.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#define LOOK_MS	40

/* What changes when the database does. */
struct sign {
	int64_t version;	/* of SQLite, for what others commit; 0 where it cannot be asked */
	struct timespec changed[2];
	off_t size[2];
	ino_t ino;
};

struct sqlite_watch {
	struct sqlite_store *s;
	struct sign sign;
	char *log;
	char *path;
};

/* The sign's ino is 0 when there is no database. */
static void
look_for_sign(struct sqlite_watch *w, struct sign *sign)
{
	const char *const files[] = { w->s->file, w->log };
	sqlite3_stmt *st;
	struct stat found;
	size_t i;

	memset(sign, 0, sizeof(*sign));
	for (i = 0; i < 2; i++) {
		if (stat(files[i], &found) < 0)
			continue;
		sign->changed[i] = found.st_mtim;
		sign->size[i] = found.st_size;
		if (i == 0)
			sign->ino = found.st_ino;
	}
	if (w->s->db != NULL && !w->s->frozen && sqlite3_prepare_v2(w->s->db, "PRAGMA data_version", -1, &st, NULL) == SQLITE_OK) {
		if (sqlite3_step(st) == SQLITE_ROW)
			sign->version = sqlite3_column_int64(st, 0);
		sqlite3_finalize(st);
	}
}

void
sqlite_watch_close(void *watch)
{
	struct sqlite_watch *w = watch;

	free(w->log);
	free(w->path);
	free(w);
}

int
sqlite_watch(void *self, const char *path, void **watch, struct err *e)
{
	struct sqlite_watch *w = xcalloc(1, sizeof(*w));

	w->s = self;
	w->log = xasprintf("%s-wal", w->s->file);
	w->path = xstrdup(path);
	look_for_sign(w, &w->sign);
	*watch = w;
	return 0;
}

int
sqlite_watch_wait(void *watch, int64_t wait_ms, store_hint_fn *fn, void *arg, struct err *e)
{
	struct sqlite_watch *w = watch;
	double until = clock_monotonic() + (double)wait_ms / 1e3, left;
	struct sign sign;

	for (;;) {
		look_for_sign(w, &sign);
		if (w->sign.ino != 0 && sign.ino != w->sign.ino)
			return err_set(e, ERR_NOINPUT, "%s: the database was removed%s", db_name(w->s), sign.ino != 0 ? ", and another is in its place" : "");
		if (memcmp(&sign, &w->sign, sizeof(sign)) != 0) {
			w->sign = sign;
			fn(arg, w->path, 0);
			return 1;
		}
		left = (until - clock_monotonic()) * 1000;
		if (left <= 0)
			return 0;
		poll(NULL, 0, left < LOOK_MS ? (int)left + 1 : LOOK_MS);
	}
}

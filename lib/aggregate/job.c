#include "aggregate/job.h"

#include "aggregate/seen.h"
#include "base/alloc.h"
#include "stream.h"

#include <stdlib.h>

#define LOCK_TTL_MS 60000	/* renewed while it is held, where it has to be */
#define MEMORY_WAIT_MS (600 * 1000LL)	/* for a model that works on memory in another stream's run */
#define TRIES 4
#define RUNNING_DIR "/.ag2/running"

static void
path_of(struct buf *out, const char *dir, const struct job *j)
{
	buf_reset(out);
	buf_addf(out, "%s/%s/%s", dir, j->a->spec.key, j->stream);
}

void
job_init(struct job *j, struct aggregate *a, struct store *s, const char *stream)
{
	*j = (struct job){ .a = a, .s = s, .stream = stream, .cursor_path = BUF_INIT, .running_path = BUF_INIT,
		.undo_path = BUF_INIT, .seen_path = BUF_INIT, .undo = UNDO_INIT };
	cursor_path(&j->cursor_path, a->spec.key, stream);
	path_of(&j->running_path, RUNNING_DIR, j);
	path_of(&j->undo_path, UNDO_DIR, j);
	seen_path(&j->seen_path, a->spec.key);
	a->ran = a->held = false;
	a->run.what = "Aggregation";
	a->run.strategy = a->spec.strategy->class_name;
	a->run.store = s;
	a->run.stream = stream;
	a->run.started = false;
}

void
job_release(struct job *j)
{
	buf_release(&j->cursor_path);
	buf_release(&j->running_path);
	buf_release(&j->undo_path);
	buf_release(&j->seen_path);
	undo_release(&j->undo);
}

int
job_has_stream(struct job *j, struct store_stat *st, struct err *e)
{
	struct buf path = BUF_INIT;
	struct stream_reader *r;
	int rc;

	stream_path(&path, j->stream);
	rc = store_stat(j->s, path.data, st, e);
	buf_release(&path);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	rc = stream_open(j->s, j->stream, true, &r, e);	/* a log that was compacted away whole */
	if (rc == 0)
		stream_close(r);
	return rc;
}

int
job_repeat(struct job *j, job_fn *fn, bool tells, struct err *e)
{
	struct err why = ERR_INIT;
	int rc, tries = 0;

	do {
		rc = fn(j, &why);
		if (rc < 0 && why.code == ERR_CONFLICT && ++tries < TRIES)
			rc = 1;
	} while (rc > 0);
	if (rc < 0)
		err_set(e, why.code == ERR_CONFLICT ? ERR_BUSY : why.code, "%s", why.msg);
	else	/* half a part was too much for the model, and now there is no call left */
		err_set(&why, ERR_UNAVAIL, "no more calls are allowed now");
	if (j->a->run.started || (rc < 0 && tells))
		upkeep_failed(&j->a->run, &why);
	return rc;
}

struct locks {
	struct store_lock *stream, *memory;
};

static int
lock(struct job *j, struct locks *l, struct err *e)
{
	const char *memory = j->a->spec.strategy->memory;
	char *path;
	struct err why = ERR_INIT;
	int rc;

	*l = (struct locks){ NULL, NULL };
	if (store_lock(j->s, j->cursor_path.data, LOCK_TTL_MS, j->a->wait_ms, &l->stream, &why) < 0) {
		j->a->held = why.code == ERR_BUSY;
		return j->a->held ? err_set(e, ERR_BUSY, "stream %s: another aggregates it", j->stream) : err_set(e, why.code, "%s", why.msg);
	}
	if (memory == NULL)
		return 0;
	path = xasprintf("/.ag2/lock%s", memory);
	rc = store_lock(j->s, path, LOCK_TTL_MS, MEMORY_WAIT_MS, &l->memory, e);
	free(path);
	if (rc < 0)
		store_unlock(l->stream);
	return rc;
}

int
job_locked(struct job *j, job_fn *fn, bool tells, struct err *e)
{
	struct locks l;
	int rc;

	if (lock(j, &l, e) < 0)
		return -1;
	rc = job_repeat(j, fn, tells, e);
	store_unlock(l.memory);
	store_unlock(l.stream);
	return rc;
}

#include "request.h"

#include "../cli.h"
#include "../compare.h"
#include "base/alloc.h"
#include "event/render.h"

#include <stdlib.h>
#include <string.h>

static int
say_origins(const struct llm_request *r, struct err *e)
{
	const struct event *ev;
	size_t *origin, n, i;

	if (llm_origins(r, &origin, &n, e) < 0)
		return -1;
	for (i = 0; i < n; i++) {
		ev = origin[i] < r->events_n ? r->events[origin[i]] : NULL;
		if (ev == NULL)
			log_warn("message %zu: %s", i, origin[i] == SIZE_MAX ? "the prompts" : "the context");
		else if (ev->number > 0)
			log_warn("message %zu: line %llu, %s", i, (unsigned long long)ev->number, ev->type->last);
		else if (ev->offset > 0)
			log_warn("message %zu: byte %llu, %s", i, (unsigned long long)ev->offset, ev->type->last);
		else
			log_warn("message %zu: new, %s", i, ev->type->last);
	}
	free(origin);
	return 0;
}

static char *
sent_path(const struct request_watch *w)
{
	return xasprintf("/.ag2/sent/%s", w->stream);
}

/* The request sent before this one in the stream; of this process or, by who asked for it, another. */
static int
read_last(const struct request_watch *w, struct buf *before, struct err *e)
{
	struct err why = ERR_INIT;
	char *path = sent_path(w);
	int rc = store_read(w->store, path, before, NULL, &why);

	free(path);
	if (rc < 0 && why.code != ERR_ABSENT)
		return err_set(e, why.code, "%s", why.msg);
	if (rc < 0)
		log_warn("compare: no earlier request of stream '%s' is kept%s", w->stream, w->dry ? "" : "; this one is");
	return rc < 0 ? 0 : 1;
}

static int
compare_last(const struct request_watch *w, const struct buf *body, struct err *e)
{
	struct buf before = BUF_INIT;
	char *path;
	int rc = w->store != NULL ? read_last(w, &before, e) : 0;

	if (rc > 0)
		compare_tell("the last request", &before, body, CHARS_PER_TOKEN);
	buf_release(&before);
	if (rc < 0 || w->dry)
		return rc < 0 ? -1 : 0;
	path = sent_path(w);
	rc = store_write(w->store, path, body->data, body->len, e);
	free(path);
	return rc;
}

int
see_request(const struct request_watch *w, const struct llm_request *r, const struct buf *body, struct err *e)
{
	struct buf before;

	if (w->origins && say_origins(r, e) < 0)
		return -1;
	if (w->compare == NULL)
		return 0;
	if (strcmp(w->compare, "last") == 0)
		return compare_last(w, body, e);
	compare_read(&before, w->compare);
	if (before.len > 0 && before.data[before.len - 1] == '\n' && body->data[body->len - 1] != '\n')
		before.len--;	/* the newline that -n ends the body with */
	compare_tell(w->compare, &before, body, CHARS_PER_TOKEN);
	buf_release(&before);
	return 0;
}

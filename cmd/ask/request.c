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
	struct llm_origins o;
	struct buf text = BUF_INIT;
	size_t i;
	int rc = llm_origins(r, &o, e);

	for (i = 0; i < o.n; i++) {
		buf_reset(&text);
		llm_origin_text(&text, r, &o, i);
		log_warn("message %zu: %s", i, text.data);
	}
	buf_release(&text);
	llm_origins_release(&o);
	return rc;
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

#include "aggregate/undo.h"

#include "aggregate/cursor.h"
#include "base/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define HEAD "ag2 undo 1\n"
#define FILE_MAX (64u << 20)

/* A name, a length and, behind the empty line, so many bytes. Paths are our own and hold no blanks. */
static void
add_part(struct buf *head, struct buf *body, const char *name, const char *path, const char *data, size_t len)
{
	buf_addf(head, "%s %zu %s\n", name, len, path);
	buf_add(body, data, len);
}

void
undo_format(struct buf *out, const struct undo *u, const char *path, struct text output)
{
	struct line_sum sum = line_sum(output.data, output.len);
	struct buf body = BUF_INIT;

	buf_adds(out, HEAD);
	if (path != NULL)
		add_part(out, &body, "output", path, (const char *)sum.sha1, sizeof(sum.sha1));
	if (u->earlier != NULL)
		add_part(out, &body, "earlier", u->earlier, u->content.data, u->content.len);
	if (u->has_cursor)
		add_part(out, &body, "cursor", "-", u->cursor.data, u->cursor.len);
	buf_addch(out, '\n');
	buf_add(out, body.data, body.len);
	buf_release(&body);
}

void
undo_release(struct undo *u)
{
	free(u->earlier);
	buf_release(&u->content);
	buf_release(&u->cursor);
	*u = (struct undo)UNDO_INIT;
}

/* What was read. */
struct record {
	struct undo before;
	char *path;
	struct line_sum sum;
};

static bool
parse_part(struct record *r, const char *line, const char **body, const char *end)
{
	char name[16], path[1024];
	size_t len;

	if (sscanf(line, "%15s %zu %1023s", name, &len, path) != 3 || len > (size_t)(end - *body))
		return false;
	if (strcmp(name, "output") == 0 && len == sizeof(r->sum.sha1)) {
		free(r->path);
		r->path = xstrdup(path);
		memcpy(r->sum.sha1, *body, len);
	} else if (strcmp(name, "earlier") == 0) {
		free(r->before.earlier);
		r->before.earlier = xstrdup(path);
		buf_add(&r->before.content, *body, len);
	} else if (strcmp(name, "cursor") == 0) {
		r->before.has_cursor = true;
		buf_add(&r->before.cursor, *body, len);
	} else {
		return false;
	}
	*body += len;
	return true;
}

static bool
parse(struct record *r, char *text, size_t len)
{
	char *rest = text + strlen(HEAD), *stop, *line;
	const char *body;

	if (strncmp(text, HEAD, strlen(HEAD)) != 0 || (stop = strstr(rest - 1, "\n\n")) == NULL)
		return false;
	stop[1] = '\0';
	body = stop + 2;
	while (rest != NULL && rest <= stop && (line = strsep(&rest, "\n")) != NULL)
		if (!parse_part(r, line, &body, text + len))
			return false;
	return true;
}

/* Adds the operations on the output. ERR_DATA when it was changed. */
static int
take_back(struct store *s, const struct record *r, struct store_op *ops, size_t *n, struct err *e)
{
	const char *earlier = r->before.earlier;
	struct buf now = BUF_INIT;
	struct store_stat st = { 0 };
	struct err why = ERR_INIT;
	struct line_sum sum;
	int rc = store_read(s, r->path, &now, &st, &why);

	sum = line_sum(now.data, now.len);
	buf_release(&now);
	if (rc < 0 && why.code != ERR_ABSENT)
		return err_set(e, why.code, "%s", why.msg);
	if (rc < 0 || !line_sum_is(&sum, &r->sum))
		return err_set(e, ERR_DATA, "'%s' was changed since (ag2-store history tells what it was)", r->path);
	ops[(*n)++] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = r->path, .version = st.version };
	if (earlier == NULL || strcmp(earlier, r->path) != 0)
		ops[(*n)++] = (struct store_op){ .kind = STORE_OP_DELETE, .path = r->path };
	if (earlier != NULL)
		ops[(*n)++] = (struct store_op){ .kind = STORE_OP_WRITE, .path = earlier, .data = r->before.content.data,
			.len = r->before.content.len };
	return 0;
}

int
undo_run(struct store *s, const char *undo_path, const char *cursor_path, const char *seen_path, struct err *e)
{
	struct record r = { .before = UNDO_INIT };
	struct buf text = BUF_INIT_MAX(FILE_MAX);
	struct store_stat st;
	struct store_op ops[7];
	struct err why = ERR_INIT;
	size_t n = 0;
	int rc = store_read(s, undo_path, &text, &st, &why);

	if (rc < 0) {
		err_set(e, why.code, "%s", why.code == ERR_ABSENT ? "there is no run to take back" : why.msg);
	} else if (!parse(&r, text.data, text.len)) {
		rc = err_set(e, ERR_DATA, "'%s' is damaged", undo_path);
	} else {
		ops[n++] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = undo_path, .version = st.version };
		ops[n++] = (struct store_op){ .kind = STORE_OP_DELETE, .path = undo_path };
		ops[n++] = (struct store_op){ .kind = STORE_OP_DELETE, .path = seen_path };
		if (r.path != NULL)
			rc = take_back(s, &r, ops, &n, e);
		if (r.before.has_cursor)
			ops[n++] = (struct store_op){ .kind = STORE_OP_WRITE, .path = cursor_path, .data = r.before.cursor.data,
				.len = r.before.cursor.len };
		else
			ops[n++] = (struct store_op){ .kind = STORE_OP_DELETE, .path = cursor_path };
		if (rc == 0)
			rc = store_commit(s, ops, n, e);
	}
	undo_release(&r.before);
	free(r.path);
	buf_release(&text);
	return rc;
}

#include "aggregate/job.h"

#include "base/alloc.h"
#include "template.h"

#include <stdlib.h>

int
aggregation_ask(struct aggregation *g, const char *template, struct text existing, struct err *e)
{
	struct template_value values[] = { { "existing", existing.data, existing.len }, { "events", g->events.data, g->events.len } };
	struct buf prompt = BUF_INIT;
	int rc;

	template_fill(&prompt, template, strlen(template), values, 2);
	rc = upkeep_ask(&g->a->model, "aggregation", (struct text){ prompt.data, prompt.len }, &g->output, &g->use, e);
	buf_release(&prompt);
	return rc;
}

int
aggregation_read(struct aggregation *g, const char *path, struct err *e)
{
	struct store_stat st;
	struct err why = ERR_INIT;

	g->existing.max = EXISTING_MAX;
	if (store_read(g->store, path, &g->existing, &st, &why) < 0)
		return why.code == ERR_ABSENT ? 0 : err_set(e, why.code, "%s", why.msg);
	g->earlier = xstrdup(path);
	g->version = st.version;
	return 0;
}

void
aggregation_release(struct aggregation *g)
{
	buf_release(&g->existing);
	buf_release(&g->output);
	upkeep_use_release(&g->use);
	free(g->earlier);
	free(g->path);
}

int
aggregation_ops(const struct aggregation *g, struct history *h, struct store_op *ops, size_t *n, struct err *e)
{
	bool moves = g->earlier != NULL && g->path != NULL && strcmp(g->earlier, g->path) != 0;
	bool same = g->earlier != NULL && g->output.len == g->existing.len && memcmp(g->output.data, g->existing.data, g->output.len) == 0;

	if (g->earlier != NULL)
		ops[(*n)++] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = g->earlier, .version = g->version };
	if (g->path != NULL && (g->earlier == NULL || moves))
		ops[(*n)++] = (struct store_op){ .kind = STORE_OP_EXPECT, .path = g->path, .version = 0 };
	if (g->earlier != NULL && !same) {
		if (history_read(g->store, g->earlier, h, e) < 0)
			return -1;
		*n += history_ops(h, g->earlier, g->existing.data, g->existing.len, ops + *n);
	}
	if (moves)
		ops[(*n)++] = (struct store_op){ .kind = STORE_OP_DELETE, .path = g->earlier };
	if (g->path != NULL)
		ops[(*n)++] = (struct store_op){ .kind = STORE_OP_WRITE, .path = g->path, .data = g->output.data, .len = g->output.len };
	return 0;
}

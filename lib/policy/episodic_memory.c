/* The newest files of /memory/conversations as a prompt. */
#include "policy/stage.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define DIRECTORY "/memory/conversations"
#define HEADING "## Past Conversations\n\n"
#define BETWEEN "\n\n---\n\n"

struct episodic {
	struct stage stage;
	int64_t most;
	bool transparent;
};

struct names {
	char **items;
	size_t n, cap;
	bool as_ag2;
};

/* What takes a slot: for AG2 every entry, a directory with its slash; else files that are not hidden and not empty. */
static int
add_name(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	struct names *names = arg;

	if (!names->as_ag2 && (dir || name[0] == '.' || st->size == 0))
		return 0;
	names->items = xgrow(names->items, names->n, &names->cap, sizeof(names->items[0]));
	names->items[names->n++] = xasprintf("%s%s", name, dir ? "/" : "");
	return 0;
}

static int
by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The index of the first that is shown, as Python slices list[-most:]. */
static size_t
first_shown(const struct names *names, int64_t most)
{
	uint64_t n = names->n;

	if (most > 0)
		return (uint64_t)most < n ? n - (uint64_t)most : 0;
	return most < 0 && (uint64_t)-most > n ? n : (uint64_t)-most;
}

/* Appends one episode behind those that are there; *shown counts those that are not empty. */
static int
add_episode(struct buf *text, struct store *store, const char *name, int64_t *shown, struct err *e)
{
	struct buf path = BUF_INIT;
	struct err why = ERR_INIT;
	size_t before = text->len, start;
	int rc = 0;

	buf_addf(&path, "%s/%s", DIRECTORY, name);
	if (*shown > 0)
		buf_adds(text, BETWEEN);
	start = text->len;
	if (store_read(store, path.data, text, NULL, &why) < 0 && why.code != ERR_ABSENT) {
		if (e != NULL)
			*e = why;
		rc = -1;
	} else if (text->len == start) {	/* a directory, or gone meanwhile */
		text->len = before;
		text->data[before] = '\0';
	} else {
		++*shown;
	}
	buf_release(&path);
	return rc;
}

static int
inject(struct episodic *p, const struct buf *text, int64_t shown, struct err *e)
{
	char note[100];

	if (shown == 0)
		return 0;
	if (stage_inject(p->stage.next, (struct text){ text->data, text->len }, "episodic_memory", e) < 0)
		return -1;
	if (!p->transparent)
		return 0;
	snprintf(note, sizeof(note), "[episodic_memory] Injected %" PRId64 " past conversation summaries.", shown);
	return stage_inject(p->stage.next, (struct text){ note, strlen(note) }, "episodic_memory", e);
}

static int
episodic_prompts_done(struct stage *s, struct err *e)
{
	struct episodic *p = (struct episodic *)s;
	struct store *store = chain_opts(s->chain)->store;
	struct names names = { .as_ag2 = chain_opts(s->chain)->as_ag2 };
	struct buf text = BUF_INIT_MAX(EVENT_LINE_MAX);
	int64_t shown = 0;
	size_t i;
	int rc = 0;

	buf_adds(&text, HEADING);
	if (store != NULL)
		rc = store_list(store, DIRECTORY, STORE_LIST_STAT, add_name, &names, e);
	if (names.n > 0)
		qsort(names.items, names.n, sizeof(names.items[0]), by_bytes);
	for (i = first_shown(&names, p->most); rc == 0 && i < names.n; i++)
		rc = add_episode(&text, store, names.items[i], &shown, e);
	if (rc == 0)
		rc = inject(p, &text, shown, e);
	for (i = 0; i < names.n; i++)
		free(names.items[i]);
	free(names.items);
	buf_release(&text);
	return rc == 0 ? stage_prompts_done(s->next, e) : -1;
}

static const struct stage_ops episodic_ops = { .prompts_done = episodic_prompts_done };

static struct stage *
episodic_open(struct chain *c, const struct policy_spec *spec, struct err *e)
{
	struct episodic *p = xcalloc(1, sizeof(*p));

	p->stage.ops = &episodic_ops;
	p->most = policy_int(spec, "max_episodes");
	p->transparent = policy_bool(spec, "transparent");
	return &p->stage;
}

const struct policy policy_episodic_memory = {
	.name = "episodic-memory",
	.id = "episodic_memory",
	.kind = POLICY_INJECTION,
	.params = "max_episodes=5,transparent=true",
	.summary = "adds the newest N files of " DIRECTORY " as a prompt",
	.keys = { { "max_episodes", KEY_INT, "5" }, { "transparent", KEY_BOOL, "true" } },
	.from_end = EACH_FOR_ITSELF,
	.open = episodic_open,
};

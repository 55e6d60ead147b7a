/* The replay rules against the rules as they are written down, which repeat the whole walk for each step. */
#include "tap.h"

#include "history.h"
#include "policy/replay.h"

#define MOST_IDS 64

struct ids {
	char text[MOST_IDS][16];
	size_t n;
};

static void
take_id(void *arg, const char *id, size_t len)
{
	struct ids *ids = arg;

	if (ids->n == MOST_IDS || len > 15)
		bail("an id too many");
	memcpy(ids->text[ids->n], id, len);
	ids->text[ids->n++][len] = '\0';
}

static struct ids
ids_of(struct event *ev)
{
	struct ids ids = { .n = 0 };

	event_ids(ev, take_id, &ids, NULL);
	return ids;
}

static bool
in_any(struct event *const *events, const bool *keep, size_t n, const char *id)
{
	size_t i, j;

	for (i = 0; i < n; i++) {
		if (!keep[i] || (events[i]->type->flags & (EV_RESPONSE | EV_BUILTIN_CALL)) == 0)
			continue;
		struct ids ids = ids_of(events[i]);

		for (j = 0; j < ids.n; j++)
			if (strcmp(ids.text[j], id) == 0)
				return true;
	}
	return false;
}

/* Rule 1 and 2: from the cut on, what needs an anchor or a turn item that lies before it goes. */
static void
model_walk(struct event *const *events, size_t n, size_t cut, bool *keep)
{
	long anchor = -1, item = -1;
	size_t i;

	for (i = 0; i < n; i++) {
		unsigned f = events[i]->type->flags;

		keep[i] = i >= cut;
		if (f & EV_ANCHOR)
			anchor = (long)i;
		if (f & EV_TURN_ITEM)
			item = (long)i;
		if ((f & EV_BUILTIN_CALL) && anchor >= 0 && anchor < (long)cut)
			keep[i] = false;
		if (f & EV_RESPONSE) {
			if (item >= 0 && item < (long)cut && ids_of(events[i]).n > 0)
				keep[i] = false;
			anchor = item = -1;
		}
		if (f & EV_REQUEST)
			anchor = item = -1;
	}
}

static size_t
model_prune(struct event *const *events, size_t n, size_t cut, bool *keep)
{
	bool *providers = xcalloc(n + 1, sizeof(bool));
	size_t i, j, kept = 0;

	model_walk(events, n, cut, keep);
	memcpy(providers, keep, n * sizeof(bool));
	for (i = cut; i < n; i++) {
		unsigned f = events[i]->type->flags;
		struct ids ids = ids_of(events[i]);
		bool all = true;

		if ((f & (EV_RESPONSE | EV_BUILTIN_CALL)) == 0 && (f & (EV_RESULTS | EV_RESULT | EV_CALLS | EV_CALL)) != 0) {
			for (j = 0; j < ids.n; j++)
				all &= in_any(events, providers, n, ids.text[j]);
			if (ids.n == 0 && (f & (EV_RESULTS | EV_CALLS)) == 0)
				all = false;
			keep[i] = keep[i] && all;
		}
		kept += keep[i];
	}
	free(providers);
	return kept;
}

static size_t
model_span(struct event *const *events, size_t n, size_t *cut, bool *keep)
{
	size_t kept = model_prune(events, n, *cut, keep);

	while (kept == 0 && *cut > 0)
		kept = model_prune(events, n, --*cut, keep);
	return kept;
}

static void
model_snap(struct event *const *events, size_t n, size_t *cut)
{
	bool *keep = xcalloc(n + 1, sizeof(bool));

	if (*cut != 0)
		while (model_prune(events, n, *cut, keep) < n - *cut)
			++*cut;
	free(keep);
}

static void
show(const struct event_list *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		printf("# %zu %s\n", i, l->items[i]->line);
}

/* A whole history, walked. */
static struct replay_event *
walk_all(const struct event_list *l)
{
	struct replay_event *all = xcalloc(l->n + 1, sizeof(all[0]));
	struct replay_walk walk = REPLAY_WALK_INIT;
	size_t i;

	for (i = 0; i < l->n; i++)
		all[i] = (struct replay_event){ l->items[i], (int64_t)i, replay_step(&walk, l->items[i], (int64_t)i) };
	return all;
}

/* Where nothing is ever left the rules end at 0, and span where it began. */
static bool
one_cut(const struct event_list *l, const struct replay_event *all, size_t cut)
{
	bool *got = xcalloc(l->n + 1, sizeof(bool)), *want = xcalloc(l->n + 1, sizeof(bool)), good = true;
	size_t a = cut, b = cut;
	int64_t kept;

	good &= replay_prune(all, l->n, cut, got, NULL) == (int64_t)model_prune(l->items, l->n, cut, want);
	good &= memcmp(got, want, l->n * sizeof(bool)) == 0;
	kept = replay_span(all, l->n, &a, got, NULL, NULL, NULL);
	good &= kept == (int64_t)model_span(l->items, l->n, &b, want) && a == (kept > 0 ? b : cut);
	good &= memcmp(got, want, l->n * sizeof(bool)) == 0;
	a = b = cut;
	model_snap(l->items, l->n, &b);
	good &= cut == 0 || (replay_snap(all, l->n, &a, NULL) == 0 && a == b);
	free(got);
	free(want);
	if (!good)
		printf("# cut %zu\n", cut);
	return good;
}

static void
random_histories(size_t histories, size_t most)
{
	struct event_list l = { 0 };
	struct replay_event *all;
	size_t i, cut, bad = 0, cuts = 0;

	for (i = 0; i < histories && bad == 0; i++) {
		random_history(&l, most);
		all = walk_all(&l);
		for (cut = 0; cut <= l.n && bad == 0; cut++, cuts++)
			bad += !one_cut(&l, all, cut);
		if (bad > 0)
			show(&l);
		free(all);
		event_list_release(&l);
	}
	ok(bad == 0, "prune, span and snap do what the rules say on %zu histories of up to %zu events, %zu cuts", histories, most, cuts);
}

/* A turn with very many parallel calls: repeating the walk for each step would take hours here. */
static void
large_turn(unsigned n)
{
	struct event_list l = { 0 };
	struct buf calls = BUF_INIT;
	struct replay_event *all;
	bool *keep;
	size_t cut;
	unsigned i;

	add_request(&l, "go");
	for (i = 0; i < n; i++)
		buf_addf(&calls, "%s{\"id\": \"c%u\"}", i > 0 ? ", " : "", i);
	add_line(&l, "{\"type\": \"ModelResponse\", \"data\": {\"tool_calls\": {\"calls\": [%s]}}}", calls.data);
	for (i = 0; i < n; i++)
		add_result(&l, "ToolResultEvent", i, "x");
	keep = xcalloc(l.n, sizeof(bool));
	all = walk_all(&l);
	cut = 2;
	ok(replay_span(all, l.n, &cut, keep, NULL, NULL, NULL) == (int64_t)n + 1 && cut == 1, "span over %u parallel calls widens to the call", n);
	cut = 3;
	ok(replay_snap(all, l.n, &cut, NULL) == 0 && cut == l.n, "snap over them gives up all");
	cut = 1;
	ok(replay_snap(all, l.n, &cut, NULL) == 0 && cut == 1, "snap before them stays");
	free(keep);
	free(all);
	buf_release(&calls);
	event_list_release(&l);
}

static void
broken_content(void)
{
	struct event_list l = { 0 };
	struct replay_event *all;
	struct err e = ERR_INIT;
	bool keep[2];
	size_t cut = 0;

	add_line(&l, "{\"type\": \"ToolResultsEvent\", \"data\": {\"results\": [{\"parent_id\": \"a\\q\"}]}}");
	all = walk_all(&l);
	ok(replay_prune(all, 1, 0, keep, &e) == -1 && e.code == ERR_DATA, "broken content is an error: %s", e.msg);
	ok(replay_span(all, 1, &cut, keep, NULL, NULL, NULL) == -1, "... for span, too");
	free(all);
	event_list_release(&l);
}

static bool
is_request(void *arg, struct event *ev)
{
	return (ev->type->flags & EV_REQUEST) != 0;
}

static void
edges(void)
{
	struct event_list l = { 0 };
	struct replay_event *all;
	bool keep[4];
	size_t cut = 0;

	ok(replay_prune(NULL, 0, 0, keep, NULL) == 0 && replay_span(NULL, 0, &cut, keep, NULL, NULL, NULL) == 0 && cut == 0 &&
	    replay_snap(NULL, 0, &cut, NULL) == 0 && cut == 0, "nothing gives nothing");
	add_request(&l, "a");
	add_answer(&l, "b");
	add_result(&l, "ToolResultEvent", 1, "x");
	all = walk_all(&l);
	cut = 3;
	ok(replay_span(all, 3, &cut, keep, NULL, NULL, NULL) == 1 && cut == 1 && keep[1] && !keep[2],
	    "span passes an orphan and ends at what stands alone");
	cut = 2;
	ok(replay_span(all, 3, &cut, keep, is_request, NULL, NULL) == 2 && cut == 0 && keep[0] && keep[1] && !keep[2],
	    "span passes what does not count");
	cut = 2;
	ok(replay_span(all + 1, 2, &cut, keep, is_request, NULL, NULL) == 0 && cut == 2, "where nothing counts the cut stays");
	cut = 2;
	ok(replay_snap(all, 3, &cut, NULL) == 0 && cut == 3, "snap raises the cut to the end when nothing else is whole");
	free(all);
	event_list_release(&l);
}

int
main(void)
{
	random_histories(300, 12);
	random_histories(1500, 24);
	random_histories(20, 80);
	large_turn(100000);
	broken_content();
	edges();
	return done();
}

/* The parts of policies that need no stream: the order check, reading POLICY:KEY=VALUE, the table, and alerts' rules. */
#include "tap.h"

#include "base/alloc.h"
#include "golden.h"
#include "policy/policy.h"

struct pairs {
	size_t i[16], j[16], n;
};

static void
take_pair(void *arg, size_t i, size_t j)
{
	struct pairs *p = arg;

	p->i[p->n] = i;
	p->j[p->n++] = j;
}

/* AG2's wording names the pair: "Policy 'a' (index I) runs before 'b' (index J)." */
static void
order_as_ag2(struct json_object *one)
{
	struct json_object *names = json_get(one, "policies"), *warnings = json_get(one, "warnings");
	size_t n = json_object_array_length(names), want = json_object_array_length(warnings), k;
	const char **list = xcalloc(n + 1, sizeof(list[0]));
	struct pairs got = { .n = 0 };
	bool same;
	unsigned i, j;

	for (k = 0; k < n; k++)
		list[k] = json_object_get_string(json_object_array_get_idx(names, k));
	same = policy_order_check(list, n, take_pair, &got) == want && got.n == want;
	for (k = 0; k < want && same; k++) {
		const char *text = json_object_get_string(json_object_array_get_idx(warnings, k));

		same = sscanf(text, "Policy '%*[^']' (index %u) runs before '%*[^']' (index %u)", &i, &j) == 2 &&
		    got.i[k] == i && got.j[k] == j;
	}
	ok(same, "order of %s: %zu pairs", json_object_to_json_string(names), want);
	free(list);
}

static void
orders(void)
{
	struct json_object *all = golden_json("policies.json"), *cases = json_get(all, "validate_order");
	const char *const dashes[] = { "token-budget", "working-memory" };
	size_t i;

	for (i = 0; i < json_object_array_length(cases); i++)
		order_as_ag2(json_object_array_get_idx(cases, i));
	ok(json_object_array_length(cases) > 5, "AG2's cases of order are there");
	ok(policy_order_check(dashes, 2, NULL, NULL) == 1, "names with dashes are the same, and nobody need be told");
	json_object_put(all);
}

static void
good(const char *text, const char *name)
{
	struct policy_spec spec;
	struct err e = ERR_INIT;
	int rc = policy_spec_parse(&spec, text, &e);

	ok(rc == 0 && strcmp(policy_spec_name(&spec), name) == 0, "'%s' is %s%s", text, name, e.msg);
	if (rc == 0)
		policy_spec_release(&spec);
}

static void
refused(const char *text, const char *why)
{
	struct policy_spec spec;
	struct err e = ERR_INIT;
	int rc = policy_spec_parse(&spec, text, &e);

	if (!ok(rc < 0 && e.code == ERR_USAGE && strstr(e.msg, why) != NULL, "'%s' is refused: %s", text, why))
		printf("# %s\n", e.msg);
}

static void
parsing(void)
{
	struct policy_spec spec;
	struct err e = ERR_INIT;

	good("conversation", "conversation");
	good("sliding-window:80", "sliding_window");
	good("sliding_window:max-events=80,transparent=true", "sliding_window");
	good("sliding-window:80,transparent=no", "sliding_window");
	good("token-budget:max_tokens=10,chars_per_token=auto", "token_budget");
	good("episodic_memory", "episodic_memory");
	good("alert:delivered=none", "alert");
	good("exec:grep -v a:b,c=d", "exec");
	refused("slidng-window:3", "did you mean 'sliding-window'");
	refused("nothing-like-it", "unknown policy");
	refused("", "unknown policy");
	refused("sliding-window", "needs max_events");
	refused("sliding-window:", "whole number");
	refused("sliding-window:many", "whole number");
	refused("sliding-window:3,3", "KEY=VALUE");
	refused("sliding-window:3,max_events=4", "given twice");
	refused("sliding-window:3,transparent", "KEY=VALUE");
	refused("sliding-window:3,transparent=maybe", "true or false");
	refused("sliding-window:3,max_event=4", "did you mean 'max_events'");
	refused("sliding-window:99999999999999999999", "whole number");
	refused("token-budget:5,chars_per_token=0", "from 1 to");
	refused("conversation:3", "no parameters");
	refused("exec:", "needs a command");
	refused("exec", "needs a command");
	refused("inject:  ", "needs a command");
	refused("alert:delivered=all", "none");
	if (policy_spec_parse(&spec, "exec:a:b,c=d", &e) < 0)
		bail("%s", e.msg);
	is_str(spec.command, "a:b,c=d", "everything behind the first colon is the command");
	policy_spec_release(&spec);
}

static void
table(void)
{
	struct policy_info info;
	size_t i;

	for (i = 0; policy_list(i, &info); i++)
		ok(info.name[0] != '\0' && info.summary[0] != '\0' && strchr(info.name, '_') == NULL, "the table tells of %s", info.name);
	is_int((long long)i, 8, "there are eight policies");
}

static void
limits(void)
{
	struct chain_options o = { .as_ag2 = false };
	struct policy_spec spec;
	struct err e = ERR_INIT;
	struct chain *c;

	if (policy_spec_parse(&spec, "sliding-window:-3", &e) < 0)
		bail("%s", e.msg);
	ok(chain_new(&c, &spec, 1, &o, &e) < 0 && e.code == ERR_USAGE, "a window below 0 is refused: %s", e.msg);
	o.as_ag2 = true;
	ok(chain_new(&c, &spec, 1, &o, &e) == 0, "... but not as AG2");
	chain_free(c);
	policy_spec_release(&spec);
}

int
main(void)
{
	orders();
	parsing();
	table();
	limits();
	return done();
}

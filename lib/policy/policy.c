#include "policy/policy.h"

#include "base/alloc.h"
#include "base/opts.h"
#include "event/render.h"
#include "policy/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct policy *const policies[] = {
	&policy_working_memory, &policy_episodic_memory, &policy_alert, &policy_conversation, &policy_sliding_window,
	&policy_token_budget, &policy_inject, &policy_exec,
};
#define POLICIES (sizeof(policies) / sizeof(policies[0]))
#define KEYS (sizeof(policies[0]->keys) / sizeof(policies[0]->keys[0]))

/* Names and keys: `_` and `-` are the same. */
static bool
same_name(const char *a, const char *b)
{
	for (; *a != '\0' && *b != '\0'; a++, b++)
		if (*a != *b && !((*a == '-' || *a == '_') && (*b == '-' || *b == '_')))
			return false;
	return *a == *b;
}

bool
policy_list(size_t i, struct policy_info *info)
{
	if (i >= POLICIES)
		return false;
	*info = (struct policy_info){ policies[i]->name, policies[i]->params, policies[i]->summary, policies[i]->kind };
	return true;
}

static int
unknown_policy(const char *name, struct err *e)
{
	const char *names[POLICIES], *near;
	size_t i;

	for (i = 0; i < POLICIES; i++)
		names[i] = policies[i]->name;
	near = nearest(name, names, POLICIES);
	if (near == NULL)
		return err_set(e, ERR_USAGE, "unknown policy '%s'", name);
	return err_set(e, ERR_USAGE, "unknown policy '%s' (did you mean '%s'?)", name, near);
}

int
policy_spec_init(struct policy_spec *spec, const char *name, struct err *e)
{
	size_t i;

	*spec = (struct policy_spec){ 0 };
	for (i = 0; i < POLICIES; i++)
		if (same_name(name, policies[i]->name))
			spec->policy = policies[i];
	return spec->policy != NULL ? 0 : unknown_policy(name, e);
}

static const struct policy_key *
find_key(const struct policy *policy, const char *name)
{
	size_t i;

	for (i = 0; i < KEYS && policy->keys[i].name != NULL; i++)
		if (same_name(name, policy->keys[i].name))
			return &policy->keys[i];
	return NULL;
}

static int
unknown_key(const struct policy *policy, const char *key, struct err *e)
{
	const char *names[KEYS], *near;
	size_t i;

	for (i = 0; i < KEYS && policy->keys[i].name != NULL; i++)
		names[i] = policy->keys[i].name;
	near = nearest(key, names, i);
	if (near != NULL)
		return err_set(e, ERR_USAGE, "%s: unknown parameter '%s' (did you mean '%s'?)", policy->name, key, near);
	return err_set(e, ERR_USAGE, "%s: unknown parameter '%s'", policy->name, key);
}

static int
read_bool(const char *text, bool *out)
{
	static const char *const words[][2] = { { "false", "true" }, { "no", "yes" }, { "off", "on" }, { "0", "1" } };
	size_t i, j;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		for (j = 0; j < 2; j++)
			if (strcasecmp(text, words[i][j]) == 0) {
				*out = j == 1;
				return 0;
			}
	return -1;
}

static int
read_int(const char *text, long *out)
{
	return parse_long(text, "", out, NULL);
}

static int
check_value(const struct policy *policy, const struct policy_key *key, const char *value, struct err *e)
{
	bool flag;
	long n;

	switch (key->kind) {
	case KEY_BOOL:
		if (read_bool(value, &flag) == 0)
			return 0;
		return err_set(e, ERR_USAGE, "%s: %s is true or false, not '%s'", policy->name, key->name, value);
	case KEY_NONE:
		if (strcmp(value, "none") == 0)
			return 0;
		return err_set(e, ERR_USAGE, "%s: %s can only be none, not '%s'", policy->name, key->name, value);
	case KEY_CHARS:
		if (strcmp(value, "auto") == 0)
			return 0;
		if (read_int(value, &n) == 0 && n >= 1 && n <= CHARS_MAX)
			return 0;
		return err_set(e, ERR_USAGE, "%s: %s is a number from 1 to %d, or auto, not '%s'", policy->name, key->name, CHARS_MAX, value);
	default:
		if (read_int(value, &n) == 0)
			return 0;
		return err_set(e, ERR_USAGE, "%s: %s is a whole number, not '%s'", policy->name, key->name, value);
	}
}

static int
set_command(struct policy_spec *spec, const char *value, struct err *e)
{
	if (!spec->policy->command)
		return err_set(e, ERR_USAGE, "%s takes no command", spec->policy->name);
	if (value[strspn(value, " \t\n")] == '\0')
		return err_set(e, ERR_USAGE, "%s needs a command: %s:CMD", spec->policy->name, spec->policy->name);
	free(spec->command);
	spec->command = xstrdup(value);
	return 0;
}

int
policy_spec_set(struct policy_spec *spec, const char *key, const char *value, struct err *e)
{
	const struct policy_key *k;

	if (key == NULL)
		return set_command(spec, value, e);
	k = find_key(spec->policy, key);
	if (k == NULL)
		return unknown_key(spec->policy, key, e);
	if (policy_given(spec, k->name))
		return err_set(e, ERR_USAGE, "%s: %s is given twice", spec->policy->name, k->name);
	if (check_value(spec->policy, k, value, e) < 0)
		return -1;
	spec->params = xrealloc(spec->params, spec->n + 1, sizeof(spec->params[0]));
	spec->params[spec->n].key = xstrdup(k->name);
	spec->params[spec->n++].value = xstrdup(value);
	return 0;
}

int
policy_spec_check(const struct policy_spec *spec, struct err *e)
{
	const struct policy *policy = spec->policy;
	size_t i;

	if (policy->command && spec->command == NULL)
		return err_set(e, ERR_USAGE, "%s needs a command: %s:CMD", policy->name, policy->name);
	for (i = 0; i < KEYS && policy->keys[i].name != NULL; i++)
		if (policy->keys[i].def == NULL && policy->keys[i].kind != KEY_NONE && !policy_given(spec, policy->keys[i].name))
			return err_set(e, ERR_USAGE, "%s needs %s: %s:N", policy->name, policy->keys[i].name, policy->name);
	return policy->check != NULL ? policy->check(spec, e) : 0;
}

/* One KEY=VALUE, or the first value without its key. */
static int
set_item(struct policy_spec *spec, char *item, bool first, struct err *e)
{
	const struct policy *policy = spec->policy;
	char *equal = strchr(item, '=');

	if (equal != NULL) {
		*equal = '\0';
		return policy_spec_set(spec, item, equal + 1, e);
	}
	if (policy->keys[0].name == NULL)
		return err_set(e, ERR_USAGE, "%s has no parameters", policy->name);
	if (!first || find_key(policy, item) != NULL)
		return err_set(e, ERR_USAGE, "%s: '%s' should be KEY=VALUE", policy->name, item);
	return policy_spec_set(spec, policy->keys[0].name, item, e);
}

static int
set_items(struct policy_spec *spec, const char *text, struct err *e)
{
	char *copy = xstrdup(text), *rest = copy, *item;
	bool first = true;
	int rc = 0;

	while (rc == 0 && (item = strsep(&rest, ",")) != NULL) {
		rc = set_item(spec, item, first, e);
		first = false;
	}
	free(copy);
	return rc;
}

int
policy_spec_parse(struct policy_spec *spec, const char *text, struct err *e)
{
	const char *colon = strchr(text, ':');
	char *name = xmemdup0(text, colon != NULL ? (size_t)(colon - text) : strlen(text));
	int rc = policy_spec_init(spec, name, e);

	free(name);
	if (rc == 0 && colon != NULL)
		rc = spec->policy->command ? set_command(spec, colon + 1, e) : set_items(spec, colon + 1, e);
	if (rc == 0)
		rc = policy_spec_check(spec, e);
	if (rc < 0)
		policy_spec_release(spec);
	return rc;
}

void
policy_spec_release(struct policy_spec *spec)
{
	size_t i;

	for (i = 0; i < spec->n; i++) {
		free(spec->params[i].key);
		free(spec->params[i].value);
	}
	free(spec->params);
	free(spec->command);
	*spec = (struct policy_spec){ 0 };
}

const char *
policy_spec_name(const struct policy_spec *spec)
{
	return spec->policy->id;
}

static const char *
given_value(const struct policy_spec *spec, const char *key)
{
	size_t i;

	for (i = 0; i < spec->n; i++)
		if (strcmp(spec->params[i].key, key) == 0)
			return spec->params[i].value;
	return NULL;
}

bool
policy_given(const struct policy_spec *spec, const char *key)
{
	return given_value(spec, key) != NULL;
}

static const char *
value_of(const struct policy_spec *spec, const char *key)
{
	const char *value = given_value(spec, key);

	return value != NULL ? value : find_key(spec->policy, key)->def;
}

int64_t
policy_int(const struct policy_spec *spec, const char *key)
{
	long n = 0;

	read_int(value_of(spec, key), &n);	/* checked when it was set; auto stays 0 */
	return n;
}

bool
policy_bool(const struct policy_spec *spec, const char *key)
{
	bool flag = false;

	read_bool(value_of(spec, key), &flag);
	return flag;
}

/* ---- AG2's order check ---- */

static bool
is_one_of(const char *name, const char *const *names)
{
	for (; *names != NULL; names++)
		if (same_name(name, *names))
			return true;
	return false;
}

size_t
policy_order_check(const char *const *names, size_t n, void (*fn)(void *arg, size_t i, size_t j), void *arg)
{
	static const char *const windows[] = { "sliding_window", "token_budget", NULL };
	static const char *const injections[] = { "episodic_memory", "working_memory", "alert", "topic_inbox", "inject", NULL };
	size_t i, j, found = 0;

	for (i = 0; i < n; i++) {
		for (j = i + 1; j < n && is_one_of(names[i], windows); j++) {
			if (!is_one_of(names[j], injections))
				continue;
			found++;
			if (fn != NULL)
				fn(arg, i, j);
		}
	}
	return found;
}

#include "prices.h"

#include "base/alloc.h"
#include "base/io.h"
#include "yamltree.h"

#include <stdlib.h>
#include <string.h>

#define FILE_MAX (1u << 20)

struct entry {
	char *name;
	bool open;		/* its name ended in *, which is taken off */
	struct price price;
};

struct prices {
	char *currency;
	struct entry *entries;
	size_t n, cap;
	money per_token;	/* what a price's smallest part is for one token */
};

struct reader {
	const char *file;
	struct prices *p;
};

/* Digits with at most PRICE_DIGITS behind a point. False when it is none, or over 10^9. */
static bool
parse_price(const char *text, money *out)
{
	size_t whole = strspn(text, "0123456789"), behind = text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0, i;

	if (whole == 0 || whole > 9 || behind > PRICE_DIGITS || (text[whole] == '.' && behind == 0) ||
	    text[whole + (behind > 0) + behind] != '\0')
		return false;
	for (i = 0, *out = 0; i < whole; i++)
		*out = *out * 10 + (text[i] - '0');
	for (i = 0; i < PRICE_DIGITS; i++)
		*out = *out * 10 + (i < behind ? text[whole + 1 + i] - '0' : 0);
	return true;
}

static int
read_model(const struct reader *r, const struct node *model, struct err *e)
{
	static const char *const keys[] = { "input", "cached", "cache_write", "output" };
	struct entry entry = { .name = NULL };
	money *const at[] = { &entry.price.input, &entry.price.cached, &entry.price.cache_write, &entry.price.output };
	bool given[4] = { false };
	const struct node *n;
	size_t len = strlen(model->key), i;

	if (memchr(model->key, '*', len > 0 ? len - 1 : 0) != NULL)
		return node_fail(model, r->file, e, "'%.60s': a '*' can only be the end of a name", model->key);
	if (model->kind != NODE_MAP)
		return node_fail(model, r->file, e, "'%.60s' must be a map: {input: PRICE, output: PRICE}", model->key);
	for (n = model->first; n != NULL; n = n->next) {
		for (i = 0; i < 4 && strcmp(n->key, keys[i]) != 0; i++)
			continue;
		if (i == 4)
			return node_unknown(n, r->file, keys, 4, e);
		if (n->kind != NODE_SCALAR || !parse_price(n->text, at[i]))
			return node_fail(n, r->file, e, "'%s' must be a price, such as 1.25, with %d decimals at most", keys[i], PRICE_DIGITS);
		given[i] = true;
	}
	if (!given[0] || !given[3])
		return node_fail(model, r->file, e, "'%.60s' lacks '%s'", model->key, given[0] ? "output" : "input");
	for (i = 1; i < 3; i++)
		if (!given[i])
			*at[i] = entry.price.input;
	for (i = 0; i < 4; i++)
		*at[i] *= r->p->per_token;
	entry.open = len > 0 && model->key[len - 1] == '*';
	entry.name = xmemdup0(model->key, len - entry.open);
	r->p->entries = xgrow(r->p->entries, r->p->n, &r->p->cap, sizeof(*r->p->entries));
	r->p->entries[r->p->n++] = entry;
	return 0;
}

static int
read_models(const struct reader *r, const struct node *models, struct err *e)
{
	const struct node *n;

	if (models->kind != NODE_MAP)
		return node_fail(models, r->file, e, "'models' must be a map");
	for (n = models->first; n != NULL; n = n->next)
		if (read_model(r, n, e) < 0)
			return -1;
	return 0;
}

/* Behind a price's own digits come those that a million tokens take. */
static int
read_per(const struct reader *r, const struct node *n, struct err *e)
{
	const char *text = n->kind == NODE_SCALAR ? n->text : "";

	if (strcmp(text, "1") == 0)
		r->p->per_token = 1000000;
	else if (strcmp(text, "1000") == 0)
		r->p->per_token = 1000;
	else if (strcmp(text, "1000000") == 0)
		r->p->per_token = 1;
	else
		return node_fail(n, r->file, e, "'per' must be 1, 1000 or 1000000 tokens");
	return 0;
}

static int
read_currency(const struct reader *r, const struct node *n, struct err *e)
{
	if (n->kind != NODE_SCALAR || strlen(n->text) > 8 || strpbrk(n->text, "\"\\\n\t") != NULL)
		return node_fail(n, r->file, e, "'currency' must be a short word, such as USD");
	free(r->p->currency);
	r->p->currency = xstrdup(n->text);
	return 0;
}

static int
read_file(const struct reader *r, const struct node *root, struct err *e)
{
	static const char *const keys[] = { "currency", "per", "models" };
	const struct node *n, *models = NULL;
	int rc = 0;

	if (root == NULL || root->kind != NODE_MAP)
		return err_set(e, ERR_CONFIG, "%s: there is no map with 'models'", r->file);
	for (n = root->first; rc == 0 && n != NULL; n = n->next) {
		if (strcmp(n->key, "currency") == 0)
			rc = read_currency(r, n, e);
		else if (strcmp(n->key, "per") == 0)
			rc = read_per(r, n, e);
		else if (strcmp(n->key, "models") == 0)
			models = n;
		else
			rc = node_unknown(n, r->file, keys, 3, e);
	}
	if (rc == 0 && models == NULL)
		rc = node_fail(root, r->file, e, "'models' is missing");
	return rc < 0 ? -1 : read_models(r, models, e);
}

int
prices_read(struct prices **out, const char *file, struct err *e)
{
	struct buf text = BUF_INIT_MAX(FILE_MAX);
	struct prices *p = xcalloc(1, sizeof(*p));
	struct reader r = { file, p };
	struct node *root = NULL;
	struct err why = ERR_INIT;
	int rc;

	p->currency = xstrdup("");
	p->per_token = 1;
	rc = io_read_file(file, &text, e);
	if (rc == 0 && yamltree_parse(&root, text.data, text.len, &why) < 0)
		rc = err_set(e, why.code, "%s:%s", file, why.msg);
	if (rc == 0)
		rc = read_file(&r, root, e);
	yamltree_free(root);
	buf_release(&text);
	if (rc == 0)
		*out = p;
	else
		prices_free(p);
	return rc;
}

void
prices_free(struct prices *p)
{
	size_t i;

	if (p == NULL)
		return;
	for (i = 0; i < p->n; i++)
		free(p->entries[i].name);
	free(p->entries);
	free(p->currency);
	free(p);
}

const char *
prices_currency(const struct prices *p)
{
	return p->currency;
}

const struct price *
prices_find(const struct prices *p, const char *model)
{
	const struct entry *entry, *best = NULL;
	size_t best_len = 0, len;

	for (entry = p->entries; entry < p->entries + p->n; entry++) {
		len = strlen(entry->name);
		if (!entry->open && strcmp(entry->name, model) == 0)
			return &entry->price;
		if (entry->open && strncmp(entry->name, model, len) == 0 && (best == NULL || len > best_len)) {
			best = entry;
			best_len = len;
		}
	}
	return best != NULL ? &best->price : NULL;
}

void
money_add(struct buf *out, money amount, int digits)
{
	char text[48];
	int at = sizeof(text), least = MONEY_DIGITS, i;

	for (i = MONEY_DIGITS; digits >= 0 && i > digits; i--)
		amount = i == digits + 1 ? (amount + 5) / 10 : amount / 10;
	if (digits >= 0)
		least = digits;
	else
		for (; least > 0 && amount % 10 == 0; least--)
			amount /= 10;
	for (i = 0; i <= least || amount > 0; i++) {
		if (i == least && least > 0)
			text[--at] = '.';
		text[--at] = (char)('0' + (int)(amount % 10));
		amount /= 10;
	}
	buf_add(out, text + at, sizeof(text) - (size_t)at);
}

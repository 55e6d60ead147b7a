/* Price files, and money. */
#include "tap.h"

#include "prices.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static char name[] = "/tmp/ag2-prices.XXXXXX";

static struct prices *
read_text(const char *text, struct err *e)
{
	struct prices *p = NULL;
	int fd = open(name, O_WRONLY | O_TRUNC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		bail("cannot write %s", name);
	close(fd);
	return prices_read(&p, name, e) == 0 ? p : NULL;
}

static void
refused(const char *text, const char *why)
{
	struct err e = ERR_INIT;
	struct prices *p = read_text(text, &e);

	ok(p == NULL && e.code == ERR_CONFIG && strstr(e.msg, why) != NULL, "refused: %s (%s)", why, e.msg);
	prices_free(p);
}

static void
is_money(money amount, int digits, const char *want)
{
	struct buf out = BUF_INIT;

	money_add(&out, amount, digits);
	is_str(out.data, want, "%s with %d digits", want, digits);
	buf_release(&out);
}

static void
test_money(void)
{
	money one = 1000000000000000;

	is_money(0, -1, "0");
	is_money(0, 4, "0.0000");
	is_money(one, -1, "1");
	is_money(one, 4, "1.0000");
	is_money(1, -1, "0.000000000000001");
	is_money(one / 8, -1, "0.125");
	is_money(one * 5 / 100000, 4, "0.0001");
	is_money(one * 49999 / 1000000000, 4, "0.0000");
	is_money(one * 1999999 / 100, 1, "20000.0");
	is_money(one * 123456789012345678LL, 0, "123456789012345678");
}

static void
test_find(void)
{
	struct err e = ERR_INIT;
	struct prices *p = read_text("currency: EUR\nmodels:\n  m: {input: 1.25, output: 10}\n  m-*: {input: 2, cached: 0.5, cache_write: 3, output: 4}\n"
	    "  m-x*: {input: 7, output: 8}\n", &e);
	const struct price *m;

	if (p == NULL)
		bail("%s", e.msg);
	is_str(prices_currency(p), "EUR", "the currency is that of the file");
	m = prices_find(p, "m");
	ok(m != NULL && m->input == 1250000000 && m->output == 10000000000, "a price by the million is so many parts of a token");
	ok(m != NULL && m->cached == m->input && m->cache_write == m->input, "what is not priced apart costs what other input does");
	m = prices_find(p, "m-2");
	ok(m != NULL && m->cached == 500000000 && m->cache_write == 3000000000, "a name that ends in * is for all that begin so");
	m = prices_find(p, "m-x1");
	ok(m != NULL && m->input == 7000000000, "the longest of them counts");
	ok(prices_find(p, "other") == NULL && prices_find(p, "") == NULL, "a model that is not there has no price");
	prices_free(p);
	p = read_text("per: 1\nmodels: {\"*\": {input: 0.000000001, output: 999999999}}\n", &e);
	m = p != NULL ? prices_find(p, "any") : NULL;
	ok(m != NULL && m->input == 1000000 && m->output == (money)999999999 * 1000000000000000, "prices by the token");
	prices_free(p);
}

int
main(void)
{
	int fd = mkstemp(name);

	if (fd < 0)
		bail("cannot make %s", name);
	close(fd);
	test_money();
	test_find();
	refused("", "no map");
	refused("models:\n  a*b: {input: 1, output: 2}\n", ":2: 'a*b': a '*' can only be the end of a name");
	refused("models:\n  '**': {input: 1, output: 2}\n", "can only be the end");
	refused("models: [a]\n", ":1: 'models' must be a map");
	refused("currency: USD\n", "'models' is missing");
	refused("models:\n  a: {input: 1}\n", ":2: 'a' lacks 'output'");
	refused("models:\n  a: {input: 1, outputs: 2}\n", "did you mean 'output'?");
	refused("modles: {}\n", "did you mean 'models'?");
	refused("models: {a: {input: -1, output: 2}}\n", "must be a price");
	refused("models: {a: {input: 1e3, output: 2}}\n", "must be a price");
	refused("models: {a: {input: 1., output: 2}}\n", "must be a price");
	refused("models: {a: {input: 0.0000000001, output: 2}}\n", "must be a price");
	refused("models: {a: {input: [1], output: 2}}\n", "must be a price");
	refused("per: 100\nmodels: {}\n", "'per' must be");
	refused("currency: 'a\"b'\nmodels: {}\n", "'currency' must be");
	unlink(name);
	return done();
}

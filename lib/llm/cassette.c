#include "llm/cassette.h"

#include "base/alloc.h"
#include "base/io.h"
#include "base/utf8.h"
#include "llm/cassette_reply.h"
#include "llm/quote.h"
#include "llm/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define CASSETTE_MAX (256u << 20)	/* bytes */

struct entry {
	struct json_object *value;
	size_t line;
	bool used;
};

struct cassette {
	const char *path;
	struct entry *entries;
	size_t n, cap;
	int fd;			/* of one that is recorded, else -1 */
};

/* ---- the file ---- */

static bool
listed(const char *key, const char *const *keys)
{
	for (; *keys != NULL; keys++)
		if (strcmp(key, *keys) == 0)
			return true;
	return false;
}

/* Misspelt keys would make an entry fit more than was meant. */
static int
check_keys(struct json_object *obj, const char *what, const char *const *keys, struct err *e)
{
	if (!json_object_is_type(obj, json_type_object))
		return err_set(e, ERR_DATA, "%s is no object", what);
	json_object_object_foreach(obj, key, value) {
		(void)value;
		if (!listed(key, keys))
			return err_set(e, ERR_DATA, "%s has the unknown key '%.60s'", what, key);
	}
	return 0;
}

static int
check_entry(struct json_object *v, struct err *e)
{
	static const char *const keys[] = { "provider", "model", "request", "ask", "contains", "reply", NULL };
	static const char *const reply_keys[] = { "text", "calls", "usage", "model", "provider", "finish_reason", "events", "replay", "files",
		"error", "status", NULL };
	struct json_object *reply = json_get(v, "reply"), *request = json_get(v, "request");

	if (check_keys(v, "the entry", keys, e) < 0)
		return -1;
	if (reply == NULL)
		return err_set(e, ERR_DATA, "the entry has no reply");
	if (request != NULL && !json_object_is_type(request, json_type_object))
		return err_set(e, ERR_DATA, "the request is no object");
	return check_keys(reply, "the reply", reply_keys, e);
}

static int
load_line(struct cassette *c, const char *line, size_t len, size_t number, struct err *e)
{
	struct json_object *v;

	if (strspn(line, " \t\r") >= len || *line == '#')
		return 0;
	if (json_parse(&v, line, len, e) < 0)
		return err_wrap(e, "%s:%zu", c->path, number);
	c->entries = xgrow(c->entries, c->n, &c->cap, sizeof(*c->entries));
	c->entries[c->n++] = (struct entry){ .value = v, .line = number };
	return check_entry(v, e) < 0 ? err_wrap(e, "%s:%zu", c->path, number) : 0;
}

static int
load_lines(struct cassette *c, const struct buf *text, struct err *e)
{
	const char *p = text->data, *stop = p + text->len, *end;
	size_t number = 1;

	for (; p < stop; p = end + 1, number++) {
		end = memchr(p, '\n', (size_t)(stop - p));
		if (end == NULL)
			end = stop;
		if (load_line(c, p, (size_t)(end - p), number, e) < 0)
			return -1;
	}
	return 0;
}

struct cassette *
cassette_load(const char *path, struct err *e)
{
	struct cassette *c = xcalloc(1, sizeof(*c));
	struct buf text = BUF_INIT_MAX(CASSETTE_MAX);

	c->path = path;
	c->fd = -1;
	if (io_read_file(path, &text, e) < 0 || load_lines(c, &text, e) < 0) {
		cassette_free(c);
		c = NULL;
	}
	buf_release(&text);
	return c;
}

struct cassette *
cassette_record_to(const char *path, struct err *e)
{
	int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	struct cassette *c;

	if (fd < 0) {
		err_sys(e, "cannot record to '%s'", path);
		return NULL;
	}
	c = xcalloc(1, sizeof(*c));
	c->path = path;
	c->fd = fd;
	return c;
}

void
cassette_free(struct cassette *c)
{
	size_t i;

	if (c == NULL)
		return;
	for (i = 0; i < c->n; i++)
		json_object_put(c->entries[i].value);
	free(c->entries);
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

/* ---- what is compared ---- */

/* call-1 for the first id that appears, and so on. */
static struct json_object *
numbered(struct json_object *ids, struct json_object *id)
{
	const char *key = json_object_get_string(id);
	struct json_object *known = json_get(ids, key);
	char name[40];

	if (known == NULL) {
		snprintf(name, sizeof(name), "call-%d", json_object_object_length(ids) + 1);
		known = json_object_new_string(name);
		json_object_object_add(ids, key, known);
	}
	return json_object_get(known);
}

static void
steady(struct json_object *v, struct json_object *ids)
{
	static const char *const id_keys[] = { "id", "tool_call_id", "parent_id", "call_id", "tool_use_id", NULL };
	size_t i;

	if (json_object_is_type(v, json_type_array)) {
		for (i = 0; i < json_object_array_length(v); i++)
			steady(json_object_array_get_idx(v, i), ids);
	} else if (json_object_is_type(v, json_type_object)) {
		json_object_object_foreach(v, key, value) {
			if (listed(key, id_keys) && json_object_is_type(value, json_type_string))
				json_object_object_add(v, key, numbered(ids, value));
			else if (strcmp(key, "tools") != 0)
				steady(value, ids);
		}
	}
}

static void
without_times(struct json_object *v)
{
	size_t i;

	if (json_object_is_type(v, json_type_array)) {
		for (i = 0; i < json_object_array_length(v); i++)
			without_times(json_object_array_get_idx(v, i));
	} else if (json_object_is_type(v, json_type_object)) {
		json_object_object_del(v, "created_at");
		json_object_object_foreach(v, key, value) {
			(void)key;
			without_times(value);
		}
	}
}

static int
parse_lines(struct json_object **out, const struct buf *body, struct err *e)
{
	struct json_object *lines = json_object_new_array(), *v;
	const char *p = body->data, *stop = p + body->len, *end;

	*out = json_object_new_object();
	json_object_object_add(*out, "lines", lines);
	for (; p < stop; p = end + 1) {
		end = memchr(p, '\n', (size_t)(stop - p));
		if (end == NULL)
			end = stop;
		if (json_parse(&v, p, (size_t)(end - p), e) < 0)
			return -1;
		json_object_array_add(lines, v);
	}
	without_times(lines);
	return 0;
}

static int
canonical(struct json_object **out, bool lines, const struct buf *body, struct err *e)
{
	struct json_object *ids;

	*out = NULL;
	if ((lines ? parse_lines(out, body, e) : json_parse(out, body->data, body->len, e)) < 0)
		return -1;
	if (!lines) {
		json_object_object_del(*out, "model");
		json_object_object_del(*out, "stream");
		json_object_object_del(*out, "stream_options");
		if (json_get(*out, "tools") == NULL)
			json_object_object_add(*out, "tools", json_object_new_array());
	}
	ids = json_object_new_object();
	steady(*out, ids);
	json_object_put(ids);
	return 0;
}

/* Where two values first differ: path is what leads there, same the number of equal values before. */
struct difference {
	struct buf path;
	size_t same;
	struct json_object *want, *got;		/* borrowed */
};

static bool differ(struct difference *d, struct json_object *want, struct json_object *got, bool partly);

static bool
differ_at(struct difference *d, const char *key, size_t index, struct json_object *want, struct json_object *got)
{
	size_t len = d->path.len;

	if (key != NULL)
		buf_addf(&d->path, "%s%.60s", len > 0 ? "." : "", key);
	else
		buf_addf(&d->path, "[%zu]", index);
	if (differ(d, want, got, false))
		return true;
	buf_drop(&d->path, 0);
	d->path.len = len;
	d->path.data[len] = '\0';
	return false;
}

static bool
differ_object(struct difference *d, struct json_object *want, struct json_object *got, bool partly)
{
	json_object_object_foreach(want, key, value) {
		if (differ_at(d, key, 0, value, json_get(got, key)))
			return true;
	}
	if (partly)
		return false;
	json_object_object_foreach(got, other, there) {
		if (!json_object_object_get_ex(want, other, NULL) && differ_at(d, other, 0, NULL, there))
			return true;
	}
	return false;
}

static bool
differ_array(struct difference *d, struct json_object *want, struct json_object *got)
{
	size_t i, n = json_object_array_length(want), m = json_object_array_length(got);

	for (i = 0; i < n || i < m; i++)
		if (differ_at(d, NULL, i, i < n ? json_object_array_get_idx(want, i) : NULL, i < m ? json_object_array_get_idx(got, i) : NULL))
			return true;
	return false;
}

/* partly: members that want does not have are not compared. */
static bool
differ(struct difference *d, struct json_object *want, struct json_object *got, bool partly)
{
	if (json_object_get_type(want) == json_object_get_type(got)) {
		if (json_object_is_type(want, json_type_object))
			return differ_object(d, want, got, partly);
		if (json_object_is_type(want, json_type_array))
			return differ_array(d, want, got);
	}
	if (json_object_equal(want, got)) {
		d->same++;
		return false;
	}
	d->want = want;
	d->got = got;
	return true;
}

/* ---- finding an entry ---- */

struct question {
	const struct llm_request *r;
	struct json_object *all;	/* {"ask", "request", "provider", "model"}: what an entry may be compared with */
};

static int
make_question(struct question *q, const struct llm_request *r, bool lines, const struct buf *body, struct err *e)
{
	struct buf ask = BUF_INIT;
	struct json_object *request;
	int rc;

	q->r = r;
	q->all = json_object_new_object();
	rc = canonical(&request, lines, body, e);
	json_object_object_add(q->all, "request", request);
	if (rc == 0)
		rc = last_request(&ask, r, e);
	json_object_object_add(q->all, "ask", json_object_new_string_len(ask.data, (int)ask.len));
	json_object_object_add(q->all, "provider", json_object_new_string(r->config->provider));
	json_object_object_add(q->all, "model", json_object_new_string(r->config->model));
	buf_release(&ask);
	return rc;
}

static bool
lacks(struct json_object *text, struct json_object *part)
{
	return json_object_is_type(part, json_type_string) && memmem(json_object_get_string(text), (size_t)json_object_get_string_len(text),
	    json_object_get_string(part), (size_t)json_object_get_string_len(part)) == NULL;
}

/* Whether one of an entry's conditions does not hold; path is what leads to where. */
static bool
unfit_in(struct difference *d, const struct entry *entry, const struct question *q, const char *key)
{
	struct json_object *want = json_get(entry->value, key), *got = json_get(q->all, key);

	if (want == NULL)
		return false;
	buf_reset(&d->path);
	if (strcmp(key, "request") != 0)
		buf_adds(&d->path, key);
	if (strcmp(key, "contains") == 0) {
		d->want = want;
		d->got = json_get(q->all, "ask");
		if (lacks(d->got, want))
			return true;
	} else if (differ(d, want, got, strcmp(key, "request") == 0)) {
		return true;
	}
	d->same++;
	return false;
}

/* What was asked is compared before who was asked: the nearest entry is one about the same. */
static bool
unfit(struct difference *d, const struct entry *entry, const struct question *q)
{
	static const char *const keys[] = { "ask", "contains", "request", "provider", "model" };
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (unfit_in(d, entry, q, keys[i]))
			return true;
	return false;
}

static struct entry *
find_entry(struct cassette *c, const struct question *q)
{
	struct entry *last = NULL;
	struct difference d;
	bool no;
	size_t i;

	for (i = 0; i < c->n; i++) {
		d = (struct difference){ .path = BUF_INIT };
		no = unfit(&d, &c->entries[i], q);
		buf_release(&d.path);
		if (no)
			continue;
		last = &c->entries[i];
		if (!last->used)
			break;
	}
	return last;
}

/* From a few bytes before `at`, at the beginning of a character. */
static void
show_from(struct buf *out, struct json_object *v, size_t at)
{
	struct buf text = BUF_INIT;
	size_t from = at > 12 ? at - 12 : 0, n;

	if (v == NULL) {
		buf_adds(out, "nothing");
		return;
	}
	if (json_object_is_type(v, json_type_string))
		buf_add(&text, json_object_get_string(v), (size_t)json_object_get_string_len(v));
	else
		json_write(&text, v, JSON_COMPACT);
	while (from > 0 && from < text.len && (text.data[from] & 0xc0) == 0x80)
		from--;
	n = text.len - from < 60 ? text.len - from : 60;
	while (n > 0 && from + n < text.len && (text.data[from + n] & 0xc0) == 0x80)
		n--;
	buf_adds(out, from > 0 ? "'..." : "'");
	quote_text(out, text.data + from, n, NULL);
	buf_adds(out, from + n < text.len ? "...'" : "'");
	buf_release(&text);
}

static size_t
common_prefix(struct json_object *a, struct json_object *b)
{
	size_t n = 0, m;

	if (!json_object_is_type(a, json_type_string) || !json_object_is_type(b, json_type_string))
		return 0;
	m = (size_t)json_object_get_string_len(a);
	if (m > (size_t)json_object_get_string_len(b))
		m = (size_t)json_object_get_string_len(b);
	while (n < m && json_object_get_string(a)[n] == json_object_get_string(b)[n])
		n++;
	return n;
}

/* Of an entry for another provider or model that is what is to be told: the bodies differ everywhere then. */
static void
who_first(struct difference *d, size_t *common, const struct entry *entry, const struct question *q)
{
	static const char *const keys[] = { "provider", "model" };
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct difference who = { .path = BUF_INIT };

		if (unfit_in(&who, entry, q, keys[i])) {
			buf_release(&d->path);
			*d = who;
			*common = 0;
			return;
		}
		buf_release(&who.path);
	}
}

static int
no_answer(const struct cassette *c, const struct question *q, struct err *e)
{
	struct difference d, nearest = { .path = BUF_INIT };
	struct buf want = BUF_INIT, got = BUF_INIT;
	const struct entry *entry = NULL;
	size_t i, line = 0, at, common = 0;

	for (i = 0; i < c->n; i++) {
		d = (struct difference){ .path = BUF_INIT };
		unfit(&d, &c->entries[i], q);
		at = common_prefix(d.want, d.got);
		if (line == 0 || d.same > nearest.same || (d.same == nearest.same && at > common)) {
			buf_release(&nearest.path);
			nearest = d;
			common = at;
			line = c->entries[i].line;
			entry = &c->entries[i];
		} else {
			buf_release(&d.path);
		}
	}
	if (line == 0)
		return err_set(e, ERR_UNAVAIL, "%s: the cassette is empty", c->path);
	who_first(&nearest, &common, entry, q);
	show_from(&want, nearest.want, common);
	show_from(&got, nearest.got, common);
	err_set(e, ERR_UNAVAIL, "%s: no recorded answer fits; line %zu is nearest and differs in %.200s: recorded %s, asked %s", c->path,
	    line, nearest.path.data, want.data, got.data);
	buf_release(&want);
	buf_release(&got);
	buf_release(&nearest.path);
	return -1;
}

int
cassette_answer(struct cassette *c, const struct llm_request *r, bool lines, const struct buf *body, const struct llm_sink *sink,
    struct llm_reply *reply, struct err *e)
{
	struct question q;
	struct entry *entry;
	int rc = make_question(&q, r, lines, body, e);

	if (rc == 0) {
		entry = find_entry(c, &q);
		if (entry == NULL) {
			rc = no_answer(c, &q, e);
		} else {
			entry->used = true;
			rc = cassette_play_reply(json_get(entry->value, "reply"), r, sink, reply, e);
		}
	}
	json_object_put(q.all);
	return rc;
}

/* ---- recording ---- */

/* Whole lines only: what a recorder that was killed left is ended first. */
static int
append(const struct cassette *c, const struct buf *line, struct err *e)
{
	struct stat st;
	char last = '\n';
	int rc = -1;

	while (flock(c->fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_sys(e, "cannot lock '%s'", c->path);
	if (fstat(c->fd, &st) == 0 && st.st_size > 0 && pread(c->fd, &last, 1, st.st_size - 1) != 1)
		last = '\n';
	if ((last == '\n' || io_write_all(c->fd, "\n", 1) == 0) && io_write_all(c->fd, line->data, line->len) == 0)
		rc = 0;
	else
		err_sys(e, "cannot write '%s'", c->path);
	flock(c->fd, LOCK_UN);
	return rc;
}

int
cassette_add(struct cassette *c, const struct llm_request *r, bool lines, const struct buf *body, struct json_object *pieces,
    const struct llm_reply *reply, struct err *e)
{
	struct json_object *entry = json_object_new_object(), *request;
	struct buf line = BUF_INIT, clean = BUF_INIT;
	int rc = canonical(&request, lines, body, e);

	json_object_object_add(entry, "provider", json_object_new_string(r->config->provider));
	json_object_object_add(entry, "model", json_object_new_string(r->config->model));
	json_object_object_add(entry, "request", request);
	json_object_object_add(entry, "reply", cassette_record_reply(pieces, reply));
	json_write(&line, entry, JSON_COMPACT);
	buf_addch(&line, '\n');
	secret_hide(&clean, line.data, line.len, r->config->api_key);
	if (rc == 0)
		rc = append(c, &clean, e);
	buf_release(&line);
	buf_release(&clean);
	json_object_put(entry);
	return rc;
}

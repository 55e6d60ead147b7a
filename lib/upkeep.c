#include "upkeep.h"

#include "base/alloc.h"
#include "base/io.h"
#include "base/log.h"
#include "base/run.h"
#include "base/utf8.h"
#include "llm/llm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define ERRORS_MAX (16u << 10)
#define STATUS_MAX (64u << 10)
#define LOCK_TTL_MS 60000	/* renewed while it is held, where it has to be */
#define SHOWN_MAX 900		/* bytes of an error's message in an event */

/* ---- the program ---- */

static char *
last_line(const struct buf *errors)
{
	const char *end = errors->data + errors->len, *start;

	while (end > errors->data && (end[-1] == '\n' || end[-1] == ' '))
		end--;
	start = memrchr(errors->data, '\n', (size_t)(end - errors->data));
	start = start ? start + 1 : errors->data;
	if ((size_t)(end - start) > 9 && strncmp(start, "ag2-ask: ", 9) == 0)
		start += 9;
	return xmemdup0(start, (size_t)(end - start));
}

/* Of a call that went well: what it warned of is for whoever reads our stderr. */
static void
pass_warnings(const struct buf *errors)
{
	const char *p = errors->data, *stop = p + errors->len, *end;

	for (; p < stop; p = end + 1) {
		end = memchr(p, '\n', (size_t)(stop - p));
		if (end == NULL)
			end = stop;
		if (end > p)
			log_warn("%.*s", (int)(end - p), p);
	}
}

static enum err_code
code_of(int status)
{
	static const enum err_code codes[] = { ERR_USAGE, ERR_DATA, ERR_NOINPUT, ERR_UNAVAIL, ERR_BUG, ERR_CREATE, ERR_IO, ERR_BUSY,
		ERR_PERM, ERR_CONFIG };
	size_t i;

	for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (err_status(codes[i]) == status)
			return codes[i];
	return ERR_UNAVAIL;
}

#define FIXED 4		/* arguments of every call */

static int
run_ask(const struct upkeep_model *m, const struct buf *input, struct buf *out, struct buf *errors, struct err *e)
{
	/* No tool is offered. A model that calls one is told so once or twice, and not for as long as a turn may take. */
	char *argv[] = { (char *)(uintptr_t)m->ask, (char *)(uintptr_t)"--events", (char *)(uintptr_t)"--no-stream",
		(char *)(uintptr_t)"--max-rounds=3", NULL, NULL, NULL };
	struct run r = { .argv = argv, .env = m->env, .cwd = m->cwd, .input = input->data, .input_len = input->len, .out = out,
		.errors = errors };
	size_t n = FIXED;
	char *said;
	int rc;

	if (m->model != NULL)
		argv[n++] = xasprintf("--model=%s", m->model);
	if (m->part != NULL)
		argv[n++] = xasprintf("--model-of=%s", m->part);
	rc = run(&r, e);
	if (rc > 0) {
		said = last_line(errors);
		if (run_interrupted())
			rc = err_set(e, ERR_UNAVAIL, "interrupted");
		else if (said[0] != '\0')
			rc = err_set(e, code_of(rc), "%s", said);
		else
			rc = err_set(e, code_of(rc), "%s ended with status %d", m->ask, rc);
		free(said);
	}
	while (n > FIXED)
		free(argv[--n]);
	return rc;
}

/* ---- its answer ---- */

static char *
copy_of(struct json_object *data, const char *key)
{
	size_t len;
	const char *text = json_get_text(data, key, &len);

	return text ? xmemdup0(text, len) : NULL;
}

/* The cost under our own kind: it was no call of a turn. */
static void
add_usage(struct upkeep_use *use, const char *kind, struct json_object *data)
{
	struct usage u = usage_of(json_get(json_get(data, "usage"), "data"));
	char *model = copy_of(data, "model"), *provider = copy_of(data, "provider"), *reason = copy_of(data, "finish_reason");

	use->known = true;
	usage_add(&use->total, &u);
	build_usage(&use->lines, &u, kind, model, provider, reason);
	buf_addch(&use->lines, '\n');
	free(model);
	free(provider);
	free(reason);
}

/* Blanks of every alphabet that a model may answer with instead of text; the length of one, 0 when it is none. */
static size_t
blank(const char *p, size_t len)
{
	uint32_t c = 0;
	size_t n = utf8_decode(p, len, &c);

	if (n == 0)
		return 0;
	return c <= 0x20 || c == 0x7f || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200d) || c == 0x2028 || c == 0x2029 ||
	    c == 0x202f || c == 0x205f || c == 0x2060 || c == 0x3000 || c == 0xfeff ? n : 0;
}

static struct text
trimmed(struct text t)
{
	size_t n, back;

	while ((n = blank(t.data, t.len)) > 0) {
		t.data += n;
		t.len -= n;
	}
	for (back = 1; back <= 3 && back <= t.len; back++)
		if (blank(t.data + t.len - back, back) == back) {
			t.len -= back;
			back = 0;
		}
	return t;
}

static int
judge(struct event *response, struct json_object *data, struct text *text, struct err *e)
{
	struct json_object *calls = json_get(json_get(data, "tool_calls"), "calls");
	char *reason = copy_of(data, "finish_reason");
	int rc = 0;

	text->data = json_get_text(json_get(data, "message"), "content", &text->len);
	if (llm_end_of(reason) == LLM_END_CUT)
		rc = err_set(e, ERR_UNAVAIL, "the model's answer was cut off (finish_reason %.100s)", reason);
	else if (llm_end_of(reason) == LLM_END_REFUSED)
		rc = err_set(e, ERR_UNAVAIL, "the model refused to answer (finish_reason %.100s)", reason);
	else if (calls != NULL && json_object_is_type(calls, json_type_array) && json_object_array_length(calls) > 0)
		rc = err_set(e, ERR_UNAVAIL, "the model called a tool instead of answering");
	else if (text->data == NULL)
		rc = err_set(e, ERR_UNAVAIL, "the model's answer holds no text");
	else if (text->len == 0)
		rc = err_set(e, ERR_UNAVAIL, "the model's answer is empty");
	else if ((*text = trimmed(*text)).len == 0)
		rc = err_set(e, ERR_UNAVAIL, "the model's answer is blank");
	else if (text->len == 4 && memcmp(text->data, "null", 4) == 0)	/* what jq -r makes of a text that is not there */
		rc = err_set(e, ERR_UNAVAIL, "the model's answer is null");
	free(reason);
	return rc;
}

static bool
has_counts(struct json_object *data)
{
	struct usage u = usage_of(json_get(json_get(data, "usage"), "data"));

	return usage_known(&u);
}

/* The last response is the answer. A usage may come with it alone: an exec: model writes the lines that it likes. */
static int
take_answer(const struct buf *out, const char *kind, struct buf *answer, struct upkeep_use *use, struct err *e)
{
	const char *p = out->data, *stop = p + out->len, *end;
	struct event ev, response = { .line = NULL };
	struct json_object *data;
	struct text text;
	bool used = false;
	int rc = 0;

	for (; rc == 0 && p < stop; p = end + 1) {
		end = memchr(p, '\n', (size_t)(stop - p));
		if (end == NULL)
			end = stop;
		if (end == p)
			continue;
		rc = event_view(&ev, p, (size_t)(end - p), e);
		data = rc == 0 ? event_data(&ev, e) : NULL;
		if (data == NULL) {
			rc = err_wrap(e, "what ag2-ask printed");
			break;
		}
		if (ev.type->flags & EV_USAGE) {
			add_usage(use, kind, data);
			used = true;
		}
		if (ev.type->flags & EV_RESPONSE) {
			event_release(&response);
			response = ev;
			continue;
		}
		event_release(&ev);
	}
	if (rc == 0 && response.line == NULL)
		rc = err_set(e, ERR_UNAVAIL, "the model gave no answer");
	if (rc == 0) {
		data = event_data(&response, e);
		if (!used && has_counts(data)) {
			add_usage(use, kind, data);
			used = true;
		}
		use->calls += used;
		rc = judge(&response, data, &text, e);
	}
	if (rc == 0)
		buf_add(answer, text.data, text.len);
	if (response.line != NULL)
		event_release(&response);
	return rc;
}

int
upkeep_ask(const struct upkeep_model *m, const char *kind, struct text prompt, struct buf *answer, struct upkeep_use *use,
    struct err *e)
{
	struct buf input = BUF_INIT, out = BUF_INIT_MAX(UPKEEP_ANSWER_MAX), errors = BUF_INIT_MAX(ERRORS_MAX);
	int rc;

	build_request(&input, &prompt, 1);
	buf_addch(&input, '\n');
	rc = run_ask(m, &input, &out, &errors, e);
	if (rc == 0)
		rc = take_answer(&out, kind, answer, use, e);
	if (rc == 0)
		pass_warnings(&errors);
	buf_release(&input);
	buf_release(&out);
	buf_release(&errors);
	return rc;
}

void
upkeep_use_release(struct upkeep_use *use)
{
	buf_release(&use->lines);
	*use = (struct upkeep_use)UPKEEP_USE_INIT;
}

bool
upkeep_too_long(const struct err *e)
{
	/* Servers have no common code for it, but these words. */
	static const char *const signs[] = { "context_length", "context length", "context window", "context size", "maximum context",
		"too long", "too many tokens", "too large", "exceeds the maximum", "input length", "413", NULL };
	size_t i;

	if (e->code != ERR_UNAVAIL && e->code != ERR_DATA)
		return false;
	for (i = 0; signs[i] != NULL; i++)
		if (strcasestr(e->msg, signs[i]) != NULL)
			return true;
	return false;
}

bool
upkeep_unreachable(const struct err *e)
{
	return e->code == ERR_UNAVAIL && strstr(e->msg, "no answer from ") != NULL;
}

/* ---- telling ---- */

static void
status_path(struct buf *path, const char *stream, const char *what, const char *end)
{
	buf_reset(path);
	buf_addf(path, UPKEEP_STATUS_DIR "/%s/%s%s", stream, what, end);
}

static void
tell(int fd, const struct buf *line)
{
	if (fd >= 0 && io_write_all(fd, line->data, line->len) < 0)
		log_warn("cannot write to --status-fd: %s", strerror(errno));
}

/* On a store that is full or read-only the work itself fails, and that is told, in one line. */
static void
keep(struct store *s, const char *path, const struct buf *line)
{
	if (s != NULL)
		store_write(s, path, line->data, line->len, NULL);
}

void
upkeep_started(struct upkeep_run *r, uint64_t events)
{
	buf_reset(&r->line);
	build_started(&r->line, r->what, r->agent, r->strategy, events);
	buf_addch(&r->line, '\n');
	r->started = true;
	tell(r->status_fd, &r->line);
	if (r->store != NULL) {
		status_path(&r->path, r->stream, r->what, "Started");
		keep(r->store, r->path.data, &r->line);
	}
}

static void
begin_end(struct upkeep_run *r, const char *end)
{
	buf_reset(&r->line);
	if (r->store != NULL)
		status_path(&r->path, r->stream, r->what, end);
}

void
upkeep_compacted(struct upkeep_run *r, uint64_t before, uint64_t after, const struct upkeep_use *use)
{
	begin_end(r, "Completed");
	build_compacted(&r->line, r->agent, r->strategy, before, after, use->calls, &use->total);
	buf_addch(&r->line, '\n');
}

void
upkeep_aggregated(struct upkeep_run *r, uint64_t events, const struct upkeep_use *use)
{
	begin_end(r, "Completed");
	build_aggregated(&r->line, r->agent, r->strategy, events, use->calls, &use->total);
	buf_addch(&r->line, '\n');
}

struct store_op
upkeep_op(struct upkeep_run *r)
{
	return (struct store_op){ .kind = STORE_OP_WRITE, .path = r->path.data, .data = r->line.data, .len = r->line.len };
}

void
upkeep_done(struct upkeep_run *r)
{
	r->started = false;
	tell(r->status_fd, &r->line);
}

/* Exception names that a reader of AG2's events knows. */
static const char *
error_type(enum err_code code)
{
	switch (code) {
	case ERR_ABSENT:
	case ERR_NOINPUT:
		return "FileNotFoundError";
	case ERR_PERM:
		return "PermissionError";
	case ERR_IO:
	case ERR_CREATE:
		return "OSError";
	case ERR_BUSY:
	case ERR_CONFLICT:
		return "BlockingIOError";
	case ERR_UNAVAIL:
		return "ConnectionError";
	case ERR_DATA:
	case ERR_USAGE:
	case ERR_CONFIG:
		return "ValueError";
	default:
		return "RuntimeError";
	}
}

void
upkeep_failed(struct upkeep_run *r, const struct err *why)
{
	char *text = xasprintf("%.*s", SHOWN_MAX, why->msg);

	begin_end(r, "Failed");
	build_failed(&r->line, r->what, r->agent, r->strategy, error_type(why->code), text);
	buf_addch(&r->line, '\n');
	if (r->started)
		tell(r->status_fd, &r->line);
	r->started = false;
	keep(r->store, r->path.data, &r->line);
	free(text);
}

void
upkeep_run_release(struct upkeep_run *r)
{
	buf_release(&r->line);
	buf_release(&r->path);
}

void
upkeep_log_failed(int status_fd, struct store *s, const char *stream, const char *agent, const struct err *why)
{
	struct buf line = BUF_INIT, path = BUF_INIT;

	build_log_failed(&line, agent, error_type(why->code), why->msg);
	buf_addch(&line, '\n');
	tell(status_fd, &line);
	status_path(&path, stream, "EventLog", "Failed");
	if (s != NULL)
		store_write(s, path.data, line.data, line.len, NULL);	/* it is the store that fails */
	buf_release(&line);
	buf_release(&path);
}

int
upkeep_compaction_lock(struct store *s, const char *stream, struct store_lock **lock, struct err *e)
{
	struct err why = ERR_INIT;
	char *path = xasprintf("/.ag2/compact/%s", stream);
	int rc = store_lock(s, path, LOCK_TTL_MS, 0, lock, &why);

	free(path);
	if (rc < 0 && why.code == ERR_BUSY)
		return err_set(e, ERR_BUSY, "another compaction of stream '%s' is running", stream);
	return rc < 0 ? err_set(e, why.code, "%s", why.msg) : 0;
}

/* ---- what is known ---- */

static int
read_event(struct store *s, const char *stream, const char *what, const char *end, struct upkeep_event *out, struct err *e)
{
	struct buf path = BUF_INIT, line = BUF_INIT_MAX(STATUS_MAX);
	struct err why = ERR_INIT;
	struct json_object *data;
	struct event ev;
	int rc;

	status_path(&path, stream, what, end);
	rc = store_read(s, path.data, &line, NULL, &why);
	if (rc < 0 && why.code != ERR_ABSENT)
		rc = err_set(e, why.code, "%s", why.msg);
	else if (rc < 0)
		rc = 0;
	else if (event_view(&ev, line.data, strcspn(line.data, "\n"), NULL) == 0) {
		data = event_data(&ev, NULL);
		if (data != NULL && json_get(data, "created_at") != NULL) {
			out->time = json_object_get_double(json_get(data, "created_at"));
			out->error = copy_of(data, "error");
		}
		event_release(&ev);
	}
	buf_release(&path);
	buf_release(&line);
	return rc;
}

struct status_search {
	struct store *s;
	const char *stream;
	bool compaction[3], aggregation[3], log;
};

static const char *const ends[] = { "Started", "Completed", "Failed" };

static int
note_event(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	struct status_search *search = arg;
	size_t i;

	for (i = 0; i < 3; i++) {
		search->compaction[i] |= strncmp(name, "Compaction", 10) == 0 && strcmp(name + 10, ends[i]) == 0;
		search->aggregation[i] |= strncmp(name, "Aggregation", 11) == 0 && strcmp(name + 11, ends[i]) == 0;
	}
	search->log |= strcmp(name, "EventLogFailed") == 0;
	return 0;
}

int
upkeep_status_read(struct store *s, const char *stream, struct upkeep_status *st, struct err *e)
{
	struct status_search found = { .s = s, .stream = stream };
	char *dir = xasprintf(UPKEEP_STATUS_DIR "/%s", stream);
	int rc;
	size_t i;

	for (i = 0; i < 3; i++)
		st->compaction[i] = st->aggregation[i] = (struct upkeep_event){ .time = -1 };
	st->log_failed = (struct upkeep_event){ .time = -1 };
	rc = store_list(s, dir, STORE_LIST_ALL, note_event, &found, e);
	for (i = 0; rc == 0 && i < 3; i++) {
		if (found.compaction[i])
			rc = read_event(s, stream, "Compaction", ends[i], &st->compaction[i], e);
		if (rc == 0 && found.aggregation[i])
			rc = read_event(s, stream, "Aggregation", ends[i], &st->aggregation[i], e);
	}
	if (rc == 0 && found.log)
		rc = read_event(s, stream, "EventLog", "Failed", &st->log_failed, e);
	free(dir);
	if (rc < 0)
		upkeep_status_release(st);
	return rc;
}

void
upkeep_status_release(struct upkeep_status *st)
{
	size_t i;

	for (i = 0; i < 3; i++) {
		free(st->compaction[i].error);
		free(st->aggregation[i].error);
		st->compaction[i].error = st->aggregation[i].error = NULL;
	}
	free(st->log_failed.error);
	st->log_failed.error = NULL;
}

#include "llm/provider.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/utf8.h"

#include <stdlib.h>

int
sink_text(const struct llm_sink *s, const char *text, size_t len, struct err *e)
{
	if (s->fn == NULL || len == 0)
		return 0;
	return s->fn(s->arg, text, len, e) != 0 ? -1 : 0;
}

void
answer_release(struct answer *a)
{
	size_t i;

	buf_release(&a->text);
	buf_release(&a->refusal);
	for (i = 0; i < a->calls_n; i++) {
		free(a->calls[i].id);
		free(a->calls[i].name);
		buf_release(&a->calls[i].arguments);
		free(a->calls[i].vendor_metadata);
		free(a->calls[i].signature);
	}
	free(a->calls);
	json_object_put(a->files);
	event_list_release(&a->replay);
	free(a->model);
	free(a->finish_reason);
	*a = (struct answer)ANSWER_INIT;
}

void
join_halves(struct buf *b)
{
	struct buf joined = BUF_INIT;

	if (b->over || utf8_valid(b->data, b->len) == b->len)
		return;
	utf8_add_joined(&joined, b->data, b->len);
	buf_reset(b);
	buf_add(b, joined.data, joined.len);
	buf_release(&joined);
}

static int
whole_text(struct answer *a, const struct llm_sink *sink, const char *text, size_t len, struct err *e)
{
	buf_add(&a->text, text, len);
	if (a->text.over)
		return err_set(e, ERR_UNAVAIL, "the answer is larger than %u bytes", ANSWER_MAX);
	return sink_text(sink, text, len, e);
}

/* Text with halves of characters in it, or behind one. */
static int
text_of_halves(struct answer *a, const struct llm_sink *sink, const char *text, size_t len, struct err *e)
{
	struct buf piece = BUF_INIT;
	int rc;

	if (a->half)
		buf_add(&piece, a->half_bytes, 3);
	buf_add(&piece, text, len);
	a->half = utf8_ends_in_half(piece.data, piece.len);
	if (a->half) {
		piece.len -= 3;
		memcpy(a->half_bytes, piece.data + piece.len, 3);
	}
	join_halves(&piece);
	rc = whole_text(a, sink, piece.data, piece.len, e);
	buf_release(&piece);
	return rc;
}

int
answer_text(struct answer *a, const struct llm_sink *sink, const char *text, size_t len, struct err *e)
{
	if (len == 0 || (!a->half && utf8_valid(text, len) == len))
		return whole_text(a, sink, text, len, e);
	return text_of_halves(a, sink, text, len, e);
}

int
answer_end_text(struct answer *a, const struct llm_sink *sink, struct err *e)
{
	static const char unknown[] = "\xef\xbf\xbd";

	if (!a->half)
		return 0;
	a->half = false;
	return whole_text(a, sink, unknown, sizeof(unknown) - 1, e);
}

/* The latest call with this index: servers that give 0 to all mean the one they began last. */
static struct answer_call *
by_index(struct answer *a, long index)
{
	size_t i = a->calls_n;

	while (i-- > 0)
		if (a->calls[i].has_index && a->calls[i].index == index)
			return &a->calls[i];
	return NULL;
}

static struct answer_call *
by_id(struct answer *a, const char *id)
{
	size_t i = a->calls_n;

	while (i-- > 0)
		if (a->calls[i].id != NULL && strcmp(a->calls[i].id, id) == 0)
			return &a->calls[i];
	return NULL;
}

static struct answer_call *
new_call(struct answer *a, long index, struct err *e)
{
	struct answer_call *c;

	if (a->calls_n == 1000) {
		err_set(e, ERR_UNAVAIL, "the answer makes more than 1000 calls");
		return NULL;
	}
	a->calls = xgrow(a->calls, a->calls_n, &a->calls_cap, sizeof(*a->calls));
	c = &a->calls[a->calls_n++];
	*c = (struct answer_call){ .has_index = index >= 0, .index = index, .arguments = BUF_INIT_MAX(ANSWER_MAX) };
	return c;
}

static struct answer_call *
find_call(struct answer *a, long index, const char *id, const char *name)
{
	struct answer_call *c = NULL;

	if (index >= 0) {
		c = by_index(a, index);
		if (c != NULL && id != NULL && c->id != NULL && strcmp(c->id, id) != 0)
			c = by_id(a, id);
		return c;
	}
	if (id != NULL)
		return by_id(a, id);
	return name == NULL && a->calls_n > 0 ? &a->calls[a->calls_n - 1] : NULL;
}

struct answer_call *
answer_call(struct answer *a, long index, const char *id, const char *name, struct err *e)
{
	struct answer_call *c;

	if (id != NULL && *id == '\0')
		id = NULL;
	if (name != NULL && *name == '\0')
		name = NULL;
	c = find_call(a, index, id, name);
	if (c == NULL)
		c = new_call(a, index, e);
	if (c == NULL)
		return NULL;
	if (id != NULL && c->id == NULL)
		c->id = xstrdup(id);
	if (name != NULL && c->name == NULL)
		c->name = xstrdup(name);
	return c;
}

void
call_add_arguments(struct answer_call *c, struct json_object *value)
{
	if (json_object_is_type(value, json_type_string))
		buf_add(&c->arguments, json_object_get_string(value), (size_t)json_object_get_string_len(value));
	else if (value != NULL)
		json_write(&c->arguments, value, JSON_COMPACT);
}

struct answer_call *
answer_whole_call(struct answer *a, struct json_object *call, const char *id, const char *arguments, struct err *e)
{
	struct answer_call *c = answer_call(a, (long)a->calls_n, json_get_text(call, id, NULL), json_get_text(call, "name", NULL), e);

	if (c != NULL)
		call_add_arguments(c, json_get(call, arguments));
	return c;
}

int
answer_file(struct answer *a, const char *base64, size_t len, struct json_object *metadata, struct err *e)
{
	a->files_size += len;
	if (a->files_size > ANSWER_MAX) {
		json_object_put(metadata);
		return err_set(e, ERR_UNAVAIL, "the files of the answer are larger than %u bytes", ANSWER_MAX);
	}
	if (a->files == NULL)
		a->files = json_object_new_array();
	json_object_array_add(a->files, build_file(base64, len, metadata));
	return 0;
}

void
answer_replay(struct answer *a, struct buf *line)
{
	size_t len;
	char *text = buf_detach(line, &len);

	event_list_add(&a->replay, event_own(text, len));
}

/* ---- the end ---- */

bool
is_one_of(const char *word, const char *const *words)
{
	for (; *words != NULL; words++)
		if (strcasecmp(word, *words) == 0)
			return true;
	return false;
}

int
answer_make_id(char **id, struct err *e)
{
	struct buf b = BUF_INIT;

	buf_adds(&b, "call_");
	if (uuid_add(&b, e) < 0) {
		buf_release(&b);
		return -1;
	}
	free(*id);
	*id = buf_detach(&b, NULL);
	return 0;
}

static bool
id_taken(const struct answer *a, size_t before, const char *id)
{
	size_t i;

	for (i = 0; i < before; i++)
		if (strcmp(a->calls[i].id, id) == 0)
			return true;
	return false;
}

static int
finish_call(struct answer *a, size_t i, struct err *e)
{
	struct answer_call *c = &a->calls[i];
	bool cut = i + 1 == a->calls_n && llm_end_of(a->finish_reason) == LLM_END_CUT;
	const char *why;
	size_t at;

	if (c->name == NULL)
		return err_set(e, ERR_UNAVAIL, "the answer calls a tool without naming it");
	if (c->arguments.over)
		return err_set(e, ERR_UNAVAIL, "the arguments of the call of '%.100s' are larger than %u bytes", c->name, ANSWER_MAX);
	join_halves(&c->arguments);
	if (is_blank(c->arguments.data, c->arguments.len)) {
		buf_reset(&c->arguments);
		buf_adds(&c->arguments, "{}");
	}
	if (cut && strcmp(c->arguments.data, "{}") == 0)	/* what a call begins with */
		return err_set(e, ERR_UNAVAIL, "the arguments of the call of '%.100s' were cut at the limit of tokens (%.40s)", c->name, a->finish_reason);
	if (json_check(c->arguments.data, c->arguments.len, &at, &why) < 0)
		return err_set(e, ERR_UNAVAIL, "the arguments of the call of '%.100s' are not JSON%s: byte %zu: %s", c->name,
		    cut ? " (cut at the limit of tokens)" : "", at, why);
	if (c->id == NULL || id_taken(a, i, c->id))
		return answer_make_id(&c->id, e);
	return 0;
}

static void
hand_over_calls(struct answer *a, struct llm_reply *reply)
{
	size_t i;

	if (a->calls_n == 0)
		return;
	reply->calls = xcalloc(a->calls_n, sizeof(*reply->calls));
	for (i = 0; i < a->calls_n; i++) {
		reply->calls[i] = (struct call){ a->calls[i].id, a->calls[i].name, buf_detach(&a->calls[i].arguments, NULL),
			a->calls[i].vendor_metadata, a->calls[i].signature };
		a->calls[i].id = a->calls[i].name = a->calls[i].vendor_metadata = a->calls[i].signature = NULL;
	}
	reply->calls_n = a->calls_n;
}

static char *
take(char **s, const char *otherwise)
{
	char *t = *s != NULL ? *s : otherwise != NULL ? xstrdup(otherwise) : NULL;

	*s = NULL;
	return t;
}

static bool
ends_in_calls(const char *finish_reason)
{
	static const char *const reasons[] = { "tool_calls", "function_call", "tool_use", NULL };

	return finish_reason != NULL && is_one_of(finish_reason, reasons);
}

int
answer_finish(struct answer *a, const char *provider, const char *model, struct llm_reply *reply, struct err *e)
{
	size_t i;

	join_halves(&a->refusal);
	if (a->calls_n == 0 && a->text.len == 0 && ends_in_calls(a->finish_reason))
		return err_set(e, ERR_UNAVAIL, "the answer is malformed: it ends to call tools (%.40s), and calls none", a->finish_reason);
	for (i = 0; i < a->calls_n; i++)
		if (finish_call(a, i, e) < 0)
			return -1;
	if (a->text.len == 0 && a->refusal.len > 0) {
		reply->message = buf_detach(&a->refusal, &reply->message_len);
		free(a->finish_reason);
		a->finish_reason = xstrdup("refusal");
	} else if (a->text.len > 0) {
		reply->message = buf_detach(&a->text, &reply->message_len);
	}
	hand_over_calls(a, reply);
	reply->files = a->files;
	a->files = NULL;
	reply->replay = a->replay;
	a->replay = (struct event_list){ .n = 0 };
	reply->usage = a->usage;
	reply->has_usage = a->has_usage;
	reply->provider = xstrdup(provider);
	reply->model = take(&a->model, model);
	reply->finish_reason = take(&a->finish_reason, NULL);
	return 0;
}

/* ---- how it ended ---- */

enum llm_end
llm_end_of(const char *finish_reason)
{
	static const char *const cut[] = { "length", "max_tokens", "max_output_tokens", "incomplete", "model_context_window_exceeded",
		"pause_turn", "model_length", NULL };
	static const char *const refused[] = { "content_filter", "refusal", "safety", "recitation", "blocklist",
		"prohibited_content", "spii", "language", "image_safety", "image_recitation", "image_prohibited_content", "sensitive", NULL };

	if (finish_reason == NULL)
		return LLM_END_WHOLE;
	return is_one_of(finish_reason, cut) ? LLM_END_CUT : is_one_of(finish_reason, refused) ? LLM_END_REFUSED : LLM_END_WHOLE;
}

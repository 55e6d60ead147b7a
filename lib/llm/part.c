#include "llm/provider.h"

#include "base/base64.h"
#include "base/utf8.h"
#include "media.h"

#include <string.h>

static int
part_text(struct part *p, struct json_object *value, struct err *e)
{
	const char *text;
	size_t len;

	if (strcmp(p->type, "DataInput") == 0) {
		json_write(&p->text, json_get(value, "data"), JSON_COMPACT);
		return 0;
	}
	text = json_get_text(value, "content", &len);
	if (text == NULL)
		return err_set(e, ERR_DATA, "a text part has no content");
	buf_add(&p->text, text, len);
	return 0;
}

/* The kind of plain binary is the first half of its media type; in AG2 it is what it is called. */
static const char *
kind_of(struct json_object *value, bool as_ag2)
{
	const char *kind = json_get_text(json_get(value, "kind"), "value", NULL), *media = json_get_text(value, "media_type", NULL);

	if (kind == NULL)
		kind = json_get_text(value, "kind", NULL);
	if (kind != NULL && (as_ag2 || strcmp(kind, "binary") != 0))
		return kind;
	kind = media != NULL ? media_kind(media) : "binary";
	return strcmp(kind, "document") != 0 ? kind : "binary";
}

int
part_read(struct part *p, struct json_object *value, bool as_ag2, struct err *e)
{
	size_t len;
	const char *type = json_get_text(value, "__event__", &len);

	*p = (struct part){ .text = BUF_INIT, .value = value, .as_ag2 = as_ag2 };
	if (type == NULL)
		return err_set(e, ERR_DATA, "a part has no type");
	p->type = event_type_find(type, len)->last;
	if (strcmp(p->type, "TextInput") == 0 || strcmp(p->type, "DataInput") == 0) {
		p->form = PART_TEXT;
		return part_text(p, value, e);
	}
	p->kind = kind_of(value, as_ag2);
	if (strcmp(p->type, "UrlInput") == 0)
		p->form = PART_URL;
	else if (strcmp(p->type, "BinaryInput") == 0)
		p->form = PART_BINARY;
	else if (strcmp(p->type, "FileIdInput") == 0)
		p->form = PART_FILE;
	else
		return err_set(e, ERR_DATA, "a part is of the unknown type %.100s", type);
	return 0;
}

void
part_release(struct part *p)
{
	buf_release(&p->text);
}

int
part_refuse(const struct part *p, const char *provider, struct err *e)
{
	if (p->form == PART_FILE || p->kind == NULL)
		return err_set(e, ERR_DATA, "%s cannot be sent to %s", p->type, provider);
	return err_set(e, ERR_DATA, "%s(%.40s) cannot be sent to %s", p->type, p->kind, provider);
}

const char *
part_member(const struct part *p, const char *key)
{
	const char *text = json_get_text(p->value, key, NULL);

	return text != NULL ? text : "";
}

const char *
part_base64(const struct part *p)
{
	const char *text = json_get_text(json_get(p->value, "data"), "__bytes__", NULL);

	return text != NULL ? text : "";
}

void
part_decode(const struct part *p, struct buf *out)
{
	base64_decode(out, part_base64(p), strlen(part_base64(p)));
}

bool
part_is_image(const struct part *p)
{
	const char *type;

	if (p->form != PART_FILE)
		return p->form != PART_TEXT && strcmp(p->kind, "image") == 0;
	type = media_by_name(part_member(p, "filename"));
	return type != NULL && strcmp(media_kind(type), "image") == 0;
}

void
part_as_text(struct part *p)
{
	const char *name = json_get_text(json_get(p->value, "vendor_metadata"), "filename", NULL);
	struct buf bytes = BUF_INIT;

	if (p->form != PART_BINARY || strcmp(p->kind, "document") != 0 || strncmp(part_member(p, "media_type"), "text/", 5) != 0)
		return;
	if (name != NULL)
		buf_addf(&p->text, "%s:\n\n", name);
	part_decode(p, &bytes);
	utf8_add_valid(&p->text, bytes.data, bytes.len);
	p->form = PART_TEXT;
	buf_release(&bytes);
}

struct text
part_suffix(const struct part *p)
{
	const char *media = part_member(p, "media_type"), *slash = strchr(media, '/'), *sub = slash != NULL ? slash + 1 : media;

	return (struct text){ sub, strcspn(sub, p->as_ag2 ? "+" : "+;") };
}

void
put_part_url(struct buf *out, const char *name, const struct part *p)
{
	struct buf url = BUF_INIT;

	if (p->form == PART_URL)
		buf_adds(&url, part_member(p, "url"));
	else
		buf_addf(&url, "data:%s;base64,%s", part_member(p, "media_type"), part_base64(p));
	put_member(out, name, url.data, url.len);
	buf_release(&url);
}

void
put_filename(struct buf *out, const struct part *p)
{
	const char *name = json_get_text(json_get(p->value, "vendor_metadata"), "filename", NULL);
	struct text suffix = part_suffix(p);
	struct buf made = BUF_INIT;

	buf_addf(&made, "file.%.*s", (int)suffix.len, suffix.data);
	put_member_str(out, "filename", name != NULL ? name : made.data);
	buf_release(&made);
}

int
event_wrap(const struct event *ev, struct err *e)
{
	if (ev->number != 0)
		return err_wrap(e, "%s in line %llu", ev->type->last, (unsigned long long)ev->number);
	return err_wrap(e, "%s", ev->type->last);
}

static int
add_text(void *arg, struct part *p, struct err *e)
{
	struct buf *out = arg;

	if (p->form == PART_TEXT && out->len > 0)
		buf_addch(out, '\n');
	if (p->form == PART_TEXT)
		buf_add(out, p->text.data, p->text.len);
	return 0;
}

static int
request_text(struct buf *out, const struct llm_request *r, struct event *ev, struct err *e)
{
	struct json_object *data = event_data(ev, e);

	if (data == NULL || each_part(r, json_get(data, "parts"), add_text, out, e) < 0)
		return event_wrap(ev, e);
	return 0;
}

int
last_request(struct buf *out, const struct llm_request *r, struct err *e)
{
	size_t i = r->events_n;

	while (i-- > 0)
		if (r->events[i]->type->flags & EV_REQUEST)
			return request_text(out, r, r->events[i], e);
	return 0;
}

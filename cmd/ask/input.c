#include "input.h"

#include "../cli.h"
#include "base/alloc.h"

#include <stdlib.h>

static bool
add_prompt(struct input *in, struct json_object *data)
{
	size_t len;
	const char *content = json_get_text(data, "content", &len);

	if (content == NULL)
		return false;
	in->prompts = xgrow(in->prompts, in->prompts_n, &in->prompts_cap, sizeof(*in->prompts));
	in->prompts[in->prompts_n++] = (struct prompt){ .content = { xmemdup0(content, len), len },
		.at_end = prompt_at_end(data) };
	return true;
}

/* All of it goes to the model, so that all of it is read by the full grammar. */
static int
add_line(struct input *in, struct jsonl *lines, struct event *ev, struct err *e)
{
	struct err why = ERR_INIT;

	in->bytes += ev->len;
	if (in->bytes > TURN_BYTES_MAX)
		return err_set(e, ERR_DATA, "stdin: more than %u MB; let a policy such as sliding-window bound the stream",
		    TURN_BYTES_MAX >> 20);
	if (event_check(ev, &why) < 0)
		return jsonl_bad(lines, ev, &why, e);
	if (ev->type->flags & EV_PROMPT) {
		if (add_prompt(in, event_data(ev, NULL)))
			return 0;
		err_set(&why, ERR_DATA, "a Prompt without text");
		return jsonl_bad(lines, ev, &why, e);
	}
	event_list_add(&in->events, event_dup(ev));
	return 0;
}

void
read_stream(struct input *in, enum jsonl_bad on_bad)
{
	struct err e = ERR_INIT;
	struct jsonl lines;
	struct event ev;
	int rc;

	jsonl_init_fd(&lines, "stdin", on_bad, 0);
	while ((rc = jsonl_next(&lines, &ev, &e)) > 0) {
		rc = add_line(in, &lines, &ev, &e);
		event_release(&ev);
		if (rc < 0)
			break;
	}
	if (rc < 0)
		log_fail(&e);
	in->bad = on_bad == JSONL_BAD_SKIP ? 0 : lines.bad;
	jsonl_release(&lines);
}

void
input_release(struct input *in)
{
	size_t i;

	for (i = 0; i < in->prompts_n; i++)
		free((char *)in->prompts[i].content.data);
	free(in->prompts);
	event_list_release(&in->events);
}

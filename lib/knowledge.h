/*
 * What AG2 puts on top of a store: the bootstrap of a new one, and the tool by which a model uses it.
 */
#ifndef AG2_KNOWLEDGE_H
#define AG2_KNOWLEDGE_H

#include "event/json.h"
#include "store/store.h"

/*
 * Writes /.initialized (the agent's name) and the four SKILL.md in one commit when the store is not initialised; else
 * nothing. *done, may be NULL, tells which. with_tool: the text mentions the tool.
 */
int knowledge_init(struct store *s, const char *name, bool with_tool, bool *done, struct err *e);

/* The tool's declaration: {"name","description","parameters"}. The caller's: json_object_put. */
struct json_object *knowledge_schema(void);

/*
 * One call: arguments as the model wrote them; what the model reads goes to out. Returns 0 also for answers such as "Not
 * found: PATH"; -1 only when the store failed. Refuses, as an answer, to write or delete under /log, /.ag2 or / itself.
 */
int knowledge_call(struct store *s, const char *arguments, size_t len, struct buf *out, struct err *e);

#endif

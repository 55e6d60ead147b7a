/* Server-sent events (WHATWG HTML, 9.2.6): bytes in at any split, events out when complete. LF, CRLF and CR end lines. */
#ifndef AG2_SSE_H
#define AG2_SSE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

struct sse {
	struct buf line, data, event;
	bool cr, started;	/* the last byte was a CR; the byte order mark is dealt with */
	int bom;		/* bytes of it seen */
	uint64_t comments;
};
void sse_init(struct sse *s);		/* a line or event over 16 MiB is ERR_DATA */
void sse_release(struct sse *s);
/* Calls fn for each event; event is "" when unnamed. fn's non-zero value ends the feed and is returned. */
typedef int sse_fn(void *arg, const char *event, const char *data, size_t len, struct err *e);
int sse_feed(struct sse *s, const char *bytes, size_t len, sse_fn *fn, void *arg, struct err *e);
/* The stream has ended: an event whose blank line is missing is taken as well (the standard drops it; servers forget it). */
int sse_end(struct sse *s, sse_fn *fn, void *arg, struct err *e);

#endif

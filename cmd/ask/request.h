/* What is told of a request that is sent, or would be. */
#ifndef AG2_ASK_REQUEST_H
#define AG2_ASK_REQUEST_H

#include "llm/llm.h"
#include "store/store.h"

struct request_watch {
	struct store *store;		/* for `last`; NULL: none */
	const char *stream;
	const char *compare;		/* as --compare; NULL: nothing is compared */
	bool dry;			/* it is not sent: nothing is kept */
	bool origins;			/* which line each message comes from */
};

int see_request(const struct request_watch *w, const struct llm_request *r, const struct buf *body, struct err *e);

#endif

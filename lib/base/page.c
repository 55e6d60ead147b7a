#include "base/page.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#define PAGES 64

struct page {
	_Atomic uintptr_t at;	/* 0: free, 1: being made */
	size_t len;
	atomic_bool lost;
};

static struct page pages[PAGES];
static struct sigaction before;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct page *
page_of(uintptr_t at)
{
	size_t i;

	for (i = 0; i < PAGES; i++) {
		uintptr_t from = atomic_load(&pages[i].at);

		if (from > 1 && at >= from && at - from < pages[i].len)
			return &pages[i];
	}
	return NULL;
}

/* Returning repeats what failed. A signal that was sent (si_code <= 0) failed nothing, and repeats nothing. */
static void
on_bus(int number, siginfo_t *info, void *context)
{
	struct page *p = info->si_code > 0 ? page_of((uintptr_t)info->si_addr) : NULL;
	int saved = errno;

	(void)context;
	if (p != NULL && mmap((void *)p->at, p->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
		atomic_store(&p->lost, true);
	} else {
		sigaction(SIGBUS, &before, NULL);
		if (info->si_code <= 0)
			raise(number);
	}
	errno = saved;
}

static void
set_handler(void)
{
	struct sigaction a = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO };

	sigemptyset(&a.sa_mask);
	sigaction(SIGBUS, &a, &before);
}

void *
page_map(int fd, size_t len)
{
	struct page *p = pages, *end = pages + PAGES;
	uintptr_t free_slot = 0;
	void *at;

	pthread_once(&once, set_handler);
	while (p < end && !atomic_compare_exchange_strong(&p->at, &free_slot, 1)) {
		free_slot = 0;
		p++;
	}
	if (p == end)
		return NULL;
	at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	p->len = len;
	atomic_store(&p->lost, false);
	atomic_store(&p->at, at == MAP_FAILED ? 0 : (uintptr_t)at);
	return at == MAP_FAILED ? NULL : at;
}

bool
page_lost(const void *page)
{
	atomic_signal_fence(memory_order_seq_cst);	/* what came before has met its signal */
	return atomic_load(&page_of((uintptr_t)page)->lost);
}

void
page_unmap(void *page)
{
	struct page *p = page != NULL ? page_of((uintptr_t)page) : NULL;
	size_t len;

	if (p == NULL)
		return;
	len = p->len;
	atomic_store(&p->at, 0);
	munmap(page, len);
}

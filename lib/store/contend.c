#include "store/backend.h"

#include <sched.h>
#include <time.h>

#define AT_ONCE 100		/* tries */
#define PAUSE_MIN 50000		/* nanoseconds */
#define PAUSE_MAX 2000000

/*
 * Others hold it for microseconds. Sleeping takes longer than that, and who sleeps is as likely to meet the next holder when
 * it wakes, however long it has waited: so the first tries only let others run. Later ones are for a holder that waits for
 * a disk, or was stopped.
 */
void
store_contend(unsigned tries)
{
	long pause = PAUSE_MIN;
	unsigned i;

	if (tries < AT_ONCE) {
		sched_yield();
		return;
	}
	for (i = AT_ONCE; i < tries && pause < PAUSE_MAX; i++)
		pause += pause / 2;
	nanosleep(&(struct timespec){ .tv_nsec = pause < PAUSE_MAX ? pause : PAUSE_MAX }, NULL);
}

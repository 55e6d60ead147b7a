#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

static struct {
	bool set;
	double next, step;
} own;

int
clock_set(const char *text, struct err *e)
{
	char *end;

	if (text == NULL)
		return 0;
	own.next = strtod(text, &end);
	own.step = 0;
	if (end != text && *end == '+')
		own.step = strtod(end + 1, &end);
	if (end == text || *end != '\0' || !isfinite(own.next) || !isfinite(own.step) || own.next < 0 || own.step < 0)
		return err_set(e, ERR_USAGE, "AG2_NOW: '%s' is not T or T+STEP in seconds", text);
	own.set = true;
	return 0;
}

double
clock_now(void)
{
	struct timespec t;
	double now;

	if (own.set) {
		now = own.next;
		own.next += own.step;
		return now;
	}
	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)(t.tv_nsec / 1000) / 1e6;
}

double
clock_monotonic(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int
uuid_add(struct buf *b, struct err *e)
{
	unsigned char r[16];
	int i;

	if (getrandom(r, sizeof(r), 0) != sizeof(r))
		return err_sys(e, "cannot get random bytes");
	r[6] = (r[6] & 0x0f) | 0x40;
	r[8] = (r[8] & 0x3f) | 0x80;
	for (i = 0; i < 16; i++)
		buf_addf(b, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", r[i]);
	return 0;
}

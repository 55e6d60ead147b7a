#include "figure.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static int
by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
quantile(double *v, size_t n, double part)
{
	if (n == 0)
		return 0;
	qsort(v, n, sizeof(*v), by_size);
	return v[(size_t)((double)n * part)];
}

void
figure(double got, const char *unit, double target, const char *label)
{
	bool least = target < 0, ok = least ? got >= -target : got <= target;

	printf("%8.*f%-3s %s %-4g %-5s %s\n", got < 1000 ? 2 : 0, got, unit, least ? ">=" : "<=", least ? -target : target, ok ? "ok" : "MISS", label);
}

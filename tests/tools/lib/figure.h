/* What make bench prints: figures with their targets. */
#ifndef AG2_FIGURE_H
#define AG2_FIGURE_H

#include <stddef.h>

/* Sorts v; the value of which `part` (0 to 1) are below. 0 of nothing. */
double quantile(double *v, size_t n, double part);

/* One line. The target is the most that is good, or, below 0, the least with its sign turned round. */
void figure(double got, const char *unit, double target, const char *label);

#endif

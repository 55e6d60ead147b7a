#include "base/when.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* n digits at *p, which is moved behind them. */
static bool
digits(const char **p, int n, int *out)
{
	*out = 0;
	for (; n > 0; n--, (*p)++) {
		if (**p < '0' || **p > '9')
			return false;
		*out = *out * 10 + (**p - '0');
	}
	return true;
}

static bool
take(const char **p, char c)
{
	return **p == c && ++*p;
}

/* HH:MM[:SS[.FRACTION]] */
static bool
clock_time(const char **p, struct tm *tm, double *fraction)
{
	double unit = 0.1;

	if (!digits(p, 2, &tm->tm_hour) || !take(p, ':') || !digits(p, 2, &tm->tm_min) || tm->tm_hour > 23 || tm->tm_min > 59)
		return false;
	if (!take(p, ':'))
		return true;
	if (!digits(p, 2, &tm->tm_sec) || tm->tm_sec > 60)
		return false;
	if (take(p, '.'))
		for (; **p >= '0' && **p <= '9'; (*p)++, unit /= 10)
			*fraction += unit * (**p - '0');
	return true;
}

/* Z, +HH:MM or +HHMM: seconds east; nothing is local time. */
static bool
zone(const char **p, bool *local, long *east)
{
	int hours, minutes;
	char sign = **p;

	*local = false;
	*east = 0;
	if (take(p, 'Z') || take(p, 'z'))
		return true;
	if (sign != '+' && sign != '-') {
		*local = true;
		return true;
	}
	(*p)++;
	if (!digits(p, 2, &hours))
		return false;
	take(p, ':');
	if (!digits(p, 2, &minutes) || hours > 23 || minutes > 59)
		return false;
	*east = (hours * 60L + minutes) * 60 * (sign == '-' ? -1 : 1);
	return true;
}

/* Of a month from 1. A day that it has not would be taken for one of the next. */
static int
days_of(int year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return days[month - 1] + (month == 2 && leap);
}

static bool
date(const char *p, double *out)
{
	struct tm tm = { .tm_isdst = -1 };
	double fraction = 0;
	bool local = true;
	long east = 0;
	time_t t;

	if (!digits(&p, 4, &tm.tm_year) || !take(&p, '-') || !digits(&p, 2, &tm.tm_mon) || !take(&p, '-') || !digits(&p, 2, &tm.tm_mday))
		return false;
	if (tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 || tm.tm_mday > days_of(tm.tm_year, tm.tm_mon))
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	if (*p != '\0') {
		if (!(take(&p, 'T') || take(&p, ' ')) || !clock_time(&p, &tm, &fraction) || !zone(&p, &local, &east) || *p != '\0')
			return false;
	}
	t = local ? mktime(&tm) : timegm(&tm) - east;
	*out = (double)t + fraction;
	return true;
}

/* NUMBER and a unit, before now. */
static bool
ago(const char *p, double now, double *out)
{
	static const struct { char unit; double seconds; } units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 }, { 'w', 604800 } };
	size_t n = strspn(p, "0123456789"), i;

	if (n == 0 || n > 9 || p[n] == '\0' || p[n + 1] != '\0')
		return false;
	for (i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (units[i].unit == p[n]) {
			*out = now - strtod(p, NULL) * units[i].seconds;
			return true;
		}
	return false;
}

/* Days are not all 24 hours long: the calendar tells where they begin. */
static bool
day(const char *p, double now, double *out)
{
	time_t t = (time_t)floor(now);
	struct tm tm;
	int back = strcmp(p, "today") == 0 ? 0 : strcmp(p, "yesterday") == 0 ? 1 : -1;

	if (back < 0 || localtime_r(&t, &tm) == NULL)
		return false;
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_mday -= back;
	tm.tm_isdst = -1;
	*out = (double)mktime(&tm);
	return true;
}

int
parse_when(const char *text, const char *what, double now, double *out, struct err *e)
{
	size_t n;

	if (strcmp(text, "now") == 0) {
		*out = now;
		return 0;
	}
	n = text[0] == '@' ? strspn(text + 1, "0123456789.") : 0;
	if (n > 0 && n < 20 && text[n + 1] == '\0') {
		*out = strtod(text + 1, NULL);
		return 0;
	}
	if (date(text, out) || ago(text, now, out) || day(text, now, out))
		return 0;
	return err_set(e, ERR_USAGE, "%s is a date (2026-05-28, 2026-05-28T10:20), yesterday, today, or a time ago (90m, 12h, 7d, 2w), not '%.60s'",
	    what, text);
}

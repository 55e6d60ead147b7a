/*
 * Measures programs against each other on a machine that is busy with other things.
 *
 *	race [-n ROUNDS] [-c] -l LABEL -t RATIO  PROGRAM [ARG...] --- PROGRAM [ARG...]
 *	race [-n ROUNDS] -l LABEL -m MB     PROGRAM [ARG...]
 *
 * The first form runs both in turn, ROUNDS times each after an unmeasured round, first one first in even rounds and last
 * in odd ones, from fork to exit, and prints the median over the rounds of the first one's time divided by the second's.
 * With -c it is the time of the processor, user's and system's.
 * The second prints the greatest resident memory of a run. Standard input and output are /dev/null; for a pipeline the
 * program is sh. A program that fails makes race fail: exit 1.
 */
#include "lib/figure.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

struct took {
	double seconds, megabytes, processor;
};

static posix_spawn_file_actions_t null_files;

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static double
seconds(struct timeval t)
{
	return t.tv_sec + t.tv_usec / 1e6;
}

static struct took
measure(char **argv)
{
	double from = now();
	struct rusage usage;
	int error, status;
	pid_t pid;

	error = posix_spawnp(&pid, argv[0], &null_files, NULL, argv, environ);
	if (error) {
		fprintf(stderr, "race: %s: %s\n", argv[0], strerror(error));
		exit(1);
	}
	while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR)
		;
	if (status) {
		fprintf(stderr, "race: %s failed: wait status %d\n", argv[0], status);
		exit(1);
	}
	return (struct took){ now() - from, usage.ru_maxrss / 1024.0, seconds(usage.ru_utime) + seconds(usage.ru_stime) };
}

static double
median_ratio(char **first, char **second, long rounds, int processor)
{
	double *ratios = calloc(rounds, sizeof *ratios), median;
	struct took a, b;
	long i;

	if (!ratios)
		abort();
	measure(first);
	measure(second);
	for (i = 0; i < rounds; i++) {
		if (i % 2)
			b = measure(second);
		a = measure(first);
		if (i % 2 == 0)
			b = measure(second);
		ratios[i] = processor ? a.processor / b.processor : a.seconds / b.seconds;
	}
	median = quantile(ratios, (size_t)rounds, 0.5);
	free(ratios);
	return median;
}

static double
greatest_rss(char **argv, long rounds)
{
	double most = 0;
	struct took t;

	while (rounds--) {
		t = measure(argv);
		if (t.megabytes > most)
			most = t.megabytes;
	}
	return most;
}

static char **
second_of(char **argv)
{
	for (; *argv; argv++)
		if (strcmp(*argv, "---") == 0) {
			*argv = NULL;
			return argv + 1;
		}
	return argv;
}

static int
usage(void)
{
	fputs("usage: race [-n ROUNDS] [-c] -l LABEL -t RATIO PROGRAM [ARG...] --- PROGRAM [ARG...]\n"
	    "       race [-n ROUNDS] -l LABEL -m MB PROGRAM [ARG...]\n", stderr);
	return 64;
}

int
main(int argc, char **argv)
{
	const char *label = "";
	double ratio = 0, megabytes = 0;
	char **second;
	long rounds = 1;
	int opt, processor = 0;

	while ((opt = getopt(argc, argv, "+n:l:t:m:c")) != -1)
		switch (opt) {
		case 'c': processor = 1; break;
		case 'n': rounds = strtol(optarg, NULL, 10); break;
		case 'l': label = optarg; break;
		case 't': ratio = strtod(optarg, NULL); break;
		case 'm': megabytes = strtod(optarg, NULL); break;
		default: return usage();
		}
	argv += optind;
	second = second_of(argv);
	if (rounds < 1 || !*argv || (ratio > 0) == (megabytes > 0) || (ratio > 0 && !*second))
		return usage();
	if (posix_spawn_file_actions_init(&null_files) ||
	    posix_spawn_file_actions_addopen(&null_files, 0, "/dev/null", O_RDONLY, 0) ||
	    posix_spawn_file_actions_addopen(&null_files, 1, "/dev/null", O_WRONLY, 0))
		return 1;
	if (ratio > 0)
		figure(median_ratio(argv, second, rounds, processor), "", ratio, label);
	else
		figure(greatest_rss(argv, rounds), " MB", megabytes, label);
	return fclose(stdout) ? 74 : 0;
}

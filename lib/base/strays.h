/*
 * The descendants of a child that have left its process group (setsid, a shell's job control): a signal to the group does
 * not reach them. Those whose parent has ended before they are looked for belong to nobody any more, and are not found.
 */
#ifndef AG2_STRAYS_H
#define AG2_STRAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define STRAYS_MAX 256

struct strays {			/* begins as zeros */
	struct stray {
		pid_t pid;
		int fd;		/* so that no other process of that number is meant */
	} all[STRAYS_MAX];
	size_t n;
};

/* Adds the descendants of root, and those of what was found before, that are in another process group; root -1: it has ended. What is over the maximum is left. */
void strays_find(struct strays *s, pid_t root);
void strays_signal(const struct strays *s, int sig);
bool strays_gone(const struct strays *s);
void strays_release(struct strays *s);

/* Whether nothing in the process group runs any more, though the parent of some, often process 1, may not have waited for them yet. */
bool strays_group_ended(pid_t group);

#endif

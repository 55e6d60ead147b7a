#include "base/strays.h"

#include "base/alloc.h"
#include "base/io.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

struct process {
	pid_t pid, parent, group;
	bool ended;	/* and is waited for by its parent yet */
	bool ours;
};

struct table {
	struct process *all;	/* by number */
	size_t n, cap;
};

/* From /proc/PID/stat: `PID (NAME) STATE PARENT GROUP ...`; the name may hold anything. */
static bool
read_process(const char *name, struct process *p)
{
	char path[64], text[512];
	const char *end;
	int fd, parent, group;
	char state;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = io_read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	end = strrchr(text, ')');
	if (end == NULL || sscanf(end + 1, " %c %d %d", &state, &parent, &group) != 3)
		return false;
	*p = (struct process){ .pid = (pid_t)strtol(name, NULL, 10), .parent = parent, .group = group, .ended = state == 'Z' || state == 'X' };
	return true;
}

static int
by_pid(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static void
read_table(struct table *t)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	struct process p;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || !read_process(entry->d_name, &p))
			continue;
		t->all = xgrow(t->all, t->n, &t->cap, sizeof(*t->all));
		t->all[t->n++] = p;
	}
	if (dir != NULL)
		closedir(dir);
	if (t->n > 0)
		qsort(t->all, t->n, sizeof(*t->all), by_pid);
}

static bool
ended(const struct stray *s)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };

	return poll(&p, 1, 0) != 0;
}

/* Whether it is root or descends from it, as far as was found out. */
static bool
is_ours(const struct table *t, pid_t root, pid_t pid)
{
	const struct process key = { .pid = pid }, *found;

	found = t->n > 0 ? bsearch(&key, t->all, t->n, sizeof(*t->all), by_pid) : NULL;
	return pid == root || (found != NULL && found->ours);
}

/* Those that were found before. */
static void
mark_known(struct table *t, const struct strays *s)
{
	struct process *found;
	size_t i;

	for (i = 0; i < s->n && t->n > 0; i++) {
		const struct process key = { .pid = s->all[i].pid };

		found = bsearch(&key, t->all, t->n, sizeof(*t->all), by_pid);
		if (found != NULL && !ended(&s->all[i]))
			found->ours = true;
	}
}

/* A number may have gone to another process since the table was read: it is the one that was meant when its parent still is. */
static void
add_stray(struct strays *s, const struct process *p)
{
	struct process now;
	char name[24];
	size_t i;
	int fd;

	for (i = 0; i < s->n; i++)
		if (s->all[i].pid == p->pid)
			return;
	if (s->n == STRAYS_MAX || (fd = pidfd_open(p->pid, 0)) < 0)
		return;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	snprintf(name, sizeof(name), "%d", (int)p->pid);
	if (read_process(name, &now) && now.parent == p->parent)
		s->all[s->n++] = (struct stray){ p->pid, fd };
	else
		close(fd);
}

void
strays_find(struct strays *s, pid_t root)
{
	struct table t = { .all = NULL };
	bool more = true;
	size_t i;

	read_table(&t);
	mark_known(&t, s);
	while (more) {
		more = false;
		for (i = 0; i < t.n; i++) {
			if (t.all[i].ours || !is_ours(&t, root, t.all[i].parent))
				continue;
			t.all[i].ours = more = true;
			if (t.all[i].group != root)
				add_stray(s, &t.all[i]);
		}
	}
	free(t.all);
}

void
strays_signal(const struct strays *s, int sig)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		pidfd_send_signal(s->all[i].fd, sig, NULL, 0);
}

bool
strays_gone(const struct strays *s)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (!ended(&s->all[i]))
			return false;
	return true;
}

void
strays_release(struct strays *s)
{
	while (s->n > 0)
		close(s->all[--s->n].fd);
}

bool
strays_group_ended(pid_t group)
{
	struct table t = { .all = NULL };
	bool all = true;
	size_t i;

	read_table(&t);
	for (i = 0; i < t.n; i++)
		all = all && (t.all[i].group != group || t.all[i].ended);
	all = all && t.n > 0;	/* without /proc nobody knows */
	free(t.all);
	return all;
}

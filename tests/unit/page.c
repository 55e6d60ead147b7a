/* A page of a file in memory, when the file is taken from under it; and the journal of a disk store, which lives in one. */
#include "base/page.h"

#include "base/alloc.h"
#include "store/journal.h"
#include "store/store.h"
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 4096

static struct err e;

static int
file(const char *name, size_t len)
{
	char *path = xasprintf("%s/%s", tmpdir(), name), zeros[SIZE] = "as it was";
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || pwrite(fd, zeros, len, 0) != (ssize_t)len)
		bail("%s: %s", path, strerror(errno));
	free(path);
	return fd;
}

static void
pages(void)
{
	int fd = file("page", SIZE), other = file("other", SIZE);
	char *page = page_map(fd, SIZE), *second = page_map(other, SIZE), got[10] = "";

	if (!ok(page != NULL && second != NULL, "two pages are mapped"))
		return;
	is_str(page, "as it was", "a page has what the file has");
	memcpy(page, "new", sizeof("new"));
	ok(pread(fd, got, 4, 0) == 4 && !page_lost(page), "and the file what the page is given");
	is_str(got, "new", "at once");
	ok(ftruncate(fd, 0) == 0, "the file is cut");
	is_int(page[0], 0, "what is read is zeros then");
	ok(page_lost(page), "and is known not to be the file's");
	page[1] = 'x';
	is_int(page[1], 'x', "writing does no harm");
	ok(!page_lost(second), "the other page is what it was");
	ok(ftruncate(other, 0) == 0, "its file is cut");
	second[0] = 'x';
	ok(page_lost(second), "that what was written went nowhere is known, too");
	page_unmap(page);
	page_unmap(second);
	ok(ftruncate(fd, SIZE) == 0 && (page = page_map(fd, SIZE)) != NULL && !page_lost(page), "a page that is mapped again is good again");
	page_unmap(page);
	page_unmap(NULL);
	close(fd);
	close(other);
}

static int
status_of(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		bail("fork");
	return status;
}

/* No page of ours. */
static void
others(void)
{
	int fd = file("page", SIZE), status = 0;
	char *page;
	pid_t pid;

	fflush(stdout);
	if ((pid = fork()) == 0) {
		close(2);	/* what a sanitizer has to say of it */
		page_map(fd, SIZE);
		page = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
		if (ftruncate(fd, 0) == 0 && ((volatile char *)page)[0] == 0)
			_exit(0);
		_exit(0);
	}
	ok(status_of(pid) != 0, "who maps a file without asking us dies of it as before");
	fflush(stdout);
	if ((pid = fork()) == 0) {
		close(2);
		page_map(fd, SIZE);
		kill(getpid(), SIGBUS);
		_exit(0);
	}
	status = status_of(pid);
	ok(status != 0, "and of the signal when it is sent: %d", status);
	close(fd);
}

static void
many(void)
{
	int fd = file("page", SIZE), i;
	void *page[100];

	for (i = 0; i < 100; i++)
		if ((page[i] = page_map(fd, SIZE)) == NULL)
			break;
	ok(i >= 32 && i < 100, "there is a most: %d", i);
	while (i > 0)
		page_unmap(page[--i]);
	ok((page[0] = page_map(fd, SIZE)) != NULL, "with those given back there is room again");
	page_unmap(page[0]);
	close(fd);
}

/* The journal. */

struct place {
	char *root, *lock;
	int fd;
	struct journal j;
};

static int
make(void *arg, struct err *err)
{
	struct place *p = arg;

	return open(p->lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static void
taken(struct place *p)
{
	if (journal_retake(&p->j, 100, &e) != 1)
		bail("the lock is not taken again: %s", e.msg);
}

/* A journal that was locked before, so that its page is mapped. */
static void
place_init(struct place *p, const char *name)
{
	char *dir;

	*p = (struct place){ .root = xasprintf("%s/%s", tmpdir(), name), .j = JOURNAL_INIT };
	dir = xasprintf("%s/.ag2", p->root);
	p->lock = xasprintf("%s/lock", dir);
	if (mkdir(p->root, 0700) < 0 || mkdir(dir, 0700) < 0 || (p->fd = open(p->root, O_PATH | O_DIRECTORY)) < 0)
		bail("%s: %s", dir, strerror(errno));
	p->j.may_map = true;
	ok(journal_retake(&p->j, 100, &e) == 0, "%s: a journal that was not locked before is not locked again", name);
	if (journal_lock(&p->j, p->fd, true, make, p, 100, &e) < 0)
		bail("%s", e.msg);
	journal_unlock(&p->j);
	taken(p);
	free(dir);
}

static void
place_release(struct place *p)
{
	journal_unlock(&p->j);
	journal_close(&p->j);
	close(p->fd);
	free(p->root);
	free(p->lock);
}

/* What another process finds. */
static const char *
found(struct place *p)
{
	struct journal j = JOURNAL_INIT;
	static struct buf text = BUF_INIT;
	struct buf record = BUF_INIT;
	uint64_t at;

	buf_reset(&text);
	journal_unlock(&p->j);
	if (journal_lock(&j, p->fd, true, make, p, 100, &e) < 0)
		buf_adds(&text, e.msg);
	else if ((j.seq & 1) == 0)
		buf_adds(&text, "nothing");
	else if (journal_record(&j, &record, &at, &e) < 0 || journal_data(&j, at, 4, &record, &e) < 0)
		buf_adds(&text, e.msg);
	else
		buf_add(&text, record.data, record.len);
	buf_release(&record);
	journal_unlock(&j);
	journal_close(&j);
	return text.data;
}

static void
begun(struct place *p)
{
	struct buf record = BUF_INIT;
	struct iovec data = { (void *)"data", 4 };

	buf_adds(&record, "what it takes: ");
	ok(journal_begin(&p->j, &record, &data, 1, false, &e) == 0, "a change is decided: %s", e.msg);
	buf_release(&record);
}

static void
cut(struct place *p, const char *when)
{
	if (truncate(p->lock, 0) < 0)
		bail("%s: %s", p->lock, strerror(errno));
	printf("# the journal is cut %s\n", when);
}

static void
journal(void)
{
	struct place p;
	uint64_t seq;

	place_init(&p, "whole");
	printf("# the page is %s on this file system\n", p.j.page != NULL ? "mapped" : "not mapped");
	begun(&p);
	is_str(found(&p), "what it takes: data", "who comes when its writer is dead finds it");
	ok(journal_peek(&p.j, p.fd, &seq, &e) == 0 && seq == 1, "a reader sees that one is under way");
	taken(&p);
	ok((p.j.seq & 1) != 0 && journal_end(&p.j, &e) == 0, "it is done");
	is_str(found(&p), "nothing", "and nothing is left to do");
	ok(journal_peek(&p.j, p.fd, &seq, &e) == 0 && seq == 2, "nor is a reader told so");
	place_release(&p);

	place_init(&p, "cut-first");
	cut(&p, "before a change");
	begun(&p);
	is_str(found(&p), "what it takes: data", "the change is in the file");
	place_release(&p);

	place_init(&p, "cut-within");
	begun(&p);
	cut(&p, "in the middle of a change");
	ok(journal_end(&p.j, &e) == 0, "it ends: %s", e.msg);
	is_str(found(&p), "nothing", "the next finds a journal that is new");
	place_release(&p);

	place_init(&p, "cut-between");
	journal_unlock(&p.j);
	cut(&p, "while nobody holds it");
	taken(&p);
	ok(p.j.page == NULL, "it is mapped no longer");
	begun(&p);
	is_str(found(&p), "what it takes: data", "the change is in the file");
	place_release(&p);

	place_init(&p, "removed");
	journal_unlock(&p.j);
	if (unlink(p.lock) < 0)
		bail("unlink");
	ok(journal_retake(&p.j, 100, &e) == 0 && !p.j.held, "one that was removed is not taken again");
	place_release(&p);

	place_init(&p, "named-twice");
	journal_unlock(&p.j);
	if (linkat(p.fd, ".ag2/lock", p.fd, "copy", 0) < 0)
		bail("link");
	ok(journal_retake(&p.j, 100, &e) == 0 && !p.j.held, "nor one that has a second name: the first may be gone");
	place_release(&p);
}

/* A damaged record is told from a whole one, of either kind of sum. */
static void
damage(bool full)
{
	struct place p;
	struct buf record = BUF_INIT;
	char c = '\0';
	int i, at, good = 0, fd;

	place_init(&p, full ? "sum-full" : "sum-quick");
	buf_adds(&record, "a record that is a little longer");
	ok(journal_begin(&p.j, &record, NULL, 0, full, &e) == 0, "a change is decided");
	fd = open(p.lock, O_RDWR);
	for (i = 0; i < (int)record.len; i++) {
		struct buf got = BUF_INIT;
		uint64_t data_at;

		at = 64 + i;
		if (pread(fd, &c, 1, at) != 1 || (c ^= 1, pwrite(fd, &c, 1, at)) != 1)
			bail("pwrite");
		good += journal_record(&p.j, &got, &data_at, &e) < 0;
		buf_reset(&got);
		c ^= 1;
		if (pwrite(fd, &c, 1, at) != 1)
			bail("pwrite");
		good += journal_record(&p.j, &got, &data_at, &e) == 0;
		buf_release(&got);
	}
	is_int(good, 2 * (int)record.len, "each byte of its record that is not as it was is noticed, %s", full ? "with full" : "without");
	close(fd);
	buf_release(&record);
	place_release(&p);
}

int
main(void)
{
	pages();
	others();
	many();
	journal();
	damage(false);
	damage(true);
	return done();
}

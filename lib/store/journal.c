#include "store/journal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/page.h"
#include "base/sha1.h"
#include "store/backend.h"
#include "store/beneath.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define FILE_PATH "/.ag2/lock"
#define PAGE 4096
#define HEAD 64
#define KEEP (1024 * 1024)	/* a longer file is cut when the change is done */

static const char magic[8] = "ag2lock\n";

struct head {
	char magic[8];
	uint64_t seq, last;
	uint32_t grain, flags, area, record_len;
	unsigned char sum[20];
	char zero[4];
};
_Static_assert(sizeof(struct head) == HEAD, "the head of a journal has no holes");

static int
damaged(struct err *e)
{
	return err_set(e, ERR_DATA, "'%s': not a journal of a store", FILE_PATH);
}

static int
no_file(struct err *e)
{
	return err_set(e, ERR_DATA, "'%s': not a file, or not in a directory: fsck --repair moves aside what is there", FILE_PATH);
}

/* Whether of the first `all` bytes those n are there that a loss of power may leave of the first page: none, zeros, or a beginning. */
static bool
never_written(const struct head *h, size_t n, size_t all)
{
	static const struct head zeros;

	return memcmp(h, &zeros, n) == 0 || (n < all && memcmp(h, magic, n < sizeof(magic) ? n : sizeof(magic)) == 0);
}

/*
 * 0 and *fd, which is -1 with errno set when there is none that can be opened so; -1 when what is there is no file. Of something
 * else in its place that does not open, errno tells.
 */
static int
open_file(int root, int flags, int *fd, struct err *e)
{
	struct stat st;

	*fd = beneath_open(root, FILE_PATH, flags | O_NOFOLLOW, 0);
	if (*fd < 0 ? errno != EISDIR && errno != ENXIO : fstat(*fd, &st) == 0 && S_ISREG(st.st_mode))
		return 0;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return no_file(e);
}

int
journal_peek(struct journal *j, int root, uint64_t *seq, struct err *e)
{
	struct head h;
	struct stat st;
	ssize_t n;

	*seq = 0;
	/* Removed by someone who cleaned up: the one that matters is another. */
	if (j->fd >= 0 && fstat(j->fd, &st) == 0 && st.st_nlink == 0)
		journal_close(j);
	if (j->fd < 0) {
		j->writable = false;
		if (open_file(root, O_RDONLY, &j->fd, e) < 0)
			return -1;
		if (j->fd < 0)
			return beneath_absent(errno) || errno == EACCES ? 0 : err_sys(e, "cannot open '%s'", FILE_PATH);
	}
	n = pread(j->fd, &h, offsetof(struct head, last), 0);
	if (n < 0)
		return err_sys(e, "cannot read '%s'", FILE_PATH);
	if (never_written(&h, (size_t)n, offsetof(struct head, last)))
		return 0;
	if (memcmp(h.magic, magic, sizeof(magic)) != 0)
		return damaged(e);
	*seq = le64toh(h.seq);
	return 0;
}

static int
wait_for_lock(int fd, unsigned wait_ms, struct err *e)
{
	double until = 0;
	unsigned tries = 0;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EINTR)
			continue;
		/* Over NFS an exclusive lock needs a descriptor that may write. */
		if (errno == EBADF && flock(fd, LOCK_SH | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			return err_sys(e, "cannot lock the store");
		if (until == 0)
			until = clock_monotonic() + wait_ms / 1000.0;
		else if (clock_monotonic() > until)
			return err_set(e, ERR_BUSY, "another process has been changing the store for %u ms", wait_ms);
		store_contend(tries++);
	}
	return 0;
}

static uint64_t
nanoseconds(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

/*
 * Linux 6.13 and later, on most file systems. Elsewhere a stamp is that of a clock that moves every few milliseconds, and lies
 * before the write, but for one write in thousands: not for some at once.
 */
static bool
stamps_finely(struct journal *j)
{
	struct timespec before;
	struct stat st;
	int fd = j->fd, i;
	char c;

	if (pread(fd, &c, 1, 0) != 1 || fstat(fd, &st) < 0)
		return false;
	j->dev = st.st_dev;
	for (i = 0; i < 4; i++) {
		clock_gettime(CLOCK_REALTIME, &before);
		if (pwrite(fd, &c, 1, 0) != 1 || fstat(fd, &st) < 0 || nanoseconds(&st.st_mtim) < nanoseconds(&before))
			return false;
	}
	return true;
}

/* How coarse the time stamps of this file system are, in nanoseconds. */
static uint32_t
probe_grain(int fd)
{
	static const uint32_t grains[] = { 1, 100, 1000, 1000000, 10000000, 1000000000, 2000000000 };
	struct timespec t[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 1000000001, .tv_nsec = 987654321 } };
	struct stat st;
	size_t i;

	if (futimens(fd, t) < 0 || fstat(fd, &st) < 0)
		return 1;
	for (i = 0; i < sizeof(grains) / sizeof(grains[0]); i++)
		if (nanoseconds(&st.st_mtim) % grains[i] != 0)
			break;
	return grains[i > 0 ? i - 1 : 0];
}

static void
head_fill(const struct journal *j, struct head *h)
{
	memset(h, 0, sizeof(*h));
	memcpy(h->magic, magic, sizeof(magic));
	h->seq = htole64(j->seq);
	h->last = htole64(j->last);
	h->grain = htole32(j->grain);
	h->flags = htole32(j->flags);
	h->area = htole32(j->area);
	h->record_len = htole32(j->record_len);
}

/* Up to a page goes in one write, but where the disk gets full: what was cut short then gets the reason. */
static int
write_at(int fd, const void *data, size_t len, uint64_t at)
{
	const char *p = data;
	ssize_t n;

	while (len > 0) {
		n = pwrite(fd, p, len, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		p += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static int
first_page(struct journal *j, struct err *e)
{
	char page[PAGE] = { 0 };

	j->seq = j->last = 0;
	j->area = j->record_len = 0;
	j->flags = JOURNAL_LOOSE;	/* the journal itself */
	j->grain = probe_grain(j->fd);
	head_fill(j, (struct head *)page);
	if (write_at(j->fd, page, sizeof(page), 0) < 0)
		return err_sys(e, "cannot write '%s'", FILE_PATH);
	return 0;
}

/* ---- The first page in memory, for who changes the store again and again ---- */

/* Where all processes see one memory: on the file systems of this host. */
static bool
is_local(int fd)
{
	static const uint32_t local[] = { 0xef53 /* ext4 */, 0x58465342 /* xfs */, 0x9123683e /* btrfs */, 0xf2f52010 /* f2fs */, 0x01021994 /* tmpfs */ };
	struct statfs fs;
	size_t i;

	if (fstatfs(fd, &fs) < 0)
		return false;
	for (i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		if ((uint32_t)fs.f_type == local[i])
			return true;
	return false;
}

static void
page_drop(struct journal *j)
{
	page_unmap(j->page);
	j->page = NULL;
}

/* The record and the data, where they have room behind the head. How many bytes they are. */
static size_t
put_behind(struct head *page, const struct buf *record, const struct iovec *data, size_t n)
{
	char *from = (char *)page + HEAD, *to = from;
	size_t i;

	memcpy(to, record->data, record->len);
	to += record->len;
	for (i = 0; i < n; i++) {
		if (data[i].iov_len > 0)	/* else iov_base may be NULL */
			memcpy(to, data[i].iov_base, data[i].iov_len);
		to += data[i].iov_len;
	}
	return (size_t)(to - from);
}

/* Whether what was just done to the page was done to the file. If not, it is done to the file itself from now on. */
static bool
page_good(struct journal *j)
{
	if (!page_lost(j->page))
		return true;
	page_drop(j);
	j->may_map = false;
	return false;
}

static void
page_use(struct journal *j)
{
	if (is_local(j->fd))
		j->page = page_map(j->fd, PAGE);
	j->may_map = j->page != NULL;
	j->fine = j->may_map && stamps_finely(j);
}

static bool
page_read(struct journal *j, struct head *h)
{
	memcpy(h, j->page, sizeof(*h));
	return page_good(j);
}

/* Who is killed on the way has written a head whose seq is the old one: the rest of it then means nothing. */
static bool
page_write(struct journal *j, const struct head *h, const struct buf *record, const struct iovec *data, size_t n)
{
	struct head *page = j->page;
	const size_t rest = offsetof(struct head, last);

	put_behind(page, record, data, n);
	memcpy((char *)page + rest, (const char *)h + rest, sizeof(*h) - rest);
	__atomic_store_n(&page->seq, h->seq, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);	/* before anything is changed that it announces */
	return page_good(j);
}

static bool
page_write_state(struct journal *j, const struct head *h)
{
	struct head *page = j->page;

	page->last = h->last;
	page->flags = h->flags;
	__atomic_store_n(&page->seq, h->seq, __ATOMIC_RELEASE);
	return page_good(j);
}

static int
load(struct journal *j, struct err *e)
{
	struct head h;
	ssize_t n = sizeof(h);

	if (j->page == NULL || !page_read(j, &h))
		n = pread(j->fd, &h, sizeof(h), 0);
	if (n < 0)
		return err_sys(e, "cannot read '%s'", FILE_PATH);
	if (never_written(&h, (size_t)n, sizeof(h))) {
		j->seq = 0;
		return j->writable ? first_page(j, e) : 0;
	}
	if (memcmp(h.magic, magic, sizeof(magic)) != 0)
		return damaged(e);
	j->seq = le64toh(h.seq);
	j->last = le64toh(h.last);
	j->grain = le32toh(h.grain);
	j->flags = le32toh(h.flags);
	j->area = le32toh(h.area);
	j->record_len = le32toh(h.record_len);
	if (j->grain == 0)
		return damaged(e);
	if (j->last > JOURNAL_VERSION_MAX)
		return err_set(e, ERR_DATA, "'%s': its clock of versions is at %llu, which no version can be", FILE_PATH, (unsigned long long)j->last);
	return 0;
}

/* Leaves j->fd < 0 when the file is not there (or, without change, may not be written and so needs no lock). */
static int
open_for_lock(struct journal *j, int root, bool change, struct err *e)
{
	if (j->fd >= 0 && j->writable)
		return 0;
	journal_close(j);
	if (open_file(root, O_RDWR, &j->fd, e) < 0)
		return -1;
	j->writable = j->fd >= 0;
	if (j->fd < 0 && !change && (errno == EACCES || errno == EROFS || errno == EPERM) && open_file(root, O_RDONLY, &j->fd, e) < 0)
		return -1;
	if (j->fd >= 0 || errno == ENOENT || (!change && beneath_absent(errno)))
		return 0;
	if (errno == ENOTDIR || errno == ELOOP || errno == EXDEV)
		return no_file(e);
	return err_sys(e, "cannot open '%s'", FILE_PATH);
}

/* Its links and size only: a file whose times were asked for gets finer ones with the next write, which takes that longer. */
static void
look(int fd, struct statx *x)
{
	struct stat st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_NLINK | STATX_SIZE, x) == 0)
		return;
	if (fstat(fd, &st) < 0)
		st.st_nlink = 0;
	x->stx_nlink = (uint32_t)st.st_nlink;
	x->stx_size = (uint64_t)st.st_size;
}

/* Locks the file: how many names it has; 0 when it has none, and is closed: a lock on it excludes nobody any more. */
static int
take(struct journal *j, unsigned wait_ms, struct err *e)
{
	bool again = j->taken;
	struct statx x;

	if (wait_for_lock(j->fd, wait_ms, e) < 0)
		return -1;
	j->held = j->taken = true;
	look(j->fd, &x);
	if (x.stx_nlink == 0)
		journal_close(j);
	else if (x.stx_size < PAGE)
		page_drop(j);
	else if (j->may_map && j->writable && j->page == NULL && again)
		page_use(j);
	return x.stx_nlink > 1 ? 2 : (int)x.stx_nlink;
}

int
journal_retake(struct journal *j, unsigned wait_ms, struct err *e)
{
	int names;

	if (j->fd < 0 || !j->writable)
		return 0;
	names = take(j, wait_ms, e);
	if (names == 1 && load(j, e) == 0)
		return 1;
	journal_unlock(j);
	return names == 0 || names > 1 ? 0 : -1;
}

int
journal_lock(struct journal *j, int root, bool change, int (*make)(void *arg, struct err *e), void *arg, unsigned wait_ms, struct err *e)
{
	int names;

	for (;;) {
		if (open_for_lock(j, root, change, e) < 0)
			return -1;
		if (j->fd < 0 && !change)
			return 0;
		if (j->fd < 0 && (j->fd = make(arg, e)) < 0)
			return -1;
		j->writable = j->writable || change;
		if ((names = take(j, wait_ms, e)) < 0)
			return -1;
		if (names > 0)
			break;
	}
	if (load(j, e) == 0)
		return 0;
	journal_unlock(j);
	return -1;
}

void
journal_unlock(struct journal *j)
{
	if (j->held)
		flock(j->fd, LOCK_UN);
	j->held = false;
}

void
journal_close(struct journal *j)
{
	page_drop(j);
	if (j->fd >= 0)
		close(j->fd);
	j->fd = -1;
	j->held = j->writable = j->fine = false;
}

static uint64_t
mix_word(uint64_t sum, uint64_t word)
{
	sum = (sum ^ le64toh(word)) * UINT64_C(0x9e3779b97f4a7c15);
	return sum ^ sum >> 29;
}

static uint64_t
mix(uint64_t sum, const void *data, size_t len)
{
	const char *p = data, *end = p + len;
	uint64_t word;

	for (; (size_t)(end - p) >= sizeof(word); p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		sum = mix_word(sum, word);
	}
	for (word = 0; p < end; p++)
		word = word << 8 | (unsigned char)*p;
	return mix_word(sum, htole64(word));
}

/*
 * It tells a record that a loss of power has left whole from one that it has not. With sync=full the store's promise rests on
 * that: SHA-1. Without, it is for the best, and once for each change: eight bytes of a sum that is quick, and zeros.
 */
static void
checksum(const struct head *h, const void *record, size_t len, bool quick, unsigned char sum[20])
{
	const char *from = (const char *)h + offsetof(struct head, seq);
	size_t n = offsetof(struct head, sum) - offsetof(struct head, seq);
	struct sha1 s;
	uint64_t q;

	if (quick) {
		q = htole64(mix(mix(len, from, n), record, len));
		memset(sum, 0, 20);
		memcpy(sum, &q, sizeof(q));
		return;
	}
	sha1_init(&s);
	sha1_add(&s, from, n);
	sha1_add(&s, record, len);
	sha1_end(&s, sum);
}

/* What an earlier version wrote has a SHA-1 in any case. */
static bool
is_quick(const unsigned char sum[20])
{
	static const unsigned char zeros[20 - sizeof(uint64_t)];

	return memcmp(sum + sizeof(uint64_t), zeros, sizeof(zeros)) == 0;
}

/* More than a page: everything is in place before the head says so. */
static int
write_outside(struct journal *j, const struct buf *record, const struct iovec *data, size_t n, bool full)
{
	uint64_t at = PAGE;
	size_t i;

	if (write_at(j->fd, record->data, record->len, at) < 0)
		return -1;
	at += record->len;
	for (i = 0; i < n; i++) {
		if (write_at(j->fd, data[i].iov_base, data[i].iov_len, at) < 0)
			return -1;
		at += data[i].iov_len;
	}
	return full ? fdatasync(j->fd) : 0;
}

static int
write_first(struct journal *j, const struct head *h, const struct buf *record, const struct iovec *data, size_t n)
{
	char *page = xcalloc(1, PAGE);
	size_t len = HEAD;
	int rc;

	memcpy(page, h, HEAD);
	if (j->area == HEAD)
		len += put_behind((struct head *)page, record, data, n);
	rc = write_at(j->fd, page, len, 0);
	free(page);
	return rc;
}

/* Gives back what lies behind the page when the file is longer than `most`; that it cannot be given back is no failure. */
static void
cut(int fd, off_t most)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && st.st_size > most)
		while (ftruncate(fd, PAGE) < 0 && errno == EINTR)
			;
}

int
journal_begin(struct journal *j, const struct buf *record, const struct iovec *data, size_t n, bool full, struct err *e)
{
	struct head h;
	size_t i, all = HEAD + record->len;

	if (record->len > JOURNAL_RECORD_MAX)
		return err_set(e, ERR_DATA, "a commit of so many operations is too large");
	for (i = 0; i < n; i++)
		all += data[i].iov_len;
	j->flags = (j->flags & ~(uint32_t)JOURNAL_FULL) | (full ? JOURNAL_FULL : 0);
	j->area = all <= PAGE ? HEAD : PAGE;
	j->record_len = (uint32_t)record->len;
	if (j->area == PAGE && write_outside(j, record, data, n, full) < 0) {
		err_sys(e, "cannot write '%s'", FILE_PATH);
		cut(j->fd, 0);
		return -1;
	}
	j->seq++;
	head_fill(j, &h);
	checksum(&h, record->data, record->len, !full, h.sum);
	if (j->page != NULL && j->area == HEAD && !full && page_write(j, &h, record, data, n))
		return 0;
	if (write_first(j, &h, record, data, n) < 0 || (full && fdatasync(j->fd) < 0)) {
		err_sys(e, "cannot write '%s'", FILE_PATH);
		journal_end(j, NULL);
		return -1;
	}
	return 0;
}

/* The head without what belongs to a record. */
static int
write_state(struct journal *j, struct err *e)
{
	struct head h;
	size_t len = offsetof(struct head, area);

	head_fill(j, &h);
	if (j->page != NULL && page_write_state(j, &h))
		return 0;
	return write_at(j->fd, &h, len, 0) == 0 ? 0 : err_sys(e, "cannot write '%s'", FILE_PATH);
}

int
journal_flag(struct journal *j, uint32_t flags, struct err *e)
{
	j->flags |= flags;
	return write_state(j, e);
}

int
journal_end(struct journal *j, struct err *e)
{
	j->seq += j->seq & 1;
	if (write_state(j, e) < 0)
		return -1;
	if (j->area == PAGE)
		cut(j->fd, KEEP);
	return 0;
}

static int
read_at(int fd, uint64_t at, uint64_t len, struct buf *out)
{
	ssize_t n;

	buf_reserve(out, (size_t)len);
	while (len > 0) {
		n = pread(fd, out->data + out->len, (size_t)len, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		out->len += (size_t)n;
		out->data[out->len] = '\0';
		at += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

int
journal_record(struct journal *j, struct buf *record, uint64_t *data_at, struct err *e)
{
	struct head h;
	unsigned char sum[20];

	if (j->record_len > JOURNAL_RECORD_MAX || (j->area != HEAD && j->area != PAGE) ||
	    pread(j->fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) || read_at(j->fd, j->area, j->record_len, record) < 0)
		return err_set(e, ERR_DATA, "'%s': the record of an unfinished change is damaged", FILE_PATH);
	checksum(&h, record->data, record->len, is_quick(h.sum), sum);
	if (memcmp(sum, h.sum, sizeof(sum)) != 0)
		return err_set(e, ERR_DATA, "'%s': the record of an unfinished change is damaged", FILE_PATH);
	*data_at = (uint64_t)j->area + j->record_len;
	return 0;
}

int
journal_data(struct journal *j, uint64_t at, uint64_t len, struct buf *out, struct err *e)
{
	struct stat st;

	if (fstat(j->fd, &st) < 0 || at > (uint64_t)st.st_size || len > (uint64_t)st.st_size - at || read_at(j->fd, at, len, out) < 0)
		return err_set(e, ERR_DATA, "'%s': the data of an unfinished change are not all there", FILE_PATH);
	return 0;
}

bool
journal_stamps(const struct journal *j, const struct stat *st)
{
	return j->fine && st->st_dev == j->dev;
}

uint64_t
journal_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return nanoseconds(&t);
}

uint64_t
journal_version(struct journal *j, uint64_t old, bool *timely)
{
	uint64_t now = journal_now(), v = now;
	bool ahead = old > j->last && old > now + JOURNAL_AHEAD;

	*timely = v > old && v > j->last;
	if (v <= old)
		v = old + 1;
	if (v <= j->last)
		v = j->last + 1;
	v = (v + j->grain - 1) / j->grain * j->grain;
	if (!ahead)
		j->last = v;
	return v;
}

/* As in SQLite's description of its file format; offsets and numbers below are those of it. */
#include "store/sqlite_peek.h"

#include "base/alloc.h"
#include "path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PENDING_BYTE	0x40000000
#define SHARED_FIRST	(PENDING_BYTE + 2)
#define SHARED_SIZE	510
#define DEPTH_MAX	20
#define FIELDS		7

enum page_kind { INDEX_INTERIOR = 2, TABLE_INTERIOR = 5, INDEX_LEAF = 10, TABLE_LEAF = 13 };

struct peek {
	int fd;
	uint32_t page_size, usable, pages;
	unsigned char *page;		/* the one at hand */
	const unsigned char *head;	/* its header: behind the file's on the first page */
	unsigned cells;
};

/* A part of the page that is being read: every access is checked against its end. */
struct span {
	const unsigned char *p, *end;
};

struct field {
	uint64_t type;
	struct span data;
};

static uint32_t
big_endian(const unsigned char *p, int bytes)
{
	uint32_t n = 0;

	while (bytes-- > 0)
		n = n << 8 | *p++;
	return n;
}

static bool
varint(struct span *s, uint64_t *out)
{
	uint64_t n = 0;
	int i;

	for (i = 0; i < 9; i++) {
		if (s->p >= s->end)
			return false;
		if (i == 8) {
			n = n << 8 | *s->p++;
			break;
		}
		n = n << 7 | (*s->p & 0x7f);
		if (!(*s->p++ & 0x80))
			break;
	}
	*out = n;
	return true;
}

static bool
take(struct span *s, uint64_t len, struct span *out)
{
	if ((uint64_t)(s->end - s->p) < len)
		return false;
	*out = (struct span){ s->p, s->p + len };
	s->p += len;
	return true;
}

static uint64_t
length_of(uint64_t type)
{
	static const unsigned char fixed[] = { 0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0 };

	return type < sizeof(fixed) ? fixed[type] : (type - 12) / 2;
}

/* The first n fields of a record. */
static bool
record(struct span payload, struct field *f, int n)
{
	struct span types, whole = payload;
	uint64_t header;
	int i;

	if (!varint(&payload, &header) || !take(&whole, header, &types) || types.end < payload.p)
		return false;
	types.p = payload.p;
	for (i = 0; i < n; i++)
		if (!varint(&types, &f[i].type) || f[i].type == 10 || f[i].type == 11 ||
		    !take(&whole, length_of(f[i].type), &f[i].data))
			return false;
	return true;
}

static bool
integer(const struct field *f, int64_t *out)
{
	const unsigned char *p = f->data.p;
	uint64_t n;

	if (f->type == 8 || f->type == 9) {
		*out = (int64_t)f->type - 8;
		return true;
	}
	if (f->type < 1 || f->type > 6)
		return false;
	n = *p & 0x80 ? UINT64_MAX : 0;
	for (; p < f->data.end; p++)
		n = n << 8 | *p;
	*out = (int64_t)n;
	return true;
}

/* A number with a fraction; where it has none, it is kept as an integer. */
static bool
real(const struct field *f, double *out)
{
	const unsigned char *p;
	uint64_t bits = 0;
	int64_t n;

	if (f->type == 7) {
		for (p = f->data.p; p < f->data.end; p++)
			bits = bits << 8 | *p;
		memcpy(out, &bits, sizeof(*out));
		return true;
	}
	if (!integer(f, &n))
		return false;
	*out = (double)n;
	return true;
}

static bool
is_text(const struct field *f)
{
	return f->type >= 13 && f->type % 2 == 1;
}

static bool
text_is(const struct field *f, const char *text)
{
	size_t len = strlen(text);

	return is_text(f) && (size_t)(f->data.end - f->data.p) == len && memcmp(f->data.p, text, len) == 0;
}

/* ---- Pages ---- */

static bool
load(struct peek *k, uint32_t number)
{
	if (number < 1 || number > k->pages ||
	    pread(k->fd, k->page, k->page_size, (off_t)(number - 1) * k->page_size) != (ssize_t)k->page_size)
		return false;
	k->head = k->page + (number == 1 ? 100 : 0);
	k->cells = big_endian(k->head + 3, 2);
	return k->cells * 2 + 112 <= k->usable;
}

static bool
is_interior(const struct peek *k)
{
	return k->head[0] == INDEX_INTERIOR || k->head[0] == TABLE_INTERIOR;
}

static bool
cell(const struct peek *k, unsigned i, struct span *out)
{
	uint32_t at = big_endian(k->head + (is_interior(k) ? 12 : 8) + 2 * i, 2);

	*out = (struct span){ k->page + at, k->page + k->usable };
	return at < k->usable;
}

/* The page to the left of the cell, or the last one of the page. */
static bool
child(const struct peek *k, unsigned i, uint32_t *number)
{
	struct span s, bytes;

	if (i == k->cells) {
		*number = big_endian(k->head + 8, 4);
		return true;
	}
	if (!cell(k, i, &s) || !take(&s, 4, &bytes))
		return false;
	*number = big_endian(bytes.p, 4);
	return true;
}

/* The payload of a cell that is kept whole on its page; rowid only in the leaves of tables. */
static bool
payload(const struct peek *k, unsigned i, int64_t *rowid, struct span *out)
{
	uint64_t len, id = 0, most = k->head[0] == TABLE_LEAF ? k->usable - 35 : (k->usable - 12) * 64 / 255 - 23;
	struct span s, left;

	if (!cell(k, i, &s) || (is_interior(k) && !take(&s, 4, &left)) || !varint(&s, &len) || len > most ||
	    (k->head[0] == TABLE_LEAF && !varint(&s, &id)))
		return false;
	*rowid = (int64_t)id;
	return take(&s, len, out);
}

/* ---- Searching ---- */

/* The first path of the index that is not before the one that is looked for. */
struct found {
	bool same, begins;	/* it is that; it begins with that */
	int64_t rowid;
};

/* Compares the cell's path with key: -1 when it is before, 1 when it is not (found is filled), 0 when it is not known. */
static int
compare_path(const struct peek *k, unsigned i, const char *key, size_t len, struct found *found)
{
	struct field f[2];
	struct span s;
	int64_t rowid;
	size_t n;
	int c;

	if (!payload(k, i, &rowid, &s) || !record(s, f, 2) || !is_text(&f[0]) || !integer(&f[1], &rowid))
		return 0;
	n = (size_t)(f[0].data.end - f[0].data.p);
	c = memcmp(f[0].data.p, key, n < len ? n : len);
	if (c < 0 || (c == 0 && n < len))
		return -1;
	*found = (struct found){ .same = c == 0 && n == len, .begins = c == 0, .rowid = rowid };
	return 1;
}

/* False when it is not known; found is empty when every path is before key. */
static bool
search_path(struct peek *k, uint32_t root, const char *key, struct found *found)
{
	size_t len = strlen(key);
	int depth, c;

	*found = (struct found){ 0 };
	for (depth = 0; depth < DEPTH_MAX; depth++) {
		unsigned low = 0, high, middle;

		if (!load(k, root) || (k->head[0] != INDEX_INTERIOR && k->head[0] != INDEX_LEAF))
			return false;
		for (high = k->cells; low < high;) {
			middle = (low + high) / 2;
			c = compare_path(k, middle, key, len, found);
			if (c == 0)
				return false;
			if (c < 0)
				low = middle + 1;
			else
				high = middle;
		}
		/* The last comparison may have been with a later one. */
		if (low < k->cells && compare_path(k, low, key, len, found) != 1)
			return false;
		if (!is_interior(k) || (low < k->cells && found->same))
			return true;
		if (!child(k, low, &root))
			return false;
	}
	return false;
}

static bool
fill_row(struct span s, int64_t rowid, const char *path, struct peek_row *row)
{
	struct field f[FIELDS];

	row->id = rowid;
	return record(s, f, FIELDS) && f[0].type == 0 && text_is(&f[1], path) && integer(&f[2], &row->base) &&
	    integer(&f[3], &row->size) && integer(&f[4], &row->run) && integer(&f[5], &row->version) && real(&f[6], &row->mtime);
}

static bool
search_row(struct peek *k, uint32_t root, int64_t rowid, const char *path, struct peek_row *row)
{
	struct span s, left;
	uint64_t key;
	int64_t id;
	unsigned i;
	int depth;

	for (depth = 0; depth < DEPTH_MAX && load(k, root); depth++) {
		if (k->head[0] == TABLE_INTERIOR) {
			for (i = 0; i < k->cells; i++) {
				if (!cell(k, i, &s) || !take(&s, 4, &left) || !varint(&s, &key))
					return false;
				if ((int64_t)key >= rowid)
					break;
			}
			if (!child(k, i, &root))
				return false;
			continue;
		}
		if (k->head[0] != TABLE_LEAF)
			return false;
		for (i = 0; i < k->cells; i++)
			if (payload(k, i, &id, &s) && id == rowid)
				return fill_row(s, rowid, path, row);
		return false;
	}
	return false;
}

/* ---- The database ---- */

/* A row of the schema: type, name, table, root, sql. */
static bool
schema_row(const struct peek *k, unsigned i, const char *sql, uint32_t *root)
{
	struct field f[5];
	struct span s;
	int64_t number;

	if (!payload(k, i, &number, &s) || !record(s, f, 5) || !integer(&f[3], &number) || number < 0 || number > UINT32_MAX)
		return false;
	*root = (uint32_t)number;
	return sql != NULL ? text_is(&f[4], sql) : text_is(&f[1], "sqlite_autoindex_files_1") && f[4].type == 0;
}

/* Whether it is the schema, and where the table and its index begin. The index comes second. */
static bool
check_schema(struct peek *k, const char *const *sql, size_t n, uint32_t *table, uint32_t *index)
{
	uint32_t root;
	size_t i;

	if (!load(k, 1) || k->head[0] != TABLE_LEAF || k->cells != n + 1 || !schema_row(k, 0, sql[0], table) ||
	    !schema_row(k, 1, NULL, index))
		return false;
	for (i = 1; i < n; i++)
		if (!schema_row(k, (unsigned)i + 1, sql[i], &root))
			return false;
	return true;
}

static bool
check_header(struct peek *k, off_t size, uint32_t application, uint32_t layout)
{
	unsigned char h[100];

	if (pread(k->fd, h, sizeof(h), 0) != sizeof(h) || memcmp(h, "SQLite format 3", 16) != 0)
		return false;
	k->page_size = big_endian(h + 16, 2);
	if (k->page_size == 1)
		k->page_size = 65536;
	if (k->page_size < 512 || (k->page_size & (k->page_size - 1)) != 0)
		return false;
	k->usable = k->page_size - h[20];
	k->pages = size / k->page_size < UINT32_MAX ? (uint32_t)(size / k->page_size) : 0;
	return k->usable >= 480 && h[18] == 2 && h[19] == 2 && big_endian(h + 44, 4) == 4 && big_endian(h + 56, 4) == 1 &&
	    big_endian(h + 60, 4) == layout && big_endian(h + 68, 4) == application;
}

/* The read lock of SQLite's own protocol. It goes with the descriptor. */
static bool
lock(int fd)
{
	struct flock pending = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = PENDING_BYTE, .l_len = 1 };
	struct flock shared = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = SHARED_FIRST, .l_len = SHARED_SIZE };

	if (fcntl(fd, F_OFD_SETLK, &pending) < 0 || fcntl(fd, F_OFD_SETLK, &shared) < 0)
		return false;
	pending.l_type = F_UNLCK;
	return fcntl(fd, F_OFD_SETLK, &pending) == 0;
}

static bool
is_beside(const char *file, const char *suffix)
{
	char *name = xasprintf("%s%s", file, suffix);
	bool there = access(name, F_OK) == 0 || errno != ENOENT;

	free(name);
	return there;
}

static int
look_up(struct peek *k, uint32_t table, uint32_t index, const char *path, struct peek_row *row)
{
	char below[PATH_BYTES_MAX + 2];
	struct found found;

	if (strlen(path) > PATH_BYTES_MAX || !search_path(k, index, path, &found))
		return -1;
	if (found.same)
		return search_row(k, table, found.rowid, path, row) ? 1 : -1;
	snprintf(below, sizeof(below), "%s/", path);
	if (!search_path(k, index, below, &found))
		return -1;
	return found.begins ? 2 : 0;
}

int
sqlite_peek(const char *file, const char *const *sql, size_t n, uint32_t application, uint32_t layout, const char *path,
    struct peek_row *row)
{
	struct peek k = { .fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) };
	uint32_t table, index;
	struct stat st;
	int rc = -1;

	/* With the lock held, nobody who uses a log can remove it: there was none if there is none before and after. */
	if (k.fd < 0 || fstat(k.fd, &st) < 0 || !S_ISREG(st.st_mode) || !lock(k.fd) || is_beside(file, "-wal") ||
	    is_beside(file, "-journal") || !check_header(&k, st.st_size, application, layout))
		goto out;
	k.page = xmalloc(k.page_size);
	if (check_schema(&k, sql, n, &table, &index))
		rc = look_up(&k, table, index, path, row);
	if (is_beside(file, "-wal"))
		rc = -1;
out:
	free(k.page);
	if (k.fd >= 0)
		close(k.fd);
	return rc;
}

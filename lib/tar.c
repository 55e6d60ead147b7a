#include "tar.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>

#define RECORD (20 * TAR_BLOCK)
#define EXTENDED_MAX (1u << 20)	/* bytes of one pax header */
#define CHUNK (256 * 1024)
#define OCTAL_MAX UINT64_C(077777777777)	/* what a header's size can hold */

/* The header of POSIX: where each field is. */
enum {
	AT_NAME = 0, NAME = 100,
	AT_MODE = 100,
	AT_UID = 108,
	AT_GID = 116,
	AT_SIZE = 124, SIZE = 12,
	AT_MTIME = 136,
	AT_SUM = 148, SUM = 8,
	AT_TYPE = 156,
	AT_MAGIC = 257,
	AT_PREFIX = 345, PREFIX = 155
};

/* ---- writing ---- */

static unsigned
checksum(const char *block)
{
	unsigned sum = 0, i;

	for (i = 0; i < TAR_BLOCK; i++)
		sum += i >= AT_SUM && i < AT_SUM + SUM ? ' ' : (unsigned char)block[i];
	return sum;
}

static void
add_block(struct buf *out, const char *name, size_t len, uint64_t size, char type)
{
	char block[TAR_BLOCK] = "", number[32];

	memcpy(block + AT_NAME, name, len < NAME ? len : NAME);
	memcpy(block + AT_MODE, "0000600", 7);
	memcpy(block + AT_UID, "0000000", 7);
	memcpy(block + AT_GID, "0000000", 7);
	snprintf(number, sizeof(number), "%011llo", (unsigned long long)(size <= OCTAL_MAX ? size : 0));
	memcpy(block + AT_SIZE, number, 11);
	memcpy(block + AT_MTIME, "00000000000", 11);
	block[AT_TYPE] = type;
	memcpy(block + AT_MAGIC, "ustar\00000", 8);
	snprintf(number, sizeof(number), "%06o", checksum(block));
	memcpy(block + AT_SUM, number, 7);
	block[AT_SUM + 7] = ' ';
	buf_add(out, block, TAR_BLOCK);
}

static void
add_zeros(struct buf *out, size_t n)
{
	static const char zeros[TAR_BLOCK];

	for (; n > TAR_BLOCK; n -= TAR_BLOCK)
		buf_add(out, zeros, TAR_BLOCK);
	buf_add(out, zeros, n);
}

/* "LENGTH KEY=VALUE\n", of which LENGTH counts itself too. */
static void
add_record(struct buf *out, const char *key, const char *value, size_t len)
{
	size_t rest = strlen(key) + len + 3, total = rest + 1;
	char digits[24];

	while (rest + (size_t)snprintf(digits, sizeof(digits), "%zu", total) != total)
		total = rest + strlen(digits);
	buf_addf(out, "%s %s=", digits, key);
	buf_add(out, value, len);
	buf_addch(out, '\n');
}

static bool
is_ascii(const char *text, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if ((unsigned char)text[i] >= 0x80)
			return false;
	return true;
}

void
tar_header(struct buf *out, const char *name, size_t len, uint64_t size)
{
	struct buf extended = BUF_INIT;
	bool utf8 = utf8_valid(name, len) == len;
	char number[32];

	if (len > NAME || (utf8 && !is_ascii(name, len))) {
		if (!utf8)
			add_record(&extended, "hdrcharset", "BINARY", 6);
		add_record(&extended, "path", name, len);
	}
	if (size > OCTAL_MAX) {
		snprintf(number, sizeof(number), "%llu", (unsigned long long)size);
		add_record(&extended, "size", number, strlen(number));
	}
	if (extended.len > 0) {
		add_block(out, "PaxHeader", 9, extended.len, 'x');
		buf_add(out, extended.data, extended.len);
		add_zeros(out, tar_pad(extended.len));
	}
	add_block(out, name, len, size, '0');
	buf_release(&extended);
}

void
tar_end(struct buf *out, uint64_t written)
{
	uint64_t size = written + 2 * TAR_BLOCK;

	add_zeros(out, 2 * TAR_BLOCK + (size_t)((RECORD - size % RECORD) % RECORD));
}

/* ---- reading ---- */

void
tar_init(struct tar *t, tar_read_fn *read, void *arg)
{
	*t = (struct tar){ .read = read, .arg = arg, .name = BUF_INIT, .given = BUF_INIT, .in = BUF_INIT };
}

void
tar_release(struct tar *t)
{
	buf_release(&t->name);
	buf_release(&t->given);
	buf_release(&t->in);
}

/* Up to len bytes of the archive. */
static ssize_t
take(struct tar *t, void *data, size_t len, struct err *e)
{
	size_t have = t->in.len - t->pos;
	ssize_t n;

	if (have == 0 && !t->eof) {
		buf_reset(&t->in);
		t->pos = 0;
		buf_reserve(&t->in, CHUNK);
		n = t->read(t->arg, t->in.data, CHUNK, e);
		if (n < 0)
			return -1;
		t->eof = n == 0;
		t->in.len = have = (size_t)n;
	}
	if (len > have)
		len = have;
	memcpy(data, t->in.data + t->pos, len);
	t->pos += len;
	t->offset += len;
	return (ssize_t)len;
}

/* len bytes, or fewer where the archive ends. */
static ssize_t
take_all(struct tar *t, void *data, size_t len, struct err *e)
{
	size_t got = 0;
	ssize_t n;

	while (got < len) {
		n = take(t, (char *)data + got, len - got, e);
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

static int
cut_short(struct err *e)
{
	return err_set(e, ERR_DATA, "the archive is cut short");
}

ssize_t
tar_read(struct tar *t, void *data, size_t len, struct err *e)
{
	ssize_t n;

	if (len > t->left)
		len = (size_t)t->left;
	if (len == 0)
		return 0;
	n = take(t, data, len, e);
	if (n == 0)
		return cut_short(e);
	if (n > 0)
		t->left -= (uint64_t)n;
	return n;
}

/* What is left of the content, and what fills its last block. */
static int
pass_over(struct tar *t, struct err *e)
{
	char data[8192];
	ssize_t n;

	while ((n = tar_read(t, data, sizeof(data), e)) > 0)
		continue;
	if (n < 0)
		return -1;
	n = take_all(t, data, t->pad, e);
	if (n >= 0 && (size_t)n < t->pad)
		return cut_short(e);
	t->pad = 0;
	return n < 0 ? -1 : 0;
}

/* An octal number, or GNU's binary one for what does not fit. */
static int
number(const char *field, size_t len, uint64_t *out)
{
	uint64_t value = 0;
	size_t i = 0;

	if ((unsigned char)field[0] == 0x80) {
		for (i = 1; i < len; i++) {
			if (value >> 55 != 0)
				return -1;
			value = value << 8 | (unsigned char)field[i];
		}
		*out = value;
		return 0;
	}
	while (i < len && field[i] == ' ')
		i++;
	for (; i < len && field[i] >= '0' && field[i] <= '7'; i++)
		value = value << 3 | (uint64_t)(field[i] - '0');
	if (i < len && field[i] != ' ' && field[i] != '\0')
		return -1;
	*out = value;
	return 0;
}

/* The content of a header that speaks of the next entry. */
static int
read_extended(struct tar *t, struct buf *out, struct err *e)
{
	ssize_t n;

	if (t->left > EXTENDED_MAX)
		return err_set(e, ERR_DATA, "byte %llu: a header of %llu bytes", (unsigned long long)t->offset, (unsigned long long)t->left);
	buf_reserve(out, (size_t)t->left + 1);
	while ((n = tar_read(t, out->data + out->len, (size_t)t->left, e)) > 0)
		out->len += (size_t)n;
	out->data[out->len] = '\0';
	return n < 0 ? -1 : pass_over(t, e);
}

static void
set_name(struct tar *t, const char *name, size_t len)
{
	buf_reset(&t->given);
	buf_add(&t->given, name, len);
	t->named = true;
}

/* One record; its length, 0 when it is none. */
static size_t
take_record(struct tar *t, const char *text, size_t len, bool global)
{
	const char *p = text, *equals, *value;
	size_t total = 0, digits = 0;
	char *end;

	while (digits < len && digits < 8 && p[digits] >= '0' && p[digits] <= '9')
		total = total * 10 + (size_t)(p[digits++] - '0');
	if (digits == 0 || total > len || total < digits + 4 || p[digits] != ' ' || p[total - 1] != '\n')
		return 0;
	p += digits + 1;
	equals = memchr(p, '=', total - digits - 2);
	if (equals == NULL)
		return 0;
	value = equals + 1;
	len = (size_t)(text + total - 1 - value);
	if (global)
		return total;
	if (equals - p == 4 && memcmp(p, "path", 4) == 0)
		set_name(t, value, len);
	if (equals - p == 4 && memcmp(p, "size", 4) == 0) {
		t->size = strtoull(value, &end, 10);
		t->sized = true;
		if (*value < '0' || *value > '9' || end != value + len || t->size > INT64_MAX)
			return 0;
	}
	if (equals - p > 11 && memcmp(p, "GNU.sparse.", 11) == 0)
		t->sparse = true;	/* what follows is a map and pieces, under a name that is not the file's */
	return total;
}

static int
take_extended(struct tar *t, char type, struct err *e)
{
	struct buf text = BUF_INIT;
	size_t at = 0, n;
	int rc = read_extended(t, &text, e);

	if (rc == 0 && type == 'L') {	/* GNU's header for a long name: the name and a NUL */
		set_name(t, text.data, strlen(text.data));
		at = text.len;
	}
	while (rc == 0 && at < text.len) {
		n = take_record(t, text.data + at, text.len - at, type == 'g');
		if (n == 0)
			rc = err_set(e, ERR_DATA, "byte %llu: a pax header that is none", (unsigned long long)t->offset);
		at += n;
	}
	buf_release(&text);
	return rc;
}

/* One header block. 1, 0 at the end of the archive (a block of zeros, or no more bytes). */
static int
read_block(struct tar *t, char block[TAR_BLOCK], struct err *e)
{
	unsigned long long at = t->offset;
	ssize_t n = take_all(t, block, TAR_BLOCK, e);
	uint64_t sum;
	size_t i;

	if (n <= 0)
		return (int)n;
	if (n < TAR_BLOCK)
		return cut_short(e);
	for (i = 0; i < TAR_BLOCK && block[i] == '\0'; i++)
		continue;
	if (i == TAR_BLOCK)
		return 0;
	if (number(block + AT_SUM, SUM, &sum) < 0 || sum != checksum(block))
		return err_set(e, ERR_DATA, at == 0 ? "this is no tar archive" : "byte %llu: no header of an archive: it is damaged", at);
	if (number(block + AT_SIZE, SIZE, &t->left) < 0 || t->left > INT64_MAX)
		return err_set(e, ERR_DATA, "byte %llu: a size that is no number", at);
	t->pad = tar_pad(t->left);
	return 1;
}

static void
name_of(struct tar *t, const char *block)
{
	buf_reset(&t->name);
	if (t->named) {
		buf_add(&t->name, t->given.data, t->given.len);
		return;
	}
	if (memcmp(block + AT_MAGIC, "ustar\0", 6) == 0 && block[AT_PREFIX] != '\0') {
		buf_add(&t->name, block + AT_PREFIX, strnlen(block + AT_PREFIX, PREFIX));
		buf_addch(&t->name, '/');
	}
	buf_add(&t->name, block + AT_NAME, strnlen(block + AT_NAME, NAME));
}

static const char *
kind(char type)
{
	switch (type) {
	case '1': return "a hard link";
	case '2': case 'K': return "a symbolic link";
	case '3': case '4': return "a device";
	case '6': return "a named pipe";
	case 'S': return "a sparse file";
	default: return "of an unknown kind";
	}
}

int
tar_next(struct tar *t, struct tar_entry *entry, struct err *e)
{
	char block[TAR_BLOCK], type;
	int rc;

	if (pass_over(t, e) < 0)
		return -1;
	t->named = t->sized = t->sparse = false;
	for (;;) {
		rc = read_block(t, block, e);
		if (rc <= 0)
			return rc;
		type = block[AT_TYPE];
		if (type != 'x' && type != 'g' && type != 'L')
			break;
		if (take_extended(t, type, e) < 0)
			return -1;
	}
	name_of(t, block);
	if (t->sized) {
		t->left = t->size;
		t->pad = tar_pad(t->left);
	}
	if (t->sparse)
		type = 'S';
	if (strchr("07", type) == NULL && type != '5')	/* strchr finds the NUL of old archives too */
		return err_set(e, ERR_DATA, "'%s' is %s: a store has only files", t->name.data, kind(type));
	*entry = (struct tar_entry){ .name = t->name.data, .len = t->name.len, .size = t->left,
		.dir = type == '5' || (t->name.len > 0 && t->name.data[t->name.len - 1] == '/') };
	return 1;
}

#include "path.h"

#include <string.h>

int
path_normalise(struct buf *out, const char *path, size_t len, struct err *e)
{
	size_t i = 0, start, n;

	buf_reset(out);
	if (memchr(path, '\0', len) != NULL)
		return err_set(e, ERR_DATA, "'%s': a path must not contain a NUL", path);
	while (i < len) {
		while (i < len && path[i] == '/')
			i++;
		start = i;
		while (i < len && path[i] != '/')
			i++;
		n = i - start;
		if (n == 0)
			break;
		if ((n == 1 && path[start] == '.') || (n == 2 && path[start] == '.' && path[start + 1] == '.'))
			return err_set(e, ERR_DATA, "'%.*s': '.' and '..' are not allowed in a path", (int)(len < 200 ? len : 200), path);
		if (n > PATH_COMPONENT_MAX)
			return err_set(e, ERR_DATA, "'%.*s...': a name is longer than %d bytes", 40, path + start, PATH_COMPONENT_MAX);
		buf_addch(out, '/');
		buf_add(out, path + start, n);
		if (out->len > PATH_BYTES_MAX)
			return err_set(e, ERR_DATA, "'%.*s...': the path is longer than %d bytes", 40, path, PATH_BYTES_MAX);
	}
	if (out->len == 0)
		buf_addch(out, '/');
	return 0;
}

static bool
is_name(const char *name, size_t n)
{
	return n > 0 && n <= PATH_COMPONENT_MAX && !(name[0] == '.' && (n == 1 || (n == 2 && name[1] == '.')));
}

bool
path_is_normal(const char *path)
{
	const char *p = path, *name;

	if (strcmp(path, "/") == 0)
		return true;
	while (*p == '/') {
		name = p + 1;
		p = strchrnul(name, '/');
		if (!is_name(name, (size_t)(p - name)))
			return false;
	}
	return p > path && (size_t)(p - path) <= PATH_BYTES_MAX;
}

bool
path_can_be(const char *path, size_t len)
{
	return memchr(path, '\0', len) == NULL && path_is_normal(path);
}

bool
path_can_have(const char *dir, const char *name)
{
	size_t n = strlen(name), above = strcmp(dir, "/") == 0 ? 0 : strlen(dir);

	return is_name(name, n) && above + 1 + n <= PATH_BYTES_MAX;
}

bool
path_within(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n == 1)
		return true;
	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

const char *
path_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool
path_private(const char *path)
{
	return path_within(path, "/.ag2");
}

int
stream_id_check(const char *id, struct err *e)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t n = strlen(id);
	const char *why = NULL;

	if (n == 0 || n > 200)
		why = "must have 1 to 200 characters";
	else if (id[0] == '.')
		why = "must not begin with a dot";
	else if (strspn(id, allowed) != n)
		why = "may only contain letters, digits, '.', '_' and '-'";
	else if (strstr(id, ".dropped-") != NULL || strstr(id, ".torn-") != NULL)
		why = "must not contain '.dropped-' or '.torn-', which name parts of a log";
	return why ? err_set(e, ERR_USAGE, "stream '%.60s': the id %s", id, why) : 0;
}

#include "attach.h"

#include "../cli.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "media.h"

#include <stdlib.h>
#include <string.h>

/* A name is sent, so that it has to be text. */
static const char *
name_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;

	return strcmp(path, "-") != 0 && utf8_valid(name, strlen(name)) == strlen(name) ? name : NULL;
}

static void
read_one(struct media *m, const char *path, size_t room)
{
	struct buf data = BUF_INIT_MAX(room + 1);	/* one more than is allowed tells that there is more */
	struct err e = ERR_INIT;
	bool in = strcmp(path, "-") == 0;

	if ((in ? io_read_all(0, &data, "stdin", &e) : io_read_file(path, &data, &e)) < 0 && e.code != ERR_DATA)
		log_fail(&e);
	if (data.len > room)
		log_die(65, "'%s': the files of a request are more than %u MB", path, ATTACH_MAX >> 20);
	if (data.len == 0)
		log_die(65, "'%s' is empty", path);
	m->media_type = media_of(path, data.data, data.len);
	m->kind = media_kind(m->media_type);
	m->filename = strcmp(m->kind, "document") == 0 || media_is_office(m->media_type) ? name_of(path) : NULL;
	m->data.data = buf_detach(&data, &m->data.len);
}

struct media *
attach_read(const char *const *images, size_t images_n, const char *const *files, size_t files_n, size_t *n)
{
	struct media *all = xcalloc(images_n + files_n, sizeof(*all));
	size_t i, room = ATTACH_MAX;
	const char *path;

	for (i = 0; i < images_n + files_n; i++) {
		path = i < images_n ? images[i] : files[i - images_n];
		read_one(&all[i], path, room);
		room -= all[i].data.len;
		if (i < images_n && strcmp(all[i].kind, "image") != 0)
			log_die(65, "'%s' is no image but %s; --file sends any file", path, all[i].media_type);
	}
	*n = images_n + files_n;
	return all;
}

void
attach_free(struct media *m, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		free((char *)m[i].data.data);
	free(m);
}

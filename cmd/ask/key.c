#include "key.h"

#include "../cli.h"
#include "base/alloc.h"
#include "base/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_MAX 8192

/* Its first line. Neither the command's output nor its words are ever shown: both may be the secret. */
static char *
key_from_command(const struct agent *a, const char *command)
{
	struct buf out = BUF_INIT_MAX(KEY_MAX);
	struct run r = { .shell = command, .cwd = a->dir, .input = "", .out = &out, .timeout = 60 };
	struct err e = ERR_INIT;
	char *key;
	int rc = run(&r, &e);

	if (run_interrupted())
		cli_die_by(run_interrupted());
	if (rc < 0)
		log_die(78, "api_key_cmd failed: it could not be run, took too long or printed too much");
	if (rc > 0)
		log_die(78, "api_key_cmd failed with status %d", rc);
	key = xmemdup0(out.data, strcspn(out.data, "\r\n"));
	explicit_bzero(out.data, out.len);
	buf_release(&out);
	if (key[0] == '\0')
		log_die(78, "api_key_cmd printed no key");
	return key;
}

/* Its first line; whoever else may read the file may have the key. */
static char *
key_from_file(const struct agent *a, const char *name)
{
	char *path = name[0] == '/' || a->dir == NULL ? xstrdup(name) : xasprintf("%s/%s", a->dir, name), *key;
	struct buf text = BUF_INIT_MAX(KEY_MAX);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct err e = ERR_INIT;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		log_die(errno == EACCES ? 77 : 78, "cannot read the key's file '%s': %s", path, strerror(errno));
	if ((st.st_mode & 077) != 0)
		log_die(77, "the key's file '%s' can be read by others: chmod 600 it", path);
	if (io_read_all(fd, &text, "the key", &e) < 0)
		log_die(78, "the key's file '%s' cannot be read", path);
	close(fd);
	key = xmemdup0(text.data, strcspn(text.data, "\r\n"));
	explicit_bzero(text.data, text.len);
	buf_release(&text);
	if (key[0] == '\0')
		log_die(78, "the key's file '%s' is empty", path);
	free(path);
	return key;
}

void
find_key(struct agent *a)
{
	struct llm_config *c = &a->model;
	const char *name = c->api_key_env ? c->api_key_env : llm_key_env(c), *key;

	if (name == NULL)
		return;
	if (c->api_key_cmd != NULL) {
		c->api_key = key_from_command(a, c->api_key_cmd);
		return;
	}
	if (c->api_key_file != NULL) {
		c->api_key = key_from_file(a, c->api_key_file);
		return;
	}
	key = cli_env(name);
	c->api_key = key ? xstrdup(key) : NULL;
}

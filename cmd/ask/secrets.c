#include "secrets.h"

#include "../cli.h"
#include "base/alloc.h"
#include "base/io.h"
#include "base/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET_MAX 8192

struct source {
	const char *what;		/* "api_key" */
	const char *command, *file, *variable;
	const char *dir;		/* where the command runs; NULL: here */
};

/* Its first line. */
static char *
first_line(struct buf *text)
{
	char *line = xmemdup0(text->data, strcspn(text->data, "\r\n"));

	explicit_bzero(text->data, text->len);
	buf_release(text);
	return line;
}

/* Neither the command's output nor its words are ever shown: both may be the secret. */
static char *
from_command(const struct source *s)
{
	struct buf out = BUF_INIT_MAX(SECRET_MAX);
	struct run r = { .shell = s->command, .cwd = s->dir, .input = "", .out = &out, .timeout = 60 };
	struct err e = ERR_INIT;
	char *secret;
	int rc = run(&r, &e);

	if (run_interrupted())
		cli_die_by(run_interrupted());
	if (rc < 0)
		log_die(78, "%s_cmd failed: it could not be run, took too long or printed too much", s->what);
	if (rc > 0)
		log_die(78, "%s_cmd failed with status %d", s->what, rc);
	secret = first_line(&out);
	if (secret[0] == '\0')
		log_die(78, "%s_cmd printed nothing", s->what);
	return secret;
}

/* Whoever else may read the file may have what is in it. */
static char *
from_file(const struct source *s)
{
	struct buf text = BUF_INIT_MAX(SECRET_MAX);
	int fd = open(s->file, O_RDONLY | O_CLOEXEC);
	struct err e = ERR_INIT;
	struct stat st;
	char *secret;

	if (fd < 0 || fstat(fd, &st) < 0)
		log_die(errno == EACCES ? 77 : 78, "%s_file: cannot read '%s': %s", s->what, s->file, strerror(errno));
	if ((st.st_mode & 077) != 0)
		log_die(77, "%s_file: '%s' can be read by others: chmod 600 it", s->what, s->file);
	if (io_read_all(fd, &text, s->what, &e) < 0)
		log_die(78, "%s_file: '%s' cannot be read", s->what, s->file);
	close(fd);
	secret = first_line(&text);
	if (secret[0] == '\0')
		log_die(78, "%s_file: '%s' is empty", s->what, s->file);
	return secret;
}

static char *
find(const struct source *s)
{
	const char *value;

	if (s->command != NULL)
		return from_command(s);
	if (s->file != NULL)
		return from_file(s);
	value = cli_env(s->variable);
	return value != NULL ? xstrdup(value) : NULL;
}

void
secrets_find(struct llm_config *c)
{
	const char *variable = llm_key_env(c);
	struct source key = { "api_key", c->api_key_cmd, c->api_key_file, variable, c->cwd };
	struct source pass = { "cert_pass", c->cert_pass_cmd, c->cert_pass_file,
		c->cert_pass_env != NULL ? c->cert_pass_env : CERT_PASS_ENV, c->cwd };

	if (variable == NULL)
		return;
	prctl(PR_SET_DUMPABLE, 0);
	c->api_key = find(&key);
	if (c->cert != NULL)
		c->cert_pass = find(&pass);
}

static bool
ends_with(const char *name, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && strncasecmp(name + len - n, end, n) == 0;
}

/* A proxy's URL without its user and password: a tool may have to use it all the same. */
static char *
without_user(const char *setting, size_t name_len)
{
	const char *value = setting + name_len + 1, *host = strstr(value, "://"), *end, *at;

	host = host != NULL ? host + 3 : value;
	end = host + strcspn(host, "/?#");
	at = memrchr(host, '@', (size_t)(end - host));
	if (at == NULL)
		return NULL;
	return xasprintf("%.*s%s", (int)(host - setting), setting, at + 1);
}

char *
secrets_hidden(const char *setting)
{
	size_t len = strcspn(setting, "=");

	if (ends_with(setting, len, "_API_KEY") || ends_with(setting, len, "_AUTH_TOKEN") ||
	    (len == strlen(CERT_PASS_ENV) && strncmp(setting, CERT_PASS_ENV, len) == 0))
		return xmemdup0(setting, len);
	return setting[len] == '=' && ends_with(setting, len, "_proxy") ? without_user(setting, len) : NULL;
}

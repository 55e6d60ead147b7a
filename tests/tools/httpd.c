/*
 * httpd [-d] [-t SECONDS] DIR: an HTTP server on 127.0.0.1 whose every byte and pause a test writes down. It takes a port of the
 * system's choice, writes it to DIR/port and prints it. Connection N (from 1) carries one request, which is kept in DIR/N.head and
 * DIR/N.body, and is answered by the script DIR/N, else DIR/any. It ends after SECONDS (default 60) or when it is killed.
 * With -d it goes to the background when it listens, and its process id is in DIR/pid.
 *
 * A script is a line per step; # begins a comment.
 *	head STATUS TYPE	status line, Content-Type and Connection: close; with TYPE - no type
 *	header NAME: VALUE	one more, directly behind head
 *	body			ends the head; from here on (left out: the first of the following does it)
 *	send TEXT		these bytes in one write: \n \r \t \\ \xHH, and \s for a blank at either end
 *	data TEXT		the same as one server-sent event: "data: TEXT\n\n"
 *	file NAME		the bytes of DIR/NAME in one write
 *	chunk TEXT		the same as send, as a chunk of Transfer-Encoding: chunked (a header of yours); `last-chunk` ends it
 *	bytes			from here on every byte is a write of its own
 *	pause MS
 *	touch NAME		makes DIR/NAME, for the test to see how far it is
 *	wait NAME		until DIR/NAME is there
 *	hold			until the client closes
 *	reset			drops the connection (RST); an end of the script is an orderly close
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define REQUEST_MAX (256u << 20)

static const char *dir;

struct connection {
	int fd, number;
	bool in_head, bytewise;
};

static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "httpd: ");
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	exit(1);
}

static const char *
in_dir(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void
milliseconds(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* A file is there only when it is whole. */
static void
keep(const char *name, const void *data, size_t len)
{
	char temporary[4096], path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s", in_dir(name));
	snprintf(temporary, sizeof(temporary), "%s/.%s", dir, name);
	f = fopen(temporary, "we");
	if (f == NULL || fwrite(data, 1, len, f) != len || fclose(f) != 0 || rename(temporary, path) != 0)
		die("cannot write %s: %s", path, strerror(errno));
}

/* ---- the request ---- */

static size_t
content_length(const char *head)
{
	const char *p = strcasestr(head, "\r\ncontent-length:");

	return p != NULL ? (size_t)strtoull(p + 17, NULL, 10) : 0;
}

static size_t
receive(int fd, char *data, size_t len)
{
	ssize_t n;

	do
		n = read(fd, data, len);
	while (n < 0 && errno == EINTR);
	return n > 0 ? (size_t)n : 0;
}

static void
take_request(const struct connection *c)
{
	size_t cap = 1 << 16, len = 0, n, head = 0, want = 0;
	char *data = malloc(cap + 1), *end, name[40];

	while (head == 0 || len < head + want) {
		if (len == cap) {
			cap *= 2;
			data = cap <= REQUEST_MAX ? realloc(data, cap + 1) : NULL;
			if (data == NULL)
				die("a request is too large");
		}
		n = receive(c->fd, data + len, cap - len);
		if (n == 0)
			break;
		len += n;
		data[len] = '\0';
		end = head == 0 ? strstr(data, "\r\n\r\n") : NULL;
		if (end != NULL) {
			head = (size_t)(end - data) + 4;
			want = content_length(data);
		}
	}
	if (head == 0)
		exit(0);
	snprintf(name, sizeof(name), "%d.head", c->number);
	keep(name, data, head);
	snprintf(name, sizeof(name), "%d.body", c->number);
	keep(name, data + head, len - head);
	free(data);
}

/* ---- the answer ---- */

static void
put(struct connection *c, const char *data, size_t len)
{
	size_t step = c->bytewise ? 1 : len;
	ssize_t n;

	while (len > 0) {
		n = send(c->fd, data, step < len ? step : len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			exit(0);	/* the client has gone */
		data += n;
		len -= (size_t)n;
	}
}

static void
puts_to(struct connection *c, const char *text)
{
	put(c, text, strlen(text));
}

static void
end_head(struct connection *c)
{
	if (c->in_head)
		puts_to(c, "\r\n");
	c->in_head = false;
}

static int
hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* In place; returns the length. */
static size_t
unescape(char *text)
{
	static const char names[] = "nrt\\s", values[] = "\n\r\t\\ ";
	char *in = text, *out = text;
	const char *which;

	while (*in != '\0') {
		if (*in != '\\') {
			*out++ = *in++;
			continue;
		}
		in++;
		which = *in != '\0' ? strchr(names, *in) : NULL;
		if (which != NULL) {
			*out++ = values[which - names];
			in++;
		} else if (*in == 'x' && hex(in[1]) >= 0 && hex(in[2]) >= 0) {
			*out++ = (char)(hex(in[1]) * 16 + hex(in[2]));
			in += 3;
		} else {
			*out++ = '\\';	/* as JSON has it */
		}
	}
	return (size_t)(out - text);
}

static void
put_head(struct connection *c, const char *rest)
{
	char type[200] = "-", line[600];
	int status = 200;

	sscanf(rest, "%d %199[^\n]", &status, type);
	snprintf(line, sizeof(line), "HTTP/1.1 %d Scripted\r\nConnection: close\r\n%s%s%s", status, strcmp(type, "-") ? "Content-Type: " : "",
	    strcmp(type, "-") ? type : "", strcmp(type, "-") ? "\r\n" : "");
	puts_to(c, line);
	c->in_head = true;
}

static void
put_file(struct connection *c, const char *name)
{
	char *data;
	struct stat st;
	int fd = open(in_dir(name), O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		die("no file %s", name);
	data = malloc((size_t)st.st_size + 1);
	if (data == NULL || read(fd, data, (size_t)st.st_size) != (ssize_t)st.st_size)
		die("cannot read %s", name);
	close(fd);
	put(c, data, (size_t)st.st_size);
	free(data);
}

static void
put_wrapped(struct connection *c, const char *before, const char *data, size_t len, const char *after)
{
	size_t b = strlen(before), a = strlen(after);
	char *all = malloc(b + len + a);

	if (all == NULL)
		die("out of memory");
	memcpy(all, before, b);
	memcpy(all + b, data, len);
	memcpy(all + b + len, after, a);
	put(c, all, b + len + a);
	free(all);
}

static void
put_chunk(struct connection *c, const char *data, size_t len)
{
	char size[40];

	snprintf(size, sizeof(size), "%zx\r\n", len);
	put_wrapped(c, size, data, len, "\r\n");
}

static void
hold(const struct connection *c)
{
	char data[4096];

	while (receive(c->fd, data, sizeof(data)) > 0)
		;
}

static void __attribute__((noreturn))
reset(const struct connection *c)
{
	struct linger l = { 1, 0 };

	setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	close(c->fd);
	exit(0);
}

static void
step(struct connection *c, const char *word, char *rest)
{
	size_t len;

	if (strcmp(word, "head") == 0) {
		put_head(c, rest);
	} else if (strcmp(word, "header") == 0) {
		puts_to(c, rest);
		puts_to(c, "\r\n");
	} else if (strcmp(word, "bytes") == 0) {
		c->bytewise = true;
	} else if (strcmp(word, "pause") == 0) {
		milliseconds(atol(rest));
	} else if (strcmp(word, "touch") == 0) {
		keep(rest, "", 0);
	} else if (strcmp(word, "wait") == 0) {
		while (access(in_dir(rest), F_OK) < 0)
			milliseconds(5);
	} else if (strcmp(word, "hold") == 0) {
		end_head(c);
		hold(c);
	} else if (strcmp(word, "reset") == 0) {
		reset(c);
	} else {
		end_head(c);
		len = strcmp(word, "file") != 0 ? unescape(rest) : 0;
		if (strcmp(word, "send") == 0)
			put(c, rest, len);
		else if (strcmp(word, "data") == 0)
			put_wrapped(c, "data: ", rest, len, "\n\n");
		else if (strcmp(word, "chunk") == 0)
			put_chunk(c, rest, len);
		else if (strcmp(word, "last-chunk") == 0)
			puts_to(c, "0\r\n\r\n");
		else if (strcmp(word, "file") == 0)
			put_file(c, rest);
		else if (strcmp(word, "body") != 0)
			die("no step '%s'", word);
	}
}

static FILE *
script_of(const struct connection *c)
{
	char name[40];
	FILE *f;

	snprintf(name, sizeof(name), "%d", c->number);
	f = fopen(in_dir(name), "re");
	return f != NULL ? f : fopen(in_dir("any"), "re");
}

static void __attribute__((noreturn))
serve(struct connection *c)
{
	FILE *f;
	char *line = NULL, *rest;
	size_t cap = 0;
	ssize_t n;

	take_request(c);
	f = script_of(c);
	if (f == NULL) {
		puts_to(c, "HTTP/1.1 500 No script\r\nConnection: close\r\n\r\nno script for this request\n");
		exit(0);
	}
	while ((n = getline(&line, &cap, f)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		if (line[0] == '#' || line[0] == '\0')
			continue;
		rest = line + strcspn(line, " ");
		if (*rest != '\0')
			*rest++ = '\0';
		step(c, line, rest);
	}
	end_head(c);
	shutdown(c->fd, SHUT_WR);
	hold(c);	/* so that nothing that is on its way is lost to a reset */
	exit(0);
}

/* ---- the server ---- */

static int
listen_anywhere(int *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 64) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		die("cannot listen: %s", strerror(errno));
	*port = ntohs(a.sin_port);
	return fd;
}

static void
to_background(int fd)
{
	char text[40];
	pid_t pid = fork();
	int null;

	if (pid < 0)
		die("cannot fork");
	if (pid > 0) {
		snprintf(text, sizeof(text), "%d\n", (int)pid);
		keep("pid", text, strlen(text));
		exit(0);
	}
	setsid();
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
	dup2(fd, 3);
	close_range(4, ~0U, 0);	/* a test runner waits for whoever holds its pipes */
}

static void __attribute__((noreturn))
accept_all(int fd, unsigned seconds)
{
	struct connection c = { .number = 0 };
	pid_t server = getpid();
	int on = 1;

	signal(SIGCHLD, SIG_IGN);
	alarm(seconds);
	for (;;) {
		c.fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (c.fd < 0)
			continue;
		c.number++;
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != server)
				exit(0);
			alarm(seconds);
			close(fd);
			setsockopt(c.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
			serve(&c);
		}
		close(c.fd);
	}
}

int
main(int argc, char **argv)
{
	bool background = false;
	unsigned seconds = 60;
	char text[40];
	int opt, fd, port;

	while ((opt = getopt(argc, argv, "dt:")) != -1) {
		if (opt == 'd')
			background = true;
		else if (opt == 't')
			seconds = (unsigned)atoi(optarg);
		else
			return 64;
	}
	if (optind + 1 != argc)
		die("usage: httpd [-d] [-t SECONDS] DIR");
	dir = argv[optind];
	fd = listen_anywhere(&port);
	snprintf(text, sizeof(text), "%d\n", port);
	keep("port", text, strlen(text));
	printf("%d\n", port);
	fflush(stdout);
	if (background) {
		to_background(fd);
		fd = 3;
	}
	accept_all(fd, seconds);
}

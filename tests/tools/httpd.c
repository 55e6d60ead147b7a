/*
 * httpd [-d] [-t SECONDS] [-c PEM [-a CA] [-2] | -s] DIR: an HTTP server on 127.0.0.1 whose every byte and pause a test writes
 * down. It takes a port of the system's choice, writes it to DIR/port and prints it. Connection N (from 1) carries one
 * request, which is kept in DIR/N.head and DIR/N.body, and is answered by the script DIR/N, else DIR/any. It ends after SECONDS
 * (default 60) or when it is killed.
 * With -d it goes to the background when it listens, and its process id is in DIR/pid. With -c it speaks TLS, with the certificate,
 * its chain and its key in the file PEM; -a asks for a client's certificate that CA has signed; -2 takes HTTP/2 from who offers
 * it (N.head is then the compressed header block). With -s it is a SOCKS5 proxy: N.head is `HOST:PORT USER:PASSWORD`, the
 * latter where they are offered. httpd -V ends with status 0 when it was built with TLS, else 1.
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
 *	cut			closes without a word: of TLS and HTTP/2 without what ends them
 *	reset			drops the connection (RST), of HTTP/2 the stream; an end of the script is an orderly close
 *	tunnel PORT		what a proxy does for CONNECT: says 200 and passes bytes to 127.0.0.1:PORT and back
 *	socks CODE [PORT]	what a SOCKS proxy replies; with 0 it passes bytes as well
 *	socks-user CODE		what it says to user and password, the first step of a script (left out: 0)
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
#ifdef WITH_TLS
#include <openssl/err.h>
#include <openssl/ssl.h>
#endif

#define REQUEST_MAX (256u << 20)

static const char *dir;
static bool offer_h2, socks;

struct connection {
	int fd, number;
	bool in_head, bytewise;
	void *tls;		/* SSL *; NULL: none */
	bool h2;
	char block[4096];	/* of HTTP/2: the head that is being made */
	size_t block_len;
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

static long
number(const char *text)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0 || n < 0)
		die("'%s' is no number", text);
	return n;
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

/* ---- TLS ---- */

#ifdef WITH_TLS
static SSL_CTX *tls;

static int
choose_h2(SSL *s, const unsigned char **out, unsigned char *out_len, const unsigned char *in, unsigned in_len, void *arg)
{
	unsigned i;

	for (i = 0; offer_h2 && i + 2 < in_len; i += in[i] + 1u) {
		if (in[i] == 2 && memcmp(in + i + 1, "h2", 2) == 0) {
			*out = in + i + 1;
			*out_len = 2;
			return SSL_TLSEXT_ERR_OK;
		}
	}
	return SSL_TLSEXT_ERR_NOACK;
}

static void
prepare_tls(const char *pem, const char *ca)
{
	tls = SSL_CTX_new(TLS_server_method());
	if (tls == NULL || SSL_CTX_use_certificate_chain_file(tls, pem) != 1 || SSL_CTX_use_PrivateKey_file(tls, pem, SSL_FILETYPE_PEM) != 1)
		die("cannot use %s: %s", pem, ERR_reason_error_string(ERR_get_error()));
	if (ca != NULL && SSL_CTX_load_verify_locations(tls, ca, NULL) != 1)
		die("cannot use %s", ca);
	if (ca != NULL)
		SSL_CTX_set_verify(tls, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_alpn_select_cb(tls, choose_h2, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* A client that does not trust us goes away. */
static void
start_tls(struct connection *c)
{
	const unsigned char *protocol;
	char data[4096];
	unsigned len;

	if (tls == NULL)
		return;
	c->tls = SSL_new(tls);
	if (c->tls == NULL || SSL_set_fd(c->tls, c->fd) != 1)
		die("cannot begin TLS");
	if (SSL_accept(c->tls) != 1) {
		shutdown(c->fd, SHUT_WR);
		while (read(c->fd, data, sizeof(data)) > 0)	/* or a reset overtakes what we said */
			;
		exit(0);
	}
	SSL_get0_alpn_selected(c->tls, &protocol, &len);
	c->h2 = len == 2;
}

static void
end_tls(struct connection *c)
{
	if (c->tls != NULL)
		SSL_shutdown(c->tls);
}

static size_t
tls_receive(struct connection *c, char *data, size_t len)
{
	int n = SSL_read(c->tls, data, (int)len);

	return n > 0 ? (size_t)n : 0;
}

static void
tls_transmit(struct connection *c, const char *data, size_t len)
{
	if (SSL_write(c->tls, data, (int)len) != (int)len)
		exit(0);
}

static int
has_tls(void)
{
	return 0;
}
#else
static void
prepare_tls(const char *pem, const char *ca)
{
	die("this one was built without TLS");
}

static void
start_tls(struct connection *c)
{
}

static void
end_tls(struct connection *c)
{
}

static size_t
tls_receive(struct connection *c, char *data, size_t len)
{
	return 0;
}

static void
tls_transmit(struct connection *c, const char *data, size_t len)
{
}

static int
has_tls(void)
{
	return 1;
}
#endif

static size_t
receive(struct connection *c, char *data, size_t len)
{
	ssize_t n;

	if (c->tls != NULL)
		return tls_receive(c, data, len);
	do
		n = read(c->fd, data, len);
	while (n < 0 && errno == EINTR);
	return n > 0 ? (size_t)n : 0;
}

static void
transmit(struct connection *c, const char *data, size_t len)
{
	ssize_t n;

	if (c->tls != NULL && len > 0) {
		tls_transmit(c, data, len);
		return;
	}
	while (len > 0) {
		n = send(c->fd, data, len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			exit(0);	/* the client has gone */
		data += n;
		len -= (size_t)n;
	}
}

/* ---- HTTP/2, RFC 9113: one request on stream 1, nothing compressed ---- */

enum { H2_DATA, H2_HEADERS, H2_RST_STREAM = 3, H2_SETTINGS, H2_WINDOW_UPDATE = 8 };
#define H2_END_STREAM 1
#define H2_ACK 1
#define H2_END_HEADERS 4

static void
h2_frame(struct connection *c, int type, int flags, int stream, const char *data, size_t len)
{
	char frame[9 + (1 << 14)] = { (char)(len >> 16), (char)(len >> 8), (char)len, (char)type, (char)flags, 0, 0, 0, (char)stream };

	memcpy(frame + 9, data, len);
	transmit(c, frame, 9 + len);
}

static void
h2_put_data(struct connection *c, const char *data, size_t len)
{
	size_t n;

	for (; len > 0; data += n, len -= n) {
		n = len < 1 << 14 ? len : 1 << 14;
		h2_frame(c, H2_DATA, 0, 1, data, n);
	}
}

static void
h2_end(struct connection *c)
{
	h2_frame(c, H2_DATA, H2_END_STREAM, 1, "", 0);
}

static void
h2_reset(struct connection *c)
{
	h2_frame(c, H2_RST_STREAM, 0, 1, "\0\0\0\2", 4);	/* INTERNAL_ERROR */
}

static void
h2_add(struct connection *c, const char *data, size_t len)
{
	if (c->block_len + len + 1 > sizeof(c->block))
		die("a head is too large");
	c->block[c->block_len++] = (char)len;
	memcpy(c->block + c->block_len, data, len);
	c->block_len += len;
}

/* NAME: VALUE, each shorter than 127 bytes. */
static void
h2_header(struct connection *c, const char *line)
{
	size_t n = strcspn(line, ":"), i;
	const char *value = line + n + strspn(line + n, ": ");
	char name[127] = "";

	for (i = 0; i < n && i < sizeof(name) - 1; i++)
		name[i] = (char)(line[i] >= 'A' && line[i] <= 'Z' ? line[i] + 32 : line[i]);
	c->block[c->block_len++] = 0;	/* a literal that is not indexed */
	h2_add(c, name, i);
	h2_add(c, value, strlen(value) < 127 ? strlen(value) : 126);
}

static void
h2_begin_head(struct connection *c, int status, const char *type)
{
	char line[300];

	c->block_len = 0;
	snprintf(line, sizeof(line), ":status: %d", status);
	c->block[c->block_len++] = 0;
	h2_add(c, ":status", 7);
	h2_add(c, line + 9, 3);
	snprintf(line, sizeof(line), "content-type: %s", type);
	if (strcmp(type, "-") != 0)
		h2_header(c, line);
}

static void
h2_end_head(struct connection *c)
{
	h2_frame(c, H2_HEADERS, H2_END_HEADERS, 1, c->block, c->block_len);
}

static void
receive_all(struct connection *c, char *data, size_t len)
{
	size_t n;

	for (; len > 0; data += n, len -= n) {
		n = receive(c, data, len);
		if (n == 0)
			exit(0);
	}
}

static void
h2_take_request(struct connection *c)
{
	static char frame[1 << 24], body[1 << 24];
	char head[24], name[40];
	size_t len, body_len = 0;
	bool more = true;

	receive_all(c, head, 24);	/* the preface */
	h2_frame(c, H2_SETTINGS, 0, 0, "\0\4\x7f\xff\xff\xff", 6);	/* a window for any body */
	h2_frame(c, H2_WINDOW_UPDATE, 0, 0, "\x7f\xff\0\0", 4);
	while (more) {
		receive_all(c, head, 9);
		len = (size_t)((unsigned char)head[0] << 16 | (unsigned char)head[1] << 8 | (unsigned char)head[2]);
		receive_all(c, frame, len);
		if (head[3] == H2_SETTINGS && (head[4] & H2_ACK) == 0)
			h2_frame(c, H2_SETTINGS, H2_ACK, 0, "", 0);
		if (head[3] != H2_HEADERS && head[3] != H2_DATA)
			continue;
		more = (head[4] & H2_END_STREAM) == 0;
		if (head[3] == H2_HEADERS) {
			snprintf(name, sizeof(name), "%d.head", c->number);
			keep(name, frame, len);
		} else if (body_len + len <= sizeof(body)) {
			memcpy(body + body_len, frame, len);
			body_len += len;
		}
	}
	snprintf(name, sizeof(name), "%d.body", c->number);
	keep(name, body, body_len);
}

/* ---- the request ---- */

static size_t
content_length(const char *head)
{
	const char *p = strcasestr(head, "\r\ncontent-length:");

	return p != NULL ? (size_t)strtoull(p + 17, NULL, 10) : 0;
}

static void
take_request(struct connection *c)
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
		n = receive(c, data + len, cap - len);
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
	size_t step = c->bytewise ? 1 : len, n;

	for (; len > 0; data += n, len -= n) {
		n = step < len ? step : len;
		if (c->h2)
			h2_put_data(c, data, n);
		else
			transmit(c, data, n);
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
	if (c->in_head && c->h2)
		h2_end_head(c);
	else if (c->in_head)
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
	c->in_head = true;
	if (c->h2) {
		h2_begin_head(c, status, type);
		return;
	}
	snprintf(line, sizeof(line), "HTTP/1.1 %d Scripted\r\nConnection: close\r\n%s%s%s", status, strcmp(type, "-") ? "Content-Type: " : "",
	    strcmp(type, "-") ? type : "", strcmp(type, "-") ? "\r\n" : "");
	puts_to(c, line);
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
hold(struct connection *c)
{
	char data[4096];

	while (receive(c, data, sizeof(data)) > 0)
		;
}

static void __attribute__((noreturn))
reset(struct connection *c)
{
	struct linger l = { 1, 0 };

	if (c->h2) {
		h2_reset(c);
		hold(c);
		exit(0);
	}
	setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	close(c->fd);
	exit(0);
}

static void __attribute__((noreturn))
tunnel(struct connection *c, int port, const char *hello, size_t hello_len)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), i;
	struct pollfd p[2] = { { .fd = c->fd, .events = POLLIN }, { .fd = fd, .events = POLLIN } };
	char data[1 << 16];
	ssize_t n;

	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		die("cannot connect to %d", port);
	transmit(c, hello, hello_len);
	for (;;) {
		poll(p, 2, -1);
		for (i = 0; i < 2; i++) {
			if (p[i].revents == 0)
				continue;
			n = read(p[i].fd, data, sizeof(data));
			if (n <= 0 || write(p[!i].fd, data, (size_t)n) != n)
				exit(0);
		}
	}
}

/* ---- SOCKS5, RFC 1928 and 1929 ---- */

static unsigned
take_bytes(struct connection *c, char *data, size_t len)
{
	size_t have = 0, n;

	for (; have < len; have += n)
		if ((n = receive(c, data + have, len - have)) == 0)
			exit(0);
	return (unsigned char)data[len - 1];
}

/* A length in one byte, and so many. */
static size_t
take_short(struct connection *c, char out[256])
{
	unsigned len = take_bytes(c, out, 1);

	if (len > 0)
		take_bytes(c, out, len);
	out[len] = '\0';
	return len;
}

static char
user_code(FILE *script)
{
	int code = 0;

	if (script == NULL || fscanf(script, "socks-user %d", &code) != 1)
		code = 0;
	if (script != NULL)
		rewind(script);
	return (char)code;
}

static void
take_socks(struct connection *c, FILE *script)
{
	char data[256], host[256], user[256] = "", password[256] = "", name[40], text[1024];
	bool asks;

	if (take_bytes(c, data, 1) != 5)
		exit(0);
	asks = memchr(data, 2, take_short(c, data)) != NULL;
	transmit(c, asks ? "\5\2" : "\5\0", 2);
	if (asks) {
		take_bytes(c, data, 1);
		take_short(c, user);
		take_short(c, password);
		data[1] = user_code(script);
		transmit(c, data, 2);
	}
	if (take_bytes(c, data, 4) == 3) {
		take_short(c, host);
	} else {
		take_bytes(c, data, 4);
		inet_ntop(AF_INET, data, host, sizeof(host));
	}
	take_bytes(c, data, 2);
	snprintf(name, sizeof(name), "%d.head", c->number);
	snprintf(text, sizeof(text), "%s:%d %s:%s\n", host, (unsigned char)data[0] << 8 | (unsigned char)data[1], user, password);
	keep(name, text, strlen(text));
}

static void
socks_reply(struct connection *c, char *rest)
{
	char reply[10] = { 5, 0, 0, 1 };
	char *port = strchr(rest, ' ');

	if (port != NULL)
		*port++ = '\0';
	reply[1] = (char)number(rest);
	if (port != NULL)
		tunnel(c, (int)number(port), reply, sizeof(reply));
	transmit(c, reply, sizeof(reply));
}

static void
step(struct connection *c, const char *word, char *rest)
{
	size_t len;

	if (strcmp(word, "head") == 0) {
		put_head(c, rest);
	} else if (strcmp(word, "header") == 0 && c->h2) {
		h2_header(c, rest);
	} else if (strcmp(word, "header") == 0) {
		puts_to(c, rest);
		puts_to(c, "\r\n");
	} else if (strcmp(word, "bytes") == 0) {
		c->bytewise = true;
	} else if (strcmp(word, "pause") == 0) {
		milliseconds(number(rest));
	} else if (strcmp(word, "touch") == 0) {
		keep(rest, "", 0);
	} else if (strcmp(word, "wait") == 0) {
		while (access(in_dir(rest), F_OK) < 0)
			milliseconds(5);
	} else if (strcmp(word, "hold") == 0) {
		end_head(c);
		hold(c);
	} else if (strcmp(word, "cut") == 0) {
		end_head(c);
		shutdown(c->fd, SHUT_WR);
		hold(c);
		exit(0);
	} else if (strcmp(word, "tunnel") == 0) {
		tunnel(c, (int)number(rest), "HTTP/1.1 200 Tunnel\r\n\r\n", 23);
	} else if (strcmp(word, "socks") == 0) {
		socks_reply(c, rest);
	} else if (strcmp(word, "socks-user") == 0) {
		;	/* was taken before the request */
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

	start_tls(c);
	f = socks ? script_of(c) : NULL;
	if (socks)
		take_socks(c, f);
	else if (c->h2)
		h2_take_request(c);
	else
		take_request(c);
	if (f == NULL)
		f = script_of(c);
	if (f == NULL) {
		put_head(c, "500 text/plain");
		end_head(c);
		puts_to(c, "no script for this request\n");
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
	if (!socks)
		end_head(c);
	if (c->h2)
		h2_end(c);
	end_tls(c);
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
	const char *pem = NULL, *ca = NULL;
	int opt, fd, port;

	while ((opt = getopt(argc, argv, "dt:c:a:2sV")) != -1) {
		if (opt == 'd')
			background = true;
		else if (opt == 't')
			seconds = (unsigned)number(optarg);
		else if (opt == 'c')
			pem = optarg;
		else if (opt == 'a')
			ca = optarg;
		else if (opt == '2')
			offer_h2 = true;
		else if (opt == 's')
			socks = true;
		else
			return opt == 'V' ? has_tls() : 64;
	}
	if (optind + 1 != argc)
		die("usage: httpd [-d] [-t SECONDS] [-c PEM [-a CA] [-2] | -s] DIR");
	if (pem != NULL)
		prepare_tls(pem, ca);
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

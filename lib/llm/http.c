#include "llm/http.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/run.h"
#include "event/json.h"
#include "llm/quote.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>

#define CONNECT_TIMEOUT 30	/* seconds */
#define PAUSE_FIRST 0.5		/* seconds between attempts, doubled each time */
#define PAUSE_MAX 8
#define PAUSE_TOLD 5		/* one that is longer is announced */
#define IDLE_TIMEOUT 300
#define PAUSE_AT_END 2		/* seconds that may pass behind a complete answer until more of it comes */
#define REFUSAL_MAX (64 * 1024)	/* bytes of a refusal that are looked at */
#define BODY_MAX (512u << 20)	/* bytes of an answer with all its frames: a small one may unpack to anything */
#define RECEIVE 102400		/* bytes that are taken at once where so many have come */
#define CERTIFICATES "/etc/ssl/certs"

struct transfer {
	const struct http_post *p;
	struct err *e;
	CURLM *multi;
	CURL *easy;
	CURLU *url;
	struct curl_slist *headers;
	char *host;			/* for messages */
	struct http_answer answer;
	struct buf refusal;
	double heard;			/* when anything was last sent or received */
	double first_byte, idle;	/* seconds allowed until something comes, and of silence then */
	double limit;			/* seconds that are left for it */
	double after;			/* what Retry-After says, seconds; below 0: nothing that is understood */
	int should_retry;		/* x-should-retry: 1, 0, or -1 without */
	curl_off_t moved;
	size_t size;			/* bytes of the answer, unpacked */
	bool connected, answered, begun, complete, enough, failed;
	char why[CURL_ERROR_SIZE];
};

/* ---- where to ---- */

static char *
url_part(CURLU *u, CURLUPart part)
{
	char *text = NULL, *copy;

	if (curl_url_get(u, part, &text, 0) != CURLUE_OK || text == NULL)
		return NULL;
	copy = xstrdup(text);
	curl_free(text);
	return copy;
}

/* An address, not a name that begins as one: a resolver might look that up elsewhere. IPv6 stands in brackets. */
static bool
is_loopback(const char *host)
{
	char text[INET6_ADDRSTRLEN + 2];
	struct in6_addr six;
	struct in_addr four;

	if (strcasecmp(host, "localhost") == 0)
		return true;
	if (inet_pton(AF_INET, host, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	if (host[0] != '[' || strlen(host) >= sizeof(text))
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(host + 1, "]"), host + 1);
	return inet_pton(AF_INET6, text, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

static int
check_url(struct transfer *t, const char *scheme, const char *user, struct err *e)
{
	bool plain;

	if (scheme == NULL || t->host == NULL || t->host[0] == '\0')
		return err_set(e, ERR_CONFIG, "the base URL has no host");
	plain = strcmp(scheme, "http") == 0;
	if (!plain && strcmp(scheme, "https") != 0)
		return err_set(e, ERR_CONFIG, "the base URL is %.40s:, not https: or http:", scheme);
	if (user != NULL)
		return err_set(e, ERR_CONFIG, "the base URL of %.200s holds a user name or password: keys do not belong there", t->host);
	if (plain && t->p->key != NULL && !is_loopback(t->host))
		return err_set(e, ERR_CONFIG, "the key is not sent over http: to %.200s: use https:", t->host);
	if (plain && is_loopback(t->host))
		curl_easy_setopt(t->easy, CURLOPT_NOPROXY, "*");	/* or the key would leave this host */
	return 0;
}

static int
add_path(struct transfer *t, struct err *e)
{
	char *path = url_part(t->url, CURLUPART_PATH), *all;
	size_t len = path ? strlen(path) : 0;
	CURLUcode rc;

	while (len > 0 && path[len - 1] == '/')
		len--;
	all = xasprintf("%.*s%s", (int)len, path ? path : "", t->p->path);
	rc = curl_url_set(t->url, CURLUPART_PATH, all, 0);
	free(path);
	free(all);
	if (rc == CURLUE_OK && t->p->query != NULL)
		rc = curl_url_set(t->url, CURLUPART_QUERY, t->p->query, CURLU_APPENDQUERY);
	if (rc != CURLUE_OK || curl_url_set(t->url, CURLUPART_FRAGMENT, NULL, 0) != CURLUE_OK)
		return err_set(e, ERR_CONFIG, "the base URL is not one");
	return 0;
}

static int
set_url(struct transfer *t, struct err *e)
{
	char *scheme = NULL, *user = NULL, *password = NULL;
	int rc = -1;

	t->url = curl_url();
	if (curl_url_set(t->url, CURLUPART_URL, t->p->base_url, 0) != CURLUE_OK) {
		err_set(e, ERR_CONFIG, "the base URL is not an https: or http: URL");
		goto out;
	}
	scheme = url_part(t->url, CURLUPART_SCHEME);
	user = url_part(t->url, CURLUPART_USER);
	password = url_part(t->url, CURLUPART_PASSWORD);
	t->host = url_part(t->url, CURLUPART_HOST);
	rc = check_url(t, scheme, user != NULL ? user : password, e);
	if (rc == 0)
		rc = add_path(t, e);
	if (rc == 0)
		curl_easy_setopt(t->easy, CURLOPT_CURLU, t->url);
out:
	free(scheme);
	free(user);
	free(password);
	return rc;
}

/* ---- what to send ---- */

static int
check_key(const char *key, struct err *e)
{
	const char *c;

	for (c = key; *c != '\0'; c++)
		if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f)
			return err_set(e, ERR_CONFIG, "the key holds a blank or a control character: it is not one");
	return *key != '\0' ? 0 : err_set(e, ERR_CONFIG, "the key is empty");
}

static void
add_header(struct transfer *t, const char *line)
{
	t->headers = curl_slist_append(t->headers, line);
}

static int
set_headers(struct transfer *t, struct err *e)
{
	const struct http_post *p = t->p;
	const char *const *h;
	char *line;

	add_header(t, "Content-Type: application/json");
	add_header(t, p->stream ? "Accept: text/event-stream, application/json" : "Accept: application/json");
	add_header(t, "Expect:");	/* a large body is not held back for a second */
	for (h = p->headers; h != NULL && *h != NULL; h++)
		add_header(t, *h);
	if (p->key != NULL) {
		if (check_key(p->key, e) < 0)
			return -1;
		line = xasprintf("%s%s", p->key_header, p->key);
		add_header(t, line);
		explicit_bzero(line, strlen(line));
		free(line);
	}
	curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
	return 0;
}

/* ---- what comes ---- */

static void
keep_refusal(struct transfer *t, const char *data, size_t len)
{
	size_t room = REFUSAL_MAX - t->refusal.len;

	buf_add(&t->refusal, data, len < room ? len : room);
}

/* A count other than len ends the transfer. */
static size_t
on_write(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	size_t len = size * n;
	char *type = NULL;
	double before = t->heard;
	int rc;

	t->heard = clock_monotonic();
	if (!t->begun) {
		t->begun = true;
		curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->answer.status);
		curl_easy_getinfo(t->easy, CURLINFO_CONTENT_TYPE, &type);
		t->answer.type = type != NULL ? type : "";
	}
	if (t->answer.status < 200 || t->answer.status > 299) {
		keep_refusal(t, data, len);
		return t->refusal.len < REFUSAL_MAX ? len : 0;
	}
	if (t->enough || t->failed)
		return 0;
	t->size += len;
	if (t->size > BODY_MAX) {
		t->failed = true;
		err_set(t->e, ERR_UNAVAIL, "%.200s: the answer is larger than %u bytes", t->host, BODY_MAX);
		return 0;
	}
	rc = t->p->on_body(t->p->arg, &t->answer, data, len, t->e);
	t->complete = rc == HTTP_COMPLETE || rc == HTTP_PADDED;
	if (rc == HTTP_PADDED)
		t->heard = before;
	t->enough = rc == HTTP_ENOUGH;
	t->failed = rc < 0;
	return t->enough || t->failed ? 0 : len;
}

/* Digits, and a fraction; -1 when it is anything else. */
static double
plain_number(const char *text)
{
	size_t n = strspn(text, "0123456789");

	if (n == 0)
		return -1;
	if (text[n] == '.')
		n += 1 + strspn(text + n + 1, "0123456789");
	return text[n] == '\0' ? json_number(text) : -1;
}

/* Seconds, with or without a fraction, or a date; -1 when it is neither. */
static double
retry_seconds(const char *text)
{
	double wait = plain_number(text);
	time_t date;

	if (wait >= 0)
		return wait;
	date = curl_getdate(text, NULL);
	if (date < 0)
		return -1;
	wait = (double)date - clock_now();
	return wait > 0 ? wait : 0;
}

/* The value of a header line when it has this name, without the blanks around it. Free it. */
static char *
header_value(const char *line, size_t len, const char *name)
{
	size_t n = strlen(name);

	if (len <= n || strncasecmp(line, name, n) != 0 || line[n] != ':')
		return NULL;
	for (n++; n < len && (line[n] == ' ' || line[n] == '\t'); n++)
		;
	while (len > n && strchr(" \t\r\n", line[len - 1]) != NULL)
		len--;
	return xmemdup0(line + n, len - n);
}

/* Of several the longest counts: each of them may be what a server or proxy insists on. */
static void
note_retry_after(struct transfer *t, double seconds)
{
	if (seconds >= 0 && seconds > t->after)
		t->after = seconds;
}

static size_t
on_header(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	char *after = header_value(data, size * n, "retry-after"), *ms = header_value(data, size * n, "retry-after-ms"),
	    *should = header_value(data, size * n, "x-should-retry");

	t->heard = clock_monotonic();
	t->answered = true;
	if (after != NULL)
		note_retry_after(t, retry_seconds(after));
	if (ms != NULL)
		note_retry_after(t, plain_number(ms) / 1000);
	if (should != NULL)
		t->should_retry = strcasecmp(should, "true") == 0 ? 1 : strcasecmp(should, "false") == 0 ? 0 : -1;
	free(after);
	free(ms);
	free(should);
	return size * n;
}

/* A long request on a slow line is no silence. */
static int
on_progress(void *arg, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up)
{
	struct transfer *t = arg;

	if (down + up != t->moved && !t->complete) {	/* behind that, on_body says what counts */
		t->heard = clock_monotonic();
		t->connected = true;
	}
	t->moved = down + up;
	return 0;
}

/* 0a1b2c3d.0: a certificate under the hash of its subject. */
static bool
hashed_name(const char *name)
{
	return strspn(name, "0123456789abcdef") == 8 && strcmp(name + 8, ".0") == 0;
}

/*
 * Of the libraries that libcurl may be built with, OpenSSL reads one entry of a hashed directory, which is several times
 * faster than the bundle of all certificates; the others read all of it.
 */
static bool
looks_up_hashes(void)
{
	const curl_version_info_data *v = curl_version_info(CURLVERSION_NOW);

	return v->ssl_version != NULL && strncmp(v->ssl_version, "OpenSSL/", 8) == 0;
}

static void
trust_directory(CURL *easy, const char *path)
{
	curl_easy_setopt(easy, CURLOPT_CAPATH, path);
	curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
}

static void
trust_system(CURL *easy)
{
	DIR *d = looks_up_hashes() ? opendir(CERTIFICATES) : NULL;
	struct dirent *entry = NULL;

	if (d == NULL)
		return;
	while ((entry = readdir(d)) != NULL && !hashed_name(entry->d_name))
		;
	if (entry != NULL)
		trust_directory(easy, CERTIFICATES);
	closedir(d);
}

bool
http_trusts(const char *path)
{
#if LIBCURL_VERSION_NUM >= 0x074600
	const curl_version_info_data *v = curl_version_info(CURLVERSION_NOW);

	if (v->age >= CURLVERSION_SEVENTH && v->cainfo != NULL && strcmp(path, v->cainfo) == 0)
		return true;
#endif
	return strcmp(path, CERTIFICATES) == 0;
}

static int
trust(CURL *easy, const char *path, struct err *e)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_set(e, ERR_CONFIG, "the certificates to trust, '%.200s', cannot be read: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode)) {
		trust_directory(easy, path);
	} else {
		curl_easy_setopt(easy, CURLOPT_CAINFO, path);
		curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
	}
	return 0;
}

static int
set_certificates(struct transfer *t, struct err *e)
{
	const struct http_post *p = t->p;

	if (strncasecmp(p->base_url, "https:", 6) != 0)
		return 0;
	if (p->cert != NULL) {
		curl_easy_setopt(t->easy, CURLOPT_SSLCERT, p->cert);
		curl_easy_setopt(t->easy, CURLOPT_SSLKEY, p->cert_key);		/* NULL: it is in the same file */
		curl_easy_setopt(t->easy, CURLOPT_KEYPASSWD, p->cert_pass != NULL ? p->cert_pass : "");	/* or OpenSSL asks the terminal */
	}
	if (p->cacert != NULL && !http_trusts(p->cacert))
		return trust(t->easy, p->cacert, e);
	trust_system(t->easy);
	return 0;
}

static void
set_protocols(CURL *easy)
{
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

static long
milliseconds(double seconds)
{
	return seconds > 1e6 ? 1000000000L : seconds < 0.001 ? 1 : (long)(seconds * 1000);
}

static void
set_options(struct transfer *t)
{
	CURL *c = t->easy;

	set_protocols(c);
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	curl_easy_setopt(c, CURLOPT_ACCEPT_ENCODING, "");	/* all that it can unpack */
	curl_easy_setopt(c, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);	/* a proxy's word is no answer */
	curl_easy_setopt(c, CURLOPT_BUFFERSIZE, (long)RECEIVE);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "ag2/" AG2_VERSION);
	curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->p->len);
	curl_easy_setopt(c, CURLOPT_POSTFIELDS, t->p->body);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(t->p->connect > 0 ? t->p->connect : CONNECT_TIMEOUT));
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, milliseconds(t->limit));
	curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
	curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L);	/* or Ctrl-C waits for a name server that does not answer */
#endif
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, t->why);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_write);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, t);
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(c, CURLOPT_XFERINFODATA, t);
}

/* ---- how it ended ---- */

/* NULL when it is no JSON. Put it. */
static struct json_object *
refusal_body(const struct transfer *t)
{
	struct json_object *body;

	return json_parse(&body, t->refusal.data, t->refusal.len, NULL) == 0 ? body : NULL;
}

static bool
quota_used_up(const struct transfer *t)
{
	struct json_object *body = refusal_body(t);
	const char *why = error_code(error_body(body));
	bool up = why != NULL && strcmp(why, "insufficient_quota") == 0;

	json_object_put(body);
	return up;
}

/* Google says in the body when to come back: {"error": {"details": [{"retryDelay": "37s"}]}}. */
static void
note_delay(struct transfer *t)
{
	struct json_object *body = refusal_body(t), *details = json_get(json_get(error_body(body), "error"), "details");
	const char *delay;
	char *number;
	size_t i, len;

	for (i = 0; i < json_count(details); i++) {
		delay = json_get_text(json_object_array_get_idx(details, i), "retryDelay", &len);
		if (delay == NULL || len == 0 || delay[len - 1] != 's')
			continue;
		number = xmemdup0(delay, len - 1);
		note_retry_after(t, plain_number(number));
		free(number);
	}
	json_object_put(body);
}

static int
refused(struct transfer *t, struct err *e)
{
	struct buf words = BUF_INIT;
	enum err_code code = ERR_UNAVAIL;
	long status = t->answer.status;

	note_delay(t);
	quote_body(&words, t->refusal.data, t->refusal.len, t->p->key);
	if (status == 401 || status == 403 || status == 407)
		code = ERR_PERM;
	else if (status == 503 || status == 529 || (status == 429 && !quota_used_up(t)))
		code = ERR_BUSY;
	if (status == 401 && t->p->key_source != NULL)
		buf_addf(&words, "%s(%.300s)", words.len > 0 ? " " : "", t->p->key_source);
	err_set(e, code, "%.200s refused with status %ld%s%s", t->host, status, words.len > 0 ? ": " : "", words.data);
	if (status >= 300 && status < 400)
		err_set(e, code, "%.200s redirects (status %ld), and the key is not taken elsewhere: correct the base URL", t->host, status);
	else if (code == ERR_BUSY && t->after > 0)
		err_set(e, code, "%.200s refused with status %ld, come back in %.0f s%s%s", t->host, status, ceil(t->after),
		    words.len > 0 ? ": " : "", words.data);
	buf_release(&words);
	return -1;
}

/* The status a proxy refused a tunnel with; 0: none did. */
static long
proxy_status(const struct transfer *t)
{
	long status = 0;

	curl_easy_getinfo(t->easy, CURLINFO_HTTP_CONNECTCODE, &status);
	return status < 300 ? 0 : status;
}

/* What libcurl says, but for the address of a proxy that it quotes with user and password. */
static const char *
why_broken(const struct transfer *t, CURLcode rc)
{
	if (strncmp(t->why, "Unsupported proxy", 17) == 0)
		return "the address of the proxy cannot be used";
	return t->why[0] != '\0' ? t->why : curl_easy_strerror(rc);
}

/* A header has limits of libcurl's own: 100 kB a line and, since 8.3, 300 kB in all. Until 8.6 it calls the first to be out of memory. */
static bool
header_too_large(const struct transfer *t, CURLcode rc)
{
	if (t->begun)
		return false;
#if LIBCURL_VERSION_NUM >= 0x080600
	if (rc == CURLE_TOO_LARGE)
		return true;
#endif
	return rc == CURLE_OUT_OF_MEMORY || (rc == CURLE_RECV_ERROR && strncmp(t->why, "Too large response headers", 26) == 0);
}

static int
socks_broken(struct transfer *t, struct err *e)
{
	long why = CURLPX_OK;

	curl_easy_getinfo(t->easy, CURLINFO_PROXY_ERROR, &why);
	if (why == CURLPX_USER_REJECTED || why == CURLPX_NO_AUTH || why == CURLPX_IDENTD || why == CURLPX_IDENTD_DIFFER)
		return err_set(e, ERR_PERM, "the SOCKS proxy does not take the user and password, if any");
	if (why == CURLPX_REPLY_NOT_ALLOWED)
		return err_set(e, ERR_UNAVAIL, "the SOCKS proxy does not allow to connect to %.200s", t->host);
	return err_set(e, ERR_UNAVAIL, "the SOCKS proxy cannot connect to %.200s: %.300s", t->host, why_broken(t, CURLE_PROXY));
}

static int
broken(struct transfer *t, CURLcode rc, struct err *e)
{
	const char *why = why_broken(t, rc);
	long proxy = proxy_status(t);

	if (proxy != 0)
		return err_set(e, proxy == 407 ? ERR_PERM : proxy == 429 || proxy == 503 ? ERR_BUSY : ERR_UNAVAIL,
		    "the proxy refuses to connect to %.200s with status %ld", t->host, proxy);
	if (rc == CURLE_PROXY)
		return socks_broken(t, e);
	if (header_too_large(t, rc))
		return err_set(e, ERR_UNAVAIL, "no answer from %.200s: its header is larger than is taken (100 kB a line, 300 kB in all)", t->host);
	if (rc == CURLE_PEER_FAILED_VERIFICATION)
		return err_set(e, ERR_UNAVAIL, "%.200s is not trusted, and nothing was sent: %.300s", t->host, why);
	if (rc == CURLE_SSL_CERTPROBLEM || rc == CURLE_SSL_CACERT_BADFILE)
		return err_set(e, ERR_CONFIG, "%.200s was not asked: %.300s", t->host, why);
	if (rc == CURLE_OPERATION_TIMEDOUT && t->begun)
		return err_set(e, ERR_UNAVAIL, "%.200s: the answer was not complete within %g seconds", t->host, t->p->timeout);
	if (t->begun)
		return err_set(e, ERR_UNAVAIL, "%.200s: the answer is incomplete: %.300s", t->host, why);
	return err_set(e, ERR_UNAVAIL, "no answer from %.200s: %.300s", t->host, why);
}

static int
outcome(struct transfer *t, CURLcode rc, struct err *e)
{
	if (t->failed)
		return -1;
	if (t->enough)
		return 0;
	if (t->answer.status == 0)
		curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->answer.status);
	if (t->answer.status != 0 && (t->answer.status < 200 || t->answer.status > 299))
		return refused(t, e);
	return rc == CURLE_OK ? 0 : broken(t, rc, e);
}

/* 1 when the transfer is over, with *rc. */
static int
finished(struct transfer *t, CURLcode *rc)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(t->multi, &left)) != NULL) {
		if (m->msg == CURLMSG_DONE) {
			*rc = m->data.result;
			return 1;
		}
	}
	return 0;
}

static double
silence_ends(const struct transfer *t)
{
	if (!t->answered && !t->connected)
		return HUGE_VAL;	/* connecting has its own limit */
	if (t->complete && t->idle > PAUSE_AT_END)
		return t->heard + PAUSE_AT_END;
	return t->heard + (t->answered ? t->idle : t->first_byte);
}

static int
wait_more(struct transfer *t)
{
	struct curl_waitfd signals = { .fd = run_wakeup_fd(), .events = CURL_WAIT_POLLIN };
	double left = silence_ends(t) - clock_monotonic();

	if (left > 1)
		left = 1;
	return curl_multi_poll(t->multi, &signals, signals.fd >= 0 ? 1 : 0, left > 0 ? (int)ceil(left * 1000) : 0, NULL) == CURLM_OK ? 0 : -1;
}

/* *rc is how libcurl saw its end. */
static int
transfer(struct transfer *t, CURLcode *rc, struct err *e)
{
	int running;

	t->heard = clock_monotonic();
	for (;;) {
		if (curl_multi_perform(t->multi, &running) != CURLM_OK)
			return err_set(e, ERR_UNAVAIL, "%.200s: the transfer failed", t->host);
		if (t->enough || t->failed || finished(t, rc))
			return outcome(t, *rc, e);
		if (run_check(e) < 0)
			return -1;
		if (t->complete && clock_monotonic() > silence_ends(t))
			return 0;
		if (clock_monotonic() > silence_ends(t))
			return err_set(e, ERR_UNAVAIL, "%.200s sent nothing for %g seconds", t->host, t->answered ? t->idle : t->first_byte);
		if (wait_more(t) < 0)
			return err_set(e, ERR_UNAVAIL, "%.200s: cannot wait for it", t->host);
	}
}

/* ---- attempts ---- */

static void
set_limits(struct transfer *t)
{
	const struct http_post *p = t->p;
	double idle = p->timeout / 2 > IDLE_TIMEOUT ? p->timeout / 2 : IDLE_TIMEOUT;

	t->idle = p->idle > 0 ? p->idle : !p->stream ? p->timeout + 1 : idle;
	t->first_byte = p->first_byte > 0 ? p->first_byte : !p->stream ? p->timeout + 1 : t->idle;
}

/* Whether asking once more may help, and is not asking for the same answer twice. */
static bool
passes(const struct transfer *t, CURLcode rc)
{
	long status = t->answer.status != 0 ? t->answer.status : proxy_status(t);

	if (t->begun && status >= 200 && status <= 299)
		return false;
	if (status != 0 && (status < 200 || status > 299)) {
		if (t->should_retry >= 0)
			return t->should_retry == 1;
		return status == 408 || status == 409 || status >= 500 || (status == 429 && !quota_used_up(t));
	}
	if (header_too_large(t, rc))
		return false;
	switch (rc) {
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
	case CURLE_SSL_CONNECT_ERROR:
		return strstr(t->why, "alert") == NULL;	/* one of TLS says no, and will again */
	case CURLE_COULDNT_CONNECT:
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_GOT_NOTHING:
	case CURLE_PARTIAL_FILE:
	case CURLE_HTTP2:
	case CURLE_HTTP2_STREAM:
		return true;
	case CURLE_OPERATION_TIMEDOUT:	/* to connect; not one that was told to think for long */
		return !t->connected;
	default:
		return false;
	}
}

static double
chance(void)
{
	unsigned char byte = 0;

	if (getrandom(&byte, 1, GRND_NONBLOCK) != 1)
		byte = (unsigned char)(long)(clock_monotonic() * 1e6);
	return byte / 256.0;
}

static double
pause_before(const struct transfer *t, long attempt)
{
	double seconds = PAUSE_FIRST;
	long i;

	if (t->after >= 0)
		return t->after;
	for (i = 0; i < attempt && seconds < PAUSE_MAX; i++)
		seconds *= 2;
	return (seconds < PAUSE_MAX ? seconds : PAUSE_MAX) * (1 - chance() / 4);
}

/* Until then, or a signal: -1. */
static int
wait_until(double end, struct err *e)
{
	struct pollfd signals = { .fd = run_wakeup_fd(), .events = POLLIN };
	double left;

	while (run_interrupted() == 0 && (left = end - clock_monotonic()) > 0)
		if (poll(&signals, signals.fd >= 0 ? 1 : 0, left > 1 ? 1000 : (int)ceil(left * 1000)) < 0 && errno != EINTR)
			break;
	return run_check(e);
}

/* One attempt. 0, or -1 with *again when another one may help, and *after what Retry-After said. */
static int
attempt(const struct http_post *p, double limit, bool *again, double *pause, long number, struct err *e)
{
	struct transfer t = { .p = p, .e = e, .refusal = BUF_INIT, .answer = { .type = "" }, .limit = limit, .after = -1, .should_retry = -1 };
	CURLcode code = CURLE_OK;
	int rc = -1;

	set_limits(&t);
	t.easy = curl_easy_init();
	t.multi = curl_multi_init();
	if (t.easy == NULL || t.multi == NULL) {
		err_set(e, ERR_UNAVAIL, "libcurl cannot be used");
		goto out;
	}
	set_options(&t);
	if (set_certificates(&t, e) < 0 || set_url(&t, e) < 0 || set_headers(&t, e) < 0)
		goto out;
	if (curl_multi_add_handle(t.multi, t.easy) == CURLM_OK) {
		rc = transfer(&t, &code, e);
		*again = rc < 0 && !t.failed && run_interrupted() == 0 && passes(&t, code);
		*pause = pause_before(&t, number);
	} else {
		err_set(e, ERR_UNAVAIL, "libcurl cannot be used");
	}
	curl_multi_remove_handle(t.multi, t.easy);
out:
	curl_easy_cleanup(t.easy);
	curl_multi_cleanup(t.multi);
	curl_slist_free_all(t.headers);
	curl_url_cleanup(t.url);
	free(t.host);
	buf_release(&t.refusal);
	return rc;
}

int
http_post(const struct http_post *p, struct err *e)
{
	static bool ready;
	struct err why = ERR_INIT;
	double end = clock_monotonic() + p->timeout, pause = 0;
	bool again;
	long n;
	int rc;

	if (!ready && curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(e, ERR_UNAVAIL, "libcurl cannot be used");
	ready = true;
	for (n = 0;; n++) {
		again = false;
		rc = attempt(p, end - clock_monotonic(), &again, &pause, n, &why);
		if (rc == 0 || !again || n >= p->retries)
			break;
		if (clock_monotonic() + pause >= end)
			break;
		if (pause > PAUSE_TOLD)
			log_warn("%s; trying again in %.0f s", why.msg, pause);
		if (wait_until(clock_monotonic() + pause, &why) < 0)
			break;
	}
	if (rc < 0 && n > 0)
		err_wrap(&why, "asked %ld times", n + 1);
	if (rc < 0 && e != NULL)
		*e = why;
	return rc;
}

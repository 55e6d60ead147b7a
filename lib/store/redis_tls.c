#include "store/redis_tls.h"

#ifndef AG2_HIREDIS_SSL

int
redis_tls_load(struct err *e)
{
	return err_set(e, ERR_CONFIG, "rediss: this build speaks no TLS; a tunnel (stunnel, ssh -L) and redis:// or redis+unix: do");
}

int
redis_tls_begin(redisContext *c, const struct redis_place *p, const char *host, struct ssl_st **ssl, struct err *e)
{
	return redis_tls_load(e);
}

int
redis_tls_step(struct ssl_st *ssl, short *events, struct err *e)
{
	return redis_tls_load(e);
}

#else

#include <dlfcn.h>
#include <poll.h>

/* What is used of OpenSSL 3 (whose headers need not be there), and of hiredis_ssl, by their own names. */
struct ssl_ctx_st;
static struct {
	const void *(*TLS_client_method)(void);
	struct ssl_ctx_st *(*SSL_CTX_new)(const void *method);
	void (*SSL_CTX_free)(struct ssl_ctx_st *ctx);
	long (*SSL_CTX_ctrl)(struct ssl_ctx_st *ctx, int command, long number, void *data);
	void (*SSL_CTX_set_verify)(struct ssl_ctx_st *ctx, int mode, void *callback);
	int (*SSL_CTX_set_default_verify_paths)(struct ssl_ctx_st *ctx);
	int (*SSL_CTX_load_verify_locations)(struct ssl_ctx_st *ctx, const char *file, const char *dir);
	int (*SSL_CTX_use_certificate_chain_file)(struct ssl_ctx_st *ctx, const char *file);
	int (*SSL_CTX_use_PrivateKey_file)(struct ssl_ctx_st *ctx, const char *file, int type);
	struct ssl_st *(*SSL_new)(struct ssl_ctx_st *ctx);
	void (*SSL_free)(struct ssl_st *ssl);
	long (*SSL_ctrl)(struct ssl_st *ssl, int command, long number, void *data);
	int (*SSL_set1_host)(struct ssl_st *ssl, const char *name);
	void *(*SSL_get0_param)(struct ssl_st *ssl);
	int (*X509_VERIFY_PARAM_set1_ip_asc)(void *param, const char *address);
	int (*SSL_connect)(struct ssl_st *ssl);
	int (*SSL_get_error)(const struct ssl_st *ssl, int rc);
	long (*SSL_get_verify_result)(const struct ssl_st *ssl);
	const char *(*X509_verify_cert_error_string)(long result);
	unsigned long (*ERR_get_error)(void);
	void (*ERR_clear_error)(void);
	const char *(*ERR_reason_error_string)(unsigned long error);
	int (*redisInitiateSSL)(redisContext *c, struct ssl_st *ssl);
	bool loaded;
} tls;

/* Numbers of OpenSSL's interface. */
enum {
	SET_HOSTNAME = 55, SET_MIN_VERSION = 123, VERSION_1_2 = 0x0303, VERIFY_PEER = 1, PEM = 1, WANT_READ = 2, WANT_WRITE = 3,
};

#define WANTED(f) { #f, (void **)&tls.f }

static int
load_functions(void *library, struct err *e)
{
	const struct { const char *name; void **to; } wanted[] = {
		WANTED(TLS_client_method), WANTED(SSL_CTX_new), WANTED(SSL_CTX_free), WANTED(SSL_CTX_ctrl), WANTED(SSL_CTX_set_verify),
		WANTED(SSL_CTX_set_default_verify_paths), WANTED(SSL_CTX_load_verify_locations),
		WANTED(SSL_CTX_use_certificate_chain_file), WANTED(SSL_CTX_use_PrivateKey_file), WANTED(SSL_new), WANTED(SSL_free),
		WANTED(SSL_ctrl), WANTED(SSL_set1_host), WANTED(SSL_get0_param), WANTED(X509_VERIFY_PARAM_set1_ip_asc),
		WANTED(SSL_connect), WANTED(SSL_get_error), WANTED(SSL_get_verify_result), WANTED(X509_verify_cert_error_string),
		WANTED(ERR_get_error), WANTED(ERR_clear_error), WANTED(ERR_reason_error_string), WANTED(redisInitiateSSL),
	};
	size_t i;

	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if ((*wanted[i].to = dlsym(library, wanted[i].name)) == NULL)
			return err_set(e, ERR_CONFIG, "rediss: " AG2_HIREDIS_SSL " and what it needs have no %s", wanted[i].name);
	return 0;
}

/* hiredis_ssl takes what it needs of hiredis from the program, or, where that has it built in, from a library. */
int
redis_tls_load(struct err *e)
{
	void *library;

	if (tls.loaded)
		return 0;
	dlopen(AG2_HIREDIS, RTLD_NOW | RTLD_GLOBAL);
	if ((library = dlopen(AG2_HIREDIS_SSL, RTLD_NOW)) == NULL)
		return err_set(e, ERR_CONFIG, "rediss: needs a library that is not installed here: %s", dlerror());
	if (load_functions(library, e) < 0)
		return -1;
	tls.loaded = true;
	return 0;
}

static int
complain(enum err_code code, const char *what, struct err *e)
{
	unsigned long error = tls.ERR_get_error();
	const char *why = error != 0 ? tls.ERR_reason_error_string(error) : NULL;

	return err_set(e, code, "%s%s%s", what, why ? ": " : "", why ? why : "");
}

/* Why the handshake failed. */
static int
no_tls(struct ssl_st *ssl, const char *said, struct err *e)
{
	long verified = tls.SSL_get_verify_result(ssl);

	if (verified != 0)
		return err_set(e, ERR_UNAVAIL, "TLS: its certificate is not trusted: %s", tls.X509_verify_cert_error_string(verified));
	if (said != NULL && said[0] != '\0')
		return err_set(e, ERR_UNAVAIL, "TLS: %s", said);
	return complain(ERR_UNAVAIL, "TLS: no understanding with it", e);
}

static int
set_files(struct ssl_ctx_st *ctx, const struct redis_place *p, struct err *e)
{
	if (p->cacert == NULL && tls.SSL_CTX_set_default_verify_paths(ctx) != 1)
		return complain(ERR_CONFIG, "TLS: the system's certificates cannot be used", e);
	if (p->cacert != NULL && tls.SSL_CTX_load_verify_locations(ctx, p->cacert, NULL) != 1)
		return complain(ERR_CONFIG, "TLS: the file of cacert= cannot be used", e);
	if (p->cert != NULL && tls.SSL_CTX_use_certificate_chain_file(ctx, p->cert) != 1)
		return complain(ERR_CONFIG, "TLS: the file of cert= cannot be used", e);
	if (p->cert != NULL && tls.SSL_CTX_use_PrivateKey_file(ctx, p->key != NULL ? p->key : p->cert, PEM) != 1)
		return complain(ERR_CONFIG, "TLS: the file of key= cannot be used", e);
	return 0;
}

/* The certificate must be of this host, not of any. */
static int
set_host(struct ssl_st *ssl, const char *host, struct err *e)
{
	if (tls.X509_VERIFY_PARAM_set1_ip_asc(tls.SSL_get0_param(ssl), host) == 1)
		return 0;
	if (tls.SSL_set1_host(ssl, host) != 1 || tls.SSL_ctrl(ssl, SET_HOSTNAME, 0, (void *)(uintptr_t)host) != 1)
		return complain(ERR_CONFIG, "TLS: not a host's name", e);
	return 0;
}

int
redis_tls_begin(redisContext *c, const struct redis_place *p, const char *host, struct ssl_st **ssl, struct err *e)
{
	struct ssl_ctx_st *ctx = NULL;
	int rc = redis_tls_load(e);

	if (rc < 0)
		return -1;
	tls.ERR_clear_error();
	*ssl = NULL;
	ctx = tls.SSL_CTX_new(tls.TLS_client_method());
	if (ctx == NULL)
		return complain(ERR_CONFIG, "TLS cannot be used", e);
	tls.SSL_CTX_ctrl(ctx, SET_MIN_VERSION, VERSION_1_2, NULL);
	tls.SSL_CTX_set_verify(ctx, VERIFY_PEER, NULL);
	rc = set_files(ctx, p, e);
	if (rc == 0 && (*ssl = tls.SSL_new(ctx)) == NULL)
		rc = complain(ERR_CONFIG, "TLS cannot be used", e);
	if (rc == 0)
		rc = set_host(*ssl, host, e);
	if (rc == 0 && tls.redisInitiateSSL(c, *ssl) != REDIS_OK)
		rc = no_tls(*ssl, c->errstr, e);
	if (rc < 0 && *ssl != NULL)
		tls.SSL_free(*ssl);
	tls.SSL_CTX_free(ctx);
	return rc;
}

int
redis_tls_step(struct ssl_st *ssl, short *events, struct err *e)
{
	int rc, error;

	tls.ERR_clear_error();
	rc = tls.SSL_connect(ssl);
	if (rc == 1)
		return 1;
	error = tls.SSL_get_error(ssl, rc);
	if (error == WANT_READ || error == WANT_WRITE) {
		*events = error == WANT_READ ? POLLIN : POLLOUT;
		return 0;
	}
	return no_tls(ssl, NULL, e);
}

#endif

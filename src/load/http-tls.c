/* SPDX-License-Identifier: Apache-2.0 */
#include "load/http-tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

#define CERTIFICATE_SECONDS (7L * 24 * 3600)

struct http_tls {
        SSL_CTX *context;
        bool is_server;
        char host[256]; /* of a client */
        bool has_pin;
        struct digest digest; /* of a server's certificate, or the pin */
};

struct http_tls_session {
        SSL *ssl;
        const struct http_tls *tls;
        bool is_checked;
};

static int failed(struct err *err, const char *what)
{
        char text[200] = "no reason given";
        unsigned long code = ERR_peek_last_error();

        if (code != 0)
                ERR_error_string_n(code, text, sizeof(text));
        ERR_clear_error();
        return err_set(err, ERR_ENVIRONMENT, EPROTO, "TLS: %s: %s", what, text);
}

/* libssl writes to sockets in a way that raises SIGPIPE where the peer has gone. */
static void spare_from_sigpipe(void)
{
        signal(SIGPIPE, SIG_IGN);
}

static int new_context(bool is_server, struct http_tls **ret, struct err *err)
{
        _cleanup_http_tls_ struct http_tls *tls = calloc(1, sizeof(*tls));

        if (!tls)
                return err_set_nomem(err);
        tls->is_server = is_server;
        tls->context = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
        if (!tls->context)
                return failed(err, "no context");
        SSL_CTX_set_mode(tls->context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        SSL_CTX_set_session_cache_mode(tls->context, SSL_SESS_CACHE_OFF);
        SSL_CTX_set_num_tickets(tls->context, 0);
        SSL_CTX_set_options(tls->context, SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
        spare_from_sigpipe();
        *ret = TAKE_PTR(tls);
        return 0;
}

void http_tls_free(struct http_tls *tls)
{
        if (!tls)
                return;
        SSL_CTX_free(tls->context);
        free(tls);
}

static bool add_extension(X509 *certificate, int nid, const char *value)
{
        X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
        bool ok = extension && X509_add_ext(certificate, extension, -1) == 1;

        X509_EXTENSION_free(extension);
        return ok;
}

/* Signed by its own key, so whoever trusts it trusts nothing else. */
static bool fill_certificate(X509 *certificate, EVP_PKEY *key, const union address *address)
{
        X509_NAME *name = X509_get_subject_name(certificate);
        char names[160], text[INET6_ADDRSTRLEN];
        const void *bytes = address->any.sa_family == AF_INET6 ? (const void *)&address->v6.sin6_addr
                                                               : (const void *)&address->v4.sin_addr;
        uint64_t serial;

        inet_ntop(address->any.sa_family, bytes, text, sizeof(text));
        snprintf(names, sizeof(names), "DNS:localhost,IP:127.0.0.1,IP:::1,IP:%s", text);
        return RAND_bytes((unsigned char *)&serial, sizeof(serial)) == 1 &&
               ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1) == 1 &&
               X509_set_version(certificate, 2) == 1 && X509_gmtime_adj(X509_getm_notBefore(certificate), -3600) &&
               X509_gmtime_adj(X509_getm_notAfter(certificate), CERTIFICATE_SECONDS) &&
               X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"assay origin", -1, -1, 0) ==
                       1 &&
               X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1 &&
               add_extension(certificate, NID_subject_alt_name, names) &&
               add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE") &&
               X509_sign(certificate, key, EVP_sha256()) > 0;
}

int http_tls_new_server(const union address *address, struct http_tls **ret, struct err *err)
{
        _cleanup_http_tls_ struct http_tls *tls = NULL;
        EVP_PKEY *key;
        X509 *certificate;
        bool ok;
        int r;

        r = new_context(true, &tls, err);
        if (r < 0)
                return r;
        key = EVP_EC_gen("P-256");
        certificate = X509_new();
        ok = key && certificate && fill_certificate(certificate, key, address) &&
             SSL_CTX_use_certificate(tls->context, certificate) == 1 &&
             SSL_CTX_use_PrivateKey(tls->context, key) == 1 &&
             X509_digest(certificate, EVP_sha256(), tls->digest.bytes, NULL) == 1;
        X509_free(certificate);
        EVP_PKEY_free(key);
        if (!ok)
                return failed(err, "cannot make a certificate");
        *ret = TAKE_PTR(tls);
        return 0;
}

int http_tls_new_client(const char *host, const char *authorities, const struct digest *pin, struct http_tls **ret,
                        struct err *err)
{
        _cleanup_http_tls_ struct http_tls *tls = NULL;
        int r;

        r = new_context(false, &tls, err);
        if (r < 0)
                return r;
        if (snprintf(tls->host, sizeof(tls->host), "%s", host) >= (int)sizeof(tls->host))
                return err_set(err, ERR_USAGE, EINVAL, "no host has a name as long as %s", host);
        tls->has_pin = pin != NULL;
        if (pin) {
                tls->digest = *pin;
        } else {
                SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
                r = authorities ? SSL_CTX_load_verify_file(tls->context, authorities)
                                : SSL_CTX_set_default_verify_paths(tls->context);
                if (r != 1)
                        return failed(err, authorities ? authorities : "the system's authorities");
        }
        *ret = TAKE_PTR(tls);
        return 0;
}

void http_tls_digest(const struct http_tls *tls, struct digest *ret)
{
        *ret = tls->digest;
}

/* Names are asked for; addresses may not be (RFC 6066). */
static bool name_peer(SSL *ssl, const struct http_tls *tls)
{
        uint8_t bytes[sizeof(struct in6_addr)];
        bool is_address = inet_pton(AF_INET, tls->host, bytes) == 1 || inet_pton(AF_INET6, tls->host, bytes) == 1;

        if (is_address)
                return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), tls->host) == 1;
        return SSL_set1_host(ssl, tls->host) == 1 && SSL_set_tlsext_host_name(ssl, tls->host) == 1;
}

int http_tls_session_new(struct http_tls *tls, int fd, struct http_tls_session **ret)
{
        struct http_tls_session *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        s->tls = tls;
        s->ssl = SSL_new(tls->context);
        if (!s->ssl || SSL_set_fd(s->ssl, fd) != 1 || (!tls->is_server && !name_peer(s->ssl, tls))) {
                ERR_clear_error();
                http_tls_session_free(s);
                return -ENOMEM;
        }
        if (tls->is_server)
                SSL_set_accept_state(s->ssl);
        else
                SSL_set_connect_state(s->ssl);
        *ret = s;
        return 0;
}

void http_tls_session_free(struct http_tls_session *s)
{
        if (!s)
                return;
        if (s->ssl && SSL_is_init_finished(s->ssl))
                (void)SSL_shutdown(s->ssl); /* that nothing was cut off; whether the peer says so too does not matter */
        ERR_clear_error();
        SSL_free(s->ssl);
        free(s);
}

/* What a call that did not succeed came to; 0: the peer's end. */
static int outcome_of(struct http_tls_session *s, int result)
{
        int saved = errno, r;

        switch (SSL_get_error(s->ssl, result)) {
        case SSL_ERROR_WANT_READ:
        case SSL_ERROR_WANT_WRITE:
                r = -EAGAIN;
                break;
        case SSL_ERROR_ZERO_RETURN:
                r = 0;
                break;
        case SSL_ERROR_SYSCALL:
                r = saved != 0 ? -saved : -ECONNRESET;
                break;
        default: /* where there is a pin, the certificate's own chain does not matter */
                r = !s->tls->has_pin && SSL_get_verify_result(s->ssl) != X509_V_OK ? -EKEYREJECTED : -EPROTO;
        }
        ERR_clear_error();
        return r;
}

/* Whether the certificate that came is the one that has to. */
static bool is_pinned(const struct http_tls_session *s)
{
        X509 *certificate = SSL_get1_peer_certificate(s->ssl);
        struct digest digest;
        bool ok = certificate && X509_digest(certificate, EVP_sha256(), digest.bytes, NULL) == 1 &&
                  digest_equal(&digest, &s->tls->digest);

        X509_free(certificate);
        return ok;
}

int http_tls_handshake(struct http_tls_session *s)
{
        int n;

        if (s->is_checked)
                return 0;
        errno = 0;
        n = SSL_do_handshake(s->ssl);
        if (n != 1) {
                int r = outcome_of(s, n);

                return r == 0 ? -ECONNRESET : r;
        }
        if (!s->tls->is_server && s->tls->has_pin && !is_pinned(s))
                return -EKEYREJECTED;
        s->is_checked = true;
        return 0;
}

ssize_t http_tls_read(struct http_tls_session *s, void *to, size_t size)
{
        int n = http_tls_handshake(s);

        if (n < 0)
                return n;
        errno = 0;
        n = SSL_read(s->ssl, to, (int)MIN(size, (size_t)INT32_MAX));
        return n > 0 ? n : outcome_of(s, n);
}

ssize_t http_tls_write(struct http_tls_session *s, struct span data)
{
        int n = http_tls_handshake(s);

        if (n < 0)
                return n;
        errno = 0;
        n = SSL_write(s->ssl, data.data, (int)MIN(data.len, (size_t)INT32_MAX));
        if (n > 0)
                return n;
        n = outcome_of(s, n);
        return n == 0 ? -EPIPE : n;
}

bool http_tls_has_more(const struct http_tls_session *s)
{
        return SSL_pending(s->ssl) > 0;
}

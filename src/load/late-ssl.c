/* SPDX-License-Identifier: Apache-2.0 */
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdarg.h>

#include "base/late.h"

/* libssl, and what http-tls.c needs of libcrypto besides digests. Parameters are called by their place. */

static struct late_library ssl = {"libssl.so.3", NULL};

LATE_FUNCTION(ssl, long, SSL_CTX_ctrl, (SSL_CTX * a, int b, long c, void *d), (a, b, c, d))
LATE_FUNCTION(ssl, void, SSL_CTX_free, (SSL_CTX * a), (a))
LATE_FUNCTION(ssl, int, SSL_CTX_load_verify_file, (SSL_CTX * a, const char *b), (a, b))
LATE_FUNCTION(ssl, SSL_CTX *, SSL_CTX_new, (const SSL_METHOD *a), (a))
LATE_FUNCTION(ssl, int, SSL_CTX_set_default_verify_paths, (SSL_CTX * a), (a))
LATE_FUNCTION(ssl, int, SSL_CTX_set_num_tickets, (SSL_CTX * a, size_t b), (a, b))
LATE_FUNCTION(ssl, uint64_t, SSL_CTX_set_options, (SSL_CTX * a, uint64_t b), (a, b))
LATE_FUNCTION(ssl, void, SSL_CTX_set_verify, (SSL_CTX * a, int b, SSL_verify_cb c), (a, b, c))
LATE_FUNCTION(ssl, int, SSL_CTX_use_PrivateKey, (SSL_CTX * a, EVP_PKEY *b), (a, b))
LATE_FUNCTION(ssl, int, SSL_CTX_use_certificate, (SSL_CTX * a, X509 *b), (a, b))
LATE_FUNCTION(ssl, long, SSL_ctrl, (SSL * a, int b, long c, void *d), (a, b, c, d))
LATE_FUNCTION(ssl, int, SSL_do_handshake, (SSL * a), (a))
LATE_FUNCTION(ssl, void, SSL_free, (SSL * a), (a))
LATE_FUNCTION(ssl, X509_VERIFY_PARAM *, SSL_get0_param, (SSL * a), (a))
LATE_FUNCTION(ssl, X509 *, SSL_get1_peer_certificate, (const SSL *a), (a))
LATE_FUNCTION(ssl, int, SSL_get_error, (const SSL *a, int b), (a, b))
LATE_FUNCTION(ssl, long, SSL_get_verify_result, (const SSL *a), (a))
LATE_FUNCTION(ssl, int, SSL_is_init_finished, (const SSL *a), (a))
LATE_FUNCTION(ssl, SSL *, SSL_new, (SSL_CTX * a), (a))
LATE_FUNCTION(ssl, int, SSL_pending, (const SSL *a), (a))
LATE_FUNCTION(ssl, int, SSL_read, (SSL * a, void *b, int c), (a, b, c))
LATE_FUNCTION(ssl, int, SSL_set1_host, (SSL * a, const char *b), (a, b))
LATE_FUNCTION(ssl, void, SSL_set_accept_state, (SSL * a), (a))
LATE_FUNCTION(ssl, void, SSL_set_connect_state, (SSL * a), (a))
LATE_FUNCTION(ssl, int, SSL_set_fd, (SSL * a, int b), (a, b))
LATE_FUNCTION(ssl, int, SSL_shutdown, (SSL * a), (a))
LATE_FUNCTION(ssl, int, SSL_write, (SSL * a, const void *b, int c), (a, b, c))
LATE_FUNCTION(ssl, const SSL_METHOD *, TLS_client_method, (void), ())
LATE_FUNCTION(ssl, const SSL_METHOD *, TLS_server_method, (void), ())

static struct late_library crypto = {"libcrypto.so.3", NULL};

LATE_FUNCTION(crypto, int, ASN1_INTEGER_set_uint64, (ASN1_INTEGER * a, uint64_t b), (a, b))
LATE_FUNCTION(crypto, void, ERR_clear_error, (void), ())
LATE_FUNCTION(crypto, void, ERR_error_string_n, (unsigned long a, char *b, size_t c), (a, b, c))
LATE_FUNCTION(crypto, unsigned long, ERR_peek_last_error, (void), ())
LATE_FUNCTION(crypto, void, EVP_PKEY_free, (EVP_PKEY * a), (a))
LATE_FUNCTION(crypto, int, RAND_bytes, (unsigned char *a, int b), (a, b))
LATE_FUNCTION(crypto, X509_EXTENSION *, X509V3_EXT_conf_nid,
              (LHASH_OF(CONF_VALUE) * a, X509V3_CTX *b, int c, const char *d), (a, b, c, d))
LATE_FUNCTION(crypto, void, X509_EXTENSION_free, (X509_EXTENSION * a), (a))
LATE_FUNCTION(crypto, int, X509_NAME_add_entry_by_txt,
              (X509_NAME * a, const char *b, int c, const unsigned char *d, int e, int f, int g), (a, b, c, d, e, f, g))
LATE_FUNCTION(crypto, int, X509_VERIFY_PARAM_set1_ip_asc, (X509_VERIFY_PARAM * a, const char *b), (a, b))
LATE_FUNCTION(crypto, int, X509_add_ext, (X509 * a, X509_EXTENSION *b, int c), (a, b, c))
LATE_FUNCTION(crypto, int, X509_digest, (const X509 *a, const EVP_MD *b, unsigned char *c, unsigned int *d),
              (a, b, c, d))
LATE_FUNCTION(crypto, void, X509_free, (X509 * a), (a))
LATE_FUNCTION(crypto, ASN1_INTEGER *, X509_get_serialNumber, (X509 * a), (a))
LATE_FUNCTION(crypto, X509_NAME *, X509_get_subject_name, (const X509 *a), (a))
LATE_FUNCTION(crypto, ASN1_TIME *, X509_getm_notAfter, (const X509 *a), (a))
LATE_FUNCTION(crypto, ASN1_TIME *, X509_getm_notBefore, (const X509 *a), (a))
LATE_FUNCTION(crypto, ASN1_TIME *, X509_gmtime_adj, (ASN1_TIME * a, long b), (a, b))
LATE_FUNCTION(crypto, X509 *, X509_new, (void), ())
LATE_FUNCTION(crypto, int, X509_set_issuer_name, (X509 * a, const X509_NAME *b), (a, b))
LATE_FUNCTION(crypto, int, X509_set_pubkey, (X509 * a, EVP_PKEY *b), (a, b))
LATE_FUNCTION(crypto, int, X509_set_version, (X509 * a, long b), (a, b))
LATE_FUNCTION(crypto, int, X509_sign, (X509 * a, EVP_PKEY *b, const EVP_MD *c), (a, b, c))

/* Of the kinds of keys only EC is made here, which has one more parameter: the name of the curve. */
__attribute__((visibility("hidden"))) EVP_PKEY *EVP_PKEY_Q_keygen(OSSL_LIB_CTX *a, const char *b, const char *type, ...)
{
        static typeof(EVP_PKEY_Q_keygen) *function;
        const char *curve;
        va_list args;

        va_start(args, type);
        curve = va_arg(args, const char *);
        va_end(args);
        if (!function)
                function = late_find(&crypto, "EVP_PKEY_Q_keygen");
        return function ? function(a, b, type, curve) : NULL;
}

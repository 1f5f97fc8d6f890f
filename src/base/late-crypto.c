/* SPDX-License-Identifier: Apache-2.0 */
#include <openssl/evp.h>

#include "base/late.h"

/* libcrypto, for digests: of all libraries it takes longest to load. */

static struct late_library crypto = {"libcrypto.so.3", NULL};

LATE_FUNCTION(crypto, EVP_MD_CTX *, EVP_MD_CTX_new, (void), ())
LATE_FUNCTION(crypto, void, EVP_MD_CTX_free, (EVP_MD_CTX * ctx), (ctx))
LATE_FUNCTION(crypto, const EVP_MD *, EVP_sha256, (void), ())
LATE_FUNCTION(crypto, int, EVP_DigestInit_ex, (EVP_MD_CTX * ctx, const EVP_MD *type, ENGINE *impl), (ctx, type, impl))
LATE_FUNCTION(crypto, int, EVP_DigestUpdate, (EVP_MD_CTX * ctx, const void *data, size_t len), (ctx, data, len))
LATE_FUNCTION(crypto, int, EVP_DigestFinal_ex, (EVP_MD_CTX * ctx, unsigned char *md, unsigned int *len), (ctx, md, len))
LATE_FUNCTION(crypto, int, EVP_Digest,
              (const void *data, size_t count, unsigned char *md, unsigned int *size, const EVP_MD *type, ENGINE *impl),
              (data, count, md, size, type, impl))

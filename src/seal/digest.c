/* SPDX-License-Identifier: Apache-2.0 */
#include "seal/digest.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"

/* Large enough that system calls cost nothing beside hashing, small enough to stay in a second-level cache. */
#define READ_BYTES ((size_t)256 * 1024)

struct digest_stream {
        EVP_MD_CTX *context;
};

static int digest_failed(struct err *err)
{
        return err_set(err, ERR_ENVIRONMENT, EIO,
                       "libcrypto cannot compute SHA-256; is it installed, with its default provider?");
}

int digest_stream_new(struct digest_stream **ret, struct err *err)
{
        _cleanup_digest_stream_ struct digest_stream *stream = calloc(1, sizeof(*stream));

        if (!stream)
                return err_set_nomem(err);
        stream->context = EVP_MD_CTX_new();
        if (!stream->context)
                return digest_failed(err);
        if (EVP_DigestInit_ex(stream->context, EVP_sha256(), NULL) != 1)
                return digest_failed(err);
        *ret = TAKE_PTR(stream);
        return 0;
}

int digest_stream_add(struct digest_stream *stream, struct span s, struct err *err)
{
        return EVP_DigestUpdate(stream->context, s.data, s.len) == 1 ? 0 : digest_failed(err);
}

int digest_stream_finish(struct digest_stream *stream, struct digest *ret, struct err *err)
{
        struct digest digest;

        if (EVP_DigestFinal_ex(stream->context, digest.bytes, NULL) != 1 ||
            EVP_DigestInit_ex(stream->context, NULL, NULL) != 1)
                return digest_failed(err);
        *ret = digest;
        return 0;
}

void digest_stream_free(struct digest_stream *stream)
{
        if (!stream)
                return;
        EVP_MD_CTX_free(stream->context);
        free(stream);
}

int digest_of_bytes(struct span s, struct digest *ret, struct err *err)
{
        struct digest digest;

        if (EVP_Digest(s.data, s.len, digest.bytes, NULL, EVP_sha256(), NULL) != 1)
                return digest_failed(err);
        *ret = digest;
        return 0;
}

int digest_of_file(int fd, struct digest *ret, uint64_t *ret_len, struct err *err)
{
        _cleanup_digest_stream_ struct digest_stream *stream = NULL;
        _cleanup_free_ uint8_t *buffer = NULL;
        uint64_t len = 0;
        int r;

        r = digest_stream_new(&stream, err);
        if (r < 0)
                return r;
        buffer = malloc(READ_BYTES);
        if (!buffer)
                return err_set_nomem(err);

        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
        for (;;) {
                ssize_t n = read(fd, buffer, READ_BYTES);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return err_set_errno(err, ERR_IO, errno, "cannot read");
                if (n == 0)
                        break;
                r = digest_stream_add(stream, span_of(buffer, (size_t)n), err);
                if (r < 0)
                        return r;
                len += (uint64_t)n;
        }
        r = digest_stream_finish(stream, ret, err);
        if (r == 0 && ret_len)
                *ret_len = len;
        return r;
}

char *digest_format(const struct digest *digest, char buf[static DIGEST_HEX_SIZE])
{
        static const char digits[] = "0123456789abcdef";

        for (size_t i = 0; i < DIGEST_BYTES; i++) {
                buf[2 * i] = digits[digest->bytes[i] >> 4];
                buf[2 * i + 1] = digits[digest->bytes[i] & 15];
        }
        buf[DIGEST_HEX_SIZE - 1] = '\0';
        return buf;
}

int digest_parse(struct span hex, struct digest *ret)
{
        struct digest digest;

        if (hex.len != DIGEST_HEX_SIZE - 1)
                return -EINVAL;
        for (size_t i = 0; i < DIGEST_BYTES; i++) {
                int high = hex_digit(hex.data[2 * i]), low = hex_digit(hex.data[2 * i + 1]);

                if (high < 0 || low < 0)
                        return -EINVAL;
                digest.bytes[i] = (uint8_t)(high << 4 | low);
        }
        *ret = digest;
        return 0;
}

bool digest_equal(const struct digest *a, const struct digest *b)
{
        return memcmp(a->bytes, b->bytes, DIGEST_BYTES) == 0;
}

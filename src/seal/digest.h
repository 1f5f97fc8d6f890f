/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/span.h"

/* SHA-256 (FIPS 180-4), the one digest of every format here. */

#define DIGEST_BYTES    32
#define DIGEST_HEX_SIZE (2 * DIGEST_BYTES + 1) /* with the NUL */

struct digest {
        uint8_t bytes[DIGEST_BYTES];
};

/* digest_of_bytes - the digest of @s
 *
 * Return: 0; a negative errno with the reason in @err where libcrypto cannot compute it.
 */
int digest_of_bytes(struct span s, struct digest *ret, struct err *err);

/* digest_of_file - the digest of what @fd holds, from its current position to its end
 * @fd:       open for reading; its position is at the end afterwards
 * @ret_len:  how many bytes were read; may be NULL
 *
 * Return: 0; a negative errno with the reason in @err.
 */
int digest_of_file(int fd, struct digest *ret, uint64_t *ret_len, struct err *err);

/* digest_format - lower-case hexadecimal text
 * @buf: at least DIGEST_HEX_SIZE bytes
 *
 * Return: @buf.
 */
char *digest_format(const struct digest *digest, char buf[static DIGEST_HEX_SIZE]);

/* digest_parse - the whole of @hex, 64 hexadecimal digits in either case, as a digest. Return: 0 or -EINVAL. */
int digest_parse(struct span hex, struct digest *ret);

/* digest_equal - whether both are the same; what is compared is no secret */
bool digest_equal(const struct digest *a, const struct digest *b);

/* A digest of bytes that come piece by piece. */
struct digest_stream;

/* digest_stream_new - Return: 0; -ENOMEM; -EIO where libcrypto has no SHA-256 */
int digest_stream_new(struct digest_stream **ret, struct err *err);
int digest_stream_add(struct digest_stream *stream, struct span s, struct err *err);

/* digest_stream_finish - the digest of all that was added; the stream is then as new */
int digest_stream_finish(struct digest_stream *stream, struct digest *ret, struct err *err);

void digest_stream_free(struct digest_stream *stream);

DEFINE_CLEANUP(struct digest_stream *, digest_stream_free)
#define _cleanup_digest_stream_ _cleanup_(digest_stream_free_cleanup)

/* SPDX-License-Identifier: Apache-2.0 */
#include "load/http-body.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/rng.h"

#define BODY_SEED 20

static const char event_begin[] = "data: ";

void http_body_fill(uint8_t *to, size_t len)
{
        struct rng rng;

        rng_seed(&rng, BODY_SEED);
        for (size_t i = 0; i < len; i += 8) {
                uint8_t bytes[8];

                put_le64(bytes, rng_next(&rng));
                memcpy(to + i, bytes, MIN(len - i, sizeof(bytes)));
        }
}

void http_body_event(uint8_t *to, size_t len, uint64_t i)
{
        size_t begin = strlen(event_begin), end = len - 2;

        memcpy(to, event_begin, begin);
        for (size_t at = end; at > begin; at--, i /= 10)
                to[at - 1] = (uint8_t)('0' + i % 10);
        to[end] = to[end + 1] = '\n';
}

int http_body_digest(size_t len, struct digest *ret, struct err *err)
{
        _cleanup_free_ uint8_t *body = malloc(MAX(len, (size_t)1));

        if (!body)
                return err_set_nomem(err);
        http_body_fill(body, len);
        return digest_of_bytes(span_of(body, len), ret, err);
}

int http_body_events_digest(uint64_t n, size_t len, struct digest *ret, struct err *err)
{
        _cleanup_digest_stream_ struct digest_stream *stream = NULL;
        _cleanup_free_ uint8_t *event = malloc(len);
        int r;

        if (!event)
                return err_set_nomem(err);
        r = digest_stream_new(&stream, err);
        for (uint64_t i = 0; i < n && r >= 0; i++) {
                http_body_event(event, len, i);
                r = digest_stream_add(stream, span_of(event, len), err);
        }
        return r < 0 ? r : digest_stream_finish(stream, ret, err);
}

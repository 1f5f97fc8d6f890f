/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/macro.h"
#include "base/rng.h"
#include "fuzz/fuzz.h"
#include "sandbox/inspector.h"

#define PIECE_MAX 7 /* octets */

/* What the inspector asked, in order. */
struct asked {
        uint64_t sum;
};

static void note(struct asked *asked, const char *text)
{
        asked->sum = asked->sum * 31 + (text ? 1 : 2);
        for (; text && *text; text++)
                asked->sum = asked->sum * 31 + (uint8_t)*text;
}

static bool is_allowed(void *userdata, const char *sni, const char *http_host)
{
        bool is_opaque = sni && http_host && !sni[0] && !http_host[0];

        note(userdata, sni);
        note(userdata, http_host);
        return is_opaque || (sni && sni[0] == 'g') || (http_host && http_host[0] == 'g');
}

struct outcome {
        int result;
        size_t passed;
        struct asked asked;
};

/* The connection in pieces of up to @piece_max octets. What was let through never comes again. */
static struct outcome inspect(struct span input, bool is_strict, uint64_t piece_max, struct rng *rng)
{
        struct outcome out = {0};
        struct inspector inspector = {.is_strict = is_strict, .is_allowed = is_allowed, .userdata = &out.asked};

        for (size_t end = 0; end < input.len && out.result == 0;) {
                const char *why;
                size_t len = 0;

                end += piece_max < input.len - end ? 1 + rng_below(rng, piece_max) : input.len - end;
                out.result = inspector_read(&inspector, span_of(input.data + out.passed, end - out.passed),
                                            end == input.len, &len, &why);
                if (len > end - out.passed || (out.result != 0 && len != 0))
                        abort();
                out.passed += len;
        }
        return out;
}

/* However the octets arrive, the same is asked and the same comes of it. The first octet of the input is for us. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct outcome whole, pieces;
        struct span input;
        struct rng rng;
        bool is_strict;

        if (size < 2)
                return 0;
        is_strict = data[0] & 1;
        input = span_of(data + 1, size - 1);
        rng_seed_stream(&rng, 1, data[0]);
        whole = inspect(input, is_strict, SIZE_MAX, &rng);
        pieces = inspect(input, is_strict, PIECE_MAX, &rng);
        if (whole.result != pieces.result || whole.asked.sum != pieces.asked.sum ||
            (whole.result == 0 && whole.passed != pieces.passed))
                abort();
        return 0;
}

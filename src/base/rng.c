/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"

static uint64_t splitmix64(uint64_t *state)
{
        uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, unsigned k)
{
        return x << k | x >> (64 - k);
}

void rng_seed(struct rng *rng, uint64_t seed)
{
        for (unsigned i = 0; i < 4; i++)
                rng->s[i] = splitmix64(&seed);
}

void rng_seed_stream(struct rng *rng, uint64_t seed, uint64_t stream)
{
        uint64_t mixed = splitmix64(&seed) + stream;

        rng_seed(rng, splitmix64(&mixed));
}

uint64_t rng_next(struct rng *rng)
{
        uint64_t *s = rng->s, result = rotate_left(s[1] * 5, 7) * 9, t = s[1] << 17;

        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = rotate_left(s[3], 45);
        return result;
}

uint64_t rng_below(struct rng *rng, uint64_t n)
{
        uint64_t rest, x;

        if (n == 0)
                return 0;

        rest = (UINT64_MAX % n + 1) % n; /* how many of the highest values would make the lowest ones likelier */
        do
                x = rng_next(rng);
        while (x > UINT64_MAX - rest);
        return x % n;
}

void rng_shuffle(struct rng *rng, size_t *items, size_t n)
{
        for (size_t i = n; i > 1; i--) {
                size_t j = rng_below(rng, i), held = items[i - 1];

                items[i - 1] = items[j];
                items[j] = held;
        }
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A seeded generator whose sequence is part of the archive format: a plan and a bootstrap can be re-derived from the
 * seed by anybody. It is xoshiro256** (Blackman and Vigna, 2018), its state filled from the seed by SplitMix64. */
struct rng {
        uint64_t s[4];
};

/* rng_seed - start the sequence of @seed */
void rng_seed(struct rng *rng, uint64_t seed);

/* rng_seed_stream - start the sequence of stream number @stream under @seed: independent parts of one campaign (a round
 * of the plan, a bootstrap) each draw from their own. It is the sequence of S(S(@seed) + @stream), where S(x) is what
 * SplitMix64 first gives from x. */
void rng_seed_stream(struct rng *rng, uint64_t seed, uint64_t stream);

/* rng_next - 64 random bits */
uint64_t rng_next(struct rng *rng);

/* rng_below - a number from 0 to @n - 1, each equally likely (by rejection); 0 where @n is 0 */
uint64_t rng_below(struct rng *rng, uint64_t n);

/* rng_shuffle - put @n indices into a random order (Fisher and Yates, from the last place down) */
void rng_shuffle(struct rng *rng, size_t *items, size_t n);

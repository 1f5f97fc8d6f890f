/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macro.h"
#include "base/rng.h"
#include "tests/test.h"

/* What the reference code of Blackman and Vigna gives from the state 1, 2, 3, 4, as the tests of rand_xoshiro (Rust)
 * and other implementations have it. */
static void test_reference_sequence(void **state)
{
        static const uint64_t expected[] = {
                UINT64_C(11520),
                UINT64_C(0),
                UINT64_C(1509978240),
                UINT64_C(1215971899390074240),
                UINT64_C(1216172134540287360),
                UINT64_C(607988272756665600),
                UINT64_C(16172922978634559625),
                UINT64_C(8476171486693032832),
                UINT64_C(10595114339597558777),
                UINT64_C(2904607092377533576),
        };
        struct rng rng = {.s = {1, 2, 3, 4}};

        for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
                assert_int_equal(rng_next(&rng), expected[i]);
}

/* SplitMix64 from 1234567, as published by Rosetta Code: it fills the state. */
static void test_seeding(void **state)
{
        static const uint64_t expected[] = {UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
                                            UINT64_C(9817491932198370423), UINT64_C(4593380528125082431)};
        struct rng rng;

        rng_seed(&rng, 1234567);
        assert_memory_equal(rng.s, expected, sizeof(expected));
}

/* Both together, from the seeds 0 and 42: Julia's, Swift's and Rust's packages agree on these. */
static void test_seeded_sequences(void **state)
{
        static const uint64_t of_0[] = {UINT64_C(11091344671253066420), UINT64_C(13793997310169335082),
                                        UINT64_C(1900383378846508768), UINT64_C(7684712102626143532),
                                        UINT64_C(13521403990117723737)};
        static const uint64_t of_42[] = {UINT64_C(1546998764402558742), UINT64_C(6990951692964543102),
                                         UINT64_C(12544586762248559009), UINT64_C(17057574109182124193)};
        struct rng rng;

        rng_seed(&rng, 0);
        for (size_t i = 0; i < ARRAY_SIZE(of_0); i++)
                assert_int_equal(rng_next(&rng), of_0[i]);
        rng_seed(&rng, 42);
        for (size_t i = 0; i < ARRAY_SIZE(of_42); i++)
                assert_int_equal(rng_next(&rng), of_42[i]);
}

/* The streams of one seed, and the same stream of several, start differently; exchanging the two numbers does too. */
static void test_streams_differ(void **state)
{
        enum { N = 64 };
        uint64_t first[N * N];
        struct rng rng;

        for (size_t i = 0; i < (size_t)N * N; i++) {
                rng_seed_stream(&rng, i / N, i % N);
                first[i] = rng_next(&rng);
                for (size_t k = 0; k < i; k++)
                        assert_int_not_equal(first[i], first[k]);
        }
}

static void test_stream_is_what_the_header_says(void **state)
{
        struct rng inner, outer, expected, rng;

        rng_seed(&inner, 7);              /* s[0] is S(7) */
        rng_seed(&outer, inner.s[0] + 3); /* s[0] is S(S(7) + 3) */
        rng_seed(&expected, outer.s[0]);
        rng_seed_stream(&rng, 7, 3);
        assert_memory_equal(&rng, &expected, sizeof(rng));
}

static void test_below(void **state)
{
        unsigned seen[6] = {0};
        struct rng rng;

        rng_seed(&rng, 1);
        assert_int_equal(rng_below(&rng, 0), 0);
        assert_int_equal(rng_below(&rng, 1), 0);
        for (int i = 0; i < 60000; i++) {
                uint64_t x = rng_below(&rng, 6);

                assert_true(x < 6);
                seen[x]++;
        }
        /* 10000 expected, standard deviation 91: six of those either way, for a fixed seed */
        for (size_t i = 0; i < 6; i++)
                assert_in_range(seen[i], 9450, 10550);
}

/* For n just above half of 2^64, taking the remainder would make the lower half twice as likely. */
static void test_below_is_not_biased(void **state)
{
        uint64_t n = (UINT64_C(1) << 63) + (UINT64_C(1) << 62);
        unsigned low = 0;
        struct rng rng;

        rng_seed(&rng, 2);
        for (int i = 0; i < 30000; i++)
                low += rng_below(&rng, n) < n / 3;
        assert_in_range(low, 9500, 10500); /* a remainder gives 15000 */
}

static void test_shuffle(void **state)
{
        unsigned seen[6] = {0};
        struct rng rng;

        rng_seed(&rng, 3);
        for (int i = 0; i < 60000; i++) {
                size_t items[3] = {0, 1, 2};

                rng_shuffle(&rng, items, 3);
                assert_int_equal((1 << items[0]) + (1 << items[1]) + (1 << items[2]), 7);
                seen[items[0] * 2 + (items[1] > items[2])]++;
        }
        for (size_t i = 0; i < 6; i++)
                assert_in_range(seen[i], 9450, 10550);
        rng_shuffle(&rng, NULL, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_reference_sequence),
                cmocka_unit_test(test_seeding),
                cmocka_unit_test(test_seeded_sequences),
                cmocka_unit_test(test_streams_differ),
                cmocka_unit_test(test_stream_is_what_the_header_says),
                cmocka_unit_test(test_below),
                cmocka_unit_test(test_below_is_not_biased),
                cmocka_unit_test(test_shuffle),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "load/http-body.h"

#include "tests/test.h"

/* Digests by Python's hashlib, the body's bytes by an implementation of xoshiro256** and SplitMix64 in Python. */

static void assert_digest(const struct digest *digest, const char *expected)
{
        char hex[DIGEST_HEX_SIZE];

        assert_string_equal(digest_format(digest, hex), expected);
}

static void test_body(void **state)
{
        struct digest digest;

        assert_int_equal(http_body_digest(1024, &digest, NULL), 0);
        assert_digest(&digest, "e8911b43b0bb02c1d2f6fee7deeb8f5bba677cadd92987f48ad3fcc6f54e83d1");
        assert_int_equal(http_body_digest(1021, &digest, NULL), 0); /* ends within eight bytes */
        assert_digest(&digest, "19eb8a82d101c66291d3b6fab29db8161278465d2a57ae2232bfe48a1eb444bc");
        assert_int_equal(http_body_digest(0, &digest, NULL), 0);
        assert_digest(&digest, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"); /* FIPS 180 */
}

static void test_event(void **state)
{
        char event[32] = "";

        http_body_event((uint8_t *)event, 13, 7);
        assert_string_equal(event, "data: 00007\n\n");
        http_body_event((uint8_t *)event, HTTP_EVENT_BYTES_MIN, 1234);
        assert_memory_equal(event, "data: 4\n\n", HTTP_EVENT_BYTES_MIN);
}

static void test_events(void **state)
{
        struct digest digest;

        assert_int_equal(http_body_events_digest(10, 13, &digest, NULL), 0);
        assert_digest(&digest, "e5b0693c78d0bb5d3185227c269c3085bd602064a22ef0a6dda04103d2ce6f4a");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_body),
                cmocka_unit_test(test_event),
                cmocka_unit_test(test_events),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/span.h"
#include "tests/test.h"

static void test_sub(void **state)
{
        struct span s = span_of_text("abcdef"), part = {0};

        assert_true(span_sub(s, 2, 3, &part));
        assert_true(span_equal(part, span_of_text("cde")));
        assert_true(span_sub(s, 0, 6, &part));
        assert_true(span_sub(s, 6, 0, &part));
        assert_int_equal(part.len, 0);

        part = span_of_text("kept");
        assert_false(span_sub(s, 7, 0, &part));
        assert_false(span_sub(s, 0, 7, &part));
        assert_false(span_sub(s, 5, 2, &part));
        assert_false(span_sub(s, SIZE_MAX, 1, &part)); /* the sum would wrap round */
        assert_false(span_sub(s, 1, SIZE_MAX, &part));
        assert_true(span_equal(part, span_of_text("kept")));
}

static void test_equal(void **state)
{
        assert_true(span_equal(span_of(NULL, 0), span_of("x", 0)));
        assert_false(span_equal(span_of_text("ab"), span_of_text("abc")));
        assert_false(span_equal(span_of_text("ab"), span_of_text("aB")));
        assert_true(span_equal(span_of("a\0b", 3), span_of("a\0b", 3)));
        assert_false(span_equal(span_of("a\0b", 3), span_of("a\0c", 3)));
}

static void test_network_order(void **state)
{
        uint8_t bytes[9] = {0xff, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}; /* read from an odd address */

        assert_int_equal(get_be16(bytes + 1), 0x0123);
        assert_int_equal(get_be32(bytes + 1), 0x01234567);
        assert_int_equal(get_be64(bytes + 1), UINT64_C(0x0123456789abcdef));
        assert_int_equal(get_be32(bytes + 5), UINT32_C(0x89abcdef));

        put_be64(bytes + 1, UINT64_C(0xfedcba9876543210));
        assert_memory_equal(bytes, ((uint8_t[]){0xff, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10}), 9);
        put_be32(bytes, UINT32_C(0x80000001));
        put_be16(bytes + 4, 0x8001);
        assert_memory_equal(bytes, ((uint8_t[]){0x80, 0, 0, 1, 0x80, 1}), 6);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sub),
                cmocka_unit_test(test_equal),
                cmocka_unit_test(test_network_order),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

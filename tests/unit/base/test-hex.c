/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/hex.h"

static void test_decodes(void **state)
{
        static const uint8_t want[] = {0x00, 0xff, 0xa5, 0x5a};
        static const char *const same[] = {"00ffa55a", "00FFA55A", " 00 ff a5 5a \n", "00\tff\r\na5\v\f5a"};

        for (size_t i = 0; i < 4; i++) {
                _cleanup_free_ uint8_t *bytes = NULL;
                size_t len, offset;

                assert_int_equal(hex_decode(span_of_text(same[i]), &bytes, &len, &offset), 0);
                assert_int_equal(len, sizeof(want));
                assert_memory_equal(bytes, want, len);
        }
}

static void test_nothing_is_no_bytes(void **state)
{
        _cleanup_free_ uint8_t *bytes = NULL;
        size_t len, offset;

        assert_int_equal(hex_decode(span_of_text(" \n"), &bytes, &len, &offset), 0);
        assert_int_equal(len, 0);
        assert_non_null(bytes);
}

static void test_refuses(void **state)
{
        static const struct {
                const char *text;
                size_t offset;
        } bad[] = {{"0", 1},     {"00 1", 4}, {"0 0", 1}, {"0x00", 1},
                   {"00,11", 2}, {"zz", 0},   {"1g", 1},  {"00\xc3\xa9", 2}};

        for (size_t i = 0; i < 8; i++) {
                uint8_t *bytes = NULL;
                size_t len, offset = 99;

                assert_int_equal(hex_decode(span_of_text(bad[i].text), &bytes, &len, &offset), -EINVAL);
                assert_int_equal(offset, bad[i].offset);
                assert_null(bytes);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_decodes),
                cmocka_unit_test(test_nothing_is_no_bytes),
                cmocka_unit_test(test_refuses),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

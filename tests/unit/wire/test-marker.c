/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/marker.h"

#include <errno.h>

#include "tests/test.h"

static const uint8_t bytes[] = {'A',  's',  'L',  'd',  0x01, 0x02, 0x03, 0x04,  /* magic, stream */
                                0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18}; /* sequence */

static void test_bytes(void **state)
{
        const struct marker marker = {.stream = 0x01020304, .sequence = UINT64_C(0x1112131415161718)};
        struct marker parsed;
        uint8_t buf[MARKER_LEN];

        marker_put(&marker, buf);
        assert_memory_equal(buf, bytes, MARKER_LEN);
        assert_int_equal(marker_parse(span_of(bytes, sizeof(bytes)), &parsed), 0);
        assert_int_equal(parsed.stream, marker.stream);
        assert_int_equal(parsed.sequence, marker.sequence);
}

static void test_refuses(void **state)
{
        struct marker parsed;
        uint8_t other[MARKER_LEN] = {'A', 's', 'L', 'e'};

        for (size_t len = 0; len < MARKER_LEN; len++)
                assert_int_equal(marker_parse(span_of(bytes, len), &parsed), -EBADMSG);
        assert_int_equal(marker_parse(span_of(other, MARKER_LEN), &parsed), -EBADMSG);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bytes),
                cmocka_unit_test(test_refuses),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

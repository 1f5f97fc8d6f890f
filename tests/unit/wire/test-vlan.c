/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/vlan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* An untagged frame with four octets of payload. */
static const uint8_t untagged[] = {0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x08, 0x00, 0xde, 0xad, 0xbe, 0xef};

/* The same with priority 5, drop eligible, VLAN 10: TCI 101 1 000000001010. */
static const uint8_t tagged[] = {0x02, 0,    0,    0,    0,    1,    0x02, 0,    0,    0,    0,
                                 2,    0x81, 0x00, 0xb0, 0x0a, 0x08, 0x00, 0xde, 0xad, 0xbe, 0xef};

static void test_parse(void **state)
{
        struct vlan_frame frame;

        assert_int_equal(vlan_parse(span_of(untagged, sizeof(untagged)), &frame), 0);
        assert_int_equal(frame.n_tags, 0);
        assert_int_equal(frame.ether_type, 0x0800);
        assert_int_equal(frame.payload.len, 4);

        assert_int_equal(vlan_parse(span_of(tagged, sizeof(tagged)), &frame), 0);
        assert_int_equal(frame.n_tags, 1);
        assert_int_equal(frame.outer.priority, 5);
        assert_true(frame.outer.is_drop_eligible);
        assert_int_equal(frame.outer.id, 10);
        assert_int_equal(frame.ether_type, 0x0800);
        assert_int_equal(frame.payload.len, 4);
        assert_int_equal(frame.payload.data[0], 0xde);
}

static void test_push(void **state)
{
        struct vlan_tag tag = {.priority = 5, .is_drop_eligible = true, .id = 10}, outer = {.id = 4094};
        uint8_t buf[sizeof(untagged) + 2 * VLAN_TAG_LEN];
        size_t len = sizeof(untagged);
        struct vlan_frame frame;

        memcpy(buf, untagged, sizeof(untagged));
        assert_int_equal(vlan_push(buf, &len, sizeof(buf), &tag), 0);
        assert_int_equal(len, sizeof(tagged));
        assert_memory_equal(buf, tagged, sizeof(tagged));

        assert_int_equal(vlan_push(buf, &len, sizeof(buf), &outer), 0);
        assert_int_equal(vlan_parse(span_of(buf, len), &frame), 0);
        assert_int_equal(frame.n_tags, 2);
        assert_int_equal(frame.outer.id, 4094);
        assert_int_equal(frame.inner.id, 10);

        assert_int_equal(vlan_push(buf, &len, sizeof(buf), &tag), -ENOSPC);
        len = VLAN_ETHER_LEN - 1;
        assert_int_equal(vlan_push(buf, &len, sizeof(buf), &tag), -EBADMSG);
}

static void test_malformed(void **state)
{
        uint8_t three[12 + 3 * VLAN_TAG_LEN + 2] = {0};
        struct vlan_frame frame;

        for (size_t len = 0; len < VLAN_ETHER_LEN; len++)
                assert_int_equal(vlan_parse(span_of(untagged, len), &frame), -EBADMSG);
        for (size_t len = VLAN_ETHER_LEN; len < VLAN_ETHER_LEN + VLAN_TAG_LEN; len++)
                assert_int_equal(vlan_parse(span_of(tagged, len), &frame), -EBADMSG);

        for (size_t i = 0; i < 3; i++)
                put_be16(three + 12 + i * VLAN_TAG_LEN, VLAN_ETHER_TYPE);
        assert_int_equal(vlan_parse(span_of(three, sizeof(three)), &frame), -EBADMSG);
}

static void test_tci(void **state)
{
        for (unsigned tci = 0; tci <= UINT16_MAX; tci++) {
                struct vlan_tag tag = vlan_tag_of_tci((uint16_t)tci);

                assert_int_equal(vlan_tci(&tag), tci);
        }
        assert_int_equal(vlan_tag_of_tci(0xb00a).priority, 5);
        assert_int_equal(vlan_tag_of_tci(0xb00a).id, 10);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse),
                cmocka_unit_test(test_push),
                cmocka_unit_test(test_malformed),
                cmocka_unit_test(test_tci),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

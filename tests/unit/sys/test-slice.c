/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sys/slice.h"

static struct ip_prefix prefix(const char *text)
{
        struct ip_prefix p;

        assert_int_equal(ip_prefix_parse(text, &p), 0);
        return p;
}

static void prefixes_become_masks(void **state)
{
        struct ip_prefix network = prefix("198.18.21.7/20"), host = prefix("198.18.16.1/32"), all = prefix("0.0.0.0/0");
        struct slice_rule rule;

        slice_rule_init(&rule, 10);
        assert_int_equal(rule.vlan, 10);
        assert_false(rule.has_v4);
        assert_int_equal(slice_rule_allow(&rule, &network, &host), 0);
        assert_true(rule.has_v4);
        assert_false(rule.has_v6);
        assert_int_equal(rule.source4.address, inet_addr("198.18.16.0"));
        assert_int_equal(rule.source4.mask, inet_addr("255.255.240.0"));
        assert_int_equal(rule.destination4.address, inet_addr("198.18.16.1"));
        assert_int_equal(rule.destination4.mask, inet_addr("255.255.255.255"));
        assert_int_equal(slice_rule_allow(&rule, &all, &all), 0);
        assert_int_equal(rule.source4.mask, 0);
}

static void prefixes_of_ipv6_become_masks(void **state)
{
        struct ip_prefix odd = prefix("2001:2:ffff:ffff::1/33"), long_one = prefix("2001:2::ffff/112");
        struct slice_rule rule;

        slice_rule_init(&rule, 10);
        assert_int_equal(slice_rule_allow(&rule, &odd, &long_one), 0);
        assert_true(rule.has_v6);
        assert_false(rule.has_v4);
        assert_int_equal(rule.source6.mask[0], htonl(0xffffffff));
        assert_int_equal(rule.source6.mask[1], htonl(0x80000000));
        assert_int_equal(rule.source6.mask[2], 0);
        assert_int_equal(rule.source6.address[0], htonl(0x20010002));
        assert_int_equal(rule.source6.address[1], htonl(0x80000000));
        assert_int_equal(rule.source6.address[2], 0);
        assert_int_equal(rule.destination6.mask[3], htonl(0xffff0000));
        assert_int_equal(rule.destination6.address[3], 0);
}

static void families_do_not_mix(void **state)
{
        struct ip_prefix v4 = prefix("198.18.0.0/20"), v6 = prefix("2001:2::/64");
        struct slice_rule rule;

        slice_rule_init(&rule, 10);
        assert_int_equal(slice_rule_allow(&rule, &v4, &v6), -EINVAL);
        assert_false(rule.has_v4);
        assert_false(rule.has_v6);
}

static void every_reason_has_a_name(void **state)
{
        for (int i = 0; i < SLICE_DROP_MAX; i++)
                for (int j = 0; j < i; j++)
                        assert_string_not_equal(slice_drop_name((enum slice_drop)i),
                                                slice_drop_name((enum slice_drop)j));
        assert_string_equal(slice_drop_name(SLICE_DROP_DOUBLE_TAG), "double-tag");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(prefixes_become_masks),
                cmocka_unit_test(prefixes_of_ipv6_become_masks),
                cmocka_unit_test(families_do_not_mix),
                cmocka_unit_test(every_reason_has_a_name),
        };

        return cmocka_run_group_tests_name("slice", tests, NULL, NULL);
}

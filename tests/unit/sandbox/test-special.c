/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/special.h"
#include "tests/test.h"

#define ORDINARY (-1)

static struct ip_prefix address_of(const char *text)
{
        struct ip_prefix address;

        assert_int_equal(ip_prefix_parse(text, &address), 0);
        return address;
}

/* Each range of the registries of IANA (special-purpose addresses of IPv4 and of IPv6) at its two ends, and what lies
 * beside it. */
static void test_registries(void **state)
{
        static const struct {
                const char *text;
                int kind;
        } cases[] = {
                {"0.0.0.0", SPECIAL_LOOPBACK},
                {"0.255.255.255", SPECIAL_LOOPBACK},
                {"1.0.0.0", ORDINARY},
                {"9.255.255.255", ORDINARY},
                {"10.0.0.0", SPECIAL_PRIVATE},
                {"10.255.255.255", SPECIAL_PRIVATE},
                {"11.0.0.0", ORDINARY},
                {"100.63.255.255", ORDINARY},
                {"100.64.0.0", SPECIAL_PRIVATE},
                {"100.127.255.255", SPECIAL_PRIVATE},
                {"100.128.0.0", ORDINARY},
                {"100.100.100.200", SPECIAL_METADATA},
                {"126.255.255.255", ORDINARY},
                {"127.0.0.1", SPECIAL_LOOPBACK},
                {"127.255.255.255", SPECIAL_LOOPBACK},
                {"128.0.0.0", ORDINARY},
                {"168.63.129.16", SPECIAL_METADATA},
                {"168.63.129.17", ORDINARY},
                {"169.253.255.255", ORDINARY},
                {"169.254.0.0", SPECIAL_LINK_LOCAL},
                {"169.254.169.254", SPECIAL_METADATA},
                {"169.254.169.253", SPECIAL_LINK_LOCAL},
                {"169.254.170.2", SPECIAL_METADATA},
                {"169.254.255.255", SPECIAL_LINK_LOCAL},
                {"169.255.0.0", ORDINARY},
                {"172.15.255.255", ORDINARY},
                {"172.16.0.0", SPECIAL_PRIVATE},
                {"172.31.255.255", SPECIAL_PRIVATE},
                {"172.32.0.0", ORDINARY},
                {"192.0.0.0", SPECIAL_RESERVED},
                {"192.0.0.192", SPECIAL_METADATA},
                {"192.0.0.255", SPECIAL_RESERVED},
                {"192.0.1.0", ORDINARY},
                {"192.0.2.1", ORDINARY},
                {"192.88.98.255", ORDINARY},
                {"192.88.99.1", SPECIAL_TUNNEL},
                {"192.88.100.0", ORDINARY},
                {"192.167.255.255", ORDINARY},
                {"192.168.0.0", SPECIAL_PRIVATE},
                {"192.168.255.255", SPECIAL_PRIVATE},
                {"192.169.0.0", ORDINARY},
                {"198.17.255.255", ORDINARY},
                {"198.18.0.0", SPECIAL_PRIVATE},
                {"198.19.255.255", SPECIAL_PRIVATE},
                {"198.20.0.0", ORDINARY},
                {"203.0.113.7", ORDINARY},
                {"223.255.255.255", ORDINARY},
                {"224.0.0.0", SPECIAL_MULTICAST},
                {"239.255.255.255", SPECIAL_MULTICAST},
                {"240.0.0.0", SPECIAL_RESERVED},
                {"255.255.255.254", SPECIAL_RESERVED},
                {"255.255.255.255", SPECIAL_MULTICAST},
                {"::", SPECIAL_LOOPBACK},
                {"::1", SPECIAL_LOOPBACK},
                {"::2", SPECIAL_RESERVED},
                {"::192.0.2.1", SPECIAL_RESERVED},
                {"::ffff:0:192.0.2.1", SPECIAL_RESERVED},
                {"64:ff9b:1::1", SPECIAL_TUNNEL},
                {"64:ff9b:2::1", SPECIAL_RESERVED},
                {"100::1", SPECIAL_RESERVED},
                {"2001::1", SPECIAL_TUNNEL},
                {"2001:0:ffff::1", SPECIAL_TUNNEL},
                {"2001:1::1", ORDINARY},
                {"2001:2::1", SPECIAL_PRIVATE},
                {"2001:2:1::1", ORDINARY},
                {"2001:db8::1", ORDINARY},
                {"2001:4860:4860::8888", ORDINARY},
                {"2002:a00:1::1", SPECIAL_TUNNEL},
                {"2003::1", ORDINARY},
                {"5f00::1", SPECIAL_RESERVED},
                {"fbff::1", ORDINARY},
                {"fc00::", SPECIAL_PRIVATE},
                {"fdff::1", SPECIAL_PRIVATE},
                {"fd00:ec2::254", SPECIAL_METADATA},
                {"fd00:ec2::255", SPECIAL_PRIVATE},
                {"fd20:ce::254", SPECIAL_METADATA},
                {"fe00::1", ORDINARY},
                {"fe80::1", SPECIAL_LINK_LOCAL},
                {"febf::1", SPECIAL_LINK_LOCAL},
                {"fec0::1", SPECIAL_PRIVATE},
                {"feff::1", SPECIAL_PRIVATE},
                {"ff02::1", SPECIAL_MULTICAST},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct ip_prefix address = address_of(cases[i].text);
                struct special special;
                int kind = special_find(&address, &special) ? (int)special.kind : ORDINARY;

                if (kind != cases[i].kind)
                        fail_msg("%s: %s", cases[i].text,
                                 kind == ORDINARY ? "ordinary" : special_kind_text(special.kind));
        }
}

/* RFC 6052, section 2.4: 64:ff9b::c000:221 is 192.0.2.33 */
static void test_translated(void **state)
{
        struct ip_prefix address = address_of("64:ff9b::c000:221"), embedded;
        struct special special;
        char text[IP_TEXT_MAX];

        assert_true(special_embedded(&address, &embedded));
        assert_string_equal(ip_prefix_format(&embedded, text), "192.0.2.33/32");
        assert_false(special_find(&address, &special));

        address = address_of("64:ff9b::169.254.169.254");
        assert_true(special_find(&address, &special));
        assert_int_equal(special.kind, SPECIAL_METADATA);
        assert_int_equal(special.prefix.length_bits, 128);
        address = address_of("64:ff9b::10.1.2.3");
        assert_true(special_find(&address, &special));
        assert_int_equal(special.kind, SPECIAL_PRIVATE);
        assert_string_equal(ip_prefix_format(&special.prefix, text), "64:ff9b::a00:0/104");

        address = address_of("64:ff9b:0:0:1::10.1.2.3");
        assert_false(special_embedded(&address, &embedded));
        address = address_of("10.1.2.3");
        assert_false(special_embedded(&address, &embedded));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_registries),
                cmocka_unit_test(test_translated),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

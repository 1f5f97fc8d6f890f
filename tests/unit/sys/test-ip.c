/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"
#include "sys/ip.h"

static void texts_come_back(void **state)
{
        static const struct {
                const char *given, *canonical;
        } cases[] = {
                {"198.18.0.1", "198.18.0.1/32"},
                {"198.18.0.1/15", "198.18.0.1/15"},
                {"0.0.0.0/0", "0.0.0.0/0"},
                {"2001:2::1", "2001:2::1/128"},
                {"::/0", "::/0"},
                {"2001:0002:0000:0000::0001/64", "2001:2::1/64"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct ip_prefix prefix;
                char text[IP_TEXT_MAX];

                assert_int_equal(ip_prefix_parse(cases[i].given, &prefix), 0);
                assert_string_equal(ip_prefix_format(&prefix, text), cases[i].canonical);
        }
}

static void other_texts_are_refused(void **state)
{
        static const char *const cases[] = {
                "",
                "/",
                "198.18.0",
                "198.18.0.1/33",
                "198.18.0.256",
                "198.18.0.1/",
                "2001:2::/a",
                "::1/129",
                "host",
                "198.18.0.1/-1",
                "198.18.0.1/08",
                " 198.18.0.1",
                "::1%lo",
                "1.2.3.4/1/2",
                "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000",
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct ip_prefix prefix = {.family = 1};

                assert_int_equal(ip_prefix_parse(cases[i], &prefix), -EINVAL);
                assert_int_equal(prefix.family, 1);
        }
}

static void socket_addresses_are_in_network_order(void **state)
{
        struct sockaddr_storage where;
        struct ip_prefix prefix;

        assert_int_equal(ip_prefix_parse("198.18.0.1", &prefix), 0);
        assert_int_equal(ip_prefix_sockaddr(&prefix, 862, &where), sizeof(struct sockaddr_in));
        assert_int_equal(((struct sockaddr_in *)&where)->sin_port, htons(862));
        assert_int_equal(((struct sockaddr_in *)&where)->sin_addr.s_addr, inet_addr("198.18.0.1"));
        assert_int_equal(ip_prefix_parse("::1", &prefix), 0);
        assert_int_equal(ip_prefix_sockaddr(&prefix, 1, &where), sizeof(struct sockaddr_in6));
        assert_true(IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&where)->sin6_addr));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(texts_come_back),
                cmocka_unit_test(other_texts_are_refused),
                cmocka_unit_test(socket_addresses_are_in_network_order),
        };

        return cmocka_run_group_tests_name("ip", tests, NULL, NULL);
}

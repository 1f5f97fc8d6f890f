/* SPDX-License-Identifier: Apache-2.0 */
#include "load/address.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/macro.h"

static void test_parse(void **state)
{
        static const struct {
                const char *text, *formatted;
        } cases[] = {
                {"192.0.2.1", "192.0.2.1:862"},
                {"192.0.2.1:9", "192.0.2.1:9"},
                {"192.0.2.1:0", "192.0.2.1:0"},
                {"2001:db8::1", "[2001:db8::1]:862"},
                {"[2001:db8::1]", "[2001:db8::1]:862"},
                {"[2001:db8::1]:65535", "[2001:db8::1]:65535"},
                {"::", "[::]:862"},
                {"fe80::1%lo", "[fe80::1%lo]:862"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char buf[ADDRESS_TEXT];
                union address address, again;
                struct err err = {0};

                assert_int_equal(address_parse(cases[i].text, 862, &address, &err), 0);
                assert_string_equal(address_format(&address, buf), cases[i].formatted);
                assert_int_equal(address_parse(buf, 1, &again, &err), 0);
                assert_true(address_equal(&address, &again));
        }
}

static void test_parse_refuses(void **state)
{
        static const char *const texts[] = {"",
                                            "192.0.2",
                                            "192.0.2.1:",

                                            "192.0.2.1:65536",
                                            "192.0.2.1:x",
                                            "[2001:db8::1",
                                            "[2001:db8::1]x",
                                            "[2001:db8::1]:",
                                            ":862",
                                            "2001:db8:::1",
                                            "a.name"};

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                union address address;
                struct err err = {0};

                assert_int_equal(address_parse(texts[i], 862, &address, &err), -EINVAL);
                assert_int_equal(err.kind, ERR_USAGE);
                assert_true(err.text[0] != '\0');
        }
}

static void test_unicast(void **state)
{
        static const struct {
                const char *text;
                bool is_unicast;
        } cases[] = {
                {"127.0.0.1", true},  {"10.1.2.3", true},         {"0.0.0.0", false}, {"255.255.255.255", false},
                {"224.0.0.1", false}, {"239.255.255.255", false}, {"::1", true},      {"2001:db8::1", true},
                {"::", false},        {"ff02::1", false},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                union address address;

                assert_int_equal(address_parse(cases[i].text, 862, &address, NULL), 0);
                assert_int_equal(address_is_unicast(&address), cases[i].is_unicast);
        }
        assert_false(address_is_unicast(&(union address){0}));
}

static void test_equal(void **state)
{
        static const char *const texts[] = {"192.0.2.1:1",     "192.0.2.1:2",     "192.0.2.2:1",
                                            "[2001:db8::1]:1", "[2001:db8::1]:2", "[2001:db8::2]:1"};
        union address a[ARRAY_SIZE(texts)];

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                assert_int_equal(address_parse(texts[i], 862, &a[i], NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                for (size_t j = 0; j < ARRAY_SIZE(texts); j++)
                        assert_int_equal(address_equal(&a[i], &a[j]), i == j);
}

static void test_resolve(void **state)
{
        union address address;
        char buf[ADDRESS_TEXT];

        assert_int_equal(address_resolve("localhost:7", 862, AF_INET, &address, NULL), 0);
        assert_string_equal(address_format(&address, buf), "127.0.0.1:7");
        assert_int_equal(address_resolve("127.0.0.1", 862, AF_INET6, &address, NULL), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse), cmocka_unit_test(test_parse_refuses), cmocka_unit_test(test_unicast),
                cmocka_unit_test(test_equal), cmocka_unit_test(test_resolve),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>

#include "sandbox/target.h"
#include "tests/test.h"

struct good {
        const char *text;
        const char *formatted;
        const char *sni, *http_host;
};

static void test_read(void **state)
{
        static const struct good cases[] = {
                {"example.org:443", "tcp example.org:443", NULL, NULL},
                {"EXAMPLE.org.:443", "tcp example.org:443", NULL, NULL},
                {"tcp://example.org:22", "tcp example.org:22", NULL, NULL},
                {"udp://192.0.2.1:53", "udp 192.0.2.1:53", NULL, NULL},
                {"[2001:DB8:0::1]:53", "tcp [2001:db8::1]:53", NULL, NULL},
                {"[::ffff:192.0.2.1]:80", "tcp 192.0.2.1:80", NULL, NULL},
                {"https://example.org", "tcp example.org:443", "example.org", ""},
                {"https://example.org:8443/a?b=c#d", "tcp example.org:8443", "example.org", ""},
                {"https://192.0.2.1/", "tcp 192.0.2.1:443", "", ""},
                {"http://Example.org/path:99", "tcp example.org:80", "", "example.org"},
                {"http://[2001:db8::1]:8080/", "tcp [2001:db8::1]:8080", "", "2001:db8::1"},
                {"http://192.0.2.1", "tcp 192.0.2.1:80", "", "192.0.2.1"},
                {"a_b.example:1", "tcp a_b.example:1", NULL, NULL},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct host_name host;
                struct target target;
                struct err err = {0};
                char text[TARGET_TEXT];

                if (target_parse(cases[i].text, &host, &target, &err) < 0)
                        fail_msg("%s: %s", cases[i].text, err.text);
                assert_string_equal(target_format(&target, text), cases[i].formatted);
                assert_int_equal(!target.sni, !cases[i].sni);
                assert_int_equal(!target.http_host, !cases[i].http_host);
                if (cases[i].sni)
                        assert_string_equal(target.sni, cases[i].sni);
                if (cases[i].http_host)
                        assert_string_equal(target.http_host, cases[i].http_host);
        }
}

static void test_refused(void **state)
{
        static const struct {
                const char *text, *why;
        } cases[] = {
                {"", "neither a name nor an address"},
                {"example.org", "its port is missing"},
                {"example.org:", "its port is missing"},
                {"example.org:0", "not a number from 1 to 65535"},
                {"example.org:65536", "not a number from 1 to 65535"},
                {"example.org:0443", "not a number from 1 to 65535"},
                {"example.org:https", "not a number from 1 to 65535"},
                {"2001:db8::1:53", "IPv6 stands in brackets"},
                {"[2001:db8::1]53", "IPv6 stands in brackets"},
                {"[2001:db8::1", "IPv6 stands in brackets"},
                {"[fe80::1%eth0]:80", "neither a name nor an address"},
                {"ftp://example.org:21", "what stands before"},
                {"TCP://example.org:21", "what stands before"},
                {"http://user@example.org/", "user part"},
                {"http://example.org@evil.example/", "user part"},
                {"tcp://example.org:443/", "something follows the port"},
                {"ex ample.org:443", "neither a name nor an address"},
                {"..:443", "neither a name nor an address"},
                {"1.2.3.4.5:443", "neither a name nor an address"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct host_name host;
                struct target target;
                struct err err = {0};

                if (target_parse(cases[i].text, &host, &target, &err) == 0)
                        fail_msg("\"%s\" was read", cases[i].text);
                assert_int_equal(err.kind, ERR_USAGE);
                if (!strstr(err.text, cases[i].why))
                        fail_msg("\"%s\": %s", cases[i].text, err.text);
        }
}

static void test_mapped(void **state)
{
        struct ip_prefix address = {0};

        assert_int_equal(ip_prefix_parse("::ffff:10.1.2.0/120", &address), 0);
        target_address_normalise(&address);
        assert_int_equal(address.family, AF_INET);
        assert_int_equal(address.length_bits, 24);
        assert_memory_equal(address.bytes, ((uint8_t[16]){10, 1, 2, 0}), 16);
        /* a range that holds more than mapped addresses stays what it is */
        assert_int_equal(ip_prefix_parse("::ffff:0:0/95", &address), 0);
        target_address_normalise(&address);
        assert_int_equal(address.family, AF_INET6);
        assert_int_equal(ip_prefix_parse("::10.1.2.3", &address), 0);
        target_address_normalise(&address);
        assert_int_equal(address.family, AF_INET6);
}

static void test_own(void **state)
{
        static const struct {
                const char *address;
                bool is_own;
        } cases[] = {
                {"127.0.0.1", true},  {"127.255.255.255", true}, {"0.0.0.0", true}, {"::1", true},   {"::", true},
                {"128.0.0.1", false}, {"0.0.0.1", false},        {"::2", false},    {"1::1", false},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct ip_prefix address;

                assert_int_equal(ip_prefix_parse(cases[i].address, &address), 0);
                assert_int_equal(target_address_is_own(&address), cases[i].is_own);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_read),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_mapped),
                cmocka_unit_test(test_own),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

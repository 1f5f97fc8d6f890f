/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/host-name.h"

#include <arpa/inet.h>
#include <errno.h>

#include "tests/test.h"

static int parse(const char *text, struct host_name *ret)
{
        return host_name_parse(span_of_text(text), ret);
}

static void test_names(void **state)
{
        static const char *const rows[][2] = {
                {"example.com", "example.com"},
                {"WWW.Example.COM", "www.example.com"},
                {"example.com.", "example.com"},
                {"localhost", "localhost"},
                {"xn--mnchen-3ya.de", "xn--mnchen-3ya.de"}, /* RFC 3492's encoding of a German city */
                {"_acme-challenge.example.com", "_acme-challenge.example.com"},
                {"3com.com", "3com.com"},
                {"0xcafe.example", "0xcafe.example"},
                {"1.2.3.4.in-addr.arpa", "1.2.3.4.in-addr.arpa"},
                {"a.1e", "a.1e"},
                {"1.0xg", "1.0xg"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct host_name host;

                assert_int_equal(parse(rows[i][0], &host), 0);
                assert_int_equal(host.kind, HOST_NAME_IS_NAME);
                assert_string_equal(host.text, rows[i][1]);
                assert_true(host.is_plain);
        }
}

/* Each must be taken for the address that inet_aton() of the C library takes it for: that is what programs connect to.
 */
static void test_v4_as_the_library_reads_it(void **state)
{
        static const char *const rows[] = {
                "192.0.2.1",    "127.1",      "127.0.1",         "2130706433",    "0x7f000001",
                "0177.0.0.1",   "0X7F.0.0.1", "10.0x102",        "1.2.65535",     "0",
                "4294967295",   "00.0.0.0",   "255.255.255.255", "0300.0250.1.1", "192.168.257",
                "017700000001",
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct in_addr expected;
                struct host_name host;
                char text[INET_ADDRSTRLEN], dotted[32];

                assert_int_equal(inet_aton(rows[i], &expected), 1);
                assert_int_equal(parse(rows[i], &host), 0);
                assert_int_equal(host.kind, HOST_NAME_IS_V4);
                assert_memory_equal(host.address, &expected, 4);
                assert_string_equal(host.text, inet_ntop(AF_INET, &expected, text, sizeof(text)));
                assert_int_equal(host.is_plain, streq(host.text, rows[i]));

                snprintf(dotted, sizeof(dotted), "%s.", rows[i]);
                assert_int_equal(parse(dotted, &host), 0);
                assert_memory_equal(host.address, &expected, 4);
        }
}

static void test_v6(void **state)
{
        static const char *const rows[][2] = {
                {"[2001:DB8::1]", "2001:db8::1"},
                {"[::]", "::"},
                {"[2001:db8:0:0:0:0:0:1]", "2001:db8::1"},
                {"[64:ff9b::192.0.2.1]", "64:ff9b::c000:201"},
        };
        struct host_name host;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                assert_int_equal(parse(rows[i][0], &host), 0);
                assert_int_equal(host.kind, HOST_NAME_IS_V6);
                assert_string_equal(host.text, rows[i][1]);
                assert_true(host.is_plain);
        }
        assert_int_equal(parse("[::ffff:127.0.0.1]", &host), 0);
        assert_int_equal(host.kind, HOST_NAME_IS_V4);
        assert_string_equal(host.text, "127.0.0.1");
        assert_false(host.is_plain);

        assert_int_equal(parse("2001:db8::1", &host), -EINVAL);
        assert_int_equal(host_name_parse_bare(span_of_text("2001:db8::1"), &host), 0);
        assert_string_equal(host.text, "2001:db8::1");
        assert_int_equal(host_name_parse_bare(span_of_text("Example.com"), &host), 0);
        assert_string_equal(host.text, "example.com");
        assert_int_equal(host_name_parse_bare(span_of_text("[2001:db8::1]"), &host), -EINVAL);
}

static void test_refused(void **state)
{
        static const char *const rows[] = {
                "",
                ".",
                "..",
                "example.com..",
                ".example.com",
                "a..b",
                "exa mple.com",
                "example.com ",
                " example.com",
                "example.com:80",
                "user@example.com",
                "example.com/",
                "ex%61mple.com", /* percent-encoding is for others to undo, or not */
                "127.0.0.1%00",
                "m\xc3\xbcnchen.de",
                "ex\\ample.com",
                "example,com",
                "*.example.com",
                "[]",
                "[::1",
                "::1]",
                "[fe80::1%eth0]", /* a zone has a meaning on one host only */
                "[fe80::1%25eth0]",
                "[1.2.3.4]",
                "[v1.fe80::a]",
                "[2001:db8::1::2]",
                "1.2.3.4.5", /* numbers that are no address */
                "256.0.0.1",
                "1.2.3.256",
                "4294967296",
                "08.0.0.1",
                "1.2.3.0x",
                "0x",
                "example.0x1f",
                "foo.123",
                "1..2",
                "0x100000000",
                "99999999999999999999999999",
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct host_name host = {.text = "untouched"};

                assert_int_equal(parse(rows[i], &host), -EINVAL);
                assert_string_equal(host.text, "untouched");
        }
}

static void test_octets(void **state)
{
        static const uint8_t nul[] = "example.com\0.org";
        struct host_name host;

        assert_int_equal(host_name_parse(span_of(nul, sizeof(nul) - 1), &host), -EINVAL);
        assert_int_equal(host_name_parse(span_of("[::1\0]", 6), &host), -EINVAL);
        for (unsigned c = 0; c < 256; c++) {
                bool is_allowed = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                  c == '-' || c == '_' || c == '.';
                uint8_t name[] = {'a', (uint8_t)c, 'b'};

                assert_int_equal(host_name_parse(span_of(name, 3), &host), is_allowed ? 0 : -EINVAL);
        }
}

static void test_lengths(void **state)
{
        char name[256];
        struct host_name host;

        memset(name, 'a', sizeof(name));
        assert_int_equal(host_name_parse(span_of(name, 63), &host), 0);
        assert_int_equal(host_name_parse(span_of(name, 64), &host), -ENAMETOOLONG);
        for (size_t i = 49; i < sizeof(name); i += 50)
                name[i] = '.';
        name[252] = 'a';
        assert_int_equal(host_name_parse(span_of(name, 253), &host), 0);
        assert_int_equal(strlen(host.text), 253);
        name[253] = 'a';
        assert_int_equal(host_name_parse(span_of(name, 254), &host), -ENAMETOOLONG);
        name[253] = '.';
        assert_int_equal(host_name_parse(span_of(name, 254), &host), 0);
}

static void test_equal(void **state)
{
        struct host_name a, b;

        assert_int_equal(parse("Example.com.", &a), 0);
        assert_int_equal(parse("example.COM", &b), 0);
        assert_true(host_name_equal(&a, &b));
        assert_int_equal(parse("example.org", &b), 0);
        assert_false(host_name_equal(&a, &b));
        assert_int_equal(parse("0x7f.1", &a), 0);
        assert_int_equal(parse("127.0.0.1", &b), 0);
        assert_true(host_name_equal(&a, &b));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names),  cmocka_unit_test(test_v4_as_the_library_reads_it),
                cmocka_unit_test(test_v6),     cmocka_unit_test(test_refused),
                cmocka_unit_test(test_octets), cmocka_unit_test(test_lengths),
                cmocka_unit_test(test_equal),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "load/http-client.h"

#include "tests/test.h"

static void test_parts(void **state)
{
        const struct {
                const char *text, *authority, *target;
        } cases[] = {
                {"http://192.0.2.1:8080/events?a=b", "192.0.2.1:8080", "/events?a=b"},
                {"http://a.example", "a.example", "/"},
                {"HTTP://[2001:db8::1]:80/", "[2001:db8::1]:80", "/"},
                {"http://a.example?q", "a.example", "/?q"},
                {"https://a.example:8443/x", "a.example:8443", "/x"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct http_url url;

                assert_int_equal(http_url_parse(cases[i].text, &url, NULL), 0);
                assert_string_equal(url.authority, cases[i].authority);
                assert_string_equal(url.target, cases[i].target);
                assert_int_equal(url.is_secure, cases[i].text[4] == 's');
        }
}

static void test_refused(void **state)
{
        const char *const cases[] = {"",
                                     "a.example/",
                                     "ftp://a.example/",
                                     "https://",
                                     "http://",
                                     "http:///x",
                                     "http://user@a.example/",
                                     "http://a.example/a b",
                                     "http://a.example/\r\nX: y",
                                     "http://a.example/#x",
                                     "http://a.example/\xc3\xa4"};

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct err err = {0};
                struct http_url url;

                assert_int_equal(http_url_parse(cases[i], &url, &err), -EINVAL);
                assert_int_equal(err.kind, ERR_USAGE);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parts),
                cmocka_unit_test(test_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "tests/fault.h"
#include "tests/test.h"

static void test_growing(void **state)
{
        _cleanup_text_ struct text text = {0};
        _cleanup_free_ char *taken = NULL;

        for (int i = 0; i < 1000; i++)
                text_addf(&text, "%d,", i);
        text_add(&text, "end");
        text_add_bytes(&text, "\0x", 2);
        assert_false(text.failed);
        assert_int_equal(text.len, 10 * 2 + 90 * 3 + 900 * 4 + 3 + 2);
        assert_int_equal(strlen(text.data), text.len - 2);
        taken = text_take(&text);
        assert_memory_equal(taken, "0,1,2,", 6);
        assert_null(text.data);
        assert_int_equal(text.len, 0);
}

static void test_empty(void **state)
{
        struct text text = {0};
        _cleanup_free_ char *taken = text_take(&text), *formatted = text_format("%s", "");

        assert_string_equal(taken, "");
        assert_string_equal(formatted, "");
}

static void test_names(void **state)
{
        static const char *const good[] = {
                "a",   "0",  "exp-001", "600mbit",
                "a.b", "a-", "a.",      "0123456789012345678901234567890123456789012345678901234567890123"};
        static const char *const bad[] = {"",      ".a",
                                          "-a",    "A",
                                          "a b",   "a_b",
                                          "a/b",   "a\n",
                                          "a,b",   "a\"",
                                          "..",    "\xc3\xa4",
                                          "a\x7f", "01234567890123456789012345678901234567890123456789012345678901234"};

        for (size_t i = 0; i < ARRAY_SIZE(good); i++)
                assert_true(text_is_name(good[i]));
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_false(text_is_name(bad[i]));
}

/* The examples of RFC 3629, section 7; the ends of each row of its syntax; and what just misses them. */
static void test_utf8(void **state)
{
        static const char *const good[] = {
                "",
                "A\xe2\x89\xa2\xce\x91.",
                "\xed\x95\x9c\xea\xb5\xad\xec\x96\xb4",
                "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e",
                "\xef\xbb\xbf\xf0\xa3\x8e\xb4",
                "\x01",
                "\x7f",
                "\xc2\x80",
                "\xdf\xbf",
                "\xe0\xa0\x80",
                "\xe0\xbf\xbf",
                "\xe1\x80\x80",
                "\xec\xbf\xbf",
                "\xed\x80\x80",
                "\xed\x9f\xbf",
                "\xee\x80\x80",
                "\xef\xbf\xbf",
                "\xf0\x90\x80\x80",
                "\xf0\xbf\xbf\xbf",
                "\xf1\x80\x80\x80",
                "\xf3\xbf\xbf\xbf",
                "\xf4\x80\x80\x80",
                "\xf4\x8f\xbf\xbf",
        };
        static const char *const bad[] = {
                "\x80", /* a continuation without a start */
                "\xbf",
                "\xc0\x80", /* overlong */
                "\xc1\xbf",
                "\xe0\x80\x80",
                "\xe0\x9f\xbf",
                "\xf0\x80\x80\x80",
                "\xf0\x8f\xbf\xbf",
                "\xed\xa0\x80", /* surrogates */
                "\xed\xbf\xbf",
                "\xed\xa1\x8c\xed\xbe\xb4",
                "\xf4\x90\x80\x80", /* above U+10FFFF */
                "\xf5\x80\x80\x80",
                "\xff",
                "\xfe",
                "\xf8\x88\x80\x80\x80",
                "\xc2", /* cut off */
                "\xe2\x89",
                "\xf0\xa3\x8e",
                "\xe2\x89G",
                "\xc2\x41",
                "\xc2\xc2",
                "\xe2\xa2\xc0",
                "\xf0\xa3\x8e\x41",
                "ok\xc3",
        };

        for (size_t i = 0; i < ARRAY_SIZE(good); i++)
                assert_true(text_is_utf8(good[i], strlen(good[i])));
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_false(text_is_utf8(bad[i], strlen(bad[i])));
        assert_true(text_is_utf8("a\0b", 3));
}

static void test_visible(void **state)
{
        static const struct {
                const char *bytes, *shown;
        } cases[] = {
                {"plain \xc3\xa4", "plain \xc3\xa4"},
                {"\x1b[2J", "\\x1b[2J"},
                {"a\nb\tc\rd", "a\\x0ab\\x09c\\x0dd"},
                {"\x7f", "\\x7f"},
                {"\xc2\x9b"
                 "31m",
                 "\\xc2\\x9b31m"}, /* C1: a terminal may take it as ESC [ */
                {"\xc2\xa0", "\xc2\xa0"},
                {"\xff\xfe", "\\xff\\xfe"},
                {"\xe2\x89", "\\xe2\\x89"},
                {"back\\slash", "back\\x5cslash"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_text_ struct text text = {0};

                text_add_visible(&text, cases[i].bytes, strlen(cases[i].bytes));
                assert_string_equal(text.data, cases[i].shown);
        }
}

/* After a failed addition nothing is half there: text_take() gives NULL, or the whole. */
static void test_out_of_memory(void **state)
{
        for (unsigned n = 1;; n++) {
                struct text text = {0};
                _cleanup_free_ char *taken = NULL;

                fault_arm(FAULT_ALLOCATION, n);
                for (int i = 0; i < 100; i++)
                        text_addf(&text, "%d,", i);
                taken = text_take(&text);
                if (!fault_disarm()) {
                        assert_int_equal(strlen(taken), 10 * 2 + 90 * 3);
                        assert_true(n > 1);
                        break;
                }
                assert_null(taken);
                assert_null(text.data);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_growing), cmocka_unit_test(test_empty),   cmocka_unit_test(test_names),
                cmocka_unit_test(test_utf8),    cmocka_unit_test(test_visible), cmocka_unit_test(test_out_of_memory),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

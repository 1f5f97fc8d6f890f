/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"
#include "tests/test.h"

static void test_alignment(void **state)
{
        _cleanup_table_ struct table t;
        _cleanup_text_ struct text out = {0};

        table_init(&t, "lr");
        table_add(&t, "cell");
        table_add(&t, "p50");
        table_add(&t, "a/idle");
        table_addf(&t, "%d", 7);
        table_add(&t, "b");
        table_add(&t, "12345");
        table_render(&t, 2, &out);
        assert_string_equal(out.data, "  cell      p50\n"
                                      "  a/idle      7\n"
                                      "  b       12345\n");
}

static void test_empty_columns_are_left_out(void **state)
{
        _cleanup_table_ struct table t;
        _cleanup_text_ struct text out = {0};

        table_init(&t, "lll");
        table_add(&t, "a");
        table_add(&t, "empty");
        table_add(&t, "c");
        table_add(&t, "1");
        table_add(&t, "");
        table_add(&t, "3");
        table_render(&t, 0, &out);
        assert_string_equal(out.data, "a  c\n1  3\n");
}

static void test_no_line_ends_in_spaces(void **state)
{
        _cleanup_table_ struct table t;
        _cleanup_text_ struct text out = {0};

        table_init(&t, "ll");
        table_add(&t, "a");
        table_add(&t, "b");
        table_add(&t, "1");
        table_add(&t, "");
        table_add(&t, "1");
        table_add(&t, "2");
        table_render(&t, 0, &out);
        assert_string_equal(out.data, "a  b\n1\n1  2\n");
}

static void test_nothing_without_rows(void **state)
{
        _cleanup_table_ struct table t;
        _cleanup_text_ struct text out = {0};

        table_init(&t, "l");
        table_add(&t, "head");
        table_render(&t, 0, &out);
        assert_int_equal(out.len, 0);
}

/* A name from an archive must not be able to clear the screen. */
static void test_outside_bytes_are_made_visible(void **state)
{
        _cleanup_table_ struct table t;
        _cleanup_text_ struct text out = {0};

        table_init(&t, "l");
        table_add(&t, "head");
        table_add(&t, "a\x1b[2Jb\n");
        table_render(&t, 0, &out);
        assert_string_equal(out.data, "head\na\\x1b[2Jb\\x0a\n");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_alignment),
                cmocka_unit_test(test_empty_columns_are_left_out),
                cmocka_unit_test(test_no_line_ends_in_spaces),
                cmocka_unit_test(test_nothing_without_rows),
                cmocka_unit_test(test_outside_bytes_are_made_visible),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

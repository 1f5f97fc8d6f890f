/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/csv.h"
#include "tests/test.h"

/* The pairs follow section 2 of RFC 4180, rules 5 to 7. */
static void test_quoting(void **state)
{
        static const struct {
                const char *value, *field;
        } cases[] = {
                {"", ""},
                {"plain", "plain"},
                {" spaces stay ", " spaces stay "},
                {"a,b \"c\"", "\"a,b \"\"c\"\"\""},
                {"\"", "\"\"\"\""},
                {"two\nlines", "\"two\nlines\""},
                {"two\r\nlines", "\"two\r\nlines\""},
                {"15,00", "\"15,00\""},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_text_ struct text out = {0};

                text_add(&out, "");
                csv_add_field(&out, cases[i].value);
                assert_false(out.failed);
                assert_string_equal(out.data, cases[i].field);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_quoting),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

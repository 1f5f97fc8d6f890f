/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macro.h"
#include "evidence/quantity.h"
#include "stats/bounds.h"
#include "tests/test.h"

static void test_to_the_last_digit(void **state)
{
        static const struct {
                enum unit unit;
                int64_t value;
                const char *expected;
        } cases[] = {
                {UNIT_DURATION, 0, "0 ns"},
                {UNIT_DURATION, 999, "999 ns"},
                {UNIT_DURATION, 1000, "1 us"},
                {UNIT_DURATION, 44321, "44.321 us"},
                {UNIT_DURATION, -2000, "-2 us"},
                {UNIT_DURATION, 22700000, "22.7 ms"},
                {UNIT_DURATION, INT64_MIN, "-9223372036.854775808 s"},
                {UNIT_RATIO, 1250000, "1.25"},
                {UNIT_RATIO, 1250001, "1.250001"},
                {UNIT_RATIO, 20000000, "20"},
                {UNIT_PROPORTION, 500000, "0.05%"},
                {UNIT_PROPORTION, 1, "0.0000001%"},
                {UNIT_PROPORTION, 1000000000, "100%"},
                {UNIT_RATE, 500000000, "500 mbit"},
                {UNIT_RATE, 1500, "1.5 kbit"},
                {UNIT_COUNT, 1000, "1000"},
                {UNIT_PICOSECONDS, 8213, "8.213 ns"},
                {UNIT_PICOSECONDS, INT64_C(3000000000000), "3 s"},
                {UNIT_DURATION, BOUNDS_INFINITE, "lost"},
                {UNIT_RATIO, BOUNDS_INFINITE, "lost"},
        };
        char text[QUANTITY_SIZE];

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_string_equal(quantity_format(cases[i].unit, cases[i].value, text), cases[i].expected);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_to_the_last_digit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

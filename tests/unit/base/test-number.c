/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/macro.h"
#include "base/number.h"
#include "tests/test.h"

static void test_parse_u64(void **state)
{
        static const struct {
                const char *text;
                int r;
                uint64_t value;
        } cases[] = {
                {"0", 0, 0},
                {"7", 0, 7},
                {"18446744073709551615", 0, UINT64_MAX},
                {"18446744073709551616", -ERANGE, 0},
                {"99999999999999999999999", -ERANGE, 0},
                {"", -EINVAL, 0},
                {"00", -EINVAL, 0},
                {"01", -EINVAL, 0},
                {"-1", -EINVAL, 0},
                {"+1", -EINVAL, 0},
                {" 1", -EINVAL, 0},
                {"1 ", -EINVAL, 0},
                {"1_000", -EINVAL, 0},
                {"0x10", -EINVAL, 0},
                {"\xd9\xa1", -EINVAL, 0}, /* a digit, but not one of ASCII */
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t value = 42;

                assert_int_equal(number_parse_u64(span_of_text(cases[i].text), &value), cases[i].r);
                assert_int_equal(value, cases[i].r == 0 ? cases[i].value : 42);
        }
        assert_int_equal(number_parse_u64(span_of("1\0002", 3), &(uint64_t){0}), -EINVAL);
}

static void test_parse_i64(void **state)
{
        static const struct {
                const char *text;
                int r;
                int64_t value;
        } cases[] = {
                {"-1", 0, -1},
                {"9223372036854775807", 0, INT64_MAX},
                {"9223372036854775808", -ERANGE, 0},
                {"-9223372036854775808", 0, INT64_MIN},
                {"-9223372036854775809", -ERANGE, 0},
                {"-", -EINVAL, 0},
                {"--1", -EINVAL, 0},
                {"-01", -EINVAL, 0},
                {"", -EINVAL, 0},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int64_t value = 42;

                assert_int_equal(number_parse_i64(span_of_text(cases[i].text), &value), cases[i].r);
                assert_int_equal(value, cases[i].r == 0 ? cases[i].value : 42);
        }
}

static void test_parse_scaled(void **state)
{
        static const struct {
                const char *text;
                int64_t scale;
                int r;
                int64_t value;
        } cases[] = {
                {"1.25", 1000000, 0, 1250000},
                {"5e-4", 1000000, 0, 500},
                {"5e-04", 1000000, 0, 500},
                {"1E+3", 1, 0, 1000},
                {"-2", 1000, 0, -2000},
                {"-0.5", 10, 0, -5},
                {"0", 1, 0, 0},
                {"0.000", 1, 0, 0},
                {"0e99", 1, 0, 0},
                {"1.50", 10, 0, 15},
                {"0.1", 3, -EDOM, 0}, /* 0.3 is no whole number */
                {"0.15", 10, -EDOM, 0},
                {"1e-7", 1000000, -EDOM, 0},
                {"9223372036854775807", 1, 0, INT64_MAX},
                {"9223372036854775808", 1, -ERANGE, 0},
                {"9223372036854775.807", 1000, 0, INT64_MAX},
                {"18446744073709551615", INT64_MAX, -ERANGE, 0},
                {"18446744073709551615e10", INT64_MAX, -ERANGE, 0}, /* more than 128 bits hold */
                {"1e18", 1, 0, INT64_C(1000000000000000000)},
                {"1e19", 1, -ERANGE, 0},
                {"1e101", 1, -ERANGE, 0},
                {"1e-101", 1, -ERANGE, 0},
                {"", 1, -EINVAL, 0},
                {".5", 10, -EINVAL, 0},
                {"1.", 10, -EINVAL, 0},
                {"1.e1", 10, -EINVAL, 0},
                {"01", 10, -EINVAL, 0},
                {"1,5", 10, -EINVAL, 0},
                {"+1", 10, -EINVAL, 0},
                {"1e", 10, -EINVAL, 0},
                {"1e+", 10, -EINVAL, 0},
                {"1e-", 10, -EINVAL, 0},
                {"1e1.5", 10, -EINVAL, 0},
                {"1 ", 10, -EINVAL, 0},
                {"nan", 10, -EINVAL, 0},
                {"inf", 10, -EINVAL, 0},
                {"1", 0, -EINVAL, 0},
                {"1", -1, -EINVAL, 0},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int64_t value = 42;
                int r = number_parse_scaled(span_of_text(cases[i].text), cases[i].scale, &value);

                if (r != cases[i].r || value != (r == 0 ? cases[i].value : 42))
                        fail_msg("\"%s\" times %lld: %d, %lld", cases[i].text, (long long)cases[i].scale, r,
                                 (long long)value);
        }
}

static void test_format_scaled(void **state)
{
        static const struct {
                int64_t value, scale;
                unsigned digits;
                const char *text;
        } cases[] = {
                {1250000, 1000000, 2, "1.25"},
                {1250000, 1000000, 4, "1.2500"},
                {1250000, 1000000, 1, "1.3"}, /* half away from zero */
                {-1250000, 1000000, 1, "-1.3"},
                {1249999, 1000000, 1, "1.2"},
                {1, 3, 5, "0.33333"},
                {2, 3, 0, "1"},
                {-1, 3, 0, "0"}, /* no negative zero */
                {-4, 100, 1, "0.0"},
                {999999, 1000000, 2, "1.00"},
                {0, 1, 3, "0.000"},
                {INT64_MAX, 1, 0, "9223372036854775807"},
                {INT64_MIN, 1, 0, "-9223372036854775808"},
                {INT64_MIN, 1, 18, "-9223372036854775808.000000000000000000"},
                {INT64_MAX, INT64_MAX, 18, "1.000000000000000000"},
                {1, 1, 99, "1.000000000000000000"},
        };
        char buf[48];

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_string_equal(number_format_scaled(cases[i].value, cases[i].scale, cases[i].digits, buf),
                                    cases[i].text);
}

static void test_format_ns(void **state)
{
        static const struct {
                int64_t ns;
                const char *text;
        } cases[] = {
                {0, "0 ns"},
                {842, "842 ns"},
                {999, "999 ns"},
                {1000, "1.00 us"},
                {46300, "46.3 us"},
                {99999, "100.0 us"},
                {999949, "999.9 us"},
                {999950, "1.00 ms"}, /* never "1000.0 us" */
                {22700000, "22.7 ms"},
                {30000000000, "30.0 s"},
                {999949999, "999.9 ms"},
                {999950000, "1.00 s"},
                {3600000000000, "3600 s"},
                {-46300, "-46.3 us"},
                {INT64_MIN, "-9223372037 s"},
        };
        char buf[48];

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_string_equal(number_format_ns(cases[i].ns, buf), cases[i].text);
}

static void test_ratio(void **state)
{
        static const struct {
                int64_t a, b;
                int r;
                int64_t ppm;
        } cases[] = {
                {1, 1, 0, 1000000},         {5, 4, 0, 1250000}, {2, 3, 0, 666667},
                {1, 3, 0, 333333},          {1, 2000000, 0, 1}, /* half up */
                {1, 2000001, 0, 0},         {0, 7, 0, 0},       {INT64_MAX, INT64_MAX, 0, 1000000},
                {INT64_MAX, 1, -ERANGE, 0}, {1, 0, -EDOM, 0},   {-1, 1, -EDOM, 0},
                {1, -1, -EDOM, 0},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int64_t ppm = 42;

                assert_int_equal(number_ratio_ppm(cases[i].a, cases[i].b, &ppm), cases[i].r);
                assert_int_equal(ppm, cases[i].r == 0 ? cases[i].ppm : 42);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse_u64),    cmocka_unit_test(test_parse_i64),
                cmocka_unit_test(test_parse_scaled), cmocka_unit_test(test_format_scaled),
                cmocka_unit_test(test_format_ns),    cmocka_unit_test(test_ratio),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

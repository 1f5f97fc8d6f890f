/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/macro.h"
#include "config/unit.h"
#include "tests/test.h"

static const struct {
        enum unit unit;
        const char *text;
        int64_t value;
        const char *formatted; /* NULL: as @text */
} good[] = {
        {UNIT_RATE, "500mbit", 500000000},
        {UNIT_RATE, "0", 0},
        {UNIT_RATE, "0mbit", 0, "0"},
        {UNIT_RATE, "1.5gbit", 1500000000, "1500mbit"},
        {UNIT_RATE, "1bit", 1},
        {UNIT_RATE, "2500kbit", 2500000},
        {UNIT_DURATION, "2500ms", 2500000000},
        {UNIT_DURATION, "0.5s", 500000000, "500ms"},
        {UNIT_DURATION, "90min", INT64_C(5400000000000)},
        {UNIT_DURATION, "2h", INT64_C(7200000000000)},
        {UNIT_DURATION, "-2us", -2000},
        {UNIT_DURATION, "1ns", 1},
        {UNIT_DURATION, "60s", INT64_C(60000000000), "1min"},
        {UNIT_DURATION, "9223372036854775807ns", INT64_MAX},
        {UNIT_PICOSECONDS, "8.2ns", 8200, "8200ps"},
        {UNIT_PICOSECONDS, "1ps", 1},
        {UNIT_PICOSECONDS, "2s", INT64_C(2000000000000)},
        {UNIT_BYTES, "1400B", 1400},
        {UNIT_BYTES, "1KiB", 1024},
        {UNIT_BYTES, "32MiB", 33554432},
        {UNIT_BYTES, "1.5KiB", 1536, "1536B"},
        {UNIT_PACKETS, "100p", 100},
        {UNIT_FREQUENCY, "1000/s", 1000},
        {UNIT_COUNT, "8", 8},
        {UNIT_COUNT, "-1", -1},
        {UNIT_RATIO, "1.25", 1250000},
        {UNIT_RATIO, "2.0", 2000000, "2"},
        {UNIT_RATIO, "20", 20000000},
        {UNIT_RATIO, "0.000001", 1},
        {UNIT_PROPORTION, "5e-4", 500000, "0.0005"},
        {UNIT_PROPORTION, "0.15", 150000000},
        {UNIT_PROPORTION, "1", 1000000000},
};

static const struct {
        enum unit unit;
        const char *text;
        int r;
        const char *reason;
} bad[] = {
        {UNIT_RATE, "500", -EINVAL, "\"500\" is not a rate such as 500mbit (bit, kbit, mbit, gbit)"},
        {UNIT_RATE, "500mbps", -EINVAL, "\"500mbps\" is not a rate such as 500mbit (bit, kbit, mbit, gbit)"},
        {UNIT_RATE, "500Mbit", -EINVAL, "\"500Mbit\" is not a rate such as 500mbit (bit, kbit, mbit, gbit)"},
        {UNIT_RATE, "500 mbit", -EINVAL, "\"500 mbit\" is not a rate such as 500mbit (bit, kbit, mbit, gbit)"},
        {UNIT_RATE, "mbit", -EINVAL, "\"mbit\" is not a rate such as 500mbit (bit, kbit, mbit, gbit)"},
        {UNIT_RATE, "", -EINVAL, "\"\" is not a rate such as 500mbit (bit, kbit, mbit, gbit)"},
        {UNIT_RATE, "0.0001kbit", -EDOM, "\"0.0001kbit\" is not a whole number of bits a second"},
        {UNIT_DURATION, "30", -EINVAL, "\"30\" is not a duration such as 30s (ns, us, ms, s, min, h)"},
        {UNIT_DURATION, "0.5ns", -EDOM, "\"0.5ns\" is not a whole number of nanoseconds"},
        {UNIT_DURATION, "9223372036854775808ns", -ERANGE,
         "\"9223372036854775808ns\" is too large; expected a duration such as 30s (ns, us, ms, s, min, h)"},
        {UNIT_DURATION, "1e18s", -ERANGE,
         "\"1e18s\" is too large; expected a duration such as 30s (ns, us, ms, s, min, h)"},
        {UNIT_PICOSECONDS, "0.5ps", -EDOM, "\"0.5ps\" is not a whole number of picoseconds"},
        {UNIT_PICOSECONDS, "5", -EINVAL, "\"5\" is not a duration such as 8.2ns (ps, ns, us, ms, s)"},
        {UNIT_BYTES, "1400b", -EINVAL, "\"1400b\" is not a size such as 1400B (B, KiB, MiB, GiB)"},
        {UNIT_BYTES, "1KB", -EINVAL, "\"1KB\" is not a size such as 1400B (B, KiB, MiB, GiB)"},
        {UNIT_PACKETS, "100", -EINVAL, "\"100\" is not a number of packets such as 100p"},
        {UNIT_FREQUENCY, "1000", -EINVAL, "\"1000\" is not a number a second such as 1000/s"},
        {UNIT_COUNT, "8.0", -EINVAL, "\"8.0\" is not a whole number"},
        {UNIT_COUNT, "0x8", -EINVAL, "\"0x8\" is not a whole number"},
        {UNIT_RATIO, "1,25", -EINVAL, "\"1,25\" is not a number such as 1.25"},
        {UNIT_RATIO, "0.0000001", -EDOM, "\"0.0000001\" is not a whole number of millionths"},
        {UNIT_RATIO, "nan", -EINVAL, "\"nan\" is not a number such as 1.25"},
        {UNIT_PROPORTION, "1.5", -EINVAL, "\"1.5\" is not a number from 0 to 1 such as 5e-4"},
        {UNIT_PROPORTION, "50%", -EINVAL, "\"50%\" is not a number from 0 to 1 such as 5e-4"},
};

static void test_good(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
                int64_t value = -7, again = -7;
                char buf[48];

                print_message("%s\n", good[i].text);
                assert_int_equal(unit_parse(good[i].unit, good[i].text, &value, NULL), 0);
                assert_int_equal(value, good[i].value);
                assert_string_equal(unit_format(good[i].unit, value, buf),
                                    good[i].formatted ? good[i].formatted : good[i].text);
                assert_int_equal(unit_parse(good[i].unit, buf, &again, NULL), 0);
                assert_int_equal(again, value);
        }
}

static void test_bad(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct err err = {0};
                int64_t value = -7;

                print_message("%s\n", bad[i].text);
                assert_int_equal(unit_parse(bad[i].unit, bad[i].text, &value, &err), bad[i].r);
                assert_int_equal(value, -7);
                assert_int_equal(err.kind, ERR_USAGE);
                assert_string_equal(err.text, bad[i].reason);
        }
}

/* An example that is named to people has to be one that is read. */
static void test_expected(void **state)
{
        static const char *const examples[] = {
                [UNIT_RATE] = "500mbit",    [UNIT_DURATION] = "30s",      [UNIT_BYTES] = "1400B",
                [UNIT_PACKETS] = "100p",    [UNIT_FREQUENCY] = "1000/s",  [UNIT_RATIO] = "1.25",
                [UNIT_PROPORTION] = "5e-4", [UNIT_PICOSECONDS] = "8.2ns",
        };

        for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
                int64_t value;

                if (!examples[i])
                        continue;
                assert_non_null(strstr(unit_expected((enum unit)i), examples[i]));
                assert_int_equal(unit_parse((enum unit)i, examples[i], &value, NULL), 0);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_good),
                cmocka_unit_test(test_bad),
                cmocka_unit_test(test_expected),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

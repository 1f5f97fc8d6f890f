/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/macro.h"
#include "base/number.h"
#include "stats/descriptive.h"

/* Published tables, tests/cases/reference (README.md there names the sources). None of their fields is quoted. */

#define ROWS_MAX    64
#define COLUMNS_MAX 20

struct table {
        char *data;
        size_t n_rows, n_columns;
        char *fields[ROWS_MAX][COLUMNS_MAX]; /* row 0 is the header */
};

static void table_load(struct table *t, const char *name)
{
        char path[512], *line, *rest;
        size_t len;

        *t = (struct table){0};
        snprintf(path, sizeof(path), "%s/reference/%s", getenv("ASSAY_TEST_CASES"), name);
        assert_int_equal(file_read(AT_FDCWD, path, 1 << 20, &t->data, &len, NULL), 0);
        rest = t->data;
        while ((line = strsep(&rest, "\n")) && *line) {
                size_t column = 0;
                char *field;

                while ((field = strsep(&line, ","))) {
                        assert_true(t->n_rows < ROWS_MAX && column < COLUMNS_MAX);
                        t->fields[t->n_rows][column++] = field;
                }
                if (t->n_rows == 0)
                        t->n_columns = column;
                assert_int_equal(column, t->n_columns);
                t->n_rows++;
        }
        assert_true(t->n_rows > 1);
}

static const char *table_text(const struct table *t, size_t row, const char *column)
{
        for (size_t c = 0; c < t->n_columns; c++)
                if (streq(t->fields[0][c], column))
                        return t->fields[row][c];
        fail_msg("no column %s", column);
        return NULL;
}

/* A number times 10^6, so that microseconds become picoseconds: integers, however many places were published. */
static int64_t table_number(const struct table *t, size_t row, const char *column)
{
        const char *text = table_text(t, row, column);
        char places[64];
        int64_t value;

        snprintf(places, sizeof(places), "%s", text);
        if (strchr(places, '.') && strlen(strchr(places, '.')) > 7)
                strchr(places, '.')[7] = '\0';
        assert_int_equal(number_parse_scaled(span_of_text(places), 1000000, &value), 0);
        return value;
}

static size_t table_row(const struct table *t, const char *column, const char *value)
{
        for (size_t row = 1; row < t->n_rows; row++)
                if (streq(table_text(t, row, column), value))
                        return row;
        fail_msg("no row with %s in %s", value, column);
        return 0;
}

/* rtt_p99 of a path under a load. */
static uint64_t slice_p99(const struct table *t, const char *path, const char *load)
{
        for (size_t row = 1; row < t->n_rows; row++)
                if (streq(table_text(t, row, "path"), path) && streq(table_text(t, row, "load_mbit"), load) &&
                    streq(table_text(t, row, "metric"), "rtt_p99"))
                        return (uint64_t)table_number(t, row, "value");
        fail_msg("no rtt_p99 of %s at %s", path, load);
        return 0;
}

/* H1: p99(600) / p99(0) is at most 2.0 on both paths. */
static void test_isolation(void **state)
{
        struct table t;

        table_load(&t, "slice-isolation.csv");
        assert_int_equal(descriptive_ratio_within(slice_p99(&t, "vlan", "600"), slice_p99(&t, "vlan", "0"), 2000000),
                         1);
        assert_int_equal(descriptive_ratio_within(slice_p99(&t, "s-nssai", "600"), slice_p99(&t, "s-nssai", "0"),
                                                  2000000),
                         1);
        /* the other way round of what was measured, against a margin in between: 81.9 / 89.6 is 0.914 */
        assert_int_equal(descriptive_ratio_within(slice_p99(&t, "vlan", "600"), slice_p99(&t, "vlan", "0"), 914000), 0);
        free(t.data);
}

/* H2: the S-NSSAI path's growth is at most 1.1 times the VLAN path's. */
static void test_growth(void **state)
{
        struct growth vlan, nssai;
        struct table t;

        table_load(&t, "slice-isolation.csv");
        vlan = (struct growth){slice_p99(&t, "vlan", "600"), slice_p99(&t, "vlan", "0")};
        nssai = (struct growth){slice_p99(&t, "s-nssai", "600"), slice_p99(&t, "s-nssai", "0")};
        assert_int_equal(descriptive_growth_within(nssai, vlan, 1100000), 1);
        assert_int_equal(descriptive_growth_within(nssai, vlan, 1035000), 0); /* it is 1.0356 */
        free(t.data);
}

/* H3: each factor's verdict follows from the two arms' medians and IQRs. */
static void test_packaging_factors(void **state)
{
        struct table arms, factors;
        size_t matters = 0;

        table_load(&arms, "packaging.csv");
        table_load(&factors, "packaging-factors.csv");
        for (size_t row = 1; row < factors.n_rows; row++) {
                size_t a = table_row(&arms, "arm", table_text(&factors, row, "arm_a"));
                size_t b = table_row(&arms, "arm", table_text(&factors, row, "arm_b"));
                struct spread of = {(uint64_t)table_number(&arms, a, "rtt_p50_us"),
                                    (uint64_t)table_number(&arms, a, "rtt_p50_iqr_us")};
                struct spread versus = {(uint64_t)table_number(&arms, b, "rtt_p50_us"),
                                        (uint64_t)table_number(&arms, b, "rtt_p50_iqr_us")};
                bool expected = streq(table_text(&factors, row, "verdict"), "matters");

                assert_int_equal(descriptive_delta(of, versus) == DESCRIPTIVE_MATTERS, expected);
                assert_int_equal(descriptive_delta(versus, of), descriptive_delta(of, versus));
                matters += expected;
        }
        assert_int_equal(matters, 3);
        free(arms.data);
        free(factors.data);
}

/* H4: the median under back-to-back deliveries differs by less than the baseline's IQR. */
static void test_ota(void **state)
{
        struct spread baseline, burst;
        struct table t;
        size_t row;

        table_load(&t, "ota.csv");
        row = table_row(&t, "arm", "baseline");
        baseline = (struct spread){(uint64_t)table_number(&t, row, "rtt_p50_us"),
                                   (uint64_t)table_number(&t, row, "rtt_p50_iqr_us")};
        row = table_row(&t, "arm", "ota-burst");
        burst = (struct spread){(uint64_t)table_number(&t, row, "rtt_p50_us"),
                                (uint64_t)table_number(&t, row, "rtt_p50_iqr_us")};
        assert_true(descriptive_within_spread(burst, baseline));
        baseline.iqr = 300000; /* as much as they differ: no longer less */
        assert_false(descriptive_within_spread(burst, baseline));
        free(t.data);
}

/* Each published conclusion from an interval follows from that interval. */
static void test_network_policy(void **state)
{
        size_t checked = 0;
        struct table t;

        table_load(&t, "network-policy.csv");
        for (size_t row = 1; row < t.n_rows; row++) {
                const char *conclusion = table_text(&t, row, "conclusion");

                if (!*table_text(&t, row, "ci95_low"))
                        continue;
                assert_int_equal(descriptive_interval(table_number(&t, row, "ci95_low"),
                                                      table_number(&t, row, "ci95_high")),
                                 streq(conclusion, "slower") ? DESCRIPTIVE_HIGHER : DESCRIPTIVE_NO_DIFFERENCE);
                checked++;
        }
        assert_int_equal(checked, 14);
        assert_int_equal(descriptive_interval(-2, -1), DESCRIPTIVE_LOWER);
        assert_int_equal(descriptive_interval(-2, 0), DESCRIPTIVE_NO_DIFFERENCE);
        free(t.data);
}

/* Two constant samples of unequal length are equal, and that is said: no difference, no significance. */
static void test_constant_samples(void **state)
{
        const uint64_t values[] = {5, 5, 5, 5, 5, 5, 5};
        struct spread a, b;

        assert_int_equal(quantile_spread(values, 3, &a), 0);
        assert_int_equal(quantile_spread(values, 7, &b), 0);
        assert_int_equal(descriptive_delta(a, b), DESCRIPTIVE_EQUAL);
}

static void test_refuses(void **state)
{
        assert_int_equal(descriptive_ratio_within(1, 0, 1), -EDOM);
        assert_int_equal(descriptive_growth_within((struct growth){1, 0}, (struct growth){1, 1}, 1), -EDOM);
        assert_int_equal(descriptive_growth_within((struct growth){1, 1}, (struct growth){1, 0}, 1), -EDOM);
        assert_int_equal(descriptive_growth_within((struct growth){1, 1}, (struct growth){0, 1}, 1), -EDOM);
        assert_int_equal(descriptive_growth_within((struct growth){UINT64_C(1) << 42, 1}, (struct growth){1, 1}, 1),
                         -ERANGE);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_isolation),         cmocka_unit_test(test_growth),
                cmocka_unit_test(test_packaging_factors), cmocka_unit_test(test_ota),
                cmocka_unit_test(test_network_policy),    cmocka_unit_test(test_constant_samples),
                cmocka_unit_test(test_refuses),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

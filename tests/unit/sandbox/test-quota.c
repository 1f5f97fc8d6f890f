/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/quota.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"

#define START_NS (1000 * NSEC_PER_SEC)

static struct quotas *quotas_of(struct policy_limits total, struct policy_limits per_target)
{
        const struct policy policy = {.total = total, .per_target = per_target};
        struct quotas *quotas;

        assert_int_equal(quotas_new(&policy, &quotas), 0);
        return quotas;
}

static int open_one(struct quotas *quotas, const char *target, int64_t now_ns, struct quota_flow *flow,
                    const char **why)
{
        *why = NULL;
        return quota_open(quotas, target, now_ns, flow, why);
}

static void nothing_limits_what_has_no_limits(void **state)
{
        _cleanup_quotas_ struct quotas *quotas = quotas_of((struct policy_limits){0}, (struct policy_limits){0});
        struct quota_flow flow;
        int64_t wait_ns = 1;
        const char *why;

        for (unsigned i = 0; i < 10000; i++)
                assert_int_equal(open_one(quotas, "tcp 192.0.2.1:1", START_NS, &flow, &why), 0);
        assert_int_equal(quota_chunk(quotas, &flow, 65536), 65536);
        assert_int_equal(quota_move(quotas, &flow, SIZE_MAX / 2, START_NS, &wait_ns), 0);
        assert_int_equal(wait_ns, 0);
}

static void bytes_of_the_total_and_of_each_target(void **state)
{
        _cleanup_quotas_ struct quotas *quotas =
                quotas_of((struct policy_limits){.bytes = 250}, (struct policy_limits){.bytes = 100});
        struct quota_flow a, b, c;
        const char *why;
        int64_t wait_ns;

        assert_int_equal(open_one(quotas, "a", START_NS, &a, &why), 0);
        assert_int_equal(open_one(quotas, "b", START_NS, &b, &why), 0);
        assert_int_equal(open_one(quotas, "c", START_NS, &c, &why), 0);
        assert_int_equal(quota_chunk(quotas, &a, 1000), 100);
        assert_int_equal(quota_move(quotas, &a, 100, START_NS, &wait_ns), 0);
        assert_int_equal(quota_chunk(quotas, &a, 1000), 0);
        assert_int_equal(quota_move(quotas, &a, 1, START_NS, &wait_ns), -EDQUOT);
        quota_close(quotas, &a);
        assert_int_equal(open_one(quotas, "a", START_NS, &a, &why), -EDQUOT); /* also for a flow that comes later */
        assert_string_equal(why, "limits: bytes");
        assert_int_equal(quota_move(quotas, &b, 100, START_NS, &wait_ns), 0);
        assert_int_equal(quota_chunk(quotas, &c, 1000), 49); /* 250 - 100 - 1 - 100 of the total */
}

static void flows_that_are_open(void **state)
{
        _cleanup_quotas_ struct quotas *quotas =
                quotas_of((struct policy_limits){.connections = 3}, (struct policy_limits){.connections = 2});
        struct quota_flow a[2], b[2];
        const char *why;

        assert_int_equal(open_one(quotas, "a", START_NS, &a[0], &why), 0);
        assert_int_equal(open_one(quotas, "a", START_NS, &a[1], &why), 0);
        assert_int_equal(open_one(quotas, "a", START_NS, &b[1], &why), -EDQUOT);
        assert_string_equal(why, "limits: connections");
        assert_int_equal(open_one(quotas, "b", START_NS, &b[0], &why), 0);
        assert_int_equal(open_one(quotas, "b", START_NS, &b[1], &why), -EDQUOT);
        quota_close(quotas, &a[0]);
        quota_close(quotas, &a[0]);
        assert_int_equal(open_one(quotas, "b", START_NS, &b[1], &why), 0);
}

static void flows_that_are_opened_a_second(void **state)
{
        _cleanup_quotas_ struct quotas *quotas =
                quotas_of((struct policy_limits){.new_connections_hz = 50}, (struct policy_limits){0});
        struct quota_flow flow;
        const char *why;
        unsigned n = 0;

        /* tried every millisecond for ten seconds: what the rate gives, and at most a tenth of a second's at once */
        for (int64_t ms = 0; ms < 10000; ms++)
                n += open_one(quotas, "a", START_NS + ms * NSEC_PER_MSEC, &flow, &why) == 0;
        assert_in_range(n, 499, 505);
        assert_string_equal(why, "limits: new-connections");
}

static void bytes_a_second(void **state)
{
        _cleanup_quotas_ struct quotas *quotas =
                quotas_of((struct policy_limits){0}, (struct policy_limits){.rate_bps = 800000});
        int64_t now_ns = START_NS, wait_ns;
        struct quota_flow flow;
        uint64_t moved = 0;
        const char *why;

        assert_int_equal(open_one(quotas, "a", START_NS, &flow, &why), 0);
        while (now_ns < START_NS + 10 * NSEC_PER_SEC) {
                size_t len = quota_chunk(quotas, &flow, 1 << 20);

                assert_in_range(len, 1, 10000); /* a tenth of 100,000 bytes a second */
                assert_int_equal(quota_move(quotas, &flow, len, now_ns, &wait_ns), 0);
                moved += len;
                now_ns += wait_ns + 1;
        }
        assert_in_range(moved, 1000000, 1020000);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_limits_what_has_no_limits),
                cmocka_unit_test(bytes_of_the_total_and_of_each_target),
                cmocka_unit_test(flows_that_are_open),
                cmocka_unit_test(flows_that_are_opened_a_second),
                cmocka_unit_test(bytes_a_second),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "sys/kernel-verifier.h"

/* Logs as kernels write them. */
static void test_time_of_log(void **state)
{
        static const struct {
                const char *log;
                int r;
                int64_t time_ns;
        } cases[] = {
                {"verification time 43 usec\nstack depth 8\nprocessed 12 insns (limit 131072)\n", 0, 43000},
                {"func#0 @0\n0: R1=ctx() R10=fp0\nverification time 0 usec\n", 0, 0},
                {"verification time 9223372036854775 usec", 0, INT64_C(9223372036854775000)},
                {"verification time 9223372036854776 usec", -ENODATA, -7},
                {"verification time 43 msec\n", -ENODATA, -7},
                {"verification time usec\n", -ENODATA, -7},
                {"verification time -1 usec\n", -ENODATA, -7},
                {"verification time 43", -ENODATA, -7},
                {"processed 2 insns (limit 1000000)\n", -ENODATA, -7},
                {"", -ENODATA, -7},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int64_t time_ns = -7;

                assert_int_equal(kernel_verifier_time_of_log(cases[i].log, &time_ns), cases[i].r);
                assert_int_equal(time_ns, cases[i].time_ns);
        }
}

/* Whatever this host allows: a time, or the reason by name. */
static void test_measure(void **state)
{
        static const uint8_t reads_r3[]
                __attribute__((aligned(8))) = {0xbf, 0x30, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0};
        struct err err = {0};
        int64_t time_ns = -1;
        int r = kernel_verifier_missing(&err);

        if (r < 0) {
                assert_int_equal(r, -EOPNOTSUPP);
                assert_int_equal(err.kind, ERR_UNSUPPORTED);
                assert_non_null(strstr(err.text, "the kernel's verifier"));
                return;
        }
        assert_int_equal(kernel_verifier_measure(span_of(reads_r3, sizeof(reads_r3)), &time_ns, &err), -EINVAL);
        assert_int_equal(err.kind, ERR_ENVIRONMENT);
        assert_int_equal(time_ns, -1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_time_of_log),
                cmocka_unit_test(test_measure),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

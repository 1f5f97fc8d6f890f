/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/denial.h"

#include "base/clock.h"
#include "base/log.h"
#include "tests/test.h"

static struct denials *new_denials(void)
{
        struct denials *denials;
        struct err err = {0};

        assert_int_equal(denials_new(&denials, &err), 0);
        return denials;
}

static void the_same_is_told_once_a_second(void **state)
{
        struct denials *d = new_denials();

        assert_true(denials_admit(d, "tcp 192.0.2.1:80", 5 * NSEC_PER_SEC));
        assert_false(denials_admit(d, "tcp 192.0.2.1:80", 5 * NSEC_PER_SEC));
        assert_true(denials_admit(d, "tcp 192.0.2.1:81", 5 * NSEC_PER_SEC));
        assert_false(denials_admit(d, "tcp 192.0.2.1:80", 6 * NSEC_PER_SEC - 1));
        assert_true(denials_admit(d, "tcp 192.0.2.1:80", 6 * NSEC_PER_SEC));
        denials_free(d);
}

static void a_flood_is_cut_at_a_hundred_a_second(void **state)
{
        struct denials *d = new_denials();
        unsigned n_told = 0;
        char target[32];

        for (int i = 0; i < 1000; i++) {
                snprintf(target, sizeof(target), "tcp 192.0.2.1:%d", i);
                n_told += denials_admit(d, target, 9 * NSEC_PER_SEC + i);
        }
        assert_int_equal(n_told, 100);
        assert_true(denials_admit(d, "tcp 192.0.2.2:1", 10 * NSEC_PER_SEC));
        denials_free(d);
}

static char told[256];

static void keep(enum log_level level, const char *text, void *userdata)
{
        snprintf(told, sizeof(told), "%s", text);
}

static void outside_bytes_do_not_reach_the_terminal(void **state)
{
        struct sandbox sandbox = {.denials = new_denials()};

        log_set_sink(keep, LOG_INFO, NULL);
        sandbox_denied(&sandbox, "name \033]0;x\007.example", "default deny, policy.yaml:3", NULL);
        assert_string_equal(told, "assay: denied name \\x1b]0;x\\x07.example (rule: default deny, policy.yaml:3)");
        sandbox.is_raw = true;
        sandbox_denied(&sandbox, "udp 192.0.2.1:53", "deny-all", NULL);
        assert_string_equal(told, "\rassay: denied udp 192.0.2.1:53 (rule: deny-all)\r");
        sandbox.is_proving = true;
        told[0] = '\0';
        sandbox_denied(&sandbox, "udp 192.0.2.1:54", "deny-all", NULL);
        assert_string_equal(told, "");
        log_set_sink(NULL, LOG_ERROR, NULL);
        denials_free(sandbox.denials);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_same_is_told_once_a_second),
                cmocka_unit_test(a_flood_is_cut_at_a_hundred_a_second),
                cmocka_unit_test(outside_bytes_do_not_reach_the_terminal),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

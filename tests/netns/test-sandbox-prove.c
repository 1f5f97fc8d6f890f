/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/stat.h>

#include "sandbox/policy.h"
#include "sandbox/sandbox.h"
#include "support.h"

/* What claims to enforce, and does not: the prober has to find it out before the command runs. */

static int always_able(const struct policy *policy, struct err *err)
{
        return 1;
}

static int run(const struct enforcer_ops *enforcer, char *const *argv, struct err *err)
{
        _cleanup_policy_ struct policy *policy = policy_new_deny_all();
        const struct sandbox_options options = {.policy = policy,
                                                .enforcer = enforcer,
                                                .proves_always = true,
                                                .argv = argv};

        assert_non_null(policy);
        return sandbox_run(&options, err);
}

static void the_hosts_network_is_found_open(void **state)
{
        const struct enforcer_ops open = {.name = "open",
                                          .strength = STRENGTH_ENFORCED,
                                          .shares_network = true,
                                          .able = always_able};
        char *const argv[] = {(char *)"sh", (char *)"-c", (char *)"exit 42", NULL};
        struct err err = {0};

        assert_int_equal(run(&open, argv, &err), -EPERM);
        assert_int_equal(err.kind, ERR_ENVIRONMENT);
        assert_non_null(strstr(err.text, "tcp to "));
        assert_non_null(strstr(err.text, "gets out; the command was not run"));
}

static void an_empty_namespace_is_found_closed(void **state)
{
        const struct enforcer_ops closed = {.name = "closed", .strength = STRENGTH_ENFORCED, .able = always_able};
        char *const argv[] = {(char *)"sh", (char *)"-c", (char *)"exit 42", NULL};
        struct err err = {0};
        int r = run(&closed, argv, &err);

        if (r < 0)
                print_error("%s\n", err.text);
        assert_int_equal(r, 42);
}

/* An address of the host that the command reaches only if it is in the host's network. */
static int sets_control(struct sandbox *sandbox, struct err *err)
{
        return ip_prefix_parse("127.0.0.1", &sandbox->control);
}

static int n_exposed;

static int exposes(struct sandbox *sandbox, const struct ip_prefix *address, uint16_t port, bool is_open,
                   struct err *err)
{
        assert_int_not_equal(port, 0);
        n_exposed += is_open;
        return 0;
}

static void what_is_let_out_has_to_arrive(void **state)
{
        const struct enforcer_ops mute = {.name = "mute",
                                          .strength = STRENGTH_ENFORCED,
                                          .able = always_able,
                                          .up = sets_control,
                                          .expose = exposes};
        char *const argv[] = {(char *)"true", NULL};
        struct err err = {0};

        assert_int_equal(run(&mute, argv, &err), -ETIMEDOUT);
        assert_non_null(strstr(err.text, "the enforcer mute has to let out does not arrive"));
        assert_int_equal(n_exposed, 1);
}

/* With a marker that arrives, what arrives before it is still found. */
static void an_opening_is_found_with_a_marker_too(void **state)
{
        const struct enforcer_ops open = {.name = "open",
                                          .strength = STRENGTH_ENFORCED,
                                          .shares_network = true,
                                          .able = always_able,
                                          .up = sets_control,
                                          .expose = exposes};
        char *const argv[] = {(char *)"true", NULL};
        struct err err = {0};

        assert_int_equal(run(&open, argv, &err), -EPERM);
        assert_non_null(strstr(err.text, "gets out"));
}

static int fails_inside(struct sandbox *sandbox, struct err *err)
{
        return err_set(err, ERR_ENVIRONMENT, ENODEV, "there is no way in");
}

static int fails_up(struct sandbox *sandbox, struct err *err)
{
        return err_set(err, ERR_ENVIRONMENT, EBUSY, "there is no way up");
}

static int n_downs;

static int counts_downs(struct sandbox *sandbox, struct err *err)
{
        n_downs++;
        return 0;
}

static void a_failure_of_the_enforcer_ends_the_run_and_it_is_taken_down(void **state)
{
        const struct enforcer_ops inside = {.name = "inside",
                                            .strength = STRENGTH_ENFORCED,
                                            .able = always_able,
                                            .inside = fails_inside,
                                            .down = counts_downs};
        const struct enforcer_ops up = {
                .name = "up", .strength = STRENGTH_ENFORCED, .able = always_able, .up = fails_up, .down = counts_downs};
        char *const argv[] = {(char *)"true", NULL};
        struct err err = {0};

        assert_int_equal(run(&inside, argv, &err), -ENODEV);
        assert_string_equal(err.text, "there is no way in");
        assert_int_equal(run(&up, argv, &err), -EBUSY);
        assert_string_equal(err.text, "there is no way up");
        assert_int_equal(n_downs, 2);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_hosts_network_is_found_open),
                cmocka_unit_test(an_empty_namespace_is_found_closed),
                cmocka_unit_test(what_is_let_out_has_to_arrive),
                cmocka_unit_test(an_opening_is_found_with_a_marker_too),
                cmocka_unit_test(a_failure_of_the_enforcer_ends_the_run_and_it_is_taken_down),
        };
        struct stat st;
        struct err err = {0};

        /* a closed standard descriptor, or a kind that is not handed on, would be the command's fault */
        for (int fd = 0; fd < 3; fd++)
                if (fstat(fd, &st) < 0)
                        open("/dev/null", O_RDWR);
        if (can_make_netns(&err) < 0)
                return test_skip("netns", err.text);
        return cmocka_run_group_tests(tests, NULL, NULL);
}

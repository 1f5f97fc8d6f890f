/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <signal.h>
#include <sys/prctl.h>

#include "sys/capability.h"
#include "sys/child.h"
#include "sys/userns.h"

#define NOBODY 65534

/* What is tried leaves no link, no namespace entered, no changed scheduling. */
static void all_can_be_asked_for(void **state)
{
        _cleanup_netns_ struct netns before = NETNS_INIT, after = NETNS_INIT;
        uint64_t a, b;
        struct err err = {0};
        int policy = sched_getscheduler(0);

        assert_ok(netns_open_self(&before, &err));
        for (size_t i = 0; i < capability_count(); i++) {
                struct capability c;
                int r;

                assert_int_equal(capability_detect(capability_name(i), &c), 0);
                print_message("%-12s %s %s\n", c.name, c.is_present ? "yes" : "no", c.detail);
                assert_string_equal(c.name, capability_name(i));
                assert_int_equal(c.is_present, c.detail[0] == '\0');
                r = capability_require(c.name, &err);
                assert_int_equal(r, c.is_present ? 0 : -EOPNOTSUPP);
                if (r == 0)
                        continue;
                assert_int_equal(err.kind, ERR_UNSUPPORTED);
                assert_non_null(strstr(err.text, c.name));
                assert_non_null(strstr(err.text, c.detail));
                assert_non_null(strstr(err.text, c.remedy));
        }
        assert_ok(netns_open_self(&after, &err));
        assert_int_equal(netns_inode(&before, &a), 0);
        assert_int_equal(netns_inode(&after, &b), 0);
        assert_int_equal(a, b);
        assert_int_equal(sched_getscheduler(0), policy);
}

static void unknown_names_are_refused(void **state)
{
        struct capability c;
        struct err err = {0};

        assert_int_equal(capability_detect("wings", &c), -ENOENT);
        assert_int_equal(capability_require("wings", &err), -ENOENT);
        assert_null(capability_name(capability_count()));
}

/* As an ordinary user where the test runs as root, so that nothing works by the right to everything. */
static int become_root_of_a_namespace(struct child_side *side, void *userdata)
{
        _cleanup_netns_ struct netns ns = NETNS_INIT;
        struct link_end a = {.name = "a"}, b = {.name = "b"};
        _cleanup_netlink_ struct netlink *nl = NULL;
        struct err err = {0};
        int signal = 0;

        if (geteuid() == 0 && *(int *)userdata) {
                if ((setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0) &&
                    errno != EINVAL) /* root of a user namespace that has no other user is ordinary enough */
                        return 1;
                prctl(PR_SET_DUMPABLE, 1); /* or /proc/self would not belong to the new user */
                prctl(PR_SET_PDEATHSIG, SIGKILL);
        }
        if (userns_enter(&err) < 0)
                return child_failed(side, &err);
        prctl(PR_GET_PDEATHSIG, &signal);
        if (geteuid() != 0 || getegid() != 0 || signal != SIGKILL)
                return 2;
        if (netns_new(&ns, &err) < 0 || netlink_open(&ns, &nl, &err) < 0 || link_add_veth(nl, &a, &b, NULL, &err) < 0)
                return child_failed(side, &err);
        return child_ready(side) < 0 ? 3 : 0;
}

static void ordinary_user_builds_links(void **state)
{
        for (int ordinary = 0; ordinary < 2; ordinary++) {
                _cleanup_child_ struct child child = CHILD_INIT;
                struct child_options options = {.name = "user"};
                struct child_status status;
                struct capability userns;
                struct err err = {0};

                assert_int_equal(capability_detect("userns", &userns), 0);
                if (!userns.is_present)
                        skip();
                assert_ok(child_start(&options, become_root_of_a_namespace, &ordinary, &child, &err));
                assert_ok(child_wait_ready(&child, LONG_NS, &err));
                assert_int_equal(child_wait(&child, LONG_NS, &status), 0);
                assert_int_equal(status.exit_code, 0);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(all_can_be_asked_for),
                cmocka_unit_test(unknown_names_are_refused),
                cmocka_unit_test(ordinary_user_builds_links),
        };

        for (size_t i = 0; i < capability_count(); i++) {
                struct capability c;

                assert_int_equal(capability_detect(capability_name(i), &c), 0);
                if (!c.is_present && test_must_run(c.name))
                        return test_skip(c.name, c.detail);
        }
        return cmocka_run_group_tests_name("capability", tests, NULL, NULL);
}

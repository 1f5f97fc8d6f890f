/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/sched.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/macro.h"

static void test_cpus(void **state)
{
        int cpus[1024], n = sched_cpus(cpus, ARRAY_SIZE(cpus)), one = -1;

        assert_true(n >= 1);
        for (int i = 1; i < n && i < (int)ARRAY_SIZE(cpus); i++)
                assert_true(cpus[i] > cpus[i - 1]);
        assert_int_equal(sched_cpus(&one, 1), n); /* the number does not depend on the room */
        assert_int_equal(one, cpus[0]);
}

/* In a child, since it changes the process. The exit status counts what is wrong. */
static int apply_in_child(void)
{
        struct sched_request request = {.cpu = SCHED_CPU_ANY, .fifo_priority = 1, .precise_timers = true};
        struct sched_grant grant;
        int n, fifo = sched_is_fifo_possible(), policy, faults = 0;

        faults += sched_getscheduler(0) != SCHED_OTHER; /* the try was undone */
        if (sched_cpus(&request.cpu, 1) < 1)
                return 100;
        sched_apply(&request, &grant);
        n = sched_cpus(&(int){0}, 1);
        policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

        faults += grant.cpu_errno != 0 || n != 1 || sched_getcpu() != request.cpu;
        faults += grant.timer_errno != 0;
        faults += policy != (grant.fifo_errno == 0 ? SCHED_FIFO : SCHED_OTHER);
        faults += (fifo == 0) != (grant.fifo_errno == 0);
        return faults;
}

static void expect_no_fault(int (*fn)(void))
{
        pid_t pid = fork();
        int status;

        assert_true(pid >= 0);
        if (pid == 0)
                _exit(fn());
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_apply(void **state)
{
        expect_no_fault(apply_in_child);
}

/* Nothing asked, nothing changed, nothing refused. */
static void test_apply_nothing(void **state)
{
        struct sched_request request = {.cpu = SCHED_CPU_ANY};
        struct sched_grant grant;
        int before = sched_cpus(NULL, 0);

        sched_apply(&request, &grant);
        assert_int_equal(grant.cpu_errno, 0);
        assert_int_equal(grant.fifo_errno, 0);
        assert_int_equal(grant.memory_errno, 0);
        assert_int_equal(grant.timer_errno, 0);
        assert_int_equal(sched_cpus(NULL, 0), before);
}

static void test_refusal_is_recorded(void **state)
{
        struct sched_request request = {.cpu = 8191}; /* a CPU that no machine of today has */
        struct sched_grant grant;
        int before = sched_cpus(NULL, 0);
        _cleanup_json_ json_t *json = NULL;

        sched_apply(&request, &grant);
        assert_int_equal(grant.cpu_errno, EINVAL);
        assert_int_equal(sched_cpus(NULL, 0), before);

        json = sched_grant_json(&grant);
        assert_non_null(json);
        assert_true(json_is_null(json_object_get(json, "cpu")));
        assert_string_equal(json_string_value(json_object_get(json_object_get(json, "refused"), "cpu")), "EINVAL");
}

/* The nice value of the caller's session; 100 where the kernel does not group by session. */
static int session_nice(void)
{
        _cleanup_free_ char *text = NULL;
        const char *nice;
        size_t len;

        if (file_read(AT_FDCWD, "/proc/self/autogroup", 256, &text, &len, NULL) < 0)
                return 100;
        nice = strstr(text, " nice ");
        return nice ? atoi(nice + 6) : 101;
}

static int ask_nice(int nice, struct sched_grant *ret)
{
        const struct sched_request request = {.cpu = SCHED_CPU_ANY, .nice = nice};

        sched_apply(&request, ret);
        return ret->nice_errno;
}

/* Values that nobody is refused, also under nice(1), in a session of its own and in one that it does not lead. */
static int be_nice(void)
{
        struct sched_grant grant;
        int before = session_nice(), faults = 0;

        faults += ask_nice(18, &grant) != 0 || getpriority(PRIO_PROCESS, 0) != 18;
        faults += session_nice() != before;
        if (setsid() < 0)
                return 100;
        faults += ask_nice(19, &grant) != 0 || getpriority(PRIO_PROCESS, 0) != 19;
        faults += before < 100 && session_nice() != 19;
        if ((geteuid() == 0 && setresuid(65534, 65534, 65534) < 0) || prctl(PR_SET_DUMPABLE, 1) < 0)
                return 100;
        for (int i = 0; i < 3; i++) /* so often the kernel lets only root set a session's */
                faults += ask_nice(19, &grant) != 0;
        return faults;
}

/* Without the right to be less nice. */
static int be_refused(void)
{
        const struct rlimit none = {0};
        _cleanup_json_ json_t *json = NULL;
        struct sched_grant grant;
        int before = getpriority(PRIO_PROCESS, 0), faults = 0;

        if (setsid() < 0 || setrlimit(RLIMIT_NICE, &none) < 0 || (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0))
                return 100;
        faults += ask_nice(-5, &grant) != EACCES || getpriority(PRIO_PROCESS, 0) != before;
        json = sched_grant_json(&grant);
        if (!json)
                return 101;
        faults += !json_is_null(json_object_get(json, "nice"));
        faults += !json_string_value(json_object_get(json_object_get(json, "refused"), "nice"));
        return faults;
}

static void test_nice(void **state)
{
        expect_no_fault(be_nice);
        expect_no_fault(be_refused);
}

static void test_json(void **state)
{
        struct sched_grant grant = {
                .request = {.cpu = 0, .fifo_priority = 50, .nice = -20, .lock_memory = true, .precise_timers = true},
                .fifo_errno = EPERM,
        };
        _cleanup_json_ json_t *json = sched_grant_json(&grant);
        _cleanup_free_ char *text = NULL;

        assert_non_null(json);
        text = json_format_line(json);
        assert_non_null(text);
        assert_string_equal(text, "{\"cpu\":0,\"fifo_priority\":null,\"memory_locked\":true,\"nice\":-20,"
                                  "\"refused\":{\"fifo_priority\":\"EPERM\"},\"timer_slack_ns\":1}");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cpus),          cmocka_unit_test(test_apply),
                cmocka_unit_test(test_apply_nothing), cmocka_unit_test(test_refusal_is_recorded),
                cmocka_unit_test(test_nice),          cmocka_unit_test(test_json),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/text.h"
#include "base/version.h"
#include "sys/host-internal.h"
#include "tests/fault.h"
#include "tests/test.h"

/* A host of files. */
static const struct {
        const char *path, *text;
} files[] = {
        {"proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n"
                         "model name\t: Intel(R) Xeon(R)\tGold\nmicrocode\t: 0x5003303\ncpu MHz\t\t: 2596.122\n\n"
                         "processor\t: 1\nmodel name\t: another\n"},
        {"proc/meminfo", "MemTotal:       24576000 kB\nMemFree:  1024 kB\nMemAvailable: 2048 kB\nSwapTotal: 0 kB\n"},
        {"proc/cmdline", "root=/dev/secret mitigations=off quiet isolcpus=1,2 nosmt audit=0 -- idle=late7\n"},
        {"proc/loadavg", "0.22 1.05 12.00 3/456 7890\n"},
        {"proc/uptime", "1234.56 9999.00\n"},
        {"proc/stat", "cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1 2 3\nintr 777 1 2\nctxt 888\nprocesses 999\n"},
        {"proc/self/status", "Name:\tx\nSeccomp:\t2\nCapEff:\t000001ffffffffff\nCpus_allowed_list:\t0-1\n"},
        {"proc/sys/net/core/default_qdisc", "fq_codel\n"},
        {"proc/sys/net/core/netdev_rss_key", "aa:bb:cc\n"},
        {"proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"},
        {"proc/sys/net/ipv4/tcp_fastopen_key", "secret\n"},
        {"proc/sys/net/ipv4/fib_multipath_hash_seed", "5\n"},
        {"proc/sys/net/ipv4/conf/eth0/forwarding", "1\n"},
        {"proc/sys/kernel/hostname", "alice-laptop\n"},
        {"proc/sys/kernel/sched_rt_runtime_us", "950000\n"},
        {"proc/sys/kernel/random/boot_id", "01234567-89ab-cdef-0123-456789abcdef\n"},
        {"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"},
        {"sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2900000\n"},
        {"sys/devices/system/cpu/smt/control", "off\n"},
        {"sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n"},
        {"sys/devices/system/cpu/vulnerabilities/l1tf", "Not affected\n"},
        {"sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"},
        {"sys/class/thermal/thermal_zone0/temp", "45000\n"},
        {"sys/class/thermal/cooling_device0/temp", "1\n"},
        {"sys/kernel/debug/sched/preempt", "none voluntary (full)\n"},
        {"sys/kernel/debug/sched/fair_server/cpu0/runtime", "50000000\n"},
        {"sys/kernel/debug/sched/fair_server/cpu0/period", "1000000000\n"},
        {"sys/fs/cgroup/cpu/cpu.rt_runtime_us", "-1\n"},
        {"sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"},
        {"etc/os-release", "PRETTY_NAME=\"x\"\nID=debian\nVERSION_ID=\"12\"\nNOISE\n"},
};

static void make_folders(int dirfd, const char *path)
{
        _cleanup_free_ char *copy = strdup(path);

        for (char *slash = copy; (slash = strchr(slash, '/')); slash++) {
                *slash = '\0';
                if (mkdirat(dirfd, copy, 0755) < 0)
                        assert_int_equal(errno, EEXIST);
                *slash = '/';
        }
}

static void make_host(const struct scratch *scratch)
{
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                make_folders(scratch->fd, files[i].path);
                scratch_write(scratch, files[i].path, files[i].text);
        }
}

/* The member of @object at "a/b"; NULL if there is none. */
static json_t *at(json_t *object, const char *path)
{
        size_t len = strcspn(path, "/");
        _cleanup_free_ char *key = strndup(path, len);
        json_t *value = json_object_get(object, key);

        return path[len] == '\0' ? value : at(value, path + len + 1);
}

static void has_string(json_t *object, const char *path, const char *expected)
{
        if (!json_is_string(at(object, path)))
                fail_msg("%s is not a string", path);
        assert_string_equal(json_string_value(at(object, path)), expected);
}

static void has_integer(json_t *object, const char *path, int64_t expected)
{
        if (!json_is_integer(at(object, path)))
                fail_msg("%s is not an integer", path);
        assert_int_equal(json_integer_value(at(object, path)), expected);
}

static void test_stable_facts(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_json_ json_t *stable = NULL, *fleeting = NULL;

        make_host(&scratch);
        assert_int_equal(host_describe_at(scratch.fd, &stable, &fleeting, NULL), 0);
        has_string(stable, "cpu/vendor", "GenuineIntel");
        has_string(stable, "cpu/model", "85");
        has_string(stable, "cpu/model_name", "Intel(R) Xeon(R) Gold");
        has_string(stable, "cpu/microcode", "0x5003303");
        has_string(stable, "cpu/governor/0", "performance");
        has_string(stable, "cpu/smt", "off");
        has_string(stable, "cpu/vulnerabilities/meltdown", "Mitigation: PTI");
        has_string(stable, "clock/source", "tsc");
        has_integer(stable, "memory/total_bytes", INT64_C(24576000) * 1024);
        has_integer(stable, "memory/swap_bytes", 0);
        has_string(stable, "memory/transparent_hugepages", "always [madvise] never");
        has_string(stable, "sysctl/net.core.default_qdisc", "fq_codel");
        has_string(stable, "sysctl/net.ipv4.tcp_rmem", "4096 131072 6291456");
        has_string(stable, "sysctl/kernel.sched_rt_runtime_us", "950000");
        has_string(stable, "scheduler/preemption", "none voluntary (full)");
        has_integer(stable, "scheduler/fair_server_runtime_ns/0", 50000000);
        has_integer(stable, "scheduler/fair_server_period_ns/0", 1000000000);
        has_integer(stable, "scheduler/group_rt_runtime_us", -1);
        has_string(stable, "process/capabilities", "000001ffffffffff");
        has_string(stable, "process/cpus_allowed", "0-1");
        has_string(stable, "os/id", "debian");
        has_string(stable, "os/version", "12");
        has_string(stable, "tool/version", version_number());
}

static void test_volatile_facts(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_json_ json_t *stable = NULL, *fleeting = NULL;

        make_host(&scratch);
        assert_int_equal(host_describe_at(scratch.fd, &stable, &fleeting, NULL), 0);
        has_integer(fleeting, "load_1min_centi", 22);
        has_integer(fleeting, "load_5min_centi", 105);
        has_integer(fleeting, "load_15min_centi", 1200);
        has_integer(fleeting, "threads_runnable", 3);
        has_integer(fleeting, "threads", 456);
        has_integer(fleeting, "uptime_ms", 1234560);
        has_integer(fleeting, "processor_time/steal", 80);
        has_integer(fleeting, "interrupts", 777);
        has_integer(fleeting, "context_switches", 888);
        has_integer(fleeting, "forks", 999);
        has_integer(fleeting, "memory_available_bytes", 2048 * 1024);
        has_integer(fleeting, "frequency_khz/0", 2900000);
        has_string(fleeting, "processor_mhz", "2596.122");
        has_integer(fleeting, "temperatures_millidegrees/thermal_zone0", 45000);
        assert_int_equal(json_object_size(at(fleeting, "temperatures_millidegrees")), 1);
}

/* Parameters that are not on the list, what follows "--", keys, names and addresses stay out. */
static void test_nothing_that_identifies(void **state)
{
        static const char *const secrets[] = {"secret", "quiet", "alice", "aa:bb", "eth0", "late7", "hash_seed"};
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_json_ json_t *stable = NULL, *fleeting = NULL;
        _cleanup_free_ char *text = NULL, *more = NULL;
        struct utsname name;

        make_host(&scratch);
        assert_int_equal(host_describe_at(scratch.fd, &stable, &fleeting, NULL), 0);
        has_string(stable, "kernel/parameters/mitigations", "off");
        has_string(stable, "kernel/parameters/isolcpus", "1,2");
        has_string(stable, "kernel/parameters/nosmt", "");
        has_string(stable, "kernel/parameters/audit", "0");
        assert_int_equal(json_object_size(at(stable, "kernel/parameters")), 4);
        text = json_format(stable);
        more = json_format(fleeting);
        assert_non_null(text);
        assert_non_null(more);
        for (size_t i = 0; i < ARRAY_SIZE(secrets); i++) {
                assert_null(strstr(text, secrets[i]));
                assert_null(strstr(more, secrets[i]));
        }
        assert_int_equal(uname(&name), 0);
        if (strlen(name.nodename) > 3 && !streq(name.nodename, "localhost"))
                assert_null(strstr(text, name.nodename));
}

static void is_null(json_t *value, const char *path)
{
        const char *key;
        json_t *member;

        json_object_foreach(value, key, member)
        {
                _cleanup_free_ char *below = text_format("%s/%s", path, key);

                is_null(member, below);
        }
        if (!json_is_object(value) && !json_is_null(value))
                fail_msg("%s has a value although no file tells it", path);
}

/* Without any file, what comes from files is null, and nothing is made up. */
static void test_unknown_is_null(void **state)
{
        static const char *const sections[] = {"memory", "scheduler", "sysctl", "os"};
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_json_ json_t *stable = NULL, *fleeting = NULL;

        assert_int_equal(host_describe_at(scratch.fd, &stable, &fleeting, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
                assert_true(json_object_size(at(stable, sections[i])) > 0);
                is_null(at(stable, sections[i]), sections[i]);
        }
        assert_true(json_is_null(at(stable, "kernel/parameters")));
        assert_true(json_is_null(at(stable, "cpu/governor")));
        assert_true(json_is_null(at(stable, "cpu/vulnerabilities")));
        assert_true(json_is_null(at(stable, "cpu/model_name")));
        assert_true(json_is_null(at(stable, "clock/source")));
        assert_true(json_is_null(at(fleeting, "uptime_ms")));
        assert_true(json_is_null(at(fleeting, "threads")));
        assert_true(json_is_null(at(fleeting, "processor_time/steal")));
        assert_true(json_is_null(at(fleeting, "temperatures_millidegrees")));
}

/* Of this host, what system calls tell; described twice, the stable part is the same bytes. */
static void test_this_host(void **state)
{
        _cleanup_json_ json_t *stable = NULL, *fleeting = NULL, *again = NULL, *later = NULL;
        _cleanup_free_ char *first = NULL, *second = NULL;
        struct utsname name;

        assert_int_equal(uname(&name), 0);
        assert_int_equal(host_describe(&stable, &fleeting, NULL), 0);
        assert_int_equal(host_describe(&again, &later, NULL), 0);
        has_string(stable, "kernel/release", name.release);
        has_string(stable, "kernel/architecture", name.machine);
        has_integer(stable, "cpu/n_online", sysconf(_SC_NPROCESSORS_ONLN));
        assert_true(json_integer_value(at(stable, "clock/tick_ns")) > 0);
        first = json_format(stable);
        second = json_format(again);
        assert_non_null(first);
        assert_string_equal(first, second);
}

static void test_under_faults(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();

        make_host(&scratch);
        for (unsigned n = 1;; n++) {
                _cleanup_json_ json_t *stable = NULL, *fleeting = NULL;
                int r;

                fault_arm(FAULT_ALLOCATION, n);
                r = host_describe_at(scratch.fd, &stable, &fleeting, NULL);
                if (!fault_disarm()) {
                        assert_int_equal(r, 0);
                        assert_true(n > 100);
                        break;
                }
                assert_true(r == 0 || r == -ENOMEM);
                assert_int_equal(r == 0, stable && fleeting);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_stable_facts),
                cmocka_unit_test(test_volatile_facts),
                cmocka_unit_test(test_nothing_that_identifies),
                cmocka_unit_test(test_unknown_is_null),
                cmocka_unit_test(test_this_host),
                cmocka_unit_test(test_under_faults),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "base/version.h"
#include "sys/host-internal.h"

#define FACT_BYTES_MAX ((size_t)1024 * 1024)

void facts_put(struct facts *facts, const char *key, json_t *value)
{
        if (json_object_set_new(facts->object, key, value) < 0)
                facts->failed = true;
}

struct facts facts_section(struct facts *facts, const char *key)
{
        struct facts section = {.root = facts->root, .object = json_object()};

        if (!section.object || json_object_set(facts->object, key, section.object) < 0)
                facts->failed = true;
        return section;
}

void facts_close(struct facts *facts, const struct facts *section)
{
        facts->failed |= section->failed;
        json_decref(section->object);
}

char *fact_text(int root, const char *path)
{
        char *data = NULL;
        size_t len;

        return file_read(root, path, FACT_BYTES_MAX, &data, &len, NULL) == 0 ? data : NULL;
}

/* @len bytes as a string without blanks at its ends; null where nothing is left. What is not text is made visible. */
static json_t *string_of(const char *s, size_t len)
{
        _cleanup_text_ struct text text = {0};

        while (len > 0 && strchr(" \t\n", s[len - 1]))
                len--;
        while (len > 0 && strchr(" \t", *s)) {
                s++;
                len--;
        }
        if (len == 0)
                return json_null();
        for (size_t i = 0; i < len; i++) {
                size_t run = 0;

                while (i + run < len && s[i + run] != '\t' && s[i + run] != '\n')
                        run++;
                text_add_visible(&text, s + i, run);
                i += run;
                text_add(&text, i < len ? " " : "");
        }
        return text.failed ? NULL : json_stringn(text.data, text.len);
}

json_t *fact_string(int root, const char *path)
{
        _cleanup_free_ char *text = fact_text(root, path);

        return text ? string_of(text, strlen(text)) : json_null();
}

json_t *fact_integer(int root, const char *path)
{
        _cleanup_free_ char *text = fact_text(root, path);
        int64_t value;

        if (!text || number_parse_i64(span_of(text, strcspn(text, "\n")), &value) < 0)
                return json_null();
        return json_integer(value);
}

json_t *fact_field(const char *text, const char *name)
{
        size_t len = strlen(name);

        while (text && *text) {
                size_t line = strcspn(text, "\n");

                if (line > len && strncmp(text, name, len) == 0 && strchr(" \t:", text[len])) {
                        const char *value = text + len + strspn(text + len, " \t");

                        if (*value == ':')
                                return string_of(value + 1, (size_t)(text + line - value - 1));
                }
                text += line + (text[line] == '\n');
        }
        return json_null();
}

void facts_put_files(struct facts *facts, const struct fact_file *files, size_t n, fact_read_fn read)
{
        for (size_t i = 0; i < n; i++)
                facts_put(facts, files[i].key, read(facts->root, files[i].path));
}

/* Parameters of the command line that change timing, and none that could say where or whose the host is. */
static const char *const parameters[] = {
        "audit",
        "clocksource",
        "cpuidle.off",
        "cpuidle_haltpoll.force",
        "idle",
        "intel_idle.max_cstate",
        "intel_iommu",
        "intel_pstate",
        "amd_pstate",
        "iommu",
        "irqaffinity",
        "isolcpus",
        "kthread_cpus",
        "lapic",
        "mce",
        "mitigations",
        "nmi_watchdog",
        "nohz",
        "nohz_full",
        "nosmt",
        "nosoftlockup",
        "nowatchdog",
        "numa_balancing",
        "pcie_aspm",
        "preempt",
        "processor.max_cstate",
        "psi",
        "rcu_nocb_poll",
        "rcu_nocbs",
        "skew_tick",
        "spectre_v2",
        "threadirqs",
        "transparent_hugepage",
        "tsc",
        "tsx",
        "workqueue.power_efficient",
};

static json_t *parameter_names(void)
{
        json_t *names = json_array();

        for (size_t i = 0; names && i < ARRAY_SIZE(parameters); i++)
                json_array_append_new(names, json_string(parameters[i]));
        return names;
}

static bool is_known_parameter(const char *s, size_t len)
{
        for (size_t i = 0; i < ARRAY_SIZE(parameters); i++)
                if (strlen(parameters[i]) == len && memcmp(parameters[i], s, len) == 0)
                        return true;
        return false;
}

/* The known parameters that are given, with their values ("" where there is none). */
static json_t *command_line(int root)
{
        _cleanup_free_ char *text = fact_text(root, "proc/cmdline");
        _cleanup_json_ json_t *found = json_object();
        const char *p = text;

        if (!text)
                return json_null();
        while (found && *p) {
                size_t word = strcspn(p, " \n"), name = strcspn(p, "= \n");

                if (word == 2 && memcmp(p, "--", 2) == 0)
                        break; /* the rest is for init */
                if (is_known_parameter(p, name)) {
                        size_t value = name + (name < word);

                        if (json_object_setn_new(found, p, name, json_stringn(p + value, word - value)) < 0)
                                return NULL;
                }
                p += word;
                p += strspn(p, " \n");
        }
        return TAKE_PTR(found);
}

static void kernel_facts(struct facts *facts)
{
        struct facts kernel = facts_section(facts, "kernel");
        struct utsname name;

        if (uname(&name) == 0) {
                facts_put(&kernel, "system", json_string(name.sysname));
                facts_put(&kernel, "release", json_string(name.release));
                facts_put(&kernel, "version", json_string(name.version));
                facts_put(&kernel, "architecture", json_string(name.machine));
        }
        facts_put(&kernel, "parameters", command_line(kernel.root));
        facts_put(&kernel, "parameters_looked_for", parameter_names());
        facts_put(&kernel, "tainted", fact_integer(kernel.root, "proc/sys/kernel/tainted"));
        facts_close(facts, &kernel);
}

static json_t *resolution_ns(clockid_t clock)
{
        struct timespec ts;

        return clock_getres(clock, &ts) == 0 ? json_integer(nsec_of_timespec(ts)) : json_null();
}

static void clock_facts(struct facts *facts)
{
        static const struct fact_file files[] = {
                {"source", "sys/devices/system/clocksource/clocksource0/current_clocksource"},
                {"sources_available", "sys/devices/system/clocksource/clocksource0/available_clocksource"},
        };
        struct facts clock = facts_section(facts, "clock");
        int slack = prctl(PR_GET_TIMERSLACK);

        facts_put_files(&clock, files, ARRAY_SIZE(files), fact_string);
        facts_put(&clock, "resolution_ns", resolution_ns(CLOCK_MONOTONIC));
        /* the coarse clock advances with the timer interrupt: 4 ms are CONFIG_HZ=250 */
        facts_put(&clock, "tick_ns", resolution_ns(CLOCK_MONOTONIC_COARSE));
        facts_put(&clock, "timer_slack_ns", slack >= 0 ? json_integer(slack) : json_null());
        facts_close(facts, &clock);
}

json_t *fact_kilobytes(const char *meminfo, const char *name)
{
        _cleanup_json_ json_t *field = fact_field(meminfo, name);
        const char *text = json_string_value(field);
        int64_t value;

        if (!text || number_parse_i64(span_of(text, strcspn(text, " ")), &value) < 0 || value > INT64_MAX / 1024)
                return json_null();
        return json_integer(value * 1024);
}

static void memory_facts(struct facts *facts)
{
        static const struct fact_file files[] = {
                {"transparent_hugepages", "sys/kernel/mm/transparent_hugepage/enabled"},
                {"ksm", "sys/kernel/mm/ksm/run"},
                {"numa_nodes", "sys/devices/system/node/online"},
        };
        struct facts memory = facts_section(facts, "memory");
        _cleanup_free_ char *meminfo = fact_text(facts->root, "proc/meminfo");

        facts_put(&memory, "total_bytes", fact_kilobytes(meminfo, "MemTotal"));
        facts_put(&memory, "swap_bytes", fact_kilobytes(meminfo, "SwapTotal"));
        facts_put_files(&memory, files, ARRAY_SIZE(files), fact_string);
        facts_close(facts, &memory);
}

static bool ends_in(const char *s, const char *end)
{
        size_t len = strlen(s), end_len = strlen(end);

        return len >= end_len && streq(s + len - end_len, end);
}

/* All files right in proc/sys/@folder, as "net.core.NAME". Random keys and seeds differ with each boot and are secret.
 */
static void put_sysctl_folder(struct facts *facts, const char *folder, const char *prefix)
{
        _cleanup_free_ char *path = text_format("proc/sys/%s", folder);
        _cleanup_closedir_ DIR *dir = NULL;
        struct dirent *entry;
        int fd;

        fd = path ? file_open_dir(facts->root, path) : -1;
        dir = fd >= 0 ? fdopendir(fd) : NULL;
        if (!dir && fd >= 0)
                close(fd);
        while (dir && (entry = readdir(dir))) {
                _cleanup_free_ char *key = text_format("%s.%s", prefix, entry->d_name);

                if (entry->d_type != DT_REG || ends_in(entry->d_name, "_key") || ends_in(entry->d_name, "_seed"))
                        continue;
                if (key)
                        facts_put(facts, key, fact_string(dirfd(dir), entry->d_name));
                else
                        facts->failed = true;
        }
}

static void sysctl_facts(struct facts *facts)
{
        static const struct fact_file files[] = {
                {"kernel.nmi_watchdog", "proc/sys/kernel/nmi_watchdog"},
                {"kernel.numa_balancing", "proc/sys/kernel/numa_balancing"},
                {"kernel.perf_event_paranoid", "proc/sys/kernel/perf_event_paranoid"},
                {"kernel.randomize_va_space", "proc/sys/kernel/randomize_va_space"},
                {"kernel.sched_autogroup_enabled", "proc/sys/kernel/sched_autogroup_enabled"},
                {"kernel.sched_rt_period_us", "proc/sys/kernel/sched_rt_period_us"},
                {"kernel.sched_rt_runtime_us", "proc/sys/kernel/sched_rt_runtime_us"},
                {"kernel.timer_migration", "proc/sys/kernel/timer_migration"},
                {"kernel.unprivileged_bpf_disabled", "proc/sys/kernel/unprivileged_bpf_disabled"},
                {"kernel.watchdog", "proc/sys/kernel/watchdog"},
                {"net.ipv4.conf.all.rp_filter", "proc/sys/net/ipv4/conf/all/rp_filter"},
                {"net.ipv4.conf.default.rp_filter", "proc/sys/net/ipv4/conf/default/rp_filter"},
                {"net.ipv6.conf.all.disable_ipv6", "proc/sys/net/ipv6/conf/all/disable_ipv6"},
                {"vm.overcommit_memory", "proc/sys/vm/overcommit_memory"},
                {"vm.stat_interval", "proc/sys/vm/stat_interval"},
                {"vm.swappiness", "proc/sys/vm/swappiness"},
        };
        struct facts sysctl = facts_section(facts, "sysctl");

        facts_put_files(&sysctl, files, ARRAY_SIZE(files), fact_string);
        put_sysctl_folder(&sysctl, "net/core", "net.core");
        put_sysctl_folder(&sysctl, "net/ipv4", "net.ipv4");
        facts_close(facts, &sysctl);
}

/* A line NAME="value" of os-release(5). */
static json_t *os_release(const char *text, const char *name)
{
        size_t len = strlen(name);

        while (text && *text) {
                size_t line = strcspn(text, "\n");

                if (line > len && strncmp(text, name, len) == 0 && text[len] == '=') {
                        const char *value = text + len + 1, *end = text + line;

                        if (end - value >= 2 && *value == '"' && end[-1] == '"')
                                return string_of(value + 1, (size_t)(end - value) - 2);
                        return string_of(value, (size_t)(end - value));
                }
                text += line + (text[line] == '\n');
        }
        return json_null();
}

static void software_facts(struct facts *facts)
{
        struct facts tool = facts_section(facts, "tool"), os = facts_section(facts, "os");
        _cleanup_free_ char *release = fact_text(facts->root, "etc/os-release");

        facts_put(&tool, "version", json_string(version_number()));
        facts_put(&tool, "commit", streq(version_commit(), "unknown") ? json_null() : json_string(version_commit()));
        facts_put(&tool, "is_modified", json_boolean(version_is_modified()));
        facts_put(&tool, "libc", json_string(gnu_get_libc_version()));
        facts_close(facts, &tool);

        facts_put(&os, "id", os_release(release, "ID"));
        facts_put(&os, "version", os_release(release, "VERSION_ID"));
        facts_close(facts, &os);
}

static void process_facts(struct facts *facts)
{
        struct facts process = facts_section(facts, "process");
        _cleanup_free_ char *status = fact_text(facts->root, "proc/self/status");

        facts_put(&process, "is_root", json_boolean(geteuid() == 0));
        facts_put(&process, "capabilities", fact_field(status, "CapEff"));
        facts_put(&process, "cpus_allowed", fact_field(status, "Cpus_allowed_list"));
        facts_put(&process, "seccomp", fact_field(status, "Seccomp"));
        facts_close(facts, &process);
}

static void stable_facts(struct facts *facts)
{
        kernel_facts(facts);
        host_processor_facts(facts);
        host_scheduler_facts(facts);
        clock_facts(facts);
        memory_facts(facts);
        sysctl_facts(facts);
        software_facts(facts);
        process_facts(facts);
}

static int describe(int root, void (*fill)(struct facts *), json_t **ret, struct err *err)
{
        struct facts facts = {.root = root, .object = json_object()};

        if (facts.object)
                fill(&facts);
        if (!facts.object || facts.failed) {
                json_decref(facts.object);
                return err_set_nomem(err);
        }
        *ret = facts.object;
        return 0;
}

int host_describe_at(int root, json_t **ret_stable, json_t **ret_volatile, struct err *err)
{
        _cleanup_json_ json_t *stable = NULL, *fleeting = NULL;
        int r;

        r = describe(root, stable_facts, &stable, err);
        if (r == 0)
                r = describe(root, host_volatile_facts, &fleeting, err);
        if (r < 0)
                return r;
        *ret_stable = TAKE_PTR(stable);
        *ret_volatile = TAKE_PTR(fleeting);
        return 0;
}

int host_describe(json_t **ret_stable, json_t **ret_volatile, struct err *err)
{
        _cleanup_close_ int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (root < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot open /");
        return host_describe_at(root, ret_stable, ret_volatile, err);
}

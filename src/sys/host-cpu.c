/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "sys/host-internal.h"

/* The name that a hypervisor gives itself in leaf 0x40000000 of CPUID ("KVMKVMKVM"); null on the bare machine, and
 * where the processor has no such instruction. */
static json_t *hypervisor(void)
{
#if defined(__x86_64__) || defined(__i386__)
        unsigned a, b, c, d;
        char name[13] = {0};

        if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 31))
                return json_null();
        __cpuid(0x40000000, a, b, c, d);
        memcpy(name, &b, 4);
        memcpy(name + 4, &c, 4);
        memcpy(name + 8, &d, 4);
        return name[0] && text_is_utf8(name, strlen(name)) ? json_string(name) : json_null();
#else
        return json_null();
#endif
}

static void put_vulnerabilities(struct facts *facts)
{
        int fd = file_open_dir(facts->root, "sys/devices/system/cpu/vulnerabilities");
        _cleanup_closedir_ DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        struct facts section;
        struct dirent *entry;

        if (!dir) {
                if (fd >= 0)
                        close(fd);
                facts_put(facts, "vulnerabilities", json_null());
                return;
        }
        section = facts_section(facts, "vulnerabilities");
        while ((entry = readdir(dir)))
                if (entry->d_name[0] != '.')
                        facts_put(&section, entry->d_name, fact_string(dirfd(dir), entry->d_name));
        facts_close(facts, &section);
}

void facts_put_cpus(struct facts *facts, const char *key, const char *folder, const char *file, fact_read_fn read)
{
        struct facts section = facts_section(facts, key);
        long n = sysconf(_SC_NPROCESSORS_CONF);

        for (long cpu = 0; cpu < n; cpu++) {
                _cleanup_free_ char *path = text_format("%s/cpu%ld/%s", folder, cpu, file);
                _cleanup_json_ json_t *value = path ? read(facts->root, path) : NULL;
                char number[24];

                snprintf(number, sizeof(number), "%ld", cpu);
                if (!json_is_null(value))
                        facts_put(&section, number, TAKE_PTR(value));
        }
        if (json_object_size(section.object) == 0)
                facts_put(facts, key, json_null());
        facts_close(facts, &section);
}

void host_processor_facts(struct facts *facts)
{
        static const struct {
                const char *key, *field; /* of /proc/cpuinfo; those of x86, then those of Arm */
        } fields[] = {
                {"vendor", "vendor_id"},    {"model_name", "model name"},       {"family", "cpu family"},
                {"model", "model"},         {"stepping", "stepping"},           {"microcode", "microcode"},
                {"flags", "flags"},         {"implementer", "CPU implementer"}, {"part", "CPU part"},
                {"variant", "CPU variant"}, {"revision", "CPU revision"},
        };
        static const struct fact_file files[] = {
                {"online", "sys/devices/system/cpu/online"},
                {"possible", "sys/devices/system/cpu/possible"},
                {"isolated", "sys/devices/system/cpu/isolated"},
                {"nohz_full", "sys/devices/system/cpu/nohz_full"},
                {"smt", "sys/devices/system/cpu/smt/control"},
                {"boost", "sys/devices/system/cpu/cpufreq/boost"},
                {"intel_no_turbo", "sys/devices/system/cpu/intel_pstate/no_turbo"},
                {"idle_driver", "sys/devices/system/cpu/cpuidle/current_driver"},
                {"idle_governor", "sys/devices/system/cpu/cpuidle/current_governor"},
                {"machine_vendor", "sys/class/dmi/id/sys_vendor"},
                {"machine_product", "sys/class/dmi/id/product_name"},
        };
        struct facts cpu = facts_section(facts, "cpu");
        _cleanup_free_ char *info = fact_text(facts->root, "proc/cpuinfo");
        long configured = sysconf(_SC_NPROCESSORS_CONF), online = sysconf(_SC_NPROCESSORS_ONLN);

        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
                facts_put(&cpu, fields[i].key, fact_field(info, fields[i].field));
        facts_put_files(&cpu, files, ARRAY_SIZE(files), fact_string);
        facts_put(&cpu, "n_configured", configured > 0 ? json_integer(configured) : json_null());
        facts_put(&cpu, "n_online", online > 0 ? json_integer(online) : json_null());
        facts_put(&cpu, "hypervisor", hypervisor());
        facts_put_cpus(&cpu, "governor", FACTS_CPU_FOLDER, "cpufreq/scaling_governor", fact_string);
        facts_put_cpus(&cpu, "frequency_driver", FACTS_CPU_FOLDER, "cpufreq/scaling_driver", fact_string);
        facts_put_cpus(&cpu, "frequency_min_khz", FACTS_CPU_FOLDER, "cpufreq/scaling_min_freq", fact_integer);
        facts_put_cpus(&cpu, "frequency_max_khz", FACTS_CPU_FOLDER, "cpufreq/scaling_max_freq", fact_integer);
        facts_put_cpus(&cpu, "siblings", FACTS_CPU_FOLDER, "topology/thread_siblings_list", fact_string);
        put_vulnerabilities(&cpu);
        facts_close(facts, &cpu);
}

/* What takes the processor from a real-time thread: RT throttling (of all by sysctl, of a group by its cgroup), the
 * server that gives ordinary tasks their share, and a kernel that does not preempt itself. */
void host_scheduler_facts(struct facts *facts)
{
        static const struct fact_file texts[] = {
                {"preemption", "sys/kernel/debug/sched/preempt"},
        };
        static const struct fact_file numbers[] = {
                {"base_slice_ns", "sys/kernel/debug/sched/base_slice_ns"},
                {"group_rt_period_us", "sys/fs/cgroup/cpu/cpu.rt_period_us"},
                {"group_rt_runtime_us", "sys/fs/cgroup/cpu/cpu.rt_runtime_us"},
        };
        struct facts scheduler = facts_section(facts, "scheduler");

        facts_put_files(&scheduler, texts, ARRAY_SIZE(texts), fact_string);
        facts_put_files(&scheduler, numbers, ARRAY_SIZE(numbers), fact_integer);
        facts_put_cpus(&scheduler, "fair_server_period_ns", "sys/kernel/debug/sched/fair_server", "period",
                       fact_integer);
        facts_put_cpus(&scheduler, "fair_server_runtime_ns", "sys/kernel/debug/sched/fair_server", "runtime",
                       fact_integer);
        facts_close(facts, &scheduler);
}

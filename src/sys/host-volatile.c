/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "sys/host-internal.h"

/* Takes the next word off *@text. */
static struct span next_word(const char **text)
{
        const char *start = *text + strspn(*text, " ");
        size_t len = strcspn(start, " \n");

        *text = start + len;
        return span_of(start, len);
}

/* The next word as a decimal fraction times @scale; null where it is not one. */
static json_t *next_scaled(const char **text, int64_t scale)
{
        int64_t value;

        return number_parse_scaled(next_word(text), scale, &value) == 0 ? json_integer(value) : json_null();
}

static void put_load(struct facts *facts)
{
        _cleanup_free_ char *loadavg = fact_text(facts->root, "proc/loadavg");
        _cleanup_free_ char *uptime = fact_text(facts->root, "proc/uptime");
        const char *p = loadavg ? loadavg : "", *u = uptime ? uptime : "";
        struct span counts;
        const uint8_t *slash;
        uint64_t running, threads;

        facts_put(facts, "load_1min_centi", next_scaled(&p, 100));
        facts_put(facts, "load_5min_centi", next_scaled(&p, 100));
        facts_put(facts, "load_15min_centi", next_scaled(&p, 100));
        counts = next_word(&p); /* "running/threads" */
        slash = counts.len > 0 ? memchr(counts.data, '/', counts.len) : NULL;
        if (slash && number_parse_u64(span_of(counts.data, (size_t)(slash - counts.data)), &running) == 0 &&
            number_parse_u64(span_of(slash + 1, counts.len - (size_t)(slash - counts.data) - 1), &threads) == 0) {
                facts_put(facts, "threads_runnable", json_integer((json_int_t)running));
                facts_put(facts, "threads", json_integer((json_int_t)threads));
        } else {
                facts_put(facts, "threads_runnable", json_null());
                facts_put(facts, "threads", json_null());
        }
        facts_put(facts, "uptime_ms", next_scaled(&u, 1000));
}

static json_t *first_integer(const char *stat, const char *name)
{
        size_t len = strlen(name);

        while (stat && *stat) {
                if (strncmp(stat, name, len) == 0 && stat[len] == ' ') {
                        const char *p = stat + len;

                        return next_scaled(&p, 1);
                }
                stat += strcspn(stat, "\n");
                stat += *stat == '\n';
        }
        return json_null();
}

/* Time of all processors since boot, in the ticks of sysconf(_SC_CLK_TCK), and what they did. */
static void put_processor_time(struct facts *facts)
{
        static const char *const states[] = {"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"};
        _cleanup_free_ char *stat = fact_text(facts->root, "proc/stat");
        struct facts section = facts_section(facts, "processor_time");
        const char *p = stat && strncmp(stat, "cpu ", 4) == 0 ? stat + 4 : "";
        long ticks = sysconf(_SC_CLK_TCK);

        for (size_t i = 0; i < ARRAY_SIZE(states); i++)
                facts_put(&section, states[i], next_scaled(&p, 1));
        facts_put(&section, "ticks_per_second", ticks > 0 ? json_integer(ticks) : json_null());
        facts_close(facts, &section);
        facts_put(facts, "context_switches", first_integer(stat, "ctxt"));
        facts_put(facts, "interrupts", first_integer(stat, "intr"));
        facts_put(facts, "forks", first_integer(stat, "processes"));
}

/* What the kernel's clock discipline says of CLOCK_REALTIME. */
static void put_clock(struct facts *facts)
{
        struct timex timex = {0};
        int state = adjtimex(&timex);
        bool is_known = state >= 0;

        facts_put(facts, "realtime_ns", json_integer(clock_now_ns(CLOCK_REALTIME)));
        facts_put(facts, "realtime_is_synchronised",
                  is_known ? json_boolean(state != TIME_ERROR && !(timex.status & STA_UNSYNC)) : json_null());
        facts_put(facts, "realtime_max_error_us", is_known ? json_integer(timex.maxerror) : json_null());
        facts_put(facts, "realtime_estimated_error_us", is_known ? json_integer(timex.esterror) : json_null());
}

static void put_temperatures(struct facts *facts)
{
        int fd = file_open_dir(facts->root, "sys/class/thermal");
        _cleanup_closedir_ DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        struct facts section = facts_section(facts, "temperatures_millidegrees");
        struct dirent *entry;

        if (!dir && fd >= 0)
                close(fd);
        while (dir && (entry = readdir(dir))) {
                _cleanup_free_ char *temp = text_format("%s/temp", entry->d_name);
                _cleanup_json_ json_t *value = NULL;

                if (strncmp(entry->d_name, "thermal_zone", strlen("thermal_zone")) != 0)
                        continue;
                value = temp ? fact_integer(dirfd(dir), temp) : NULL;
                if (!json_is_null(value))
                        facts_put(&section, entry->d_name, TAKE_PTR(value));
        }
        if (json_object_size(section.object) == 0)
                facts_put(facts, "temperatures_millidegrees", json_null());
        facts_close(facts, &section);
}

static void put_memory(struct facts *facts)
{
        _cleanup_free_ char *meminfo = fact_text(facts->root, "proc/meminfo");

        facts_put(facts, "memory_free_bytes", fact_kilobytes(meminfo, "MemFree"));
        facts_put(facts, "memory_available_bytes", fact_kilobytes(meminfo, "MemAvailable"));
        facts_put(facts, "swap_free_bytes", fact_kilobytes(meminfo, "SwapFree"));
}

void host_volatile_facts(struct facts *facts)
{
        static const struct fact_file files[] = {
                {"boot_id", "proc/sys/kernel/random/boot_id"}, /* random, and new with each boot */
                {"pressure_cpu", "proc/pressure/cpu"},
                {"pressure_memory", "proc/pressure/memory"},
                {"pressure_io", "proc/pressure/io"},
        };
        _cleanup_free_ char *info = fact_text(facts->root, "proc/cpuinfo");

        facts_put_files(facts, files, ARRAY_SIZE(files), fact_string);
        facts_put(facts, "processor_mhz", fact_field(info, "cpu MHz"));
        facts_put_cpus(facts, "frequency_khz", FACTS_CPU_FOLDER, "cpufreq/scaling_cur_freq", fact_integer);
        facts_put_cpus(facts, "throttled", FACTS_CPU_FOLDER, "thermal_throttle/core_throttle_count", fact_integer);
        put_load(facts);
        put_processor_time(facts);
        put_clock(facts);
        put_temperatures(facts);
        put_memory(facts);
}

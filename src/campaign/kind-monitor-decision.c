/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/kind-monitor-decision.h"

#include <sys/mman.h>

#include "base/clock.h"
#include "campaign/cpu.h"
#include "campaign/local.h"
#include "campaign/quantiles.h"
#include "reflex/measure.h"
#include "sys/sched.h"

#define DECISIONS       1000 /* to a sample */
#define REQUESTS_SEED   31
#define FIFO_PRIORITY   50
#define SAMPLE_GUESS_NS (10 * NSEC_PER_USEC)

#define FIELD(name) offsetof(struct monitor_decision_keys, name)

static const struct key keys[] = {
        {.name = "requests",
         .type = KEY_CHOICE,
         .offset = FIELD(requests),
         .fallback = "mixed",
         .choices = measure_case_names,
         .help = "What is asked: all kinds, or only what is allowed, clamped, answered with the safe value after a "
                 "stop, "
                 "or rejected."},
        {.name = "samples",
         .type = KEY_QUANTITY,
         .offset = FIELD(samples),
         .fallback = "10000",
         .unit = UNIT_COUNT,
         .min = 100,
         .max = 1000000,
         .help = "How many samples; each is the time of 1000 decisions, the clock's own cost taken out."},
        {.name = "warmup-samples",
         .type = KEY_QUANTITY,
         .offset = FIELD(warmup_samples),
         .fallback = "500",
         .unit = UNIT_COUNT,
         .max = 1000000,
         .help = "How many more come before them; they are stored and left out of every number."},
        {.name = "repeat",
         .type = KEY_QUANTITY,
         .offset = FIELD(repeat),
         .fallback = "1",
         .unit = UNIT_COUNT,
         .min = 1,
         .max = 100,
         .help = "How often each request is decided; over 1 for a control that has to be slower."},
        {.name = "cpu",
         .type = KEY_QUANTITY,
         .offset = FIELD(cpu),
         .fallback = "0",
         .unit = UNIT_COUNT,
         .max = 1023,
         .help = "Processor that it is pinned to."},
        {},
};

const struct key_table monitor_decision_table = {
        .name = "monitor-decision",
        .help = "Requests to an actuation monitor, 1000 to a sample.",
        .size = sizeof(struct monitor_decision_keys),
        .has_kind = true,
        .keys = keys,
};

const struct metric monitor_decision_metrics[] = {QUANTILES("thousand"), {}};

static const struct column columns[] = {
        {"slot", "index", SAMPLE_CLOCK_NONE, "number of the sample, from 0"},
        {"thousand_ns", "ns", SAMPLE_CLOCK_MONOTONIC, "time of 1000 decisions, the clock's own cost taken out"},
};

/* What the process writes. */
struct shared {
        struct sched_grant grant;
        int64_t clock_cost_ns;
        int64_t took_ns[];
};

struct monitor_decision {
        struct local base;
        struct monitor_decision_keys keys;
        struct shared *shared;
        size_t shared_bytes;
        size_t n; /* samples, warm-up included */
        struct measure measure;
};

static struct monitor_decision *monitor_decision_of(struct workload *w)
{
        return (struct monitor_decision *)w; /* the first member */
}

static int open_process(struct workload *w, struct err *err)
{
        struct monitor_decision *d = monitor_decision_of(w);
        const struct sched_request request = {.cpu = (int)d->keys.cpu,
                                              .fifo_priority = FIFO_PRIORITY,
                                              .lock_memory = true};

        sched_apply(&request, &d->shared->grant);
        measure_init(&d->measure, (enum measure_case)d->keys.requests, REQUESTS_SEED);
        d->shared->clock_cost_ns = d->measure.clock_cost_ns;
        return 0;
}

static int run_process(struct workload *w, int64_t start_ns, struct err *err)
{
        struct monitor_decision *d = monitor_decision_of(w);
        int r = clock_sleep_until_ns(CLOCK_MONOTONIC, start_ns, NULL);

        if (r < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot wait for the start");
        for (size_t i = 0; i < d->n; i++)
                d->shared->took_ns[i] = measure_batch(&d->measure, DECISIONS, (unsigned)d->keys.repeat);
        return 0;
}

static void monitor_decision_free(struct workload *w)
{
        struct monitor_decision *d = monitor_decision_of(w);

        if (!d)
                return;
        local_done(&d->base);
        if (d->shared)
                munmap(d->shared, d->shared_bytes);
        key_table_done(&monitor_decision_table, &d->keys);
        free(d);
}

static int build(struct workload *w, struct boundary *b, const struct node *config, struct err *err)
{
        struct monitor_decision *d = monitor_decision_of(w);
        int r;

        r = key_table_read(&monitor_decision_table, config, "workload", &d->keys, err);
        if (r < 0)
                return r;
        d->n = (size_t)(d->keys.warmup_samples + d->keys.samples);
        d->shared_bytes = sizeof(*d->shared) + d->n * sizeof(d->shared->took_ns[0]);
        d->shared = local_share(d->shared_bytes);
        return d->shared ? 0 : err_set_nomem(err);
}

static const struct local_work work = {
        .name = "monitor",
        .size = sizeof(struct monitor_decision),
        .ops = &monitor_decision_ops,
        .build = build,
        .open = open_process,
        .run = run_process,
};

static int monitor_decision_prepare(struct boundary *b, const char *name, const struct node *config,
                                    struct workload **ret, struct err *err)
{
        return local_new(&work, b, config, ret, err);
}

static int monitor_decision_collect(struct workload *w, struct sample_writer *out, struct workload_result *ret,
                                    struct err *err)
{
        struct monitor_decision *d = monitor_decision_of(w);
        int r = 0;

        for (size_t i = 0; i < d->n && r >= 0; i++)
                r = sample_write(out, (const int64_t[]){(int64_t)i, d->shared->took_ns[i]}, err);
        if (r < 0)
                return r;
        ret->counts = json_pack("{s:I, s:I, s:I}", "slots", (json_int_t)d->n, "warmup_slots",
                                (json_int_t)d->keys.warmup_samples, "decisions",
                                (json_int_t)d->n * DECISIONS * d->keys.repeat);
        ret->notes = json_pack("{s:I, s:o*}", "clock_cost_ns", (json_int_t)d->shared->clock_cost_ns, "monitor",
                               sched_grant_json(&d->shared->grant));
        return ret->counts && ret->notes ? 0 : err_set_nomem(err);
}

const struct workload_ops monitor_decision_ops = {
        .columns = columns,
        .n_columns = ARRAY_SIZE(columns),
        .prepare = monitor_decision_prepare,
        .start = local_start,
        .event_fd = local_event_fd,
        .stop = local_stop,
        .collect = monitor_decision_collect,
        .free = monitor_decision_free,
};

int monitor_decision_size(const struct node *map, struct workload_size *ret, struct err *err)
{
        struct monitor_decision_keys k = {0};
        int r = key_table_read(&monitor_decision_table, map, "workload", &k, err);

        if (r >= 0)
                *ret = (struct workload_size){
                        .duration_ns = (k.samples + k.warmup_samples) * k.repeat * SAMPLE_GUESS_NS,
                        .rows = k.samples + k.warmup_samples,
                        .values = k.samples,
                };
        key_table_done(&monitor_decision_table, &k);
        return r;
}

int monitor_decision_missing(const struct node *map, struct err *err)
{
        struct monitor_decision_keys k = {0};
        int r = key_table_read(&monitor_decision_table, map, "workload", &k, err);

        if (r >= 0)
                r = cpu_missing("workload.cpu", k.cpu, err);
        key_table_done(&monitor_decision_table, &k);
        return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/kind-event-to-actuation.h"

#include "base/clock.h"
#include "campaign/cpu.h"
#include "campaign/local.h"
#include "campaign/quantiles.h"
#include "reflex/reaction.h"

#define FIFO_PRIORITY 50

#define FIELD(name) offsetof(struct event_to_actuation_keys, name)

static const struct key keys[] = {
        {.name = "rate",
         .type = KEY_QUANTITY,
         .offset = FIELD(rate_hz),
         .fallback = "2000/s",
         .unit = UNIT_FREQUENCY,
         .min = 1,
         .max = 100000,
         .help = "Events a second."},
        {.name = "duration",
         .type = KEY_QUANTITY,
         .offset = FIELD(duration_ns),
         .is_required = true,
         .unit = UNIT_DURATION,
         .min = 10000000,
         .max = INT64_C(3600000000000),
         .help = "How long is measured, after the warm-up."},
        {.name = "warmup",
         .type = KEY_QUANTITY,
         .offset = FIELD(warmup_ns),
         .fallback = "0",
         .unit = UNIT_DURATION,
         .max = INT64_C(3600000000000),
         .help = "How long events come before; they are stored and left out of every number."},
        {.name = "instructions",
         .type = KEY_QUANTITY,
         .offset = FIELD(instructions),
         .fallback = "0",
         .unit = UNIT_COUNT,
         .max = REACTION_INSTRUCTIONS_MAX,
         .help = "Additions that the program does before it asks for its value; for a control that has to be slower."},
        {.name = "cpu",
         .type = KEY_QUANTITY,
         .offset = FIELD(cpu),
         .fallback = "0",
         .unit = UNIT_COUNT,
         .max = 1023,
         .help = "Processor that the pipeline is pinned to."},
        {.name = "trigger-cpu",
         .type = KEY_QUANTITY,
         .offset = FIELD(trigger_cpu),
         .fallback = "1",
         .unit = UNIT_COUNT,
         .max = 1023,
         .help = "Processor that what makes the events is pinned to."},
        {},
};

const struct key_table event_to_actuation_table = {
        .name = "event-to-actuation",
        .help = "Events to a program, verified, interpreted and monitored, whose output is simulated: a pipeline of "
                "software, "
                "not of hardware.",
        .size = sizeof(struct event_to_actuation_keys),
        .has_kind = true,
        .keys = keys,
};

const struct metric event_to_actuation_metrics[] = {
        QUANTILES("wake"),
        QUANTILES("output"),
        QUANTILES("lateness"),
        {.name = "loss", .unit = METRIC_PPB, .source = METRIC_LOSS},
        {},
};

static const struct column columns[] = {
        {"slot", "index", SAMPLE_CLOCK_NONE, "number of the event, from 0"},
        {"lateness_ns", "ns", SAMPLE_CLOCK_MONOTONIC, "from when the event was due until it was made"},
        {"wake_ns", "ns", SAMPLE_CLOCK_MONOTONIC, "from then until the pipeline was told"},
        {"output_ns", "ns", SAMPLE_CLOCK_MONOTONIC, "from when the program was entered until its value was out"},
};

struct event_to_actuation {
        struct local base;
        struct event_to_actuation_keys keys;
        struct reaction *reaction;
        int64_t n_warmup, n; /* events */
};

static struct event_to_actuation *event_to_actuation_of(struct workload *w)
{
        return (struct event_to_actuation *)w; /* the first member */
}

static int open_process(struct workload *w, struct err *err)
{
        return reaction_open(event_to_actuation_of(w)->reaction, err);
}

static int run_process(struct workload *w, int64_t start_ns, struct err *err)
{
        return reaction_run(event_to_actuation_of(w)->reaction, start_ns, NULL, err);
}

static void event_to_actuation_free(struct workload *w)
{
        struct event_to_actuation *e = event_to_actuation_of(w);

        if (!e)
                return;
        local_done(&e->base);
        reaction_free(e->reaction);
        key_table_done(&event_to_actuation_table, &e->keys);
        free(e);
}

static int64_t events_in(int64_t duration_ns, int64_t rate_hz)
{
        return (int64_t)((__int128)duration_ns * rate_hz / NSEC_PER_SEC);
}

static struct sched_request on_cpu(int64_t cpu)
{
        return (struct sched_request){.cpu = (int)cpu,
                                      .fifo_priority = FIFO_PRIORITY,
                                      .lock_memory = true,
                                      .precise_timers = true};
}

static int build(struct workload *w, struct boundary *b, const struct node *config, struct err *err)
{
        struct event_to_actuation *e = event_to_actuation_of(w);
        struct reaction_options options;
        int r;

        r = key_table_read(&event_to_actuation_table, config, "workload", &e->keys, err);
        if (r < 0)
                return r;
        e->n_warmup = events_in(e->keys.warmup_ns, e->keys.rate_hz);
        e->n = e->n_warmup + events_in(e->keys.duration_ns, e->keys.rate_hz);
        options = (struct reaction_options){
                .rate_hz = (uint64_t)e->keys.rate_hz,
                .n_events = (uint64_t)e->n,
                .n_instructions = (uint32_t)e->keys.instructions,
                .sched = on_cpu(e->keys.cpu),
                .trigger_sched = on_cpu(e->keys.trigger_cpu),
        };
        return reaction_new(&options, &e->reaction, err);
}

static const struct local_work work = {
        .name = "pipeline",
        .size = sizeof(struct event_to_actuation),
        .ops = &event_to_actuation_ops,
        .build = build,
        .open = open_process,
        .run = run_process,
};

static int event_to_actuation_prepare(struct boundary *b, const char *name, const struct node *config,
                                      struct workload **ret, struct err *err)
{
        return local_new(&work, b, config, ret, err);
}

/* An event that was never made is a missed slot; one without an output is lost. */
static int write_rows(const struct event_to_actuation *e, struct sample_writer *out, int64_t *ret_handled,
                      struct err *err)
{
        int r = 0;

        *ret_handled = 0;
        for (int64_t i = 0; i < e->n && r >= 0; i++) {
                struct reaction_event event = reaction_event(e->reaction, (uint64_t)i);
                int64_t row[] = {i, SAMPLE_MISSING, SAMPLE_MISSING, SAMPLE_MISSING};

                if (event.made_ns > 0)
                        row[1] = event.made_ns - event.due_ns;
                if (event.made_ns > 0 && event.output_ns > 0) {
                        row[2] = event.woke_ns - event.made_ns;
                        row[3] = event.output_ns - event.entered_ns;
                        ++*ret_handled;
                }
                r = sample_write(out, row, err);
        }
        return r;
}

static int event_to_actuation_collect(struct workload *w, struct sample_writer *out, struct workload_result *ret,
                                      struct err *err)
{
        struct event_to_actuation *e = event_to_actuation_of(w);
        int64_t handled;
        int r;

        r = write_rows(e, out, &handled, err);
        if (r < 0)
                return r;
        ret->counts = json_pack("{s:I, s:I, s:I}", "slots", (json_int_t)e->n, "warmup_slots", (json_int_t)e->n_warmup,
                                "handled", (json_int_t)handled);
        ret->notes = reaction_notes_json(e->reaction);
        return ret->counts && ret->notes ? 0 : err_set_nomem(err);
}

const struct workload_ops event_to_actuation_ops = {
        .columns = columns,
        .n_columns = ARRAY_SIZE(columns),
        .prepare = event_to_actuation_prepare,
        .start = local_start,
        .event_fd = local_event_fd,
        .stop = local_stop,
        .collect = event_to_actuation_collect,
        .free = event_to_actuation_free,
};

int event_to_actuation_size(const struct node *map, struct workload_size *ret, struct err *err)
{
        struct event_to_actuation_keys k = {0};
        int r = key_table_read(&event_to_actuation_table, map, "workload", &k, err);

        if (r >= 0)
                *ret = (struct workload_size){
                        .duration_ns = k.warmup_ns + k.duration_ns,
                        .rows = events_in(k.warmup_ns, k.rate_hz) + events_in(k.duration_ns, k.rate_hz),
                        .values = events_in(k.duration_ns, k.rate_hz),
                };
        key_table_done(&event_to_actuation_table, &k);
        return r;
}

int event_to_actuation_missing(const struct node *map, struct err *err)
{
        struct event_to_actuation_keys k = {0};
        int r = key_table_read(&event_to_actuation_table, map, "workload", &k, err);

        if (r >= 0)
                r = cpu_missing("workload.cpu", k.cpu, err);
        if (r >= 0)
                r = cpu_missing("workload.trigger-cpu", k.trigger_cpu, err);
        key_table_done(&event_to_actuation_table, &k);
        return r;
}

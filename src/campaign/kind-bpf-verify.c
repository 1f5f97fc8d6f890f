/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/kind-bpf-verify.h"

#include <sys/mman.h>

#include "base/clock.h"
#include "bpfvm/specimen.h"
#include "bpfvm/verifier.h"
#include "campaign/cpu.h"
#include "campaign/local.h"
#include "campaign/quantiles.h"
#include "sys/kernel-verifier.h"
#include "sys/sched.h"

#define FIFO_PRIORITY 50

/* What a verification takes, roughly: for the estimate of a trial. */
#define CALL_NS        1000
#define INSN_NS        20
#define KERNEL_CALL_NS 40000
#define KERNEL_INSN_NS 600

enum { VERIFIER_ASSAY, VERIFIER_LINUX };
static const char *const verifier_names[] = {"assay", "linux", NULL};
static const char *const profile_names[] = {"full", "embedded", NULL};

#define FIELD(name) offsetof(struct bpf_verify_keys, name)

static const struct key keys[] = {
        {.name = "program",
         .type = KEY_STRING,
         .offset = FIELD(program),
         .is_required = true,
         .help = "What is verified: " SPECIMEN_EXPECTED ". add:N is N instructions in a row, diamonds:N is N branches "
                 "whose ways join again, each with or without an addition."},
        {.name = "verifier",
         .type = KEY_CHOICE,
         .offset = FIELD(verifier),
         .fallback = "assay",
         .choices = verifier_names,
         .help = "Who verifies: assay, from the instructions' bytes to the verdict; or the running kernel, which loads "
                 "the same bytes as a socket filter and reports how long its verifier took (whole microseconds)."},
        {.name = "profile",
         .type = KEY_CHOICE,
         .offset = FIELD(profile),
         .fallback = "embedded",
         .choices = profile_names,
         .help = "What assay's verifier allows."},
        {.name = "batch",
         .type = KEY_QUANTITY,
         .offset = FIELD(batch),
         .fallback = "100",
         .unit = UNIT_COUNT,
         .min = 1,
         .max = 100000,
         .help = "Verifications in a sample, whose mean it is."},
        {.name = "samples",
         .type = KEY_QUANTITY,
         .offset = FIELD(samples),
         .fallback = "20",
         .unit = UNIT_COUNT,
         .min = 5,
         .max = 100000,
         .help = "How many samples."},
        {.name = "warmup-samples",
         .type = KEY_QUANTITY,
         .offset = FIELD(warmup_samples),
         .fallback = "2",
         .unit = UNIT_COUNT,
         .max = 100000,
         .help = "How many more come before them; they are stored and left out of every number."},
        {.name = "cpu",
         .type = KEY_QUANTITY,
         .offset = FIELD(cpu),
         .fallback = "0",
         .unit = UNIT_COUNT,
         .max = 1023,
         .help = "Processor that it is pinned to."},
        {},
};

const struct key_table bpf_verify_table = {
        .name = "bpf-verify",
        .help = "How long the verification of a BPF program takes.",
        .size = sizeof(struct bpf_verify_keys),
        .has_kind = true,
        .keys = keys,
};

const struct metric bpf_verify_metrics[] = {
        QUANTILES("verify"),
        {.name = "verify.per-instruction.p50",
         .unit = METRIC_PS,
         .source = METRIC_QUANTILE,
         .series = "verify",
         .ppm = 500000,
         .per = "instructions"},
        {},
};

static const struct column columns[] = {
        {"slot", "index", SAMPLE_CLOCK_NONE, "number of the sample, from 0"},
        {"verify_ns", "ns", SAMPLE_CLOCK_MONOTONIC,
         "mean time of a verification; with the kernel's verifier as the kernel reports it"},
};

/* What the process writes. */
struct shared {
        struct sched_grant grant;
        int64_t mean_ns[];
};

struct bpf_verify {
        struct local base;
        struct bpf_verify_keys keys;
        struct object *object;
        struct span slots;
        struct shared *shared;
        size_t shared_bytes;
        size_t n; /* samples, warm-up included */
};

static struct bpf_verify *bpf_verify_of(struct workload *w)
{
        return (struct bpf_verify *)w; /* the first member */
}

static int open_process(struct workload *w, struct err *err)
{
        struct bpf_verify *v = bpf_verify_of(w);
        const struct sched_request request = {.cpu = (int)v->keys.cpu,
                                              .fifo_priority = FIFO_PRIORITY,
                                              .lock_memory = true};

        sched_apply(&request, &v->shared->grant);
        return 0;
}

/* From bytes to the verdict, as the kernel's verifier has to. */
static int verify(const struct bpf_verify *v, const struct verifier_options *options, struct err *err)
{
        _cleanup_object_ struct object *object = NULL;
        _cleanup_verdict_ struct verdict verdict = {0};
        struct fault fault;
        int r;

        r = object_of_slots(v->slots, v->keys.program, NULL, 0, &object, &fault, err);
        if (r < 0)
                return r;
        object->programs[0]->context = v->object->programs[0]->context;
        r = verifier_check(object->programs[0], options, &verdict, err);
        if (r > 0)
                return err_set(err, ERR_ENVIRONMENT, EINVAL, "%s is refused: %s", v->keys.program, verdict.fault.text);
        return r;
}

static int sample_assay(const struct bpf_verify *v, int64_t *ret_mean_ns, struct err *err)
{
        const struct profile *profile = profile_find(profile_names[v->keys.profile]);
        const struct verifier_options options = {.profile = profile, .may_actuate = profile->may_actuate};
        int64_t start_ns = clock_now_ns(CLOCK_MONOTONIC);
        int r = 0;

        for (int64_t i = 0; i < v->keys.batch && r >= 0; i++)
                r = verify(v, &options, err);
        *ret_mean_ns = (clock_now_ns(CLOCK_MONOTONIC) - start_ns) / v->keys.batch;
        return r;
}

static int sample_linux(const struct bpf_verify *v, int64_t *ret_mean_ns, struct err *err)
{
        int64_t sum_ns = 0;
        int r = 0;

        for (int64_t i = 0; i < v->keys.batch && r >= 0; i++) {
                int64_t time_ns = 0;

                r = kernel_verifier_measure(v->slots, &time_ns, err);
                sum_ns += time_ns;
        }
        *ret_mean_ns = sum_ns / v->keys.batch;
        return r;
}

static int run_process(struct workload *w, int64_t start_ns, struct err *err)
{
        struct bpf_verify *v = bpf_verify_of(w);
        int r = clock_sleep_until_ns(CLOCK_MONOTONIC, start_ns, NULL);

        if (r < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot wait for the start");
        for (size_t i = 0; i < v->n && r >= 0; i++)
                r = v->keys.verifier == VERIFIER_LINUX ? sample_linux(v, &v->shared->mean_ns[i], err)
                                                       : sample_assay(v, &v->shared->mean_ns[i], err);
        return r;
}

static void bpf_verify_free(struct workload *w)
{
        struct bpf_verify *v = bpf_verify_of(w);

        if (!v)
                return;
        local_done(&v->base);
        if (v->shared)
                munmap(v->shared, v->shared_bytes);
        object_free(v->object);
        key_table_done(&bpf_verify_table, &v->keys);
        free(v);
}

static int build(struct workload *w, struct boundary *b, const struct node *config, struct err *err)
{
        struct bpf_verify *v = bpf_verify_of(w);
        const struct program *program;
        int r;

        r = key_table_read(&bpf_verify_table, config, "workload", &v->keys, err);
        if (r >= 0)
                r = specimen_new(v->keys.program, &v->object, err);
        if (r < 0)
                return r;
        program = v->object->programs[0];
        v->slots = span_of(program->slots, (size_t)program->n_insns * INSN_SLOT_BYTES);
        v->n = (size_t)(v->keys.warmup_samples + v->keys.samples);
        v->shared_bytes = sizeof(*v->shared) + v->n * sizeof(v->shared->mean_ns[0]);
        v->shared = local_share(v->shared_bytes);
        return v->shared ? 0 : err_set_nomem(err);
}

static const struct local_work work = {
        .name = "verifier",
        .size = sizeof(struct bpf_verify),
        .ops = &bpf_verify_ops,
        .build = build,
        .open = open_process,
        .run = run_process,
};

static int bpf_verify_prepare(struct boundary *b, const char *name, const struct node *config, struct workload **ret,
                              struct err *err)
{
        return local_new(&work, b, config, ret, err);
}

static int bpf_verify_collect(struct workload *w, struct sample_writer *out, struct workload_result *ret,
                              struct err *err)
{
        struct bpf_verify *v = bpf_verify_of(w);
        int r = 0;

        for (size_t i = 0; i < v->n && r >= 0; i++)
                r = sample_write(out, (const int64_t[]){(int64_t)i, v->shared->mean_ns[i]}, err);
        if (r < 0)
                return r;
        ret->counts = json_pack("{s:I, s:I, s:I, s:I}", "slots", (json_int_t)v->n, "warmup_slots",
                                (json_int_t)v->keys.warmup_samples, "verifications", (json_int_t)v->n * v->keys.batch,
                                "instructions", (json_int_t)v->object->programs[0]->n_insns);
        ret->notes = json_pack("{s:s, s:o*}", "verifier", verifier_names[v->keys.verifier], "process",
                               sched_grant_json(&v->shared->grant));
        return ret->counts && ret->notes ? 0 : err_set_nomem(err);
}

const struct workload_ops bpf_verify_ops = {
        .columns = columns,
        .n_columns = ARRAY_SIZE(columns),
        .prepare = bpf_verify_prepare,
        .start = local_start,
        .event_fd = local_event_fd,
        .stop = local_stop,
        .collect = bpf_verify_collect,
        .free = bpf_verify_free,
};

int bpf_verify_check(const struct node *map, struct err *err)
{
        const struct node *program = node_get(map, "program");

        if (specimen_is(program->scalar))
                return 0;
        return err_set_at(err, ERR_USAGE, &program->position, "workload.program: there is no \"%.64s\"; expected %s",
                          program->scalar, SPECIMEN_EXPECTED);
}

int bpf_verify_size(const struct node *map, struct workload_size *ret, struct err *err)
{
        _cleanup_object_ struct object *object = NULL;
        struct bpf_verify_keys k = {0};
        int r = key_table_read(&bpf_verify_table, map, "workload", &k, err);

        if (r >= 0)
                r = specimen_new(k.program, &object, err);
        if (r >= 0) {
                bool is_linux = k.verifier == VERIFIER_LINUX;

                ret->values = k.samples;
                ret->rows = k.samples + k.warmup_samples;
                ret->duration_ns = ret->rows * k.batch *
                                   ((is_linux ? KERNEL_CALL_NS : CALL_NS) +
                                    (is_linux ? KERNEL_INSN_NS : INSN_NS) * (int64_t)object->programs[0]->n_insns);
        }
        key_table_done(&bpf_verify_table, &k);
        return r;
}

int bpf_verify_missing(const struct node *map, struct err *err)
{
        struct bpf_verify_keys k = {0};
        int r = key_table_read(&bpf_verify_table, map, "workload", &k, err);

        if (r >= 0)
                r = cpu_missing("workload.cpu", k.cpu, err);
        if (r >= 0 && k.verifier == VERIFIER_LINUX)
                r = kernel_verifier_missing(err);
        key_table_done(&bpf_verify_table, &k);
        return r;
}

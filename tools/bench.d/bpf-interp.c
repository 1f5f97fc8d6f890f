/* SPDX-License-Identifier: Apache-2.0 */

/* Nanoseconds an instruction: the interpreter, the checking interpreter, and the running kernel (its JIT where that is
 * on), each round in turn on the same programs; then decoding and the graph. Processor time, median of the rounds. */

#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "bpfvm/assemble.h"
#include "bpfvm/cfg.h"
#include "bpfvm/interp.h"
#include "bpfvm/oracle.h"
#include "tests/bpf/kernel.h"

#define ROUNDS        31
#define INSNS_A_ROUND 2000000 /* run by each in a round */
#define ORACLE_PART   20      /* the checking interpreter runs so many times fewer */

struct subject {
        const char *name;
        struct object *object;
        struct store *store;
        struct interp *interp;
        uint64_t steps; /* instructions of one run */
        double interp_ns[ROUNDS], oracle_ns[ROUNDS], kernel_ns[ROUNDS], decode_ns[ROUNDS], graph_ns[ROUNDS];
};

static double per_insn(int64_t start_ns, uint64_t insns)
{
        return (double)(clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns) / (double)insns;
}

static int compare(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return x < y ? -1 : x > y;
}

static double median(double *values)
{
        qsort(values, ROUNDS, sizeof(*values), compare);
        return values[ROUNDS / 2];
}

static int make_subject(const char *name, const char *text, struct subject *ret, struct err *err)
{
        _cleanup_free_ uint8_t *slots = NULL;
        struct oracle_result result;
        struct fault fault = {0};
        size_t len;
        int r;

        *ret = (struct subject){.name = name};
        r = assemble_text(span_of_text(text), name, &slots, &len, err);
        if (r == 0)
                r = object_of_slots(span_of(slots, len), name, NULL, 0, &ret->object, &fault, err);
        if (r == 0)
                r = store_new(NULL, 0, &ret->store, err);
        if (r == 0)
                r = interp_new(ret->object->programs[0], ret->store, NULL, &ret->interp, err);
        if (r == 0)
                r = oracle_run(ret->object->programs[0], ret->store, NULL, NULL, &result, &fault, err);
        if (r == 0)
                ret->steps = result.steps;
        return r > 0 ? err_set(err, ERR_BUG, EINVAL, "%s: %s", name, fault.text) : r;
}

static void subject_done(struct subject *s)
{
        interp_free(s->interp);
        store_free(s->store);
        object_free(s->object);
}

/* "add:1000" of the ten programs: r0 = 0, adds, exit. */
static char *add_chain(unsigned n)
{
        struct text text = {0};

        text_add(&text, "r0 = 0\n");
        for (unsigned i = 1; i <= n - 2; i++)
                text_addf(&text, "r0 += %u\n", i % 100);
        text_add(&text, "exit\n");
        return text_take(&text);
}

/* Loads, stores, branches and arithmetic of both widths, without loops. */
static char *mixed(unsigned n)
{
        struct text text = {0};

        text_add(&text, "r0 = 7\n");
        for (unsigned slot = 1; slot <= 8; slot++)
                text_addf(&text, "*(u64 *)(r10 - %u) = %u\n", 8 * slot, slot);
        for (unsigned i = 0; i < n; i++) {
                unsigned offset = 8 * (1 + i % 8);

                text_addf(&text, "r2 = *(u64 *)(r10 - %u)\nr2 += r0\nw2 ^= %u\n*(u64 *)(r10 - %u) = r2\n", offset, i,
                          offset);
                text_addf(&text, "if r2 s> %u goto +1\nr0 += %u\nr0 *= 3\n", 100 * i, i);
        }
        text_add(&text, "exit\n");
        return text_take(&text);
}

static int measure_round(struct subject *s, struct kernel *kernel, unsigned round, struct err *err)
{
        const struct program *program = s->object->programs[0];
        uint64_t runs = INSNS_A_ROUND / s->steps, r0;
        struct oracle_result result;
        struct fault fault;
        uint32_t kernel_ns = 0;
        int64_t start = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
        int r = 0;

        for (uint64_t i = 0; i < runs && r == 0; i++)
                r = interp_run(s->interp, NULL, UINT64_MAX, &r0, &fault);
        s->interp_ns[round] = per_insn(start, runs * s->steps);

        start = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
        for (uint64_t i = 0; i < runs / ORACLE_PART && r == 0; i++)
                r = oracle_run(program, s->store, NULL, NULL, &result, &fault, err);
        s->oracle_ns[round] = per_insn(start, runs / ORACLE_PART * s->steps);

        start = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
        for (uint64_t i = 0; i < runs / ORACLE_PART && r == 0; i++) {
                _cleanup_object_ struct object *object = NULL;

                r = object_of_slots(span_of(program->slots, (size_t)program->n_insns * INSN_SLOT_BYTES), "b", NULL, 0,
                                    &object, &fault, err);
        }
        s->decode_ns[round] = per_insn(start, runs / ORACLE_PART * program->n_insns);

        start = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
        for (uint64_t i = 0; i < runs / ORACLE_PART && r == 0; i++) {
                _cleanup_cfg_ struct cfg *cfg = NULL;

                r = cfg_build(program, &cfg, &fault, err);
        }
        s->graph_ns[round] = per_insn(start, runs / ORACLE_PART * program->n_insns);

        if (kernel->program >= 0)
                kernel_time(kernel, (uint32_t)runs, &kernel_ns);
        s->kernel_ns[round] = (double)kernel_ns / (double)s->steps;
        return r > 0 ? err_set(err, ERR_BUG, EINVAL, "%s: %s", s->name, fault.text) : r;
}

static int bench(const char *name, const char *text, struct err *err)
{
        _cleanup_(subject_done) struct subject s = {0};
        struct kernel kernel;
        bool has_kernel;
        int r = make_subject(name, text, &s, err);

        if (r < 0)
                return r;
        has_kernel = kernel_open(&kernel, NULL, 0) == 0 &&
                     kernel_load(&kernel, s.object->programs[0]->slots,
                                 (size_t)s.object->programs[0]->n_insns * INSN_SLOT_BYTES, 0, NULL, 0) == 0;
        for (unsigned round = 0; round < ROUNDS && r == 0; round++)
                r = measure_round(&s, &kernel, round, err);
        kernel_close(&kernel);
        if (r < 0)
                return r;

        printf("%-10s %6llu instructions: interpreter %5.2f ns each, checking %6.1f ns", name,
               (unsigned long long)s.steps, median(s.interp_ns), median(s.oracle_ns));
        if (has_kernel)
                printf(", kernel %5.2f ns (interpreter %.1fx)", median(s.kernel_ns),
                       median(s.interp_ns) / median(s.kernel_ns));
        printf("\n%-10s decoding %.1f ns, graph %.1f ns an instruction of the program\n", "", median(s.decode_ns),
               median(s.graph_ns));
        return 0;
}

int main(void)
{
        _cleanup_free_ char *add = add_chain(1000), *mix = mixed(150);
        struct err err = {0};

        if (!add || !mix || bench("add:1000", add, &err) < 0 || bench("mixed", mix, &err) < 0) {
                fprintf(stderr, "bench-bpf-interp: %s\n", err.text);
                return 1;
        }
        printf("wanted: 1.6 ns or less on add:1000 (uBPF's interpreter took 3.3 on such a machine)\n");
        return 0;
}

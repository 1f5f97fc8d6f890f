/* SPDX-License-Identifier: Apache-2.0 */

/* What is accepted, and in which time, against the number of states that the verifier keeps apart (processor time,
 * least of the rounds); and how soon refused programs get their counterexample. Arguments: objects from C. */

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "bpfvm/counterexample.h"
#include "bpfvm/elf.h"
#include "tests/bpf-generate.h"
#include "tests/bpf/gen.h"
#include "tests/bpf/kernel.h"

#define ROUNDS   7
#define PROGRAMS 3000
#define SEED     UINT64_C(20261130)
#define REFUSALS 500

static void die(const char *what, const char *why)
{
        fprintf(stderr, "bench-bpf-disjuncts: %s: %s\n", what, why);
        exit(1);
}

static struct verdict verify(const struct program *program, const struct verifier_options *options, int64_t *ns)
{
        int64_t start = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
        struct verdict verdict = {0};

        if (verifier_check(program, options, &verdict, NULL) < 0)
                die(program->name, "memory ran out");
        *ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - start;
        return verdict;
}

/* Programs that are to be accepted: objects from C, or random ones, of which the kernel accepted each where it could be
 * asked. */
struct set {
        const char *name;
        struct object **objects;
        size_t n;
};

static void set_add(struct set *set, struct object *object)
{
        set->objects = reallocarray(set->objects, set->n + 1, sizeof(struct object *));
        if (!set->objects)
                die(set->name, "memory ran out");
        set->objects[set->n++] = object;
}

static struct set read_objects(char **paths, int n)
{
        struct set set = {.name = "from C"};

        for (int i = 0; i < n; i++) {
                _cleanup_free_ char *bytes = NULL;
                struct object *object = NULL;
                struct err err = {0};
                size_t len;

                if (file_read(AT_FDCWD, paths[i], ELF_FILE_MAX, &bytes, &len, &err) < 0 ||
                    elf_load(span_of(bytes, len), paths[i], &object, &err) < 0)
                        die(paths[i], err.text);
                set_add(&set, object);
        }
        return set;
}

static struct set make_objects(void)
{
        struct kernel kernel;
        bool has_kernel = !kernel_limit() && kernel_open(&kernel, gen_maps, GEN_MAPS) == 0;
        struct set set = {.name = has_kernel ? "the kernel accepts" : "made at random"};

        for (unsigned i = 0; i < PROGRAMS; i++) {
                struct gen_options how = {.no_loops = true};
                _cleanup_free_ uint8_t *slots = NULL;
                struct object *object = NULL;
                struct fault fault;
                struct rng rng;
                bool is_wild;
                size_t len;

                rng_seed_stream(&rng, SEED, i);
                how.statements = 5 + (uint32_t)rng_below(&rng, 40);
                gen_program(&rng, &how, &slots, &len, &is_wild);
                if (has_kernel && kernel_load(&kernel, slots, len, 0, NULL, 0) < 0)
                        continue;
                if (object_of_slots(span_of(slots, len), "made", gen_maps, GEN_MAPS, &object, &fault, NULL) != 0)
                        die("a program", "it could not be made");
                object->programs[0]->context = *context_find("__sk_buff");
                set_add(&set, object);
        }
        if (has_kernel)
                kernel_close(&kernel);
        return set;
}

static void set_done(struct set *set)
{
        for (size_t i = 0; i < set->n; i++)
                object_free(set->objects[i]);
        free(set->objects);
}

static void print_disjuncts(const struct set *set, unsigned disjuncts)
{
        struct verifier_options options = {.profile = profile_find("full"),
                                           .may_actuate = true,
                                           .disjuncts = disjuncts};
        uint64_t insns = 0, transfers = 0;
        size_t n = 0, accepted = 0;
        int64_t least = INT64_MAX;

        for (unsigned round = 0; round < ROUNDS; round++) {
                int64_t sum = 0;

                n = accepted = insns = transfers = 0;
                for (size_t i = 0; i < set->n; i++)
                        for (uint32_t p = 0; p < set->objects[i]->n_programs; p++) {
                                const struct program *program = set->objects[i]->programs[p];
                                int64_t ns;
                                struct verdict verdict = verify(program, &options, &ns);

                                n++;
                                sum += ns;
                                insns += program->n_insns;
                                transfers += verdict.transfers;
                                accepted += verdict.fault.kind == FAULT_NONE;
                                verdict_done(&verdict);
                        }
                least = MIN(least, sum);
        }
        printf("%-20s %9u %6zu of %zu %8.2f%% %10.1f %12.2f\n", set->name, disjuncts, accepted, n,
               100.0 * (double)accepted / (double)n, (double)least / (double)n / 1000,
               (double)transfers / (double)insns);
}

static void print_curve(char **paths, int n_paths)
{
        const unsigned disjuncts[] = {1, 2, 3, 4, 6, 8, 16, 32, 64};
        struct set sets[] = {read_objects(paths, n_paths), make_objects()};

        printf("%-20s %9s %14s %9s %10s %12s\n", "programs", "disjuncts", "accepted", "", "us each", "transfers/insn");
        for (size_t s = 0; s < ARRAY_SIZE(sets); s++) {
                for (size_t k = 0; k < ARRAY_SIZE(disjuncts) && sets[s].n > 0; k++)
                        print_disjuncts(&sets[s], disjuncts[k]);
                set_done(&sets[s]);
        }
}

static int compare(const void *a, const void *b)
{
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

        return (x > y) - (x < y);
}

/* The search for one refused program. Return: its time, or INT64_MAX if nothing was found in time; -1 if the program is
 * not refused for what happens when it runs. */
static int64_t search(struct generate *g, uint64_t seed)
{
        const struct counterexample_effort effort = {.ns = COUNTEREXAMPLE_NS};
        struct verifier_options options = {.profile = profile_find("full")};
        _cleanup_counterexample_ struct counterexample *example = NULL;
        _cleanup_verdict_ struct verdict verdict = {0};
        _cleanup_object_ struct object *object = NULL;
        struct fault fault;
        int64_t start;
        int r;

        if (object_of_slots(span_of(g->slots, INSN_SLOT_BYTES * g->n), "made", generate_maps, ARRAY_SIZE(generate_maps),
                            &object, &fault, NULL) != 0)
                die("a program", "it could not be made");
        context_flat(&object->programs[0]->context, 16, true);
        verdict = verify(object->programs[0], &options, &start);
        if (!counterexample_is_due(verdict.fault.kind))
                return -1;
        start = clock_now_ns(CLOCK_MONOTONIC);
        r = counterexample_find(object->programs[0], &options, &verdict, &effort, seed, &example, NULL);
        if (r < 0)
                die("a search", "memory ran out");
        return r == 1 ? clock_now_ns(CLOCK_MONOTONIC) - start : INT64_MAX;
}

static void print_searches(void)
{
        const struct generate_options options = {.statements = 8,
                                                 .context_size = 16,
                                                 .uses_maps = true,
                                                 .uses_calls = true,
                                                 .uses_loops = true,
                                                 .is_unaligned = true,
                                                 .risk_percent = 4};
        struct generate *g = calloc(1, sizeof(*g));
        static int64_t times[REFUSALS];
        unsigned n = 0, found = 0;

        if (!g)
                die("a program", "memory ran out");
        for (uint64_t seed = 0; n < REFUSALS; seed++) {
                struct rng rng;

                rng_seed_stream(&rng, SEED, seed);
                generate_program(g, &rng, &options);
                times[n] = search(g, seed);
                if (times[n] < 0)
                        continue;
                found += times[n++] != INT64_MAX;
        }
        free(g);
        qsort(times, n, sizeof(times[0]), compare);
        printf("\ncounterexamples: %u of %u unsafe programs (%.1f%%) got one within 50 ms; half within %.0f us, 80%% "
               "within %.0f us (wanted: 80%% within 50 ms)\n",
               found, n, 100.0 * found / n, (double)times[n / 2] / 1e3, (double)times[n * 8 / 10] / 1e3);
}

int main(int argc, char **argv)
{
        print_curve(argv + 1, argc - 1);
        print_searches();
        return 0;
}

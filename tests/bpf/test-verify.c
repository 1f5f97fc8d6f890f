/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include <errno.h>
#include <inttypes.h>

#include "bpfvm/audit.h"
#include "bpfvm/disasm.h"
#include "bpfvm/oracle.h"
#include "bpfvm/transfer.h"
#include "bpfvm/verifier.h"
#include "tests/bpf-claim.h"
#include "tests/bpf/gen.h"
#include "tests/bpf/kernel.h"
#include "tests/skip.h"

/* Programs made at random, checked by the running kernel's verifier, in a process that has CAP_BPF and nothing else,
 * and by ours. What is accepted here and refused there has to be of a class that is known and harmless, by what the
 * kernel's log says; of what is accepted there, nearly all has to be accepted here, or a verifier that refuses
 * everything would pass. */

#define PROGRAMS      10000
#define SEED          UINT64_C(20261130)
#define FLOOR_PERCENT 95
#define RUNS          4  /* of each program that is accepted here, */
#define RUNS_DISPUTED 50 /* and of those that the kernel refuses */

/* Why the kernel refuses what is safe by the rules here (oracle.h): what its last message holds, and the reason. */
static const struct explained {
        const char *message;
        const char *why;
} explained[] = {
        {"misaligned stack access", "accesses of the stack need not be aligned here"},
        {"prohibited for !root",
         "it keeps pointers in bounds where a processor speculates; here only what is run counts"},
        {"combined stack size", "it has 512 bytes for a chain of calls, we have them for each frame"},
        {"negative offset ctx ptr",
         "it refuses a pointer that leaves the context; here only an access there is refused"},
        {"math between ", "it refuses a pointer that is moved far; here only an access there is refused"},
        {"subtraction from stack pointer",
         "it refuses a stack pointer that is moved by a number that it does not know"},
        /* Any other message, if the log shows a way that our check found to be taken by no value, and the auditor, with
         * an arithmetic of its own, too: the kernel knows less of divisions, of shifts by registers, of operands that
         * are one register. */
        {NULL, "it follows a way that no value takes"},
};

static struct kernel kernel;
static bool with_loops;

struct tally {
        unsigned made, both, only_here, only_there, neither;
        unsigned classes[ARRAY_SIZE(explained)];
        unsigned kinds[FAULT_KINDS];
};

static void print_program(const struct program *program)
{
        char line[DISASM_SIZE];

        for (uint32_t slot = 0; slot < program->n_insns; slot++)
                if (program->insns[slot].kind != INSN_TAIL)
                        print_error("%4u: %s\n", slot, disasm_insn(&program->insns[slot], slot, line));
}

/* The last lines of the kernel's log: what it refuses, before its statistics. */
static const char *last_message(char *log)
{
        char *end = strstr(log, "\nprocessed ");

        if (end)
                *end = 0;
        end = strrchr(log, '\n');
        return end ? end + 1 : log;
}

/* Where values go, in any chain of calls: to an instruction, and from a branch on and to its target. */
struct ways {
        const struct program *program;
        struct way {
                bool is_reached, goes[2];
        } * at; /* by slot */
};

static void note_ways(void *userdata, const struct verifier_context *context, uint32_t slot, const struct state *state)
{
        struct ways *ways = userdata;
        struct state_pool pool = {.max_bytes = 1 << 20};
        struct transfer t = {.program = ways->program, .pool = &pool};

        ways->at[slot].is_reached = true;
        for (unsigned taken = 0; taken < 2 && ways->program->insns[slot].kind == INSN_BRANCH; taken++) {
                struct state *copy = state_copy(&pool, state);

                assert_non_null(copy);
                ways->at[slot].goes[taken] = ways->at[slot].goes[taken] || transfer_branch(&t, copy, slot, taken);
                state_release(&pool, copy);
        }
        state_pool_done(&pool);
}

/* Whether no value goes from one instruction to another that the kernel's log shows behind it. */
static bool is_dead_way(const struct ways *ways, unsigned from, unsigned to)
{
        const struct insn *insn = &ways->program->insns[from];

        if (from >= ways->program->n_insns || to >= ways->program->n_insns)
                return false;
        if (!ways->at[from].is_reached || !ways->at[to].is_reached)
                return true;
        return insn->kind == INSN_BRANCH && (to == insn->target || to == from + 1) &&
               !(to == insn->target && ways->at[from].goes[1]) && !(to == from + 1 && ways->at[from].goes[0]);
}

/* Whether the kernel's log shows a way that no value takes: "12: (07) ..." is an instruction, "from 12 to 20: ..."
 * where it goes on behind a branch. */
static bool shows_dead_way(const char *log, const struct program *program, const struct verifier_options *options)
{
        _cleanup_free_ struct way *at = calloc(program->n_insns, sizeof(*at));
        _cleanup_verdict_ struct verdict verdict = {0};
        struct ways ways = {.program = program, .at = at};
        struct verifier_options observing = *options;
        unsigned last = UINT32_MAX, from, slot, opcode;

        observing.observe = note_ways;
        observing.userdata = &ways;
        assert_int_equal(verifier_check(program, &observing, &verdict, NULL), 0);
        for (const char *line = log; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (sscanf(line, "from %u to %u", &from, &slot) == 2) {
                        if (is_dead_way(&ways, from, slot))
                                return true;
                        last = UINT32_MAX;
                } else if (sscanf(line, "%u: (%x)", &slot, &opcode) == 2) {
                        if (last != UINT32_MAX && is_dead_way(&ways, last, slot))
                                return true;
                        last = slot;
                }
        }
        return false;
}

/* What is accepted here runs: on contexts of all kinds the checking interpreter finds no fault, and before each
 * instruction what was claimed is true. */
static void run_accepted(const struct program *program, struct claims *claims, unsigned runs, uint64_t number)
{
        struct oracle_options how = {.observe = claims_check, .userdata = claims};
        _cleanup_store_ struct store *store = NULL;
        struct rng rng;

        rng_seed_stream(&rng, SEED + 1, number);
        assert_int_equal(store_new(program->maps, program->n_maps, &store, NULL), 0);
        for (unsigned i = 0; i < runs; i++) {
                uint8_t context[GEN_CONTEXT_BYTES];
                struct oracle_result result;
                struct fault fault = {0};
                int r;

                store_clear(store);
                gen_context(&rng, context);
                r = oracle_run(program, store, context, &how, &result, &fault, NULL);
                if (r == 0)
                        continue;
                print_program(program);
                if (r == 2)
                        fail_msg("program %" PRIu64 ", slot %u: %s", number, claims->wrong_slot, claims->wrong);
                fail_msg("program %" PRIu64 " is accepted here and ends in %s at %u: %s", number,
                         fault_name(fault.kind), fault.slot, fault.text);
        }
}

/* And the auditor agrees. */
static void audit_accepted(const struct program *program, const struct verifier_options *options, uint64_t number)
{
        _cleanup_certificate_ struct certificate *certificate = NULL;
        _cleanup_verdict_ struct verdict verdict = {0};
        struct fault fault = {0};

        assert_int_equal(certificate_make(program, options, &certificate, &verdict, NULL), 0);
        if (audit_check(program, certificate, options, &fault, NULL) != 0)
                fail_msg("program %" PRIu64 ": the auditor says %s at %u: %s", number, fault_name(fault.kind),
                         fault.slot, fault.text);
}

static void explain(const struct program *program, const struct verifier_options *options, struct tally *tally,
                    uint64_t number)
{
        static char log[1 << 22];
        _cleanup_free_ char *whole = NULL;
        const char *message;

        kernel_load(&kernel, program->slots, (size_t)program->n_insns * INSN_SLOT_BYTES, 2, log, sizeof(log));
        whole = strdup(log);
        message = last_message(log);
        for (size_t i = 0; i < ARRAY_SIZE(explained); i++)
                if (explained[i].message ? strstr(message, explained[i].message) != NULL
                                         : shows_dead_way(whole, program, options)) {
                        tally->classes[i]++;
                        return;
                }
        if (getenv("ASSAY_BPF_COLLECT")) {
                print_message("program %" PRIu64 ": %s\n", number, message);
                return;
        }
        print_program(program);
        fail_msg("program %" PRIu64 " is accepted here, and refused by the kernel: %s", number, message);
}

static void check_program(struct rng *rng, struct tally *tally, uint64_t number)
{
        struct gen_options how = {.statements = 5 + (uint32_t)rng_below(rng, 40),
                                  .wild_percent = with_loops ? 0 : 25,
                                  .no_loops = !with_loops};
        struct verifier_options options = {.profile = profile_find("full")}, observing = options;
        _cleanup_verdict_ struct verdict verdict = {0};
        _cleanup_claims_ struct claims claims = {0};
        _cleanup_free_ uint8_t *slots = NULL;
        _cleanup_object_ struct object *object = NULL;
        struct fault fault = {0};
        bool is_wild;
        size_t len;
        int theirs, ours;

        gen_program(rng, &how, &slots, &len, &is_wild);
        assert_int_equal(object_of_slots(span_of(slots, len), "made", gen_maps, GEN_MAPS, &object, &fault, NULL), 0);
        object->programs[0]->context = *context_find("__sk_buff");
        theirs = kernel_load(&kernel, slots, len, 0, NULL, 0);
        assert_int_equal(claims_init(&claims, object->programs[0]), 0);
        observing.observe = claims_add;
        observing.userdata = &claims;
        ours = verifier_check(object->programs[0], &observing, &verdict, NULL);
        assert_true(ours >= 0);
        assert_true(verdict.transfers <= verdict.transfers_bound);
        assert_true(verdict.comparisons <= verdict.comparisons_bound);
        tally->made++;
        if (ours == 0) {
                run_accepted(object->programs[0], &claims, theirs == 0 ? RUNS : RUNS_DISPUTED, number);
                if (theirs != 0 || number % 4 == 0)
                        audit_accepted(object->programs[0], &options, number);
        }
        if (ours == 0 && theirs == 0) {
                tally->both++;
        } else if (ours == 0) {
                tally->only_here++;
                explain(object->programs[0], &options, tally, number);
        } else if (theirs == 0) {
                tally->only_there++;
                tally->kinds[verdict.fault.kind]++;
                if (getenv("ASSAY_SHOW_REFUSED"))
                        print_message("program %" PRIu64 " refused here: %s at %u: %s; %s\n", number,
                                      fault_name(verdict.fault.kind), verdict.fault.slot, verdict.fault.text,
                                      verdict.known ? verdict.known : "");
        } else {
                tally->neither++;
        }
}

static void test_acceptance(void **state)
{
        const char *count = getenv("ASSAY_BPF_PROGRAMS"), *seed = getenv("ASSAY_BPF_SEED");
        struct tally tally = {0};

        for (unsigned i = 0; i < (count ? strtoul(count, NULL, 10) : PROGRAMS); i++) {
                struct rng rng;

                rng_seed_stream(&rng, seed ? strtoull(seed, NULL, 10) : SEED, i);
                check_program(&rng, &tally, i);
        }
        print_message("%u programs: %u accepted by both, %u by neither, %u only here, %u only by the kernel\n",
                      tally.made, tally.both, tally.neither, tally.only_here, tally.only_there);
        for (size_t i = 0; i < ARRAY_SIZE(explained); i++)
                if (tally.classes[i] > 0)
                        print_message("  only here, the kernel says \"%s\": %u (%s)\n",
                                      explained[i].message ? explained[i].message : "...", tally.classes[i],
                                      explained[i].why);
        for (unsigned kind = 0; kind < FAULT_KINDS; kind++)
                if (tally.kinds[kind] > 0)
                        print_message("  only by the kernel, refused here for %s: %u\n",
                                      fault_name((enum fault_kind)kind), tally.kinds[kind]);
        assert_true(2 * (tally.both + tally.only_there) >= tally.made);
        assert_true(100 * tally.both >= FLOOR_PERCENT * (tally.both + tally.only_there));
}

/* "loops": with all rights. A process with CAP_BPF alone gets no loop past a kernel that guards against speculation;
 * and with them nothing senseless, since then the kernel allows too much. */
int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_acceptance)};
        const char *why;
        int r;

        with_loops = argc > 1 && streq(argv[1], "loops");
        why = with_loops ? NULL : kernel_limit();
        if (why)
                return test_skip("bpf", why);
        r = kernel_open(&kernel, gen_maps, GEN_MAPS);
        if (r < 0)
                return test_skip("bpf", "the kernel makes no maps for this process");
        r = cmocka_run_group_tests(tests, NULL, NULL);
        kernel_close(&kernel);
        return r;
}

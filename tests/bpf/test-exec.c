/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "bpfvm/disasm.h"
#include "bpfvm/interp.h"
#include "bpfvm/oracle.h"
#include "tests/bpf/gen.h"
#include "tests/bpf/kernel.h"
#include "tests/skip.h"

/* Programs made at random, run by the kernel and by both interpreters: results, what is left in the context's cb and in
 * the maps have to be the same. Programs that the kernel refuses are counted and left out. */

#define PROGRAMS 10000
#define RUNS     2 /* of each program, on other contexts */
#define SEED     UINT64_C(20240901)

#define CB_OFFSET 48
#define CB_BYTES  20

static struct kernel kernel;
static bool with_loops;

struct tally {
        unsigned made, accepted, wild, wild_accepted, runs, slots;
};

static void print_program(const struct program *program)
{
        char line[DISASM_SIZE];

        for (uint32_t slot = 0; slot < program->n_insns; slot++)
                if (program->insns[slot].kind != INSN_TAIL)
                        print_error("%4u: %s\n", slot, disasm_insn(&program->insns[slot], slot, line));
}

static void compare_maps(const struct program *program, struct store *store, const char *who)
{
        for (uint32_t map = 0; map < program->n_maps; map++) {
                const struct map_def *def = &program->maps[map];

                for (uint64_t key = 0; key < (def->kind == MAP_HASH ? 8 : def->max_entries); key++) {
                        uint8_t theirs[256] = {0};
                        int r = kernel_lookup(&kernel, map, &key, theirs);
                        const uint8_t *ours = store_lookup(store, map, &key);

                        if ((r == 0) != (ours != NULL) || (ours && memcmp(ours, theirs, def->value_size) != 0)) {
                                print_program(program);
                                fail_msg("%s: map %s differs under key %" PRIu64, who, def->name, key);
                        }
                }
        }
}

static void compare_result(const struct program *program, const char *who, uint64_t ours, uint32_t theirs,
                           const uint8_t *our_context, const uint8_t *their_context)
{
        if ((uint32_t)ours != theirs) {
                print_program(program);
                fail_msg("%s: r0 is 0x%" PRIx64 ", the kernel's 0x%" PRIx32, who, ours, theirs);
        }
        if (memcmp(our_context + CB_OFFSET, their_context + CB_OFFSET, CB_BYTES) != 0) {
                print_program(program);
                fail_msg("%s: cb differs from the kernel's", who);
        }
}

static void run_once(const struct program *program, struct rng *rng, struct store *store, struct interp *interp)
{
        static const uint8_t packet[GEN_PACKET_BYTES];
        uint8_t given[GEN_CONTEXT_BYTES], theirs[GEN_CONTEXT_BYTES], ours[GEN_CONTEXT_BYTES];
        struct oracle_result result = {0};
        struct fault fault = {0};
        uint32_t want;
        uint64_t r0;

        gen_context(rng, given);
        memcpy(theirs, given, sizeof(given));
        /* the kernel fills the length in from the packet */
        put_le32(theirs, 0);
        assert_int_equal(kernel_reset(&kernel), 0);
        assert_int_equal(kernel_run(&kernel, packet, sizeof(packet), theirs, sizeof(theirs), &want), 0);

        store_clear(store);
        memcpy(ours, given, sizeof(given));
        if (oracle_run(program, store, ours, NULL, &result, &fault, NULL) != 0) {
                print_program(program);
                fail_msg("the kernel ran it, the checking interpreter found %s at %u: %s", fault_name(fault.kind),
                         fault.slot, fault.text);
        }
        compare_result(program, "checking interpreter", result.r0, want, ours, theirs);
        compare_maps(program, store, "checking interpreter");

        store_clear(store);
        memcpy(ours, given, sizeof(given));
        assert_int_equal(interp_run(interp, ours, UINT64_MAX, &r0, &fault), 0);
        compare_result(program, "interpreter", r0, want, ours, theirs);
        compare_maps(program, store, "interpreter");
}

static void check_program(struct rng *rng, struct tally *tally)
{
        static char log[65536];
        struct gen_options options = {.statements = 5 + (uint32_t)rng_below(rng, 40),
                                      .wild_percent = with_loops ? 0 : 25,
                                      .no_loops = !with_loops};
        _cleanup_free_ uint8_t *slots = NULL;
        _cleanup_object_ struct object *object = NULL;
        _cleanup_store_ struct store *store = NULL;
        _cleanup_interp_ struct interp *interp = NULL;
        struct fault fault = {0};
        bool is_wild;
        size_t len;
        int r;

        gen_program(rng, &options, &slots, &len, &is_wild);
        assert_int_equal(object_of_slots(span_of(slots, len), "made", gen_maps, GEN_MAPS, &object, &fault, NULL), 0);
        object->programs[0]->context = *context_find("__sk_buff");
        r = kernel_load(&kernel, slots, len, 0, NULL, 0);
        tally->made++;
        tally->wild += is_wild;
        if (r != 0) {
                if (r != -EACCES && r != -EINVAL && r != -E2BIG && r != -EPERM && r != -EFAULT && r != -ENOSPC)
                        fail_msg("loading gave %d", r);
                if (getenv("ASSAY_SHOW_REFUSED") && !is_wild) {
                        kernel_load(&kernel, slots, len, 1, log, sizeof(log));
                        print_message("%s\n", log + (strlen(log) > 300 ? strlen(log) - 300 : 0));
                }
                return;
        }
        tally->accepted++;
        tally->wild_accepted += is_wild;
        tally->slots += object->programs[0]->n_insns;
        if (object->programs[0]->fault.kind != FAULT_NONE)
                fail_msg("the kernel accepted what the decoder refuses: %s", object->programs[0]->fault.text);
        assert_int_equal(store_new(object->maps, object->n_maps, &store, NULL), 0);
        assert_int_equal(interp_new(object->programs[0], store, NULL, &interp, NULL), 0);
        for (unsigned i = 0; i < RUNS; i++)
                run_once(object->programs[0], rng, store, interp);
        tally->runs += RUNS;
}

static void test_results_are_the_kernels(void **state)
{
        const char *count = getenv("ASSAY_BPF_PROGRAMS"), *seed = getenv("ASSAY_BPF_SEED");
        struct tally tally = {0};

        for (unsigned i = 0; i < (count ? strtoul(count, NULL, 10) : PROGRAMS); i++) {
                struct rng rng;

                rng_seed_stream(&rng, seed ? strtoull(seed, NULL, 10) : SEED, i);
                check_program(&rng, &tally);
        }
        print_message("%u programs, %u with a senseless statement; the kernel accepted %u (%u of those), %u slots on "
                      "average; "
                      "%u runs equal\n",
                      tally.made, tally.wild, tally.accepted, tally.wild_accepted,
                      tally.slots / MAX(tally.accepted, 1u), tally.runs);
        /* with fewer the comparison would show little */
        assert_true(2 * tally.accepted >= tally.made);
}

/* "loops": with all rights. A process with CAP_BPF alone gets no loop past a kernel that guards against speculation,
 * which follows the branch that is not taken as well; and with them nothing senseless, since then the kernel allows too
 * much. */
int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_results_are_the_kernels)};
        const char *why;
        int r;

        with_loops = argc > 1 && strcmp(argv[1], "loops") == 0;
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

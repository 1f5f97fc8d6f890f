/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "base/rng.h"
#include "base/text.h"
#include "bpfvm/eval.h"
#include "bpfvm/interp.h"
#include "bpfvm/isa.h"
#include "tests/unit/bpfvm/made.h"

/* What the programs of tests/cases/bpf do not show: budgets, embedding, and every operation beside its plain form. */

static int run(struct object *object, const struct embed *embed, uint64_t budget, uint64_t *ret, struct fault *fault)
{
        _cleanup_store_ struct store *store = NULL;
        _cleanup_interp_ struct interp *interp = NULL;

        assert_int_equal(store_new(object->maps, object->n_maps, &store, NULL), 0);
        assert_int_equal(interp_new(object->programs[0], store, embed, &interp, NULL), 0);
        return interp_run(interp, NULL, budget, ret, fault);
}

static void test_budget(void **state)
{
        /* a body of three instructions, nine jumps back */
        _cleanup_object_ struct object *loop =
                made_of("r0 = 0\nr1 = 10\nl: r0 += 2\nr1 -= 1\nif r1 != 0 goto l\nexit", NULL, 0);
        /* a function of two instructions, called twice */
        _cleanup_object_ struct object *calls = made_of("call f\ncall f\nexit\nf: r0 = 1\nexit", NULL, 0);
        _cleanup_object_ struct object *far =
                made_of("r1 = 0\nl: r1 += 1\nif r1 == 3 goto e\ngotol l\ne: r0 = r1\nexit", NULL, 0);
        struct fault fault = {0};
        uint64_t r0 = 0;

        assert_int_equal(run(loop, NULL, 27, &r0, &fault), 0);
        assert_int_equal(r0, 20);
        assert_int_equal(run(loop, NULL, 26, &r0, &fault), 1);
        assert_int_equal(fault.kind, FAULT_STEP_LIMIT);
        assert_int_equal(fault.slot, 4);
        assert_int_equal(run(calls, NULL, 4, &r0, &fault), 0);
        assert_int_equal(run(calls, NULL, 3, &r0, &fault), 1);
        assert_int_equal(fault.slot, 1);
        assert_int_equal(run(far, NULL, 6, &r0, &fault), 0);
        assert_int_equal(r0, 3);
        assert_int_equal(run(far, NULL, 5, &r0, &fault), 1);
        assert_int_equal(fault.slot, 3);
}

static uint64_t time_ns(void *userdata)
{
        return 123456789012;
}

static uint32_t random_u32(void *userdata)
{
        return 0xfffffffe;
}

static void trace(void *userdata, const char *text, size_t len)
{
        text_add_bytes(userdata, text, len);
        text_add(userdata, "|");
}

static int64_t actuate(void *userdata, enum helper_id helper, const uint64_t args[static 2])
{
        text_addf(userdata, "%s %llu %llu|", helper_find(helper)->name, (unsigned long long)args[0],
                  (unsigned long long)args[1]);
        return -5;
}

static void test_embedding(void **state)
{
        _cleanup_text_ struct text log = {0};
        const struct embed embed = {&log, time_ns, random_u32, trace, actuate};
        struct fault fault;
        uint64_t r0;
        static const struct {
                const char *text;
                uint64_t r0;
        } calls[] = {
                {"call ktime_get_ns\nexit", 123456789012},
                {"call get_prandom_u32\nexit", 0xfffffffe},
                {"r1 = 3\nr2 = 40\ncall pwm_write\nexit", (uint64_t)-5},
                {"r1 = 7\nr2 = 1\ncall gpio_set\nexit", (uint64_t)-5},
        };

        for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
                _cleanup_object_ struct object *object = made_of(calls[i].text, NULL, 0);

                assert_int_equal(run(object, &embed, UINT64_MAX, &r0, &fault), 0);
                assert_int_equal(r0, calls[i].r0);
        }
        assert_string_equal(log.data, "pwm_write 3 40|gpio_set 7 1|");
}

/* Formats are bytes of the program's: written below r10 and given with their length. */
static void test_trace(void **state)
{
        static const struct {
                const char *format;
                size_t len;
                const char *line;
                int64_t r0;
        } cases[] = {
                {"%d %u", 6, "-1 2|", 4},     {"%llx", 5, "ffffffffffffffff|", 16},
                {"%ld %lu", 8, "-1 2|", 4},   {"100%%", 6, "100%|", 4},
                {"a\x1b[0m", 6, "a?[0m|", 5}, {"no end", 3, "no |", 3},
                {"%s", 3, "", -22},           {"%", 2, "", -22},
                {"%d%d%d%d", 9, "", -22},     {"", 1, "|", 0},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_text_ struct text log = {0}, text = {0};
                const struct embed embed = {.userdata = &log, .trace = trace};
                _cleanup_object_ struct object *object = NULL;
                struct fault fault;
                uint64_t r0;

                for (size_t k = 0; k < cases[i].len; k++)
                        text_addf(&text, "*(u8 *)(r10 - %zu) = %d\n", 16 - k, (signed char)cases[i].format[k]);
                text_addf(&text, "r1 = r10\nr1 += -16\nr2 = %zu\nr3 = -1\nr4 = 2\nr5 = 3\ncall trace_printk\nexit\n",
                          cases[i].len);
                object = made_of(text.data, NULL, 0);
                assert_int_equal(run(object, &embed, UINT64_MAX, &r0, &fault), 0);
                assert_int_equal((int64_t)r0, cases[i].r0);
                assert_string_equal(log.data ? log.data : "", cases[i].line);
        }
}

/* Every instruction of the table that computes without memory, on numbers that show its edges, beside eval.h, which
 * says plainly what RFC 9669 says. */
static void check_row(struct rng *rng, const struct isa_row *row)
{
        static const uint64_t edges[] = {0,
                                         1,
                                         2,
                                         31,
                                         32,
                                         63,
                                         64,
                                         0x80,
                                         0x8000,
                                         0x80000000,
                                         0xffffffff,
                                         INT64_MAX,
                                         UINT64_C(1) << 63,
                                         UINT64_MAX,
                                         UINT64_MAX - 1,
                                         0xffffffff80000000};
        struct insn insn = row->insn;
        uint64_t a = edges[rng_below(rng, 16)], b = edges[rng_below(rng, 16)], want, r0;
        _cleanup_object_ struct object *object = NULL;
        uint8_t slots[7 * INSN_SLOT_BYTES] = {0};
        struct isa_slot encoded[2];
        struct fault fault;

        insn.src = insn.flags & INSN_IMM ? 0 : 1;
        insn.imm = (int32_t)b;
        insn.target = 6;
        if (insn.flags & INSN_IMM)
                b = (uint64_t)insn.imm;
        /* r0 = a, r1 = b, the instruction, exit; a branch that is taken skips an instruction that clears r0 */
        assert_int_equal(isa_encode(&(struct insn){.kind = INSN_WIDE, .dst = 0, .imm = (int64_t)a}, 0, encoded), 2);
        isa_slot_put(encoded[0], slots);
        isa_slot_put(encoded[1], slots + 8);
        assert_int_equal(isa_encode(&(struct insn){.kind = INSN_WIDE, .dst = 1, .imm = (int64_t)b}, 2, encoded), 2);
        isa_slot_put(encoded[0], slots + 16);
        isa_slot_put(encoded[1], slots + 24);
        assert_int_equal(isa_encode(&insn, 4, encoded), 1);
        isa_slot_put(encoded[0], slots + 32);
        isa_slot_put((struct isa_slot){.opcode = insn.kind == INSN_BRANCH ? 0xb7 : 0xbf}, slots + 40);
        isa_slot_put((struct isa_slot){.opcode = 0x95}, slots + 48);

        if (insn.kind == INSN_ALU)
                want = eval_alu(insn.op, insn.size, insn.from, a, b);
        else if (insn.kind == INSN_SWAP)
                want = eval_swap(insn.op, insn.size, a);
        else
                want = eval_branch(insn.op, insn.size, a, b) ? a : 0;
        assert_int_equal(object_of_slots(span_of(slots, sizeof(slots)), "t", NULL, 0, &object, &fault, NULL), 0);
        if (object->programs[0]->fault.kind != FAULT_NONE)
                fail_msg("%s", object->programs[0]->fault.text);
        assert_int_equal(run(object, NULL, UINT64_MAX, &r0, &fault), 0);
        if (r0 != want)
                fail_msg("opcode %02x, dst %lx, operand %lx: %lx, expected %lx", slots[32], a, b, r0, want);
}

static void test_every_operation(void **state)
{
        struct rng rng;
        unsigned n = 0;

        rng_seed(&rng, 3);
        for (unsigned opcode = 0; opcode < 256; opcode++)
                for (size_t i = 0; i < isa_by_opcode[opcode].n; i++) {
                        const struct isa_row *row = &isa_by_opcode[opcode].rows[i];
                        uint8_t kind = row->insn.kind;

                        if (row->refusal || (kind != INSN_ALU && kind != INSN_SWAP && kind != INSN_BRANCH))
                                continue;
                        n++;
                        for (unsigned k = 0; k < 300; k++)
                                check_row(&rng, row);
                }
        assert_int_equal(n, 12 * 4 + 2 * 4 + 5 + 2 + 9 + 11 * 4); /* plain, signed too, movsx, neg, swaps, branches */
}

/* The plain forms themselves, where RFC 9669 states a value or a rule. */
static void test_eval(void **state)
{
        assert_int_equal(eval_alu(ALU_SMOD, 8, 0, (uint64_t)-13, 3), (uint64_t)-1);
        assert_int_equal(eval_alu(ALU_SDIV, 8, 0, (uint64_t)-13, 3), (uint64_t)-4);
        assert_int_equal(eval_alu(ALU_DIV, 8, 0, 7, 0), 0);
        assert_int_equal(eval_alu(ALU_SDIV, 4, 0, 7, 0x100000000), 0);
        assert_int_equal(eval_alu(ALU_MOD, 8, 0, 0x1122334455667788, 0), 0x1122334455667788);
        assert_int_equal(eval_alu(ALU_MOD, 4, 0, 0x1122334455667788, 0), 0x55667788);
        assert_int_equal(eval_alu(ALU_SDIV, 8, 0, UINT64_C(1) << 63, UINT64_MAX), UINT64_C(1) << 63);
        assert_int_equal(eval_alu(ALU_SMOD, 8, 0, UINT64_C(1) << 63, UINT64_MAX), 0);
        assert_int_equal(eval_alu(ALU_SDIV, 4, 0, 0x80000000, UINT64_MAX), 0x80000000);
        assert_int_equal(eval_alu(ALU_SMOD, 4, 0, 0x80000000, UINT64_MAX), 0);
        assert_int_equal(eval_alu(ALU_LSH, 8, 0, 1, 65), 2);
        assert_int_equal(eval_alu(ALU_LSH, 4, 0, 1, 33), 2);
        assert_int_equal(eval_alu(ALU_ARSH, 4, 0, 0x80000000, 31), 0xffffffff);
        assert_int_equal(eval_alu(ALU_ARSH, 8, 0, 0x80000000, 31), 1);
        assert_int_equal(eval_alu(ALU_ADD, 4, 0, 0xffffffff, 1), 0);
        assert_int_equal(eval_alu(ALU_MOVSX, 4, 1, 0, 0x80), 0xffffff80);
        assert_int_equal(eval_alu(ALU_MOVSX, 8, 4, 0, 0x80000000), 0xffffffff80000000);
        assert_int_equal(eval_swap(SWAP_ALWAYS, 4, 0x1122334455667788), 0x88776655);
        assert_int_equal(eval_swap(SWAP_BE, 2, 0x7788), 0x8877);
        assert_int_equal(eval_swap(SWAP_LE, 2, 0x55667788), 0x7788);
        assert_true(eval_branch(BRANCH_SGE, 4, 0x80000000, 0xffffffff00000000 | 0x80000000));
        assert_true(eval_branch(BRANCH_SLT, 4, 0x80000000, 0));
        assert_false(eval_branch(BRANCH_SLT, 8, 0x80000000, 0));
        assert_false(eval_branch(BRANCH_SET, 4, 0x100000000, 0x100000000));
        assert_int_equal(eval_atomic(ATOMIC_CMPXCHG, 4, 5, 9, 0x700000005), 9);
        assert_int_equal(eval_atomic(ATOMIC_CMPXCHG, 8, 5, 9, 0x700000005), 5);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_budget), cmocka_unit_test(test_embedding),       cmocka_unit_test(test_trace),
                cmocka_unit_test(test_eval),   cmocka_unit_test(test_every_operation),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

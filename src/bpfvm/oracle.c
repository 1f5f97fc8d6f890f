/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/oracle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "bpfvm/eval.h"
#include "bpfvm/oracle-internal.h"

#define STEPS_DEFAULT 1000000

const char *oracle_value_name(const struct value *value)
{
        switch ((enum value_kind)value->kind) {
        case VALUE_UNINIT:
                return "not initialised";
        case VALUE_SCALAR:
                return "a number";
        case VALUE_CONTEXT:
                return "a pointer to the context";
        case VALUE_STACK:
                return "a pointer to the stack";
        case VALUE_MAP_VALUE:
                return value->may_be_null ? "a lookup's result that may be null" : "a pointer to a map's value";
        case VALUE_MAP:
                return "the handle of a map";
        }
        return "nothing known";
}

/* Registers and stack of frame number @depth, before anything is put into them. */
static void frame_init(struct run *run, uint32_t depth, uint32_t call_slot)
{
        struct oracle_frame *frame = &run->frames[depth];
        uint64_t end = (uintptr_t)(frame->bytes + PROFILE_FRAME_BYTES);

        memset(frame->states, STACK_UNINIT, sizeof(frame->states));
        for (unsigned reg = 0; reg < INSN_REGISTERS; reg++)
                frame->regs[reg] = (struct value){.kind = VALUE_UNINIT};
        frame->call_slot = call_slot;
        if (run->options.is_lax) {
                memset(frame->bytes, 0, sizeof(frame->bytes));
                for (unsigned reg = 0; reg < INSN_REGISTERS; reg++)
                        frame->regs[reg] = value_scalar(0);
                frame->regs[INSN_FRAME_POINTER] = value_scalar(end);
                return;
        }
        frame->regs[INSN_FRAME_POINTER] =
                (struct value){.kind = VALUE_STACK, .index = depth, .bits = end, .origin = end};
}

static void run_enter(struct run *run)
{
        uint32_t size = run->program->context.size;
        uint64_t address = size > 0 ? (uintptr_t)run->context : 0;

        frame_init(run, 0, FAULT_NO_SLOT);
        run->depth = 1;
        if (run->options.is_lax) {
                *run_reg(run, 1) = value_scalar(address);
                *run_reg(run, 2) = value_scalar(size);
                return;
        }
        *run_reg(run, 1) =
                size == 0 ? value_scalar(0) : (struct value){.kind = VALUE_CONTEXT, .bits = address, .origin = address};
}

static int check_reads(struct run *run, const struct insn *insn)
{
        uint16_t reads = insn_reads(insn);

        if (insn->kind == INSN_EXIT && run->depth > 1)
                return 0;
        for (unsigned reg = 0; reg < INSN_REGISTERS; reg++)
                if (reads & 1u << reg && run_reg(run, reg)->kind == VALUE_UNINIT)
                        return fault_set(run->fault, FAULT_UNINIT_REGISTER, run->slot,
                                         "reads r%u, which was not written", reg);
        return 0;
}

static int fault_arith(struct run *run, const struct value *value, const char *what)
{
        return fault_set(run->fault, FAULT_POINTER_ARITH, run->slot, "%s %s", what, oracle_value_name(value));
}

/* The only arithmetic that pointers have: plus or minus a scalar, in 64 bits. */
static int pointer_arith(struct run *run, const struct insn *insn, const struct value *operand)
{
        struct value *dst = run_reg(run, insn->dst), result;
        const struct value *pointer = value_is_pointer(dst) ? dst : operand;

        if (insn->size != 8 || (insn->op != ALU_ADD && insn->op != ALU_SUB))
                return fault_arith(run, pointer, "an operation that pointers do not have, on");
        if (value_is_pointer(dst) && value_is_pointer(operand))
                return fault_arith(run, operand, "arithmetic of two pointers; the second is");
        if (insn->op == ALU_SUB && value_is_pointer(operand))
                return fault_arith(run, operand, "subtracts, from a number,");
        if (pointer->kind == VALUE_MAP || pointer->may_be_null)
                return fault_arith(run, pointer, "arithmetic on");

        result = *pointer;
        result.bits = eval_alu(insn->op, 8, 0, dst->bits, operand->bits);
        *dst = result;
        return 0;
}

static int step_alu(struct run *run, const struct insn *insn)
{
        struct value *dst = run_reg(run, insn->dst);
        struct value operand = insn->flags & INSN_IMM ? value_scalar((uint64_t)insn->imm) : *run_reg(run, insn->src);

        if (insn->op == ALU_NEG)
                operand = value_scalar(0);
        if (insn->op == ALU_MOV && insn->size == 8) {
                *dst = operand;
                return 0;
        }
        if (insn->op == ALU_MOV || insn->op == ALU_MOVSX) {
                if (value_is_pointer(&operand))
                        return fault_arith(run, &operand, "moves part of");
        } else if (value_is_pointer(dst) || value_is_pointer(&operand)) {
                return pointer_arith(run, insn, &operand);
        }
        *dst = value_scalar(eval_alu(insn->op, insn->size, insn->from, dst->bits, operand.bits));
        return 0;
}

static int step_swap(struct run *run, const struct insn *insn)
{
        struct value *dst = run_reg(run, insn->dst);

        if (value_is_pointer(dst))
                return fault_arith(run, dst, "swaps the bytes of");
        *dst = value_scalar(eval_swap(insn->op, insn->size, dst->bits));
        return 0;
}

static void step_wide(struct run *run, const struct insn *insn)
{
        struct value *dst = run_reg(run, insn->dst);

        if (insn->op == WIDE_CONSTANT) {
                *dst = value_scalar((uint64_t)insn->imm);
        } else if (insn->op == WIDE_MAP) {
                uint64_t handle = store_handle(run->store, insn->map);

                *dst = (struct value){.kind = VALUE_MAP, .index = insn->map, .bits = handle, .origin = handle};
        } else {
                uint32_t first = 0;
                uint64_t at = (uintptr_t)store_lookup(run->store, insn->map, &first);

                *dst = (struct value){.kind = VALUE_MAP_VALUE,
                                      .index = insn->map,
                                      .bits = at + (uint64_t)insn->imm,
                                      .origin = at};
        }
        if (run->options.is_lax)
                dst->kind = VALUE_SCALAR;
}

/* A lookup's result has been compared with 0: it and its copies are now a pointer, or the number 0. */
static void resolve_null(struct run *run, uint32_t lookup)
{
        for (uint32_t i = 0; i < run->depth; i++) {
                struct oracle_frame *frame = &run->frames[i];

                for (unsigned reg = 0; reg < INSN_REGISTERS; reg++) {
                        struct value *value = &frame->regs[reg];

                        if (value->lookup != lookup || !value->may_be_null)
                                continue;
                        value->may_be_null = false;
                        if (value->bits == 0)
                                *value = value_scalar(0);
                }
                for (size_t s = 0; s < ARRAY_SIZE(frame->spills); s++) {
                        struct value *value = &frame->spills[s];

                        if (frame->states[8 * s] != STACK_POINTER || value->lookup != lookup || !value->may_be_null)
                                continue;
                        value->may_be_null = false;
                        if (value->bits == 0)
                                memset(frame->states + 8 * s, STACK_DATA, 8);
                }
        }
}

static int step_branch(struct run *run, const struct insn *insn, uint32_t *next)
{
        const struct value *dst = run_reg(run, insn->dst);
        struct value operand = insn->flags & INSN_IMM ? value_scalar((uint64_t)insn->imm) : *run_reg(run, insn->src);
        bool is_null_check = insn->size == 8 && insn->flags & INSN_IMM && insn->imm == 0 &&
                             (insn->op == BRANCH_EQ || insn->op == BRANCH_NE);

        if ((value_is_pointer(dst) || value_is_pointer(&operand)) && !is_null_check)
                return fault_set(run->fault, FAULT_POINTER_COMPARE, run->slot,
                                 "compares %s otherwise than with 0 for equality, in 64 bits",
                                 oracle_value_name(value_is_pointer(dst) ? dst : &operand));
        if (eval_branch(insn->op, insn->size, dst->bits, operand.bits))
                *next = insn->target;
        if (dst->may_be_null)
                resolve_null(run, dst->lookup);
        return 0;
}

static int step_call(struct run *run, const struct insn *insn, uint32_t *next)
{
        if (run->depth == PROFILE_CALL_DEPTH)
                return fault_set(run->fault, FAULT_CALL_DEPTH, run->slot, "a call from frame %" PRIu32 ", the last",
                                 run->depth);

        frame_init(run, run->depth, run->slot);
        for (unsigned reg = 1; reg <= 5; reg++)
                run->frames[run->depth].regs[reg] = *run_reg(run, reg);
        run->depth++;
        *next = insn->target;
        return 0;
}

/* Return from a function. Positive 2: the program has ended. */
static int step_exit(struct run *run, uint32_t *next)
{
        struct value r0 = *run_reg(run, 0);
        uint32_t call_slot = run_frame(run)->call_slot;

        if (run->depth == 1) {
                if (value_is_pointer(&r0))
                        return fault_set(run->fault, FAULT_POINTER_LEAK, run->slot, "returns %s",
                                         oracle_value_name(&r0));
                return 2;
        }
        if (r0.kind == VALUE_STACK && r0.index == run->depth - 1)
                return fault_set(run->fault, FAULT_POINTER_LEAK, run->slot,
                                 "returns a pointer to the frame of the function that ends");
        run->depth--;
        *run_reg(run, 0) = r0;
        if (!run->options.is_lax)
                for (unsigned reg = 1; reg <= 5; reg++)
                        *run_reg(run, reg) = (struct value){.kind = VALUE_UNINIT};
        *next = call_slot + 1;
        return 0;
}

/* Run the instruction at run->slot and move on. Return: 0; 1 with a fault; 2 at the program's end. */
static int run_step(struct run *run)
{
        const struct insn *insn = &run->program->insns[run->slot];
        uint32_t next = insn_next(insn, run->slot);
        int r;

        r = check_reads(run, insn);
        if (r)
                return r;
        switch ((enum insn_kind)insn->kind) {
        case INSN_ALU:
                r = step_alu(run, insn);
                break;
        case INSN_SWAP:
                r = step_swap(run, insn);
                break;
        case INSN_LOAD:
                r = oracle_load(run, insn);
                break;
        case INSN_STORE:
                r = oracle_store(run, insn);
                break;
        case INSN_ATOMIC:
                r = oracle_atomic(run, insn);
                break;
        case INSN_WIDE:
                step_wide(run, insn);
                break;
        case INSN_JUMP:
                next = insn->target;
                break;
        case INSN_BRANCH:
                r = step_branch(run, insn, &next);
                break;
        case INSN_CALL_HELPER:
                r = oracle_call_helper(run, insn);
                break;
        case INSN_CALL_LOCAL:
                r = step_call(run, insn, &next);
                break;
        case INSN_EXIT:
                r = step_exit(run, &next);
                break;
        case INSN_TAIL:
                r = -EINVAL;
                break;
        }
        if (r != 1)
                run->steps++;
        if (r == 0)
                run->slot = next;
        return r;
}

static int run_loop(struct run *run)
{
        uint64_t max_steps = run->options.max_steps > 0 ? run->options.max_steps : STEPS_DEFAULT;

        for (;;) {
                struct oracle_view view = {.slot = run->slot,
                                           .depth = run->depth,
                                           .frames = run->frames,
                                           .steps = run->steps};
                int r;

                if (run->slot >= run->program->n_insns)
                        return fault_set(run->fault, FAULT_FALL_THROUGH, run->program->n_insns - 1,
                                         "execution ran past the last instruction");
                if (run->steps == max_steps)
                        return fault_set(run->fault, FAULT_STEP_LIMIT, run->slot,
                                         "%" PRIu64 " instructions have run; the limit is reached", run->steps);
                if (run->options.observe && run->options.observe(run->options.userdata, &view))
                        return 2;
                r = run_step(run);
                if (r)
                        return r == 2 ? 0 : r;
        }
}

static int check_setup(const struct program *program, const struct store *store, struct err *err)
{
        if (program->fault.kind != FAULT_NONE)
                return err_set(err, ERR_BUG, EINVAL, "%s is not a legal program", program->name);
        if (store_count(store) != program->n_maps)
                return err_set(err, ERR_BUG, EINVAL, "%s has %" PRIu32 " maps, the store %" PRIu32, program->name,
                               program->n_maps, store_count(store));
        return 0;
}

int oracle_run(const struct program *program, struct store *store, uint8_t *context,
               const struct oracle_options *options, struct oracle_result *ret, struct fault *fault, struct err *err)
{
        _cleanup_free_ struct oracle_frame *frames = NULL;
        struct run run = {.program = program, .store = store, .context = context, .fault = fault};
        int r;

        r = check_setup(program, store, err);
        if (r < 0)
                return r;
        frames = calloc(PROFILE_CALL_DEPTH, sizeof(*frames));
        if (!frames)
                return err_set_nomem(err);

        run.frames = frames;
        if (options)
                run.options = *options;
        if (run.options.embed)
                run.embed = *run.options.embed;
        run_enter(&run);
        r = run_loop(&run);
        *ret = (struct oracle_result){.r0 = run_reg(&run, 0)->bits, .steps = run.steps};
        return r;
}

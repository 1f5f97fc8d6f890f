/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/interp.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "bpfvm/profile.h"

/* One slot of the program: where the code of its instruction is, and the operands. The second half of a wide load holds
 * the constant. Sixteen bytes, so that the next one is one addition away. */
struct op {
        const void *handler;
        union {
                struct {
                        uint8_t dst, src;
                        int16_t offset; /* of memory; of a branch, in slots */
                        int32_t imm;    /* operand; distance of a jump; helper's number */
                };
                struct {
                        uint32_t cost; /* of a local call: the function's instructions */
                        int32_t distance;
                };
                uint64_t constant;
        };
};

/* Where the code of each instruction is, by its decoded form: filled in once, from labels, by interp_exec(). Where two
 * widths exist, [0] is 64 bits; [0] is an immediate and [1] a register; [1] of jumps leads back. */
struct handlers {
        const void *alu[ALU_OPS][2][2];
        const void *movsx[2][3]; /* from 1, 2, 4 bytes */
        const void *neg[2];
        const void *swap[2][3]; /* truncating or swapping; 2, 4, 8 bytes */
        const void *load[2][4]; /* [1] sign-extends; 1, 2, 4, 8 bytes */
        const void *store[4][2];
        const void *atomic[6][2][2]; /* 64 or 32 bits; [1] returns the old value */
        const void *branch[BRANCH_OPS][2][2][2];
        const void *jump[2];
        const void *wide, *call_helper, *call_local, *exit;
};

struct return_frame {
        const struct op *pc;
        uint64_t saved[4]; /* r6..r9 */
};

struct interp {
        struct store *store;
        struct embed embed;
        struct op *ops;
        const struct program *program;
        struct return_frame returns[PROFILE_CALL_DEPTH];
        uint8_t stack[PROFILE_CALL_DEPTH][PROFILE_FRAME_BYTES] __attribute__((aligned(16)));
};

/* The operands of an operation in one width: U and S are its types, a and b its values, MASK that of shifts. */
#define WIDTH64                                                                                                        \
        typedef uint64_t U;                                                                                            \
        typedef int64_t S __attribute__((unused));                                                                     \
        enum { MASK __attribute__((unused)) = 63 }
#define WIDTH32                                                                                                        \
        typedef uint32_t U;                                                                                            \
        typedef int32_t S __attribute__((unused));                                                                     \
        enum { MASK __attribute__((unused)) = 31 }

#define NEXT                                                                                                           \
        do {                                                                                                           \
                pc++;                                                                                                  \
                goto * pc->handler;                                                                                    \
        } while (0)

#define BINARY(label, width, operand, expr)                                                                            \
        label : {                                                                                                      \
                width;                                                                                                 \
                const U a __attribute__((unused)) = (U)r[pc->dst], b = (U)(operand);                                   \
                r[pc->dst] = (U)(expr);                                                                                \
                NEXT;                                                                                                  \
        }

#define ALU(name, expr)                                                                                                \
        BINARY(name##_64K, WIDTH64, (int64_t)pc->imm, expr)                                                            \
        BINARY(name##_64X, WIDTH64, r[pc->src], expr)                                                                  \
        BINARY(name##_32K, WIDTH32, pc->imm, expr)                                                                     \
        BINARY(name##_32X, WIDTH32, r[pc->src], expr)
#define ALU_LABELS(name)                                                                                               \
        {                                                                                                              \
                {&&name##_64K, &&name##_64X},                                                                          \
                {                                                                                                      \
                        &&name##_32K, &&name##_32X                                                                     \
                }                                                                                                      \
        }

/* A jump back spends what its loop's body costs at most. */
#define SPEND(n)                                                                                                       \
        do {                                                                                                           \
                if (__builtin_sub_overflow(budget, (uint64_t)(n), &budget))                                            \
                        goto spent;                                                                                    \
        } while (0)

#define COMPARE(label, width, operand, expr)                                                                           \
        label##_F:                                                                                                     \
        {                                                                                                              \
                width;                                                                                                 \
                const U a = (U)r[pc->dst], b = (U)(operand);                                                           \
                if (expr)                                                                                              \
                        pc += pc->offset;                                                                              \
                NEXT;                                                                                                  \
        }                                                                                                              \
        label##_B:                                                                                                     \
        {                                                                                                              \
                width;                                                                                                 \
                const U a = (U)r[pc->dst], b = (U)(operand);                                                           \
                if (expr) {                                                                                            \
                        SPEND(-pc->offset);                                                                            \
                        pc += pc->offset;                                                                              \
                }                                                                                                      \
                NEXT;                                                                                                  \
        }

#define BRANCH(name, expr)                                                                                             \
        COMPARE(name##_64K, WIDTH64, (int64_t)pc->imm, expr)                                                           \
        COMPARE(name##_64X, WIDTH64, r[pc->src], expr)                                                                 \
        COMPARE(name##_32K, WIDTH32, pc->imm, expr)                                                                    \
        COMPARE(name##_32X, WIDTH32, r[pc->src], expr)
#define BRANCH_LABELS(name)                                                                                            \
        {                                                                                                              \
                {{&&name##_64K_F, &&name##_64K_B}, {&&name##_64X_F, &&name##_64X_B}},                                  \
                {                                                                                                      \
                        {&&name##_32K_F, &&name##_32K_B},                                                              \
                        {                                                                                              \
                                &&name##_32X_F, &&name##_32X_B                                                         \
                        }                                                                                              \
                }                                                                                                      \
        }

#define ADDRESS(reg) ((void *)(uintptr_t)(r[reg] + (uint64_t)(int64_t)pc->offset))

/* Through memcpy, since accesses may be unaligned. */
#define LOAD(label, type)                                                                                              \
        label : {                                                                                                      \
                type value;                                                                                            \
                memcpy(&value, ADDRESS(pc->src), sizeof(value));                                                       \
                r[pc->dst] = (uint64_t)(int64_t)value;                                                                 \
                NEXT;                                                                                                  \
        }
#define STORE(label, type)                                                                                             \
        label##_K:                                                                                                     \
        {                                                                                                              \
                type value = (type)(int64_t)pc->imm;                                                                   \
                memcpy(ADDRESS(pc->dst), &value, sizeof(value));                                                       \
                NEXT;                                                                                                  \
        }                                                                                                              \
        label##_X:                                                                                                     \
        {                                                                                                              \
                type value = (type)r[pc->src];                                                                         \
                memcpy(ADDRESS(pc->dst), &value, sizeof(value));                                                       \
                NEXT;                                                                                                  \
        }
#define STORE_LABELS(label)                                                                                            \
        {                                                                                                              \
                &&label##_K, &&label##_X                                                                               \
        }

#define ATOMIC(label, type, fetch)                                                                                     \
        label : {                                                                                                      \
                fetch((type *)ADDRESS(pc->dst), (type)r[pc->src], __ATOMIC_SEQ_CST);                                   \
                NEXT;                                                                                                  \
        }                                                                                                              \
        label##_OLD:                                                                                                   \
        {                                                                                                              \
                r[pc->src] = fetch((type *)ADDRESS(pc->dst), (type)r[pc->src], __ATOMIC_SEQ_CST);                      \
                NEXT;                                                                                                  \
        }
#define CMPXCHG(label, type)                                                                                           \
        label : {                                                                                                      \
                type old = (type)r[0];                                                                                 \
                __atomic_compare_exchange_n((type *)ADDRESS(pc->dst), &old, (type)r[pc->src], false, __ATOMIC_SEQ_CST, \
                                            __ATOMIC_SEQ_CST);                                                         \
                r[0] = old;                                                                                            \
                NEXT;                                                                                                  \
        }
#define ATOMIC_LABELS(name)                                                                                            \
        {                                                                                                              \
                {&&name##_64, &&name##_64_OLD},                                                                        \
                {                                                                                                      \
                        &&name##_32, &&name##_32_OLD                                                                   \
                }                                                                                                      \
        }

#define UNARY(label, expr)                                                                                             \
        label : {                                                                                                      \
                r[pc->dst] = (uint64_t)(expr);                                                                         \
                NEXT;                                                                                                  \
        }

/* Runs from @pc on, or with @ret_handlers only tells where the code of the instructions is. One function with all of
 * them, each ending in its own jump to the next, so that the processor predicts each apart. */
static int interp_exec(struct interp *interp, const struct op *pc, uint64_t *r, uint64_t budget, uint32_t *ret_slot,
                       const struct handlers **ret_handlers)
{
        static const struct handlers handlers = {
                .alu = {[ALU_ADD] = ALU_LABELS(add),
                        [ALU_SUB] = ALU_LABELS(sub),
                        [ALU_MUL] = ALU_LABELS(mul),
                        [ALU_DIV] = ALU_LABELS(div),
                        [ALU_MOD] = ALU_LABELS(mod),
                        [ALU_SDIV] = ALU_LABELS(sdiv),
                        [ALU_SMOD] = ALU_LABELS(smod),
                        [ALU_OR] = ALU_LABELS(or),
                        [ALU_AND] = ALU_LABELS(and),
                        [ALU_XOR] = ALU_LABELS(xor),
                        [ALU_LSH] = ALU_LABELS(lsh),
                        [ALU_RSH] = ALU_LABELS(rsh),
                        [ALU_ARSH] = ALU_LABELS(arsh),
                        [ALU_MOV] = ALU_LABELS(mov)},
                .movsx = {{&&movsx_64_1, &&movsx_64_2, &&movsx_64_4}, {&&movsx_32_1, &&movsx_32_2, NULL}},
                .neg = {&&neg_64, &&neg_32},
                .swap = {{&&trunc_2, &&trunc_4, &&trunc_8}, {&&swap_2, &&swap_4, &&swap_8}},
                .load = {{&&load_1, &&load_2, &&load_4, &&load_8}, {&&load_s1, &&load_s2, &&load_s4, NULL}},
                .store = {STORE_LABELS(store_1), STORE_LABELS(store_2), STORE_LABELS(store_4), STORE_LABELS(store_8)},
                .atomic = {[ATOMIC_ADD] = ATOMIC_LABELS(atomic_add),
                           [ATOMIC_OR] = ATOMIC_LABELS(atomic_or),
                           [ATOMIC_AND] = ATOMIC_LABELS(atomic_and),
                           [ATOMIC_XOR] = ATOMIC_LABELS(atomic_xor),
                           [ATOMIC_XCHG] = ATOMIC_LABELS(atomic_xchg),
                           [ATOMIC_CMPXCHG] = {{NULL, &&cmpxchg_64}, {NULL, &&cmpxchg_32}}},
                .branch = {[BRANCH_EQ] = BRANCH_LABELS(eq),
                           [BRANCH_NE] = BRANCH_LABELS(ne),
                           [BRANCH_GT] = BRANCH_LABELS(gt),
                           [BRANCH_GE] = BRANCH_LABELS(ge),
                           [BRANCH_LT] = BRANCH_LABELS(lt),
                           [BRANCH_LE] = BRANCH_LABELS(le),
                           [BRANCH_SGT] = BRANCH_LABELS(sgt),
                           [BRANCH_SGE] = BRANCH_LABELS(sge),
                           [BRANCH_SLT] = BRANCH_LABELS(slt),
                           [BRANCH_SLE] = BRANCH_LABELS(sle),
                           [BRANCH_SET] = BRANCH_LABELS(set)},
                .jump = {&&jump_forward, &&jump_back},
                .wide = &&wide,
                .call_helper = &&call_helper,
                .call_local = &&call_local,
                .exit = &&leave,
        };
        uint32_t depth = 0;

        if (ret_handlers) {
                *ret_handlers = &handlers;
                return 0;
        }
        goto * pc->handler;

        ALU(add, a + b)
        ALU(sub, a - b)
        ALU(mul, a * b)
        ALU(div, b == 0 ? 0 : a / b)
        ALU(mod, b == 0 ? a : a % b)
        ALU(sdiv, b == 0 ? 0 : (S)b == -1 ? -a : (U)((S)a / (S)b))
        ALU(smod, b == 0 ? a : (S)b == -1 ? 0 : (U)((S)a % (S)b))
        ALU(or, a | b)
        ALU(and, a & b)
        ALU(xor, a ^ b)
        ALU(lsh, a << (b & MASK))
        ALU(rsh, a >> (b & MASK))
        ALU(arsh, (S)a >> (b & MASK))
        ALU(mov, b)
        UNARY(movsx_64_1, (int64_t)(int8_t)r[pc->src])
        UNARY(movsx_64_2, (int64_t)(int16_t)r[pc->src])
        UNARY(movsx_64_4, (int64_t)(int32_t)r[pc->src])
        UNARY(movsx_32_1, (uint32_t)(int8_t)r[pc->src])
        UNARY(movsx_32_2, (uint32_t)(int16_t)r[pc->src])
        UNARY(neg_64, -r[pc->dst])
        UNARY(neg_32, (uint32_t)-r[pc->dst])
        UNARY(trunc_2, (uint16_t)r[pc->dst])
        UNARY(trunc_4, (uint32_t)r[pc->dst])
        UNARY(trunc_8, r[pc->dst])
        UNARY(swap_2, __builtin_bswap16((uint16_t)r[pc->dst]))
        UNARY(swap_4, __builtin_bswap32((uint32_t)r[pc->dst]))
        UNARY(swap_8, __builtin_bswap64(r[pc->dst]))

        LOAD(load_1, uint8_t)
        LOAD(load_2, uint16_t)
        LOAD(load_4, uint32_t)
        LOAD(load_8, uint64_t)
        LOAD(load_s1, int8_t)
        LOAD(load_s2, int16_t)
        LOAD(load_s4, int32_t)
        STORE(store_1, uint8_t)
        STORE(store_2, uint16_t)
        STORE(store_4, uint32_t)
        STORE(store_8, uint64_t)
        ATOMIC(atomic_add_64, uint64_t, __atomic_fetch_add)
        ATOMIC(atomic_add_32, uint32_t, __atomic_fetch_add)
        ATOMIC(atomic_or_64, uint64_t, __atomic_fetch_or)
        ATOMIC(atomic_or_32, uint32_t, __atomic_fetch_or)
        ATOMIC(atomic_and_64, uint64_t, __atomic_fetch_and)
        ATOMIC(atomic_and_32, uint32_t, __atomic_fetch_and)
        ATOMIC(atomic_xor_64, uint64_t, __atomic_fetch_xor)
        ATOMIC(atomic_xor_32, uint32_t, __atomic_fetch_xor)
        ATOMIC(atomic_xchg_64, uint64_t, __atomic_exchange_n)
        ATOMIC(atomic_xchg_32, uint32_t, __atomic_exchange_n)
        CMPXCHG(cmpxchg_64, uint64_t)
        CMPXCHG(cmpxchg_32, uint32_t)

        BRANCH(eq, a == b)
        BRANCH(ne, a != b)
        BRANCH(gt, a > b)
        BRANCH(ge, a >= b)
        BRANCH(lt, a < b)
        BRANCH(le, a <= b)
        BRANCH(sgt, (S)a > (S)b)
        BRANCH(sge, (S)a >= (S)b)
        BRANCH(slt, (S)a < (S)b)
        BRANCH(sle, (S)a <= (S)b)
        BRANCH(set, (a & b) != 0)

jump_forward:
        pc += pc->imm;
        NEXT;
jump_back:
        SPEND(-(int64_t)pc->imm);
        pc += pc->imm;
        NEXT;
wide:
        r[pc->dst] = pc[1].constant;
        pc++;
        NEXT;
call_helper:
        r[0] = embed_call(&interp->embed, interp->store, (uint32_t)pc->imm, &r[1]);
        NEXT;
call_local:
        SPEND(pc->cost);
        interp->returns[depth].pc = pc;
        memcpy(interp->returns[depth].saved, &r[6], sizeof(interp->returns[depth].saved));
        depth++;
        r[INSN_FRAME_POINTER] = (uintptr_t)interp->stack[depth] + PROFILE_FRAME_BYTES;
        pc += pc->distance;
        NEXT;
leave:
        if (depth == 0)
                return 0;
        depth--;
        pc = interp->returns[depth].pc;
        memcpy(&r[6], interp->returns[depth].saved, sizeof(interp->returns[depth].saved));
        r[INSN_FRAME_POINTER] = (uintptr_t)interp->stack[depth] + PROFILE_FRAME_BYTES;
        NEXT;
spent:
        *ret_slot = (uint32_t)(pc - interp->ops);
        return 1;
}

/* Powers of two to 0, 1, 2, 3. */
static unsigned log2_of(uint8_t size)
{
        return (unsigned)__builtin_ctz(size);
}

static const void *handler_of(const struct handlers *handlers, const struct insn *insn, uint32_t slot)
{
        unsigned narrow = insn->size == 4, is_reg = !(insn->flags & INSN_IMM), is_back = insn->target <= slot;

        switch ((enum insn_kind)insn->kind) {
        case INSN_ALU:
                if (insn->op == ALU_NEG)
                        return handlers->neg[narrow];
                if (insn->op == ALU_MOVSX)
                        return handlers->movsx[narrow][log2_of(insn->from)];
                return handlers->alu[insn->op][narrow][is_reg];
        case INSN_SWAP:
                return handlers->swap[insn->op != SWAP_LE][log2_of(insn->size) - 1];
        case INSN_LOAD:
                return handlers->load[(insn->flags & INSN_SIGNED) != 0][log2_of(insn->size)];
        case INSN_STORE:
                return handlers->store[log2_of(insn->size)][is_reg];
        case INSN_ATOMIC:
                return handlers->atomic[insn->op][narrow][(insn->flags & INSN_FETCH) != 0];
        case INSN_BRANCH:
                return handlers->branch[insn->op][narrow][is_reg][is_back];
        case INSN_JUMP:
                return handlers->jump[is_back];
        case INSN_WIDE:
                return handlers->wide;
        case INSN_CALL_HELPER:
                return handlers->call_helper;
        case INSN_CALL_LOCAL:
                return handlers->call_local;
        case INSN_EXIT:
                return handlers->exit;
        case INSN_TAIL:
                break;
        }
        return NULL;
}

static uint64_t wide_constant(const struct insn *insn, struct store *store)
{
        const uint32_t first = 0;

        switch ((enum wide_op)insn->op) {
        case WIDE_CONSTANT:
                return (uint64_t)insn->imm;
        case WIDE_MAP:
                return store_handle(store, insn->map);
        case WIDE_MAP_VALUE:
                return (uintptr_t)store_lookup(store, insn->map, &first) + (uint64_t)insn->imm;
        }
        return 0;
}

static void op_fill(struct interp *interp, const struct handlers *handlers, uint32_t slot)
{
        const struct program *program = interp->program;
        const struct insn *insn = &program->insns[slot];
        struct op *op = &interp->ops[slot];
        int32_t distance = (int32_t)(insn->target - slot - 1);

        op->handler = handler_of(handlers, insn, slot);
        op->dst = insn->dst;
        op->src = insn->src;
        op->offset = (int16_t)(insn->kind == INSN_BRANCH ? distance : insn->offset);
        op->imm = insn->kind == INSN_JUMP ? distance : (int32_t)insn->imm;
        if (insn->kind == INSN_WIDE)
                op[1].constant = wide_constant(insn, interp->store);
        if (insn->kind == INSN_CALL_LOCAL) {
                const struct program_sub *sub = &program->subs[program_sub_at(program, insn->target)];

                op->cost = sub->end - sub->start;
                op->distance = distance;
        }
}

void interp_free(struct interp *interp)
{
        if (!interp)
                return;
        free(interp->ops);
        free(interp);
}

int interp_new(const struct program *program, struct store *store, const struct embed *embed, struct interp **ret,
               struct err *err)
{
        _cleanup_interp_ struct interp *interp = NULL;
        const struct handlers *handlers = NULL;

        if (program->fault.kind != FAULT_NONE || store_count(store) != program->n_maps)
                return err_set(err, ERR_BUG, EINVAL, "%s is not a legal program, or the store is not for it",
                               program->name);

        interp = calloc(1, sizeof(*interp));
        if (!interp)
                return err_set_nomem(err);
        interp->ops = calloc(program->n_insns, sizeof(*interp->ops));
        if (!interp->ops)
                return err_set_nomem(err);

        interp->program = program;
        interp->store = store;
        if (embed)
                interp->embed = *embed;
        interp_exec(NULL, NULL, NULL, 0, NULL, &handlers);
        for (uint32_t slot = 0; slot < program->n_insns; slot = insn_next(&program->insns[slot], slot))
                op_fill(interp, handlers, slot);

        *ret = TAKE_PTR(interp);
        return 0;
}

int interp_run(struct interp *interp, void *context, uint64_t budget, uint64_t *ret, struct fault *fault)
{
        uint64_t r[INSN_REGISTERS] = {
                [1] = (uintptr_t)context, [INSN_FRAME_POINTER] = (uintptr_t)interp->stack[0] + PROFILE_FRAME_BYTES};
        uint32_t slot = 0;

        if (interp_exec(interp, interp->ops, r, budget, &slot, NULL))
                return fault_set(fault, FAULT_STEP_LIMIT, slot, "a jump back or a call that the budget does not cover");
        *ret = r[0];
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/isa.h"

#include <errno.h>

#include "base/macro.h"

/* Rules of dst, src, offset and imm; the value of the field that selects (0 where none does); the RFC's group; then the
 * decoded form. */
#define ROW(dst_, src_, offset_, imm_, select_, group_, ...)                                                           \
        {                                                                                                              \
                .dst = ISA_##dst_, .src = ISA_##src_, .offset = ISA_##offset_, .imm = ISA_##imm_, .select = (select_), \
                .group = (group_), .insn = {                                                                           \
                        __VA_ARGS__                                                                                    \
                }                                                                                                      \
        }
#define REFUSED(why, subtype, group_)                                                                                  \
        {                                                                                                              \
                .src = ISA_SELECT, .select = (subtype), .group = (group_), .refusal = (why)                            \
        }

/* Arithmetic with an immediate (K) or a register (X). The offset is reserved, or (KO, XO) selects the operation. */
#define K(op_, size_, group_)                                                                                          \
        ROW(WRITE, ZERO, ZERO, ANY, 0, group_, .kind = INSN_ALU, .op = ALU_##op_, .size = (size_), .flags = INSN_IMM)
#define X(op_, size_, group_)                                                                                          \
        ROW(WRITE, READ, ZERO, ZERO, 0, group_, .kind = INSN_ALU, .op = ALU_##op_, .size = (size_))
#define KO(op_, size_, offset_, group_)                                                                                \
        ROW(WRITE, ZERO, SELECT, ANY, offset_, group_, .kind = INSN_ALU, .op = ALU_##op_, .size = (size_),             \
            .flags = INSN_IMM)
#define XO(op_, size_, offset_, group_)                                                                                \
        ROW(WRITE, READ, SELECT, ZERO, offset_, group_, .kind = INSN_ALU, .op = ALU_##op_, .size = (size_))
#define MOVSX(size_, from_, group_)                                                                                    \
        ROW(WRITE, READ, SELECT, ZERO, 8 * (from_), group_, .kind = INSN_ALU, .op = ALU_MOVSX, .size = (size_),        \
            .from = (from_))
#define NEG(size_, group_) ROW(WRITE, ZERO, ZERO, ZERO, 0, group_, .kind = INSN_ALU, .op = ALU_NEG, .size = (size_))
#define SWAP(op_, size_, group_)                                                                                       \
        ROW(WRITE, ZERO, ZERO, SELECT, 8 * (size_), group_, .kind = INSN_SWAP, .op = SWAP_##op_, .size = (size_))
#define SWAPS(op_) SWAP(op_, 2, "base32"), SWAP(op_, 4, "base32"), SWAP(op_, 8, "base64")

#define JK(op_, size_, group_)                                                                                         \
        ROW(READ, ZERO, ANY, ANY, 0, group_, .kind = INSN_BRANCH, .op = BRANCH_##op_, .size = (size_),                 \
            .flags = INSN_IMM)
#define JX(op_, size_, group_)                                                                                         \
        ROW(READ, READ, ANY, ZERO, 0, group_, .kind = INSN_BRANCH, .op = BRANCH_##op_, .size = (size_))
#define CALL(subtype, kind_) ROW(ZERO, SELECT, ZERO, ANY, subtype, "base32", .kind = (kind_))

#define LOAD(size_, flags_, group_)                                                                                    \
        ROW(WRITE, READ, ANY, ZERO, 0, group_, .kind = INSN_LOAD, .size = (size_), .flags = (flags_))
#define STK(size_, group_) ROW(READ, ZERO, ANY, ANY, 0, group_, .kind = INSN_STORE, .size = (size_), .flags = INSN_IMM)
#define STX(size_, group_) ROW(READ, READ, ANY, ZERO, 0, group_, .kind = INSN_STORE, .size = (size_))
#define WIDE(subtype, op_) ROW(WRITE, SELECT, ZERO, ANY, subtype, "base64", .kind = INSN_WIDE, .op = (op_))

/* With FETCH the old value comes back in src, so src has to be writable; compare-and-exchange returns it in r0. */
#define ATOMIC(src_, value, op_, size_, flags_, group_)                                                                \
        ROW(READ, src_, ANY, SELECT, value, group_, .kind = INSN_ATOMIC, .op = ATOMIC_##op_, .size = (size_),          \
            .flags = (flags_))
#define ATOMIC_PAIR(value, op_, size_, group_)                                                                         \
        ATOMIC(READ, value, op_, size_, 0, group_), ATOMIC(WRITE, (value) | 1, op_, size_, INSN_FETCH, group_)
#define ATOMICS(size_, group_)                                                                                         \
        ATOMIC_PAIR(0x00, ADD, size_, group_), ATOMIC_PAIR(0x40, OR, size_, group_),                                   \
                ATOMIC_PAIR(0x50, AND, size_, group_), ATOMIC_PAIR(0xa0, XOR, size_, group_),                          \
                ATOMIC(WRITE, 0xe1, XCHG, size_, INSN_FETCH, group_),                                                  \
                ATOMIC(READ, 0xf1, CMPXCHG, size_, INSN_FETCH, group_)

#define NO_DESCRIPTOR "maps have no file descriptors here; name the map by its index (src 5 or 6)"

#define AT(opcode, ...)                                                                                                \
        [opcode] = {ARRAY_SIZE(((const struct isa_row[]){__VA_ARGS__})), (const struct isa_row[]){__VA_ARGS__}}

const struct isa_entry isa_by_opcode[256] = {
        AT(0x04, K(ADD, 4, "base32")),
        AT(0x0c, X(ADD, 4, "base32")),
        AT(0x07, K(ADD, 8, "base64")),
        AT(0x0f, X(ADD, 8, "base64")),
        AT(0x14, K(SUB, 4, "base32")),
        AT(0x1c, X(SUB, 4, "base32")),
        AT(0x17, K(SUB, 8, "base64")),
        AT(0x1f, X(SUB, 8, "base64")),
        AT(0x24, K(MUL, 4, "divmul32")),
        AT(0x2c, X(MUL, 4, "divmul32")),
        AT(0x27, K(MUL, 8, "divmul64")),
        AT(0x2f, X(MUL, 8, "divmul64")),
        AT(0x44, K(OR, 4, "base32")),
        AT(0x4c, X(OR, 4, "base32")),
        AT(0x47, K(OR, 8, "base64")),
        AT(0x4f, X(OR, 8, "base64")),
        AT(0x54, K(AND, 4, "base32")),
        AT(0x5c, X(AND, 4, "base32")),
        AT(0x57, K(AND, 8, "base64")),
        AT(0x5f, X(AND, 8, "base64")),
        AT(0x64, K(LSH, 4, "base32")),
        AT(0x6c, X(LSH, 4, "base32")),
        AT(0x67, K(LSH, 8, "base64")),
        AT(0x6f, X(LSH, 8, "base64")),
        AT(0x74, K(RSH, 4, "base32")),
        AT(0x7c, X(RSH, 4, "base32")),
        AT(0x77, K(RSH, 8, "base64")),
        AT(0x7f, X(RSH, 8, "base64")),
        AT(0xa4, K(XOR, 4, "base32")),
        AT(0xac, X(XOR, 4, "base32")),
        AT(0xa7, K(XOR, 8, "base64")),
        AT(0xaf, X(XOR, 8, "base64")),
        AT(0xc4, K(ARSH, 4, "base32")),
        AT(0xcc, X(ARSH, 4, "base32")),
        AT(0xc7, K(ARSH, 8, "base64")),
        AT(0xcf, X(ARSH, 8, "base64")),
        AT(0x34, KO(DIV, 4, 0, "divmul32"), KO(SDIV, 4, 1, "divmul32")),
        AT(0x3c, XO(DIV, 4, 0, "divmul32"), XO(SDIV, 4, 1, "divmul32")),
        AT(0x37, KO(DIV, 8, 0, "divmul64"), KO(SDIV, 8, 1, "divmul64")),
        AT(0x3f, XO(DIV, 8, 0, "divmul64"), XO(SDIV, 8, 1, "divmul64")),
        AT(0x94, KO(MOD, 4, 0, "divmul32"), KO(SMOD, 4, 1, "divmul32")),
        AT(0x9c, XO(MOD, 4, 0, "divmul32"), XO(SMOD, 4, 1, "divmul32")),
        AT(0x97, KO(MOD, 8, 0, "divmul64"), KO(SMOD, 8, 1, "divmul64")),
        AT(0x9f, XO(MOD, 8, 0, "divmul64"), XO(SMOD, 8, 1, "divmul64")),
        AT(0xb4, K(MOV, 4, "base32")),
        AT(0xbc, XO(MOV, 4, 0, "base32"), MOVSX(4, 1, "base32"), MOVSX(4, 2, "base32")),
        AT(0xb7, K(MOV, 8, "base64")),
        AT(0xbf, XO(MOV, 8, 0, "base64"), MOVSX(8, 1, "base64"), MOVSX(8, 2, "base64"), MOVSX(8, 4, "base64")),
        AT(0x84, NEG(4, "base32")),
        AT(0x87, NEG(8, "base64")),
        AT(0xd4, SWAPS(LE)),
        AT(0xdc, SWAPS(BE)),
        AT(0xd7, SWAPS(ALWAYS)),

        AT(0x05, ROW(ZERO, ZERO, ANY, ZERO, 0, "base32", .kind = INSN_JUMP, .size = 8)),
        AT(0x06, ROW(ZERO, ZERO, ZERO, ANY, 0, "base32", .kind = INSN_JUMP, .size = 4)),
        AT(0x15, JK(EQ, 8, "base64")),
        AT(0x1d, JX(EQ, 8, "base64")),
        AT(0x16, JK(EQ, 4, "base32")),
        AT(0x1e, JX(EQ, 4, "base32")),
        AT(0x25, JK(GT, 8, "base64")),
        AT(0x2d, JX(GT, 8, "base64")),
        AT(0x26, JK(GT, 4, "base32")),
        AT(0x2e, JX(GT, 4, "base32")),
        AT(0x35, JK(GE, 8, "base64")),
        AT(0x3d, JX(GE, 8, "base64")),
        AT(0x36, JK(GE, 4, "base32")),
        AT(0x3e, JX(GE, 4, "base32")),
        AT(0x45, JK(SET, 8, "base64")),
        AT(0x4d, JX(SET, 8, "base64")),
        AT(0x46, JK(SET, 4, "base32")),
        AT(0x4e, JX(SET, 4, "base32")),
        AT(0x55, JK(NE, 8, "base64")),
        AT(0x5d, JX(NE, 8, "base64")),
        AT(0x56, JK(NE, 4, "base32")),
        AT(0x5e, JX(NE, 4, "base32")),
        AT(0x65, JK(SGT, 8, "base64")),
        AT(0x6d, JX(SGT, 8, "base64")),
        AT(0x66, JK(SGT, 4, "base32")),
        AT(0x6e, JX(SGT, 4, "base32")),
        AT(0x75, JK(SGE, 8, "base64")),
        AT(0x7d, JX(SGE, 8, "base64")),
        AT(0x76, JK(SGE, 4, "base32")),
        AT(0x7e, JX(SGE, 4, "base32")),
        AT(0xa5, JK(LT, 8, "base64")),
        AT(0xad, JX(LT, 8, "base64")),
        AT(0xa6, JK(LT, 4, "base32")),
        AT(0xae, JX(LT, 4, "base32")),
        AT(0xb5, JK(LE, 8, "base64")),
        AT(0xbd, JX(LE, 8, "base64")),
        AT(0xb6, JK(LE, 4, "base32")),
        AT(0xbe, JX(LE, 4, "base32")),
        AT(0xc5, JK(SLT, 8, "base64")),
        AT(0xcd, JX(SLT, 8, "base64")),
        AT(0xc6, JK(SLT, 4, "base32")),
        AT(0xce, JX(SLT, 4, "base32")),
        AT(0xd5, JK(SLE, 8, "base64")),
        AT(0xdd, JX(SLE, 8, "base64")),
        AT(0xd6, JK(SLE, 4, "base32")),
        AT(0xde, JX(SLE, 4, "base32")),
        AT(0x85, CALL(0, INSN_CALL_HELPER), CALL(1, INSN_CALL_LOCAL),
           REFUSED("helpers have no BTF ids here; call them by number (src 0)", 2, "base32")),
        AT(0x95, ROW(ZERO, ZERO, ZERO, ZERO, 0, "base32", .kind = INSN_EXIT)),

        AT(0x71, LOAD(1, 0, "base32")),
        AT(0x69, LOAD(2, 0, "base32")),
        AT(0x61, LOAD(4, 0, "base32")),
        AT(0x79, LOAD(8, 0, "base64")),
        AT(0x91, LOAD(1, INSN_SIGNED, "base32")),
        AT(0x89, LOAD(2, INSN_SIGNED, "base32")),
        AT(0x81, LOAD(4, INSN_SIGNED, "base32")),
        AT(0x72, STK(1, "base32")),
        AT(0x6a, STK(2, "base32")),
        AT(0x62, STK(4, "base32")),
        AT(0x7a, STK(8, "base64")),
        AT(0x73, STX(1, "base32")),
        AT(0x6b, STX(2, "base32")),
        AT(0x63, STX(4, "base32")),
        AT(0x7b, STX(8, "base64")),
        AT(0xc3, ATOMICS(4, "atomic32")),
        AT(0xdb, ATOMICS(8, "atomic64")),
        AT(0x18, WIDE(0, WIDE_CONSTANT), REFUSED(NO_DESCRIPTOR, 1, "base64"), REFUSED(NO_DESCRIPTOR, 2, "base64"),
           REFUSED("there are no platform variables here", 3, "base64"),
           REFUSED("there are no pointers to code here", 4, "base64"), WIDE(5, WIDE_MAP), WIDE(6, WIDE_MAP_VALUE)),
};

void isa_slot_put(struct isa_slot slot, uint8_t *bytes)
{
        bytes[0] = slot.opcode;
        bytes[1] = (uint8_t)(slot.src << 4 | (slot.dst & 0x0f));
        put_le16(bytes + 2, (uint16_t)slot.offset);
        put_le32(bytes + 4, (uint32_t)slot.imm);
}

int isa_find_insn(const struct insn *insn, const struct isa_row **ret)
{
        for (int opcode = 0; opcode < 256; opcode++)
                for (size_t i = 0; i < isa_by_opcode[opcode].n; i++) {
                        const struct isa_row *row = &isa_by_opcode[opcode].rows[i];

                        if (!row->refusal && row->insn.kind == insn->kind && row->insn.op == insn->op &&
                            row->insn.size == insn->size && row->insn.from == insn->from &&
                            row->insn.flags == insn->flags) {
                                *ret = row;
                                return opcode;
                        }
                }
        return -ENOENT;
}

static bool has_far_target(const struct insn *insn)
{
        return insn->kind == INSN_CALL_LOCAL || (insn->kind == INSN_JUMP && insn->size == 4);
}

int isa_encode(const struct insn *insn, uint32_t slot, struct isa_slot ret[static 2])
{
        const struct isa_row *row = NULL;
        int opcode = isa_find_insn(insn, &row);
        bool is_jump = insn->kind == INSN_JUMP || insn->kind == INSN_BRANCH || insn->kind == INSN_CALL_LOCAL;
        int32_t offset = is_jump ? (int32_t)(insn->target - slot - 1) : insn->offset;

        if (opcode < 0)
                return opcode;
        if (row->offset == ISA_ANY && offset != (int16_t)offset)
                return -ERANGE;

        ret[0] = (struct isa_slot){
                .opcode = (uint8_t)opcode,
                .dst = row->dst == ISA_ZERO ? 0 : insn->dst,
                .src = row->src == ISA_SELECT ? (uint8_t)row->select
                       : row->src == ISA_ZERO ? 0
                                              : insn->src,
                .offset = row->offset == ISA_SELECT ? (int16_t)row->select
                          : row->offset == ISA_ANY  ? (int16_t)offset
                                                    : 0,
                .imm = row->imm == ISA_SELECT ? row->select
                       : row->imm == ISA_ANY  ? (int32_t)insn->imm
                                              : 0,
        };
        if (has_far_target(insn))
                ret[0].imm = offset;
        if (insn->kind != INSN_WIDE)
                return 1;

        ret[1] = (struct isa_slot){.imm = (int32_t)(insn->op == WIDE_CONSTANT ? insn->imm >> 32 : insn->imm)};
        if (insn->op != WIDE_CONSTANT)
                ret[0].imm = (int32_t)insn->map;
        if (insn->op == WIDE_MAP)
                ret[1].imm = 0;
        return 2;
}

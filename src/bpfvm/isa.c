/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/isa.h"

#include "base/macro.h"

/* The fields dst, src, offset and imm of a row, then the value of the one that selects (0 where none does). */
#define FIELDS(d, s, o, i, value) .dst = ISA_##d, .src = ISA_##s, .offset = ISA_##o, .imm = ISA_##i, .select = (value)
#define INSN(...)                 .insn = {__VA_ARGS__}
#define OPCODE(code, ...)                                                                                              \
        [code] = {.n = ARRAY_SIZE(((const struct isa_row[]){__VA_ARGS__})), .rows = (const struct isa_row[]){__VA_ARGS__}}

/* Opcode bits: class in the low three, operand source in the next, operation or mode and size above. */
#define CLASS_ALU   0x04
#define CLASS_ALU64 0x07
#define SOURCE_X    0x08

/* An operation on a register and an immediate (K) or another register (X), in one width. */
#define ALU_K(code, op_, bytes, o, value, group_)                                                                      \
        {(code), FIELDS(WRITE, ZERO, o, ANY, value), .group = (group_),                                                \
         INSN(.kind = INSN_ALU, .op = (op_), .size = (bytes), .flags = INSN_IMM)}
#define ALU_X(code, op_, bytes, o, value, group_)                                                                      \
        {(code), FIELDS(WRITE, READ, o, ZERO, value), .group = (group_),                                               \
         INSN(.kind = INSN_ALU, .op = (op_), .size = (bytes))}
#define ALU_SX(code, bytes, from_, group_)                                                                             \
        {(code), FIELDS(WRITE, READ, SELECT, ZERO, 8 * (from_)), .group = (group_),                                    \
         INSN(.kind = INSN_ALU, .op = ALU_MOVSX, .size = (bytes), .from = (from_))}

/* One operation: its offset field is reserved. */
#define PLAIN(code, op, g32, g64)                                                                                      \
        OPCODE(CLASS_ALU | (code), ALU_K(CLASS_ALU | (code), op, 4, ZERO, 0, g32)),                                    \
        OPCODE(CLASS_ALU | SOURCE_X | (code), ALU_X(CLASS_ALU | SOURCE_X | (code), op, 4, ZERO, 0, g32)),              \
        OPCODE(CLASS_ALU64 | (code), ALU_K(CLASS_ALU64 | (code), op, 8, ZERO, 0, g64)),                                \
        OPCODE(CLASS_ALU64 | SOURCE_X | (code), ALU_X(CLASS_ALU64 | SOURCE_X | (code), op, 8, ZERO, 0, g64))

/* An unsigned and a signed operation: offset 0 and 1. */
#define SIGNED(code, op, sop)                                                                                          \
        OPCODE(CLASS_ALU | (code), ALU_K(CLASS_ALU | (code), op, 4, SELECT, 0, "divmul32"),                            \
               ALU_K(CLASS_ALU | (code), sop, 4, SELECT, 1, "divmul32")),                                              \
        OPCODE(CLASS_ALU | SOURCE_X | (code), ALU_X(CLASS_ALU | SOURCE_X | (code), op, 4, SELECT, 0, "divmul32"),      \
               ALU_X(CLASS_ALU | SOURCE_X | (code), sop, 4, SELECT, 1, "divmul32")),                                   \
        OPCODE(CLASS_ALU64 | (code), ALU_K(CLASS_ALU64 | (code), op, 8, SELECT, 0, "divmul64"),                        \
               ALU_K(CLASS_ALU64 | (code), sop, 8, SELECT, 1, "divmul64")),                                            \
        OPCODE(CLASS_ALU64 | SOURCE_X | (code), ALU_X(CLASS_ALU64 | SOURCE_X | (code), op, 8, SELECT, 0, "divmul64"),  \
               ALU_X(CLASS_ALU64 | SOURCE_X | (code), sop, 8, SELECT, 1, "divmul64"))

#define SWAP_ROW(code, op_, bytes, group_)                                                                             \
        {(code), FIELDS(WRITE, ZERO, ZERO, SELECT, 8 * (bytes)), .group = (group_),                                    \
         INSN(.kind = INSN_SWAP, .op = (op_), .size = (bytes))}
#define SWAP(code, op)                                                                                                 \
        OPCODE(code, SWAP_ROW(code, op, 2, "base32"), SWAP_ROW(code, op, 4, "base32"), SWAP_ROW(code, op, 8, "base64"))

#define BRANCH_K(code, op_, bytes, group_)                                                                             \
        OPCODE(code, {(code), FIELDS(READ, ZERO, ANY, ANY, 0), .group = (group_),                                      \
                      INSN(.kind = INSN_BRANCH, .op = (op_), .size = (bytes), .flags = INSN_IMM)})
#define BRANCH_X(code, op_, bytes, group_)                                                                             \
        OPCODE(code, {(code), FIELDS(READ, READ, ANY, ZERO, 0), .group = (group_),                                     \
                      INSN(.kind = INSN_BRANCH, .op = (op_), .size = (bytes))})
#define BRANCH(code, op)                                                                                               \
        BRANCH_K(0x05 | (code), op, 8, "base64"), BRANCH_X(0x0d | (code), op, 8, "base64"),                            \
                BRANCH_K(0x06 | (code), op, 4, "base32"), BRANCH_X(0x0e | (code), op, 4, "base32")

#define LOAD(code, bytes, flags_, group_)                                                                              \
        OPCODE(code, {(code), FIELDS(WRITE, READ, ANY, ZERO, 0), .group = (group_),                                    \
                      INSN(.kind = INSN_LOAD, .size = (bytes), .flags = (flags_))})
#define STORE_K(code, bytes, group_)                                                                                   \
        OPCODE(code, {(code), FIELDS(READ, ZERO, ANY, ANY, 0), .group = (group_),                                      \
                      INSN(.kind = INSN_STORE, .size = (bytes), .flags = INSN_IMM)})
#define STORE_X(code, bytes, group_)                                                                                   \
        OPCODE(code, {(code), FIELDS(READ, READ, ANY, ZERO, 0), .group = (group_),                                     \
                      INSN(.kind = INSN_STORE, .size = (bytes))})

/* With FETCH the old value comes back in src, which therefore has to be a register that may be written; the exchange
 * with comparison returns it in r0 instead. */
#define ATOMIC_ROW(code, s, value, op_, bytes, flags_, group_)                                                         \
        {(code), FIELDS(READ, s, ANY, SELECT, value), .group = (group_),                                               \
         INSN(.kind = INSN_ATOMIC, .op = (op_), .size = (bytes), .flags = (flags_))}
#define ATOMIC_PAIR(code, value, op, bytes, group)                                                                     \
        ATOMIC_ROW(code, READ, value, op, bytes, 0, group),                                                            \
                ATOMIC_ROW(code, WRITE, (value) | 1, op, bytes, INSN_FETCH, group)
#define ATOMIC(code, bytes, group)                                                                                     \
        OPCODE(code, ATOMIC_PAIR(code, 0x00, ATOMIC_ADD, bytes, group),                                                \
               ATOMIC_PAIR(code, 0x40, ATOMIC_OR, bytes, group), ATOMIC_PAIR(code, 0x50, ATOMIC_AND, bytes, group),    \
               ATOMIC_PAIR(code, 0xa0, ATOMIC_XOR, bytes, group),                                                      \
               ATOMIC_ROW(code, WRITE, 0xe1, ATOMIC_XCHG, bytes, INSN_FETCH, group),                                   \
               ATOMIC_ROW(code, READ, 0xf1, ATOMIC_CMPXCHG, bytes, INSN_FETCH, group))

#define WIDE(subtype, op_, refusal_)                                                                                   \
        {0x18, FIELDS(WRITE, SELECT, ZERO, ANY, subtype), .group = "base64", .refusal = (refusal_),                    \
         INSN(.kind = INSN_WIDE, .op = (op_))}

#define CALL(subtype, kind_, refusal_)                                                                                 \
        {0x85, FIELDS(ZERO, SELECT, ZERO, ANY, subtype), .group = "base32", .refusal = (refusal_), INSN(.kind = (kind_))}

static const char no_descriptor[] = "maps have no file descriptors here; name the map by its index (src 5 or 6)";

static const struct {
        size_t n;
        const struct isa_row *rows;
} by_opcode[256] = {
        PLAIN(0x00, ALU_ADD, "base32", "base64"),
        PLAIN(0x10, ALU_SUB, "base32", "base64"),
        PLAIN(0x20, ALU_MUL, "divmul32", "divmul64"),
        SIGNED(0x30, ALU_DIV, ALU_SDIV),
        PLAIN(0x40, ALU_OR, "base32", "base64"),
        PLAIN(0x50, ALU_AND, "base32", "base64"),
        PLAIN(0x60, ALU_LSH, "base32", "base64"),
        PLAIN(0x70, ALU_RSH, "base32", "base64"),
        SIGNED(0x90, ALU_MOD, ALU_SMOD),
        PLAIN(0xa0, ALU_XOR, "base32", "base64"),
        PLAIN(0xc0, ALU_ARSH, "base32", "base64"),
        OPCODE(0xb4, ALU_K(0xb4, ALU_MOV, 4, ZERO, 0, "base32")),
        OPCODE(0xb7, ALU_K(0xb7, ALU_MOV, 8, ZERO, 0, "base64")),
        OPCODE(0xbc, ALU_X(0xbc, ALU_MOV, 4, SELECT, 0, "base32"), ALU_SX(0xbc, 4, 1, "base32"),
               ALU_SX(0xbc, 4, 2, "base32")),
        OPCODE(0xbf, ALU_X(0xbf, ALU_MOV, 8, SELECT, 0, "base64"), ALU_SX(0xbf, 8, 1, "base64"),
               ALU_SX(0xbf, 8, 2, "base64"), ALU_SX(0xbf, 8, 4, "base64")),
        OPCODE(0x84, {0x84, FIELDS(WRITE, ZERO, ZERO, ZERO, 0), .group = "base32",
                      INSN(.kind = INSN_ALU, .op = ALU_NEG, .size = 4)}),
        OPCODE(0x87, {0x87, FIELDS(WRITE, ZERO, ZERO, ZERO, 0), .group = "base64",
                      INSN(.kind = INSN_ALU, .op = ALU_NEG, .size = 8)}),

        SWAP(0xd4, SWAP_LE),
        SWAP(0xdc, SWAP_BE),
        SWAP(0xd7, SWAP_ALWAYS),

        OPCODE(0x05, {0x05, FIELDS(ZERO, ZERO, ANY, ZERO, 0), .group = "base32", INSN(.kind = INSN_JUMP, .size = 8)}),
        OPCODE(0x06, {0x06, FIELDS(ZERO, ZERO, ZERO, ANY, 0), .group = "base32", INSN(.kind = INSN_JUMP, .size = 4)}),
        BRANCH(0x10, BRANCH_EQ),
        BRANCH(0x20, BRANCH_GT),
        BRANCH(0x30, BRANCH_GE),
        BRANCH(0x40, BRANCH_SET),
        BRANCH(0x50, BRANCH_NE),
        BRANCH(0x60, BRANCH_SGT),
        BRANCH(0x70, BRANCH_SGE),
        BRANCH(0xa0, BRANCH_LT),
        BRANCH(0xb0, BRANCH_LE),
        BRANCH(0xc0, BRANCH_SLT),
        BRANCH(0xd0, BRANCH_SLE),
        OPCODE(0x85, CALL(0, INSN_CALL_HELPER, NULL), CALL(1, INSN_CALL_LOCAL, NULL),
               CALL(2, INSN_CALL_HELPER, "helpers have no BTF ids here; call them by number (src 0)")),
        OPCODE(0x95, {0x95, FIELDS(ZERO, ZERO, ZERO, ZERO, 0), .group = "base32", INSN(.kind = INSN_EXIT)}),

        LOAD(0x71, 1, 0, "base32"),
        LOAD(0x69, 2, 0, "base32"),
        LOAD(0x61, 4, 0, "base32"),
        LOAD(0x79, 8, 0, "base64"),
        LOAD(0x91, 1, INSN_SIGNED, "base32"),
        LOAD(0x89, 2, INSN_SIGNED, "base32"),
        LOAD(0x81, 4, INSN_SIGNED, "base32"),
        STORE_K(0x72, 1, "base32"),
        STORE_K(0x6a, 2, "base32"),
        STORE_K(0x62, 4, "base32"),
        STORE_K(0x7a, 8, "base64"),
        STORE_X(0x73, 1, "base32"),
        STORE_X(0x6b, 2, "base32"),
        STORE_X(0x63, 4, "base32"),
        STORE_X(0x7b, 8, "base64"),
        ATOMIC(0xc3, 4, "atomic32"),
        ATOMIC(0xdb, 8, "atomic64"),
        OPCODE(0x18, WIDE(0, WIDE_CONSTANT, NULL), WIDE(1, WIDE_MAP, no_descriptor), WIDE(2, WIDE_MAP_VALUE, no_descriptor),
               WIDE(3, WIDE_CONSTANT, "there are no platform variables here"),
               WIDE(4, WIDE_CONSTANT, "there are no pointers to code here"), WIDE(5, WIDE_MAP, NULL),
               WIDE(6, WIDE_MAP_VALUE, NULL)),
};

struct isa_slot isa_slot_get(const uint8_t *bytes)
{
        return (struct isa_slot){
                .opcode = bytes[0],
                .dst = bytes[1] & 0x0f,
                .src = bytes[1] >> 4,
                .offset = (int16_t)get_le16(bytes + 2),
                .imm = (int32_t)get_le32(bytes + 4),
        };
}

void isa_slot_put(struct isa_slot slot, uint8_t *bytes)
{
        bytes[0] = slot.opcode;
        bytes[1] = (uint8_t)(slot.src << 4 | (slot.dst & 0x0f));
        put_le16(bytes + 2, (uint16_t)slot.offset);
        put_le32(bytes + 4, (uint32_t)slot.imm);
}

const struct isa_row *isa_rows(uint8_t opcode, size_t *ret_n)
{
        *ret_n = by_opcode[opcode].n;
        return by_opcode[opcode].rows;
}

static bool row_selects(const struct isa_row *row, struct isa_slot slot)
{
        return (row->src != ISA_SELECT || slot.src == row->select) &&
               (row->offset != ISA_SELECT || slot.offset == row->select) &&
               (row->imm != ISA_SELECT || slot.imm == row->select);
}

const struct isa_row *isa_find(struct isa_slot slot)
{
        size_t n;
        const struct isa_row *rows = isa_rows(slot.opcode, &n);

        for (size_t i = 0; i < n; i++)
                if (row_selects(&rows[i], slot))
                        return &rows[i];
        return NULL;
}

const struct isa_row *isa_find_insn(const struct insn *insn)
{
        for (unsigned opcode = 0; opcode < 256; opcode++)
                for (size_t i = 0; i < by_opcode[opcode].n; i++) {
                        const struct isa_row *row = &by_opcode[opcode].rows[i];

                        if (!row->refusal && row->insn.kind == insn->kind && row->insn.op == insn->op &&
                            row->insn.size == insn->size && row->insn.from == insn->from &&
                            row->insn.flags == insn->flags)
                                return row;
                }
        return NULL;
}

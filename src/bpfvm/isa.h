/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "bpfvm/insn.h"

/* Legality of encodings: one row for each instruction of RFC 9669. What is not in the table is no instruction. Decoder,
 * assembler and disassembler all go by it. */

/* What a field of an instruction may hold. */
enum isa_rule {
        ISA_ZERO,   /* reserved: 0 */
        ISA_READ,   /* a register, 0 to 10 */
        ISA_WRITE,  /* a register that is written, 0 to 9 */
        ISA_ANY,    /* any value */
        ISA_SELECT, /* exactly the row's value: it selects the operation */
};

struct isa_row {
        uint8_t dst, src, offset, imm; /* enum isa_rule */
        int32_t select;                /* the value of the field with ISA_SELECT; at most one field has it */
        const char *group;             /* conformance group of the RFC */
        const char *refusal;           /* why it has no meaning here, NULL where it has one */
        struct insn insn;              /* kind, op, size, from and flags of the decoded form */
};

/* One slot, its fields taken apart and nothing else done. */
struct isa_slot {
        uint8_t opcode;
        uint8_t dst, src;
        int16_t offset;
        int32_t imm;
};

/* isa_slot_get - the fields of 8 little-endian bytes */
static inline struct isa_slot isa_slot_get(const uint8_t *bytes)
{
        return (struct isa_slot){
                .opcode = bytes[0],
                .dst = bytes[1] & 0x0f,
                .src = bytes[1] >> 4,
                .offset = (int16_t)get_le16(bytes + 2),
                .imm = (int32_t)get_le32(bytes + 4),
        };
}

/* isa_slot_put - the reverse */
void isa_slot_put(struct isa_slot slot, uint8_t *bytes);

/* The rows of each opcode; they differ in the field that has ISA_SELECT. No rows: no instruction has the opcode. */
struct isa_entry {
        size_t n;
        const struct isa_row *rows;
};

extern const struct isa_entry isa_by_opcode[256];

/* isa_find - the row whose opcode and selecting field @slot has; NULL if there is none */
static inline const struct isa_row *isa_find(struct isa_slot slot)
{
        const struct isa_entry *entry = &isa_by_opcode[slot.opcode];

        for (size_t i = 0; i < entry->n; i++) {
                const struct isa_row *row = &entry->rows[i];

                if ((row->offset != ISA_SELECT || slot.offset == row->select) &&
                    (row->imm != ISA_SELECT || slot.imm == row->select) &&
                    (row->src != ISA_SELECT || slot.src == row->select))
                        return row;
        }
        return NULL;
}

/* isa_find_insn - how a decoded instruction is encoded, by its kind, op, size, from and flags
 *
 * Return: its opcode, with the row in @ret; -ENOENT if nothing encodes it (INSN_TAIL, or fields that do not fit).
 */
int isa_find_insn(const struct insn *insn, const struct isa_row **ret);

/* isa_encode - the reverse of decoding
 * @slot: where the instruction stands, since targets are encoded as distances
 * @ret:  one encoded slot, or two for a wide load
 *
 * Return: the number of slots; -ENOENT if nothing encodes it; -ERANGE if an offset or a distance does not fit.
 */
int isa_encode(const struct insn *insn, uint32_t slot, struct isa_slot ret[static 2]);

/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/decode.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "bpfvm/isa.h"
#include "bpfvm/profile.h"

/* The legacy loads of packet data, {ABS or IND, B, H or W, LD}: opcodes 0x20, 0x28, 0x30, 0x40, 0x48, 0x50. */
static bool is_legacy_packet(uint8_t opcode)
{
        return (opcode & 0x07) == 0 && (opcode >> 5 == 1 || opcode >> 5 == 2) && (opcode & 0x18) != 0x18;
}

static void refuse_opcode(uint8_t opcode, uint32_t slot, struct fault *fault)
{
        if (is_legacy_packet(opcode))
                fault_set(fault, FAULT_UNSUPPORTED, slot,
                          "opcode 0x%02x is a legacy load of packet data, which RFC 9669 deprecates", opcode);
        else if (opcode == 0x8d)
                fault_set(fault, FAULT_OPCODE, slot,
                          "opcode 0x8d would be a call through a register, which RFC 9669 does not have");
        else if (opcode == 0)
                fault_set(fault, FAULT_OPCODE, slot,
                          "opcode 0x00 stands only in the second half of a wide load (opcode 0x18)");
        else
                fault_set(fault, FAULT_OPCODE, slot, "opcode 0x%02x is not an instruction", opcode);
}

/* No row has the value of the selecting field: name that field and what it may be. */
static void refuse_selector(struct isa_slot raw, uint32_t slot, struct fault *fault)
{
        size_t n = isa_by_opcode[raw.opcode].n;
        const struct isa_row *rows = isa_by_opcode[raw.opcode].rows;
        const char *field = rows->src == ISA_SELECT ? "src" : rows->offset == ISA_SELECT ? "offset" : "imm";
        int32_t value = rows->src == ISA_SELECT ? raw.src : rows->offset == ISA_SELECT ? raw.offset : raw.imm;
        char allowed[160] = "";
        size_t used = 0;

        for (size_t i = 0; i < n && used < sizeof(allowed); i++)
                used += (size_t)snprintf(allowed + used, sizeof(allowed) - used, "%s%" PRIi32,
                                         i == 0      ? ""
                                         : i + 1 < n ? ", "
                                                     : " or ",
                                         rows[i].select);
        fault_set(fault, FAULT_FIELD_VALUE, slot, "opcode 0x%02x with %s %" PRIi32 "; allowed: %s", raw.opcode, field,
                  value, allowed);
}

/* A field that does not select: reserved, a register, or any number. */
static int check_field(const char *field, int32_t value, enum isa_rule rule, uint8_t opcode, uint32_t slot,
                       struct fault *fault)
{
        if (rule == ISA_ZERO && value != 0)
                return fault_set(fault, FAULT_RESERVED_FIELD, slot,
                                 "opcode 0x%02x with %s %" PRIi32 "; the field is not used: 0", opcode, field, value);
        if ((rule == ISA_READ || rule == ISA_WRITE) && value >= INSN_REGISTERS)
                return fault_set(fault, FAULT_REGISTER, slot, "opcode 0x%02x with %s r%" PRIi32 "; allowed: r0 to r%d",
                                 opcode, field, value, rule == ISA_WRITE ? 9 : 10);
        if (rule == ISA_WRITE && value == INSN_FRAME_POINTER)
                return fault_set(fault, FAULT_FRAME_POINTER, slot,
                                 "opcode 0x%02x writes r10, the frame pointer; allowed: r0 to r9", opcode);
        return 0;
}

/* Some field breaks its rule: name it. */
static void refuse_field(struct isa_slot raw, const struct isa_row *row, uint32_t slot, struct fault *fault)
{
        const struct {
                const char *name;
                int32_t value;
                enum isa_rule rule;
        } fields[] = {{"dst", raw.dst, row->dst},
                      {"src", raw.src, row->src},
                      {"offset", raw.offset, row->offset},
                      {"imm", raw.imm, row->imm}};

        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
                if (check_field(fields[i].name, fields[i].value, fields[i].rule, raw.opcode, slot, fault))
                        return;
}

/* Whether all fields keep the row's rules; the selecting one has its value already. */
static bool fields_fit(struct isa_slot raw, const struct isa_row *row)
{
        static const uint8_t greatest[] = {
                [ISA_ZERO] = 0, [ISA_READ] = 10, [ISA_WRITE] = 9, [ISA_ANY] = 15, [ISA_SELECT] = 15};

        return raw.dst <= greatest[row->dst] && raw.src <= greatest[row->src] &&
               (row->offset != ISA_ZERO || raw.offset == 0) && (row->imm != ISA_ZERO || raw.imm == 0);
}

/* The row that @raw keeps all rules of; NULL with a fault. */
static const struct isa_row *find_row(struct isa_slot raw, uint32_t slot, struct fault *fault)
{
        const struct isa_row *row = isa_find(raw);

        if (row && !row->refusal && fields_fit(raw, row))
                return row;
        if (isa_by_opcode[raw.opcode].n == 0)
                refuse_opcode(raw.opcode, slot, fault);
        else if (!row)
                refuse_selector(raw, slot, fault);
        else if (row->refusal)
                fault_set(fault, FAULT_UNSUPPORTED, slot, "opcode 0x%02x with src %u: %s", raw.opcode, raw.src,
                          row->refusal);
        else
                refuse_field(raw, row, slot, fault);
        return NULL;
}

/* The second half: all zero but the immediate, which is the upper half of a constant or the offset into a map's value,
 * and unused for a map's handle. */
static int decode_wide(struct span slots, uint32_t slot, uint32_t n_maps, struct insn *insn, struct fault *fault)
{
        struct span tail;
        struct isa_slot raw;
        uint32_t low = (uint32_t)insn->imm;

        if (!span_sub(slots, ((size_t)slot + 1) * INSN_SLOT_BYTES, INSN_SLOT_BYTES, &tail))
                return fault_set(fault, FAULT_WIDE_TAIL, slot,
                                 "a wide load in the last slot; its second half is missing");

        raw = isa_slot_get(tail.data);
        if (raw.opcode || raw.dst || raw.src || raw.offset)
                return fault_set(
                        fault, FAULT_WIDE_TAIL, slot + 1,
                        "the second half of a wide load has opcode 0x%02x, dst %u, src %u, offset %d; all are 0",
                        raw.opcode, raw.dst, raw.src, raw.offset);

        insn[1] = (struct insn){.kind = INSN_TAIL};
        if (insn->op == WIDE_CONSTANT) {
                insn->imm = (int64_t)((uint64_t)(uint32_t)raw.imm << 32 | low);
                return 0;
        }
        if (insn->op == WIDE_MAP && raw.imm != 0)
                return fault_set(fault, FAULT_RESERVED_FIELD, slot + 1,
                                 "the load of a map's handle has imm %" PRIi32 " in its second half; it is not used: 0",
                                 raw.imm);
        if (low >= n_maps)
                return fault_set(fault, FAULT_MAP, slot, "map %" PRIu32 " of a program with %" PRIu32 " maps", low,
                                 n_maps);

        insn->map = low;
        insn->imm = insn->op == WIDE_MAP_VALUE ? (int64_t)(uint32_t)raw.imm : 0;
        return 0;
}

static int target_set(struct insn *insn, uint32_t slot, int64_t distance, uint32_t n, struct fault *fault)
{
        int64_t target = (int64_t)slot + 1 + distance;

        if (target < 0 || target >= n)
                return fault_set(fault, FAULT_JUMP_RANGE, slot,
                                 "leads to slot %" PRIi64 "; the program has slots 0 to %" PRIu32, target, n - 1);
        insn->target = (uint32_t)target;
        return 0;
}

/* One instruction of one or two slots, checked but for what stands at its target. */
static int decode_one(struct span slots, uint32_t slot, uint32_t n_maps, struct insn *insn, struct fault *fault)
{
        struct isa_slot raw = isa_slot_get(slots.data + (size_t)slot * INSN_SLOT_BYTES);
        uint32_t n = (uint32_t)(slots.len / INSN_SLOT_BYTES);
        const struct isa_row *row = find_row(raw, slot, fault);
        int r;

        if (!row)
                return 1;

        *insn = row->insn;
        insn->dst = raw.dst;
        insn->src = row->src == ISA_READ || row->src == ISA_WRITE ? raw.src : 0;
        insn->imm = row->imm == ISA_ANY ? raw.imm : 0;
        switch (insn->kind) {
        case INSN_LOAD:
        case INSN_STORE:
        case INSN_ATOMIC:
                insn->offset = raw.offset;
                return 0;
        case INSN_JUMP:
                r = target_set(insn, slot, row->imm == ISA_ANY ? raw.imm : raw.offset, n, fault);
                insn->imm = 0;
                return r;
        case INSN_BRANCH:
                return target_set(insn, slot, raw.offset, n, fault);
        case INSN_CALL_LOCAL:
                r = target_set(insn, slot, raw.imm, n, fault);
                insn->imm = 0;
                return r;
        case INSN_CALL_HELPER:
                insn->imm = (uint32_t)raw.imm;
                return 0;
        case INSN_WIDE:
                return decode_wide(slots, slot, n_maps, insn, fault);
        default:
                return 0;
        }
}

static bool has_target(const struct insn *insn)
{
        return insn->kind == INSN_JUMP || insn->kind == INSN_BRANCH || insn->kind == INSN_CALL_LOCAL;
}

int decode_slots(struct span slots, uint32_t n_maps, struct insn **ret, uint32_t *ret_kinds, struct fault *fault,
                 struct err *err)
{
        _cleanup_free_ struct insn *insns = NULL;
        uint32_t n, kinds = 0;

        if (slots.len == 0 || slots.len % INSN_SLOT_BYTES != 0)
                return fault_set(fault, FAULT_LENGTH, FAULT_NO_SLOT,
                                 "%zu bytes; expected a whole number of 8-byte slots, at least one", slots.len);
        if (slots.len / INSN_SLOT_BYTES > PROFILE_SLOTS_MAX)
                return fault_set(fault, FAULT_LENGTH, FAULT_NO_SLOT, "%zu slots; at most %u are allowed",
                                 slots.len / INSN_SLOT_BYTES, PROFILE_SLOTS_MAX);

        n = (uint32_t)(slots.len / INSN_SLOT_BYTES);
        insns = malloc(n * sizeof(*insns));
        if (!insns)
                return err_set_nomem(err);

        for (uint32_t slot = 0; slot < n; slot = insn_next(&insns[slot], slot)) {
                int r = decode_one(slots, slot, n_maps, &insns[slot], fault);
                if (r)
                        return r;
                kinds |= 1u << insns[slot].kind;
        }
        for (uint32_t slot = 0; kinds & 1u << INSN_WIDE && slot < n; slot++)
                if (has_target(&insns[slot]) && insns[insns[slot].target].kind == INSN_TAIL)
                        return fault_set(fault, FAULT_JUMP_TAIL, slot,
                                         "leads to slot %" PRIu32 ", the second half of the wide load at slot %" PRIu32,
                                         insns[slot].target, insns[slot].target - 1);

        *ret = TAKE_PTR(insns);
        *ret_kinds = kinds;
        return 0;
}

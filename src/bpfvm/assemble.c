/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/assemble.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "bpfvm/helper.h"
#include "bpfvm/isa.h"
#include "bpfvm/syntax-internal.h"

#define SLOTS_MAX 65536

/* One slot of the output: an instruction, or bytes as they are; where it jumps to, if to a label. */
struct item {
        struct insn insn;
        bool is_raw;
        uint8_t raw[INSN_SLOT_BYTES];
        struct span label;
        const uint8_t *at; /* in the text, for errors */
};

struct label {
        struct span name;
        uint32_t slot;
};

struct assembler {
        const char *name;
        struct span text;
        const uint8_t *at, *end; /* of what is left of the line */

        struct item *items;
        uint32_t n_items, n_allocated;
        struct label *labels;
        uint32_t n_labels;
        struct err *err;
};

static int fail(struct assembler *as, const uint8_t *at, const char *expected)
{
        struct position position = {.line = 1, .column = 1};

        while (at < as->end && (*at == ' ' || *at == '\t'))
                at++;
        snprintf(position.file, sizeof(position.file), "%s", as->name);
        for (const uint8_t *p = as->text.data; p < at; p++) {
                position.column++;
                if (*p == '\n') {
                        position.line++;
                        position.column = 1;
                }
        }
        return err_set_at(as->err, ERR_DATA, &position, "expected %s", expected);
}

static void skip_space(struct assembler *as)
{
        while (as->at < as->end && (*as->at == ' ' || *as->at == '\t' || *as->at == '\r'))
                as->at++;
}

/* Take @word if it stands here. A word of letters has to end here too. */
static bool take(struct assembler *as, const char *word)
{
        size_t len = strlen(word);
        uint8_t last = (uint8_t)word[len - 1], next;

        skip_space(as);
        if ((size_t)(as->end - as->at) < len || memcmp(as->at, word, len) != 0)
                return false;
        next = as->at + len < as->end ? as->at[len] : 0;
        if (((last | 32) >= 'a' && (last | 32) <= 'z') &&
            (((next | 32) >= 'a' && (next | 32) <= 'z') || (next >= '0' && next <= '9') || next == '_'))
                return false;
        as->at += len;
        return true;
}

static int need(struct assembler *as, const char *word)
{
        char expected[32];

        if (take(as, word))
                return 0;
        snprintf(expected, sizeof(expected), "\"%s\"", word);
        return fail(as, as->at, expected);
}

static bool is_name_byte(uint8_t c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

static struct span take_name(struct assembler *as)
{
        const uint8_t *begin;

        skip_space(as);
        begin = as->at;
        while (as->at < as->end && is_name_byte(*as->at))
                as->at++;
        return span_of(begin, (size_t)(as->at - begin));
}

/* A number, decimal or 0x, with an optional sign; its 64 bits. */
static int take_number(struct assembler *as, bool *ret_is_negative, uint64_t *ret)
{
        const uint8_t *begin;
        uint64_t value = 0;
        unsigned base = 10, n = 0;

        skip_space(as);
        begin = as->at;
        *ret_is_negative = as->at < as->end && *as->at == '-';
        if (as->at < as->end && (*as->at == '-' || *as->at == '+'))
                as->at++;
        if (as->end - as->at > 2 && as->at[0] == '0' && as->at[1] == 'x') {
                base = 16;
                as->at += 2;
        }
        for (; as->at < as->end; as->at++, n++) {
                int digit = hex_digit(*as->at);

                if (digit < 0 || digit >= (int)base)
                        break;
                if (value > (UINT64_MAX - (unsigned)digit) / base)
                        return fail(as, begin, "a number of 64 bits at most");
                value = value * base + (unsigned)digit;
        }
        if (n == 0 || (as->at < as->end && is_name_byte(*as->at)))
                return fail(as, begin, "a number");
        *ret = *ret_is_negative ? -value : value;
        return 0;
}

/* A number that fits into an instruction's 32 bits, read as signed or as unsigned. */
static int take_imm(struct assembler *as, int64_t *ret)
{
        const uint8_t *begin = as->at;
        bool is_negative;
        uint64_t bits;
        int r;

        r = take_number(as, &is_negative, &bits);
        if (r < 0)
                return r;
        if (is_negative ? -bits > UINT64_C(1) << 31 : bits > UINT32_MAX)
                return fail(as, begin, "a number of 32 bits");
        *ret = (int32_t)(uint32_t)bits;
        return 0;
}

/* "r0" or "w0" to 15 (the decoder refuses what does not exist). *@ret_size is 8 or 4. */
static bool take_reg(struct assembler *as, uint8_t *ret, uint8_t *ret_size)
{
        const uint8_t *p;
        unsigned number = 0, digits = 0;

        skip_space(as);
        p = as->at;
        if (p == as->end || (*p != 'r' && *p != 'w'))
                return false;
        for (p++; p < as->end && *p >= '0' && *p <= '9' && digits < 3; p++, digits++)
                number = number * 10 + *p - '0';
        if (digits == 0 || number > 15 || (p < as->end && is_name_byte(*p)))
                return false;
        *ret = (uint8_t)number;
        *ret_size = *as->at == 'w' ? 4 : 8;
        as->at = p;
        return true;
}

static int need_reg(struct assembler *as, uint8_t size, uint8_t *ret)
{
        const uint8_t *begin = as->at;
        uint8_t got;

        if (!take_reg(as, ret, &got) || got != size)
                return fail(as, begin, size == 4 ? "a register w0 to w10" : "a register r0 to r10");
        return 0;
}

/* The register of a memory operation: rN, or wN as LLVM writes it for up to 4 bytes. */
static int need_memory_reg(struct assembler *as, const struct insn *insn, uint8_t *ret)
{
        const uint8_t *begin = as->at;
        uint8_t size;

        if (!take_reg(as, ret, &size) || (size == 4 && insn->size == 8))
                return fail(as, begin, "a register");
        return 0;
}

/* A register of the operation's width, or an immediate. */
static int take_operand(struct assembler *as, struct insn *insn)
{
        skip_space(as);
        if (as->at < as->end && (*as->at == 'r' || *as->at == 'w'))
                return need_reg(as, insn->size, &insn->src);
        insn->flags |= INSN_IMM;
        return take_imm(as, &insn->imm);
}

/* "(u32 *)(r1 + 8)": size, sign and place. */
static int take_place(struct assembler *as, struct insn *insn, uint8_t *ret_reg)
{
        static const char *const types[] = {"u8", "u16", "u32", "u64", "s8", "s16", "s32"};
        const uint8_t *begin;
        int64_t offset = 0;
        size_t t = 0;
        int r;

        r = need(as, "(");
        if (r < 0)
                return r;
        while (t < 7 && !take(as, types[t]))
                t++;
        if (t == 7)
                return fail(as, as->at, "a type u8, u16, u32, u64, s8, s16 or s32");
        insn->size = (uint8_t)(1u << t % 4);
        if (t >= 4)
                insn->flags |= INSN_SIGNED;

        if ((r = need(as, "*")) < 0 || (r = need(as, ")")) < 0 || (r = need(as, "(")) < 0 ||
            (r = need_reg(as, 8, ret_reg)) < 0)
                return r;
        skip_space(as);
        begin = as->at;
        if (begin < as->end && (*begin == '+' || *begin == '-')) {
                as->at++;
                r = take_imm(as, &offset);
                if (r < 0)
                        return r;
                offset = *begin == '-' ? -offset : offset;
        }
        if (offset != (int16_t)offset)
                return fail(as, begin, "an offset of 16 bits");
        insn->offset = (int32_t)offset;
        return need(as, ")");
}

/* A label, or a distance with its sign. */
static int take_target(struct assembler *as, struct item *item)
{
        int64_t distance;
        int r;

        skip_space(as);
        if (as->at < as->end && (*as->at == '+' || *as->at == '-')) {
                r = take_imm(as, &distance);
                item->insn.target = as->n_items + 1 + (uint32_t)distance;
                return r;
        }
        item->label = take_name(as);
        return item->label.len > 0 ? 0 : fail(as, as->at, "a label, or a distance such as +3");
}

static int parse_if(struct assembler *as, struct item *item)
{
        /* longest first, so that ">" does not take the first byte of ">=" */
        static const enum branch_op order[] = {BRANCH_SGE, BRANCH_SLE, BRANCH_EQ, BRANCH_NE, BRANCH_GE, BRANCH_LE,
                                               BRANCH_SGT, BRANCH_SLT, BRANCH_GT, BRANCH_LT, BRANCH_SET};
        struct insn *insn = &item->insn;
        size_t i = 0;
        int r;

        insn->kind = INSN_BRANCH;
        if (!take_reg(as, &insn->dst, &insn->size))
                return fail(as, as->at, "a register");
        while (i < BRANCH_OPS && !take(as, syntax_branch[order[i]]))
                i++;
        if (i == BRANCH_OPS)
                return fail(as, as->at, "a comparison such as ==, s>= or &");
        insn->op = (uint8_t)order[i];
        if ((r = take_operand(as, insn)) < 0 || (r = need(as, "goto")) < 0)
                return r;
        return take_target(as, item);
}

static int parse_call(struct assembler *as, struct item *item)
{
        const uint8_t *begin;
        bool is_negative;
        uint64_t number;
        int r;

        skip_space(as);
        begin = as->at;
        item->insn.kind = INSN_CALL_LOCAL;
        if (begin < as->end && *begin >= '0' && *begin <= '9') {
                r = take_number(as, &is_negative, &number);
                if (r == 0 && number > UINT32_MAX)
                        r = fail(as, begin, "the number of a helper, of 32 bits");
                item->insn.kind = INSN_CALL_HELPER;
                item->insn.imm = (int64_t)number;
                return r;
        }
        return take_target(as, item);
}

static int parse_store(struct assembler *as, struct item *item)
{
        struct insn *insn = &item->insn;
        int r;

        insn->kind = INSN_STORE;
        if ((r = take_place(as, insn, &insn->dst)) < 0 || (r = need(as, "=")) < 0)
                return r;
        skip_space(as);
        if (as->at < as->end && (*as->at == 'r' || *as->at == 'w'))
                return need_memory_reg(as, insn, &insn->src);
        insn->flags |= INSN_IMM;
        return take_imm(as, &insn->imm);
}

static int parse_lock(struct assembler *as, struct item *item)
{
        static const struct {
                const char *text;
                enum atomic_op op;
        } ops[] = {{"+=", ATOMIC_ADD}, {"|=", ATOMIC_OR}, {"&=", ATOMIC_AND}, {"^=", ATOMIC_XOR}};
        struct insn *insn = &item->insn;
        size_t i = 0;
        int r;

        insn->kind = INSN_ATOMIC;
        if ((r = need(as, "*")) < 0 || (r = take_place(as, insn, &insn->dst)) < 0)
                return r;
        while (i < 4 && !take(as, ops[i].text))
                i++;
        if (i == 4)
                return fail(as, as->at, "+=, |=, &= or ^=");
        insn->op = (uint8_t)ops[i].op;
        return need_memory_reg(as, insn, &insn->src);
}

/* Behind "rN = atomic_": "fetch_add((u64 *)(r1 + 0), rN)", "xchg(...)", or "cmpxchg((u64 *)(r1 + 0), r0, r2)" to r0. */
static int parse_fetch(struct assembler *as, struct item *item, uint8_t dst)
{
        struct insn *insn = &item->insn;
        struct span word = take_name(as);
        unsigned op = ATOMIC_ADD;
        const uint8_t *begin;
        uint8_t compared;
        char written[32];
        int r;

        for (; op <= ATOMIC_CMPXCHG; op++) {
                snprintf(written, sizeof(written), "%s%s", op < ATOMIC_XCHG ? "atomic_fetch_" : "atomic_",
                         syntax_atomic[op]);
                if (span_equal(word, span_of_text(written)))
                        break;
        }
        if (op > ATOMIC_CMPXCHG)
                return fail(as, word.data, "atomic_fetch_add, _or, _and, _xor, atomic_xchg or atomic_cmpxchg");

        *insn = (struct insn){.kind = INSN_ATOMIC, .op = (uint8_t)op, .flags = INSN_FETCH};
        if ((r = need(as, "(")) < 0 || (r = take_place(as, insn, &insn->dst)) < 0 || (r = need(as, ",")) < 0)
                return r;
        if (op == ATOMIC_CMPXCHG) {
                begin = as->at;
                if ((r = need_reg(as, 8, &compared)) < 0 || (r = need(as, ",")) < 0)
                        return r;
                if (compared != 0 || dst != 0)
                        return fail(as, begin, "r0 as result and as what is compared");
        }
        begin = as->at;
        if ((r = need_reg(as, 8, &insn->src)) < 0)
                return r;
        if (op != ATOMIC_CMPXCHG && insn->src != dst)
                return fail(as, begin, "the same register as before the =");
        return need(as, ")");
}

/* Behind "rN = map[" or "rN = map_value[". */
static int parse_map(struct assembler *as, struct insn *insn, enum wide_op op)
{
        bool is_negative;
        uint64_t number, offset = 0;
        int r;

        insn->kind = INSN_WIDE;
        insn->op = op;
        insn->size = 0;
        r = take_number(as, &is_negative, &number);
        if (r < 0)
                return r;
        r = need(as, "]");
        if (r == 0 && op == WIDE_MAP_VALUE && take(as, "+"))
                r = take_number(as, &is_negative, &offset);
        insn->map = (uint32_t)number;
        insn->imm = (int64_t)(uint32_t)offset;
        return r;
}

/* "le16 rN" and so on. Return: 1 if something else stands here. */
static int parse_swap(struct assembler *as, struct insn *insn)
{
        const uint8_t *begin = as->at;
        uint8_t reg;
        char word[16];

        for (unsigned op = SWAP_LE; op <= SWAP_ALWAYS; op++)
                for (uint8_t size = 2; size <= 8; size *= 2) {
                        snprintf(word, sizeof(word), "%s%u", syntax_swap[op], 8u * size);
                        if (!take(as, word))
                                continue;
                        if (need_reg(as, 8, &reg) < 0 || reg != insn->dst)
                                return fail(as, begin, "the same register as before the =");
                        insn->kind = INSN_SWAP;
                        insn->op = (uint8_t)op;
                        insn->size = size;
                        return 0;
                }
        return 1;
}

/* Behind "rN = ": all forms but a plain operand. Return: 1 for that. */
static int parse_assignment(struct assembler *as, struct item *item)
{
        struct insn *insn = &item->insn;
        static const char *const casts[] = {"(s8)", "(s16)", "(s32)"};
        uint8_t reg, size;
        const uint8_t *begin;

        skip_space(as);
        begin = as->at;
        for (unsigned i = 0; i < 3; i++)
                if (take(as, casts[i])) {
                        insn->op = ALU_MOVSX;
                        insn->from = (uint8_t)(1u << i);
                        return need_reg(as, insn->size, &insn->src);
                }
        if (take(as, "-") && take_reg(as, &reg, &size)) {
                insn->op = ALU_NEG;
                return reg == insn->dst && size == insn->size ? 0
                                                              : fail(as, begin, "the same register as before the =");
        }
        as->at = begin;
        if (take(as, "*")) {
                insn->kind = INSN_LOAD;
                insn->op = 0;
                size = insn->size;
                if (take_place(as, insn, &insn->src) < 0)
                        return -EINVAL;
                return size == 4 && (insn->size == 8 || insn->flags) ? fail(as, begin, "a register rN before the =")
                                                                     : 0;
        }
        if (insn->size != 8)
                return 1;
        if (take(as, "map["))
                return parse_map(as, insn, WIDE_MAP);
        if (take(as, "map_value["))
                return parse_map(as, insn, WIDE_MAP_VALUE);
        if (as->end - begin > 7 && memcmp(begin, "atomic_", 7) == 0)
                return parse_fetch(as, item, insn->dst);
        return parse_swap(as, insn);
}

/* "5 ll", a wide constant, or the operand of a move. */
static int parse_move(struct assembler *as, struct insn *insn)
{
        const uint8_t *begin = as->at;
        bool is_negative;
        uint64_t bits;
        int r;

        if (insn->size == 8 && begin < as->end && *begin != 'r') {
                r = take_number(as, &is_negative, &bits);
                if (r < 0)
                        return r;
                if (take(as, "ll")) {
                        *insn = (struct insn){.kind = INSN_WIDE,
                                              .op = WIDE_CONSTANT,
                                              .dst = insn->dst,
                                              .imm = (int64_t)bits};
                        return 0;
                }
                as->at = begin;
        }
        return take_operand(as, insn);
}

static int parse_alu(struct assembler *as, struct item *item)
{
        struct insn *insn = &item->insn;
        unsigned op = 0;
        int r;

        insn->kind = INSN_ALU;
        if (!take_reg(as, &insn->dst, &insn->size))
                return fail(as, as->at, "an instruction");
        while (op < ALU_OPS && (syntax_alu[op][0] == 0 || !take(as, syntax_alu[op])))
                op++;
        if (op == ALU_OPS)
                return fail(as, as->at, "an operator such as =, += or s>>=");
        insn->op = (uint8_t)op;
        if (op != ALU_MOV)
                return take_operand(as, insn);

        r = parse_assignment(as, item);
        return r == 1 ? parse_move(as, insn) : r;
}

static int parse_raw(struct assembler *as, struct item *item)
{
        _cleanup_free_ uint8_t *bytes = NULL;
        size_t len, offset;

        if (hex_decode(span_of(as->at, (size_t)(as->end - as->at)), &bytes, &len, &offset) < 0 ||
            len != INSN_SLOT_BYTES)
                return fail(as, as->at, "16 hexadecimal digits");
        item->is_raw = true;
        memcpy(item->raw, bytes, len);
        as->at = as->end;
        return 0;
}

static int parse_insn(struct assembler *as, struct item *item)
{
        if (take(as, "exit")) {
                item->insn.kind = INSN_EXIT;
                return 0;
        }
        if (take(as, "goto") || take(as, "gotol")) {
                item->insn.kind = INSN_JUMP;
                item->insn.size = as->at[-1] == 'l' ? 4 : 8;
                return take_target(as, item);
        }
        if (take(as, "if"))
                return parse_if(as, item);
        if (take(as, "call"))
                return parse_call(as, item);
        if (take(as, "lock"))
                return parse_lock(as, item);
        if (take(as, "*"))
                return parse_store(as, item);
        if (take(as, ".slot"))
                return parse_raw(as, item);
        return parse_alu(as, item);
}

static int add_label(struct assembler *as, struct span name)
{
        struct label *grown = realloc(as->labels, (as->n_labels + 1) * sizeof(*grown));

        if (!grown)
                return err_set_nomem(as->err);
        as->labels = grown;
        for (uint32_t i = 0; i < as->n_labels; i++)
                if (span_equal(as->labels[i].name, name))
                        return fail(as, name.data, "a label that no line before has");
        as->labels[as->n_labels++] = (struct label){.name = name, .slot = as->n_items};
        return 0;
}

static int add_item(struct assembler *as, const struct item *item)
{
        bool is_wide = !item->is_raw && item->insn.kind == INSN_WIDE;

        if (as->n_items + 2 > SLOTS_MAX)
                return fail(as, item->at, "no more instructions");
        if (as->n_items + 2 > as->n_allocated) {
                uint32_t n = 2 * as->n_allocated + 64;
                struct item *grown = realloc(as->items, n * sizeof(*grown));

                if (!grown)
                        return err_set_nomem(as->err);
                as->items = grown;
                as->n_allocated = n;
        }
        as->items[as->n_items++] = *item;
        if (is_wide)
                as->items[as->n_items++] = (struct item){.insn.kind = INSN_TAIL};
        return 0;
}

static int parse_line(struct assembler *as)
{
        struct item item = {0};
        struct span name;
        const uint8_t *begin;
        int r;

        skip_space(as);
        begin = as->at;
        name = take_name(as);
        if (name.len > 0 && take(as, ":")) {
                r = add_label(as, name);
                if (r < 0)
                        return r;
        } else {
                as->at = begin;
        }
        skip_space(as);
        if (as->at == as->end)
                return 0;

        item.at = as->at;
        r = parse_insn(as, &item);
        if (r < 0)
                return r;
        skip_space(as);
        if (as->at != as->end)
                return fail(as, as->at, "nothing more on the line");
        return add_item(as, &item);
}

static int parse_lines(struct assembler *as)
{
        const uint8_t *p = as->text.data, *end = p + as->text.len;

        while (p < end) {
                const uint8_t *newline = memchr(p, '\n', (size_t)(end - p)), *line_end = newline ? newline : end;
                int r;

                as->at = p;
                as->end = line_end;
                for (const uint8_t *c = p; c < line_end; c++)
                        if (*c == '#' || *c == ';') {
                                as->end = c;
                                break;
                        }
                r = parse_line(as);
                if (r < 0)
                        return r;
                p = newline ? newline + 1 : end;
        }
        return 0;
}

/* Names of labels become targets; the name of a helper, where no label has it, makes the call one. */
static int resolve(struct assembler *as, struct item *item)
{
        char name[64];
        const struct helper *helper;

        if (item->label.len == 0)
                return 0;
        for (uint32_t i = 0; i < as->n_labels; i++)
                if (span_equal(as->labels[i].name, item->label)) {
                        item->insn.target = as->labels[i].slot;
                        return 0;
                }
        snprintf(name, sizeof(name), "%.*s", (int)(item->label.len < 63 ? item->label.len : 63), item->label.data);
        helper = item->insn.kind == INSN_CALL_LOCAL ? helper_find_name(name) : NULL;
        if (!helper)
                return fail(as, item->label.data,
                            item->insn.kind == INSN_CALL_LOCAL ? "a label or a helper" : "a label");
        item->insn.kind = INSN_CALL_HELPER;
        item->insn.imm = helper->id;
        return 0;
}

static int encode(struct assembler *as, uint8_t *bytes)
{
        for (uint32_t i = 0; i < as->n_items; i++) {
                struct item *item = &as->items[i];
                struct isa_slot slots[2];
                int r;

                if (item->is_raw) {
                        memcpy(bytes + (size_t)i * INSN_SLOT_BYTES, item->raw, INSN_SLOT_BYTES);
                        continue;
                }
                r = resolve(as, item);
                if (r < 0)
                        return r;
                r = isa_encode(&item->insn, i, slots);
                if (r == -ERANGE)
                        return fail(as, item->at, "a target that 16 bits reach; use gotol");
                if (r < 0)
                        return fail(as, item->at, "operands that the instruction has");
                for (int k = 0; k < r; k++)
                        isa_slot_put(slots[k], bytes + (size_t)(i + (unsigned)k) * INSN_SLOT_BYTES);
                i += (unsigned)r - 1;
        }
        return 0;
}

int assemble_text(struct span text, const char *name, uint8_t **ret, size_t *ret_len, struct err *err)
{
        struct assembler as = {.name = name, .text = text, .err = err};
        _cleanup_free_ uint8_t *bytes = NULL;
        int r;

        r = parse_lines(&as);
        if (r == 0) {
                bytes = calloc((size_t)as.n_items + 1, INSN_SLOT_BYTES);
                r = bytes ? encode(&as, bytes) : err_set_nomem(err);
        }
        if (r == 0) {
                *ret = TAKE_PTR(bytes);
                *ret_len = (size_t)as.n_items * INSN_SLOT_BYTES;
        }
        free(as.items);
        free(as.labels);
        return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Random BPF programs of which a verifier accepts many: a generator that knows, roughly, what each register and stack
 * byte holds, and now and then forgets it on purpose. The same seed gives the same program.
 *
 * Programs have a context in r1, and may use two maps: number 0 an array of 4 values of 16 bytes, number 1 a hash with
 * keys of 4 and values of 8 bytes. */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/macro.h"
#include "base/rng.h"
#include "bpfvm/isa.h"
#include "bpfvm/map.h"

#define GENERATE_SLOTS_MAX 1024
#define GENERATE_STACK     64 /* bytes below r10 that programs use */

struct generate_options {
        unsigned statements;   /* about so many; some are several instructions */
        uint32_t context_size; /* bytes; read in aligned words of up to 4 bytes; 0: none */
        bool uses_maps;        /* lookups, and accesses to values */
        bool uses_calls;       /* functions of its own */
        bool uses_loops;       /* counted */
        bool is_unaligned;     /* stack accesses need not be aligned */
        unsigned risk_percent; /* of operands and offsets that are drawn blindly */
};

static const struct map_def generate_maps[] = {
        {.name = "numbers", .kind = MAP_ARRAY, .key_size = 4, .value_size = 16, .max_entries = 4},
        {.name = "table", .kind = MAP_HASH, .key_size = 4, .value_size = 8, .max_entries = 8},
};

enum generate_kind { GENERATE_UNINIT, GENERATE_NUMBER, GENERATE_CONTEXT, GENERATE_STACK_POINTER, GENERATE_VALUE };

/* What the generator thinks of the registers and the stack. */
struct generate_view {
        uint8_t kinds[11];
        uint8_t sizes[11];            /* of a value: its bytes */
        uint8_t init[GENERATE_STACK]; /* by byte: 0 no, 1 data, 2 part of a pointer; init[i] is r10 - GENERATE_STACK + i
                                       */
};

struct generate {
        struct rng *rng;
        const struct generate_options *options;
        uint8_t slots[GENERATE_SLOTS_MAX * 8];
        unsigned n;
        struct generate_view view;
        unsigned calls[8]; /* slots of calls whose function is still to come */
        unsigned n_calls, nesting;
};

static inline unsigned generate_draw(struct generate *g, unsigned n)
{
        return (unsigned)rng_below(g->rng, n);
}

static inline bool generate_chance(struct generate *g, unsigned percent)
{
        return generate_draw(g, 100) < percent;
}

static inline void generate_put(struct generate *g, unsigned opcode, unsigned dst, unsigned src, int offset,
                                int32_t imm)
{
        struct isa_slot slot = {(uint8_t)opcode, (uint8_t)dst, (uint8_t)src, (int16_t)offset, imm};

        if (g->n < GENERATE_SLOTS_MAX)
                isa_slot_put(slot, g->slots + 8 * g->n++);
}

static inline int32_t generate_imm(struct generate *g)
{
        static const int32_t edges[] = {0, 1, -1, 2, 7, 8, 15, 16, 31, 32, 63, 255, 256, 4096, INT32_MAX, INT32_MIN};

        if (generate_chance(g, 50))
                return edges[generate_draw(g, ARRAY_SIZE(edges))];
        return (int32_t)rng_next(g->rng) >> generate_draw(g, 32);
}

/* A register that holds @kind, r0 to r9; any where there is none or by the risk that is asked for. -1: none. */
static inline int generate_reg(struct generate *g, enum generate_kind kind)
{
        unsigned start = generate_draw(g, 10);

        if (generate_chance(g, g->options->risk_percent))
                return (int)start;
        for (unsigned i = 0; i < 10; i++)
                if (g->view.kinds[(start + i) % 10] == kind)
                        return (int)((start + i) % 10);
        return -1;
}

/* A register to write: rather one that holds a number or nothing. */
static inline unsigned generate_target(struct generate *g)
{
        unsigned reg = generate_draw(g, 10);

        for (unsigned i = 0; i < 3 && g->view.kinds[reg] > GENERATE_NUMBER; i++)
                reg = generate_draw(g, 10);
        return reg;
}

static inline void generate_number(struct generate *g, unsigned reg)
{
        unsigned form = generate_draw(g, 3);

        if (form == 0) {
                uint64_t value = rng_next(g->rng) >> generate_draw(g, 64);

                generate_put(g, 0x18, reg, 0, 0, (int32_t)value);
                generate_put(g, 0, 0, 0, 0, (int32_t)(value >> 32));
        } else {
                generate_put(g, form == 1 ? 0xb7 : 0xb4, reg, 0, 0, generate_imm(g));
        }
        g->view.kinds[reg] = GENERATE_NUMBER;
}

static inline unsigned generate_some_number(struct generate *g)
{
        int reg = generate_reg(g, GENERATE_NUMBER);

        if (reg < 0) {
                reg = (int)generate_target(g);
                generate_number(g, (unsigned)reg);
        }
        return (unsigned)reg;
}

static inline void generate_alu(struct generate *g)
{
        static const uint8_t ops[] = {0x0, 0x1, 0x2, 0x3, 0x4, 0x5, 0x6, 0x7, 0x9, 0xa, 0xc, 0x0, 0x5, 0x7};
        unsigned op = ops[generate_draw(g, ARRAY_SIZE(ops))], width = generate_draw(g, 2), class = width ? 0x07 : 0x04;
        unsigned dst = generate_some_number(g);
        int offset = (op == 3 || op == 9) && generate_chance(g, 40);
        int32_t imm = generate_imm(g);

        if (generate_chance(g, 50)) {
                generate_put(g, class | op << 4 | 8, dst, generate_some_number(g), offset, 0);
                return;
        }
        if (op == 6 || op == 7 || op == 0xc)
                imm = (int32_t)generate_draw(g, width ? 64 : 32);
        if ((op == 3 || op == 9) && imm == 0)
                imm = 1;
        generate_put(g, class | op << 4, dst, 0, offset, imm);
}

/* Moves, sign extension, negation and byte swaps. */
static inline void generate_move(struct generate *g)
{
        static const int extensions[] = {8, 16, 32};
        unsigned src = generate_some_number(g), dst = generate_target(g), form = generate_draw(g, 6);

        if (form == 0)
                generate_put(g, 0xbf, dst, src, extensions[generate_draw(g, 3)], 0);
        else if (form == 1)
                generate_put(g, 0xbc, dst, src, extensions[generate_draw(g, 2)], 0);
        else if (form == 2)
                generate_put(g, generate_draw(g, 2) ? 0x87 : 0x84, dst = src, 0, 0, 0);
        else if (form == 3)
                generate_put(g, generate_draw(g, 2) ? 0xd4 : 0xdc, dst = src, 0, 0, 16 << generate_draw(g, 3));
        else
                generate_put(g, form == 4 ? 0xbf : 0xbc, dst, src, 0, 0);
        g->view.kinds[dst] = GENERATE_NUMBER;
}

/* A copy of a pointer, the stack's moved a little. */
static inline void generate_pointer(struct generate *g)
{
        unsigned dst = generate_target(g);
        int src = generate_reg(g, GENERATE_CONTEXT);

        if (generate_chance(g, 50) || src < 0) {
                generate_put(g, 0xbf, dst, 10, 0, 0);
                g->view.kinds[dst] = GENERATE_STACK_POINTER;
                return;
        }
        generate_put(g, 0xbf, dst, (unsigned)src, 0, 0);
        g->view.kinds[dst] = g->view.kinds[src];
}

static inline void generate_load_context(struct generate *g)
{
        int src = generate_reg(g, GENERATE_CONTEXT);
        unsigned dst = generate_target(g), size = generate_draw(g, 3);
        static const uint8_t opcodes[] = {0x71, 0x69, 0x61};
        int offset;

        if (src < 0 || g->options->context_size < 4)
                return;
        offset = (int)(generate_draw(g, g->options->context_size >> size) << size);
        if (generate_chance(g, g->options->risk_percent))
                offset = (int)generate_draw(g, 2 * g->options->context_size) - (int)g->options->context_size / 4;
        generate_put(g, opcodes[size], dst, (unsigned)src, offset, 0);
        g->view.kinds[dst] = GENERATE_NUMBER;
}

/* A place on the stack for 2^@log bytes, as an index into init[]. */
static inline unsigned generate_place(struct generate *g, unsigned log)
{
        if (g->options->is_unaligned && generate_chance(g, 30))
                return generate_draw(g, GENERATE_STACK - (1u << log) + 1);
        return generate_draw(g, GENERATE_STACK >> log) << log;
}

static inline void generate_store_stack(struct generate *g)
{
        static const uint8_t by_imm[] = {0x72, 0x6a, 0x62, 0x7a}, by_reg[] = {0x73, 0x6b, 0x63, 0x7b};
        unsigned log = generate_draw(g, 4), at = generate_place(g, log);
        int offset = (int)at - GENERATE_STACK, pointer = generate_reg(g, GENERATE_CONTEXT);
        bool spills = log == 3 && at % 8 == 0 && pointer >= 0 && generate_chance(g, 40);

        if (generate_chance(g, g->options->risk_percent))
                offset = (int)generate_draw(g, 32) - 16;
        else
                for (unsigned i = at & ~7u; i < at + (1u << log); i++)
                        if (g->view.init[i] == 2 && (log != 3 || at % 8 != 0))
                                return;
        if (spills)
                generate_put(g, 0x7b, 10, (unsigned)pointer, offset, 0);
        else if (generate_chance(g, 50))
                generate_put(g, by_imm[log], 10, 0, offset, generate_imm(g));
        else
                generate_put(g, by_reg[log], 10, generate_some_number(g), offset, 0);
        memset(g->view.init + at, spills ? 2 : 1, 1u << log);
}

static inline void generate_load_stack(struct generate *g)
{
        static const uint8_t opcodes[] = {0x71, 0x69, 0x61, 0x79, 0x91, 0x89, 0x81};
        unsigned form = generate_draw(g, ARRAY_SIZE(opcodes)), log = form < 4 ? form : form - 4;
        unsigned at = generate_place(g, log), dst = generate_target(g);
        uint8_t first = g->view.init[at];

        for (unsigned i = at; i < at + (1u << log); i++)
                if ((g->view.init[i] == 0 || g->view.init[i] != first) && !generate_chance(g, g->options->risk_percent))
                        return;
        if (first == 2 && (form != 3 || at % 8 != 0))
                return;
        generate_put(g, opcodes[form], dst, 10, (int)at - GENERATE_STACK, 0);
        g->view.kinds[dst] = first == 2 ? GENERATE_CONTEXT : GENERATE_NUMBER;
}

static inline void generate_atomic(struct generate *g)
{
        static const int32_t ops[] = {0x00, 0x40, 0x50, 0xa0, 0x01, 0x41, 0x51, 0xa1, 0xe1, 0xf1};
        unsigned log = 2 + generate_draw(g, 2), at = generate_draw(g, GENERATE_STACK >> log) << log;
        int32_t op = ops[generate_draw(g, ARRAY_SIZE(ops))];
        unsigned src = generate_some_number(g);

        for (unsigned i = at; i < at + (1u << log); i++)
                if (g->view.init[i] != 1)
                        return;
        if (op == 0xf1 && g->view.kinds[0] != GENERATE_NUMBER)
                generate_number(g, 0);
        generate_put(g, log == 2 ? 0xc3 : 0xdb, 10, src, (int)at - GENERATE_STACK, op);
}

static inline void generate_clobber(struct generate *g)
{
        for (unsigned reg = 1; reg <= 5; reg++)
                g->view.kinds[reg] = GENERATE_UNINIT;
}

/* r0 = lookup of a key on the stack, and a test of it, so that r0 points to a value or the program ends with 0. */
static inline void generate_lookup(struct generate *g)
{
        unsigned map = generate_draw(g, 2);
        bool from_register = generate_chance(g, 50);

        if (g->view.init[GENERATE_STACK - 4] == 2)
                return;
        if (from_register)
                generate_put(g, 0x63, 10, generate_some_number(g), -4, 0);
        else
                generate_put(g, 0x62, 10, 0, -4, (int32_t)generate_draw(g, 6));
        memset(g->view.init + GENERATE_STACK - 4, 1, 4);
        generate_put(g, 0xbf, 2, 10, 0, 0);
        generate_put(g, 0x07, 2, 0, 0, -4);
        generate_put(g, 0x18, 1, 5, 0, (int32_t)map);
        generate_put(g, 0, 0, 0, 0, 0);
        generate_put(g, 0x85, 0, 0, 0, 1);
        if (!generate_chance(g, g->options->risk_percent)) {
                generate_put(g, 0x55, 0, 0, 2, 0);
                generate_put(g, 0xb7, 0, 0, 0, 0);
                generate_put(g, 0x95, 0, 0, 0, 0);
        }
        generate_clobber(g);
        g->view.kinds[0] = GENERATE_VALUE;
        g->view.sizes[0] = (uint8_t)generate_maps[map].value_size;
}

/* A load from or a store to a map's value, at a known offset or one made of a masked number. */
static inline void generate_value(struct generate *g)
{
        static const uint8_t loads[] = {0x71, 0x69, 0x61, 0x79}, stores[] = {0x73, 0x6b, 0x63, 0x7b};
        int base = generate_reg(g, GENERATE_VALUE);
        unsigned log = generate_draw(g, 4), dst = generate_target(g), size, number;
        int offset;

        if (base < 0)
                return;
        size = MAX(g->view.sizes[base], 8);
        offset = (int)(generate_draw(g, size >> log) << log);
        if (generate_chance(g, g->options->risk_percent))
                offset = (int)generate_draw(g, 20) - 2;
        if (generate_chance(g, 40) && (int)dst != base) {
                number = generate_some_number(g);
                if (number == dst || (int)number == base)
                        return;
                generate_put(g, 0x57, number, 0, 0, (int32_t)(size - (1u << log)) & ~(int32_t)((1u << log) - 1));
                generate_put(g, 0xbf, dst, (unsigned)base, 0, 0);
                generate_put(g, 0x0f, dst, number, 0, 0);
                generate_put(g, loads[log], dst, dst, 0, 0);
                g->view.kinds[dst] = GENERATE_NUMBER;
                return;
        }
        if (generate_chance(g, 50)) {
                generate_put(g, stores[log], (unsigned)base, generate_some_number(g), offset, 0);
                return;
        }
        generate_put(g, loads[log], dst, (unsigned)base, offset, 0);
        g->view.kinds[dst] = GENERATE_NUMBER;
}

/* What both ways to a place agree on. */
static inline void generate_meet(struct generate_view *a, const struct generate_view *b)
{
        for (unsigned i = 0; i < ARRAY_SIZE(a->kinds); i++) {
                if (a->kinds[i] != b->kinds[i])
                        a->kinds[i] = GENERATE_UNINIT;
                a->sizes[i] = MIN(a->sizes[i], b->sizes[i]);
        }
        for (unsigned i = 0; i < ARRAY_SIZE(a->init); i++)
                if (a->init[i] != b->init[i])
                        a->init[i] = 0;
}

static inline void generate_statements(struct generate *g, unsigned n);

static inline void generate_patch(struct generate *g, unsigned slot)
{
        struct isa_slot jump;

        if (slot >= GENERATE_SLOTS_MAX)
                return;
        jump = isa_slot_get(g->slots + 8 * slot);
        jump.offset = (int16_t)(g->n - slot - 1);
        isa_slot_put(jump, g->slots + 8 * slot);
}

static inline void generate_condition(struct generate *g)
{
        static const uint8_t ops[] = {0x1, 0x2, 0x3, 0x4, 0x5, 0x6, 0x7, 0xa, 0xb, 0xc, 0xd};
        unsigned op = ops[generate_draw(g, ARRAY_SIZE(ops))], class = generate_draw(g, 2) ? 0x05 : 0x06;
        unsigned dst = generate_some_number(g);

        if (generate_chance(g, 30))
                generate_put(g, class | op << 4 | 8, dst, generate_some_number(g), 0, 0);
        else
                generate_put(g, class | op << 4, dst, 0, 0, generate_imm(g));
}

static inline void generate_if(struct generate *g)
{
        struct generate_view before, after;
        unsigned branch, jump;

        generate_condition(g);
        branch = g->n - 1;
        before = g->view;
        generate_statements(g, 1 + generate_draw(g, 4));
        if (generate_chance(g, 50)) {
                generate_patch(g, branch);
                generate_meet(&g->view, &before);
                return;
        }
        generate_put(g, 0x05, 0, 0, 0, 0);
        jump = g->n - 1;
        generate_patch(g, branch);
        after = g->view;
        g->view = before;
        generate_statements(g, 1 + generate_draw(g, 4));
        generate_patch(g, jump);
        generate_meet(&g->view, &after);
}

/* A loop whose counter, r9, nothing else in it writes: the register is kept out of use by calling it a value. */
static inline void generate_loop(struct generate *g)
{
        unsigned head, turns = 1 + generate_draw(g, 12);
        struct generate_view before;

        if (g->view.kinds[9] == GENERATE_VALUE)
                return;
        generate_put(g, 0xb7, 9, 0, 0, 0);
        g->view.kinds[9] = GENERATE_VALUE;
        g->view.sizes[9] = 0;
        before = g->view;
        head = g->n;
        generate_statements(g, 1 + generate_draw(g, 3));
        generate_put(g, 0x07, 9, 0, 0, 1);
        generate_put(g, generate_draw(g, 2) ? 0xa5 : 0x55, 9, 0, (int)head - (int)g->n - 1, (int32_t)turns);
        generate_meet(&g->view, &before);
        g->view.kinds[9] = GENERATE_NUMBER;
}

static inline void generate_call(struct generate *g)
{
        if (g->n_calls == ARRAY_SIZE(g->calls))
                return;
        for (unsigned reg = 1; reg <= 2; reg++)
                if (g->view.kinds[reg] != GENERATE_NUMBER)
                        generate_number(g, reg);
        g->calls[g->n_calls++] = g->n;
        generate_put(g, 0x85, 0, 1, 0, 0);
        generate_clobber(g);
        g->view.kinds[0] = GENERATE_NUMBER;
}

static inline void generate_statement(struct generate *g)
{
        unsigned form = generate_draw(g, 100);

        if (form < 30)
                generate_alu(g);
        else if (form < 42)
                generate_move(g);
        else if (form < 50)
                generate_load_context(g);
        else if (form < 60)
                generate_store_stack(g);
        else if (form < 70)
                generate_load_stack(g);
        else if (form < 74)
                generate_atomic(g);
        else if (form < 77)
                generate_pointer(g);
        else if (form < 84 && g->options->uses_maps)
                g->view.kinds[0] == GENERATE_VALUE ? generate_value(g) : generate_lookup(g);
        else if (form < 87 && g->options->uses_maps)
                generate_value(g);
        else if (form < 90 && g->options->uses_calls)
                generate_call(g);
        else if (form < 93 && g->options->uses_loops && g->nesting < 3)
                generate_loop(g);
        else
                generate_if(g);
}

static inline void generate_statements(struct generate *g, unsigned n)
{
        if (g->nesting == 6)
                return;
        g->nesting++;
        while (n-- > 0 && g->n < GENERATE_SLOTS_MAX / 2)
                generate_statement(g);
        g->nesting--;
}

static inline void generate_function(struct generate *g, unsigned statements)
{
        generate_statements(g, statements);
        if (g->view.kinds[0] != GENERATE_NUMBER)
                generate_number(g, 0);
        generate_put(g, 0x95, 0, 0, 0, 0);
}

/* generate_program - one program, into g->slots (g->n of them) */
static inline void generate_program(struct generate *g, struct rng *rng, const struct generate_options *options)
{
        *g = (struct generate){.rng = rng, .options = options};
        g->view.kinds[1] = options->context_size > 0 ? GENERATE_CONTEXT : GENERATE_NUMBER;
        generate_function(g, options->statements);
        for (unsigned i = 0; i < g->n_calls; i++) {
                struct isa_slot call = isa_slot_get(g->slots + 8 * g->calls[i]);

                call.imm = (int32_t)(g->n - g->calls[i] - 1);
                isa_slot_put(call, g->slots + 8 * g->calls[i]);
                memset(&g->view, 0, sizeof(g->view));
                g->view.kinds[1] = g->view.kinds[2] = GENERATE_NUMBER;
                generate_function(g, 1 + generate_draw(g, options->statements / 2 + 1));
        }
}

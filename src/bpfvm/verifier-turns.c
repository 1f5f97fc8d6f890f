/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "bpfvm/verifier-internal.h"

/* Why a loop ends: a register or a slot of the stack that on every way round grows, or falls, by at least one, between
 * bounds that hold at the loop's head in every turn, without passing the end of its width. The way is followed once,
 * with each register and slot as "what variable x was at the head, plus from least to most". */

#define COUNTER_SLOTS 8
#define COUNTERS      (INSN_FRAME_POINTER + COUNTER_SLOTS)
#define COUNTER_NONE  UINT8_MAX
#define COUNTER_FAR   (INT64_C(1) << 62) /* differences beyond are not followed */

/* A difference from a variable's value at the head, in the whole word or only in its low half. Compilers add to a
 * number of 32 bits with a sign also by shifting it up, adding there, and shifting it down. */
struct moved {
        uint8_t from; /* variable, or COUNTER_NONE: nothing known */
        bool is_low;
        bool is_up; /* of the upper half, and the low half is zero */
        int64_t least, most;
};

/* Registers, then slots. */
struct turn {
        bool is_reached;
        struct moved at[COUNTERS];
};

/* A slot of the running frame that holds a number in every state at the head. */
struct counter_slot {
        int offset; /* from r10 */
        unsigned size;
};

struct turns {
        struct verifier *v;
        const struct loop *loop;
        struct counter_slot slots[COUNTER_SLOTS];
        unsigned n_slots;
        struct turn *turns;           /* at the start of each block, by position in the loop */
        struct moved round[COUNTERS]; /* by variable: what it has become at the jumps back */
        bool has_round;
};

static struct moved unknown(void)
{
        return (struct moved){.from = COUNTER_NONE};
}

static struct moved join(struct moved a, struct moved b)
{
        if (a.from != b.from || a.from == COUNTER_NONE || a.is_up != b.is_up)
                return unknown();
        return (struct moved){a.from, a.is_low || b.is_low, a.is_up, MIN(a.least, b.least), MAX(a.most, b.most)};
}

static struct moved shift(struct moved m, int64_t least, int64_t most, bool is_low)
{
        if (m.from == COUNTER_NONE || least < -COUNTER_FAR || most > COUNTER_FAR)
                return unknown();
        if (m.is_up && (is_low || least != most || least & UINT32_MAX))
                return unknown();
        if (m.is_up)
                least = most = least >> 32;
        m.least += least;
        m.most += most;
        m.is_low = m.is_low || is_low;
        return m.least < -COUNTER_FAR || m.most > COUNTER_FAR ? unknown() : m;
}

/* Up or down by 32 bits. */
static struct moved shift_half(struct moved m, enum alu_op op)
{
        if (m.from == COUNTER_NONE || m.is_up == (op == ALU_LSH))
                return unknown();
        m.is_up = !m.is_up;
        m.is_low = true;
        return m;
}

static void forget_slots(const struct turns *t, struct turn *turn)
{
        for (unsigned i = 0; i < t->n_slots; i++)
                turn->at[INSN_FRAME_POINTER + i] = unknown();
}

/* The variable of an access relative to r10, or COUNTER_NONE. */
static unsigned slot_of(const struct turns *t, int offset, unsigned size)
{
        for (unsigned i = 0; i < t->n_slots; i++)
                if (t->slots[i].offset == offset && t->slots[i].size == size)
                        return INSN_FRAME_POINTER + i;
        return COUNTER_NONE;
}

/* What a store may overwrite is not followed any more. */
static void forget_stored(const struct turns *t, struct turn *turn, const struct insn *insn, uint32_t slot)
{
        const struct note *note = &t->v->loops->notes[slot];

        if (insn->dst != INSN_FRAME_POINTER) {
                if (!note->is_set || note->writes_stack)
                        forget_slots(t, turn);
                return;
        }
        for (unsigned i = 0; i < t->n_slots; i++)
                if (insn->offset < t->slots[i].offset + (int)t->slots[i].size &&
                    t->slots[i].offset < insn->offset + insn->size)
                        turn->at[INSN_FRAME_POINTER + i] = unknown();
}

static void step_store(const struct turns *t, struct turn *turn, const struct insn *insn, uint32_t slot)
{
        unsigned target = slot_of(t, insn->offset, insn->size);

        forget_stored(t, turn, insn, slot);
        if (insn->dst != INSN_FRAME_POINTER || target == COUNTER_NONE || insn->kind != INSN_STORE ||
            insn->flags & INSN_IMM || insn->src == INSN_FRAME_POINTER)
                return;
        turn->at[target] = shift(turn->at[insn->src], 0, 0, insn->size == 4);
}

static void step_load(const struct turns *t, struct turn *turn, const struct insn *insn)
{
        unsigned source = slot_of(t, insn->offset, insn->size);

        if (insn->src != INSN_FRAME_POINTER || source == COUNTER_NONE) {
                turn->at[insn->dst] = unknown();
                return;
        }
        turn->at[insn->dst] = shift(turn->at[source], 0, 0, insn->size == 4);
}

static void step_alu(const struct turns *t, struct turn *turn, const struct insn *insn, uint32_t slot)
{
        struct moved *dst = &turn->at[insn->dst];
        const struct note *note = &t->v->loops->notes[slot];
        bool is_constant = insn->flags & INSN_IMM, is_low = insn->size == 4;
        int64_t least = is_constant ? insn->imm : note->least, most = is_constant ? insn->imm : note->most;

        if (insn->op == ALU_MOV && !is_constant) {
                if (insn->src == INSN_FRAME_POINTER)
                        *dst = unknown();
                else
                        *dst = shift(turn->at[insn->src], 0, 0, is_low);
        } else if (insn->op == ALU_ADD && (is_constant || note->is_set)) {
                *dst = shift(*dst, least, most, is_low);
        } else if (insn->op == ALU_SUB && (is_constant || note->is_set) && least >= -COUNTER_FAR) {
                *dst = shift(*dst, -most, -least, is_low);
        } else if (insn->op >= ALU_LSH && insn->op <= ALU_ARSH && is_constant && least == 32 && !is_low) {
                *dst = shift_half(*dst, insn->op);
        } else {
                *dst = unknown();
        }
}

static void step(const struct turns *t, struct turn *turn, uint32_t slot)
{
        const struct insn *insn = &t->v->program->insns[slot];

        switch ((enum insn_kind)insn->kind) {
        case INSN_ALU:
                step_alu(t, turn, insn, slot);
                return;
        case INSN_LOAD:
                step_load(t, turn, insn);
                return;
        case INSN_STORE:
                step_store(t, turn, insn, slot);
                return;
        case INSN_ATOMIC:
                step_store(t, turn, insn, slot);
                if (insn->flags & INSN_FETCH)
                        turn->at[insn->op == ATOMIC_CMPXCHG ? 0 : insn->src] = unknown();
                return;
        case INSN_CALL_LOCAL:
                forget_slots(t, turn);
                __attribute__((fallthrough));
        case INSN_CALL_HELPER:
                for (unsigned reg = 0; reg <= 5; reg++)
                        turn->at[reg] = unknown();
                return;
        case INSN_SWAP:
        case INSN_WIDE:
                turn->at[insn->dst] = unknown();
                return;
        case INSN_TAIL:
        case INSN_JUMP:
        case INSN_BRANCH:
        case INSN_EXIT:
                return;
        }
}

/* What an inner loop writes, in any number of turns, is not known from its head on. */
static void forget_written(const struct turns *t, struct turn *turn, const struct loop *inner)
{
        for (uint32_t i = inner->first; i < inner->end; i++) {
                const struct cfg_block *block = &t->v->cfg->blocks[t->v->loops->order[i]];

                for (uint32_t slot = block->start; slot < block->end; slot++) {
                        const struct insn *insn = &t->v->program->insns[slot];
                        uint16_t writes = insn_writes(insn);

                        if (insn->kind == INSN_CALL_LOCAL || insn->kind == INSN_CALL_HELPER)
                                writes = 0x3f;
                        for (unsigned reg = 0; reg < INSN_FRAME_POINTER; reg++)
                                if (writes >> reg & 1)
                                        turn->at[reg] = unknown();
                        if (insn->kind == INSN_STORE || insn->kind == INSN_ATOMIC)
                                forget_stored(t, turn, insn, slot);
                        else if (insn->kind == INSN_CALL_LOCAL)
                                forget_slots(t, turn);
                }
        }
}

static void come_round(struct turns *t, const struct turn *turn)
{
        for (unsigned i = 0; i < COUNTERS; i++) {
                struct moved m = turn->at[i].from == i && !turn->at[i].is_up ? turn->at[i] : unknown();

                t->round[i] = t->has_round ? join(t->round[i], m) : m;
        }
        t->has_round = true;
}

static void go_on(struct turns *t, uint32_t block, const struct turn *turn)
{
        const struct cfg_block *b = &t->v->cfg->blocks[block];

        for (unsigned i = 0; i < 2; i++) {
                uint32_t next = b->next[i];
                struct turn *there;

                if (next == CFG_NONE || !(t->v->costs[block].ever & (i == 0 ? WAY_FALLS : WAY_JUMPS)) ||
                    !loops_have(t->v->loops, (uint32_t)(t->loop - t->v->loops->loops), next))
                        continue;
                if (next == t->loop->head) {
                        come_round(t, turn);
                        continue;
                }
                there = &t->turns[t->v->loops->position[next] - t->loop->first];
                if (!there->is_reached)
                        *there = *turn;
                else
                        for (unsigned k = 0; k < COUNTERS; k++)
                                there->at[k] = join(there->at[k], turn->at[k]);
        }
}

static void follow(struct turns *t)
{
        const struct loops *loops = t->v->loops;

        for (uint32_t i = t->loop->first; i < t->loop->end; i++) {
                uint32_t number = loops->order[i];
                const struct cfg_block *block = &t->v->cfg->blocks[number];
                struct turn turn = t->turns[i - t->loop->first];

                if (!turn.is_reached)
                        continue;
                if (block->is_loop_head && number != t->loop->head) {
                        forget_written(t, &turn, loops_of_head(loops, number));
                        t->turns[i - t->loop->first] = turn;
                }
                for (uint32_t slot = block->start; slot < block->end; slot++)
                        step(t, &turn, slot);
                go_on(t, number, &turn);
        }
}

static const struct reg *head_value(const struct turns *t, const struct state *state, unsigned variable)
{
        const struct counter_slot *slot;
        const struct slot *found;

        if (variable < INSN_FRAME_POINTER)
                return &state->regs[variable];
        slot = &t->slots[variable - INSN_FRAME_POINTER];
        found = state_find(state, STATE_PLACE(state->depth - 1, (unsigned)(-slot->offset - 1) / 8));
        if (!found || found->size != slot->size || (8 - -slot->offset % 8) % 8 != found->at)
                return NULL;
        return &found->value;
}

/* The values of a variable at the head, in every turn. Return: false if it is not a number in all states. */
static bool head_range(const struct turns *t, unsigned variable, bool is_low, struct range *ret)
{
        bool is_first = true;

        for (const struct state *s = t->v->points[t->loop->head].states; s; s = s->next) {
                const struct reg *reg = head_value(t, s, variable);
                const struct range *r;

                if (!reg || reg->kind != REG_SCALAR)
                        return false;
                r = is_low ? &reg->value.half : &reg->value.word;
                *ret = is_first ? *r : range_join(ret, r);
                is_first = false;
        }
        return !is_first;
}

/* Turns that a variable allows which grows by at least @m->least, or falls, each turn; UINT64_MAX: no limit. It may
 * neither pass the end of its reading on the way, nor, at the head, leave its range: so the turns are counted by it. */
static uint64_t count_turns(const struct moved *m, const struct range *r)
{
        unsigned bits = m->is_low ? 32 : 64;
        uint64_t turns = UINT64_MAX, step;

        if (m->least >= 1) {
                step = (uint64_t)m->least;
                if ((range_wide)r->umax + m->most <= (range_wide)width_mask(bits))
                        turns = (r->umax - r->umin) / step;
                if ((range_wide)r->smax + m->most <= width_smax(bits))
                        turns = MIN(turns, ((uint64_t)r->smax - (uint64_t)r->smin) / step);
        } else if (m->most <= -1) {
                step = (uint64_t)-m->most;
                if ((range_wide)r->umin + m->least >= 0)
                        turns = (r->umax - r->umin) / step;
                if ((range_wide)r->smin + m->least >= width_smin(bits))
                        turns = MIN(turns, ((uint64_t)r->smax - (uint64_t)r->smin) / step);
        }
        return turns;
}

static void choose_slots(struct turns *t)
{
        const struct state *head = t->v->points[t->loop->head].states;

        for (size_t i = 0; head && i < head->n_slots && t->n_slots < COUNTER_SLOTS; i++) {
                const struct slot *slot = &head->slots[i];
                unsigned index = STATE_PLACE_INDEX(slot->place);

                if (STATE_PLACE_FRAME(slot->place) + 1u != head->depth || index >= 64 || slot->size < 4 ||
                    slot->value.kind != REG_SCALAR)
                        continue;
                t->slots[t->n_slots++] = (struct counter_slot){-8 * ((int)index + 1) + slot->at, slot->size};
        }
}

static struct verifier_place place_of(const struct turns *t, unsigned variable)
{
        const struct counter_slot *slot;

        if (variable < INSN_FRAME_POINTER)
                return (struct verifier_place){.reg = (uint8_t)variable};
        slot = &t->slots[variable - INSN_FRAME_POINTER];
        return (struct verifier_place){VERIFIER_STACK, (uint8_t)slot->size, (int16_t)slot->offset};
}

/* Tell whoever wants to know how the counter that was chosen goes through the loop. */
static void report(const struct turns *t, unsigned counter, uint64_t allowed)
{
        const struct verifier *v = t->v;
        const struct moved *round = &t->round[counter];
        uint32_t head = v->cfg->blocks[t->loop->head].start;
        const struct verifier_ending turns = {.head = head,
                                              .counter = place_of(t, counter),
                                              .is_low = round->is_low,
                                              .least = round->least,
                                              .most = round->most,
                                              .turns = allowed};

        if (!verifier_is_observed(v))
                return;
        if (v->options->observe_ending)
                v->options->observe_ending(v->options->userdata, &v->context, &turns);
        for (uint32_t i = t->loop->first + 1; i < t->loop->end && v->options->observe_count; i++) {
                const struct turn *turn = &t->turns[i - t->loop->first];

                for (unsigned k = 0; k < INSN_FRAME_POINTER + t->n_slots; k++) {
                        struct verifier_count count = {head,
                                                       v->cfg->blocks[v->loops->order[i]].start,
                                                       place_of(t, k),
                                                       turn->at[k].is_low,
                                                       turn->at[k].least,
                                                       turn->at[k].most};

                        if (turn->is_reached && turn->at[k].from == counter && !turn->at[k].is_up)
                                v->options->observe_count(v->options->userdata, &v->context, &count);
                }
        }
}

/* The variable that allows the fewest turns. Return: false if none counts them. */
static bool choose_counter(const struct turns *t, unsigned *ret, uint64_t *ret_turns)
{
        *ret_turns = UINT64_MAX;
        for (unsigned i = 0; i < INSN_FRAME_POINTER + t->n_slots; i++) {
                struct range range;
                uint64_t turns;

                if (t->round[i].from != i || !head_range(t, i, t->round[i].is_low, &range))
                        continue;
                turns = count_turns(&t->round[i], &range);
                if (turns < *ret_turns) {
                        *ret_turns = turns;
                        *ret = i;
                }
        }
        return *ret_turns != UINT64_MAX;
}

int verifier_turns(struct verifier *v, const struct loop *loop, uint64_t *ret)
{
        _cleanup_free_ struct turn *memory = calloc(loop->end - loop->first, sizeof(*memory));
        struct turns t = {.v = v, .loop = loop, .turns = memory};
        unsigned counter = 0;

        *ret = 0;
        if (!memory)
                return err_set_nomem(v->err);
        choose_slots(&t);
        t.turns[0].is_reached = true;
        for (unsigned i = 0; i < COUNTERS; i++)
                t.turns[0].at[i] = (struct moved){.from = (uint8_t)i};
        follow(&t);
        if (!t.has_round) /* no way leads back, whatever the graph says */
                return 0;
        if (!choose_counter(&t, &counter, ret))
                return verifier_refuse(v, FAULT_TERMINATION, v->cfg->blocks[loop->head].start,
                                       "begins a loop that nothing shows to end: no register or stack slot grows, or "
                                       "falls, on every way round between bounds that hold in every turn");
        report(&t, counter, *ret);
        return 0;
}

void verifier_note(struct verifier *v, uint32_t slot, const struct state *state)
{
        const struct insn *insn = &v->program->insns[slot];
        const struct reg *other = &state->regs[insn->kind == INSN_ALU ? insn->src : insn->dst];
        struct note *note = &v->loops->notes[slot];
        const struct range *r = insn->size == 4 ? &other->value.half : &other->value.word;
        struct note now = {.is_set = true};

        if (insn->kind == INSN_STORE || insn->kind == INSN_ATOMIC) {
                now.writes_stack = other->kind == REG_STACK;
        } else if (insn->kind == INSN_ALU && (insn->op == ALU_ADD || insn->op == ALU_SUB) &&
                   !(insn->flags & INSN_IMM)) {
                now.least = other->kind == REG_SCALAR ? r->smin : INT64_MIN;
                now.most = other->kind == REG_SCALAR ? r->smax : INT64_MAX;
        } else {
                return;
        }
        if (note->is_set) {
                now.writes_stack |= note->writes_stack;
                now.least = MIN(now.least, note->least);
                now.most = MAX(now.most, note->most);
        }
        *note = now;
}

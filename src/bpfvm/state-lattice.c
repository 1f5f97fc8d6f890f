/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/macro.h"
#include "bpfvm/state.h"

/* Ids say which registers and slots hold copies of one value. Two states agree on a pair of places if both say so of
 * it; going through the places of both in one order, each pair of ids met is one class of the copies that they agree
 * on. */
#define PAIRS_MAX 64

struct id_pairs {
        uint32_t n;
        struct id_pair {
                uint32_t a, b;
                const struct reg *first; /* of b, for comparison */
        } pairs[PAIRS_MAX];
};

static bool is_tracked(const struct reg *reg)
{
        return reg->id != 0 && (reg->kind == REG_SCALAR || (reg->kind == REG_VALUE && reg->may_be_null));
}

/* Whether a branch that says something of one says the same of the other. */
static bool go_together(const struct reg *x, const struct reg *y)
{
        if (x->kind == REG_SCALAR && y->kind == REG_SCALAR && scalar_is_const(&x->value) && scalar_is_const(&y->value))
                return x->value.tnum.value == y->value.tnum.value;
        if (x->kind == REG_VALUE && y->kind == REG_VALUE && !x->may_be_null && !y->may_be_null)
                return true;
        return is_tracked(x) && x->id == y->id;
}

/* Whether what @a says of copies is true of @b as well. */
static bool includes_id(struct id_pairs *ids, const struct reg *a, const struct reg *b)
{
        if (!is_tracked(a))
                return true;
        for (uint32_t i = 0; i < ids->n; i++)
                if (ids->pairs[i].a == a->id)
                        return go_together(ids->pairs[i].first, b);
        if (ids->n == PAIRS_MAX)
                return false;
        ids->pairs[ids->n++] = (struct id_pair){.a = a->id, .first = b};
        return true;
}

static bool is_zero(const struct reg *reg)
{
        return reg->kind == REG_SCALAR && scalar_is_const(&reg->value) && reg->value.tnum.value == 0;
}

static bool reg_includes(struct id_pairs *ids, const struct reg *a, const struct reg *b)
{
        if (a->kind == REG_UNINIT)
                return true;
        if (a->kind == REG_MIXED)
                return b->kind != REG_UNINIT;
        if (a->kind == REG_VALUE && a->may_be_null && is_zero(b))
                return includes_id(ids, a, b);
        if (a->kind != b->kind)
                return false;
        if (a->kind == REG_SCALAR)
                return scalar_includes(&a->value, &b->value) && includes_id(ids, a, b);
        return a->index == b->index && (a->may_be_null || !b->may_be_null) && scalar_includes(&a->value, &b->value) &&
               includes_id(ids, a, b);
}

static bool holds_pointer(const struct slot *slot)
{
        return slot->size > 0 && slot->value.kind != REG_SCALAR;
}

static bool slot_includes(struct id_pairs *ids, const struct slot *a, const struct slot *b)
{
        if (a->init & ~b->init)
                return false;
        if (a->size == 0)
                return !holds_pointer(b);
        if (a->value.kind == REG_MIXED)
                return true;
        return a->at == b->at && a->size == b->size && reg_includes(ids, &a->value, &b->value);
}

bool state_includes(const struct state *a, const struct state *b)
{
        struct id_pairs ids;

        ids.n = 0;
        for (unsigned reg = 0; reg < INSN_FRAME_POINTER; reg++)
                if (!reg_includes(&ids, &a->regs[reg], &b->regs[reg]))
                        return false;
        for (size_t i = 0, j = 0; i < a->n_slots; i++) {
                while (j < b->n_slots && b->slots[j].place < a->slots[i].place)
                        j++;
                if (j == b->n_slots || b->slots[j].place != a->slots[i].place)
                        return false;
                if (!slot_includes(&ids, &a->slots[i], &b->slots[j]))
                        return false;
        }
        return true;
}

/* What a join of two registers loses: a constant or a pointer's place weighs more than a range. */
static unsigned reg_distance(const struct reg *a, const struct reg *b)
{
        bool comparable = a->kind == b->kind && (!reg_is_pointer(a) || a->index == b->index);

        if (a->kind == REG_UNINIT || b->kind == REG_UNINIT)
                return a->kind == b->kind ? 0 : STATE_DISTANCE_KIND;
        if (!comparable || (a->kind == REG_VALUE && a->may_be_null != b->may_be_null))
                return STATE_DISTANCE_KIND;
        if (a->kind == REG_MIXED || scalar_equal(&a->value, &b->value))
                return 0;
        if (reg_is_pointer(a))
                return 16;
        return scalar_is_const(&a->value) && scalar_is_const(&b->value) ? 4 : 1;
}

static unsigned slot_distance(const struct slot *a, const struct slot *b)
{
        if (a->size == 0 && b->size == 0)
                return a->init != b->init;
        if (a->size != b->size || a->at != b->at)
                return holds_pointer(a) || holds_pointer(b) ? STATE_DISTANCE_KIND : 1;
        return reg_distance(&a->value, &b->value);
}

static unsigned state_distance(const struct state *a, const struct state *b)
{
        unsigned distance = 0;
        size_t i = 0, j = 0;

        for (unsigned reg = 0; reg < INSN_FRAME_POINTER; reg++)
                distance += reg_distance(&a->regs[reg], &b->regs[reg]);
        while (i < a->n_slots && j < b->n_slots) {
                if (a->slots[i].place == b->slots[j].place)
                        distance += slot_distance(&a->slots[i++], &b->slots[j++]);
                else if (a->slots[i].place < b->slots[j].place)
                        distance++, i++;
                else
                        distance++, j++;
        }
        return distance + (unsigned)(a->n_slots - i + b->n_slots - j);
}

enum state_order state_compare(const struct state *a, const struct state *b, unsigned *ret_distance)
{
        *ret_distance = 0;
        if (state_includes(a, b))
                return STATE_INCLUDES;
        if (state_includes(b, a))
                return STATE_WITHIN;
        *ret_distance = state_distance(a, b);
        return STATE_APART;
}

struct join {
        struct id_pairs ids;
        uint32_t last_id;
        const struct state_thresholds *thresholds;
};

static int64_t threshold_below(const struct state_thresholds *t, int64_t bound, int64_t least)
{
        for (size_t i = t->n; i-- > 0;)
                if (t->values[i] <= bound)
                        return MAX(t->values[i], least);
        return least;
}

static int64_t threshold_above(const struct state_thresholds *t, int64_t bound, int64_t most)
{
        for (size_t i = 0; i < t->n; i++)
                if (t->values[i] >= bound)
                        return MIN(t->values[i], most);
        return most;
}

/* Unsigned bounds above the greatest signed number have no threshold. */
static uint64_t unsigned_threshold_below(const struct state_thresholds *t, uint64_t bound)
{
        return (uint64_t)threshold_below(t, bound > INT64_MAX ? INT64_MAX : (int64_t)bound, 0);
}

static uint64_t unsigned_threshold_above(const struct state_thresholds *t, uint64_t bound, uint64_t most)
{
        if (bound > INT64_MAX)
                return most;
        return MIN((uint64_t)threshold_above(t, (int64_t)bound, INT64_MAX), most);
}

/* Bounds of @new that lie outside those of @old move on to a threshold. */
static void range_widen(struct range *new, const struct range *old, const struct state_thresholds *t, unsigned bits)
{
        if (new->umin < old->umin)
                new->umin = unsigned_threshold_below(t, new->umin);
        if (new->umax > old->umax)
                new->umax = unsigned_threshold_above(t, new->umax, width_mask(bits));
        if (new->smin < old->smin)
                new->smin = threshold_below(t, new->smin, width_smin(bits));
        if (new->smax > old->smax)
                new->smax = threshold_above(t, new->smax, width_smax(bits));
}

/* Bits that became unknown: all above the lowest of them do, so that what settles is how many low bits stay. */
static void tnum_widen(struct tnum *new, const struct tnum *old)
{
        uint64_t grown = new->mask & ~old->mask;

        if (grown) {
                new->mask |= ~(grown & -grown) + 1;
                new->value &= ~new->mask;
        }
}

static void join_scalar(const struct join *join, struct scalar *dst, const struct scalar *src)
{
        struct scalar old = *dst;

        scalar_join(dst, src);
        if (!join->thresholds)
                return;
        tnum_widen(&dst->tnum, &old.tnum);
        range_widen(&dst->word, &old.word, join->thresholds, 64);
        range_widen(&dst->half, &old.half, join->thresholds, 32);
        scalar_reduce(dst);
}

/* The id of a register that was joined: one for each pair of ids that both states have. A lookup's result has one even
 * where it has no copy. */
static uint32_t join_id(struct join *join, const struct reg *a, const struct reg *b)
{
        struct id_pairs *ids = &join->ids;
        bool is_class = a->id != 0 && b->id != 0;

        if (is_class) {
                for (uint32_t i = 0; i < ids->n; i++)
                        if (ids->pairs[i].a == a->id && ids->pairs[i].b == b->id)
                                return i + 1;
                if (ids->n < PAIRS_MAX) {
                        ids->pairs[ids->n++] = (struct id_pair){.a = a->id, .b = b->id};
                        return ids->n;
                }
        }
        return a->kind == REG_SCALAR ? 0 : ++join->last_id;
}

/* A pointer to a value, or a lookup's result, and perhaps the number 0: still a lookup's result if it points to the
 * value's start. */
static bool join_null(struct join *join, struct reg *dst, const struct reg *src)
{
        const struct reg *value = dst->kind == REG_VALUE ? dst : src, *other = dst->kind == REG_VALUE ? src : dst;
        struct reg joined = *value;

        if (value->kind != REG_VALUE || !scalar_is_const(&value->value) || value->value.tnum.value != 0)
                return false;
        if (!is_zero(other) &&
            (other->kind != REG_VALUE || other->index != value->index || !scalar_equal(&other->value, &value->value)))
                return false;
        joined.may_be_null = true;
        joined.id = ++join->last_id;
        *dst = joined;
        return true;
}

static void join_reg(struct join *join, struct reg *dst, const struct reg *src)
{
        if (dst->kind == REG_UNINIT || src->kind == REG_UNINIT) {
                dst->kind = REG_UNINIT;
        } else if (dst->kind == src->kind && dst->kind != REG_MIXED &&
                   (dst->kind == REG_SCALAR || (dst->index == src->index && dst->may_be_null == src->may_be_null))) {
                join_scalar(join, &dst->value, &src->value);
                dst->id = dst->kind == REG_SCALAR || dst->may_be_null ? join_id(join, dst, src) : 0;
        } else if (!join_null(join, dst, src)) {
                dst->kind = REG_MIXED;
                dst->id = 0;
        }
}

static void join_slot(struct join *join, struct slot *dst, const struct slot *src)
{
        dst->init &= src->init;
        if (dst->size > 0 && dst->at == src->at && dst->size == src->size) {
                join_reg(join, &dst->value, &src->value);
                if (dst->value.kind == REG_UNINIT) /* a register that a caller keeps */
                        dst->init = dst->size = 0;
        } else if (holds_pointer(dst) || holds_pointer(src)) {
                dst->at = 0;
                dst->size = 8;
                dst->value.kind = REG_MIXED;
                dst->value.id = 0;
        } else {
                dst->size = 0;
        }
}

void state_join(struct state *dst, const struct state *src, const struct state_thresholds *thresholds)
{
        /* Ids of classes count from 1, those of lookups without a copy from behind all that there may be. */
        struct join join = {.last_id = PAIRS_MAX, .thresholds = thresholds};
        uint16_t n = 0;

        for (unsigned reg = 0; reg < INSN_FRAME_POINTER; reg++)
                join_reg(&join, &dst->regs[reg], &src->regs[reg]);
        for (size_t i = 0, j = 0; i < dst->n_slots; i++) {
                while (j < src->n_slots && src->slots[j].place < dst->slots[i].place)
                        j++;
                if (j == src->n_slots || src->slots[j].place != dst->slots[i].place)
                        continue;
                join_slot(&join, &dst->slots[i], &src->slots[j]);
                if (dst->slots[i].init != 0)
                        dst->slots[n++] = dst->slots[i];
        }
        dst->n_slots = n;
        dst->last_id = join.last_id;
}

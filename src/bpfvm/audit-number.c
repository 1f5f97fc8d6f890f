/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macro.h"
#include "bpfvm/audit-internal.h"

uint64_t audit_all_of(unsigned bits)
{
        return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

static uint64_t sign_of(unsigned bits)
{
        return UINT64_C(1) << (bits - 1);
}

/* A word read as a signed number, and back. */
static int64_t as_signed(uint64_t word, unsigned bits)
{
        return word & sign_of(bits) ? (int64_t)(word | ~audit_all_of(bits)) : (int64_t)word;
}

static uint64_t as_word(audit_wide number, unsigned bits)
{
        return (uint64_t)number & audit_all_of(bits);
}

const struct audit_piece audit_nothing = {1, 0};

static bool is_empty(struct audit_piece p)
{
        return p.first > p.last;
}

static struct audit_piece cut(struct audit_piece p, uint64_t first, uint64_t last)
{
        return (struct audit_piece){MAX(p.first, first), MIN(p.last, last)};
}

/* What lies within the bounds, cut at the sign. */
void audit_pieces_of(const struct audit_bounds *b, unsigned bits, struct audit_piece ret[2])
{
        uint64_t sign = sign_of(bits), all = audit_all_of(bits);
        struct audit_piece whole = {b->umin, b->umax};

        ret[0] = ret[1] = audit_nothing;
        if (b->smax >= 0)
                ret[0] = cut(cut(whole, 0, sign - 1), b->smin < 0 ? 0 : (uint64_t)b->smin, (uint64_t)b->smax);
        if (b->smin < 0)
                ret[1] = cut(cut(whole, sign, all), (uint64_t)b->smin & all,
                             b->smax < 0 ? (uint64_t)b->smax & all : all);
}

/* The least bounds around both pieces. Return: false if there is nothing in them. */
bool audit_bounds_of(const struct audit_piece p[2], unsigned bits, struct audit_bounds *ret)
{
        unsigned low = is_empty(p[0]), high = !is_empty(p[1]);

        if (low > high)
                return false;
        *ret = (struct audit_bounds){
                .umin = p[low].first,
                .umax = p[high].last,
                .smin = as_signed(p[high].first, bits),
                .smax = as_signed(p[low].last, bits),
        };
        return true;
}

static void add_piece(struct audit_piece to[2], struct audit_piece p, unsigned bits)
{
        struct audit_piece *side = &to[p.first >= sign_of(bits)];

        if (is_empty(p))
                return;
        *side = is_empty(*side) ? p : (struct audit_piece){MIN(side->first, p.first), MAX(side->last, p.last)};
}

/* Add all words that integers from @low to @high are, taken modulo the width. */
void audit_add_integers(struct audit_piece to[2], audit_wide low, audit_wide high, unsigned bits)
{
        uint64_t first = as_word(low, bits), last = as_word(high, bits), sign = sign_of(bits), all = audit_all_of(bits);
        bool wraps = high - low > (audit_wide)all;

        if (wraps || first > last) { /* through the greatest word to 0 */
                audit_add_integers(to, wraps ? 0 : (audit_wide)first, all, bits);
                if (!wraps)
                        audit_add_integers(to, 0, last, bits);
                return;
        }
        add_piece(to, cut((struct audit_piece){first, last}, 0, sign - 1), bits);
        add_piece(to, cut((struct audit_piece){first, last}, sign, all), bits);
}

/* The least word from @from on that has the bits @ones and no other than @maybe. Return: false if there is none. */
static bool first_fitting(uint64_t from, uint64_t ones, uint64_t maybe, unsigned bits, uint64_t *ret)
{
        uint64_t word = from, wrong;

        while ((wrong = (word & ~maybe) | (ones & ~word)) != 0) {
                uint64_t bit = UINT64_C(1) << (63 - __builtin_clzll(wrong)), below = bit - 1;

                if (ones & bit) { /* it is missing: set, the rest can be as low as it goes */
                        word = (word & ~below) | bit | (ones & below);
                } else { /* it may not be set: the next word without it carries into the bits above */
                        if ((word | below | bit) == audit_all_of(bits))
                                return false;
                        word = (word | below | bit) + 1;
                }
        }
        *ret = word;
        return true;
}

static struct audit_piece fit(struct audit_piece p, uint64_t ones, uint64_t maybe, unsigned bits)
{
        uint64_t all = audit_all_of(bits), first, last;

        if (is_empty(p) || !first_fitting(p.first, ones, maybe, bits, &first) ||
            !first_fitting(~p.last & all, ~maybe & all, ~ones & all, bits, &last))
                return audit_nothing;
        return (struct audit_piece){first, ~last & all};
}

/* The bits that all words of a piece share. */
static void common_bits(struct audit_piece p, unsigned bits, uint64_t *ones, uint64_t *maybe)
{
        uint64_t differing = p.first ^ p.last, below = 0;

        while (differing & ~below)
                below = below << 1 | 1;
        *ones = p.first & ~below;
        *maybe = (p.first | below) & audit_all_of(bits);
}

/* Bounds and bits of one width say the same. Return: false if no word is left. */
static bool settle(struct audit_bounds *b, uint64_t *ones, uint64_t *maybe, unsigned bits)
{
        uint64_t shared = audit_all_of(bits), possible = 0;
        struct audit_piece p[2];

        audit_pieces_of(b, bits, p);
        for (unsigned i = 0; i < 2; i++) {
                uint64_t piece_ones, piece_maybe;

                p[i] = fit(p[i], *ones, *maybe, bits);
                if (is_empty(p[i]))
                        continue;
                common_bits(p[i], bits, &piece_ones, &piece_maybe);
                shared &= piece_ones;
                possible |= piece_maybe;
        }
        *ones |= shared;
        *maybe &= possible;
        return audit_bounds_of(p, bits, b) && (*ones & ~*maybe) == 0;
}

bool audit_narrow(struct audit_bounds *b, const struct audit_bounds *by)
{
        b->umin = MAX(b->umin, by->umin);
        b->umax = MIN(b->umax, by->umax);
        b->smin = MAX(b->smin, by->smin);
        b->smax = MIN(b->smax, by->smax);
        return b->umin <= b->umax && b->smin <= b->smax;
}

static const struct audit_bounds any_word = {0, UINT64_MAX, INT64_MIN, INT64_MAX};
static const struct audit_bounds any_half = {0, UINT32_MAX, INT32_MIN, INT32_MAX};

static struct audit_bounds any_of(unsigned bits)
{
        return (struct audit_bounds){0, audit_all_of(bits), as_signed(sign_of(bits), bits),
                                     (int64_t)(sign_of(bits) - 1)};
}

/* Bounds of the low @bits of the words of @from bits within @b. */
static struct audit_bounds low_bounds(const struct audit_bounds *b, unsigned from, unsigned bits)
{
        struct audit_bounds low = any_of(bits);
        struct audit_piece p[2], to[2] = {audit_nothing, audit_nothing};

        audit_pieces_of(b, from, p);
        for (unsigned i = 0; i < 2; i++)
                if (!is_empty(p[i]))
                        audit_add_integers(to, p[i].first, p[i].last, bits);
        audit_bounds_of(to, bits, &low);
        return low;
}

/* The bounds of words move to the nearest whose low half lies within one of its pieces. */
static bool narrow_by_half(struct audit_bounds *word, const struct audit_bounds *half)
{
        struct audit_piece p[2], low[2], to[2] = {audit_nothing, audit_nothing};

        audit_pieces_of(word, 64, p);
        audit_pieces_of(half, 32, low);
        for (unsigned i = 0; i < 4; i++) {
                struct audit_piece words = p[i & 1], halves = low[i >> 1];
                audit_wide first, last;

                if (is_empty(words) || is_empty(halves))
                        continue;
                first = (audit_wide)(words.first >> 32 << 32) + halves.first;
                if ((uint32_t)words.first > halves.last)
                        first += (audit_wide)1 << 32;
                else if ((uint32_t)words.first > halves.first)
                        first = words.first;
                last = (audit_wide)(words.last >> 32 << 32) + halves.last;
                if ((uint32_t)words.last < halves.first)
                        last -= (audit_wide)1 << 32;
                else if ((uint32_t)words.last < halves.last)
                        last = words.last;
                if (first <= last)
                        add_piece(to, (struct audit_piece){(uint64_t)first, (uint64_t)last}, 64);
        }
        return audit_bounds_of(to, 64, word);
}

static bool same(const struct audit_number *a, const struct audit_number *b)
{
        return a->ones == b->ones && a->maybe == b->maybe && a->word.umin == b->word.umin &&
               a->word.umax == b->word.umax && a->word.smin == b->word.smin && a->word.smax == b->word.smax &&
               a->half.umin == b->half.umin && a->half.umax == b->half.umax && a->half.smin == b->half.smin &&
               a->half.smax == b->half.smax;
}

/* All parts narrow each other until nothing changes; what is left after many rounds is true as well. Return: false if
 * no number is left. */
bool audit_number_agree(struct audit_number *n)
{
        for (unsigned round = 0; round < 16; round++) {
                struct audit_number before = *n;
                uint64_t ones = n->ones & UINT32_MAX, maybe = n->maybe & UINT32_MAX;
                struct audit_bounds low;

                if (!settle(&n->word, &n->ones, &n->maybe, 64))
                        return false;
                low = low_bounds(&n->word, 64, 32);
                if (!audit_narrow(&n->half, &low) || !settle(&n->half, &ones, &maybe, 32))
                        return false;
                n->ones |= ones;
                n->maybe &= maybe | ~(uint64_t)UINT32_MAX;
                if ((n->ones & ~n->maybe) || !narrow_by_half(&n->word, &n->half))
                        return false;
                if (same(&before, n))
                        break;
        }
        return true;
}

struct audit_number audit_number_const(uint64_t value)
{
        int64_t s = (int64_t)value, low = (int32_t)value;

        return (struct audit_number){value, value, {value, value, s, s}, {(uint32_t)value, (uint32_t)value, low, low}};
}

struct audit_number audit_number_any(void)
{
        return (struct audit_number){0, UINT64_MAX, any_word, any_half};
}

struct audit_number audit_number_bytes(unsigned n)
{
        struct audit_number any = audit_number_any();

        any.maybe = audit_all_of(8 * n);
        audit_number_agree(&any);
        return any;
}

static struct audit_bounds bounds_in(const struct range *r)
{
        return (struct audit_bounds){r->umin, r->umax, r->smin, r->smax};
}

bool audit_number_of(const struct scalar *claim, struct audit_number *ret)
{
        *ret = (struct audit_number){claim->tnum.value, claim->tnum.value | claim->tnum.mask, bounds_in(&claim->word),
                                     bounds_in(&claim->half)};
        return (claim->tnum.value & claim->tnum.mask) == 0 && audit_narrow(&ret->word, &any_word) &&
               audit_narrow(&ret->half, &any_half) && audit_number_agree(ret);
}

static bool bounds_within(const struct audit_bounds *b, const struct range *r)
{
        return r->umin <= b->umin && b->umax <= r->umax && r->smin <= b->smin && b->smax <= r->smax;
}

bool audit_number_within(const struct audit_number *n, const struct scalar *claim)
{
        return (claim->tnum.value & ~n->ones) == 0 && (n->maybe & ~(claim->tnum.value | claim->tnum.mask)) == 0 &&
               bounds_within(&n->word, &claim->word) && bounds_within(&n->half, &claim->half);
}

struct audit_number audit_number_extend(const struct audit_number *n, unsigned from, bool is_signed, unsigned size)
{
        unsigned bits = 8 * from;
        struct audit_number r = {.ones = n->ones & audit_all_of(bits), .maybe = n->maybe & audit_all_of(bits)};
        struct audit_piece p[2], to[2] = {audit_nothing, audit_nothing};
        struct audit_bounds low = low_bounds(&n->word, 64, bits);

        if (from == 8)
                return *n;
        if (from <= 4) {
                struct audit_bounds of_half = low_bounds(&n->half, 32, bits);

                audit_narrow(&low, &of_half);
        }
        settle(&low, &r.ones, &r.maybe, bits);
        if (is_signed) {
                r.ones = as_word(audit_read(r.ones, bits, true), 8 * size);
                r.maybe = as_word(audit_read(r.maybe, bits, true), 8 * size);
        }
        audit_pieces_of(&low, bits, p);
        for (unsigned i = 0; i < 2; i++)
                if (!is_empty(p[i]))
                        audit_add_integers(to, audit_read(p[i].first, bits, is_signed),
                                           audit_read(p[i].last, bits, is_signed), 8 * size);
        r.word = any_word;
        r.half = from == 4 ? low : any_half;
        audit_bounds_of(to, 8 * size, size == 8 ? &r.word : &r.half);
        if (size == 4)
                r.word = (struct audit_bounds){r.half.umin, r.half.umax, (int64_t)r.half.umin, (int64_t)r.half.umax};
        audit_number_agree(&r);
        return r;
}

static uint64_t reverse_bytes(uint64_t word, unsigned n)
{
        uint64_t reversed = 0;

        for (unsigned i = 0; i < n; i++)
                reversed |= (word >> (8 * i) & 0xff) << (8 * (n - 1 - i));
        return reversed;
}

struct audit_number audit_number_swap(const struct audit_number *n, unsigned bytes)
{
        struct audit_number r = audit_number_any();

        r.ones = reverse_bytes(n->ones, bytes);
        r.maybe = reverse_bytes(n->maybe, bytes);
        audit_number_agree(&r);
        return r;
}

struct audit_number audit_number_between(int64_t least, int64_t most)
{
        struct audit_number n = audit_number_any();

        n.word.smin = least;
        n.word.smax = most;
        audit_number_agree(&n);
        return n;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/tnum.h"

struct tnum tnum_mul(struct tnum a, struct tnum b)
{
        struct tnum uncertain = tnum_const(0);
        uint64_t product = a.value * b.value;

        /* Long multiplication; the certain part of every partial product is in @product already. */
        for (; a.value | a.mask; a.value >>= 1, a.mask >>= 1, b.value <<= 1, b.mask <<= 1) {
                if (a.value & 1)
                        uncertain = tnum_add(uncertain, (struct tnum){.mask = b.mask});
                else if (a.mask & 1)
                        uncertain = tnum_add(uncertain, (struct tnum){.mask = b.value | b.mask});
        }
        return tnum_add(tnum_const(product), uncertain);
}

static uint64_t swap_units(uint64_t x, unsigned unit_bits, unsigned n)
{
        uint64_t swapped = 0;

        for (unsigned i = 0; i < n; i++)
                swapped = swapped << unit_bits | ((x >> (i * unit_bits)) & width_mask(unit_bits));
        return swapped;
}

struct tnum tnum_swap(struct tnum t, unsigned unit_bits, unsigned n)
{
        return (struct tnum){.value = swap_units(t.value, unit_bits, n), .mask = swap_units(t.mask, unit_bits, n)};
}

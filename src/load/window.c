/* SPDX-License-Identifier: Apache-2.0 */
#include "load/window.h"

#include <stdbool.h>
#include <string.h>

static bool test_and_set(struct window *w, uint64_t sequence)
{
        uint64_t *word = &w->seen[sequence % WINDOW_SIZE / 64], bit = UINT64_C(1) << sequence % 64;
        bool was_set = *word & bit;

        *word |= bit;
        return was_set;
}

/* Moves the window so that @sequence is its end: the places of the numbers between were those of older ones. */
static void advance(struct window *w, uint64_t sequence)
{
        if (sequence - w->next >= WINDOW_SIZE) {
                memset(w->seen, 0, sizeof(w->seen));
        } else {
                for (uint64_t i = w->next; i < sequence; i++)
                        w->seen[i % WINDOW_SIZE / 64] &= ~(UINT64_C(1) << i % 64);
        }
        w->seen[sequence % WINDOW_SIZE / 64] |= UINT64_C(1) << sequence % 64;
        w->next = sequence + 1;
}

enum window_outcome window_note(struct window *w, uint64_t sequence)
{
        if (sequence == UINT64_MAX) { /* it would have no number above it */
                w->stale++;
                return WINDOW_STALE;
        }
        if (sequence >= w->next) {
                advance(w, sequence);
                w->arrived++;
                return WINDOW_NEW;
        }
        if (w->next - sequence > WINDOW_SIZE) {
                w->stale++;
                return WINDOW_STALE;
        }
        if (test_and_set(w, sequence)) {
                w->duplicates++;
                return WINDOW_DUPLICATE;
        }
        w->arrived++;
        w->reordered++;
        return WINDOW_REORDERED;
}

uint64_t window_lost(const struct window *w)
{
        return w->next - w->arrived;
}

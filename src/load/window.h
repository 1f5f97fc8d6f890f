/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* What became of a stream of numbered packets, told by those that arrive, in memory that does not grow: the latest
 * WINDOW_SIZE numbers are remembered one by one. */

#define WINDOW_SIZE 4096

enum window_outcome {
        WINDOW_NEW,
        WINDOW_REORDERED, /* new, after a later one (RFC 4737) */
        WINDOW_DUPLICATE,
        WINDOW_STALE, /* too old to tell the two apart; counted as neither arrived nor duplicate */
};

struct window {
        uint64_t next;    /* one above the highest number seen; 0: none seen */
        uint64_t arrived; /* different numbers */
        uint64_t reordered, duplicates, stale;
        uint64_t seen[WINDOW_SIZE / 64];
};

/* window_note - a packet with number @sequence arrived; an empty window is all zero */
enum window_outcome window_note(struct window *w, uint64_t sequence);

/* window_lost - numbers from 0 to the highest seen that did not arrive */
uint64_t window_lost(const struct window *w);

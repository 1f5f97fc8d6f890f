/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bpfvm/helper.h"

/* How much a program may be. Depth of calls and bytes of a frame are the same everywhere, since the interpreter's stack
 * is laid out by them. */

#define PROFILE_CALL_DEPTH  8   /* frames, the program's own included */
#define PROFILE_FRAME_BYTES 512 /* stack that r10 points behind, in every frame */

/* Caps that hold for any input, before a profile is chosen. */
#define PROFILE_SLOTS_MAX 1000000
#define PROFILE_MAPS_MAX  64

struct profile {
        const char *name; /* "embedded", "full" */
        bool allows_loops;
        bool may_actuate;         /* default of the right to actuate; the caller can withdraw it */
        uint8_t helper_bit;       /* HELPER_IN_* */
        uint32_t max_slots;       /* of the whole program, subprograms included */
        uint32_t max_stack_bytes; /* deepest chain of frames, each counted by what it uses */
        uint32_t max_maps;
        uint64_t max_map_bytes;       /* each map, by map_bytes() */
        uint64_t max_cost_ps;         /* worst case of one invocation; 0: no budget */
        uint32_t max_utilisation_ppm; /* cost times rate over all attachments; 0: no cap */
};

/* profile_find - "embedded" or "full"; NULL for another name */
const struct profile *profile_find(const char *name);

/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/profile.h"

#include <stddef.h>

#include "base/macro.h"

static const struct profile profiles[] = {
        {.name = "embedded",
         .may_actuate = true,
         .helper_bit = HELPER_IN_EMBEDDED,
         .max_slots = 100000,
         .max_stack_bytes = 2048,
         .max_maps = 16,
         .max_map_bytes = 64 * 1024,
         .max_cost_ps = UINT64_C(1000000000), /* 1 ms */
         .max_utilisation_ppm = 500000},
        {.name = "full",
         .allows_loops = true,
         .helper_bit = HELPER_IN_FULL,
         .max_slots = PROFILE_SLOTS_MAX,
         .max_stack_bytes = PROFILE_CALL_DEPTH * PROFILE_FRAME_BYTES,
         .max_maps = PROFILE_MAPS_MAX,
         .max_map_bytes = UINT64_C(1) << 30},
};

const struct profile *profile_find(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(profiles); i++)
                if (streq(profiles[i].name, name))
                        return &profiles[i];
        return NULL;
}

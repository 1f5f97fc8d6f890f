/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/bpf-exercise.h"
#include "fuzz/fuzz.h"

/* One byte for the size of the context, then encoded slots, beside maps of every kind. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct map_def maps[] = {
                {.name = "array", .kind = MAP_ARRAY, .key_size = 4, .value_size = 12, .max_entries = 4},
                {.name = "hash", .kind = MAP_HASH, .key_size = 8, .value_size = 8, .max_entries = 2},
                {.name = "ring", .kind = MAP_RING, .max_entries = 4096},
                {.name = "global",
                 .kind = MAP_ARRAY,
                 .key_size = 4,
                 .value_size = 16,
                 .max_entries = 1,
                 .is_global = true},
                {.name = "ro",
                 .kind = MAP_ARRAY,
                 .key_size = 4,
                 .value_size = 8,
                 .max_entries = 1,
                 .is_read_only = true},
        };
        _cleanup_object_ struct object *object = NULL;
        struct fault fault = {0};

        if (size == 0 ||
            object_of_slots(span_of(data + 1, size - 1), "fuzz", maps, ARRAY_SIZE(maps), &object, &fault, NULL) != 0)
                return 0;
        context_flat(&object->programs[0]->context, data[0] & 0x7f, !(data[0] & 0x80));
        exercise_program(object->programs[0]);
        return 0;
}

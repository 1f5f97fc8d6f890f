/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/bpf-exercise.h"
#include "fuzz/fuzz.h"

/* One byte for the size of the context, then encoded slots, beside maps of every kind. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_object_ struct object *object = NULL;
        struct fault fault = {0};

        if (size == 0 || object_of_slots(span_of(data + 1, size - 1), "fuzz", exercise_maps, ARRAY_SIZE(exercise_maps),
                                         &object, &fault, NULL) != 0)
                return 0;
        context_flat(&object->programs[0]->context, data[0] & 0x7f, !(data[0] & 0x80));
        exercise_program(object->programs[0]);
        return 0;
}

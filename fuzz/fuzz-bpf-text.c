/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/bpf-exercise.h"
#include "fuzz/fuzz.h"

/* Text for the assembler. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_free_ uint8_t *bytes = NULL;
        _cleanup_object_ struct object *object = NULL;
        struct err err = {0};
        struct fault fault;
        size_t len;

        if (assemble_text(span_of(data, size), "fuzz", &bytes, &len, &err) < 0) {
                exercise_require(err.text[0] != 0 && err.position.line > 0);
                return 0;
        }
        if (object_of_slots(span_of(bytes, len), "fuzz", NULL, 0, &object, &fault, NULL) == 0)
                exercise_program(object->programs[0]);
        return 0;
}

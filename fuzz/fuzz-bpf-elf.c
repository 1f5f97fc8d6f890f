/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/elf.h"
#include "fuzz/bpf-exercise.h"
#include "fuzz/fuzz.h"

/* An object file; whatever it holds is run. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_object_ struct object *object = NULL;
        struct err err = {0};
        int r = elf_load(span_of(data, size), "fuzz", &object, &err);

        if (r < 0) {
                exercise_require(!object && err.text[0] != 0);
                return 0;
        }
        for (uint32_t i = 0; i < object->n_programs; i++) {
                const struct program *program = object->programs[i];

                for (uint32_t k = 1; k < program->n_lines; k++)
                        exercise_require(program->lines[k - 1].slot <= program->lines[k].slot);
                exercise_program(program);
        }
        return 0;
}

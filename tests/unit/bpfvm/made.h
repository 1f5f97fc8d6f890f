/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bpfvm/assemble.h"
#include "bpfvm/program.h"

/* made_of - an object with one legal program from assembly text and maps */
static inline struct object *made_of(const char *text, const struct map_def *maps, uint32_t n_maps)
{
        _cleanup_free_ uint8_t *slots = NULL;
        struct object *object = NULL;
        struct fault fault = {0};
        struct err err = {0};
        size_t len;

        if (assemble_text(span_of_text(text), "t", &slots, &len, &err) < 0)
                fail_msg("%s", err.text);
        assert_int_equal(object_of_slots(span_of(slots, len), "t", maps, n_maps, &object, &fault, &err), 0);
        if (object->programs[0]->fault.kind != FAULT_NONE)
                fail_msg("%s", object->programs[0]->fault.text);
        return object;
}

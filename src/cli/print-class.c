/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/print-class.h"

#include "cli/print.h"

void print_class_text(struct text *out, enum evidence_class class, const json_t *reasons)
{
        json_t *reason;
        size_t i;

        text_addf(out, "class: %s\n", class_name(class));
        json_array_foreach(reasons, i, reason)
        {
                text_add(out, "  ");
                print_visible(out, json_string_value(json_object_get(reason, "class")));
                text_add(out, ": ");
                print_visible(out, json_string_value(json_object_get(reason, "reason")));
                text_add(out, "\n");
        }
}

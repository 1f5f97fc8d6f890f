/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/csv.h"

void csv_add_field(struct text *out, const char *value)
{
        if (!value[strcspn(value, ",\"\r\n")]) {
                text_add(out, value);
                return;
        }
        text_add(out, "\"");
        for (;;) {
                size_t len = strcspn(value, "\"");

                text_add_bytes(out, value, len);
                if (!value[len])
                        break;
                text_add(out, "\"\"");
                value += len + 1;
        }
        text_add(out, "\"");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/print-campaign.h"
#include "fuzz/fuzz.h"

/* A summary and verdict of unknown origin, in one object, shown to a person: no byte that a terminal would obey gets
 * through but line feeds. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_json_ json_t *json = NULL;
        _cleanup_text_ struct text out = {0};

        if (json_parse(span_of(data, size), "input", &json, NULL) < 0)
                return 0;
        print_campaign_text(&out, "archive", NULL, json, json);
        for (size_t i = 0; i < out.len; i++)
                if (((uint8_t)out.data[i] < ' ' && out.data[i] != '\n') || out.data[i] == 0x7f)
                        abort();
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "fuzz/fuzz.h"

/* What was read and written once has to be written the same when it is read again. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_json_ json_t *value = NULL, *again = NULL;
        _cleanup_free_ char *text = NULL, *second = NULL;

        if (json_parse(span_of(data, size), "input", &value, NULL) < 0)
                return 0;
        text = json_format(value);
        if (!text || json_parse(span_of_text(text), "output", &again, NULL) < 0)
                abort();
        second = json_format(again);
        if (!second || strcmp(text, second) != 0)
                abort();
        return 0;
}

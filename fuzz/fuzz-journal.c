/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/archive-internal.h"
#include "fuzz/fuzz.h"

/* Every line that is read names its event, and its trial where it is a trial's. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_json_ json_t *lines = NULL;
        json_t *line;
        size_t i;

        if (journal_parse(span_of(data, size), &lines, NULL) < 0)
                return 0;
        json_array_foreach(lines, i, line)
        {
                const char *event = json_string_value(json_object_get(line, "event"));
                const char *trial = json_string_value(json_object_get(line, "trial"));

                if (!event || (strcmp(event, "trial") == 0 && !archive_trial_name_is_valid(trial)))
                        abort();
        }
        return 0;
}

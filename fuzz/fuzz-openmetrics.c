/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "fuzz/fuzz.h"
#include "wire/openmetrics.h"

static void write_again(const struct openmetrics_set *set, struct text *out)
{
        struct openmetrics_writer w = {.out = out};

        for (size_t f = 0; f < set->n_families; f++) {
                const struct openmetrics_metadata *family = &set->families[f];

                openmetrics_family(&w, family->type, family->name, family->unit[0] ? family->unit : NULL, family->help);
                for (size_t i = 0; i < family->n_samples; i++) {
                        const struct openmetrics_point *sample = &set->samples[family->first_sample + i];

                        openmetrics_sample(&w, sample->labels, sample->n_labels, sample->value);
                }
        }
        (void)openmetrics_end(&w, NULL);
}

/* What was read and written once has to be written the same when it is read again. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_openmetrics_ struct openmetrics_set set = {0}, again = {0};
        _cleanup_text_ struct text first = {0}, second = {0};

        if (openmetrics_parse(span_of(data, size), "input", &set, NULL) < 0)
                return 0;
        write_again(&set, &first);
        /* a family whose name ends in "_total" may be read and is not written */
        if (openmetrics_parse(span_of(first.data, first.len), "output", &again, NULL) < 0)
                abort();
        write_again(&again, &second);
        if (first.len != second.len || memcmp(first.data, second.data, first.len) != 0)
                abort();
        return 0;
}

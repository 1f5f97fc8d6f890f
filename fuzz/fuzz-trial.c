/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/trial.h"
#include "evidence/validity.h"
#include "fuzz/fuzz.h"

/* A trial.json of unknown origin: read and judged. It is valid exactly where no reason is given. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const struct series_set set = {.sent = 5, .received = 4, .lost = 1, .missed = 1};
        _cleanup_json_ json_t *json = NULL;
        char reason[VALIDITY_REASON_SIZE];
        _cleanup_trial_ struct trial trial = {0};

        if (json_parse(span_of(data, size), "input", &json, NULL) < 0 || trial_parse(json, "input", &trial, NULL) < 0)
                return 0;
        if (validity_check(&trial, &set, reason) != (reason[0] == '\0'))
                abort();
        return 0;
}

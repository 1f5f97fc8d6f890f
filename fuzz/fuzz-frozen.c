/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/print-campaign.h"
#include "evidence/difference.h"
#include "evidence/plan.h"
#include "evidence/validity.h"
#include "evidence/verdict.h"
#include "fuzz/fuzz.h"

/* What an archive of unknown origin has frozen: the input is a JSON object with a summary, a verdict, a plan and a
 * trial. Whatever they hold, it is read and shown without harm. */

static void check_text(const struct text *text)
{
        if (!text_is_utf8(text->data, text->len))
                abort();
        for (size_t i = 0; i < text->len; i++)
                if ((uint8_t)text->data[i] < ' ' && text->data[i] != '\n')
                        abort();
}

static void show(const json_t *input)
{
        json_t *summary = json_object_get(input, "summary"), *verdict = json_object_get(input, "verdict");
        _cleanup_differences_ struct differences differences = {0};
        _cleanup_text_ struct text text = {0};

        if (!summary || !verdict)
                return;
        print_campaign_text(&text, "archive", NULL, summary, verdict);
        if (text.data)
                check_text(&text);
        (void)verdict_exit_code(verdict);
        (void)differences_of_json(&differences, "data/x.json", summary, verdict);
}

static void read_plan(const json_t *plan)
{
        struct manifest_options options = {0};
        const char **overrides = NULL;

        if (plan && plan_options_from_json(plan, &options, &overrides, NULL) == 0)
                for (size_t i = 0; i < options.n_overrides; i++)
                        if (!options.overrides[i])
                                abort();
        free(overrides);
}

static void read_trial(json_t *json)
{
        _cleanup_trial_ struct trial trial = {0};
        const struct series_set none = {0};
        char reason[VALIDITY_REASON_SIZE];

        if (json && trial_parse(json, "trial.json", &trial, NULL) == 0)
                (void)validity_check(&trial, &none, reason);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_json_ json_t *input = NULL;

        if (json_parse(span_of(data, size), "input", &input, NULL) < 0)
                return 0;
        show(input);
        read_plan(json_object_get(input, "plan"));
        read_trial(json_object_get(input, "trial"));
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/print-plan.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/number.h"
#include "cli/print.h"

static const char *control_name(enum control_kind control)
{
        static const char *const names[] = {"", "control: has to show harm", "control: has to show nothing"};

        return names[control];
}

static void print_claims(const struct manifest *m)
{
        printf("%s: %s\n\n", m->id, m->title);
        for (size_t i = 0; i < m->n_hypotheses; i++) {
                printf("%s: %s\n", m->hypotheses[i].name, m->hypotheses[i].claim);
                for (size_t j = 0; j < m->hypotheses[i].n_rules; j++)
                        printf("    %s\n", m->hypotheses[i].rules[j].text);
        }
        for (size_t i = 0; i < m->n_controls; i++)
                for (size_t j = 0; j < m->controls[i].n_rules; j++)
                        printf("control %s:\n    %s\n", m->arms[m->controls[i].arm].name, m->controls[i].rules[j].text);
}

static void print_cells(const struct plan *plan)
{
        const struct manifest *m = plan->manifest;

        printf("\n%zu cell%s, each once in a round\n", m->n_cells - plan->n_skipped,
               text_plural(m->n_cells - plan->n_skipped));
        for (size_t i = 0; i < m->n_cells; i++) {
                const char *more =
                        plan_is_skipped(plan, i) ? "left out" : control_name(m->arms[m->cells[i].arm].control);

                printf("    %-*s%s%s\n", *more ? 28 : 0, m->cells[i].name, *more ? " " : "", more);
        }
}

/* Rounds of many trials are shown as far as a person reads them. */
static void print_order(const struct plan *plan)
{
        size_t shown = MIN(plan->n_trials, (size_t)200);

        printf("\n%zu trials, order from seed %" PRIu64 "\n", plan->n_trials, plan->manifest->seed);
        for (size_t i = 0; i < shown; i++)
                printf("    %s\n", plan->trials[i].name);
        if (shown < plan->n_trials)
                printf("    and %zu more (--json lists them all)\n", plan->n_trials - shown);
}

int print_plan(const struct plan *plan, struct err *err)
{
        char duration[48], disk[48];

        print_claims(plan->manifest);
        print_cells(plan);
        print_order(plan);
        for (size_t i = 0; i < plan->manifest->n_unjudged; i++)
                printf("not judged: %s\n", plan->manifest->unjudged[i]);
        printf("\nexpected: %s min, %s MB of disk; invalid trials may add up to %u rounds\n",
               number_format_scaled(plan->expected_duration_ns, 60 * INT64_C(1000000000), 1, duration),
               number_format_scaled(plan->expected_disk_bytes, 1000000, 1, disk), plan_extra_rounds_max(plan));
        return 0;
}

int print_plan_json(const struct plan *plan, struct err *err)
{
        json_t *json;
        int r;

        r = plan_to_json(plan, &json, err);
        return r < 0 ? r : print_json(json, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/macro.h"
#include "evidence/quantity.h"
#include "evidence/verdict-internal.h"

static bool lies_within(const struct noise_floor *floor, int64_t value)
{
        return value >= floor->lower && value <= floor->upper;
}

/* Bound and margin inside the floor: whichever way it came out, noise of this size would do the same. */
static bool is_noise(const struct manifest_rule *rule, const struct judgement *j, const struct noise_floor *floor)
{
        if (!floor || !floor->exists)
                return false;
        return (rule->has_high && lies_within(floor, j->upper) && lies_within(floor, rule->high)) ||
               (rule->has_low && lies_within(floor, j->lower) && lies_within(floor, rule->low));
}

/* Compares bounds with margins, and says so. */
static void compare(const struct manifest_rule *rule, struct judgement *j)
{
        char lower[QUANTITY_SIZE], upper[QUANTITY_SIZE], low[QUANTITY_SIZE], high[QUANTITY_SIZE];
        bool is_exact = j->lower == j->upper && rule->metric->source == METRIC_COUNTER;
        enum unit unit = manifest_rule_unit(rule);

        quantity_format(unit, j->lower, lower);
        quantity_format(unit, j->upper, upper);
        quantity_format(unit, rule->low, low);
        quantity_format(unit, rule->high, high);
        if (rule->has_high && j->lower > rule->high)
                judgement_conclude(j, OUTCOME_FAILS, "%s%s is above %s", is_exact ? "" : "the lower bound ", lower,
                                   high);
        else if (rule->has_low && j->upper < rule->low)
                judgement_conclude(j, OUTCOME_FAILS, "%s%s is below %s", is_exact ? "" : "the upper bound ", upper,
                                   low);
        else if (rule->has_high && j->upper > rule->high)
                judgement_conclude(j, OUTCOME_INCONCLUSIVE, "%s lies between the bounds %s and %s", high, lower, upper);
        else if (rule->has_low && j->lower < rule->low)
                judgement_conclude(j, OUTCOME_INCONCLUSIVE, "%s lies between the bounds %s and %s", low, lower, upper);
        else if (is_exact)
                judgement_conclude(j, OUTCOME_HOLDS, "%s is %s", upper,
                                   rule->has_high ? "not above the limit" : "enough");
        else if (rule->has_high && rule->has_low)
                judgement_conclude(j, OUTCOME_HOLDS, "the bounds %s and %s lie within %s and %s", lower, upper, low,
                                   high);
        else if (rule->has_high)
                judgement_conclude(j, OUTCOME_HOLDS, "the upper bound %s is at most %s", upper, high);
        else
                judgement_conclude(j, OUTCOME_HOLDS, "the lower bound %s is at least %s", lower, low);
}

int judge_rule(const struct judge *judge, const struct manifest_rule *rule, struct block block,
               const struct noise_floor *floor, int64_t stream, struct judgement *ret)
{
        struct judgement *j = ret;
        int r;

        r = judge_measure(judge, rule, block, stream, j);
        if (r < 0) {
                judgement_done(j);
                return r;
        }
        if (!j->has_value)
                return 0;
        if (!j->has_bounds)
                judgement_conclude(j, OUTCOME_INCONCLUSIVE, "%zu rounds are too few for bounds, it takes 5", j->rounds);
        else if (j->clusters)
                judgement_conclude(j, OUTCOME_INCONCLUSIVE,
                                   "the rounds fall into separate clusters, which no median describes");
        else if (is_noise(rule, j, floor))
                judgement_conclude(j, OUTCOME_INCONCLUSIVE, "bound and margin both lie inside the noise floor");
        else
                compare(rule, j);
        return 0;
}

/* Return: 0, 1 where @control says nothing about @rule, or -ENOMEM. */
static int widen_floor(const struct judge *judge, const struct manifest_rule *rule, const struct manifest_rule *control,
                       struct block block, struct noise_floor *floor)
{
        _cleanup_judgement_ struct judgement j = {0};
        int r;

        if (control->form != rule->form || control->form == RULE_VALUE || control->of.is_growth != rule->of.is_growth ||
            !streq(control->metric->name, rule->metric->name))
                return 0;
        r = judge_rule(judge, control, block, NULL, -1, &j);
        if (r < 0 || !j.has_bounds)
                return r;
        floor->lower = floor->exists ? MIN(floor->lower, j.lower) : j.lower;
        floor->upper = floor->exists ? MAX(floor->upper, j.upper) : j.upper;
        floor->exists = true;
        return 0;
}

int judge_floor(const struct judge *judge, const struct manifest_rule *rule, struct block block,
                struct noise_floor *ret)
{
        const struct manifest *m = judge->manifest;
        struct noise_floor floor = {0};

        for (size_t c = 0; c < m->n_controls; c++) {
                if (m->arms[m->controls[c].arm].control != CONTROL_SAME_SAME)
                        continue;
                for (size_t i = 0; i < m->controls[c].n_rules; i++) {
                        int r = widen_floor(judge, rule, &m->controls[c].rules[i], block, &floor);

                        if (r < 0)
                                return r;
                }
        }
        *ret = floor;
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/verdict.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/macro.h"
#include "base/text.h"
#include "evidence/quantity.h"
#include "evidence/summary-internal.h"
#include "evidence/summary.h"
#include "evidence/verdict-internal.h"
#include "stats/proportion.h"

#define VERDICT_VERSION 1

/* Streams of the bootstrap, apart from those that a plan draws from. */
#define STREAM_FIRST (INT64_C(1) << 34)

const char *outcome_name(enum outcome outcome)
{
        static const char *const names[] = {
                [OUTCOME_HOLDS] = "holds",
                [OUTCOME_FAILS] = "fails",
                [OUTCOME_INCONCLUSIVE] = "inconclusive",
        };

        return names[outcome];
}

struct verdict {
        struct judge judge;
        int64_t stream; /* of the next rule */
        bool is_valid;
        bool has_control;
        struct text spoiled; /* why the claims are inconclusive whatever their rules say; empty: they are not */
        json_t *reasons, *controls, *hypotheses;
};

static void verdict_done(struct verdict *v)
{
        judge_done(&v->judge);
        text_done(&v->spoiled);
        json_decref(v->reasons);
        json_decref(v->controls);
        json_decref(v->hypotheses);
}

#define _cleanup_verdict_ _cleanup_(verdict_done)

static const char *unit_name(enum unit unit)
{
        switch (unit) {
        case UNIT_RATIO:
                return "ppm";
        case UNIT_DURATION:
                return "ns";
        case UNIT_PROPORTION:
                return "ppb";
        case UNIT_PICOSECONDS:
                return "ps";
        case UNIT_RATE:
                return "bps";
        default:
                return "count";
        }
}

static int put(json_t *object, const char *key, json_t *value)
{
        return json_object_set_new(object, key, value) < 0 ? -ENOMEM : 0;
}

static int put_value(json_t *object, const char *key, int64_t value)
{
        return put(object, key, summary_value_to_json(value));
}

/* What was measured, and what it was compared with. */
static int put_judgement(json_t *json, const struct manifest_rule *rule, const struct judgement *j,
                         const struct noise_floor *floor)
{
        int r = put(json, "rounds", json_integer((json_int_t)j->rounds));

        if (r == 0 && j->has_value)
                r = put_value(json, "value", j->value);
        if (r == 0 && j->has_value && j->has_bounds) {
                r = put_value(json, "lower", j->lower);
                if (r == 0)
                        r = put_value(json, "upper", j->upper);
        }
        if (r == 0 && rule->has_high)
                r = put(json, "at_most", json_integer(rule->high));
        if (r == 0 && rule->has_low)
                r = put(json, "at_least", json_integer(rule->low));
        if (r == 0 && j->clusters)
                r = put(json, "clusters", json_incref(j->clusters));
        if (r == 0 && j->bootstrap)
                r = put(json, "bootstrap", json_incref(j->bootstrap));
        if (r == 0 && floor && floor->exists)
                r = put(json, "floor",
                        json_pack("{s:o, s:o}", "lower", summary_value_to_json(floor->lower), "upper",
                                  summary_value_to_json(floor->upper)));
        return r;
}

static const char *metric_unit_name(enum metric_unit unit)
{
        static const char *const names[] = {[METRIC_NS] = "ns",
                                            [METRIC_PS] = "ps",
                                            [METRIC_PPB] = "ppb",
                                            [METRIC_COUNT] = "count",
                                            [METRIC_BPS] = "bps"};

        return names[unit];
}

static json_t *rule_to_json(const struct manifest_rule *rule)
{
        static const char *const forms[] = {
                [RULE_VALUE] = "value", [RULE_RATIO] = "ratio", [RULE_DIFFERENCE] = "difference"};

        return json_pack("{s:s, s:s, s:s, s:s, s:s, s:b}", "text", rule->text, "metric", rule->metric->name,
                         "metric_unit", metric_unit_name(rule->metric->unit), "form", forms[rule->form], "unit",
                         unit_name(manifest_rule_unit(rule)), "advisory", rule->is_advisory);
}

/* How many campaigns say that the rule fails, against how many may. */
struct tally {
        int64_t campaigns, failed, inconclusive;
};

static int tally_campaigns(const struct judge *judge, const struct manifest_rule *rule, struct tally *ret)
{
        const struct manifest *m = judge->manifest;
        size_t rounds = m->rounds / m->campaigns;

        *ret = (struct tally){.campaigns = m->campaigns};
        for (size_t c = 0; c < m->campaigns; c++) {
                struct block block = {c * rounds + 1, (c + 1) * rounds};
                _cleanup_judgement_ struct judgement j = {0};
                struct noise_floor floor;
                int r;

                r = judge_floor(judge, rule, block, &floor);
                if (r >= 0)
                        r = judge_rule(judge, rule, block, &floor, -1, &j);
                if (r < 0)
                        return r;
                ret->failed += j.outcome == OUTCOME_FAILS;
                ret->inconclusive += j.outcome == OUTCOME_INCONCLUSIVE;
        }
        return 0;
}

/* The rule is about how often campaigns fail: its outcome is that of the tally, by the exact bound of the proportion.
 */
static int judge_campaigns(const struct judge *judge, const struct manifest_rule *rule, struct judgement *j,
                           json_t *json)
{
        int64_t limit = rule->campaigns_that_fail_at_most_ppb;
        char bound[QUANTITY_SIZE], margin[QUANTITY_SIZE];
        struct proportion p;
        struct tally tally;
        int r;

        r = tally_campaigns(judge, rule, &tally);
        if (r < 0 || proportion_of((uint64_t)tally.failed, (uint64_t)tally.campaigns, &p) < 0)
                return r;
        j->outcome = p.upper <= limit ? OUTCOME_HOLDS : p.lower > limit ? OUTCOME_FAILS : OUTCOME_INCONCLUSIVE;
        snprintf(j->reason, sizeof(j->reason),
                 "%" PRId64 " of %" PRId64 " campaigns fail, %" PRId64 " are inconclusive: the %s bound %s is %s %s",
                 tally.failed, tally.campaigns, tally.inconclusive, j->outcome == OUTCOME_FAILS ? "lower" : "upper",
                 quantity_format(UNIT_PROPORTION, j->outcome == OUTCOME_FAILS ? p.lower : p.upper, bound),
                 j->outcome == OUTCOME_HOLDS ? "at most" : "above", quantity_format(UNIT_PROPORTION, limit, margin));
        return put(json, "campaigns",
                   json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "judged", (json_int_t)tally.campaigns, "failed",
                             (json_int_t)tally.failed, "inconclusive", (json_int_t)tally.inconclusive, "ppb",
                             (json_int_t)p.ppb, "lower_ppb", (json_int_t)p.lower, "upper_ppb", (json_int_t)p.upper,
                             "at_most_ppb", (json_int_t)limit));
}

/* Judges a rule and appends it to @rules. @is_control: its own noise does not count against it. */
static int add_rule(struct verdict *v, const struct manifest_rule *rule, bool is_control, json_t *rules,
                    enum outcome *ret)
{
        _cleanup_json_ json_t *json = rule_to_json(rule);
        _cleanup_judgement_ struct judgement j = {0};
        struct noise_floor floor = {0};
        int r = json ? 0 : -ENOMEM;

        if (r == 0 && !is_control)
                r = judge_floor(&v->judge, rule, judge_whole(&v->judge), &floor);
        if (r == 0)
                r = judge_rule(&v->judge, rule, judge_whole(&v->judge), is_control ? NULL : &floor, v->stream++, &j);
        if (r == 0 && rule->campaigns_that_fail_at_most_ppb >= 0)
                r = judge_campaigns(&v->judge, rule, &j, json);
        if (r == 0)
                r = put_judgement(json, rule, &j, &floor);
        if (r == 0)
                r = put(json, "outcome", json_string(outcome_name(j.outcome)));
        if (r == 0)
                r = put(json, "reason", json_string(j.reason));
        if (r == 0 && json_array_append(rules, json) < 0)
                r = -ENOMEM;
        *ret = j.outcome;
        return r;
}

/* Fails if any rule fails, holds if all hold; advisory rules are shown and decide nothing. */
static int judge_rules(struct verdict *v, const struct manifest_rule *rules, size_t n, bool is_control, json_t *to,
                       enum outcome *ret)
{
        size_t decisive = 0, held = 0, failed = 0;

        for (size_t i = 0; i < n; i++) {
                enum outcome outcome;
                int r = add_rule(v, &rules[i], is_control, to, &outcome);

                if (r < 0)
                        return r;
                if (rules[i].is_advisory)
                        continue;
                decisive++;
                held += outcome == OUTCOME_HOLDS;
                failed += outcome == OUTCOME_FAILS;
        }
        *ret = failed > 0 ? OUTCOME_FAILS : decisive > 0 && held == decisive ? OUTCOME_HOLDS : OUTCOME_INCONCLUSIVE;
        return 0;
}

/* Begins one more reason why the claims are inconclusive. */
static struct text *spoil(struct verdict *v)
{
        if (v->spoiled.len > 0)
                text_add(&v->spoiled, "; ");
        return &v->spoiled;
}

static int add_control(struct verdict *v, const struct manifest_control *control)
{
        const struct manifest_arm *arm = &v->judge.manifest->arms[control->arm];
        bool is_harm = arm->control == CONTROL_HARM;
        _cleanup_json_ json_t *rules = json_array();
        enum outcome outcome;
        int r;

        if (control->n_rules == 0)
                return 0;
        r = rules ? judge_rules(v, control->rules, control->n_rules, true, rules, &outcome) : -ENOMEM;
        if (r < 0)
                return r;
        v->has_control = true;
        if (is_harm && outcome == OUTCOME_FAILS)
                text_addf(spoil(v), "the harm control %s fails: no harm was measured where there is", arm->name);
        else if (is_harm && outcome == OUTCOME_INCONCLUSIVE)
                text_addf(spoil(v), "the harm control %s is inconclusive", arm->name);
        else if (!is_harm && outcome == OUTCOME_FAILS)
                text_addf(spoil(v), "the same-same control %s fails: the same does not measure the same", arm->name);
        return json_array_append_new(v->controls, json_pack("{s:s, s:s, s:s, s:O}", "arm", arm->name, "kind",
                                                            is_harm ? "harm" : "same-same", "outcome",
                                                            outcome_name(outcome), "rules", rules)) < 0
                       ? -ENOMEM
                       : 0;
}

static const char *hypothesis_reason(const struct verdict *v, enum outcome outcome)
{
        if (v->spoiled.len > 0)
                return v->spoiled.data;
        switch (outcome) {
        case OUTCOME_HOLDS:
                return "all its rules hold";
        case OUTCOME_FAILS:
                return "a rule fails";
        default:
                return "a rule is inconclusive";
        }
}

static int add_hypothesis(struct verdict *v, const struct manifest_hypothesis *h)
{
        _cleanup_json_ json_t *rules = json_array();
        enum outcome outcome;
        int r;

        if (h->n_rules == 0)
                return 0;
        r = rules ? judge_rules(v, h->rules, h->n_rules, false, rules, &outcome) : -ENOMEM;
        if (r < 0)
                return r;
        if (v->spoiled.len > 0)
                outcome = OUTCOME_INCONCLUSIVE;
        return json_array_append_new(v->hypotheses,
                                     json_pack("{s:s, s:s, s:s, s:s, s:O}", "hypothesis", h->name, "claim", h->claim,
                                               "outcome", outcome_name(outcome), "reason",
                                               hypothesis_reason(v, outcome), "rules", rules)) < 0
                       ? -ENOMEM
                       : 0;
}

/* A campaign in which a cell lacks its rounds is invalid. */
static int judge_campaign(struct verdict *v, const json_t *summary)
{
        const json_t *rounds = json_object_get(summary, "rounds");
        int64_t planned = json_integer_value(json_object_get(rounds, "planned"));
        int64_t counted = json_integer_value(json_object_get(rounds, "counted"));
        _cleanup_free_ char *reason = NULL;

        v->is_valid = counted >= planned && planned > 0;
        if (v->is_valid)
                return 0;
        reason = text_format("%" PRId64 " of %" PRId64 " rounds have a valid trial of every cell", counted, planned);
        if (!reason || json_array_append_new(v->reasons, json_string(reason)) < 0)
                return -ENOMEM;
        text_addf(spoil(v), "the campaign is invalid: %s", reason);
        return 0;
}

static int judge_all(struct verdict *v, const json_t *summary)
{
        const struct manifest *m = v->judge.manifest;
        int r;

        r = judge_campaign(v, summary);
        for (size_t i = 0; i < m->n_controls && r == 0; i++)
                r = add_control(v, &m->controls[i]);
        if (r == 0 && !v->has_control)
                text_add(spoil(v), "no control was judged");
        if (r == 0 && v->spoiled.failed)
                r = -ENOMEM;
        for (size_t i = 0; i < m->n_hypotheses && r == 0; i++)
                r = add_hypothesis(v, &m->hypotheses[i]);
        return r;
}

static json_t *unjudged_to_json(const struct manifest *m)
{
        _cleanup_json_ json_t *all = json_array();

        for (size_t i = 0; i < m->n_unjudged; i++)
                if (json_array_append_new(all, json_string(m->unjudged[i])) < 0)
                        return NULL;
        return TAKE_PTR(all);
}

int verdict_make(const struct manifest *manifest, const json_t *summary, json_t **ret, struct err *err)
{
        _cleanup_verdict_ struct verdict v = {.stream = STREAM_FIRST,
                                              .reasons = json_array(),
                                              .controls = json_array(),
                                              .hypotheses = json_array()};
        json_t *json;
        int r;

        if (!v.reasons || !v.controls || !v.hypotheses)
                return err_set_nomem(err);
        r = judge_init(&v.judge, manifest, summary);
        if (r >= 0)
                r = judge_all(&v, summary);
        if (r < 0)
                return err_set_nomem(err);

        json = json_pack("{s:i, s:s, s:{s:b, s:O}, s:O, s:O, s:o}", "assay", VERDICT_VERSION, "manifest_sha256",
                         manifest->sha256, "campaign", "valid", v.is_valid, "reasons", v.reasons, "controls",
                         v.controls, "hypotheses", v.hypotheses, "unjudged", unjudged_to_json(manifest));
        if (!json)
                return err_set_nomem(err);
        if (json_object_set_new(json, "exit_code", json_integer(verdict_exit_code(json))) < 0) {
                json_decref(json);
                return err_set_nomem(err);
        }
        *ret = json;
        return 0;
}

int verdict_exit_code(const json_t *verdict)
{
        json_t *hypothesis;
        int code = 0;
        size_t i;

        if (!json_is_true(json_object_get(json_object_get(verdict, "campaign"), "valid")))
                return 1;
        json_array_foreach(json_object_get(verdict, "hypotheses"), i, hypothesis)
        {
                const char *outcome = json_string_value(json_object_get(hypothesis, "outcome"));

                if (outcome && streq(outcome, outcome_name(OUTCOME_FAILS)))
                        code = 3;
                else if (code == 0 && !(outcome && streq(outcome, outcome_name(OUTCOME_HOLDS))))
                        code = 4;
        }
        return code;
}

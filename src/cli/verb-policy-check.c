/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/print.h"
#include "cli/table.h"
#include "cli/verb-policy.h"
#include "config/unit.h"

struct check_options {
        bool json;
};

static const struct option options[] = {
        {"json", 0, OPTION_FLAG, offsetof(struct check_options, json), .help = "print JSON"},
        {0},
};

/* ---- rules of which nothing is left ---- */

static bool ranges_meet(const struct policy_range *range, const struct ip_prefix *prefix)
{
        size_t len = prefix->family == AF_INET ? 4 : 16;
        struct ip_prefix first = {.family = range->family}, last_of_prefix = *prefix;

        if (range->family != prefix->family)
                return false;
        memcpy(first.bytes, range->first, sizeof(first.bytes));
        for (size_t bit = prefix->length_bits; bit < 8 * len; bit++)
                last_of_prefix.bytes[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
        return memcmp(range->first, last_of_prefix.bytes, len) <= 0 && memcmp(range->last, prefix->bytes, len) >= 0;
}

/* Whether some port of what the rule is for is open. Return: 1, 0, or -ENOMEM. */
static int is_name_open(const struct policy *policy, const struct policy_rule *rule)
{
        struct target target = {.name = rule->name};
        size_t n = 0;

        for (target.transport = 0; n == 0 && target.transport < N_TRANSPORTS; target.transport++) {
                _cleanup_free_ struct policy_opening *openings = NULL;

                if (policy_openings(policy, &target, &openings, &n) < 0)
                        return -ENOMEM;
        }
        return n > 0;
}

static int is_rule_open(const struct policy *policy, const struct policy_range *ranges, size_t n,
                        const struct policy_rule *rule)
{
        if (rule->match == POLICY_MATCH_NAME)
                return is_name_open(policy, rule);
        if (rule->match == POLICY_MATCH_SUFFIX)
                return 1; /* of endlessly many names one may be */
        for (size_t i = 0; i < n; i++)
                if (ranges_meet(&ranges[i], &rule->prefix))
                        return 1;
        return 0;
}

/* ---- for people ---- */

static void add_limit(const char *of, const char *what, enum unit unit, uint64_t value, struct text *out)
{
        char text[48];

        if (value)
                text_addf(out, "  limit    %s, %s %s\n", of, what, unit_format(unit, (int64_t)value, text));
}

static void add_limits(const char *of, const struct policy_limits *limits, struct text *out)
{
        add_limit(of, "rate", UNIT_RATE, limits->rate_bps, out);
        add_limit(of, "bytes", UNIT_BYTES, limits->bytes, out);
        add_limit(of, "connections", UNIT_COUNT, limits->connections, out);
        add_limit(of, "new connections", UNIT_FREQUENCY, limits->new_connections_hz, out);
}

static void add_layer(const struct policy_layer *layer, struct text *out)
{
        char digest[DIGEST_HEX_SIZE];

        print_visible(out, layer->path);
        text_addf(out, ": valid, sha256 %s\n", digest_format(&layer->digest, digest));
        if (layer->is_deny_all)
                text_add(out, "  deny-all\n");
        for (size_t i = 0; i < layer->n_rules; i++) {
                const struct policy_rule *rule = &layer->rules[i];

                text_addf(out, "  %s[%u]%*s", rule->is_deny ? "deny" : "allow", rule->number, rule->is_deny ? 2 : 1,
                          "");
                policy_rule_format(rule, out);
                text_add(out, "\n");
        }
        if (layer->localhost.n > 0) {
                text_add(out, "  localhost ");
                port_set_format(&layer->localhost, out);
                text_add(out, "\n");
        }
        if (layer->allows_private)
                text_add(out, "  names may resolve to private addresses\n");
        add_limits("total", &layer->total, out);
        add_limits("per target", &layer->per_target, out);
}

static void add_note(const struct policy_layer *layer, const struct policy_rule *rule, const char *why,
                     struct text *out)
{
        text_addf(out, "note: allow[%u], ", rule->number);
        print_visible(out, layer->path);
        text_addf(out, ":%u, %s\n", rule->at.line, why);
}

/* Rules of which the policy of one file itself leaves nothing. */
static int add_own_notes(const struct policy *policy, struct text *out)
{
        const struct policy_layer *layer = policy->layers[0];
        _cleanup_free_ struct policy_range *ranges = NULL;
        size_t n = 0;
        int r = policy_ranges(policy, &ranges, &n);

        for (size_t i = 0; r >= 0 && i < layer->n_rules; i++) {
                r = layer->rules[i].is_deny ? 1 : is_rule_open(policy, ranges, n, &layer->rules[i]);
                if (r == 0)
                        add_note(layer, &layer->rules[i], "comes to nothing: something else denies all of it", out);
                if (layer->rules[i].sni || layer->rules[i].http_host)
                        add_note(layer, &layer->rules[i], "needs an enforcer that looks into flows", out);
        }
        return r < 0 ? r : 0;
}

/* Names of which the other files leave nothing. */
static int add_common_notes(const struct policy *policy, struct text *out)
{
        int r = 0;

        for (size_t l = 0; r >= 0 && l < policy->n_layers; l++)
                for (size_t i = 0; r >= 0 && i < policy->layers[l]->n_rules; i++) {
                        const struct policy_rule *rule = &policy->layers[l]->rules[i];

                        if (rule->is_deny || rule->match != POLICY_MATCH_NAME)
                                continue;
                        r = is_name_open(policy, rule);
                        if (r == 0)
                                add_note(policy->layers[l], rule, "comes to nothing: no other file allows it", out);
                }
        return r < 0 ? r : 0;
}

static int run_check(const void *given, int argc, char **argv, struct err *err)
{
        const struct check_options *o = given;
        _cleanup_free_ struct policy **policies = calloc((size_t)argc, sizeof(struct policy *));
        _cleanup_policy_ struct policy *policy = NULL;
        _cleanup_text_ struct text out = {0};
        int r;

        if (!policies)
                return err_set_nomem(err);
        r = policy_load_all(argv, (size_t)argc, policies, err);
        for (size_t i = 0; r == 0 && i < (size_t)argc; i++) {
                add_layer(policies[i]->layers[0], &out);
                if (add_own_notes(policies[i], &out) < 0)
                        out.failed = true;
        }
        if (r == 0)
                r = policy_combine_all(policies, (size_t)argc, &policy, err);
        if (r != 0)
                return r;
        if (o->json)
                return print_json(json_pack("{s:i, s:o}", "assay", 1, "policy", policy_to_json(policy)), err);
        if (policy->n_layers > 1) {
                text_add(&out, "together: only what each of them allows\n");
                add_limits("total", &policy->total, &out);
                add_limits("per target", &policy->per_target, &out);
                if (add_common_notes(policy, &out) < 0)
                        return err_set_nomem(err);
        }
        return print_text(&out, err);
}

const struct verb verb_policy_check = {
        .name = "check",
        .arguments = "FILE...",
        .summary = "say whether policies are valid, and what they say",
        .description = "Reads each FILE and prints what it says: its rules, limits and digest.\n"
                       "Rules that come to nothing, because something else denies all of it, are named.",
        .min_args = 1,
        .max_args = -1,
        .options = options,
        .options_size = sizeof(struct check_options),
        .run = run_check,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/print.h"
#include "cli/verb-policy.h"

struct explain_options {
        const char *address;
        bool json;
};

static const struct option options[] = {
        {"address", 0, OPTION_STRING, offsetof(struct explain_options, address), "ADDRESS",
         .help = "decide as if the target's name resolved to this; no name is looked up"},
        {"json", 0, OPTION_FLAG, offsetof(struct explain_options, json), .help = "print JSON"},
        {0},
};

/* What is said of one policy, or of all together. */
struct explained {
        struct decision decision, lookup;
        bool has_lookup, is_looked_up;
};

static void explain(const struct policy *policy, const struct target *target, struct explained *ret)
{
        *ret = (struct explained){0};
        policy_decide(policy, target, &ret->decision);
        ret->has_lookup = target->name && ret->decision.reason != POLICY_BY_LOCALHOST;
        if (ret->has_lookup)
                ret->is_looked_up = policy_decide_name(policy, target->name, &ret->lookup);
}

static const char *outcome_text(const struct decision *decision)
{
        static const char *const texts[] = {
                [POLICY_DENIED] = "denied",
                [POLICY_ALLOWED] = "allowed",
                [POLICY_PENDING] = "depends on the flow",
        };

        return texts[decision->outcome];
}

static void add_decision(const struct explained *e, struct text *out)
{
        char text[DECISION_TEXT];

        text_addf(out, "%s\n", outcome_text(&e->decision));
        text_addf(out, "  rule  %s\n", decision_rule_format(&e->decision, text));
        text_addf(out, "  why   %s\n", decision_reason_format(&e->decision, text));
}

/* What the decision leaves open because the name's addresses are not known, or does not show. */
static void add_lookup(const struct explained *e, const struct target *target, struct text *out)
{
        bool is_denied = e->decision.outcome == POLICY_DENIED;

        if (!e->has_lookup)
                return;
        if (!e->is_looked_up && !is_denied)
                text_add(out, "  name  not looked up: no rule allows it by its name, so the command has to know the "
                              "address\n");
        else if (!e->is_looked_up)
                text_add(out, "  name  not looked up either\n");
        else if (target->address.family == 0)
                text_addf(out, "  name  looked up; each address that it has is decided too: --address shows how%s\n",
                          is_denied ? "" : ", and private ones are denied");
}

static json_t *decision_json(const struct decision *d, const char *file)
{
        static const char *const outcomes[] = {
                [POLICY_DENIED] = "denied", [POLICY_ALLOWED] = "allowed", [POLICY_PENDING] = "pending"};
        char rule[DECISION_TEXT], reason[DECISION_TEXT];
        json_t *json = json_pack("{s:s, s:s, s:s}", "outcome", outcomes[d->outcome], "rule",
                                 decision_rule_format(d, rule), "reason", decision_reason_format(d, reason));

        if (json && file) {
                _cleanup_text_ struct text visible = {0};

                print_visible(&visible, file);
                json_object_set_new(json, "file", json_string(visible.data ? visible.data : ""));
        }
        return json;
}

static json_t *explained_json(const struct explained *all, const struct target *target, json_t *layers)
{
        json_t *json = decision_json(&all->decision, NULL);
        char text[TARGET_TEXT];

        json_object_set_new(json, "assay", json_integer(1));
        json_object_set_new(json, "target", json_string(target_format(target, text)));
        json_object_set_new(json, "looked_up", all->has_lookup ? json_boolean(all->is_looked_up) : json_null());
        json_object_set_new(json, "layers", layers);
        return json;
}

static int read_target(const struct explain_options *o, const char *text, struct host_name *host, struct target *target,
                       struct err *err)
{
        struct host_name address;
        int r = target_parse(text, host, target, err);

        if (r < 0 || !o->address)
                return r;
        if (!target->name)
                return err_set(err, ERR_USAGE, EINVAL, "--address is for a target with a name, and \"%.100s\" has none",
                               text);
        if (host_name_parse_bare(span_of_text(o->address), &address) < 0 || address.kind == HOST_NAME_IS_NAME)
                return err_set(err, ERR_USAGE, EINVAL, "--address: \"%.100s\" is not an address such as 192.0.2.1",
                               o->address);
        target->address = target_address_of(&address);
        return 0;
}

/* Decides by each policy, of which there is one a file. */
static json_t *each_layer(struct policy *const *policies, size_t n, const struct target *target, struct text *out)
{
        json_t *layers = json_array();

        for (size_t i = 0; i < n; i++) {
                struct explained e;

                explain(policies[i], target, &e);
                json_array_append_new(layers, decision_json(&e.decision, policies[i]->layers[0]->path));
                if (n == 1)
                        break;
                print_visible(out, policies[i]->layers[0]->path);
                text_add(out, ": ");
                add_decision(&e, out);
        }
        return layers;
}

static int run_explain(const void *given, int argc, char **argv, struct err *err)
{
        static const int exit_codes[] = {[POLICY_ALLOWED] = 0, [POLICY_DENIED] = 3, [POLICY_PENDING] = 4};
        const struct explain_options *o = given;
        size_t n = (size_t)argc - 1;
        _cleanup_free_ struct policy **policies = calloc(n, sizeof(struct policy *));
        _cleanup_policy_ struct policy *policy = NULL;
        _cleanup_json_ json_t *layers = NULL;
        _cleanup_text_ struct text each = {0}, out = {0};
        struct explained all;
        struct host_name host;
        struct target target;
        char text[TARGET_TEXT];
        int r;

        if (!policies)
                return err_set_nomem(err);
        r = read_target(o, argv[n], &host, &target, err);
        if (r == 0)
                r = policy_load_all(argv, n, policies, err);
        if (r != 0)
                return r;
        layers = each_layer(policies, n, &target, &each);
        r = policy_combine_all(policies, n, &policy, err);
        if (r != 0)
                return r;
        explain(policy, &target, &all);
        text_addf(&out, "%s: ", target_format(&target, text));
        add_decision(&all, &out);
        add_lookup(&all, &target, &out);
        text_add(&out, each.data ? each.data : "");
        out.failed |= each.failed;
        r = o->json ? print_json(explained_json(&all, &target, TAKE_PTR(layers)), err) : print_text(&out, err);
        return r < 0 ? r : exit_codes[all.decision.outcome];
}

const struct verb verb_policy_explain = {
        .name = "explain",
        .arguments = "FILE... TARGET",
        .summary = "say which rule decides about a target, and why",
        .description =
                "TARGET is HOST:PORT, tcp://HOST:PORT, udp://HOST:PORT, http://HOST/ or https://HOST/. Nothing is "
                "sent, and\nno name is looked up. Exit 0: allowed; 3: denied; 4: it depends on what the flow says "
                "of itself.",
        .min_args = 2,
        .max_args = -1,
        .options = options,
        .options_size = sizeof(struct explain_options),
        .run = run_explain,
};

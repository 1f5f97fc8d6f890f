/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <stdio.h>

#include "sandbox/policy-internal.h"

/* Policies and decisions for people, and as JSON. */

/* ---- rules ---- */

static void add_where(const struct policy_rule *rule, struct text *out)
{
        char range[IP_TEXT_MAX], *slash;

        switch (rule->match) {
        case POLICY_MATCH_NAME:
                text_add(out, rule->name);
                break;
        case POLICY_MATCH_SUFFIX:
                text_addf(out, rule->name[0] ? "*.%s" : "*%s", rule->name);
                break;
        case POLICY_MATCH_ADDRESS:
                ip_prefix_format(&rule->prefix, range);
                slash = strchr(range, '/');
                if (slash && rule->prefix.length_bits == (rule->prefix.family == AF_INET ? 32 : 128))
                        *slash = '\0';
                text_add(out, range);
                break;
        }
}

static const char *transports_text(unsigned transports)
{
        return transports == 1u << TRANSPORT_TCP ? "tcp" : transports == 1u << TRANSPORT_UDP ? "udp" : "any transport";
}

static bool is_any(const struct port_set *set)
{
        return set->n == 1 && set->ranges[0].first == 0 && set->ranges[0].last == UINT16_MAX;
}

static void add_ports(const struct policy_rule *rule, struct text *out)
{
        text_addf(out, "%s, ", transports_text(rule->transports));
        text_add(out, is_any(&rule->ports) ? "" : rule->ports.n > 1 ? "ports " : "port ");
        port_set_format(&rule->ports, out);
        text_add(out, is_any(&rule->ports) ? " port" : "");
        if (rule->sni)
                text_addf(out, ", server name %s", rule->sni);
        if (rule->http_host)
                text_addf(out, ", HTTP host %s", rule->http_host);
}

void policy_rule_format(const struct policy_rule *rule, struct text *out)
{
        text_add(out, rule->is_deny ? "deny " : "allow ");
        add_where(rule, out);
        text_add(out, ", ");
        add_ports(rule, out);
}

/* ---- decisions ---- */

static void add_place(const char *path, const struct policy_place *at, struct text *out)
{
        text_add(out, ", ");
        text_add_visible(out, path, strlen(path));
        if (at->line > 0)
                text_addf(out, ":%u", at->line);
}

/* What is in @text, cut to @size bytes, and released. */
static char *into(struct text *text, char *buf, size_t size)
{
        snprintf(buf, size, "%s", text->failed ? "memory ran out" : text->data ? text->data : "");
        text_done(text);
        return buf;
}

char *decision_rule_format(const struct decision *decision, char buf[static DECISION_TEXT])
{
        const struct policy_layer *layer = decision->layer;
        const struct policy_rule *rule = decision->rule;
        struct text out = {0};

        switch (decision->reason) {
        case POLICY_BY_RULE:
                text_addf(&out, "%s[%u]", rule->is_deny ? "deny" : "allow", rule->number);
                add_place(layer->path, &rule->at, &out);
                break;
        case POLICY_BY_DEFAULT:
                text_add(&out, "default deny");
                add_place(layer->path, &layer->default_at, &out);
                break;
        case POLICY_BY_DENY_ALL:
                text_add(&out, "deny-all");
                if (layer->deny_all_at.line > 0)
                        add_place(layer->path, &layer->deny_all_at, &out);
                break;
        case POLICY_BY_LOCALHOST:
                text_add(&out, "localhost");
                add_place(layer->path, &layer->localhost_at, &out);
                break;
        case POLICY_BY_SPECIAL:
                text_add(&out, "private-addresses deny");
                add_place(layer->path, &layer->private_at, &out);
                break;
        }
        return into(&out, buf, DECISION_TEXT);
}

static void add_rule_name(const struct policy_rule *rule, struct text *out)
{
        text_addf(out, "allow[%u] in line %u", rule->number, rule->at.line);
}

/* Why no rule allows, given the one that came nearest. */
static void add_default(const struct decision *decision, struct text *out)
{
        const struct policy_rule *rule = decision->rule;

        text_add(out, "no rule allows it");
        if (!rule)
                return;
        text_add(out, "; the nearest, ");
        add_rule_name(rule, out);
        text_add(out, ", is for ");
        add_where(rule, out);
        text_add(out, ", ");
        add_ports(rule, out);
}

static void add_special(const struct decision *decision, struct text *out)
{
        char range[IP_TEXT_MAX];

        text_addf(out, "it is %s (%s), which ", special_kind_text(decision->special.kind), decision->special.name);
        add_rule_name(decision->rule, out);
        text_addf(out, " does not allow: only a rule for an address in %s could",
                  ip_prefix_format(&decision->special.prefix, range));
}

static void add_localhost(const struct decision *decision, struct text *out)
{
        if (decision->outcome == POLICY_ALLOWED)
                text_add(out, "its port of the host's loopback is listed");
        else
                text_add(out, "it is the host's loopback, and only TCP ports at 127.0.0.1 that are listed under "
                              "\"localhost\" may be reached there");
}

char *decision_reason_format(const struct decision *decision, char buf[static DECISION_TEXT])
{
        const struct policy_rule *rule = decision->rule;
        struct text out = {0};

        switch (decision->reason) {
        case POLICY_BY_RULE:
                text_add(&out, rule->is_deny ? "it denies " : "it allows ");
                add_where(rule, &out);
                text_add(&out, ", ");
                add_ports(rule, &out);
                if (decision->outcome == POLICY_PENDING)
                        text_add(&out, ", which shows in the first bytes of the flow");
                break;
        case POLICY_BY_DEFAULT:
                add_default(decision, &out);
                break;
        case POLICY_BY_DENY_ALL:
                text_add(&out, "nothing may be reached");
                break;
        case POLICY_BY_LOCALHOST:
                add_localhost(decision, &out);
                break;
        case POLICY_BY_SPECIAL:
                add_special(decision, &out);
                break;
        }
        return into(&out, buf, DECISION_TEXT);
}

/* ---- all layers ---- */

int policy_localhost(const struct policy *policy, struct port_set *ret)
{
        struct port_set all;
        int r = port_set_any(&all);

        for (size_t i = 0; r == 0 && i < policy->n_layers; i++)
                r = port_set_intersect(&all, &policy->layers[i]->localhost);
        if (r < 0)
                return r;
        *ret = all;
        return 0;
}

bool policy_is_deny_all(const struct policy *policy)
{
        for (size_t i = 0; i < policy->n_layers; i++)
                if (policy->layers[i]->is_deny_all)
                        return true;
        return false;
}

const struct policy_rule *policy_conditional_rule(const struct policy *policy, const struct policy_layer **ret_layer)
{
        for (size_t l = 0; l < policy->n_layers; l++)
                for (size_t i = 0; i < policy->layers[l]->n_rules; i++) {
                        const struct policy_rule *rule = &policy->layers[l]->rules[i];

                        if (!rule->sni && !rule->http_host)
                                continue;
                        if (ret_layer)
                                *ret_layer = policy->layers[l];
                        return rule;
                }
        return NULL;
}

/* ---- JSON ---- */

/* @array with @value, which is taken; NULL, and nothing left of either, where memory ran out now or before. */
static json_t *appended(json_t *array, json_t *value)
{
        if (json_array_append_new(array, value) == 0)
                return array;
        json_decref(array);
        return NULL;
}

static json_t *ports_json(const struct port_set *set)
{
        json_t *ports = json_array();

        for (size_t i = 0; i < set->n; i++)
                ports = appended(ports, json_pack("[i, i]", set->ranges[i].first, set->ranges[i].last));
        return ports;
}

static json_t *transports_json(unsigned mask)
{
        json_t *transports = json_array();

        for (unsigned t = 0; t < N_TRANSPORTS; t++)
                if (mask & 1u << t)
                        transports = appended(transports, json_string(transport_names[t]));
        return transports;
}

static json_t *rule_json(const struct policy_rule *rule)
{
        _cleanup_text_ struct text where = {0};
        const char *says = rule->sni ? rule->sni : rule->http_host;
        json_t *json;

        add_where(rule, &where);
        json = json_pack("{s:s, s:o, s:o, s:i}", rule->match == POLICY_MATCH_ADDRESS ? "address" : "host",
                         where.failed ? NULL : where.data, "ports", ports_json(&rule->ports), "transports",
                         transports_json(rule->transports), "line", (int)rule->at.line);
        if (json && says && json_object_set_new(json, rule->sni ? "sni" : "http_host", json_string(says)) < 0) {
                json_decref(json);
                return NULL;
        }
        return json;
}

static json_t *limit_json(uint64_t limit)
{
        return limit ? json_integer((json_int_t)limit) : json_null();
}

static json_t *limits_json(const struct policy_limits *limits)
{
        return json_pack("{s:o, s:o, s:o, s:o}", "rate_bps", limit_json(limits->rate_bps), "bytes",
                         limit_json(limits->bytes), "connections", limit_json(limits->connections),
                         "new_connections_hz", limit_json(limits->new_connections_hz));
}

static json_t *rules_json(const struct policy_layer *layer, bool is_deny)
{
        json_t *rules = json_array();

        for (size_t i = 0; i < layer->n_rules; i++)
                if (layer->rules[i].is_deny == is_deny)
                        rules = appended(rules, rule_json(&layer->rules[i]));
        return rules;
}

static json_t *layer_json(const struct policy_layer *layer)
{
        _cleanup_text_ struct text path = {0};
        char digest[DIGEST_HEX_SIZE];

        text_add_visible(&path, layer->path, strlen(layer->path));
        return json_pack("{s:s, s:s, s:b, s:s, s:o, s:o, s:o}", "file", path.failed ? NULL : path.data, "sha256",
                         digest_format(&layer->digest, digest), "deny_all", layer->is_deny_all, "private_addresses",
                         layer->allows_private ? "allow" : "deny", "localhost", ports_json(&layer->localhost), "allow",
                         rules_json(layer, false), "deny", rules_json(layer, true));
}

json_t *policy_to_json(const struct policy *policy)
{
        json_t *layers = json_array();

        for (size_t i = 0; i < policy->n_layers; i++)
                layers = appended(layers, layer_json(policy->layers[i]));
        return json_pack("{s:o, s:{s:o, s:o}}", "layers", layers, "limits", "total", limits_json(&policy->total),
                         "per_target", limits_json(&policy->per_target));
}

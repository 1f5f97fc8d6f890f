/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/outer.h"

#include <netinet/in.h>
#include <stdio.h>

#include "base/json.h"
#include "base/macro.h"

#define PORTS_MAX       64 /* of one range, each of them an entry */
#define TABLE_MAX       32
#define CONTROL_ENTRIES 2 /* what outer_expose() opens */

struct outer {
        struct gate *gate; /* NULL: nftables */
        struct nft *nft;
        char table[TABLE_MAX]; /* of nftables */
        char weaker[384];      /* why it is those although BPF would do; empty: it would not */
};

static const int protocols[] = {[TRANSPORT_TCP] = IPPROTO_TCP, [TRANSPORT_UDP] = IPPROTO_UDP};

static bool is_every_port(const struct port_range *ports)
{
        return ports->first <= 1 && ports->last == UINT16_MAX;
}

static bool ports_fit(const struct port_range *ports)
{
        return is_every_port(ports) || ports->last - ports->first < PORTS_MAX;
}

/* Whether a table of exact addresses and ports can hold what the policy allows. */
static bool fits_gate(const struct rules *rules, const struct policy *policy)
{
        for (size_t i = 0; i < rules->n_ranges; i++) {
                const struct policy_range *range = &rules->ranges[i];

                if (!range->is_pending && (memcmp(range->first, range->last, range->family == AF_INET ? 4 : 16) != 0 ||
                                           !ports_fit(&range->ports)))
                        return false;
        }
        for (size_t i = 0; i < policy->n_layers; i++)
                for (size_t j = 0; j < policy->layers[i]->n_rules; j++) {
                        const struct policy_rule *rule = &policy->layers[i]->rules[j];

                        for (size_t k = 0; k < rule->ports.n && !rule->is_deny; k++)
                                if (!ports_fit(&rule->ports.ranges[k]))
                                        return false;
                }
        return true;
}

static int open_ports(struct gate *gate, const struct ip_prefix *address, enum transport transport,
                      const struct port_range *ports, int64_t expires_ns, struct err *err)
{
        int r = 0;

        if (is_every_port(ports))
                return gate_open(gate, address, protocols[transport], 0, expires_ns, err);
        for (unsigned port = ports->first; port <= ports->last && r == 0; port++)
                if (port != RULES_DNS_TLS_PORT)
                        r = gate_open(gate, address, protocols[transport], (uint16_t)port, expires_ns, err);
        return r;
}

/* How many entries there will be at most: a table of many takes longer to make than the rest of a start. */
static uint32_t count_entries(const struct rules *rules)
{
        size_t n = CONTROL_ENTRIES;

        if (rules->has_names)
                return GATE_ENTRIES_MAX;
        for (size_t i = 0; i < rules->n_ranges; i++) {
                const struct port_range *ports = &rules->ranges[i].ports;

                n += is_every_port(ports) ? 1 : (size_t)(ports->last - ports->first) + 1;
        }
        return (uint32_t)MIN(n, (size_t)GATE_ENTRIES_MAX);
}

static int fill_gate(struct gate *gate, const struct rules *rules, struct err *err)
{
        for (size_t i = 0; i < rules->n_ranges; i++) {
                const struct policy_range *range = &rules->ranges[i];
                struct ip_prefix address = {.family = range->family};
                int r;

                if (range->is_pending)
                        continue;
                memcpy(address.bytes, range->first, sizeof(address.bytes));
                r = open_ports(gate, &address, range->transport, &range->ports, 0, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Return: 1; 0 where it is for nftables; a negative errno. */
static int try_gate(struct outer *outer, struct netlink *nl, int index, const struct rules *rules,
                    const struct policy *policy, struct err *err)
{
        struct ip_prefix own[2];
        struct err why = {0};
        int r;

        if (!fits_gate(rules, policy))
                return 0;
        if (ip_prefix_parse(rules->own_v4, &own[0]) < 0 || ip_prefix_parse(rules->own_v6, &own[1]) < 0)
                return err_set(err, ERR_BUG, EINVAL, "the link has no addresses");
        r = gate_attach(nl, index, own, count_entries(rules), &outer->gate, &why);
        if (r < 0 && why.kind == ERR_UNSUPPORTED) {
                snprintf(outer->weaker, sizeof(outer->weaker),
                         "the second check of the wall is nftables', as the first: %s", why.text);
                return 0;
        }
        if (r < 0) {
                *err = why;
                return r;
        }
        r = fill_gate(outer->gate, rules, err);
        return r < 0 ? r : 1;
}

int outer_new(struct netlink *nl, int index, const struct rules *rules, const struct policy *policy, struct outer **ret,
              struct err *err)
{
        _cleanup_outer_ struct outer *outer = calloc(1, sizeof(*outer));
        _cleanup_text_ struct text text = {0};
        int r;

        if (!outer)
                return err_set_nomem(err);
        snprintf(outer->table, sizeof(outer->table), "netdev %s", rules->link);
        r = try_gate(outer, nl, index, rules, policy, err);
        if (r == 0) {
                rules_outer(rules, &text);
                r = nft_open(NULL, &outer->nft, err);
                if (r == 0)
                        r = text.failed ? err_set_nomem(err) : nft_run(outer->nft, text.data, err);
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(outer);
        return 0;
}

const char *outer_weaker(const struct outer *outer)
{
        return outer->weaker[0] ? outer->weaker : NULL;
}

void outer_free(struct outer *outer)
{
        if (!outer)
                return;
        gate_free(outer->gate);
        nft_free(outer->nft);
        free(outer);
}

static int admit_pin(struct outer *outer, const struct policy *policy, const struct pin *pin, struct err *err)
{
        struct target target = {.name = pin->name, .address = pin->address};
        int r = 0;

        for (target.transport = 0; target.transport < N_TRANSPORTS && r == 0; target.transport++) {
                _cleanup_free_ struct policy_opening *openings = NULL;
                size_t n;

                if (policy_openings(policy, &target, &openings, &n) < 0)
                        return err_set_nomem(err);
                for (size_t i = 0; i < n && r == 0; i++)
                        if (!openings[i].is_pending)
                                r = open_ports(outer->gate, &pin->address, target.transport, &openings[i].ports,
                                               pin->expires_ns, err);
        }
        return r;
}

int outer_admit(struct outer *outer, const struct policy *policy, const struct pin *pins, size_t n, struct err *err)
{
        int r = 0;

        if (!outer->gate)
                return rules_admit(outer->nft, outer->table, policy, false, pins, n, err);
        for (size_t i = 0; i < n && r == 0; i++)
                r = admit_pin(outer, policy, &pins[i], err);
        return r;
}

int outer_expose(struct outer *outer, const struct ip_prefix *address, uint16_t port, bool is_open, struct err *err)
{
        int r = 0;

        if (!outer->gate)
                return rules_expose(outer->nft, outer->table, address, port, is_open, err);
        for (size_t i = 0; i < ARRAY_SIZE(protocols) && r == 0; i++)
                r = is_open ? gate_open(outer->gate, address, protocols[i], port, 0, err)
                            : gate_close(outer->gate, address, protocols[i], port, err);
        return r;
}

/* The counters of nftables, by their names. */
static int read_table(struct outer *outer, struct gate_count ret[static GATE_COUNTERS], struct err *err)
{
        static const char *const names[] = {
                [GATE_LEFT] = "from", [GATE_ENTERED] = "to", [GATE_STOPPED] = "stopped", [GATE_STRANGER] = "strangers"};
        _cleanup_json_ json_t *items = NULL;
        char command[TABLE_MAX + 32];
        json_t *item;
        size_t i;
        int r;

        snprintf(command, sizeof(command), "list counters table %s", outer->table);
        r = nft_list(outer->nft, command, &items, err);
        if (r < 0)
                return r;
        memset(ret, 0, GATE_COUNTERS * sizeof(*ret));
        json_array_foreach(items, i, item)
        {
                const json_t *counter = json_object_get(item, "counter");
                const char *name = json_string_value(json_object_get(counter, "name"));

                for (size_t j = 0; name && j < GATE_COUNTERS; j++)
                        if (streq(name, names[j])) {
                                ret[j].packets = (uint64_t)json_integer_value(json_object_get(counter, "packets"));
                                ret[j].bytes = (uint64_t)json_integer_value(json_object_get(counter, "bytes"));
                        }
        }
        return 0;
}

int outer_read(struct outer *outer, struct gate_count ret[static GATE_COUNTERS], struct err *err)
{
        return outer->gate ? gate_read(outer->gate, ret, err) : read_table(outer, ret, err);
}

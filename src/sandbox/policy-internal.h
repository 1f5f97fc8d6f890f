/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/key.h"
#include "sandbox/policy.h"

/* ---- what the key tables read (policy-keys.c) ---- */

struct policy_rule_keys {
        char *host, *address, *sni, *http_host;
        const struct node *port;
        int transport; /* index into its choices: TRANSPORT_x, or N_TRANSPORTS for any */
};

struct policy_limit_keys {
        int64_t rate_bps, bytes, connections, new_connections_hz;
};

struct policy_limits_keys {
        struct policy_limit_keys total, per_target;
};

struct policy_keys {
        int version, fallback, private_addresses;
        bool is_deny_all;
        const struct node *localhost;
        struct key_tables allow, deny;
        struct policy_limits_keys limits;
};

extern const struct key_table policy_table, policy_allow_table, policy_deny_table;

/* ---- finding the rules that may speak of a target (policy-index.c) ---- */

/* policy_index_build - make @layer->index, and chain its rules. Return: 0 or -ENOMEM. */
int policy_index_build(struct policy_layer *layer);

void policy_index_free(struct policy_index *index);

/* policy_index_visit - call @fn for each rule whose name or range @name (NULL: none) or @address (NULL: none) matches;
 * those of one name or range come in the order of the layer */
void policy_index_visit(const struct policy_layer *layer, const char *name, const struct ip_prefix *address,
                        void (*fn)(const struct policy_rule *rule, void *userdata), void *userdata);

/* policy_name_is_local - whether @name is the loopback's (RFC 6761): localhost, and what is below it */
bool policy_name_is_local(const char *name);

/* ---- sets of ports (policy-port.c) ---- */

extern const char port_set_expected[]; /* what a person should write */

/* port_set_read - the ports that @node says (a number, a range, `any`, or a list of numbers and ranges)
 * @where: for errors
 *
 * Return: 0 with a set whose ranges the caller frees; a negative errno with the reason in @err.
 */
int port_set_read(const struct node *node, const char *where, struct port_set *ret, struct err *err);

/* port_set_any - every port. Return: 0 or -ENOMEM. */
int port_set_any(struct port_set *ret);

/* port_set_intersect - leave in @into what @other has too. Return: 0 or -ENOMEM. */
int port_set_intersect(struct port_set *into, const struct port_set *other);

/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/classifier.h"
#include "testbed/testbed-internal.h"

/* The weaker way to tell slices apart, where BPF programs may not be loaded: nftables rules in every node that
 * forwards. A packet has to stay within its slice's addresses, and gets its slice's class on the uplink. */

/* A rule for every slice and family. */
static size_t list_rules(const struct testbed *tb, struct classifier_rule rules[static TOPOLOGY_SLICES_MAX * 2])
{
        const struct layout *l = tb->layout;
        uint32_t listed = 0;
        size_t n = 0;

        for (size_t i = 0; i < l->n_subnets; i++) {
                const struct layout_subnet *subnet = &l->subnets[i];

                if (listed >> subnet->slice & 1)
                        continue;
                listed |= UINT32_C(1) << subnet->slice;
                for (unsigned family = 0; family < 2; family++)
                        rules[n++] = (struct classifier_rule){
                                .network = layout_slice_network(subnet, family == 0 ? AF_INET : AF_INET6),
                                .classid = shaper_class(tb->topology, subnet->slice),
                        };
        }
        return n;
}

int fence_build(struct testbed *tb, struct err *err)
{
        struct classifier_rule rules[TOPOLOGY_SLICES_MAX * 2];
        size_t n = list_rules(tb, rules);

        for (size_t i = 0; i < tb->n_nodes; i++) {
                int r = 0;

                if (tb->layout->nodes[i].is_forwarder)
                        r = classifier_add(&tb->nodes[i].ns, rules, n, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

bool fence_stands(const struct testbed *tb, size_t node)
{
        struct classifier_count counts[TOPOLOGY_SLICES_MAX * 2];

        return classifier_read(&tb->nodes[node].ns, counts, tb->topology->n_slices * 2, NULL) >= 0;
}

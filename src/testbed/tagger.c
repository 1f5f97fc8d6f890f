/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/macro.h"
#include "sys/slice.h"
#include "testbed/testbed-internal.h"

/* A filter at both ends of every link. */
struct tagger {
        size_t n;
        struct slice_filter *(*filters)[2];
};

void tagger_free(struct tagger *tagger)
{
        if (!tagger)
                return;
        for (size_t i = 0; i < tagger->n; i++)
                for (unsigned end = 0; end < 2; end++)
                        slice_filter_free(tagger->filters[i][end]);
        free(tagger->filters);
        free(tagger);
}

/* Who may send in a slice over a link towards @end: a forwarding node takes from a zone's link only that zone's own
 * addresses; elsewhere the whole slice has passed such a check. */
static bool is_edge(const struct layout *l, const struct layout_link *link, unsigned end)
{
        return l->nodes[link->ends[end].node].is_forwarder && !l->nodes[link->ends[!end].node].is_forwarder;
}

static void allow(struct slice_rule *rule, const struct layout_subnet *subnet, bool is_from_link)
{
        for (unsigned i = 0; i < 2; i++) {
                int family = i == 0 ? AF_INET : AF_INET6;
                struct ip_prefix slice = layout_slice_network(subnet, family);
                struct ip_prefix link = layout_link_network(subnet, family);

                slice_rule_allow(rule, is_from_link ? &link : &slice, &slice);
        }
}

static void configure(const struct testbed *tb, size_t index, unsigned end, struct slice_config *config)
{
        const struct layout *l = tb->layout;
        const struct layout_link *link = &l->links[index];
        bool is_shaped = link->is_uplink && end == LAYOUT_LOWER;

        for (size_t i = 0; i < l->n_subnets; i++) {
                const struct layout_subnet *subnet = &l->subnets[i];
                struct slice_rule *leaving = &config->leaving[config->n_leaving];
                struct slice_rule *entering = &config->entering[config->n_entering];

                if (subnet->link != index)
                        continue;
                slice_rule_init(leaving, subnet->vlan);
                allow(leaving, subnet, false);
                if (is_shaped) {
                        leaving->classid = shaper_class(tb->topology, subnet->slice);
                        leaving->queue = shaper_queue(tb->topology, subnet->slice);
                }
                slice_rule_init(entering, subnet->vlan);
                allow(entering, subnet, is_edge(l, link, end));
                config->n_leaving++;
                config->n_entering++;
        }
}

int tagger_build(struct testbed *tb, struct err *err)
{
        const struct layout *l = tb->layout;
        int r;

        tb->tagger = calloc(1, sizeof(*tb->tagger));
        if (!tb->tagger)
                return err_set_nomem(err);
        tb->tagger->filters = calloc(l->n_links, sizeof(*tb->tagger->filters));
        if (!tb->tagger->filters)
                return err_set_nomem(err);
        for (size_t i = 0; i < l->n_links; i++, tb->tagger->n++)
                for (unsigned end = 0; end < 2; end++) {
                        const struct layout_end *at = &l->links[i].ends[end];
                        struct slice_config config = {.keeps_tags = tb->mechanism.tagger == TESTBED_TAGGER_8021Q};

                        configure(tb, i, end, &config);
                        r = slice_filter_attach(end_netlink(tb, at), at->ifindex, &config, &tb->tagger->filters[i][end],
                                                err);
                        if (r < 0) {
                                tb->tagger->n++;
                                return r;
                        }
                }
        return 0;
}

static struct scrape_count count_of(const struct slice_count *count)
{
        return (struct scrape_count){.packets = count->packets, .bytes = count->bytes};
}

int tagger_observe(struct testbed *tb, struct scrape *s, struct err *err)
{
        const struct layout *l = tb->layout;

        s->has_ports = true;
        for (size_t i = 0; i < l->n_links; i++)
                for (unsigned end = 0; end < 2; end++) {
                        struct slice_counters counters;
                        size_t rule = 0;
                        int r;

                        r = slice_filter_read(tb->tagger->filters[i][end], &counters, err);
                        if (r < 0)
                                return r;
                        for (size_t k = 0; k < l->n_subnets; k++) {
                                if (l->subnets[k].link != i)
                                        continue;
                                s->ports[i * s->n_slices + l->subnets[k].slice][end] = (struct scrape_port){
                                        .in = count_of(&counters.entering[rule]),
                                        .out = count_of(&counters.leaving[rule]),
                                };
                                rule++;
                        }
                        for (size_t reason = 0; reason < SLICE_DROP_MAX; reason++)
                                s->refused[i][end][reason] = counters.drops[reason].packets;
                }
        return 0;
}

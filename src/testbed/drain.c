/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/macro.h"
#include "sys/classifier.h"
#include "sys/sink.h"
#include "testbed/testbed-internal.h"
#include "wire/vlan.h"

/* One port of one zone: a BPF sink at every link of the zone; or, without BPF, a chain of nftables in it. */
struct drain {
        struct drain *next;
        size_t zone;
        uint16_t port;
        size_t n_sinks;
        struct sink **sinks;
};

static void drain_free(struct drain *drain)
{
        if (!drain)
                return;
        for (size_t i = 0; i < drain->n_sinks; i++)
                sink_free(drain->sinks[i]);
        free(drain->sinks);
        free(drain);
}

DEFINE_CLEANUP(struct drain *, drain_free)
#define _cleanup_drain_ _cleanup_(drain_free_cleanup)

void drain_free_all(struct drain *first)
{
        while (first) {
                struct drain *next = first->next;

                drain_free(first);
                first = next;
        }
}

static struct drain *drain_find(const struct testbed *tb, size_t zone, uint16_t port)
{
        for (struct drain *d = tb->drains; d; d = d->next)
                if (d->zone == zone && d->port == port)
                        return d;
        return NULL;
}

/* Every further port of a zone comes behind the others. */
static uint16_t next_order(const struct testbed *tb, size_t zone)
{
        uint16_t order = SINK_ORDER_FIRST;

        for (const struct drain *d = tb->drains; d; d = d->next)
                order += d->zone == zone;
        return order;
}

static int attach(struct testbed *tb, struct drain *drain, const struct layout_end *at, struct err *err)
{
        const struct topology *t = tb->topology;
        uint16_t vlans[TOPOLOGY_SLICES_MAX];
        int r;

        for (size_t i = 0; i < t->n_slices; i++)
                vlans[i] = t->slices[i].vlan;
        r = sink_attach(end_netlink(tb, at), at->ifindex, next_order(tb, drain->zone), drain->port, vlans, t->n_slices,
                        &drain->sinks[drain->n_sinks], err);
        if (r >= 0)
                drain->n_sinks++;
        return r;
}

static int attach_everywhere(struct testbed *tb, struct drain *drain, struct err *err)
{
        const struct layout *l = tb->layout;
        size_t zone = drain->zone;

        drain->sinks = calloc(l->nodes[zone].n_links, sizeof(struct sink *));
        if (!drain->sinks)
                return err_set_nomem(err);
        for (size_t i = 0; i < l->n_links; i++)
                for (unsigned end = 0; end < 2; end++) {
                        int r = 0;

                        if (l->links[i].ends[end].node == zone)
                                r = attach(tb, drain, &l->links[i].ends[end], err);
                        if (r < 0)
                                return r;
                }
        return 0;
}

/* IPv4 and IPv6 network of every slice, in the order of slices. */
static size_t list_networks(const struct testbed *tb, struct ip_prefix networks[static TOPOLOGY_SLICES_MAX * 2])
{
        const struct layout *l = tb->layout;

        for (size_t i = 0; i < l->n_subnets; i++)
                for (unsigned family = 0; family < 2; family++)
                        networks[l->subnets[i].slice * 2 + family] =
                                layout_slice_network(&l->subnets[i], family == 0 ? AF_INET : AF_INET6);
        return tb->topology->n_slices * 2;
}

int testbed_sink_add(struct testbed *tb, size_t zone, uint16_t port, struct err *err)
{
        struct ip_prefix networks[TOPOLOGY_SLICES_MAX * 2];
        _cleanup_drain_ struct drain *drain = NULL;
        int r;

        if (drain_find(tb, zone, port))
                return 0;
        drain = calloc(1, sizeof(*drain));
        if (!drain)
                return err_set_nomem(err);
        drain->zone = zone;
        drain->port = port;
        if (tb->mechanism.classifier == TESTBED_CLASSIFIER_BPF)
                r = attach_everywhere(tb, drain, err);
        else
                r = classifier_sink_add(&tb->nodes[zone].ns, port, networks, list_networks(tb, networks), err);
        if (r < 0)
                return r;
        drain->next = tb->drains;
        tb->drains = TAKE_PTR(drain);
        return 0;
}

/* nftables sees IP packets: on the link they had an Ethernet header, and no tag. */
static int read_chain(struct testbed *tb, const struct drain *drain, size_t slice, struct scrape_count *ret,
                      struct err *err)
{
        struct classifier_count counts[TOPOLOGY_SLICES_MAX * 2];
        int r;

        r = classifier_sink_read(&tb->nodes[drain->zone].ns, drain->port, counts, tb->topology->n_slices * 2, err);
        if (r < 0)
                return r;
        ret->packets = counts[slice * 2].packets + counts[slice * 2 + 1].packets;
        ret->bytes = counts[slice * 2].bytes + counts[slice * 2 + 1].bytes + ret->packets * VLAN_ETHER_LEN;
        return 0;
}

int testbed_sink_read(struct testbed *tb, size_t zone, size_t slice, uint16_t port, struct scrape_count *ret,
                      struct err *err)
{
        const struct drain *drain = drain_find(tb, zone, port);
        struct scrape_count sum = {0};

        if (!drain)
                return err_set(err, ERR_BUG, ENOENT, "zone %s has no sink at port %u", tb->topology->zones[zone].name,
                               port);
        if (tb->mechanism.classifier != TESTBED_CLASSIFIER_BPF)
                return read_chain(tb, drain, slice, ret, err);
        for (size_t i = 0; i < drain->n_sinks; i++) {
                struct sink_counters counters;
                int r = sink_read(drain->sinks[i], &counters, err);

                if (r < 0)
                        return r;
                sum.packets += counters.vlans[slice].packets;
                sum.bytes += counters.vlans[slice].bytes;
        }
        *ret = sum;
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/macro.h"
#include "sys/sink.h"
#include "testbed/testbed-internal.h"

/* One port of one zone: a sink at every link of the zone. */
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

int testbed_sink_add(struct testbed *tb, size_t zone, uint16_t port, struct err *err)
{
        _cleanup_drain_ struct drain *drain = NULL;
        const struct layout *l = tb->layout;

        if (drain_find(tb, zone, port))
                return 0;
        drain = calloc(1, sizeof(*drain));
        if (!drain)
                return err_set_nomem(err);
        drain->zone = zone;
        drain->port = port;
        drain->sinks = calloc(l->nodes[zone].n_links, sizeof(*drain->sinks));
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
        drain->next = tb->drains;
        tb->drains = TAKE_PTR(drain);
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

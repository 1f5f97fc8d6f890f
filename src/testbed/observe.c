/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/clock.h"
#include "sys/link.h"
#include "sys/qdisc.h"
#include "testbed/testbed-internal.h"

/* Counters of a link do not have the tag, which travels beside the packet. */
static struct scrape_flow flow_of(const struct testbed *tb, const struct link_info *sender)
{
        unsigned tag_bytes = tb->mechanism.tagger == TESTBED_TAGGER_NONE ? 0 : QDISC_TAG_BYTES;

        return (struct scrape_flow){
                .sent = {.packets = sender->counters.tx_packets,
                         .bytes = sender->counters.tx_bytes + tag_bytes * sender->counters.tx_packets},
                .dropped_packets = sender->counters.tx_dropped,
        };
}

static int observe_link(struct testbed *tb, size_t i, struct scrape_link *ret, struct err *err)
{
        const struct layout_end *ends = tb->layout->links[i].ends;
        struct link_info infos[2];

        for (unsigned end = 0; end < 2; end++) {
                int r = link_read(end_netlink(tb, &ends[end]), ends[end].ifindex, &infos[end], err);

                if (r == -ENODEV) /* not there any more: shown as not running, its counters gone */
                        return 0;
                if (r < 0)
                        return r;
        }
        ret->up = flow_of(tb, &infos[LAYOUT_LOWER]);
        ret->down = flow_of(tb, &infos[LAYOUT_UPPER]);
        ret->is_running = infos[LAYOUT_LOWER].is_running && infos[LAYOUT_UPPER].is_running;
        return 0;
}

int testbed_observe(struct testbed *tb, struct scrape *ret, struct err *err)
{
        _cleanup_scrape_ struct scrape s = {0};
        int r;

        if (scrape_init(&s, tb->layout->n_links, tb->topology->n_slices) < 0)
                return err_set_nomem(err);
        /* queues first: what has left them by then is counted by the links */
        r = shaper_observe(tb, &s, err);
        for (size_t i = 0; r >= 0 && i < s.n_links; i++)
                r = observe_link(tb, i, &s.links[i], err);
        if (r >= 0 && tb->tagger)
                r = tagger_observe(tb, &s, err);
        if (r < 0)
                return r;
        s.taken_ns = clock_now_ns(CLOCK_MONOTONIC);
        *ret = s;
        s = (struct scrape){0};
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/macro.h"
#include "sys/qdisc.h"
#include "testbed/testbed-internal.h"

/* Handles on the uplink:
 *
 *      tree            1: HTB, 1:1 the uplink's rate, 1:10 + slice below it, leaf 100 + slice
 *      one-queue       1: HTB, 1:10 with the uplink's rate, leaf 100
 *      tree-per-queue  1: mq, 10 + slice: HTB under each of its queues, :1 the slice's ceiling, leaf 100 + slice
 */
enum { ROOT_MAJOR = 1, ROOT_CLASS_MINOR = 1, SLICE_BASE = 0x10, LEAF_BASE = 0x100 };

#define ROOT       QDISC_HANDLE(ROOT_MAJOR, 0)
#define LEAF_OF(i) QDISC_HANDLE(LEAF_BASE + (i), 0)

uint32_t shaper_class(const struct topology *t, size_t slice)
{
        switch (t->scheduler) {
        case TOPOLOGY_TREE:
                return QDISC_HANDLE(ROOT_MAJOR, SLICE_BASE + slice);
        case TOPOLOGY_TREE_PER_QUEUE:
                return QDISC_HANDLE(SLICE_BASE + slice, 1);
        case TOPOLOGY_ONE_QUEUE:
                break;
        }
        return QDISC_HANDLE(ROOT_MAJOR, SLICE_BASE);
}

uint16_t shaper_queue(const struct topology *t, size_t slice)
{
        return t->scheduler == TOPOLOGY_TREE_PER_QUEUE ? (uint16_t)(slice + 1) : 0;
}

size_t shaper_n_classes(const struct topology *t)
{
        if (t->hops == 0)
                return 0;
        return t->scheduler == TOPOLOGY_ONE_QUEUE ? 1 : t->n_slices;
}

/* Where packets wait: the queueing discipline that belongs to class number @i. */
static uint32_t tree_of(const struct topology *t, size_t i)
{
        return t->scheduler == TOPOLOGY_TREE_PER_QUEUE ? QDISC_HANDLE(SLICE_BASE + i, 0) : ROOT;
}

static const struct layout_end *shaped_end(const struct testbed *tb)
{
        for (size_t i = 0; i < tb->layout->n_links; i++)
                if (tb->layout->links[i].is_uplink)
                        return &tb->layout->links[i].ends[LAYOUT_LOWER];
        return NULL;
}

static int build_tree(struct testbed *tb, const struct layout_end *end, uint32_t parent, uint32_t handle,
                      struct err *err)
{
        struct qdisc_htb htb = {
                .parent = parent,
                .handle = handle,
                .overhead_bytes = tb->mechanism.tagger == TESTBED_TAGGER_NONE ? 0 : QDISC_TAG_BYTES,
        };

        return qdisc_add_htb(end_netlink(tb, end), end->ifindex, &htb, err);
}

static int build_class(struct testbed *tb, const struct layout_end *end, const struct qdisc_htb_class *class,
                       size_t leaf, uint32_t limit_packets, struct err *err)
{
        struct netlink *nl = end_netlink(tb, end);
        int r;

        r = qdisc_add_htb_class(nl, end->ifindex, class, err);
        if (r < 0)
                return r;
        return qdisc_add_fifo(nl, end->ifindex, class->classid, LEAF_OF(leaf), QDISC_PACKETS, limit_packets, err);
}

static int build_one_tree(struct testbed *tb, const struct layout_end *end, struct err *err)
{
        const struct topology *t = tb->topology;
        const struct qdisc_htb_class root = {
                .parent = ROOT,
                .classid = QDISC_HANDLE(ROOT_MAJOR, ROOT_CLASS_MINOR),
                .rate_bps = (uint64_t)t->uplink_rate_bps,
        };
        int r;

        r = build_tree(tb, end, QDISC_ROOT, ROOT, err);
        if (r >= 0)
                r = qdisc_add_htb_class(end_netlink(tb, end), end->ifindex, &root, err);
        for (size_t i = 0; r >= 0 && i < t->n_slices; i++) {
                const struct topology_slice *slice = &t->slices[i];
                const struct qdisc_htb_class class = {
                        .parent = root.classid,
                        .classid = shaper_class(t, i),
                        .rate_bps = (uint64_t)slice->guarantee_bps,
                        .ceiling_bps = (uint64_t)slice->ceiling_bps,
                        .priority = slice->priority,
                };

                r = build_class(tb, end, &class, i, slice->queue_limit_packets, err);
        }
        return r;
}

static int build_one_queue(struct testbed *tb, const struct layout_end *end, struct err *err)
{
        const struct topology *t = tb->topology;
        const struct qdisc_htb_class class = {
                .parent = ROOT,
                .classid = shaper_class(t, 0),
                .rate_bps = (uint64_t)t->uplink_rate_bps,
        };
        int r;

        r = build_tree(tb, end, QDISC_ROOT, ROOT, err);
        return r < 0 ? r : build_class(tb, end, &class, 0, topology_shared_leaf_packets(t), err);
}

/* A slice has its tree for itself, so its ceiling is what it gets. */
static int build_tree_per_queue(struct testbed *tb, const struct layout_end *end, struct err *err)
{
        const struct topology *t = tb->topology;
        int r;

        r = qdisc_add_mq(end_netlink(tb, end), end->ifindex, ROOT, err);
        for (size_t i = 0; r >= 0 && i < t->n_slices; i++) {
                const struct qdisc_htb_class class = {
                        .parent = tree_of(t, i),
                        .classid = shaper_class(t, i),
                        .rate_bps = (uint64_t)t->slices[i].ceiling_bps,
                };

                r = build_tree(tb, end, QDISC_HANDLE(ROOT_MAJOR, shaper_queue(t, i)), tree_of(t, i), err);
                if (r >= 0)
                        r = build_class(tb, end, &class, i, t->slices[i].queue_limit_packets, err);
        }
        return r;
}

/* HTB is there by now, also where it is a module. */
static void hold_hysteresis(struct testbed *tb)
{
        int r = hysteresis_hold(&tb->hysteresis);

        tb->mechanism.has_hysteresis = r == 0;
        if (r < 0)
                log_debug("the uplink's queues wake for each packet: HTB's hysteresis cannot be switched on: %s",
                          strerror(-r));
}

int shaper_build(struct testbed *tb, struct err *err)
{
        const struct layout_end *end = shaped_end(tb);
        int r = 0;

        if (!end)
                return 0;
        switch (tb->topology->scheduler) {
        case TOPOLOGY_TREE:
                r = build_one_tree(tb, end, err);
                break;
        case TOPOLOGY_TREE_PER_QUEUE:
                r = build_tree_per_queue(tb, end, err);
                break;
        case TOPOLOGY_ONE_QUEUE:
                r = build_one_queue(tb, end, err);
                break;
        }
        if (r < 0) {
                err_prefix(err, "uplink");
                return r;
        }
        hold_hysteresis(tb);
        return 0;
}

static void observe_root(const struct qdisc_list *list, struct scrape *s)
{
        snprintf(s->root_kind, sizeof(s->root_kind), "noqueue");
        for (size_t i = 0; i < list->n; i++)
                if (!list->items[i].is_class && list->items[i].parent == QDISC_ROOT)
                        snprintf(s->root_kind, sizeof(s->root_kind), "%s", list->items[i].kind);
}

static void observe_classes(const struct topology *t, const struct qdisc_list *list, struct scrape *s)
{
        s->has_scheduler = streq(s->root_kind, t->scheduler == TOPOLOGY_TREE_PER_QUEUE ? "mq" : "htb");
        for (size_t i = 0; i < s->n_classes; i++) {
                const struct qdisc_counters *tree = qdisc_list_find(list, tree_of(t, i), false);
                const struct qdisc_counters *class = qdisc_list_find(list, shaper_class(t, i), true);

                if (!tree || !streq(tree->kind, "htb"))
                        s->has_scheduler = false;
                else if (i == 0 || tree_of(t, i) != tree_of(t, 0))
                        s->unclassified_packets += tree->direct_packets;
                if (class)
                        s->classes[i] = (struct scrape_class){
                                .is_present = true,
                                .sent = {.packets = class->packets, .bytes = class->bytes},
                                .dropped_packets = class->drops,
                                .backlog_packets = class->backlog_packets,
                                .overlimits = class->overlimits,
                        };
        }
}

int shaper_observe(struct testbed *tb, struct scrape *s, struct err *err)
{
        const struct layout_end *end = shaped_end(tb);
        _cleanup_qdisc_list_ struct qdisc_list list = {0};
        int r;

        s->n_classes = shaper_n_classes(tb->topology);
        if (!end)
                return 0;
        r = qdisc_read(end_netlink(tb, end), end->ifindex, &list, err);
        if (r == -ENODEV)
                return 0;
        if (r < 0)
                return r;
        observe_root(&list, s);
        observe_classes(tb->topology, &list, s);
        return 0;
}

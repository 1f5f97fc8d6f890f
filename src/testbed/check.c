/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/macro.h"
#include "sys/link.h"
#include "sys/qdisc.h"
#include "testbed/testbed-internal.h"

/* How many faults there are so far, and a line for each. */
struct faults {
        int n;
        struct text *out;
};

#define FAULT(f, ...)                                                                                                  \
        ({                                                                                                             \
                (f)->n++;                                                                                              \
                text_addf((f)->out, __VA_ARGS__);                                                                      \
        })

static bool check_node(const struct testbed *tb, size_t i, struct faults *f)
{
        uint64_t inode;

        if (netns_inode(&tb->nodes[i].ns, &inode) == 0 && inode == tb->nodes[i].inode)
                return true;
        FAULT(f, "%s: its network namespace is gone\n", tb->layout->nodes[i].name);
        return false;
}

static bool has_clsact(const struct qdisc_list *list)
{
        for (size_t i = 0; i < list->n; i++)
                if (streq(list->items[i].kind, "clsact"))
                        return true;
        return false;
}

static int check_end(struct testbed *tb, const struct layout_link *link, unsigned end, struct faults *f,
                     struct err *err)
{
        const struct layout_end *at = &link->ends[end];
        const char *node = tb->layout->nodes[at->node].name;
        _cleanup_qdisc_list_ struct qdisc_list list = {0};
        struct link_info info;
        int r;

        r = link_read(end_netlink(tb, at), at->ifindex, &info, err);
        if (r == -ENODEV) {
                FAULT(f, "link %s: its end in %s is gone\n", link->name, node);
                return 0;
        }
        if (r < 0)
                return r;
        if (!info.is_up)
                FAULT(f, "link %s: its end in %s is down\n", link->name, node);
        else if (!info.is_running)
                FAULT(f, "link %s: its end in %s carries no packets\n", link->name, node);
        if (tb->mechanism.classifier != TESTBED_CLASSIFIER_BPF)
                return 0;
        r = qdisc_read(end_netlink(tb, at), at->ifindex, &list, err);
        if (r < 0)
                return r;
        if (!has_clsact(&list))
                FAULT(f, "link %s: the programs that keep slices apart are gone from its end in %s\n", link->name,
                      node);
        return 0;
}

static void check_fence(struct testbed *tb, struct faults *f)
{
        for (size_t i = 0; tb->mechanism.classifier == TESTBED_CLASSIFIER_NFTABLES && i < tb->n_nodes; i++)
                if (tb->layout->nodes[i].is_forwarder && !fence_stands(tb, i))
                        FAULT(f, "%s: the rules that keep slices apart are gone\n", tb->layout->nodes[i].name);
}

static int check_shaper(struct testbed *tb, struct faults *f, struct err *err)
{
        struct scrape s = {0};
        int r;

        if (tb->topology->hops == 0)
                return 0;
        r = shaper_observe(tb, &s, err);
        if (r < 0)
                return r;
        if (!s.has_scheduler)
                FAULT(f, "uplink: it has no scheduler of the kind %s\n",
                      topology_scheduler_name(tb->topology->scheduler));
        for (size_t i = 0; s.has_scheduler && i < s.n_classes; i++)
                if (!s.classes[i].is_present)
                        FAULT(f, "uplink: the class of slice %s is gone\n", tb->topology->slices[i].name);
        return 0;
}

int testbed_check(struct testbed *tb, struct text *out, struct err *err)
{
        struct faults f = {.out = out};
        bool has_all = true;
        int r = 0;

        for (size_t i = 0; i < tb->n_nodes; i++)
                has_all &= check_node(tb, i, &f);
        for (size_t i = 0; has_all && r >= 0 && i < tb->layout->n_links; i++)
                for (unsigned end = 0; r >= 0 && end < 2; end++)
                        r = check_end(tb, &tb->layout->links[i], end, &f, err);
        if (has_all)
                check_fence(tb, &f);
        if (has_all && r >= 0)
                r = check_shaper(tb, &f, err);
        return r < 0 ? r : f.n;
}

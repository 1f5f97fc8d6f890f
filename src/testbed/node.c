/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/macro.h"
#include "sys/link.h"
#include "testbed/testbed-internal.h"

/* A new namespace takes over settings of the host, so all that matter are written. Set before there is a link; links
 * get what stands under "default". */
static const struct {
        const char *name, *value;
} settings[] = {
        {"ipv4/ip_forward", "0"},
        {"ipv4/ip_unprivileged_port_start", "0"}, /* the port of a probe is 862, and its namespace nobody else's */
        {"ipv6/conf/all/forwarding", "0"},
        {"ipv4/conf/all/rp_filter", "0"}, /* without a gateway, a zone's address is reached over all of its links */
        {"ipv4/conf/default/rp_filter", "0"},
        {"ipv4/conf/all/send_redirects", "0"},
        {"ipv4/conf/default/send_redirects", "0"},
        {"ipv6/conf/all/disable_ipv6", "0"},
        {"ipv6/conf/default/disable_ipv6", "0"},
        {"ipv6/conf/default/accept_ra", "0"},
        {"ipv6/conf/default/autoconf", "0"},
        {"ipv6/conf/default/addr_gen_mode", "1"}, /* no link-local address, so nobody to solicit or report for */
        {"ipv6/conf/default/dad_transmits", "0"},
};

static int node_build(struct testbed_node *node, struct err *err)
{
        int r;

        r = netns_new(&node->ns, err);
        if (r < 0)
                return r;
        r = netns_inode(&node->ns, &node->inode);
        if (r < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot examine a network namespace");
        for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
                r = netns_sysctl_write(&node->ns, settings[i].name, settings[i].value, err);
                if (r == -ENOENT)
                        return err_set(err, ERR_UNSUPPORTED, ENOENT,
                                       "this kernel has no setting net/%s: a testbed needs IPv4 and IPv6",
                                       settings[i].name);
                if (r < 0)
                        return r;
        }
        r = netlink_open(&node->ns, &node->nl, err);
        if (r < 0)
                return r;
        return link_set_up_loopback(node->nl, err);
}

int node_build_all(struct testbed *tb, struct err *err)
{
        int r;

        tb->nodes = calloc(tb->layout->n_nodes, sizeof(*tb->nodes));
        if (!tb->nodes)
                return err_set_nomem(err);
        for (size_t i = 0; i < tb->layout->n_nodes; i++) {
                tb->nodes[i].ns = (struct netns)NETNS_INIT;
                tb->n_nodes++;
                r = node_build(&tb->nodes[i], err);
                if (r < 0) {
                        err_prefix(err, "%s", tb->layout->nodes[i].name);
                        return r;
                }
        }
        return 0;
}

int node_forward_all(struct testbed *tb, struct err *err)
{
        int r;

        for (size_t i = 0; i < tb->n_nodes; i++) {
                if (!tb->layout->nodes[i].is_forwarder)
                        continue;
                r = netns_sysctl_write(&tb->nodes[i].ns, "ipv4/ip_forward", "1", err);
                if (r < 0)
                        return r;
                r = netns_sysctl_write(&tb->nodes[i].ns, "ipv6/conf/all/forwarding", "1", err);
                if (r < 0)
                        return r;
        }
        return 0;
}

void node_done(struct testbed_node *node)
{
        netlink_free(node->nl);
        netns_done(&node->ns);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/stage.h"

#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "sys/ip.h"
#include "sys/link.h"
#include "sys/netlink.h"

#define WAIT_NS (5 * NSEC_PER_SEC)

static const char near_address[] = "198.18.20.1/24", near_address6[] = "fd00:198:18:20::1/64";
static const char *const everywhere[] = {"0.0.0.0/0", "::/0"};

static int add_address(struct netlink *nl, int index, const char *text, struct err *err)
{
        struct ip_prefix address;

        (void)ip_prefix_parse(text, &address);
        return ip_address_add(nl, index, &address, err);
}

static int add_route(struct netlink *nl, int index, const char *text, struct err *err)
{
        struct ip_prefix destination;

        (void)ip_prefix_parse(text, &destination);
        return ip_route_add(nl, index, &destination, NULL, NULL, err);
}

/* Else it would be a way for what is sent to a group of IPv6, and one without an address to send from. */
static int silence_far_end(const struct netns *netns, struct err *err)
{
        int r = netns_sysctl_write(netns, "ipv6/conf/host1/disable_ipv6", "1", err);

        if (r != -ENOENT)
                return r;
        *err = (struct err){0}; /* a kernel without IPv6 */
        return 0;
}

/* The far end of the pair leads nowhere; that the near one has a peer makes it a link that carries packets, and what it
 * is the default way of can be sent to everybody. */
static int add_link(const struct netns *netns, struct netlink *nl, struct err *err)
{
        const struct link_end near = {.name = "host0"}, far = {.name = "host1"};
        int index, peer, r;

        r = link_add_veth(nl, &near, &far, NULL, err);
        if (r >= 0)
                r = silence_far_end(netns, err);
        if (r >= 0)
                r = link_find(nl, near.name, &index, err);
        if (r >= 0)
                r = link_find(nl, far.name, &peer, err);
        if (r >= 0)
                r = link_set_up(nl, index, true, err);
        if (r >= 0)
                r = link_set_up(nl, peer, true, err);
        if (r >= 0)
                r = link_wait_running(nl, index, WAIT_NS, err);
        if (r >= 0)
                r = add_address(nl, index, near_address, err);
        if (r >= 0)
                r = add_address(nl, index, near_address6, err);
        for (size_t i = 0; i < ARRAY_SIZE(everywhere) && r >= 0; i++)
                r = add_route(nl, index, everywhere[i], err);
        return r;
}

int stage_up(struct stage *stage, struct err *err)
{
        _cleanup_netlink_ struct netlink *nl = NULL;
        struct ip_prefix address;
        int r;

        r = netns_new(&stage->netns, err);
        if (r >= 0)
                r = netlink_open(&stage->netns, &nl, err);
        if (r >= 0)
                r = link_set_up_loopback(nl, err);
        if (r >= 0)
                r = add_link(&stage->netns, nl, err);
        if (r < 0) {
                stage_down(stage);
                return r;
        }
        (void)ip_prefix_parse(near_address, &address);
        stage->origin.v4 = (struct sockaddr_in){.sin_family = AF_INET};
        memcpy(&stage->origin.v4.sin_addr, address.bytes, sizeof(stage->origin.v4.sin_addr));
        stage->proxy = stage->origin;
        address_set_port(&stage->origin, STAGE_ORIGIN_PORT);
        address_set_port(&stage->proxy, STAGE_PROXY_PORT);
        return 0;
}

void stage_down(struct stage *stage)
{
        netns_done(&stage->netns);
}

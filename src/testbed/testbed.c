/* SPDX-License-Identifier: Apache-2.0 */
#include "testbed/testbed.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/log.h"
#include "testbed/testbed-internal.h"

const char *testbed_tagger_name(enum testbed_tagger tagger)
{
        static const char *const names[] = {
                [TESTBED_TAGGER_8021Q] = "8021q",
                [TESTBED_TAGGER_BPF] = "bpf",
                [TESTBED_TAGGER_NONE] = "none",
        };

        return names[tagger];
}

const char *testbed_classifier_name(enum testbed_classifier classifier)
{
        return classifier == TESTBED_CLASSIFIER_BPF ? "bpf" : "nftables";
}

/* BPF where this process may load it. Without, a transmit queue cannot be chosen for a slice. */
static int build_classifier(struct testbed *tb, struct err *err)
{
        bool needs_bpf = tb->topology->hops > 0 && tb->topology->scheduler == TOPOLOGY_TREE_PER_QUEUE;
        struct err why = {0};
        int r;

        r = tagger_build(tb, &why);
        if (r >= 0)
                return 0;
        if (why.kind != ERR_UNSUPPORTED || needs_bpf) {
                if (needs_bpf)
                        err_prefix(&why, "scheduler tree-per-queue");
                if (err)
                        *err = why;
                return r;
        }
        log_debug("slices are told apart by nftables: %s", why.text);
        tagger_free(tb->tagger);
        tb->tagger = NULL;
        tb->mechanism.classifier = TESTBED_CLASSIFIER_NFTABLES;
        if (tb->mechanism.tagger == TESTBED_TAGGER_BPF)
                tb->mechanism.tagger = TESTBED_TAGGER_NONE;
        return fence_build(tb, err);
}

void testbed_sweep(void)
{
        struct hysteresis h = HYSTERESIS_OF_HOST;

        hysteresis_sweep(&h);
}

int testbed_up(const struct topology *topology, struct testbed **ret, struct err *err)
{
        _cleanup_testbed_ struct testbed *tb = calloc(1, sizeof(*tb));
        int r;

        if (!tb)
                return err_set_nomem(err);
        tb->topology = topology;
        tb->hysteresis = HYSTERESIS_OF_HOST;
        tb->mechanism = (struct testbed_mechanism){.tagger = TESTBED_TAGGER_8021Q,
                                                   .classifier = TESTBED_CLASSIFIER_BPF}; /* the best there is */
        r = layout_make(topology, &tb->layout, err);
        if (r >= 0)
                r = node_build_all(tb, err);
        if (r >= 0)
                r = cable_build_all(tb, err);
        if (r >= 0)
                r = node_forward_all(tb, err);
        if (r >= 0)
                r = build_classifier(tb, err);
        if (r >= 0)
                r = shaper_build(tb, err);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(tb);
        return 0;
}

void testbed_down(struct testbed *tb)
{
        if (!tb)
                return;
        drain_free_all(tb->drains);
        tagger_free(tb->tagger);
        for (size_t i = 0; i < tb->n_nodes; i++)
                node_done(&tb->nodes[i]);
        free(tb->nodes);
        free(tb->devices);
        hysteresis_release(&tb->hysteresis);
        layout_free(tb->layout);
        free(tb);
}

int testbed_missing(const struct topology *topology, struct err *err)
{
        _cleanup_testbed_ struct testbed *tb = NULL;
        _cleanup_close_ int tap = -1;
        int r;

        r = testbed_up(topology, &tb, err);
        if (r < 0)
                return r;
        tap = netns_socket(&tb->nodes[0].ns, AF_PACKET, SOCK_RAW, 0, err); /* which each proof takes */
        return MIN(tap, 0);
}

const struct layout *testbed_layout(const struct testbed *tb)
{
        return tb->layout;
}

struct testbed_mechanism testbed_mechanism(const struct testbed *tb)
{
        return tb->mechanism;
}

const struct netns *testbed_netns(const struct testbed *tb, size_t node)
{
        return &tb->nodes[node].ns;
}

const struct netns *testbed_zone_netns(const struct testbed *tb, const char *name)
{
        size_t zone;

        return topology_zone_find(tb->topology, name, &zone) ? &tb->nodes[zone].ns : NULL;
}

int testbed_address(const struct testbed *tb, const char *zone, const char *slice, int family, struct ip_prefix *ret,
                    struct err *err)
{
        const struct layout_address *address;
        size_t z, s;

        if (!topology_zone_find(tb->topology, zone, &z))
                return err_set(err, ERR_USAGE, ENOENT, "there is no zone named %s", zone);
        if (!topology_slice_find(tb->topology, slice, &s))
                return err_set(err, ERR_USAGE, ENOENT, "there is no slice named %s", slice);
        address = layout_zone_address(tb->layout, z, s);
        if (!address)
                return err_set(err, ERR_USAGE, ENOENT, "zone %s does not carry slice %s", zone, slice);
        *ret = layout_address_prefix(address, family, family == AF_INET ? 32 : 128);
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "sys/ip.h"
#include "sys/netns.h"
#include "testbed/layout.h"
#include "testbed/path.h"
#include "testbed/scrape.h"
#include "testbed/topology.h"

/* A topology that stands: zones, relays and gateway as network namespaces, links between them, the slices' tags on the
 * links and their classes on the uplink.
 *
 * Everything is held by descriptors of this process: when it ends, however it ends, the kernel removes all of it; but
 * for HTB's hysteresis, which testbed_sweep() or the next testbed puts back where this process was killed. A testbed
 * belongs to the thread that made it; children that need a zone get its namespace by descriptor. */
struct testbed;

/* Who puts the 802.1Q tags on the links. */
enum testbed_tagger {
        TESTBED_TAGGER_8021Q, /* the kernel's VLAN devices */
        TESTBED_TAGGER_BPF,   /* BPF programs at the link ends */
        TESTBED_TAGGER_NONE,  /* nobody: neither is to be had; slices are known by their addresses only */
};

/* Who tells slices apart, and so gives packets their class on the uplink. */
enum testbed_classifier {
        TESTBED_CLASSIFIER_BPF,
        TESTBED_CLASSIFIER_NFTABLES, /* where BPF programs may not be loaded; weaker: nothing counts slice by slice */
};

struct testbed_mechanism {
        enum testbed_tagger tagger;
        enum testbed_classifier classifier;
        bool has_hysteresis; /* the uplink's queues wake for a burst, not for each packet, see sys/hysteresis.h */
};

/* testbed_tagger_name, testbed_classifier_name - stable names: "8021q", "bpf", "none"; "bpf", "nftables" */
const char *testbed_tagger_name(enum testbed_tagger tagger);
const char *testbed_classifier_name(enum testbed_classifier classifier);

/* testbed_missing - whether this host can build a topology: found out by building it and taking it down again
 *
 * Return: 0; a negative errno with the missing capability named (kind unsupported) in @err.
 */
int testbed_missing(const struct topology *topology, struct err *err);

/* testbed_sweep - undo what a testbed whose process was killed may have left on the host, where none stands any more */
void testbed_sweep(void);

/* testbed_up - build a topology
 * @topology: must outlive the testbed
 * @ret:      testbed_down() takes it down and releases it
 *
 * When it returns, every link carries packets. On failure nothing is left. Return: 0, or a negative errno with the
 * reason in @err (kind unsupported where the host lacks something).
 */
int testbed_up(const struct topology *topology, struct testbed **ret, struct err *err);

/* testbed_down - take it down and release it; accepts NULL */
void testbed_down(struct testbed *tb);

DEFINE_CLEANUP(struct testbed *, testbed_down)
#define _cleanup_testbed_ _cleanup_(testbed_down_cleanup)

/* testbed_layout, testbed_mechanism - how it is laid out (borrowed), and by what means it is built on this host */
const struct layout *testbed_layout(const struct testbed *tb);
struct testbed_mechanism testbed_mechanism(const struct testbed *tb);

/* testbed_netns - the namespace of a node of the layout, borrowed; zones come first, by their index in the topology */
const struct netns *testbed_netns(const struct testbed *tb, size_t node);

/* testbed_zone_netns - the namespace of the zone @name, borrowed; NULL where there is none */
const struct netns *testbed_zone_netns(const struct testbed *tb, const char *name);

/* testbed_address - where a zone is reached in a slice
 * @family: AF_INET, AF_INET6
 * @ret:    with the length of a single address
 *
 * Return: 0; -ENOENT, kind usage, where there is no such zone or slice, or the zone does not carry it.
 */
int testbed_address(const struct testbed *tb, const char *zone, const char *slice, int family, struct ip_prefix *ret,
                    struct err *err);

/* testbed_observe - read all counters
 * @ret: scrape_done() releases it
 *
 * They are read one after another, so while packets are on their way they do not fit each other exactly. What is not
 * there any more (a link, a class) is shown as such and is no error. Return: 0 or a negative errno.
 */
int testbed_observe(struct testbed *tb, struct scrape *ret, struct err *err);

/* ---- sinks: where load ends ---- */

/* testbed_sink_add - count and drop what arrives in a zone for a UDP port, before the zone's network stack. It stays
 * until the testbed goes down; adding it again changes nothing. Return: 0 or a negative errno. */
int testbed_sink_add(struct testbed *tb, size_t zone, uint16_t port, struct err *err);

/* testbed_sink_read - what a sink has counted of a slice; bytes of layer 2, the tag included. Return: 0; -ENOENT. */
int testbed_sink_read(struct testbed *tb, size_t zone, size_t slice, uint16_t port, struct scrape_count *ret,
                      struct err *err);

/* ---- proof ---- */

/* What a proof by own traffic found, besides whether it holds. */
struct testbed_proof {
        struct path_proof path;
        struct scrape before, after; /* of all slices that were proven; empty where it failed before the first */
        size_t n_flows;
        struct path_flow *flows;
};

void testbed_proof_done(struct testbed_proof *proof);

#define _cleanup_testbed_proof_ _cleanup_(testbed_proof_done)

/* testbed_prove - send a few packets of every slice, over IPv4 and IPv6, from every zone to uplink.to and back, and
 * judge by their TTL, their tags on the wire and all counters whether they went where the topology says; one slice
 * after another, so that one slice's packets in another's class are seen
 * @ret: testbed_proof_done() releases it
 *
 * Nothing else may send meanwhile. That it does not hold is an outcome, not an error.
 * Return: 0 or a negative errno.
 */
int testbed_prove(struct testbed *tb, struct testbed_proof *ret, struct err *err);

/* ---- state ---- */

/* testbed_check - what of the testbed is not as it was built: a namespace, link, queue, class or program that is gone
 * or down; one line each is added to @out
 *
 * Return: how many faults were found; a negative errno where it cannot be told.
 */
int testbed_check(struct testbed *tb, struct text *out, struct err *err);

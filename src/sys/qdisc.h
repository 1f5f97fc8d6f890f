/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <linux/pkt_sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sys/netlink.h"

/* Queueing disciplines of a link, and the classes of HTB.
 *
 * What a rate counts: the kernel charges a packet with what the link's driver gets of it, 14 bytes of Ethernet header
 * and the IP packet. A single 802.1Q tag travels beside the packet and is not in that length, where a BPF program
 * pushed it at egress (tests/netns/test-gateway.c measures it) and where an 8021q device did over a link that takes
 * tags in this way, as veth does. So a tree whose packets leave with a tag is made with an overhead of QDISC_TAG_BYTES:
 * then rates, ceilings, bursts and byte counters of the tree and its classes count the bits of layer 2, tag included.
 * Preamble, checksum and gap between frames are not counted. */

#define QDISC_HANDLE(major, minor) ((uint32_t)(major) << 16 | (minor))
#define QDISC_MAJOR(handle)        ((uint32_t)(handle) >> 16)
#define QDISC_MINOR(handle)        ((uint32_t)(handle)&0xffff)
#define QDISC_ROOT                 TC_H_ROOT
#define QDISC_TAG_BYTES            4

/* qdisc_add_mq - the root of a link with several transmit queues: class MAJOR:N of it is transmit queue N, from 1 on
 * @handle: QDISC_HANDLE(major, 0) */
int qdisc_add_mq(struct netlink *nl, int index, uint32_t handle, struct err *err);

struct qdisc_htb {
        uint32_t parent;        /* QDISC_ROOT, or a class of mq */
        uint32_t handle;        /* QDISC_HANDLE(major, 0) */
        uint16_t default_minor; /* class of packets that name none; 0 sends them past all rates ("direct") */
        uint16_t overhead_bytes;
};

/* qdisc_add_htb - the head of a tree; a packet goes to the class that skb->priority names, if it is one of this tree */
int qdisc_add_htb(struct netlink *nl, int index, const struct qdisc_htb *htb, struct err *err);

struct qdisc_htb_class {
        uint32_t
                parent; /* the tree's handle, or a class of it; the kernel takes an unknown one for the tree's handle */
        uint32_t classid; /* QDISC_HANDLE(major of the tree, minor) */
        uint64_t rate_bps;
        uint64_t ceiling_bps; /* 0: as the rate */
        /* What may leave at once after a pause, at the rate and at the ceiling. Tokens beyond it are lost, so it has to
         * bridge the lateness of timers, or the rate is not reached. Rounded down to microseconds at the rate. 0: what
         * the rate brings in 200 us, and two frames of full size. */
        uint32_t burst_bytes, ceiling_burst_bytes;
        uint32_t quantum_bytes; /* how much it sends before another class of its priority may; 0: one frame of full size
                                 */
        uint8_t priority;       /* 0 to 7; 0 is served first */
};

/* qdisc_add_htb_class - a class of a tree; rates are rounded down to whole bytes a second */
int qdisc_add_htb_class(struct netlink *nl, int index, const struct qdisc_htb_class *class, struct err *err);

enum qdisc_fifo_unit { QDISC_PACKETS, QDISC_BYTES };

/* qdisc_add_fifo - a bounded leaf queue that drops what does not fit
 * @parent: QDISC_ROOT or a class without children */
int qdisc_add_fifo(struct netlink *nl, int index, uint32_t parent, uint32_t handle, enum qdisc_fifo_unit unit,
                   uint32_t limit, struct err *err);

/* qdisc_add_clsact - where BPF programs can be attached to what enters and leaves the link, see sys/bpf.h; nothing is
 * done where it is there already */
int qdisc_add_clsact(struct netlink *nl, int index, struct err *err);

/* qdisc_delete - remove a queueing discipline and all below it; the root becomes what the kernel gives by default */
int qdisc_delete(struct netlink *nl, int index, uint32_t parent, struct err *err);

#define QDISC_KIND_MAX 16

/* What a queueing discipline or a class has counted since it was made. */
struct qdisc_counters {
        uint32_t handle; /* of a class: its classid */
        uint32_t parent;
        uint32_t leaf; /* of a class: the handle of the queueing discipline below it, 0 where there is none */
        char kind[QDISC_KIND_MAX];
        bool is_class;
        uint64_t packets,
                bytes; /* of a class: what left it; of a queueing discipline: what entered and was not dropped */
        uint64_t drops, overlimits, requeues;
        uint64_t backlog_packets, backlog_bytes; /* waiting now */
        uint64_t direct_packets;                 /* of an HTB: what went past its classes */
        uint64_t lends, borrows; /* of a class of HTB: packets sent on its own rate, and on its parent's */
};

struct qdisc_list {
        size_t n;
        struct qdisc_counters *items;
};

/* qdisc_read - counters of all queueing disciplines and classes of a link
 * @ret: qdisc_list_done() releases it
 *
 * They are read one after another, not at one instant. Return: 0 or a negative errno.
 */
int qdisc_read(struct netlink *nl, int index, struct qdisc_list *ret, struct err *err);

void qdisc_list_done(struct qdisc_list *list);

#define _cleanup_qdisc_list_ _cleanup_(qdisc_list_done)

/* qdisc_list_find - the queueing discipline or class with that handle; NULL where there is none */
const struct qdisc_counters *qdisc_list_find(const struct qdisc_list *list, uint32_t handle, bool is_class);

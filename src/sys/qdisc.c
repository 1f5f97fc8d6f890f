/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/qdisc.h"

#include <linux/gen_stats.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/route/class.h>
#include <netlink/route/qdisc.h>
#include <netlink/route/qdisc/fifo.h>
#include <netlink/route/qdisc/htb.h>
#include <stdio.h>

#include "sys/netlink-internal.h"

#define WHAT_MAX         128
#define FULL_FRAME_BYTES 1522
#define BRIDGED_USEC     200
#define READ_TRIES       5

DEFINE_CLEANUP(struct rtnl_qdisc *, rtnl_qdisc_put)
#define _cleanup_rtnl_qdisc_ _cleanup_(rtnl_qdisc_put_cleanup)

DEFINE_CLEANUP(struct rtnl_class *, rtnl_class_put)
#define _cleanup_rtnl_class_ _cleanup_(rtnl_class_put_cleanup)

static struct rtnl_qdisc *alloc_qdisc(int index, uint32_t parent, uint32_t handle, const char *kind)
{
        _cleanup_rtnl_qdisc_ struct rtnl_qdisc *qdisc = rtnl_qdisc_alloc();

        if (!qdisc)
                return NULL;
        rtnl_tc_set_ifindex(TC_CAST(qdisc), index);
        rtnl_tc_set_parent(TC_CAST(qdisc), parent);
        rtnl_tc_set_handle(TC_CAST(qdisc), handle);
        if (rtnl_tc_set_kind(TC_CAST(qdisc), kind) < 0)
                return NULL;
        return TAKE_PTR(qdisc);
}

static void describe(char *what, const char *kind, uint32_t handle, int index)
{
        snprintf(what, WHAT_MAX, "cannot add the %s %x:%x to link %d", kind, QDISC_MAJOR(handle), QDISC_MINOR(handle),
                 index);
}

/* A size table without entries: only its overhead is added to each packet's length. */
static int add_overhead(struct nl_msg *msg, uint16_t overhead_bytes)
{
        struct tc_sizespec spec = {.overhead = overhead_bytes, .linklayer = TC_LINKLAYER_ETHERNET};
        struct nlattr *nest = nla_nest_start(msg, TCA_STAB);

        if (!nest || nla_put(msg, TCA_STAB_BASE, sizeof(spec), &spec) < 0)
                return -ENOMEM;
        nla_nest_end(msg, nest);
        return 0;
}

static int send_qdisc(struct netlink *nl, struct rtnl_qdisc *qdisc, uint16_t overhead_bytes, struct err *err)
{
        _cleanup_nlmsg_ struct nl_msg *msg = NULL;
        char what[WHAT_MAX];
        int r;

        describe(what, rtnl_tc_get_kind(TC_CAST(qdisc)), rtnl_tc_get_handle(TC_CAST(qdisc)),
                 rtnl_tc_get_ifindex(TC_CAST(qdisc)));
        r = rtnl_qdisc_build_add_request(qdisc, NLM_F_CREATE | NLM_F_EXCL, &msg);
        if (r < 0)
                return netlink_build_failed(r, what, err);
        if (overhead_bytes && add_overhead(msg, overhead_bytes) < 0)
                return err_set_nomem(err);
        return netlink_request(nl, msg, what, err);
}

int qdisc_add_mq(struct netlink *nl, int index, uint32_t handle, struct err *err)
{
        _cleanup_rtnl_qdisc_ struct rtnl_qdisc *qdisc = alloc_qdisc(index, TC_H_ROOT, handle, "mq");

        return qdisc ? send_qdisc(nl, qdisc, 0, err) : err_set_nomem(err);
}

int qdisc_add_htb(struct netlink *nl, int index, const struct qdisc_htb *htb, struct err *err)
{
        _cleanup_rtnl_qdisc_ struct rtnl_qdisc *qdisc = alloc_qdisc(index, htb->parent, htb->handle, "htb");

        if (!qdisc || rtnl_htb_set_defcls(qdisc, htb->default_minor) < 0)
                return err_set_nomem(err);
        return send_qdisc(nl, qdisc, htb->overhead_bytes, err);
}

int qdisc_add_fifo(struct netlink *nl, int index, uint32_t parent, uint32_t handle, enum qdisc_fifo_unit unit,
                   uint32_t limit, struct err *err)
{
        _cleanup_rtnl_qdisc_ struct rtnl_qdisc *qdisc = NULL;

        qdisc = alloc_qdisc(index, parent, handle, unit == QDISC_BYTES ? "bfifo" : "pfifo");
        if (!qdisc || limit > INT32_MAX || rtnl_qdisc_fifo_set_limit(qdisc, (int)limit) < 0)
                return err_set_nomem(err);
        return send_qdisc(nl, qdisc, 0, err);
}

int qdisc_add_clsact(struct netlink *nl, int index, struct err *err)
{
        _cleanup_rtnl_qdisc_ struct rtnl_qdisc *qdisc = NULL;
        struct err reason = {0};
        int r;

        qdisc = alloc_qdisc(index, TC_H_CLSACT, TC_H_MAKE(TC_H_CLSACT, 0), "clsact");
        if (!qdisc)
                return err_set_nomem(err);
        r = send_qdisc(nl, qdisc, 0, &reason);
        if (r == 0 || r == -EEXIST)
                return 0;
        if (err)
                *err = reason;
        return r;
}

int qdisc_delete(struct netlink *nl, int index, uint32_t parent, struct err *err)
{
        struct tcmsg header = {.tcm_family = AF_UNSPEC, .tcm_ifindex = index, .tcm_parent = parent};
        _cleanup_nlmsg_ struct nl_msg *msg = nlmsg_alloc_simple(RTM_DELQDISC, 0);
        char what[WHAT_MAX];

        if (!msg || nlmsg_append(msg, &header, sizeof(header), NLMSG_ALIGNTO) < 0)
                return err_set_nomem(err);
        snprintf(what, sizeof(what), "cannot remove the queues under %x:%x of link %d", QDISC_MAJOR(parent),
                 QDISC_MINOR(parent), index);
        return netlink_request(nl, msg, what, err);
}

static uint32_t burst_or_default(uint32_t burst_bytes, uint64_t rate_bps)
{
        if (burst_bytes)
                return burst_bytes;
        return (uint32_t)MIN(rate_bps / 8 * BRIDGED_USEC / 1000000 + UINT64_C(2) * FULL_FRAME_BYTES,
                             (uint64_t)INT32_MAX);
}

int qdisc_add_htb_class(struct netlink *nl, int index, const struct qdisc_htb_class *class, struct err *err)
{
        uint64_t ceiling_bps = class->ceiling_bps ? class->ceiling_bps : class->rate_bps;
        _cleanup_rtnl_class_ struct rtnl_class *c = rtnl_class_alloc();
        _cleanup_nlmsg_ struct nl_msg *msg = NULL;
        char what[WHAT_MAX];
        int r;

        if (!c)
                return err_set_nomem(err);
        describe(what, "class", class->classid, index);
        if (class->rate_bps < 8 || ceiling_bps < class->rate_bps || class->priority >= TC_HTB_NUMPRIO)
                return err_set(err, ERR_USAGE, EINVAL,
                               "%s: the rate must be at least 8 bit/s and at most the ceiling, the priority at most %d",
                               what, TC_HTB_NUMPRIO - 1);
        rtnl_tc_set_ifindex(TC_CAST(c), index);
        rtnl_tc_set_parent(TC_CAST(c), class->parent);
        rtnl_tc_set_handle(TC_CAST(c), class->classid);
        r = rtnl_tc_set_kind(TC_CAST(c), "htb");
        if (r == 0)
                r = rtnl_htb_set_rate64(c, class->rate_bps / 8);
        if (r == 0)
                r = rtnl_htb_set_ceil64(c, ceiling_bps / 8);
        if (r == 0)
                r = rtnl_htb_set_rbuffer(c, burst_or_default(class->burst_bytes, class->rate_bps));
        if (r == 0)
                r = rtnl_htb_set_cbuffer(c, burst_or_default(class->ceiling_burst_bytes, ceiling_bps));
        if (r == 0)
                r = rtnl_htb_set_quantum(c, class->quantum_bytes ? class->quantum_bytes : FULL_FRAME_BYTES);
        if (r == 0)
                r = rtnl_htb_set_prio(c, class->priority);
        if (r == 0)
                r = rtnl_class_build_add_request(c, NLM_F_CREATE | NLM_F_EXCL, &msg);
        if (r < 0)
                return netlink_build_failed(r, what, err);
        return netlink_request(nl, msg, what, err);
}

struct reader {
        int index;
        size_t n_allocated;
        struct qdisc_list list;
};

static void parse_stats(struct nlattr *nest, struct qdisc_counters *c)
{
        struct nlattr *attrs[TCA_STATS_MAX + 1];
        struct gnet_stats_basic basic = {0};
        struct gnet_stats_queue queue = {0};
        struct tc_htb_xstats htb = {0};

        if (nla_parse_nested(attrs, TCA_STATS_MAX, nest, NULL) < 0)
                return;
        if (attrs[TCA_STATS_BASIC])
                nla_memcpy(&basic, attrs[TCA_STATS_BASIC], sizeof(basic));
        if (attrs[TCA_STATS_QUEUE])
                nla_memcpy(&queue, attrs[TCA_STATS_QUEUE], sizeof(queue));
        c->packets = attrs[TCA_STATS_PKT64] ? nla_get_u64(attrs[TCA_STATS_PKT64]) : basic.packets;
        c->bytes = basic.bytes;
        c->drops = queue.drops;
        c->overlimits = queue.overlimits;
        c->requeues = queue.requeues;
        c->backlog_packets = queue.qlen;
        c->backlog_bytes = queue.backlog;
        if (c->is_class && streq(c->kind, "htb") && attrs[TCA_STATS_APP]) {
                nla_memcpy(&htb, attrs[TCA_STATS_APP], sizeof(htb));
                c->lends = htb.lends;
                c->borrows = htb.borrows;
        }
}

static uint64_t parse_direct_packets(struct nlattr *options)
{
        struct nlattr *attrs[TCA_HTB_MAX + 1];
        struct tc_htb_glob head = {0};

        if (nla_parse_nested(attrs, TCA_HTB_MAX, options, NULL) < 0 || !attrs[TCA_HTB_INIT])
                return 0;
        nla_memcpy(&head, attrs[TCA_HTB_INIT], sizeof(head));
        return head.direct_pkts;
}

static int parse_counters(struct nlmsghdr *hdr, void *userdata)
{
        struct nlattr *attrs[TCA_MAX + 1];
        struct reader *reader = userdata;
        const struct tcmsg *header;
        struct qdisc_counters *c;

        if (nlmsg_parse(hdr, sizeof(*header), attrs, TCA_MAX, NULL) < 0)
                return -EBADMSG;
        header = nlmsg_data(hdr);
        if (header->tcm_ifindex != reader->index) /* queueing disciplines of all links are told */
                return 0;
        if (reader->list.n == reader->n_allocated) {
                size_t n = MAX(2 * reader->n_allocated, (size_t)16);

                c = reallocarray(reader->list.items, n, sizeof(*c));
                if (!c)
                        return -ENOMEM;
                reader->list.items = c;
                reader->n_allocated = n;
        }
        c = &reader->list.items[reader->list.n++];
        *c = (struct qdisc_counters){
                .handle = header->tcm_handle,
                .parent = header->tcm_parent,
                .is_class = hdr->nlmsg_type == RTM_NEWTCLASS,
        };
        if (c->is_class)
                c->leaf = header->tcm_info;
        if (attrs[TCA_KIND])
                nla_strlcpy(c->kind, attrs[TCA_KIND], sizeof(c->kind));
        if (attrs[TCA_STATS2])
                parse_stats(attrs[TCA_STATS2], c);
        if (!c->is_class && streq(c->kind, "htb") && attrs[TCA_OPTIONS])
                c->direct_packets = parse_direct_packets(attrs[TCA_OPTIONS]);
        return 0;
}

static int dump(struct netlink *nl, int type, struct reader *reader, struct err *err)
{
        struct tcmsg header = {.tcm_family = AF_UNSPEC, .tcm_ifindex = reader->index};
        _cleanup_nlmsg_ struct nl_msg *msg = nlmsg_alloc_simple(type, NLM_F_DUMP);
        char what[WHAT_MAX];

        if (!msg || nlmsg_append(msg, &header, sizeof(header), NLMSG_ALIGNTO) < 0)
                return err_set_nomem(err);
        snprintf(what, sizeof(what), "cannot read the queues of link %d", reader->index);
        return netlink_query(nl, msg, parse_counters, reader, what, err);
}

int qdisc_read(struct netlink *nl, int index, struct qdisc_list *ret, struct err *err)
{
        struct reader reader = {.index = index};
        int r;

        for (unsigned tries = READ_TRIES;; tries--) {
                reader.list.n = 0;
                r = dump(nl, RTM_GETQDISC, &reader, err);
                if (r == 0)
                        r = dump(nl, RTM_GETTCLASS, &reader, err);
                if (r != -EINTR || tries == 1)
                        break;
        }
        if (r < 0) {
                qdisc_list_done(&reader.list);
                return r;
        }
        *ret = reader.list;
        return 0;
}

void qdisc_list_done(struct qdisc_list *list)
{
        free(list->items);
        *list = (struct qdisc_list){0};
}

const struct qdisc_counters *qdisc_list_find(const struct qdisc_list *list, uint32_t handle, bool is_class)
{
        for (size_t i = 0; i < list->n; i++)
                if (list->items[i].handle == handle && list->items[i].is_class == is_class)
                        return &list->items[i];
        return NULL;
}

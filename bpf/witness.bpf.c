/* SPDX-License-Identifier: Apache-2.0 */

/* Looks on where the processes of one network namespace ask for a target: connect(), and sending to an address without
 * it. That is in the process itself, before there is any packet, so who it is is known for certain. Nothing is decided
 * here: every program lets everything go on. A question is reported as long as nobody has said that it is known; a
 * known one is counted, so that a program which asks the same again and again wakes nobody. */

#include <linux/bpf.h>
#include <linux/in.h>
#include <linux/tcp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "bpf/witness.h"

#define GO_ON    1
#define FAMILY_4 2 /* AF_INET */
#define TCP_FIN  0x01

const volatile struct witness_scope scope = {};

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, 1);
        __type(key, __u32);
        __type(value, struct witness_place);
} place SEC(".maps");

/* How often a known question was asked since. */
struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, WITNESS_KNOWN_MAX);
        __uint(map_flags, BPF_F_NO_PREALLOC);
        __type(key, struct witness_question);
        __type(value, __u64);
} known SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_RINGBUF);
        __uint(max_entries, WITNESS_RING_BYTES);
} reports SEC(".maps");

/* Reports that found no room, and flows that found none in the table. */
struct {
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
        __uint(max_entries, 2);
        __type(key, __u32);
        __type(value, __u64);
} lost SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, WITNESS_TARGETS_MAX);
        __uint(map_flags, BPF_F_NO_PREALLOC);
        __type(key, struct witness_target);
        __type(value, struct witness_flows);
} flows SEC(".maps");

static __always_inline void lose(__u32 what)
{
        __u64 *n = bpf_map_lookup_elem(&lost, &what);

        if (n)
                ++*n;
}

static __always_inline void set_v6(struct witness_target *to, __u32 a, __u32 b, __u32 c, __u32 d)
{
        if (a == 0 && b == 0 && c == bpf_htonl(0xffff)) {
                to->version = 4;
                to->address[0] = d;
                return;
        }
        to->version = 6;
        to->address[0] = a;
        to->address[1] = b;
        to->address[2] = c;
        to->address[3] = d;
}

static __always_inline int note(struct witness_question *question)
{
        struct witness_report *report;
        struct witness_place *where;
        struct bpf_pidns_info inner = {};
        __u32 first = 0;
        __u64 *times;

        question->pid = bpf_get_current_pid_tgid() >> 32;
        times = bpf_map_lookup_elem(&known, question);
        if (times) {
                __sync_fetch_and_add(times, 1);
                return GO_ON;
        }
        report = bpf_ringbuf_reserve(&reports, sizeof(*report), 0);
        if (!report) {
                lose(0);
                return GO_ON;
        }
        where = bpf_map_lookup_elem(&place, &first);
        if (where)
                bpf_get_ns_current_pid_tgid(where->pid_ns_dev, where->pid_ns_inode, &inner, sizeof(inner));
        report->question = *question;
        report->inner_pid = inner.tgid;
        bpf_get_current_comm(report->comm, sizeof(report->comm));
        bpf_ringbuf_submit(report, 0);
        return GO_ON;
}

static __always_inline int note_v4(struct bpf_sock_addr *ctx)
{
        struct witness_question question = {};

        if (bpf_get_netns_cookie(ctx) != scope.netns_cookie)
                return GO_ON;
        question.to.version = 4;
        question.to.protocol = ctx->protocol;
        question.to.port = ctx->user_port;
        question.to.address[0] = ctx->user_ip4;
        return note(&question);
}

static __always_inline int note_v6(struct bpf_sock_addr *ctx)
{
        struct witness_question question = {};

        if (bpf_get_netns_cookie(ctx) != scope.netns_cookie)
                return GO_ON;
        question.to.protocol = ctx->protocol;
        question.to.port = ctx->user_port;
        set_v6(&question.to, ctx->user_ip6[0], ctx->user_ip6[1], ctx->user_ip6[2], ctx->user_ip6[3]);
        return note(&question);
}

SEC("cgroup/connect4")
int witness_connect4(struct bpf_sock_addr *ctx)
{
        return note_v4(ctx);
}

SEC("cgroup/connect6")
int witness_connect6(struct bpf_sock_addr *ctx)
{
        return note_v6(ctx);
}

SEC("cgroup/sendmsg4")
int witness_sendmsg4(struct bpf_sock_addr *ctx)
{
        return note_v4(ctx);
}

SEC("cgroup/sendmsg6")
int witness_sendmsg6(struct bpf_sock_addr *ctx)
{
        return note_v6(ctx);
}

/* The kernel counts a SYN and a FIN as a byte each, of what was sent when it was acknowledged. Whose FIN has passed is
 * told by the state that is left, but for FIN-WAIT-2: there the packets that still come are looked at, and this flag of
 * the socket, which means nothing else here, says that a FIN was among them. */
#define SAW_FIN BPF_SOCK_OPS_RTO_CB_FLAG
#define LOOKS   BPF_SOCK_OPS_PARSE_ALL_HDR_OPT_CB_FLAG

static __always_inline int was_sent_fin_acknowledged(int old_state)
{
        return old_state == BPF_TCP_FIN_WAIT2 || old_state == BPF_TCP_LAST_ACK || old_state == BPF_TCP_CLOSING;
}

static __always_inline int was_fin_received(int old_state, __u32 flags)
{
        return old_state == BPF_TCP_CLOSE_WAIT || old_state == BPF_TCP_LAST_ACK || old_state == BPF_TCP_CLOSING ||
               flags & SAW_FIN;
}

static __always_inline __u64 less(__u64 n, __u64 by)
{
        return n > by ? n - by : 0;
}

/* What a connection has moved is known when it is closed. */
static __always_inline void count_flow(struct bpf_sock_ops *ops)
{
        struct witness_flows one = {.n = 1}, *there;
        struct witness_target to = {};
        int old_state = ops->args[0];

        one.sent_bytes = less(ops->bytes_acked, 1 + was_sent_fin_acknowledged(old_state));
        one.received_bytes = less(ops->bytes_received, was_fin_received(old_state, ops->bpf_sock_ops_cb_flags));
        to.protocol = IPPROTO_TCP;
        to.port = bpf_htons(bpf_ntohl(ops->remote_port));
        if (ops->family == FAMILY_4) {
                to.version = 4;
                to.address[0] = ops->remote_ip4;
        } else {
                set_v6(&to, ops->remote_ip6[0], ops->remote_ip6[1], ops->remote_ip6[2], ops->remote_ip6[3]);
        }
        there = bpf_map_lookup_elem(&flows, &to);
        if (!there) {
                if (bpf_map_update_elem(&flows, &to, &one, BPF_NOEXIST) == 0)
                        return;
                there = bpf_map_lookup_elem(&flows, &to); /* another processor was first, or the table is full */
        }
        if (!there) {
                lose(1);
                return;
        }
        __sync_fetch_and_add(&there->n, 1);
        __sync_fetch_and_add(&there->sent_bytes, one.sent_bytes);
        __sync_fetch_and_add(&there->received_bytes, one.received_bytes);
}

static __always_inline void on_state(struct bpf_sock_ops *ops)
{
        if (ops->args[1] == BPF_TCP_CLOSE)
                count_flow(ops);
        else if (ops->args[1] == BPF_TCP_FIN_WAIT1)
                bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | LOOKS);
}

SEC("sockops")
int witness_flow(struct bpf_sock_ops *ops)
{
        switch (ops->op) {
        case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
                if (bpf_get_netns_cookie(ops) == scope.netns_cookie)
                        bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG);
                break;
        case BPF_SOCK_OPS_STATE_CB:
                on_state(ops);
                break;
        case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
                if (ops->skb_tcp_flags & TCP_FIN)
                        bpf_sock_ops_cb_flags_set(ops, (ops->bpf_sock_ops_cb_flags & ~LOOKS) | SAW_FIN);
        }
        return GO_ON;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sandbox/enforcer.h"
#include "sandbox/names.h"
#include "sandbox/policy.h"
#include "sandbox/quota.h"
#include "sandbox/refusals.h"
#include "sys/loop.h"
#include "sys/nft.h"

/* The proxy: what N's rules let out comes to listeners of the supervisor, which has its other foot in the host's
 * network namespace. Both families are at index 0 (IPv4) and 1 (IPv6); IPv6 may be missing. */

#define PROXY_PORT         899
#define PROXY_BUFFER_BYTES ((size_t)64 * 1024)

/* Flows at once: TCP takes two descriptors, UDP one. They share what this process may have, but for an eighth, or
 * PROXY_OTHER_MAX, that is for names and pipes. */
#define PROXY_TCP_MAX   ((size_t)20000)
#define PROXY_UDP_MAX   ((size_t)4096)
#define PROXY_UDP_KEPT  ((size_t)64) /* at most: that connections leave to datagrams */
#define PROXY_OTHER_MAX ((size_t)160)
#define PROXY_PIPES_MAX ((size_t)16)

struct tcp_flow;
struct udp_flow;

#define UDP_BUCKETS      1024
#define PROXY_PIPE_BYTES (1024 * 1024) /* asked for; the kernel may give less */

/* A listening socket of N. */
struct proxy_entry {
        struct proxy *proxy;
        int fd; /* -1: none */
        struct loop_io io;
};

/* Bytes of one direction on their way through the kernel. */
struct proxy_pipe {
        struct proxy_pipe *next; /* of those that are free */
        int fds[2];
};

struct proxy {
        struct sandbox *sandbox;
        struct nft *nft;
        struct refusals *refusals;
        struct names *names;
        struct policy_range *ranges;
        size_t n_ranges;
        struct port_set localhost;
        struct quotas *quotas;
        uint16_t control_port; /* of this host's loopback, open for the proof; 0: none */

        struct proxy_entry listeners[2];
        struct loop_timer accept_timer; /* while the kernel has no memory to accept more */
        int spare_fd;                   /* to refuse with where there is no other; -1: none */
        struct tcp_flow *tcp_flows;
        size_t n_tcp_flows, tcp_flows_max;
        size_t descriptors_max; /* of all flows */
        size_t held_bytes;      /* of what clients said and the inspector cannot tell yet */
        struct proxy_pipe *pipes_free;
        size_t n_pipes, pipes_max;

        struct proxy_entry datagrams[2];
        int raws[2]; /* to answer with, from any address; -1: none */
        struct udp_flow *udp_buckets[UDP_BUCKETS];
        struct udp_flow *udp_newest, *udp_oldest;
        size_t n_udp_flows, udp_flows_max;
        struct loop_timer udp_timer;

        uint8_t buffer[PROXY_BUFFER_BYTES]; /* of whoever reads and writes at once */
};

/* Where a flow goes. */
struct destination {
        enum transport transport;
        struct ip_prefix address;
        uint16_t port;
};

/* destination_read - from what the kernel says of a redirected packet or connection; false for another family */
bool destination_read(enum transport transport, const struct sockaddr_storage *from, struct destination *ret);

/* proxy_decide - whether @to may be reached, under any of the names that its address is pinned for, or none
 * @sni, @http_host: as in struct target
 * @ret_by_name:     it is a name that it is allowed for; may be NULL
 * @ret:             of the outcome
 */
enum policy_outcome proxy_decide(const struct proxy *proxy, const struct destination *to, const char *sni,
                                 const char *http_host, bool *ret_by_name, struct decision *ret);

/* proxy_tell - tell and record what became of an attempt
 * @from: the command's end; NULL: not known
 * @why:  instead of the decision's rule; NULL: that rule
 */
void proxy_tell(const struct proxy *proxy, const struct destination *from, const struct destination *to,
                const struct decision *decision, bool allowed, const char *why);

/* proxy_open_flow - count one more flow to @to, and tell where a limit refuses it. Return: as quota_open(). */
int proxy_open_flow(struct proxy *proxy, const struct destination *to, struct quota_flow *flow);

/* proxy_count - record the payload of a flow that has ended */
void proxy_count(const struct proxy *proxy, const struct destination *to, uint64_t sent, uint64_t received);

/* ---- pipes for splice (proxy-pipe.c) ---- */

/* proxy_pipe_take - Return: one that is empty; NULL where all are in use, or there are no descriptors: then bytes are
 * copied */
struct proxy_pipe *proxy_pipe_take(struct proxy *proxy);

/* proxy_pipe_give - take it back; NULL is accepted. With bytes of a flow that has ended in it, no other may have it. */
void proxy_pipe_give(struct proxy *proxy, struct proxy_pipe *pipe, bool is_empty);

/* proxy_pipes_close - close those that nobody has */
void proxy_pipes_close(struct proxy *proxy);

/* ---- TCP (proxy-tcp.c), UDP (proxy-udp.c) ---- */

/* proxy_tcp_open, proxy_udp_open - make the listening sockets; inside N */
int proxy_tcp_open(struct proxy *proxy, struct err *err);
int proxy_udp_open(struct proxy *proxy, struct err *err);

/* proxy_tcp_serve, proxy_udp_serve - move what comes to them; in the supervisor */
int proxy_tcp_serve(struct proxy *proxy, struct err *err);
int proxy_udp_serve(struct proxy *proxy, struct err *err);

/* proxy_udp_end_oldest - end the flow that was not used for longest; there must be one */
void proxy_udp_end_oldest(struct proxy *proxy);

/* proxy_udp_end - end every flow of datagrams; what comes next begins new ones */
void proxy_udp_end(struct proxy *proxy);

/* proxy_tcp_close, proxy_udp_close - end every flow, and close the sockets */
void proxy_tcp_close(struct proxy *proxy);
void proxy_udp_close(struct proxy *proxy);

/* proxy_listen - a transparent socket at PROXY_PORT of a family; inside N. Return: a descriptor or a negative errno. */
int proxy_listen(int family, int type);

/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/sockdiag.h"

#include <arpa/inet.h>
#include <linux/bpf.h> /* names of TCP's states, which do not go together with linux/tcp.h elsewhere */
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/macro.h"
#include "base/span.h"

#define ANSWER_BYTES ((size_t)32 * 1024) /* what the kernel fills at most in one part of an answer */

#define TCP_STATES_OPEN                                                                                                \
        (1u << BPF_TCP_ESTABLISHED | 1u << BPF_TCP_SYN_SENT | 1u << BPF_TCP_SYN_RECV | 1u << BPF_TCP_FIN_WAIT1 |       \
         1u << BPF_TCP_FIN_WAIT2 | 1u << BPF_TCP_CLOSE_WAIT | 1u << BPF_TCP_LAST_ACK | 1u << BPF_TCP_CLOSING)

struct request {
        struct nlmsghdr header;
        struct inet_diag_req_v2 body;
};

struct dump {
        int (*fn)(const struct ip_prefix *remote, void *userdata);
        void (*flow_fn)(const struct sockdiag_flow *flow, void *userdata); /* instead of @fn */
        void *userdata;
        int result; /* of @fn; once it is negative, what comes is only read */
        bool is_done;
};

static struct ip_prefix remote_of(const struct inet_diag_msg *socket)
{
        static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
        struct ip_prefix remote = {.family = socket->idiag_family};
        const uint8_t *octets = (const uint8_t *)socket->id.idiag_dst;

        if (remote.family == AF_INET6 && memcmp(octets, mapped, sizeof(mapped)) == 0) {
                remote.family = AF_INET;
                octets += sizeof(mapped);
        }
        remote.length_bits = remote.family == AF_INET ? 32 : 128;
        memcpy(remote.bytes, octets, remote.length_bits / 8);
        return remote;
}

static bool is_unspecified(const struct ip_prefix *address)
{
        static const uint8_t zeros[16];

        return memcmp(address->bytes, zeros, sizeof(zeros)) == 0;
}

/* What a FIN adds to what was received is told by the state that it leads to. */
static bool has_fin(uint8_t state)
{
        return state == BPF_TCP_CLOSE_WAIT || state == BPF_TCP_LAST_ACK || state == BPF_TCP_CLOSING;
}

/* A connection that only waits for the far end's FIN may be kept without what it has moved. */
static void take_flow(const struct dump *dump, const struct nlmsghdr *header, const struct ip_prefix *remote)
{
        const struct inet_diag_msg *socket = NLMSG_DATA(header);
        const struct rtattr *attr = (const struct rtattr *)(socket + 1);
        int rest = (int)(header->nlmsg_len - NLMSG_LENGTH(sizeof(*socket)));
        struct sockdiag_flow flow = {.remote = *remote, .port = ntohs(socket->id.idiag_dport)};
        struct tcp_info info = {0};

        for (; RTA_OK(attr, rest); attr = RTA_NEXT(attr, rest)) {
                if (attr->rta_type != INET_DIAG_INFO)
                        continue;
                memcpy(&info, RTA_DATA(attr), MIN(RTA_PAYLOAD(attr), sizeof(info)));
                flow.sent_bytes = info.tcpi_bytes_sent - MIN(info.tcpi_bytes_retrans, info.tcpi_bytes_sent);
                flow.received_bytes = info.tcpi_bytes_received;
                flow.received_bytes -= flow.received_bytes > 0 && has_fin(socket->idiag_state);
                dump->flow_fn(&flow, dump->userdata);
        }
}

/* One message of an answer. Return: 0, or the kernel's negative errno. */
static int take_message(struct dump *dump, const struct nlmsghdr *header)
{
        const struct inet_diag_msg *socket = NLMSG_DATA(header);
        const struct nlmsgerr *failure = NLMSG_DATA(header);
        struct ip_prefix remote;

        if (header->nlmsg_type == NLMSG_DONE) {
                dump->is_done = true;
                return 0;
        }
        if (header->nlmsg_type == NLMSG_ERROR)
                return header->nlmsg_len >= NLMSG_LENGTH(sizeof(*failure)) && failure->error < 0 ? failure->error
                                                                                                 : -EPROTO;
        if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY || header->nlmsg_len < NLMSG_LENGTH(sizeof(*socket)))
                return 0;
        remote = remote_of(socket);
        if (dump->flow_fn)
                take_flow(dump, header, &remote);
        else if (dump->result == 0 && !is_unspecified(&remote))
                dump->result = MIN(dump->fn(&remote, dump->userdata), 0);
        return 0;
}

static int dump_sockets(int fd, int family, int protocol, struct dump *dump)
{
        struct request request = {
                .header = {.nlmsg_len = sizeof(request),
                           .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                           .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
                .body = {.sdiag_family = (uint8_t)family,
                         .sdiag_protocol = (uint8_t)protocol,
                         .idiag_ext = dump->flow_fn ? 1 << (INET_DIAG_INFO - 1) : 0,
                         .idiag_states = protocol == IPPROTO_TCP ? TCP_STATES_OPEN : UINT32_MAX},
        };
        _cleanup_free_ uint8_t *answer = malloc(ANSWER_BYTES);
        int r = 0;

        if (!answer)
                return -ENOMEM;
        if (send(fd, &request, sizeof(request), 0) < 0)
                return -errno;
        dump->is_done = false;
        while (r == 0 && !dump->is_done) {
                ssize_t len = recv(fd, answer, ANSWER_BYTES, 0);

                if (len < 0)
                        return -errno;
                for (struct nlmsghdr *h = (void *)answer; r == 0 && NLMSG_OK(h, len); h = NLMSG_NEXT(h, len))
                        r = take_message(dump, h);
        }
        return r;
}

int sockdiag_open(struct err *err)
{
        int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

        return fd < 0 ? err_set_errno(err, ERR_UNSUPPORTED, errno, "cannot ask the kernel which sockets are open") : fd;
}

int sockdiag_inode(int fd, int protocol, const struct ip_prefix *local, uint16_t local_port,
                   const struct ip_prefix *remote, uint16_t remote_port, uint32_t *ret)
{
        struct request request = {
                .header = {.nlmsg_len = sizeof(request),
                           .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                           .nlmsg_flags = NLM_F_REQUEST},
                .body = {.sdiag_family = (uint8_t)local->family,
                         .sdiag_protocol = (uint8_t)protocol,
                         .idiag_states = UINT32_MAX,
                         .id = {.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
        };
        struct inet_diag_sockid *id = &request.body.id;
        bool swaps = protocol == IPPROTO_UDP; /* the kernel looks for who gets a datagram from there */
        uint8_t answer[1024] __attribute__((aligned(NLMSG_ALIGNTO)));
        const struct nlmsghdr *header = (const struct nlmsghdr *)answer;
        const struct inet_diag_msg *socket = NLMSG_DATA(header);
        ssize_t len;

        id->idiag_sport = htons(swaps ? remote_port : local_port);
        id->idiag_dport = htons(swaps ? local_port : remote_port);
        memcpy(id->idiag_src, swaps ? remote->bytes : local->bytes, sizeof(id->idiag_src));
        memcpy(id->idiag_dst, swaps ? local->bytes : remote->bytes, sizeof(id->idiag_dst));
        if (send(fd, &request, sizeof(request), 0) < 0)
                return -errno;
        len = recv(fd, answer, sizeof(answer), 0);
        if (len < 0)
                return -errno;
        if (!NLMSG_OK(header, len) || header->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
            header->nlmsg_len < NLMSG_LENGTH(sizeof(*socket)) || socket->idiag_inode == 0)
                return -ENOENT;
        *ret = socket->idiag_inode;
        return 0;
}

static int cannot_list(int r, struct err *err)
{
        if (r == -ENOENT || r == -EOPNOTSUPP)
                return err_set(err, ERR_UNSUPPORTED, EOPNOTSUPP,
                               "this kernel does not tell which sockets are open (INET_DIAG, INET_TCP_DIAG, "
                               "INET_UDP_DIAG)");
        return err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot list the sockets of a network namespace");
}

int sockdiag_flows(int fd, void (*fn)(const struct sockdiag_flow *flow, void *userdata), void *userdata,
                   struct err *err)
{
        struct dump dump = {.flow_fn = fn, .userdata = userdata};
        int r;

        r = dump_sockets(fd, AF_INET, IPPROTO_TCP, &dump);
        if (r == 0)
                r = dump_sockets(fd, AF_INET6, IPPROTO_TCP, &dump);
        return r < 0 ? cannot_list(r, err) : 0;
}

int sockdiag_remotes(int fd, int (*fn)(const struct ip_prefix *remote, void *userdata), void *userdata, struct err *err)
{
        static const int families[] = {AF_INET, AF_INET6}, protocols[] = {IPPROTO_TCP, IPPROTO_UDP};
        struct dump dump = {.fn = fn, .userdata = userdata};
        int r = 0;

        for (size_t i = 0; r == 0 && dump.result == 0 && i < ARRAY_SIZE(families) * ARRAY_SIZE(protocols); i++)
                r = dump_sockets(fd, families[i / 2], protocols[i % 2], &dump);
        return r < 0 ? cannot_list(r, err) : dump.result;
}

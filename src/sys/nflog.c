/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/nflog.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/socket.h>
#include <sys/socket.h>

#include "base/macro.h"
#include "sys/netlink-internal.h"

#define BUFFER_BYTES   8192 /* more than one report, which comes alone and has a packet's first bytes only */
#define RECEIVE_BUFFER (1 << 20)

struct nflog {
        struct nl_sock *sock;
        char buffer[BUFFER_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
        int len; /* of what was received and is not given out yet */
        struct nlmsghdr *next;
};

static int connect_here(void *userdata, struct err *err)
{
        struct nflog *log = userdata;
        int r;

        r = nl_connect(log->sock, NETLINK_NETFILTER);
        if (r < 0)
                return err_set(err, ERR_ENVIRONMENT, EIO, "cannot connect to the kernel's packet log: %s",
                               nl_geterror(r));
        return 0;
}

/* One setting of the group, acknowledged. */
static int configure(struct nflog *log, uint16_t group, int attribute, const void *value, int len, struct err *err)
{
        struct nfgenmsg header = {.nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(group)};
        _cleanup_nlmsg_ struct nl_msg *msg = NULL;
        int r;

        msg = nlmsg_alloc_simple((NFNL_SUBSYS_ULOG << 8) | NFULNL_MSG_CONFIG, NLM_F_REQUEST | NLM_F_ACK);
        if (!msg || nlmsg_append(msg, &header, sizeof(header), NLMSG_ALIGNTO) < 0 ||
            nla_put(msg, attribute, len, value) < 0)
                return err_set_nomem(err);
        r = nl_send_auto(log->sock, msg);
        if (r >= 0)
                r = nl_wait_for_ack(log->sock);
        if (r >= 0)
                return 0;
        if (r == -NLE_PERM)
                return err_set(
                        err, ERR_UNSUPPORTED, EPERM,
                        "group %u of the packet log has another listener, or CAP_NET_ADMIN over its namespace is "
                        "missing",
                        group);
        return err_set(err, ERR_UNSUPPORTED, EOPNOTSUPP, "the kernel's packet log refuses: %s", nl_geterror(r));
}

static int bind_group(struct nflog *log, uint16_t group, uint32_t copy_bytes, struct err *err)
{
        struct nfulnl_msg_config_cmd bind = {.command = NFULNL_CFG_CMD_BIND};
        struct nfulnl_msg_config_mode mode = {.copy_range = htonl(copy_bytes), .copy_mode = NFULNL_COPY_PACKET};
        uint32_t at_once = htonl(1);
        int r;

        r = configure(log, group, NFULA_CFG_CMD, &bind, sizeof(bind), err);
        if (r == 0)
                r = configure(log, group, NFULA_CFG_MODE, &mode, sizeof(mode), err);
        if (r == 0)
                r = configure(log, group, NFULA_CFG_QTHRESH, &at_once, sizeof(at_once), err);
        return r;
}

int nflog_open(const struct netns *ns, uint16_t group, uint32_t copy_bytes, struct nflog **ret, struct err *err)
{
        _cleanup_nflog_ struct nflog *log = calloc(1, sizeof(*log));
        int r;

        if (!log)
                return err_set_nomem(err);
        log->sock = nl_socket_alloc();
        if (!log->sock)
                return err_set_nomem(err);
        r = ns ? netns_run(ns, connect_here, log, err) : connect_here(log, err);
        if (r == 0)
                r = bind_group(log, group, MIN(copy_bytes, (uint32_t)BUFFER_BYTES / 2), err);
        if (r < 0)
                return r;
        nl_socket_set_buffer_size(log->sock, RECEIVE_BUFFER, 0); /* the default will do where that is refused */
        if (nl_socket_set_nonblocking(log->sock) < 0)
                return err_set(err, ERR_ENVIRONMENT, EIO, "cannot read the packet log without waiting");
        *ret = TAKE_PTR(log);
        return 0;
}

void nflog_free(struct nflog *log)
{
        if (!log)
                return;
        nl_socket_free(log->sock);
        free(log);
}

int nflog_fd(const struct nflog *log)
{
        return nl_socket_get_fd(log->sock);
}

static bool is_packet(const struct nlmsghdr *hdr)
{
        return hdr->nlmsg_type == ((NFNL_SUBSYS_ULOG << 8) | NFULNL_MSG_PACKET) &&
               nlmsg_datalen(hdr) >= (int)sizeof(struct nfgenmsg);
}

static void read_packet(struct nlmsghdr *hdr, struct nflog_packet *ret)
{
        struct nlattr *attr;
        int rest;

        *ret = (struct nflog_packet){0};
        nlmsg_for_each_attr(attr, hdr, sizeof(struct nfgenmsg), rest)
        {
                if (nla_type(attr) == NFULA_PAYLOAD) {
                        ret->bytes = span_of(nla_data(attr), (size_t)nla_len(attr));
                } else if (nla_type(attr) == NFULA_UID && nla_len(attr) >= 4) {
                        ret->has_uid = true;
                        ret->uid = get_be32(nla_data(attr));
                }
        }
}

int nflog_read(struct nflog *log, struct nflog_packet *ret)
{
        ssize_t n;

        for (;;) {
                while (log->len > 0 && nlmsg_ok(log->next, log->len)) {
                        struct nlmsghdr *hdr = log->next;

                        log->next = nlmsg_next(hdr, &log->len);
                        if (!is_packet(hdr))
                                continue;
                        read_packet(hdr, ret);
                        return 1;
                }
                log->len = 0;
                n = recv(nflog_fd(log), log->buffer, sizeof(log->buffer), MSG_DONTWAIT);
                if (n < 0)
                        return errno == EAGAIN ? 0 : -errno;
                log->len = (int)n;
                log->next = (struct nlmsghdr *)log->buffer;
        }
}

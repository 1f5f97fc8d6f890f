/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/handlers.h>
#include <netlink/socket.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "sys/netlink-internal.h"

struct netlink {
        struct nl_sock *sock;
};

struct exchange {
        int (*fn)(struct nlmsghdr *hdr, void *userdata);
        void *userdata;
        int result; /* of fn, or the kernel's negative errno */
        char reason[256];
        bool is_done, is_interrupted;
};

DEFINE_CLEANUP(struct nl_cb *, nl_cb_put)
#define _cleanup_nl_cb_ _cleanup_(nl_cb_put_cleanup)

static int connect_socket(void *userdata, struct err *err)
{
        struct netlink *nl = userdata;
        int yes = 1, r;

        r = nl_connect(nl->sock, NETLINK_ROUTE);
        if (r < 0)
                return err_set(err, ERR_ENVIRONMENT, EIO, "cannot connect to the kernel's netlink: %s", nl_geterror(r));
        /* Older kernels lack these; then reasons are shorter. */
        setsockopt(nl_socket_get_fd(nl->sock), SOL_NETLINK, NETLINK_EXT_ACK, &yes, sizeof(yes));
        setsockopt(nl_socket_get_fd(nl->sock), SOL_NETLINK, NETLINK_CAP_ACK, &yes, sizeof(yes));
        return 0;
}

int netlink_open(const struct netns *ns, struct netlink **ret, struct err *err)
{
        _cleanup_netlink_ struct netlink *nl = NULL;
        int r;

        nl = calloc(1, sizeof(*nl));
        if (!nl)
                return err_set_nomem(err);
        nl->sock = nl_socket_alloc();
        if (!nl->sock)
                return err_set_nomem(err);
        r = ns ? netns_run(ns, connect_socket, nl, err) : connect_socket(nl, err);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(nl);
        return 0;
}

void netlink_free(struct netlink *nl)
{
        if (!nl)
                return;
        nl_socket_free(nl->sock);
        free(nl);
}

/* The kernel's words stand in attributes behind the error; behind the copy of the request where that was not left out.
 */
static void read_reason(const struct nlmsghdr *hdr, const struct nlmsgerr *error, struct exchange *x)
{
        size_t offset = NLMSG_HDRLEN + sizeof(*error);
        const struct nlattr *text;

        if (!(hdr->nlmsg_flags & NLM_F_ACK_TLVS))
                return;
        if (!(hdr->nlmsg_flags & NLM_F_CAPPED)) {
                if (error->msg.nlmsg_len < NLMSG_HDRLEN)
                        return;
                offset += NLMSG_ALIGN(error->msg.nlmsg_len) - NLMSG_HDRLEN;
        }
        if (offset >= hdr->nlmsg_len)
                return;
        text = nla_find((const struct nlattr *)((const char *)hdr + offset), (int)(hdr->nlmsg_len - offset),
                        NLMSGERR_ATTR_MSG);
        if (text)
                nla_strlcpy(x->reason, text, sizeof(x->reason));
}

static int on_error(struct sockaddr_nl *from, struct nlmsgerr *error, void *arg)
{
        const struct nlmsghdr *hdr = (const struct nlmsghdr *)((const char *)error - NLMSG_HDRLEN);
        struct exchange *x = arg;

        x->result = error->error;
        x->is_done = true;
        read_reason(hdr, error, x);
        return NL_STOP;
}

/* An acknowledgement, or the end of a dump, which carries an error where the dump failed half-way. */
static int on_end(struct nl_msg *msg, void *arg)
{
        const struct nlmsghdr *hdr = nlmsg_hdr(msg);
        struct exchange *x = arg;
        int code = 0;

        if (hdr->nlmsg_type == NLMSG_DONE && nlmsg_datalen(hdr) >= (int)sizeof(code))
                memcpy(&code, nlmsg_data(hdr), sizeof(code));
        if (code < 0 && x->result == 0)
                x->result = code;
        x->is_done = true;
        return NL_STOP;
}

static int on_message(struct nl_msg *msg, void *arg)
{
        struct exchange *x = arg;

        if (x->fn && x->result == 0)
                x->result = x->fn(nlmsg_hdr(msg), x->userdata);
        return NL_OK;
}

static int explain(const struct exchange *x, const char *what, struct err *err)
{
        enum err_kind kind = ERR_ENVIRONMENT;

        switch (-x->result) {
        case EPERM:
        case EACCES:
                return err_set(err, ERR_UNSUPPORTED, -x->result,
                               "%s: needs CAP_NET_ADMIN over the network namespace: run as root, or inside "
                               "`unshare --user --map-root-user --net`",
                               what);
        case EOPNOTSUPP:
        case EPROTONOSUPPORT:
        case EAFNOSUPPORT:
                kind = ERR_UNSUPPORTED;
                break;
        }
        if (x->reason[0])
                return err_set_errno(err, kind, -x->result, "%s: %s", what, x->reason);
        return err_set_errno(err, kind, -x->result, "%s", what);
}

static int exchange(struct netlink *nl, struct nl_msg *msg, struct exchange *x, const char *what, struct err *err)
{
        _cleanup_nl_cb_ struct nl_cb *cb = NULL;
        int r;

        cb = nl_cb_alloc(NL_CB_DEFAULT);
        if (!cb)
                return err_set_nomem(err);
        nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, on_message, x);
        nl_cb_set(cb, NL_CB_ACK, NL_CB_CUSTOM, on_end, x);
        nl_cb_set(cb, NL_CB_FINISH, NL_CB_CUSTOM, on_end, x);
        nl_cb_err(cb, NL_CB_CUSTOM, on_error, x);

        nlmsg_hdr(msg)->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
        r = nl_send_auto(nl->sock, msg);
        while (r >= 0 && !x->is_done) {
                r = nl_recvmsgs(nl->sock, cb);
                if (r == -NLE_DUMP_INTR) { /* read on to its end, or the rest would look like the next answer */
                        x->is_interrupted = true;
                        r = 0;
                }
        }
        if (x->result < 0)
                return explain(x, what, err);
        if (x->is_interrupted)
                return err_set(err, ERR_ENVIRONMENT, EINTR, "%s: it changed while it was being read", what);
        if (r < 0)
                return err_set(err, ERR_ENVIRONMENT, EIO, "%s: netlink: %s", what, nl_geterror(r));
        return 0;
}

int netlink_request(struct netlink *nl, struct nl_msg *msg, const char *what, struct err *err)
{
        struct exchange x = {0};

        return exchange(nl, msg, &x, what, err);
}

int netlink_query(struct netlink *nl, struct nl_msg *msg, int (*fn)(struct nlmsghdr *hdr, void *userdata),
                  void *userdata, const char *what, struct err *err)
{
        struct exchange x = {.fn = fn, .userdata = userdata};

        return exchange(nl, msg, &x, what, err);
}

/* A socket in the namespace of @nl that becomes readable when something of @groups changes there. */
static int open_events(struct netlink *nl, unsigned groups, struct err *err)
{
        struct sockaddr_nl where = {.nl_family = AF_NETLINK, .nl_groups = groups};
        _cleanup_netns_ struct netns ns = NETNS_INIT;
        _cleanup_close_ int fd = -1;

        ns.fd = ioctl(nl_socket_get_fd(nl->sock), SIOCGSKNS);
        if (ns.fd < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot get the network namespace of a socket");
        fd = netns_socket(&ns, AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_ROUTE, err);
        if (fd < 0)
                return fd;
        if (bind(fd, (struct sockaddr *)&where, sizeof(where)) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot listen to changes of links and routes");
        return TAKE_FD(fd);
}

int netlink_wait(struct netlink *nl, unsigned groups, int64_t timeout_ns,
                 int (*is_done)(struct netlink *nl, void *userdata, struct err *err), void *userdata, struct err *err)
{
        int64_t end = clock_now_ns(CLOCK_MONOTONIC) + timeout_ns, left;
        _cleanup_close_ int events = -1;
        uint8_t dropped[256];
        int r;

        events = open_events(nl, groups, err); /* before the first look, so that no change is missed */
        if (events < 0)
                return events;
        for (;;) {
                struct pollfd p = {.fd = events, .events = POLLIN};

                while (recv(events, dropped, sizeof(dropped), 0) >= 0 || errno == ENOBUFS)
                        ;
                r = is_done(nl, userdata, err);
                if (r != 0)
                        return MIN(r, 0);
                left = end - clock_now_ns(CLOCK_MONOTONIC);
                if (left <= 0)
                        return -ETIMEDOUT;
                poll(&p, 1, (int)MIN(left / NSEC_PER_MSEC + 1, INT64_C(1000)));
        }
}

int netlink_build_failed(int code, const char *what, struct err *err)
{
        if (code == -NLE_NOMEM)
                return err_set_nomem(err);
        return err_set(err, ERR_BUG, EINVAL, "%s: the request cannot be built: %s", what, nl_geterror(code));
}

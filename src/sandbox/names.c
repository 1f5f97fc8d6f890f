/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/names.h"

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/macro.h"
#include "sandbox/bundle.h"
#include "sandbox/resolver.h"
#include "sandbox/rules.h"
#include "sys/ip.h"
#include "sys/link.h"
#include "sys/sockdiag.h"

#define N_SOCKETS 4 /* datagrams and streams, of IPv4 and IPv6 */
#define BACKLOG   64

struct names {
        struct sandbox *sandbox;
        struct pins *pins;
        struct resolver *resolver; /* NULL: nothing has been asked yet, and many commands never ask */
        struct socket_of_names {
                struct names *names;
                int fd; /* -1: none, or the resolver's by now */
                struct loop_io io;
        } sockets[N_SOCKETS];
        int sockdiag_fd;
};

/* At every address: whatever asks a server for names, wherever that is, is led to these sockets, and the answer comes
 * from the server that was asked.
 * Return: a descriptor; -EAFNOSUPPORT and the like without IPv6; another negative errno.
 */
static int listen_for(int family, int type)
{
        struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(RULES_DNS_PORT)};
        struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(RULES_DNS_PORT)};
        const struct sockaddr *where = family == AF_INET ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
        int level = family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6, yes = 1;
        int transparent = family == AF_INET ? IP_TRANSPARENT : IPV6_TRANSPARENT;
        int pktinfo = family == AF_INET ? IP_PKTINFO : IPV6_RECVPKTINFO;
        _cleanup_close_ int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0 || setsockopt(fd, level, transparent, &yes, sizeof(yes)) < 0 ||
            (family == AF_INET6 && setsockopt(fd, level, IPV6_V6ONLY, &yes, sizeof(yes)) < 0))
                return -errno;
        /* Whom a datagram was for is noted when it arrives, which may be before the resolver is there. */
        if ((type == SOCK_DGRAM && setsockopt(fd, level, pktinfo, &yes, sizeof(yes)) < 0) ||
            bind(fd, where, family == AF_INET ? sizeof(v4) : sizeof(v6)) < 0 ||
            (type == SOCK_STREAM && listen(fd, BACKLOG) < 0))
                return -errno;
        return TAKE_FD(fd);
}

int names_open(struct sandbox *sandbox, struct names **ret, struct err *err)
{
        static const int families[] = {AF_INET, AF_INET, AF_INET6, AF_INET6};
        static const int types[] = {SOCK_DGRAM, SOCK_STREAM, SOCK_DGRAM, SOCK_STREAM};
        _cleanup_names_ struct names *names = calloc(1, sizeof(*names));

        if (!names)
                return err_set_nomem(err);
        names->sandbox = sandbox;
        names->sockdiag_fd = -1;
        for (size_t i = 0; i < N_SOCKETS; i++)
                names->sockets[i] = (struct socket_of_names){.names = names, .fd = -1};
        for (size_t i = 0; i < N_SOCKETS; i++) {
                names->sockets[i].fd = listen_for(families[i], types[i]);
                if (names->sockets[i].fd < 0 && families[i] == AF_INET)
                        return err_set_errno(err, ERR_ENVIRONMENT, -names->sockets[i].fd,
                                             "cannot listen for questions about names");
        }
        names->sockdiag_fd = sockdiag_open(err);
        if (names->sockdiag_fd < 0)
                return names->sockdiag_fd;
        snprintf(sandbox->resolver, sizeof(sandbox->resolver), "127.0.0.1");
        *ret = TAKE_PTR(names);
        return 0;
}

int names_route(struct err *err)
{
        static const char *const own[] = {"127.0.0.1", "::1"};
        _cleanup_netlink_ struct netlink *nl = NULL;
        struct ip_prefix source;
        struct err no_v6 = {0};
        int index, r;

        r = netlink_open(NULL, &nl, err);
        if (r == 0)
                r = link_find(nl, "lo", &index, err);
        for (size_t i = 0; i < ARRAY_SIZE(own) && r == 0; i++) {
                if (ip_prefix_parse(own[i], &source) < 0)
                        return err_set(err, ERR_BUG, EINVAL, "%s is no address", own[i]);
                r = ip_port_add_local(nl, index, RULES_DNS_PORT, &source, i == 0 ? err : &no_v6);
        }
        return no_v6.kind ? 0 : r; /* a host without IPv6: the rules refuse what would ask over it */
}

void names_free(struct names *names)
{
        if (!names)
                return;
        resolver_free(names->resolver);
        pins_free(names->pins);
        for (size_t i = 0; i < N_SOCKETS; i++) {
                loop_io_remove(&names->sockets[i].io);
                close_cleanup(&names->sockets[i].fd);
        }
        if (names->sockdiag_fd >= 0)
                close(names->sockdiag_fd);
        free(names);
}

static int admit(void *userdata, const struct pin *pins, size_t n, struct err *err)
{
        struct names *names = userdata;
        const struct enforcer_ops *enforcer = names->sandbox->enforcer;

        return enforcer->admit ? enforcer->admit(names->sandbox, pins, n, err) : 0;
}

static const char *type_text(uint16_t type, char buf[static 16])
{
        switch (type) {
        case DNS_TYPE_A:
                return "A";
        case DNS_TYPE_AAAA:
                return "AAAA";
        case DNS_TYPE_PTR:
                return "PTR";
        default:
                snprintf(buf, 16, "TYPE%u", type);
                return buf;
        }
}

#define ADDRESSES_MAX 16 /* as many as a record keeps */

static void note(void *userdata, const struct resolver_question *question)
{
        struct ip_prefix addresses[ADDRESSES_MAX];
        struct names *names = userdata;
        size_t n = MIN(question->n_pins, (size_t)ADDRESSES_MAX);
        char type[16];

        for (size_t i = 0; i < n; i++)
                addresses[i] = question->pins[i].address;
        bundle_question(names->sandbox->bundle, question->name, type_text(question->type, type),
                        dns_rcode_name(question->rcode), addresses, n, question->target ? question->reason : NULL);
        if (question->target)
                sandbox_denied(names->sandbox, question->target, question->reason ? question->reason : "policy", NULL);
}

/* The first question: from now on the resolver answers at the sockets. */
static int on_first(struct loop_io *io, uint32_t events)
{
        struct names *names = CONTAINER_OF(io, struct socket_of_names, io)->names;
        struct resolver_options options = {
                .loop = names->sandbox->loop,
                .policy = names->sandbox->policy,
                .sockdiag_fd = names->sockdiag_fd,
                .admit = admit,
                .note = note,
                .userdata = names,
        };
        struct err err = {0};
        int r;

        for (size_t i = 0; i < N_SOCKETS; i++)
                loop_io_remove(&names->sockets[i].io);
        r = pins_new(PINS_MAX, &names->pins);
        if (r < 0)
                return r;
        options.pins = names->pins;
        r = resolver_new(&options, &names->resolver, &err);
        for (size_t i = 0; i < N_SOCKETS && r == 0; i++)
                if (names->sockets[i].fd >= 0)
                        r = resolver_serve(names->resolver, TAKE_FD(names->sockets[i].fd), &err);
        if (r < 0)
                log_error("names cannot be resolved: %s", err.text);
        return r;
}

int names_serve(struct names *names, struct err *err)
{
        int r = 0;

        bundle_observes(names->sandbox->bundle, BUNDLE_DNS);
        for (size_t i = 0; i < N_SOCKETS && r == 0; i++)
                if (names->sockets[i].fd >= 0)
                        r = loop_io_add(names->sandbox->loop, &names->sockets[i].io, names->sockets[i].fd, EPOLLIN,
                                        on_first);
        return r < 0 ? err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot wait for questions about names") : 0;
}

enum policy_outcome names_decide(const struct names *names, const struct policy *policy, struct target *target,
                                 struct decision *ret)
{
        int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);
        struct target named = *target;

        named.name = target->name = NULL;
        policy_decide(policy, target, ret);
        if (ret->outcome == POLICY_ALLOWED || !names->pins)
                return ret->outcome;
        while ((named.name = pins_next(names->pins, &named.address, now_ns, named.name))) {
                struct decision decision;

                policy_decide(policy, &named, &decision);
                if (decision.outcome == POLICY_DENIED)
                        continue;
                target->name = named.name;
                *ret = decision;
                if (decision.outcome == POLICY_ALLOWED)
                        break;
        }
        return ret->outcome;
}

const struct pins *names_pins(const struct names *names)
{
        return names->pins;
}
